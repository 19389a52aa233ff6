//! Lookups in batches, and beside a writer.
//!
//! `cargo bench --bench lookups [-- --quick | --l2 | --large | --only=PART]`, where `PART` is:
//!
//! - `batches`: single calls and batches of 1,024 keys, also of inserts and removals; large tables also on huge pages.
//! - `writer`: lookups beside a writer to the same filter, and beside a writer to another one.
//!
//! Runs that are compared are interleaved, in rounds. The output shows medians of all rounds. A ratio compares two runs
//! of one round; the min and max are in brackets.

mod batches;
#[path = "../support/mod.rs"]
mod support;
mod writer;

use support::options::Options;

fn main() {
    let Some(options) = Options::parse() else { return };
    for size in options.sizes() {
        for (part, table) in [
            ("batches", batches::table as fn(_, &Options) -> (&'static str, Vec<Vec<String>>)),
            ("writer", writer::table),
        ] {
            options.part(part, || {
                let (title, rows) = table(size, &options);
                (format!("{}: {title}", size.name()), rows)
            });
        }
    }
}
