//! CONCURRENT: stripes, the writer locks and version counters that many buckets share; and the protocol that they are
//! for.
//!
//! # The state
//! A table is an array of bucket words. A *class* is a fingerprint together with its *pair*, the two buckets that may
//! hold it. Keys of one class cannot be told apart, so the table is a multiset of classes. The stripe of a class is
//! a lock, and a counter, the *version*. Its pair chooses it: the sum of the two buckets' numbers modulo the number of
//! buckets (`Item::sum`, which the arithmetic of `word/geometry.rs` has at hand). A table has one stripe for sixteen
//! buckets, and at most [`MAX_STRIPES`]. So pairs share stripes, as in MemC3, which costs a reader a needless second look
//! now and then. (In a maplet, copies also have values. `table/values.rs` says what that adds.)
//!
//! # The rules
//! 1. A word changes by compare-exchange (in `clear`, by exchange): each change is one step, and nothing is torn.
//! 2. A store that takes a copy of a class out of a word is made under the lock of the class's stripe.
//! 3. **A store that takes a copy out is preceded by a bump of the stripe's version, under the same lock. A store that
//!    adds a copy needs neither.**
//! 4. A relocation fills the new slot, then bumps, then clears the old slot, all under the lock. So there is a copy at
//!    every moment.
//! 5. A thread holds one of these locks at a time, and none while a caller's code runs. (Only `clear`, a save for a
//!    moment, and an insert that others keep disturbing hold all. They take them in order.) So no deadlock. While a table is being saved, every change has an
//!    addition, and there is one more lock, which is taken last: see `table/save.rs`.
//!
//! An insert that finds room is one compare-exchange: no lock (except while a save is running), no version. MemC3 (section 4.3.2) makes its counter odd
//! while an item moves, and its readers wait for it to be even again; here nothing means "in progress", and a writer
//! that is stopped, at any point, holds up no reader.
//!
//! # Why no lookup misses a copy that was there throughout
//! A lookup reads the version (`n`), the first word, the second word, the version again. If the version was `n` both times,
//! it answers *true* if either word matches, and else *false*. If not, it looks again. (A match would be enough for *true*,
//! whatever the version, since a copy was there when that word was read. From the second look on it is; the first one
//! compares the versions before the words, which takes fewer registers.)
//!
//! Number the critical sections of the stripe that bump by their bumps. For a lookup that answers *false*:
//!
//! 1. *It saw no take of a section after `n`.* To read a word that such a section, or anyone after it, has changed is
//!    to see its bump (pair *a* below), and the second version would not have been `n`.
//! 2. *It saw everything that sections before `n` did, and what section `n` did before its bump.* It read `n` from that
//!    bump (pair *b*), and the lock passes the rest on.
//! 3. *Section `n` is no relocation of the class.* That has put its copy into the new bucket before the bump (rule 4),
//!    so by 2 the lookup saw that copy there, unless a later section took it, which 1 excludes.
//! 4. So of all copies added before the lookup began (in the sense of happens-before), and so visible to it, each was
//!    taken by a section before `n`, or by section `n` itself, which then is a `remove` (or `clear`) of this class.
//!
//! Hence a copy that was in the filter throughout would have been seen: the answer *false* is never wrong. This covers
//! the move that is no relocation: with a second key `y` of the class of `x`, `insert(y)` into one bucket and
//! `remove(y)` from the other together carry the only copy from here to there. It is why `remove` bumps: without that,
//! two such moves hide `x` from a lookup in between.
//!
//! A lookup in a batch is made of the same steps in the same order. Its words are compared, what it has found is decoded,
//! and a look that was disturbed is repeated, after the first looks for other keys, which makes no difference to it.
//!
//! A lookup looks again only after a bump, that is, after a step of some writer's: it takes no lock, waits for nobody, and
//! writes nothing but, when it looks again, a count that nothing depends on (`table/counters.rs`). (It is the steps of writers that are counted here, not their operations: two inserts can, in
//! theory, take the same hole from each other again and again.)
//!
//! # Linearizability
//! Over the multiset of classes. Classes do not interact, but for the room they take up. First each class by itself,
//! where "before" is happens-before:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert` | at its compare-exchange; after each lookup that answered *false* without having seen it |
//! | `remove`, `count` | in the order of their critical sections. Under the lock no copy is taken or moved, only added; so `count` is right at a moment between its two reads, and a *false* of `remove` at its first read |
//! | `contains`, *true* | at the read that matched |
//! | `contains`, *false* | after section `n`, and before each insert of the class that it has not seen |
//! | `insert_if_absent` | *false*: when it saw a copy. *true*: after its look and after each *false* that has not seen it, before each plain `insert` of the class that its look has not seen, and otherwise at its compare-exchange. No other `insert_if_absent`, `remove` or `count` of the class can come in between |
//! | an insert that fails | at the moment without room that the section on "full" describes; for `insert_if_absent` the count of copies, which is 0, lies in the same window |
//! | `clear` | not one operation, but the removal of each copy that is there when it begins, each at some moment of the call |
//!
//! These orders agree: an insert that is ordered after a *false*, or after a `remove` that this *false* has seen, was
//! not visible to them, so it had not ended when they began. A relocation is a change of place, not of the multiset;
//! for a moment there are two copies of one item, which `count`, `remove` and `insert_if_absent` cannot see, since they
//! hold the lock, and which makes no difference to `contains`.
//!
//! ## Across keys
//! All accesses to words are `SeqCst`, so they have one order, on all threads and over all classes. Call an operation
//! earlier than another if its last access comes before the other's first. In that order too, what was added before a
//! lookup's first access is seen, and so is the bump of what was taken out before; so the orders of the classes respect
//! it, and classes that are each linearizable in one such order are so together (Herlihy and Wing, *Linearizability*,
//! 1990, section 3.1). Without it, of two threads that each insert a key and then look for the other's, both could miss
//! it. On x86-64 this costs nothing: loads and compare-exchanges are the same instructions as with acquire and release.
//!
//! # "Full" is never the fault of others
//! An insert that finds both buckets full searches for a path (`plan/path.rs`) and carries it out hop by hop. Each hop looks
//! again, under the lock, whether its fingerprint is still there and whether there is room; a path that has gone stale
//! is searched anew. A hop that was carried out is no harm, whatever comes of the rest.
//!
//! Where a search finds no path, the reason may be a hole that moved behind its back, or a relocation half done, whose
//! item takes up two slots. So the insert passes once through all locks, searches again, and passes through all locks
//! again. If no version has changed between the two passes, then no copy left its bucket during the second search, each
//! bucket that it saw full was full until the end, and so there was a moment without any path.
//!
//! Others can disturb each of these searches. So after a few the insert takes the locks of all stripes, in order, and keeps
//! them (`Table::insert_undisturbed`). From then on nobody else takes a copy out (rule 2), and no relocation is half done
//! (rule 4). Others can only add. It searches once more:
//!
//! 1. *It finds no path.* Each bucket that it saw was full and stays full. So this is a moment without room, and the insert
//!    is refused.
//! 2. *It finds one and carries it out.* It holds the locks that this takes. Then it adds its copy, unless another thread
//!    has taken the hole. In that case it searches again. Each such turn is due to a copy that another thread has added, and
//!    while the locks are held nobody takes one out. So there are no more turns than free slots.
//!
//! Therefore an insert makes a bounded number of searches, whatever others do. In a table of at most `path::BUDGET` buckets a
//! search is exact, and only the two conditions above end an insert without a place for its copy.
//!
//! In a larger table, a search that ends for its budget's sake says only that there is no room *near*, and other
//! threads bump versions all the time far from the buckets in question. There it is also enough that two searches, with a
//! pass between them, saw the very same words: that spares the others the locks. (That every one of these words was changed and changed back in time, and
//! a hole always passed by, is possible on paper.)
//!
//! A failed insert has added nothing and taken nothing out, so it changes nothing.
//!
//! # Orderings
//! | pair | release | acquire | carries |
//! |---|---|---|---|
//! | a | `Table::take_at_once`, `Table::bump_and_take` and `Table::clear`: the store that takes a copy out | `Table::look` | the bump before it: who reads the word without that copy reads the new version |
//! | b | `Guard::bump` | `Stripe::version`, the first of a lookup's two reads | the copy in the new place: who reads the new version sees it |
//! | c | `Table::put_at_once` and `Table::put`: the store that adds a copy | `Table::look` | what the inserter has done and seen before. Who learns from one copy that another must be there, and removes its twin, passes that on through *a* and *b* |
//! | d | the lock | the lock | what earlier holders did and saw |
//!
//! All changes of a word are read-modify-writes, so each release also reaches those who read a later value of the word.
//! The second read of the version is relaxed: the acquire reads before it keep it after them, and by pair *a* it is new
//! enough where that matters. Accesses to words are `SeqCst`, which includes these, for the sake of *Across keys*. Each
//! of *a*, *b* and *c* has a control in `loom-tests` that fails with either side relaxed, and `ci/orderings` makes each
//! ordering weaker in turn, `SeqCst` also to acquire and release.

use crate::sync::{self, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::table::counters::Counters;
use crate::verify::fault::{self, Fault};

/// The most stripes a table has: at 16 bytes each, half of a 32 KiB L1 cache. Fewer under loom, whose threads
/// have small stacks (see `Table::clear`).
pub(crate) const MAX_STRIPES: usize = if cfg!(ccf_model = "loom") { 4 } else { 1024 };

/// How many buckets there are for each stripe, while there are fewer than [`MAX_STRIPES`]. Models are to have a few stripes.
pub(crate) const BUCKETS_PER_STRIPE: usize = if cfg!(ccf_model) { 1 } else { size_of::<Stripe>() };

/// One writer lock and one version counter.
#[derive(Debug)]
pub(crate) struct Stripe {
    version: AtomicU64,
    lock: Mutex<()>,
}

/// A locked stripe: the right to take copies of its classes out of their buckets.
pub(crate) struct Guard<'a> {
    version: &'a AtomicU64,
    /// `None` where the locks of all stripes are held elsewhere, or where a model leaves the lock out.
    lock: Option<MutexGuard<'a, ()>>,
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

    /// 0 if the version is still `version`, at the end of a lookup in a batch.
    #[inline(always)]
    pub(crate) fn changes_since(&self, version: u64) -> u64 {
        // As in `is_still`.
        self.version.load(Ordering::Relaxed) ^ version
    }

    /// Locks; a lock that is not free at once is counted.
    #[inline]
    pub(crate) fn lock(&self, counters: &Counters) -> Guard<'_> {
        Guard { version: &self.version, lock: Some(sync::lock(&self.lock, || counters.lock_waited())) }
    }

    /// Locks if that is possible at once, unless the model leaves that out.
    #[inline(always)]
    pub(crate) fn try_lock_unless(&self, fault: Fault) -> Option<Guard<'_>> {
        if fault::injected(fault) {
            return Some(self.held());
        }
        let lock = sync::try_lock(&self.lock)?;
        Some(Guard { version: &self.version, lock: Some(lock) })
    }

    /// Locks, and counts that it was not free at once.
    pub(crate) fn lock_after_wait(&self, counters: &Counters) -> Guard<'_> {
        counters.lock_waited();
        Guard { version: &self.version, lock: Some(self.lock.lock()) }
    }

    /// Locks, unless the model leaves that out.
    #[inline]
    pub(crate) fn lock_unless(&self, fault: Fault, counters: &Counters) -> Guard<'_> {
        if fault::injected(fault) { self.held() } else { self.lock(counters) }
    }

    /// The right that goes with the lock, for who holds the locks of all stripes.
    pub(crate) fn held(&self) -> Guard<'_> {
        Guard { version: &self.version, lock: None }
    }
}

impl<'a> Guard<'a> {
    /// The lock alone.
    pub(crate) fn into_lock(self) -> Option<MutexGuard<'a, ()>> {
        self.lock
    }

    /// Announces that a copy is about to be taken out of its bucket.
    #[inline]
    pub(crate) fn bump(&self) {
        // Relaxed: only the holder of the lock writes the version. A `u64` counts 500 years of bumps at one a
        // nanosecond.
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
