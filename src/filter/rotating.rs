//! The filter that forgets: from keys and ticks to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::batches::{batches, blocks};
use crate::filter::membership::MembershipFilter;
use crate::filter::operations::{membership, operation_on_a_key, operations_on_hashes, operations_on_keys, properties};
use crate::filter::sealed::Sealed;
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::any::AnyTable;
use crate::table::clock::Advance;
use crate::tables::generations::Generations;
use crate::word::layout::rate_of_any;

/// A cuckoo filter whose keys expire by generations: "was this seen within the last N minutes?"
///
/// For replay protection, idempotency keys, sliding-window de-duplication. Memory is constant, many threads share it as
/// they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), and to forget a period's keys is one step,
/// in which readers wait for nobody.
///
/// Keys are added to the *current generation*. A *rotation* begins a new one, and the oldest generation expires, as a
/// whole. Who rotates, and when, is the caller's choice: by the clock, with [`advance_to`](Self::advance_to); by hand,
/// with [`rotate`](Self::rotate); by the number of keys, with
/// [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full). The filter starts no thread and reads no clock.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use concurrent_cuckoo_filter::RotatingCuckooFilter;
///
/// // Requests of the last 15 minutes: 4 generations, and a new one every 5 minutes.
/// let seen = RotatingCuckooFilter::<str>::builder().generation_capacity(100_000).generations(4).build()?;
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
/// Let `g` be the number of [generations](crate::RotatingBuilder::generations), and a *period* the time between two rotations.
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
/// - No operation allocates after construction (but for a save, and what changes put aside while one is
///   running), and no code of the caller's runs while a lock is held.
///
/// Where keys live for different times, or a lookup of an absent key is not to look into all generations, take an
/// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
///
/// There is no `remove`. Keys share fingerprints, so a removal might take a younger key's copy in place of the one that
/// was meant, and that key would be forgotten too soon.
pub struct RotatingCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(super) core: Generations,
    pub(super) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(super) schema: Schema,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    RotatingCuckooFilter:

    /// Adds the key to the current generation, unless it is in that already. If it is in an older one, its life begins
    /// anew.
    ///
    /// Cost: for a key that is in the current generation, a lookup in that one; otherwise also a stripe locked and a
    /// cache line written, and where both buckets of the key are full a search, as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::insert). If a rotation comes in between, the same once
    /// more. With [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full), the insert that finds a generation full pays
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
    insert;

    /// Adds the key to the current generation unless it is in a live one: `true` if it was added.
    ///
    /// In one step: of many threads that race to add one key that is absent, exactly one gets `true`, also while others
    /// rotate. A key that is in is left as it is, and expires when it would have: its life is counted from the call that
    /// got `true`. It may expire in the very moment when another call gets `false` for it: it had been seen.
    ///
    /// With [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full), **a call that gets `false` may have rotated**. It has
    /// if it found the key absent and the generation full, and if a plain [`insert`](Self::insert) then added the key, or one
    /// that looks like it, to the new generation first.
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
    insert_if_absent;

    /// Whether the key is in a live generation: `false` is certain, `true` is wrong for a share of absent keys, the
    /// [false-positive rate](Self::false_positive_rate).
    ///
    /// A key that is in throughout the call is found, whatever other threads do. Lock-free: it takes no lock, writes no
    /// shared memory and waits for nobody; it looks again only if another thread has just rotated, or moved something.
    ///
    /// Cost: two cache lines for each generation up to the newest one that holds the key, for an absent key of all.
    contains;
}

batches! {
    RotatingCuckooFilter:
    /// Where the tables are larger than the cache, these are two to six times as fast as one call for each key (`cargo bench
    /// --bench batches`): while the first keys are looked at, the buckets of the next ones are on their way from memory. In
    /// the cache, lookups of present keys are twice as fast, and the rest gains little.
}

operations_on_hashes!(RotatingCuckooFilter);

properties!(RotatingCuckooFilter made by "with_capacity(1000)");

membership!(RotatingCuckooFilter);

impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    pub(super) fn from_parts(core: Generations, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// The tables take hashes as they are.
    #[inline(always)]
    fn prepared(hash: u64) -> u64 {
        hash
    }

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
        self.core.rotate()
    }

    /// Brings the filter up to the time: rotates as many times as `tick` is greater than the greatest tick before. Says what
    /// came of it.
    ///
    /// A tick is the number of periods that have passed on the caller's clock: for a new generation every minute,
    /// `unix_seconds / 60`. The first call only sets the origin, and rotates nothing. A tick `n` greater has the last `n`
    /// generations expire: after a pause of `g` periods or more, everything. (`u64::MAX` counts as `u64::MAX - 1`.)
    ///
    /// **Which clock.** Take one that goes on where the process ends: the time since 1970. A filter that is saved and loaded
    /// goes on from the tick it was told last. Driven by a clock that begins at 0 with each process
    /// (`start.elapsed().as_secs() / 60`), it would wait for the old tick to come again, and nothing would expire until then.
    ///
    /// **A clock that goes back** stops the rotations until it has caught up: a tick below the greatest one before changes
    /// nothing, and the answer is [`Advance::Behind`]. The same happens for a long time after a single tick from the far
    /// future. Both show in [`Stats::clock_steps_back`] and [`Stats::clock_jumps`]; if the clock will not catch up, begin a
    /// new one with [`restart_clock`](Self::restart_clock). Behind by one, now and then, is nothing to worry about: of two
    /// threads that read the clock around the end of a period, one comes late.
    ///
    /// When it returns, the rotations have taken effect, whichever thread has made them: a thread that calls it and then
    /// inserts, inserts into the generation of that tick, or a later one. **Time stands still while nobody calls it.** So
    /// call it before each operation, or from a task of your own every so often; many threads may.
    ///
    /// Cost: one load where nothing is due. The thread that rotates clears the table that has expired, as in
    /// [`rotate`](Self::rotate), and others that bring the same tick need not wait for that; after a pause of several
    /// periods it clears as many tables, up to `g`, and they wait for all but the last.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(3).build()?;
    /// assert_eq!(seen.advance_to(28_500_000), Advance::Origin);
    /// seen.insert("a")?;
    /// assert_eq!(seen.advance_to(28_500_002), Advance::Forward { ticks: 2 });
    /// assert!(seen.contains("a"));
    /// assert_eq!(seen.advance_to(28_500_001), Advance::Behind { by: 1 }); // a clock that goes back
    /// assert!(seen.contains("a"));
    /// seen.advance_to(28_500_003);
    /// assert!(!seen.contains("a"));
    /// assert_eq!(seen.generation(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn advance_to(&self, tick: u64) -> Advance {
        self.core.advance_to(tick)
    }

    /// Begins a new clock, which shows `tick` now: the next rotation comes with a greater tick, whatever ticks there were
    /// before. Nothing expires by it, and nothing is rotated.
    ///
    /// For a filter whose clock has jumped ahead by mistake, or that was loaded from a snapshot and is driven by another
    /// clock from now on. No thread should bring ticks of the old clock any more.
    ///
    /// **How long keys live then**: the next rotation comes when the new clock shows `tick + 1`, and the old one might have shown
    /// that later or earlier. So the keys that are in live for up to one period longer than they would have, or shorter. Where
    /// they must not live shorter, as for replay protection, pass the tick after the present one: they live for up to two
    /// periods longer then, and [`advance_to`](Self::advance_to) answers [`Advance::Behind`] by one until it has come.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.advance_to(28_500_000);
    /// seen.insert("a")?;
    /// assert_eq!(seen.advance_to(0), Advance::Behind { by: 28_500_000 });
    /// seen.restart_clock(0);
    /// seen.advance_to(1);
    /// assert!(seen.contains("a"));
    /// seen.advance_to(2);
    /// assert!(!seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restart_clock(&self, tick: u64) {
        self.core.restart_clock(tick);
    }

    /// The tick that the filter's clock shows, if there was any: the greatest one that [`advance_to`](Self::advance_to) was told
    /// since [`restart_clock`](Self::restart_clock), or that of `restart_clock`. Of a filter that was loaded, it may be ahead of the caller's clock.
    #[must_use]
    pub fn tick(&self) -> Option<u64> {
        self.core.tick()
    }

    /// How many rotations there have been, by whatever reason: the number of the current generation, from 0 on.
    ///
    /// A jump of [`advance_to`](Self::advance_to) counts as no more rotations than there are generations.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.core.generation()
    }

    /// How many generations are live: `g` in these pages.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.core.live_generations()
    }

    /// How many keys are in the live generations. A key that was inserted anew in a later one counts once for each.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may
    /// not be counted. It adds up at most 64 counters for each generation.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many keys the filter is made for, in all live generations together: at least as many as were asked for.
    ///
    /// Each generation takes an equal share of them, [`generation_capacity`](Self::generation_capacity), and refuses keys
    /// beyond that however empty the others are.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generations() * self.generation_capacity()
    }

    /// How many keys *one generation* is made for.
    ///
    /// So many distinct keys fit, as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity): the probability that an insert is refused
    /// before is below one in a billion for each generation.
    #[must_use]
    pub fn generation_capacity(&self) -> usize {
        self.core.any_table().capacity()
    }

    /// How many slots all live generations have together, each for one fingerprint: the most keys that they can ever take.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.generations() * self.core.any_table().slots()
    }

    /// The memory that the filter takes up, in bytes, which never changes: all of it, but for the decode table of up to
    /// 256 KiB that all semi-sorted filters share, and for the name of a schema that the caller has given, up to 255 bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of keys that are in no live generation
    /// which are answered `true`, from 0 to 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let table = self.core.any_table();
        let slots = table.slots() as f64;
        rate_of_any(self.core.lens().map(|len| table.false_positive_rate(len as f64 / slots)))
    }

    /// The expected false-positive rate with every slot of every generation taken; at most what the builder was asked
    /// for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        let of_each = self.core.any_table().false_positive_rate(1.0);
        rate_of_any(iter::repeat_n(of_each, self.generations()))
    }

    /// All figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// `capacity`, `slots` and `len` are those of all live generations together. `tables`, `memory_usage` and the counts of
    /// events include the spare table.
    ///
    /// Cost: it adds up at most 64 cache lines for each table. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// seen.insert("a")?;
    /// let stats = seen.stats();
    /// assert_eq!((stats.tables, stats.len, stats.capacity), (5, 1, seen.capacity()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let len = self.len();
        let rates = (self.false_positive_rate(), self.max_false_positive_rate());
        let of_all =
            Stats::of(self.core.tables().map(|table| table as &dyn AnyTable), self.memory_usage(), rates.0, rates.1);
        let clock = self.core.clock_counts();
        Stats {
            len,
            capacity: self.capacity(),
            slots: self.slots(),
            load_factor: len as f64 / self.slots() as f64,
            // Where a rotation made room for what a generation had refused, the filter did not refuse it.
            inserts_refused: self.core.inserts_refused(),
            clock_steps_back: clock.steps_back,
            clock_jumps: clock.jumps,
            ..of_all
        }
    }

    /// Removes all keys that are in the filter when the call begins, of all generations.
    ///
    /// The current generation stays the current one, and so do the ticks. Not one step for others: meanwhile they may
    /// find some keys gone and others still there, and whether a key that is inserted during the call is removed too is
    /// open.
    ///
    /// Cost: one pass over all tables, with all stripes of one locked at a time.
    pub fn clear(&self) {
        self.core.clear();
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
