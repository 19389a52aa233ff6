//! Values that come and go while they are looked up. (loom can't show these: its blind spot is a thread's second load of a
//! word.)

use ccf_steps::model::{Key, SmallestOfValues, Table, UsualOfValues};

use crate::scene::{A, B, Scene, scene};

/// The `nth` class whose pair is the buckets `A` and `B`, with a value.
fn key(nth: usize, value: u16) -> Key {
    Key::of::<SmallestOfValues>(2, A, B, nth).with::<SmallestOfValues>(value)
}

/// One item of another class in each bucket. So `A` has room for one value, and the next goes into `B`.
fn others() -> [Key; 2] {
    [key(1, 0), key(2, 0).twin()]
}

/// Adds a value to `A`, and then another to `B`.
fn one_after_the_other(table: &Table<SmallestOfValues>) {
    for key in [key(0, 1), key(0, 2).twin()] {
        table.insert(key).expect("there is room");
    }
}

/// One thread adds a value to the bucket that is read first, and then another to the other.
fn one_value_after_the_other() -> Scene<SmallestOfValues> {
    Scene::new(2, &others())
        .role(|table| {
            let values = table.values(key(0, 0));
            let sets: [&[u16]; 3] = [&[], &[1], &[1, 2]];
            assert!(sets.contains(&&values.iter().collect::<Vec<_>>()[..]), "a key never had the values {values:?}");
        })
        .role(one_after_the_other)
        .ends_with([key(0, 1), key(0, 2)].into_iter().chain(others()).map(|key| (key, 1)).collect())
}
scene! {
    one_value_after_the_other,
    fails with "a key never had the values"
    for [ValuesLookOnce]
}

/// The same for `insert_if_absent`, which looks under the lock if the key was absent before.
fn one_value_after_the_other_before_an_insert_if_absent() -> Scene<SmallestOfValues> {
    Scene::new(2, &others())
        .role(|table| {
            let values = table.insert_if_absent_telling(key(0, 3)).expect("there is room");
            let sets: [&[u16]; 3] = [&[], &[1], &[1, 2]];
            assert!(sets.contains(&&values.iter().collect::<Vec<_>>()[..]), "a key never had the values {values:?}");
        })
        .role(|table| {
            // The second one is refused if the other thread has added its own.
            for key in [key(0, 1), key(0, 2).twin()] {
                let _ = table.insert(key);
            }
        })
}
scene! {
    one_value_after_the_other_before_an_insert_if_absent,
    fails with "a key never had the values"
    for [ValuesLookOnce]
}

/// A removal has announced what it takes and not yet taken it when a lookup begins. While the lookup looks, the value is taken,
/// two others come, and the first one comes back.
fn a_value_goes_and_comes_back() -> Scene<UsualOfValues> {
    let key = |nth, value| Key::of::<UsualOfValues>(2, A, B, nth).with::<UsualOfValues>(value);
    // `A` is full of one value and others' items. `B` has more room than `A` will have, until the two others are there. And it
    // has another value already, so that the lookup finds several.
    let given = [key(0, 1), key(1, 0), key(2, 0), key(3, 0), key(4, 0), key(0, 0).twin(), key(5, 0).twin()];
    Scene::new(2, &given)
        .role(move |table| {
            let values: Vec<u16> = table.values(key(0, 0)).iter().collect();
            let sets: [&[u16]; 5] = [&[0, 1], &[0], &[0, 2], &[0, 2, 3], &[0, 1, 2, 3]];
            assert!(sets.contains(&&values[..]), "a key never had the values {values:?}");
        })
        .role(move |table| {
            assert!(table.remove(key(0, 1)));
            for value in [2, 3, 1] {
                table.insert(key(0, value)).expect("there is room");
            }
        })
        .ends_with(given.into_iter().chain([key(0, 2), key(0, 3)]).map(|key| (key, 1)).collect())
}
scene! {
    a_value_goes_and_comes_back,
    fails with "a key never had the values"
    for [ValuesLookOnce]
}

/// Values change all the time while the items are moved, and the one that stays is always found.
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
        .role(|table| {
            for _ in 0..2 {
                let values = table.values(key(0, 0));
                let sets: [&[u16]; 2] = [&[1, 2], &[1, 3]];
                assert!(
                    sets.contains(&&values.iter().collect::<Vec<_>>()[..]),
                    "a key never had the values {values:?}"
                );
            }
        })
        .ends_with(vec![(key(0, 1), 1), (key(0, 3), 1)])
}
scene! {
    a_value_that_stays_among_others_that_change,
    fails with "a key never had the values"
    for [RelocateClearsFirst, ReplaceTakesFirst]
}
