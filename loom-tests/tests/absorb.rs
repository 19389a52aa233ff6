//! One table absorbs another, or unites with it, while both are in use. Each copy of the other table is absorbed once,
//! and no copy of the first table is lost.

mod common;

use std::sync::Arc;

use ccf_loom::model::{Fault, Key, Seeded, Set};
use common::{A, B, Role};

/// The table that absorbs, and the table that it absorbs.
struct Both {
    sum: Set,
    other: Set,
}

type Model = (Arc<Both>, Vec<Role<Both>>, Role<Both>);

fn table(keys: &[Key]) -> Set {
    let table = Set::new(2);
    keys.iter().for_each(|&key| table.place(key));
    table
}

fn role(run: impl FnOnce(&Both) + Send + 'static) -> Role<Both> {
    Box::new(run)
}

fn absorber(copies: u64) -> Role<Both> {
    role(move |both| assert_eq!(both.sum.absorb(&both.other), Ok(copies), "a copy is absorbed too rarely or too often"))
}

/// Checks that at the end each key has the given number of copies, and that nothing else is in.
fn check(keys: Vec<(Key, usize)>) -> Role<Both> {
    role(move |both| {
        for &(key, copies) in &keys {
            assert_eq!(both.sum.count(key), copies, "a copy is absorbed too rarely or too often");
        }
        let copies = keys.iter().map(|&(_, copies)| copies).sum::<usize>();
        assert_eq!((both.sum.scan(), both.sum.len()), (copies, copies), "a copy is absorbed too rarely or too often");
    })
}

/// A relocation in the other table moves the key from a bucket not yet read to one that has been read.
fn other_is_relocated() -> Model {
    let x = Key::new(2, A, B, 0);
    let both = Both { sum: table(&[]), other: table(&[x.twin()]) };
    let mover = role(move |both| assert!(both.other.relocate(x.twin()), "no other thread moves it"));
    (Arc::new(both), vec![absorber(1), mover], check(vec![(x, 1)]))
}
model! {
    other_is_relocated, at least 100,
    fails with "a copy is absorbed too rarely or too often"
    for [SaveWithoutLocks, RelocateCopiesNoSource, RelocateCopiesTargetLate]
}

/// Two copies are added to one bucket in one step, while another thread inserts into it. One of the three goes to
/// the other bucket.
fn insert_into_the_same_bucket() -> Model {
    let [x, y, z] = [0, 1, 2].map(|nth| Key::new(2, A, B, nth));
    let both = Both { sum: table(&[]), other: table(&[x, y]) };
    let writer = role(move |both| both.sum.insert(z).expect("there is room"));
    (Arc::new(both), vec![absorber(2), writer], check(vec![(x, 1), (y, 1), (z, 1)]))
}
model! {
    insert_into_the_same_bucket, at least 50, preemptions 3,
    fails with "a copy is absorbed too rarely or too often"
    for [AddOverwrites]
}

/// A save of the absorbing table has begun. The absorbed copies are not in its image, wherever they are moved.
fn while_it_is_saved() -> Model {
    let [x, y] = [0, 1].map(|nth| Key::new(2, A, B, nth));
    let both = Both { sum: table(&[x]), other: table(&[y.twin()]) };
    both.sum.begin_save();
    let saver = role(move |both| {
        let image = both.sum.end_save();
        let counts = (image.count(x), image.count(y));
        assert_eq!(counts, (1, 0), "a copy is absorbed too rarely or too often");
    });
    (Arc::new(both), vec![saver, absorber(1)], check(vec![(x, 1), (y, 1)]))
}
model! {
    while_it_is_saved, at least 50,
    fails with "a copy is absorbed too rarely or too often"
    for [InsertCopiesNothing]
}

/// A key comes by a union and by an insert that adds it if it is absent. One of them does.
fn union_beside_an_insert_of_the_same() -> Model {
    let x = Key::new(2, A, B, 0);
    let both = Both { sum: table(&[]), other: table(&[x.twin()]) };
    let uniter = role(|both| _ = both.sum.unite(&both.other).expect("there is room"));
    let inserter = role(move |both| _ = both.sum.insert_if_absent(x).expect("there is room"));
    (Arc::new(both), vec![uniter, inserter], check(vec![(x, 1)]))
}
model! {
    union_beside_an_insert_of_the_same, at least 20, preemptions 3,
    fails with "a copy is absorbed too rarely or too often"
    for [InsertIfAbsentWithoutLock]
}

/// The key is there already, and is relocated from the bucket that is looked at last to the one that is looked at first.
fn union_beside_a_relocation_of_the_same() -> Model {
    let x = Key::new(2, A, B, 0);
    let both = Both { sum: table(&[x.twin()]), other: table(&[x]) };
    let uniter =
        role(|both| assert_eq!(both.sum.unite(&both.other), Ok(0), "a copy is absorbed too rarely or too often"));
    let mover = role(move |both| assert!(both.sum.relocate(x.twin()), "no other thread moves it"));
    (Arc::new(both), vec![uniter, mover], check(vec![(x, 1)]))
}
model! {
    union_beside_a_relocation_of_the_same, at least 20, preemptions 3,
    fails with "a copy is absorbed too rarely or too often"
    for [InsertIfAbsentWithoutLock]
}
