//! CONCURRENT: the bucket words, and every operation on them. The protocol, its rules and its proof stand in
//! `stripe.rs`.

use core::hint::select_unpredictable;

use crate::any_table::AnyTable;
use crate::batch::{self, BLOCK, Hashes};
use crate::bucket::{Bucket, BucketOps, Candidate};
use crate::counter::{Counters, Counts};
#[cfg(feature = "snapshot")]
use crate::error::LoadError;
use crate::error::{InsertBatchError, InsertError};
use crate::fault::{self, Fault};
use crate::hash::{Buckets, Geometry, Item};
use crate::layout::{Fingerprint, Layout, Shape};
use crate::machine::prefetch;
use crate::memory::{Pages, boxed_slice, boxed_slice_on};
use crate::path::{self, Hop, Outcome};
use crate::save::Saving;
use crate::stripe::{Guard, MAX_STRIPES, Stripe};
use crate::sync::{AtomicU64, Ordering};

/// A concurrent multiset of items.
#[derive(Debug)]
pub(crate) struct Table<L, G = Buckets> {
    pub(crate) layout: L,
    buckets: G,
    /// How many items the table is meant to hold; reported, not enforced.
    capacity: usize,
    pub(crate) words: Box<[AtomicU64]>,
    /// A power of two of them. Bucket `i` belongs to stripe `i` modulo their number.
    stripes: Box<[Stripe]>,
    pub(crate) counters: Counters,
    /// One, in a box: an atomic in this very struct would have the compiler read the other fields anew after each access
    /// to a word, which costs a lookup two instructions and `insert_if_absent` twenty-five.
    saving: Box<[Saving; 1]>,
}

/// What room is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Insert,
    /// In vain if the item is present by then.
    InsertIfAbsent,
}

/// The seeded bugs of the two operations that take copies out.
#[derive(Clone, Copy)]
struct TakeFaults {
    no_bump: Fault,
    late_bump: Fault,
}

impl TakeFaults {
    const REMOVE: Self = Self { no_bump: Fault::RemoveWithoutBump, late_bump: Fault::RemoveBumpsLate };
    const RELOCATE: Self = Self { no_bump: Fault::RelocateWithoutBump, late_bump: Fault::RelocateBumpsLate };
}

/// A candidate of a batch's lookup that has yet to be confirmed, and whose it is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Match {
    candidate: Candidate,
    index: usize,
}

/// The number of stripes for so many buckets.
fn stripes_for(buckets: usize) -> usize {
    buckets.checked_next_power_of_two().map_or(MAX_STRIPES, |count| count.min(MAX_STRIPES))
}

/// How many bytes a table of so many buckets asks the allocator for. The decode table comes on top, which all
/// semi-sorted tables share.
pub(crate) fn memory_for(buckets: usize) -> usize {
    buckets * size_of::<AtomicU64>()
        + stripes_for(buckets) * size_of::<Stripe>()
        + Counters::memory_for(buckets)
        + size_of::<Saving>()
}

impl<L: Layout> Table<L> {
    /// An empty table, for tests and models.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn new(buckets: usize, capacity: usize) -> Option<Self> {
        Self::on(Pages::Usual, buckets, capacity)
    }

    /// An empty table, or `None` if there is no memory for it.
    pub(crate) fn on(pages: Pages, buckets: usize, capacity: usize) -> Option<Self> {
        Self::with_geometry(pages, Buckets::new(buckets), capacity)
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// An empty table with these buckets, or `None` if there is no memory for it.
    pub(crate) fn with_geometry(pages: Pages, geometry: G, capacity: usize) -> Option<Self> {
        let buckets = geometry.count();
        Some(Self {
            layout: L::try_new()?,
            buckets: geometry,
            capacity,
            words: boxed_slice_on(pages, buckets, || AtomicU64::new(0))?,
            stripes: boxed_slice(stripes_for(buckets), Stripe::new)?,
            counters: Counters::new(buckets)?,
            saving: boxed_slice(1, Saving::new)?.try_into().ok()?,
        })
    }

    #[inline(always)]
    pub(crate) fn item(&self, hash: u64) -> Item {
        self.buckets.item(self.layout, hash)
    }

    /// Whether the table holds a copy of the item. Lock-free; see `stripe.rs` for why *false* is true.
    #[inline(always)]
    pub(crate) fn contains(&self, item: Item) -> bool {
        let Item { fingerprint, first, second } = item;
        self.look_once(
            item,
            |first, second| self.layout.either_contains(first, second, fingerprint),
            || self.contains_exactly(first, second, fingerprint),
            || self.contains_anew(first, second, fingerprint),
        )
    }

    /// `contains` where the first look was disturbed: counts that, and looks again.
    #[cold]
    #[inline(never)]
    fn contains_anew(&self, first: usize, second: usize, fingerprint: Fingerprint) -> bool {
        self.counters.lookup_retried();
        self.contains_exactly(first, second, fingerprint)
    }

    /// `contains` by looks that are never unsure, as many as it takes. (Its arguments fit in registers: an `Item` would
    /// go through memory, which `contains` need not touch.)
    #[cold]
    #[inline(never)]
    fn contains_exactly(&self, first: usize, second: usize, fingerprint: Fingerprint) -> bool {
        let item = Item { fingerprint, first, second };
        let holds = |bucket| self.layout.holds(bucket, fingerprint);
        loop {
            let verdict = |first, second| Some(holds(first) || holds(second));
            if let Some(found) = self.look_once(item, verdict, || None, || None) {
                return found;
            }
            self.counters.lookup_retried();
        }
    }

    /// One round of a lookup: what `verdict` says of the item's two buckets; or what `unsure` does if it says `None`, and
    /// `disturbed` if it says *false* and that is not certain. (These are functions, not a third and a fourth answer to
    /// be told apart, so that each is a jump to its cold path and nothing more.)
    #[inline(always)]
    fn look_once<R: From<bool>>(
        &self,
        item: Item,
        verdict: impl Fn(Bucket, Bucket) -> Option<bool>,
        unsure: impl FnOnce() -> R,
        disturbed: impl FnOnce() -> R,
    ) -> R {
        let stripe = self.stripe(item.first, item.second);
        let version = stripe.version();
        let first = self.look(item.first);
        let second = self.look(item.second);
        let Some(found) = verdict(first, second) else {
            return unsure();
        };
        let version_is_still = fault::injected(Fault::LookupWithoutVersion) || stripe.is_still(version);
        // One branch for both verdicts, which goes the same way nearly always: a hit validates too, though it need not.
        if found | version_is_still { found.into() } else { disturbed() }
    }

    /// `contains` for each item of a block.
    ///
    /// Each lookup is the one of `contains`, its steps in the same order. But all are made before any candidate is
    /// decoded and before any is repeated, so that no branch depends on what was found: nothing is mispredicted, and
    /// the loads of many keys overlap.
    #[inline(always)]
    pub(crate) fn contains_block(&self, items: &[Item], answers: &mut [bool; BLOCK], matched: &mut [Match; BLOCK]) {
        let mut matches = 0;
        let mut disturbed = false;
        for (index, (item, answer)) in items.iter().zip(&mut *answers).enumerate() {
            let stripe = self.stripe(item.first, item.second);
            let version = stripe.version();
            let candidate = self.layout.candidate(self.look(item.first), self.look(item.second), item.fingerprint);
            disturbed |= !stripe.is_still(version) && !fault::injected(Fault::LookupWithoutVersion);
            *answer = candidate.exists();
            if L::SEMI_SORTED {
                // Kept only if it is one, by a step of 0 or 1 instead of a branch.
                matched[matches % BLOCK] = Match { candidate, index };
                matches += usize::from(candidate.exists());
            }
        }
        for &Match { candidate, index } in &matched[..matches] {
            let Item { fingerprint, first, second } = items[index];
            answers[index] =
                self.layout.confirms(candidate, fingerprint) || self.contains_exactly(first, second, fingerprint);
        }
        if disturbed {
            for (item, answer) in items.iter().zip(answers) {
                *answer = *answer || self.contains_anew(item.first, item.second, item.fingerprint);
            }
        }
    }

    /// The item, with its buckets on their way into the cache.
    #[inline(always)]
    fn prefetched(&self, hash: u64) -> Item {
        let item = self.item(hash);
        self.prefetch(item);
        item
    }

    /// Asks for the item's buckets.
    #[inline(always)]
    fn prefetch(&self, item: Item) {
        prefetch(&self.words, item.first);
        prefetch(&self.words, item.second);
    }

    /// How many copies of the item there are.
    pub(crate) fn count(&self, item: Item) -> usize {
        let _guard = self.stripe(item.first, item.second).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies(item)
    }

    /// Adds a copy of the item.
    #[inline]
    pub(crate) fn insert(&self, item: Item) -> Result<(), InsertError> {
        self.insert_uncounted(item)?;
        self.counters.add_len(1);
        Ok(())
    }

    #[inline(always)]
    fn insert_uncounted(&self, item: Item) -> Result<(), InsertError> {
        while !self.put_in_either(item) {
            self.make_room(item, Purpose::Insert)?;
        }
        Ok(())
    }

    /// Adds a copy of the item, unless its buckets are full and the table holds as many items as it is meant for. Then
    /// that is the answer, without a search.
    pub(crate) fn insert_within_capacity(&self, item: Item) -> Result<(), InsertError> {
        if self.put_in_either(item) {
            self.counters.add_len(1);
            return Ok(());
        }
        // The sum of some counters: only now, for most inserts find room.
        let len = self.counters.len();
        if len < self.capacity {
            return self.insert(item);
        }
        let copies = self.count(item);
        if copies == self.slots_of(item) {
            return Err(InsertError::TooManyCopies { copies });
        }
        Err(InsertError::Full { len, capacity: self.capacity })
    }

    /// Adds a copy of the item unless there is one.
    pub(crate) fn insert_if_absent(&self, item: Item) -> Result<bool, InsertError> {
        // Spares the lock where a lookup is enough. (Not in the model without the lock, where it would hide the bug.)
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) && self.contains(item) {
            return Ok(false);
        }
        loop {
            {
                let _guard =
                    self.stripe(item.first, item.second).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
                if self.holds(item.first, item.fingerprint) || self.holds(item.second, item.fingerprint) {
                    return Ok(false);
                }
                if self.put_in_either(item) {
                    self.counters.add_len(1);
                    return Ok(true);
                }
            }
            self.make_room(item, Purpose::InsertIfAbsent)?;
        }
    }

    /// Removes a copy of the item, if there is one.
    #[inline]
    pub(crate) fn remove(&self, item: Item) -> bool {
        // No load of a processor's overtakes the taking of a lock; a prefetch does.
        self.prefetch(item);
        self.remove_and(item, || self.counters.add_len(-1))
    }

    /// `remove`, with `count` called under the lock if there was a copy.
    #[inline(always)]
    fn remove_and(&self, item: Item, count: impl FnOnce()) -> bool {
        let guard = self.stripe(item.first, item.second).lock_unless(Fault::RemoveWithoutLock, &self.counters);
        for bucket in [item.first, item.second] {
            if self.holds(bucket, item.fingerprint) {
                self.keep(bucket, Fault::RemoveKeepsNothing);
                if self.bump_and_take(&guard, bucket, item.fingerprint, TakeFaults::REMOVE) {
                    count();
                    return true;
                }
            }
        }
        false
    }

    /// Removes every copy that is there when it begins.
    pub(crate) fn clear(&self) {
        // All locks, so that no relocation carries a copy past this sweep.
        let guards = self.lock_all(Fault::ClearWithoutLocks);
        if !fault::injected(Fault::ClearWithoutBump) {
            guards.iter().flatten().for_each(Guard::bump);
        }
        let mut copies = 0;
        for word in &self.words {
            // As in `bump_and_take`.
            let removed = Bucket(word.swap(0, fault::ordering(Fault::RelaxedClear, Ordering::SeqCst)));
            copies += self.layout.occupied(removed);
        }
        self.counters.add_len(-(copies as i64));
    }

    /// Locks all stripes, unless the model leaves that out. In order, and nobody waits for a lock while holding another.
    pub(crate) fn lock_all(&self, fault: Fault) -> [Option<Guard<'_>>; MAX_STRIPES] {
        let mut guards = [const { None }; MAX_STRIPES];
        for (guard, stripe) in guards.iter_mut().zip(&self.stripes) {
            *guard = Some(stripe.lock_unless(fault, &self.counters));
        }
        guards
    }

    /// Makes room in one of the item's two buckets, which another insert may take before the caller does.
    #[cold]
    #[inline(never)]
    fn make_room(&self, item: Item, purpose: Purpose) -> Result<(), InsertError> {
        let mut last = None;
        loop {
            let look = |bucket| self.look(bucket);
            let mut hops = 0;
            let outcome = path::make_room(self.layout, self.buckets, item, look, |hop| {
                let relocated = self.relocate(hop);
                hops += u64::from(relocated);
                relocated
            });
            if hops > 0 {
                self.counters.relocated(hops);
            }
            let trace = match outcome {
                Outcome::Planned => return Ok(()),
                Outcome::Nothing { trace } => trace,
            };
            let copies = self.count(item);
            if copies > 0 && purpose == Purpose::InsertIfAbsent && !fault::injected(Fault::FullThoughPresent) {
                // Another thread has added it meanwhile: no room is needed any more.
                return Ok(());
            }
            if copies == self.slots_of(item) {
                self.counters.insert_refused();
                return Err(InsertError::TooManyCopies { copies });
            }
            let bumps = self.settle();
            let certain = last.is_some_and(|(last_trace, last_bumps)| {
                last_bumps == bumps
                    || last_trace == trace && self.buckets.count() > path::BUDGET
                    || fault::injected(Fault::FullIgnoresVersions)
            });
            if certain || fault::injected(Fault::FullWithoutConfirmation) {
                self.counters.insert_refused();
                return Err(InsertError::Full { len: self.counters.len(), capacity: self.capacity });
            }
            last = Some((trace, bumps));
        }
    }

    /// Waits until each relocation and removal that is under way has ended; returns how many bumps there have been.
    pub(crate) fn settle(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.lock(&self.counters).bumps()).fold(0, u64::wrapping_add)
    }

    /// Carries out one hop of a plan, if it still holds.
    pub(crate) fn relocate(&self, Hop { fingerprint, from, to }: Hop) -> bool {
        let guard = self.stripe(from, to).lock_unless(Fault::RelocateWithoutLock, &self.counters);
        if !self.holds(from, fingerprint) && !fault::injected(Fault::RelocateWithoutRecheck) {
            return false;
        }
        self.keep(from, Fault::RelocateKeepsNoSource);
        if !fault::injected(Fault::RelocateKeepsTargetLate) {
            self.keep(to, Fault::RelocateKeepsNoTarget);
        }
        if fault::injected(Fault::RelocateClearsFirst) {
            return self.bump_and_take(&guard, from, fingerprint, TakeFaults::RELOCATE) && self.put(to, fingerprint);
        }
        // From here to the take there are two copies, and at no moment none.
        self.put(to, fingerprint) && {
            if fault::injected(Fault::RelocateKeepsTargetLate) {
                self.keep(to, Fault::RelocateKeepsNoTarget);
            }
            self.bump_and_take(&guard, from, fingerprint, TakeFaults::RELOCATE);
            true
        }
    }

    #[inline(always)]
    pub(crate) fn saving(&self) -> &Saving {
        let [saving] = &*self.saving;
        saving
    }

    /// Puts the bucket's word aside for a save that is running, if there is one (`save.rs`). Under the lock of the stripe
    /// by which a copy is about to be taken out of the bucket, or carried into it.
    #[inline(always)]
    fn keep(&self, bucket: usize, left_out: Fault) {
        let saving = self.saving();
        if saving.is_running() && !fault::injected(left_out) {
            saving.keep(bucket, || self.look(bucket));
        }
    }

    /// Whether the bucket holds a copy of the fingerprint.
    #[inline]
    pub(crate) fn holds(&self, bucket: usize, fingerprint: Fingerprint) -> bool {
        self.layout.holds(self.look(bucket), fingerprint)
    }

    /// How many copies of the item its buckets hold; under the lock, or it may count one twice that is being moved.
    fn copies(&self, item: Item) -> usize {
        let mut copies = self.layout.count(self.look(item.first), item.fingerprint);
        if item.second != item.first {
            copies += self.layout.count(self.look(item.second), item.fingerprint);
        }
        copies
    }

    /// How many copies of the item its buckets could hold.
    fn slots_of(&self, item: Item) -> usize {
        L::SLOTS as usize * if item.second == item.first { 1 } else { 2 }
    }

    /// Adds a copy of the item to the emptier of its buckets, or to the other, if either has room.
    ///
    /// The emptier one, not simply the first with room (Mitzenmacher's "power of two choices"): that costs a second
    /// cache line while the table is half empty and spares relocations later. In all, inserts from empty to 95 %
    /// take 8 % less time semi-sorted and 16 % less plain, in the L2 cache.
    #[inline]
    fn put_in_either(&self, item: Item) -> bool {
        let room = |bucket| self.layout.room(self.look(bucket));
        let swap = room(item.second) > room(item.first);
        // The choice is as good as random: a branch on it would be mispredicted half of the time.
        let (emptier, other) = select_unpredictable(swap, (item.second, item.first), (item.first, item.second));
        self.put(emptier, item.fingerprint) || self.put(other, item.fingerprint)
    }

    /// Adds a copy of the fingerprint to the bucket, if it has room.
    #[inline]
    pub(crate) fn put(&self, bucket: usize, fingerprint: Fingerprint) -> bool {
        // Release: who sees this copy sees what its inserter saw.
        let success = fault::ordering(Fault::RelaxedAdd, Ordering::SeqCst);
        self.change(bucket, success, Fault::AddOverwrites, |seen| self.layout.add(seen, fingerprint))
    }

    /// Takes a copy of the fingerprint out of the bucket, with the announcement that readers need. The guard is that of
    /// the copy's stripe.
    ///
    /// `false` if there is none, which the caller has excluded: while it holds the lock, nobody else can take it.
    #[inline]
    fn bump_and_take(&self, guard: &Guard<'_>, bucket: usize, fingerprint: Fingerprint, faults: TakeFaults) -> bool {
        if !fault::injected(faults.no_bump) && !fault::injected(faults.late_bump) {
            guard.bump();
        }
        // Release: who sees the copy gone sees the bump before it.
        let success = fault::ordering(Fault::RelaxedRemove, Ordering::SeqCst);
        let taken = self.change(bucket, success, Fault::TakeOverwrites, |seen| self.layout.remove(seen, fingerprint));
        if taken && fault::injected(faults.late_bump) {
            guard.bump();
        }
        taken
    }

    /// Changes a bucket in one step; `false` if that is not possible with what the bucket has become.
    ///
    /// `success` is `SeqCst` for the reason in `stripe.rs`, *Across keys*. On failure the exchange is relaxed: nothing is
    /// concluded from what the bucket is now but what to try next.
    #[inline(always)]
    fn change(
        &self,
        bucket: usize,
        success: Ordering,
        overwrites: Fault,
        changed: impl Fn(Bucket) -> Option<Bucket>,
    ) -> bool {
        let word = &self.words[bucket];
        let mut seen = self.look(bucket);
        while let Some(changed) = changed(seen) {
            if fault::injected(overwrites) {
                word.store(changed.0, Ordering::SeqCst);
                return true;
            }
            match word.compare_exchange_weak(seen.0, changed.0, success, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = Bucket(now),
            }
        }
        false
    }

    #[inline(always)]
    pub(crate) fn look(&self, bucket: usize) -> Bucket {
        // Acquire: who sees a copy gone sees the bump that announced it, and who sees a copy sees what its inserter
        // saw. SeqCst: see `stripe.rs`, *Across keys*.
        Bucket(self.words[bucket].load(fault::ordering(Fault::RelaxedWordLoad, Ordering::SeqCst)))
    }

    /// The stripe of the classes whose pair is these two buckets.
    #[inline(always)]
    fn stripe(&self, one: usize, other: usize) -> &Stripe {
        &self.stripes[one.min(other) & (self.stripes.len() - 1)]
    }
}

impl<L: Layout, G: Geometry> AnyTable for Table<L, G> {
    fn contains(&self, hash: u64) -> bool {
        self.contains(self.item(hash))
    }

    fn count(&self, hash: u64) -> usize {
        self.count(self.item(hash))
    }

    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        self.insert(self.item(hash))
    }

    fn insert_within_capacity(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_within_capacity(self.item(hash))
    }

    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.insert_if_absent(self.item(hash))
    }

    fn remove(&self, hash: u64) -> bool {
        self.remove(self.item(hash))
    }

    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut found = [false; BLOCK];
        let mut matched = [Match::default(); BLOCK];
        batch::for_each_block(
            hashes,
            |hash| self.prefetched(hash),
            |items| {
                self.contains_block(items, &mut found, &mut matched);
                answers(&found[..items.len()]);
                true
            },
        );
    }

    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let mut inserted = 0;
        let mut refused = None;
        batch::for_each_block(
            hashes,
            |hash| self.prefetched(hash),
            |items| {
                let mut here = 0;
                for &item in items {
                    if let Err(mut error) = self.insert_uncounted(item) {
                        if let InsertError::Full { len, .. } = &mut error {
                            // Those before it in this block have yet to be counted.
                            *len += here;
                        }
                        refused = Some(error);
                        break;
                    }
                    here += 1;
                }
                self.counters.add_len(here as i64);
                inserted += here;
                refused.is_none()
            },
        );
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError { inserted, error }))
    }

    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        batch::for_each_block(
            hashes,
            |hash| self.prefetched(hash),
            |items| {
                let mut block = [false; BLOCK];
                for (&item, removed) in items.iter().zip(&mut block) {
                    *removed = self.remove_and(item, || ());
                }
                self.counters.add_len(-(block.iter().filter(|&&removed| removed).count() as i64));
                answers(&block[..items.len()]);
                true
            },
        );
    }

    fn clear(&self) {
        self.clear();
    }

    fn len(&self) -> usize {
        self.counters.len()
    }

    fn counts(&self) -> Counts {
        self.counters.counts()
    }

    fn record_negatives(&self, count: u64) {
        self.counters.record_negatives(count);
    }

    fn record_false_positives(&self, count: u64) {
        self.counters.record_false_positives(count);
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn buckets(&self) -> usize {
        self.buckets.count()
    }

    fn shape(&self) -> Shape {
        L::SHAPE
    }

    fn lower_bucket(&self, hash: u64) -> usize {
        let item = self.item(hash);
        item.first.min(item.second)
    }

    fn memory_usage(&self) -> usize {
        size_of_val(self) + memory_for(self.buckets.count())
    }

    #[cfg(feature = "snapshot")]
    fn save(&self, chunk: &mut dyn FnMut(&[u64]) -> std::io::Result<()>) -> std::io::Result<u64> {
        self.image(chunk)
    }

    #[cfg(feature = "snapshot")]
    fn load(&mut self, next: &mut dyn FnMut(&mut [u64]) -> Result<(), LoadError>) -> Result<u64, LoadError> {
        self.fill(next)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::layout::{Plain, SemiSorted};

    /// A class: a fingerprint and its pair.
    type Class = (u32, usize, usize);

    fn class(item: Item) -> Class {
        (item.fingerprint.0, item.first.min(item.second), item.first.max(item.second))
    }

    /// Whether all copies fit in the buckets of their pairs: decided by another way, augmenting paths over an
    /// assignment of its own.
    fn fits(copies: &[Class], buckets: usize, slots: usize) -> bool {
        fn place(copy: usize, copies: &[Class], held: &mut [Vec<usize>], slots: usize, tried: &mut [bool]) -> bool {
            let (_, low, high) = copies[copy];
            for bucket in [low, high] {
                if std::mem::replace(&mut tried[bucket], true) {
                    continue;
                }
                if held[bucket].len() < slots {
                    held[bucket].push(copy);
                    return true;
                }
                for slot in 0..slots {
                    if place(held[bucket][slot], copies, held, slots, tried) {
                        held[bucket][slot] = copy;
                        return true;
                    }
                }
            }
            false
        }
        let mut held = vec![Vec::new(); buckets];
        (0..copies.len()).all(|copy| place(copy, copies, &mut held, slots, &mut vec![false; buckets]))
    }

    /// Runs the operations on a table and on a plain multiset of classes; every answer must be the same.
    fn compare<L: Layout>(buckets: usize, operations: &[(u8, u64)]) {
        let table = Table::<L>::new(buckets, 0).expect("a small table");
        let mut model: HashMap<Class, usize> = HashMap::new();
        for &(operation, hash) in operations {
            let item = table.item(hash);
            let copies = model.get(&class(item)).copied().unwrap_or(0);
            assert_eq!(table.contains(item), copies > 0);
            assert_eq!(table.count(item), copies);
            let mut refused = None;
            match operation {
                0..6 => match table.insert(item) {
                    Ok(()) => *model.entry(class(item)).or_default() += 1,
                    Err(error) => refused = Some(error),
                },
                6..8 => match table.insert_if_absent(item) {
                    Ok(added) => {
                        assert_eq!(added, copies == 0);
                        model.insert(class(item), copies.max(1));
                    }
                    Err(error) => refused = Some(error),
                },
                8..12 => {
                    assert_eq!(table.remove(item), copies > 0);
                    model.insert(class(item), copies.saturating_sub(1));
                }
                _ => {
                    table.clear();
                    model.clear();
                }
            }
            let len = model.values().sum::<usize>();
            match refused {
                Some(InsertError::Full { len: reported, .. }) => {
                    assert_eq!(reported, len);
                    let present = model.iter().flat_map(|(&class, &copies)| vec![class; copies]);
                    let wanted: Vec<_> = present.chain([class(item)]).collect();
                    assert!(!fits(&wanted, buckets, L::SLOTS as usize), "full, though a path exists");
                }
                Some(InsertError::TooManyCopies { copies: reported }) => {
                    assert_eq!(reported, copies);
                    assert_eq!(copies, table.slots_of(item));
                }
                Some(error) => panic!("{error:?}, of one table"),
                None => {}
            }
            assert_eq!(AnyTable::len(&table), len);
            let occupied = |bucket| table.layout.occupied(table.look(bucket));
            assert_eq!((0..buckets).map(occupied).sum::<usize>(), len, "what was found by looking into every bucket");
        }
        for (&(fingerprint, first, second), &copies) in &model {
            let item = Item { fingerprint: Fingerprint(fingerprint), first, second };
            assert_eq!(table.count(item), copies, "a failed insert, or any other, has changed something");
        }
    }

    /// On tables of all layouts.
    fn run(buckets: usize, operations: &[(u8, u64)]) {
        compare::<Plain<8, 8>>(buckets, operations);
        compare::<Plain<7, 9>>(buckets, operations);
        compare::<Plain<6, 10>>(buckets, operations);
        compare::<SemiSorted<6, 12>>(buckets, operations);
        compare::<Plain<5, 12>>(buckets, operations);
        compare::<SemiSorted<5, 14>>(buckets, operations);
        compare::<Plain<4, 16>>(buckets, operations);
        compare::<SemiSorted<4, 17>>(buckets, operations);
        compare::<Plain<3, 21>>(buckets, operations);
        compare::<SemiSorted<3, 22>>(buckets, operations);
        compare::<Plain<2, 32>>(buckets, operations);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        #[test]
        fn a_table_is_a_multiset_of_classes(
            buckets in prop_oneof![1..9usize, 9..40usize],
            operations in prop::collection::vec((0..12u8, any::<u64>()), 0..if cfg!(miri) { 40 } else { 400 }),
        ) {
            run(buckets, &operations);
        }

        #[test]
        fn a_table_is_a_multiset_of_classes_where_few_keys_come_often(
            buckets in 1..6usize,
            keys in 1..12u64,
            operations in prop::collection::vec((0..13u8, any::<u64>()), 0..if cfg!(miri) { 40 } else { 300 }),
        ) {
            let operations: Vec<_> = operations.into_iter().map(|(operation, hash)| (operation, hash % keys)).collect();
            run(buckets, &operations);
        }
    }

    #[test]
    fn every_table_up_to_the_budget_fills_to_the_last_item_that_fits() {
        for buckets in [1, 2, 3, 4, 5, 10, 51, 100] {
            let table = Table::<SemiSorted<3, 22>>::new(buckets, 0).expect("a small table");
            let mut copies = Vec::new();
            for hash in (1..).map(|i: u64| i.wrapping_mul(0x2545_f491_4f6c_dd1d)) {
                let item = table.item(hash);
                copies.push(class(item));
                if table.insert(item).is_err() {
                    break;
                }
            }
            assert!(!fits(&copies, buckets, 3), "{buckets} buckets: refused the {}th item", copies.len());
            assert!(fits(&copies[..copies.len() - 1], buckets, 3));
        }
    }
}
