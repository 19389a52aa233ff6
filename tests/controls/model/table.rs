//! What models see of a table of a fixed size: a set, a maplet or an expiring table. They fill its buckets by hand.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use core::marker::PhantomData;

use crate::error::insert::InsertError;
use crate::error::memory::OutOfMemory;
use crate::lookup::batch::BLOCK;
use crate::machine::memory::Pages;
use crate::model::key::Key;
use crate::search::path::Hop;
use crate::table::by_shape::Shaped;
use crate::table::core::Core as _;
use crate::table::entries::{self, Entries};
use crate::table::expiring::clock::ClockState;
use crate::table::image::merge::{MergeError, MergeResult};
use crate::table::image::read::TableImage;
use crate::table::table;
use crate::word::bucket::Bucket;
use crate::word::geometry::Item;
use crate::word::layout::{Encoding, Fingerprint, Layout, SHAPES, Shape};

/// How many bits the values and the expiries of a model have.
pub(super) const PAYLOAD_BITS: u32 = 2;

/// The layout of a model's table. (Tests name it. The crate's own types can't be named outside.)
pub trait ModelLayout: LayoutOfModel + 'static {}

pub(super) trait LayoutOfModel {
    const SHAPE: Shape;
}

/// Two slots to a bucket: the smallest bucket that can be full and can hold two keys at once.
#[derive(Debug)]
pub enum Smallest {}

/// The default layout of a filter.
#[derive(Debug)]
pub enum Usual {}

impl ModelLayout for Smallest {}

impl LayoutOfModel for Smallest {
    const SHAPE: Shape = SHAPES[Shape::row(Encoding::Plain, 2)];
}

impl ModelLayout for Usual {}

impl LayoutOfModel for Usual {
    const SHAPE: Shape = SHAPES[Shape::row(Encoding::SemiSorted, 5)];
}

/// What the entries of a model's table carry.
pub trait ModelEntries: EntriesOfModel + 'static {}

pub(super) trait EntriesOfModel {
    /// What they are in the library.
    type Entries: Entries;

    /// The fewest buckets that such a table has.
    const LEAST_BUCKETS: usize = if <Self::Entries as Entries>::HAVE_PAYLOAD { 2 } else { 1 };
}

/// Entries carry nothing: a set.
#[derive(Debug)]
pub enum Nothing {}

/// Each entry carries a value: a maplet.
#[derive(Debug)]
pub enum Value {}

/// Each entry carries its expiry.
#[derive(Debug)]
pub enum Expiry {}

impl ModelEntries for Nothing {}

impl EntriesOfModel for Nothing {
    type Entries = entries::Nothing;
}

impl ModelEntries for Value {}

impl EntriesOfModel for Value {
    type Entries = entries::Value;
}

impl ModelEntries for Expiry {}

impl EntriesOfModel for Expiry {
    type Entries = entries::Expiry;
}

type LayoutOf<E> = <<E as EntriesOfModel>::Entries as Entries>::Layout;

/// A table: a [`Set`](crate::model::Set), a [`Maplet`](crate::model::Maplet) or an
/// [`Expiring`](crate::model::Expiring). Here are the operations that all of them have.
#[allow(missing_debug_implementations, reason = "no model prints a table")]
pub struct Table<E: ModelEntries, L: ModelLayout>(pub(super) Shaped<E::Entries>, PhantomData<fn() -> L>);

impl<E: ModelEntries, L: ModelLayout> Table<E, L> {
    /// The fewest buckets that such a table has.
    pub const LEAST_BUCKETS: usize = E::LEAST_BUCKETS;

    /// The `nth` class whose pair is the buckets `first` and `second`, in a table of `buckets` buckets.
    pub fn key(buckets: usize, first: usize, second: usize, nth: usize) -> Key {
        Key::of(Self::layout(), buckets, first, second, nth)
    }

    /// A class whose first bucket is this one, wherever its other one is.
    pub fn key_at(buckets: usize, first: usize) -> Key {
        Self::key_at_fingerprint(buckets, first, 0)
    }

    /// The class of the `nth` fingerprint whose first bucket is this one, wherever its other one is.
    pub fn key_at_fingerprint(buckets: usize, first: usize, nth: usize) -> Key {
        Key::at_fingerprint(Self::layout(), buckets, first, nth)
    }

    /// A key of another class with the same low part. Only in a semi-sorted table of two buckets: there every class has
    /// the same pair.
    pub fn lookalike(key: Key) -> Key {
        key.lookalike(Self::layout())
    }

    fn layout() -> LayoutOf<E> {
        E::Entries::layout(Self::shape()).expect("a model has memory")
    }

    fn shape() -> Shape {
        if E::Entries::HAVE_PAYLOAD { L::SHAPE.with_payload(PAYLOAD_BITS).expect("it leaves enough") } else { L::SHAPE }
    }

    pub(super) fn of(buckets: usize, entries: E::Entries) -> Self {
        let table = table::Table::new(Pages::Usual, Self::shape(), buckets, entries).expect("a model has memory");
        Self(Shaped::of(table), PhantomData)
    }

    fn item(&self, key: Key) -> Item {
        self.0.table.item_with(key.hash(), key.value)
    }

    /// Puts a copy of the key into the bucket that it tries first. That bucket must have room.
    pub fn place(&self, key: Key) {
        assert!(
            self.0.table.put(self.0.table.layout(), key.first, self.item(key).entry),
            "there is room to begin with"
        );
        self.0.table.counters.add_len(1);
    }

    pub fn count(&self, key: Key) -> usize {
        self.0.table.count(self.0.table.layout(), key.hash(), key.value)
    }

    pub fn clear(&self) {
        self.0.table.clear();
    }

    /// `ConcurrentCuckooFilter::save`, without the format.
    pub fn save(&self) -> Image<E> {
        self.save_and_tell(|| ())
    }

    /// `save` that calls `begun` when the save has begun.
    pub fn save_and_tell(&self, begun: impl FnOnce()) -> Image<E> {
        let image = TableImage::begin(self.0.image_source()).expect("a model has memory");
        begun();
        self.image(&image)
    }

    /// Begins a save. [`end_save`](Self::end_save) does the rest.
    pub fn begin_save(&self) {
        core::mem::forget(TableImage::begin(self.0.image_source()).expect("a model has memory"));
    }

    /// The rest of a save that has begun, on any thread.
    pub fn end_save(&self) -> Image<E> {
        self.image(&TableImage::forgotten(self.0.image_source()))
    }

    fn image(&self, of: &TableImage<'_>) -> Image<E> {
        let mut words = Vec::new();
        let copies = of.read(|_, chunk| {
            words.extend(chunk.iter().copied().map(Bucket));
            Ok::<_, OutOfMemory>(())
        });
        let image = Image { words, layout: Self::layout(), clock_state: of.clock_state() };
        assert_eq!(copies.expect("a model has memory"), image.copies() as u64);
        image
    }

    /// One hop of a plan: moves a copy of the key from the bucket that it tries first to the other one.
    pub fn relocate(&self, key: Key) -> bool {
        self.0.table.relocate(Hop { entry: self.item(key).entry, from: key.first, to: key.second }, None)
    }

    /// Whether the key's first bucket holds a copy: one read, without a lock.
    pub fn first_holds(&self, key: Key) -> bool {
        self.0.table.load(key.first).holds_entry(Self::layout(), self.item(key).entry)
    }

    pub fn slots_per_bucket(&self) -> usize {
        Self::layout().lanes().slots.into()
    }

    /// How many items there are, by a scan of all buckets.
    pub fn scan(&self) -> usize {
        (0..self.0.table.words.len()).map(|bucket| self.0.table.load(bucket).occupied(Self::layout())).sum()
    }

    pub fn lookup_retries(&self) -> u64 {
        self.0.table.counters.counts().lookup_retries
    }

    pub fn len(&self) -> usize {
        self.0.table.counters.len()
    }
}

/// What a merge with another table has added, which has neither lacked memory nor met another limit.
pub(super) fn added(merged: MergeResult) -> Result<u64, InsertError> {
    let MergeResult { copies, stopped } = merged;
    match stopped {
        None => Ok(copies),
        Some(MergeError::NoRoom(error)) => Err(error),
        Some(stopped) => unreachable!("neither memory nor size nor clock is at its limit: {stopped:?}"),
    }
}

/// What a save of a table has written.
#[allow(missing_debug_implementations, reason = "no model prints it")]
pub struct Image<E: ModelEntries> {
    pub(super) words: Vec<Bucket>,
    pub(super) layout: LayoutOf<E>,
    /// The reading of the table's clock, if the table has a clock.
    pub(super) clock_state: Option<ClockState>,
}

impl<E: ModelEntries> Image<E> {
    /// How many copies of the key the image holds, in either bucket.
    pub fn count(&self, key: Key) -> usize {
        let entry = self.layout.entry(Fingerprint(key.fingerprint), key.value);
        let mut buckets = vec![key.first, key.second];
        buckets.dedup();
        buckets.into_iter().map(|bucket| self.words[bucket].count_entry(self.layout, entry)).sum()
    }

    pub fn copies(&self) -> usize {
        self.words.iter().map(|&word| word.occupied(self.layout)).sum()
    }
}

/// Passes on these hashes as one block.
pub(super) fn one_block(hashes: impl IntoIterator<Item = u64>) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    let hashes: Vec<u64> = hashes.into_iter().collect();
    assert!(hashes.len() < BLOCK);
    move |block| {
        block[..hashes.len()].copy_from_slice(&hashes);
        hashes.len()
    }
}

/// The answers of a batch, as a list or as an array.
pub(super) fn answers<A: Copy, All: TryFrom<Vec<A>>>(batch: impl FnOnce(&mut dyn FnMut(&[A]))) -> All {
    let mut all = Vec::new();
    batch(&mut |answers| all.extend_from_slice(answers));
    all.try_into().unwrap_or_else(|_| panic!("a batch has an answer for each key"))
}
