//! What models see of one table: they fill its buckets by hand.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::InsertError;
use crate::machine::memory::Pages;
use crate::plan::batch::BLOCK;
use crate::plan::path::Hop;
use crate::table::expiring::clock::Reading;
use crate::table::face::dyn_table::Shaped;
use crate::table::face::traits::AnyTable;
use crate::table::image::absorb::{Absorbed, Stopped};
use crate::table::image::images::TableImage;
use crate::table::image::save::TableSave;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Buckets, Geometry, Item, Items};
use crate::word::layout::{Entry, OfShape, Plain, SemiSorted, Shape, WithPayload};
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
pub trait AnyLayout: OfShape {
    /// The fewest buckets that a table of this layout has.
    const LEAST_BUCKETS: usize = 1;

    /// Its one shape, with values of two bits if it has any.
    fn shape_of_model() -> Shape;

    /// The layout of that shape.
    fn of_model() -> Self {
        Self::of(Self::shape_of_model())
    }
}

impl AnyLayout for Smallest {
    fn shape_of_model() -> Shape {
        Shape::plain(2, 32)
    }
}

impl AnyLayout for Usual {
    fn shape_of_model() -> Shape {
        Shape::semi_sorted(5, 14)
    }
}

impl<L: AnyLayout> AnyLayout for WithPayload<L> {
    const LEAST_BUCKETS: usize = 2;

    fn shape_of_model() -> Shape {
        L::shape_of_model().with_payload(2).expect("it leaves enough")
    }
}

/// A table of a given number of buckets.
#[derive(Debug)]
pub struct Table<L = Smallest>(pub(super) Shaped<L, Buckets, 0, 0>);

/// An empty table.
pub(super) fn empty<L: AnyLayout>(buckets: usize) -> crate::table::table::Table<L> {
    crate::table::table::Table::new(Pages::Usual, L::shape_of_model(), Buckets::new(buckets))
        .expect("a model has memory")
}

/// A key, or more precisely a class of keys: a fingerprint, and the order in which its two buckets are tried.
#[derive(Clone, Copy, Debug)]
pub struct Key(pub(super) Item);

impl Key {
    /// The `nth` class whose pair is the buckets `first` and `second`, in a table of `buckets` buckets of two slots
    /// each.
    pub fn new(buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        Self::of::<Smallest>(buckets, first, second, nth)
    }

    /// The same for another layout.
    pub fn of<L: AnyLayout>(buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        let geometry = Buckets::new(buckets);
        // Multiples of an odd number reach all fingerprints, in their high bits and low.
        let fingerprints = (1..1_000_000u64).map(|n| L::of_model().fingerprint(n.wrapping_mul(0x9e37_79b9)));
        let fingerprint = fingerprints.filter(|&f| geometry.alternate(first, f) == second).nth(nth);
        let fingerprint = fingerprint.expect("some fingerprint leads there");
        Self(Item { entry: L::of_model().entry(fingerprint, 0), first, second, sum: geometry.sum(fingerprint) })
    }

    /// A key of the same class that tries the buckets in the other order.
    pub fn twin(self) -> Self {
        Self(Item { first: self.0.second, second: self.0.first, ..self.0 })
    }

    /// The key with this value, in a table of values.
    pub fn with<L: AnyLayout>(self, value: u16) -> Self {
        Self(self.0.with(L::of_model(), value))
    }

    /// A key of another class with the same low part. Only in a semi-sorted table of two buckets: there every class has
    /// the same pair.
    pub fn lookalike<L: AnyLayout>(self) -> Self {
        assert!(L::SEMI_SORTED && self.0.first + self.0.second == 1, "its pair is another one");
        Self(Item { entry: Entry(self.0.entry.0 ^ 1 << L::of_model().lanes().bits), ..self.0 })
    }
}

/// What a save of a table has written.
#[derive(Debug)]
pub struct Image<L> {
    pub(super) words: Vec<Bucket>,
    pub(super) layout: L,
    /// The reading of the table's clock, if the table has a clock.
    pub(super) reading: Option<Reading>,
}

impl<L: AnyLayout> Image<L> {
    /// How many copies of the key the image holds, in either bucket.
    pub fn count(&self, key: Key) -> usize {
        let Item { entry, first, second, .. } = key.0;
        let buckets = if first == second { vec![first] } else { vec![first, second] };
        buckets.into_iter().map(|bucket| self.layout.count_entry(self.words[bucket], entry)).sum()
    }

    /// How many copies of any key the image holds.
    pub fn copies(&self) -> usize {
        self.words.iter().map(|&word| self.layout.occupied(word)).sum()
    }
}

impl<L: AnyLayout> Table<L> {
    /// An empty table.
    pub fn new(buckets: usize) -> Self {
        Self::of(empty(buckets))
    }

    pub(super) fn of(table: crate::table::table::Table<L>) -> Self {
        Self(Shaped { table })
    }

    /// Puts a copy of the key into the bucket that it tries first. That bucket must have room.
    pub fn place(&self, key: Key) {
        assert!(self.0.table.put(key.0.first, key.0.entry), "there is room to begin with");
        self.0.table.counters.add_len(1);
    }

    /// [`ConcurrentCuckooFilter::contains`](crate::ConcurrentCuckooFilter::contains)
    pub fn contains(&self, key: Key) -> bool {
        self.0.table.contains(key.0)
    }

    /// [`ConcurrentCuckooFilter::contains_batch`](crate::ConcurrentCuckooFilter::contains_batch)
    pub fn contains_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        let mut answers = [false; BLOCK];
        let mut items = Items::NONE;
        keys.iter().enumerate().for_each(|(nth, key)| items.set(nth, key.0));
        self.0.table.contains_block(&items, N, None, &mut answers);
        core::array::from_fn(|nth| answers[nth])
    }

    /// [`ConcurrentCuckooFilter::count`](crate::ConcurrentCuckooFilter::count)
    pub fn count(&self, key: Key) -> usize {
        self.0.table.count(self.0.table.layout(), key.0)
    }

    /// [`ConcurrentCuckooFilter::insert`](crate::ConcurrentCuckooFilter::insert)
    pub fn insert(&self, key: Key) -> Result<(), InsertError> {
        self.0.table.insert(key.0)
    }

    /// [`ConcurrentCuckooFilter::insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent)
    pub fn insert_if_absent(&self, key: Key) -> Result<bool, InsertError> {
        self.0.table.insert_if_absent(key.0)
    }

    /// [`ConcurrentCuckooMaplet::values`](crate::ConcurrentCuckooMaplet::values)
    pub fn values(&self, key: Key) -> Values {
        self.0.table.values(key.0)
    }

    /// [`ConcurrentCuckooMaplet::values_batch`](crate::ConcurrentCuckooMaplet::values_batch)
    pub fn values_batch<const N: usize>(&self, keys: [Key; N]) -> [Values; N] {
        let mut answers = [Values::EMPTY; BLOCK];
        let mut items = Items::NONE;
        keys.iter().enumerate().for_each(|(nth, key)| items.set(nth, key.0.with(L::of_model(), 0)));
        self.0.table.values_block(&items, N, None, &mut answers);
        core::array::from_fn(|nth| answers[nth])
    }

    /// [`ConcurrentCuckooMaplet::insert_if_absent`](crate::ConcurrentCuckooMaplet::insert_if_absent)
    pub fn insert_if_absent_telling(&self, key: Key) -> Result<Values, InsertError> {
        self.0.table.insert_if_absent_telling(key.0)
    }

    /// [`ConcurrentCuckooMaplet::replace`](crate::ConcurrentCuckooMaplet::replace)
    pub fn replace(&self, old: Key, new: u16) -> bool {
        self.0.table.replace(old.0, old.with::<L>(new).0)
    }

    /// [`ConcurrentCuckooFilter::remove`](crate::ConcurrentCuckooFilter::remove)
    pub fn remove(&self, key: Key) -> bool {
        self.0.table.remove(key.0)
    }

    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear)
    pub fn clear(&self) {
        self.0.table.clear();
    }

    /// [`ConcurrentCuckooFilter::absorb`](crate::ConcurrentCuckooFilter::absorb); returns how many copies were added.
    pub fn absorb(&self, other: &Self) -> Result<u64, InsertError> {
        let save = other.0.table.begin_save().expect("a model has memory");
        let Absorbed { copies, stopped } = self.0.table.absorb(&TableImage { table: &other.0, save });
        match stopped {
            None => Ok(copies),
            Some(Stopped::Refused(error)) => Err(error),
            Some(Stopped::OutOfMemory) => unreachable!("a model has memory"),
        }
    }

    /// `ConcurrentCuckooFilter::save`, without the format.
    pub fn save(&self) -> Image<L> {
        self.save_and_tell(|| ())
    }

    /// The same, and calls `begun` when the moment of the save is past.
    pub fn save_and_tell(&self, begun: impl FnOnce()) -> Image<L> {
        let save = self.0.table.begin_save().expect("a model has memory");
        begun();
        self.image(&save)
    }

    /// Begins a save. [`end_save`](Self::end_save) does the rest.
    pub fn begin_save(&self) {
        core::mem::forget(self.0.table.begin_save().expect("a model has memory"));
    }

    /// The rest of a save that has begun, on any thread.
    pub fn end_save(&self) -> Image<L> {
        self.image(&self.0.table.begun_save())
    }

    fn image(&self, save: &TableSave<'_>) -> Image<L> {
        let mut words = Vec::new();
        let copies = self.0.table.read_image(save, &mut |chunk| {
            words.extend(chunk.iter().copied().map(Bucket));
            Ok(())
        });
        let image = Image { words, layout: L::of_model(), reading: save.reading() };
        assert_eq!(copies.expect("a model has memory"), image.copies() as u64);
        image
    }

    /// One hop of a plan: moves a copy of the key from the bucket that it tries first to the other one.
    pub fn relocate(&self, key: Key) -> bool {
        self.0.table.relocate(Hop { entry: key.0.entry, from: key.0.first, to: key.0.second })
    }

    /// Whether the bucket that the key tries first holds a copy: one look, without a lock.
    pub fn first_holds(&self, key: Key) -> bool {
        L::of_model().holds_entry(self.0.table.look(key.0.first), key.0.entry)
    }

    /// How many slots a bucket has.
    pub fn slots_per_bucket(&self) -> usize {
        L::of_model().lanes().slots.into()
    }

    /// How many items there are, by a look into every bucket.
    pub fn scan(&self) -> usize {
        (0..self.0.buckets()).map(|bucket| L::of_model().occupied(self.0.table.look(bucket))).sum()
    }

    /// The count of looks that were repeated because a version had changed.
    pub fn lookup_retries(&self) -> u64 {
        self.0.counts().lookup_retries
    }

    /// How many items there are, according to the counters.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
