//! Rounds that follow from a seed, one after the other.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::worker::{Kind, Round};

/// Round after round, for `CCF_SOAK_SECONDS`.
pub(crate) fn soak<K: Kind>() {
    let duration = Duration::from_secs(setting("CCF_SOAK_SECONDS").unwrap_or(60));
    let first = setting("CCF_SOAK_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 16);
    println!("{} s, CCF_SOAK_SEED={first}", duration.as_secs());

    let current = Arc::new(AtomicU64::new(first));
    let watched = Arc::downgrade(&current);
    thread::spawn(move || end_with_a_round_that_does_not(&watched));

    let (start, mut minutes) = (Instant::now(), 0);
    for seed in first.. {
        current.store(seed, Ordering::Relaxed);
        run::<K>(seed, 200_000);
        if start.elapsed() >= duration {
            println!("no violation in {} rounds", seed - first + 1);
            return;
        }
        if start.elapsed().as_secs() / 60 > minutes {
            minutes = start.elapsed().as_secs() / 60;
            println!("{minutes:4} min: no violation up to seed {seed}");
        }
    }
}

/// Ends the process if a round takes ten minutes: an operation that never ends is also a violation. (A round of a filter
/// that is full most of the time takes one, since each insert that fails has looked at 2,048 buckets twice.)
fn end_with_a_round_that_does_not(current: &Weak<AtomicU64>) {
    while let Some(seed) = current.upgrade().map(|current| current.load(Ordering::Relaxed)) {
        thread::sleep(Duration::from_secs(600));
        if current.upgrade().is_some_and(|current| current.load(Ordering::Relaxed) == seed) {
            eprintln!("a round does not end: CCF_SOAK_SEED={seed} begins with it");
            exit(1);
        }
    }
}

/// Runs a few short rounds, in every run of the tests. They are the same each time, but for the interleaving of threads.
pub(crate) fn sample<K: Kind>(rounds: u64) {
    let first = setting("CCF_SOAK_SEED").unwrap_or(0);
    (first..first + rounds).for_each(|seed| run::<K>(seed, 20_000));
}

/// Runs the round of this seed.
fn run<K: Kind>(seed: u64, steps: u64) {
    let violation = |round: &dyn fmt::Debug| -> ! {
        panic!("the violation above: CCF_SOAK_SEED={seed} begins with this round, {round:?}")
    };
    let round = catch_unwind(|| Round::<K>::new(seed)).unwrap_or_else(|_| violation(&"which could not begin"));
    catch_unwind(AssertUnwindSafe(|| round.run(steps))).unwrap_or_else(|_| violation(&round));
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}
