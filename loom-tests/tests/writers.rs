//! Writers against writers: no item is lost or doubled, and contention alone never makes an insert report "full".

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Key, Seeded, Set};
use common::{A, B, C, D, E, F, Role, role, table};

type Model = (Arc<Set>, Vec<Role>, Role);

/// Checks that at the end each key is in the table this many times, and that nothing else is.
fn ends_with(keys: Vec<(Key, usize)>) -> Role {
    role(move |table| {
        for &(key, copies) in &keys {
            assert_eq!(table.count(key), copies, "an item was lost or doubled");
        }
        let copies = keys.iter().map(|&(_, copies)| copies).sum::<usize>();
        assert_eq!(table.scan(), copies, "an item was lost or doubled");
        assert_eq!(table.len(), copies, "the length is wrong");
    })
}

/// One item moves into a bucket while another is inserted there. The table has room for exactly these.
fn insert_against_relocation_into_the_same_bucket() -> Model {
    let [x, a, b, z] = [0, 1, 2, 3].map(|nth| Key::new(2, A, B, nth));
    let mover = role(move |table| _ = table.relocate(x));
    let inserter = role(move |table| table.insert(z.twin()).expect("there is room for one more"));
    (table(2, &[x, a, b.twin()]), vec![mover, inserter], ends_with(vec![(x, 1), (a, 1), (b, 1), (z, 1)]))
}
model! {
    insert_against_relocation_into_the_same_bucket, at least 60,
    fails with "an item was lost or doubled"
    for [AddOverwrites]
}

/// The same when the insert meets a relocation half done, whose item takes up two slots, including the last free
/// one.
fn insert_against_half_a_relocation() -> Model {
    let [x, a, b, z] = [0, 1, 2, 3].map(|nth| Key::new(2, A, B, nth));
    let mover = role(move |table| _ = table.relocate(x));
    let inserter = role(move |table| table.insert(z).expect("there is room for one more"));
    (table(2, &[x, a, b.twin()]), vec![mover, inserter], ends_with(vec![(x, 1), (a, 1), (b, 1), (z, 1)]))
}
model! {
    insert_against_half_a_relocation, at least 60,
    fails with "there is room for one more"
    for [FullWithoutConfirmation]
}

/// The same when the item that moves is of another pair, and so of another stripe.
fn insert_against_half_a_relocation_of_another_pair() -> Model {
    let [a, b, c, z] = [0, 1, 2, 3].map(|nth| Key::new(4, A, B, nth));
    let [x, y] = [0, 1].map(|nth| Key::new(4, B, C, nth));
    let mover = role(move |table| _ = table.relocate(x));
    let inserter = role(move |table| table.insert(z).expect("there is room for one more"));
    let ends = ends_with(vec![(a, 1), (b, 1), (c, 1), (z, 1), (x, 1), (y, 1)]);
    (table(4, &[a, b, c.twin(), x, y.twin()]), vec![mover, inserter], ends)
}
model! {
    insert_against_half_a_relocation_of_another_pair, at least 60,
    fails with "there is room for one more"
    for [FullWithoutConfirmation, FullPassesOwnStripe]
}

/// The same when relocations disturb each search. In the end the insert takes all locks, and they have to wait.
///
/// A bound keeps this to some seconds.
fn insert_against_one_relocation_after_another() -> Model {
    let [x, a, b, z] = [0, 1, 2, 3].map(|nth| Key::new(2, A, B, nth));
    let mover = role(move |table| {
        for key in [x, x.twin(), x, x.twin()] {
            table.relocate(key);
        }
    });
    let inserter = role(move |table| table.insert(z).expect("there is room for one more"));
    (table(2, &[x, a, b.twin()]), vec![mover, inserter], ends_with(vec![(x, 1), (a, 1), (b, 1), (z, 1)]))
}
model! {
    insert_against_one_relocation_after_another, at least 5_000, preemptions 5,
    fails with "there is room for one more"
    for [FullWithoutLocks]
}

/// Two items of one pair change places. (`lookup.rs` checks that a reader finds an item which two threads move back
/// and forth.)
fn relocations_that_cross() -> Model {
    let [x, y] = [0, 1].map(|nth| Key::new(2, A, B, nth));
    let mover = |key: Key| role(move |table| assert!(table.relocate(key)));
    (table(2, &[x, y.twin()]), vec![mover(x), mover(y.twin())], ends_with(vec![(x, 1), (y, 1)]))
}
model! {
    relocations_that_cross, at least 20,
    fails with "an item was lost or doubled"
    for [RelocateWithoutLock + AddOverwrites]
}

/// Both threads plan to move the same item by the same hop. Only one of them may do it.
fn relocations_of_one_item() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = || role(move |table| _ = table.relocate(x));
    (table(2, &[x]), vec![mover(), mover()], ends_with(vec![(x, 1)]))
}
model! {
    relocations_of_one_item, at least 4,
    fails with "an item was lost or doubled"
    for [RelocateWithoutLock, RelocateWithoutRecheck]
}

/// One item enters the bucket that another, of another pair and stripe, leaves.
fn relocations_of_two_pairs() -> Model {
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0));
    let mover = |key: Key| role(move |table| assert!(table.relocate(key)));
    (table(4, &[x, y]), vec![mover(y), mover(x)], ends_with(vec![(x, 1), (y, 1)]))
}
model! {
    relocations_of_two_pairs, at least 20,
    fails with "an item was lost or doubled"
    for [AddOverwrites]
}

/// The copy that moves is removed.
fn remove_against_relocation_of_the_same_copy() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = role(move |table| _ = table.relocate(x));
    let remover = role(move |table| assert!(table.remove(x), "a present item was not removed"));
    (table(2, &[x]), vec![mover, remover], ends_with(vec![(x, 0)]))
}
model! {
    remove_against_relocation_of_the_same_copy, at least 4,
    fails with "an item was lost or doubled"
    for [RemoveWithoutLock, RelocateWithoutLock]
}

/// A removal that looks first in the bucket that the item moves from, and then in the one that it moved to.
fn remove_against_relocation_behind_it() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = role(move |table| _ = table.relocate(x.twin()));
    let remover = role(move |table| assert!(table.remove(x), "a present item was not removed"));
    (table(2, &[x.twin()]), vec![mover, remover], ends_with(vec![(x, 0)]))
}
model! {
    remove_against_relocation_behind_it, at least 4,
    fails with "a present item was not removed"
    for [RemoveWithoutLock]
}

/// Two copies and two removals. Each removal takes one copy.
fn two_removals_of_one_class() -> Model {
    let x = Key::new(2, A, B, 0);
    let remover = || role(move |table| assert!(table.remove(x), "a present item was not removed"));
    (table(2, &[x, x]), vec![remover(), remover()], ends_with(vec![(x, 0)]))
}
model! {
    two_removals_of_one_class, at least 20,
    fails with "an item was lost or doubled"
    for [RemoveWithoutLock + TakeOverwrites]
}

/// Two items of two stripes are removed. Both removals are counted.
fn two_removals_of_two_classes() -> Model {
    let (x, y) = (Key::new(6, A, B, 0), Key::new(6, E, F, 0));
    let remover = |key: Key| role(move |table| assert!(table.remove(key), "a present item was not removed"));
    (table(6, &[x, y]), vec![remover(x), remover(y)], ends_with(vec![(x, 0), (y, 0)]))
}
model! {
    two_removals_of_two_classes, at least 4,
    fails with "the length is wrong"
    for [CountDropsUpdates]
}

/// The last hop of a plan is made after the item has been removed.
fn path_gone_stale() -> Model {
    let [x, z] = [0, 1].map(|nth| Key::new(2, A, B, nth));
    let mover = role(move |table| _ = table.relocate(x));
    let other = role(move |table| {
        assert!(table.remove(x), "a present item was not removed");
        table.insert(z).expect("there is room");
    });
    (table(2, &[x]), vec![mover, other], ends_with(vec![(x, 0), (z, 1)]))
}
model! {
    path_gone_stale, at least 20,
    fails with "an item was lost or doubled"
    for [RelocateWithoutRecheck]
}

/// An insert whose buckets are full needs a path, while another thread empties and fills slots along it.
fn insert_by_a_path_against_churn_along_it() -> Model {
    // The new item's buckets A and B are full; y can go from B to C.
    let (z, x, y) = (Key::new(4, A, B, 0), Key::new(4, A, B, 1), Key::new(4, B, C, 0));
    let present = [x, Key::new(4, A, B, 2), y, Key::new(4, B, A, 3)];
    let inserter = role(move |table| table.insert(z).expect("there is room at C"));
    let churn = role(move |table| {
        assert!(table.remove(y), "a present item was not removed");
        table.insert(y.twin()).expect("there is room at C");
    });
    let all = present.iter().chain([&z]).map(|&key| (key, 1)).collect();
    (table(4, &present), vec![inserter, churn], ends_with(all))
}
model! {
    insert_by_a_path_against_churn_along_it, at least 300,
    fails with "an item was lost or doubled"
    for [RelocateWithoutRecheck]
}

/// Two threads insert, and one slot is free. One of them gets it, the other gets "full", and nothing is lost.
fn two_inserts_into_one_free_slot() -> Model {
    let keys = [0, 1, 2, 3, 4].map(|nth| Key::new(2, A, B, nth));
    let inserted = Arc::new(AtomicUsize::new(0));
    let inserter = |key: Key| {
        let inserted = Arc::clone(&inserted);
        role(move |table| _ = inserted.fetch_add(usize::from(table.insert(key).is_ok()), Ordering::Relaxed))
    };
    let roles = vec![inserter(keys[3]), inserter(keys[4].twin())];
    let inserted = Arc::clone(&inserted);
    let finally = role(move |table| {
        assert_eq!(inserted.load(Ordering::Relaxed), 1, "one slot, one insert");
        assert_eq!((table.scan(), table.len()), (4, 4), "an item was lost or doubled");
        assert!(keys[..3].iter().all(|&key| table.count(key) == 1), "an item was lost or doubled");
    });
    (table(2, &[keys[0], keys[1], keys[2].twin()]), roles, finally)
}
model! {
    two_inserts_into_one_free_slot, at least 20,
    fails with "one slot, one insert"
    for [AddOverwrites]
}

/// Two threads add the same absent key. Exactly one call returns *true*.
fn two_insert_if_absent() -> Model {
    let x = Key::new(2, A, B, 0);
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |key: Key| {
        let added = Arc::clone(&added);
        role(move |table| {
            let new = table.insert_if_absent(key).expect("there is room");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        })
    };
    let roles = vec![adder(x), adder(x.twin())];
    let finally = role(move |table| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        assert_eq!((table.count(x), table.len()), (1, 1));
    });
    (table(2, &[]), roles, finally)
}
model! {
    two_insert_if_absent, at least 20,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutLock]
}

/// Two threads add the same absent key. Its buckets are full, and a relocation can free one slot. The later thread
/// finds the table full, but the key present.
fn two_insert_if_absent_into_the_last_slot() -> Model {
    // The key's buckets are A and B; y can go from B to C, where one slot is free.
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, B, C, 0));
    let present = [1, 2, 3].map(|nth| Key::new(4, A, B, nth));
    let others = [present[0], present[1], present[2].twin(), y, Key::new(4, C, B, 1)];
    let adder = |key: Key| {
        role(move |table| {
            let result = table.insert_if_absent(key);
            assert!(result.is_ok(), "{result:?}, though the key is present or there is room");
        })
    };
    let all = others.iter().chain([&x]).map(|&key| (key, 1)).collect();
    (table(4, &others), vec![adder(x), adder(x.twin())], ends_with(all))
}
model! {
    two_insert_if_absent_into_the_last_slot, at least 100, preemptions 3,
    fails with "though the key is present or there is room"
    for [FullThoughPresent]
}

/// One thread adds a key if it is absent. The other adds it in any case.
fn insert_if_absent_against_insert() -> Model {
    let x = Key::new(2, A, B, 0);
    let added = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&added);
    let conditional = role(move |table| {
        let new = table.insert_if_absent(x).expect("there is room");
        counter.fetch_add(usize::from(new), Ordering::Relaxed);
    });
    let plain = role(move |table| table.insert(x).expect("there is room"));
    let finally = role(move |table| {
        let copies = 1 + added.load(Ordering::Relaxed);
        assert_eq!(
            (table.count(x), table.scan(), table.len()),
            (copies, copies, copies),
            "an item was lost or doubled"
        );
    });
    (table(2, &[]), vec![conditional, plain], finally)
}
model! {
    insert_if_absent_against_insert, at least 20,
    fails with "an item was lost or doubled"
    for [AddOverwrites]
}

/// A present key is not added again while it is being moved.
fn insert_if_absent_against_relocation() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = role(move |table| assert!(table.relocate(x.twin()) && table.relocate(x)));
    let adder = role(move |table| assert!(!table.insert_if_absent(x).expect("there is room"), "it was there"));
    (table(2, &[x.twin()]), vec![mover, adder], ends_with(vec![(x, 1)]))
}
model! {
    insert_if_absent_against_relocation, at least 500,
    fails with "it was there"
    for [InsertIfAbsentWithoutLock]
}

/// A relocation has two copies of one item for a moment, but `count` sees one.
fn count_against_relocation() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = role(move |table| assert!(table.relocate(x)));
    let counter = role(move |table| assert_eq!(table.count(x), 1, "miscounted"));
    (table(2, &[x]), vec![mover, counter], ends_with(vec![(x, 1)]))
}
model! {
    count_against_relocation, at least 4,
    fails with "miscounted"
    for [CountWithoutLock]
}

/// No relocation moves an item past the sweep of `clear`.
fn clear_against_relocation() -> Model {
    let x = Key::new(2, A, B, 0);
    let mover = role(move |table| _ = table.relocate(x.twin()));
    (table(2, &[x.twin()]), vec![mover, role(|table| table.clear())], ends_with(vec![(x, 0)]))
}
model! {
    clear_against_relocation, at least 4,
    fails with "an item was lost or doubled"
    for [ClearWithoutLocks]
}

/// Two calls of `clear` at once each take all locks.
fn two_clears_against_insert() -> Model {
    let (x, y) = (Key::new(4, A, B, 0), Key::new(4, C, D, 0));
    let inserter = role(move |table| table.insert(y).expect("there is room"));
    let finally = role(move |table| {
        assert_eq!(table.count(x), 0);
        assert_eq!(table.scan(), table.len(), "the length is wrong");
    });
    (table(4, &[x]), vec![role(|table| table.clear()), role(|table| table.clear()), inserter], finally)
}
model! {
    two_clears_against_insert, at least 100, preemptions 2,
    fails with "the length is wrong"
    for [CountDropsUpdates]
}
