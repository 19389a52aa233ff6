//! The keys of a time.

use std::time::Duration;

use concurrent_cuckoo_filter::Window;

use crate::{Filter, builder, stats, within};

const MINUTE: Duration = Duration::from_secs(60);

/// How long a filter holds a key at least, and at most.
fn held(filter: &Filter) -> (Duration, Duration) {
    let Window::Time { at_least, at_most, .. } = filter.window() else { panic!("it goes by the time") };
    (at_least, at_most)
}

#[test]
fn a_key_is_found_for_the_whole_time_and_a_group_more_at_most() {
    for millis in [1, 2, 13, 14, 100, 60_000, 86_400_000_000] {
        let duration = Duration::from_millis(millis);
        for nth in 0..26 {
            let (filter, clock) = within(duration, 100);
            let (at_least, at_most) = held(&filter);
            assert!(at_least >= duration && at_least < duration + Duration::from_millis(1), "{at_least:?}");
            assert_eq!(at_most - at_least, (duration / 13).max(Duration::from_millis(1)).max(at_most - at_least));
            // At each part of a group's time.
            let start = duration * nth / 26;
            clock.set(start);
            assert!(filter.insert(&7));
            clock.set(start + at_least);
            assert!(filter.contains(&7) && !filter.insert(&7), "{at_least:?} after {start:?}");
            clock.set(start + at_most);
            assert!(!filter.contains(&7), "{at_most:?} after {start:?}");
            assert!(filter.insert(&7), "it has expired, so it is new");
        }
    }
}

/// As long as no more keys come than there is room for, in whatever bursts, none goes early.
#[test]
fn bursts_that_have_room_make_no_key_go_early() {
    let (filter, clock) = within(MINUTE, 14_000);
    let mut key = 0;
    for minute in 0..20u32 {
        // All keys of a minute come in one second, each time in another.
        clock.set(65 * minute * Duration::from_secs(1) + Duration::from_secs(u64::from(minute % 5)));
        let first = key;
        for _ in 0..filter.capacity() / 2 {
            assert!(filter.insert(&key), "{key}");
            key += 1;
        }
        assert!((first..key).all(|key| filter.contains(&key)));
    }
    assert_eq!((stats(&filter).evicted, stats(&filter).evicted_early_by), (0, 0.0));
}

#[test]
fn more_keys_than_there_is_room_for_make_the_oldest_go_early_and_none_fail() {
    let (filter, clock) = within(MINUTE, 5_000);
    // Three times as many.
    let (mut key, per_second) = (0, 250);
    for second in 0..300 {
        clock.set(Duration::from_secs(second));
        for _ in 0..per_second {
            assert!(filter.insert(&key) && filter.contains(&key));
            key += 1;
        }
    }
    let first = (0..key).rev().find(|key| !filter.contains(key)).expect("the first have gone") + 1;
    assert!(key - first > 4_000, "{} keys are left", key - first);
    assert_eq!(filter.stats().inserts_failed, 0);
    assert!(stats(&filter).evicted > 0 && stats(&filter).expired == 0, "{:?}", stats(&filter));
    assert!((0.5..0.9).contains(&stats(&filter).evicted_early_by), "{:?}", stats(&filter));
    // When the rush is over, keys have their whole time again.
    clock.set(Duration::from_secs(1000));
    assert!(filter.insert(&(1 << 40)));
    clock.set(Duration::from_secs(1060));
    assert!(filter.contains(&(1 << 40)) && filter.recent_len() == 1);
}

/// More keys come in one moment than the whole filter has room for. No group is older than that of the newest keys, so
/// single keys have to go.
#[test]
fn a_flood_within_one_moment_never_fails() {
    let (filter, clock) = within(MINUTE, 1_000);
    clock.set(Duration::from_secs(30));
    for key in 0..10_000 {
        assert!(filter.insert(&key) && filter.contains(&key), "{key}");
    }
    let found = (0..10_000).filter(|key| filter.contains(key)).count();
    assert!((filter.capacity()..=filter.plan().slots).contains(&found), "{found}");
    assert_eq!((filter.len(), filter.stats().inserts_failed), (found, 0));
    let stats = stats(&filter);
    assert_eq!((stats.evicted as usize, stats.evicted_early_by), (10_000 - found, 1.0));
    clock.set(Duration::from_secs(90));
    assert!(filter.contains(&9_999));
    clock.set(Duration::from_secs(95));
    assert_eq!((filter.recent_len(), filter.contains(&9_999)), (0, false));
}

#[test]
fn a_renewed_key_has_its_whole_time_again() {
    let (filter, clock) = within(MINUTE, 100);
    assert!(filter.insert_or_renew(&1) && filter.insert(&2));
    let mut last = 0;
    for second in 1..300 {
        clock.set(Duration::from_secs(second));
        assert!(!filter.insert_or_renew(&1), "second {second}");
        if filter.insert(&2) {
            assert!((61..=65).contains(&(second - last)), "from second {last} to {second}");
            last = second;
        }
    }
    assert!(last > 230);
    clock.set(Duration::from_secs(299 + 60));
    assert!(filter.contains(&1));
}

/// The time goes back: nothing comes back, and the filter's time stands still until it has caught up.
#[test]
fn a_clock_that_goes_back_brings_no_key_back() {
    let (filter, clock) = within(MINUTE, 100);
    assert!(filter.insert(&1));
    clock.set(Duration::from_secs(100));
    assert!(!filter.contains(&1) && filter.insert(&2));
    clock.set(Duration::from_secs(10));
    assert!(!filter.contains(&1) && filter.contains(&2) && !filter.insert(&2) && filter.insert(&1));
    clock.set(Duration::from_secs(160));
    assert!(filter.contains(&1) && filter.contains(&2));
    clock.set(Duration::from_secs(165));
    assert!(!filter.contains(&1) && !filter.contains(&2));
}

#[test]
fn after_a_pause_of_any_length_all_keys_have_expired_and_the_filter_works() {
    for pause in [1, 59, 60, 61, 64, 65, 66, 100, 1000, 1_000_000, 500 * 365 * 86_400, u64::MAX] {
        let (filter, clock) = within(MINUTE, 20_000);
        (0..10_000).for_each(|key| assert!(filter.insert(&key)));
        let time = Duration::from_nanos(u64::MAX).min(Duration::from_secs(pause));
        clock.set(time);
        assert_eq!(filter.contains(&77), pause < 65, "after {pause} s");
        assert_eq!(filter.recent_len(), if pause < 65 { 10_000 } else { 0 }, "after {pause} s");
        for key in 10_000..20_000 {
            assert!(filter.insert(&key) && filter.contains(&key), "{key}, after {pause} s");
        }
        assert_eq!(filter.insert(&77), pause >= 65, "after {pause} s");
        assert_eq!(stats(&filter).evicted, 0);
    }
}

/// Lookups alone let keys expire, even those of a filter that has evicted others.
#[test]
fn lookups_alone_see_the_time_pass() {
    let (filter, clock) = within(MINUTE, 1_000);
    for key in 0..5_000 {
        clock.set(Duration::from_millis(key * 8));
        assert!(filter.insert(&key));
    }
    assert!(stats(&filter).evicted_early_by > 0.0);
    let seconds: Vec<_> = (40..110).collect();
    let found: Vec<_> = seconds
        .iter()
        .map(|&second| {
            clock.set(Duration::from_secs(second));
            let found = (0..5_000).filter(|key| filter.contains(key)).count();
            let mut batch = Vec::new();
            filter.contains_batch(&(0..5_000).collect::<Vec<u64>>(), &mut batch);
            assert_eq!(batch.iter().filter(|found| **found).count(), found);
            found
        })
        .collect();
    assert!(found.is_sorted_by(|before, after| before >= after) && found[0] >= 1_000, "{found:?}");
    let last = |second: u64| found[second as usize - 40];
    // The newest keys came until second 40, so they stay until second 100.
    assert!(last(99) > 0 && last(105) == 0, "{found:?}");
}

/// The clock runs on by almost a group's time, and goes back. Then the filter gets another clock, or is saved and loaded. Its
/// time goes on from where it stood, so a key leaves after as many turns as if the clock had never gone back.
#[test]
fn a_clock_that_goes_back_takes_no_time_off_the_ages() {
    let second = Duration::from_secs(1);
    for (forward, back) in [(0.95, 0.0), (0.95, 0.95), (1.95, 0.95), (2.95, 2.95), (0.3, 1000.0)] {
        for saves in [false, cfg!(feature = "snapshot")] {
            let start = second * 1_000_000;
            let (mut filter, mut clock) = within(13 * second, 100);
            clock.set(start);
            filter = clock.drive(filter);
            assert!(filter.insert(&7));
            let (mut turns, mut now) = (0, start);
            loop {
                turns += 1;
                assert!(turns < 100, "it is still there after {turns} turns of {forward} s on and {back} s back");
                now += second.mul_f64(forward);
                clock.set(now);
                // A group has a second. The filter may have lost a thousandth of that with each turn.
                let (most, least) = (forward * f64::from(turns), (forward - 0.001) * f64::from(turns));
                if !filter.contains(&7) {
                    assert!(most >= 13.0, "it has gone after {most} s");
                    break;
                }
                assert!(least < 14.0, "it is still there after {least} s");
                now = now.saturating_sub(second.mul_f64(back)).max(second);
                clock.set(now);
                clock = crate::Clock::default();
                now = start;
                clock.set(now);
                filter = if saves { reloaded(&filter, &clock) } else { clock.drive(filter) };
            }
        }
    }
}

#[cfg(feature = "snapshot")]
fn reloaded(filter: &Filter, clock: &crate::Clock) -> Filter {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let loader = concurrent_cuckoo_filter::Loader::<Filter, _>::new(crate::seeded(1), usize::MAX);
    loader.clock(clock.read()).load(&bytes[..]).unwrap().filter
}

#[cfg(not(feature = "snapshot"))]
fn reloaded(_: &Filter, _: &crate::Clock) -> Filter {
    unreachable!("it needs the feature")
}

/// A clock that has shown more than 2⁶⁴ nanoseconds already, or is about to, is as good as any other.
#[test]
fn a_clock_may_start_anywhere() {
    let ages = [0, 18_446_744_043, 63_900_000_000, u64::MAX - 1000].map(Duration::from_secs);
    for start in ages {
        let clock = crate::Clock::default();
        let read = clock.read();
        let filter = builder().within(MINUTE, 100).clock(move || start + read()).build().unwrap();
        assert!(filter.insert(&1));
        clock.set(MINUTE);
        assert!(filter.contains(&1), "{start:?}");
        clock.set(Duration::from_secs(65));
        assert!(!filter.contains(&1), "{start:?}");
    }
}

/// The clock of the system: without waiting, nothing expires within a day.
#[test]
fn the_clock_of_the_system_is_the_default() {
    let filter = builder().within(Duration::from_secs(86_400), 1000).build().unwrap();
    assert!(filter.insert(&1) && !filter.insert(&1) && filter.contains(&1) && filter.remove(&1));
    let short = builder().within(Duration::from_millis(1), 1000).build().unwrap();
    assert!(short.insert(&1));
    // However long this takes.
    while short.contains(&1) {
        std::hint::spin_loop();
    }
    assert!(short.insert(&1));
}

/// A filter that gets another clock goes on from where it is.
#[test]
fn another_clock_keeps_the_age_of_each_key() {
    let (filter, clock) = within(MINUTE, 100);
    assert!(filter.insert(&1));
    clock.set(Duration::from_secs(40));
    assert!(filter.insert(&2));
    let other = crate::Clock::default();
    other.set(Duration::from_secs(1_000_000));
    let filter = other.drive(filter);
    other.set(Duration::from_secs(1_000_020));
    assert!(filter.contains(&1) && filter.contains(&2));
    other.set(Duration::from_secs(1_000_025));
    assert!(!filter.contains(&1) && filter.contains(&2));
    other.set(Duration::from_secs(1_000_066));
    assert!(!filter.contains(&2));
}
