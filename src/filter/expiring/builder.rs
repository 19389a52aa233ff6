//! How an [`ExpiringCuckooFilter`] is built.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::Settings;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
use crate::plan::sizing::RateHolds;
use crate::plan::table_plan::TablePlan;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::expiring::clock::{Clock, WhenFull, ticks_for};
use crate::table::filter_plan::FilterPlan;
use crate::table::table::memory_for;
use crate::word::ring::{MOST_RING_BITS, Ring};

/// Construction with the default hasher, which is keyed at random for each filter and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> ExpiringCuckooFilter<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// filters that are built from either.
    pub fn builder() -> ExpiringBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the filter mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    ///
    /// type Filter = ExpiringCuckooFilter<str, RandomState>; // one name for every use
    /// let builder = Filter::builder_with_hasher(RandomState::new()).capacity(1000).lifetime_in_ticks(15);
    /// let (plan, filter): (_, Filter) = (builder.plan()?, builder.build()?);
    /// assert_eq!(plan.capacity, filter.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> ExpiringBuilder<T, S> {
        let settings = Settings::new(FilterKind::Expiring);
        ExpiringBuilder {
            settings,
            lifetime: None,
            resolution: None,
            when_full: WhenFull::default(),
            hasher,
            key: PhantomData,
        }
    }
}

/// Builds an [`ExpiringCuckooFilter`]. [`ExpiringCuckooFilter::builder`] makes one. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
#[must_use = "a builder does nothing until `build` is called"]
pub struct ExpiringBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    lifetime: Option<Lifetime>,
    resolution: Option<Duration>,
    when_full: WhenFull,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The longest lifetime, as the caller has given it.
#[derive(Clone, Copy, Debug)]
enum Lifetime {
    Of(Duration),
    InTicks(u64),
}

/// The settings that all builders have.
impl<T: ?Sized, S> ExpiringBuilder<T, S> {
    /// Sets how many entries the filter must be able to hold at a time, including those that have just expired:
    /// [`ExpiringCuckooFilter::capacity`] says what that promises. Required. Any number works, without rounding to powers of
    /// two; 0 builds the smallest filter, two buckets.
    ///
    /// If entries arrive evenly and live equally long, ask for as many as arrive in
    /// [`lifetime_in_ticks`](FilterPlan::lifetime_in_ticks) `+ 2` ticks.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.settings.capacity = Some(entries);
        self
    }

    /// Sets the largest acceptable false-positive rate: the share of lookups of absent keys that may be answered
    /// `true`. The default is 0.001 (0.1%).
    ///
    /// It holds up to the [capacity](ExpiringCuckooFilter::capacity). The filter takes entries beyond that while there
    /// is room, and the rate then rises in proportion. (A filter that evicts when it is full keeps to the rate with
    /// every slot taken.) The builder chooses the layout with the least memory. The actual rate is often lower: see
    /// [`FilterPlan::max_false_positive_rate`].
    ///
    /// The rate of each layout with every slot taken, by the bits per entry at capacity. Somewhat lower rates
    /// use that layout with fewer slots taken, if that needs less memory than the next one:
    ///
    /// | longest lifetime | bits per expiry | 11.0 bits per entry | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|---|
    /// | 2 resolutions | 2 | 1.2% | 0.25% | 0.024% | 0.0006% | 3.8e-9 |
    /// | 14 | 4 | 5.1% | 1.0% | 0.098% | 0.0023% | 1.5e-8 |
    /// | 62 | 6 | – | 4.3% | 0.39% | 0.0092% | 6e-8 |
    /// | 254 | 8 | – | – | 1.7% | 0.037% | 2.4e-7 |
    /// | 4,094 | 12 | – | – | – | 0.6% | 3.8e-6 |
    /// | 65,534 | 16 | – | – | – | – | 0.0061% |
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets whether to ask the system for huge pages for each table of 4 MiB or more. It is off by default.
    ///
    /// With pages of 2 MiB, a lookup in a large table finds the address translations of its two pages in the TLB. In a
    /// table of 192 MB, that makes lookups 5 to 7% faster, single ones and batches (`cargo bench --bench lookups --
    /// --only=batches`).
    ///
    /// This is best effort. Linux grants huge pages if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
    /// `always`, and if it has such pages free. On other systems the filter does not ask. Huge pages use no more
    /// memory, but a machine that is short of free ones may take longer to build the filter. A filter that is loaded,
    /// or made by `empty_like`, uses regular pages.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// Sets the schema of this filter's snapshots: a short name for what the keys are, up to 255 bytes. Each snapshot
    /// contains it, and `load` compares it. The default is the name of the key type.
    ///
    /// **Another schema is an error.** Without this check, a filter of other keys would answer "definitely absent" to
    /// everything.
    ///
    /// The default is [`core::any::type_name`] of the key type (for a longer name, its beginning and a checksum). It
    /// changes if the type is renamed or moved to another module, it differs between `String` and `str`, though they
    /// hash alike, and the compiler does not promise to keep it. So for snapshots that are kept, choose a name
    /// yourself, with a version in it, so you can bump it when the key's meaning changes while its type keeps its name.
    ///
    /// Needs the feature `snapshot`.
    #[cfg(feature = "snapshot")]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.settings.schema = Schema::named(schema.into());
        self
    }

    /// Sets the hasher of the keys. It replaces the one that the builder has.
    ///
    /// If an adversary may choose keys, the hasher needs a secret key: see the page
    /// [`security`](crate::guide::security).
    pub fn hasher<S2>(self, hasher: S2) -> ExpiringBuilder<T, S2> {
        let Self { settings, lifetime, resolution, when_full, .. } = self;
        ExpiringBuilder { settings, lifetime, resolution, when_full, hasher, key: PhantomData }
    }
}

/// What would be built.
impl<T: ?Sized, S> ExpiringBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout and rate. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let (table, clock) = self.table_plan()?;
        let of_value = size_of::<ExpiringCuckooFilter<T, S>>();
        Ok(FilterPlan::of_table(FilterKind::Expiring, table, of_value).with_clock(&clock))
    }
}

impl<T: ?Sized, S> ExpiringBuilder<T, S> {
    /// Sets the longest lifetime of an entry, which an [`insert`](ExpiringCuckooFilter::insert) gets. Either this or
    /// [`lifetime_in_ticks`](Self::lifetime_in_ticks) is required; of both, the later call counts.
    ///
    /// The filter keeps expiries in whole ticks, each as long as the [resolution](Self::resolution). A lifetime of `n`
    /// resolutions may touch `n + 1` ticks, so the filter is built for that many.
    pub fn lifetime(mut self, longest: Duration) -> Self {
        self.lifetime = Some(Lifetime::Of(longest));
        self
    }

    /// Sets the resolution of expiries, which is not longer than the [lifetime](Self::lifetime). The default is a fourteenth
    /// of the lifetime.
    ///
    /// A *tick* is one resolution. The caller's clock counts ticks ([`tick_at`](ExpiringCuckooFilter::tick_at)), and entries
    /// expire with one.
    ///
    /// Each expiry uses as many bits of its slot as distinguish the ticks of a lifetime, which costs memory or rate
    /// ([`false_positive_rate`](Self::false_positive_rate) has a table). So choose the coarsest resolution that is good
    /// enough. A fourteenth of the longest lifetime often is.
    ///
    /// With [`lifetime_in_ticks`](Self::lifetime_in_ticks), it only tells the filter how long a tick is.
    pub fn resolution(mut self, resolution: Duration) -> Self {
        self.resolution = Some(resolution);
        self
    }

    /// Sets the longest lifetime in ticks of the caller's clock, from 1 to 65,535: an entry may expire at up to
    /// `now + longest`. Use this for a clock that does not count time, such as blocks or epochs, or if you do the
    /// arithmetic yourself.
    ///
    /// Without a [resolution](Self::resolution), the filter does not know how long a tick is, so times and durations as an
    /// [`Expiry`](crate::Expiry) fail with
    /// [`ExpiringInsertError::ResolutionUnknown`](crate::ExpiringInsertError::ResolutionUnknown).
    pub fn lifetime_in_ticks(mut self, longest: u64) -> Self {
        self.lifetime = Some(Lifetime::InTicks(longest));
        self
    }

    /// Sets what the filter does with an insert that finds no room. The default is [`WhenFull::Refuse`]: the insert
    /// fails, and no entry expires before its time.
    ///
    /// With [`WhenFull::EvictSoonest`], **the entries that would expire first are evicted, a whole tick at a time**: all
    /// entries of the earliest tick within reach of the insert, and of all ticks before it, expire at once, as if the
    /// clock had reached that tick. All others keep their expiries, and [`now`](ExpiringCuckooFilter::now) stays.
    /// [`ExpiryStats::evicted_early_by`](crate::ExpiryStats::evicted_early_by) says by how many ticks entries expired
    /// too early, [`ExpiryStats::evicted`](crate::ExpiryStats::evicted) how many entries were dropped for it.
    ///
    /// Until the clock has reached an evicted tick, an insert that would expire at that tick or earlier fails with
    /// [`ExpiringInsertError::Evicted`](crate::ExpiringInsertError::Evicted), and
    /// [`remove_expiring_at`](ExpiringCuckooFilter::remove_expiring_at) finds none. Entries of the longest lifetime
    /// never get this error. Some inserts fail even so:
    ///
    /// - with `Full`, if all entries within reach expire at the new entry's tick or later. To evict that tick too would
    ///   empty the filter. So choose a resolution with which the entries of a few ticks fit: at the latest when the
    ///   clock advances, there is something to evict.
    /// - with `TooManyCopies`, if entries of the key fill its buckets. Use
    ///   [`insert_if_absent`](ExpiringCuckooFilter::insert_if_absent) or
    ///   [`insert_or_renew`](ExpiringCuckooFilter::insert_or_renew) for repeated keys.
    /// - with `Full`, if the filter holds less than half of its capacity. Then entries of a few keys fill these
    ///   buckets, and evicting others would not help.
    ///
    /// Cost: an insert that evicts a tick makes a few searches for room, about ten microseconds each; one of them holds
    /// all locks that inserts take. Lookups do not wait.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick, WhenFull};
    ///
    /// let builder = ExpiringCuckooFilter::<u64>::builder().capacity(1000).lifetime_in_ticks(14);
    /// let recent = builder.when_full(WhenFull::EvictSoonest).build()?;
    /// for key in 0..10_000 {
    ///     recent.advance_to(Tick::new(key / 100));
    ///     recent.insert(&key)?; // never fails, although 1,400 entries would live at a time
    /// }
    /// assert!((9200..10_000).all(|key| recent.contains(&key)), "the last 8 ticks");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Builds the filter. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the capacity or the lifetime is missing, if a setting is invalid or cannot be met, or if the
    /// allocation fails. (Some failed allocations [abort the process](crate::ConcurrentBuilder::build).)
    pub fn build(self) -> Result<ExpiringCuckooFilter<T, S>, BuildError> {
        let (plan, clock) = self.table_plan()?;
        let table = plan.table_with_clock(clock);
        let bytes = memory_for(plan.buckets) + size_of::<Clock>();
        let table = table.ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(ExpiringCuckooFilter::from_parts(Parts { core: table, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn table_plan(&self) -> Result<(TablePlan, Clock), BuildError> {
        let capacity = self.settings.checked()?;
        let (ticks, resolution) = self.lifetime.ok_or(BuildError::LifetimeMissing)?.in_ticks(self.resolution)?;
        let limit = Ring::new(MOST_RING_BITS).longest();
        let ring = Ring::for_lifetime(ticks).filter(|_| ticks > 0).ok_or(BuildError::InvalidTicks { ticks, limit })?;
        // A filter that evicts is soon full, and stays so.
        let until = match self.when_full {
            WhenFull::Refuse => RateHolds::UpToCapacity,
            WhenFull::EvictSoonest => RateHolds::Always,
        };
        let plan = self.settings.plan(capacity, ring.bits(), until)?;
        Ok((plan, Clock::new(ring, ticks, resolution, self.when_full)))
    }
}

impl Lifetime {
    /// The number of ticks, and how long a tick is. Too many ticks saturate at the largest number.
    fn in_ticks(self, resolution: Option<Duration>) -> Result<(u64, Option<Duration>), BuildError> {
        match self {
            Self::InTicks(_) if resolution == Some(Duration::ZERO) => Err(BuildError::ZeroResolution),
            Self::InTicks(ticks) => Ok((ticks, resolution)),
            Self::Of(longest) => {
                // Rounded up, so that the lifetime has no more than 14.
                let part = longest / 14;
                let fourteenth = if part * 14 < longest { part + Duration::from_nanos(1) } else { part };
                let resolution = resolution.unwrap_or(fourteenth);
                if longest.is_zero() || resolution.is_zero() || longest < resolution {
                    return Err(BuildError::InvalidLifetime { longest, resolution });
                }
                Ok((ticks_for(longest, resolution), Some(resolution)))
            }
        }
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for ExpiringBuilder<T, S> {
    fn default() -> Self {
        ExpiringCuckooFilter::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for ExpiringBuilder<T, S> {
    fn clone(&self) -> Self {
        let Self { settings, lifetime, resolution, when_full, hasher, .. } = self;
        Self {
            settings: settings.clone(),
            lifetime: *lifetime,
            resolution: *resolution,
            when_full: *when_full,
            hasher: hasher.clone(),
            key: PhantomData,
        }
    }
}

/// Leaves out the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ExpiringBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringBuilder")
            .field("capacity", &self.settings.capacity)
            .field("false_positive_rate", &self.settings.rate)
            .field("encoding", &self.settings.encoding)
            .field("lifetime", &self.lifetime)
            .field("resolution", &self.resolution)
            .field("when_full", &self.when_full)
            .finish_non_exhaustive()
    }
}
