//! The public face of the filter that forgets: from keys and ticks to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter;
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
use crate::table::any::AnyTable;
use crate::table::words;
use crate::tables::gates::Gates;
use crate::tables::generations::{Generations, MAX_GENERATIONS, MIN_GENERATIONS};
use crate::word::layout::{Encoding, rate_of_any};

/// A cuckoo filter whose keys expire by generations: "was this seen within the last N minutes?"
///
/// For replay protection, idempotency keys, sliding-window de-duplication. Memory is constant, many threads share it as
/// they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), and to forget a period's keys is one step,
/// in which readers wait for nobody.
///
/// Keys are added to the *current generation*. A *rotation* begins a new one, and the oldest generation expires, as a
/// whole. Who rotates, and when, is the caller's choice: by the clock, with [`advance_to`](Self::advance_to); by hand,
/// with [`rotate`](Self::rotate); by the number of keys, with
/// [`rotate_when_full`](RotatingBuilder::rotate_when_full). The filter starts no thread and reads no clock.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use concurrent_cuckoo_filter::RotatingCuckooFilter;
///
/// // Requests of the last 15 minutes: 4 generations, and a new one every 5 minutes.
/// let seen = RotatingCuckooFilter::<str>::builder().capacity(100_000).generations(4).build()?;
/// let is_new = |request: &str, at: SystemTime| {
///     let since_1970 = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
///     seen.advance_to(since_1970.as_secs() / (5 * 60));
///     seen.insert_if_absent(request)
/// };
///
/// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_699_963_200);
/// let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
/// assert!(is_new("request-1", noon)?);
/// assert!(!is_new("request-1", noon + minutes(15))?, "a replay");
/// assert!(is_new("request-1", noon + minutes(20))?, "long forgotten");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How long a key lives
///
/// Let `g` be the number of [generations](RotatingBuilder::generations), and a *period* the time between two rotations.
/// From its last [`insert`](Self::insert) on, **a key is found for at least `g - 1` whole periods and at most `g`**:
/// for the rest of the period that it was inserted in, and for `g - 1` more. (Afterwards it is an absent key like others,
/// and so found by mistake now and then.)
///
/// Exactly: an insert that returns `Ok` has put the key into the generation `b` that was current at some moment of the
/// call. Every lookup that begins after that and ends before generation `b + g` begins finds it; none does that begins
/// after generation `b + g` has begun, unless the key was inserted again. One case is exempt from the second half: if
/// `g` rotations or more come between two steps of one call, as where the thread is stopped for as long as a key lives,
/// the key may be found for one period more; and if such a call never ends, for up to `g` periods although it has not.
///
/// So who wants to remember a key for at least the time `W` rotates every `W / (g - 1)`, and the key is forgotten after
/// at most `W · g / (g - 1)`. More generations are more exact and need less memory, and each lookup of an absent key
/// looks into all of them. There are `g + 1` tables, since one is being cleared while `g` are in use, each with room for
/// the keys of one period (at the default rate of 0.1 %, for keys that come evenly):
///
/// | `g` | forgotten after at most | tables | bits for each key within `W` |
/// |---|---|---|---|
/// | 2 | 2 · W | 3 | 50.3 |
/// | 3 | 1.5 · W | 4 | 33.5 |
/// | **4** (default) | 1.33 · W | 5 | 27.9 |
/// | 5 | 1.25 · W | 6 | 25.1 |
/// | 7 | 1.17 · W | 8 | 22.3 |
/// | 9 | 1.13 · W | 10 | 21.0 |
/// | 16 | 1.07 · W | 17 | 19.0 |
///
/// # What concurrent callers may observe
///
/// - **A key that is in throughout a call of [`contains`](Self::contains) is found**, whatever rotates meanwhile, also if
///   it is refreshed just in time, so that its old copy expires while the lookup is under way.
/// - A rotation takes effect in one step: all keys of the oldest generation expire at the same moment.
/// - `insert`, [`insert_if_absent`](Self::insert_if_absent), `contains` and rotations each take effect at some moment of
///   their call, in an order that all threads agree on; but an insert that a rotation overtakes adds its key twice, and
///   others may find it from the first time on. [`clear`](Self::clear) is no such step, and [`len`](Self::len) is exact
///   only when nothing changes.
/// - Lookups take no lock, write no shared memory and wait for nobody. They look again only if a rotation has come, or
///   a copy has just moved.
/// - No operation allocates after construction (but for a save, and what relocations put aside while one is
///   running), and no code of the caller's runs while a lock is held.
///
/// There is no `remove`. Keys share fingerprints, so a removal might take a younger key's copy in place of the one that
/// was meant, and that key would be forgotten too soon.
pub struct RotatingCuckooFilter<T: ?Sized, S = ahash::RandomState> {
    generations: Generations,
    hasher: S,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized> RotatingCuckooFilter<T> {
    /// A builder, to choose the capacity of a generation, their number, the rate and the hasher.
    pub fn builder() -> RotatingBuilder<T> {
        RotatingBuilder { of_each: Builder::new(), generations: DEFAULT_GENERATIONS, rotate_when_full: false }
    }
}

impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    /// Begins a new generation, and the oldest one expires, in one step; returns the new one's number.
    ///
    /// Rotations are counted by all callers together: two that rotate at the same time rotate twice. For "once every so
    /// often, whoever comes first" use [`advance_to`](Self::advance_to).
    ///
    /// Cost: one pass over the table that has expired (some 50 ms for 100 MB), which this thread clears after that step.
    /// Others use the new generation meanwhile. Only another rotation waits until it is done; and an insert that `g`
    /// rotations have overtaken.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.insert("a")?;
    /// assert_eq!(seen.rotate(), 1);
    /// assert!(seen.contains("a"));
    /// seen.insert("b")?;
    /// assert_eq!(seen.rotate(), 2);
    /// assert!(!seen.contains("a") && seen.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rotate(&self) -> u64 {
        self.generations.rotate()
    }

    /// Brings the filter up to the time: rotates as many times as `tick` is greater than the greatest tick before.
    ///
    /// A tick is the number of periods that have passed on the caller's clock, from any origin: for a new generation
    /// every minute, `unix_seconds / 60`, or `start.elapsed().as_secs() / 60`. The first call only sets the origin, and
    /// rotates nothing. A tick that is no greater than one before does nothing, so a clock that goes back stops the
    /// rotations until it has caught up. A tick `n` greater has the last `n` generations expire: after a pause of `g`
    /// periods or more, everything. (`u64::MAX` counts as the tick before it.)
    ///
    /// When it returns, the rotations have taken effect, whichever thread has made them: who calls it and then
    /// inserts, inserts into the generation of that tick, or a later one. **Time stands still while nobody calls it.** So
    /// call it before each operation, or from a task of your own every so often; many threads may.
    ///
    /// Cost: one load where nothing is due. The thread that rotates clears the table that has expired, as in
    /// [`rotate`](Self::rotate), and others that bring the same tick need not wait for that; after a pause of several
    /// periods it clears as many tables, up to `g`, and they wait for all but the last.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(3).build()?;
    /// seen.advance_to(28_500_000); // the first one sets the origin
    /// seen.insert("a")?;
    /// seen.advance_to(28_500_002);
    /// assert!(seen.contains("a"));
    /// seen.advance_to(28_500_001); // a clock that goes back
    /// assert!(seen.contains("a"));
    /// seen.advance_to(28_500_003);
    /// assert!(!seen.contains("a"));
    /// assert_eq!(seen.generation(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn advance_to(&self, tick: u64) {
        self.generations.advance_to(tick);
    }

    /// How many rotations there have been, by whatever reason: the number of the current generation, from 0 on.
    ///
    /// A jump of [`advance_to`](Self::advance_to) counts as no more rotations than there are generations.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generations.generation()
    }

    /// How many generations are live: `g` in these pages.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.generations.live_generations()
    }

    /// How many keys are in the live generations. A key that was inserted anew in a later one counts once for each.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters for each generation.
    #[must_use]
    pub fn len(&self) -> usize {
        self.generations.len()
    }

    /// Whether the live generations hold no keys; as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys *one generation* is made for: at least as many as were asked for.
    ///
    /// So many distinct keys fit, as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity): the probability that an insert is refused
    /// before is below one in a billion for each generation.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generations.any_table().capacity()
    }

    /// How many slots *one generation* has, each for one fingerprint: the most keys that it can ever take.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.generations.any_table().slots()
    }

    /// The memory that the filter takes up, in bytes, which never changes: all of it, but for the decode table of up to
    /// 256 KiB that all semi-sorted filters share.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.generations.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of keys that are in no live generation
    /// which are answered `true`, from 0 to 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let table = self.generations.any_table();
        let slots = table.slots() as f64;
        rate_of_any(self.generations.lens().map(|len| table.false_positive_rate(len as f64 / slots)))
    }

    /// The expected false-positive rate with every slot of every generation taken; at most what the builder was asked
    /// for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        let of_each = self.generations.any_table().false_positive_rate(1.0);
        rate_of_any(iter::repeat_n(of_each, self.generations()))
    }

    /// All figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// `capacity`, `slots` and `len` are those of all live generations together. `tables` and the counts of events include
    /// the spare table.
    ///
    /// Cost: it adds up at most 64 cache lines for each table. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// seen.insert("a")?;
    /// let stats = seen.stats();
    /// assert_eq!((stats.tables, stats.len, stats.capacity), (5, 1, 4 * seen.capacity()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (generations, len) = (self.generations(), self.len());
        let rates = (self.false_positive_rate(), self.max_false_positive_rate());
        let of_all = Stats::of(self.generations.tables(), self.memory_usage(), rates.0, rates.1);
        let slots = generations * self.slots();
        Stats {
            len,
            capacity: generations * self.capacity(),
            slots,
            load_factor: len as f64 / slots as f64,
            // Where a rotation made room for what a generation had refused, the filter did not refuse it.
            inserts_refused: self.generations.inserts_refused(),
            ..of_all
        }
    }

    /// Tells the filter that so many positive answers turned out to be wrong: see
    /// [`ConcurrentCuckooFilter::record_false_positives`](crate::ConcurrentCuckooFilter::record_false_positives).
    pub fn record_false_positives(&self, count: u64) {
        self.generations.any_table().record_false_positives(count);
    }

    /// Tells the filter that so many lookups were answered `false`: see
    /// [`ConcurrentCuckooFilter::record_negatives`](crate::ConcurrentCuckooFilter::record_negatives).
    pub fn record_negatives(&self, count: u64) {
        self.generations.any_table().record_negatives(count);
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Removes all keys that are in the filter when the call begins, of all generations.
    ///
    /// The current generation stays the current one, and so do the ticks. Not one step for others: meanwhile they may
    /// find some keys gone and others still there, and whether a key that is inserted during the call is removed too is
    /// open.
    ///
    /// Cost: one pass over all tables, with all stripes of one locked at a time.
    pub fn clear(&self) {
        self.generations.clear();
    }
}

impl<T: ?Sized, S: BuildHasher> RotatingCuckooFilter<T, S> {
    /// Adds the key to the current generation, unless it is in that already. If it is in an older one, its life begins
    /// anew.
    ///
    /// Cost: for a key that is in the current generation, a lookup in that one; otherwise also a stripe locked and a
    /// cache line written, and where both buckets of the key are full a search, as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::insert). If a rotation comes in between, the same once
    /// more. With [`rotate_when_full`](RotatingBuilder::rotate_when_full), the insert that finds a generation full pays
    /// for a [rotation](Self::rotate).
    ///
    /// # Errors
    /// [`InsertError::Full`] if the current generation has no room for it; never with `rotate_when_full`. Nothing has
    /// changed then, but for this: if a rotation came during the call, the key may have been added to a generation
    /// before.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// for _ in 0..10 {
    ///     seen.insert("a")?; // seen again in each period
    ///     seen.rotate();
    /// }
    /// assert!(seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.insert_hash(self.hash_one(key))
    }

    /// Adds the key to the current generation unless it is in a live one: `true` if it was added.
    ///
    /// In one step: of many threads that race to add one key that is absent, exactly one gets `true`, also while others
    /// rotate. A key that is in is left as it is, and expires when it would have: its life is counted from the call that
    /// got `true`. It may expire in the very moment when another call gets `false` for it: it had been seen.
    ///
    /// For one key in a thousand or so (the [false-positive rate](Self::false_positive_rate)) another is mistaken for it,
    /// and it is not added.
    ///
    /// Cost: that of [`contains`](Self::contains) for a key that is in; otherwise that of two and an
    /// [`insert`](Self::insert), with one of up to 128 locks held, which is that of all keys with these buckets. (So with
    /// `rotate_when_full`, while the call that rotates clears a table, other such calls for one key in 128 wait for it.)
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), if the key is absent.
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.insert_hash_if_absent(self.hash_one(key))
    }

    /// Whether the key is in a live generation: `false` is certain, `true` is wrong for a share of absent keys, the
    /// [false-positive rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do. Lock-free: it takes no lock, writes no
    /// shared memory and waits for nobody; it looks again only if another thread has just rotated, or moved something.
    ///
    /// Cost: two cache lines for each generation up to the newest one that holds the key, for an absent key of all.
    #[inline]
    #[must_use]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.contains_hash(self.hash_one(key))
    }

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
}

/// The operations on hashes, for callers that have them already.
///
/// Each is the operation of the same name on the key that has this hash, by [`hash_one`](Self::hash_one) or by a hasher
/// that is equal to [`hasher`](Self::hasher).
impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    /// [`insert`](Self::insert) by hash.
    ///
    /// # Errors
    /// As for `insert`.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.generations.insert(hash).map(|_| ())
    }

    /// [`insert_if_absent`](Self::insert_if_absent) by hash.
    ///
    /// # Errors
    /// As for `insert_if_absent`.
    #[inline]
    pub fn insert_hash_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.generations.insert_if_absent(hash)
    }

    /// [`contains`](Self::contains) by hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.generations.contains(hash)
    }
}

/// Snapshots: the filter as bytes, to survive a restart or to travel. Only with the feature `snapshot`.
///
/// What stands at [`ConcurrentCuckooFilter::save`](crate::ConcurrentCuckooFilter::save) and its like holds here too, above
/// all: **not every hasher is the same tomorrow**.
#[cfg(feature = "snapshot")]
impl<T: ?Sized, S: BuildHasher> RotatingCuckooFilter<T, S> {
    /// Writes a snapshot of the filter, while others go on using it and rotating it.
    ///
    /// **Each key that is in when the call begins is in the snapshot**, in the newest generation that has it then, unless
    /// that generation expires here before it is written. The oldest one is written first, and it alone can miss keys if a
    /// period is at least twice as long as it takes to write one; to miss none, don't save in the moment of a rotation. The
    /// snapshot is of the generation and the tick at which the call began. What is inserted meanwhile may be in or not, and
    /// may then expire sooner after loading than it would have here.
    ///
    /// The snapshot knows the [generation](Self::generation) and the last tick that [`advance_to`](Self::advance_to) was
    /// told: the first one after loading has as many generations expire as periods have passed since.
    ///
    /// Cost: as for [`ConcurrentCuckooFilter::save`](crate::ConcurrentCuckooFilter::save), one table after the other; `8 ·
    /// buckets + 23` bytes for each, and 49.
    ///
    /// # Errors
    /// As for `ConcurrentCuckooFilter::save`.
    ///
    /// ```
    /// # #[cfg(feature = "stable-hash")] {
    /// use concurrent_cuckoo_filter::{RotatingCuckooFilter, StableState};
    ///
    /// let hasher = StableState::with_key(*b"sixteen secrets!");
    /// let builder = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(3);
    /// let seen = builder.hasher(hasher.clone()).build()?;
    /// seen.advance_to(28_500_000);
    /// seen.insert("request-1")?;
    /// let mut snapshot = Vec::new();
    /// seen.save(&mut snapshot)?;
    ///
    /// let loaded = RotatingCuckooFilter::<str, _>::load(&snapshot[..], hasher, 1 << 20)?;
    /// loaded.advance_to(28_500_002);
    /// assert!(!loaded.insert_if_absent("request-1")?, "a replay");
    /// loaded.advance_to(28_500_003);
    /// assert!(!loaded.contains("request-1"), "it has expired");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, mut to: impl std::io::Write) -> std::io::Result<()> {
        // Before anything is written, which may take any time.
        let moment = self.generations.moment();
        let mut sink = Sink::new(&mut to);
        sink.header(Kind::Rotating, &self.hasher)?;
        self.generations.save(moment, &mut sink)?;
        sink.end()
    }

    /// Reads a snapshot that [`save`](Self::save) has written, into a new filter of at most so many bytes.
    ///
    /// Everything is checked as by [`ConcurrentCuckooFilter::load`](crate::ConcurrentCuckooFilter::load).
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. A filter that could not be loaded has forgotten what it had seen: what
    /// follows from that (refuse for a period, or let pass) is for the caller to decide.
    pub fn load(mut from: impl std::io::Read, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
        Self::load_from(Source::new(&mut from, memory_limit, usize::MAX), hasher)
    }

    pub(crate) fn load_from(mut source: Source<'_>, hasher: S) -> Result<Self, LoadError> {
        source.header(Kind::Rotating, &hasher)?;
        let generations = Generations::load(&mut source, size_of::<Self>())?;
        source.end()?;
        Ok(Self { generations, hasher, key: PhantomData })
    }
}

/// Statistics; never the tables, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for RotatingCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingCuckooFilter")
            .field("generation", &self.generation())
            .field("generations", &self.generations())
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for RotatingCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for RotatingCuckooFilter<T, S> {}

/// How many generations there are where no number is asked for.
const DEFAULT_GENERATIONS: usize = 4;

/// Builds a [`RotatingCuckooFilter`]; made by [`RotatingCuckooFilter::builder`].
///
/// ```
/// use concurrent_cuckoo_filter::RotatingCuckooFilter;
///
/// let filter = RotatingCuckooFilter::<str>::builder()
///     .capacity(50_000) // in one period
///     .generations(5)
///     .false_positive_rate(1e-4) // of all of them together
///     .build()?;
/// assert!(filter.capacity() >= 50_000);
/// assert!(filter.max_false_positive_rate() <= 1e-4);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct RotatingBuilder<T: ?Sized, S = ahash::RandomState> {
    /// What is asked for each table; but for the rate, which is that of all.
    of_each: Builder<T, S>,
    generations: usize,
    rotate_when_full: bool,
}

impl<T: ?Sized, S> RotatingBuilder<T, S> {
    /// How many distinct keys *one generation* must be able to hold: those of one period, at its busiest. Required; 0 is
    /// allowed.
    pub fn capacity(self, keys: usize) -> Self {
        Self { of_each: self.of_each.capacity(keys), ..self }
    }

    /// How many generations are live at a time, the current one included: from 2 to 255; 4 if not called.
    ///
    /// See [how long a key lives](RotatingCuckooFilter#how-long-a-key-lives).
    pub fn generations(self, generations: usize) -> Self {
        Self { generations, ..self }
    }

    /// The largest acceptable false-positive rate, of all live generations together: the share of lookups of keys that
    /// are in none of them which may be answered `true`. 0.001 (0.1 %) if not called.
    ///
    /// It holds with every slot taken. Each generation has a share of it, so a filter of four needs about two bits more
    /// for each key than one table would.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        Self { of_each: self.of_each.false_positive_rate(rate), ..self }
    }

    /// Restricts the choice of the layout to one encoding of the buckets: see [`Builder::encoding`].
    pub fn encoding(self, encoding: Encoding) -> Self {
        Self { of_each: self.of_each.encoding(encoding), ..self }
    }

    /// Whether to ask the system for huge pages for tables of 4 MiB or more: see [`Builder::huge_pages`].
    ///
    /// Only with the feature `huge-pages`.
    #[cfg(feature = "huge-pages")]
    pub fn huge_pages(self, wanted: bool) -> Self {
        Self { of_each: self.of_each.huge_pages(wanted), ..self }
    }

    /// Whether an insert that finds the current generation full rotates, once for all that find it full, and goes on in
    /// the new one: no, if not called.
    ///
    /// Then no insert is refused, and keys expire by their number. **The last `(g - 1) · capacity` inserts are
    /// remembered** (but for one chance in a billion for each generation): a rotation by the clock or by hand, if there
    /// are any besides, can make it fewer. And at most `g` times the [`slots`](RotatingCuckooFilter::slots) of a
    /// generation are. Inserts of a key that is in the current generation already do not count towards filling it; a key
    /// that comes again in a later generation takes up room in that one too. So of keys that differ, `(g - 1) · capacity`
    /// are remembered if only [`insert_if_absent`](RotatingCuckooFilter::insert_if_absent) adds them, and perhaps fewer
    /// if `insert` refreshes some.
    ///
    /// "Full" means that the table refuses a key, as [`InsertError::Full`] says: for keys that are not chosen with the
    /// hasher's key in mind, some percent after [`capacity`](RotatingCuckooFilter::capacity). Who knows that key can choose
    /// keys that collide, have a generation refuse some of them when it is nearly empty, and so make the filter rotate as
    /// fast as he likes.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::RotatingCuckooFilter;
    ///
    /// let recent = RotatingCuckooFilter::<u64>::builder().capacity(1000).generations(3).rotate_when_full(true).build()?;
    /// for key in 0..100_000 {
    ///     recent.insert(&key)?;
    /// }
    /// assert!((98_000..100_000).all(|key| recent.contains(&key)));
    /// assert!(recent.len() <= 3 * recent.slots());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rotate_when_full(self, rotate_when_full: bool) -> Self {
        Self { rotate_when_full, ..self }
    }

    /// The hasher of the keys, in place of [`ahash::RandomState`] with random keys of its own: see [`Builder::hasher`].
    pub fn hasher<S2>(self, hasher: S2) -> RotatingBuilder<T, S2> {
        let Self { of_each, generations, rotate_when_full } = self;
        RotatingBuilder { of_each: of_each.hasher(hasher), generations, rotate_when_full }
    }

    /// Builds the filter, one table more than there are generations: the only step that allocates.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if [`capacity`](Self::capacity) was not called;
    /// - [`BuildError::InvalidGenerations`] for a number of generations that is not between 2 and 255;
    /// - [`BuildError::InvalidRate`] for a rate that is not between 0 and 1, both excluded, or no number;
    /// - [`BuildError::RateTooLow`] for a rate that so many generations can't meet, in any layout or in that of the
    ///   encoding asked for;
    /// - [`BuildError::CapacityTooLarge`] for tables that would not fit in the address space together;
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory; with the exceptions that [`Builder::build`]
    ///   names, for each table.
    pub fn build(self) -> Result<RotatingCuckooFilter<T, S>, BuildError> {
        let generations = self.generations;
        if !(MIN_GENERATIONS..=MAX_GENERATIONS).contains(&generations) {
            return Err(BuildError::InvalidGenerations { generations });
        }
        let tables = generations + 1;
        let plan = self.of_each.plan(generations, tables)?;
        let built = Generations::new(plan, generations, self.rotate_when_full);
        let generations = built.ok_or_else(|| {
            let of_one = size_of::<Box<dyn AnyTable>>() + words::memory_for(plan.buckets);
            BuildError::OutOfMemory { bytes: tables * of_one + Gates::memory_for(plan.buckets) }
        })?;
        Ok(RotatingCuckooFilter { generations, hasher: self.of_each.hasher, key: PhantomData })
    }
}

impl<T: ?Sized, S> fmt::Debug for RotatingBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingBuilder")
            .field("of_each", &self.of_each)
            .field("generations", &self.generations)
            .field("rotate_when_full", &self.rotate_when_full)
            .finish()
    }
}
