//! The evaluation of the cuckoo filter's paper, done again: its table 3 and what its figures 4, 5 and 7 show, for this
//! crate's filter and for the systems that the paper compares.
//!
//! `cargo bench --bench paper [-- OPTIONS]`
//!
//! | option | |
//! |---|---|
//! | `--quick` | tables of 768 KiB, which takes seconds; otherwise 192 MiB, as in the paper |
//! | `--out=DIR` | where `figure4.csv` and `figure4.svg` go; otherwise `target/paper` |
//! | `--only=fastfilter` | only the table with the measures of `fastfilter_cpp` |
//!
//! "The paper" is Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom* (CoNEXT
//! 2014). `systems.rs` describes what is compared, and how the comparison is kept fair. `filters.rs` has the
//! systems that are not from a crate. The tables go to the standard output, the figure to a file. Speeds are in millions of
//! operations per second.
//!
//! # What is shown
//! - Table 3, for tables of the same size: the keys they take, bits per key, measured rate, and speed of construction. Here
//!   it also has what the paper shows in figure 5 (lookups by the share of hits) and in figure 7 (inserts by load), and
//!   removals.
//! - Figure 4: rate against bits per key, with the bound.
//! - The measures of `fastfilter_cpp` (Graf and Lemire), in its order: time to add a key and to find one, by the share
//!   of keys that are present; the rate, the bits a key, the fewest that the measured rate allows (log2(1/rate)), and how
//!   much more it takes. There, all filters have the same keys, which are in an array. Here all have the same memory, and a
//!   key is computed from its number, which is a part of each time.
//!
//! What the paper's table 2, its space row and its figures 2 and 3 show, memory for a rate and how full tables get, needs no
//! clock: the guide's page `choosing_parameters` has it, computed by the builder.
//!
//! The runs of the systems are interleaved, a second or so each. So a machine that becomes slower for a while does
//! so for all. All systems are in memory at once, which takes 4 GB. The run ends with an error unless all inserts
//! succeed, all present keys are found, all removals succeed, the rates are close to their formulas, and nothing is left in
//! the end.

#[path = "../support/mod.rs"]
mod support;

mod figure4;
mod filters;
mod layout;
mod measure;
mod systems;
mod tables;
mod timed;

use std::{fs, io};

use measure::Measured;
use support::options::Options;
use support::report::align;

/// How much there is of everything.
struct Plan {
    table_bytes: usize,
    /// How often a system is filled and emptied. The median is shown. More than one for tables that fit in a cache.
    rounds: usize,
    /// How many lookups a turn has. The median of some such turns is shown.
    lookups: u64,
    /// How many absent keys are looked up to measure the rate of a filter.
    rate_lookups: u64,
}

impl Plan {
    fn new(options: &Options) -> Self {
        let (table_bytes, rounds, lookups, rate_lookups) = options.pick(
            (16 << 10, 1, 1_000, 200_000),
            (768 << 10, 3, 100_000, 500_000),
            (192 << 20, 1, 600_000, 10_000_000),
        );
        Self { table_bytes, rounds, lookups, rate_lookups }
    }
}

/// For example "192 MiB".
fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let plan = Plan::new(&options);
    let size = size(plan.table_bytes);
    eprintln!("tables of {size}");
    let all = Measured::all(&systems::systems(), &plan);
    let figure4 = figure4::figure4(&all, &size);
    // The figures of a test mean nothing, but drawing them must succeed.
    if options.test {
        drop((figure4.svg(), tables::table3(&all), tables::fastfilter(&all)));
        return Ok(());
    }
    let fastfilter = align(&tables::fastfilter(&all), 1);
    println!("## The measures of fastfilter_cpp: {size}, one thread, nanoseconds\n\n{fastfilter}");
    if options.value("--only") == Some("fastfilter") {
        return Ok(());
    }
    let table3 = align(&tables::table3(&all), 2);
    println!(
        "## Table 3: one thread, tables of {size}, filled to capacity; millions of operations per second\n\n{table3}"
    );
    let folder = options.out("target/paper");
    fs::create_dir_all(&folder)?;
    println!("Figure 4 is in {}.", folder.join("figure4.svg").display());
    fs::write(folder.join("figure4.csv"), figure4.csv())?;
    fs::write(folder.join("figure4.svg"), figure4.svg())
}
