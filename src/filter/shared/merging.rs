//! Merging and digests, for the types of filter that have them. `Parts::merge` is both `absorb` (the sum) and `unite` (the union): it
//! checks what must be equal, begins an image of the other table, and has this table add what is in it
//! (`table/image/absorb.rs`).

use core::hash::BuildHasher;

use crate::error::absorb::AbsorbError;
use crate::error::build::BuildError;
use crate::error::insert::InsertError;
use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::filter::shared::parts::Parts;
use crate::growth::growing_table::GrowingTable;
use crate::hasher::probe::probe;
use crate::machine::memory::Pages;
use crate::plan::table_plan::TablePlan;
use crate::table::by_shape::{ExpiringTable, FilterTable, MapletTable};
use crate::table::core::{Core, Dimensions};
use crate::table::filter_plan::FilterPlan;
use crate::table::image::merge::{Merge, MergeError, MergeResult};
use crate::table::image::read::TableImage;
use crate::table::table::memory_for;
use crate::word::tick::Tick;

/// How a table adds the copies of an image of another one, all or those that it lacks: it checks what must hold at the moment of
/// the image, and makes room where that is possible.
type Absorb<C> = fn(&C, &C, &TableImage<'_>, Merge) -> Result<MergeResult, AbsorbError>;

impl<C: Core, S: BuildHasher> Parts<C, S> {
    /// Adds what the other filter holds and, for a union, this one lacks. Both have keys of type `T`, and these plans.
    /// `absorb` is how their tables do it. Returns how many copies were added.
    #[cfg_attr(
        not(feature = "snapshot"),
        allow(clippy::extra_unused_type_parameters, reason = "only a schema depends on the type of the keys")
    )]
    pub(in crate::filter) fn merge<T: ?Sized>(
        &self,
        other: &Self,
        [ours, theirs]: [FilterPlan; 2],
        merge: Merge,
        absorb: Absorb<C>,
    ) -> Result<u64, AbsorbError> {
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
        check_settings(&ours, &theirs)?;
        let image =
            TableImage::begin(other.core.image_source()).map_err(|_| AbsorbError::OutOfMemory { absorbed: 0 })?;
        outcome(absorb(&self.core, &other.core, &image, merge)?)
    }

    pub(in crate::filter) fn digest(&self, kind: FilterKind) -> Result<u64, OutOfMemory> {
        TableImage::begin(self.core.image_source())?.digest(kind, probe(&self.hasher))
    }

    /// The parts of an empty filter with the same settings. `another` makes an empty table with those of this one.
    pub(in crate::filter) fn empty_like(&self, another: fn(&C) -> Result<C, BuildError>) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let core = another(&self.core)?;
        Ok(Self { core, hasher: self.hasher.clone(), schema: self.schema.clone() })
    }
}

/// An empty table with the settings of this one, which does not grow.
fn empty_like<C: Core>(core: &C, make: impl FnOnce(TablePlan) -> Option<C>) -> Result<C, BuildError> {
    let Dimensions { shape, buckets, limit, .. } = core.dimensions();
    let another = make(TablePlan::new(shape, buckets, limit, Pages::Usual));
    another.ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(buckets) })
}

/// Checks the room for `other_len` more copies in a table that has `len`: for a sum. How many a union adds is not known
/// beforehand.
fn check_room(core: &impl Core, len: usize, other_len: usize) -> Result<(), AbsorbError> {
    let capacity = core.capacity();
    if other_len > 0 && len.saturating_add(other_len) > capacity {
        return Err(AbsorbError::OverCapacity { len, other_len, capacity });
    }
    Ok(())
}

/// Checks what must be the same in both filters, beside hasher and schema.
fn check_settings(ours: &FilterPlan, theirs: &FilterPlan) -> Result<(), AbsorbError> {
    if let (Some(ours), Some(theirs)) = (ours.window, theirs.window)
        && core::mem::discriminant(&ours) != core::mem::discriminant(&theirs)
    {
        return Err(AbsorbError::Window { ours, theirs });
    }
    // The only table, or the largest one of a growable filter. (That may begin with more buckets than the other: for another
    // capacity, or with another load.)
    if ours.largest != theirs.largest {
        return Err(AbsorbError::Layout { filter: ours.filter, ours: ours.largest, theirs: theirs.largest });
    }
    // Growable filters whose largest tables agree may differ at smaller sizes, or in which bits of a hash they store.
    if ours.classes != theirs.classes {
        return Err(AbsorbError::Settings);
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

/// How many copies were added, or why not all.
fn outcome(MergeResult { copies: absorbed, stopped }: MergeResult) -> Result<u64, AbsorbError> {
    match stopped {
        None => Ok(absorbed),
        Some(MergeError::OutOfMemory) => Err(AbsorbError::OutOfMemory { absorbed }),
        Some(MergeError::NoRoom(InsertError::Full { len, capacity })) => {
            Err(AbsorbError::Full { absorbed, len, capacity })
        }
        Some(MergeError::NoRoom(InsertError::TooManyCopies { copies })) => {
            Err(AbsorbError::TooManyCopies { absorbed, copies })
        }
        Some(MergeError::MaxCapacity { len, max_capacity }) => {
            Err(AbsorbError::MaxCapacity { absorbed, len, max_capacity })
        }
        Some(MergeError::MemoryLimit { len, capacity, needed, limit }) => {
            Err(AbsorbError::MemoryLimit { absorbed, len, capacity, needed, limit })
        }
        Some(MergeError::Evicted { rejected, up_to }) => Err(AbsorbError::Evicted { absorbed, rejected, up_to }),
        Some(MergeError::ClockSetBack) => Err(AbsorbError::ClockSetBack { absorbed }),
    }
}

impl FilterTable {
    pub(in crate::filter) fn another(&self) -> Result<Self, BuildError> {
        empty_like(self, TablePlan::table)
    }

    pub(in crate::filter) fn check_and_absorb(
        &self,
        other: &Self,
        image: &TableImage<'_>,
        merge: Merge,
    ) -> Result<MergeResult, AbsorbError> {
        if merge == Merge::Sum {
            check_room(self, self.len(), other.len())?;
        }
        Ok(self.absorb(image, merge))
    }
}

impl MapletTable {
    pub(in crate::filter) fn another(&self) -> Result<Self, BuildError> {
        empty_like(self, TablePlan::table_of_values)
    }

    pub(in crate::filter) fn check_and_absorb(
        &self,
        other: &Self,
        image: &TableImage<'_>,
        merge: Merge,
    ) -> Result<MergeResult, AbsorbError> {
        if merge == Merge::Sum {
            check_room(self, self.len(), other.len())?;
        }
        Ok(self.absorb(image, merge))
    }
}

impl ExpiringTable {
    pub(in crate::filter) fn another(&self) -> Result<Self, BuildError> {
        empty_like(self, |plan| plan.table_with_clock(self.clock().another()))
    }

    pub(in crate::filter) fn check_and_absorb(
        &self,
        other: &Self,
        image: &TableImage<'_>,
        merge: Merge,
    ) -> Result<MergeResult, AbsorbError> {
        // The other clock is read first: this one can only have advanced meanwhile.
        let (theirs, ours) = (image.clock_state().and_then(|clock_state| clock_state.now), self.clock().now());
        if let Some(theirs) = theirs
            && ours.is_none_or(|ours| ours < theirs)
        {
            return Err(AbsorbError::ClockBehind { ours: ours.map(Tick::new), theirs: Tick::new(theirs) });
        }
        if merge == Merge::Sum {
            // Those that are live by both clocks. Where this table has evicted ticks, none is added that ends at one of them.
            let now = self.clock().now().zip(other.clock().now());
            let passed =
                now.map_or(0, |(ours, theirs)| ours.saturating_sub(theirs).saturating_add(self.clock().ahead()));
            check_room(self, self.live_in(0), other.live_in(passed))?;
        }
        Ok(self.absorb(image, merge))
    }
}

impl GrowingTable {
    pub(in crate::filter) fn another(&self) -> Result<Self, BuildError> {
        GrowingTable::new(self.plan)
    }

    pub(in crate::filter) fn check_and_absorb(
        &self,
        other: &Self,
        image: &TableImage<'_>,
        merge: Merge,
    ) -> Result<MergeResult, AbsorbError> {
        // If there cannot be so much room, an insert says why.
        if self.len() == 0 {
            // It becomes a copy, whatever the other one holds: with fewer buckets there might be no room.
            let _ = self.grow_if_possible(image.layout().1);
        } else {
            // The copies come in the order of the buckets, so some buckets would be full long before the table is. A union
            // may add nothing, so it makes room for no more than the other has: a small table becomes as large.
            let _ = self.reserve(match merge {
                Merge::Sum => other.len(),
                Merge::Union => other.len().saturating_sub(self.len()),
            });
        }
        Ok(self.absorb(image, merge))
    }
}
