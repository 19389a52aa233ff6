//! Saves while other threads change the filter, saves at the same time, and writers that fail.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::filters::{build, builder, load, saved};
use crate::support::LAYOUTS;
use crate::writers::{Acting, Slow};

/// At 95 % load, where most inserts relocate. Of the keys, no two are of one class, so that `count` is exact.
#[test]
fn each_key_that_is_in_throughout_is_in_the_snapshot_as_often_whatever_moves() {
    const BUCKETS: usize = 20_000;
    let filter = builder().capacity(BUCKETS * 38 / 10).false_positive_rate(1e-4).build().unwrap();
    let slots = filter.slots();
    let mut candidates = 0..;
    let mut keys = |count: usize| -> Vec<u64> {
        candidates.by_ref().filter(|key| filter.insert_if_absent(key).unwrap()).take(count).collect()
    };
    let stay = keys(slots * 75 / 100);
    let carried = keys(slots * 5 / 100);
    let churned = [keys(slots * 4 / 100), keys(slots * 4 / 100)];
    let leave = keys(slots * 4 / 100);
    let come = keys(slots * 3 / 100);
    come.iter().for_each(|key| assert!(filter.remove(key)));

    for round in 0..12 {
        let mut bytes = Vec::new();
        let writes = AtomicUsize::new(0);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let (filter, writes, ended) = (&filter, &writes, &ended);
            let (carried, leave, come) = (&carried, &leave, &come);
            for churned in &churned {
                scope.spawn(move || {
                    // Room for the copies of `carried` and of those who come.
                    while !ended.load(Ordering::Relaxed) {
                        for keys in churned.chunks(100) {
                            keys.iter().for_each(|key| assert!(filter.remove(key)));
                            keys.iter().for_each(|key| filter.insert(key).unwrap());
                        }
                    }
                });
            }
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    for key in carried {
                        filter.insert(key).unwrap();
                        assert!(filter.remove(key));
                    }
                }
            });
            scope.spawn(move || {
                // When the save has certainly begun.
                while writes.load(Ordering::Relaxed) < 12 {
                    thread::yield_now();
                }
                for (nth, key) in leave.iter().enumerate() {
                    assert!(filter.remove(key));
                    come.get(nth).into_iter().for_each(|key| filter.insert(key).unwrap());
                }
            });
            filter.save(Slow { bytes: &mut bytes, writes }).unwrap();
            ended.store(true, Ordering::Relaxed);
        });
        let loaded = load(&bytes).unwrap();
        for key in &stay {
            assert_eq!(loaded.count(key), 1, "round {round}: {key} was there throughout");
        }
        for key in &carried {
            // Perhaps by several copies: those that came in meanwhile may be in too, though each is gone now.
            assert!(loaded.contains(key), "round {round}: {key} was there throughout, if not by the same copy");
        }
        for key in &leave {
            assert_eq!(loaded.count(key), 1, "round {round}: {key} was there when the save began");
        }
        for key in &come {
            assert!(loaded.count(key) <= 1, "round {round}: {key} was inserted once");
        }
        // As it was before.
        come.iter().for_each(|key| assert!(filter.remove(key)));
        leave.iter().for_each(|key| filter.insert(key).unwrap());
    }
}

#[test]
fn a_writer_that_fails_or_panics_leaves_the_filter_as_it_was() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let before = saved(&filter);
    for nth in 0..15 {
        let error = filter.save(Acting { nth, act: || Err(io::Error::other("the disk is full")) }).unwrap_err();
        assert_eq!(error.to_string(), "the disk is full");
        catch_unwind(AssertUnwindSafe(|| filter.save(Acting { nth, act: || panic!("no disk") }))).unwrap_err();
        // Others are not told to keep words any more; and what they kept does not come up again.
        (0..1000).for_each(|key| assert!(filter.remove(&key)));
        assert_eq!(load(&saved(&filter)).unwrap().len(), 19_000, "write {nth}");
        (0..1000).for_each(|key| filter.insert(&key).unwrap());
    }
    let loaded = load(&saved(&filter)).unwrap();
    assert_eq!((loaded.len(), saved(&filter).len()), (20_000, before.len()));
}

#[test]
fn the_writer_may_use_the_filter_but_not_save_it() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let error = filter.save(Acting { nth: 10, act: || filter.save(io::sink()) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadlock);
    assert!(error.to_string().contains("would wait for itself"), "{error}");
    let use_it = || {
        assert!((0..20_000).all(|key| filter.contains(&key) && filter.remove(&key)));
        (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        filter.clear();
        Ok(())
    };
    filter.save(Acting { nth: 10, act: use_it }).unwrap();
    assert!(filter.is_empty());
}

#[test]
fn saves_at_the_same_time_wait_for_each_other() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let (inside, ends) = (AtomicUsize::new(0), thread::available_parallelism().map_or(2, usize::from).max(2));
    thread::scope(|scope| {
        for _ in 0..ends {
            scope.spawn(|| {
                let mut bytes = Vec::new();
                let writes = AtomicUsize::new(0);
                filter.save(Slow { bytes: &mut bytes, writes: &writes }).unwrap();
                assert_eq!(load(&bytes).unwrap().len(), 20_000);
                inside.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(inside.into_inner(), ends);
}
