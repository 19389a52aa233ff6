//! CONCURRENT: a table at one level, and the one that takes its place.

use core::hint::select_unpredictable;
use core::ops::Deref;
use std::sync::{Arc, Weak};

use crate::growth::plan::Plan;
use crate::machine::arch::prefetch;
use crate::sync::fault::{self, Fault};
use crate::sync::readers::Registry;
use crate::sync::replaceable::Replaceable;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::table::face::dyn_table::Shaped;
use crate::table::face::level::LevelTable;
use crate::table::face::plan::pages_for;
use crate::table::face::traits::{AnyTable, OneTable};
use crate::table::stripe::Stripe;
use crate::table::table::{Common, Source, Table, load};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Doubled, Geometry};
use crate::word::layout::{Encoding, Plain, SemiSorted};

/// How many locks a level has for the splitting of its buckets.
const SPLIT_LOCKS: usize = if cfg!(ccf_model) { 2 } else { 32 };

/// A table, in either encoding. Not in a box: a lookup would wait for one more load.
#[derive(Debug)]
enum AnyEncoding {
    Plain(Shaped<Plain, Doubled, 0, 0>),
    SemiSorted(Shaped<SemiSorted, Doubled, 0, 0>),
}

/// A table at one level.
#[derive(Debug)]
pub(crate) struct Level {
    table: AnyEncoding,
    number: u32,
    geometry: Doubled,
    /// What a bucket holds that was moved.
    mark: Bucket,
    serial: u64,
    made_for: usize,
    /// The table that takes this one's place: a larger or a smaller one. Its buckets are being moved there.
    pub(crate) next: Replaceable<Level>,
    /// How many buckets have been claimed by those that split them, in order. It may be more than there are.
    claimed: AtomicU64,
    /// How many of those were split by the thread that claimed them.
    split: AtomicU64,
    /// All buckets below this one are marked.
    marked: AtomicU64,
    /// Each bucket has one of these locks. A thread that splits it holds that.
    splitting: [Mutex<()>; SPLIT_LOCKS],
    registry: Arc<Registry>,
}

/// An empty table of this level, to which the buckets of `source` will be moved, if it is given. `None` if there is no
/// memory for it.
pub(super) fn new_level(
    plan: &Plan,
    number: u32,
    common: &Arc<Common>,
    registry: &Arc<Registry>,
    source: Option<Weak<Level>>,
) -> Option<Arc<Level>> {
    let (shape, geometry) = (plan.shape(number), plan.geometry.at(number));
    let pages = pages_for(geometry.count(), plan.pages);
    let (common, serial) = (Arc::clone(common), common.next_serial());
    let place = (serial, source.map(|source| source as Weak<dyn Source>));
    let table = match shape.encoding {
        Encoding::Plain => AnyEncoding::Plain(Shaped { table: Table::next(pages, shape, geometry, common, place)? }),
        Encoding::SemiSorted => {
            AnyEncoding::SemiSorted(Shaped { table: Table::next(pages, shape, geometry, common, place)? })
        }
    };
    let mark = match &table {
        AnyEncoding::Plain(shaped) => shaped.table.layout.mark(),
        AnyEncoding::SemiSorted(shaped) => shaped.table.layout.mark(),
    };
    let level = Arc::new(Level {
        table,
        number,
        geometry,
        serial,
        made_for: plan.capacity(number),
        next: Replaceable::new(None),
        claimed: AtomicU64::new(0),
        split: AtomicU64::new(0),
        marked: AtomicU64::new(0),
        mark,
        splitting: core::array::from_fn(|_| Mutex::new(())),
        registry: Arc::clone(registry),
    });
    if cfg!(ccf_model = "loom") {
        // loom assumes that a `SeqCst` load may always read the initial value of an atomic. It treats the value of a
        // `SeqCst` exchange correctly.
        level.clear();
    }
    Some(level)
}

/// How many bytes a level takes: its words and itself, without what all levels have in common.
pub(super) fn memory_for(buckets: usize) -> usize {
    // Beside the level, `Arc` has two counts.
    crate::table::table::memory_for(buckets) - Common::memory_for(buckets) + size_of::<Level>() + 2 * size_of::<usize>()
}

impl Deref for Level {
    type Target = dyn LevelTable;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        match &self.table {
            AnyEncoding::Plain(table) => table,
            AnyEncoding::SemiSorted(table) => table,
        }
    }
}

impl Level {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// How many items the table is made for.
    pub(super) fn made_for(&self) -> usize {
        self.made_for
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Gives so many buckets from `start` on back to the system, in a table that nobody uses any more.
    pub(super) fn release(&mut self, start: usize, most: usize) {
        match &mut self.table {
            AnyEncoding::Plain(shaped) => shaped.table.release(start, most),
            AnyEncoding::SemiSorted(shaped) => shaped.table.release(start, most),
        }
    }

    /// In bytes, without what all levels have in common.
    pub(super) fn memory(&self) -> usize {
        memory_for(self.buckets())
    }

    /// Moves the bucket's entries to the next level, which is larger, unless that was done before.
    pub(super) fn split_bucket(&self, bucket: usize, next: &Level) {
        if self.is_marked(bucket) {
            return;
        }
        let _lock = (!fault::injected(Fault::SplitWithoutLock)).then(|| self.splitting[bucket % SPLIT_LOCKS].lock());
        self.split(bucket, &**next);
    }

    /// Splits both buckets of a class.
    pub(crate) fn split_pair(&self, hash: u64, next: &Level) {
        if !fault::injected(Fault::WriterBringsNothing) {
            self.geometry.pair(hash).into_iter().for_each(|bucket| self.split_bucket(bucket, next));
        }
    }

    /// Whether a copy is in this table or in the next one, to which its buckets are being moved. `stripe` is that of the
    /// class. `None` if a writer has disturbed the look.
    #[cfg_attr(not(ccf_model), inline(always))]
    pub(super) fn look_in_both(&self, next: &Self, stripe: &Stripe, hash: u64) -> Option<bool> {
        let version = stripe.version();
        let found = match self.look_in_one(next, hash) {
            Some(found) => found,
            None => self.look_everywhere(next, hash),
        };
        (found || stripe.is_still(version) || fault::injected(Fault::LookupWithoutVersion)).then_some(found)
    }

    /// In a growth, the word that shows each of the class's two buckets: its list, its place, and whether it is one of the
    /// next table, as it is for a bucket that is known to be marked.
    #[cfg_attr(not(ccf_model), inline(always))]
    fn places<'a>(&'a self, next: &'a Self, hash: u64) -> [(&'a [AtomicU64], usize, bool); 2] {
        // Acquire, with `split_some`: the new words of these buckets come before.
        let marked = self.marked.load(Ordering::Acquire) as usize;
        let (old_words, new_words) = (self.words(), next.words());
        next.geometry.pair(hash).map(|bucket| {
            let is_moved = bucket / 2 < marked;
            // Without a branch on what is as good as random.
            (select_unpredictable(is_moved, new_words, old_words), bucket >> u32::from(!is_moved), is_moved)
        })
    }

    /// Prefetches what a look in both tables will read.
    pub(super) fn prefetch_in_both(&self, next: &Self, hashes: &[u64]) {
        if next.number < self.number {
            self.prefetch(hashes);
            return next.prefetch(hashes);
        }
        for (words, at, _) in hashes.iter().flat_map(|&hash| self.places(next, hash)) {
            prefetch(words, at);
        }
    }

    /// The same in a growth, if one word shows each of the buckets. `None` if this is a shrink, or if one that was not
    /// known to be marked is.
    #[cfg_attr(not(ccf_model), inline(always))]
    fn look_in_one(&self, next: &Self, hash: u64) -> Option<bool> {
        if next.number < self.number {
            return None;
        }
        let places = self.places(next, hash);
        let [first, second] = places.map(|(words, at, _)| load(words, at));
        let are_moved = places.map(|(.., is_moved)| is_moved);
        let only = |moved: bool| {
            let empty = Bucket::default();
            let first = select_unpredictable(are_moved[0] == moved, first, empty);
            [first, select_unpredictable(are_moved[1] == moved, second, empty)]
        };
        let (here, there) = (only(false), only(true));
        let found = self.either_holds(here, hash) | next.either_holds(there, hash);
        (found || !here.contains(&self.mark) && !fault::injected(Fault::LookupTooEarly)).then_some(found)
    }

    /// The same, in any case: reads both buckets of both tables.
    #[inline(never)]
    fn look_everywhere(&self, next: &Self, hash: u64) -> bool {
        let grows = next.number > self.number;
        let words = |level: &Self| level.geometry.pair(hash).map(|bucket| load(level.words(), bucket));
        let here = words(self);
        let mut there = words(next);
        for (old, new) in here.into_iter().zip(&mut there) {
            // A larger table's bucket has its copies once the old one is marked. Until then, the thread that splits that
            // one may have stored copies that were taken out meanwhile.
            if grows && old != self.mark && !fault::injected(Fault::LookupTooEarly) {
                *new = Bucket::default();
            }
        }
        self.either_holds(here, hash) || next.either_holds(there, hash)
    }

    #[cfg_attr(not(ccf_model), inline(always))]
    fn either_holds(&self, pair: [Bucket; 2], hash: u64) -> bool {
        match &self.table {
            AnyEncoding::Plain(table) => table.either_holds(pair, hash),
            AnyEncoding::SemiSorted(table) => table.either_holds(pair, hash),
        }
    }

    #[cfg_attr(not(ccf_model), inline(always))]
    fn words(&self) -> &[AtomicU64] {
        match &self.table {
            AnyEncoding::Plain(shaped) => &shaped.table.words,
            AnyEncoding::SemiSorted(shaped) => &shaped.table.words,
        }
    }

    /// Splits the next buckets that no other thread has claimed, up to `most`. Returns whether every bucket has been
    /// split by the thread that claimed it.
    pub(super) fn split_some(&self, most: usize, next: &Level) -> bool {
        let count = self.buckets() as u64;
        // Relaxed: it only shares out the work.
        if self.claimed.load(Ordering::Relaxed) < count {
            let start = self.claimed.fetch_add(most as u64, Ordering::Relaxed);
            let end = count.min(start + most as u64);
            for bucket in start..end {
                self.split_bucket(bucket as usize, next);
            }
            if start < end {
                // Acquire and release: all that is counted here was claimed, and marked, before what follows.
                let split = self.split.fetch_add(end - start, Ordering::AcqRel) + (end - start);
                if self.claimed.load(Ordering::Relaxed).min(count) == split {
                    // Release, with the loads: whoever sees this sees the buckets marked.
                    self.marked.fetch_max(split, Ordering::Release);
                }
            }
        }
        self.marked.load(Ordering::Acquire) == count || fault::injected(Fault::SwitchesTooSoon)
    }

    /// Splits all buckets.
    pub(super) fn split_all(&self, next: &Level) {
        const AT_ONCE: usize = 1024;
        while self.claimed.load(Ordering::Relaxed) < self.buckets() as u64 {
            self.split_some(AT_ONCE, next);
        }
        if !self.split_some(0, next) {
            // Some thread has yet to split what it has claimed. It need not be waited for.
            (0..self.buckets()).for_each(|bucket| self.split_bucket(bucket, next));
        }
    }
}

impl OneTable for Level {
    fn table(&self) -> &dyn AnyTable {
        &**self
    }
}

impl Source for Level {
    fn bring(&self, bucket: usize) {
        // Before the next table is held: a thread that has two already would need a third place (`sync/readers.rs`).
        if self.is_marked(bucket / 2) {
            return;
        }
        if let Some(next) = self.next.hold(&self.registry) {
            self.split_bucket(bucket / 2, &next);
        }
    }
}
