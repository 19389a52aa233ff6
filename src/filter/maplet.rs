//! The maplet: a filter that remembers a few bits for each key.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertError, ValueTooLarge};
use crate::error::kind::FilterKind;
use crate::filter::operations::{layout_of_table, properties};
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::any::{AnyTable, MapletTable};
use crate::word::layout::Encoding;
use crate::word::values::Values;

/// A cuckoo filter that also remembers a value of a few bits for each key, and that many threads share: an approximate,
/// concurrent multiset of pairs of a key of type `T` and a value.
///
/// It answers not only "is this key in?" but "with which values?". The field calls that a maplet, the paper value association
/// (section 6). Take it where a key may be in one of several places: which run of an LSM tree, which segment file, shard or
/// node holds it. One lookup replaces one in a filter of each place.
///
/// The answer of [`values`](Self::values) is a set. **The value of a key that is in is always one of it.** Other values come
/// in at the [false-positive rate](Self::false_positive_rate), for absent keys and for present ones: so what is behind the
/// maplet must be able to say "not here".
///
/// Keys are hashed and not kept, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), and what is said there of
/// consistency, hashers and hazards holds here too.
///
/// ```
/// use std::sync::Arc;
/// use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
///
/// let segments = ConcurrentCuckooMaplet::<str>::builder().capacity(100_000).value_bits(4).build()?;
/// let segments = Arc::new(segments);
/// segments.insert("apple", 3)?; // segment 3 has it
///
/// let compaction = Arc::clone(&segments);
/// let moved = std::thread::spawn(move || compaction.replace("apple", 3, 7)).join().unwrap()?;
/// assert!(moved);
/// assert!(segments.values("apple").contains(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There is no maplet that grows. Tables of a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) must agree on eight bits
/// of each fingerprint that are not all 0, and values leave fewer than that in most layouts; and a value would have to be
/// replaced in one table while a lookup goes through several. Build it for the most that it will hold, or rebuild it.
pub struct ConcurrentCuckooMaplet<T: ?Sized, S = DefaultHashBuilder> {
    pub(super) core: Box<dyn MapletTable>,
    pub(super) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(super) schema: Schema,
    value_bits: u32,
    key: PhantomData<fn(&T)>,
}

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooMaplet<T, S> {
    /// Adds the value to those of the key, also if the key has it already.
    ///
    /// The maplet is a multiset of pairs: a pair that is inserted twice must be removed twice.
    ///
    /// Cost: as a rule two cache lines read and one of them written, with one stripe locked for a few instructions. (A filter's
    /// [`insert`](crate::ConcurrentCuckooFilter::insert) takes no lock. Here it does, so that all operations on a key have one
    /// order.) Where both buckets of the key are full, that of a filter's insert which relocates.
    ///
    /// # Errors
    /// [`InsertError::ValueTooLarge`] if the value has too many bits; [`InsertError::Full`] or
    /// [`InsertError::TooManyCopies`] if there is no room. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooMaplet, InsertError};
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(100).value_bits(3).build()?;
    /// shards.insert(&17, 5)?;
    /// assert!(shards.values(&17).contains(5));
    /// let error = shards.insert(&17, 8).unwrap_err();
    /// assert!(matches!(error, InsertError::ValueTooLarge { value: 8, value_bits: 3, .. }), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<Q>(&self, key: &Q, value: u16) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.insert_hash(self.hash_one(key), value)
    }

    /// Adds the value unless the key has any. Returns the values that it has; none if this one was added.
    ///
    /// In one step: of many threads that race to add a value to a key without one, exactly one gets the empty set, and the
    /// others are told its value. A key is mistaken for another at the [false-positive rate](Self::false_positive_rate), and
    /// then nothing is added. So don't mix this with [`remove`](Self::remove) and [`replace`](Self::replace), unless losing a
    /// value now and then does no harm.
    ///
    /// Cost: that of [`values`](Self::values) if the key has any; otherwise that of an [`insert`](Self::insert) with one
    /// stripe locked.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let owners = ConcurrentCuckooMaplet::<str>::builder().capacity(100).value_bits(8).build()?;
    /// assert!(owners.insert_if_absent("job-1", 17)?.is_empty(), "node 17 has it now");
    /// assert!(owners.insert_if_absent("job-1", 99)?.contains(17), "and node 99 is told so");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q, value: u16) -> Result<Values, InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.insert_hash_if_absent(self.hash_one(key), value)
    }

    /// The values of the key: a set of at most 12, on the stack.
    ///
    /// A value that the key has throughout the call is one of them, whatever other threads do. If the set is empty, the key is
    /// not in, for certain. The call takes effect in one step: the set is what the key had at one moment. While
    /// [`replace`](Self::replace) changes a value, that is the old one or the new one.
    ///
    /// Lock-free: it takes no lock, writes no shared memory and waits for nobody. It looks again, and counts that for
    /// [`stats`](Self::stats), only if another thread has just changed something in the same stripe.
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// # let read = |_segment: u16, _key: &str| None::<String>;
    /// let segments = ConcurrentCuckooMaplet::<str>::builder().capacity(100).value_bits(4).build()?;
    /// segments.insert("apple", 3)?;
    /// // Segment 3 is read, and seldom another one without need.
    /// let found = segments.values("apple").into_iter().find_map(|segment| read(segment, "apple"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn values<Q>(&self, key: &Q) -> Values
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.values_hash(self.hash_one(key))
    }

    /// Whether the key is in, with any value: `false` is certain, `true` is wrong for a share of absent keys, the
    /// [false-positive rate](Self::false_positive_rate).
    ///
    /// As [`ConcurrentCuckooFilter::contains`](crate::ConcurrentCuckooFilter::contains), also in its cost. Inserts of others can
    /// make it look again too.
    #[inline]
    #[must_use]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.contains_hash(self.hash_one(key))
    }

    /// Takes one copy of the value from the key: `true` if it had one.
    ///
    /// **Remove only pairs that were inserted**, once for each insert. Another key can be mistaken for this one, with this
    /// value too, and then it loses it. A value with too many bits can't have been inserted, so the answer is `false`.
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(100).value_bits(3).build()?;
    /// shards.insert(&17, 5)?;
    /// assert!(!shards.remove(&17, 4), "it has no such value");
    /// assert!(shards.remove(&17, 5));
    /// assert!(shards.values(&17).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove<Q>(&self, key: &Q, value: u16) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.remove_hash(self.hash_one(key), value)
    }

    /// Puts `new` in the place of one copy of `old`: `true` if the key had one.
    ///
    /// In one step: at every moment the key has the one or the other, never neither and never both. It needs no room, so it
    /// is never refused.
    ///
    /// **Replace only pairs that were inserted**, as with [`remove`](Self::remove). An `old` with too many bits can't have been
    /// inserted, so the answer is `false`.
    ///
    /// Cost: that of a [`remove`](Self::remove).
    ///
    /// # Errors
    /// If `new` has too many bits.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let segments = ConcurrentCuckooMaplet::<str>::builder().capacity(100).value_bits(4).build()?;
    /// segments.insert("apple", 3)?;
    /// assert!(segments.replace("apple", 3, 7)?);
    /// assert!(!segments.replace("apple", 3, 7)?, "it has another one now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn replace<Q>(&self, key: &Q, old: u16, new: u16) -> Result<bool, ValueTooLarge>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.replace_hash(self.hash_one(key), old, new)
    }

    /// How many copies of the value the key has: the exact number of those that were inserted and neither removed nor replaced,
    /// plus those of other keys that cannot be told apart from it. 0 for a value with too many bits.
    ///
    /// Cost: two cache lines, with one stripe locked.
    #[inline]
    #[must_use]
    pub fn count<Q>(&self, key: &Q, value: u16) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.count_hash(self.hash_one(key), value)
    }

    /// The hash of a key, for the operations on hashes. Two maplets have the same one if they have the same hasher.
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

/// The operations on hashes, for callers that have them already. Each is the operation of the same name on the key that has this
/// hash, by [`hash_one`](Self::hash_one) or by a hasher that is equal to [`hasher`](Self::hasher).
///
/// ```
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, ConcurrentCuckooMaplet, DefaultHashBuilder};
///
/// let hasher = DefaultHashBuilder::new();
/// let segments = ConcurrentCuckooMaplet::<str>::builder_with_hasher(hasher.clone()).capacity(100).value_bits(4).build()?;
/// let deleted = ConcurrentCuckooFilter::<str>::with_capacity_and_hasher(100, hasher);
/// segments.insert("apple", 3)?;
/// let hash = segments.hash_one("apple"); // once for both
/// assert!(!deleted.contains_hash(hash) && segments.values_hash(hash).contains(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: ?Sized, S> ConcurrentCuckooMaplet<T, S> {
    /// [`insert`](Self::insert) by hash.
    ///
    /// # Errors
    /// Those of `insert`.
    #[inline]
    pub fn insert_hash(&self, hash: u64, value: u16) -> Result<(), InsertError> {
        self.check(value)?;
        self.core.insert_value(hash, value).map_err(|error| error.of(FilterKind::Maplet))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) by hash.
    ///
    /// # Errors
    /// Those of `insert_if_absent`.
    #[inline]
    pub fn insert_hash_if_absent(&self, hash: u64, value: u16) -> Result<Values, InsertError> {
        self.check(value)?;
        self.core.insert_value_if_absent(hash, value).map_err(|error| error.of(FilterKind::Maplet))
    }

    /// [`values`](Self::values) by hash.
    #[inline]
    #[must_use]
    pub fn values_hash(&self, hash: u64) -> Values {
        self.core.values(hash)
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.core.contains(hash)
    }

    /// [`remove`](Self::remove) by hash.
    #[inline]
    pub fn remove_hash(&self, hash: u64, value: u16) -> bool {
        self.check(value).is_ok() && self.core.remove_value(hash, value)
    }

    /// [`replace`](Self::replace) by hash.
    ///
    /// # Errors
    /// Those of `replace`.
    #[inline]
    pub fn replace_hash(&self, hash: u64, old: u16, new: u16) -> Result<bool, ValueTooLarge> {
        self.check(new)?;
        Ok(self.check(old).is_ok() && self.core.replace_value(hash, old, new))
    }

    /// [`count`](Self::count) by hash.
    #[inline]
    #[must_use]
    pub fn count_hash(&self, hash: u64, value: u16) -> usize {
        if self.check(value).is_ok() { self.core.count_value(hash, value) } else { 0 }
    }

    /// Whether the value has few enough bits.
    #[inline(always)]
    pub(super) fn check(&self, value: u16) -> Result<(), ValueTooLarge> {
        if u32::from(value) >> self.value_bits == 0 { Ok(()) } else { Err(ValueTooLarge::new(value, self.value_bits)) }
    }
}

properties!(ConcurrentCuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?");

layout_of_table!(ConcurrentCuckooMaplet with fingerprints of "7 to 31" in "2 to 6");

impl<T: ?Sized, S> ConcurrentCuckooMaplet<T, S> {
    pub(super) fn from_parts(core: Box<dyn MapletTable>, hasher: S, schema: Schema) -> Self {
        let value_bits = core.shape().payload_bits;
        Self { core, hasher, schema, value_bits, key: PhantomData }
    }

    /// How many bits a value has: values are below `2^value_bits`.
    #[must_use]
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// How many pairs of a key and a value are in the maplet, each counted as often as it was inserted.
    ///
    /// Exact while no other thread changes the maplet; while others do, each change that overlaps the call may or may not be
    /// counted. It adds up at most 64 counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many pairs the maplet is made for: at least as many as were asked for.
    ///
    /// So many pairs with distinct keys fit: the probability that an insert is refused before is below one in a billion for
    /// each maplet. All values of a key are in its two buckets, so a key can have as many as these have slots, 4 to 12
    /// depending on the layout, and keys with several values each fill their buckets sooner.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots the maplet has, each for one pair.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// The memory that the maplet takes up, in bytes: all of it, but for the decode table of up to 256 KiB that all semi-sorted
    /// filters and maplets share, and for the name of a schema that the caller has given, up to 255 bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that find a value, from 0 to
    /// 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken; at most what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(1.0)
    }

    /// All figures at once, with counts of what has happened since the maplet was made: relocations, refusals, retries,
    /// contention. `len` counts pairs.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table: &dyn AnyTable = &*self.core;
        Stats::of([table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate())
    }

    /// Removes all pairs that are in the maplet when the call begins.
    ///
    /// Not one step for others, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) says, which also has the cost. A
    /// [`values`](Self::values) that overlaps it may find a set of values that the key had at no moment; never one that was
    /// not among them.
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Statistics; never the table, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ConcurrentCuckooMaplet<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooMaplet")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("load_factor", &self.load_factor())
            .field("value_bits", &self.value_bits())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("encoding", &self.encoding())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
