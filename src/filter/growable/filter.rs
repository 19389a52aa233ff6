//! The filter that grows: it hashes keys and asks its table.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{GrowableInsertError, InsertBatchError, ReserveError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed, by_hash};
use crate::filter::shared::batches::{add_absent, batches, batches_of_keys_alone, blocks};
use crate::filter::shared::operations::{
    batch_on_keys, batches_on_keys, hashed, operation_on_a_key, operations_on_keys, properties,
};
use crate::filter::stats::Stats;
use crate::growth::table::GrowingTable;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::face::filter_plan::FilterPlan;
use crate::word::geometry::mixed;

/// A concurrent cuckoo filter that grows and shrinks: an approximate multiset of any number of keys of type `T`.
///
/// Its table grows and shrinks by 32 buckets at a time, while other threads use it. So its memory follows the number of
/// keys, and a lookup costs the same at any size and at any moment. [The rate asked
/// for](crate::GrowableBuilder::false_positive_rate) holds at every size.
///
/// Use it where the number of keys is not known. A [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter) of the right
/// capacity is smaller. The page [`growth`](crate::guide::growth) explains sizes and memory.
///
/// ```
/// use concurrent_cuckoo_filter::GrowableCuckooFilter;
///
/// let seen = GrowableCuckooFilter::<u64>::with_capacity(100);
/// (0..10_000).try_for_each(|key| seen.insert(&key))?;
/// assert!(seen.capacity() >= 10_000);
/// assert!((0..10_000).all(|key| seen.contains(&key)));
/// assert!(seen.remove(&17));
/// # Ok::<(), concurrent_cuckoo_filter::GrowableInsertError>(())
/// ```
///
/// # Growth and shrinking
///
/// - **Who pays:** an insert that finds the table fuller than it is made for splits up to 128 buckets. Where even that is
///   too long, call [`reserve`](Self::reserve) on a thread of its own.
/// - **Who waits:** no lookup. A writer waits only for the lock of a bucket or a stripe, which others hold for a few
///   instructions, or for as long as it takes to split 32 buckets. If a search finds no room, it also waits for a thread
///   that changes the size.
/// - **What others may observe:** [`capacity`](Self::capacity) and the [`plan`](Self::plan) change. All that a filter of
///   fixed size promises holds meanwhile: see the page [`consistency`](crate::guide::consistency).
/// - **Limits:** [`max_capacity`](crate::GrowableBuilder::max_capacity) and
///   [`memory_limit`](crate::GrowableBuilder::memory_limit).
/// - **Shrinking** happens only if you ask for it. A filter whose keys come and go at constant length does not grow.
/// - **Allocation:** after construction only growth allocates, at each doubling, and changes while the filter is being
///   saved.
///
/// # Hazards
///
/// Those of [all filters](crate#hazards), and two more:
///
/// - **A small filter holds fewer copies of a key**: four while its buckets have two slots, ten at the largest size (at the
///   default rate). Further ones fail. The filter does not grow for them.
/// - Where others decide how many keys there are, set a [memory limit](crate::GrowableBuilder::memory_limit). [A known
///   hasher key](crate::guide::security#a-known-hasher-key) makes the filter grow only while it is a quarter full.
pub struct GrowableCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) core: GrowingTable,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    GrowableCuckooFilter, mixed:

    /// Adds one copy of the key, even if the key is present already.
    ///
    /// The filter is a multiset: a key that was inserted twice must be removed twice. To add a key only once, use
    /// [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: usually two cache lines read and one of them written, under the lock of that bucket. One insert in 32 may also
    /// [split buckets](Self#growth-and-shrinking).
    ///
    /// # Errors
    /// A [`GrowableInsertError`] if there is no room and the filter cannot grow, after it has filled the table beyond its
    /// capacity, as far as possible. Nothing has changed then, and a later attempt may succeed.
    insert() -> Result<(), GrowableInsertError> = |filter, hash| filter.core.insert(hash);

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// If many threads race to add one absent key, exactly one gets `true`, also while the filter grows. As in
    /// [`ConcurrentCuckooFilter::insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent), a key that is mistaken
    /// for another is not added. So [`remove`](Self::remove) only keys for which this returned `true`.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise also that of an
    /// [`insert`](Self::insert), with one stripe locked.
    ///
    /// # Errors
    /// Fails as [`insert`](Self::insert) does, if the key is absent and there is no room. Nothing has changed then.
    insert_if_absent() -> Result<bool, GrowableInsertError> = |filter, hash| filter.core.insert_if_absent(hash);

    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably
    /// present. The share of absent keys that get `true` is the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do, and however the filter grows.
    /// The call is lock-free: it takes no lock and waits for no other thread.
    ///
    /// Cost: two cache lines of the table, also while it grows, one of the stripes and one with the size, which both stay in
    /// the cache.
    #[must_use]
    contains() -> bool = |filter, hash| filter.core.contains(hash);

    /// Removes one copy of the key, and returns `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert, at whatever size. A key that was never inserted can be
    /// mistaken for one that was, as in [`contains`](Self::contains). Removing it makes the other key disappear.
    ///
    /// Cost: the cache lines of a lookup, with one stripe and one bucket locked.
    remove() -> bool = |filter, hash| filter.core.remove(hash);

    /// Returns how many copies of the key are in the filter. That is the exact number of copies that were inserted
    /// and not removed, plus the copies of any other keys that the filter cannot distinguish from this one.
    ///
    /// Cost: the cache lines of a lookup, with one stripe locked. Where [`contains`](Self::contains) is enough, it is
    /// faster and waits for no other thread.
    #[must_use]
    count() -> usize = |filter, hash| filter.core.count(hash);
}

batches_of_keys_alone! {
    GrowableCuckooFilter, GrowableInsertError, mixed;
    /// In a table larger than the cache, these are several times as fast as one call for each key (`cargo bench --bench
    /// lookups`): while the filter works on the first keys, the buckets of the next ones are on their way from memory.
}

properties!(GrowableCuckooFilter);

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(core: GrowingTable, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// Makes room for `additional` more keys now, on this thread, so that no insert has to split buckets for them later.
    ///
    /// If there is room already, the call does nothing. Other threads can use the filter meanwhile. Call this before a
    /// bulk load, or at intervals: `filter.reserve(100_000)` in a thread of its own keeps room for 100,000 keys ahead of
    /// the inserts. `additional` is counted from [`len`](Self::len) at the moment of the call, so what others insert
    /// meanwhile counts.
    ///
    /// Cost: each bucket is split that has to be, in order, with the locks of 32 at a time.
    ///
    /// # Errors
    /// A [`ReserveError`] if there would be more keys than [`max_capacity`](Self::max_capacity), if the filter would go beyond
    /// the [memory limit](crate::GrowableBuilder::memory_limit), or if the allocation fails. The filter may have grown by a
    /// part then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.reserve(10_000)?;
    /// let capacity = filter.capacity();
    /// (0..10_000).try_for_each(|key| filter.insert(&key))?;
    /// assert_eq!(filter.capacity(), capacity);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        self.core.reserve(additional)
    }

    /// Makes the table as small as possible for the keys that are in and for `capacity` keys, but not smaller than it was
    /// at first.
    ///
    /// It merges 32 buckets at a time. Other threads can use the filter meanwhile. It ends at the first buckets whose keys
    /// have no room in fewer, for example because some have more copies than the smaller table has room for.
    /// [`capacity`](Self::capacity) tells.
    ///
    /// On 64-bit Linux, the memory goes back to the system, except for a page at most. On other systems, and while a save is
    /// running, it is kept for the next growth, and [`Stats::memory_usage`] still counts it. (On Linux with 32 bits or with a limit for
    /// the process's addresses, such as `ulimit -v`, and for filters beyond the first thousand, what is above 128 KiB goes
    /// back.)
    ///
    /// Cost: each merge reads and writes 64 buckets, under their locks. Where a bucket would overflow, keys are relocated
    /// first.
    pub fn shrink_to(&self, capacity: usize) {
        self.core.shrink_to(capacity);
    }

    /// [`shrink_to`](Self::shrink_to) without room for further keys.
    pub fn shrink_to_fit(&self) {
        self.core.shrink_to(0);
    }

    /// Returns how many keys the filter can be made for at its largest size.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.core.max_capacity()
    }

    /// Returns how many keys are in the filter. A key that was inserted several times counts as often. The number is exact
    /// while no other thread changes the filter. Cost: it adds up at most 64 counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns how many keys the table is made for at its present size. When there are as many, inserts make it grow.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// Returns what the filter is by its settings, at its present size: its layout, slots and memory, its rate at
    /// capacity, and the largest size. Each change of the size changes it.
    ///
    /// The rate rises with the size, but never beyond what the builder was asked for. The memory is never more than [the
    /// limit](crate::GrowableBuilder::memory_limit), if one was set. From 512 buckets on, the buckets are where the system has
    /// reserved addresses (on 64-bit Linux and macOS), and the pages in use count. Elsewhere they are on the heap, where each
    /// request is for as many as there are already; of one of 128 KiB or more, the pages in use count. The page
    /// [`growth`](crate::guide::growth#memory) has the bits per key.
    ///
    /// Cost: some arithmetic, less than a microsecond. It takes no lock and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        FilterPlan { memory_usage: self.core.memory_usage(), ..self.core.plan() }
    }

    /// Returns all figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.core, self.core.memory_usage())
    }

    /// Removes all keys that are in the filter when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. The table keeps its size; to free
    /// its memory, call [`shrink_to_fit`](Self::shrink_to_fit) afterwards.
    pub fn clear(&self) {
        self.core.clear();
    }
}
