//! A save while items are relocated, removed and added.

use ccf_steps::model::{Key, Table};

use crate::schedules::scene::{A, B, C, Scene, scene};

/// A save while three items are relocated back and forth over the same three buckets, and one is removed and added
/// again. The items that stay are in the image once. The other is in it at most twice, by its old copy and its new
/// one.
fn a_save_among_relocations() -> Scene {
    let (x, y, z) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0), Key::new(4, A, B, 1));
    let mover = |key: Key| {
        move |table: &Table| {
            for key in [key, key.twin(), key] {
                table.relocate(key);
            }
        }
    };
    Scene::new(4, &[x, y.twin(), z.twin()])
        .role(move |table| {
            for _ in 0..2 {
                let image = table.save();
                let stayed = [x, y].map(|key| image.count(key));
                assert_eq!(stayed, [1, 1], "an item is in the image too few or too many times");
                let copies = image.copies();
                assert!((2..=4).contains(&copies), "an item is in the image too few or too many times");
            }
        })
        .role(mover(x))
        .role(mover(y.twin()))
        .role(move |table| {
            assert!(table.remove(z), "a present key was not removed");
            table.insert(z).expect("there is room");
            table.relocate(z);
        })
        .ends_with(vec![(x, 1), (y, 1), (z, 1)])
}
scene! {
    a_save_among_relocations,
    fails with "an item is in the image too few or too many times"
    for [
        SaveWithoutLocks,
        SaveLocksInTurn,
        SaveReadsAfterPassing,
        RelocateSetsNoSourceAside,
        RelocateSetsNoTargetAside,
        RelocateSetsTargetAsideLate,
        SetsLatestWordAside
    ]
}

/// A save while one thread moves a key from bucket to bucket with its twin: it inserts one and removes the other.
fn a_save_while_twins_come_and_go() -> Scene {
    let x = Key::new(2, A, B, 0);
    Scene::new(2, &[x.twin()])
        .role(move |table| {
            let copies = table.save().count(x);
            assert!(copies > 0, "an item is in the image too few or too many times");
        })
        .role(move |table| {
            for key in [x, x.twin(), x] {
                table.insert(key).expect("there is room");
                // From the bucket that the new copy is not in.
                assert!(table.remove(key.twin()), "a present key was not removed");
            }
        })
        .ends_with(vec![(x, 1)])
}
scene! {
    a_save_while_twins_come_and_go,
    fails with "an item is in the image too few or too many times"
    for [RemoveSetsNothingAside, SaveReadsAfterPassing]
}

/// Two saves at the same time, while items are relocated and inserted. Each image has the items that stay once, and
/// the inserted ones at most once.
fn two_saves_among_changes() -> Scene {
    let (x, y, z) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0), Key::new(4, A, B, 1));
    let saver = move |table: &Table| {
        let image = table.save();
        assert_eq!([x, y].map(|key| image.count(key)), [1, 1], "an item is in the image too few or too many times");
        assert!(image.count(z) <= 1, "an item is in the image too few or too many times");
    };
    Scene::new(4, &[x, y.twin()])
        .role(saver)
        .role(saver)
        .role(move |table| {
            for key in [x, x.twin(), y.twin(), y] {
                table.relocate(key);
            }
        })
        .role(move |table| {
            table.insert(z).expect("there is room");
            table.relocate(z);
        })
        .ends_with(vec![(x, 1), (y, 1), (z, 1)])
}
scene! {
    two_saves_among_changes,
    fails with "an item is in the image too few or too many times"
    for [SaveWithoutLocks, SetsAsideForOneSave, RelocateSetsNoSourceAside, RelocateSetsNoTargetAside]
}
