//! Another window: an empty filter with the same table, and one that takes over the keys of another.

use core::hash::BuildHasher;
use core::time::Duration;

use crate::error::absorb::AbsorbError;
use crate::error::build::BuildError;
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::plan::window::Division;
use crate::table::core::Core as _;
use crate::table::image::merge::Merge;
use crate::table::image::read::TableImage;
use crate::table::recent_table::RecentTable;

/// Another window for the keys of a filter that is in use. The page [`expiry`](crate::guide::expiry#another-window) has the
/// whole procedure.
///
/// ```
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::RecentCuckooFilter;
///
/// let minute = RecentCuckooFilter::<str>::builder().within(Duration::from_secs(60), 100_000).build()?;
/// minute.insert("message-17");
/// let ten_seconds = minute.empty_like_within(Duration::from_secs(10))?; // has the same hasher and table
/// ten_seconds.unite(&minute)?;
/// assert!(!ten_seconds.insert("message-17"), "it came less than ten seconds ago");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There is no `absorb`: a key has one entry, so there is no sum. Nor is there a `digest`, since what is left of a key's window
/// changes with each key that comes, or with the time. (A `Save` has one, by which to compare a copy of its
/// snapshot.)
impl<T: ?Sized, S: BuildHasher> RecentCuckooFilter<T, S> {
    /// Returns an empty filter with the same window, table, hasher, schema and clock. Its time and its count begin anew.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the allocation fails.
    pub fn empty_like(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let another = |table: &RecentTable| {
            let bytes = table.dimensions().memory_usage;
            table.another(table.division()).ok_or(BuildError::OutOfMemory { bytes })
        };
        Ok(Self::from_parts(self.parts.empty_like(another)?))
    }

    /// Returns an empty filter with the same table, hasher, schema and clock, for a window of the last `keys` keys. It can
    /// [take over](Self::unite) the keys of this one.
    ///
    /// The table stays as large as it is, and so does its false-positive rate. How many groups the keys expire in is
    /// determined by the layout: the window is as little longer than `keys` as that and the room in the table allow, and
    /// [`window`](Self::window) says by how much.
    ///
    /// # Errors
    /// - [`BuildError::NoRoomForWindow`] if the table is too small. A filter that was built for a window of `n` keys has room
    ///   for that window and hardly more, unless its builder was told to leave [room for](crate::RecentBuilder::room_for) a
    ///   longer one. There is always room for a shorter one.
    /// - [`BuildError::OutOfMemory`] if the allocation fails.
    pub fn empty_like_last(&self, keys: usize) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let capacity = self.capacity();
        match Division::of_keys_in(self.parts.core.clock().ring(), keys, capacity) {
            Ok(division) => self.empty_with(division),
            Err(needed) => Err(BuildError::NoRoomForWindow { keys, needed, capacity }),
        }
    }

    /// Returns an empty filter with the same table, hasher, schema and clock, for the keys of the last `duration`. It can [take
    /// over](Self::unite) the keys of this one.
    ///
    /// The table stays as large as it is, so in a longer window there is still room for about as many keys as in the one that
    /// this filter was built for. As for [`empty_like_last`](Self::empty_like_last), the layout determines by how much the
    /// window is longer than `duration`.
    ///
    /// # Errors
    /// - [`BuildError::ZeroDuration`] if the duration is 0.
    /// - [`BuildError::OutOfMemory`] if the allocation fails.
    pub fn empty_like_within(&self, duration: Duration) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        if duration.is_zero() {
            return Err(BuildError::ZeroDuration);
        }
        self.empty_with(Division::of_time_on(self.parts.core.clock().ring(), duration))
    }

    fn empty_with(&self, division: Division) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let Parts { core, hasher, schema } = &self.parts;
        let another =
            core.another(division).ok_or(BuildError::OutOfMemory { bytes: core.dimensions().memory_usage })?;
        Ok(Self::from_parts(Parts { core: another, hasher: hasher.clone(), schema: schema.clone() }))
    }

    /// Adds each recent key of the other filter that is within this filter's window and that this one lacks. Returns how many.
    ///
    /// It is for a filter with another window that takes the other one's place: [`empty_like_last`](Self::empty_like_last) and
    /// [`empty_like_within`](Self::empty_like_within) make one. The other filter is not changed. It may have been loaded from
    /// a snapshot, and may have another clock.
    ///
    /// # How long the keys stay
    /// **Each key is found for at least this filter's window**, counted from when it came to the other filter: until so many
    /// keys have come after it, there before this call and here afterwards; or for so long. It is found for longer than a key
    /// that was inserted here, by up to one group of the other filter (a thirteenth of its window, by default), because it is
    /// not known when in its group it came. In particular:
    ///
    /// - *Into a shorter window*: keys that have been there for longer than that are not added.
    /// - *Into a longer window*: keys that have left the other filter are gone. So the new window is complete only when as
    ///   many keys have come, or so much time has passed, as it is longer than the old one.
    /// - *A key that both have* leaves at the later one of both times. It is not counted as added.
    /// - The keys that this filter has stay as long as they would have: what is taken over does not count as new keys.
    ///
    /// If this filter is full, those keys are evicted that would leave first, whichever filter they come from.
    /// [`RecentStats::evicted`](crate::RecentStats::evicted) counts them. So the call never fails for lack of room.
    ///
    /// # What concurrent callers may observe
    /// Both filters may be in use meanwhile. The call adds what the other filter holds when the call begins. Each key is added
    /// as by [`insert_or_renew`](Self::insert_or_renew), at some point of the call. What comes to the other filter afterwards
    /// is not added. What another thread removes here meanwhile may be added again.
    ///
    /// So while two filters change places, [ask both](crate::guide::expiry#another-window), and insert a key into both if
    /// neither has it. **Do not insert here what the other filter has**: until the call has added such a key, it is new here
    /// and counts, although it has counted there. Other keys leave too early then.
    ///
    /// A key that has a look-alike here is not added, and shares that one's entry.
    ///
    /// **Call it once.** A filter of the last keys does not know which of its keys came after those of the other one. So a
    /// later call counts for them from then on: they stay for longer, and some that have left come back. (In a filter of a time,
    /// a later call adds what has come to the other one since.)
    ///
    /// Cost: it locks all stripes of each table for a few microseconds. Then it passes over the other table once, and inserts
    /// each key. Meanwhile changes to the other filter [cost more](crate::guide::costs#while-a-save-runs).
    ///
    /// # Errors
    /// - [`AbsorbError::Hasher`], `Schema` or `Layout` if these differ. **Keys cannot be taken over into another hasher's
    ///   filter, or into a table of another size**: the filter does not know the keys. Then ask both until the window
    ///   of the old one is over, as [described](crate::guide::expiry#another-window).
    /// - [`AbsorbError::Window`] if one filter holds the last keys and the other one those of a time.
    /// - [`AbsorbError::OutOfMemory`] if the memory for the old contents of buckets that change meanwhile cannot be allocated.
    ///   It says how many keys were added before. Those stay, and the call can be repeated.
    pub fn unite(&self, other: &Self) -> Result<u64, AbsorbError> {
        other.parts.core.follow_time();
        let unite = |ours: &RecentTable, theirs: &RecentTable, image: &TableImage<'_>, _| Ok(ours.unite(theirs, image));
        self.parts.merge::<T>(&other.parts, [self.plan(), other.plan()], Merge::Union, unite)
    }
}
