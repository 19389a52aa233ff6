//! The report on standard output: keys, sets and machine, the table, and the result of the checks.

use std::fmt::Write;
use std::thread::available_parallelism;

use crate::measure::{ABSENT, MIX, PRESENT, Round, Row, WORKLOADS};
use crate::sets::{BATCH, Filter, SetKind};

pub(crate) struct Report<'a> {
    pub(crate) keys: &'a str,
    pub(crate) items: usize,
    /// How many keys are absent.
    pub(crate) absent: usize,
    pub(crate) asked_rate: f64,
    /// One like those that were measured.
    pub(crate) filter: Filter,
    pub(crate) rows: &'a [Row],
}

impl Report<'_> {
    pub(crate) fn text(&self) -> String {
        let (layout, capacity) = (self.filter.plan().layout, grouped(self.filter.capacity()));
        let (encoding, slots, bits) = (layout.encoding, layout.slots_per_bucket, layout.fingerprint_bits);
        let mut text = format!(
            "keys       {}\n\
             filter     {encoding:?}, {slots} slots a bucket, {bits}-bit fingerprints; capacity {capacity}\n\
             HashSet    RwLock<HashSet<Box<[u8]>>> with the filter's hasher\n\
             machine    hardware threads: {}\n\n\
             million operations per second (the mix is 90 % lookups, 5 % inserts, 5 % removes)\n\n",
            self.keys,
            available_parallelism().map_or(1, usize::from)
        );
        self.table(&mut text).and_then(|()| self.checks(&mut text)).expect("text");
        text
    }

    fn table(&self, text: &mut String) -> std::fmt::Result {
        let [insert, present, absent, mix, remove] = WORKLOADS;
        writeln!(text, "threads  set      keys a call  {insert:>7}  {present}  {absent}  {mix}  {remove:>7}")?;
        for row in self.rows {
            let [insert, present, absent, mix, remove] = [0, 1, 2, 3, 4]
                .map(|workload| row.speed(workload).map_or("-".to_owned(), |speed| format!("{speed:.2}")));
            let keys = grouped(if row.set == SetKind::Batches { BATCH } else { 1 });
            let (threads, set) = (row.threads, row.set.name());
            writeln!(
                text,
                "{threads:>7}  {set:<7}  {keys:>11}  {insert:>7}  {present:>14}  {absent:>13}  {mix:>10}  {remove:>7}"
            )?;
        }
        Ok(())
    }

    fn checks(&self, text: &mut String) -> std::fmt::Result {
        let absent = || self.rounds("filter").filter_map(|round| round.workloads[ABSENT]);
        let lookups: usize = absent().map(|absent| absent.operations).sum();
        let found: usize = absent().map(|absent| absent.yes).sum();
        let (measured, expected) = (percent(found as f64 / lookups as f64), percent(self.expected_rate()));
        let asked = percent(self.asked_rate);
        writeln!(text, "\nfalse positives  {measured} measured, {expected} expected, {asked} asked for")?;
        let (found, lookups, absent) = (grouped(found), grouped(lookups), grouped(self.absent));
        writeln!(text, "                 ({found} of {lookups} lookups, of {absent} different absent keys)")?;
        let all = self.rows.iter().flat_map(|row| &row.rounds).flat_map(|round| round.workloads.iter().enumerate());
        let present = all.filter(|(workload, _)| *workload != ABSENT).filter_map(|(_, measured)| *measured);
        let checks = grouped(present.map(|measured| measured.operations).sum());
        writeln!(text, "misses           0 (in {checks} checks of present keys)")?; // with one, there is no report
        let [filter, set] = ["filter", "HashSet"].map(|set| self.bits_per_item(set));
        writeln!(text, "bits per item    {filter:.2} in the filter, {set:.2} in the HashSet")?;
        let most = self.rows.iter().map(|row| row.threads).max().expect("a row");
        let faster = |workload| {
            let speed = |set| {
                let row = self.rows.iter().find(|row| (row.set, row.threads) == (set, most));
                row.and_then(|row| row.speed(workload)).expect("it was measured")
            };
            speed(SetKind::Filter) / speed(SetKind::HashSet)
        };
        let [present, absent, mix] = [PRESENT, ABSENT, MIX].map(faster);
        writeln!(text, "times as fast    {present:.1} (present), {absent:.1} (absent), {mix:.1} (mix), threads: {most}")
    }

    /// Of all rows with this name.
    fn rounds(&self, name: &str) -> impl Iterator<Item = &Round> {
        self.rows.iter().filter(move |row| row.set.name() == name).flat_map(|row| &row.rounds)
    }

    /// The mean of all filters.
    fn expected_rate(&self) -> f64 {
        let rates = self.rounds("filter").map(|round| round.full.expected_rate);
        rates.sum::<f64>() / self.rounds("filter").count() as f64
    }

    fn bits_per_item(&self, name: &str) -> f64 {
        let bytes = self.rounds(name).map(|round| round.full.memory).max().unwrap_or(0);
        bytes as f64 * 8.0 / self.items as f64
    }
}

/// With a comma before each three digits.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// A rate as a percentage with three significant digits.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let decimals = if percent > 0.0 { (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize } else { 0 };
    format!("{percent:.decimals$} %")
}
