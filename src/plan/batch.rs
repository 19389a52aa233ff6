//! Pure: the rolling window of a batch, in which the buckets of later keys are on their way from memory while those of
//! earlier ones are at hand.
//!
//! A lookup in a table larger than the cache is as long as two loads from memory take, and a processor looks only some
//! hundreds of instructions ahead, which are three to six lookups. So a batch computes the buckets of many keys first,
//! and asks for their cache lines. `cargo bench --bench limit` measures what that gains.

use crate::error::insert::{InsertBatchError, InsertError};

/// How many keys are hashed, and then looked up, at a time. Each is a loop of its own, short enough for many turns of it
/// to overlap.
pub(crate) const BLOCK: usize = 32;

/// How many blocks are under way at a time.
///
/// With 192 MB and 1,024 keys a batch, lookups of 1 and of 3 blocks are slower, by up to 12 %.
pub(crate) const AHEAD: usize = 2;

/// Where a batch's hashes come from: fills the buffer from the front and returns how many there are, fewer than
/// [`BLOCK`] only at the end.
pub(crate) type Hashes<'a> = &'a mut dyn FnMut(&mut [u64; BLOCK]) -> usize;

/// The steps of a batch. Methods, for closures can't be told to be inlined; where they are not, their loops are not
/// compiled for the vector unit that the batch is done by.
pub(crate) trait Steps {
    /// What becomes of a block of hashes first.
    type Prepared: Copy;

    /// To be overwritten.
    const NONE: Self::Prepared;

    /// Sees a block of `len` hashes some [`AHEAD`] blocks before `act` does. The hashes beyond the end are the first again.
    fn prepare(&self, hashes: &[u64; BLOCK], len: usize, prepared: &mut Self::Prepared);

    /// Asks for the cache lines of a block at once: of the first blocks, for which no other one is acted on meanwhile.
    fn ask(&self, prepared: &Self::Prepared);

    /// Returns whether to go on. Asks for the cache lines of `coming` on the way, a few at a time.
    ///
    /// A processor has room for some tens of requests. If those of a block came all at once, it would do nothing else until the
    /// last of them had found room.
    fn act(&mut self, prepared: &Self::Prepared, len: usize, coming: &Self::Prepared) -> bool;
}

/// Takes these steps for all hashes, in order and a block at a time.
#[inline(always)]
pub(crate) fn for_each_block<S: Steps>(hashes: Hashes<'_>, steps: &mut S) {
    // A power of two: remainders are bits then.
    const RING: usize = (AHEAD + 1).next_power_of_two();
    let mut blocks = [S::NONE; RING];
    let mut lens = [0; RING];
    let mut buffer = [0; BLOCK];
    let (mut prepared, mut acted_on) = (0usize, 0usize);
    let mut more = true;
    loop {
        while more && prepared <= acted_on + AHEAD {
            let len = hashes(&mut buffer);
            more = len == BLOCK;
            if len == 0 {
                break;
            }
            if len < BLOCK {
                let any = buffer[0];
                buffer[len..].fill(any);
            }
            steps.prepare(&buffer, len, &mut blocks[prepared % RING]);
            if prepared < AHEAD {
                steps.ask(&blocks[prepared % RING]);
            }
            lens[prepared % RING] = len;
            prepared += 1;
        }
        if acted_on == prepared {
            return;
        }
        // At the end there is none to come, and lines are asked for that are near already.
        let coming = (acted_on + AHEAD).min(prepared - 1);
        if !steps.act(&blocks[acted_on % RING], lens[acted_on % RING], &blocks[coming % RING]) {
            return;
        }
        acted_on += 1;
    }
}

/// Calls `act` with all hashes, in order and a block at a time, until it returns `false`; `ahead` has seen each some
/// [`AHEAD`] blocks earlier.
pub(crate) fn each_ahead(hashes: Hashes<'_>, ahead: impl Fn(&[u64]), act: impl FnMut(&[u64]) -> bool) {
    struct Ahead<A, F>(A, F);

    impl<A: Fn(&[u64]), F: FnMut(&[u64]) -> bool> Steps for Ahead<A, F> {
        type Prepared = [u64; BLOCK];

        const NONE: Self::Prepared = [0; BLOCK];

        fn prepare(&self, hashes: &[u64; BLOCK], len: usize, kept: &mut [u64; BLOCK]) {
            (self.0)(&hashes[..len]);
            *kept = *hashes;
        }

        fn ask(&self, _: &[u64; BLOCK]) {}

        fn act(&mut self, hashes: &[u64; BLOCK], len: usize, _: &[u64; BLOCK]) -> bool {
            (self.1)(&hashes[..len])
        }
    }

    for_each_block(hashes, &mut Ahead(ahead, act));
}

/// Calls `insert` with all hashes, in order, until it refuses one; `ahead` is as in [`each_ahead`].
pub(crate) fn insert_each_ahead(
    hashes: Hashes<'_>,
    ahead: impl Fn(&[u64]),
    insert: impl Fn(u64) -> Result<(), InsertError>,
) -> Result<usize, InsertBatchError> {
    let mut inserted = 0;
    let mut refused = None;
    each_ahead(hashes, ahead, |hashes| {
        for &hash in hashes {
            if let Err(error) = insert(hash) {
                refused = Some(InsertBatchError { inserted, error });
                return false;
            }
            inserted += 1;
        }
        true
    });
    refused.map_or(Ok(inserted), Err)
}
