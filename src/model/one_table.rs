//! What models see of one table: they fill its buckets by hand.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::InsertError;
use crate::error::memory::OutOfMemory;
use crate::machine::memory::Pages;
use crate::plan::batch::BLOCK;
use crate::plan::path::Hop;
use crate::table::expiring::clock::Reading;
use crate::table::face::any_table::AnyTable as _;
use crate::table::face::dyn_table::Shaped;
use crate::table::face::traits::{FilterTable, MapletTable};
use crate::table::image::merge::{Absorbed, Merge, Stopped};
use crate::table::image::read::TableImage;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Buckets, Item};
use crate::word::layout::{Fingerprint, OfShape, Plain, SemiSorted, Shape, WithPayload};
use crate::word::values::Values;

/// Two slots to a bucket: the smallest bucket that can be full and can hold two keys at once.
pub type Smallest = Plain;

/// The default layout of a filter.
pub type Usual = SemiSorted;

/// The smallest layout with a value of two bits in each slot.
pub type SmallestOfValues = WithPayload<Smallest>;

/// The default layout of a filter, with a value of two bits in each slot.
pub type UsualOfValues = WithPayload<Usual>;

/// Any layout. (The crate's own trait can't be named outside.)
pub trait ModelLayout: OfShape {
    /// The fewest buckets that a table of this layout has.
    const LEAST_BUCKETS: usize = 1;

    fn shape_of_model() -> Shape;

    fn of_model() -> Self {
        Self::try_of(Self::shape_of_model()).expect("a model has memory")
    }
}

impl ModelLayout for Smallest {
    fn shape_of_model() -> Shape {
        Shape::plain(2, 32)
    }
}

impl ModelLayout for Usual {
    fn shape_of_model() -> Shape {
        Shape::semi_sorted(5, 14)
    }
}

impl<L: ModelLayout> ModelLayout for WithPayload<L> {
    const LEAST_BUCKETS: usize = 2;

    fn shape_of_model() -> Shape {
        L::shape_of_model().with_payload(2).expect("it leaves enough")
    }
}

pub struct Table<L = Smallest>(pub(super) Shaped<L, 0, 0>);

impl<L> core::fmt::Debug for Table<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

pub(super) fn empty<L: ModelLayout>(buckets: usize) -> crate::table::table::Table<L> {
    crate::table::table::Table::new(Pages::Usual, L::shape_of_model(), buckets).expect("a model has memory")
}

/// A key, or more precisely a class of keys: a fingerprint, and the order in which its two buckets are tried. In a
/// table of values, also the value of the copy in question.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    buckets: usize,
    fingerprint: u32,
    first: usize,
    second: usize,
    pub(super) value: u16,
}

impl Key {
    /// The `nth` class whose pair is the buckets `first` and `second`, in a table of `buckets` buckets of two slots
    /// each.
    pub fn new(buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        Self::of::<Smallest>(buckets, first, second, nth)
    }

    pub fn of<L: ModelLayout>(buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        let geometry = Buckets::new(buckets);
        // Multiples of an odd number reach all fingerprints, in their high bits and low.
        let fingerprints = (1..1_000_000u64).map(|n| L::of_model().fingerprint_from(n.wrapping_mul(0x9e37_79b9)));
        let fingerprint = fingerprints.filter(|&f| geometry.alternate(first, f) == second).nth(nth);
        let Fingerprint(fingerprint) = fingerprint.expect("some fingerprint leads there");
        Self { buckets, fingerprint, first, second, value: 0 }
    }

    /// A class whose first bucket is this one, wherever its other one is.
    pub fn at<L: ModelLayout>(buckets: usize, first: usize) -> Self {
        let Fingerprint(fingerprint) = L::of_model().fingerprint_from(0x9e37_79b9);
        let second = Buckets::new(buckets).alternate(first, Fingerprint(fingerprint));
        Self { buckets, fingerprint, first, second, value: 0 }
    }

    /// A key of the same class that tries the buckets in the other order.
    pub fn twin(self) -> Self {
        Self { first: self.second, second: self.first, ..self }
    }

    pub fn with(self, value: u16) -> Self {
        Self { value, ..self }
    }

    /// A key of another class with the same low part. Only in a semi-sorted table of two buckets: there every class has
    /// the same pair.
    pub fn lookalike<L: ModelLayout>(self) -> Self {
        assert!(L::SEMI_SORTED && self.first + self.second == 1, "its pair is another one");
        Self { fingerprint: self.fingerprint ^ 1 << L::of_model().lanes().bits, ..self }
    }

    /// The hash of which `Buckets::item` makes this class: in a model, no hash is mixed.
    pub(super) fn hash(self) -> u64 {
        ((self.first as u64) << 32).div_ceil(self.buckets as u64) << 32 | u64::from(self.fingerprint)
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

/// What a save of a table has written.
#[derive(Debug)]
pub struct Image<L> {
    pub(super) words: Vec<Bucket>,
    pub(super) layout: L,
    /// The reading of the table's clock, if the table has a clock.
    pub(super) reading: Option<Reading>,
}

impl<L: ModelLayout> Image<L> {
    /// How many copies of the key the image holds, in either bucket.
    pub fn count(&self, key: Key) -> usize {
        let entry = self.layout.entry(Fingerprint(key.fingerprint), key.value);
        let mut buckets = vec![key.first, key.second];
        buckets.dedup();
        buckets.into_iter().map(|bucket| self.layout.count_entry(self.words[bucket], entry)).sum()
    }

    pub fn copies(&self) -> usize {
        self.words.iter().map(|&word| self.layout.occupied(word)).sum()
    }
}

impl<L: ModelLayout> Table<L> {
    pub fn new(buckets: usize) -> Self {
        Self::of(empty(buckets))
    }

    pub(super) fn of(table: crate::table::table::Table<L>) -> Self {
        Self(Shaped { table })
    }

    fn item(&self, key: Key) -> Item {
        self.0.table.item_with(key.hash(), key.value)
    }

    /// Puts a copy of the key into the bucket that it tries first. That bucket must have room.
    pub fn place(&self, key: Key) {
        assert!(self.0.table.put(key.first, self.item(key).entry), "there is room to begin with");
        self.0.table.counters.add_len(1);
    }

    pub fn contains(&self, key: Key) -> bool {
        FilterTable::contains(&self.0, key.hash())
    }

    pub fn contains_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        answers(|answers| self.0.table.contains_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn count(&self, key: Key) -> usize {
        self.0.count_value(key.hash(), key.value)
    }

    pub fn insert(&self, key: Key) -> Result<(), InsertError> {
        if L::HAS_PAYLOAD { self.0.insert_value(key.hash(), key.value) } else { self.0.insert(key.hash()) }
    }

    pub fn insert_if_absent(&self, key: Key) -> Result<bool, InsertError> {
        self.0.insert_if_absent(key.hash())
    }

    pub fn values(&self, key: Key) -> Values {
        self.0.values(key.hash())
    }

    pub fn values_batch<const N: usize>(&self, keys: [Key; N]) -> [Values; N] {
        answers(|answers| self.0.values_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn insert_value_if_absent(&self, key: Key) -> Result<Values, InsertError> {
        self.0.insert_value_if_absent(key.hash(), key.value)
    }

    pub fn replace(&self, old: Key, new: u16) -> bool {
        self.0.replace_value(old.hash(), old.value, new)
    }

    pub fn remove(&self, key: Key) -> bool {
        self.0.remove_value(key.hash(), key.value)
    }

    pub fn clear(&self) {
        self.0.table.clear();
    }

    /// [`ConcurrentCuckooFilter::absorb`](crate::ConcurrentCuckooFilter::absorb); returns how many copies were added.
    pub fn absorb(&self, other: &Self) -> Result<u64, InsertError> {
        self.merge(other, Merge::Sum)
    }

    /// [`ConcurrentCuckooFilter::unite`](crate::ConcurrentCuckooFilter::unite); returns how many copies were added.
    pub fn unite(&self, other: &Self) -> Result<u64, InsertError> {
        self.merge(other, Merge::Union)
    }

    fn merge(&self, other: &Self, merge: Merge) -> Result<u64, InsertError> {
        let image = TableImage::begin(&other.0.table).expect("a model has memory");
        let Absorbed { copies, stopped } = self.0.table.absorb(&image, merge);
        match stopped {
            None => Ok(copies),
            Some(Stopped::NoRoom(error)) => Err(error),
            Some(stopped) => unreachable!("neither memory nor size nor clock is at its limit: {stopped:?}"),
        }
    }

    /// `ConcurrentCuckooFilter::save`, without the format.
    pub fn save(&self) -> Image<L> {
        self.save_and_tell(|| ())
    }

    /// `save` that calls `begun` when the save has begun.
    pub fn save_and_tell(&self, begun: impl FnOnce()) -> Image<L> {
        let image = TableImage::begin(&self.0.table).expect("a model has memory");
        begun();
        self.image(&image)
    }

    /// Begins a save. [`end_save`](Self::end_save) does the rest.
    pub fn begin_save(&self) {
        core::mem::forget(TableImage::begin(&self.0.table).expect("a model has memory"));
    }

    /// The rest of a save that has begun, on any thread.
    pub fn end_save(&self) -> Image<L> {
        self.image(&TableImage::forgotten(&self.0.table))
    }

    fn image(&self, of: &TableImage<'_>) -> Image<L> {
        let mut words = Vec::new();
        let copies = of.read(|_, chunk| {
            words.extend(chunk.iter().copied().map(Bucket));
            Ok::<_, OutOfMemory>(())
        });
        let image = Image { words, layout: L::of_model(), reading: of.reading() };
        assert_eq!(copies.expect("a model has memory"), image.copies() as u64);
        image
    }

    /// One hop of a plan: moves a copy of the key from the bucket that it tries first to the other one.
    pub fn relocate(&self, key: Key) -> bool {
        self.0.table.relocate(Hop { entry: self.item(key).entry, from: key.first, to: key.second })
    }

    /// Whether the key's first bucket holds a copy: one read, without a lock.
    pub fn first_holds(&self, key: Key) -> bool {
        L::of_model().holds_entry(self.0.table.load(key.first), self.item(key).entry)
    }

    pub fn slots_per_bucket(&self) -> usize {
        L::of_model().lanes().slots.into()
    }

    /// How many items there are, by a scan of all buckets.
    pub fn scan(&self) -> usize {
        (0..self.0.table.words.len()).map(|bucket| L::of_model().occupied(self.0.table.load(bucket))).sum()
    }

    pub fn lookup_retries(&self) -> u64 {
        self.0.table.counters.counts().lookup_retries
    }

    pub fn len(&self) -> usize {
        self.0.table.counters.len()
    }
}
