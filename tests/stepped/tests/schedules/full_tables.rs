//! Tables in which only a relocation can make room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_steps::model::{Key, Table};

use crate::schedules::scene::{A, B, C, D, Scene, scene};

/// A table without a free slot, whose keys can be placed in many ways. Each of four threads takes one key out and
/// puts it back. This must succeed, because all keys fitted together before.
fn full_table() -> Scene {
    // Of the keys of each pair, one comes and goes, and one stays.
    let keys = [
        Key::new(4, A, B, 0),
        Key::new(4, B, C, 0),
        Key::new(4, C, D, 0),
        Key::new(4, D, A, 0),
        Key::new(4, A, B, 1),
        Key::new(4, B, C, 1),
        Key::new(4, C, D, 1),
        Key::new(4, D, A, 1),
    ];
    let come_and_go = |key: Key| {
        move |table: &Table| {
            for key in [key, key.twin(), key] {
                assert!(table.remove(key), "a present key was not removed");
                table.insert(key.twin()).expect("it was in before, so there is room");
            }
        }
    };
    (0..4)
        .fold(Scene::new(4, &keys), |scene, thread| scene.role(come_and_go(keys[thread])))
        .ends_with(keys.iter().map(|&key| (key, 1)).collect())
}
scene! {
    full_table,
    fails with "it was in before, so there is room"
    for [FullWithoutConfirmation, FullIgnoresVersions]
}

/// Four threads add the same key to a table in which a relocation can make room for one copy.
fn the_last_slot_for_one_key() -> Scene {
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0));
    let [p, q, r] = [1, 2, 3].map(|nth| Key::new(4, A, B, nth));
    let given = [p, q, r.twin(), y, Key::new(4, C, B, 1)];
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |key: Key| {
        let added = Arc::clone(&added);
        move |table: &Table| {
            let new = table.insert_if_absent(key).expect("the key is present or there is room");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        }
    };
    let scene = Scene::new(4, &given).role(adder(x)).role(adder(x.twin())).role(adder(x)).role(adder(x.twin()));
    scene.finally(move |table| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        assert!(given.iter().chain([&x]).all(|&key| table.count(key) == 1), "an item was lost or doubled");
        assert_eq!((table.scan(), table.len()), (6, 6), "an item was lost or doubled");
    })
}
scene! {
    the_last_slot_for_one_key,
    fails with "the key is present or there is room"
    for [FullThoughPresent]
}
