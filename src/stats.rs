//! What a filter tells of itself: one snapshot of all its figures, for logs, dashboards and alarms.

use crate::any_table::AnyTable;
use crate::counter::Counts;

/// The figures of a filter, as they were when [`stats`](crate::ConcurrentCuckooFilter::stats) was called.
///
/// The counts of events begin with 0 when the filter is made and never go down; neither removals nor `clear` change
/// them. Each is a sum over the threads, exact for all that has ended before the call, or rather that happens before it;
/// what goes on meanwhile may or may not be counted. The fields are read one after the other, so those that change
/// meanwhile are not all of the same moment.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
/// filter.insert("a")?;
/// filter.record_negatives(990); // so many lookups were answered `false`,
/// filter.record_false_positives(1); // and one was answered `true`, but then the database had nothing
///
/// let stats = filter.stats();
/// assert_eq!((stats.len, stats.inserts_refused), (1, 0));
/// assert_eq!(stats.observed_false_positive_rate(), Some(1.0 / 991.0));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// The tables of which the filter consists.
    pub tables: usize,
    /// The keys in the filter, each counted as often as it was inserted.
    pub len: usize,
    /// The keys that the filter is made for.
    pub capacity: usize,
    /// The slots for fingerprints, in all tables.
    pub slots: usize,
    /// `len` divided by `slots`, from 0 to 1. From about 0.9 on, inserts take ever longer.
    pub load_factor: f64,
    /// The memory that the filter takes up, in bytes.
    pub memory_usage: usize,
    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`, from 0 to 1.
    pub false_positive_rate: f64,
    /// The expected false-positive rate with every slot taken.
    pub max_false_positive_rate: f64,
    /// How many fingerprints inserts have moved to their other bucket, to make room.
    pub relocations: u64,
    /// The most such moves that one insert made in a row, 0 if there was none yet. Two or three are usual near capacity;
    /// a path of the full length that was planned and cut short by other threads counts as far as it came.
    pub longest_path: u64,
    /// How many inserts were refused with an [`InsertError`](crate::InsertError); of a batch, the one key that was.
    pub inserts_refused: u64,
    /// How often a lookup had to look again because another thread had just moved or removed something in the same
    /// stripe: those of `contains`, of batches and of `insert_if_absent`, each time they looked again. Where one key of a
    /// batch was disturbed, up to 31 others beside it are looked up again too.
    pub lookup_retries: u64,
    /// How often a writer found the lock of a stripe taken, and waited: the contention of `remove`, `insert_if_absent`,
    /// `count`, `clear` and inserts that relocate.
    pub lock_waits: u64,
    /// How many negative answers the caller has recorded, with
    /// [`record_negatives`](crate::ConcurrentCuckooFilter::record_negatives).
    pub negatives_recorded: u64,
    /// How many false positives the caller has recorded, with
    /// [`record_false_positives`](crate::ConcurrentCuckooFilter::record_false_positives).
    pub false_positives_recorded: u64,
}

impl Stats {
    /// The figures of a filter of these tables: sums over them, and the longest path of all.
    ///
    /// Where a refusal of a table's is none of the filter's, or the capacity is no sum, the caller puts that right.
    pub(crate) fn of<'a>(
        tables: impl IntoIterator<Item = &'a dyn AnyTable>,
        memory_usage: usize,
        false_positive_rate: f64,
        max_false_positive_rate: f64,
    ) -> Self {
        let (mut number, mut capacity, mut slots, mut counts) = (0, 0, 0, Counts::default());
        for table in tables {
            number += 1;
            capacity += table.capacity();
            slots += table.buckets() * table.shape().slots as usize;
            counts = counts.merge(table.counts());
        }
        Self {
            tables: number,
            len: counts.len,
            capacity,
            slots,
            load_factor: counts.len as f64 / slots as f64,
            memory_usage,
            false_positive_rate,
            max_false_positive_rate,
            relocations: counts.relocations,
            longest_path: counts.longest_path,
            inserts_refused: counts.inserts_refused,
            lookup_retries: counts.lookup_retries,
            lock_waits: counts.lock_waits,
            negatives_recorded: counts.negatives_recorded,
            false_positives_recorded: counts.false_positives_recorded,
        }
    }

    /// The false-positive rate that was observed: the false positives that were recorded, divided by these and the
    /// negatives that were. `None` before anything was recorded.
    ///
    /// It is that of the keys that were looked up. Compare it with
    /// [`false_positive_rate`](Self::false_positive_rate), the one to be expected of any keys: after `n` false positives
    /// it is usually within a share of `2/√n` of that. If it stays well above, the same few absent keys are looked up
    /// all the time, or someone collects false positives (see the [hazards](crate#hazards)).
    #[must_use]
    pub fn observed_false_positive_rate(&self) -> Option<f64> {
        let false_positives = self.false_positives_recorded as f64;
        let absent = false_positives + self.negatives_recorded as f64;
        (absent > 0.0).then(|| false_positives / absent)
    }
}
