//! Saves while other threads change the filter, several saves at the same time, and writers that fail.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use concurrent_cuckoo_filter::Loader;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::filters::{Filter, build, load, saved, state};
use crate::kinds::{Table, in_each_layout};
use crate::support::{LAYOUTS, scattered};
use crate::writers::{Acting, Keeping, Slow};
use crate::{kinds, support};

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

fn are_left_out<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    const EACH: u64 = 2_500;
    let filter = new(2 * EACH as usize);
    let [old, new] =
        [0, EACH].map(|first| -> Vec<_> { (first..first + EACH).map(|nth| (scattered(nth), number(nth))).collect() });
    assert_eq!(filter.insert_all(&old), Ok(()));
    let (before, mut after) = (filter.saved(), Vec::new());
    let save = filter.begin_save();
    assert_eq!(filter.insert_all(&new), Ok(()));
    let removed = filter.remove_all(&old);
    save.write_to(&mut after).unwrap();
    assert!(before == after && removed.iter().all(|&removed| removed), "{filter:?}");
    assert!(new.iter().all(|(key, _)| filter.contains(key)), "{filter:?}");
}

/// Nothing that a batch adds, moves or takes out after a save has begun changes a byte of the snapshot.
#[test]
fn batches_after_a_save_has_begun_leave_no_trace_in_it() {
    in_each_layout!(are_left_out);
}
