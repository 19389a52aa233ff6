//! A save against writers: an item that is in throughout is in the image exactly once, wherever it is moved
//! meanwhile.
//!
//! loom cannot show that a save passes a chunk only after it has read it: see `table_being_saved`. The histories of
//! `tests/stepped/tests/histories/one_table.rs` show it. Here a save passes one bucket at a time (`save::CHUNK`), in
//! the order `A`, `B`, `C`.

mod common;

use std::sync::Arc;

use ccf_loom::model::{Fault, Image, Key, Nothing, Seeded, Set};
use common::{A, B, C, Role, role, table};

type Model = (Arc<Set>, Vec<Role>, Role);

/// Checks that each key is in the image this many times, and that nothing else is.
fn check(image: &Image<Nothing>, keys: &[(Key, usize)]) {
    for &(key, copies) in keys {
        assert_eq!(image.count(key), copies, "an item is in the image too few or too many times");
    }
    let copies = keys.iter().map(|&(_, copies)| copies).sum::<usize>();
    assert_eq!(image.copies(), copies, "an item is in the image too few or too many times");
}

fn saver(keys: Vec<(Key, usize)>) -> Role {
    role(move |table| check(&table.save(), &keys))
}

/// A small table. A save of it has begun.
///
/// If a save begins on its own thread, loom does not explore all executions. It remembers only the last load of a
/// word. That is the load of a relocation, which looks before it puts. loom then ignores the saver's load before
/// that. Here the saver's loads come first or last on their thread.
fn table_being_saved(buckets: usize, keys: &[Key]) -> Arc<Set> {
    let table = table(buckets, keys);
    table.begin_save();
    table
}

/// The rest of a save that has begun.
fn rest_of_saver(keys: Vec<(Key, usize)>) -> Role {
    role(move |table| check(&table.end_save(), &keys))
}

/// Moves a copy of each key, in this order, from the bucket that it tries first to the other.
fn mover(keys: Vec<Key>) -> Role {
    role(move |table| keys.iter().for_each(|&key| assert!(table.relocate(key), "no other thread moves it")))
}

/// The beginning of a save: by then a relocation is either over, or keeps what it changes.
fn save_against_relocation() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    (table(2, &[x.twin()]), vec![saver(keys.clone()), mover(vec![x.twin()])], saver(keys))
}
model! {
    save_against_relocation, at least 100,
    fails with "an item is in the image too few or too many times"
    for [SaveWithoutLocks, RelocateCopiesNoSource, RelocateCopiesTargetLate, LooksForSavesEarly]
}

/// A save begins after a thread that is about to relocate has got memory for the one that is running. It gets more, and no
/// save fails.
fn save_begins_before_the_lock() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    (table_being_saved(2, &[x.twin()]), vec![saver(keys.clone()), mover(vec![x.twin()])], rest_of_saver(keys))
}
model! {
    save_begins_before_the_lock, at least 100, preemptions 2,
    fails with "a model has memory"
    for [ChangesWithTooLittle]
}

/// The item leaves a bucket that is still to be saved for one that may have been saved.
fn relocation_backwards() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    (table_being_saved(2, &[x.twin()]), vec![rest_of_saver(keys.clone()), mover(vec![x.twin()])], saver(keys))
}
model! {
    relocation_backwards, at least 50,
    fails with "an item is in the image too few or too many times"
    for [RelocateCopiesNoSource, RelocateCopiesNoTarget, RelocateCopiesTargetLate]
}

/// The item leaves a bucket that may have been saved for one that is still to be saved.
fn relocation_forwards() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    (table_being_saved(2, &[x]), vec![rest_of_saver(keys.clone()), mover(vec![x])], saver(keys))
}
model! {
    relocation_forwards, at least 50,
    fails with "an item is in the image too few or too many times"
    for [RelocateCopiesNoSource, RelocateCopiesNoTarget, RelocateCopiesTargetLate]
}

/// A relocation there and back: the second relocation finds the word that the first has kept.
fn relocation_there_and_back() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    (table_being_saved(2, &[x.twin()]), vec![rest_of_saver(keys.clone()), mover(vec![x.twin(), x])], saver(keys))
}
model! {
    relocation_there_and_back, at least 50, preemptions 3 in the gate,
    fails with "an item is in the image too few or too many times"
    for [CopiesLatestWord, RelocateCopiesNoSource, RelocateCopiesNoTarget]
}

/// One thread inserts a twin in the other bucket and removes the old copy. The key is in throughout, and no
/// relocation moves it.
fn twin_comes_and_goes() -> Model {
    let x = Key::new(2, A, B, 0);
    let rest = role(move |table| {
        let copies = table.end_save().count(x);
        assert!((1..=2).contains(&copies), "an item is in the image too few or too many times");
    });
    let carrier = role(move |table| {
        table.insert(x).expect("there is room");
        assert!(table.remove(x.twin()));
        assert!(table.first_holds(x), "it was carried to the bucket saved first");
    });
    (table_being_saved(2, &[x.twin()]), vec![rest, carrier], saver(vec![(x, 1)]))
}
model! {
    twin_comes_and_goes, at least 50, preemptions 3 in the gate,
    fails with "an item is in the image too few or too many times"
    for [RemoveCopiesNothing]
}

/// An item that is removed after the save has begun is in the image. The item that takes its place, and is moved,
/// is not.
fn remove_and_insert() -> Model {
    let (x, y) = (Key::new(2, A, B, 0), Key::new(2, A, B, 1));
    let rest = role(move |table| {
        let image = table.end_save();
        assert_eq!(image.count(x), 1, "an item is in the image too few or too many times");
        assert_eq!(image.count(y), 0, "an item is in the image too few or too many times");
    });
    let writer = role(move |table| {
        assert!(table.remove(x.twin()));
        table.insert(y).expect("there is room");
        assert!(table.relocate(y));
    });
    (table_being_saved(2, &[x.twin()]), vec![rest, writer], saver(vec![(y, 1)]))
}
model! {
    remove_and_insert, at least 50, preemptions 3 in the gate,
    fails with "an item is in the image too few or too many times"
    for [RemoveCopiesNothing]
}

/// Two relocations, one after the other, change one bucket.
fn two_relocations() -> Model {
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0));
    let keys = vec![(x, 1), (y, 1)];
    let mover = mover(vec![x.twin(), y.twin()]);
    (table_being_saved(4, &[x.twin(), y.twin()]), vec![rest_of_saver(keys.clone()), mover], saver(keys))
}
model! {
    two_relocations, at least 50, preemptions 3,
    fails with "an item is in the image too few or too many times"
    for [CopiesLatestWord, RelocateCopiesNoSource, RelocateCopiesNoTarget]
}

/// Two relocations at once change one bucket, under two locks, while a save begins.
fn save_against_two_movers() -> Model {
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0));
    let keys = vec![(x, 1), (y, 1)];
    let movers = [x, y].map(|key| mover(vec![key]));
    (table(4, &[x, y]), [saver(keys.clone())].into_iter().chain(movers).collect(), saver(keys))
}
model! {
    save_against_two_movers, at least 100, preemptions 2,
    fails with "an item is in the image too few or too many times"
    for [SaveLocksInTurn, SaveWithoutLocks]
}

/// Two saves at once, against a relocation. Each has what was there at its own beginning.
fn two_saves_against_relocation() -> Model {
    let x = Key::new(2, A, B, 0);
    let keys = vec![(x, 1)];
    let roles = vec![saver(keys.clone()), saver(keys.clone()), mover(vec![x.twin()])];
    (table(2, &[x.twin()]), roles, saver(keys))
}
model! {
    two_saves_against_relocation, at least 100, preemptions 2,
    fails with "an item is in the image too few or too many times"
    for [RelocateCopiesNoSource, CopiesForOneSave]
}

/// An item that is inserted after the save has begun is not in the image, wherever it finds room and is moved to.
fn insert_after_the_beginning() -> Model {
    let (x, y) = (Key::new(2, A, B, 0), Key::new(2, A, B, 1));
    let rest = rest_of_saver(vec![(x, 1), (y, 0)]);
    let writer = role(move |table| {
        table.insert(y.twin()).expect("there is room");
        table.relocate(y.twin());
    });
    (table_being_saved(2, &[x]), vec![rest, writer], saver(vec![(x, 1), (y, 1)]))
}
model! {
    insert_after_the_beginning, at least 50, preemptions 3 in the gate,
    fails with "an item is in the image too few or too many times"
    for [InsertCopiesNothing]
}

/// An item that `clear` removes may be in the image or not. An item that is inserted after the `clear` is not.
fn clear_and_insert() -> Model {
    let (x, y) = (Key::new(2, A, B, 0), Key::new(2, A, B, 1));
    let rest = role(move |table| {
        let image = table.end_save();
        assert!(image.count(x) <= 1 && image.count(y) == 0, "an item is in the image too few or too many times");
    });
    let writer = role(move |table| {
        table.clear();
        table.insert(y).expect("there is room");
        assert!(table.relocate(y));
    });
    (table_being_saved(2, &[x.twin()]), vec![rest, writer], saver(vec![(y, 1)]))
}
model! {
    clear_and_insert, at least 50, preemptions 3 in the gate,
    fails with "an item is in the image too few or too many times"
    for [RelocateCopiesNoTarget]
}
