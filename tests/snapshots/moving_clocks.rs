//! Saves of filters whose entries expire, while the clock advances and other threads change them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Loader, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::filters::{Expiring, distinct_keys, expiring_builder, load_expiring, saved_expiring, state};
use crate::writers::{Acting, Keeping, Slow};

/// The filter is so full that most inserts relocate. No two keys are of one class, so that no key is found by
/// another's entry.
#[test]
fn each_entry_that_lives_is_in_the_snapshot_whatever_moves() {
    const LONGEST: u64 = 62;
    let builder = expiring_builder().capacity(60_000).false_positive_rate(0.01).lifetime_in_ticks(LONGEST);
    let filter = builder.build().unwrap();
    filter.advance_to(Tick::new(1000));
    let mut keys = distinct_keys(&filter, 59_000);
    let mut take = |count: usize| keys.split_off(keys.len() - count);
    let (stay, extended, leave, come) = (take(20_000), take(5_000), take(3_000), take(3_000));
    let passing = [take(13_000), take(13_000)];
    for round in 0..6 {
        let begun = filter.now().unwrap().get();
        let last = begun + LONGEST;
        (0..).zip(&stay).for_each(|(nth, key)| _ = filter.insert_until(key, Tick::new(last - nth % 8)).unwrap());
        extended.iter().chain(&leave).for_each(|key| _ = filter.insert_until(key, Tick::new(last - 10)).unwrap());
        let (clock, ended) = (AtomicU64::new(begun), AtomicBool::new(false));
        let (mut bytes, writes) = (Vec::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let (filter, clock, writes, ended) = (&filter, &clock, &writes, &ended);
            let (extended, leave, come) = (&extended, &leave, &come);
            // Entries that die soon. Some are removed before that.
            for passing in &passing {
                scope.spawn(move || {
                    let mut now = 0;
                    while !ended.load(Ordering::Relaxed) {
                        thread::yield_now();
                        now = clock.load(Ordering::Relaxed).max(now + 1).min(last - 20);
                        for key in passing {
                            filter.insert_or_renew_until(key, Tick::new(now + 2)).unwrap();
                        }
                        passing
                            .iter()
                            .step_by(5)
                            .for_each(|key| _ = filter.remove_expiring_at(key, Tick::new(now + 2)));
                    }
                });
            }
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let tick = (clock.load(Ordering::Relaxed) + 1).min(last - 20);
                    filter.advance_to(Tick::new(tick));
                    clock.store(tick, Ordering::Relaxed);
                    (0..20).for_each(|_| _ = filter.advance_to(Tick::new(tick)));
                }
            });
            scope.spawn(move || {
                // After the save has certainly begun.
                while writes.load(Ordering::Relaxed) < 2 {
                    thread::yield_now();
                }
                for (nth, key) in leave.iter().enumerate() {
                    assert!(filter.remove_expiring_at(key, Tick::new(last - 10)));
                    filter.insert_or_renew_until(&extended[nth], Tick::new(last)).unwrap();
                    filter.insert_until(&come[nth], Tick::new(last - 1)).unwrap();
                }
            });
            filter.save(Slow { bytes: &mut bytes, writes }).unwrap();
            ended.store(true, Ordering::Relaxed);
        });
        let loaded = load_expiring(&bytes).unwrap();
        let saved_at = loaded.now().unwrap().get();
        assert!((begun..=clock.into_inner()).contains(&saved_at), "round {round}");
        for tick in [saved_at, last - 11, last - 10, last - 8, last - 3, last - 1, last] {
            loaded.advance_to(Tick::new(tick));
            for (nth, key) in (0..).zip(&stay) {
                assert_eq!(loaded.contains(key), last - nth % 8 > tick, "round {round}: {key} was there throughout");
            }
            for key in extended.iter().chain(&leave) {
                assert_eq!(loaded.contains(key), last - 10 > tick, "round {round}: {key} was there as the save began");
            }
            assert!(come.iter().all(|key| !loaded.contains(key)), "round {round}: inserted after the save had begun");
        }
        assert_eq!(loaded.live_len(), 0);
        // All entries die.
        filter.advance_to(Tick::new(last));
        assert_eq!(filter.live_len(), 0);
    }
    assert!(filter.stats().relocations > 0 && filter.stats().expiry.unwrap().sweeps > 0, "{filter:?}");
}

/// One thread makes all changes, advances the clock, and sometimes begins a save. Other threads write the saves
/// slowly meanwhile. So entries that are live when a save begins die and are swept before they are written.
#[test]
fn a_snapshot_is_exactly_what_the_filter_was_at_its_position() {
    for (longest, rate) in [(15, 0.01), (9, 1e-4)] {
        let builder = expiring_builder().capacity(20_000).false_positive_rate(rate).lifetime_in_ticks(longest);
        let filter = builder.build().unwrap();
        filter.advance_to(Tick::new(70));
        let keys = distinct_keys(&filter, 15_000);
        // The end of each key's entry, or one in the past.
        let mut ends = vec![0u64; keys.len()];
        let (mut random, mut now) = (SmallRng::seed_from_u64(7), 70);
        thread::scope(|scope| {
            for position in 0..25 {
                for step in 0..8_000 {
                    let (nth, lifetime) = (random.random_range(0..keys.len()), random.random_range(1..=longest));
                    let (key, end) = (&keys[nth], &mut ends[nth]);
                    match random.random_range(0..8) {
                        0..3 => {
                            filter.insert_or_renew_until(key, Tick::new(now + lifetime)).unwrap();
                            *end = (now + lifetime).max(*end);
                        }
                        3..6 => {
                            assert_eq!(filter.insert_if_absent_until(key, Tick::new(now + lifetime)), Ok(*end <= now));
                            *end = if *end <= now { now + lifetime } else { *end };
                        }
                        _ => {
                            assert_eq!(filter.remove_expiring_at(key, Tick::new(*end)), *end > now);
                            *end = 0;
                        }
                    }
                    if step % 4_000 == position * 100 {
                        now += 1 + position % 3;
                        filter.advance_to(Tick::new(now));
                    }
                }
                let save = filter.begin_save().unwrap().position(position);
                let (keys, ends) = (&keys, ends.clone());
                scope.spawn(move || {
                    let mut bytes = Vec::new();
                    save.write_to(Slow { bytes: &mut bytes, writes: &AtomicUsize::new(0) }).unwrap();
                    let loaded = Loader::<Expiring, _>::new(state(), 1 << 20).load(&bytes[..]).unwrap();
                    assert_eq!((loaded.position, loaded.filter.now()), (Some(position), Some(Tick::new(now))));
                    for tick in now..=now + longest {
                        loaded.filter.advance_to(Tick::new(tick));
                        let live = ends.iter().filter(|&&end| end > tick).count();
                        assert_eq!(loaded.filter.live_len(), live, "{} ticks after {position}", tick - now);
                        for (key, end) in keys.iter().zip(&ends) {
                            assert_eq!(loaded.filter.contains(key), *end > tick, "{key} until {end} at {tick}");
                        }
                    }
                });
            }
        });
    }
}

/// All entries that are live when a save begins die before the first byte of the table is written. Then other
/// entries take their places on the ring, or the clock begins anew.
#[test]
fn the_clock_of_a_snapshot_is_that_of_its_moment() {
    for nth in [0, 1, 4] {
        let filter = expiring_builder().capacity(20_000).lifetime_in_ticks(15).build().unwrap();
        filter.advance_to(Tick::new(70));
        let keys = distinct_keys(&filter, 20_000);
        let (old, new) = keys.split_at(10_000);
        let end = |nth: usize| 71 + nth as u64 % 15;
        (0..).zip(old).for_each(|(nth, key)| _ = filter.insert_until(key, Tick::new(end(nth))).unwrap());
        let act = || {
            filter.advance_to(Tick::new(500));
            filter.restart_clock(Tick::new(3));
            (0..).zip(new).for_each(|(nth, key)| _ = filter.insert_until(key, Tick::new(4 + nth % 15)).unwrap());
            Ok(())
        };
        let mut bytes = Vec::new();
        filter.save(Keeping { bytes: &mut bytes, writer: Acting { nth, act } }).unwrap();
        assert_eq!((filter.now(), filter.live_len()), (Some(Tick::new(3)), 10_000));
        let loaded = load_expiring(&bytes).unwrap();
        assert_eq!(loaded.now(), Some(Tick::new(70)), "write {nth}");
        for tick in 70..=86 {
            loaded.advance_to(Tick::new(tick));
            assert!((0..).zip(old).all(|(nth, key)| loaded.contains(key) == (end(nth) > tick)), "write {nth}, {tick}");
            assert!(new.iter().all(|key| !loaded.contains(key)), "write {nth}");
        }
        // Words that were kept for the save do not appear again.
        let after = load_expiring(&saved_expiring(&filter)).unwrap();
        assert_eq!((after.now(), after.live_len()), (Some(Tick::new(3)), 10_000));
    }
}
