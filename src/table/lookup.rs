//! CONCURRENT: lookups, which take no lock, and `count`, which does.

use crate::machine::arch::prefetch;
use crate::plan::batch::BLOCK;
use crate::sync::AtomicU64;
use crate::sync::fault::{self, Fault};
use crate::table::table::{Stripes, Table, look};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Geometry, Index, Item, Items};
use crate::word::layout::Layout;

/// A table of at most this many buckets is in the L2 cache, if it is used much. While the L2 cache answers, a
/// processor works on other lookups.
const NEAR: usize = (512 << 10) / size_of::<u64>();

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Whether the table holds a copy of the item of this hash. Lock-free. `table/stripe.rs` proves that *false* is
    /// right.
    #[inline(always)]
    pub(super) fn contains_hash(&self, layout: impl Layout, hash: u64) -> bool {
        // The rare look that has to be repeated needs its key again. The hash takes one register to keep, an item
        // four.
        self.contains_or_again(layout, self.buckets.item(layout, hash), self.item_again(hash))
    }

    /// Whether the table holds a copy of the item.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn contains(&self, item: Item) -> bool {
        self.contains_or_again(self.layout(), item, self.same_again(item))
    }

    /// Whether the table holds a copy of the item, which `again` returns too.
    #[inline(always)]
    pub(super) fn contains_or_again(
        &self,
        layout: impl Layout,
        item: Item,
        again: impl FnOnce() -> Item + Copy,
    ) -> bool {
        let holds = |first, second| layout.either_holds(first, second, self.fingerprint(item));
        self.look_once(item, holds, |_, _| self.contains_anew(again))
    }

    /// `contains` where the first look was disturbed: looks again, until a look finds a match or is undisturbed. (A
    /// match in the first one would have been certain. But to pass it on would take registers from all undisturbed
    /// lookups.)
    #[cold]
    #[inline(never)]
    fn contains_anew(&self, item: impl FnOnce() -> Item) -> bool {
        let item = item();
        let holds = |first, second| self.layout.either_holds(first, second, self.fingerprint(item));
        loop {
            self.counters.lookup_retried();
            // A match is certain in any case.
            let found = |first, second| holds(first, second).then_some(true);
            if let Some(found) = self.look_once(item, |first, second| Some(holds(first, second)), found) {
                return found;
            }
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
    /// Each lookup has the steps of `contains`, in the same order. But all of them are made before any word is decoded
    /// or compared, and before any look is repeated. So the loads of many keys overlap, and all words are compared in
    /// loops that are vectorized.
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
        let mut seen = Seen::NOTHING;
        let changes = self.look_at_block(items, len, coming, &mut seen);
        self.compare_block(items, &seen, answers);
        if changes != 0 && !fault::injected(Fault::LookupWithoutVersion) {
            for (nth, answer) in answers.iter_mut().enumerate().take(len) {
                *answer = *answer || self.contains_anew(|| items.get(nth));
            }
        }
    }

    /// Whether either bucket of each item of a block holds the item.
    #[inline(always)]
    pub(super) fn compare_block(&self, items: &Items<G::Index, BLOCK>, seen: &Seen, answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate() {
            let [in_first, in_second] = self.lanes_of_nth(items, seen, nth);
            *answer = in_first | in_second != 0;
        }
    }

    /// The lanes in which the buckets of one item of a block hold the item.
    #[inline(always)]
    pub(super) fn lanes_of_nth(&self, items: &Items<G::Index, BLOCK>, seen: &Seen, nth: usize) -> [u64; 2] {
        let folded = [seen.of_firsts[nth], seen.of_seconds[nth]];
        self.layout.lanes_in(seen.buckets(nth), folded, self.layout.pattern(items.entries[nth]))
    }

    /// [`look_at_nth`] for the first `len` items; returns nonzero if any version has changed. If there are items to
    /// come, prefetches their buckets.
    #[inline(always)]
    pub(super) fn look_at_block(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        seen: &mut Seen,
    ) -> u64 {
        if len == BLOCK {
            return if let Some(coming) = coming {
                self.look_at_all::<true>(items, coming, seen)
            } else {
                self.look_at_all::<false>(items, items, seen)
            };
        }
        let mut changes = 0;
        for nth in 0..len.min(BLOCK) {
            changes |= look_at_nth(self.layout, &self.words, self.stripes(), items, nth, seen);
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
        seen: &mut Seen,
    ) -> u64 {
        // Read once here: otherwise the compiler would read them again after each load of a version.
        let (layout, words, stripes) = (self.layout, &*self.words, self.stripes());
        let mut changes = 0;
        for fourth in 0..BLOCK / 4 {
            for nth in 4 * fourth..4 * fourth + 4 {
                if ASK {
                    self.prefetch(coming.get(nth));
                }
                changes |= look_at_nth(layout, words, stripes, items, nth, seen);
            }
        }
        changes
    }

    /// How many copies of the item there are.
    pub(crate) fn count(&self, layout: impl Layout, item: Item) -> usize {
        let _guard = self.stripe(item.sum).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies_of_item(layout, item)
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

/// What a block of lookups has read: both buckets of each item, and what the decode table has for each.
pub(super) struct Seen {
    firsts: [u64; BLOCK],
    seconds: [u64; BLOCK],
    of_firsts: [u32; BLOCK],
    of_seconds: [u32; BLOCK],
}

impl Seen {
    /// To be overwritten.
    pub(super) const NOTHING: Self =
        Self { firsts: [0; BLOCK], seconds: [0; BLOCK], of_firsts: [0; BLOCK], of_seconds: [0; BLOCK] };

    /// The two buckets of an item.
    #[inline(always)]
    pub(super) fn buckets(&self, nth: usize) -> [Bucket; 2] {
        [self.firsts[nth], self.seconds[nth]].map(Bucket)
    }
}

/// The steps of one lookup of a block: reads the version, both buckets, and the version again. Returns 0 if the
/// version is still the same.
///
/// It also asks the decode table. In a loop of its own that would become a vector instruction, which takes longer than
/// the loads.
#[inline(always)]
fn look_at_nth<L: Layout, I: Index>(
    layout: L,
    words: &[AtomicU64],
    stripes: Stripes<'_>,
    items: &Items<I, BLOCK>,
    nth: usize,
    seen: &mut Seen,
) -> u64 {
    let stripe = stripes.get(items.sums[nth].get());
    let version = stripe.version();
    let first = look(words, items.firsts[nth].get());
    let second = look(words, items.seconds[nth].get());
    let changes = stripe.changes_since(version);
    (seen.firsts[nth], seen.seconds[nth]) = (first.0, second.0);
    if L::SEMI_SORTED {
        (seen.of_firsts[nth], seen.of_seconds[nth]) = (layout.folded(first), layout.folded(second));
    }
    changes
}
