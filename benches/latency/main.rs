//! The tail latency of single operations: of several writers, of inserts that fail, and of all while a filter grows.
//!
//! `cargo bench --bench latency --features snapshot [-- --quick | --keys=N | --only=PART]`, where `PART` is:
//!
//! - `changes`: one, four and eight threads insert and remove at 95 to 99% load. Saves begin meanwhile, in runs of their
//!   own.
//! - `failed`: inserts of a key whose two buckets are full, beside writers, inserts into a full table, and into a growable
//!   filter at its largest size, which holds as many keys as the fixed table of the size that is named.
//! - `growth`: lookups and inserts while a filter grows to `N` keys (50 million), beside `scalable_cuckoo_filter`.
//!
//! Each operation is timed by two clocks. CPU time is the work that it did. Wall-clock time also includes waiting, and
//! the time that its thread was not scheduled. With more threads than cores, the scheduler causes the longest of these
//! times. The output is in microseconds. The row `nothing` is the time of the clocks themselves.

mod churn;
mod failed;
mod growth;
#[path = "../support/mod.rs"]
mod support;
mod times;

use std::iter;
use std::time::Duration;

use churn::{Churn, NAMES, SAVE, SETTINGS};
use failed::{at_the_largest_size, beside_writers, in_a_full_table};
use support::options::Options;
use support::report::align;
use times::Times;

/// The name of a size, and how large the table is. In a small one, no search ends because of its budget.
const SIZES: [(&str, usize); 3] = [("16 KiB", 16 << 10), ("512 KiB", 512 << 10), ("64 MB", 64 << 20)];

/// Prints a table of these times, those of which there are any.
fn print(title: &str, times: &[(&str, usize, Times)], test: bool) {
    let head = ["", "threads"].into_iter().chain(Times::HEAD).map(String::from).collect();
    let rows = times.iter().filter(|(.., times)| times.count() > 0).map(|(name, threads, times)| {
        [(*name).to_owned(), threads.to_string()].into_iter().chain(times.row()).collect()
    });
    let rows: Vec<Vec<String>> = iter::once(head).chain(rows).collect();
    if !test {
        println!("## {title}: microseconds\n\n{}", align(&rows, 1));
    }
}

/// The operations of several threads on one table.
fn changes(bytes: usize, size: &str, time: Duration, test: bool) {
    for setting in SETTINGS {
        let mut nothing = Times::default();
        (0..100_000).for_each(|_| nothing.time(|| ()));
        let mut rows = vec![("nothing", 1, nothing)];
        let mut churn = Churn::new(bytes, setting);
        for threads in [1, 4, 8] {
            eprintln!("{size}, {}, {threads} threads", setting.name);
            let changes = churn.run(threads, time, false);
            rows.extend(iter::zip(NAMES, changes).map(|(name, times)| (name, threads, times)));
            let [.., saves] = churn.run(threads, time, true);
            rows.push((NAMES[SAVE], threads, saves));
        }
        let (name, load) = (setting.name, setting.load * 100.0);
        print(&format!("{size}, {name}, at {load:.0}% load"), &rows, test);
    }
}

fn failed(sizes: &[(&str, usize)], time: Duration, test: bool) {
    let beside = [0, 1, 3, 7].map(|writers| ("insert", writers + 1, beside_writers(sizes[0].1, writers, time)));
    print(&format!("{}, copies fill the two buckets of the key", sizes[0].0), &beside, test);
    let of_sizes = |times: fn(usize, Duration) -> Times| -> Vec<_> {
        sizes.iter().map(|&(size, bytes)| (size, 1, times(bytes, time))).collect()
    };
    print("inserts into a full table", &of_sizes(in_a_full_table), test);
    print("inserts into a growable filter at its largest size", &of_sizes(at_the_largest_size), test);
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (time, keys) = options.pick((2, 20_000), (1000, 2_000_000), (10_000, 50_000_000));
    let (time, sizes) = (Duration::from_millis(time), options.pick(&SIZES[..1], &SIZES, &SIZES));
    if options.wants("changes") {
        sizes.iter().for_each(|&(size, bytes)| changes(bytes, size, time, options.test));
    }
    if options.wants("failed") {
        failed(sizes, time, options.test);
    }
    let keys = options.keys(keys);
    options.part("growth", || {
        (format!("While a filter grows to {keys} keys: microseconds by the wall clock"), growth::table(keys))
    });
}
