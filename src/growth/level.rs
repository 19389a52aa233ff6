//! CONCURRENT: a table at one level, and the one that takes its place.

use core::ops::Deref;
use std::sync::{Arc, Weak};

use crate::growth::plan::Plan;
use crate::sync::fault::{self, Fault};
use crate::sync::readers::Registry;
use crate::sync::replaceable::Replaceable;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::table::face::dyn_table::Shaped;
use crate::table::face::level::LevelTable;
use crate::table::face::plan::pages_for;
use crate::table::face::traits::{AnyTable, OneTable};
use crate::table::table::{Common, Source, Table};
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
    serial: u64,
    made_for: usize,
    /// The table that takes this one's place: a larger or a smaller one. Its buckets are being moved there.
    pub(super) next: Replaceable<Level>,
    /// How many buckets have been claimed by those that split them, in order. It may be more than there are.
    claimed: AtomicU64,
    /// How many of those were split by the thread that claimed them.
    split: AtomicU64,
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
    let level = Level {
        table,
        number,
        serial,
        made_for: plan.capacity(number),
        next: Replaceable::new(None),
        claimed: AtomicU64::new(0),
        split: AtomicU64::new(0),
        splitting: core::array::from_fn(|_| Mutex::new(())),
        registry: Arc::clone(registry),
    };
    if cfg!(ccf_model = "loom") {
        // loom assumes that a `SeqCst` load may always read the initial value of an atomic. It treats the value of a
        // `SeqCst` exchange correctly.
        level.clear();
    }
    Some(Arc::new(level))
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
    pub(super) fn number(&self) -> u32 {
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

    /// The table, for a caller that has the only reference.
    #[cfg(feature = "snapshot")]
    pub(super) fn table_mut(&mut self) -> &mut dyn AnyTable {
        match &mut self.table {
            AnyEncoding::Plain(table) => table,
            AnyEncoding::SemiSorted(table) => table,
        }
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
    pub(super) fn split_pair(&self, hash: u64, next: &Level) {
        if !fault::injected(Fault::WriterBringsNothing) {
            self.pair(hash).into_iter().for_each(|bucket| self.split_bucket(bucket, next));
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
                // Release, with the load below: whoever sees all splits counted sees all buckets marked.
                self.split.fetch_add(end - start, Ordering::Release);
            }
        }
        self.split.load(Ordering::Acquire) == count || fault::injected(Fault::SwitchesTooSoon)
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
        if let Some(next) = self.next.hold(&self.registry) {
            self.split_bucket(bucket / 2, &next);
        }
    }
}
