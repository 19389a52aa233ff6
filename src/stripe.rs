//! CONCURRENT: stripes, the writer locks and version counters that many buckets share; and the protocol that they are for.
//!
//! # The state
//! A table is an array of bucket words. A *class* is a fingerprint together with its *pair*, the two buckets that may hold it. Keys of one
//! class cannot be told apart, and the table is a multiset of classes. The stripe of a class is that of its pair's lower-numbered bucket: a lock, and a counter, the *version*.
//!
//! # The rules
//! 1. A word changes only by compare-exchange (or, in `clear`, exchange), so each change is one step and nothing is torn.
//! 2. Every store that takes a copy of a class out of a word is made under the lock of that class's stripe.
//! 3. **A store that takes a copy out is preceded by a bump of that stripe's version; a store that adds a copy needs none.**
//! 4. A relocation fills the new slot first, then bumps, then clears the old slot, all under the lock.
//! 5. A thread holds one lock at a time, and none while it runs a caller's code. (`clear` alone holds all; it takes them in order.)
//!
//! So an insert that finds room is one compare-exchange: no lock, no version. MemC3 (section 4.3.2) makes its counter odd while an item moves, and its
//! readers wait for an even one; here no state means "in progress", and a writer that is stopped at any point holds up no reader.
//!
//! # A lookup that finds nothing
//! A lookup reads the version (`v0`), the first word (`t1`), the second word (`t2`), the first word again (`t3`), the version again (`v1`).
//! A match in either word is the answer *true*: a copy was there when that word was read. It answers *false* only if neither word matched, both reads of the first
//! word were equal, and `v0 = v1`. Claim: then **neither bucket held a copy at `t2`**. Suppose one did. The second did not, for that is what was read; so the first did, and then:
//!
//! 1. The first word had no copy at `t1` and none at `t3`, so that copy was added after `t1` and taken out before `t3`, by a store `R`.
//! 2. `R` was preceded by a bump `B`, under the same lock. If `B` came after `v0` was read, then the read at `t3` sees `R` or a later change of that word, so it sees `B` too
//!    (pair *a* below), and `v1 ≠ v0`. The lookup repeats.
//! 3. If `B` came before, then its critical section was under way from before `t1` until `R`. It is no relocation out of the first bucket and no `remove`: both look, before the
//!    bump, at the copy that they then take out, and at `t1` there was none; under the lock nobody else could have taken it out meanwhile.
//!    It is no relocation into it either, since `R` takes a copy out. So there is no such `B`.
//!
//! What follows from it: if at every moment of the call one of the two buckets held a copy (the item *was in the filter throughout*), then the answer is *true*. In a relocation,
//! rule 4 keeps a copy in place at every moment. This also covers the unexpected move: with a second key `y` of the class of `x`, `insert(y)` into one bucket
//! and `remove(y)` from the other act together as a relocation of `x` that never was one; that is why `remove` bumps.
//!
//! "At every moment" is meant in the order of each word's changes and of happens-before. For a copy that moved before the lookup began (`B` is seen by `v0`), pair *b* shows the lookup where it went.
//!
//! A lookup repeats only after another thread has changed a word or bumped a version, which is progress of that thread: lookups are lock-free.
//!
//! # Linearization points
//! | operation | takes effect |
//! |---|---|
//! | `contains` | true: at the read that matched; false: at `t2` of the last round |
//! | `insert` | at its compare-exchange |
//! | `remove` | true: at the compare-exchange that takes the copy out; false: at its read of the first bucket (under the lock copies are only added, so one that was in neither bucket when read was in neither then) |
//! | `count` | at the moment between its two reads at which the number was right: under the lock copies are only added, one by one |
//! | `insert_if_absent` | false: where it saw a copy; true: at its compare-exchange, or, if a plain `insert` of the class took effect since it looked, just before the first of these. Only lookups can run in between, and those that see that copy answer the same either way |
//! | `clear` | not one step: each copy present when it begins is taken out at some moment of the call |
//!
//! A relocation is a change of place and no change of the multiset. Between its two stores there are two copies of one item; `count`, `remove` and `insert_if_absent` cannot
//! see that, for they hold the lock, and for `contains` it makes no difference.
//!
//! # "Full" is never the fault of others
//! An insert that finds both buckets full searches for a path (`path.rs`) and carries it out hop by hop. Each hop looks again, under the lock, whether its fingerprint is still there; a path that has gone stale is
//! searched anew. Where a search finds no path, the reason may be a hole that moved behind its back, or a relocation half done, whose item takes up two slots. So the insert goes once through
//! all locks, searches again, and goes through all locks again. If no version has changed between the two passes, then no copy left a bucket during the second search, each bucket it saw full was
//! full until the end, and the table was full in fact. (In a table of more buckets than a search can reach, where other threads bump versions all the time far from the
//! buckets in question, it is enough that two searches with a pass between them saw the very same words.)
//!
//! # Orderings
//! | pair | release | acquire | carries |
//! |---|---|---|---|
//! | a | `Table::take`, `clear`: the store that takes a copy out | `Table::look` | the bump before it: a reader of the emptied word sees the new version |
//! | b | `Guard::bump` | `Stripe::version`, a lookup's first read of it | the copy in the new place: a reader of the new version sees it |
//! | c | `Table::put` | `Table::look` | a copy that another thread has seen stays seen: who learns of it and then removes its twin passes it on through *a* and *b* |
//! | d | the lock | the lock | what the last holder saw and did |
//!
//! All changes of a word are read-modify-writes, so each release reaches also those who read a later value of that word. A lookup's second read of the version needs no ordering of its own: the acquire reads before it
//! keep it after them, and by pair *a* it cannot be stale where it matters. Each row has a control in `loom-tests` that fails with the row's ordering relaxed.

use crate::fault::{self, Fault};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The most stripes a table has. A stripe is 16 bytes; all of them fit in half an L1 cache. (A model's threads have small stacks, and `clear`
/// keeps a guard for each stripe there.)
pub(crate) const MAX_STRIPES: usize = if cfg!(ccf_loom) { 4 } else { 1024 };

/// One writer lock and one version counter.
#[derive(Debug)]
pub(crate) struct Stripe {
    version: AtomicU64,
    lock: Mutex<()>,
}

/// A locked stripe: the right to take copies of its classes out of their buckets.
pub(crate) struct Guard<'a> {
    version: &'a AtomicU64,
    /// `None` only where a model leaves the lock out.
    _lock: Option<MutexGuard<'a, ()>>,
}

impl Stripe {
    pub(crate) fn new() -> Self {
        Self { version: AtomicU64::new(0), lock: Mutex::new(()) }
    }

    /// The version at the start of a lookup.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        // Acquire, with `bump`: who sees a bump sees the copies put in place before it.
        self.version.load(fault::ordering(Fault::RelaxedVersionLoad, Ordering::Acquire))
    }

    /// Whether the version is still `version`, at the end of a lookup.
    #[inline(always)]
    pub(crate) fn is_still(&self, version: u64) -> bool {
        // Relaxed: the lookup's acquire reads of words come before it, and bring along the bumps that matter.
        self.version.load(Ordering::Relaxed) == version
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_> {
        Guard { version: &self.version, _lock: Some(self.lock.lock()) }
    }

    /// Locks, unless the model leaves that out.
    #[inline]
    pub(crate) fn lock_unless(&self, fault: Fault) -> Guard<'_> {
        if fault::injected(fault) { Guard { version: &self.version, _lock: None } } else { self.lock() }
    }
}

impl Guard<'_> {
    /// Announces that a copy is about to be taken out of its bucket.
    #[inline]
    pub(crate) fn bump(&self) {
        // Relaxed: only the holder of the lock writes the version. A `u64` counts 500 years of bumps at one a nanosecond.
        let version = self.version.load(Ordering::Relaxed);
        // Release, with `Stripe::version`: the copy in the new place comes first.
        self.version.store(version.wrapping_add(1), fault::ordering(Fault::RelaxedBump, Ordering::Release));
    }

    /// How many bumps there have been.
    #[inline]
    pub(crate) fn bumps(&self) -> u64 {
        // Relaxed: the lock orders it.
        self.version.load(Ordering::Relaxed)
    }
}
