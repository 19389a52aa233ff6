//! PURE: the loop of all batches of lookups, and the rolling pipeline of every batch: the buckets of later keys are
//! prefetched while those of earlier keys are used.
//!
//! A lookup in a table larger than the cache takes as long as two loads from memory. A processor examines only some
//! hundreds of instructions ahead, which are three to six lookups. So a batch first computes the buckets of many keys,
//! and prefetches their cache lines. `cargo bench --bench lookups` measures what that gains.

use crate::machine::arch::{VectorUnit, Vectorized};

/// How many keys are hashed, and then looked up, at a time. Each step is a loop of its own, short enough for many of
/// its iterations to overlap.
pub(crate) const BLOCK: usize = 32;

/// How many blocks are in flight at a time.
///
/// With 192 MB and 1,024 keys per batch, lookups with 1 block and with 3 blocks in flight are slower, by up to 12%.
pub(crate) const AHEAD: usize = 2;

/// Where a batch's hashes come from: fills the buffer from the front and returns how many there are. Fewer than
/// [`BLOCK`] only at the end.
pub(crate) type Hashes<'a> = &'a mut dyn FnMut(&mut [u64; BLOCK]) -> usize;

/// A table in which a batch looks keys up, a block at a time.
///
/// All of it is `#[inline(always)]`, so that it is compiled for each vector unit; except that steps which no vector unit
/// does better, such as the loads, are functions of their own.
pub(crate) trait BlockLookup {
    /// What a block of hashes is turned into before it is looked up, such as the buckets of its keys.
    type Prepared: Copy + Default;

    type Answer: Copy;

    /// An answer to be overwritten.
    const ABSENT: Self::Answer;

    fn prepare(&self, unit: VectorUnit, hashes: &[u64; BLOCK], prepared: &mut Self::Prepared);

    /// Prefetches all buckets of a block at once, if that pays.
    fn prefetch(&self, prepared: &Self::Prepared);

    /// Looks up the keys of a block. Meanwhile prefetches the buckets of `next`, if that pays. Answers beyond the length of
    /// the block have no meaning.
    fn look_up(&mut self, block: Block<'_, Self::Prepared>, next: &Self::Prepared, answers: &mut [Self::Answer; BLOCK]);
}

/// A batch of lookups.
pub(crate) struct LookupBatch<'a, T: BlockLookup> {
    pub(crate) lookup: T,
    pub(crate) hashes: Hashes<'a>,
    /// Gets the answers in the order of the keys, those of a block at a time.
    pub(crate) answers: &'a mut dyn FnMut(&[T::Answer]),
}

impl<T: BlockLookup> Vectorized for LookupBatch<'_, T> {
    #[inline(always)]
    fn run(self, unit: VectorUnit) {
        let Self { mut lookup, hashes, answers } = self;
        let (mut pipeline, mut of_block) = (Pipeline::new(hashes, T::Prepared::default()), [T::ABSENT; BLOCK]);
        loop {
            while let Some(Unprepared { hashes, prepared, is_first, .. }) = pipeline.unprepared() {
                lookup.prepare(unit, hashes, prepared);
                if is_first {
                    lookup.prefetch(prepared);
                }
            }
            let Some((block, next)) = pipeline.next() else { return };
            lookup.look_up(block, next, &mut of_block);
            answers(&of_block[..block.len]);
        }
    }
}

/// The blocks of a batch that are in flight, each with what its hashes were turned into. The caller's loop prepares the
/// blocks to come, then acts on the next one:
///
/// ```text
/// while let Some(block) = pipeline.unprepared() { … }
/// let Some((block, next)) = pipeline.next() else { return };
/// ```
///
/// Its steps are not closures: the compiler may not inline a closure, and what it does not inline is not compiled for
/// the vector unit that does the batch.
pub(crate) struct Pipeline<'a, P> {
    source: Hashes<'a>,
    more: bool,
    /// How many blocks were passed on to be prepared, and how many to be acted on.
    prepared: usize,
    acted_on: usize,
    hashes: [[u64; BLOCK]; RING],
    lens: [usize; RING],
    blocks: [P; RING],
}

/// A power of two, so that a remainder is a mask.
const RING: usize = (AHEAD + 1).next_power_of_two();

/// The next block of hashes to prepare, some [`AHEAD`] blocks before it is acted on.
pub(crate) struct Unprepared<'a, P> {
    /// The places beyond `len` repeat the first hash.
    pub(crate) hashes: &'a [u64; BLOCK],
    pub(crate) len: usize,
    pub(crate) prepared: &'a mut P,
    /// Whether to prefetch all its cache lines at once, because there is no other block yet to act on.
    pub(crate) is_first: bool,
}

/// A block of hashes, and what `prepare` has made of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a, P> {
    pub(crate) hashes: &'a [u64; BLOCK],
    pub(crate) prepared: &'a P,
    pub(crate) len: usize,
}

impl<'a, P: Copy> Pipeline<'a, P> {
    /// `any` is overwritten when the first blocks are prepared.
    #[inline(always)]
    pub(crate) fn new(source: Hashes<'a>, any: P) -> Self {
        Self {
            source,
            more: true,
            prepared: 0,
            acted_on: 0,
            hashes: [[0; BLOCK]; RING],
            lens: [0; RING],
            blocks: [any; RING],
        }
    }

    /// The next block to prepare, if one is due before the next one is acted on.
    #[inline(always)]
    pub(crate) fn unprepared(&mut self) -> Option<Unprepared<'_, P>> {
        if !self.more || self.prepared > self.acted_on + AHEAD {
            return None;
        }
        let nth = self.prepared % RING;
        let hashes = &mut self.hashes[nth];
        let len = (self.source)(hashes);
        self.more = len == BLOCK;
        if len == 0 {
            return None;
        }
        if len < BLOCK {
            let any = hashes[0];
            hashes[len..].fill(any);
        }
        self.lens[nth] = len;
        let is_first = self.prepared < AHEAD;
        self.prepared += 1;
        Some(Unprepared { hashes, len, prepared: &mut self.blocks[nth], is_first })
    }

    /// The next block to act on, in order. And what the block was turned into whose cache lines are to be prefetched
    /// meanwhile, a few at a time: a processor has room for some tens of requests. If those of a block came all at once,
    /// it would do nothing else until the last of them had room.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(Block<'_, P>, &P)> {
        if self.acted_on == self.prepared {
            return None;
        }
        // At the end there is no next block, and the prefetched lines are near already.
        let next = (self.acted_on + AHEAD).min(self.prepared - 1);
        let nth = self.acted_on % RING;
        self.acted_on += 1;
        let block = Block { hashes: &self.hashes[nth], prepared: &self.blocks[nth], len: self.lens[nth] };
        Some((block, &self.blocks[next % RING]))
    }
}
