//! Values that come and go while they are looked up. (loom cannot show this: its blind spot is a thread's second
//! load of a word.)

use ccf_steps::model::{Key, Maplet, Value};

use crate::schedules::scene::{A, B, Scene, scene};

/// The `nth` class whose pair is the buckets `A` and `B`, with a value.
fn key(nth: usize, value: u16) -> Key {
    <Maplet>::key(2, A, B, nth).with(value)
}

/// Looks up the values of the first class, and checks that they are one of these sets.
fn finds(table: &Maplet, sets: &[&[u16]]) {
    let values: Vec<u16> = table.values(key(0, 0)).iter().collect();
    assert!(sets.contains(&&values[..]), "a key never had the values {values:?}");
}

/// A value is replaced in the bucket that is read first, and is then moved to the other.
fn a_replacement_and_then_a_relocation() -> Scene<Value> {
    Scene::new(Maplet::new(2), &[key(0, 1)])
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
fn a_value_that_stays_among_others_that_change() -> Scene<Value> {
    let move_to_and_fro = |table: &Maplet| {
        for key in [key(0, 1), key(0, 1).twin(), key(0, 1)] {
            table.relocate(key);
        }
    };
    Scene::new(Maplet::new(2), &[key(0, 1), key(0, 2).twin()])
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
