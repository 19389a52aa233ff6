//! The evaluation of the cuckoo filter's paper, done again. Its tables 2 and 3 and its figures 2 to 8, for this
//! crate's filter and for the systems that the paper compares.
//!
//! `cargo bench --bench paper [-- OPTIONS]`
//!
//! | option | |
//! |---|---|
//! | `--quick` | tables of 768 KiB, which takes seconds; otherwise 192 MiB, as in the paper, and ten minutes |
//! | `--out=DIR` | where the CSV and SVG files go; otherwise `target/paper` |
//! | `--only=fastfilter` | only the table with the measures of `fastfilter_cpp` |
//!
//! "The paper" is Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom* (CoNEXT
//! 2014). `systems.rs` describes what is compared, and how the comparison is kept fair. `filters.rs` has the
//! systems that are not from a crate. The tables go to the standard output. Tables and figures go to files. Speeds
//! are in millions of operations a second.
//!
//! # What is shown
//! - Table 2: bits a key as a formula, and the cache lines that a lookup reads.
//! - Table 3, for tables of the same size: the keys they take, bits a key, measured rate, and speed of
//!   construction; here also the speeds of lookups and removals. And its space row for rates from 1 % to 0.0001 %,
//!   beside the paper's formula.
//! - Figure 2: how full tables get. (In the paper this depends on the bits of the fingerprint, with four slots to a
//!   bucket. Here a bucket is a word, so it depends on the number of slots too.)
//! - Figure 3: what a rate costs, by the slots of a bucket. Figure 4: rate against bits a key, with the bound.
//! - Figures 5 to 8: lookups by the share of hits and by load, inserts and removals by load.
//! - The measures of `fastfilter_cpp` (Graf and Lemire), in its order: time to add a key and to find one, by the share
//!   of keys that are present; the rate, the bits a key, the fewest that the measured rate allows (log2(1/rate)), and how
//!   much more it takes. There, all filters have the same keys, which are in an array. Here all have the same memory, and a
//!   key is computed from its number, which is a part of each time.
//!
//! The runs of the systems are interleaved, a second or so each. So a machine that becomes slower for a while does
//! so for all. All systems are in memory at once, which takes 4 GB. The run ends with an error unless all inserts
//! succeed, all present keys are found at every load, all removals succeed, the rates are close to their
//! formulas, and nothing is left in the end.

#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod charts;
mod filters;
mod layout;
mod measure;
mod space;
mod systems;
mod tables;
mod timed;

use std::path::Path;
use std::{fs, io};

use layout::Layout;
use measure::Measured;
use space::{InTable, Loads, Space};
use support::options::Options;

/// How much there is of everything.
struct Plan {
    table_bytes: usize,
    /// How often a system is filled and emptied. The median is shown. More than one for tables that fit in a cache.
    rounds: usize,
    /// How many lookups a turn has. The median of some such turns is shown.
    lookups: u64,
    /// How many absent keys are looked up to measure the rate of a filter.
    rate_lookups: u64,
    /// Buckets of the tables that are filled up for Figure 2.
    filled_buckets: &'static [usize],
}

impl Plan {
    fn new(options: &Options) -> Self {
        let (table_bytes, rounds, lookups, rate_lookups, filled_buckets): (_, _, _, _, &[usize]) =
            match (options.test, options.quick) {
                (true, _) => (16 << 10, 1, 1_000, 200_000, &[1 << 10]),
                (false, true) => (768 << 10, 3, 100_000, 500_000, &[1 << 10, 1 << 14]),
                (false, false) => (192 << 20, 1, 600_000, 10_000_000, &[1 << 10, 1 << 15, 1 << 20]),
            };
        Self { table_bytes, rounds, lookups, rate_lookups, filled_buckets }
    }
}

/// All that was measured or computed: what tables and charts are made from.
struct Findings {
    table_bytes: usize,
    layouts: Vec<InTable>,
    space: Vec<Space>,
    /// For each size in buckets, the loads of each layout.
    loads: Vec<(usize, Vec<Loads>)>,
    alone: Vec<Measured>,
}

impl Findings {
    /// If `brief`, only what the clock shows.
    fn new(plan: &Plan, brief: bool) -> Self {
        let layouts = Layout::all();
        // As many keys as fill a table of about this size.
        let space = Space::row(plan.table_bytes / 2);
        let mut loads = Vec::new();
        for &buckets in plan.filled_buckets.iter().filter(|_| !brief) {
            eprintln!("load factors: tables of {buckets} buckets");
            loads.push((buckets, layouts.iter().map(|&layout| Loads::of(layout, buckets)).collect()));
        }
        eprintln!("tables of {}", size(plan.table_bytes));
        let alone = Measured::all(&systems::systems(), plan);
        let layouts = layouts.into_iter().map(|layout| InTable::of(layout, plan.table_bytes)).collect();
        Self { table_bytes: plan.table_bytes, layouts, space, loads, alone }
    }

    fn of_name(&self, name: &str) -> Option<&Measured> {
        self.alone.iter().find(|measured| measured.name == name)
    }
}

/// For example "192 MiB".
fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

/// Prints the tables, and writes them and the figures to files.
fn show(findings: &Findings, files: &Path, brief: bool) -> io::Result<()> {
    fs::create_dir_all(files)?;
    let size = size(findings.table_bytes);
    let fastfilter = format!("The measures of fastfilter_cpp: {size}, one thread, nanoseconds");
    let table3 = format!("Table 3: one thread, tables of {size}, filled to capacity; millions of operations a second");
    let tables = [
        ("fastfilter", &*fastfilter, 1, findings.fastfilter()),
        ("table2", "Table 2: memory, and cache lines of the table that a lookup reads", 2, findings.table2()),
        ("table3", &*table3, 2, findings.table3()),
        ("space", "Table 3's space row: bits a key at capacity", 2, findings.space_row()),
    ];
    for (file, title, left, table) in tables.into_iter().take(if brief { 1 } else { usize::MAX }) {
        println!("## {title}\n\n{}", table.text(left));
        fs::write(files.join(file).with_extension("csv"), table.csv())?;
    }
    if brief {
        return Ok(());
    }
    println!("## Figures, in {}\n", files.display());
    for (file, what, chart) in findings.charts() {
        println!("- `{file}.svg`: {what}");
        fs::write(files.join(file).with_extension("csv"), chart.csv())?;
        fs::write(files.join(file).with_extension("svg"), chart.svg())?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let brief = options.value("--only") == Some("fastfilter");
    let findings = Findings::new(&Plan::new(&options), brief);
    match options.value("--out") {
        // The figures of a test mean nothing, but drawing them must succeed.
        None if options.test => {
            findings.charts().into_iter().for_each(|(.., chart)| drop(chart.svg()));
            Ok(())
        }
        _ => show(&findings, &options.out("target/paper"), brief),
    }
}
