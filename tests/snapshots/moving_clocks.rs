//! Saves of filters whose entries expire, while the clock advances and other threads change them.

use std::thread;

use concurrent_cuckoo_filter::{Loader, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::filters::{Expiring, distinct_keys, expiring_builder, load, saved, state};
use crate::writers::{Acting, Keeping, Slow};

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
                    save.write_to(Slow(&mut bytes)).unwrap();
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
        let loaded = load::<Expiring>(&bytes).unwrap();
        assert_eq!(loaded.now(), Some(Tick::new(70)), "write {nth}");
        for tick in 70..=86 {
            loaded.advance_to(Tick::new(tick));
            assert!((0..).zip(old).all(|(nth, key)| loaded.contains(key) == (end(nth) > tick)), "write {nth}, {tick}");
            assert!(new.iter().all(|key| !loaded.contains(key)), "write {nth}");
        }
        // Words that were kept for the save do not appear again.
        let after = load::<Expiring>(&saved(&filter)).unwrap();
        assert_eq!((after.now(), after.live_len()), (Some(Tick::new(3)), 10_000));
    }
}
