//! Merging and comparing: one filter absorbs another, and digests compare them.

use core::hash::BuildHasher;

use crate::error::absorb::AbsorbError;
use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::table::by_shape::FilterTable;
use crate::table::image::merge::Merge;

/// Merging and comparing filters. The page [`beyond_one_process`](crate::guide::beyond_one_process) says when to merge.
///
/// ```
/// use concurrent_cuckoo_filter::{AbsorbError, ConcurrentCuckooFilter};
///
/// let all = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// let part = all.empty_like()?; // has the same hasher
/// part.insert(&7)?;
/// assert_eq!(all.absorb(&part)?, 1);
/// assert!(all.contains(&7));
/// assert_eq!(all.unite(&part)?, 0, "it has all of that");
/// assert_eq!(all.digest()?, part.digest()?, "they hold the same");
/// let other = ConcurrentCuckooFilter::<u64>::with_capacity(1000); // has a key of its own
/// assert_eq!(all.absorb(&other), Err(AbsorbError::Hasher));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
    /// Adds all that the other filter holds: each copy of each key. Returns how many.
    ///
    /// The sum is exact. Copies add: two copies plus one make three, and all three can be removed. The other filter is
    /// not changed.
    ///
    /// Both filters may be in use meanwhile. The call adds what the other filter holds when the call begins, as for
    /// [`digest`](Self::digest). Each copy is added like an insert, at some point of the call.
    ///
    /// Both filters together must be within the [capacity](Self::capacity).
    ///
    /// Cost: one pass over both tables, in the order of memory. It takes about as long as inserting the keys in a batch
    /// (`cargo bench --bench merge`). Meanwhile changes to the other filter [cost
    /// more](crate::guide::costs#while-a-save-runs).
    ///
    /// # Errors
    /// - [`AbsorbError`] if hasher, schema or [layout](crate::TableLayout) differ, if both filters together hold more
    ///   than the [capacity](Self::capacity), and in the other cases that it names. Nothing has changed then.
    /// - If a copy finds no room on the way, the error says how many copies were added before. Those stay.
    ///
    /// If no other thread inserts, distinct keys practically never fail below the capacity. If both filters hold the
    /// same keys, many keys have several copies in the sum, and [less
    /// fits](crate::guide::choosing_parameters#capacity). If you need all or nothing, make a filter with
    /// [`empty_like`](Self::empty_like), let it absorb both filters, and use it in their place.
    pub fn absorb(&self, other: &Self) -> Result<u64, AbsorbError> {
        self.parts.merge::<T>(&other.parts, [self.plan(), other.plan()], Merge::Sum, FilterTable::check_and_absorb)
    }

    /// Adds each key that the other filter holds and this one lacks. Returns how many.
    ///
    /// It is the union, for filters that exchange what they hold. It may be repeated: a second call adds nothing. The
    /// order makes no difference: filters that hold each key once, by [`insert_if_absent`](Self::insert_if_absent) for
    /// example, have equal [digests](Self::digest) when each has united with all others, directly or through a third.
    /// If the other filter has several copies of a key, one is added; those in this one stay.
    ///
    /// The filters compare fingerprints, so a key that has a look-alike here is not added. It is found nevertheless,
    /// but shares an entry with that key: see [what removals then
    /// lose](crate::guide::security#hazards-without-an-adversary).
    ///
    /// Both filters may be in use meanwhile, as in an [`absorb`](Self::absorb). Each key is added like an
    /// `insert_if_absent`, at some point of the call. So what another thread removes here meanwhile may be added again,
    /// if the other filter had it.
    ///
    /// Cost: one pass over the other table, with a lookup in this one for each copy. What is missing is inserted, with
    /// one stripe locked.
    ///
    /// # Errors
    /// - [`AbsorbError`] if hasher, schema or [layout](crate::TableLayout) differ, and in the other cases that it
    ///   names. Nothing has changed then.
    /// - If there is no room for one of the copies, the error says how many were added before. Those stay, and nothing
    ///   is lost. To continue, make room and call it again. (How many are missing is not known beforehand, so it is not
    ///   checked as in `absorb`.)
    pub fn unite(&self, other: &Self) -> Result<u64, AbsorbError> {
        self.parts.merge::<T>(&other.parts, [self.plan(), other.plan()], Merge::Union, FilterTable::check_and_absorb)
    }

    /// Returns what the filter holds, as one number: two filters with the same digest hold the same.
    ///
    /// **Filters that hold the same have the same digest**, however they came to it: in any order, on any number of
    /// threads, with any relocations, or from a snapshot. Filters that hold something else have different digests,
    /// except for one comparison in 2⁶⁴.
    ///
    /// The digest also depends on the type of the filter, the number of its buckets, their layout and the hasher's key.
    /// So filters that differ in these have different digests, even if they are empty. (It does not depend on the
    /// schema or on the capacity.)
    ///
    /// The digest is of a point-in-time view at the beginning of the call. So it is exact if no thread changes the
    /// filter then, for example if one thread makes all changes and calls this between two of them. If an insert
    /// overlaps the beginning, its copy may count or not, and so may what a [`clear`](Self::clear) removes during the
    /// call.
    ///
    /// With a hasher that is the same everywhere (`StableHashBuilder`, which needs the feature `stable-hash`), the
    /// digest is the same on every machine, and in all versions of this crate that write the same version of the
    /// snapshot format. It is not a signature: anyone who may choose keys can make two filters with one digest.
    ///
    /// Cost: one pass over the table, without a lock (192 MB take 0.3 to 0.5 s: `cargo bench --bench merge`). Meanwhile
    /// changes [cost more](crate::guide::costs#while-a-save-runs).
    ///
    /// # Errors
    /// Fails if the memory for the old contents of buckets that change meanwhile cannot be allocated. The changes
    /// themselves still take effect.
    pub fn digest(&self) -> Result<u64, OutOfMemory> {
        self.parts.digest(FilterKind::Concurrent)
    }

    /// Returns an empty filter with the same layout, hasher and schema. This filter can [absorb](Self::absorb) it
    /// once it is filled.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the allocation fails.
    pub fn empty_like(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        Ok(Self::from_parts(self.parts.empty_like(FilterTable::another)?))
    }
}
