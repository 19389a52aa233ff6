//! Generations that are full: they refuse keys, or rotate.

use std::thread;

use concurrent_cuckoo_filter::InsertError;

use crate::filters::{Filter, exact};

#[test]
fn a_full_generation_refuses_a_key_and_forgets_none() {
    let filter = exact(2, 500).build().unwrap();
    let inserted = (0..).take_while(|key| filter.insert(key).is_ok()).count() as u64;
    assert!(inserted >= 500 && inserted as usize <= filter.slots());
    let refused = [filter.insert(&inserted), filter.insert_if_absent(&inserted).map(|_| ())];
    for refused in refused {
        let Err(error @ InsertError::Full { len, capacity, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((len as u64, capacity), (inserted, filter.generation_capacity()));
        assert!(error.to_string().contains("rotate"), "{error}");
    }
    assert_eq!((filter.generation(), filter.len() as u64), (0, inserted));
    assert!((0..inserted).all(|key| filter.contains(&key) && filter.insert(&key).is_ok()));
    filter.rotate();
    filter.insert(&inserted).unwrap();
    assert!((0..=inserted).all(|key| filter.contains(&key)));
}

#[test]
fn by_count_the_last_inserts_are_remembered_and_no_more() {
    for generations in 2..=5u64 {
        let filter = exact(generations as usize, 300).rotate_when_full(true).build().unwrap();
        let remembered = (generations - 1) * filter.generation_capacity() as u64;
        for key in 0..20 * 300 {
            filter.insert(&key).unwrap();
            assert!(filter.len() <= generations as usize * filter.slots());
            let oldest = (key + 1).saturating_sub(remembered);
            assert!(filter.contains(&oldest), "{generations} generations: {oldest} of {key} is forgotten");
            // Looks for each key when it is the oldest, and now and then for all.
            if key % 1000 == 0 {
                assert!((oldest..=key).all(|key| filter.contains(&key)));
            }
        }
        assert!(filter.generation() * 300 <= 20 * 300, "a generation expired before it was full");
        assert!(!filter.contains(&0));
    }
}

#[test]
fn by_count_all_that_find_a_generation_full_rotate_once() {
    const EACH: u64 = if cfg!(miri) { 300 } else { 50_000 };
    let filter = exact(3, 200).rotate_when_full(true).build().unwrap();
    thread::scope(|scope| {
        for id in 0..4 {
            let filter = &filter;
            scope.spawn(move || (0..EACH).for_each(|key| filter.insert(&(id << 32 | key)).unwrap()));
        }
    });
    let (capacity, slots) = (filter.generation_capacity() as u64, filter.slots() as u64 / 3);
    let generation = filter.generation();
    assert!(generation * capacity <= 4 * EACH, "{generation} rotations: some generation was not full");
    assert!((generation + 1) * slots >= 4 * EACH, "{generation} rotations: some generation took more than it can");
}

#[test]
fn a_generation_for_no_keys_holds_some() {
    let filter = Filter::builder().generation_capacity(0).generations(2).rotate_when_full(true).build().unwrap();
    for key in 0..1000 {
        filter.insert(&key).unwrap();
        assert!(filter.contains(&key));
    }
}
