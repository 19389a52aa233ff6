//! Values that come and go while they are looked up. (loom cannot show this: its blind spot is a thread's second
//! load of a word.)

use std::sync::{Arc, Mutex};

use ccf_steps::Values;
use ccf_steps::model::{Key, SmallestOfValues, Table};

use crate::schedules::scene::{A, B, Scene, scene};

/// The `nth` class whose pair is the buckets `A` and `B`, with a value.
fn key(nth: usize, value: u16) -> Key {
    Key::of::<SmallestOfValues>(2, A, B, nth).with(value)
}

/// One item of another class in each bucket. So `A` has room for one value, and the next one goes into `B`.
fn others() -> [Key; 2] {
    [key(1, 0), key(2, 0).twin()]
}

/// Adds a value to `A`, and then another to `B`.
fn one_after_the_other(table: &Table<SmallestOfValues>) {
    for key in [key(0, 1), key(0, 2).twin()] {
        table.insert(key).expect("there is room");
    }
}

/// Looks up the values of the first class, and checks that they are one of these sets.
fn finds(table: &Table<SmallestOfValues>, sets: &[&[u16]]) {
    let values: Vec<u16> = table.values(key(0, 0)).iter().collect();
    assert!(sets.contains(&&values[..]), "a key never had the values {values:?}");
}

/// One thread adds a value to the bucket that is read first, and then another value to the other bucket.
fn one_value_after_the_other() -> Scene<SmallestOfValues> {
    Scene::new(2, &others())
        .role(|table| finds(table, &[&[], &[1], &[1, 2]]))
        .role(one_after_the_other)
        .ends_with([key(0, 1), key(0, 2)].into_iter().chain(others()).map(|key| (key, 1)).collect())
}
scene! {
    one_value_after_the_other,
    fails with "a key never had the values"
    for [AddValueWithoutBump]
}

/// One thread adds a value if there is none. Another adds one in any case, and then looks. If the first call found
/// no value, the second thread finds both.
fn an_insert_if_absent_against_an_insert() -> Scene<SmallestOfValues> {
    let told = Arc::new(Mutex::new(None));
    let (telling, seen) = (Arc::clone(&told), Arc::new(Mutex::new(None)));
    let seeing = Arc::clone(&seen);
    Scene::new(2, &[])
        .role(move |table| {
            let values = table.insert_value_if_absent(key(0, 1)).expect("there is room");
            *telling.lock().expect("no thread fails") = Some(values);
        })
        .role(move |table| {
            table.insert(key(0, 2)).expect("there is room");
            *seeing.lock().expect("no thread fails") = Some(table.values(key(0, 0)));
        })
        .finally(move |_| {
            let list = |values: &Mutex<Option<Values>>| -> Vec<u16> {
                values.lock().expect("no thread fails").expect("the role has run").iter().collect()
            };
            let both = (list(&told), list(&seen));
            let possible = [(vec![], vec![1, 2]), (vec![2], vec![2])];
            assert!(possible.contains(&both), "no order leads to these answers: {both:?}");
        })
}
scene! {
    an_insert_if_absent_against_an_insert,
    fails with "no order leads to these answers"
    for [AddValueWithoutLock, InsertIfAbsentWithoutLock]
}

/// During a lookup, a value is removed, two others are added, and the first one is added again.
fn a_value_goes_and_comes_back() -> Scene<SmallestOfValues> {
    Scene::new(2, &[key(0, 1), key(1, 0)])
        .role(|table| finds(table, &[&[1], &[], &[2], &[2, 3], &[1, 2, 3]]))
        .role(|table| {
            assert!(table.remove(key(0, 1)));
            for key in [key(0, 2), key(0, 3).twin(), key(0, 1)] {
                table.insert(key).expect("there is room");
            }
        })
        .ends_with(vec![(key(0, 1), 1), (key(0, 2), 1), (key(0, 3), 1), (key(1, 0), 1)])
}
scene! {
    a_value_goes_and_comes_back,
    fails with "a key never had the values"
    for [AddValueWithoutBump]
}

/// A value in the bucket that is read first is replaced, and then one in the other bucket.
fn one_replacement_after_the_other() -> Scene<SmallestOfValues> {
    Scene::new(2, &[key(0, 1), key(0, 3).twin()])
        .role(|table| finds(table, &[&[1, 3], &[0, 3], &[0, 2]]))
        .role(|table| assert!(table.replace(key(0, 1), 0) && table.replace(key(0, 3), 2)))
        .ends_with(vec![(key(0, 0), 1), (key(0, 2), 1)])
}
scene! {
    one_replacement_after_the_other,
    fails with "a key never had the values"
    for [ReplaceWithoutBump, LookupWithoutVersion]
}

/// A value is replaced in the bucket that is read first, and is then moved to the other.
fn a_replacement_and_then_a_relocation() -> Scene<SmallestOfValues> {
    Scene::new(2, &[key(0, 1)])
        .role(|table| finds(table, &[&[1], &[2]]))
        .role(|table| assert!(table.replace(key(0, 1), 2) && table.relocate(key(0, 2))))
        .ends_with(vec![(key(0, 2), 1)])
}
scene! {
    a_replacement_and_then_a_relocation,
    fails with "a key never had the values"
    for [RelocateAddsWithoutBump]
}

/// Values change all the time while the items are moved. A lookup always finds the value that stays.
fn a_value_that_stays_among_others_that_change() -> Scene<SmallestOfValues> {
    let move_to_and_fro = |table: &Table<SmallestOfValues>| {
        for key in [key(0, 1), key(0, 1).twin(), key(0, 1)] {
            table.relocate(key);
        }
    };
    Scene::new(2, &[key(0, 1), key(0, 2).twin()])
        .role(|table| {
            for new in [3, 2, 3] {
                assert!(table.replace(key(0, 5 - new), new), "the other value is there");
            }
        })
        .role(move_to_and_fro)
        .role(|table| (0..2).for_each(|_| finds(table, &[&[1, 2], &[1, 3]])))
        .ends_with(vec![(key(0, 1), 1), (key(0, 3), 1)])
}
scene! {
    a_value_that_stays_among_others_that_change,
    fails with "a key never had the values"
    for [RelocateClearsFirst, RelocateWithoutBump, ReplaceTakesFirst]
}
