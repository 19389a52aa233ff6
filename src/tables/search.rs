//! CONCURRENT: a batch of lookups in several tables.
//!
//! A single lookup goes through the tables in an order, and ends at the first that has the key. So does each lookup
//! of a batch. But all lookups that are under way at a time go through the first table, then all that were not found
//! there go through the second, and so on. In each table they are a batch, so their loads overlap.

use crate::plan::batch::{BLOCK, Hashes};
use crate::table::face::traits::FilterTable;

/// How many lookups are under way at a time. They are enough that the beginning of each table's batch, which has to
/// wait for memory, matters little. They take 11 KiB of the stack.
const AT_ONCE: usize = if cfg!(ccf_model) { BLOCK } else { 16 * BLOCK };

/// Lookups that are under way.
pub(super) struct Search {
    found: [bool; AT_ONCE],
    len: usize,
    /// In one of the lists, those that have not been found. The batch of the next table puts those that it has not
    /// found into the other list.
    lists: [Missing; 2],
    current: usize,
    /// Whether there may be more hashes to take.
    more: bool,
}

/// Hashes, and the places of their answers.
struct Missing {
    hashes: [u64; AT_ONCE],
    places: [u16; AT_ONCE],
    len: usize,
}

impl Missing {
    const NONE: Self = Self { hashes: [0; AT_ONCE], places: [0; AT_ONCE], len: 0 };
}

impl Search {
    pub(super) fn new() -> Self {
        Self { found: [false; AT_ONCE], len: 0, lists: [Missing::NONE; 2], current: 0, more: true }
    }

    /// Begins anew with the next hashes. Returns whether there are any.
    pub(super) fn take(&mut self, hashes: Hashes<'_>) -> bool {
        let missing = &mut self.lists[self.current];
        missing.len = 0;
        let mut block = [0; BLOCK];
        while self.more && missing.len < AT_ONCE {
            let len = hashes(&mut block);
            self.more = len == BLOCK;
            missing.hashes[missing.len..][..len].copy_from_slice(&block[..len]);
            missing.len += len;
        }
        for (place, number) in missing.places[..missing.len].iter_mut().zip(0..) {
            *place = number;
        }
        self.len = missing.len;
        self.found[..self.len].fill(false);
        self.len > 0
    }

    /// Looks into these tables, in their order, for all that are missing.
    pub(super) fn look_into<'a>(&mut self, tables: impl Iterator<Item = &'a dyn FilterTable>) {
        for table in tables {
            if self.is_over() {
                return;
            }
            let [one, other] = &mut self.lists;
            let (missing, still) = if self.current == 0 { (one, other) } else { (other, one) };
            let (mut taken, mut answered) = (0, 0);
            still.len = 0;
            let mut next = |block: &mut [u64; BLOCK]| {
                let len = BLOCK.min(missing.len - taken);
                block[..len].copy_from_slice(&missing.hashes[taken..][..len]);
                taken += len;
                len
            };
            table.contains_batch(&mut next, &mut |answers| {
                for &answer in answers {
                    let place = missing.places[answered];
                    self.found[usize::from(place)] = answer;
                    // Kept only if it is still missing: the length grows by 0 or 1, without a branch.
                    still.hashes[still.len] = missing.hashes[answered];
                    still.places[still.len] = place;
                    still.len += usize::from(!answer);
                    answered += 1;
                }
            });
            self.current ^= 1;
        }
    }

    /// Whether all were found.
    pub(super) fn is_over(&self) -> bool {
        self.lists[self.current].len == 0
    }

    /// The answers, in the order in which the hashes came.
    pub(super) fn answers(&self) -> &[bool] {
        &self.found[..self.len]
    }
}
