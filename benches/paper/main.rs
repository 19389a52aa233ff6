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
//! - The systems that threads can share, again on two threads.
//! - The measures of `fastfilter_cpp` (Graf and Lemire), in its order: time to add a key and to find one, by the share
//!   of keys that are present; the rate, the bits a key, the fewest that the measured rate allows (log2(1/rate)), and how
//!   much more it takes. There, all filters have the same keys, which are in an array. Here all have the same memory, and a
//!   key is computed from its number, which is a part of each time.
//!
//! The runs of the systems are interleaved, a second or so each. So a machine that becomes slower for a while does
//! so for all. All systems are in memory at once, which takes 4 GB. On two threads the tables are a quarter as
//! large, and the runs on one thread are interleaved with those on two. The run ends with an error unless all
//! inserts succeed, all present keys are found at every load, all removals succeed, the rates are close to their
//! formulas, and nothing is left in the end.

#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod charts;
mod filters;
mod findings;
mod layout;
mod measure;
mod plan;
mod space;
mod systems;
mod tables;
mod text;
mod timed;

use std::error::Error;
use std::fs;
use std::path::Path;

use findings::Findings;
use layout::Layout;
use measure::Measured;
use plan::Plan;
use space::{InTable, Loads, Space};
use support::options::Options;
use systems::{Part, System};
use text::size;

fn plan(options: &Options) -> Plan {
    match (options.test, options.quick) {
        (true, _) => Plan {
            table_bytes: 16 << 10,
            rounds: 1,
            shared_divisor: 1,
            lookups: 1_000,
            rate_lookups: 200_000,
            filled_buckets: &[1 << 10],
        },
        (false, true) => Plan {
            table_bytes: 768 << 10,
            rounds: 3,
            shared_divisor: 1,
            lookups: 100_000,
            rate_lookups: 500_000,
            filled_buckets: &[1 << 10, 1 << 14],
        },
        (false, false) => Plan {
            table_bytes: 192 << 20,
            rounds: 1,
            shared_divisor: 4,
            lookups: 600_000,
            rate_lookups: 10_000_000,
            filled_buckets: &[1 << 10, 1 << 15, 1 << 20],
        },
    }
}

/// If `brief`, only what one thread does.
fn measure(plan: Plan, brief: bool) -> Findings {
    let layouts = Layout::all();
    // As many keys as fill a table of about this size.
    let space = Space::row(plan.table_bytes / 2);
    let mut loads = Vec::new();
    for &buckets in plan.filled_buckets.iter().filter(|_| !brief) {
        eprintln!("load factors: tables of {buckets} buckets");
        loads.push((buckets, layouts.iter().map(|&layout| Loads::of(layout, buckets)).collect()));
    }
    let systems = systems::systems();
    let alone: Vec<(&System, u64)> =
        systems.iter().filter(|system| brief || system.part != Part::Threads).map(|system| (system, 1)).collect();
    eprintln!("one thread, tables of {}", size(plan.table_bytes));
    let alone = Measured::all(&alone, &plan);

    let shared = systems.iter().filter(|system| system.is_shown_on_two_threads());
    let shared: Vec<(&System, u64)> = shared.flat_map(|system| [(system, 1), (system, 2)]).collect();
    let shared_plan = Plan { table_bytes: plan.table_bytes / plan.shared_divisor, ..plan };
    let mut together = Vec::new();
    if !brief {
        eprintln!("one thread and two, tables of {}", size(shared_plan.table_bytes));
        let measured = Measured::all(&shared, &shared_plan);
        together.extend(measured.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    }

    let layouts = layouts.into_iter().map(|layout| InTable::of(layout, plan.table_bytes)).collect();
    Findings { plan, layouts, space, loads, alone, shared_bytes: shared_plan.table_bytes, together }
}

/// Prints the tables, and writes them and the figures to files.
fn show(findings: &Findings, files: &Path, brief: bool) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(files)?;
    let two_threads = format!(
        "On two threads, tables of {}: millions of operations a second, and how many times that of one thread (x)",
        size(findings.shared_bytes)
    );
    let table3 = format!(
        "Table 3: one thread, tables of {}, filled to capacity; millions of operations a second",
        size(findings.plan.table_bytes)
    );
    let fastfilter =
        format!("The measures of fastfilter_cpp: {}, one thread, nanoseconds", size(findings.plan.table_bytes));
    let tables = [
        ("fastfilter", &*fastfilter, 1, findings.fastfilter()),
        ("table2", "Table 2: memory, and cache lines of the table that a lookup reads", 2, findings.table2()),
        ("table3", &*table3, 2, findings.table3()),
        ("space", "Table 3's space row: bits a key at capacity", 2, findings.space_row()),
        ("two_threads", &*two_threads, 1, findings.two_threads()),
    ];
    for (file, title, left, table) in tables.into_iter().take(if brief { 1 } else { usize::MAX }) {
        println!("## {title}\n\n{}", table.text(left));
        fs::write(files.join(file).with_extension("csv"), table.csv())?;
    }
    if brief {
        return Ok(());
    }
    println!("{}", findings.space_verdict());
    println!("## Figures, in {}\n", files.display());
    for (file, what, chart) in findings.charts() {
        println!("- `{file}.svg`: {what}");
        fs::write(files.join(file).with_extension("csv"), chart.csv())?;
        fs::write(files.join(file).with_extension("svg"), chart.svg()?)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let brief = options.value("--only") == Some("fastfilter");
    let findings = measure(plan(&options), brief);
    match options.value("--out") {
        // The figures of a test mean nothing, but drawing them must succeed.
        None if options.test => {
            Ok(findings.charts().into_iter().try_for_each(|(_, _, chart)| chart.svg().map(drop))?)
        }
        _ => show(&findings, &options.out("target/paper"), brief),
    }
}
