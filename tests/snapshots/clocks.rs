//! A loaded filter whose entries expire has the ends of all entries, and its clock goes on.

use std::time::Duration;

use concurrent_cuckoo_filter::{Advance, ExpiringInsertError, Expiry, SnapshotInfo, Tick, WhenFull};

use crate::filters::{Expiring, distinct_keys, expiring_builder, load, saved};
use crate::writers::{Acting, Keeping};

const NOW: u64 = 28_500_000;

#[test]
fn the_resolution_comes_back() {
    let (hour, tick) = (Duration::from_secs(3600), Duration::new(299, 999_999_999));
    for (longest, resolution) in [(hour, tick), (hour, Duration::from_nanos(1 << 40)), (Duration::MAX, Duration::MAX)] {
        let filter = expiring_builder().capacity(10).lifetime(longest).resolution(resolution).build().unwrap();
        filter.advance_to(Tick::new(7));
        let bytes = saved(&filter);
        assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().now, Some(Tick::new(7)));
        let loaded = load::<Expiring>(&bytes).unwrap();
        assert_eq!((loaded.plan().resolution, loaded.plan()), (Some(resolution), filter.plan()));
        let lifetime = Duration::from_secs(600);
        assert_eq!(loaded.insert_until(&1, Expiry::After(lifetime)), Ok(true));
    }
    let in_ticks = expiring_builder().capacity(10).lifetime_in_ticks(9).build().unwrap();
    in_ticks.advance_to(Tick::new(7));
    let loaded = load::<Expiring>(&saved(&in_ticks)).unwrap();
    // The ring has more places than this lifetime needs.
    assert_eq!(
        (loaded.plan().resolution, loaded.plan().lifetime_in_ticks.unwrap(), loaded.plan().layout.payload_bits),
        (None, 9, 4)
    );
    assert_eq!(loaded.insert_until(&1, Expiry::After(hour)), Err(ExpiringInsertError::ResolutionUnknown));
    let error = loaded.insert_until(&1, Tick::new(17)).unwrap_err();
    let ExpiringInsertError::LifetimeTooLong { now, longest, .. } = error else { panic!("{error}") };
    assert_eq!((now, longest), (Tick::new(7), 9));
    assert_eq!(loaded.insert_until(&1, Tick::new(16)), Ok(true));
}

#[test]
fn a_filter_that_was_saved_before_its_first_tick_waits_for_it() {
    let filter = expiring_builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
    let bytes = saved(&filter);
    assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().now, None);
    for first in [0, 7, NOW, u64::MAX - 15] {
        let loaded = load::<Expiring>(&bytes).unwrap();
        assert_eq!((loaded.now(), saved(&loaded)), (None, bytes.clone()));
        assert_eq!(loaded.insert_until(&1, Tick::new(first + 5)), Err(ExpiringInsertError::ClockNotSet));
        assert_eq!(loaded.advance_to(Tick::new(first)), Advance::Origin);
        (1..=15).for_each(|end| _ = loaded.insert_until(&end, Tick::new(first + end)).unwrap());
        let loaded = load::<Expiring>(&saved(&loaded)).unwrap();
        for ahead in 0..=15 {
            loaded.advance_to(Tick::new(first + ahead));
            assert!((1..=15).all(|end| loaded.contains(&end) == (end > ahead)), "{ahead} ticks after {first}");
        }
    }
}

/// The clock begins at 0 in each process.
#[test]
fn a_clock_behind_is_said_and_a_new_one_keeps_lifetimes() {
    for saved_at in [1, 5, 16, NOW, u64::MAX - 15] {
        let filter = expiring_builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
        filter.advance_to(Tick::new(saved_at - 1));
        (1..=15).for_each(|end| _ = filter.insert_until(&end, Tick::new(saved_at - 1 + end)).unwrap());
        filter.advance_to(Tick::new(saved_at));
        let bytes = saved(&filter);

        let loaded = load::<Expiring>(&bytes).unwrap();
        for tick in 0..saved_at.min(40) {
            assert_eq!(loaded.advance_to(Tick::new(tick)), Advance::Behind { by: saved_at - tick });
        }
        assert_eq!((loaded.now(), loaded.live_len()), (Some(Tick::new(saved_at)), 14), "nothing expires");
        assert_eq!(loaded.stats().expiry.unwrap().clock_steps_back, saved_at.min(40));

        for began in [0, 3, 1 << 40] {
            let mut loaded = load::<Expiring>(&bytes).unwrap();
            loaded.restart_clock(Tick::new(began));
            for ahead in 0..=14 {
                assert!((1..=15).all(|end| loaded.contains(&end) == (end > ahead + 1)), "{ahead} ticks after {began}");
                // The same holds after a save with the new clock.
                loaded = load::<Expiring>(&saved(&loaded)).unwrap();
                assert_eq!(loaded.now(), Some(Tick::new(began + ahead)));
                assert!(
                    ahead == 14 || loaded.remove_expiring_at(&(ahead + 2), Tick::new(began + ahead + 1)),
                    "its end has another number"
                );
                loaded.insert_until(&(ahead + 2), Tick::new(began + ahead + 1)).unwrap();
                assert_eq!(loaded.advance_to(Tick::new(began + ahead + 1)), Advance::Forward { ticks: 1 });
            }
            assert_eq!(loaded.live_len(), 0);
        }
    }
}

/// Ways in which the clock may go on after loading: the ticks that it reaches, relative to now.
fn ways(round: u64) -> Vec<Vec<u64>> {
    let all: Vec<u64> = (1..=2 * round + 3).collect();
    let mut ways = vec![all.clone(), all.iter().flat_map(|&tick| [tick - 1, tick, tick, tick]).collect()];
    for first in [2, round / 2, round - 2, round - 1, round, round + 1, 2 * round, 3 * round - 1, 1 << 50] {
        ways.push([&[first][..], &all.iter().map(|tick| first + tick).collect::<Vec<_>>()].concat());
    }
    ways
}

/// Each call sweeps only a part of the table, and the filter is saved after each call.
#[test]
fn what_died_and_was_not_swept_when_it_was_saved_stays_dead() {
    // For these lifetimes the sweep may lag behind by one tick, by two, and by seven.
    for (longest, rate) in [(15, 0.01), (14, 0.001), (9, 0.03)] {
        let builder = expiring_builder().capacity(60_000).false_positive_rate(rate).lifetime_in_ticks(longest);
        let filter = builder.build().unwrap();
        filter.advance_to(Tick::new(NOW));
        let keys = distinct_keys(&filter, 50_000);
        let end = |nth: usize| NOW + 1 + nth as u64 * 7 % longest;
        (0..keys.len()).for_each(|nth| _ = filter.insert_until(&keys[nth], Tick::new(end(nth))).unwrap());
        let mut lagged = 0;
        for tick in [NOW + 1, NOW + 1, NOW + 2, NOW + 3, NOW + 4, NOW + 4] {
            filter.advance_to(Tick::new(tick));
            let bytes = saved(&filter);
            let again = load::<Expiring>(&bytes).unwrap();
            let (stats, oldest) = (again.stats(), filter.stats().expiry.unwrap().oldest_unswept);
            assert_eq!(
                (stats.expiry.as_ref().unwrap().oldest_unswept, stats.len, again.now()),
                (oldest, filter.len(), Some(Tick::new(tick)))
            );
            assert_eq!(saved(&again), bytes);
            lagged += usize::from(oldest.is_some() && stats.len > again.live_len());
            for way in ways(16) {
                let loaded = load::<Expiring>(&bytes).unwrap();
                let mut now = tick;
                for ahead in way {
                    loaded.advance_to(Tick::new(tick + ahead));
                    now = now.max(tick + ahead);
                    let live = (0..keys.len()).filter(|&nth| end(nth) > now).count();
                    assert_eq!(loaded.live_len(), live, "at {now}, saved at {tick}, lifetimes of {longest}");
                    // Only some of the keys. No two are of one class.
                    let found = (0..keys.len()).step_by(97).all(|nth| loaded.contains(&keys[nth]) == (end(nth) > now));
                    assert!(found, "at {now}, saved at {tick}, lifetimes of {longest}");
                }
                loaded.insert_until(&keys[0], Tick::new(now + longest)).unwrap();
            }
        }
        assert!(lagged >= 2, "{lagged} snapshots in the midst of a sweep, lifetimes of {longest}");
    }
}

#[test]
fn a_filter_that_has_evicted_goes_on_evicting_when_it_is_loaded() {
    let builder = expiring_builder().capacity(300).lifetime_in_ticks(15).false_positive_rate(1e-6);
    let filter = builder.when_full(WhenFull::EvictSoonest).build().unwrap();
    filter.advance_to(Tick::new(NOW));
    let held = (0..).find(|key| filter.insert_until(key, Tick::new(NOW + 3)).is_err()).unwrap();
    filter.insert_until(&held, Tick::new(NOW + 8)).unwrap();
    let bytes = saved(&filter);
    let loaded = load::<Expiring>(&bytes).unwrap();
    assert_eq!(saved(&loaded), bytes);
    assert_eq!(
        (loaded.live_len(), loaded.now(), loaded.digest().unwrap()),
        (1, Some(Tick::new(NOW)), filter.digest().unwrap())
    );
    let given_up = loaded.insert_until(&1, Tick::new(NOW + 3)).unwrap_err();
    assert_eq!(Err(given_up.clone()), filter.insert_until(&1, Tick::new(NOW + 3)));
    assert!(matches!(given_up, ExpiringInsertError::Evicted { up_to, .. } if up_to.get() == NOW + 3), "{given_up}");
    loaded.advance_to(Tick::new(NOW + 4));
    assert!(loaded.contains(&held));
    let held = (held + 1..).find(|key| loaded.insert_until(key, Tick::new(NOW + 9)).is_err()).unwrap();
    loaded.insert_until(&held, Tick::new(NOW + 10)).expect("it still evicts");
    assert_eq!((loaded.live_len(), loaded.stats().expiry.unwrap().evicted_early_by), (1, 5));
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
