//! Pure: a table of one layout as a table of any.

use crate::error::insert::{InsertBatchError, InsertError};
#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::plan::batch::{self, BLOCK, Hashes};
use crate::table::any::AnyTable;
use crate::table::counters::Counts;
use crate::table::lookup::Match;
#[cfg(feature = "snapshot")]
use crate::table::save::TableSave;
use crate::table::words::{Table, memory_for};
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::{Layout, Shape};

/// The inserts of a table that is being saved, out of the way of all others. (They take what is in registers already.)
impl<L: Layout, G: Geometry> Table<L, G> {
    #[cold]
    #[inline(never)]
    fn insert_saved(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_as::<true>(self.item(hash))
    }

    #[cold]
    #[inline(never)]
    fn insert_within_capacity_saved(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_within_capacity_as::<true>(self.item(hash))
    }

    #[cold]
    #[inline(never)]
    fn insert_block_saved(&self, items: &[Item], refused: &mut Option<InsertError>) -> usize {
        self.insert_block::<true>(items, refused)
    }

    /// Inserts the items up to the first that is refused; how many. `refused` is told why that one was.
    #[inline(always)]
    fn insert_block<const SAVED: bool>(&self, items: &[Item], refused: &mut Option<InsertError>) -> usize {
        let mut inserted = 0;
        for &item in items {
            if let Err(mut error) = self.insert_uncounted::<SAVED>(item) {
                if let InsertError::Full { len, .. } = &mut error {
                    // Those before it in this block have yet to be counted.
                    *len += inserted;
                }
                *refused = Some(error);
                break;
            }
            inserted += 1;
        }
        self.counters.add_len(inserted as i64);
        inserted
    }
}

impl<L: Layout, G: Geometry> AnyTable for Table<L, G> {
    fn contains(&self, hash: u64) -> bool {
        self.contains(self.item(hash))
    }

    fn count(&self, hash: u64) -> usize {
        self.count(self.item(hash))
    }

    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        if self.is_being_saved() { self.insert_saved(hash) } else { self.insert_as::<false>(self.item(hash)) }
    }

    fn insert_within_capacity(&self, hash: u64) -> Result<(), InsertError> {
        if self.is_being_saved() {
            self.insert_within_capacity_saved(hash)
        } else {
            self.insert_within_capacity_as::<false>(self.item(hash))
        }
    }

    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.insert_if_absent(self.item(hash))
    }

    fn remove(&self, hash: u64) -> bool {
        self.remove(self.item(hash))
    }

    fn prefetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.prefetched(hash);
        }
    }

    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut found = [false; BLOCK];
        let mut matched = [Match::default(); BLOCK];
        batch::for_each_block(
            Item::NONE,
            hashes,
            |hashes, items| self.prepare(hashes, items),
            |items| {
                self.contains_block(items, &mut found, &mut matched);
                answers(&found[..items.len()]);
                true
            },
        );
    }

    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let mut inserted = 0;
        let mut refused = None;
        batch::for_each_block(
            Item::NONE,
            hashes,
            |hashes, items| self.prepare(hashes, items),
            |items| {
                // Asked once for the block: a save that begins later overlaps the inserts.
                inserted += if self.is_being_saved() {
                    self.insert_block_saved(items, &mut refused)
                } else {
                    self.insert_block::<false>(items, &mut refused)
                };
                refused.is_none()
            },
        );
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError { inserted, error }))
    }

    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        batch::for_each_block(
            Item::NONE,
            hashes,
            |hashes, items| self.prepare(hashes, items),
            |items| {
                let mut block = [false; BLOCK];
                for (&item, removed) in items.iter().zip(&mut block) {
                    *removed = self.remove_and(item, || ());
                }
                self.counters.add_len(-(block.iter().filter(|&&removed| removed).count() as i64));
                answers(&block[..items.len()]);
                true
            },
        );
    }

    fn clear(&self) {
        self.clear();
    }

    fn len(&self) -> usize {
        self.counters.len()
    }

    fn counts(&self) -> Counts {
        self.counters.counts()
    }

    fn record_negatives(&self, count: u64) {
        self.counters.record_negatives(count);
    }

    fn record_false_positives(&self, count: u64) {
        self.counters.record_false_positives(count);
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn buckets(&self) -> usize {
        self.buckets.count()
    }

    fn shape(&self) -> Shape {
        L::SHAPE
    }

    fn lower_bucket(&self, hash: u64) -> usize {
        let item = self.item(hash);
        item.first.min(item.second)
    }

    fn memory_usage(&self) -> usize {
        size_of_val(self) + memory_for(self.buckets.count())
    }

    #[cfg(feature = "snapshot")]
    fn begin_save(&self) -> std::io::Result<TableSave<'_>> {
        self.begin_save()
    }

    #[cfg(feature = "snapshot")]
    fn save(&self, save: &TableSave<'_>, chunk: &mut dyn FnMut(&[u64]) -> std::io::Result<()>) -> std::io::Result<u64> {
        self.read_image(save, chunk)
    }

    #[cfg(feature = "snapshot")]
    fn load(&mut self, next: &mut dyn FnMut(&mut [u64]) -> Result<(), LoadError>) -> Result<u64, LoadError> {
        self.fill(next)
    }
}
