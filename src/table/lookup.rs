//! CONCURRENT: lookups, which take no lock, and `count`, which does.

use crate::machine::arch::prefetch;
use crate::plan::batch::BLOCK;
use crate::table::words::Table;
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps, Candidate};
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::{Fingerprint, Layout};

/// A candidate of a batch's lookup that has yet to be confirmed, and whose it is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Match {
    candidate: Candidate,
    index: usize,
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Whether the table holds a copy of the item. Lock-free; see `table/stripe.rs` for why *false* is true.
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
    pub(super) fn contains_anew(&self, first: usize, second: usize, fingerprint: Fingerprint) -> bool {
        self.counters.lookup_retried();
        self.contains_exactly(first, second, fingerprint)
    }

    /// `contains` by looks that are never unsure, as many as it takes. (Its arguments fit in registers: an `Item` would
    /// go through memory, which `contains` need not touch.)
    #[cold]
    #[inline(never)]
    pub(super) fn contains_exactly(&self, first: usize, second: usize, fingerprint: Fingerprint) -> bool {
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
    pub(super) fn look_once<R: From<bool>>(
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

    /// How many copies of the item there are.
    pub(crate) fn count(&self, item: Item) -> usize {
        let _guard = self.stripe(item.first, item.second).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies(item)
    }

    /// The item, with its buckets on their way into the cache.
    #[inline(always)]
    pub(super) fn prefetched(&self, hash: u64) -> Item {
        let item = self.item(hash);
        self.prefetch(item);
        item
    }

    /// The items of these hashes, with their buckets on their way into the cache.
    #[inline(always)]
    pub(super) fn prepare(&self, hashes: &[u64], items: &mut [Item]) {
        for (item, &hash) in items.iter_mut().zip(hashes) {
            *item = self.prefetched(hash);
        }
    }

    /// Asks for the item's buckets.
    #[inline(always)]
    pub(super) fn prefetch(&self, item: Item) {
        prefetch(&self.words, item.first);
        prefetch(&self.words, item.second);
    }
}
