//! Failures that were seen in other filters whose entries expire.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError, Tick};

use crate::filter;

/// In one filter, the removal of a present key also removed a look-alike: 23 to 147 keys in 100,000.
#[test]
fn a_removal_takes_no_lookalike_with_it() {
    // The narrowest fingerprints, so that many keys look alike.
    let filter = filter(3000, 15, 0.2);
    assert!(filter.plan().layout.fingerprint_bits <= 8, "{filter:?}");
    filter.advance_to(Tick::new(100));
    let end = |key: u64| 101 + key % 15;
    (0..3000).for_each(|key| _ = filter.insert_until(&key, Tick::new(end(key))).expect("there is room"));
    for key in (0..3000).step_by(2) {
        assert!(filter.remove_expiring_at(&key, Tick::new(end(key))), "each key has an entry of its own");
    }
    assert!((1..3000).step_by(2).all(|key| filter.contains(&key)), "a key is gone that was not removed");
    assert_eq!(filter.live_len(), 1500);
    for key in (1..3000).step_by(2) {
        assert!(filter.remove_expiring_at(&key, Tick::new(end(key))), "the entry is still there");
    }
    assert!(filter.is_empty());
}

/// One filter dropped 19,020 keys when it was filled to its stated capacity.
#[test]
fn at_capacity_and_beyond_nothing_is_lost() {
    let filter = filter(1 << 16, 15, 0.001);
    filter.advance_to(Tick::new(0));
    let inserted: Vec<u64> = (0..1 << 17).filter(|key| filter.insert_until(key, Tick::new(15)).is_ok()).collect();
    assert!(inserted.len() >= 1 << 16);
    assert!(inserted.iter().all(|key| filter.contains(key)));
}

/// In one filter, lifetimes changed by up to eight ticks if entries were moved during a sweep, and some entries
/// ended early.
#[test]
fn relocations_and_sweeps_change_no_lifetime() {
    let filter = filter(20_000, 15, 1e-6);
    let capacity = filter.capacity() as u64;
    let end = |key: u64| key / 2000 + 1 + key % 15;
    for now in 0..60 {
        filter.advance_to(Tick::new(now));
        let keys = now * 2000..(now + 1) * 2000;
        keys.clone().for_each(|key| _ = filter.insert_until(&key, Tick::new(end(key))).expect("there is room"));
        for key in keys.start.saturating_sub(2000 * 16)..keys.end {
            assert_eq!(filter.contains(&key), end(key) > now, "{key} at {now}");
        }
    }
    assert!(filter.len() as u64 > capacity * 7 / 10 && filter.stats().relocations > 0, "{:?}", filter.stats());
}

/// In one filter, a lifetime of 256 became none in its 8 bits: numbers wrapped around silently.
#[test]
fn no_lifetime_goes_round() {
    for longest in [1, 3, 15, 255, 65_535] {
        let filter = ExpiringCuckooFilter::<u64>::builder().capacity(10).lifetime_in_ticks(longest);
        let filter = filter.false_positive_rate(0.2).build().expect("valid");
        filter.advance_to(Tick::new(7));
        filter.insert_until(&1, Tick::new(7 + longest)).expect("the longest lifetime");
        for more in [1, 2, longest, 2 * longest + 2, 1 << 20, u64::MAX - 7 - longest] {
            let error = filter.insert_until(&2, Tick::new(7 + longest + more)).expect_err("it is too long");
            assert!(matches!(error, ExpiringInsertError::LifetimeTooLong { .. }), "{error}");
        }
        filter.advance_to(Tick::new(6 + longest));
        assert!(filter.contains(&1));
        filter.advance_to(Tick::new(7 + longest));
        assert!(!filter.contains(&1) && filter.live_len() == 0);
    }
}

/// One filter reported to several threads that the same key was new, 684,124 times for 500,000 keys.
#[test]
fn of_all_that_race_to_add_a_key_one_does() {
    const THREADS: usize = 4;
    // They begin each round together. In a round, those behind only look up, and so come up with the first one.
    const KEYS: u64 = if cfg!(miri) { 10 } else { 2000 };
    let filter = filter(30_000, 15, 1e-7);
    filter.advance_to(Tick::new(0));
    let (rounds, new) = (if cfg!(miri) { 3 } else { 200 }, AtomicUsize::new(0));
    let barrier = Barrier::new(THREADS);
    thread::scope(|threads| {
        for id in 0..THREADS {
            let (filter, barrier, new) = (&filter, &barrier, &new);
            threads.spawn(move || {
                for round in 0..rounds {
                    barrier.wait();
                    // The clock advances meanwhile.
                    if id == 0 {
                        filter.advance_to(Tick::new(round));
                    }
                    for key in 0..KEYS {
                        let added = match id % 2 {
                            0 => filter.insert_if_absent_until(&(round << 12 | key), Tick::new(round + 10)),
                            _ => filter.insert_or_renew_until(&(round << 12 | key), Tick::new(round + 9 + key % 3)),
                        };
                        new.fetch_add(usize::from(added.expect("there is room")), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(new.load(Ordering::Relaxed) as u64, rounds * KEYS);
}
