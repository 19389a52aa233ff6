//! The public face: from keys to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::concurrent_builder::Builder;
use crate::filter::stats::Stats;
use crate::plan::batch::BLOCK;
use crate::table::any::AnyTable;
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
pub struct ConcurrentCuckooFilter<T: ?Sized, S = ahash::RandomState> {
    table: Box<dyn AnyTable>,
    hasher: S,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

/// Construction with the default hasher, which is keyed at random for each filter.
impl<T: ?Sized> ConcurrentCuckooFilter<T> {
    /// An empty filter with room for `capacity` keys, at a false-positive rate of at most 0.1 %.
    ///
    /// [`builder`](Self::builder) sets other rates, and reports what it can't do as an error.
    ///
    /// # Panics
    /// If the table is too large for the address space or its memory is refused.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, ahash::RandomState::new())
    }

    /// A builder, to choose the rate, the hasher and the encoding.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }
}

impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// An empty filter with room for `capacity` keys, at a false-positive rate of at most 0.1 %, that hashes keys with
    /// `hasher`.
    ///
    /// Any hasher will do, even one as weak as the identity: the filter mixes the hashes once more. But without a
    /// secret key in it, whoever chooses the keys can choose them so that they collide.
    ///
    /// # Panics
    /// If the table is too large for the address space or its memory is refused.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        let built = Builder::<T>::new().hasher(hasher).capacity(capacity).build();
        built.unwrap_or_else(|error| panic!("with_capacity({capacity}): {error}"))
    }

    pub(crate) fn from_parts(table: Box<dyn AnyTable>, hasher: S) -> Self {
        Self { table, hasher, key: PhantomData }
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn table(&self) -> &dyn AnyTable {
        &*self.table
    }

    /// How many keys are in the filter, each counted as often as it was inserted.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters, so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether the filter holds no keys; as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys the filter is made for: at least as many as were asked for.
    ///
    /// So many distinct keys fit: the probability that an insert is refused before is below one in a billion for each
    /// filter. It is no limit: more are taken for as long as there is room, up to [`slots`](Self::slots), but ever more
    /// slowly and with no promise.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// How many slots the filter has, each for one fingerprint.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.table.slots()
    }

    /// The share of the slots that is taken, from 0 to 1; as exact as [`len`](Self::len), so it may be off by a few
    /// slots while others are at work.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// The memory that the filter takes up, in bytes: all of it, but for the decode table of up to 256 KiB that all
    /// semi-sorted filters share.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.table.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`, from 0 to 1.
    ///
    /// About `2·b·load/2ᶠ` with `b` slots a bucket and fingerprints of `f` bits (section 5.1 of the paper).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.table.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken; at most what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.table.false_positive_rate(1.0)
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
        Stats::of([&*self.table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate())
    }

    /// Tells the filter that so many positive answers turned out to be wrong: that the database behind it, say, did not
    /// have the keys. From these and [`record_negatives`](Self::record_negatives) follows
    /// [`Stats::observed_false_positive_rate`].
    ///
    /// Cost: one addition to the thread's own counter, which no other thread waits for.
    pub fn record_false_positives(&self, count: u64) {
        self.table.record_false_positives(count);
    }

    /// Tells the filter that so many lookups were answered `false`, which it does not count by itself: a lookup
    /// that nobody disturbs writes nothing.
    ///
    /// Cost: one addition to the thread's own counter. Where that is too much for each lookup, add up and hand the sum
    /// over now and then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// # let database = |_: &str| None::<u32>;
    /// # let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// let mut negatives = 0;
    /// for name in ["a", "b", "c"] {
    ///     if !filter.contains(name) {
    ///         negatives += 1;
    ///     } else if database(name).is_none() {
    ///         filter.record_false_positives(1);
    ///     }
    /// }
    /// filter.record_negatives(negatives);
    /// assert_eq!(filter.stats().observed_false_positive_rate(), Some(0.0));
    /// ```
    pub fn record_negatives(&self, count: u64) {
        self.table.record_negatives(count);
    }

    /// How the fingerprints of a bucket are stored.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.table.shape().encoding
    }

    /// The bits of a fingerprint, from 8 to 32.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.table.shape().fingerprint_bits
    }

    /// The slots of a bucket, from 2 to 8. A bucket takes up 64 bits.
    #[must_use]
    pub fn slots_per_bucket(&self) -> usize {
        self.table.shape().slots as usize
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
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
        self.table.clear();
    }
}

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
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
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.insert(self.hash_one(key))
    }

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
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.insert_if_absent(self.hash_one(key))
    }

    /// Whether the key is in: `false` is certain, `true` is wrong for a share of absent keys, the [false-positive
    /// rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do. Lock-free: it takes no lock, writes no
    /// shared memory and waits for nobody; it looks again, and counts that for [`stats`](Self::stats), only if another
    /// thread has just moved or removed something.
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    #[inline]
    #[must_use]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.contains(self.hash_one(key))
    }

    /// Removes one copy of the key: `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken for
    /// one that was, as in [`contains`](Self::contains), and its removal makes that one disappear. (Section 3.3 of the
    /// paper.)
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions, plus the
    /// thread's own counter.
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.remove(self.hash_one(key))
    }

    /// How many copies of the key are in: the exact number of those that were inserted and not removed, plus that of
    /// any other keys that cannot be told apart from it.
    ///
    /// Cost: two cache lines, with one stripe locked. Where [`contains`](Self::contains) is enough, that is quicker and
    /// waits for nobody.
    #[inline]
    #[must_use]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.count(self.hash_one(key))
    }
}

/// The operations on many keys at a time.
///
/// In a table larger than the cache these are about twice as fast as one call for each key, inserts three times: while the
/// first keys are looked at, the buckets of the next hundred are on their way from memory. In one that fits in the cache
/// they gain little. From some hundred keys on they are at their best; any number will do.
///
/// A batch is no transaction. Each of its keys is an operation of its own, with all that the operation on a single key
/// promises, which takes effect at some moment of the call. None of them allocates (but what the answers are appended to
/// may), and no lock is held while the iterator is asked for a key or an answer is handed on. If the iterator or a key's
/// `Hash` panics, the batch ends there: the keys that it was done with, all but the last 128 or fewer, have had their
/// effect.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same
    /// order.
    ///
    /// The lookups themselves are made in any order.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertBatchError};
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// filter.insert_batch(["a", "b"])?;
    /// let mut found = Vec::new();
    /// filter.contains_batch(["a", "no such key", "b"], &mut found);
    /// assert_eq!(found, [true, false, true]);
    ///
    /// let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    /// let keys: Vec<u64> = (0..1000).collect();
    /// numbers.insert_batch(&keys)?;
    /// found.clear(); // what it has allocated is used again
    /// numbers.contains_batch(&keys, &mut found);
    /// assert!(found.iter().all(|&found| found));
    /// # Ok::<(), InsertBatchError>(())
    /// ```
    pub fn contains_batch<'a, Q>(&self, keys: impl IntoIterator<Item = &'a Q>, found: &mut impl Extend<bool>)
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized + 'a,
    {
        self.contains_hash_batch(keys.into_iter().map(|key| self.hash_one(key)), found);
    }

    /// [`insert`](Self::insert) for many keys, in their order; returns how many there were.
    ///
    /// # Errors
    /// If one of them is refused: the error tells how many went in before it, and no other did. Keys that came after it
    /// may have been taken from the iterator, but no more.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let error = filter.insert_batch(&keys).unwrap_err(); // they are too many
    /// let (inserted, others) = keys.split_at(error.inserted);
    /// assert!(inserted.len() >= 1000);
    /// assert!(inserted.iter().all(|key| filter.contains(key)));
    /// assert_eq!(filter.len(), inserted.len());
    /// # let _ = others;
    /// ```
    pub fn insert_batch<'a, Q>(&self, keys: impl IntoIterator<Item = &'a Q>) -> Result<usize, InsertBatchError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized + 'a,
    {
        self.insert_hash_batch(keys.into_iter().map(|key| self.hash_one(key)))
    }

    /// [`remove`](Self::remove) for many keys, in their order: appends to `removed`, for each key, whether there was
    /// one.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertBatchError};
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// filter.insert_batch(["a", "b"])?;
    /// let mut removed = Vec::new();
    /// filter.remove_batch(["a", "b", "b"], &mut removed);
    /// assert_eq!(removed, [true, true, false]);
    /// # Ok::<(), InsertBatchError>(())
    /// ```
    pub fn remove_batch<'a, Q>(&self, keys: impl IntoIterator<Item = &'a Q>, removed: &mut impl Extend<bool>)
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized + 'a,
    {
        self.remove_hash_batch(keys.into_iter().map(|key| self.hash_one(key)), removed);
    }

    /// The hash of a key, for the operations on hashes. Two filters have the same one if they have the same hasher.
    #[inline(always)]
    #[must_use]
    pub fn hash_one<Q>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.hasher.hash_one(key)
    }
}

/// The operations on hashes, for callers that have them already: that hash a key once for several filters (with the same
/// hasher), or for a filter and a map.
///
/// Each is the operation of the same name on the key that has this hash, by [`hash_one`](Self::hash_one) or by a hasher
/// that is equal to [`hasher`](Self::hasher). Hashes of 64 good bits are not needed, but keys of equal hashes are one key
/// to the filter.
///
/// ```
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// let hasher = ahash::RandomState::new();
/// let today = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, hasher.clone());
/// let yesterday = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, hasher);
/// yesterday.insert("request-1")?;
/// let hash = today.hash_one("request-1");
/// assert!(today.contains_hash(hash) || yesterday.contains_hash(hash));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
///
/// They also take the batches of keys that an iterator makes on the way, which can't be borrowed from it:
///
/// ```
/// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertBatchError};
/// let filter = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// filter.insert_hash_batch((0..1000).map(|key| filter.hash_one(&key)))?;
/// # Ok::<(), InsertBatchError>(())
/// ```
impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// [`insert`](Self::insert) by hash.
    ///
    /// # Errors
    /// If there is no room; nothing has changed then.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.table.insert(hash)
    }

    /// [`insert_if_absent`](Self::insert_if_absent) by hash.
    ///
    /// # Errors
    /// If the key is absent and there is no room; nothing has changed then.
    #[inline]
    pub fn insert_hash_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.table.insert_if_absent(hash)
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(hash)
    }

    /// [`remove`](Self::remove) by hash.
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.table.remove(hash)
    }

    /// [`count`](Self::count) by hash.
    #[inline]
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.table.count(hash)
    }

    /// [`contains_batch`](Self::contains_batch) by hashes.
    pub fn contains_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, found: &mut impl Extend<bool>) {
        self.table.contains_batch(&mut blocks(hashes.into_iter()), &mut |answers| {
            found.extend(answers.iter().copied());
        });
    }

    /// [`insert_batch`](Self::insert_batch) by hashes.
    ///
    /// # Errors
    /// If one of them is refused: the error tells how many went in before it, and no other did.
    pub fn insert_hash_batch(&self, hashes: impl IntoIterator<Item = u64>) -> Result<usize, InsertBatchError> {
        self.table.insert_batch(&mut blocks(hashes.into_iter()))
    }

    /// [`remove_batch`](Self::remove_batch) by hashes.
    pub fn remove_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, removed: &mut impl Extend<bool>) {
        self.table.remove_batch(&mut blocks(hashes.into_iter()), &mut |answers| {
            removed.extend(answers.iter().copied());
        });
    }
}

/// Hands on the hashes by the block.
fn blocks(mut hashes: impl Iterator<Item = u64>) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    move |block| {
        let mut len = 0;
        for (slot, hash) in block.iter_mut().zip(&mut hashes) {
            *slot = hash;
            len += 1;
        }
        len
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

// A key's `Hash` may panic, but it runs before the table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for ConcurrentCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for ConcurrentCuckooFilter<T, S> {}
