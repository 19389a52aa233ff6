//! The filter that forgets whole periods: it hashes keys and asks its generations.

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
/// Use it for replay protection, idempotency keys and sliding-window de-duplication. Its memory is constant. Many
/// threads share it as they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter). It forgets all keys of
/// a period in one step, and readers wait for no other thread meanwhile.
///
/// Keys are added to the *current generation*. A *rotation* begins a new generation, and the oldest generation
/// expires as a whole. You choose when to rotate: by the clock, with [`advance_to`](Self::advance_to); by hand, with
/// [`rotate`](Self::rotate); by the number of keys, with
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
/// Let `g` be the number of [generations](crate::RotatingBuilder::generations), and a *period* the time between two
/// rotations. From its last [`insert`](Self::insert) on, **a key is found for at least `g - 1` whole periods and at
/// most `g`**: for the rest of the period in which it was inserted, and for `g - 1` more. (After that it is an absent
/// key like any other, so lookups still find it by mistake now and then.)
///
/// The exact promise: an insert that returns `Ok` adds the key at one moment of its call. Let `b` be the generation
/// that is current at that moment. A lookup that begins later, and ends before generation `b + g` begins, finds the
/// key. No lookup that begins after generation `b + g` has begun finds it, unless the key was inserted again. The
/// second promise has one exception. If a thread is stopped in the middle of an insert for `g` rotations or more, the
/// key may be found for one period longer. If that insert never returns, others may still find the key for up to `g`
/// periods.
///
/// So to remember a key for at least the time `W`, rotate every `W / (g - 1)`. The filter then forgets the key after
/// at most `W · g / (g - 1)`. More generations are more exact and need less memory, but each lookup of an absent key
/// looks into all of them. There are `g + 1` tables, since one is being cleared while `g` are in use. Each has room
/// for the keys of one period. The table shows what that takes at the default rate of 0.1 %, for keys that come
/// evenly:
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
/// - **A key that is present throughout a call of [`contains`](Self::contains) is found**, whatever rotates
///   meanwhile. This holds even if the key is refreshed just in time, so that its old copy expires during the lookup.
/// - A rotation takes effect in one step: all keys of the oldest generation expire at the same moment.
/// - `insert`, [`insert_if_absent`](Self::insert_if_absent), `contains` and rotations each take effect at some moment
///   of their call, in an order that all threads agree on. There is one exception: an insert that a rotation
///   overtakes adds its key twice, and others may find the key from the first time on. [`clear`](Self::clear) is not
///   one step, and [`len`](Self::len) is exact only when nothing changes.
/// - Lookups take no lock, write no shared memory and wait for no other thread. They look again only if a rotation
///   has come, or a copy has just moved.
/// - No operation on a key allocates after construction, except what changes put aside while a save or a digest runs,
///   and a thread's first wait for a lock. No code of the caller runs while a lock is held.
///
/// If keys live for different times, or if a lookup of an absent key must not look into all generations, take an
/// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter). The page [`expiry`](crate::guide::expiry) compares the two.
///
/// There is no `remove`. Keys share fingerprints, so a removal might take out a younger key's copy instead of the
/// intended one, and the filter would forget that key too soon.
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

    /// Adds the key to the current generation, unless that already has it. If the key is in an older generation, its
    /// life begins again.
    ///
    /// Cost: for a key that is in the current generation, a lookup in that one. Otherwise the call also locks a
    /// stripe and writes a cache line. If both buckets of the key are full, it searches as in a
    /// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::insert). If a rotation happens during the call, it
    /// does all of this once more. With [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full), the insert
    /// that finds a generation full pays for a [rotation](Self::rotate).
    ///
    /// # Errors
    /// Fails with [`InsertError::Full`] if the current generation has no room for the key, but never with
    /// `rotate_when_full`. Nothing has changed then, with one exception: if a rotation came during the call, the call
    /// may have added the key to an earlier generation.
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

    /// Adds the key to the current generation if no live generation has it, and returns `true` if it added the key.
    ///
    /// It does so in one step: if many threads race to add one absent key, exactly one gets `true`, also while others
    /// rotate. A present key is left as it is and expires when it would have: its life is counted from the call that
    /// got `true`. It may expire at the very moment when another call gets `false` for it. That call is still right
    /// that the key had been seen.
    ///
    /// With [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full), **a call that gets `false` may have
    /// rotated**. This happens if the call finds the key absent and the generation full, and rotates. A plain
    /// [`insert`](Self::insert) of another thread may then add the key, or a look-alike, to the new generation first.
    ///
    /// A share of the absent keys, the [false-positive rate](Self::false_positive_rate), is mistaken for another key,
    /// and is not added. If that would lose something, such as a message that is taken for a duplicate, build the
    /// filter with a lower rate.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise that of two lookups and an
    /// [`insert`](Self::insert), with one of up to 128 locks held. All keys with the same buckets share that lock.
    /// (So with `rotate_when_full`, while the call that rotates clears a table, other such calls for one key in 128
    /// wait for it.)
    ///
    /// # Errors
    /// Fails as [`insert`](Self::insert) does, if the key is absent.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// assert!(seen.insert_if_absent("request-1")?);
    /// seen.rotate();
    /// assert!(!seen.insert_if_absent("request-1")?, "a replay, which does not prolong its life");
    /// seen.rotate();
    /// assert!(seen.insert_if_absent("request-1")?, "it has expired");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    insert_if_absent;

    /// Returns whether the key is in a live generation: `false` if it is definitely in none, `true` if it is probably
    /// in one. The share of absent keys that get `true` is the [false-positive rate](Self::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do. The call is lock-free: it takes
    /// no lock, writes no shared memory and waits for no other thread. It looks again only if another thread has just
    /// rotated, or moved something.
    ///
    /// Cost: two cache lines for each generation, from the current one back to the newest that holds the key. For an
    /// absent key, two for every generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.insert("a")?;
    /// seen.rotate();
    /// assert!(seen.contains("a"));
    /// seen.rotate();
    /// assert!(!seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    contains;
}

batches! {
    RotatingCuckooFilter:
    /// Where the tables are larger than the cache, these are two to six times as fast as one call for each key
    /// (`cargo bench --bench batches`). While the filter works on the first keys, the buckets of the next ones are on
    /// their way from memory. In the cache, lookups of present keys are 2.5 times as fast, and the other operations
    /// gain little.
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

    /// Begins a new generation and, in the same step, expires the oldest one. Returns the number of the new generation.
    ///
    /// Rotations of all callers add up: two threads that rotate at the same time rotate twice. To rotate once in each
    /// period, whichever thread comes first, use [`advance_to`](Self::advance_to).
    ///
    /// Cost: one pass over the table that has expired (some 90 ms for 100 MB). This thread clears it after that step,
    /// while others use the new generation. Only two kinds of calls wait until that is done: another rotation, and an
    /// insert that `g` rotations have overtaken.
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

    /// Sets the clock of the filter to `tick`. The filter rotates as many times as `tick` is greater than the
    /// greatest tick before. Returns what the call did.
    ///
    /// A tick is the number of periods that have passed on the caller's clock: for a new generation every minute,
    /// `unix_seconds / 60`. The first call only sets the origin, and rotates nothing. If the tick is greater by `n`,
    /// the `n` oldest generations expire. So after a pause of `g` periods or more, everything expires. (`u64::MAX`
    /// counts as `u64::MAX - 1`.)
    ///
    /// **Which clock.** Take one that goes on when the process ends: the time since 1970. A filter that is saved and
    /// loaded goes on from its last tick. Do not use a clock that begins at 0 in each process, such as
    /// `start.elapsed().as_secs() / 60`. A loaded filter would wait until that clock reaches the old tick, and
    /// nothing would expire until then.
    ///
    /// **A clock that goes back** stops the rotations until it has caught up. A tick below the greatest one before
    /// changes nothing, and the call returns [`Advance::Behind`]. After a single tick from the far future, the same
    /// happens for a long time. [`Stats::clock_steps_back`] and [`Stats::clock_jumps`] show both cases. If the clock
    /// will not catch up, begin a new one with [`restart_clock`](Self::restart_clock). `Behind` by 1, now and then,
    /// is harmless: if two threads read the clock around the end of a period, one of them calls late.
    ///
    /// When the call returns, the rotations have taken effect, whichever thread has made them. A thread that calls it
    /// and then inserts, inserts into the generation of that tick, or a later one. **Time stands still while nobody
    /// calls it.** So call it before each operation, or at intervals from a task of your own. Many threads may call
    /// it.
    ///
    /// Cost: one load if nothing is due. The thread that rotates clears the table that has expired, as in
    /// [`rotate`](Self::rotate). Others that bring the same tick do not wait for that. After a pause of several
    /// periods it clears as many tables, up to `g`, and the others wait for all but the last.
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

    /// Begins a new clock, which now shows `tick`. The next rotation comes with a greater tick, whatever ticks there
    /// were before. The call itself rotates nothing, and nothing expires by it.
    ///
    /// Use it for a filter whose clock has jumped ahead by mistake, or for one that was loaded from a snapshot and
    /// has another clock from now on. After the call, no thread should bring ticks of the old clock.
    ///
    /// **How long keys live then**: the next rotation comes when the new clock shows `tick + 1`. The old clock might
    /// have reached its next tick later or earlier. So the present keys live up to one period longer or shorter than
    /// they would have. If a shorter life does harm, as in replay protection, pass the present tick plus 1. They then
    /// live for up to two periods longer, and [`advance_to`](Self::advance_to) returns [`Advance::Behind`] by one
    /// until that tick has come.
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

    /// Returns the tick that the filter's clock shows, or `None` if there was no tick yet. It is the greatest tick
    /// given to [`advance_to`](Self::advance_to) since [`restart_clock`](Self::restart_clock), or that of
    /// `restart_clock`. In a filter that was loaded, it may be ahead of the caller's clock.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// assert_eq!(seen.tick(), None);
    /// seen.advance_to(28_500_000);
    /// seen.advance_to(28_499_999); // behind, so it changes nothing
    /// assert_eq!(seen.tick(), Some(28_500_000));
    /// ```
    #[must_use]
    pub fn tick(&self) -> Option<u64> {
        self.core.tick()
    }

    /// Returns how many rotations there have been, for whatever reason. That is the number of the current generation,
    /// from 0 on.
    ///
    /// A jump of [`advance_to`](Self::advance_to) counts as no more rotations than there are generations.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// seen.rotate();
    /// assert_eq!(seen.generation(), 1);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.core.generation()
    }

    /// Returns how many generations are live: `g` in this documentation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// assert_eq!(RotatingCuckooFilter::<str>::with_capacity(1000).generations(), 4); // the default
    /// ```
    #[must_use]
    pub fn generations(&self) -> usize {
        self.core.live_generations()
    }

    /// Returns how many keys are in the live generations. A key that was inserted again in a later generation counts
    /// once for each.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted. Cost: it adds up at most 64 counters for each generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.insert("a")?;
    /// seen.rotate();
    /// seen.insert("a")?; // in this generation too
    /// assert_eq!(seen.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns how many keys the filter is made for, in all live generations together: at least as many as were asked
    /// for.
    ///
    /// Each generation takes an equal share of them, [`generation_capacity`](Self::generation_capacity), and refuses
    /// keys beyond that, even if the others are empty.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// assert!(seen.capacity() >= 1000);
    /// assert_eq!(seen.capacity(), 4 * seen.generation_capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generations() * self.generation_capacity()
    }

    /// Returns how many keys *one generation* is made for.
    ///
    /// That many distinct keys fit, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity): the
    /// probability that an insert is refused before is below one in a billion for each generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().generation_capacity(1000).build()?;
    /// assert!(seen.generation_capacity() >= 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn generation_capacity(&self) -> usize {
        self.core.any_table().capacity()
    }

    /// Returns how many slots all live generations have together, each for one fingerprint. The filter can never hold
    /// more keys than that.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.slots() >= seen.capacity());
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.generations() * self.core.any_table().slots()
    }

    /// Returns the memory that the filter takes up, in bytes, which never changes. It leaves out two things: the
    /// decode table of up to 256 KiB that all semi-sorted filters share, and the name of a schema that the caller has
    /// given, up to 255 bytes.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// let before = seen.memory_usage();
    /// seen.insert("a")?;
    /// seen.rotate();
    /// assert_eq!(seen.memory_usage(), before);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// Returns the expected false-positive rate at the present load, from 0 to 1. It is the share of lookups that are
    /// answered `true`, among lookups of keys that are in no live generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// seen.insert("a")?;
    /// assert!(seen.false_positive_rate() > 0.0);
    /// assert!(seen.false_positive_rate() <= seen.max_false_positive_rate());
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let table = self.core.any_table();
        let slots = table.slots() as f64;
        rate_of_any(self.core.lens().map(|len| table.false_positive_rate(len as f64 / slots)))
    }

    /// Returns the expected false-positive rate with every slot of every generation taken. It is at most the rate
    /// that the builder was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000); // asks for 0.1 %
    /// assert!(seen.max_false_positive_rate() <= 0.001);
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        let of_each = self.core.any_table().false_positive_rate(1.0);
        rate_of_any(iter::repeat_n(of_each, self.generations()))
    }

    /// Returns all figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// `capacity`, `slots` and `len` are those of all live generations together. `tables`, `memory_usage` and the
    /// counts of events include the spare table.
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
            // If a rotation made room for what a generation had refused, the filter did not refuse it.
            inserts_refused: self.core.inserts_refused(),
            clock_steps_back: clock.steps_back,
            clock_jumps: clock.jumps,
            ..of_all
        }
    }

    /// Removes all keys that are in the filter when the call begins, of all generations.
    ///
    /// The current generation stays the current one, and so do the ticks. For other threads this is not one step.
    /// During the call they may find some keys gone and others still present, and a key that is inserted during the
    /// call may be removed or not.
    ///
    /// Cost: one pass over all tables, with all stripes of one locked at a time.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// seen.insert("a")?;
    /// seen.rotate();
    /// seen.clear();
    /// assert_eq!((seen.len(), seen.generation()), (0, 1));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Shows statistics, but not the tables and not the hasher, whose key is a secret.
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
