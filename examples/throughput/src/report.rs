//! The report on standard output: keys, sets and machine, the table, the result of the checks, and what it means.

use std::io::{self, Write};

use indicatif::HumanCount;

use crate::arguments::{Arguments, hardware_threads};
use crate::keys::KeySet;
use crate::measure::{ABSENT, MIX, PRESENT, Round, Row, WORKLOADS};
use crate::sets::{Calls, Filter, SetKind};

/// With fewer items, a pass over all of them takes no longer than starting the threads.
const FEW_ITEMS: usize = 100_000;

pub(crate) struct Report<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) keys: &'a KeySet,
    pub(crate) items: usize,
    /// How many keys are absent.
    pub(crate) absent: usize,
    /// One like those that were measured.
    pub(crate) filter: Filter,
    pub(crate) rows: &'a [Row],
}

impl Report<'_> {
    /// Items, filter and machine in one line.
    pub(crate) fn summary(&self) -> String {
        let (items, layout, threads) = (grouped(self.items), self.layout(), hardware_threads());
        format!("{items} items; {layout}; hardware threads: {threads}")
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "keys       {}", self.keys.about)?;
        writeln!(out, "filter     {}; capacity {}", self.layout(), grouped(self.filter.capacity()))?;
        writeln!(out, "HashSet    RwLock<HashSet<Box<[u8]>>> with the filter's hasher")?;
        writeln!(out, "machine    hardware threads: {}\n", hardware_threads())?;
        writeln!(out, "million operations per second (the mix is 90 % lookups, 5 % inserts, 5 % removes)\n")?;
        self.write_table(out)?;
        self.write_checks(out)?;
        self.write_meaning(out)?;
        out.flush()
    }

    fn layout(&self) -> String {
        let (encoding, slots, bits) = (
            self.filter.plan().layout.encoding,
            self.filter.plan().layout.slots_per_bucket,
            self.filter.plan().layout.fingerprint_bits,
        );
        format!("{encoding:?}, {slots} slots a bucket, {bits}-bit fingerprints")
    }

    fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        let [insert, present, absent, mix, remove] = WORKLOADS;
        writeln!(out, "threads  set      keys a call  {insert:>7}  {present}  {absent}  {mix}  {remove:>7}")?;
        for row in self.rows {
            let [insert, present, absent, mix, remove] = [0, 1, 2, 3, 4]
                .map(|workload| row.speed(workload).map_or("-".to_owned(), |speed| format!("{speed:.2}")));
            let (threads, set, keys) = (row.threads, row.set.name(), grouped(row.keys_a_call()));
            writeln!(
                out,
                "{threads:>7}  {set:<7}  {keys:>11}  {insert:>7}  {present:>14}  {absent:>13}  {mix:>10}  {remove:>7}"
            )?;
        }
        Ok(())
    }

    fn write_checks(&self, out: &mut impl Write) -> io::Result<()> {
        let absent = || self.rounds(SetKind::Filter).filter_map(|round| round.workloads[ABSENT]);
        let lookups: usize = absent().map(|absent| absent.operations).sum();
        let found: usize = absent().map(|absent| absent.yes).sum();
        let (measured, expected) = (percent(found as f64 / lookups as f64), percent(self.expected_rate()));
        let asked = percent(self.arguments.rate);
        writeln!(out, "\nfalse positives  {measured} measured, {expected} expected, {asked} asked for")?;
        let (found, lookups, absent) = (grouped(found), grouped(lookups), grouped(self.absent));
        writeln!(out, "                 ({found} of {lookups} lookups, of {absent} different absent keys)")?;
        let checked = self.rows.iter().flat_map(|row| &row.rounds).map(Round::checks_and_misses);
        let (checks, misses) = checked.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        writeln!(out, "misses           {} (in {} checks of present keys)", grouped(misses), grouped(checks))?;
        let [filter, hash_set] = [SetKind::Filter, SetKind::HashSet].map(|set| self.bits_per_item(set));
        writeln!(out, "bits per item    {filter:.2} in the filter, {hash_set:.2} in the HashSet")
    }

    /// What these figures say, in sentences.
    fn write_meaning(&self, out: &mut impl Write) -> io::Result<()> {
        let speed = |set, threads, workload| {
            let wanted = |row: &&Row| (row.set, row.threads, row.calls) == (set, threads, Calls::Single);
            self.rows.iter().find(wanted).and_then(|row| row.speed(workload)).unwrap_or(f64::NAN)
        };
        let least = self.rows.iter().map(|row| row.threads).min().unwrap_or(1);
        let most = self.rows.iter().map(|row| row.threads).max().unwrap_or(1);
        let faster = |workload| speed(SetKind::Filter, most, workload) / speed(SetKind::HashSet, most, workload);
        let share = 100.0 * self.bits_per_item(SetKind::Filter) / self.bits_per_item(SetKind::HashSet);
        writeln!(
            out,
            "\nOn {}, with one key a call, lookups of present keys are {:.1} times as fast as in a HashSet behind a lock,\n\
             those of absent keys {:.1} times, and the mix {:.1} times. The filter takes {share:.1} % of the memory.",
            counted(most),
            faster(PRESENT),
            faster(ABSENT),
            faster(MIX)
        )?;
        if least < most {
            let gain = |set, workload| speed(set, most, workload) / speed(set, least, workload);
            writeln!(
                out,
                "From {} to {most}, the filter's lookups of present keys gain a factor of {:.1}, and its mix {:.1}.\n\
                 The HashSet's gain {:.1} and {:.1}.",
                counted(least),
                gain(SetKind::Filter, PRESENT),
                gain(SetKind::Filter, MIX),
                gain(SetKind::HashSet, PRESENT),
                gain(SetKind::HashSet, MIX)
            )?;
        }
        let one_in = grouped((1.0 / self.expected_rate()).round() as usize);
        writeln!(out, "In exchange, the filter also finds 1 of {one_in} absent keys, and it can't list its keys.")?;
        if self.items < FEW_ITEMS {
            let few = grouped(FEW_ITEMS);
            writeln!(
                out,
                "With fewer than {few} items, starting threads takes longer than their work: give more --items."
            )?;
        }
        if most > hardware_threads() {
            writeln!(out, "More threads than {} take turns on this machine.", hardware_threads())?;
        }
        match &self.arguments.plot {
            Some(path) => writeln!(out, "The plot is in {}.", path.display()),
            None => writeln!(out, "For a plot of throughput against threads, add --plot FILE.svg."),
        }
    }

    fn rounds(&self, set: SetKind) -> impl Iterator<Item = &Round> {
        self.rows.iter().filter(move |row| row.set == set).flat_map(|row| &row.rounds)
    }

    /// The mean of all filters.
    fn expected_rate(&self) -> f64 {
        let rates = self.rounds(SetKind::Filter).map(|round| round.full.expected_rate);
        rates.sum::<f64>() / self.rounds(SetKind::Filter).count() as f64
    }

    fn bits_per_item(&self, set: SetKind) -> f64 {
        let bytes = self.rounds(set).map(|round| round.full.memory).max().unwrap_or(0);
        bytes as f64 * 8.0 / self.items as f64
    }
}

fn counted(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

fn grouped(count: usize) -> String {
    HumanCount(count as u64).to_string()
}

/// A rate as a percentage with three significant digits.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let decimals = if percent > 0.0 { (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize } else { 0 };
    format!("{percent:.decimals$} %")
}
