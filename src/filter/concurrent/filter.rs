//! The filter of a fixed size: its type, and its figures.

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::by_hash::ByHash;
use crate::filter::shared::parts::Parts;
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::table::by_shape::FilterTable;
use crate::table::core::Core as _;
use crate::table::filter_plan::FilterPlan;

/// A cuckoo filter that many threads share: an approximate, concurrent multiset of keys of type `T`.
///
/// A lookup answers "definitely absent" or "probably present". By default it uses 13 bits per key (8 to 40 in large
/// tables, depending on the rate), whatever the key's size. The [crate's documentation](crate) says what such a filter is
/// good for. The page [`consistency`](crate::guide::consistency) says what concurrent callers may observe.
///
/// The filter takes keys by reference, hashes them and does not keep them. As in a
/// [`HashSet`](std::collections::HashSet), a filter of `String` can be asked for a `&str`, and a filter of `u32`
/// cannot be asked for a `u64` by accident. The filter is [`Send`] and [`Sync`] if the hasher is, whatever `T` is.
///
/// ```
/// use std::sync::Arc;
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let blocked = Arc::new(ConcurrentCuckooFilter::<str>::with_capacity(100_000));
/// let writer = Arc::clone(&blocked);
/// std::thread::spawn(move || writer.insert("mailinator.com")).join().unwrap()?;
/// assert!(blocked.contains("mailinator.com"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
///
/// It needs no `Mutex` around it. Before production, read the [hazards](crate#hazards).
pub struct ConcurrentCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<FilterTable, S>,
    /// The filter takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<FilterTable, S>) -> Self {
        Self { parts, key: PhantomData }
    }

    /// Removes all keys that are present when the call begins.
    ///
    /// For other threads this is not one step. During the call they may find some keys gone and others still present,
    /// and a key that is inserted during the call may be removed or not. [`len`](Self::len) is exact again when this
    /// call and all others have ended.
    ///
    /// Cost: one pass over the table (about 90 ms for 100 MB), with all stripes locked. Lookups, and inserts that find
    /// room, continue. Removals, [`insert_if_absent`](Self::insert_if_absent) of absent keys, [`count`](Self::count)
    /// and inserts that have to relocate wait.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Operations by hash.
impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// Returns the filter with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }
}

/// Facts about the filter as a whole.
impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// Returns how many keys the filter holds. A key that was inserted several times counts several times.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters. There are several so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns the capacity in keys: at least what was asked for.
    ///
    /// This many distinct keys fit: the probability that an insert of one of them fails is below one in a billion for
    /// each filter.
    ///
    /// The capacity is not a limit. The filter takes more keys while there is room, up to its
    /// [`slots`](FilterPlan::slots), but more slowly and without a promise.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the filter's configuration: its layout, slots and memory, and its rate at capacity. It is what the
    /// builder's `plan` returned, and never changes. Its `Display` is a line for a log.
    ///
    /// With the default rate, [`memory_usage`](FilterPlan::memory_usage) is 13.2 bits per key for ten million keys or
    /// more, 13.4 for a million and 15.5 for 10,000: the page [`memory`](crate::guide::memory) has other sizes and rates.
    ///
    /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        FilterPlan::of(FilterKind::Concurrent, self.parts.core.dimensions(), size_of::<Self>())
    }

    /// Returns all figures at once: sizes, the expected false-positive rate, and counts of what has happened since the
    /// filter was made: relocations, failed inserts, retries and contention.
    ///
    /// Each thread counts events on a cache line of its own, beside its part of the length. A lookup that does not
    /// retry counts nothing. Cost of the call: it adds up at most 64 cache lines. It takes no lock and does not
    /// allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.parts.core, size_of::<Self>())
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
impl<T: ?Sized, S> fmt::Debug for ConcurrentCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooFilter")
            .field("len", &self.len())
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for ConcurrentCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for ConcurrentCuckooFilter<T, S> {}
