//! Lookups of values, against changes of values: a lookup returns the values that a key had at one moment.
//!
//! (`tests/stepped` covers what loom cannot show: `values`, and the histories. loom's blind spot is a thread's second
//! load of a word, such as that of an insert, which looks for room and then adds.)

mod common;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Key, Seeded};
use common::{A, B, C};

type Table = ccf_loom::model::Maplet;
type Role = common::Role<Table>;
type Model = (Arc<Table>, Vec<Role>, Role);

fn role(run: impl FnOnce(&Table) + Send + 'static) -> Role {
    Box::new(run)
}

/// The `nth` class whose pair is the buckets `A` and `B`, with a value.
fn key(nth: usize, value: u16) -> Key {
    Table::key(2, A, B, nth).with(value)
}

/// A table of two buckets. Each of these keys is in the first of its buckets.
fn table(keys: &[Key]) -> Arc<Table> {
    let table = Table::new(2);
    for &key in keys {
        table.place(key);
    }
    Arc::new(table)
}

/// Looks up the values of the first class, and checks that they are one of these sets.
fn finds(sets: &'static [&'static [u16]]) -> Role {
    role(move |table| {
        let values = table.values(key(0, 0));
        assert!(sets.contains(&&values.iter().collect::<Vec<_>>()[..]), "a key never had the values {values:?}");
    })
}

/// The item moves from the bucket that the lookup reads first to the one that it reads second.
fn relocation_ahead_of_the_reader() -> Model {
    let mover = role(move |table| assert!(table.relocate(key(0, 1))));
    (table(&[key(0, 1)]), vec![finds(&[&[1]]), mover], finds(&[&[1]]))
}
model! {
    relocation_ahead_of_the_reader, at least 100,
    fails with "a key never had the values"
    for [RelocateClearsFirst]
}

/// The item moves from the bucket that the lookup reads second to the one that it reads first.
fn relocation_behind_the_reader() -> Model {
    let mover = role(move |table| assert!(table.relocate(key(0, 1).twin())));
    (table(&[key(0, 1).twin()]), vec![finds(&[&[1]]), mover], finds(&[&[1]]))
}
model! {
    relocation_behind_the_reader, at least 100,
    fails with "a key never had the values"
    for [RelocateClearsFirst, RelocateWithoutBump, RelocateBumpsLate, LookupWithoutVersion]
}

/// A value is replaced. A lookup finds the old one or the new one.
fn replacement_under_the_reader() -> Model {
    let writer = role(|table| assert!(table.replace(key(0, 1), 2)));
    (table(&[key(0, 1)]), vec![finds(&[&[1], &[2]]), writer], finds(&[&[2]]))
}
model! {
    replacement_under_the_reader, at least 60,
    fails with "a key never had the values"
    for [ReplaceTakesFirst, ReplaceAddsFirst]
}

/// A value is moved to the bucket that a lookup reads second, and is replaced there.
fn relocation_and_replacement() -> Model {
    let writer = role(|table| {
        assert!(table.relocate(key(0, 1)));
        assert!(table.replace(key(0, 1), 2));
    });
    (table(&[key(0, 1)]), vec![finds(&[&[1], &[2]]), writer], finds(&[&[2]]))
}
model! {
    relocation_and_replacement, at least 100, preemptions 3 in the gate,
    fails with "a key never had the values"
    for [ReplaceTakesFirst, ReplaceAddsFirst]
}

/// A value is replaced in the bucket that a lookup reads first, and is then moved to the other.
fn replacement_and_relocation() -> Model {
    let writer = role(|table| {
        assert!(table.replace(key(0, 1), 2));
        assert!(table.relocate(key(0, 2)));
    });
    (table(&[key(0, 1)]), vec![finds(&[&[1], &[2]]), writer], finds(&[&[2]]))
}
model! {
    replacement_and_relocation, at least 100, preemptions 3 in the gate,
    fails with "a key never had the values"
    for [ReplaceAddsFirst]
}

/// A relocation and a replacement of one item, on two threads. At the end only the new value is there.
fn replacement_against_relocation() -> Model {
    let mover = role(|table| _ = table.relocate(key(0, 1)));
    let replacer = role(|table| assert!(table.replace(key(0, 1), 2), "the value was there throughout"));
    let finally = role(|table| {
        assert_eq!(table.values(key(0, 0)).iter().collect::<Vec<_>>(), [2], "the old value is left");
        assert_eq!((table.scan(), table.len()), (1, 1), "an item was lost or doubled");
    });
    (table(&[key(0, 1)]), vec![mover, replacer], finally)
}
model! {
    replacement_against_relocation, at least 10,
    fails with "the old value is left"
    for [ReplaceWithoutLock]
}

/// Two threads replace the same value. Exactly one call returns *true*.
fn two_replacements() -> Model {
    let done = Arc::new(AtomicUsize::new(0));
    let replacer = |new| {
        let done = Arc::clone(&done);
        role(move |table| {
            done.fetch_add(usize::from(table.replace(key(0, 1), new)), Ordering::Relaxed);
        })
    };
    let roles = vec![replacer(2), replacer(3)];
    let finally = role(move |table| {
        assert_eq!(done.load(Ordering::Relaxed), 1, "one value was replaced twice, or not at all");
        assert_eq!(table.scan(), 1);
    });
    (table(&[key(0, 1)]), roles, finally)
}
model! {
    two_replacements, at least 10,
    fails with "one value was replaced twice, or not at all"
    for [ReplaceWithoutLock + TakeOverwrites]
}

/// Two threads add a value to a key that has none. One adds its value. The other call returns the value that is
/// there.
fn two_insert_if_absent() -> Model {
    let told = Arc::new(Mutex::new(Vec::new()));
    let adder = |value: u16| {
        let told = Arc::clone(&told);
        role(move |table| {
            let found = table.insert_if_absent(key(0, value)).expect("there is room");
            told.lock().expect("nobody panics").push((value, found));
        })
    };
    let roles = vec![adder(1), adder(2)];
    let finally = role(move |table| {
        let told = told.lock().expect("nobody panics");
        let added: Vec<u16> = told.iter().filter(|(_, found)| found.is_empty()).map(|&(value, _)| value).collect();
        assert_eq!(added.len(), 1, "not exactly one has added its value");
        assert!(told.iter().all(|(_, found)| found.is_empty() || found.iter().eq(added.iter().copied())));
        assert_eq!(table.values(key(0, 0)).iter().collect::<Vec<_>>(), added);
    });
    (table(&[]), roles, finally)
}
model! {
    two_insert_if_absent, at least 10,
    fails with "not exactly one has added its value"
    for [InsertIfAbsentWithoutLock]
}

/// A save begins, then a value is replaced. The image has the old value.
fn save_against_replacement() -> Model {
    let table = table(&[key(0, 1).twin()]);
    table.begin_save();
    let saver = role(|table| {
        let image = table.end_save();
        assert_eq!([1, 2].map(|value| image.count(key(0, value))), [1, 0], "the image has a value that came later");
    });
    let replacer = role(|table| assert!(table.replace(key(0, 1), 2)));
    (table, vec![saver, replacer], finds(&[&[2]]))
}
model! {
    save_against_replacement, at least 10,
    fails with "the image has a value that came later"
    for [ReplaceCopiesNothing]
}

/// Two threads add the same absent key. Its buckets are full, and a relocation can free one slot. The later thread
/// finds the table full, but a value of the key present.
fn two_insert_if_absent_into_the_last_slot() -> Model {
    // The key's buckets are A and B; y can go from B to C, where one slot is free.
    let of = |first, second, nth| Table::key(4, first, second, nth);
    let present = [1, 2, 3].map(|nth| of(A, B, nth));
    let others = [present[0], present[1], present[2].twin(), of(B, C, 0), of(C, B, 1)];
    let table = Table::new(4);
    others.iter().for_each(|&key| table.place(key));
    let adder = |key: Key| {
        role(move |table| {
            let result = table.insert_if_absent(key);
            assert!(result.is_ok(), "{result:?}, though the key is present or there is room");
        })
    };
    let x = of(A, B, 0).with(1);
    let finally = role(move |table| assert_eq!((table.count(x), table.len()), (1, 6), "one of them has added it"));
    (Arc::new(table), vec![adder(x), adder(x.twin())], finally)
}
model! {
    two_insert_if_absent_into_the_last_slot, at least 20, preemptions 2,
    fails with "though the key is present or there is room"
    for [FullThoughPresent]
}
