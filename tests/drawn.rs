//! Draws the settings of each builder, often the smallest or the largest ones, and checks what their documentation promises:
//! settings are accepted or the error names what is possible, a filter is as its plan says, and it takes as many keys as
//! its capacity, from 1 to 16 threads.
//!
//! `CCF_DRAWN=100000 cargo test --all-features --test drawn` draws as many of each. A failure prints its seed.

mod support;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, thread};

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, Encoding, ExpiringCuckooFilter,
    ExpiringInsertError, Expiry, FilterPlan, GrowableCuckooFilter, GrowableInsertError, LimitReason, Quota, QuotaError,
    RecentBuilder, RecentCuckooFilter, Stats, Tick, WhenFull, Window,
};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use support::{Raw, Seeded, scattered, seeded};

/// The most keys of a filter that is built. Plans are made of any size.
const MOST_KEYS: usize = 20_000;

/// Runs `check` with the random numbers of as many seeds as are asked for.
fn drawn(check: impl Fn(&mut SmallRng)) {
    let variable = |name, default| env::var(name).map_or(default, |number| number.parse::<u64>().expect("a number"));
    let (rounds, first) = (variable("CCF_DRAWN", if cfg!(miri) { 2 } else { 150 }), variable("CCF_DRAWN_SEED", 0));
    for seed in first..first + rounds {
        let replay = Replay(seed);
        check(&mut SmallRng::seed_from_u64(seed));
        drop(replay);
    }
}

/// Prints how to repeat a failure.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("CCF_DRAWN=1 CCF_DRAWN_SEED={} repeats it", self.0);
        }
    }
}

/// A number of keys that can be inserted here: often a very small one.
fn some_keys(random: &mut SmallRng) -> usize {
    match random.random_range(0..4) {
        0 => random.random_range(0..10),
        1 => random.random_range(0..200),
        _ => random.random_range(0..=MOST_KEYS),
    }
}

/// Any number of keys.
fn any_keys(random: &mut SmallRng) -> usize {
    match random.random_range(0..8) {
        0 => usize::MAX - random.random_range(0..2),
        _ => random.random::<u64>() as usize >> random.random_range(0..64),
    }
}

fn any_rate(random: &mut SmallRng) -> f64 {
    const EDGES: [f64; 12] = [0.0, -0.1, 1.0, f64::NAN, 1e-300, 1e-12, 9.4e-10, 1e-9, 1e-7, 0.5, 0.999, 0.001];
    match random.random_range(0..4) {
        0 => *EDGES.choose(random).expect("not empty"),
        1 => 0.001,
        _ => 10f64.powf(-random.random_range(0.0..9.5)),
    }
}

fn any_time(random: &mut SmallRng) -> Duration {
    Duration::from_nanos(random.random::<u64>() >> random.random_range(0..64))
        .saturating_mul(random.random_range(1..1000))
}

/// A clock that a test moves on, from any origin.
struct Clock {
    origin: Duration,
    nanoseconds: Arc<AtomicU64>,
}

impl Clock {
    fn any(random: &mut SmallRng) -> Self {
        Self { origin: any_time(random), nanoseconds: Arc::default() }
    }

    /// How long the clock has run.
    fn set(&self, time: Duration) {
        let nanoseconds = time.as_nanos().try_into().expect("a time of less than 584 years");
        self.nanoseconds.store(nanoseconds, Ordering::SeqCst);
    }

    /// The clock as a filter takes it.
    fn read(&self) -> impl Fn() -> Duration + Send + Sync + 'static {
        let (origin, nanoseconds) = (self.origin, Arc::clone(&self.nanoseconds));
        move || origin.saturating_add(Duration::from_nanos(nanoseconds.load(Ordering::SeqCst)))
    }
}

fn any_encoding(random: &mut SmallRng) -> Option<Encoding> {
    *[None, None, Some(Encoding::Plain), Some(Encoding::SemiSorted)].choose(random).expect("not empty")
}

fn any_threads(random: &mut SmallRng) -> usize {
    *[1, 2, 3, 4, 16].choose(random).expect("not empty")
}

/// Sets what was drawn, if anything.
fn with<B, V>(builder: B, value: Option<V>, set: impl FnOnce(B, V) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// Calls `insert` for each number below `count`, on some threads.
fn on_threads<E: Debug + Send>(
    threads: usize,
    count: usize,
    insert: impl Fn(u64) -> Result<(), E> + Sync,
) -> Result<(), E> {
    thread::scope(|scope| {
        let insert_part = |part| (part..count).step_by(threads).try_for_each(|number| insert(number as u64));
        let parts: Vec<_> = (0..threads).map(|part| scope.spawn(move || insert_part(part))).collect();
        parts.into_iter().try_for_each(|part| part.join().expect("no operation panics"))
    })
}

/// What the error names as the limit is accepted in the place of `rate` or of `keys`. Returns whether it named one of them.
fn names_what_is_possible(
    error: &BuildError,
    plan: impl Fn(f64, usize) -> Result<FilterPlan, BuildError>,
    rate: f64,
    keys: usize,
) -> bool {
    let text = error.to_string();
    match *error {
        BuildError::InvalidRate { .. } => !(rate > 0.0 && rate < 1.0),
        BuildError::RateTooLow { .. } => {
            let named = text.split("below ").nth(1).and_then(|rest| rest.split(';').next()).expect(&text);
            let named: f64 = named.parse().expect(&text);
            assert!(named > rate, "{text}");
            match plan(named, keys) {
                Ok(again) => assert!(again.max_false_positive_rate <= named, "{text}: {again}"),
                // So many keys have no room at any rate.
                Err(BuildError::CapacityTooLarge { .. }) => (),
                Err(again) => panic!("{text}, and then {again}"),
            }
            true
        }
        BuildError::CapacityTooLarge { largest, .. } => {
            assert!(largest < keys, "{text}");
            plan(rate, largest).unwrap_or_else(|again| panic!("{text}, and then {again}"));
            true
        }
        _ => false,
    }
}

/// The filter is what its builder's plan says.
fn is_as_planned(plan: &FilterPlan, own: &FilterPlan, stats: &Stats, capacity: usize) {
    assert_eq!(plan, own, "{plan} and {own}");
    assert_eq!((plan.capacity, plan.slots), (capacity, stats.slots), "{plan}");
    assert_eq!(plan.memory_usage, stats.memory_usage, "{plan}");
    assert!(plan.capacity <= plan.slots, "{plan}");
}

#[test]
fn fixed_filters_keep_what_is_promised() {
    drawn(|random| {
        let (rate, keys, encoding) = (any_rate(random), any_keys(random), any_encoding(random));
        let builder = |rate, keys| {
            let builder = ConcurrentCuckooFilter::<Raw, _>::builder_with_hasher(seeded(7));
            with(builder.false_positive_rate(rate).capacity(keys), encoding, |builder, encoding| {
                builder.encoding(encoding)
            })
        };
        match builder(rate, keys).plan() {
            Ok(plan) => assert!(plan.capacity >= keys && plan.max_false_positive_rate <= rate, "{plan}"),
            Err(error) => {
                assert!(names_what_is_possible(&error, |rate, keys| builder(rate, keys).plan(), rate, keys), "{error}");
            }
        }
        let (keys, threads) = (some_keys(random), any_threads(random));
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let filter = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &filter.plan(), &filter.stats(), filter.capacity());
        let all = filter.capacity();
        on_threads(threads, all, |key| filter.insert(&scattered(key)))
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        assert!(filter.len() == all && (0..all as u64).all(|key| filter.contains(&scattered(key))), "{filter:?}");
        assert!(filter.stats().false_positive_rate <= rate, "{plan}");
    });
}

#[test]
fn growable_filters_keep_what_is_promised() {
    drawn(|random| {
        let (rate, keys, encoding) = (any_rate(random), any_keys(random), any_encoding(random));
        let builder = |rate| {
            let builder = GrowableCuckooFilter::<Raw, _>::builder_with_hasher(seeded(7)).false_positive_rate(rate);
            with(builder, encoding, |builder, encoding| builder.encoding(encoding))
        };
        let plan = |rate, keys| builder(rate).capacity(keys).plan();
        match plan(rate, keys) {
            Ok(plan) => {
                assert!(plan.capacity >= keys && plan.max_capacity >= Some(keys), "{plan}");
                assert!(plan.false_positive_rate_with(plan.max_capacity.expect("it grows")) <= rate, "{plan}");
            }
            Err(error) => assert!(names_what_is_possible(&error, plan, rate, keys), "{error}"),
        }
        let draw = |random: &mut SmallRng| random.random::<bool>().then(|| some_keys(random));
        let [capacity, expected, most] = [draw(random), draw(random), draw(random)];
        let limit = random.random::<bool>().then(|| random.random_range(0..200_000));
        let load = random.random::<bool>().then(|| random.random_range(0.70..=0.95));
        let builder = with(builder(rate), load, |builder, load| builder.load_while_growing(load));
        let builder = with(builder, capacity, |builder, keys| builder.capacity(keys));
        let builder = with(builder, expected, |builder, keys| builder.expected_keys(keys));
        let builder = with(builder, most, |builder, keys| builder.max_capacity(keys));
        let builder = with(builder, limit, |builder, bytes| builder.memory_limit(bytes));
        let plan = match (builder.plan(), builder.clone().build()) {
            (Ok(plan), Ok(filter)) => {
                grows_as_planned(random, &plan, &filter, limit);
                plan
            }
            (plan, built) => {
                let error = built.expect_err("it was not built, or not planned");
                assert_eq!(plan.expect_err("it was not built").to_string(), error.to_string());
                return;
            }
        };
        let rate_with = |keys| plan.false_positive_rate_with(keys);
        assert!(plan.capacity >= capacity.unwrap_or(0) && plan.max_capacity >= most, "{plan}");
        assert!(rate_with(expected.or(most).unwrap_or(plan.max_capacity.expect("it grows"))) <= rate, "{plan}");
        if most.or(limit).is_none()
            && let Some(expected) = expected
        {
            assert!(plan.max_capacity >= Some(8 * expected), "{plan}");
        }
    });
}

/// Fills the filter as far as it goes, and empties it again.
fn grows_as_planned(
    random: &mut SmallRng,
    plan: &FilterPlan,
    filter: &GrowableCuckooFilter<Raw, Seeded>,
    limit: Option<usize>,
) {
    is_as_planned(plan, &filter.plan(), &filter.stats(), filter.capacity());
    let limit = limit.unwrap_or(usize::MAX);
    assert!(filter.stats().memory_usage <= limit, "{plan}");
    // As many as fit for sure: up to the capacity at the largest size, or until a limit ends the growth.
    let (threads, most) = (any_threads(random), filter.max_capacity().min(MOST_KEYS));
    match on_threads(threads, most, |key| filter.insert(&scattered(key))) {
        Ok(()) => assert_eq!(filter.len(), most, "{plan}"),
        Err(error @ GrowableInsertError::MemoryLimit { .. }) => {
            assert!(limit < usize::MAX && filter.len() >= filter.capacity(), "{error}: {filter:?}");
        }
        Err(error) => panic!("{plan}: {error}"),
    }
    assert!(filter.stats().memory_usage <= limit, "{plan}");
    let copy = filter.empty_like().expect("memory");
    assert_eq!(copy.absorb(filter), Ok(filter.len() as u64), "{plan}");
    assert_eq!(copy.digest(), filter.digest(), "{plan}");
    assert!((0..most as u64).filter(|&key| copy.remove(&scattered(key))).count() == filter.len() || limit < usize::MAX);
    filter.clear();
    filter.shrink_to_fit();
    assert_eq!(filter.capacity(), plan.capacity, "{plan}");
    if cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        let (kept, page) = (
            filter.stats().memory_usage - plan.memory_usage,
            if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 },
        );
        assert!(kept <= page + 1300, "{kept} bytes more than at first: {plan}");
    }
}

#[test]
fn maplets_keep_what_is_promised() {
    drawn(|random| {
        let (rate, keys, bits) = (any_rate(random), any_keys(random), random.random_range(1..=16));
        let builder = |rate, keys| {
            let builder = CuckooMaplet::<Raw, _>::builder_with_hasher(seeded(7)).value_bits(bits);
            builder.false_positive_rate(rate).capacity(keys)
        };
        match builder(rate, keys).plan() {
            Ok(plan) => assert!(plan.capacity >= keys && plan.max_false_positive_rate <= rate, "{plan}"),
            Err(error) => {
                assert!(names_what_is_possible(&error, |rate, keys| builder(rate, keys).plan(), rate, keys), "{error}");
            }
        }
        let (keys, threads) = (some_keys(random), any_threads(random));
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let maplet = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &maplet.plan(), &maplet.stats(), maplet.capacity());
        let (all, value) = (maplet.capacity(), |key: u64| (key % (1 << bits)) as u16);
        on_threads(threads, all, |key| maplet.insert(&scattered(key), value(key)))
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        assert!((0..all as u64).all(|key| maplet.values(&scattered(key)).contains(value(key))), "{maplet:?}");
        assert_eq!(maplet.len(), all);
    });
}

#[test]
fn expiring_filters_keep_what_is_promised() {
    drawn(|random| {
        let (rate, keys, evicts) = (any_rate(random), any_keys(random), random.random());
        let when_full = if evicts { WhenFull::EvictSoonest } else { WhenFull::Refuse };
        let ticks = match random.random_range(0..4) {
            0 => random.random_range(1..20),
            1 => (1 << random.random_range(1..=16)) - 1,
            _ => random.random_range(1..=65_535),
        };
        let builder = |rate, keys| {
            let builder = ExpiringCuckooFilter::<Raw, _>::builder_with_hasher(seeded(7)).lifetime_in_ticks(ticks);
            builder.false_positive_rate(rate).capacity(keys).when_full(when_full)
        };
        match builder(rate, keys).plan() {
            Ok(plan) => assert!(plan.capacity >= keys && plan.max_false_positive_rate <= rate, "{plan}"),
            Err(error) => {
                assert!(names_what_is_possible(&error, |rate, keys| builder(rate, keys).plan(), rate, keys), "{error}");
            }
        }
        let (keys, threads) = (some_keys(random), any_threads(random));
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let filter = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &filter.plan(), &filter.stats(), filter.capacity());
        let (now, all) = (random.random_range(0..u64::MAX / 2), filter.capacity());
        filter.advance_to(Tick::new(now));
        let end = |key: u64| now + 1 + scattered(key).0 % ticks;
        on_threads(threads, all, |key| filter.insert_until(&scattered(key), Tick::new(end(key))).map(drop))
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        assert!(filter.len() == all && filter.stats().expiry.is_some_and(|expiry| expiry.evicted == 0), "{filter:?}");
        // Neither earlier nor later than asked for. (A false positive is not found by `expires_at` at that tick.)
        let (first, later) = (now + random.random_range(0..=ticks), now + ticks);
        for tick in [first, later] {
            filter.advance_to(Tick::new(tick));
            let live = (0..all as u64).filter(|&key| end(key) > tick);
            assert!(live.clone().all(|key| filter.contains(&scattered(key))), "{filter:?} at {tick}");
            assert_eq!(filter.live_len(), live.count(), "{filter:?} at {tick}");
        }
        let too_late = filter.insert_until(&Raw(1), Tick::new(later + ticks + 1));
        assert!(matches!(too_late, Err(ExpiringInsertError::LifetimeTooLong { .. })), "{too_late:?}");
        assert_eq!(filter.insert_until(&Raw(1), Tick::new(later + ticks)), Ok(true));
    });
}

/// The longest lifetime that was asked for is accepted at any time, whatever the resolution.
#[test]
fn lifetimes_are_as_long_as_asked_for() {
    drawn(|random| {
        let longest = any_time(random);
        let resolution = random.random::<bool>().then(|| any_time(random));
        let builder = ExpiringCuckooFilter::<Raw, _>::builder_with_hasher(seeded(7)).capacity(10).lifetime(longest);
        let builder = with(builder, resolution, |builder, resolution| builder.resolution(resolution));
        let filter = match builder.clone().build() {
            Ok(filter) => filter,
            Err(BuildError::InvalidLifetime { .. }) => {
                assert!(longest.is_zero() || resolution.is_some_and(|part| part.is_zero() || part > longest));
                return;
            }
            Err(BuildError::InvalidTicks { ticks, limit, .. }) => {
                assert!(
                    ticks > limit && resolution.is_some_and(|part| longest > part * limit as u32 - part),
                    "{ticks} > {limit}"
                );
                return;
            }
            Err(BuildError::RateTooLow { value_bits, .. }) => {
                assert!(value_bits > 10, "{value_bits} bits at 0.1%");
                return;
            }
            Err(error) => panic!("{longest:?} by {resolution:?}: {error}"),
        };
        assert_eq!(builder.plan().expect("it was built"), filter.plan());
        filter.advance_to(Tick::new(random.random_range(0..u64::MAX / 2)));
        assert_eq!(filter.insert_until(&Raw(1), Expiry::After(longest)), Ok(true), "{filter:?}");
        assert_eq!(filter.insert_until(&Raw(2), Expiry::After(Duration::ZERO)), Ok(true), "{filter:?}");
    });
}

type Recent = RecentCuckooFilter<Raw, Seeded>;

fn any_tolerance(random: &mut SmallRng) -> f64 {
    *[0.08, 0.08, 0.08, 0.004, 0.008, 0.02, 0.5, 0.999, 0.0039, 1.0, -0.1, f64::NAN].choose(random).expect("not empty")
}

/// The plan, if these settings have one. Otherwise the error names what is possible.
fn plan_of_recent(
    builder: impl Fn(f64, usize) -> RecentBuilder<Raw, Seeded>,
    rate: f64,
    keys: usize,
    tolerance: f64,
) -> Option<FilterPlan> {
    let plan = builder(rate, keys).plan();
    let Err(error) = plan else { return plan.ok() };
    if let BuildError::InvalidTolerance { .. } = error {
        let again = builder(rate, 10).tolerance(0.004).plan();
        assert!(!matches!(again, Err(BuildError::InvalidTolerance { .. })), "{error}");
        assert!(!(0.004..1.0).contains(&tolerance), "{error}");
    } else {
        assert!(names_what_is_possible(&error, |rate, keys| builder(rate, keys).plan(), rate, keys), "{error}");
    }
    None
}

fn evicted(filter: &Recent) -> u64 {
    filter.stats().recent.expect("it is of recent keys").evicted
}

#[test]
fn windows_are_as_long_as_asked_for() {
    drawn(|random| {
        let (rate, keys, tolerance) = (any_rate(random), any_keys(random), any_tolerance(random));
        let builder = |rate, keys| {
            let builder = Recent::builder_with_hasher(seeded(7)).tolerance(tolerance);
            builder.false_positive_rate(rate).last(keys)
        };
        // Below 0.008 some numbers cannot be divided so.
        let most = |keys: usize| (keys as f64 * (1.0 + tolerance.max(0.008))).max(1.0);
        if let Some(plan) = plan_of_recent(builder, rate, keys, tolerance) {
            let Some(Window::Keys { at_least, at_most, .. }) = plan.window else { panic!("{plan}") };
            assert!(at_least >= keys as u64 && plan.capacity as u64 >= at_most, "{plan}");
            assert!(at_most as f64 <= most(keys) && plan.max_false_positive_rate <= rate, "{plan}");
        }
        let (keys, threads) = (some_keys(random).min(3000), any_threads(random));
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let filter = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &filter.plan(), &filter.stats(), filter.capacity());
        let Window::Keys { at_least, at_most, .. } = filter.window() else { panic!("{plan}") };
        assert!(at_most as f64 <= most(keys), "{plan}");
        // Every key is found until `at_least` others have come. (One that is taken for a seen one does not count.)
        let mut new = Vec::new();
        for key in 0..2 * at_most + 10 {
            if filter.insert(&scattered(key)) {
                new.push(key);
            }
            let held = &new[new.len().saturating_sub(at_least as usize)..];
            assert!(held.first().is_none_or(|&oldest| filter.contains(&scattered(oldest))), "{filter:?} after {key}");
            if key % 97 == 0 {
                assert!(held.iter().all(|&key| filter.contains(&scattered(key))), "{filter:?} after {key}");
                assert!(filter.recent_len() as u64 <= at_most, "{filter:?} after {key}");
            }
        }
        assert_eq!(evicted(&filter), 0, "{filter:?}");
        // However many threads insert, there is room. In each group, each other thread may add one key more.
        filter.clear();
        let count = (3 * at_most as usize + 1000).min(9000);
        on_threads(threads, count, |key| Ok::<_, ()>(_ = filter.insert(&scattered(key + (1 << 40)))))
            .expect("no error");
        let groups = at_least / (at_most + 1 - at_least) + 1;
        assert_eq!(evicted(&filter), 0, "{threads} threads: {filter:?}");
        assert!(filter.recent_len() as u64 <= at_most + groups * (threads as u64 - 1), "{threads} threads: {filter:?}");
    });
}

#[test]
fn keys_are_found_for_the_time_that_was_asked_for() {
    drawn(|random| {
        let (rate, keys, tolerance) = (any_rate(random), any_keys(random), any_tolerance(random));
        let (duration, clock, threads) = (any_time(random), Clock::any(random), any_threads(random));
        let builder = |rate, keys| {
            let builder = Recent::builder_with_hasher(seeded(7)).tolerance(tolerance).clock(clock.read());
            builder.false_positive_rate(rate).within(duration, keys)
        };
        if duration.is_zero() {
            assert_eq!(builder(0.001, 10).tolerance(0.08).plan(), Err(BuildError::ZeroDuration));
            return;
        }
        plan_of_recent(builder, rate, keys, tolerance);
        let keys = some_keys(random).min(3000);
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let filter = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &filter.plan(), &filter.stats(), filter.capacity());
        let Window::Time { at_least, at_most, .. } = filter.window() else { panic!("{plan}") };
        let longest = Duration::from_nanos(u64::MAX);
        assert!(at_least >= duration.min(longest) && plan.capacity >= keys, "{plan}");
        // (Numbers of 64 bits with a fraction are exact to a billionth at least.)
        let most = duration.mul_f64(1.0 + tolerance + 1e-9).max(duration + Duration::from_nanos(1_999_999));
        assert!(at_most <= most.min(longest), "{plan} for {duration:?}");
        if at_most > longest / 8 {
            return; // the clock stands still before the end
        }
        // As many keys as there is room for come in any time of a window, on any number of threads, at two moments.
        let (all, moment) = (filter.capacity(), at_most.mul_f64(random.random()));
        let first = random.random_range(0..=all);
        let insert = |keys: std::ops::Range<usize>, time| {
            clock.set(time);
            on_threads(threads, keys.len(), |key| {
                let key = scattered(key + keys.start as u64);
                filter.insert_or_renew(&key);
                if filter.contains(&key) { Ok(()) } else { Err(key) }
            })
            .unwrap_or_else(|key| panic!("{key:?} is not there: {filter:?}"));
        };
        let mut begin = Duration::from_nanos(random.random_range(0..1 << 40));
        for round in 0..3 {
            let keys = round * all;
            insert(keys..keys + first, begin);
            insert(keys + first..keys + all, begin + moment);
            clock.set(begin + at_least.max(moment));
            if moment <= at_least {
                let found = (keys..keys + first).all(|key| filter.contains(&scattered(key as u64)));
                assert!(found, "{at_least:?} after they came: {filter:?}");
            }
            clock.set(begin + moment + at_least);
            let found = (keys + first..keys + all).all(|key| filter.contains(&scattered(key as u64)));
            assert!(found, "{at_least:?} after they came: {filter:?}");
            begin += at_most.max(moment + at_least);
        }
        assert_eq!((evicted(&filter), filter.stats().inserts_failed), (0, 0), "{threads} threads: {filter:?}");
    });
}

/// A filter with another window has the same table, and takes over all keys that are within its window.
#[test]
fn another_window_is_as_long_as_asked_for() {
    drawn(|random| {
        let (rate, tolerance, threads) = (any_rate(random), any_tolerance(random), any_threads(random));
        let [keys, room, other] = [(); 3].map(|()| some_keys(random).min(3000));
        let builder = || {
            let builder = Recent::builder_with_hasher(seeded(7)).tolerance(tolerance).false_positive_rate(rate);
            builder.last(keys).room_for(room)
        };
        let Ok(filter) = builder().build() else { return };
        let new = match filter.empty_like_last(other) {
            Ok(new) => new,
            Err(error) => {
                let BuildError::NoRoomForWindow { keys: asked, needed, capacity, .. } = error else {
                    panic!("{error}")
                };
                assert!(asked == other && needed > capacity && capacity == filter.capacity(), "{error}");
                assert!(other > keys.max(room), "{error}: {filter:?}, with room for {room}");
                // What the error advises.
                assert!(error.to_string().contains(&format!(".room_for({other})")), "{error}");
                let roomy = builder().room_for(other).build();
                roomy.map_or_else(
                    |error| assert!(matches!(error, BuildError::RateTooLow { .. })),
                    |roomy| {
                        assert!(roomy.window() == filter.window() && roomy.empty_like_last(other).is_ok(), "{roomy:?}");
                    },
                );
                return;
            }
        };
        assert_eq!((new.plan().layout, new.capacity(), new.len()), (filter.plan().layout, filter.capacity(), 0));
        let [Window::Keys { at_least, at_most, .. }, Window::Keys { at_least: of_new, at_most: most_of_new, .. }] =
            [filter.window(), new.window()]
        else {
            panic!("{filter:?}, {new:?}")
        };
        assert!(of_new >= other as u64 && most_of_new <= 2 * other.max(1) as u64, "{new:?} for {other}");
        let new_keys: Vec<u64> = (0..2 * at_most).filter(|&key| filter.insert(&scattered(key))).collect();
        let added = new.unite(&filter).expect("memory");
        let is_found = |key: &&u64| new.contains(&scattered(**key));
        let both = at_least.min(of_new) as usize;
        assert!(new_keys.iter().rev().take(both).all(|key| is_found(&key)), "{filter:?} into {new:?}");
        assert!(added <= filter.recent_len() as u64 && new.recent_len() as u64 == added, "{added}: {new:?}");
        // The keys that it has taken over, and those that come to it.
        on_threads(threads, of_new as usize, |key| Ok::<_, ()>(_ = new.insert(&scattered(key + (1 << 40)))))
            .expect("no error");
        assert_eq!(evicted(&new), 0, "{threads} threads: {filter:?} into {new:?}");
    });
}

type Limiter = CuckooRateLimiter<Raw, Seeded>;

/// A limit, a period and a burst: often the smallest and the largest ones.
fn any_limit(random: &mut SmallRng) -> (u32, Duration, u32) {
    let any = |random: &mut SmallRng| random.random::<u32>() >> random.random_range(0..32);
    let burst = any(random) >> random.random_range(0..16);
    (any(random), any_time(random), burst)
}

/// Whether the error is about the limit, and names one that is possible.
fn names_a_possible_limit(
    error: QuotaError,
    (limit, period, burst): (u32, Duration, u32),
    quota: impl Fn(u32, Duration, u32) -> Result<Quota, QuotaError>,
) {
    let is_possible = |result: Result<Quota, QuotaError>| {
        // Another limit may need a smaller burst.
        assert!(matches!(result, Ok(_) | Err(QuotaError::BurstTooLarge { .. })), "{error}, and then {result:?}");
    };
    match error {
        QuotaError::Invalid { .. } => {
            let year = Duration::from_secs(365 * 86_400);
            assert!(limit == 0 || burst == 0 || period.is_zero() || period > 500 * year, "{error}");
        }
        QuotaError::TooFast { shortest, .. } => {
            assert!(shortest > period / limit, "{error}");
            is_possible(quota(1, shortest, burst));
        }
        QuotaError::TooSlow { longest, .. } => {
            assert!(longest < period / limit + Duration::from_nanos(1), "{error}");
            is_possible(quota(1, longest, 1));
        }
        QuotaError::BurstTooLarge { largest, .. } => {
            assert!(largest < burst.into(), "{error}");
            if let Ok(largest @ 1..) = largest.try_into() {
                assert_eq!(quota(limit, period, largest).map(|quota| quota.burst()), Ok(largest), "{error}");
            }
        }
        QuotaError::Inexact { interval, .. } => {
            assert_eq!(quota(1, interval, 1).map(|quota| quota.interval()), Ok(interval), "{error}");
        }
        QuotaError::ZeroTicks => {}
        _ => panic!("{error}"),
    }
}

/// The time per request is the one that was asked for, rounded up to a whole number of ticks, which may each have been
/// rounded down by less than a nanosecond.
fn is_as_limited(quota: &Quota, (limit, period, burst): (u32, Duration, u32), sixteenths: u128) {
    let (interval, asked) = (quota.interval().as_nanos() * u128::from(limit), period.as_nanos());
    let ticks = u128::from(quota.ticks_per_request()) * u128::from(limit);
    assert!(
        interval + ticks >= asked && interval <= asked + asked * sixteenths / 16,
        "{quota} for {limit} per {period:?}"
    );
    assert_eq!((quota.burst(), quota.tick() * quota.ticks_per_request() as u32), (burst, quota.interval()));
    assert!(quota.tick() >= Duration::from_micros(10), "{quota}");
}

#[test]
fn limiters_keep_what_is_promised() {
    drawn(|random| {
        let (rate, keys, limits) = (any_rate(random), any_keys(random), any_limit(random));
        let ticks = random.random::<bool>().then(|| random.random::<u32>() >> random.random_range(0..=32).min(31));
        let (clock, threads) = (Clock::any(random), any_threads(random));
        let when_full = if random.random() { WhenFull::EvictSoonest } else { WhenFull::Refuse };
        let builder = |rate, keys, (limit, period, burst): (u32, Duration, u32)| {
            let builder = Limiter::builder_with_hasher(seeded(7)).allow(limit, period).when_full(when_full);
            let builder = if burst == limit { builder } else { builder.burst(burst) };
            let builder = builder.false_positive_rate(rate).capacity(keys).clock(clock.read());
            with(builder, ticks, |builder, ticks| builder.ticks_per_request(ticks))
        };
        match builder(rate, keys, limits).plan() {
            Ok(plan) => {
                assert!(plan.capacity >= keys && plan.max_false_positive_rate <= rate, "{plan}");
                assert_eq!(
                    (plan.limits.map(|limits| limits.burst()), plan.when_full),
                    (Some(limits.2), Some(when_full))
                );
            }
            Err(BuildError::InvalidQuota { error, .. }) => {
                let limits_of = |limit, period, burst| match builder(0.9, 10, (limit, period, burst)).plan() {
                    Ok(plan) => Ok(plan.limits.expect("a limiter's")),
                    Err(BuildError::InvalidQuota { error, .. }) => Err(error),
                    Err(error) => panic!("{error}"),
                };
                names_a_possible_limit(error, limits, limits_of);
                assert!(error != QuotaError::ZeroTicks || ticks == Some(0), "{error}");
            }
            Err(error) => {
                let plan = |rate, keys| builder(rate, keys, limits).plan();
                assert!(names_what_is_possible(&error, plan, rate, keys), "{error}");
            }
        }
        let keys = some_keys(random).min(3000);
        let Ok(plan) = builder(rate, keys, limits).plan() else { return };
        let limiter = builder(rate, keys, limits).build().expect("as planned");
        is_as_planned(&plan, &limiter.plan(), &limiter.stats(), limiter.capacity());
        let own = limiter.limits();
        is_as_limited(&own, limits, 0);
        assert!(ticks.is_none_or(|ticks| own.ticks_per_request() == u64::from(ticks)), "{own}");
        assert!(ticks.is_some() || own.ticks_per_request() <= 4, "{own}");

        // Each of as many keys as there is room for has its whole burst, whichever thread asks.
        let all = limiter.capacity();
        let looks_alike = rate > 1e-6;
        let begin = Duration::from_nanos(random.random_range(0..1 << 40));
        for round in 0..2 {
            // Exactly when the debts of the first round are repaid.
            let Some(time) = own.interval().checked_mul(round * own.burst()).map(|time| begin + time) else { return };
            if time > Duration::from_secs(20 * 365 * 86_400) {
                return; // the clock stands still before that
            }
            clock.set(time);
            on_threads(threads, all, |key| match limiter.check_n(&scattered(key), own.burst()) {
                Err(limited) if !looks_alike || limited.reason() != LimitReason::Limit => Err(limited),
                _ => Ok(()),
            })
            .unwrap_or_else(|limited| panic!("{threads} threads: {limited}: {limiter:?}"));
            for key in (0..all as u64).step_by(1 + all / 50) {
                let limited = limiter.check(&scattered(key)).expect_err("the burst is used up");
                let (reason, after) = (limited.reason(), limited.retry_after());
                assert!(
                    reason == LimitReason::Limit && !after.is_zero() && after <= own.interval(),
                    "{limited}: {limiter:?}"
                );
                let left = limiter.peek(&scattered(key));
                assert!(left.remaining == 0 && left.next_after == after, "{left:?} {limited}: {limiter:?}");
            }
        }
        assert_eq!(limiter.stats().limiter.expect("a limiter's").evicted, 0, "{threads} threads: {limiter:?}");
        assert!(limiter.len() <= all && limiter.stats().false_positive_rate <= rate, "{limiter:?}");

        // Another quota of the same limiter, for a key that owes nothing.
        limiter.clear();
        let any = any_limit(random);
        let near = (limits.0.saturating_mul(random.random_range(1..5)), limits.1, limits.2 / random.random_range(1..5));
        let asked = if random.random() { near } else { any };
        match limiter.quota(asked.0, asked.1, asked.2) {
            Ok(quota) => {
                is_as_limited(&quota, asked, 1);
                assert_eq!(limiter.check_n_with(&Raw(1), quota.burst(), &quota), Ok(()), "{quota} of {limiter:?}");
                let limited = limiter.check_with(&Raw(1), &quota).expect_err("the burst is used up");
                assert!(limited.retry_after() <= quota.interval(), "{limited}: {quota} of {limiter:?}");
            }
            Err(error) => {
                names_a_possible_limit(error, asked, |limit, period, burst| limiter.quota(limit, period, burst))
            }
        }
    });
}
