//! Lookups by several threads, in batches, beside a writer, and of prefetched keys.
//!
//! `cargo bench --bench lookups [-- --quick | --l2 | --large | --out=DIR | --only=PART]`, where `PART` is:
//!
//! - `threads`: lookups of one to four threads that share a set. The chart goes to `target/lookups`, or to `DIR`. With
//!   `--only=threads --l2 --out=benches/plots` it takes the place of the README's.
//! - `batches`: single calls and batches of 1,024 keys, also of inserts and removals; large tables also on huge pages.
//! - `writer`: lookups beside a writer to the same filter, and beside a writer to another one.
//! - `prefetch`: a lookup after other work, with and without a prefetch before that work.
//!
//! Runs that are compared are interleaved, in rounds. The output shows medians of all rounds. A ratio compares two runs
//! of one round; the min and max are in brackets.

mod batches;
mod prefetch;
#[path = "../support/mod.rs"]
mod support;
mod threads;
mod writer;

use std::io;

use support::options::Options;

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    for size in options.sizes() {
        if options.wants("threads") {
            threads::measure(size, &options)?;
        }
        for (part, table) in [
            ("batches", batches::table as fn(_, &Options) -> (&'static str, Vec<Vec<String>>)),
            ("writer", writer::table),
            ("prefetch", prefetch::table),
        ] {
            options.part(part, || {
                let (title, rows) = table(size, &options);
                (format!("{}: {title}", size.name()), rows)
            });
        }
    }
    Ok(())
}
