//! The evaluation of the cuckoo filter's paper, done again: its Tables 2 and 3 and its Figures 2 to 8, on this crate's
//! filter and on the systems that the paper compares.
//!
//! `cargo bench --bench paper [-- OPTIONS]`
//!
//! | option | |
//! |---|---|
//! | `--quick` | tables of 768 KiB, which takes seconds; otherwise 192 MiB, as in the paper, and ten minutes |
//! | `--out DIR` | where the CSV and SVG files go; otherwise `target/paper` |
//!
//! "The paper" is Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom* (CoNEXT 2014).
//! What is compared, and how it is kept fair, stands in `systems.rs`; what is not from a crate, in `filters.rs`. The
//! tables go to the standard output, and they and every figure to files; speeds are in millions of operations a second.
//!
//! # What is shown
//! - Table 2: bits a key as a formula, and the cache lines that a lookup reads;
//! - Table 3: in tables of the same size, the keys they take, bits a key, measured rate, and speed of construction; here
//!   also that of lookups and removals. And its space row for rates from 1 % to 0.0001 %, beside the paper's formula;
//! - Figure 2: how full tables get. (In the paper it depends on the bits of the fingerprint, with four slots to a
//!   bucket; here a bucket is a word, so the number of slots goes with it.)
//! - Figure 3: what a rate costs, by the slots of a bucket; Figure 4: rate against bits a key, with the bound;
//! - Figures 5 to 8: lookups by the share of hits and by load, inserts and removals by load;
//! - those that threads can share again, on two threads.
//!
//! The systems take turns, a second or so each, so that a machine which becomes slower for a while does so for all. So
//! all are in memory at once: 4 GB. On two threads the tables are a quarter as large, and one thread has its turns among
//! those of two. All inserts must succeed, all present keys be found, at every load, and
//! all removals too, rates be near their formulas, and nothing be left in the end, or the run ends.

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

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use findings::Findings;
use layout::Layout;
use measure::Measured;
use plan::Plan;
use space::{InTable, Loads, Space};
use support::files::from_root;
use systems::{Part, System};
use text::size;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    plan: Plan,
    /// Whether this is to show only that everything works.
    test: bool,
    out: Option<PathBuf>,
}

impl Options {
    /// `cargo bench` calls with `--bench`, `cargo test` without; then this is only a test. `None` if there's nothing to
    /// do.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let (mut bench, mut test, mut quick, mut out) = (false, false, false, None);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--quick" => quick = true,
                "--out" => out = Some(PathBuf::from(args.next().ok_or("--out needs the name of a directory")?)),
                // `cargo bench` passes the same to all benches, and only `filters` can measure what is named.
                name if !name.starts_with('-') => return Ok(None),
                _ => eprintln!("paper: {arg} means nothing here"),
            }
        }
        let test = test || !bench;
        let plan = match (test, quick) {
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
        };
        Ok(Some(Self { plan, test, out }))
    }
}

fn measure(plan: Plan) -> Findings {
    let layouts = Layout::all();
    // As many keys as fill a table of about the size at hand.
    let space = Space::row(plan.table_bytes / 2);
    let mut loads = Vec::new();
    for &buckets in plan.filled_buckets {
        eprintln!("load factors: tables of {buckets} buckets");
        loads.push((buckets, layouts.iter().map(|&layout| Loads::of(layout, buckets)).collect()));
    }
    let systems = systems::systems();
    let alone: Vec<(&System, u64)> =
        systems.iter().filter(|system| system.part != Part::Threads).map(|system| (system, 1)).collect();
    eprintln!("one thread, tables of {}", size(plan.table_bytes));
    let alone = Measured::all(&alone, &plan);

    let shared = systems.iter().filter(|system| system.is_shown_on_two_threads());
    let shared: Vec<(&System, u64)> = shared.flat_map(|system| [(system, 1), (system, 2)]).collect();
    let shared_plan = Plan { table_bytes: plan.table_bytes / plan.shared_divisor, ..plan };
    eprintln!("one thread and two, tables of {}", size(shared_plan.table_bytes));
    let together = Measured::all(&shared, &shared_plan);
    let together = together.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();

    let layouts = layouts.into_iter().map(|layout| InTable::of(layout, plan.table_bytes)).collect();
    Findings { plan, layouts, space, loads, alone, shared_bytes: shared_plan.table_bytes, together }
}

/// Prints the tables, and writes them and the figures to files.
fn show(findings: &Findings, out: PathBuf) -> Result<(), Box<dyn Error>> {
    let files = from_root(&out);
    fs::create_dir_all(&files)?;
    let two_threads = format!(
        "On two threads, tables of {}: millions of operations a second, and how many times that of one thread (x)",
        size(findings.shared_bytes)
    );
    let table3 = format!(
        "Table 3: one thread, tables of {}, filled to capacity; millions of operations a second",
        size(findings.plan.table_bytes)
    );
    for (file, title, left, table) in [
        ("table2", "Table 2: memory, and cache lines of the table that a lookup reads", 2, findings.table2()),
        ("table3", &*table3, 2, findings.table3()),
        ("space", "Table 3's space row: bits a key at capacity", 2, findings.space_row()),
        ("two_threads", &*two_threads, 1, findings.two_threads()),
    ] {
        println!("## {title}\n\n{}", table.text(left));
        fs::write(files.join(file).with_extension("csv"), table.csv())?;
    }
    println!("{}", findings.space_verdict());
    println!("## Figures, in {}\n", out.display());
    for (file, what, chart) in findings.charts() {
        println!("- `{file}.svg`: {what}");
        fs::write(files.join(file).with_extension("csv"), chart.csv())?;
        fs::write(files.join(file).with_extension("svg"), chart.svg()?)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            eprintln!("paper: names are for the bench `filters`; nothing to do here");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("paper: {error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = measure(options.plan);
    let shown = match (options.test, options.out) {
        // A test's figures mean nothing, but they must be possible.
        (true, None) => findings.charts().into_iter().try_for_each(|(_, _, chart)| chart.svg().map(drop)),
        (_, out) => show(&findings, out.unwrap_or_else(|| "target/paper".into())),
    };
    if let Err(error) = shown {
        eprintln!("paper: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
