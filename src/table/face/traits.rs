//! PURE: what a filter asks of its table, whatever the table's layout is. `table/face/dyn_table.rs` implements it.
//!
//! An operation costs one indirect call, which the processor predicts. In return, the encoding and, in the shortest
//! operations, all numbers of the layout are constants of the code (`table/face/dyn_table.rs`).

use core::cell::Cell;

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError};
use crate::plan::batch::{BLOCK, Hashes};
use crate::table::attempt::IfPresent;
use crate::table::expiring::clock::{Advance, Clock, Until};
use crate::table::face::any_table::HasTable;
use crate::table::image::merge::{Absorbed, Merge};
use crate::table::image::read::TableImage;
use crate::word::values::Values;

/// A `Table` as filters use it: its slots hold only fingerprints.
pub(crate) trait FilterTable: HasTable {
    fn contains(&self, hash: u64) -> bool;
    fn count(&self, hash: u64) -> usize;
    fn insert(&self, hash: u64) -> Result<(), InsertError>;
    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError>;
    fn remove(&self, hash: u64) -> bool;
    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError>;
    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed;
}

/// A `Table` as maplets use it: its slots hold a fingerprint and a value, which is the payload.
pub(crate) trait MapletTable: HasTable {
    fn contains(&self, hash: u64) -> bool;
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
    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed;
}

/// A `Table` as filters whose entries expire use it: its slots hold a fingerprint and an end, which is the payload.
pub(crate) trait ExpiringTable: HasTable {
    fn clock(&self) -> &Clock;
    fn advance_to(&self, tick: u64) -> Advance;
    fn restart_clock(&self, tick: u64);
    /// Does what is due after an entry was added or renewed, if the filter drives the clock: see `table/expiring/recent.rs`.
    fn keep_up(&self);
    /// Moves a clock that follows the time on to this tick, unless another thread is about it and `wait` is false.
    fn move_on(&self, tick: u64, wait: bool);
    fn contains(&self, hash: u64) -> bool;
    /// Whether the entry was added. If not, it was dead already, or the key has one (which is then renewed, if so
    /// asked).
    fn add_until(&self, hash: u64, until: Until, if_present: IfPresent) -> Result<bool, ExpiringInsertError>;
    fn remove_until(&self, hash: u64, expires_at: u64) -> bool;
    fn remove_first(&self, hash: u64) -> bool;
    /// The caller's tick, and how many ticks later the last live entry ends.
    fn last_end(&self, hash: u64) -> Option<(u64, u64)>;
    fn live_in(&self, ticks: u64) -> usize;
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
    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed;
}

/// The ends that go with a block of hashes, in the caller's ticks.
pub(crate) type BlockOfEnds = Cell<[u64; BLOCK]>;

/// The ends of entries to add that go with a block of hashes.
pub(crate) type BlockOfUntil = Cell<[Until; BLOCK]>;

/// The values that go with a block of hashes.
pub(crate) type BlockOfValues = Cell<[u16; BLOCK]>;
