//! What models see of a table that grows. It has the fewest buckets possible.

use core::convert::Infallible;

use crate::error::insert::{GrowableInsertError, InsertBatchError};
use crate::error::memory::OutOfMemory;
use crate::growth::growing_table::GrowingTable;
use crate::growth::plan::Plan;
use crate::growth::room::Relocation;
use crate::model::table::{answers, one_block};
#[cfg(feature = "snapshot")]
use crate::snapshot::format::SnapshotCore;
#[cfg(feature = "snapshot")]
use crate::snapshot::save::Save;
#[cfg(feature = "snapshot")]
use crate::snapshot::source::SnapshotSource;
use crate::sync::Ordering;
use crate::table::core::Core as _;
use crate::table::image::copy_on_write::SaveNumber;
use crate::table::image::read::{ImageSource as _, TableImage};
use crate::word::classes::Classes;
use crate::word::layout::Encoding;

/// A table of two buckets of two slots, which grows to eight, one by one.
#[derive(Debug)]
pub struct Growable(GrowingTable);

/// A key of such a table, or more precisely a class of keys.
#[derive(Clone, Copy, Debug)]
pub struct GrowableKey(u64);

/// So many bits that all buckets have two slots.
const BASE_BITS: u32 = 24;
const SIDE_BITS: u32 = 3;

fn classes() -> Classes {
    Classes::new(BASE_BITS, SIDE_BITS)
}

impl GrowableKey {
    /// The `nth` class with these two of the eight buckets: an even one and an odd one.
    ///
    /// In a smaller table, it has those with the low bits of these numbers. In that of two, each key has both.
    pub fn new(even: usize, odd: usize, nth: usize) -> Self {
        let of = |base: u64| (even as u64) << 32 | base;
        let is_it = |&base: &u64| classes().of(of(base)).sides[1] as usize % 8 == odd;
        let mut bases = (1..1 << BASE_BITS).filter(|base| base & 0xff != 0).filter(is_it);
        Self(of(bases.nth(nth).expect("one of many bases")))
    }
}

impl Growable {
    pub fn new() -> Self {
        Self::unlimited(GrowingTable::new(Plan::of(classes(), 2, Some(Encoding::Plain))).expect("a model has memory"))
    }

    /// A table whose inserts need no check before the first 32 of them.
    fn unlimited(table: GrowingTable) -> Self {
        table.counters().open();
        Self(table)
    }

    /// From here on it takes this many items at most.
    pub fn limit(&self, most: usize) {
        self.0.resizing().most.store(most as u64, Ordering::Relaxed);
        self.0.counters().close();
    }

    pub fn of_buckets(buckets: usize) -> Self {
        let table = Self::new();
        (2..buckets).for_each(|_| table.split());
        table
    }

    /// Adds a copy on its even side, or on its odd one, where there is room.
    pub fn place(&self, key: GrowableKey, odd: bool) {
        assert!(self.0.add_on(classes().of(key.0), usize::from(odd), None), "a model places keys where there is room");
        self.0.counters().add_len(1);
    }

    pub fn split(&self) {
        assert!(self.split_if_possible(), "a model splits what can be split");
    }

    pub fn merge(&self) {
        assert!(self.merge_if_possible(), "a model merges where there is room");
    }

    /// Splits the next bucket, unless there are as many as can be. Returns whether it did.
    pub fn split_if_possible(&self) -> bool {
        self.0.split_if(|| Some(self.0.resizing().lock.lock()), || true).is_ok()
    }

    /// Merges the bucket that was split last, if there are more than at first, and if there is room. Returns whether it did.
    pub fn merge_if_possible(&self) -> bool {
        self.0.merge_if(|| true)
    }

    /// Returns the memory beyond the end to the system, as a call that shrinks the table does when it has.
    pub fn give_back(&self) {
        self.0.give_back();
    }

    pub fn buckets(&self) -> usize {
        self.0.dimensions().buckets
    }

    /// Begins a save. The table can be used no more when it has ended.
    pub fn begin_save(&self) {
        self.0.begin_save().expect("a model has memory");
    }

    /// How many copies of the key's class are in the image of the save that has begun.
    pub fn copies_in_image(&self, key: GrowableKey) -> usize {
        let image = TableImage::forgotten(&self.0);
        let (buckets, mut copies) = (self.0.running_saves().buckets(SaveNumber::ONLY), 0);
        let read = image.read(|start, words| {
            let Ok(()) = self.0.each_hash::<Infallible>(buckets, start, words, &mut |hash, _| {
                copies += usize::from(hash == key.0);
                Ok(())
            });
            Ok::<_, OutOfMemory>(())
        });
        read.expect("a model has memory");
        core::mem::forget(image);
        copies
    }

    /// Moves a copy from its even side to the odd one, or `back`.
    pub fn relocate(&self, key: GrowableKey, back: bool) -> bool {
        let class = classes().of(key.0);
        let changing = self.0.lock_to_change(class.base, 2, None);
        self.0.relocate(
            &changing.guard,
            changing.spare(),
            self.0.placed(class, self.0.state()),
            usize::from(back),
            None,
        ) == Relocation::Moved
    }

    /// Moves a copy of `moved` from its even side to the odd one, as the last relocation of an insert of the other key, which has
    /// seen no copy of that.
    pub fn relocate_for(&self, key: GrowableKey, moved: GrowableKey) -> bool {
        let [class, moved] = [key, moved].map(|key| classes().of(key.0));
        let state = self.0.state();
        let first = self.0.placed(class, state);
        let changing = self.0.lock_to_change(moved.base, 2, None);
        self.0.relocate(&changing.guard, changing.spare(), self.0.placed(moved, state), 0, Some(&first))
            == Relocation::MovedAndAdded
    }

    pub fn contains(&self, key: GrowableKey) -> bool {
        self.0.contains(key.0)
    }

    pub fn count(&self, key: GrowableKey) -> usize {
        self.0.count(key.0)
    }

    pub fn insert(&self, key: GrowableKey) -> Result<(), GrowableInsertError> {
        self.0.insert(key.0)
    }

    pub fn insert_if_absent(&self, key: GrowableKey) -> Result<bool, GrowableInsertError> {
        self.0.insert_if_absent(key.0)
    }

    pub fn remove(&self, key: GrowableKey) -> bool {
        self.0.remove(key.0)
    }

    pub fn clear(&self) {
        self.0.clear();
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn contains_batch(&self, keys: &[GrowableKey]) -> Vec<bool> {
        answers(|answers| self.0.contains_batch(&mut one_block(keys.iter().map(|key| key.0)), answers))
    }

    /// [`GrowableCuckooFilter::insert_batch`](crate::GrowableCuckooFilter::insert_batch). Returns how many keys went
    /// in, and why not all.
    pub fn insert_batch(&self, keys: &[GrowableKey]) -> (usize, Option<GrowableInsertError>) {
        match self.0.insert_batch(&mut one_block(keys.iter().map(|key| key.0))) {
            Ok(inserted) => (inserted, None),
            Err(InsertBatchError { index, error }) => (index, Some(error)),
        }
    }

    pub fn remove_batch(&self, keys: &[GrowableKey]) -> Vec<bool> {
        answers(|answers| self.0.remove_batch(&mut one_block(keys.iter().map(|key| key.0)), answers))
    }

    /// Saves it and loads the snapshot. Calls `begun` when the moment of the save is past.
    #[cfg(feature = "snapshot")]
    pub fn save_and_load(&self, begun: impl FnOnce()) -> Self {
        let save = TableImage::begin(&self.0).expect("a model has memory");
        begun();
        let (kind, kind_header, mut snapshot) = (GrowingTable::KIND, self.0.kind_header(&save), Vec::new());
        Save::new(kind, 0, "".into(), kind_header, save).write_to(&mut snapshot).expect("a model has memory");
        let mut from = &snapshot[..];
        let mut source = SnapshotSource::new(&mut from, usize::MAX, Some(snapshot.len() as u64));
        source.header(kind, "", 0).expect("it is a snapshot");
        let loaded =
            SnapshotCore::load(&mut source, 0).unwrap_or_else(|error| panic!("the snapshot is not valid: {error:?}"));
        source.end().expect("it is a snapshot");
        Self::unlimited(loaded)
    }
}
