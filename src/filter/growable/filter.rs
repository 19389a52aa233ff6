//! The filter that grows: its type, its size, and its figures.

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::ReserveError;
use crate::filter::by_hash::ByHash;
use crate::filter::shared::parts::Parts;
use crate::filter::stats::Stats;
use crate::growth::growing_table::GrowingTable;
use crate::hasher::default::DefaultHashBuilder;
use crate::table::filter_plan::FilterPlan;

/// A concurrent cuckoo filter that grows and shrinks: an approximate multiset of keys of type `T`, whose number need
/// not be known beforehand.
///
/// Its largest size is fixed when it is built: at the default rate, it has room for at least 61 million keys if no
/// other size is [set](crate::GrowableBuilder::max_capacity). Inserts into a filter that is full at that size fail, from a fixed
/// number of keys on: its [`max_capacity`](Self::max_capacity).
///
/// Its table grows and shrinks by 32 buckets at a time, while other threads use it. So its memory follows the number of
/// keys, and a lookup costs the same at any size and at any moment. [The rate asked
/// for](crate::GrowableBuilder::false_positive_rate) holds at every size, or up to the
/// [expected keys](crate::GrowableBuilder::expected_keys).
///
/// Use it where the number of keys is not known. Set `expected_keys` if you know the usual number: a filter for a
/// million keys then takes 16.3 bits per key instead of 30.0, at the default rate. A [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter) of the right capacity is smaller. The page
/// [`growth`](crate::guide::growth) explains sizes, limits and memory.
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
/// - **Who pays:** an insert splits at most 128 buckets. It does so if it finds the table beyond its capacity, or if
///   room is hard to find for its key. If even that takes too long, call [`reserve`](Self::reserve) on a thread of its
///   own.
/// - **Who waits:** no lookup. A writer waits only for the lock of a bucket or a stripe, which others hold for a few
///   instructions, or for as long as it takes to split 32 buckets. If a search finds no room, it also waits for a thread
///   that changes the size.
/// - **What others may observe:** [`capacity`](Self::capacity) and the [`plan`](Self::plan) change. All that a filter of
///   fixed size promises holds meanwhile: see the page [`consistency`](crate::guide::consistency).
/// - **Limits:** the largest size ([`max_capacity`](Self::max_capacity)), which the
///   [builder](crate::GrowableBuilder::max_capacity) sets, and the
///   [`memory_limit`](crate::GrowableBuilder::memory_limit).
/// - **Shrinking** happens only if you ask for it. A filter whose keys come and go, while their number stays the same,
///   does not grow.
/// - **Allocation:** after construction only growth allocates, at each doubling, and changes while the filter is being
///   saved.
///
/// # Hazards
///
/// Those of [all filters](crate#hazards), and two more:
///
/// - **There may be only a few copies of a key**: half as many as its two buckets have slots, so that they take no room
///   from other keys. At the default rate, these are [two in a small filter, and five at the largest
///   size](crate::guide::growth#copies). Inserts of further copies fail, and the filter does not grow for them.
/// - Where others decide how many keys there are, set a [memory limit](crate::GrowableBuilder::memory_limit). [A known
///   hasher key](crate::guide::security#a-known-hasher-key) makes the filter grow only while it is a quarter full.
pub struct GrowableCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<GrowingTable, S>,
    /// The filter takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<GrowingTable, S>) -> Self {
        Self { parts, key: PhantomData }
    }
}

/// Growth and shrinking, and removal of all keys.
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// Makes room for `additional` more keys now, on this thread, so that no insert has to split buckets for them later.
    ///
    /// If there is room already, the call does nothing. Other threads can use the filter meanwhile. Call this before a
    /// bulk load, or at intervals: `filter.reserve(100_000)` in a thread of its own keeps room for 100,000 keys ahead of
    /// the inserts. `additional` is counted from [`len`](Self::len) when the call begins, so what others insert
    /// meanwhile counts. (Rarely, one of the last inserts before the capacity is used up grows the filter all the same,
    /// because room is hard to find for its key: in none of 3,000 filters of 50,000 keys, and in 135 with the highest
    /// [`load_while_growing`](crate::GrowableBuilder::load_while_growing).)
    ///
    /// Cost: it splits each bucket that has to be split, in order, with the locks of 32 at a time.
    ///
    /// # Errors
    /// A [`ReserveError`] if there would be more keys than [`max_capacity`](Self::max_capacity), if the filter would
    /// go beyond the [memory limit](crate::GrowableBuilder::memory_limit), or if an allocation fails. After a failed
    /// allocation, and only then, it may have grown to a part of what was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.reserve(10_000)?;
    /// let capacity = filter.capacity();
    /// (0..9_000).try_for_each(|key| filter.insert(&key))?;
    /// assert_eq!(filter.capacity(), capacity);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        self.parts.core.reserve(additional)
    }

    /// Makes the table as small as possible for the present keys and for `capacity` keys, but not smaller than it was at
    /// first.
    ///
    /// It merges 32 buckets at a time. Other threads can use the filter meanwhile. It stops at the first group of
    /// buckets that cannot be merged, because its keys have no room in fewer buckets, or because a key has more copies
    /// than it [may have](crate::guide::growth#copies) in the smaller table. [`capacity`](Self::capacity) returns what
    /// was reached.
    ///
    /// On 64-bit Linux, the memory goes back to the system, except for a page at most, and for up to 1,300 bytes that a
    /// filter uses from its first change of size on. On other systems, and while a
    /// save is running, it is kept for the next growth, and [`Stats::memory_usage`] still counts it. (On Linux with 32
    /// bits or with a limit for the process's addresses, such as `ulimit -v`, and for filters beyond the first
    /// thousand, what is above 128 KiB goes back.)
    ///
    /// Cost: each merge reads and writes 64 buckets, under their locks. Where a bucket would overflow, keys are relocated
    /// first.
    pub fn shrink_to(&self, capacity: usize) {
        self.parts.core.shrink_to(capacity);
    }

    /// Makes the table as small as possible for the present keys, as [`shrink_to`](Self::shrink_to) does.
    pub fn shrink_to_fit(&self) {
        self.parts.core.shrink_to(0);
    }

    /// Removes all keys that are present when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. The table keeps its size; to
    /// free its memory, call [`shrink_to_fit`](Self::shrink_to_fit) afterwards.
    ///
    /// Cost: as much for a byte as in a filter of fixed size. Here inserts that find room wait too, but only while 65,536
    /// buckets are emptied, about 0.2 ms. Lookups wait in neither.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Operations by hash.
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// Returns the filter with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }
}

/// Facts about the filter as a whole.
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// Returns how many keys the filter takes at most: its capacity where its growth ends, at its largest size or, before that, at
    /// its [memory limit](crate::GrowableBuilder::memory_limit). So many distinct keys are always accepted, in any order, from any
    /// threads, and never more. Each copy of a key counts.
    ///
    /// It is fixed when the filter is built or loaded. (It becomes less if a filter with a memory limit has to grow on the heap,
    /// because the system has no [range of addresses](crate::guide::growth#memory) left.)
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.parts.core.most()
    }

    /// Returns how many keys the filter holds. A key that was inserted several times counts each time. The number is
    /// exact while no other thread changes the filter. Cost: it adds up at most 64 counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns the capacity of the table at its present size. When there are as many keys, inserts make it grow.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the filter's configuration at its present size: its layout, slots and memory, its rate at capacity, and
    /// the largest size. Each change of the size changes it.
    ///
    /// The rate rises with the size, but never beyond what the builder was asked for, unless there are more keys than
    /// [expected](crate::GrowableBuilder::expected_keys). The memory is never more than [the
    /// limit](crate::GrowableBuilder::memory_limit), if one was set. From 512 buckets on, on 64-bit Linux and macOS,
    /// the buckets are in a reserved range of addresses, and only the pages in use count. Elsewhere they are on the
    /// heap, in requests that double; of a request of 128 KiB or more, only the pages in use count. The page
    /// [`growth`](crate::guide::growth#memory) has the bits per key.
    ///
    /// Cost: some arithmetic, less than a microsecond. It takes no lock and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        FilterPlan { memory_usage: self.parts.core.memory_usage(), ..self.parts.core.plan() }
    }

    /// Returns all figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // The table counts the filter's own value, because its memory limit does.
        Stats::of(&self.parts.core, 0)
    }

    /// Returns whether the filter holds no keys. This is as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that `count` positive answers turned out to be wrong, for example because the database behind the filter
    /// did not have the keys. From this and [`record_negatives`](Self::record_negatives), the filter computes
    /// [`Stats::observed_false_positive_rate`].
    ///
    /// Cost: one addition to the thread's own counter. No other thread waits for it.
    pub fn record_false_positives(&self, count: u64) {
        self.parts.core.counters().record_false_positives(count);
    }

    /// Records that `count` lookups were answered `false`. The filter does not count them by itself, because a lookup
    /// that need not retry writes nothing.
    ///
    /// Cost: one addition to the thread's own counter. If that is too much for each lookup, add up the answers and
    /// record the sum at intervals. [`Stats`] has an example.
    pub fn record_negatives(&self, count: u64) {
        self.parts.core.counters().record_negatives(count);
    }

    /// Returns the hasher, for example to hash keys with it before they come to the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.parts.hasher
    }
}

/// Shows statistics, but not the table and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for GrowableCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowableCuckooFilter")
            .field("len", &self.len())
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for GrowableCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for GrowableCuckooFilter<T, S> {}
