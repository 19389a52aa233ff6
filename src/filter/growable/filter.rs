//! The filter that grows: it hashes keys and asks its tables.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError, ReserveError};
use crate::filter::batch_key::BatchKey;
use crate::filter::shared::batches::{batches, blocks};
use crate::filter::shared::operations::{operation_on_a_key, operations_on_hashes, operations_on_keys, properties};
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::face::traits::AnyTable;
use crate::tables::growth::Tables;
use crate::word::geometry::nested;

/// A cuckoo filter that many threads share and that grows: an approximate, concurrent multiset of any number of keys
/// of type `T`.
///
/// It starts as one table. When that table is full, the filter adds another of twice its size, and so on, while
/// readers and writers go on. Each further table has a lower false-positive rate than the one before. So [the rate
/// asked for](crate::GrowableBuilder::false_positive_rate) holds for all tables together, however many there are.
///
/// Take it where the number of keys is not known. Where the number is known, a
/// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter) of that capacity is smaller and faster.
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
/// | [`contains`](Self::contains) | `2t` cache lines for an absent key. Fewer for a present key, because the newest table comes first and holds half of the slots. Also one line of the stripes of each table, which stay in the cache. No lock |
/// | [`insert`](Self::insert) | Usually two lines and no lock, as in a filter of one table. If the newest table is at its capacity and both buckets are full, two lines of each other table too |
/// | [`remove`](Self::remove), [`count`](Self::count) | The lines of a lookup, with one gate and, in each table, one stripe locked |
/// | [`insert_if_absent`](Self::insert_if_absent) | That of a lookup for a present key. Otherwise two lookups and an insert, with one gate locked |
///
/// To grow from `n` keys to `2ᵏn` takes about `k` more tables, so start with a likely number of keys. A filter that
/// has grown ten times takes ten times as long to answer "absent".
///
/// # Growth
///
/// - **Who pays:** the first insert that finds no room builds the new table. That takes as long as to fill the table
///   with zeros, some 30 ms for 100 MB. Other inserts that find no room meanwhile fill the newest table beyond its
///   capacity. They wait only if that table has no room left either. Lookups, and inserts that find room, wait for no
///   other thread. Nothing is copied or moved from table to table.
/// - **What others may observe:** [`tables`](Self::tables), [`capacity`](Self::capacity) and
///   [`memory_usage`](Self::memory_usage) change. A key that is present throughout a lookup is found, growth or not.
/// - **Memory:** each table is twice as large as the one before. Compare a filter of 10,000 keys or more with one
///   table for the same keys. Just before it grows, it takes 1.1 to 1.9 times the memory: 16 to 29 bits a key. Just
///   after, it takes 2.6 to 3.7 times: 35 to 56 bits a key. (That is at the default rate, on x86-64 and AArch64. At
///   other rates it is up to 4.3 times just after growth, and 5.4 times near 2 · 10⁻⁶. `cargo test --test growable
///   documented -- --nocapture` prints all of it.) A later table needs more bits for a key, because its rate is
///   lower: in a filter for 0.1 %, 13.2 in the first table, 16.8 in the next three, 23.2 from then on.
///   [`GrowableBuilder::memory_limit`](crate::GrowableBuilder::memory_limit) bounds the memory. The filter frees its
///   tables only when it is dropped. But it uses the room that removals leave, so a filter whose keys come and go at
///   constant length does not grow.
/// - **Allocation:** after construction only growth allocates, and changes while the filter is being saved.
///
/// # Consistency
///
/// The promises are those of the page [`consistency`](crate::guide::consistency). A key that is present throughout a
/// call of [`contains`](Self::contains) is found, whatever happens meanwhile. If many threads race to add a key with
/// [`insert_if_absent`](Self::insert_if_absent), exactly one of them adds it, also at the moment of growth. The
/// reasoning is in `src/tables/growth.rs`.
///
/// # Hazards
///
/// The page [`security`](crate::guide::security) lists the hazards of all filters. One more applies here: anyone who
/// knows the hasher's key, and may insert, can choose keys that fill few pairs of buckets. The filter then refuses
/// other keys there. It does not grow for such keys while the newest table is less than a quarter full. So the memory
/// stays within a fixed multiple of what the keys in the filter need. Where others decide how many keys there are,
/// set a [memory limit](crate::GrowableBuilder::memory_limit).
pub struct GrowableCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) core: Tables,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    GrowableCuckooFilter:

    /// Adds one copy of the key, even if the key is present already.
    ///
    /// The filter is a multiset: a key that was inserted twice must be removed twice. To add a key only once, use
    /// [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: usually two cache lines read and one of them written, without a lock; see [the table](Self#cost). The
    /// insert that finds no room in any table builds a new one.
    ///
    /// # Errors
    /// Fails if there is no room and the filter cannot grow. Nothing has changed then, and a later attempt may
    /// succeed.
    /// - [`InsertError::MemoryLimit`] if another table would go beyond the limit.
    /// - [`InsertError::OutOfMemory`] if the memory for another table was refused. (Not all requests can fail; see
    ///   [`Builder::build`](crate::Builder::build).)
    /// - [`InsertError::TooManyCopies`] if copies of this key, or of others that the filter cannot tell apart from
    ///   it, have filled its buckets in the newest table. Growth would only delay the error.
    /// - [`InsertError::Full`] if other keys fill both buckets of this key in the newest table, although that table
    ///   is less than a quarter full. This does not happen to distinct keys, unless the hasher is broken or somebody
    ///   has its key.
    ///
    /// Before it fails for lack of memory, the filter fills the newest table beyond its capacity, as far as possible.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u32>::with_capacity(3);
    /// (0..1000).try_for_each(|key| filter.insert(&key))?;
    /// filter.insert(&7)?;
    /// assert_eq!(filter.len(), 1001);
    /// # Ok::<(), InsertError>(())
    /// ```
    insert;

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// If many threads race to add one absent key, exactly one gets `true`, also while the filter grows. A share of
    /// the absent keys, the [false-positive rate](Self::false_positive_rate), is mistaken for another key, and is not
    /// added. If that would lose something, build the filter with a lower rate.
    ///
    /// A key that was added this way may share its one copy with keys that later calls mistook for it. Removing it
    /// can remove them too. So do not mix this with [`remove`](Self::remove), unless losing a few keys does no harm.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise also a second lookup and an
    /// [`insert`](Self::insert), with one gate locked. The gate is not held while a new table is built.
    ///
    /// # Errors
    /// Fails as [`insert`](Self::insert) does, if the key is absent and there is no room. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let seen = GrowableCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.insert_if_absent("request-1")?);
    /// assert!(!seen.insert_if_absent("request-1")?, "a replay");
    /// # Ok::<(), InsertError>(())
    /// ```
    insert_if_absent;

    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably
    /// present. The share of absent keys that get `true` is the [false-positive rate](Self::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do, and however the filter grows.
    /// The call is lock-free: it takes no lock, writes no shared memory and waits for no other thread.
    ///
    /// Cost: for an absent key, two cache lines of each table. For a present key, two of each table from the newest
    /// to the one that holds it.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!((0..5000).all(|key| filter.contains(&key)), "in whichever table they are");
    /// # Ok::<(), InsertError>(())
    /// ```
    contains;

    /// Removes one copy of the key, and returns `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken
    /// for one that was, as in [`contains`](Self::contains). Removing it makes the other key disappear. As long as
    /// only present keys are removed, no other key is lost, whichever tables hold them and their look-alikes.
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
    remove;

    /// Returns how many copies of the key are in the filter. That is the exact number of copies that were inserted
    /// and not removed, plus the copies of any other keys that the filter cannot tell apart from this one.
    ///
    /// Cost: two cache lines of each table, with one gate locked and, in each table, one stripe. Where
    /// [`contains`](Self::contains) is enough, it is faster and waits for no other thread.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<str>::with_capacity(100);
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// filter.remove("a");
    /// assert_eq!(filter.count("a"), 1);
    /// # Ok::<(), InsertError>(())
    /// ```
    count;
}

batches! {
    GrowableCuckooFilter with removal:
    /// Where the tables are larger than the cache, these are two to six times as fast as one call for each key
    /// (`cargo bench --bench batches`). While the filter works on the first keys, the buckets of the next ones are on
    /// their way from memory. In the cache, lookups of present keys are 2.5 times as fast, and the other operations
    /// gain little.
}

operations_on_hashes!(GrowableCuckooFilter with removal);

properties!(GrowableCuckooFilter made by "with_capacity(1000)");

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(core: Tables, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// The tables take hashes that are mixed once for all of them.
    #[inline(always)]
    fn prepared(hash: u64) -> u64 {
        nested(hash)
    }

    /// Makes room for `additional` more keys now, so that no insert has to grow the filter for them later. It adds as
    /// many tables as that takes.
    ///
    /// Each table is twice as large as the one before, so the filter may get more room than that. From a small first
    /// table to a million keys it still takes a dozen tables, so start with a likely number of keys. If there is room
    /// already, the call adds no table. Other threads can use the filter meanwhile, as when it grows. Call this
    /// before a bulk load, or at intervals, from a thread that may take its time: `filter.reserve(100_000)` in a
    /// thread of its own keeps room for 100,000 keys ahead of the inserts.
    ///
    /// `additional` is counted from [`len`](Self::len) at the moment of the call, so what others insert meanwhile
    /// counts. Distinct keys then go in without growth. An exception is as improbable as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity): below one in a billion.
    ///
    /// Cost: it adds up at most 64 counters for each table; a new table takes some 30 ms for 100 MB. Each further
    /// table makes lookups of absent keys slower: see [the table](Self#cost).
    ///
    /// # Errors
    /// Fails if the tables would go beyond the [memory limit](crate::GrowableBuilder::memory_limit) or the address
    /// space, or if their memory is refused. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// filter.reserve(10_000)?;
    /// let tables = filter.tables();
    /// (0..10_000).try_for_each(|key| filter.insert(&key))?;
    /// assert_eq!(filter.tables(), tables);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        self.core.reserve(additional)
    }

    /// Returns how many keys are in the filter. A key that was inserted several times counts as often.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted. Cost: it adds up at most 64 counters for each table.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert_eq!(filter.len(), 5000);
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns how many keys the present tables were made for. With more keys, the filter grows.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// let before = filter.capacity();
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!(filter.capacity() > before);
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// Returns how many slots all present tables have together, each for one fingerprint.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert!(filter.slots() >= filter.capacity());
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// Returns how many tables there are: one, and one more for each time that the filter has grown.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// assert_eq!(filter.tables(), 1);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!(filter.tables() > 1);
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn tables(&self) -> usize {
        self.core.tables()
    }

    /// Returns the memory that the filter takes up, in bytes. It leaves out two things: the decode tables of up to
    /// 256 KiB each that all semi-sorted filters share, and the name of a schema that the caller has given, up to 255
    /// bytes.
    ///
    /// The memory is never more than [the limit](crate::GrowableBuilder::memory_limit), if one was set. With the
    /// default rate, a filter that has not grown yet takes 94 bits a key for 100 keys, 23 for 1,000, 19 for 10,000
    /// and 13.5 for a million or more.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// let before = filter.memory_usage();
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!(filter.memory_usage() > before, "it has grown");
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.core.memory_usage()
    }

    /// Returns the expected false-positive rate at the present load: the share of lookups of absent keys that are
    /// answered `true`, from 0 to 1.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!(filter.false_positive_rate() > 0.0);
    /// assert!(filter.false_positive_rate() <= filter.max_false_positive_rate());
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate()
    }

    /// Returns the expected false-positive rate with every slot of the present tables taken.
    ///
    /// It rises with each table, but never beyond what the builder was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100); // asks for 0.1 %
    /// let before = filter.max_false_positive_rate();
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!((before..=0.001).contains(&filter.max_false_positive_rate()));
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.max_false_positive_rate()
    }

    /// Returns all figures at once, of all tables together, with counts of what has happened since the filter was
    /// made: see [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
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
        // If another table took what one table refused, the filter did not refuse it.
        let inserts_refused = self.core.inserts_refused();
        let tables = self.core.newest_first().map(|table| table as &dyn AnyTable);
        Stats { inserts_refused, ..Stats::of(tables, self.memory_usage(), rates.0, rates.1) }
    }

    /// Removes all keys that are in the filter when the call begins. The tables stay, empty.
    ///
    /// For other threads this is not one step. During the call they may find some keys gone and others still present,
    /// and a key that is inserted during the call may be removed or not. [`len`](Self::len) is exact again when this
    /// call and all others have ended.
    ///
    /// Cost: one pass over each table in turn (some 90 ms for 100 MB), with all its stripes locked. Lookups, and
    /// inserts that find room, go on meanwhile.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// let tables = filter.tables();
    /// filter.clear();
    /// assert_eq!((filter.len(), filter.tables()), (0, tables));
    /// # Ok::<(), InsertError>(())
    /// ```
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Shows statistics, but not the tables and not the hasher, whose key is a secret.
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
