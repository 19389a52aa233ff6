//! The filter that grows: from keys to verdicts, and its builder.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::build::BuildError;
use crate::error::insert::InsertError;
#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::filter::concurrent_builder::Builder;
use crate::filter::stats::Stats;
#[cfg(feature = "snapshot")]
use crate::snapshot::format::{Kind, Sink, Source};
use crate::table::plan::{buckets_for, checked};
use crate::tables::growth::{Refusal, Tables};
use crate::tables::growth_plan::{self, Plan};
use crate::word::geometry::nested;

/// The fewest buckets of the first table: even, and not worth a smaller number.
const LEAST_BUCKETS: usize = 32;

/// A cuckoo filter that many threads share and that grows: an approximate, concurrent multiset of any number of keys of
/// type `T`.
///
/// It starts as one table, and when that is full adds another of twice its size, and so on, while readers and writers go
/// on. Each further table has a tighter false-positive rate than the one before, so that [the rate asked
/// for](GrowableBuilder::false_positive_rate) holds for all of them together, however many there are.
///
/// Take it where the number of keys is not known. Where it is, a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter)
/// of that capacity is smaller and quicker.
///
/// ```
/// use std::sync::Arc;
/// use concurrent_cuckoo_filter::GrowableCuckooFilter;
///
/// let seen = Arc::new(GrowableCuckooFilter::<u64>::with_capacity(100));
/// let writer = Arc::clone(&seen);
/// std::thread::spawn(move || (0..10_000).try_for_each(|key| writer.insert(&key))).join().unwrap()?;
/// assert!((0..10_000).all(|key| seen.contains(&key)));
/// assert!(seen.tables() > 1);
/// assert!(seen.remove(&17));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
///
/// # Cost
///
/// | operation | cost, with `t` tables |
/// |---|---|
/// | [`contains`](Self::contains) | `2t` cache lines for a key that is not in, fewer for one that is: the newest table, which holds half of the slots, comes first. And of each table one line of the stripes, which stay in the cache. No lock |
/// | [`insert`](Self::insert) | as a rule two lines and no lock, as in a filter of one table. Where the newest table is at its capacity and both buckets are full, two lines of each of the others |
/// | [`remove`](Self::remove), [`count`](Self::count) | the lines of a lookup, with one gate and, in each table, one stripe locked |
/// | [`insert_if_absent`](Self::insert_if_absent) | that of a lookup for a key that is in; otherwise two lookups and an insert, with one gate locked |
///
/// From `n` keys to `2ᵏn` takes `k` more tables or so, so start with what is likely: a filter that has grown ten times is
/// ten times as slow to say no.
///
/// # Growth
///
/// - **Who pays:** the one insert that finds no room and comes first builds the new table, which takes as long as to fill it
///   with zeros, some 50 ms for 100 MB. Others that find no room meanwhile fill the newest table beyond its capacity; only
///   if that has no room left either they wait. Lookups, and inserts that find room, wait for nobody. Nothing is copied or
///   moved from table to table.
/// - **What others may observe:** [`tables`](Self::tables), [`capacity`](Self::capacity) and
///   [`memory_usage`](Self::memory_usage) change. A key that is in throughout a lookup is found, growth or not.
/// - **Memory:** each table is twice as large as the one before. At the moment of growth the filter is somewhat more than
///   half empty, so it takes up between one and about three times what its keys need, and a later table needs more bits
///   for a key, because its rate is tighter: in a filter for 0.1 %, 13.2 in the first table, 16.8 in the next three, 23.2
///   from then on. [`GrowableBuilder::memory_limit`] bounds it. Tables are given back only with the filter; but room that
///   removals leave is used again, so a filter whose keys come and go at constant length does not grow.
/// - Nothing allocates after construction but growth, and removals and relocations while the filter is being saved.
///
/// # Consistency
///
/// As in [the crate's documentation](crate#consistency): a key that is in throughout a call of [`contains`](Self::contains)
/// is found, whatever happens meanwhile, and of many threads that race to add a key with
/// [`insert_if_absent`](Self::insert_if_absent) exactly one is told that it did, in the moment of growth too. The reasoning
/// stands in `src/tables/growth.rs`.
///
/// # Hazards
///
/// Those of [the crate's documentation](crate#hazards), and: whoever knows the hasher's key, and may insert, can choose
/// keys that fill few pairs of buckets. The filter then refuses other keys there, but does not grow for it, as long as the
/// newest table is less than a quarter full. So the memory stays within a fixed multiple of what the keys in the filter
/// need. Where their number is up to others, set a [memory limit](GrowableBuilder::memory_limit).
pub struct GrowableCuckooFilter<T: ?Sized, S = ahash::RandomState> {
    tables: Tables,
    hasher: S,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

/// Construction with the default hasher, which is keyed at random for each filter.
impl<T: ?Sized> GrowableCuckooFilter<T> {
    /// An empty filter with room for `capacity` keys to begin with, at a false-positive rate of at most 0.1 % for any number
    /// of keys, and with no limit to its memory.
    ///
    /// [`builder`](Self::builder) sets other rates and a limit, and reports what it can't do as an error.
    ///
    /// # Panics
    /// If the first table is too large for the address space or its memory is refused.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, ahash::RandomState::new())
    }

    /// A builder, to choose the rate, the hasher and a limit to the memory.
    pub fn builder() -> GrowableBuilder<T> {
        GrowableBuilder { of_first: Builder::new(), memory_limit: usize::MAX }
    }
}

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// [`with_capacity`](GrowableCuckooFilter::with_capacity), with keys hashed by `hasher`.
    ///
    /// Any hasher will do, even one as weak as the identity: the filter mixes the hashes once more. But without a
    /// secret key in it, whoever chooses the keys can choose them so that they collide.
    ///
    /// # Panics
    /// If the first table is too large for the address space or its memory is refused.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        let built = GrowableCuckooFilter::<T>::builder().hasher(hasher).capacity(capacity).build();
        built.unwrap_or_else(|error| panic!("with_capacity({capacity}): {error}"))
    }

    /// How many keys are in the filter, each counted as often as it was inserted.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters for each table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether the filter holds no keys; as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys the tables that there are were made for: more than this, and the filter grows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.tables.capacity()
    }

    /// How many tables there are: one, and one more for each time that the filter has grown.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.tables()
    }

    /// The memory that the filter takes up, in bytes: all of it, but for the decode tables of up to 256 KiB each that
    /// all semi-sorted filters share.
    ///
    /// Never more than [the limit](GrowableBuilder::memory_limit), if one was set.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.tables.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`, from 0 to 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.tables.false_positive_rate()
    }

    /// The expected false-positive rate with every slot of the tables that there are taken.
    ///
    /// It rises with each table, and never beyond what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.tables.max_false_positive_rate()
    }

    /// All figures at once, of all tables together, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// Cost: it adds up at most 64 cache lines for each table. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..1000).try_for_each(|key| filter.insert(&key))?;
    /// let stats = filter.stats();
    /// assert_eq!((stats.len, stats.inserts_refused), (1000, 0));
    /// assert!(stats.tables > 1);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let rates = (self.false_positive_rate(), self.max_false_positive_rate());
        // Where a table refused what another took, the filter did not.
        let inserts_refused = self.tables.inserts_refused();
        Stats { inserts_refused, ..Stats::of(self.tables.newest_first(), self.memory_usage(), rates.0, rates.1) }
    }

    /// Tells the filter that so many positive answers turned out to be wrong: see
    /// [`ConcurrentCuckooFilter::record_false_positives`](crate::ConcurrentCuckooFilter::record_false_positives).
    pub fn record_false_positives(&self, count: u64) {
        self.tables.oldest().record_false_positives(count);
    }

    /// Tells the filter that so many lookups were answered `false`: see
    /// [`ConcurrentCuckooFilter::record_negatives`](crate::ConcurrentCuckooFilter::record_negatives).
    pub fn record_negatives(&self, count: u64) {
        self.tables.oldest().record_negatives(count);
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all keys that are in the filter when the call begins. The tables stay, empty.
    ///
    /// Not one step for others: meanwhile they may find some keys gone and others still there, and whether a key that
    /// is inserted during the call is removed too is open. [`len`](Self::len) is exact again when the call and all
    /// others have ended.
    ///
    /// Cost: one pass over each table in turn (some 50 ms for 100 MB), with all its stripes locked. Lookups and inserts that
    /// find room go on meanwhile.
    pub fn clear(&self) {
        self.tables.clear();
    }
}

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// The hash of a key, for the operations on hashes. Two filters have the same one if they have the same hasher.
    #[inline]
    #[must_use]
    pub fn hash_one<Q>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.hasher.hash_one(key)
    }

    /// Adds one copy of the key, whether or not it is in already.
    ///
    /// The filter is a multiset: a key that is inserted twice must be removed twice. To add a key only once use
    /// [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: as a rule two cache lines read and one of them written, without a lock; see [the table](Self#cost). The insert
    /// that finds no room in any table builds a new one.
    ///
    /// # Errors
    /// If there is no room and the filter cannot grow; nothing has changed then, and a later attempt may succeed:
    /// - [`InsertError::MemoryLimit`] if another table would go beyond the limit;
    /// - [`InsertError::OutOfMemory`] if the memory for another table was refused. (Not all requests can fail; see
    ///   [`Builder::build`](crate::Builder::build).)
    /// - [`InsertError::TooManyCopies`] if copies of this key, or of others that cannot be told apart from it, have filled
    ///   its buckets in the newest table. Growth would only put it off;
    /// - [`InsertError::Full`] if other keys have, though that table is less than a quarter full: which does not happen
    ///   to distinct keys, unless the hasher is broken or somebody has its key.
    ///
    /// Before that the newest table has been filled beyond its capacity, as far as it goes.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u32>::with_capacity(3);
    /// (0..1000).try_for_each(|key| filter.insert(&key))?;
    /// filter.insert(&7)?;
    /// assert_eq!(filter.len(), 1001);
    /// # Ok::<(), InsertError>(())
    /// ```
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.insert_hash(self.hash_one(key))
    }

    /// Adds the key unless it is in: `true` if it was added.
    ///
    /// Of many threads that race to add one key that is absent, exactly one gets `true`, also while the filter grows. For one
    /// key in a thousand or so (the [false-positive rate](Self::false_positive_rate)) another is mistaken for it, and it is
    /// not added.
    ///
    /// A key that was added this way may share its one fingerprint with others that were found in already, so removing
    /// it can remove them with it: don't mix this with [`remove`](Self::remove), unless losing a few keys does no harm.
    ///
    /// Cost: that of [`contains`](Self::contains) for a key that is in; otherwise also a second look and an
    /// [`insert`](Self::insert) with one gate locked. The gate is not held while a new table is built.
    ///
    /// # Errors
    /// If the key is absent and there is no room, those of [`insert`](Self::insert); nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let seen = GrowableCuckooFilter::<str>::with_capacity(1000);
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
        self.insert_hash_if_absent(self.hash_one(key))
    }

    /// Whether the key is in: `false` is certain, `true` is wrong for a share of absent keys, the [false-positive
    /// rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do, and however the filter grows. Lock-free:
    /// it takes no lock, writes no shared memory and waits for nobody.
    ///
    /// Cost: two cache lines of each table for a key that is not in; for one that is, of those from the newest to the one
    /// that holds it.
    #[inline]
    #[must_use]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.contains_hash(self.hash_one(key))
    }

    /// Removes one copy of the key: `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken for
    /// one that was, as in [`contains`](Self::contains), and its removal makes that one disappear. If only keys that are in
    /// are removed, no other key is lost, in whichever tables they and those that look like them are.
    ///
    /// Cost: the cache lines of a lookup, with one gate locked and, in each table that it looks at, one stripe.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!((0..5000).all(|key| filter.remove(&key)));
    /// assert!(filter.is_empty());
    /// # Ok::<(), InsertError>(())
    /// ```
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.remove_hash(self.hash_one(key))
    }

    /// How many copies of the key are in: the exact number of those that were inserted and not removed, plus that of
    /// any other keys that cannot be told apart from it.
    ///
    /// Cost: two cache lines of each table, with one gate locked and, in each table, one stripe. Where
    /// [`contains`](Self::contains) is enough, that is quicker and waits for nobody.
    #[inline]
    #[must_use]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.count_hash(self.hash_one(key))
    }
}

/// The operations on hashes, for callers that have them already. Each is the operation of the same name on the key that
/// has this hash, by [`hash_one`](Self::hash_one) or by a hasher that is equal to [`hasher`](Self::hasher).
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// [`insert`](Self::insert) by hash.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert); nothing has changed then.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.tables.insert(nested(hash))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) by hash.
    ///
    /// # Errors
    /// Those of [`insert`](Self::insert), if the key is absent; nothing has changed then.
    #[inline]
    pub fn insert_hash_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.tables.insert_if_absent(nested(hash))
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.tables.contains(nested(hash))
    }

    /// [`remove`](Self::remove) by hash.
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        self.tables.remove(nested(hash))
    }

    /// [`count`](Self::count) by hash.
    #[inline]
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.tables.count(nested(hash))
    }
}

/// Snapshots: the filter as bytes, to survive a restart or to travel. Only with the feature `snapshot`.
///
/// What stands at [`ConcurrentCuckooFilter::save`](crate::ConcurrentCuckooFilter::save) and its like holds here too, above
/// all: **not every hasher is the same tomorrow**.
#[cfg(feature = "snapshot")]
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// Writes a snapshot of the filter, while others go on using it.
    ///
    /// **Each key that is in throughout the call is in the snapshot**, as often as it is in the filter, whatever is
    /// relocated, removed and inserted meanwhile. A key that is removed or inserted meanwhile may be in or not; tables that
    /// are added meanwhile are not.
    ///
    /// What layouts the tables have follows from the rate, by arithmetic on floating-point numbers. A machine on which that
    /// comes to others, which can be at rates just between two of them, says so when it loads the snapshot.
    ///
    /// Cost: as for [`ConcurrentCuckooFilter::save`](crate::ConcurrentCuckooFilter::save), one table after the other; `8 ·
    /// buckets + 23` bytes for each, and 48.
    ///
    /// # Errors
    /// As for `ConcurrentCuckooFilter::save`.
    ///
    /// ```
    /// # #[cfg(feature = "stable-hash")] {
    /// use concurrent_cuckoo_filter::{GrowableCuckooFilter, StableState};
    ///
    /// let hasher = StableState::with_key(*b"sixteen secrets!");
    /// let filter = GrowableCuckooFilter::<str, _>::with_capacity_and_hasher(10, hasher.clone());
    /// (0..1000).try_for_each(|number| filter.insert(&format!("key {number}")))?;
    /// let mut snapshot = Vec::new();
    /// filter.save(&mut snapshot)?;
    ///
    /// let loaded = GrowableCuckooFilter::<str, _>::load(&snapshot[..], hasher, 1 << 20)?;
    /// assert!(loaded.contains("key 999"));
    /// assert_eq!((loaded.len(), loaded.tables()), (1000, filter.tables()));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, mut to: impl std::io::Write) -> std::io::Result<()> {
        let mut sink = Sink::new(&mut to);
        sink.header(Kind::Growable, &self.hasher)?;
        self.tables.save(&mut sink)?;
        sink.end()
    }

    /// Reads a snapshot that [`save`](Self::save) has written, into a new filter.
    ///
    /// `memory_limit` is that of the filter from now on, as [`GrowableBuilder::memory_limit`] sets it: nothing larger is
    /// allocated, and growth beyond it is refused. Everything is checked as by
    /// [`ConcurrentCuckooFilter::load`](crate::ConcurrentCuckooFilter::load).
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: rebuild it from
    /// the source of truth.
    pub fn load(mut from: impl std::io::Read, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
        Self::load_from(Source::new(&mut from, memory_limit, usize::MAX), hasher)
    }

    pub(crate) fn load_from(mut source: Source<'_>, hasher: S) -> Result<Self, LoadError> {
        source.header(Kind::Growable, &hasher)?;
        let tables = Tables::load(&mut source, size_of::<Self>())?;
        source.end()?;
        Ok(Self { tables, hasher, key: PhantomData })
    }
}

/// Statistics; never the tables, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for GrowableCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowableCuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("tables", &self.tables())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("max_false_positive_rate", &self.max_false_positive_rate())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for GrowableCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for GrowableCuckooFilter<T, S> {}

/// Builds a [`GrowableCuckooFilter`]; made by [`GrowableCuckooFilter::builder`].
///
/// ```
/// use concurrent_cuckoo_filter::GrowableCuckooFilter;
///
/// let filter = GrowableCuckooFilter::<str>::builder()
///     .capacity(10_000)
///     .false_positive_rate(1e-4)
///     .memory_limit(1 << 20)
///     .build()?;
/// assert!(filter.memory_usage() <= 1 << 20);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct GrowableBuilder<T: ?Sized, S = ahash::RandomState> {
    /// What is asked for the first table; but for the rate, which is that of all.
    of_first: Builder<T, S>,
    memory_limit: usize,
}

impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// How many items the filter is to hold before it grows for the first time. Required; 0 is allowed.
    pub fn capacity(self, items: usize) -> Self {
        Self { of_first: self.of_first.capacity(items), ..self }
    }

    /// The largest acceptable false-positive rate of the whole, however much it grows: the share of lookups of absent keys
    /// that may be answered `true`. 0.001 (0.1 %) if not called.
    ///
    /// Each table may use up five eighths of what the ones before it have left, with every slot taken.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        Self { of_first: self.of_first.false_positive_rate(rate), ..self }
    }

    /// How many bytes the filter may take up, at most: [`memory_usage`](GrowableCuckooFilter::memory_usage) is never more.
    /// No limit if not called.
    ///
    /// Growth that would go beyond it is refused. Each table is about twice as large as the one before, so a filter with a
    /// limit may stay below half of it.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// The hasher of the keys, in place of [`ahash::RandomState`] with random keys of its own.
    ///
    /// It must be keyed with a secret if those who choose the keys may want to harm: see the section *Hazards* of the
    /// crate's documentation.
    pub fn hasher<S2>(self, hasher: S2) -> GrowableBuilder<T, S2> {
        GrowableBuilder { of_first: self.of_first.hasher(hasher), memory_limit: self.memory_limit }
    }

    /// Whether to ask the system for huge pages for each table of 4 MiB or more: yes, if not called. See
    /// [`Builder::huge_pages`](crate::Builder::huge_pages).
    ///
    /// Only with the feature `huge-pages`.
    #[cfg(feature = "huge-pages")]
    pub fn huge_pages(self, wanted: bool) -> Self {
        Self { of_first: self.of_first.huge_pages(wanted), ..self }
    }

    /// Builds the filter, with its first table.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if [`capacity`](Self::capacity) was not called;
    /// - [`BuildError::InvalidRate`] for a rate that is not between 0 and 1, both excluded, or no number;
    /// - [`BuildError::RateTooLow`] for a rate that 48 tables together could not meet, below about 4.56e-8;
    /// - [`BuildError::CapacityTooLarge`] for a table that would not fit in the address space;
    /// - [`BuildError::MemoryLimit`] if the first table alone goes beyond the limit;
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory. (Not all requests can fail; see
    ///   [`Builder::build`](crate::Builder::build).)
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let Self { of_first: Builder { capacity, rate, pages, hasher, .. }, memory_limit } = self;
        let capacity = checked(capacity, rate)?;
        let lowest = growth_plan::lowest_rate();
        let first = growth_plan::shapes(rate).next().filter(|_| rate >= lowest);
        let first = first.ok_or(BuildError::RateTooLow { rate, lowest })?;
        let plan = Plan {
            buckets: buckets_for(first, capacity, 1)?.max(LEAST_BUCKETS),
            rate,
            pages,
            memory_limit,
            memory_of_caller: size_of::<GrowableCuckooFilter<T, S>>(),
        };
        let tables = Tables::new(plan).map_err(|refusal| match refusal {
            Refusal::MemoryLimit { needed } => BuildError::MemoryLimit { needed, limit: memory_limit },
            Refusal::OutOfMemory { bytes } => BuildError::OutOfMemory { bytes },
        })?;
        Ok(GrowableCuckooFilter { tables, hasher, key: PhantomData })
    }
}

impl<T: ?Sized, S> fmt::Debug for GrowableBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the hasher: its key is a secret.
        f.debug_struct("GrowableBuilder")
            .field("capacity", &self.of_first.capacity)
            .field("false_positive_rate", &self.of_first.rate)
            .field("memory_limit", &self.memory_limit)
            .finish_non_exhaustive()
    }
}
