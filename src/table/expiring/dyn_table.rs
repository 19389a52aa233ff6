//! Pure: the trait `ExpiringTable` for a table of one layout with a clock, and its batches.

use crate::error::insert::{InsertBatchError, InsertError};
use crate::machine::arch::VectorUnit;
use crate::plan::batch::{self, BLOCK, Hashes, Steps};
use crate::table::expiring::Unless;
use crate::table::expiring::clock::{Advance, Clock, Until};
use crate::table::face::dyn_table::{Answer, Batch, Lookups, Shaped};
use crate::table::face::traits::{BlockOfEnds, ExpiringTable};
use crate::table::table::Table;
use crate::word::geometry::{Geometry, Item, Items};
use crate::word::layout::Layout;

/// Whether the key has a live entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::table) struct IsLive(pub(super) bool);

impl Answer for IsLive {
    const NONE: Self = Self(false);

    #[inline(always)]
    fn look_up<L: Layout, G: Geometry>(
        table: &Table<L, G>,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        answers: &mut [Self; BLOCK],
    ) {
        let mut found = [false; BLOCK];
        table.contains_live_block(items, len, coming, &mut found);
        *answers = found.map(Self);
    }
}

impl<L: Layout, G: Geometry, const SLOTS: u32, const BITS: u32> ExpiringTable for Shaped<L, G, SLOTS, BITS> {
    fn clock(&self) -> &Clock {
        self.table.own_clock()
    }

    fn advance_to(&self, tick: u64) -> Advance {
        self.table.advance(self.table.own_clock(), tick)
    }

    fn restart_clock(&self, tick: u64) {
        self.table.restart(self.table.own_clock(), tick);
    }

    fn contains_live(&self, hash: u64) -> bool {
        let item = self.table.buckets.item(self.layout(), hash);
        self.table.contains_live_or_again(self.layout(), item, self.table.item_again(hash))
    }

    fn add_until(&self, hash: u64, until: Until, unless: Unless) -> Result<bool, InsertError> {
        self.table.add_until(self.layout(), self.table.buckets.item(self.layout(), hash), until, unless)
    }

    fn remove_until(&self, hash: u64, expires_at: u64) -> bool {
        self.table.remove_until(self.layout(), self.table.buckets.item(self.layout(), hash), expires_at)
    }

    fn live_in(&self, ticks: u64) -> usize {
        self.table.live_in(ticks)
    }

    fn contains_live_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut found = [false; BLOCK];
        let mut hand_on = |live: &[IsLive]| {
            for (found, live) in found.iter_mut().zip(live) {
                *found = live.0;
            }
            answers(&found[..live.len()]);
        };
        VectorUnit::widest().run(Batch { hashes, steps: Lookups { table: &self.table, answers: &mut hand_on } });
    }

    fn insert_until_batch(&self, hashes: Hashes<'_>, ends: &BlockOfEnds) -> Result<usize, InsertBatchError> {
        let mut inserted = 0;
        let mut refused = None;
        let act = |class, end| {
            match self.table.add_until(self.table.layout(), class, Until::Tick(end), Unless::Never) {
                Ok(_) => inserted += 1,
                Err(error) => refused = Some(error),
            }
            refused.is_none()
        };
        batch::for_each_block(hashes, &mut Each { table: &self.table, ends, act });
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError { inserted, error }))
    }

    fn remove_until_batch(&self, hashes: Hashes<'_>, ends: &BlockOfEnds, answer: &mut dyn FnMut(bool)) {
        let act = |class, end| {
            answer(self.table.remove_until(self.table.layout(), class, end));
            true
        };
        batch::for_each_block(hashes, &mut Each { table: &self.table, ends, act });
    }
}

/// The steps of a batch of changes: the same for each entry, until one returns `false`.
struct Each<'a, L, G, F> {
    table: &'a Table<L, G>,
    ends: &'a BlockOfEnds,
    act: F,
}

impl<L: Layout, G: Geometry, F: FnMut(Item, u64) -> bool> Steps for Each<'_, L, G, F> {
    type Prepared = (Items<G::Index, BLOCK>, [u64; BLOCK]);

    const NONE: Self::Prepared = (Items::NONE, [0; BLOCK]);

    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, (items, ends): &mut Self::Prepared) {
        self.table.prepare_by_widest(hashes, items);
        *ends = self.ends.get();
    }

    fn ask(&self, (items, _): &Self::Prepared) {
        self.table.ask_all(items);
    }

    fn act(&mut self, (items, ends): &Self::Prepared, len: usize, (coming, _): &Self::Prepared) -> bool {
        (0..len).all(|nth| {
            self.table.prefetch(coming.get(nth));
            (self.act)(items.get(nth), ends[nth])
        })
    }
}
