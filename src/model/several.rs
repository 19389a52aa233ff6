//! What the models see of filters of several tables. The tables have the fewest buckets possible. Not part of the
//! real library.

use crate::error::insert::{InsertBatchError, InsertError};
use crate::machine::memory::Pages;
use crate::plan::batch::BLOCK;
#[cfg(feature = "snapshot")]
use crate::snapshot::format::Saved;
#[cfg(feature = "snapshot")]
use crate::snapshot::save::Save;
#[cfg(feature = "snapshot")]
use crate::snapshot::source::Source;
use crate::tables::growth::Tables;
use crate::tables::growth_plan::Plan;
use crate::word::geometry::{Geometry, Nested};
use crate::word::layout::Fingerprint;

/// A filter that grows: its first table has two buckets of two slots, its second four.
#[derive(Debug)]
pub struct Growable(Tables);

/// A key of such a filter: its hash.
///
/// In the first table all keys have the same two buckets. In the second, each key has one of two pairs.
#[derive(Clone, Copy, Debug)]
pub struct GrowableKey(u64);

impl GrowableKey {
    /// The `nth` fingerprint, with the `pair` (0 or 1) of the second table. Keys that differ only in the pair are of
    /// one class in the first table and of two classes in the second.
    pub fn new(pair: u64, nth: usize) -> Self {
        // Only fingerprints whose two buckets are half of the table apart in each of the first nine tables. So all
        // keys of a pair have the same two buckets there, in one order or the other.
        let ninth = Nested::new(2, 32, 8);
        let fingerprint =
            (1..1 << 16).filter(|&fingerprint| ninth.alternate(0, Fingerprint(fingerprint)) == 256).nth(nth);
        Self(pair << 62 | u64::from(fingerprint.expect("one of 256 fingerprints")))
    }

    /// A key of the same class in each of the first nine tables.
    pub fn twin(self) -> Self {
        Self(self.0 | 1 << 63)
    }
}

#[allow(clippy::new_without_default)]
impl Growable {
    /// An empty filter with one table.
    pub fn new() -> Self {
        // A rate that only the layout with two slots meets.
        let plan = Plan {
            buckets: 2,
            rate: 1e-7,
            encoding: None,
            pages: Pages::Usual,
            memory_limit: usize::MAX,
            memory_of_caller: 0,
        };
        Self(Tables::new(plan).expect("a model has memory"))
    }

    /// Adds a table.
    pub fn grow(&self) {
        self.0.grow_anyway();
    }

    /// Puts a copy of the key into a table, which must have room.
    pub fn place(&self, table: usize, key: GrowableKey) {
        self.0.place(table, key.0);
    }

    /// [`GrowableCuckooFilter::contains`](crate::GrowableCuckooFilter::contains)
    pub fn contains(&self, key: GrowableKey) -> bool {
        self.0.contains(key.0)
    }

    /// [`GrowableCuckooFilter::count`](crate::GrowableCuckooFilter::count)
    pub fn count(&self, key: GrowableKey) -> usize {
        self.0.count(key.0)
    }

    /// [`GrowableCuckooFilter::insert`](crate::GrowableCuckooFilter::insert)
    pub fn insert(&self, key: GrowableKey) -> Result<(), InsertError> {
        self.0.insert(key.0)
    }

    /// [`GrowableCuckooFilter::insert_if_absent`](crate::GrowableCuckooFilter::insert_if_absent)
    pub fn insert_if_absent(&self, key: GrowableKey) -> Result<bool, InsertError> {
        self.0.insert_if_absent(key.0)
    }

    /// [`GrowableCuckooFilter::remove`](crate::GrowableCuckooFilter::remove)
    pub fn remove(&self, key: GrowableKey) -> bool {
        self.0.remove(key.0)
    }

    /// [`GrowableCuckooFilter::tables`](crate::GrowableCuckooFilter::tables)
    pub fn tables(&self) -> usize {
        self.0.tables()
    }

    /// How many items there are, according to the counters.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// [`GrowableCuckooFilter::contains_batch`](crate::GrowableCuckooFilter::contains_batch)
    pub fn contains_batch(&self, keys: &[GrowableKey]) -> Vec<bool> {
        answers(|answers| self.0.contains_batch(&mut one_block(&hashes(keys)), answers))
    }

    /// [`GrowableCuckooFilter::insert_batch`](crate::GrowableCuckooFilter::insert_batch). Returns how many keys went
    /// in, and why not all.
    pub fn insert_batch(&self, keys: &[GrowableKey]) -> (usize, Option<InsertError>) {
        inserted(self.0.insert_batch(&mut one_block(&hashes(keys))))
    }

    /// [`GrowableCuckooFilter::remove_batch`](crate::GrowableCuckooFilter::remove_batch)
    pub fn remove_batch(&self, keys: &[GrowableKey]) -> Vec<bool> {
        answers(|answers| self.0.remove_batch(&mut one_block(&hashes(keys)), answers))
    }

    /// Saves it and loads the snapshot. Calls `begun` when the moment of the save is past.
    #[cfg(feature = "snapshot")]
    pub fn save_and_load(&self, begun: impl FnOnce()) -> Self {
        Self(there_and_back(&self.0, begun))
    }
}

fn hashes(keys: &[GrowableKey]) -> Vec<u64> {
    keys.iter().map(|key| key.0).collect()
}

/// Hashes in the form in which a batch takes them: fewer than a block.
fn one_block(hashes: &[u64]) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    move |block| {
        block[..hashes.len()].copy_from_slice(hashes);
        hashes.len()
    }
}

/// The answers of a batch.
fn answers(batch: impl FnOnce(&mut dyn FnMut(&[bool]))) -> Vec<bool> {
    let mut all = Vec::new();
    batch(&mut |answers| all.extend_from_slice(answers));
    all
}

fn inserted(result: Result<usize, InsertBatchError>) -> (usize, Option<InsertError>) {
    match result {
        Ok(inserted) => (inserted, None),
        Err(InsertBatchError { inserted, error }) => (inserted, Some(error)),
    }
}

/// Saves a filter and loads the snapshot. Calls `begun` when the moment of the save is past.
#[cfg(feature = "snapshot")]
fn there_and_back<T: Saved>(filter: &T, begun: impl FnOnce()) -> T {
    let save = filter.begin_save().expect("a model has memory");
    begun();
    let mut snapshot = Vec::new();
    Save::new(T::KIND, 0, "".into(), filter.head(&save), save).write_to(&mut snapshot).expect("a model has memory");
    let mut from = &snapshot[..];
    let mut source = Source::new(&mut from, usize::MAX, Some(snapshot.len() as u64));
    source.header(T::KIND, "", 0).expect("it is a snapshot");
    let loaded = T::load(&mut source, 0).expect("it is a snapshot");
    source.end().expect("it is a snapshot");
    loaded
}
