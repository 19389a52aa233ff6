//! The filter of one table: from keys to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::batches::{batches, blocks};
use crate::filter::membership::MembershipFilter;
use crate::filter::operations::{
    layout_of_table, membership, operation_on_a_key, operations_on_hashes, operations_on_keys, properties,
};
use crate::filter::sealed::Sealed;
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::any::{AnyTable, FilterTable};
use crate::word::layout::Encoding;

/// A cuckoo filter that many threads share: an approximate, concurrent multiset of keys of type `T`.
///
/// It answers "is this key in?" with *no* or *probably*, from 8 to 40 bits a key whatever the key's size. See the
/// [crate's documentation](crate) for what that is good for, and its section *Consistency* for what concurrent callers
/// may observe.
///
/// Keys are taken by reference, and hashed, and not kept. As in a [`HashSet`](std::collections::HashSet), a filter of
/// `String` answers for `&str`, and a filter of `u32` cannot be asked for a `u64` by accident. The filter is [`Send`]
/// and [`Sync`] if the hasher is, whatever `T` is.
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
pub struct ConcurrentCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(super) core: Box<dyn FilterTable>,
    pub(super) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(super) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    ConcurrentCuckooFilter:

    /// Adds one copy of the key, whether or not it is in already.
    ///
    /// The filter is a multiset, as in the paper: a key that is inserted twice must be removed twice. To add a key only
    /// once use [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: as a rule two cache lines read and one of them written by a compare-exchange, without a lock, plus the
    /// thread's own counter. Where both buckets of the key are full (in the default layout one insert of 150 between
    /// half and three quarters of the slots, one of three around 90 %, three of four at capacity), also a search for
    /// the nearest free slot, among 3 to 30 buckets on average and 2,048 at most, and one or two relocations, seldom
    /// more, each with one stripe locked for a few instructions.
    ///
    /// # Errors
    /// If there is no room ([`InsertError`] tells which); nothing has changed then. That other threads are at work is
    /// never the reason. A refusal is slow, about half a millisecond in a large table: the search goes to its limit,
    /// twice, and between and after them through all stripes. In a table of at most 2,048 buckets it is put off for as
    /// long as other threads remove and relocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
    /// let filter = ConcurrentCuckooFilter::<u32>::with_capacity(3);
    /// filter.insert(&7)?;
    /// filter.insert(&7)?;
    /// assert_eq!(filter.count(&7), 2);
    /// # Ok::<(), InsertError>(())
    /// ```
    insert;

    /// Adds the key unless it is in: `true` if it was added.
    ///
    /// In one step: of many threads that race to add one key that is absent, exactly one gets `true`. For one key in a
    /// thousand or so (the [false-positive rate](Self::false_positive_rate)) another is mistaken for it, and it is not
    /// added.
    ///
    /// A key that was added this way may share its one fingerprint with others that were found in already, so removing
    /// it can remove them with it: don't mix this with [`remove`](Self::remove), unless losing a few keys does no harm.
    ///
    /// Cost: that of [`contains`](Self::contains) for a key that is in; otherwise that of an [`insert`](Self::insert)
    /// with one stripe locked.
    ///
    /// # Errors
    /// If the key is absent and there is no room; nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
    /// let seen = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.insert_if_absent("request-1")?);
    /// assert!(!seen.insert_if_absent("request-1")?, "a replay");
    /// # Ok::<(), InsertError>(())
    /// ```
    insert_if_absent;

    /// Whether the key is in: `false` is certain, `true` is wrong for a share of absent keys, the [false-positive
    /// rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do. Lock-free: it takes no lock, writes no
    /// shared memory and waits for nobody; it looks again, and counts that for [`stats`](Self::stats), only if another
    /// thread has just moved or removed something.
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    contains;

    /// Removes one copy of the key: `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken for
    /// one that was, as in [`contains`](Self::contains), and its removal makes that one disappear. (Section 3.3 of the
    /// paper.)
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions, plus the
    /// thread's own counter.
    remove;

    /// How many copies of the key are in: the exact number of those that were inserted and not removed, plus that of
    /// any other keys that cannot be told apart from it.
    ///
    /// Cost: two cache lines, with one stripe locked. Where [`contains`](Self::contains) is enough, that is quicker and
    /// waits for nobody.
    count;
}

batches! {
    ConcurrentCuckooFilter with removal:
    /// In a table larger than the cache, lookups and removals are about four times as fast as one call for each key, and inserts
    /// six times: while the first keys are looked at, the buckets of the next are on their way from memory. In one that fits in the cache, lookups gain up to a
    /// half by the processor's vector unit (AVX-512, or AVX2, if it has one), and inserts by being counted together.
}

operations_on_hashes!(ConcurrentCuckooFilter with removal);

properties!(ConcurrentCuckooFilter made by "with_capacity(1000)");

layout_of_table!(ConcurrentCuckooFilter with fingerprints of "8 to 32" in "2 to 8");

membership!(ConcurrentCuckooFilter);

impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    pub(super) fn from_parts(core: Box<dyn FilterTable>, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// The table takes hashes as they are.
    #[inline(always)]
    fn prepared(hash: u64) -> u64 {
        hash
    }

    /// How many keys are in the filter, each counted as often as it was inserted.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters, so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many keys the filter is made for: at least as many as were asked for.
    ///
    /// So many distinct keys fit: the probability that an insert is refused before is below one in a billion for each
    /// filter. It is no limit: more are taken for as long as there is room, up to [`slots`](Self::slots), but ever more
    /// slowly and with no promise.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots the filter has, each for one fingerprint.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// The memory that the filter takes up, in bytes: all of it, but for the decode table of up to 256 KiB that all
    /// semi-sorted filters share, and for the name of a schema that the caller has given, up to 255 bytes.
    ///
    /// With the default rate that is 13.4 bits a key for a million keys or more, 15.4 for 10,000, 17.5 for 1,000 and 47 for 100:
    /// a small filter leaves more slots free, and some 250 bytes are there in any case.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`, from 0 to 1.
    ///
    /// About `2·b·load/2ᶠ` with `b` slots a bucket and fingerprints of `f` bits (section 5.1 of the paper).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken; at most what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(1.0)
    }

    /// All figures at once, with counts of what has happened since the filter was made: relocations, refusals, retries,
    /// contention.
    ///
    /// What is counted is counted by each thread on a cache line of its own, beside the length, and nothing on the way
    /// of a lookup that is not disturbed. Cost of the call: it adds up at most 64 cache lines. It takes no lock and does
    /// not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    /// let refused = (0..).find(|key| filter.insert(key).is_err()).expect("it is full at some time");
    /// let stats = filter.stats();
    /// assert_eq!(stats.len as u64, refused);
    /// assert_eq!(stats.inserts_refused, 1);
    /// assert!(stats.relocations > 0 && stats.longest_path > 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table: &dyn AnyTable = &*self.core;
        Stats::of([table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate())
    }

    /// Removes all keys that are in the filter when the call begins.
    ///
    /// Not one step for others: meanwhile they may find some keys gone and others still there, and whether a key that
    /// is inserted during the call is removed too is open. [`len`](Self::len) is exact again when the call and all
    /// others have ended.
    ///
    /// Cost: one pass over the table (some 50 ms for 100 MB), with all stripes locked. Lookups and inserts that find
    /// room go on meanwhile; removals, [`insert_if_absent`](Self::insert_if_absent) of absent keys,
    /// [`count`](Self::count) and inserts that have to relocate wait.
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Statistics; never the table, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ConcurrentCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("load_factor", &self.load_factor())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("encoding", &self.encoding())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
