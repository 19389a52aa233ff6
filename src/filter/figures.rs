//! The statistics as a list, for metrics systems, and the differences to earlier ones.

use crate::filter::stats::{ExpiryStats, LimiterStats, RecentStats, Stats};

/// One figure of a filter, as a metrics system takes it. [`Stats::figures`] lists them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// The name, such as `cuckoo_filter_len`. The name of a counter ends in `_total`.
    pub name: &'static str,
    /// What the figure says, in a sentence.
    pub help: &'static str,
    /// `bytes`, `ticks`, `ratio` (usually from 0 to 1), or empty for a number of things.
    pub unit: &'static str,
    /// The kind of the figure, and its value.
    pub value: FigureValue,
}

/// The value of a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureValue {
    /// A count of events, which only goes up.
    Counter(u64),
    /// A size, rate or maximum at the time of the call.
    Gauge(f64),
}

impl Figure {
    const fn gauge(name: &'static str, unit: &'static str, value: f64, help: &'static str) -> Self {
        Self { name, help, unit, value: FigureValue::Gauge(value) }
    }

    const fn counter(name: &'static str, value: u64, help: &'static str) -> Self {
        Self { name, help, unit: "", value: FigureValue::Counter(value) }
    }
}

impl Stats {
    /// Lists the figures of the table below, for any metrics system, with labels of your own.
    ///
    /// | name | kind, unit | field |
    /// |---|---|---|
    /// | `cuckoo_filter_len` | gauge | [`len`](Self::len) |
    /// | `cuckoo_filter_capacity` | gauge | [`capacity`](Self::capacity) |
    /// | `cuckoo_filter_slots` | gauge | [`slots`](Self::slots) |
    /// | `cuckoo_filter_load_factor` | gauge, ratio | [`load_factor`](Self::load_factor) |
    /// | `cuckoo_filter_memory_bytes` | gauge, bytes | [`memory_usage`](Self::memory_usage) |
    /// | `cuckoo_filter_false_positive_rate_expected` | gauge, ratio | [`false_positive_rate`](Self::false_positive_rate) |
    /// | `cuckoo_filter_false_positive_rate_max` | gauge, ratio | [`max_false_positive_rate`](Self::max_false_positive_rate) |
    /// | `cuckoo_filter_longest_path` | gauge | [`longest_path`](Self::longest_path) |
    /// | `cuckoo_filter_relocations_total` | counter | [`relocations`](Self::relocations) |
    /// | `cuckoo_filter_inserts_failed_total` | counter | [`inserts_failed`](Self::inserts_failed) |
    /// | `cuckoo_filter_removals_not_found_total` | counter | [`removals_not_found`](Self::removals_not_found) |
    /// | `cuckoo_filter_lookup_retries_total` | counter | [`lookup_retries`](Self::lookup_retries) |
    /// | `cuckoo_filter_lock_waits_total` | counter | [`lock_waits`](Self::lock_waits) |
    /// | `cuckoo_filter_negatives_recorded_total` | counter | [`negatives_recorded`](Self::negatives_recorded) |
    /// | `cuckoo_filter_false_positives_recorded_total` | counter | [`false_positives_recorded`](Self::false_positives_recorded) |
    /// | *and of an `ExpiringCuckooFilter`:* | | |
    /// | `cuckoo_filter_clock_steps_back_total` | counter | [`clock_steps_back`](ExpiryStats::clock_steps_back) |
    /// | `cuckoo_filter_clock_jumps_total` | counter | [`clock_jumps`](ExpiryStats::clock_jumps) |
    /// | `cuckoo_filter_expired_total` | counter | [`expired`](ExpiryStats::expired) |
    /// | `cuckoo_filter_evicted_total` | counter | [`evicted`](ExpiryStats::evicted) |
    /// | `cuckoo_filter_evicted_early_by_ticks` | gauge, ticks | [`evicted_early_by`](ExpiryStats::evicted_early_by) |
    /// | `cuckoo_filter_sweeps_total` | counter | [`sweeps`](ExpiryStats::sweeps) |
    /// | *and of a `CuckooRateLimiter`, with the total of evicted entries as above:* | | |
    /// | `cuckoo_filter_requests_allowed_total` | counter | [`allowed`](LimiterStats::allowed) |
    /// | `cuckoo_filter_requests_rejected_total` | counter | [`rejected`](LimiterStats::rejected) |
    /// | `cuckoo_filter_evicted_debt_ratio` | gauge, ratio | [`evicted_debt`](LimiterStats::evicted_debt) |
    /// | *and of a `RecentCuckooFilter`, with the totals of expired and evicted entries as above:* | | |
    /// | `cuckoo_filter_evicted_early_by_ratio` | gauge, ratio | [`evicted_early_by`](RecentStats::evicted_early_by) |
    ///
    /// The observed false-positive rate is `false_positives_recorded / (false_positives_recorded + negatives_recorded)` over
    /// the time that you choose.
    ///
    /// A counter starts at 0 in a filter that replaces another. If your metrics system takes increments, or does not
    /// expect counters to go down, give it the figures of [`since`](Self::since).
    ///
    /// This function writes a page for Prometheus, which does expect that. (Prometheus requires all samples of a name
    /// together: with several filters, collect those of each name first.)
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, FigureValue, Stats};
    ///
    /// fn page(filter: &str, stats: &Stats) -> String {
    ///     let figure = |figure: concurrent_cuckoo_filter::Figure| {
    ///         let (kind, value) = match figure.value {
    ///             FigureValue::Counter(count) => ("counter", count.to_string()),
    ///             FigureValue::Gauge(value) => ("gauge", value.to_string()),
    ///         };
    ///         let (name, help) = (figure.name, figure.help);
    ///         format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{filter=\"{filter}\"}} {value}\n")
    ///     };
    ///     stats.figures().map(figure).collect()
    /// }
    ///
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// filter.insert("a")?;
    /// let page = page("shard-7", &filter.stats());
    /// assert!(page.contains("\n# TYPE cuckoo_filter_capacity gauge\ncuckoo_filter_capacity{filter=\"shard-7\"} 1"));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    pub fn figures(&self) -> impl Iterator<Item = Figure> + use<> {
        let expected = "Expected share of true answers among lookups of absent keys, at the present load.";
        let max = "Expected share of true answers among lookups of absent keys, with as many keys as the capacity.";
        let path = "Most relocations that one insert made in a row.";
        let gauge = Figure::gauge;
        let gauges = [
            gauge("cuckoo_filter_len", "", self.len as f64, "Keys in the filter."),
            gauge("cuckoo_filter_capacity", "", self.capacity as f64, "Distinct keys that fit."),
            gauge("cuckoo_filter_slots", "", self.slots as f64, "Slots for fingerprints."),
            gauge("cuckoo_filter_load_factor", "ratio", self.load_factor, "Share of the slots that is taken."),
            gauge("cuckoo_filter_memory_bytes", "bytes", self.memory_usage as f64, "Memory that the filter uses."),
            gauge("cuckoo_filter_false_positive_rate_expected", "ratio", self.false_positive_rate, expected),
            gauge("cuckoo_filter_false_positive_rate_max", "ratio", self.max_false_positive_rate, max),
            gauge("cuckoo_filter_longest_path", "", self.longest_path as f64, path),
        ];
        let of_expiry = self.expiry.as_ref().map(|expiry| {
            let early_by = expiry.evicted_early_by as f64;
            let help = "Most ticks by which entries were evicted before their expiry.";
            expiry.counters().chain([Figure::gauge("cuckoo_filter_evicted_early_by_ticks", "ticks", early_by, help)])
        });
        let of_recent = self.recent.as_ref().map(|recent| {
            let help = "Largest share of the window by which keys were evicted too early.";
            let name = "cuckoo_filter_evicted_early_by_ratio";
            recent.counters().chain([Figure::gauge(name, "ratio", recent.evicted_early_by, help)])
        });
        let of_limiter = self.limiter.as_ref().map(|limiter| {
            let help = "Largest debt that was forgiven, as a share of that of a whole burst.";
            limiter.counters().chain([Figure::gauge(
                "cuckoo_filter_evicted_debt_ratio",
                "ratio",
                limiter.evicted_debt,
                help,
            )])
        });
        let of_clock = of_expiry.into_iter().flatten().chain(of_recent.into_iter().flatten());
        let of_clock = of_clock.chain(of_limiter.into_iter().flatten());
        gauges.into_iter().chain(self.counters()).chain(of_clock)
    }

    /// Returns these statistics, with the counts of events since earlier statistics of the same filter. All other
    /// figures are unchanged. [`longest_path`](Self::longest_path) and
    /// [`evicted_early_by`](ExpiryStats::evicted_early_by) are maxima, and unchanged too.
    ///
    /// If the earlier ones are of another filter, the counts are those since this filter was made. So a counter that
    /// adds up what `since` returns survives the replacement of a filter. (Each filter that is built or loaded counts
    /// as another one.) Events after the last `stats` of a filter are lost: call it once more when you replace the
    /// filter.
    ///
    /// If an earlier count is greater, because it is in fact the later one, the result is 0.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Stats};
    ///
    /// let (mut last, mut negatives) = (Stats::default(), 0); // a counter of a metrics system
    /// let mut record = |stats: Stats| {
    ///     negatives += stats.since(&last).negatives_recorded;
    ///     last = stats;
    ///     negatives
    /// };
    /// let filter = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    /// filter.record_negatives(5);
    /// assert_eq!((record(filter.stats()), record(filter.stats())), (5, 5));
    ///
    /// let filter = ConcurrentCuckooFilter::<u64>::with_capacity(2000); // takes the place of the other
    /// filter.record_negatives(1);
    /// assert_eq!(record(filter.stats()), 6);
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        if self.is_of_same_filter(earlier) {
            since.subtract(earlier);
            if let (Some(since), Some(earlier)) = (&mut since.expiry, &earlier.expiry) {
                since.subtract(earlier);
            }
            if let (Some(since), Some(earlier)) = (&mut since.recent, &earlier.recent) {
                since.expired = since.expired.saturating_sub(earlier.expired);
                since.evicted = since.evicted.saturating_sub(earlier.evicted);
            }
            if let (Some(since), Some(earlier)) = (&mut since.limiter, &earlier.limiter) {
                since.allowed = since.allowed.saturating_sub(earlier.allowed);
                since.rejected = since.rejected.saturating_sub(earlier.rejected);
                since.evicted = since.evicted.saturating_sub(earlier.evicted);
            }
        }
        since
    }
}

impl Stats {
    /// The counts of events, each as a figure that has the name of its field.
    fn counters(&self) -> impl Iterator<Item = Figure> + use<> {
        [
            Figure::counter("cuckoo_filter_relocations_total", self.relocations, "Fingerprints moved to make room."),
            Figure::counter(
                "cuckoo_filter_inserts_failed_total",
                self.inserts_failed,
                "Inserts that failed for lack of room.",
            ),
            Figure::counter(
                "cuckoo_filter_removals_not_found_total",
                self.removals_not_found,
                "Removals that found nothing.",
            ),
            Figure::counter(
                "cuckoo_filter_lookup_retries_total",
                self.lookup_retries,
                "Retries of lookups because another thread had just moved or removed something.",
            ),
            Figure::counter(
                "cuckoo_filter_lock_waits_total",
                self.lock_waits,
                "Locks of stripes that writers found taken.",
            ),
            Figure::counter(
                "cuckoo_filter_negatives_recorded_total",
                self.negatives_recorded,
                "Lookups answered false, as the caller recorded them.",
            ),
            Figure::counter(
                "cuckoo_filter_false_positives_recorded_total",
                self.false_positives_recorded,
                "Positive answers that were wrong, as the caller recorded them.",
            ),
        ]
        .into_iter()
    }

    /// Subtracts the earlier counts of events.
    fn subtract(&mut self, earlier: &Self) {
        let subtract = |count: &mut u64, earlier: u64| *count = count.saturating_sub(earlier);
        subtract(&mut self.relocations, earlier.relocations);
        subtract(&mut self.inserts_failed, earlier.inserts_failed);
        subtract(&mut self.removals_not_found, earlier.removals_not_found);
        subtract(&mut self.lookup_retries, earlier.lookup_retries);
        subtract(&mut self.lock_waits, earlier.lock_waits);
        subtract(&mut self.negatives_recorded, earlier.negatives_recorded);
        subtract(&mut self.false_positives_recorded, earlier.false_positives_recorded);
    }
}

fn expired(count: u64) -> Figure {
    Figure::counter("cuckoo_filter_expired_total", count, "Expired entries that were removed.")
}

fn evicted(count: u64) -> Figure {
    Figure::counter("cuckoo_filter_evicted_total", count, "Entries dropped before their expiry, to make room.")
}

impl RecentStats {
    /// The counts of events, each as a figure that has the name of its field.
    fn counters(&self) -> impl Iterator<Item = Figure> + use<> {
        [expired(self.expired), evicted(self.evicted)].into_iter()
    }
}

impl LimiterStats {
    /// The counts of events, each as a figure that has the name of its field.
    fn counters(&self) -> impl Iterator<Item = Figure> + use<> {
        let (allowed, rejected) = (self.allowed, self.rejected);
        [
            Figure::counter("cuckoo_filter_requests_allowed_total", allowed, "Requests that were allowed."),
            Figure::counter("cuckoo_filter_requests_rejected_total", rejected, "Requests that were rejected."),
            evicted(self.evicted),
        ]
        .into_iter()
    }
}

impl ExpiryStats {
    /// The counts of events, each as a figure that has the name of its field.
    fn counters(&self) -> impl Iterator<Item = Figure> + use<> {
        [
            Figure::counter(
                "cuckoo_filter_clock_steps_back_total",
                self.clock_steps_back,
                "Ticks that were below an earlier one.",
            ),
            Figure::counter(
                "cuckoo_filter_clock_jumps_total",
                self.clock_jumps,
                "Ticks with which all entries expired at once.",
            ),
            expired(self.expired),
            evicted(self.evicted),
            Figure::counter(
                "cuckoo_filter_sweeps_total",
                self.sweeps,
                "Passes over the table that removed expired entries.",
            ),
        ]
        .into_iter()
    }

    /// Subtracts the earlier counts of events.
    fn subtract(&mut self, earlier: &Self) {
        let subtract = |count: &mut u64, earlier: u64| *count = count.saturating_sub(earlier);
        subtract(&mut self.clock_steps_back, earlier.clock_steps_back);
        subtract(&mut self.clock_jumps, earlier.clock_jumps);
        subtract(&mut self.expired, earlier.expired);
        subtract(&mut self.evicted, earlier.evicted);
        subtract(&mut self.sweeps, earlier.sweeps);
    }
}
