//! Rate limits per key: speed, memory and decisions, beside other limiters, and what a flood can do.
//!
//! `cargo bench --bench limiter [-- --quick | --only=speed|decisions|memory|floods | --beside=NAME]`
//!
//! `--beside` leaves out all other limiters but the one of this name.
//!
//! All allow 100 requests per minute and 20 at once, and hash with the same function, except `pingora-limits`, which has its
//! own. `governor` is an exact GCRA with a `DashMap`. `moka` is a cache of counters: a key has 100 requests, and is
//! forgotten a minute after its first one. `pingora-limits` counts in a count-min sketch of 66 KB, for all keys.
//!
//! - **speed**: millions of checks in a second of each thread's processor time. The clock stands still, for all alike, except
//!   in the column "system's clock". Keys are drawn uniformly or by Zipf's law (exponent 1). "Allowed" are keys that owe
//!   less than their burst, "rejected" keys that have used it up, and "new" keys that come for the first time. Beside that,
//!   how long a check takes relative to an operation of an `ExpiringCuckooFilter` of the same table: a rejected check to
//!   `contains`, an allowed one to `insert_or_renew`.
//! - **memory**: after a million keys, and after ten million more.
//! - **decisions**: honest keys at three tenths of their limit in clumps, and one key in 1,000 at twenty times its limit,
//!   compared with an exact limiter, in simulated time.
//! - **floods**: what an attacker gains by new keys, in simulated time.
//!
//! Only **speed** depends on the machine.

mod counting;
mod support;

use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{CuckooRateLimiter, ExpiringCuckooFilter, LimiterBuilder, Tick};
use counting::counted;
use governor::clock::{Clock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use moka::sync::Cache;
use pingora_limits::rate::Rate;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::clock::{by_turns, own_time};
use support::hash::HASH;
use support::keys::{ABSENT, key};
use support::options::Options;
use support::report::{Spread, speed};

const MINUTE: Duration = Duration::from_secs(60);
const LIMIT: u32 = 100;
const BURST: u32 = 20;

type Ours = CuckooRateLimiter<u64, RandomState>;
type NoMiddleware = NoOpMiddleware<<FakeRelativeClock as Clock>::Instant>;
type Governor = RateLimiter<u64, DashMapStateStore<u64, RandomState>, FakeRelativeClock, NoMiddleware>;

fn builder(keys: u64) -> LimiterBuilder<u64, RandomState> {
    Ours::builder_with_hasher(HASH).allow(LIMIT, MINUTE).burst(BURST).capacity(keys as usize)
}

/// Something that limits requests of keys.
trait Limiter: Sync {
    fn check(&self, key: u64) -> bool;
}

impl Limiter for Ours {
    #[inline]
    fn check(&self, key: u64) -> bool {
        CuckooRateLimiter::check(self, &key).is_ok()
    }
}

impl Limiter for Governor {
    #[inline]
    fn check(&self, key: u64) -> bool {
        self.check_key(&key).is_ok()
    }
}

impl Limiter for Cache<u64, Arc<AtomicU64>, RandomState> {
    #[inline]
    fn check(&self, key: u64) -> bool {
        self.get_with(key, Arc::default).fetch_add(1, Ordering::Relaxed) < LIMIT.into()
    }
}

impl Limiter for Rate {
    #[inline]
    fn check(&self, key: u64) -> bool {
        self.observe(&key, 1) <= LIMIT as isize
    }
}

fn governor() -> (Governor, FakeRelativeClock) {
    let clock = FakeRelativeClock::default();
    let quota = Quota::with_period(MINUTE / LIMIT).expect("not 0").allow_burst(NonZeroU32::new(BURST).expect("not 0"));
    (RateLimiter::new(quota, DashMapStateStore::with_hasher(HASH), clock.clone()), clock)
}

type Made = (&'static str, fn(u64) -> Box<dyn Limiter>);

const SUBJECTS: [Made; 5] = [
    ("`CuckooRateLimiter`", |keys| Box::new(builder(keys).clock(|| Duration::from_secs(1)).build().expect("valid"))),
    ("… by the system's clock", |keys| Box::new(builder(keys).build().expect("valid"))),
    ("`governor`", |_| Box::new(governor().0)),
    ("`moka` of counters", |keys| {
        Box::new(Cache::builder().max_capacity(4 * keys).time_to_live(MINUTE).build_with_hasher(HASH))
    }),
    ("`pingora-limits`", |_| Box::new(Rate::new(MINUTE))),
];

/// Numbers of keys.
fn drawn(random: &mut SmallRng, keys: u64, zipf: bool, count: usize) -> Vec<u64> {
    let draw = |random: &mut SmallRng| match zipf {
        // The number whose share of the harmonic sum this is, nearly.
        true => ((keys as f64).powf(random.random::<f64>()) as u64).min(keys - 1),
        false => random.random_range(0..keys),
    };
    (0..count).map(|_| key(draw(random))).collect()
}

/// Nanoseconds per check of these keys on so many threads, by the processor time of each.
fn time(limiter: &dyn Limiter, threads: usize, keys: &[Vec<u64>]) -> f64 {
    let run = |keys: &[u64]| {
        let start = own_time();
        let allowed = keys.iter().filter(|&&key| limiter.check(key)).count();
        std::hint::black_box(allowed);
        (own_time() - start) as f64 / keys.len() as f64
    };
    thread::scope(|scope| {
        let threads: Vec<_> = keys[..threads].iter().map(|keys| scope.spawn(move || run(keys))).collect();
        let times: Vec<f64> = threads.into_iter().map(|thread| thread.join().expect("it ends")).collect();
        times.iter().sum::<f64>() / times.len() as f64
    })
}

/// Checks of one kind, in each round: of allowed requests, of rejected ones, or of new keys.
fn speeds(subjects: &[Made], keys: u64, length: Duration) -> Vec<Vec<String>> {
    const SLICE: usize = 16 << 10;
    let mut rows = vec![["", "threads", "keys drawn", "allowed", "rejected", "new"].map(String::from).to_vec()];
    for &(name, make) in subjects {
        eprintln!("{keys} keys: {name}");
        for threads in [1, 2] {
            for zipf in [false, true] {
                let next = Cell::new(ABSENT);
                let mut random = SmallRng::seed_from_u64(keys);
                let mut slices =
                    |zipf| (0..threads).map(|_| drawn(&mut random, keys, zipf, SLICE)).collect::<Vec<Vec<u64>>>();
                let (mut allowed, rejected, new) = (make(keys), make(keys), make(keys));
                // One request each; and then so many that none is left.
                (0..keys).for_each(|number| _ = allowed.check(key(number)));
                (0..keys * u64::from(LIMIT + 1)).take(20_000_000).for_each(|n| _ = rejected.check(key(n % keys)));
                let times = by_turns(3, length, |turn, _| match turn {
                    0 => {
                        // Its most frequent keys would be at their limit soon.
                        if zipf {
                            allowed = make(keys);
                            (0..keys).for_each(|number| _ = allowed.check(key(number)));
                        }
                        time(&*allowed, threads, &slices(zipf))
                    }
                    1 => time(&*rejected, threads, &slices(zipf)),
                    _ => {
                        let numbers = |_| {
                            let first = next.replace(next.get() + SLICE as u64);
                            (first..first + SLICE as u64).map(key).collect()
                        };
                        time(&*new, threads, &(0..threads).map(numbers).collect::<Vec<Vec<u64>>>())
                    }
                });
                let mut row = vec![name.to_owned(), threads.to_string(), if zipf { "Zipf" } else { "uniform" }.into()];
                row.extend(times.iter().map(|times| format!("{:.2}", speed(times))));
                rows.push(row);
            }
        }
    }
    rows
}

/// A rejected check relative to `contains`, and an allowed one to `insert_or_renew`, of a table of the same layout.
fn relative(keys: u64, length: Duration) -> Vec<Vec<String>> {
    const SLICE: usize = 16 << 10;
    let limiter = builder(keys).clock(|| Duration::from_secs(1)).build().expect("valid");
    let longest = limiter.limits().ticks_per_request() * u64::from(BURST);
    let filter = ExpiringCuckooFilter::<u64, RandomState>::builder_with_hasher(HASH).capacity(keys as usize);
    let filter = filter.lifetime_in_ticks(longest).build().expect("valid");
    assert_eq!(filter.plan().layout.slots_per_bucket, limiter.plan().layout.slots_per_bucket);
    let mut now = 1;
    filter.advance_to(Tick::new(now));
    for number in 0..keys {
        _ = CuckooRateLimiter::check_n(&limiter, &key(number), BURST);
        filter.insert(&key(number)).expect("room");
    }
    let other = builder(keys).clock(|| Duration::from_secs(1)).build().expect("valid");
    (0..keys).for_each(|number| _ = other.check(&key(number)));
    let mut random = SmallRng::seed_from_u64(keys);
    let mut timed = |run: &mut dyn FnMut(u64) -> bool| {
        let keys = drawn(&mut random, keys, false, SLICE);
        let start = own_time();
        keys.iter().for_each(|&key| _ = std::hint::black_box(run(key)));
        (own_time() - start) as f64 / SLICE as f64
    };
    let times = by_turns(4, length, |turn, _| match turn {
        0 => timed(&mut |key| limiter.check(&key).is_err()),
        1 => timed(&mut |key| filter.contains(&key)),
        2 => timed(&mut |key| other.check(&key).is_ok() || other.remove(&key)),
        _ => {
            now += 1;
            filter.advance_to(Tick::new(now));
            timed(&mut |key| filter.insert_or_renew(&key).expect("room"))
        }
    });
    let ratio = |over: usize, under: usize| Spread::of_ratios(&times[over], &times[under]).show();
    vec![
        ["rejected to `contains`", "allowed to `insert_or_renew`"].map(String::from).to_vec(),
        vec![ratio(0, 1), ratio(2, 3)],
    ]
}

fn memory(subjects: &[Made], keys: u64) -> Vec<Vec<String>> {
    let mut rows = vec![["", "bits per key", "after ten times as many more"].map(String::from).to_vec()];
    drop(builder(1).build().expect("valid"));
    for &(name, make) in subjects.iter().filter(|(name, _)| *name != SUBJECTS[1].0) {
        eprintln!("memory: {name}");
        let (limiter, bytes) = counted(|| {
            let limiter = make(keys);
            (0..keys).for_each(|number| _ = limiter.check(key(number)));
            limiter
        });
        let ((), more) = counted(|| (keys..11 * keys).for_each(|number| _ = limiter.check(key(number))));
        let bits = bytes as f64 * 8.0 / keys as f64;
        rows.push(vec![
            name.into(),
            format!("{bits:.1}"),
            format!("{:.2} times", (bytes + more) as f64 / bytes as f64),
        ]);
    }
    rows
}

/// A limiter in simulated time.
fn simulated(keys: u64) -> (Ours, Rc<dyn Fn(Duration)>) {
    let time = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&time);
    let clock = move || Duration::from_nanos(shown.load(Ordering::Relaxed));
    let limiter = builder(keys).clock(clock).build().expect("valid");
    (limiter, Rc::new(move |now: Duration| time.store(now.as_nanos() as u64, Ordering::Relaxed)))
}

/// An exact GCRA of one key.
#[derive(Clone, Copy, Default)]
struct Exact(Duration);

impl Exact {
    fn check(&mut self, now: Duration) -> bool {
        let interval = MINUTE / LIMIT;
        let end = self.0.max(now) + interval;
        let is_allowed = end <= now + interval * BURST;
        if is_allowed {
            self.0 = end;
        }
        is_allowed
    }
}

fn decisions(keys: u64) -> Vec<Vec<String>> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut events = Vec::new();
    let interval = (MINUTE / LIMIT).as_secs_f64();
    for key in 0..keys {
        let is_abuser = key % 1000 == 0;
        let rate = if is_abuser { 20.0 / interval } else { 0.1 / interval };
        let mut time = 0.0;
        loop {
            time -= random.random::<f64>().max(1e-12).ln() / rate;
            if time > 90.0 {
                break;
            }
            let clump = if is_abuser { 1 } else { random.random_range(1..=5) };
            events.extend((0..clump).map(|_| (Duration::from_secs_f64(time), key)));
        }
    }
    events.sort_unstable();
    let (limiter, at) = simulated(keys);
    let (governor, clock) = governor();
    let mut exact = vec![Exact::default(); keys as usize];
    // For each limiter: agreements, honest requests that were wrongly rejected, and the requests of each key beyond the exact.
    let (mut agree, mut wrong) = ([0u64; 2], [0u64; 2]);
    let mut beyond = vec![[0i64; 2]; keys as usize];
    let (mut honest, mut last) = (0u64, Duration::ZERO);
    for &(time, number) in &events {
        at(time);
        clock.advance(time - last);
        last = time;
        let is_right = exact[number as usize].check(time);
        honest += u64::from(number % 1000 != 0);
        for (nth, is_allowed) in
            [limiter.check(&key(number)).is_ok(), governor.check(key(number))].into_iter().enumerate()
        {
            agree[nth] += u64::from(is_allowed == is_right);
            wrong[nth] += u64::from(number % 1000 != 0 && is_right && !is_allowed);
            beyond[number as usize][nth] += i64::from(is_allowed) - i64::from(is_right);
        }
    }
    let head = ["", "same decision", "honest requests wrongly rejected", "most beyond the exact, of a key"];
    let rows = ["`CuckooRateLimiter`", "`governor`"].into_iter().enumerate().map(|(nth, name)| {
        let share = 100.0 * agree[nth] as f64 / events.len() as f64;
        let most = beyond.iter().map(|beyond| beyond[nth]).max().unwrap_or(0);
        vec![name.into(), format!("{share:.3} %"), format!("{} of {honest}", wrong[nth]), most.to_string()]
    });
    std::iter::once(head.map(String::from).to_vec()).chain(rows).collect()
}

/// An attacker has some keys at their limit, all the time, and makes requests of new keys: so many times as many per
/// 600 ms as the limiter has room for. How many requests do the keys at their limit get, beyond their limit?
fn floods(capacity: u64) -> Vec<Vec<String>> {
    let head =
        ["keys at their limit", "new keys per 600 ms", "allowed beyond the limit, per key and minute", "evicted"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (share, flood) in [(0.0001, 10), (0.01, 10), (0.1, 10), (0.3, 10), (0.5, 2), (0.5, 10), (0.9, 10)] {
        let (limiter, at) = simulated(capacity);
        let limited = ((capacity as f64 * share) as u64).max(1);
        let (mut new, mut allowed) = (ABSENT, 0u64);
        // Steps of a hundredth of an interval, for a minute.
        let (steps, step) = (10_000, MINUTE / 10_000);
        for nth in 0..steps {
            at(step * nth);
            for number in 0..limited {
                allowed += u64::from(limiter.check(&key(number)).is_ok());
            }
            for _ in 0..capacity * flood / 100 {
                _ = limiter.check(&key(new));
                new += 1;
            }
        }
        let most = limiter.limits().most_in(step * (steps - 1));
        let beyond = allowed.saturating_sub(limited * most) as f64 / limited as f64;
        let evicted = limiter.stats().limiter.expect("it has them").evicted;
        rows.push(vec![
            format!("{limited} ({:.2}% of the capacity)", 100.0 * limited as f64 / capacity as f64),
            format!("{flood} times the capacity"),
            format!("{beyond:.2} of {most}"),
            evicted.to_string(),
        ]);
    }
    rows
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (small, large, flood, length) =
        options.pick((1000, 2000, 500, 0), (10_000, 1_000_000, 2000, 300), (10_000, 1_000_000, 10_000, 2000));
    let length = Duration::from_millis(length);
    let beside = options.value("--beside");
    let is_wanted = |nth: usize, name: &str| nth < 2 || beside.is_none_or(|beside| name.contains(beside));
    let subjects = SUBJECTS.iter().enumerate().filter(|(nth, (name, _))| is_wanted(*nth, name));
    let subjects: Vec<Made> = subjects.map(|(_, made)| *made).collect();
    let start = Instant::now();
    for keys in [small, large] {
        options.part("speed", || (format!("{keys} keys, million checks per second"), speeds(&subjects, keys, length)));
        options.part("speed", || (format!("{keys} keys, time relative to an expiring filter"), relative(keys, length)));
    }
    options.part("memory", || (format!("memory, {large} keys"), memory(&subjects, large)));
    let keys = options.pick(2000, 20_000, 200_000);
    options.part("decisions", || (format!("decisions about {keys} keys"), decisions(keys)));
    options.part("floods", || (format!("floods, capacity {flood}"), floods(flood)));
    eprintln!("{:.0?}", start.elapsed());
}
