//! The rate limiter: what it allows, compared with exact limiters, how it is built, and what it does when it is full.

#[path = "../support/mod.rs"]
mod support;

mod decisions;
#[cfg(feature = "snapshot")]
#[path = "../support/forged.rs"]
mod forged;
mod full;
mod settings;
#[cfg(feature = "snapshot")]
mod snapshots;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{CuckooRateLimiter, LimiterBuilder, LimiterStats, Quota};
use support::{Seeded, seeded};

type Limiter = CuckooRateLimiter<u64, Seeded>;

const MINUTE: Duration = Duration::from_secs(60);

/// 100 per minute and 20 at once. Hardly any key is taken for another one.
fn builder() -> LimiterBuilder<u64, Seeded> {
    Limiter::builder_with_hasher(seeded(1)).allow(100, MINUTE).burst(20).capacity(1000).false_positive_rate(1e-6)
}

fn stats(limiter: &Limiter) -> LimiterStats {
    limiter.stats().limiter.expect("a rate limiter has them")
}

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn set(&self, time: Duration) {
        self.0.store(time.as_nanos() as u64, Ordering::SeqCst);
    }

    fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

/// A limiter with a clock that the test sets.
fn with_clock(builder: LimiterBuilder<u64, Seeded>) -> (Limiter, Clock) {
    let clock = Clock::default();
    let own = clock.clone();
    (builder.clock(move || own.now()).build().expect("valid settings"), clock)
}

/// The algorithm without ticks, in nanoseconds: what an exact limiter of one key decides.
#[derive(Clone, Copy, Default)]
struct Exact(u128);

impl Exact {
    fn check(&mut self, quota: &Quota, now: Duration, cost: u32) -> bool {
        let (interval, now) = (quota.interval().as_nanos(), now.as_nanos());
        let end = self.0.max(now) + u128::from(cost) * interval;
        let is_allowed = end <= now + u128::from(quota.burst()) * interval;
        if is_allowed {
            self.0 = end;
        }
        is_allowed
    }
}
