//! Pure: the traits of `table/face/traits.rs` for a table of one layout, and its batches.

use crate::error::insert::{InsertBatchError, InsertError};
#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::machine::arch::{VectorUnit, Vectorized};
use crate::plan::batch::{self, BLOCK, Hashes, Steps};
use crate::table::counters::Counts;
use crate::table::face::traits::{AnyTable, BlockOfValues, FilterTable, MapletTable};
use crate::table::image::absorb::{Absorbed, Image};
use crate::table::image::save::TableSave;
use crate::table::table::{Table, memory_for};
use crate::word::geometry::{Geometry, Index, Items};
use crate::word::layout::{Borrowed, Fingerprint, Layout, Shape};
use crate::word::values::Values;

/// The inserts of a table that is being saved, kept apart from all other code. (They take what is in registers
/// already.)
impl<L: Layout, G: Geometry> Table<L, G> {
    #[cold]
    #[inline(never)]
    fn insert_saved(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_anyhow::<true>(self.item_again(hash))
    }

    #[cold]
    #[inline(never)]
    fn insert_block_saved(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: &Items<G::Index, BLOCK>,
        refused: &mut Option<InsertError>,
    ) -> usize {
        self.insert_block::<true, ()>(self.layout(), items, len, coming, refused)
    }

    /// Inserts the items up to the first one that is refused; returns how many. Puts the reason of the refusal into
    /// `refused`. Prefetches the buckets of `coming`.
    #[inline(always)]
    fn insert_block<const SAVED: bool, P: Payloads>(
        &self,
        layout: impl Layout,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: &Items<G::Index, BLOCK>,
        refused: &mut Option<InsertError>,
    ) -> usize {
        let mut inserted = 0;
        for nth in 0..len {
            self.prefetch(coming.get(nth));
            let item = items.get(nth);
            let added =
                if P::ANY { self.insert_value_uncounted(item) } else { self.insert_uncounted::<SAVED>(layout, item) };
            if let Err(mut error) = added {
                if let InsertError::Full { len, .. } = &mut error {
                    // The items before it in this block are not counted yet.
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

/// A batch of lookups: its hashes, and the steps for each block of them. All of it is compiled for each vector unit.
pub(in crate::table) struct Batch<'a, S> {
    pub(in crate::table) hashes: Hashes<'a>,
    pub(in crate::table) steps: S,
}

impl<S: Steps> Vectorized for Batch<'_, S> {
    #[inline(always)]
    fn run(mut self) {
        batch::for_each_block(self.hashes, &mut self.steps);
    }
}

/// The answer of a lookup.
pub(in crate::table) trait Answer: Copy {
    /// The answer for an absent key.
    const NONE: Self;

    /// Looks up the first `len` items of a block. If there are items to come, prefetches their buckets.
    fn look_up<L: Layout, G: Geometry>(
        table: &Table<L, G>,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        answers: &mut [Self; BLOCK],
    );
}

/// Whether the key is in.
impl Answer for bool {
    const NONE: Self = false;

    #[inline(always)]
    fn look_up<L: Layout, G: Geometry>(
        table: &Table<L, G>,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        answers: &mut [Self; BLOCK],
    ) {
        table.contains_block(items, len, coming, answers);
    }
}

impl Answer for Values {
    const NONE: Self = Self::EMPTY;

    #[inline(always)]
    fn look_up<L: Layout, G: Geometry>(
        table: &Table<L, G>,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        answers: &mut [Self; BLOCK],
    ) {
        table.values_block(items, len, coming, answers);
    }
}

/// The steps of a batch of lookups.
pub(in crate::table) struct Lookups<'a, L, G, A> {
    pub(in crate::table) table: &'a Table<L, G>,
    pub(in crate::table) answers: &'a mut dyn FnMut(&[A]),
}

impl<L: Layout, G: Geometry, A: Answer> Steps for Lookups<'_, L, G, A> {
    type Prepared = Items<G::Index, BLOCK>;

    const NONE: Self::Prepared = Items::NONE;

    #[inline(always)]
    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, items: &mut Self::Prepared) {
        self.table.prepare(hashes, items);
    }

    #[inline(always)]
    fn ask(&self, items: &Self::Prepared) {
        if self.table.is_far() {
            self.table.ask(items);
        }
    }

    #[inline(always)]
    fn act(&mut self, items: &Self::Prepared, len: usize, coming: &Self::Prepared) -> bool {
        let mut found = [A::NONE; BLOCK];
        A::look_up(self.table, items, len, self.table.is_far().then_some(coming), &mut found);
        (self.answers)(&found[..len]);
        true
    }
}

/// The payloads that go with the blocks of a batch.
trait Payloads {
    /// Whether there are any.
    const ANY: bool;

    /// Adds them to the items of a block.
    fn add_to<L: Layout, I: Index>(&self, layout: L, items: &mut Items<I, BLOCK>);
}

/// A filter has none.
impl Payloads for () {
    const ANY: bool = false;

    #[inline(always)]
    fn add_to<L: Layout, I: Index>(&self, _: L, _: &mut Items<I, BLOCK>) {}
}

impl Payloads for &BlockOfValues {
    const ANY: bool = true;

    #[inline(always)]
    fn add_to<L: Layout, I: Index>(&self, layout: L, items: &mut Items<I, BLOCK>) {
        for (entry, value) in items.entries.iter_mut().zip(self.get()) {
            *entry = layout.entry(Fingerprint(*entry), value).0;
        }
    }
}

/// The items of a block for a batch of changes. Only that step is compiled for each vector unit: the changes
/// themselves are made one by one.
struct Prepare<'a, L, G: Geometry> {
    table: &'a Table<L, G>,
    hashes: &'a [u64; BLOCK],
    items: &'a mut Items<G::Index, BLOCK>,
}

impl<L: Layout, G: Geometry> Vectorized for Prepare<'_, L, G> {
    #[inline(always)]
    fn run(self) {
        self.table.prepare(self.hashes, self.items);
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// [`ask`](Self::ask), compiled once for all shapes.
    #[inline(never)]
    pub(in crate::table) fn ask_all(&self, items: &Items<G::Index, BLOCK>) {
        self.ask(items);
    }

    /// The items of these hashes, by the widest vector unit.
    pub(in crate::table) fn prepare_by_widest(&self, hashes: &[u64; BLOCK], items: &mut Items<G::Index, BLOCK>) {
        VectorUnit::widest().run(Prepare { table: self, hashes, items });
    }
}

/// The steps of a batch of changes. `act` makes those of a block, and prefetches the buckets of the coming one. It
/// returns whether to go on.
struct Changes<'a, L, G, P, A> {
    table: &'a Table<L, G>,
    payloads: P,
    act: A,
}

impl<L: Layout, G: Geometry, P: Payloads, A> Steps for Changes<'_, L, G, P, A>
where
    A: FnMut(&Items<G::Index, BLOCK>, usize, &Items<G::Index, BLOCK>) -> bool,
{
    type Prepared = Items<G::Index, BLOCK>;

    const NONE: Self::Prepared = Items::NONE;

    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, items: &mut Self::Prepared) {
        self.table.prepare_by_widest(hashes, items);
        self.payloads.add_to(self.table.layout(), items);
    }

    fn ask(&self, items: &Self::Prepared) {
        self.table.ask_all(items);
    }

    fn act(&mut self, items: &Self::Prepared, len: usize, coming: &Self::Prepared) -> bool {
        (self.act)(items, len, coming)
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    fn insert_all<P: Payloads>(
        &self,
        layout: impl Layout,
        hashes: Hashes<'_>,
        payloads: P,
    ) -> Result<usize, InsertBatchError> {
        let mut inserted = 0;
        let mut refused = None;
        let act = |items: &Items<G::Index, BLOCK>, len, coming: &Items<G::Index, BLOCK>| {
            // Checked once for the block: a save that begins later overlaps the inserts.
            inserted += if !P::ANY && self.is_being_saved() {
                self.insert_block_saved(items, len, coming, &mut refused)
            } else {
                self.insert_block::<false, P>(layout, items, len, coming, &mut refused)
            };
            refused.is_none()
        };
        batch::for_each_block(hashes, &mut Changes { table: self, payloads, act });
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError { inserted, error }))
    }

    fn remove_all(
        &self,
        layout: impl Layout,
        hashes: Hashes<'_>,
        payloads: impl Payloads,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        let act = |items: &Items<G::Index, BLOCK>, len, coming: &Items<G::Index, BLOCK>| {
            let mut removed = [false; BLOCK];
            let mut count = 0;
            for (nth, removed) in removed.iter_mut().enumerate().take(len) {
                self.prefetch(coming.get(nth));
                let item = items.get(nth);
                *removed = self.remove_or_again::<false>(layout, item, self.same_again(item));
                count += i64::from(*removed);
            }
            self.counters.add_len(-count);
            answers(&removed[..len]);
            true
        };
        batch::for_each_block(hashes, &mut Changes { table: self, payloads, act });
    }
}

/// A table with a layout whose shape is known when the code is compiled, or, with 0 slots, is not.
///
/// Only the operations that get [`layout`](Self::layout) are compiled for each shape: the shortest ways of single
/// lookups, inserts and removals, where constants save a tenth of the instructions. All other code is that of
/// `Table`, where the shape is data.
#[derive(Debug)]
pub(crate) struct Shaped<L, G, const SLOTS: u32, const BITS: u32> {
    pub(crate) table: Table<L, G>,
}

impl<L: Layout, G: Geometry, const SLOTS: u32, const BITS: u32> Shaped<L, G, SLOTS, BITS> {
    /// The table's layout.
    #[inline(always)]
    pub(in crate::table) fn layout(&self) -> Borrowed<'_, L, SLOTS, BITS> {
        Borrowed(&self.table.layout)
    }
}

impl<L: Layout, G: Geometry, const SLOTS: u32, const BITS: u32> AnyTable for Shaped<L, G, SLOTS, BITS> {
    fn contains(&self, hash: u64) -> bool {
        self.table.contains_hash(self.layout(), hash)
    }

    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        VectorUnit::widest().run(Batch { hashes, steps: Lookups { table: &self.table, answers } });
    }

    fn clear(&self) {
        self.table.clear();
    }

    fn len(&self) -> usize {
        self.table.counters.len()
    }

    fn counts(&self) -> Counts {
        self.table.counters.counts()
    }

    fn record_negatives(&self, count: u64) {
        self.table.counters.record_negatives(count);
    }

    fn record_false_positives(&self, count: u64) {
        self.table.counters.record_false_positives(count);
    }

    fn capacity(&self) -> usize {
        self.table.capacity()
    }

    fn buckets(&self) -> usize {
        self.table.buckets.count()
    }

    fn shape(&self) -> Shape {
        self.table.layout.shape()
    }

    fn memory_usage(&self) -> usize {
        size_of_val(&self.table) + memory_for(self.table.buckets.count()) + self.table.clock().map_or(0, size_of_val)
    }

    fn begin_save(&self) -> std::io::Result<TableSave<'_>> {
        self.table.begin_save()
    }

    fn save(&self, save: &TableSave<'_>, chunk: &mut dyn FnMut(&[u64]) -> std::io::Result<()>) -> std::io::Result<u64> {
        self.table.read_image(save, chunk)
    }

    fn digest(&self, save: &TableSave<'_>) -> std::io::Result<u64> {
        self.table.digest(save)
    }

    fn absorb(&self, image: &dyn Image) -> Absorbed {
        self.table.absorb(image)
    }

    #[cfg(feature = "snapshot")]
    fn load(&mut self, next: &mut dyn FnMut(&mut [u64]) -> Result<(), LoadError>) -> Result<u64, LoadError> {
        self.table.fill(next)
    }
}

impl<L: Layout, G: Geometry, const SLOTS: u32, const BITS: u32> FilterTable for Shaped<L, G, SLOTS, BITS> {
    fn count(&self, hash: u64) -> usize {
        self.table.count(self.layout(), self.table.buckets.item(self.layout(), hash))
    }

    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        if self.table.is_being_saved() {
            self.table.insert_saved(hash)
        } else {
            self.table.insert_hash(self.layout(), hash)
        }
    }

    fn insert_within_capacity(&self, hash: u64) -> Result<(), InsertError> {
        self.table.insert_within_capacity(hash)
    }

    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.table.insert_if_absent_hash(self.layout(), hash)
    }

    fn remove(&self, hash: u64) -> bool {
        self.table.remove_hash(self.layout(), hash)
    }

    fn prefetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.table.prefetch(self.table.item(hash));
        }
    }

    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        self.table.insert_all(self.layout(), hashes, ())
    }

    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_all(self.layout(), hashes, (), answers);
    }

    fn lower_bucket(&self, hash: u64) -> usize {
        let item = self.table.item(hash);
        item.first.min(item.second)
    }
}

impl<L: Layout, G: Geometry, const SLOTS: u32, const BITS: u32> MapletTable for Shaped<L, G, SLOTS, BITS> {
    fn values(&self, hash: u64) -> Values {
        self.table.values_or_again(
            self.layout(),
            self.table.buckets.item(self.layout(), hash),
            self.table.item_again(hash),
        )
    }

    fn count_value(&self, hash: u64, value: u16) -> usize {
        self.table.count(self.table.layout(), self.table.item_with(hash, value))
    }

    fn insert_value(&self, hash: u64, value: u16) -> Result<(), InsertError> {
        self.table.insert_with_value(self.table.item_with(hash, value))
    }

    fn insert_value_if_absent(&self, hash: u64, value: u16) -> Result<Values, InsertError> {
        self.table.insert_if_absent_telling(self.table.item_with(hash, value))
    }

    fn remove_value(&self, hash: u64, value: u16) -> bool {
        let item = self.table.item_with(hash, value);
        // As in `remove_hash`.
        self.table.prefetch(item);
        self.table.remove_or_again::<true>(self.layout(), item, self.table.item_with_again(hash, value))
    }

    fn replace_value(&self, hash: u64, old: u16, new: u16) -> bool {
        self.table.replace(self.table.item_with(hash, old), self.table.item_with(hash, new))
    }

    fn values_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values])) {
        VectorUnit::widest().run(Batch { hashes, steps: Lookups { table: &self.table, answers } });
    }

    fn insert_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues) -> Result<usize, InsertBatchError> {
        self.table.insert_all(self.table.layout(), hashes, values)
    }

    fn remove_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_all(self.table.layout(), hashes, values, answers);
    }
}
