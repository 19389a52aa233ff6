//! The report on standard output: keys, filter and machine, the table, and the result of the checks.

use std::io::{self, Write};

use concurrent_cuckoo_filter::Encoding;
use indicatif::{BinaryBytes, HumanCount};

use crate::arguments::hardware_threads;
use crate::crew::{Filter, Tally};
use crate::failure::Failure;
use crate::keys::{KeySet, RealKeys, Source};
use crate::workload::{Figures, WORKLOADS};

/// With fewer items, a pass over all of them takes no longer than starting the threads.
const FEW_ITEMS: usize = 100_000;

pub(crate) struct Report {
    items: usize,
    /// Its layout and memory.
    filter: String,
    absent_keys: usize,
    asked_rate: f64,
    rows: Vec<Figures>,
}

impl Report {
    /// Writes what will be measured.
    pub(crate) fn begin(
        source: &Source,
        real: &RealKeys<'_>,
        keys: &KeySet,
        filter: &Filter,
        asked_rate: f64,
    ) -> Result<Self, Failure> {
        let items = keys.present().len();
        let mut out = io::stdout().lock();
        write!(out, "keys       {}: {} from {}", grouped(items), grouped(real.len()), source.name)?;
        if keys.synthetic > 0 {
            write!(out, ", {} synthetic such as {}", grouped(keys.synthetic), keys.sample)?;
        }
        let average = keys.present().total_bytes() as f64 / items as f64;
        writeln!(out, "; {average:.1} bytes on average")?;
        if real.left_out > 0 {
            writeln!(out, "           the first ones there; --items leaves out the other {}", grouped(real.left_out))?;
        }
        if real.duplicates > 0 {
            writeln!(out, "           lines that repeat an earlier one, left out: {}", grouped(real.duplicates))?;
        }
        let encoding = match filter.encoding() {
            Encoding::Plain => "plain".to_owned(),
            Encoding::SemiSorted => "semi-sorted".to_owned(),
            other => format!("{other:?}"),
        };
        let layout = format!(
            "{encoding}, {} slots a bucket, {}-bit fingerprints",
            filter.slots_per_bucket(),
            filter.fingerprint_bits()
        );
        let memory = BinaryBytes(filter.memory_usage() as u64);
        writeln!(out, "filter     {layout}; capacity {}, {memory} in memory", grouped(filter.capacity()))?;
        writeln!(out, "machine    hardware threads: {}", hardware_threads())?;
        writeln!(out)?;
        out.flush()?;
        let filter = format!("{layout}, {memory}");
        Ok(Self { items, filter, absent_keys: keys.absent().len(), asked_rate, rows: Vec::new() })
    }

    pub(crate) fn add(&mut self, row: Figures) {
        self.rows.push(row);
    }

    pub(crate) fn rows(&self) -> &[Figures] {
        &self.rows
    }

    /// Items, filter and machine in one line.
    pub(crate) fn summary(&self) -> String {
        format!("{} items; {}; hardware threads: {}", grouped(self.items), self.filter, hardware_threads())
    }

    /// Writes the table. Returns an error if an answer of the filter was wrong.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let misses: u64 = self.rows.iter().map(Figures::misses).sum();
        let written = self.write(misses);
        let mut faults: Vec<String> = self.rows.into_iter().filter_map(|row| row.fault).collect();
        if misses > 0 {
            faults.insert(0, format!("it missed present keys {} times", HumanCount(misses)));
        }
        // A wrong answer matters more than a table that could not be written.
        if faults.is_empty() { Ok(written?) } else { Err(Failure::Wrong(faults)) }
    }

    fn write(&self, misses: u64) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "million operations per second (the mix is 90 % lookups, 5 % inserts, 5 % removes)")?;
        writeln!(out)?;
        write_row(&mut out, ["threads", "keys a call"].map(str::to_owned), WORKLOADS.map(str::to_owned))?;
        for row in &self.rows {
            let speeds = row.speeds().map(|speed| speed.map_or("-".to_owned(), |speed| format!("{speed:.2}")));
            write_row(&mut out, [row.threads.to_string(), grouped(row.calls.keys())], speeds)?;
        }
        writeln!(out)?;

        let mut absent = Tally::default();
        self.rows.iter().for_each(|row| absent.add(row.absent.tally));
        let runs = self.rows.len() as f64;
        let mean = |value: fn(&Figures) -> f64| self.rows.iter().map(value).sum::<f64>() / runs;
        writeln!(
            out,
            "false positives  {} measured, {} expected, {} asked for",
            percent(absent.unexpected as f64 / absent.answers as f64),
            percent(mean(|row| row.expected_rate)),
            percent(self.asked_rate)
        )?;
        writeln!(
            out,
            "                 ({} of {} lookups, of {} different absent keys)",
            HumanCount(absent.unexpected),
            HumanCount(absent.answers),
            grouped(self.absent_keys)
        )?;
        writeln!(out, "bits per item    {:.2}", mean(|row| row.bits_per_item))?;
        let checks: u64 = self.rows.iter().map(Figures::checks).sum();
        writeln!(out, "misses           {} (in {} checks of present keys)", HumanCount(misses), HumanCount(checks))?;

        if self.items < FEW_ITEMS {
            writeln!(out)?;
            writeln!(
                out,
                "With fewer than {} items, starting the threads takes longer than what they do:",
                grouped(FEW_ITEMS)
            )?;
            writeln!(out, "give more --items for speeds that mean something.")?;
        }
        if self.rows.iter().any(|row| row.threads > hardware_threads()) {
            writeln!(out)?;
            writeln!(out, "More threads than {} take turns on this machine.", hardware_threads())?;
        }
        out.flush()
    }
}

fn write_row(out: &mut impl Write, [threads, keys]: [String; 2], cells: [String; WORKLOADS.len()]) -> io::Result<()> {
    write!(out, "{threads:>7}  {keys:>11}")?;
    for (cell, workload) in cells.iter().zip(WORKLOADS) {
        write!(out, "  {cell:>width$}", width = workload.len().max(7))?;
    }
    writeln!(out)
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
