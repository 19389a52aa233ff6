//! What a filter that grows in place costs.
//!
//! `cargo bench --bench growable [-- --quick | --l2 | --large | --only=PART | --keys=N]`, where `PART` is:
//!
//! | part | what |
//! |---|---|
//! | `lookups` | lookups, single and batched, at four sizes, beside a fixed filter of as many bytes |
//! | `inserts` | inserts of `N` keys into a filter that grows, beside a fixed one of the final size |
//! | `longest` | the longest of these inserts. Ask for this part alone: see below |
//! | `sizes` | the memory and the false-positive rate at every size, up to `N` keys |
//! | `doubling` | how many entries a second `reserve` moves to a larger table, and `shrink_to_fit` to a smaller one |
//! | `spike` | a thousand keys, a million, and a thousand again, then `shrink_to_fit` |
//!
//! `N` is 50 million, or 2 million with `--quick`. All work is that of one thread, and is timed by its processor time.
//! Two sides of a comparison run by turns, and each ratio compares two runs of one round.
//!
//! The allocator of glibc takes a new segment from memory that it has to clear if the process has freed a larger one before,
//! up to 32 MB. The insert that needs it then takes 0.2 ms longer for each megabyte. So `longest` needs a process of its
//! own.

mod doubling;
mod filters;
mod inserts;
mod lookups;
mod sizes;
mod spike;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use support::options::Options;
use support::report::align;

/// How much there is time for.
struct Plan {
    /// Of two sides that run by turns.
    length: Duration,
    keys: u64,
    rounds: usize,
}

impl Plan {
    fn new(options: &Options) -> Self {
        let (length, keys, rounds) = match (options.test, options.quick) {
            (true, _) => (1, 20_000, 1),
            (false, true) => (300, 2_000_000, 3),
            (false, false) => (3000, 50_000_000, 5),
        };
        let asked = options.value("--keys").map(|keys| keys.parse().expect("a number"));
        Self { length: Duration::from_millis(length), keys: asked.unwrap_or(keys), rounds }
    }
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let plan = Plan::new(&options);
    let print = |title: &str, rows: Vec<Vec<String>>| {
        if !options.test {
            println!("## {title}\n\n{}", align(&rows, 1));
        }
    };
    let only = options.value("--only");
    let wants = |part: &str| {
        let wanted = only.is_none_or(|only| only == part);
        if wanted && !options.test {
            eprintln!("{part}");
        }
        wanted
    };
    if wants("lookups") {
        for size in options.sizes() {
            let rows = lookups::table(options.table_bytes(size), plan.length);
            print(&format!("{}: nanoseconds a lookup", size.name()), rows);
        }
    }
    if wants("inserts") {
        print(&format!("{} inserts: nanoseconds each", plan.keys), inserts::speed(plan.keys, plan.rounds));
    }
    if wants("longest") {
        let title =
            format!("The longest of {} inserts, each the least of {} runs: microseconds", plan.keys, plan.rounds);
        print(&title, inserts::longest(plan.keys, plan.rounds));
    }
    if wants("sizes") {
        print("Every size: bits a key and false-positive rate", sizes::table(plan.keys));
    }
    if wants("doubling") {
        for size in options.sizes() {
            let rows = doubling::table(options.table_bytes(size), plan.length);
            print(&format!("{}: to twice the size and back, millions of entries a second", size.name()), rows);
        }
    }
    if wants("spike") {
        let most = if options.test { 20_000 } else { 1_000_000 };
        print(&format!("1,000 keys, {most}, and 1,000 again"), spike::table(most, plan.length));
    }
}
