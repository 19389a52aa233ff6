//! What a change of the code does to the speed of this crate's filter, with criterion's statistics.
//!
//! `cargo bench --bench filters [-- FILTER]`, where `FILTER` is part of a name: `L2/`, `5x14/1 thread`, `lookup hit`
//! … The names are `size/subject/threads/operation`.
//!
//! Criterion compares each figure with that of the run before, or with one that has a name: run it with `--
//! --save-baseline NAME` before the change, and with `-- --baseline NAME` after it. The layouts are measured one after
//! the other, and the machine's speed may change in between. So this is not for comparing layouts, nor filters: use
//! `ratios` for that.
//!
//! # Inserts and removals
//! Their cost depends on the load, which must not depend on how many of them criterion asks for. So each iteration
//! inserts a share of the slots and removes as many keys, and one of the two is timed.

mod support;

use std::env;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use support::filled::{Bench, Filled, Steady};
use support::ours::{DEFAULT_5X14, PLAIN_4X16};
use support::plan::{STEADY_LOAD, Size, bring_to, items};

/// How many lookups are timed at least, also if criterion asks for one. It begins with one, and they need two threads.
const FEWEST: u64 = 10_000;

/// Operations that change the load: between which loads, and whether the inserts or the removals are timed.
const CHANGES: [(&str, [f64; 2], bool); 3] = [
    ("insert at 90%", [0.9, 0.91], true),
    ("remove at 90%", [0.9, 0.91], false),
    // The last one, because it empties the filter. It is for tables in the cache. Others take many seconds to fill.
    ("fill to 95%", [0.0, 0.95], true),
];

fn bench_size(criterion: &mut Criterion, size: Size, test: bool) {
    let table_bytes = if test { 64 << 10 } else { size.table_bytes() };
    for mut bench in [Filled::boxed(DEFAULT_5X14, table_bytes), Filled::boxed(PLAIN_4X16, table_bytes)] {
        let bench: &mut dyn Bench = bench.as_mut();
        for threads in [1, 2] {
            let s = if threads == 1 { "" } else { "s" };
            let mut group =
                criterion.benchmark_group(format!("{}/{}/{threads} thread{s}", size.name(), bench.about().name));
            group.sample_size(10).sampling_mode(SamplingMode::Flat).nresamples(10_000);
            group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
            group.throughput(Throughput::Elements(1));
            for what in Steady::ALL {
                group.bench_function(what.name(), |bencher| {
                    bring_to(bench, STEADY_LOAD);
                    bencher.iter_custom(|iterations| {
                        let sample = bench.steady(what, iterations.max(FEWEST), threads);
                        sample.time.mul_f64(iterations as f64 / sample.operations as f64)
                    });
                });
            }
            for (operation, [from, to], inserts) in CHANGES {
                if size == Size::Large && from == 0.0 {
                    continue;
                }
                let (few, many) = (items(bench, from), items(bench, to));
                group.throughput(Throughput::Elements(many - few));
                group.bench_function(operation, |bencher| {
                    bring_to(bench, from);
                    bencher.iter_custom(|iterations| {
                        let round = |_| {
                            let (inserted, removed) = (bench.insert_to(many, threads), bench.remove_to(few, threads));
                            if inserts { inserted.time } else { removed.time }
                        };
                        (0..iterations).map(round).sum()
                    });
                });
            }
        }
    }
}

fn main() {
    // By criterion's convention: `cargo bench` passes `--bench`, and a run without it only checks that everything
    // works.
    let given = |wanted| env::args().any(|arg| arg == wanted);
    let test = given("--test") || !given("--bench");
    let mut criterion = Criterion::default().configure_from_args();
    for size in [Size::L2, Size::Large] {
        bench_size(&mut criterion, size, test);
    }
    criterion.final_summary();
}
