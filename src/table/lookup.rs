//! CONCURRENT: lookups, which take no lock, and `count`, which does. A single lookup is `contains`, which makes one
//! optimistic read (`load_pair`) and, if that was invalidated, `contains_slow`. A lookup in a batch is `look_up_block`,
//! with the same steps for 32 keys. The [`Query`] is what it asks of each key.

use core::hint::select_unpredictable;

use crate::machine::arch::prefetch;
use crate::plan::batch::{self, BLOCK};
use crate::plan::pairs::Pairs;
use crate::sync::AtomicU64;
use crate::table::entries::Entries;
use crate::table::table::{Stripes, Table, load};
use crate::word::bucket::{Bucket, BucketOps, FoundSlot, choose};
use crate::word::geometry::{Item, Items};
use crate::word::layout::Layout;
use crate::word::payloads::PayloadOps;

/// A table of at most this many buckets stays in the L2 cache if it is hot. Out-of-order execution hides the latency of
/// that cache.
const NEAR: usize = (512 << 10) / size_of::<u64>();

pub(super) type Block<'a> = batch::Block<'a, Items<BLOCK>>;

/// What a batch of lookups asks of each key.
pub(super) trait Query<E: Entries>: Copy {
    type Answer: Copy;

    const ABSENT: Self::Answer;

    /// Computes the answers from the buckets. `reading` is that of the table's clock, if it has one, from before they
    /// were read.
    fn compare(
        self,
        table: &Table<E>,
        layout: impl Layout,
        reading: E::Reading,
        block: Block<'_>,
        pairs: &Pairs,
        answers: &mut [Self::Answer; BLOCK],
    );

    /// Retries for one key whose first attempt was invalidated. `seen` is the answer of that attempt.
    fn retry(self, table: &Table<E>, seen: Self::Answer, hash: u64) -> Self::Answer;
}

/// Whether the key is present; where entries expire, whether it has a live one.
#[derive(Clone, Copy)]
pub(in crate::table) struct PresenceQuery;

impl<E: Entries> Query<E> for PresenceQuery {
    type Answer = bool;

    const ABSENT: bool = false;

    /// One reading of the clock serves for all lookups of a block.
    #[inline(always)]
    fn compare(
        self,
        table: &Table<E>,
        layout: impl Layout,
        reading: E::Reading,
        block: Block<'_>,
        pairs: &Pairs,
        answers: &mut [bool; BLOCK],
    ) {
        if table.entries.may_be_dead(reading) {
            table.compare_block_among_dead(layout, reading, block, pairs, answers);
        } else {
            pairs.find(layout, &block.prepared.entries, answers);
        }
    }

    #[inline(always)]
    fn retry(self, table: &Table<E>, seen: bool, hash: u64) -> bool {
        // A match is certain in any case.
        seen || table.contains_slow(hash)
    }
}

impl<E: Entries> Table<E> {
    /// Whether the table holds a copy of the class of this hash; where entries expire, a live one. Lock-free.
    /// `table/stripe.rs` proves that *false* is right, and `table/expiring/mod.rs` where entries expire.
    #[inline(always)]
    pub(super) fn contains(&self, layout: impl Layout, hash: u64) -> bool {
        let item = self.buckets.item(layout, hash);
        let reading = self.entries.reading();
        if self.entries.may_be_dead(reading) {
            return self.contains_among_dead(reading, hash);
        }
        let fingerprint = layout.fingerprint_of(item.entry);
        let holds = |first, second| layout.either_holds(first, second, fingerprint);
        // The rare retry gets the hash, which occupies one register; an item occupies four.
        self.load_pair(item, holds, |_, _| self.contains_slow(hash))
    }

    /// `contains` while the table may hold dead entries.
    #[inline(never)]
    fn contains_among_dead(&self, reading: E::Reading, hash: u64) -> bool {
        let item = self.item(hash);
        let fingerprint = self.layout.fingerprint_of(item.entry);
        let found = |first, second| {
            let lanes = self.layout.lanes_in_either(first, second, fingerprint);
            let slot = choose([first, second], [0; 2], lanes).1;
            // If it is not live, another entry may be, or this one may be live by now.
            if self.is_dead(reading, slot) { self.contains_exactly(hash) } else { slot.exists() }
        };
        self.load_pair(item, found, |_, _| self.contains_slow(hash))
    }

    /// Whether there is an entry in the slot whose expiry is past. That is rare. Whether there is one at all can't be
    /// predicted, so no branch depends on that alone.
    #[inline(always)]
    fn is_dead(&self, reading: E::Reading, slot: FoundSlot) -> bool {
        let is_live = self.entries.is_live(reading, self.layout.payload_at(slot));
        select_unpredictable(slot.exists(), !is_live, false)
    }

    /// `contains` where the first attempt was invalidated. (A match in it would have been valid, but passing it on would cost
    /// registers in all lookups.)
    #[cold]
    #[inline(never)]
    pub(super) fn contains_slow(&self, hash: u64) -> bool {
        self.counters.lookup_retried();
        self.contains_exactly(hash)
    }

    /// `contains` by attempts that are repeated until one has a definite answer. A live match always is one. *False* is one if
    /// neither the version nor the clock has changed.
    #[cold]
    #[inline(never)]
    fn contains_exactly(&self, hash: u64) -> bool {
        let item = self.item(hash);
        let fingerprint = self.layout.fingerprint_of(item.entry);
        loop {
            let reading = self.entries.reading();
            let holds = |bucket| self.live_copies_in(reading, bucket, fingerprint) > 0;
            let either_holds = |first, second| holds(first) || holds(second);
            let undisturbed = |first, second| Some(either_holds(first, second));
            let disturbed = |first, second| either_holds(first, second).then_some(true);
            if let Some(found) = self.load_pair(item, undisturbed, disturbed)
                && (found || self.entries.is_still(reading))
            {
                return found;
            }
            self.counters.lookup_retried();
        }
    }

    /// Whether each key of a block has a live entry, while the table may hold dead ones.
    #[inline(always)]
    fn compare_block_among_dead(
        &self,
        layout: impl Layout,
        reading: E::Reading,
        block: Block<'_>,
        pairs: &Pairs,
        answers: &mut [bool; BLOCK],
    ) {
        // One bit for each item. The only branch that depends on what was found is the end of the loop over the bits.
        let mut dead = 0;
        for (nth, answer) in answers.iter_mut().enumerate() {
            let lanes = pairs.lanes(layout, nth, block.prepared.entries[nth]);
            let slot = choose(pairs.buckets(nth), [0; 2], lanes).1;
            *answer = slot.exists();
            dead |= u32::from(self.is_dead(reading, slot)) << nth;
        }
        dead &= ((1u64 << block.len) - 1) as u32;
        while dead != 0 {
            let nth = dead.trailing_zeros() as usize % BLOCK;
            dead &= dead - 1;
            answers[nth] = self.contains_exactly(block.hashes[nth]);
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
    pub(super) fn look_up_block<Q: Query<E>>(
        &self,
        layout: impl Layout,
        query: Q,
        block: Block<'_>,
        coming: Option<&Items<BLOCK>>,
        pairs: &mut Pairs,
        answers: &mut [Q::Answer; BLOCK],
    ) {
        let reading = self.entries.reading();
        let changes = self.load_block(layout, block, coming, pairs);
        query.compare(self, layout, reading, block, pairs, answers);
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
    pub(crate) fn count(&self, layout: impl Layout, hash: u64, payload: u16) -> usize {
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
