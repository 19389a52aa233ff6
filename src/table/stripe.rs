//! CONCURRENT: stripes, and the protocol that they are for. A stripe is a lock for writers and a version counter.
//! Many buckets share one.
//!
//! # The state
//! A table is an array of bucket words. A *class* is a fingerprint together with its *pair*, the two buckets that may
//! hold it. Keys of one class cannot be distinguished, so the table is a multiset of classes. Each class has a stripe:
//! a lock, and a counter, the *version*. The pair chooses the stripe, by the sum of the two buckets' numbers modulo the
//! number of buckets (`Item::bucket_sum`, which the arithmetic of `word/geometry.rs` computes anyway). A table has one stripe
//! for sixteen buckets, and at most [`MAX_STRIPES`]. So pairs share stripes, as in MemC3. Sometimes this makes a reader
//! retry without need. (In a maplet, copies also have values. `table/maplet.rs` says what that adds. With a clock, expired
//! copies are removed without a lock. `table/expiring/mod.rs` says why that is right.)
//!
//! # The rules
//! 1. A word changes by compare-exchange (in `clear`, by exchange). Each change is one step, and no word is ever
//!    torn.
//! 2. A store that removes a copy of a class from a word is made under the lock of the class's stripe.
//! 3. **A store that removes a copy is preceded by a bump of the stripe's version, under the same lock. A store
//!    that adds a copy needs neither.**
//! 4. A relocation fills the new slot, then bumps, then clears the old slot, all under the lock. So there is a copy
//!    at every moment.
//! 5. A thread holds one of these locks at a time, and none while a caller's code runs, or that of the global allocator.
//!    Only these hold all of them:
//!    `clear`, a save for a moment, an insert whose searches are invalidated again and again, and, in a table with a
//!    clock, a call that changes the clock's offset (`table/expiring/sweep.rs`), an insert that evicts
//!    (`table/expiring/evict.rs`), and one that ends a tick by its count of keys or displaces an entry
//!    (`table/expiring/recent.rs`). They take them in order. So there is no deadlock. While a table is being saved,
//!    every change except `clear` has an additional step, and there is one more lock, which is taken last: see
//!    `table/image/copy_on_write.rs`.
//!
//! An insert that finds room is one compare-exchange. It takes no lock (except while a save is running) and changes no
//! version. In MemC3 (section 4.3.2) the counter is odd while an item moves, and readers wait until it is even again.
//! Here no state means "in progress". A writer that is preempted, at any point, delays no reader.
//!
//! # Why no lookup misses a copy that was there throughout
//! A lookup reads the version (`n`), the first word, the second word, and the version again. If the version was `n`
//! both times, the answer is *true* if either word matches, and *false* if neither does. If the version has changed,
//! the lookup retries. (A match would be enough for *true*, whatever the version, since a copy was there when
//! that word was read. From the second attempt on, a match is enough. The first attempt compares the versions before
//! the words, which takes fewer registers.)
//!
//! Consider the critical sections of the stripe that bump, and number them by their bumps: section `n` is the one
//! whose bump wrote `n`. (A thread that bumps more than once under the lock has several sections in a row, each with
//! one bump. A section ends with the last store that its bump announces. What the thread does after that, up to the
//! next such store, belongs to the next section.) For a lookup that answers *false*:
//!
//! 1. *It saw no removal of a section after `n`.* Suppose that it read a word in which such a section has removed a copy
//!    out, or that any thread has changed after that. Then it also saw the section's bump (pair *a* below), and the
//!    second version would not have been `n`.
//! 2. *It saw everything that sections before `n` did, and what section `n` did before its bump.* It read `n` from
//!    that bump (pair *b*), and the lock passes the rest on.
//! 3. *Section `n` is no relocation of the class.* A relocation has put its copy into the new bucket before the bump
//!    (rule 4). So by 2 the lookup saw that copy there, unless a later section took it, which 1 excludes.
//! 4. So consider all copies that were added before the lookup began (in the sense of happens-before) and are
//!    therefore visible to it. Each was taken by a section before `n`, or by section `n` itself, which then is a
//!    `remove` (or `clear`) of this class.
//!
//! Hence the lookup would have seen a copy that was in the filter throughout: the answer *false* is never wrong.
//! (`tests/proof` has this, and more, checked by a prover for any number of threads, with all accesses in one order.)
//! This also covers a move that is no relocation. Let `y` be a second key of the class of `x`. Then `insert(y)` into
//! one bucket and `remove(y)` from the other together carry the only copy from one bucket to the other. This is why
//! `remove` bumps: otherwise two such moves could hide `x` from a concurrent lookup.
//!
//! A lookup in a batch has the same steps in the same order. The comparison of its words, the decoding of what it has
//! found, and the retry of an invalidated attempt come after the first attempts for other keys. That makes no
//! difference to it.
//!
//! A lookup retries only after a bump, that is, after a step of some writer. It takes no lock and waits for no thread.
//! It writes nothing, except that each retry adds one to a count that nothing depends on (`table/counters.rs`). (This
//! counts steps of writers, not operations: two inserts can, in theory, take the same free slot from each other again and
//! again.)
//!
//! # Linearizability
//! The operations are linearizable over the multiset of classes. Classes do not interact, except that they share
//! room. First consider each class by itself, where "before" is happens-before:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert` | at its compare-exchange; after each lookup that answered *false* without having seen it |
//! | `remove`, `count` | in the order of their critical sections. Under the lock no copy is taken or moved, only added. So `count` is right at a moment between its two reads, and a *false* of `remove` at its first read |
//! | `contains`, *true* | at the read that matched |
//! | `contains`, *false* | after section `n`, and before each insert of the class that it has not seen |
//! | `insert_if_absent` | *false*: when it saw a copy. *true*: after its lookup and after each *false* that has not seen it; before each plain `insert` of the class that its lookup has not seen; apart from that, at its compare-exchange. No other `insert_if_absent`, `remove` or `count` of the class can come in between |
//! | an insert that fails | at the moment without room that `table/relocate.rs` describes. For `insert_if_absent` the count of copies, which is 0, lies in the same window |
//! | `clear` | it is not one operation: it removes each copy that is there when it begins, each at some moment of the call |
//!
//! These orders agree: an insert that is ordered after a *false*, or after a `remove` that this *false* has seen, was
//! not visible to them. So it had not ended when they began. A relocation changes the place of a copy, not the
//! multiset. For a moment there are two copies of one item. `count`, `remove` and `insert_if_absent` cannot see that,
//! since they hold the lock, and to `contains` it makes no difference.
//!
//! ## Across keys
//! All accesses to words are `SeqCst`, so they have one order, on all threads and over all classes. Call an operation
//! earlier than another if its last access comes before the other's first in that order. In that order too, a lookup
//! sees what was added before its first access, and it sees the bump of what was removed before. So the orders of
//! the classes respect it. Classes that are each linearizable in one such order are linearizable together (Herlihy
//! and Wing, *Linearizability*, 1990, section 3.1). Without it, two threads that each insert a key and then look for
//! the other's could both miss it. On x86-64 this costs nothing: loads and compare-exchanges are the same
//! instructions as with acquire and release.
//!
//! An insert that fails concerns all classes in the buckets that it found full. At its moment no thread is between the
//! bump and the removal of a copy of these classes (unless it fails by the fourth condition there). So each of their
//! removals can be ordered on the same side of that moment as its store, and each plain insert at its compare-exchange.
//! An `insert_if_absent` may be ordered before its compare-exchange. Then there are more copies at that moment, not
//! fewer. So there is no room in the common order either. For a moment, this order may even have more copies than
//! there are slots: only a failure depends on room, not a success.
//!
//! # Orderings
//! | pair | release | acquire | carries |
//! |---|---|---|---|
//! | a | `Table::exchange` (and `Table::clear`) after a bump: the store that removes a copy | `Table::load` | the bump before it: a thread that reads the word without that copy reads the new version |
//! | b | `Guard::bump` | `Stripe::version`, the first of a lookup's two reads | the copy in the new place: a thread that reads the new version sees it |
//! | c | `Table::add` and `Table::put`: the store that adds a copy | `Table::load` | what the inserter has done and seen before. A thread may learn from one copy that another must be there, and remove its twin; it passes that on through *a* and *b* |
//! | d | the lock | the lock | what earlier holders did and saw |
//!
//! All changes of a word are read-modify-writes, so each release also reaches a thread that reads a later value of the
//! word. The second read of the version is relaxed: the acquire reads before it keep it after them, and by pair *a* it
//! is new enough where that matters. Accesses to words are `SeqCst`, which includes acquire and release, because of
//! *Across keys*. `ci/orderings` makes each ordering in the source weaker in turn, `SeqCst` also to acquire and
//! release, and a model in `loom-tests` fails each time.

use crate::sync::sizes::MAX_STRIPES;
use crate::sync::{self, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::table::counters::Counters;
use crate::table::image::spare::Spare;

#[derive(Debug)]
pub(crate) struct Stripe {
    version: AtomicU64,
    lock: Mutex<()>,
}

/// A locked stripe: the right to remove copies of its classes from their buckets.
pub(crate) struct Guard<'a> {
    version: &'a AtomicU64,
    /// `None` where the locks of all stripes are held: [`AllLocked`] has them.
    _lock: Option<MutexGuard<'a, ()>>,
}

/// The locks of all stripes of a table: the right to remove copies of any class from their buckets.
pub(crate) struct AllLocked<'a> {
    stripes: &'a [Stripe],
    /// For the words that the thread copies for saves (`table/image/copy_on_write.rs`); `None` if it changes none.
    pub(crate) spare: Option<&'a Spare>,
}

/// Calls `work` with the locks of all these stripes. They are taken in order. No other code waits for a stripe's lock
/// while it holds one.
pub(crate) fn under_all_locks<R>(
    stripes: &[Stripe],
    counters: &Counters,
    spare: Option<&Spare>,
    work: impl FnOnce(&AllLocked<'_>) -> R,
) -> R {
    // 8 bytes each, in place: together they take up to 8 KiB of the stack.
    let mut locks = [const { None }; MAX_STRIPES];
    lock_all(stripes, counters, &mut locks);
    work(&AllLocked { stripes, spare })
}

fn lock_all<'a>(stripes: &'a [Stripe], counters: &Counters, locks: &mut [Option<MutexGuard<'a, ()>>; MAX_STRIPES]) {
    for (lock, stripe) in locks.iter_mut().zip(stripes) {
        *lock = Some(stripe.lock_alone(counters));
    }
}

/// Drains the writers of these stripes: waits until each relocation and removal in progress has ended. Returns the
/// sum of the stripes' versions, each read under its lock.
pub(crate) fn drain_writers(stripes: &mut dyn Iterator<Item = &Stripe>, counters: &Counters) -> u64 {
    let mut bumps = 0u64;
    for stripe in stripes {
        bumps = bumps.wrapping_add(stripe.lock(counters).bumps());
    }
    bumps
}

impl Stripe {
    pub(crate) fn new() -> Self {
        Self { version: AtomicU64::new(0), lock: Mutex::new(()) }
    }

    /// The version at the start of a lookup.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        // Acquire, with `bump`: a thread that sees a bump sees the copies put in place before it.
        self.version.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn is_still(&self, version: u64) -> bool {
        // Relaxed: the lookup's acquire reads of words come before it, and with them come the bumps that matter.
        self.version.load(Ordering::Relaxed) == version
    }

    /// 0 if the version is still `version`, at the end of a lookup in a batch.
    #[inline(always)]
    pub(crate) fn changes_since(&self, version: u64) -> u64 {
        // As in `is_still`.
        self.version.load(Ordering::Relaxed) ^ version
    }

    /// Locks. Counts a lock that was not free at once.
    #[inline]
    pub(crate) fn lock(&self, counters: &Counters) -> Guard<'_> {
        Guard { version: &self.version, _lock: Some(self.lock_alone(counters)) }
    }

    #[inline]
    fn lock_alone(&self, counters: &Counters) -> MutexGuard<'_, ()> {
        sync::lock(&self.lock, || counters.lock_waited())
    }

    /// Locks if that is possible at once.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        let lock = sync::try_lock(&self.lock)?;
        Some(Guard { version: &self.version, _lock: Some(lock) })
    }

    /// The right that goes with this stripe's lock, for a thread that holds those of all stripes of its table.
    pub(crate) fn locked_with_all<'a>(&'a self, all: &'a AllLocked<'_>) -> Guard<'a> {
        debug_assert!(all.stripes.as_ptr_range().contains(&core::ptr::from_ref(self)), "a stripe of another table");
        Guard { version: &self.version, _lock: None }
    }
}

impl Guard<'_> {
    /// Announces that a copy is about to be removed from its bucket.
    #[inline]
    pub(crate) fn bump(&self) {
        // Relaxed: only the holder of the lock writes the version. At one bump a nanosecond, a `u64` lasts 500 years.
        let version = self.version.load(Ordering::Relaxed);
        // Release, with `Stripe::version`: the copy in the new place comes first.
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// How many bumps there have been.
    #[inline]
    pub(crate) fn bumps(&self) -> u64 {
        // Relaxed: the lock orders it.
        self.version.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::sizes::BUCKETS_PER_STRIPE;

    /// So the offset of a stripe takes no multiplication (`machine::arch::at_step`).
    #[test]
    fn a_stripe_has_as_many_bytes_as_buckets() {
        assert_eq!(size_of::<Stripe>(), BUCKETS_PER_STRIPE);
    }
}
