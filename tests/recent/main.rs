//! The filter of recent keys: what it holds, for how long, and that it never fails.

#[path = "../support/mod.rs"]
mod support;

mod builders;
#[cfg(feature = "snapshot")]
#[path = "../support/forged.rs"]
mod forged;
mod keys;
#[cfg(feature = "snapshot")]
mod snapshots;
mod threads;
mod time;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{RecentBuilder, RecentCuckooFilter, RecentStats, Window};
use support::{Seeded, seeded};

type Filter = RecentCuckooFilter<u64, Seeded>;

/// Hardly any key is taken for another one.
const RATE: f64 = 6e-8;

fn builder() -> RecentBuilder<u64, Seeded> {
    Filter::builder_with_hasher(seeded(1)).false_positive_rate(RATE)
}

fn last(keys: usize) -> Filter {
    builder().last(keys).build().expect("valid settings")
}

/// How many keys a filter of the last ones holds at least, and at most.
fn held(filter: &Filter) -> (u64, u64) {
    let Window::Keys { at_least, at_most, .. } = filter.window() else { panic!("it counts keys") };
    (at_least, at_most)
}

fn stats(filter: &Filter) -> RecentStats {
    filter.stats().recent.expect("a filter of recent keys has them")
}

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn set(&self, time: Duration) {
        self.0.store(time.as_nanos() as u64, Ordering::SeqCst);
    }

    /// The clock as a filter takes it.
    fn read(&self) -> impl Fn() -> Duration + Send + Sync + 'static {
        let nanoseconds = Arc::clone(&self.0);
        move || Duration::from_nanos(nanoseconds.load(Ordering::SeqCst))
    }

    fn drive(&self, filter: Filter) -> Filter {
        filter.with_clock(self.read())
    }
}

/// A filter of the keys of a time, and its clock.
fn within(duration: Duration, capacity: usize) -> (Filter, Clock) {
    let clock = Clock::default();
    (builder().within(duration, capacity).clock(clock.read()).build().expect("valid settings"), clock)
}
