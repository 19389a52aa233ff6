//! Merging: one filter absorbs another. And digests, which compare filters.

use core::hash::BuildHasher;

use crate::error::absorb::AbsorbError;
use crate::error::build::BuildError;
use crate::error::insert::InsertError;
use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::growth::table::GrowingTable;
use crate::hasher::probe::probe;
use crate::machine::memory::Pages;
use crate::table::face::any_table::{AnyTable, Facts, HasTable, TableImage};
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::{ExpiringTable, FilterTable, MapletTable};
use crate::table::image::merge::{Absorbed, Merge, Stopped};
use crate::table::table::memory_for;
use crate::word::tick::Tick;

/// A core that can absorb another of its kind.
trait Absorbing: HasTable + Sized {
    /// An empty core with the same settings.
    fn another(&self) -> Result<Self, BuildError>;

    /// Checks what must hold at the moment of the other core's image, and makes room where that is possible.
    fn prepare(&self, other: &Self, image: &TableImage<'_>, merge: Merge) -> Result<(), AbsorbError>;
}

/// An empty core with the settings of this table, which does not grow.
fn empty_like<C>(table: &dyn AnyTable, make: impl FnOnce(TablePlan) -> Option<C>) -> Result<C, BuildError> {
    let Facts { shape, buckets, limit, .. } = table.facts();
    let core = make(TablePlan::new(shape, buckets, limit, Pages::Usual));
    core.ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(buckets) })
}

/// Checks the room for `coming` more copies in a table that has `len`. How many a union adds is not known beforehand.
fn check_room(table: &dyn AnyTable, len: usize, coming: usize, merge: Merge) -> Result<(), AbsorbError> {
    let capacity = table.capacity();
    if merge == Merge::Sum && coming > 0 && len.saturating_add(coming) > capacity {
        return Err(AbsorbError::TooMany { len, coming, capacity });
    }
    Ok(())
}

/// Checks what must be the same in both filters, beside hasher and schema.
fn check_settings(ours: &FilterPlan, theirs: &FilterPlan) -> Result<(), AbsorbError> {
    for (ours, theirs) in [(ours.first, theirs.first), (ours.largest, theirs.largest)] {
        if ours != theirs {
            return Err(AbsorbError::Layout { ours, theirs });
        }
    }
    if let (Some(ours), Some(theirs)) = (ours.resolution, theirs.resolution)
        && ours != theirs
    {
        return Err(AbsorbError::Resolution { ours, theirs });
    }
    match (ours.lifetime_in_ticks, theirs.lifetime_in_ticks) {
        (Some(ours), Some(theirs)) if ours < theirs => Err(AbsorbError::Lifetime { ours, theirs }),
        _ => Ok(()),
    }
}

/// Adds the copies of the image, and returns how many.
fn absorb(table: &dyn AnyTable, image: &TableImage<'_>, merge: Merge) -> Result<u64, AbsorbError> {
    let Absorbed { copies: absorbed, stopped } = table.absorb(image, merge);
    match stopped {
        None => Ok(absorbed),
        Some(Stopped::OutOfMemory) => Err(AbsorbError::OutOfMemory { absorbed }),
        Some(Stopped::NoRoom(InsertError::Full { len, capacity })) => {
            Err(AbsorbError::Full { absorbed, len, capacity })
        }
        Some(Stopped::NoRoom(InsertError::TooManyCopies { copies })) => {
            Err(AbsorbError::TooManyCopies { absorbed, copies })
        }
        Some(Stopped::MaxCapacity { len, max_capacity }) => {
            Err(AbsorbError::MaxCapacity { absorbed, len, max_capacity })
        }
        Some(Stopped::MemoryLimit { len, needed, limit }) => {
            Err(AbsorbError::MemoryLimit { absorbed, len, needed, limit })
        }
        Some(Stopped::ClockSetBack) => Err(AbsorbError::ClockSetBack { absorbed }),
    }
}

impl Absorbing for Box<dyn FilterTable> {
    fn another(&self) -> Result<Self, BuildError> {
        empty_like(self.table(), TablePlan::table)
    }

    fn prepare(&self, other: &Self, _: &TableImage<'_>, merge: Merge) -> Result<(), AbsorbError> {
        check_room(self.table(), self.len(), other.len(), merge)
    }
}

impl Absorbing for Box<dyn MapletTable> {
    fn another(&self) -> Result<Self, BuildError> {
        empty_like(self.table(), TablePlan::table_with_payload)
    }

    fn prepare(&self, other: &Self, _: &TableImage<'_>, merge: Merge) -> Result<(), AbsorbError> {
        check_room(self.table(), self.len(), other.len(), merge)
    }
}

impl Absorbing for Box<dyn ExpiringTable> {
    fn another(&self) -> Result<Self, BuildError> {
        empty_like(self.table(), |plan| plan.table_with_clock(self.clock().another()))
    }

    fn prepare(&self, other: &Self, image: &TableImage<'_>, merge: Merge) -> Result<(), AbsorbError> {
        // The other clock is read first: this one can only have advanced meanwhile.
        let (theirs, ours) = (image.reading().and_then(|reading| reading.now), self.clock().now());
        if let Some(theirs) = theirs
            && ours.is_none_or(|ours| ours < theirs)
        {
            return Err(AbsorbError::ClockBehind { ours: ours.map(Tick::new), theirs: Tick::new(theirs) });
        }
        if merge == Merge::Union {
            return Ok(());
        }
        // Those that are live by both clocks.
        let ahead = self.clock().now().zip(other.clock().now()).map_or(0, |(ours, theirs)| ours.saturating_sub(theirs));
        check_room(self.table(), self.live_in(0), other.live_in(ahead), merge)
    }
}

impl Absorbing for GrowingTable {
    fn another(&self) -> Result<Self, BuildError> {
        GrowingTable::new(self.plan)
    }

    fn prepare(&self, other: &Self, image: &TableImage<'_>, merge: Merge) -> Result<(), AbsorbError> {
        // If there cannot be so much room, an insert says why.
        if self.len() == 0 {
            // It becomes a copy, whatever the other one holds: with fewer buckets there might be no room.
            let _ = self.grow_if_possible(image.layout().1);
            return Ok(());
        }
        // The copies come in the order of the buckets, so some buckets would be full long before the table is. A union may
        // add nothing, so it makes room for no more than the other has: a small table becomes as large.
        let _ = self.reserve(match merge {
            Merge::Sum => other.len(),
            Merge::Union => other.len().saturating_sub(self.len()),
        });
        Ok(())
    }
}

macro_rules! absorbing {
    (
        $Filter:ident as $Kind:ident made by $build:literal, with $setup:literal, $insert:literal, $copies:literal: $(#[$own:meta])*
        unite $item:literal: $(#[$of_union:meta])*
        digest: $(#[$of_digest:meta])*
    ) => {
        /// Merging and comparing filters. The page [`beyond_one_process`](crate::guide::beyond_one_process) says when to merge.
        ///
        /// ```
        #[doc = concat!("use concurrent_cuckoo_filter::{AbsorbError, ", stringify!($Filter), "};")]
        ///
        #[doc = concat!("let all = ", stringify!($Filter), "::<u64>::", $build, ";")]
        #[doc = $setup]
        /// let part = all.empty_like()?; // has the same hasher
        #[doc = $insert]
        /// assert_eq!(all.absorb(&part)?, 1);
        /// assert!(all.contains(&7));
        /// assert_eq!(all.unite(&part)?, 0, "it has all of that");
        /// assert_eq!(all.digest()?, part.digest()?, "they hold the same");
        #[doc = concat!("let other = ", stringify!($Filter), "::<u64>::", $build, "; // has a key of its own")]
        /// assert_eq!(all.absorb(&other), Err(AbsorbError::Hasher));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            #[doc = concat!("Adds all that the other filter holds: ", $copies, ". Returns how many.")]
            ///
            /// The sum is exact: a key that was in twice in one filter and once in the other is in three times, and
            /// can be removed three times. The other filter stays as it is.
            ///
            /// Both filters may be in use meanwhile. The call adds what the other filter holds when the call
            /// begins, as for [`digest`](Self::digest). Each copy is added like an insert, at some moment of the call.
            ///
            $(#[$own])*
            ///
            /// Cost: one pass over both tables, in the order of memory. It takes about as long as inserting the keys in a
            /// batch (`cargo bench --bench merge`). Meanwhile changes to the other filter [cost
            /// more](crate::guide::consistency#what-each-operation-costs).
            ///
            /// # Errors
            /// - [`AbsorbError`] if hasher, schema or [layout](crate::TableLayout) differ, if both filters together
            ///   hold more than the [capacity](Self::capacity), and in the other cases that it names. Nothing has
            ///   changed then.
            /// - If a copy finds no room on the way, the error says how many copies are in by then. Those stay.
            ///
            /// If no other thread inserts, distinct keys practically never fail below the capacity. If both filters hold
            /// the same keys, many keys have several copies in the sum, and [less
            /// fits](crate::guide::choosing_parameters#capacity). If you need all or nothing, make a filter with
            /// [`empty_like`](Self::empty_like), let it absorb both filters, and use it in their place.
            pub fn absorb(&self, other: &Self) -> Result<u64, AbsorbError> {
                self.merge(other, Merge::Sum)
            }

            #[doc = concat!("Adds ", $item, " that the other filter holds and this one lacks. Returns how many.")]
            ///
            /// It is the union, for filters that exchange what they hold. It may be repeated: a second call adds
            /// nothing. The order makes no difference: filters that hold each key once, by
            /// [`insert_if_absent`](Self::insert_if_absent) for example, have equal [digests](Self::digest) when each
            /// has united with all others, directly or through a third. Of several copies in the other filter, one is
            /// added; those in this one stay.
            ///
            $(#[$of_union])*
            ///
            /// The filters compare fingerprints, so a key whose look-alike is here is not added. It is found even so,
            /// but shares an entry with that key: [what removals then
            /// lose](crate::guide::security#hazards-without-an-adversary).
            ///
            /// Both filters may be in use meanwhile, as in an [`absorb`](Self::absorb). Each key is added like an
            /// `insert_if_absent`, at some moment of the call. So what another thread removes here meanwhile may come in
            /// again, if the other filter had it.
            ///
            /// Cost: one pass over the other table, with a lookup in this one for each copy. What is missing is inserted,
            /// with one stripe locked.
            ///
            /// # Errors
            /// - [`AbsorbError`] if hasher, schema or [layout](crate::TableLayout) differ, and in the other cases that it
            ///   names. Nothing has changed then.
            /// - If there is no room for one of the copies, the error says how many are in by then. Those stay, and
            ///   nothing is lost. To continue, make room and call it again. (How much is missing is not known
            ///   beforehand, so it is not checked as in `absorb`.)
            pub fn unite(&self, other: &Self) -> Result<u64, AbsorbError> {
                self.merge(other, Merge::Union)
            }

            fn merge(&self, other: &Self, merge: Merge) -> Result<u64, AbsorbError> {
                if probe(&self.hasher) != probe(&other.hasher) {
                    return Err(AbsorbError::Hasher);
                }
                #[cfg(feature = "snapshot")]
                {
                    let (ours, theirs) = (self.schema.name::<T>(), other.schema.name::<T>());
                    if ours != theirs {
                        return Err(AbsorbError::Schema { ours: ours.into_owned(), theirs: theirs.into_owned() });
                    }
                }
                check_settings(&self.plan(), &other.plan())?;
                let image =
                    TableImage::begin(other.core.table()).map_err(|_| AbsorbError::OutOfMemory { absorbed: 0 })?;
                self.core.prepare(&other.core, &image, merge)?;
                absorb(self.core.table(), &image, merge)
            }

            /// What the filter holds, as one number: two filters with the same digest hold the same.
            ///
            /// **Filters that hold the same have the same digest**, however they came to it: in any order, on any
            /// number of threads, with any relocations, or from a snapshot. Filters that hold something else have
            /// different digests, except for one comparison in 2⁶⁴.
            ///
            /// The digest also depends on the type of the filter, the number of its buckets, their layout and the
            /// hasher's key. So filters that differ in these have different digests, even if they are empty. (It
            /// does not depend on the schema, on the capacity, or on what time is divided into.)
            ///
            $(#[$of_digest])*
            ///
            /// The digest is of the moment at which the call begins. So it is exact if no thread changes the filter at that
            /// moment, for example if one thread makes all changes and calls this between two of them. If an insert overlaps
            /// the moment, its copy may count or not, and so may what a [`clear`](Self::clear) removes during the call.
            ///
            /// With a hasher that is the same everywhere (`StableHashBuilder`, which needs the feature `stable-hash`),
            /// the digest is the same on every machine, and in all versions of this crate that write the same
            /// version of the snapshot format. It is no signature: anyone who may choose keys can make two filters
            /// with one digest.
            ///
            /// Cost: one pass over the table, without a lock (192 MB take 0.3 to 0.5 s: `cargo bench --bench merge`).
            /// Meanwhile changes [cost more](crate::guide::consistency#what-each-operation-costs).
            ///
            /// # Errors
            /// Fails if the memory for the old words of buckets that change meanwhile cannot be allocated. The changes
            /// themselves are done.
            pub fn digest(&self) -> Result<u64, OutOfMemory> {
                TableImage::begin(self.core.table())?.digest(FilterKind::$Kind, probe(&self.hasher))
            }

            /// An empty filter with the same layout, hasher and schema. This filter can [absorb](Self::absorb) it
            /// once it is filled.
            ///
            /// # Errors
            /// [`BuildError::OutOfMemory`] if the allocation fails.
            pub fn empty_like(&self) -> Result<Self, BuildError>
            where
                S: Clone,
            {
                Ok(Self::from_parts(self.core.another()?, self.hasher.clone(), self.schema.clone()))
            }
        }
    };
}

absorbing! {
    ConcurrentCuckooFilter as Concurrent made by "with_capacity(1000)", with "", "part.insert(&7)?;", "each copy of each key":
    /// Both filters together must be within the [capacity](Self::capacity).
    unite "each key":
    digest:
}

absorbing! {
    CuckooMaplet as Maplet made by "builder().capacity(1000).value_bits(4).build()?", with "", "part.insert(&7, 3)?;", "each pair of key and value":
    /// The values are added with their keys. Both filters must have the same number of [value
    /// bits](crate::MapletBuilder::value_bits).
    unite "each pair of key and value":
    /// A key that has one value here and another one there has both afterwards.
    digest:
    /// The digest depends on the values: a key with another value is another pair.
}

absorbing! {
    ExpiringCuckooFilter as Expiring made by "builder().capacity(1000).lifetime_in_ticks(14).build()?", with "all.advance_to(concurrent_cuckoo_filter::Tick::new(10));", "part.insert(&7)?;", "each live entry, with its expiry":
    /// Expiries are ticks of the caller's clock. Both filters must have the same resolution, and this filter's clock
    /// must not be behind the other's. What has expired by either clock is not added. Don't call
    /// [`restart_clock`](Self::restart_clock) meanwhile. To check for room, the call first reads both
    /// filters once.
    unite "each live entry":
    /// An entry that both have lives until the later one of its expiries, as by
    /// [`insert_or_renew_until`](Self::insert_or_renew_until); that is not counted as added. The clocks must be as for
    /// `absorb`. While one clock is ahead, the other filter may still have what has expired by the first.
    digest:
    /// Expired entries don't count, swept or not. Expiries count as ticks of the caller's clock. So two filters
    /// have the same digest if they hold the same live entries with the same expiries. Their clocks need not show the
    /// same tick, unless something has expired by one and not by the other.
    ///
    /// After [`restart_clock`](Self::restart_clock) the expiries are other ticks, so the digest is another one.
}

absorbing! {
    GrowableCuckooFilter as Growable made by "with_capacity(1000)", with "", "part.insert(&7)?;", "each copy of each key":
    /// This filter grows for them. The two may have any sizes, but they must have been built with the same settings. If this
    /// one is empty, it gets at least as many buckets as the other has, and has room for each copy: so
    /// [`empty_like`](Self::empty_like) and this always make a copy, unless there is no memory.
    unite "each key":
    /// This filter grows for what it lacks: an empty one as `absorb` does. The two may have any sizes, but they must have been
    /// built with the same settings.
    digest:
    /// The digest does not depend on the size of the table: a filter that has grown and shrunk has the same one as a
    /// fresh one with the same keys. Two filters can have the same digest only if they were built with the same settings.
}
