//! Pure: the rolling window of a batch: the buckets of later keys are prefetched while those of earlier keys are used.
//!
//! A lookup in a table larger than the cache takes as long as two loads from memory. A processor examines only some
//! hundreds of instructions ahead, which are three to six lookups. So a batch first computes the buckets of many keys,
//! and prefetches their cache lines. `cargo bench --bench lookups` measures what that gains.

/// How many keys are hashed, and then looked up, at a time. Each step is a loop of its own, short enough for many
/// of its turns to overlap.
pub(crate) const BLOCK: usize = 32;

/// How many blocks are in flight at a time.
///
/// With 192 MB and 1,024 keys a batch, lookups with 1 block and with 3 blocks in flight are slower, by up to 12 %.
pub(crate) const AHEAD: usize = 2;

/// Where a batch's hashes come from: fills the buffer from the front and returns how many there are. Fewer than
/// [`BLOCK`] only at the end.
pub(crate) type Hashes<'a> = &'a mut dyn FnMut(&mut [u64; BLOCK]) -> usize;

/// The steps of a batch. They are methods because a closure cannot be marked as inlined. A step that is not inlined
/// is not compiled for the vector unit that does the batch.
pub(crate) trait Steps {
    /// What `prepare` makes of a block of hashes.
    type Prepared: Copy + Default;

    /// Gets a block of `len` hashes some [`AHEAD`] blocks before `act` does. The places beyond `len` repeat the
    /// first hashes.
    fn prepare(&self, hashes: &[u64; BLOCK], len: usize, prepared: &mut Self::Prepared);

    /// Prefetches all cache lines of a block at once. This is for the first blocks, while there is no other block
    /// to act on.
    fn prefetch_block(&self, prepared: &Self::Prepared);

    /// Returns whether to continue. Meanwhile it prefetches the cache lines of `coming`, a few at a time.
    ///
    /// A processor queues some tens of memory requests. If those of a block came all at once, it would stall until the
    /// last one is queued.
    fn act(&mut self, block: Block<'_, Self::Prepared>, coming: &Self::Prepared) -> bool;
}

/// A block of hashes, and what `prepare` has made of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a, P> {
    pub(crate) hashes: &'a [u64; BLOCK],
    pub(crate) prepared: &'a P,
    /// How many hashes there are.
    pub(crate) len: usize,
}

/// Takes these steps for all hashes, in order and a block at a time.
#[inline(always)]
pub(crate) fn for_each_block<S: Steps>(hashes: Hashes<'_>, steps: &mut S) {
    // A power of two, so that a remainder is a mask.
    const RING: usize = (AHEAD + 1).next_power_of_two();
    let mut blocks = [S::Prepared::default(); RING];
    let mut lens = [0; RING];
    let mut all_hashes = [[0; BLOCK]; RING];
    let (mut prepared, mut acted_on) = (0usize, 0usize);
    let mut more = true;
    loop {
        while more && prepared <= acted_on + AHEAD {
            let buffer = &mut all_hashes[prepared % RING];
            let len = hashes(buffer);
            more = len == BLOCK;
            if len == 0 {
                break;
            }
            if len < BLOCK {
                let any = buffer[0];
                buffer[len..].fill(any);
            }
            steps.prepare(buffer, len, &mut blocks[prepared % RING]);
            if prepared < AHEAD {
                steps.prefetch_block(&blocks[prepared % RING]);
            }
            lens[prepared % RING] = len;
            prepared += 1;
        }
        if acted_on == prepared {
            return;
        }
        // After the last block, the prefetched lines are in the cache already.
        let coming = (acted_on + AHEAD).min(prepared - 1);
        let nth = acted_on % RING;
        let block = Block { hashes: &all_hashes[nth], prepared: &blocks[nth], len: lens[nth] };
        if !steps.act(block, &blocks[coming % RING]) {
            return;
        }
        acted_on += 1;
    }
}

/// Calls `act` with all hashes, in order and a block at a time, until it returns `false`. `ahead` has seen each some
/// [`AHEAD`] blocks earlier, right after it was taken, and has returned what goes with the block.
pub(crate) fn each_ahead<P: Copy + Default>(
    hashes: Hashes<'_>,
    ahead: impl Fn(&[u64]) -> P,
    act: impl FnMut(&[u64], P) -> bool,
) {
    struct Ahead<A, F>(A, F);

    impl<P: Copy + Default, A: Fn(&[u64]) -> P, F: FnMut(&[u64], P) -> bool> Steps for Ahead<A, F> {
        type Prepared = P;

        fn prepare(&self, hashes: &[u64; BLOCK], len: usize, prepared: &mut P) {
            *prepared = (self.0)(&hashes[..len]);
        }

        fn prefetch_block(&self, _: &P) {}

        fn act(&mut self, block: Block<'_, P>, _: &P) -> bool {
            (self.1)(&block.hashes[..block.len], *block.prepared)
        }
    }

    for_each_block(hashes, &mut Ahead(ahead, act));
}
