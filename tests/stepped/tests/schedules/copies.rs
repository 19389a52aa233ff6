//! Several threads add, remove, move and count copies of a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_steps::model::{Key, Table};

use crate::schedules::scene::{A, B, C, D, Scene, scene};

/// Second copies of a key come and go, and so move its only other copy back and forth, while a thread looks for it.
fn twins_come_and_go() -> Scene {
    let x = Key::new(2, A, B, 0);
    let come_and_go = |key: Key| {
        move |table: &Table| {
            for _ in 0..2 {
                table.insert(key).expect("there is room for one more");
                assert!(table.remove(key.twin()), "a present key was not removed");
            }
        }
    };
    let reader = move |table: &Table| {
        for _ in 0..3 {
            assert!(table.contains(x), "a present key was missed");
        }
    };
    Scene::new(2, &[x])
        .role(come_and_go(x))
        .role(reader)
        .role(come_and_go(x.twin()))
        .role(reader)
        .ends_with(vec![(x, 1)])
}
scene! {
    twins_come_and_go,
    fails with "a present key was missed"
    for [RemoveWithoutBump, RemoveBumpsLate, LookupWithoutVersion]
}

/// Four threads add four keys, each of them twice, to a table with room for all copies.
fn two_of_each() -> Scene {
    let keys = [Key::new(4, A, B, 0), Key::new(4, B, C, 0), Key::new(4, C, D, 0), Key::new(4, D, A, 0)];
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |order: [usize; 4]| {
        let added = Arc::clone(&added);
        move |table: &Table| {
            for key in order.map(|nth| keys[nth]) {
                let new = table.insert_if_absent(key).expect("there is room");
                added.fetch_add(usize::from(new), Ordering::Relaxed);
            }
        }
    };
    Scene::new(4, &[])
        .role(adder([0, 1, 2, 3]))
        .role(adder([3, 2, 1, 0]))
        .role(adder([0, 1, 2, 3]))
        .role(adder([2, 3, 0, 1]))
        .finally(move |table| {
            assert_eq!(added.load(Ordering::Relaxed), 4, "exactly one adds each");
            assert!(keys.iter().all(|&key| table.count(key) == 1), "exactly one adds each");
        })
}
scene! {
    two_of_each,
    fails with "exactly one adds each"
    for [InsertIfAbsentWithoutLock]
}

/// Two threads relocate an item back and forth. One thread removes it and adds it again, and one counts it.
fn relocations_against_removal_and_count() -> Scene {
    let [x, y] = [0, 1].map(|nth| Key::new(2, A, B, nth));
    let mover = move |table: &Table| {
        for key in [x, x.twin(), y, y.twin()] {
            table.relocate(key);
        }
    };
    Scene::new(2, &[x, y])
        .role(mover)
        .role(mover)
        .role(move |table| {
            assert!(table.remove(x), "a present key was not removed");
            table.insert(x).expect("there is room");
        })
        .role(move |table| assert_eq!(table.count(y), 1, "miscounted"))
        .ends_with(vec![(x, 1), (y, 1)])
}
scene! {
    relocations_against_removal_and_count,
    fails with "an item was lost or doubled"
    for [RelocateWithoutLock, RelocateWithoutRecheck],
    fails with "miscounted"
    for [CountWithoutLock]
}

/// Three threads remove the three copies of a key, while a fourth moves some of them back and forth.
fn a_copy_for_each() -> Scene {
    let x = Key::new(2, A, B, 0);
    let remover = |key: Key| move |table: &Table| assert!(table.remove(key), "a present key was not removed");
    let mover = move |table: &Table| {
        for key in [x, x.twin(), x, x.twin()] {
            table.relocate(key);
        }
    };
    let given = [x, x, x.twin()];
    let scene = given.into_iter().fold(Scene::new(2, &given), |scene, key| scene.role(remover(key)));
    scene.role(mover).ends_with(vec![(x, 0)])
}
scene! {
    a_copy_for_each,
    fails with "an item was lost or doubled"
    for [RemoveWithoutLock]
}
