//! The filter that grows: from keys to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError, ReserveError};
use crate::filter::batch_key::BatchKey;
use crate::filter::batches::{batches, blocks};
use crate::filter::membership::MembershipFilter;
use crate::filter::operations::{membership, operation_on_a_key, operations_on_hashes, operations_on_keys, properties};
use crate::filter::sealed::Sealed;
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::any::AnyTable;
use crate::tables::growth::Tables;
use crate::word::geometry::nested;

/// A cuckoo filter that many threads share and that grows: an approximate, concurrent multiset of any number of keys of
/// type `T`.
///
/// It starts as one table, and when that is full adds another of twice its size, and so on, while readers and writers go
/// on. Each further table has a tighter false-positive rate than the one before, so that [the rate asked
/// for](crate::GrowableBuilder::false_positive_rate) holds for all of them together, however many there are.
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
/// - **Memory:** each table is twice as large as the one before. A filter of 10,000 keys or more takes up 1.1 to 1.9 times
///   what one table for its keys would, just before it grows, and 2.6 to 3.7 times just after: 16 to 29 bits a key, then 35
///   to 56. (That is at the default rate, on x86-64 and AArch64. At other rates it is up to 4.3 times just after growth, and
///   5.4 times near 2 · 10⁻⁶. `cargo test --test growable documented -- --nocapture` prints all of it.) A later table needs
///   more bits for a key, because its rate is tighter: in a filter for 0.1 %, 13.2 in the first table, 16.8 in the next three,
///   23.2 from then on. [`GrowableBuilder::memory_limit`](crate::GrowableBuilder::memory_limit) bounds the memory. Tables are
///   given back only with the filter. But room that removals leave is used again, so a filter whose keys come and go at
///   constant length does not grow.
/// - Nothing allocates after construction but growth, and changes while the filter is being saved.
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
/// need. Where their number is up to others, set a [memory limit](crate::GrowableBuilder::memory_limit).
pub struct GrowableCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(super) core: Tables,
    pub(super) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(super) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    GrowableCuckooFilter:

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
    insert;

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
    insert_if_absent;

    /// Whether the key is in: `false` is certain, `true` is wrong for a share of absent keys, the [false-positive
    /// rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do, and however the filter grows. Lock-free:
    /// it takes no lock, writes no shared memory and waits for nobody.
    ///
    /// Cost: two cache lines of each table for a key that is not in; for one that is, of those from the newest to the one
    /// that holds it.
    contains;

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
    remove;

    /// How many copies of the key are in: the exact number of those that were inserted and not removed, plus that of
    /// any other keys that cannot be told apart from it.
    ///
    /// Cost: two cache lines of each table, with one gate locked and, in each table, one stripe. Where
    /// [`contains`](Self::contains) is enough, that is quicker and waits for nobody.
    count;
}

batches! {
    GrowableCuckooFilter with removal:
    /// Where the tables are larger than the cache, these are two to six times as fast as one call for each key (`cargo bench
    /// --bench batches`): while the first keys are looked at, the buckets of the next ones are on their way from memory. In
    /// the cache, lookups of present keys are twice as fast, and the rest gains little.
}

operations_on_hashes!(GrowableCuckooFilter with removal);

properties!(GrowableCuckooFilter made by "with_capacity(1000)");

membership!(GrowableCuckooFilter);

impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    pub(super) fn from_parts(core: Tables, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// The tables take hashes that are mixed once for all of them.
    #[inline(always)]
    fn prepared(hash: u64) -> u64 {
        nested(hash)
    }

    /// Sees to it that `additional` further keys go in before the filter has to grow: adds tables now, as many as that
    /// takes, so that no insert has to later on.
    ///
    /// Each table is twice as large as the one before, so the filter may get room for more, and from a small first table to a
    /// million keys it is still a dozen tables: start with what is likely. It adds none if there is room already. Others use the filter meanwhile, as when it grows. Call it from a thread that may take its time, before a
    /// bulk load or every so often: `filter.reserve(100_000)` in a thread of its own keeps room for 100,000 keys ahead of the
    /// inserts.
    ///
    /// `additional` is counted from [`len`](Self::len) at the moment of the call, so what others insert meanwhile counts.
    /// Distinct keys then go in without growth, but for a chance as small as that with which a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity) refuses a key below its capacity.
    ///
    /// Cost: it adds up at most 64 counters for each table; a new table takes some 50 ms for 100 MB. Each further table makes
    /// lookups of absent keys slower: see [the table](Self#cost).
    ///
    /// # Errors
    /// If the tables would go beyond the [memory limit](crate::GrowableBuilder::memory_limit) or the address space, or if
    /// their memory is refused. Nothing has changed then.
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

    /// How many keys are in the filter, each counted as often as it was inserted.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters for each table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many keys the tables that there are were made for: more than this, and the filter grows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots there are in all tables, each for one fingerprint.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// How many tables there are: one, and one more for each time that the filter has grown.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.core.tables()
    }

    /// The memory that the filter takes up, in bytes: all of it, but for the decode tables of up to 256 KiB each that
    /// all semi-sorted filters share, and for the name of a schema that the caller has given, up to 255 bytes.
    ///
    /// Never more than [the limit](crate::GrowableBuilder::memory_limit), if one was set. A filter that has not grown yet takes
    /// 93 bits a key for 100 keys, 23 for 1,000, 19 for 10,000 and 13.5 for a million or more, with the default rate.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`, from 0 to 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate()
    }

    /// The expected false-positive rate with every slot of the tables that there are taken.
    ///
    /// It rises with each table, and never beyond what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.max_false_positive_rate()
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
        let inserts_refused = self.core.inserts_refused();
        let tables = self.core.newest_first().map(|table| table as &dyn AnyTable);
        Stats { inserts_refused, ..Stats::of(tables, self.memory_usage(), rates.0, rates.1) }
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
        self.core.clear();
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
