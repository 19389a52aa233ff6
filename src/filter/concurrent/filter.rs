//! The filter of one table: it hashes keys and asks the table.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError};
use crate::error::kind::FilterKind;
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed, by_hash};
use crate::filter::shared::batches::{add_absent, batches, batches_of_keys_alone, blocks};
use crate::filter::shared::figures::figures;
use crate::filter::shared::operations::{
    batch_on_keys, batches_on_keys, hashed, operation_on_a_key, operations_on_keys, properties,
};
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::face::any_table::AnyTable;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::traits::FilterTable;

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
/// let revoked = Arc::new(ConcurrentCuckooFilter::<str>::with_capacity(100_000));
/// let writer = Arc::clone(&revoked);
/// std::thread::spawn(move || writer.insert("token-17")).join().unwrap()?;
/// assert!(revoked.contains("token-17"));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
///
/// It needs no `Mutex` around it. Before production, read the [hazards](crate#hazards).
pub struct ConcurrentCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) core: Box<dyn FilterTable>,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    ConcurrentCuckooFilter, core::convert::identity:

    /// Adds one copy of the key, even if the key is present already.
    ///
    /// The filter is a multiset, as in the paper: a key that was inserted twice has the [`count`](Self::count) 2 and must be
    /// removed twice. To add a key only once, use [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: usually two cache lines read and one of them written by a compare-exchange, without a lock, plus the
    /// thread's own counter. If both buckets of the key are full, the insert also searches for the nearest free slot.
    /// In the default layout, that is one insert in 150 at a load of 0.5 to 0.75, one in three around 0.9, and three in
    /// four at capacity. The search examines 3 to 30 buckets on average and 2,048 at most. One or two relocations
    /// follow, rarely more. Each locks one stripe for a few instructions.
    ///
    /// # Errors
    /// [`InsertError::Full`] if no free slot is within reach, and [`InsertError::TooManyCopies`] if copies of this key,
    /// or of look-alikes, fill its two buckets. Nothing has changed then. Contention is never the reason.
    /// Such a failure takes [36 to 94 µs](crate::guide::consistency#what-each-operation-costs) in a full table: the search
    /// goes to its limit twice, and the insert goes through all stripes after each search. If other threads invalidate a
    /// search, it locks all stripes and searches again.
    insert() -> Result<(), InsertError> = |filter, hash| filter.core.insert(hash);

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// It does so in one step: if many threads race to add one absent key, at most one gets `true`. A share of the
    /// absent keys, the [false-positive rate](crate::Stats::false_positive_rate), is mistaken for another key, and is not
    /// added: then all get `false`. If that would lose something, build the filter with a lower rate.
    ///
    /// A key for which this returns `false` may have no copy of its own, but share that of a look-alike. So
    /// [`remove`](Self::remove) only keys for which it returned `true`. See
    /// [`security`](crate::guide::security#hazards-without-an-adversary) for what is lost even then.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise that of an
    /// [`insert`](Self::insert) with one stripe locked.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), if the key is absent. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
    /// let seen = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.insert_if_absent("request-1")?);
    /// assert!(!seen.insert_if_absent("request-1")?, "a replay");
    /// # Ok::<(), InsertError>(())
    /// ```
    insert_if_absent() -> Result<bool, InsertError> = |filter, hash| filter.core.insert_if_absent(hash);

    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably
    /// present. The share of absent keys that get `true` is the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do. The call is lock-free: it takes
    /// no lock and waits for no other thread. If another thread has just moved or removed something, the call retries. Only
    /// then does it write: it adds one to a counter for [`stats`](Self::stats).
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    ///
    #[must_use]
    contains() -> bool = |filter, hash| filter.core.contains(hash);

    /// Removes one copy of the key, and returns `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken
    /// for one that was, as in [`contains`](Self::contains). Removing it makes the other key disappear (section 3.3
    /// of the paper). Most such removals find nothing, and [`Stats::removals_not_found`] counts them.
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions, plus the
    /// thread's own counter.
    remove() -> bool = |filter, hash| filter.core.remove(hash);

    /// Returns how many copies of the key are in the filter. That is the exact number of copies that were inserted
    /// and not removed, plus the copies of any other keys that the filter cannot distinguish from this one.
    ///
    /// Cost: two cache lines, with one stripe locked. Where [`contains`](Self::contains) is enough, it is faster and
    /// waits for no other thread.
    #[must_use]
    count() -> usize = |filter, hash| filter.core.count(hash);
}

batches_of_keys_alone! {
    ConcurrentCuckooFilter, InsertError, core::convert::identity;
    /// In a table larger than the cache, batches are [two to six
    /// times](crate::guide::choosing_parameters#batches-and-huge-pages) as fast as one call for each key, because the buckets of
    /// the next keys are prefetched. In a table that fits in the cache, lookups gain less: they use AVX-512 or AVX2 if the
    /// processor has it. Inserts gain because many are counted at once.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let seen = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// let (mut added, mut found) = (Vec::new(), Vec::new());
    /// assert_eq!(seen.insert_if_absent_batch(["a", "b", "a"], &mut added)?, 2);
    /// assert_eq!(added, [true, true, false]);
    /// seen.contains_batch(["a", "no such key", "b"], &mut found);
    /// assert_eq!(found, [true, false, true]);
    ///
    /// let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    /// let keys: Vec<u64> = (0..10_000).collect(); // too many
    /// let error = numbers.insert_batch(&keys).unwrap_err();
    /// let (inserted, others) = keys.split_at(error.index); // to go on, insert the others where there is room
    /// assert!(inserted.iter().all(|key| numbers.contains(key)) && !others.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
}

properties!(ConcurrentCuckooFilter);

impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(core: Box<dyn FilterTable>, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
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
        self.core.clear();
    }
}

figures! {
    ConcurrentCuckooFilter as Concurrent, a "filter" of "keys";
    /// A key that was inserted several times counts as often.
    len;
    ///
    /// The capacity is not a limit. The filter takes more keys while there is room, up to its
    /// [`slots`](FilterPlan::slots), but more slowly and without a promise.
    capacity;
    ///
    /// With the default rate, [`memory_usage`](FilterPlan::memory_usage) is 13.2 bits per key for ten million keys or more,
    /// 13.4 for a million, 15.4 for 10,000, 17.8 for 1,000 and 50 for 100. A small filter leaves more slots free, and every filter
    /// uses about 370 bytes more.
    plan;
    /// relocations, failed inserts, retries, contention.
    ///
    /// Each thread counts events on a cache line of its own, beside its part of the length. A lookup that does
    /// not retry counts nothing. Cost of the call: it adds up at most 64 cache lines. It takes no lock and does not
    /// allocate.
    stats;
}
