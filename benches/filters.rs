//! Nanoseconds per operation, with criterion's statistics: this crate's filter beside others.
//!
//! `cargo bench --bench filters [-- FILTER]`, where `FILTER` is part of a name: `L2/`, `192MB/lookup hit`, `/2
//! threads/ours 5x14` …
//!
//! The names are `size/operation/threads/subject`. `support/subject.rs` describes the subjects, and why the
//! comparison is fair. The operations are those of `ratios.rs`. Use this bench to see the effect of a change of the
//! code (criterion compares with the run before). Use `ratios` to compare subjects: here one subject is measured
//! after the other, and the speed of the machine may change in between.
//!
//! # Inserts and removals
//! The cost of an insert depends on the load, so criterion cannot choose how many to time. Instead the filter is
//! filled to 90 % and 95 % and emptied (to 85 % at 192 MB) in ten rounds, as in `support/plan.rs`. Each round has
//! its share of low and of high loads. Criterion gets the ten times.

mod support;

use std::cell::RefCell;
use std::env;
use std::thread;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use support::filled::{Bench, Sample, Steady};
use support::plan::{Changes, Rounds, Size, steady_load, subjects};
use support::subject::Kind;

/// The smallest number that criterion accepts.
const SAMPLES: usize = 10;

/// A subject, and what was measured of it so far. A name filter may need none of it, so nothing is measured before
/// it is needed.
struct Measured {
    bench: Box<dyn Bench>,
    rounds: Rounds,
    /// For one thread and for two.
    changes: [Option<Changes>; 2],
}

impl Measured {
    /// The inserts and removals on this many threads.
    fn changes(&mut self, threads: u64) -> &Changes {
        if self.changes[threads as usize - 1].is_none() {
            self.bench.renew();
            let changes = self.rounds.run(std::slice::from_mut(&mut self.bench), threads).remove(0);
            self.changes[threads as usize - 1] = Some(changes);
        }
        self.changes[threads as usize - 1].as_ref().expect("measured above")
    }

    fn name_and_kind(&self) -> (&'static str, Kind) {
        (self.bench.name(), self.bench.kind())
    }

    fn steady(&mut self, what: Steady, count: u64, threads: u64) -> Sample {
        steady_load(self.bench.as_mut());
        self.bench.steady(what, count, threads)
    }
}

/// A part of [`Changes`].
type Part = fn(&Changes) -> Vec<Sample>;

const CHANGES: [(&str, Part); 4] = [
    ("insert to 90 %", |changes| changes.to_90.clone()),
    ("insert 90-95 %", |changes| changes.to_95.clone()),
    ("insert to 95 %", |changes| changes.all_to_95()),
    ("remove", |changes| changes.remove.clone()),
];

const STEADY: [(&str, Steady); 4] = [
    ("lookup hit", Steady::Hit),
    ("lookup miss", Steady::Miss),
    ("lookup half hits", Steady::Half),
    ("mix 90-5-5", Steady::Mix),
];

fn bench_size(criterion: &mut Criterion, size: Size, test: bool) {
    let table_bytes = if test { 8 << 10 } else { size.table_bytes() };
    let rounds = Rounds::new(size, if test { 1 } else { SAMPLES });
    let measured = |bench| RefCell::new(Measured { bench, rounds, changes: [None, None] });
    let subjects: Vec<_> = subjects(size, table_bytes).into_iter().map(measured).collect();
    for threads in [1, 2] {
        for (operation, part) in CHANGES {
            let mut group = group(criterion, size, operation, threads);
            // Criterion measures how long it takes to get the times, and decides by that how often to ask.
            group.warm_up_time(Duration::from_nanos(1)).measurement_time(Duration::from_millis(500));
            for subject in &subjects {
                let (name, kind) = subject.borrow().name_and_kind();
                if kind != Kind::Limit {
                    let mut round = 0;
                    group.bench_function(name, |bencher| {
                        let samples = part(subject.borrow_mut().changes(threads));
                        bencher.iter_custom(|iterations| {
                            thread::sleep(Duration::from_millis(2));
                            round += 1;
                            let sample = samples[round % samples.len()];
                            Duration::from_nanos((sample.nanoseconds() * iterations as f64) as u64)
                        });
                    });
                }
            }
        }
    }
    for (operation, what) in STEADY {
        for threads in [1, 2] {
            let mut group = group(criterion, size, operation, threads);
            group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
            for subject in &subjects {
                let (name, kind) = subject.borrow().name_and_kind();
                if kind == Kind::Limit && what == Steady::Mix {
                    continue;
                }
                group.bench_function(name, |bencher| {
                    bencher.iter_custom(|iterations| {
                        let sample = subject.borrow_mut().steady(what, iterations, threads);
                        // It does a few operations more than requested.
                        sample.time.mul_f64(iterations as f64 / sample.operations as f64)
                    });
                });
            }
        }
    }
}

fn group<'a>(criterion: &'a mut Criterion, size: Size, operation: &str, threads: u64) -> BenchmarkGroup<'a, WallTime> {
    let s = if threads == 1 { "" } else { "s" };
    let mut group = criterion.benchmark_group(format!("{}/{operation}/{threads} thread{s}", size.name()));
    // One iteration is one operation.
    group.sample_size(SAMPLES).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(1)).nresamples(10_000);
    group
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
