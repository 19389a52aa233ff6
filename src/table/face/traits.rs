//! What a filter asks of its table, whatever the table's layout is.
//!
//! An operation costs one indirect call, which the processor predicts. In return, the encoding and, in the shortest
//! operations, all numbers of the layout are constants of the code (`table/face/dyn_table.rs`).

use crate::error::memory::OutOfMemory;
use core::cell::Cell;
use core::fmt::Debug;

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError};
use crate::plan::batch::{BLOCK, Hashes};
use crate::plan::sizing::{self, LoadLimit};
use crate::table::counters::Counters;
use crate::table::expiring::IfPresent;
use crate::table::expiring::clock::{Advance, Clock, Reading, Until};
use crate::table::image::absorb::{Absorbed, Image, Merge};
use crate::table::image::read::each_chunk;
use crate::table::image::save::SaveNumber;
use crate::word::layout::Shape;
use crate::word::values::Values;

/// What does not change while a table exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) shape: Shape,
    pub(crate) buckets: usize,
    /// That of the capacity.
    pub(crate) limit: LoadLimit,
    /// In bytes.
    pub(crate) memory_usage: usize,
}

/// A `Table` of any layout: what filters and maplets have in common. Keys are passed as hashes.
pub(crate) trait AnyTable: Debug + Send + Sync {
    fn facts(&self) -> Facts;
    fn counters(&self) -> &Counters;
    fn contains(&self, hash: u64) -> bool;
    /// Prefetches the buckets and the stripes of these hashes.
    fn prefetch(&self, hashes: &[u64]);
    /// Calls `answers` with the answers to all hashes, in order and a block at a time.
    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn clear(&self);
    /// Begins a save, at this moment: see `table/image/save.rs`.
    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory>;
    /// Reads the words from this bucket on, as they were at the moment of a save of this table: as many as a chunk has, or
    /// as there are. Chunks are read in order, and once. Returns how many copies are in this one.
    fn read_chunk(&self, save: SaveNumber, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory>;
    /// Passes all chunks to `chunk`: see [`each_chunk`].
    fn read_image(
        &self,
        save: SaveNumber,
        chunk: &mut dyn FnMut(&[u64]) -> std::io::Result<()>,
    ) -> std::io::Result<u64> {
        let (_, buckets) = self.layout_at(save);
        each_chunk(buckets, |start, words| self.read_chunk(save, start, words), chunk)
    }
    /// Numbers that are equal for tables with the same classes.
    fn of_classes(&self) -> [u64; 5];
    /// The reading of the table's clock at the moment of a save of this table, if it has a clock.
    fn reading(&self, save: SaveNumber) -> Option<Reading>;
    /// The shape of the table, and its number of buckets, at the moment of a save of this table.
    fn layout_at(&self, _: SaveNumber) -> (Shape, usize) {
        (self.shape(), self.buckets())
    }
    /// Ends a save of this table, complete or not.
    fn end_save(&self, save: SaveNumber);
    /// The sum of the digests of all copies at the moment of a save of this table.
    fn digest(&self, save: SaveNumber) -> Result<u64, OutOfMemory>;
    /// Adds the copies of a table of the same layout: see `table/image/absorb.rs`.
    fn absorb(&self, image: &dyn Image, merge: Merge) -> Absorbed;
    /// Stores the words of an image from this bucket on, in an empty table that no other thread has yet.
    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]);

    fn len(&self) -> usize {
        self.counters().len()
    }

    fn record_negatives(&self, count: u64) {
        self.counters().record_negatives(count);
    }

    fn record_false_positives(&self, count: u64) {
        self.counters().record_false_positives(count);
    }

    fn capacity(&self) -> usize {
        let Facts { shape, buckets, limit, .. } = self.facts();
        sizing::capacity_of(shape, buckets, limit)
    }

    fn buckets(&self) -> usize {
        self.facts().buckets
    }

    fn shape(&self) -> Shape {
        self.facts().shape
    }

    /// In bytes.
    fn memory_usage(&self) -> usize {
        self.facts().memory_usage
    }

    fn slots(&self) -> usize {
        self.buckets() * self.shape().slots as usize
    }

    /// The expected rate at capacity.
    fn max_rate(&self) -> f64 {
        self.false_positive_rate(self.capacity() as f64 / self.slots() as f64)
    }

    /// The expected rate while the share `load` of all slots is taken.
    fn false_positive_rate(&self, load: f64) -> f64 {
        let Facts { shape, buckets, .. } = self.facts();
        sizing::false_positive_rate(shape, buckets, load)
    }
}

/// The core of a filter that is one table.
pub(crate) trait OneTable: Debug {
    fn table(&self) -> &dyn AnyTable;
}

impl OneTable for Box<dyn FilterTable> {
    fn table(&self) -> &dyn AnyTable {
        &**self
    }
}

impl OneTable for Box<dyn MapletTable> {
    fn table(&self) -> &dyn AnyTable {
        &**self
    }
}

impl OneTable for Box<dyn ExpiringTable> {
    fn table(&self) -> &dyn AnyTable {
        &**self
    }
}

/// A `Table` as filters use it: its slots hold only fingerprints.
pub(crate) trait FilterTable: AnyTable {
    fn count(&self, hash: u64) -> usize;
    fn insert(&self, hash: u64) -> Result<(), InsertError>;
    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError>;
    fn remove(&self, hash: u64) -> bool;
    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError>;
    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
}

/// A `Table` as maplets use it: its slots hold a fingerprint and a value, which is the payload.
pub(crate) trait MapletTable: AnyTable {
    fn values(&self, hash: u64) -> Values;
    fn count_value(&self, hash: u64, value: u16) -> usize;
    fn insert_value(&self, hash: u64, value: u16) -> Result<(), InsertError>;
    /// Returns the values that it found, or none if the value was added.
    fn insert_value_if_absent(&self, hash: u64, value: u16) -> Result<Values, InsertError>;
    fn remove_value(&self, hash: u64, value: u16) -> bool;
    fn replace_value(&self, hash: u64, old: u16, new: u16) -> bool;
    fn values_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values]));
    /// `hashes` puts the values that go with a block into `values`.
    fn insert_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues) -> Result<usize, InsertBatchError>;
    /// `remove` for pairs, in order. `hashes` puts the values that go with a block into `values`.
    fn remove_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool]));
}

/// A `Table` as filters whose entries expire use it: its slots hold a fingerprint and an end, which is the payload.
pub(crate) trait ExpiringTable: AnyTable {
    fn clock(&self) -> &Clock;
    fn advance_to(&self, tick: u64) -> Advance;
    fn restart_clock(&self, tick: u64);
    fn contains_live(&self, hash: u64) -> bool;
    /// Whether the entry was added. If not, it was dead already, or the key has one (which is then renewed, if so
    /// asked).
    fn add_until(&self, hash: u64, until: Until, if_present: IfPresent) -> Result<bool, ExpiringInsertError>;
    fn remove_until(&self, hash: u64, expires_at: u64) -> bool;
    /// Removes the live entry that ends first.
    fn remove_first(&self, hash: u64) -> bool;
    /// The caller's tick, and how many ticks later the last live entry ends.
    fn last_end(&self, hash: u64) -> Option<(u64, u64)>;
    /// How many entries will be live in this many ticks.
    fn live_in(&self, ticks: u64) -> usize;
    fn contains_live_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    /// Adds entries with the longest lifetime.
    fn insert_live_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<ExpiringInsertError>>;
    /// `add_until` for all, in order, each with its answer. `hashes` puts the ends that go with a block into `ends`.
    fn add_until_batch(
        &self,
        hashes: Hashes<'_>,
        ends: &BlockOfUntil,
        if_present: IfPresent,
        answer: &mut dyn FnMut(bool),
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>>;
    /// `hashes` puts the ends that go with a block into `ends`.
    fn remove_until_batch(&self, hashes: Hashes<'_>, ends: &BlockOfEnds, answers: &mut dyn FnMut(&[bool]));
    fn remove_first_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
}

/// The ends that go with a block of hashes, in the caller's ticks.
pub(crate) type BlockOfEnds = Cell<[u64; BLOCK]>;

/// The ends of entries to add that go with a block of hashes.
pub(crate) type BlockOfUntil = Cell<[Until; BLOCK]>;

/// The values that go with a block of hashes.
pub(crate) type BlockOfValues = Cell<[u16; BLOCK]>;
