//! Saves while other threads change the filter, several saves at the same time, and writers that fail.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use concurrent_cuckoo_filter::Loader;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::filters::{Filter, build, build_maplet, load, saved, state, value_of};
use crate::support::{LAYOUTS, MAPLET_LAYOUTS};
use crate::writers::{Acting, Keeping, Slow};

#[test]
fn a_writer_that_fails_or_panics_leaves_the_filter_as_it_was() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let before = saved(&filter);
    // The header, that of the table, its four chunks, and the end.
    for nth in 0..7 {
        let error = filter.save(Acting { nth, act: || Err(io::Error::other("the disk is full")) }).unwrap_err();
        assert_eq!(error.to_string(), "the disk is full");
        catch_unwind(AssertUnwindSafe(|| filter.save(Acting { nth, act: || panic!("no disk") }))).unwrap_err();
        // Changes no longer keep words, and words that were kept do not appear again.
        (0..1000).for_each(|key| assert!(filter.remove(&key)));
        assert_eq!(load::<Filter>(&saved(&filter)).unwrap().len(), 19_000, "write {nth}");
        (0..1000).for_each(|key| filter.insert(&key).unwrap());
    }
    let loaded = load::<Filter>(&saved(&filter)).unwrap();
    assert_eq!((loaded.len(), saved(&filter).len()), (20_000, before.len()));
}

#[test]
fn the_writer_may_use_the_filter_and_save_it_too() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let mut inner = Vec::new();
    let use_it = || {
        (0..100).for_each(|key| assert!(filter.remove(&key)));
        filter.save(&mut inner)?;
        assert!((100..20_000).all(|key| filter.contains(&key) && filter.remove(&key)));
        (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        filter.clear();
        Ok(())
    };
    filter.save(Acting { nth: 3, act: use_it }).unwrap();
    assert!(filter.is_empty());
    assert_eq!(load::<Filter>(&inner).unwrap().len(), 19_900, "the moment of the inner one is its own");
}

/// A writer blocks in the very first byte and in each later one. It delays no other save, and does not change the
/// moment of its own.
#[test]
fn the_moment_of_a_save_comes_before_its_first_byte() {
    for nth in 0..7 {
        let filter = build(LAYOUTS[5], 20_000);
        (0..100).for_each(|key| filter.insert(&key).unwrap());
        let mut bytes = [Vec::new(), Vec::new()];
        let [outer, inner] = &mut bytes;
        let meanwhile = || {
            (0..50).for_each(|key| assert!(filter.remove(&key)));
            (1000..1100).for_each(|key| filter.insert(&key).unwrap());
            let second = filter.begin_save()?;
            (50..100).for_each(|key| assert!(filter.remove(&key)));
            (2000..2100).for_each(|key| filter.insert(&key).unwrap());
            second.write_to(&mut *inner)
        };
        filter.save(Keeping { bytes: outer, writer: Acting { nth, act: meanwhile } }).unwrap();
        let [outer, inner] = bytes.map(|bytes| load::<Filter>(&bytes).unwrap());
        let has = |filter: &Filter, keys: std::ops::Range<u64>| keys.filter(|key| filter.contains(key)).count();
        assert_eq!((outer.len(), has(&outer, 0..100)), (100, 100), "write {nth}");
        assert_eq!((inner.len(), has(&inner, 50..100), has(&inner, 1000..1100)), (150, 50, 100), "write {nth}");
    }
}

/// One thread makes all changes, no two of which are the same. Sometimes it begins a save between two of them.
/// Other threads write the saves slowly meanwhile.
#[test]
fn a_snapshot_is_exactly_what_the_filter_was_at_its_position() {
    for (layout, saves) in [(LAYOUTS[5], 40), (LAYOUTS[6], 40)] {
        let filter = build(layout, 3_000);
        // No two keys are of one class, so that `count` is exact.
        let keys: Vec<u64> = (0..).filter(|key| filter.insert_if_absent(key).unwrap()).take(2_900).collect();
        filter.clear();
        let mut copies = vec![0usize; keys.len()];
        let mut random = SmallRng::seed_from_u64(7);
        let mut position = 0;
        thread::scope(|scope| {
            for _ in 0..saves {
                for _ in 0..3_000 {
                    let nth = random.random_range(0..keys.len());
                    let total: usize = copies.iter().sum();
                    match random.random_range(0..4) {
                        0 | 1 if total < 2_900 => {
                            // It may also be refused, because of too many copies, or too many keys in nearby
                            // buckets.
                            if filter.insert(&keys[nth]).is_ok() {
                                copies[nth] += 1;
                            }
                        }
                        2 if total < 2_900 => {
                            if let Ok(added) = filter.insert_if_absent(&keys[nth]) {
                                assert_eq!(added, copies[nth] == 0);
                                copies[nth] = copies[nth].max(1);
                            }
                        }
                        _ => {
                            assert_eq!(filter.remove(&keys[nth]), copies[nth] > 0);
                            copies[nth] = copies[nth].saturating_sub(1);
                        }
                    }
                    position += 1;
                }
                let save = filter.begin_save().unwrap().position(position).attachment(position.to_string());
                let (keys, expected) = (&keys, copies.clone());
                scope.spawn(move || {
                    let mut bytes = Vec::new();
                    save.write_to(Slow(&mut bytes)).unwrap();
                    let loaded = Loader::<Filter, _>::new(state(), 1 << 20).load(&bytes[..]).unwrap();
                    assert_eq!(loaded.position, Some(position));
                    assert_eq!(loaded.attachment, position.to_string().into_bytes());
                    assert_eq!(loaded.filter.len(), expected.iter().sum::<usize>(), "at {position}");
                    for (key, copies) in keys.iter().zip(expected) {
                        assert_eq!(loaded.filter.count(key), copies, "{key} at {position}");
                    }
                });
            }
        });
    }
}

/// Nothing that a batch adds, moves or takes out after a save has begun changes a byte of the snapshot.
#[test]
fn batches_after_a_save_has_begun_leave_no_trace_in_it() {
    const EACH: u64 = 2_500;
    let (old, new): (Vec<u64>, Vec<u64>) = ((0..EACH).collect(), (EACH..2 * EACH).collect());
    for layout in LAYOUTS {
        let filter = build(layout, 2 * EACH as usize);
        assert_eq!(filter.insert_batch(&old), Ok(()));
        let (before, mut after, mut removed) = (saved(&filter), Vec::new(), Vec::new());
        let save = filter.begin_save().unwrap();
        assert_eq!(filter.insert_batch(&new), Ok(()));
        filter.remove_batch(&old, &mut removed);
        save.write_to(&mut after).unwrap();
        assert!(before == after && removed.iter().all(|&removed| removed), "{filter:?}");
        assert!(new.iter().all(|key| filter.contains(key)), "{filter:?}");
    }
    for layout in MAPLET_LAYOUTS {
        let maplet = build_maplet(layout, 2 * EACH as usize);
        let value = |key: &u64| value_of(*key, layout.0);
        assert_eq!(maplet.insert_batch(old.iter().map(|key| (key, value(key)))), Ok(()));
        let (before, mut after, mut removed) = (saved(&maplet), Vec::new(), Vec::new());
        let save = maplet.begin_save().unwrap();
        assert_eq!(maplet.insert_batch(new.iter().map(|key| (key, value(key)))), Ok(()));
        maplet.remove_batch(old.iter().map(|key| (key, value(key))), &mut removed);
        save.write_to(&mut after).unwrap();
        assert!(before == after && removed.iter().all(|&removed| removed), "{maplet:?}");
        assert!(new.iter().all(|key| maplet.values(key).contains(value(key))), "{maplet:?}");
    }
}

#[test]
fn saves_at_the_same_time_do_not_disturb_each_other() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut bytes = Vec::new();
                filter.save(Slow(&mut bytes)).unwrap();
                assert_eq!(load::<Filter>(&bytes).unwrap().len(), 20_000);
            });
        }
    });
}
