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

fn main() {
    let Some(options) = Options::parse() else { return };
    let (length, keys, rounds) = match (options.test, options.quick) {
        (true, _) => (1, 20_000, 1),
        (false, true) => (300, 2_000_000, 3),
        (false, false) => (3000, 50_000_000, 5),
    };
    // Of sides that run by turns.
    let (length, keys) = (Duration::from_millis(length), options.keys(keys));
    for size in options.sizes() {
        let (name, bytes) = (size.name(), options.table_bytes(size));
        options.part("lookups", || (format!("{name}: nanoseconds a lookup"), lookups::table(bytes, length)));
    }
    options.part("inserts", || (format!("{keys} inserts: nanoseconds each"), inserts::speed(keys, rounds)));
    options.part("longest", || {
        let title = format!("The longest of {keys} inserts, each the least of {rounds} runs: microseconds");
        (title, inserts::longest(keys, rounds))
    });
    options.part("sizes", || ("Every size: bits a key and false-positive rate".into(), sizes::table(keys)));
    for size in options.sizes() {
        let (name, bytes) = (size.name(), options.table_bytes(size));
        options.part("doubling", || {
            let title = format!("{name}: to twice the size and back, millions of entries a second");
            (title, doubling::table(bytes, length))
        });
    }
    let most = if options.test { 20_000 } else { 1_000_000 };
    options.part("spike", || (format!("1,000 keys, {most}, and 1,000 again"), spike::table(most, length)));
}
