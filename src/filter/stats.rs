//! The statistics of a filter: all its figures at once, for logs, dashboards and alarms.

use crate::sync::{Ordering, Tally};
use crate::table::counters::Counts;
use crate::table::expiring::clock::Clock;
use crate::table::face::traits::AnyTable;

/// The figures of a filter, as they were when [`stats`](crate::ConcurrentCuckooFilter::stats) was called.
///
/// The counts of events begin with 0 when the filter is made and never go down. Neither removals nor `clear` change
/// them. Each is a sum over the threads. It is exact for everything that happens before the call; what overlaps the
/// call may or may not be counted. The fields are read one after the other, so fields that change meanwhile are not
/// all of the same moment. With the feature `serde`, the figures can be serialized.
///
/// `Stats::default()` has zeros only. Its fields can be set, for tests of your own dashboards and alarms.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
/// filter.insert("a")?;
/// filter.record_negatives(990); // this many lookups were answered `false`,
/// filter.record_false_positives(1); // and one was answered `true`, but then the database had nothing
///
/// let stats = filter.stats();
/// assert_eq!((stats.len, stats.inserts_refused), (1, 0));
/// assert_eq!(stats.observed_false_positive_rate(), Some(1.0 / 991.0));
///
/// let mut full = concurrent_cuckoo_filter::Stats::default();
/// (full.len, full.capacity, full.inserts_refused) = (1000, 1000, 7);
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// How many tables the filter consists of: 1, for each of the types.
    pub tables: usize,
    /// How many keys are in the filter. A key that was inserted several times counts as often.
    pub len: usize,
    /// How many keys the filter is made for, in all its live tables: what the filter's `capacity()` returns.
    pub capacity: usize,
    /// How many slots for fingerprints all tables have.
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
    /// How many relocations inserts have made: moves of a fingerprint to its alternate bucket, to make room.
    pub relocations: u64,
    /// The most relocations that one insert made in a row, 0 if there was none yet. Two or three are usual near
    /// capacity. If other threads cut a planned path short, it counts as far as it came.
    pub longest_path: u64,
    /// How many inserts were refused with an [`InsertError`](crate::InsertError). Of a batch, only the key that was
    /// refused counts.
    pub inserts_refused: u64,
    /// How often a lookup had to look again because another thread had just moved or removed something in the same
    /// stripe, had added something there (in a maplet), or had moved the clock (if entries expire). This counts each
    /// repeated look of `contains`, `values`, batches and `insert_if_absent`. If one key of a batch was disturbed, up
    /// to 31 others beside it are looked up again too.
    pub lookup_retries: u64,
    /// How often a writer found the lock of a stripe taken, and waited: the contention of `remove`,
    /// `insert_if_absent`, `count`, `clear` and inserts that relocate.
    pub lock_waits: u64,
    /// How often `advance_to` of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) got a tick below the greatest
    /// one before; 0 for others.
    /// If many threads call `advance_to`, it is usual that this grows now and then. A thread whose clock is always a
    /// little behind adds one with each call. If the number grows while [`Advance`](crate::Advance) never says
    /// `Forward`, the clock is behind, and nothing expires.
    pub clock_steps_back: u64,
    /// How often `advance_to` got a tick so far ahead that every entry of an `ExpiringCuckooFilter` expired at once; 0
    /// for others. A long pause looks like
    /// this, and so does a clock that is wrong.
    pub clock_jumps: u64,
    /// How many expired entries were taken out of an `ExpiringCuckooFilter`; 0 for others.
    pub expired: u64,
    /// How many entries an `ExpiringCuckooFilter` has dropped before their end, to make room
    /// ([`WhenFull::ForgetOldest`](crate::WhenFull::ForgetOldest)); 0 for others. An entry counts when it is taken out.
    /// If its end comes before that, it counts as `expired` instead.
    pub forgotten: u64,
    /// By how many ticks entries of an `ExpiringCuckooFilter` have ended too early, at most; 0 if none has. A filter of
    /// the right size has 0 here.
    pub forgotten_early_by: u64,
    /// How often all expired entries of the whole table were taken out of an `ExpiringCuckooFilter`; 0 for others.
    /// Usually this happens once for each tick. It happens less often if the filter was built for shorter lifetimes
    /// than the bits of an end allow.
    pub sweeps: u64,
    /// The earliest tick at which an entry expired that may still be in the table, in an `ExpiringCuckooFilter`.
    /// `None` if no such entry is left, and for other types. It is usually near the present tick.
    pub oldest_unswept: Option<u64>,
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
    /// The caller corrects two figures where they need it: refusals of a table that are not refusals of the filter,
    /// and a capacity that is not a sum.
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
            slots += table.slots();
            counts = counts.merge(table.counters().counts());
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
            clock_steps_back: 0,
            clock_jumps: 0,
            expired: 0,
            forgotten: 0,
            forgotten_early_by: 0,
            sweeps: 0,
            oldest_unswept: None,
            negatives_recorded: counts.negatives_recorded,
            false_positives_recorded: counts.false_positives_recorded,
        }
    }

    /// The figures with those of a clock.
    pub(crate) fn with_clock(self, clock: &Clock) -> Self {
        // Relaxed: they order nothing.
        let count = |tally: &Tally| tally.load(Ordering::Relaxed);
        Self {
            clock_steps_back: count(&clock.tallies.steps_back),
            clock_jumps: count(&clock.tallies.jumps),
            expired: count(&clock.tallies.expired),
            forgotten: count(&clock.tallies.forgotten),
            forgotten_early_by: count(&clock.tallies.most_ahead),
            sweeps: count(&clock.tallies.sweeps),
            oldest_unswept: clock.oldest_unswept(),
            ..self
        }
    }

    /// Returns the observed false-positive rate: the recorded false positives, divided by the sum of the recorded
    /// false positives and the recorded negatives. Returns `None` before anything was recorded.
    ///
    /// It is the rate of the keys that were looked up. Compare it with
    /// [`false_positive_rate`](Self::false_positive_rate), the rate to expect for any keys. After `n` false
    /// positives, the relative difference between the two is usually at most `2/√n`: 20 % for 100 false positives. If
    /// it stays well above, either the same few absent keys are looked up all the time, or someone collects false
    /// positives (see the page [`security`](crate::guide::security)).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// assert_eq!(filter.stats().observed_false_positive_rate(), None);
    /// filter.record_negatives(999);
    /// filter.record_false_positives(1);
    /// assert_eq!(filter.stats().observed_false_positive_rate(), Some(0.001));
    /// ```
    #[must_use]
    pub fn observed_false_positive_rate(&self) -> Option<f64> {
        let false_positives = self.false_positives_recorded as f64;
        let absent = false_positives + self.negatives_recorded as f64;
        (absent > 0.0).then(|| false_positives / absent)
    }

    /// Publishes the figures of the table below to the recorder of the [`metrics`](https://docs.rs/metrics) facade.
    /// Each has the label `filter` with this name, so several filters can be told apart.
    ///
    /// Call it every few seconds, or when the figures are asked for. Between two calls, the recorder has the figures
    /// of the last one. Nothing is published by itself. Cost: two look-ups in the recorder for each figure, which may
    /// lock and allocate. The filter itself is not touched.
    ///
    /// | name | kind | field |
    /// |---|---|---|
    /// | `cuckoo_filter_tables` | gauge | [`tables`](Self::tables) |
    /// | `cuckoo_filter_len` | gauge | [`len`](Self::len) |
    /// | `cuckoo_filter_capacity` | gauge | [`capacity`](Self::capacity) |
    /// | `cuckoo_filter_slots` | gauge | [`slots`](Self::slots) |
    /// | `cuckoo_filter_load_factor` | gauge | [`load_factor`](Self::load_factor) |
    /// | `cuckoo_filter_memory_bytes` | gauge | [`memory_usage`](Self::memory_usage) |
    /// | `cuckoo_filter_false_positive_rate_expected` | gauge | [`false_positive_rate`](Self::false_positive_rate) |
    /// | `cuckoo_filter_false_positive_rate_max` | gauge | [`max_false_positive_rate`](Self::max_false_positive_rate) |
    /// | `cuckoo_filter_false_positive_rate_observed` | gauge | [`observed_false_positive_rate`](Self::observed_false_positive_rate), once there is one |
    /// | `cuckoo_filter_longest_path` | gauge | [`longest_path`](Self::longest_path) |
    /// | `cuckoo_filter_relocations_total` | counter | [`relocations`](Self::relocations) |
    /// | `cuckoo_filter_inserts_refused_total` | counter | [`inserts_refused`](Self::inserts_refused) |
    /// | `cuckoo_filter_lookup_retries_total` | counter | [`lookup_retries`](Self::lookup_retries) |
    /// | `cuckoo_filter_lock_waits_total` | counter | [`lock_waits`](Self::lock_waits) |
    /// | `cuckoo_filter_clock_steps_back_total` | counter | [`clock_steps_back`](Self::clock_steps_back) |
    /// | `cuckoo_filter_clock_jumps_total` | counter | [`clock_jumps`](Self::clock_jumps) |
    /// | `cuckoo_filter_expired_total` | counter | [`expired`](Self::expired) |
    /// | `cuckoo_filter_forgotten_total` | counter | [`forgotten`](Self::forgotten) |
    /// | `cuckoo_filter_forgotten_early_by_ticks` | gauge | [`forgotten_early_by`](Self::forgotten_early_by) |
    /// | `cuckoo_filter_sweeps_total` | counter | [`sweeps`](Self::sweeps) |
    /// | `cuckoo_filter_negatives_recorded_total` | counter | [`negatives_recorded`](Self::negatives_recorded) |
    /// | `cuckoo_filter_false_positives_recorded_total` | counter | [`false_positives_recorded`](Self::false_positives_recorded) |
    ///
    /// Needs the feature `metrics`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let revoked = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// revoked.stats().publish("revoked");
    /// ```
    #[cfg(feature = "metrics")]
    pub fn publish(&self, filter: &'static str) {
        // Each call describes the names again, because the recorder may be another one than the last time.
        let gauge = |name: &'static str, meaning: &'static str, value: f64| {
            metrics::describe_gauge!(name, meaning);
            metrics::gauge!(name, "filter" => filter).set(value);
        };
        let counter = |name: &'static str, meaning: &'static str, value: u64| {
            metrics::describe_counter!(name, meaning);
            metrics::counter!(name, "filter" => filter).absolute(value);
        };
        gauge("cuckoo_filter_tables", "Tables that the filter consists of.", self.tables as f64);
        gauge("cuckoo_filter_len", "Keys in the filter.", self.len as f64);
        gauge("cuckoo_filter_capacity", "Keys that the filter is made for.", self.capacity as f64);
        gauge("cuckoo_filter_slots", "Slots for fingerprints.", self.slots as f64);
        gauge("cuckoo_filter_load_factor", "Share of the slots that is taken, 0 to 1.", self.load_factor);
        gauge("cuckoo_filter_memory_bytes", "Memory that the filter takes up, in bytes.", self.memory_usage as f64);
        gauge(
            "cuckoo_filter_false_positive_rate_expected",
            "Share of lookups of absent keys that are to be expected to be answered true, at the present load, 0 to 1.",
            self.false_positive_rate,
        );
        gauge(
            "cuckoo_filter_false_positive_rate_max",
            "The same with every slot taken, 0 to 1.",
            self.max_false_positive_rate,
        );
        if let Some(observed) = self.observed_false_positive_rate() {
            gauge(
                "cuckoo_filter_false_positive_rate_observed",
                "Recorded false positives by these and the recorded negatives, 0 to 1.",
                observed,
            );
        }
        gauge(
            "cuckoo_filter_longest_path",
            "Most relocations that one insert made in a row.",
            self.longest_path as f64,
        );
        counter("cuckoo_filter_relocations_total", "Fingerprints moved to make room.", self.relocations);
        counter("cuckoo_filter_inserts_refused_total", "Inserts refused for want of room.", self.inserts_refused);
        counter(
            "cuckoo_filter_lookup_retries_total",
            "Looks repeated because another thread had just moved or removed something.",
            self.lookup_retries,
        );
        counter("cuckoo_filter_lock_waits_total", "Locks of stripes that writers found taken.", self.lock_waits);
        counter(
            "cuckoo_filter_clock_steps_back_total",
            "Ticks of an expiring filter that were below an earlier one.",
            self.clock_steps_back,
        );
        counter(
            "cuckoo_filter_clock_jumps_total",
            "Ticks of an expiring filter with which everything expired.",
            self.clock_jumps,
        );
        counter("cuckoo_filter_expired_total", "Expired entries that were taken out.", self.expired);
        counter("cuckoo_filter_forgotten_total", "Entries dropped before their end, to make room.", self.forgotten);
        gauge(
            "cuckoo_filter_forgotten_early_by_ticks",
            "Most ticks by which entries ended too early.",
            self.forgotten_early_by as f64,
        );
        counter("cuckoo_filter_sweeps_total", "Passes over the table that took expired entries out.", self.sweeps);
        counter(
            "cuckoo_filter_negatives_recorded_total",
            "Lookups answered false, as the caller recorded them.",
            self.negatives_recorded,
        );
        counter(
            "cuckoo_filter_false_positives_recorded_total",
            "Positive answers that were wrong, as the caller recorded them.",
            self.false_positives_recorded,
        );
    }
}
