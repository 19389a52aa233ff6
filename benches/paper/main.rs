//! The evaluation of the cuckoo filter's paper, done again: its table 3 and its figures 4, 5 and 7, for this crate's filter
//! and for the systems that the paper compares.
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
//! - Table 3, for tables of the same size: the keys they take, bits a key, measured rate, and speed of
//!   construction; here also the speeds of lookups and removals.
//! - Figure 4: rate against bits a key, with the bound. Figure 5: lookups by the share of hits. Figure 7: inserts by load.
//! - The measures of `fastfilter_cpp` (Graf and Lemire), in its order: time to add a key and to find one, by the share
//!   of keys that are present; the rate, the bits a key, the fewest that the measured rate allows (log2(1/rate)), and how
//!   much more it takes. There, all filters have the same keys, which are in an array. Here all have the same memory, and a
//!   key is computed from its number, which is a part of each time.
//!
//! The runs of the systems are interleaved, a second or so each. So a machine that becomes slower for a while does
//! so for all. All systems are in memory at once, which takes 4 GB. The run ends with an error unless all inserts
//! succeed, all present keys are found, all removals succeed, the rates are close to their formulas, and nothing is left
//! in the end.

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

use std::error::Error;
use std::fs;

use measure::Measured;
use support::options::Options;
use systems::Part;
use tables::{fastfilter, table3};

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
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
    fn of(options: &Options) -> Self {
        match (options.test, options.quick) {
            (true, _) => Self { table_bytes: 16 << 10, rounds: 1, lookups: 1_000, rate_lookups: 200_000 },
            (false, true) => Self { table_bytes: 768 << 10, rounds: 3, lookups: 100_000, rate_lookups: 500_000 },
            (false, false) => Self { table_bytes: 192 << 20, rounds: 1, lookups: 600_000, rate_lookups: 10_000_000 },
        }
    }
}

/// For example "192 MiB".
fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let (plan, brief) = (Plan::of(&options), options.value("--only") == Some("fastfilter"));
    let systems = systems::systems();
    let shown: Vec<_> = systems.iter().filter(|system| brief || system.part != Part::FastFilter).collect();
    let size = size(plan.table_bytes);
    eprintln!("tables of {size}");
    let measured = Measured::all(&shown, &plan);
    let charts = charts::charts(&measured, plan.table_bytes);
    if options.test && options.value("--out").is_none() {
        // The figures of a test mean nothing, but drawing them must succeed.
        return charts.iter().try_for_each(|(_, _, chart)| chart.svg().map(drop));
    }

    let files = options.out("target/paper");
    fs::create_dir_all(&files)?;
    let title = format!("The measures of fastfilter_cpp: {size}, one thread, nanoseconds");
    let mut tables = vec![("fastfilter", title, 1, fastfilter(&measured))];
    if !brief {
        let title =
            format!("Table 3: one thread, tables of {size}, filled to capacity; millions of operations a second");
        tables.push(("table3", title, 2, table3(&measured)));
    }
    for (file, title, left, table) in tables {
        println!("## {title}\n\n{}", table.text(left));
        fs::write(files.join(file).with_extension("csv"), table.csv())?;
    }
    if !brief {
        println!("## Figures, in {}\n", files.display());
        for (file, what, chart) in charts {
            println!("- `{file}.svg`: {what}");
            fs::write(files.join(file).with_extension("csv"), chart.csv())?;
            fs::write(files.join(file).with_extension("svg"), chart.svg()?)?;
        }
    }
    Ok(())
}
