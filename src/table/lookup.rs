//! CONCURRENT: lookups, which take no lock, and `count`, which does.

use crate::machine::arch::prefetch;
use crate::plan::batch::BLOCK;
use crate::sync::AtomicU64;
use crate::table::words::{Stripes, Table, look};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps, Candidate};
use crate::word::geometry::{Geometry, Index, Item, Items};
use crate::word::layout::{Fingerprint, Layout};

/// A table of at most this many buckets is in the L2 cache, if it is used much. While the L2 cache answers, a
/// processor works on other lookups.
const NEAR: usize = (512 << 10) / size_of::<u64>();

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Whether the table holds a copy of the item of this hash. Lock-free. `table/stripe.rs` proves that *false* is
    /// right.
    #[inline(always)]
    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        // The rare look that has to be repeated needs its key again. The hash takes one register to keep, an item
        // four.
        self.contains_or_again(self.item(hash), move || self.item(hash))
    }

    /// Whether the table holds a copy of the item.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn contains(&self, item: Item) -> bool {
        self.contains_or_again(item, move || item)
    }

    /// Whether the table holds a copy of the item, which `again` returns too.
    #[inline(always)]
    pub(super) fn contains_or_again(&self, item: Item, again: impl FnOnce() -> Item + Copy) -> bool {
        let verdict = |first, second| match self.layout.either_contains(first, second, self.fingerprint(item)) {
            Some(found) => found,
            None => self.contains_exactly(again),
        };
        self.look_once(item, verdict, |_, _| self.contains_anew(again))
    }

    /// `contains` where the first look was disturbed: counts that, and looks again. A match would have been certain.
    /// But to pass it on would take registers from all undisturbed lookups.
    #[cold]
    #[inline(never)]
    fn contains_anew(&self, item: impl FnOnce() -> Item) -> bool {
        self.counters.lookup_retried();
        self.contains_exactly(item)
    }

    /// `contains` by looks that are never unsure, repeated until one finds a match or is undisturbed.
    #[cold]
    #[inline(never)]
    pub(super) fn contains_exactly(&self, item: impl FnOnce() -> Item) -> bool {
        let item = item();
        let holds = |bucket| self.layout.holds(bucket, self.fingerprint(item));
        let either_holds = |first, second| holds(first) || holds(second);
        loop {
            // A match is certain in any case.
            let found = |first, second| either_holds(first, second).then_some(true);
            if let Some(found) = self.look_once(item, |first, second| Some(either_holds(first, second)), found) {
                return found;
            }
            self.counters.lookup_retried();
        }
    }

    /// One round of a lookup. Returns what `undisturbed` answers for the item's two buckets. If the version has
    /// changed meanwhile, returns what `disturbed` answers.
    ///
    /// The version is compared before the words. That takes few registers, and each verdict has a branch of its own,
    /// which goes the same way nearly always.
    #[inline(always)]
    pub(super) fn look_once<R>(
        &self,
        item: Item,
        undisturbed: impl FnOnce(Bucket, Bucket) -> R,
        disturbed: impl FnOnce(Bucket, Bucket) -> R,
    ) -> R {
        // Before the version: the compiler may not move a later load to before an acquire load.
        let words = &*self.words;
        let stripe = self.stripe(item.sum);
        let version = stripe.version();
        let first = look(words, item.first);
        let second = look(words, item.second);
        if fault::injected(Fault::LookupWithoutVersion) || stripe.is_still(version) {
            undisturbed(first, second)
        } else {
            disturbed(first, second)
        }
    }

    /// `contains` for each of the first `len` items of a block.
    ///
    /// Each lookup has the steps of `contains`, in the same order. But all of them are made before any word is
    /// compared, before any candidate is decoded and before any look is repeated. So no branch depends on what was
    /// found, and nothing is mispredicted; the loads of many keys overlap; and all words are compared in loops that
    /// are vectorized.
    ///
    /// If there are items to come, prefetches their buckets.
    #[inline(always)]
    pub(crate) fn contains_block(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        answers: &mut [bool; BLOCK],
    ) {
        let (mut firsts, mut seconds) = ([0; BLOCK], [0; BLOCK]);
        let changes = self.look_at_block(items, len, coming, &mut firsts, &mut seconds);
        let mut patterns = [0; BLOCK];
        for (pattern, &fingerprint) in patterns.iter_mut().zip(&items.entries) {
            *pattern = self.layout.pattern(Fingerprint(fingerprint));
        }
        if L::SEMI_SORTED {
            let mut candidates = [Candidate::default(); BLOCK];
            for nth in 0..BLOCK {
                candidates[nth] = self.layout.candidate_for(Bucket(firsts[nth]), Bucket(seconds[nth]), patterns[nth]);
                answers[nth] = candidates[nth].exists();
            }
            // One bit for each answer: then the only branch that depends on the answers is the end of the loop over
            // the bits that are set.
            let mut matches = 0;
            for (nth, &found) in answers.iter().enumerate() {
                matches |= u32::from(found) << nth;
            }
            matches &= ((1u64 << len) - 1) as u32;
            while matches != 0 {
                let nth = matches.trailing_zeros() as usize % BLOCK;
                matches &= matches - 1;
                let fingerprint = Fingerprint(items.entries[nth]);
                answers[nth] =
                    self.layout.confirms(candidates[nth], fingerprint) || self.contains_exactly(|| items.get(nth));
            }
        } else {
            for nth in 0..BLOCK {
                answers[nth] = self.layout.either_matches(Bucket(firsts[nth]), Bucket(seconds[nth]), patterns[nth]);
            }
        }
        if changes != 0 && !fault::injected(Fault::LookupWithoutVersion) {
            for (nth, answer) in answers.iter_mut().enumerate().take(len) {
                *answer = *answer || self.contains_anew(|| items.get(nth));
            }
        }
    }

    /// [`look_at_nth`] for the first `len` items; returns nonzero if any version has changed. If there are items to
    /// come, prefetches their buckets.
    #[inline(always)]
    pub(super) fn look_at_block(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        firsts: &mut [u64; BLOCK],
        seconds: &mut [u64; BLOCK],
    ) -> u64 {
        if len == BLOCK {
            return if let Some(coming) = coming {
                self.look_at_all::<true>(items, coming, firsts, seconds)
            } else {
                self.look_at_all::<false>(items, items, firsts, seconds)
            };
        }
        let mut changes = 0;
        for nth in 0..len.min(BLOCK) {
            changes |= look_at_nth(&self.words, self.stripes(), items, nth, firsts, seconds);
        }
        changes
    }

    /// [`look_at_nth`] for all items, four in each turn of the loop; returns nonzero if any version has changed. If
    /// `ASK`, prefetches the buckets of `coming`.
    #[inline(always)]
    fn look_at_all<const ASK: bool>(
        &self,
        items: &Items<G::Index, BLOCK>,
        coming: &Items<G::Index, BLOCK>,
        firsts: &mut [u64; BLOCK],
        seconds: &mut [u64; BLOCK],
    ) -> u64 {
        // Read once here: otherwise the compiler would read them again after each load of a version.
        let (words, stripes) = (&*self.words, self.stripes());
        let mut changes = 0;
        for fourth in 0..BLOCK / 4 {
            for nth in 4 * fourth..4 * fourth + 4 {
                if ASK {
                    self.prefetch(coming.get(nth));
                }
                changes |= look_at_nth(words, stripes, items, nth, firsts, seconds);
            }
        }
        changes
    }

    /// How many copies of the item there are.
    pub(crate) fn count(&self, item: Item) -> usize {
        let _guard = self.stripe(item.sum).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies_of_item(item)
    }

    /// How many copies of the item's class there are.
    pub(super) fn copies_locked(&self, item: Item) -> usize {
        let _guard = self.stripe(item.sum).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies(item)
    }

    /// The items of these hashes.
    #[inline(always)]
    pub(super) fn prepare(&self, hashes: &[u64; BLOCK], items: &mut Items<G::Index, BLOCK>) {
        self.buckets.items(self.layout, hashes, items);
    }

    /// Prefetches the buckets of all these items.
    #[inline(always)]
    pub(super) fn ask(&self, items: &Items<G::Index, BLOCK>) {
        for nth in 0..BLOCK {
            self.prefetch(items.get(nth));
        }
    }

    /// Whether it pays to prefetch buckets before a lookup. In a small table it does not: its buckets are in the
    /// cache.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        self.words.len() > NEAR
    }

    /// Prefetches the item's buckets.
    #[inline(always)]
    pub(super) fn prefetch(&self, item: Item) {
        prefetch(&self.words, item.first);
        prefetch(&self.words, item.second);
    }
}

/// The steps of one lookup of a block: reads the version, both buckets, and the version again. Returns 0 if the
/// version is still the same.
#[inline(always)]
fn look_at_nth<I: Index>(
    words: &[AtomicU64],
    stripes: Stripes<'_>,
    items: &Items<I, BLOCK>,
    nth: usize,
    firsts: &mut [u64; BLOCK],
    seconds: &mut [u64; BLOCK],
) -> u64 {
    let stripe = stripes.get(items.sums[nth].get());
    let version = stripe.version();
    firsts[nth] = look(words, items.firsts[nth].get()).0;
    seconds[nth] = look(words, items.seconds[nth].get()).0;
    stripe.changes_since(version)
}
