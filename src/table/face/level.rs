//! PURE: what a filter that grows asks of its tables beside `AnyTable`. Its tables differ in the number of their
//! buckets and in their layouts, and copies are moved from one to the other (`growth/mod.rs`).

use crate::error::insert::InsertError;
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::face::dyn_table::Shaped;
use crate::table::face::traits::AnyTable;
use crate::table::relocate::Purpose;
use crate::table::stripe::Guard;
use crate::table::table::TakeFaults;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::Doubled;
use crate::word::layout::{Entry, Fingerprint, Layout};

/// The most slots of a bucket in a table that doubles.
const MOST_SLOTS: usize = 7;

/// The fingerprints for one bucket.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fingerprints {
    list: [Fingerprint; MOST_SLOTS],
    len: usize,
}

/// How an attempt to add a copy ended, if it need not be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Yes,
    /// A copy is there.
    No,
    /// The copies may be in another table.
    Moved,
}

/// A table at one level of a filter that grows. Keys are passed as hashes, which `geometry::doubling` has made, and
/// which name the same classes at all levels.
pub(crate) trait LevelTable: AnyTable {
    fn count(&self, hash: u64) -> usize;

    fn remove(&self, hash: u64) -> bool;

    /// Calls `work` with the locks of all stripes.
    fn under_all_locks(&self, work: &mut dyn FnMut());

    /// Whether either of these two, as buckets of this table, holds a copy of the class.
    fn either_holds(&self, pair: [Bucket; 2], hash: u64) -> bool;

    /// How many copies of the class there are. The caller holds its lock.
    fn copies(&self, hash: u64) -> usize;

    /// Takes a copy of the class out. The caller holds its lock.
    fn take(&self, guard: &Guard<'_>, hash: u64) -> bool;

    /// Adds a copy if that takes one step.
    fn add_in_one_step(&self, hash: u64) -> bool;

    /// Adds a copy if either bucket has room.
    fn add(&self, hash: u64) -> bool;

    /// Adds a copy unless there is one, or `moved` says that it may be elsewhere. `None` if that takes more than one
    /// step.
    fn add_if_absent(&self, hash: u64, moved: &dyn Fn() -> bool) -> Option<bool>;

    /// Makes this attempt, under the lock if `locks`, until it has an answer. Makes room before each further one. The
    /// attempts count what they add.
    fn until_added(
        &self,
        hash: u64,
        purpose: Purpose,
        locks: bool,
        attempt: &dyn Fn(&Guard<'_>) -> Option<Added>,
    ) -> Result<Added, InsertError>;

    /// Adds a copy, if either bucket has room, that another table has. So it does not count it.
    fn add_moved(&self, hash: u64) -> bool;

    /// Whether the bucket's entries were moved to another table.
    fn is_marked(&self, bucket: usize) -> bool;

    /// Moves the bucket's entries to the two buckets of `next` that it becomes at the next level. One thread at a time
    /// does this for a bucket.
    fn split(&self, bucket: usize, next: &dyn LevelTable);

    /// Stores these fingerprints in a bucket that nobody uses yet.
    fn fill(&self, bucket: usize, fingerprints: &Fingerprints);

    /// A hash of the class of an entry in the bucket, if it has one. If it is empty, marks it.
    fn any_or_mark(&self, bucket: usize) -> Option<u64>;

    /// Whether the bucket holds a copy of the class.
    fn holds(&self, bucket: usize, hash: u64) -> bool;

    /// Takes a copy of the class out of the bucket, which holds one, without counting it: it is in another table too.
    /// The caller holds the lock.
    fn take_moved(&self, guard: &Guard<'_>, bucket: usize, hash: u64);

    /// Makes an empty bucket of one that is marked.
    fn unmark(&self, bucket: usize);

    /// Adds a copy to the first of its two buckets, or to the `second`, which has room.
    #[cfg(ccf_model)]
    fn place(&self, hash: u64, second: bool);

    /// Moves a copy from the first of its two buckets to the second, or `back`.
    #[cfg(ccf_model)]
    fn relocate(&self, hash: u64, back: bool) -> bool;

    /// Calls `each` with a hash of the class of each copy in an image of this table's buckets from `start` on.
    fn each_hash(
        &self,
        start: usize,
        words: &[u64],
        each: &mut dyn FnMut(u64) -> Result<(), InsertError>,
    ) -> Result<(), InsertError>;
}

impl<L: Layout, const SLOTS: u32, const BITS: u32> LevelTable for Shaped<L, Doubled, SLOTS, BITS> {
    fn count(&self, hash: u64) -> usize {
        self.table.count_class(self.table.item(hash))
    }

    fn remove(&self, hash: u64) -> bool {
        self.table.remove(self.table.layout(), hash, 0)
    }

    fn under_all_locks(&self, work: &mut dyn FnMut()) {
        self.table.under_all_locks(Fault::ResizeWithoutLock, work);
    }

    #[inline]
    fn either_holds(&self, [first, second]: [Bucket; 2], hash: u64) -> bool {
        let layout = self.table.layout();
        layout.either_holds(first, second, Doubled::fingerprint(layout, hash))
    }

    fn copies(&self, hash: u64) -> usize {
        self.table.copies(self.table.item(hash))
    }

    fn take(&self, guard: &Guard<'_>, hash: u64) -> bool {
        self.table.take_any(guard, self.table.item(hash), true)
    }

    fn add_in_one_step(&self, hash: u64) -> bool {
        self.table.add_in_one_step(self.table.layout(), hash)
    }

    fn add(&self, hash: u64) -> bool {
        let added = self.add_moved(hash);
        self.table.common.counters.add_len(i64::from(added));
        added
    }

    fn add_moved(&self, hash: u64) -> bool {
        self.table.add_slow(self.table.item(hash))
    }

    fn add_if_absent(&self, hash: u64, moved: &dyn Fn() -> bool) -> Option<bool> {
        if self.table.is_being_saved() {
            return None;
        }
        self.table.add_if_absent(self.table.layout(), hash, moved)
    }

    fn until_added(
        &self,
        hash: u64,
        purpose: Purpose,
        locks: bool,
        attempt: &dyn Fn(&Guard<'_>) -> Option<Added>,
    ) -> Result<Added, InsertError> {
        let lock = locks.then_some(Fault::InsertIfAbsentWithoutLock);
        self.table.until_added(self.table.item(hash), purpose, lock, attempt)
    }

    fn is_marked(&self, bucket: usize) -> bool {
        self.table.load(bucket) == self.table.layout.mark()
    }

    fn split(&self, bucket: usize, next: &dyn LevelTable) {
        let (table, mark) = (&self.table, self.table.layout.mark());
        let mut seen = table.load(bucket);
        while seen != mark {
            let mut halves = [Fingerprints::default(); 2];
            for entry in table.layout.entries(seen) {
                let (half, fingerprint) = table.buckets.split(bucket, table.layout.fingerprint_of(entry));
                let half = &mut halves[half];
                half.list[half.len] = fingerprint;
                half.len += 1;
            }
            let fill = || halves.iter().enumerate().for_each(|(nth, half)| next.fill(2 * bucket + nth, half));
            if !fault::injected(Fault::SplitMarksFirst) {
                fill();
            }
            table.set_aside(bucket, Fault::SplitSetsNothingAside);
            match table.exchange(bucket, seen, mark, Fault::SplitOverwrites) {
                Ok(()) => {
                    if fault::injected(Fault::SplitMarksFirst) {
                        fill();
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    fn fill(&self, bucket: usize, fingerprints: &Fingerprints) {
        let mut entries = fingerprints.list.map(|fingerprint| Entry(fingerprint.0));
        let word = self.table.layout.of_entries(&mut entries[..fingerprints.len]);
        // Relaxed: the mark releases it, and nobody uses what he has read here before he has seen the mark.
        self.table.words[bucket].store(word.0, Ordering::Relaxed);
    }

    fn any_or_mark(&self, bucket: usize) -> Option<u64> {
        let (table, mark) = (&self.table, self.table.layout.mark());
        let mut seen = table.load(bucket);
        loop {
            if seen == mark {
                return None;
            }
            if let Some(entry) = table.layout.entries(seen).next() {
                return Some(table.buckets.hash_of(bucket, table.layout.fingerprint_of(entry)));
            }
            table.set_aside(bucket, Fault::SplitSetsNothingAside);
            match table.exchange(bucket, seen, mark, Fault::SplitOverwrites) {
                Ok(()) => return None,
                Err(now) => seen = now,
            }
        }
    }

    fn holds(&self, bucket: usize, hash: u64) -> bool {
        self.table.layout.holds_entry(self.table.load(bucket), self.table.item(hash).entry)
    }

    fn take_moved(&self, guard: &Guard<'_>, bucket: usize, hash: u64) {
        let (table, entry) = (&self.table, self.table.item(hash).entry);
        table.set_aside(bucket, Fault::RelocateSetsNoSourceAside);
        table.take_entry(guard, bucket, table.load(bucket), entry, TakeFaults::MOVE);
    }

    fn unmark(&self, bucket: usize) {
        let mark = self.table.layout.mark();
        // In as many steps as it takes: an exchange may fail although nothing has changed.
        self.table.change(bucket, mark, Fault::SplitOverwrites, |seen| (seen == mark).then(Bucket::default));
    }

    #[cfg(ccf_model)]
    fn place(&self, hash: u64, second: bool) {
        let item = self.table.item(hash);
        let bucket = if second { item.second } else { item.first };
        assert!(self.table.put(bucket, item.entry), "a model places keys where there is room");
        self.table.common.counters.add_len(1);
    }

    #[cfg(ccf_model)]
    fn relocate(&self, hash: u64, back: bool) -> bool {
        let item = self.table.item(hash);
        let (from, to) = if back { (item.second, item.first) } else { (item.first, item.second) };
        self.table.relocate(crate::plan::path::Hop { entry: item.entry, from, to })
    }

    fn each_hash(
        &self,
        start: usize,
        words: &[u64],
        each: &mut dyn FnMut(u64) -> Result<(), InsertError>,
    ) -> Result<(), InsertError> {
        let table = &self.table;
        (start..).zip(words).try_for_each(|(bucket, &word)| {
            table
                .layout
                .entries(Bucket(word))
                .try_for_each(|entry| each(table.buckets.hash_of(bucket, table.layout.fingerprint_of(entry))))
        })
    }
}
