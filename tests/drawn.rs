//! Draws the settings of each builder, often the smallest or the largest ones, and checks what their documentation promises:
//! settings are accepted or the error names what is possible, a filter is as its plan says, and it takes as many keys as
//! its capacity, from 1 to 16 threads.
//!
//! `CCF_DRAWN=100000 cargo test --all-features --test drawn` draws as many of each. A failure prints its seed.

mod support;

use std::fmt::Debug;
use std::time::Duration;
use std::{env, thread};

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringCuckooFilter, ExpiringInsertError, Expiry,
    FilterPlan, GrowableCuckooFilter, GrowableInsertError, RecentCuckooFilter, Stats, Tick, WhenFull, Window,
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
        let any_time = |random: &mut SmallRng| {
            Duration::from_nanos(random.random::<u64>() >> random.random_range(0..64))
                .saturating_mul(random.random_range(1..1000))
        };
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

#[test]
fn windows_are_as_long_as_asked_for() {
    drawn(|random| {
        let (rate, keys) = (any_rate(random), any_keys(random));
        let tolerance = *[0.08, 0.08, 0.004, 0.02, 0.5, 0.999].choose(random).expect("not empty");
        let builder = |rate, keys| {
            let builder = RecentCuckooFilter::<Raw, _>::builder_with_hasher(seeded(7)).tolerance(tolerance);
            builder.false_positive_rate(rate).last(keys)
        };
        match builder(rate, keys).plan() {
            Ok(plan) => {
                let Some(Window::Keys { at_least, at_most, .. }) = plan.window else { panic!("{plan}") };
                assert!(at_least >= keys as u64 && plan.capacity as u64 >= at_most, "{plan}");
                assert!(plan.max_false_positive_rate <= rate, "{plan}");
            }
            Err(error) => {
                assert!(names_what_is_possible(&error, |rate, keys| builder(rate, keys).plan(), rate, keys), "{error}");
            }
        }
        let keys = some_keys(random).min(3000);
        let Ok(plan) = builder(rate, keys).plan() else { return };
        let filter = builder(rate, keys).build().expect("as planned");
        is_as_planned(&plan, &filter.plan(), &filter.stats(), filter.capacity());
        let Window::Keys { at_least, at_most, .. } = filter.window() else { panic!("{plan}") };
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
        assert_eq!(filter.stats().recent.expect("it is of recent keys").evicted, 0, "{filter:?}");
    });
}
