//! CONCURRENT: lookups, which take no lock, and `count`, which does. A single lookup is `contains`, which makes one
//! optimistic read (`load_pair`) and, if that was invalidated, `contains_slow`. A lookup in a batch is `look_up_block`,
//! with the same steps for 32 keys. The [`Query`] is what it asks of each key.

use crate::machine::arch::prefetch;
use crate::plan::batch::{self, BLOCK};
use crate::plan::pairs::Pairs;
use crate::sync::AtomicU64;
use crate::table::table::{Stripes, Table, load};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Item, Items};
use crate::word::layout::Layout;
use crate::word::ring::Moment;

/// A table of at most this many buckets stays in the L2 cache if it is hot. Out-of-order execution hides the latency of
/// that cache.
const NEAR: usize = (512 << 10) / size_of::<u64>();

pub(super) type Block<'a> = batch::Block<'a, Items<BLOCK>>;

/// What a batch of lookups asks of each key.
pub(super) trait Query: Copy {
    type Answer: Copy;

    const ABSENT: Self::Answer;

    /// Computes the answers from the buckets. `moment` is that of the table's clock, if it has one, from before they
    /// were read.
    fn compare<L: Layout>(
        self,
        table: &Table<L>,
        layout: impl Layout,
        moment: Option<Moment>,
        block: Block<'_>,
        pairs: &Pairs,
        answers: &mut [Self::Answer; BLOCK],
    );

    /// Retries for one key whose first attempt was invalidated. `seen` is the answer of that attempt.
    fn retry<L: Layout>(self, table: &Table<L>, seen: Self::Answer, hash: u64) -> Self::Answer;
}

impl<L: Layout> Table<L> {
    /// Whether the table holds a copy of the item of this hash. Lock-free. `table/stripe.rs` proves that *false* is
    /// right.
    #[inline(always)]
    pub(super) fn contains(&self, layout: impl Layout, hash: u64) -> bool {
        let item = self.buckets.item(layout, hash);
        let fingerprint = layout.fingerprint_of(item.entry);
        let holds = |first, second| layout.either_holds(first, second, fingerprint);
        // The rare retry gets the hash, which occupies one register; an item occupies four.
        self.load_pair(item, holds, |_, _| self.contains_slow(hash))
    }

    /// `contains` where the first attempt was invalidated: retries, until an attempt finds a match or is valid. (A
    /// match in the first one would have been valid, but passing it on would cost registers in all lookups.)
    #[cold]
    #[inline(never)]
    pub(super) fn contains_slow(&self, hash: u64) -> bool {
        let item = self.item(hash);
        let fingerprint = self.layout.fingerprint_of(item.entry);
        let holds = |first, second| self.layout.either_holds(first, second, fingerprint);
        loop {
            self.counters.lookup_retried();
            // A match is certain in any case.
            let found = |first, second| holds(first, second).then_some(true);
            if let Some(found) = self.load_pair(item, |first, second| Some(holds(first, second)), found) {
                return found;
            }
        }
    }

    /// One optimistic read: the answer of `undisturbed` for the item's two buckets, or of `disturbed` if the version
    /// has changed meanwhile, so that the read was invalidated.
    ///
    /// The version is compared before the words. That takes few registers, and each verdict has a branch of its own,
    /// which goes the same way nearly always.
    #[inline(always)]
    pub(super) fn load_pair<R>(
        &self,
        item: Item,
        undisturbed: impl FnOnce(Bucket, Bucket) -> R,
        disturbed: impl FnOnce(Bucket, Bucket) -> R,
    ) -> R {
        // Before the version: the compiler may not hoist a later load above an acquire load.
        let words = &*self.words;
        let stripe = self.stripe(item.sum);
        let version = stripe.version();
        let first = load(words, item.first);
        let second = load(words, item.second);
        if stripe.is_still(version) { undisturbed(first, second) } else { disturbed(first, second) }
    }

    /// The lookups of a block. If there is a next block, prefetches its buckets. `pairs` is for what is read; what it has from
    /// an earlier block has no meaning.
    ///
    /// Each lookup has the steps of a single one, in the same order. But all loads come before any word is decoded or
    /// compared, and before any retry. So the loads of many keys overlap, and all words are compared in loops that are
    /// vectorized.
    #[inline(always)]
    pub(super) fn look_up_block<Q: Query>(
        &self,
        layout: impl Layout,
        query: Q,
        block: Block<'_>,
        coming: Option<&Items<BLOCK>>,
        pairs: &mut Pairs,
        answers: &mut [Q::Answer; BLOCK],
    ) {
        let moment = self.moment();
        let changes = self.load_block(layout, block, coming, pairs);
        query.compare(self, layout, moment, block, pairs, answers);
        if changes != 0 {
            for (answer, &hash) in answers.iter_mut().zip(block.hashes).take(block.len) {
                *answer = query.retry(self, *answer, hash);
            }
        }
    }

    /// Reads the pairs of a block, each as in [`load_nth`]. Returns nonzero if any version has changed. If there is a
    /// next block, prefetches its buckets. (Not inlined: no vector unit does it better, so it is compiled only once for all
    /// queries.)
    #[inline(never)]
    fn load_block(
        &self,
        layout: impl Layout,
        block: Block<'_>,
        coming: Option<&Items<BLOCK>>,
        pairs: &mut Pairs,
    ) -> u64 {
        if block.len == BLOCK {
            return if let Some(coming) = coming {
                self.load_whole_block::<true>(layout, block.prepared, coming, pairs)
            } else {
                self.load_whole_block::<false>(layout, block.prepared, block.prepared, pairs)
            };
        }
        let mut changes = 0;
        for nth in 0..block.len.min(BLOCK) {
            changes |= load_nth(layout, &self.words, self.stripes(), block.prepared, nth, pairs);
        }
        changes
    }

    /// [`load_nth`] for all items, unrolled by four; returns nonzero if any version has changed. If `PREFETCH`,
    /// prefetches the buckets of `coming`.
    #[inline(always)]
    fn load_whole_block<const PREFETCH: bool>(
        &self,
        layout: impl Layout,
        items: &Items<BLOCK>,
        coming: &Items<BLOCK>,
        pairs: &mut Pairs,
    ) -> u64 {
        // Read once here: otherwise the compiler would read them again after each load of a version.
        let (words, stripes) = (&*self.words, self.stripes());
        let mut changes = 0;
        for fourth in 0..BLOCK / 4 {
            for nth in 4 * fourth..4 * fourth + 4 {
                if PREFETCH {
                    self.prefetch(coming.get(nth));
                }
                changes |= load_nth(layout, words, stripes, items, nth, pairs);
            }
        }
        changes
    }

    /// How many copies there are of the item of this hash with this payload.
    #[inline(never)]
    pub(super) fn count(&self, layout: impl Layout, hash: u64, payload: u16) -> usize {
        let item = self.buckets.item(layout, hash).with(layout, payload);
        let _guard = self.stripe(item.sum).lock(&self.counters);
        self.copies_of_item(layout, item)
    }

    /// Whether it pays to prefetch buckets before a lookup. In a small table it does not: its buckets are in the
    /// cache.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        self.words.len() > NEAR
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, item: Item) {
        prefetch(&self.words, item.first);
        prefetch(&self.words, item.second);
    }

    #[inline(never)]
    pub(super) fn prefetch_block(&self, items: &Items<BLOCK>) {
        for nth in 0..BLOCK {
            self.prefetch(items.get(nth));
        }
    }
}

/// The loads of one lookup of a block: reads the version, both buckets, and the version again. Returns 0 if the
/// version is still the same.
#[inline(always)]
fn load_nth<L: Layout>(
    layout: L,
    words: &[AtomicU64],
    stripes: Stripes<'_>,
    items: &Items<BLOCK>,
    nth: usize,
    pairs: &mut Pairs,
) -> u64 {
    let stripe = stripes.get(items.sums[nth] as usize);
    let version = stripe.version();
    let first = load(words, items.firsts[nth] as usize);
    let second = load(words, items.seconds[nth] as usize);
    let changes = stripe.changes_since(version);
    pairs.set(layout, nth, first, second);
    changes
}
