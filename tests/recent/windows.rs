//! A filter takes over the keys of another one with another window.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use concurrent_cuckoo_filter::{AbsorbError, BuildError, Window};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::seeded;
use crate::{Clock, Filter, RATE, builder, held, last, stats};

/// By how many keys a group of the filter has more than one.
fn group(filter: &Filter) -> u64 {
    let (at_least, at_most) = held(filter);
    at_most - at_least + 1
}

/// At least how long a filter of a time holds a key, and at most.
fn time_held(filter: &Filter) -> (Duration, Duration) {
    let Window::Time { at_least, at_most, .. } = filter.window() else { panic!("it goes by the time") };
    (at_least, at_most)
}

/// Each key is found for as long as the new window says, by how many keys have come after it in both filters.
#[test]
fn the_last_keys_are_found_by_any_other_window() {
    for seed in 0..300 {
        let mut random = SmallRng::seed_from_u64(seed);
        let most = random.random_range(2..2000);
        let [window, new_window] = [(); 2].map(|()| random.random_range(1..=most));
        let tolerance = [0.08, 0.02, 0.5][random.random_range(0..3)];
        let old = builder().last(window).room_for(2 * most).tolerance(tolerance).false_positive_rate(1e-6);
        let old = old.build().unwrap();
        let new = old.empty_like_last(new_window).unwrap();
        let (at_least, at_most) = held(&new);
        let what = format!("seed {seed}: {} to {}", old.window(), new.window());
        assert!(at_least >= new_window as u64 && at_most <= 2 * new_window as u64, "{what}");
        assert_eq!(new.plan().layout, old.plan().layout, "{what}");

        // In the order in which they were counted. Repeated keys make no difference.
        let mut counted = Vec::new();
        let mut insert = |filter: &Filter, counted: &mut Vec<u64>| {
            let key = counted.len() as u64;
            assert!(filter.insert(&key), "{what}: {key} is new");
            counted.push(key);
            filter.insert(&(key - random.random_range(0..window.min(new_window) as u64).min(key)));
        };
        for _ in 0..random_below(seed, 3 * window) {
            insert(&old, &mut counted);
        }
        let moved = counted.len() as u64;
        let held_by_old = counted.iter().filter(|key| old.contains(*key)).count() as u64;
        let added = new.unite(&old).unwrap();
        assert!(added <= held_by_old && added >= moved.min(held(&old).0).min(at_least), "{what}: {added}");
        assert_eq!(new.unite(&old).unwrap(), 0, "{what}: nothing has come since");
        for _ in 0..random_below(seed + 1, 3 * new_window) {
            insert(&new, &mut counted);
        }
        for (nth, key) in counted.iter().enumerate() {
            let (nth, len) = (nth as u64, counted.len() as u64);
            let after = len - 1 - nth;
            let was_there = nth >= moved || moved - 1 - nth < held(&old).0;
            if was_there && after < at_least {
                assert!(new.contains(key), "{what}: {after} after key {nth} of {len}, {moved} moved");
            }
            if after > at_most + group(&old) {
                assert!(!new.contains(key), "{what}: {after} after key {nth} of {len}, {moved} moved");
            }
        }
        assert_eq!(stats(&new).evicted, 0, "{what}");
    }
}

fn random_below(seed: u64, most: usize) -> usize {
    SmallRng::seed_from_u64(seed ^ 0x5eed).random_range(1..=most)
}

/// The same by the time, with a clock of another origin for the new filter.
#[test]
fn the_keys_of_a_time_are_found_by_any_other_window() {
    for seed in 0..200 {
        let mut random = SmallRng::seed_from_u64(seed);
        let [window, new_window] = [(); 2].map(|()| Duration::from_micros(random.random_range(1_000..20_000_000)));
        let (time, other_time) = (Clock::default(), Clock::default());
        let origin = Duration::from_nanos(random.random());
        let set = |now: Duration| {
            time.set(now);
            other_time.set(origin.saturating_add(now).min(Duration::from_nanos(u64::MAX)));
        };
        let origin_is_late = origin > Duration::from_nanos(u64::MAX / 2);
        if origin_is_late {
            continue;
        }
        set(Duration::ZERO);
        let old = builder().within(window, 2000).clock(time.read()).build().unwrap();
        // Its clock begins when the filter is made, or later.
        let (mut now, mut came) = (Duration::ZERO, Vec::new());
        let step = |random: &mut SmallRng, window: Duration| window.mul_f64(random.random_range(0.0..0.01));
        for key in 0..random.random_range(1..400u64) {
            now += step(&mut random, window);
            set(now);
            assert!(old.insert(&key));
            came.push(now);
        }
        now += step(&mut random, window);
        set(now);
        let new = old.empty_like_within(new_window).unwrap().with_clock(other_time.read());
        let what = format!("seed {seed}: {} to {}", old.window(), new.window());
        let ((old_least, old_most), (at_least, at_most)) = (time_held(&old), time_held(&new));
        let moved = now;
        let added = new.unite(&old).unwrap();
        assert!(added <= old.recent_len() as u64, "{what}");
        assert_eq!(new.unite(&old).unwrap(), 0, "{what}: nothing has come since");
        for _ in 0..8 {
            for (key, &came) in came.iter().enumerate() {
                let age = now - came;
                if moved - came < old_least && age < at_least {
                    assert!(new.contains(&(key as u64)), "{what}: {age:?} after key {key}");
                }
                if age >= at_most + (old_most - old_least) {
                    assert!(!new.contains(&(key as u64)), "{what}: {age:?} after key {key}");
                }
            }
            now += new_window.mul_f64(random.random_range(0.0..0.25));
            set(now);
        }
        assert_eq!(stats(&new).evicted, 0, "{what}");
    }
}

/// What a filter takes over does not count: its own keys stay as long as they would have.
#[test]
fn keys_that_are_taken_over_do_not_push_others_out() {
    let old = builder().last(1000).room_for(3000).build().unwrap();
    let new = old.empty_like_last(1000).unwrap();
    for key in 0..1000 {
        old.insert(&key);
        new.insert(&(key + 5000));
    }
    assert_eq!(new.unite(&old).unwrap(), 1000);
    assert!((0..1000).chain(5000..6000).all(|key| new.contains(&key)));
    // Both have this one, and the other filter's came later.
    old.insert(&5000);
    for key in 6000..6900 {
        new.insert(&key);
    }
    new.unite(&old).unwrap();
    let (at_least, _) = held(&new);
    for key in 7000..7000 + at_least - 1 {
        new.insert(&key);
    }
    assert!(new.contains(&5000) && !new.contains(&5001), "it was renewed");
    // Wherever in a group it happens.
    for keys in 1000..1000 + group(&new) {
        let new = old.empty_like_last(1000).unwrap();
        let of_new = |key| 5000 + key;
        (0..keys).for_each(|key| _ = new.insert(&of_new(key)));
        new.unite(&old).unwrap();
        for key in keys..keys + at_least - 1 {
            new.insert(&of_new(key));
        }
        assert!(new.contains(&of_new(keys - 1)), "after {keys} keys");
    }
}

/// A filter that unites with itself, or with a copy, is as it was.
#[test]
fn a_union_with_itself_changes_nothing() {
    let clock = Clock::default();
    let seen = [last(700), builder().within(Duration::from_secs(1), 2000).clock(clock.read()).build().unwrap()];
    for filter in seen {
        clock.set(Duration::ZERO);
        let twin = filter.empty_like().unwrap();
        let insert = |key| {
            clock.set(Duration::from_micros(700 * key));
            filter.insert(&key);
            twin.insert(&key);
        };
        (0..1500).for_each(insert);
        let (len, copy) = (filter.recent_len(), filter.empty_like().unwrap());
        assert_eq!((filter.unite(&filter), copy.unite(&filter)), (Ok(0), Ok(len as u64)));
        assert_eq!((filter.recent_len(), copy.recent_len(), copy.window()), (len, len, filter.window()));
        for key in 1500..3500 {
            insert(key);
            assert_eq!(filter.recent_len(), twin.recent_len(), "none stays for longer, and none leaves earlier");
        }
        assert!((0..1500).all(|key| !filter.contains(&key)));
    }
}

/// A full filter keeps the keys that stay longest, whichever filter they come from.
#[test]
fn a_full_filter_evicts_what_leaves_first() {
    for old_is_older in [false, true] {
        let clock = Clock::default();
        let second = |second| clock.set(Duration::from_secs(second));
        let old = builder().within(Duration::from_secs(100), 2000).clock(clock.read()).build().unwrap();
        let new = old.empty_like().unwrap();
        let capacity = old.capacity() as u64;
        let (first, later) = if old_is_older { (&old, &new) } else { (&new, &old) };
        for key in 0..capacity {
            second(30 * key / capacity);
            first.insert(&key);
        }
        second(70);
        (capacity..2 * capacity).for_each(|key| _ = later.insert(&key));
        assert_eq!((stats(&old).evicted, stats(&new).evicted), (0, 0));
        new.unite(&old).unwrap();
        let missing = (0..2 * capacity).filter(|key| !new.contains(key));
        let missing: HashSet<u64> = missing.collect();
        assert!(missing.len() as u64 >= capacity / 2 && new.len() <= new.plan().slots);
        assert!(missing.iter().all(|&key| key < capacity), "older keys go first: {old_is_older}");
        let figures = (new.stats().inserts_failed, stats(&new).evicted, missing.len() as u64);
        assert_eq!((figures.0, figures.1), (0, figures.2), "each of them is counted");
        assert!(stats(&new).evicted_early_by > 0.2);
    }
}

/// In a filter full of new keys, an older one that finds no room displaces none of them.
#[test]
fn an_older_key_displaces_none_of_new_keys() {
    let clock = Clock::default();
    let old = builder().within(Duration::from_secs(100), 2000).clock(clock.read()).build().unwrap();
    let new = old.empty_like().unwrap();
    let capacity = old.capacity() as u64;
    (0..capacity).for_each(|key| _ = old.insert(&key));
    clock.set(Duration::from_secs(50));
    (capacity..4 * capacity).for_each(|key| _ = new.insert(&key));
    let there: Vec<u64> = (capacity..4 * capacity).filter(|key| new.contains(key)).collect();
    assert!(stats(&new).evicted > 0 && there.len() as u64 >= capacity);
    let added = new.unite(&old).unwrap();
    assert!(there.iter().all(|key| new.contains(key)) && added < capacity / 10, "{added}");
}

/// While other threads insert, no key of the old filter is new again, and of the threads that race, one gets each new key.
#[test]
fn no_key_is_new_again_while_filters_change_places() {
    const THREADS: u64 = 3;
    for seed in 0..20 {
        let old = builder().last(6000).room_for(12_000).build().unwrap();
        for key in 0..3000 {
            assert!(old.insert(&key));
        }
        let new = old.empty_like_last(8000).unwrap();
        let both = RwLock::new(true);
        let (told_new, next) = (Mutex::new(Vec::new()), AtomicU64::new(3000));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (old, new, both, told_new, next) = (&old, &new, &both, &told_new, &next);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed << 8 | thread);
                    for _ in 0..1000 {
                        // One of the old filter, or one that two threads bring.
                        let key = if random.random() {
                            random.random_range(0..3000)
                        } else {
                            next.fetch_add(1, Ordering::Relaxed) / 2 + 1500
                        };
                        let asks_both = both.read().unwrap();
                        let is_new = if *asks_both {
                            !old.contains(&key) && new.insert(&key) && old.insert(&key)
                        } else {
                            new.insert(&key)
                        };
                        if is_new {
                            told_new.lock().unwrap().push(key);
                        }
                    }
                });
            }
            scope.spawn(|| {
                let added = new.unite(&old).unwrap();
                assert!(added <= 3000);
                *both.write().unwrap() = false;
            });
        });
        let told_new = told_new.into_inner().unwrap();
        let distinct: HashSet<u64> = told_new.iter().copied().collect();
        assert_eq!(distinct.len(), told_new.len(), "seed {seed}: a key is new once");
        assert!(told_new.iter().all(|&key| key >= 3000), "seed {seed}: {:?}", told_new.iter().min());
        assert!((0..3000).chain(told_new).all(|key| new.contains(&key)), "seed {seed}");
    }
}

#[test]
fn filters_that_cannot_be_united_say_why_and_what_to_do() {
    let seen = last(1000);
    seen.insert(&1);
    let error = |other: &Filter| {
        let error = seen.unite(other).unwrap_err();
        assert!(seen.contains(&1) && seen.recent_len() == 1, "nothing has changed");
        (error.clone(), error.to_string())
    };
    let other_hasher = Filter::builder_with_hasher(seeded(2)).false_positive_rate(RATE).last(1000).build().unwrap();
    assert_eq!(error(&other_hasher).0, AbsorbError::Hasher);
    let (larger, says) = error(&last(5000));
    assert!(
        matches!(larger, AbsorbError::Layout { .. })
            && says.contains("for another window, build one by empty_like_last or empty_like_within")
            && says.contains("insert into both"),
        "{says}"
    );
    let within = seen.empty_like_within(Duration::from_secs(60)).unwrap();
    let (other_unit, says) = error(&within);
    assert!(matches!(other_unit, AbsorbError::Window { .. }), "{other_unit:?}");
    let named = says.contains(&seen.window().to_string()) && says.contains(&within.window().to_string());
    assert!(named && says.contains("build both with last or both with within"), "{says}");

    assert_eq!(seen.empty_like_within(Duration::ZERO).unwrap_err(), BuildError::ZeroDuration);
    let too_many = seen.empty_like_last(2000).unwrap_err();
    assert!(matches!(too_many, BuildError::NoRoomForWindow { .. }), "{too_many:?}");
    assert!(too_many.to_string().contains(".room_for(2000)"), "{too_many}");
    let roomy = builder().last(1000).room_for(2000).build().unwrap();
    assert_eq!(roomy.window(), seen.window());
    assert!(roomy.empty_like_last(2000).unwrap().insert(&1));
    // There is room for every shorter window. (Some with the finest groups would need more.)
    let roomy = builder().last(3).room_for(99).build().unwrap();
    for keys in 0..=99 {
        let Window::Keys { at_least, at_most, .. } = roomy.empty_like_last(keys).unwrap().window() else { panic!() };
        assert!(at_least >= keys as u64 && at_most <= (keys * 5 / 4).max(1) as u64, "{at_most} for {keys}");
    }
    let large = Filter::builder_with_hasher(seeded(1)).last(1000).room_for(usize::MAX);
    let BuildError::CapacityTooLarge { capacity: usize::MAX, largest, .. } = large.plan().unwrap_err() else {
        panic!()
    };
    assert!(largest > 1_000_000 && large.room_for(largest).plan().is_ok(), "the number that it names is possible");
}

/// A filter that was loaded takes another window, as a program does whose configuration has changed.
#[test]
#[cfg(feature = "snapshot")]
fn a_loaded_filter_gets_another_window() {
    let seen = last(1000);
    for key in 0..1500 {
        seen.insert(&key);
    }
    let mut bytes = Vec::new();
    seen.save(&mut bytes).unwrap();
    let loaded = Filter::load(&*bytes, seeded(1), 1 << 20).unwrap();
    let shorter = loaded.empty_like_last(300).unwrap();
    shorter.unite(&loaded).unwrap();
    assert!((1200..1500).all(|key| shorter.contains(&key)));
    let kept = (0..1500).filter(|key| shorter.contains(key)).count() as u64;
    assert!(kept <= held(&shorter).1 + group(&loaded), "{kept}");
}
