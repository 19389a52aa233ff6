//! PURE: lookups in a table of a fixed size. A single lookup is one optimistic read ([`ask`](FixedLookup::ask)). A lookup in a
//! batch has the same steps in the same order, each for a block of keys.

use crate::lookup::batch::{self, BLOCK, BlockLookup, Hashes, LookupBatch};
use crate::lookup::pairs::Pairs;
use crate::lookup::query::Query;
use crate::lookup::source::BucketSource;
use crate::machine::arch::VectorUnit;
use crate::word::bucket::Bucket;
use crate::word::geometry::{Geometry, Item, Items};
use crate::word::layout::Layout;

/// A table of a fixed size, as a lookup sees it.
#[derive(Clone, Copy)]
pub(crate) struct FixedLookup<L, S> {
    pub(crate) layout: L,
    pub(crate) geometry: Geometry,
    pub(crate) source: S,
}

/// A block of keys: their buckets and fingerprints.
pub(crate) type Block<'a> = batch::Block<'a, Items<BLOCK>>;

impl<L: Layout, S: BucketSource> FixedLookup<L, S> {
    /// The answer for the key with this hash, by one optimistic read; or that of `again` if the read was invalidated. (The rare
    /// retry gets only what the closure has: a hash occupies one register, an item four.)
    #[inline(always)]
    pub(crate) fn ask<Q: Query>(self, query: Q, hash: u64, again: impl Fn() -> Q::Answer) -> Q::Answer {
        let (layout, item) = (self.layout, self.geometry.item(self.layout, hash));
        let (reading, fingerprint) = (query.reading(), layout.fingerprint_of(item.entry));
        let if_valid = |pair| match query.answer(reading, layout, pair, fingerprint) {
            Some(answer) => answer,
            None => again(),
        };
        self.load_pair(item, if_valid, |_| again())
    }

    /// The same with the layout as data.
    fn as_runtime(&self) -> FixedLookup<&L::Runtime, S> {
        FixedLookup { layout: self.layout.as_runtime(), geometry: self.geometry, source: self.source }
    }

    /// `ask` after its read was invalidated: repeats it until it is not, or until there is an answer that counts in any case.
    #[cold]
    #[inline(never)]
    pub(crate) fn ask_again<Q: Query>(self, query: Q, hash: u64) -> Q::Answer {
        loop {
            self.source.retried();
            if let Some(answer) = self.try_ask(query, hash) {
                return answer;
            }
        }
    }

    /// The answer for the key with this hash, or `None` if the read was invalidated and the answer does not count.
    #[inline(always)]
    pub(crate) fn try_ask<Q: Query>(self, query: Q, hash: u64) -> Option<Q::Answer> {
        let (layout, item) = (self.layout, self.geometry.item(self.layout, hash));
        let (reading, fingerprint) = (query.reading(), layout.fingerprint_of(item.entry));
        let answer = move |pair| query.answer(reading, layout, pair, fingerprint);
        self.load_pair(item, answer, |pair| answer(pair).filter(Q::is_certain))
    }

    /// One optimistic read: the answer of `if_valid` for the item's two buckets, or of `if_invalidated` if the version
    /// has changed meanwhile, so that the read was invalidated.
    ///
    /// The version is compared before the words. That takes few registers, and each verdict has a branch of its own,
    /// which goes the same way nearly always.
    #[inline(always)]
    pub(crate) fn load_pair<R>(
        self,
        item: Item,
        if_valid: impl FnOnce([Bucket; 2]) -> R,
        if_invalidated: impl FnOnce([Bucket; 2]) -> R,
    ) -> R {
        let version = self.source.version(item.bucket_sum);
        let first = self.source.load(item.first);
        let second = self.source.load(item.second);
        if self.source.changes_since(version) == 0 {
            if_valid([first, second])
        } else {
            if_invalidated([first, second])
        }
    }

    /// Calls `answers` with the answers for all hashes, in order and a block at a time.
    #[inline(never)]
    pub(crate) fn ask_all<Q: Query>(self, query: Q, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Q::Answer])) {
        VectorUnit::widest().run(LookupBatch { lookup: self.batch(query), hashes, answers });
    }

    #[inline(always)]
    pub(crate) fn batch<Q>(self, query: Q) -> FixedBatch<L, S, Q> {
        FixedBatch { lookup: self, query, pairs: Pairs::NONE }
    }

    #[inline(never)]
    fn prefetch_block(self, items: &Items<BLOCK>) {
        for nth in 0..BLOCK {
            self.prefetch(items, nth);
        }
    }

    #[inline(always)]
    fn prefetch(self, items: &Items<BLOCK>, nth: usize) {
        self.source.prefetch(items.firsts[nth] as usize);
        self.source.prefetch(items.seconds[nth] as usize);
    }

    /// Reads the pairs of a block, each as in [`load_nth`](Self::load_nth). Returns nonzero if any version has changed. If
    /// there is a next block, prefetches its buckets. (Not inlined: no vector unit does it better, so it is compiled only once
    /// for all queries.)
    #[inline(never)]
    fn load_block(self, block: Block<'_>, next: Option<&Items<BLOCK>>, pairs: &mut Pairs) -> u64 {
        if block.len == BLOCK {
            return if let Some(next) = next {
                self.load_whole_block::<true>(block.prepared, next, pairs)
            } else {
                self.load_whole_block::<false>(block.prepared, block.prepared, pairs)
            };
        }
        let mut changes = 0;
        for nth in 0..block.len.min(BLOCK) {
            changes |= self.load_nth(block.prepared, nth, pairs);
        }
        changes
    }

    /// [`load_nth`](Self::load_nth) for all items, unrolled by four; returns nonzero if any version has changed. If
    /// `PREFETCH`, prefetches the buckets of `next`.
    #[inline(always)]
    fn load_whole_block<const PREFETCH: bool>(
        self,
        items: &Items<BLOCK>,
        next: &Items<BLOCK>,
        pairs: &mut Pairs,
    ) -> u64 {
        let mut changes = 0;
        for fourth in 0..BLOCK / 4 {
            for nth in 4 * fourth..4 * fourth + 4 {
                if PREFETCH {
                    self.prefetch(next, nth);
                }
                changes |= self.load_nth(items, nth, pairs);
            }
        }
        changes
    }

    /// The loads of one lookup of a block: reads the version, both buckets, and the version again. Returns 0 if the
    /// version is still the same.
    #[inline(always)]
    fn load_nth(self, items: &Items<BLOCK>, nth: usize, pairs: &mut Pairs) -> u64 {
        let version = self.source.version(items.bucket_sums[nth] as usize);
        let first = self.source.load(items.firsts[nth] as usize);
        let second = self.source.load(items.seconds[nth] as usize);
        let changes = self.source.changes_since(version);
        pairs.set(self.layout, nth, first, second);
        changes
    }
}

/// The lookups of a batch.
pub(crate) struct FixedBatch<L, S, Q> {
    lookup: FixedLookup<L, S>,
    query: Q,
    /// What the present block has read. What it has from an earlier one has no meaning.
    pairs: Pairs,
}

impl<L: Layout, S: BucketSource, Q: Query> BlockLookup for FixedBatch<L, S, Q> {
    type Prepared = Items<BLOCK>;

    type Answer = Q::Answer;

    const ABSENT: Q::Answer = Q::ABSENT;

    #[inline(always)]
    fn prepare(&self, unit: VectorUnit, hashes: &[u64; BLOCK], items: &mut Items<BLOCK>) {
        self.lookup.geometry.items(unit, self.lookup.layout.lanes(), hashes, items);
    }

    #[inline(always)]
    fn prefetch(&self, items: &Items<BLOCK>) {
        if self.lookup.source.is_far() {
            self.lookup.prefetch_block(items);
        }
    }

    /// Each lookup has the steps of a single one, in the same order. But all loads come before any word is decoded or
    /// compared, and before any retry. So the loads of many keys overlap, and all words are compared in loops that are
    /// vectorized.
    #[inline(always)]
    fn look_up(&mut self, block: Block<'_>, next: &Items<BLOCK>, answers: &mut [Q::Answer; BLOCK]) {
        let Self { lookup, query, pairs } = self;
        let reading = query.reading();
        let changes = lookup.load_block(block, lookup.source.is_far().then_some(next), pairs);
        let entries = &block.prepared.entries;
        let counts = query.answer_all(reading, lookup.layout, pairs, entries, block.len, answers);
        if changes != 0 || !counts {
            for (answer, &hash) in answers.iter_mut().zip(block.hashes).take(block.len) {
                if !Q::is_certain(answer) {
                    *answer = lookup.as_runtime().ask_again(*query, hash);
                }
            }
        }
    }
}
