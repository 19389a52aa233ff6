//! What the models see of filters of several tables. The tables have the fewest buckets possible. Not part of the
//! real library.

use std::sync::Arc;

use crate::error::insert::{InsertBatchError, InsertError};
use crate::growth::growth::Growth;
use crate::growth::image::LevelImage;
use crate::growth::plan::Plan;
use crate::growth::resize::move_all;
use crate::plan::batch::BLOCK;
#[cfg(feature = "snapshot")]
use crate::snapshot::format::Saved;
#[cfg(feature = "snapshot")]
use crate::snapshot::save::Save;
#[cfg(feature = "snapshot")]
use crate::snapshot::source::Source;
use crate::sync::readers::Registry;
use crate::sync::replaceable::Replaceable;
use crate::sync::{AtomicU64, Ordering};
use crate::word::geometry::{Doubled, Geometry};
use crate::word::layout::{Encoding, Fingerprint};

/// A filter that grows, at first to four and then to eight buckets: it begins with two of two slots.
#[derive(Debug)]
pub struct Growable(Growth);

/// A key of such a filter, or more precisely a class of keys.
#[derive(Clone, Copy, Debug)]
pub struct GrowableKey(u64);

/// A rate that only the layout with two slots meets at all levels.
const BASE_BITS: u32 = 24;
const DOUBLINGS: u32 = 2;

fn geometry() -> Doubled {
    Doubled::new(2, BASE_BITS, DOUBLINGS)
}

impl GrowableKey {
    /// The `nth` class with these two of the eight buckets: one of the first four and one of the last four.
    ///
    /// In the table of four buckets, it has those with half these numbers. In that of two, each key has both.
    pub fn new(first: usize, second: usize, nth: usize) -> Self {
        let largest = geometry().at(DOUBLINGS);
        let mut bases = (1..1 << BASE_BITS).filter(|&base| base & 0xff != 0);
        let base = (bases.by_ref()).filter(|&base| largest.alternate(first, Fingerprint(base)) == second).nth(nth);
        Self((first as u64) << BASE_BITS | u64::from(base.expect("one of many bases")))
    }
}

#[allow(clippy::new_without_default)]
impl Growable {
    /// An empty filter.
    pub fn new() -> Self {
        Self(Growth::new(Plan::of(geometry(), DOUBLINGS, Some(Encoding::Plain))).expect("a model has memory"))
    }

    /// Adds a copy to the first of its two buckets, or to the `second`, which has room.
    pub fn place(&self, key: GrowableKey, second: bool) {
        self.0.current_level().place(key.0, second);
    }

    /// Begins to grow, whether or not there is room. What is in is yet to be moved.
    pub fn begin_growth(&self) {
        let _resizing = self.0.resizing.lock();
        self.begin(|level| level + 1);
    }

    /// Does what an insert does that finds no room.
    pub fn begin_growth_unless_begun(&self) {
        let _ = self.0.grow(&self.0.current_level());
    }

    /// Does what an insert does for a resize that is under way.
    pub fn help(&self) {
        self.0.help();
    }

    /// Ends a resize that is under way. Then grows by a level.
    pub fn grow(&self) {
        self.finish_and_begin_growth();
        drop(self.0.at_rest());
    }

    /// Ends a resize that is under way, and begins to grow.
    pub fn finish_and_begin_growth(&self) {
        drop(self.0.at_rest());
        self.begin_growth();
    }

    /// Begins to shrink by a level.
    pub fn begin_shrink(&self) {
        let _resizing = self.0.resizing.lock();
        self.begin(|level| level - 1);
    }

    /// Shrinks by a level, even if that is not made for so many keys.
    pub fn shrink(&self) {
        let (mut resizing, _) = self.0.at_rest();
        let below = self.0.current_level().number() - 1;
        assert!(self.0.shrink_to_level(&mut resizing, below), "a model shrinks where there is room");
    }

    /// The same, but gives up when everything is moved, as if that had failed.
    pub fn shrink_in_vain(&self) {
        let (mut resizing, _) = self.0.at_rest();
        self.begin(|level| level - 1);
        let level = self.0.current_level();
        let next = level.next.get(&self.0.registry).expect("it has begun");
        move_all(&level, &next).expect("there is room in both");
        self.0.undo(&mut resizing, &level, &next);
    }

    /// Begins to grow, unless a resize is under way or the table is the largest.
    pub fn begin_growth_if_possible(&self) {
        let _resizing = self.0.resizing.lock();
        if self.0.tables() == 1 && self.0.current_level().number() < self.0.plan.doublings {
            self.begin(|level| level + 1);
        }
    }

    /// Grows by a level, unless the table is the largest.
    pub fn grow_if_possible(&self) {
        let (mut resizing, ended) = self.0.at_rest();
        if ended && self.0.current_level().number() < self.0.plan.doublings {
            self.begin(|level| level + 1);
            self.0.finish(&mut resizing);
        }
    }

    /// Shrinks by a level, unless the table is the smallest or the smaller one has no room.
    pub fn shrink_if_possible(&self) {
        let (mut resizing, ended) = self.0.at_rest();
        if let Some(below) = self.0.current_level().number().checked_sub(1)
            && ended
        {
            self.0.shrink_to_level(&mut resizing, below);
        }
    }

    /// Begins to move everything to another level. The caller has the lock for that.
    fn begin(&self, to: impl FnOnce(u32) -> u32) {
        let level = self.0.current_level();
        let next = self.0.table_after(&level, to(level.number())).expect("a model has memory");
        self.0.begin(&level, next);
    }

    /// Begins a save.
    pub fn image(&self) -> GrowableImage {
        GrowableImage(self.0.image().expect("a model has memory"))
    }

    /// Moves a copy from the first of its two buckets to the second, or `back`. Amid a growth it does so in the larger
    /// table.
    pub fn relocate(&self, key: GrowableKey, back: bool) -> bool {
        let level = self.0.current_level();
        let Some(next) = level.next.get(&self.0.registry) else { return level.relocate(key.0, back) };
        level.split_pair(key.0, &next);
        next.relocate(key.0, back)
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

    /// [`GrowableCuckooFilter::clear`](crate::GrowableCuckooFilter::clear)
    pub fn clear(&self) {
        self.0.clear();
    }

    /// [`GrowableCuckooFilter::tables`](crate::GrowableCuckooFilter::tables)
    pub fn tables(&self) -> usize {
        self.0.tables()
    }

    /// [`GrowableCuckooFilter::slots`](crate::GrowableCuckooFilter::slots)
    pub fn slots(&self) -> usize {
        self.0.slots()
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

    /// Saves it and loads the snapshot. Calls `begun` when the moment of the save is past. `None` if the save is refused,
    /// because a shrink can be neither ended nor undone.
    #[cfg(feature = "snapshot")]
    pub fn save_and_load(&self, begun: impl FnOnce()) -> Option<Self> {
        there_and_back(&self.0, begun).map(Self)
    }
}

/// A filter as it was when a save began.
#[derive(Debug)]
pub struct GrowableImage(LevelImage);

impl GrowableImage {
    /// How many copies of the key's class are in it.
    pub fn copies(&self, key: GrowableKey) -> usize {
        let mut copies = 0;
        self.0.each_hash(|hash| copies += usize::from(hash == key.0));
        copies
    }
}

/// A value that is replaced while threads read it. It stays in memory after it was freed.
#[derive(Debug)]
pub struct Replaced {
    current: Replaceable<Value>,
    registry: Registry,
    first: Arc<Value>,
}

#[derive(Debug)]
struct Value {
    is_read: AtomicU64,
    is_freed: AtomicU64,
}

impl Value {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_read: AtomicU64::new(0), is_freed: AtomicU64::new(0) })
    }
}

#[allow(clippy::new_without_default)]
impl Replaced {
    /// The first value.
    pub fn new() -> Self {
        let first = Value::new();
        Self { current: Replaceable::new(Some(Arc::clone(&first))), registry: Registry::new(), first }
    }

    /// Reads the value.
    pub fn read(&self) {
        let value = self.current.hold(&self.registry).expect("there is always a value");
        // All relaxed: what orders them is the protocol.
        value.is_read.fetch_add(1, Ordering::Relaxed);
        assert_eq!(value.is_freed.load(Ordering::Relaxed), 0, "it was freed while it was read");
        value.is_read.fetch_sub(1, Ordering::Relaxed);
    }

    /// Replaces the first value, and frees it if that is possible.
    pub fn replace(&self) {
        let retired = self.current.replace(Some(Value::new())).expect("there is always a value");
        if retired.free(&self.registry).is_ok() {
            assert_eq!(self.first.is_read.load(Ordering::Relaxed), 0, "it was freed while it was read");
            self.first.is_freed.store(1, Ordering::Relaxed);
        }
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
        Err(InsertBatchError { index, error }) => (index, Some(error)),
    }
}

/// Saves a filter and loads the snapshot. Calls `begun` when the moment of the save is past. `None` if the save is
/// refused.
#[cfg(feature = "snapshot")]
fn there_and_back<T: Saved>(filter: &T, begun: impl FnOnce()) -> Option<T> {
    let save = filter.begin_save().ok()?;
    begun();
    let mut snapshot = Vec::new();
    Save::new(T::KIND, 0, "".into(), filter.head(&save), save).write_to(&mut snapshot).expect("a model has memory");
    let mut from = &snapshot[..];
    let mut source = Source::new(&mut from, usize::MAX, Some(snapshot.len() as u64));
    source.header(T::KIND, "", 0).expect("it is a snapshot");
    let loaded = T::load(&mut source, 0).expect("it is a snapshot");
    source.end().expect("it is a snapshot");
    Some(loaded)
}
