//! The statistics of a filter: all its figures at once, for logs, dashboards and alarms.

use crate::plan::window::Division;
use crate::sync::{Ordering, Tally};
use crate::table::core::Core;
use crate::table::counters::Counts;
use crate::table::expiring::clock::Clock;
use crate::word::quota::Quota;
use crate::word::tick::Tick;

/// The figures of a filter, as they were when [`stats`](crate::ConcurrentCuckooFilter::stats) was called.
///
/// The counts of events begin at 0 when the filter is made and never go down. Neither removals nor `clear` change them.
/// Each is a sum over the threads: exact for everything that happens before the call, while what overlaps the call may
/// or may not be counted. The fields are read one after the other, so together they are not a point-in-time view. With
/// the feature `serde`, the figures can be serialized. [`figures`](Self::figures) lists them for any metrics system,
/// and [`since`](Self::since) returns the differences to earlier ones.
///
/// `Stats::default()` has zeros only. Its fields can be set, for tests of dashboards and alarms.
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
/// assert_eq!((stats.len, stats.inserts_failed), (1, 0));
/// assert_eq!(stats.observed_false_positive_rate(), Some(1.0 / 991.0));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// How many keys the filter holds. A key that was inserted several times counts several times.
    pub len: usize,
    /// How many distinct keys fit: what the filter's `capacity()` returns.
    pub capacity: usize,
    /// How many slots for fingerprints the filter has.
    pub slots: usize,
    /// `len` divided by `slots`: from 0 to 1 while no thread changes the filter. While others do, `len` may count an
    /// insert and not yet a removal that came before it, so the result can exceed 1. From about 0.9 on, inserts get
    /// slower.
    pub load_factor: f64,
    /// The memory that the filter uses, in bytes. It leaves out two things: the decode tables of the semi-sorted
    /// layouts, of 4 to 256 KiB each, which all filters and maplets of a layout share, and the name of a schema that
    /// the caller has given, up to 255 bytes.
    pub memory_usage: usize,
    /// The expected false-positive rate at the present load: the share of lookups of absent keys that are answered
    /// `true`. It is about `2·b·load/2ᶠ` with `b` slots per bucket and fingerprints of `f` bits (section 5.1 of
    /// the paper).
    pub false_positive_rate: f64,
    /// The expected false-positive rate with as many keys as the capacity.
    pub max_false_positive_rate: f64,
    /// How many relocations inserts have made: moves of a fingerprint to its alternate bucket, to make room.
    pub relocations: u64,
    /// The most relocations that one insert made in a row, 0 if there was none yet. Two or three are usual near
    /// capacity. If other threads cut a planned path short, it counts as far as it came.
    pub longest_path: u64,
    /// How many inserts failed with an [`InsertError`](crate::InsertError). Of a batch, only the key that failed
    /// counts.
    pub inserts_failed: u64,
    /// How many removals of any form found nothing. In an `ExpiringCuckooFilter` these include removals of entries that
    /// had expired.
    ///
    /// If this grows, some key is removed twice, or was never inserted. A share of such removals, about
    /// [`false_positive_rate`](Self::false_positive_rate), is not counted here: each of those removed a present
    /// look-alike.
    pub removals_not_found: u64,
    /// How often a lookup had to retry because another thread had just moved or removed something in the same stripe,
    /// had added something there (in a maplet), or had moved the clock (if entries expire). If one key of a batch
    /// retries, up to 31 keys next to it do too.
    pub lookup_retries: u64,
    /// How often a writer found the lock of a stripe taken, and waited: the contention of `remove`,
    /// `insert_if_absent`, `count`, `clear` and inserts that relocate.
    pub lock_waits: u64,
    /// How many negative answers the caller has recorded, with
    /// [`record_negatives`](crate::ConcurrentCuckooFilter::record_negatives).
    pub negatives_recorded: u64,
    /// How many false positives the caller has recorded, with
    /// [`record_false_positives`](crate::ConcurrentCuckooFilter::record_false_positives).
    pub false_positives_recorded: u64,
    /// The figures that only an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) has; `None` for other types.
    pub expiry: Option<ExpiryStats>,
    /// What only a [`RecentCuckooFilter`](crate::RecentCuckooFilter) has; `None` for other types.
    pub recent: Option<RecentStats>,
    /// What only a [`CuckooRateLimiter`](crate::CuckooRateLimiter) has; `None` for other types.
    pub limiter: Option<LimiterStats>,
    #[cfg_attr(feature = "serde", serde(skip))]
    origin: Origin,
}

/// The figures that only an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) has, about its clock and about the
/// *sweep* that removes expired entries. They are the field [`expiry`](Stats::expiry) of its statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExpiryStats {
    /// How often `advance_to` got a tick below the largest one before. If many threads call it, this grows now and
    /// then. If it grows while [`Advance`](crate::Advance) never says `Forward`, the clock is behind, and nothing
    /// expires.
    pub clock_steps_back: u64,
    /// How often `advance_to` got a tick so far ahead that every entry expired at once. A long pause looks like this, and
    /// so does a clock that is wrong.
    pub clock_jumps: u64,
    /// How many expired entries were removed.
    pub expired: u64,
    /// How many entries were evicted, to make room ([`WhenFull::EvictSoonest`](crate::WhenFull::EvictSoonest)). An entry
    /// counts when it is removed. If it expires before that, it counts as `expired` instead.
    pub evicted: u64,
    /// The most ticks by which entries were evicted before their expiry; 0 if none was. A filter of the right size has
    /// 0 here.
    pub evicted_early_by: u64,
    /// How often a sweep of the whole table has removed all expired entries. Usually this happens once for each tick.
    /// It happens less often if the filter was built for shorter lifetimes than the bits of an expiry allow.
    pub sweeps: u64,
    /// The earliest tick at which an entry expired that may still be in the table. `None` if no such entry is left. It is
    /// usually near the present tick.
    pub oldest_unswept: Option<Tick>,
}

/// The figures that only a [`RecentCuckooFilter`](crate::RecentCuckooFilter) has. They are the field
/// [`recent`](Stats::recent) of its statistics.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RecentStats {
    /// How many keys were removed after they had expired.
    pub expired: u64,
    /// How many keys were evicted before they expired, to make room. A key counts when it is removed. If it expires before
    /// that, it counts as `expired` instead.
    pub evicted: u64,
    /// By how much keys were evicted too early, at most: as a share of the [window](crate::Window), from 0 to 1. 0.25 means
    /// that some key may have been held for only three quarters of it, and none for less. In a filter of a time, a key is held
    /// from when its insert began, by the filter's clock. So even a lookup that comes right after the insert may miss the key, if the
    /// thread was preempted in between for as long. The share is noted before the key is gone: a thread that misses a key finds
    /// it here.
    ///
    /// A filter of the last keys has 0 here while [up to 16 threads](crate::RecentBuilder::last) insert, and a filter of a time
    /// as long as no more keys come than [it has room for](crate::RecentBuilder::within).
    pub evicted_early_by: f64,
}

/// The figures that only a [`CuckooRateLimiter`](crate::CuckooRateLimiter) has. They are the field
/// [`limiter`](Stats::limiter) of its statistics.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LimiterStats {
    /// How many checks were allowed, whatever their cost.
    pub allowed: u64,
    /// How many checks were rejected, for whatever [reason](crate::LimitReason). Those that were rejected because the limiter
    /// is full also count as [`inserts_failed`](Stats::inserts_failed).
    pub rejected: u64,
    /// How many keys were evicted, so that their debts were forgiven, to make room for others. A limiter of the right size
    /// has 0 here.
    pub evicted: u64,
    /// The largest debt that was forgiven so: as a share of what a key owes that has used up its burst.
    pub evicted_debt: f64,
}

/// The filter that the figures are of. `==` ignores it.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// The number of the filter, or 0 for figures of none.
    filter: u64,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Stats {
    /// The figures of a filter of this table, which uses this many bytes beside it.
    pub(crate) fn of(core: &impl Core, memory_of_filter: usize) -> Self {
        let (counters, slots) = (core.counters(), core.slots());
        let counts = counters.counts();
        Self {
            len: counts.len,
            capacity: core.capacity(),
            slots,
            load_factor: counts.len as f64 / slots as f64,
            memory_usage: memory_of_filter + core.dimensions().memory_usage,
            false_positive_rate: core.rate_with(counts.len),
            max_false_positive_rate: core.rate_with(core.capacity()),
            relocations: counts.relocations,
            longest_path: counts.longest_path,
            inserts_failed: counts.inserts_failed,
            removals_not_found: counts.removals_not_found,
            lookup_retries: counts.lookup_retries,
            lock_waits: counts.lock_waits,
            negatives_recorded: counts.negatives_recorded,
            false_positives_recorded: counts.false_positives_recorded,
            expiry: None,
            recent: None,
            limiter: None,
            origin: Origin { filter: counters.filter() },
        }
    }

    /// The figures with those of a clock.
    pub(crate) fn with_clock(self, clock: &Clock) -> Self {
        // Relaxed: they order nothing.
        let count = |tally: &Tally| tally.load(Ordering::Relaxed);
        let expiry = ExpiryStats {
            clock_steps_back: count(&clock.tallies.steps_back),
            clock_jumps: count(&clock.tallies.jumps),
            expired: count(&clock.tallies.expired),
            evicted: count(&clock.tallies.evicted),
            evicted_early_by: count(&clock.tallies.most_ahead),
            sweeps: count(&clock.tallies.sweeps),
            oldest_unswept: clock.oldest_unswept().map(Tick::new),
        };
        Self { expiry: Some(expiry), ..self }
    }

    /// The figures with those of a clock that the filter drives, for a window that is divided in this way.
    pub(crate) fn with_window(self, clock: &Clock, division: Division) -> Self {
        // Relaxed: they order nothing.
        let count = |tally: &Tally| tally.load(Ordering::Relaxed);
        let early_by = count(&clock.tallies.most_ahead) as f64 / (division.lifetime - 1) as f64;
        let recent = RecentStats {
            expired: count(&clock.tallies.expired),
            evicted: count(&clock.tallies.evicted),
            evicted_early_by: early_by.min(1.0),
        };
        Self { recent: Some(recent), ..self }
    }

    /// The figures with those of a rate limiter with this clock and limit.
    pub(crate) fn with_limits(self, counts: Counts, clock: &Clock, limits: Quota) -> Self {
        // Relaxed: they order nothing.
        let count = |tally: &Tally| tally.load(Ordering::Relaxed);
        let limiter = LimiterStats {
            allowed: counts.requests_allowed,
            rejected: counts.requests_rejected,
            evicted: count(&clock.tallies.evicted),
            evicted_debt: count(&clock.tallies.most_ahead) as f64 / limits.most() as f64,
        };
        Self { limiter: Some(limiter), ..self }
    }

    pub(in crate::filter) fn is_of_same_filter(&self, other: &Self) -> bool {
        self.origin.filter == other.origin.filter
    }

    /// Returns the observed false-positive rate: the recorded false positives, divided by the sum of the recorded
    /// false positives and the recorded negatives. Returns `None` before anything was recorded.
    ///
    /// It is the rate of the keys that were looked up. Compare it with
    /// [`false_positive_rate`](Self::false_positive_rate), the rate to expect for any keys. After `n` false
    /// positives, the relative difference between the two is usually at most `2/√n`: 20% for 100 false positives. If
    /// it stays well above, either the same few absent keys are looked up again and again, or someone collects false
    /// positives (see the page [`security`](crate::guide::security)).
    #[must_use]
    pub fn observed_false_positive_rate(&self) -> Option<f64> {
        let false_positives = self.false_positives_recorded as f64;
        let absent = false_positives + self.negatives_recorded as f64;
        (absent > 0.0).then(|| false_positives / absent)
    }
}
