//! The filter that forgets whole periods: it hashes keys and asks its generations.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::{BatchKey, Sealed};
use crate::filter::membership::MembershipFilter;
use crate::filter::shared::batches::{batches, blocks};
use crate::filter::shared::operations::{membership, operation_on_a_key, operations_on_hashes, operations_on_keys};
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::tables::generations::Generations;

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
    pub(in crate::filter) core: Generations,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
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

membership!(RotatingCuckooFilter);

impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(core: Generations, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }

    /// The tables take hashes as they are.
    #[inline(always)]
    fn prepared(hash: u64) -> u64 {
        hash
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
