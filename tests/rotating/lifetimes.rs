//! How long a key lives: to the rotation, by rotations and by ticks.

use crate::filters::exact;

#[test]
fn a_key_lives_for_its_generation_and_the_next_ones() {
    for generations in 2..=5 {
        for rotations_before in 0..3 * generations as u64 {
            let filter = exact(generations, 100).build().unwrap();
            (0..rotations_before).for_each(|_| _ = filter.rotate());
            for (key, by_insert) in [(1, true), (2, false)] {
                if by_insert {
                    filter.insert(&key).unwrap();
                } else {
                    assert_eq!(filter.insert_if_absent(&key), Ok(true));
                }
            }
            for nth in 1..=generations as u64 {
                assert!(filter.contains(&1) && filter.contains(&2), "gone {nth} rotations after, of {generations}");
                assert_eq!((filter.insert_if_absent(&1), filter.len()), (Ok(false), 2));
                assert_eq!(filter.rotate(), rotations_before + nth);
            }
            assert!(!filter.contains(&1) && !filter.contains(&2) && filter.is_empty(), "{generations} generations");
            assert_eq!(filter.insert_if_absent(&1), Ok(true));
        }
    }
}

#[test]
fn an_insert_renews_a_key_and_insert_if_absent_does_not() {
    let filter = exact(3, 100).build().unwrap();
    filter.insert(&1).unwrap();
    filter.insert(&2).unwrap();
    for _ in 0..10 {
        filter.rotate();
        filter.insert(&1).unwrap();
        filter.insert(&1).unwrap(); // it is already in this generation
        assert!(filter.len() <= 4, "one copy of each key in each generation");
        _ = filter.insert_if_absent(&2).unwrap();
        assert!(filter.contains(&1));
    }
    (0..2).for_each(|_| _ = filter.rotate());
    assert!(filter.contains(&1));
    filter.rotate();
    assert!(!filter.contains(&1));

    filter.clear();
    assert_eq!(filter.insert_if_absent(&7), Ok(true));
    for _ in 0..2 {
        filter.rotate();
        assert_eq!(filter.insert_if_absent(&7), Ok(false));
    }
    filter.rotate();
    assert!(!filter.contains(&7), "it had been found, not inserted");
}

#[test]
fn clear_empties_all_generations_and_leaves_the_time_as_it_is() {
    let filter = exact(4, 100).build().unwrap();
    filter.advance_to(10);
    for tick in 10..15 {
        filter.advance_to(tick);
        (0..20).for_each(|key| filter.insert(&(100 * tick + key)).unwrap());
    }
    assert_eq!((filter.len(), filter.generation()), (80, 4));
    filter.clear();
    assert!(filter.is_empty() && (0..10_000).all(|key| !filter.contains(&key)));
    assert_eq!(filter.generation(), 4);
    filter.advance_to(15);
    assert_eq!(filter.generation(), 5);
}

#[test]
fn the_first_tick_sets_the_origin() {
    for origin in [0, 1, 28_500_000, u64::MAX - 2] {
        let filter = exact(2, 100).build().unwrap();
        filter.insert(&1).unwrap();
        filter.advance_to(origin);
        filter.advance_to(origin);
        assert!(filter.contains(&1) && filter.generation() == 0, "{origin}");
        filter.advance_to(origin + 1);
        assert_eq!(filter.generation(), 1, "{origin}");
    }
    let filter = exact(2, 100).build().unwrap();
    filter.advance_to(u64::MAX - 1);
    filter.advance_to(u64::MAX);
    filter.advance_to(u64::MAX);
    assert_eq!(filter.generation(), 0, "the last tick counts as the one before");
}

#[test]
fn a_jump_of_ticks_has_as_many_generations_expire() {
    for generations in 2..=5u64 {
        for jump in (0..generations + 4).chain([1000, u64::MAX / 2]) {
            let filter = exact(generations as usize, 100).build().unwrap();
            filter.advance_to(7);
            // A key in each generation.
            for key in 0..generations {
                filter.advance_to(7 + key);
                filter.insert(&key).unwrap();
            }
            let last = 7 + generations - 1;
            filter.advance_to(last + jump);
            for key in 0..generations {
                assert_eq!(filter.contains(&key), key >= jump, "{generations} generations, {jump} ticks, key {key}");
            }
            // The same ticks again, and a clock that goes back: nothing happens.
            let generation = filter.generation();
            for tick in [last + jump, last, 0] {
                filter.advance_to(tick);
            }
            assert_eq!(filter.generation(), generation);
            // The clock continues from there.
            filter.insert(&100).unwrap();
            filter.advance_to(last + jump + generations - 1);
            assert!(filter.contains(&100));
            filter.advance_to(last + jump + generations);
            assert!(!filter.contains(&100));
        }
    }
}
