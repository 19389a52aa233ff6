//! Lookups against everything that moves: a lookup finds an item that is in the filter throughout.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Key, Seeded, Set};
use common::{A, B, C, D, E, F, Role, role, table};

type Model = (Arc<Set>, Vec<Role>, Role);

fn finds(key: Key) -> Role {
    role(move |table| assert!(table.contains(key), "a present key was missed"))
}

/// The item moves from the bucket that the lookup reads first to the one that it reads second.
fn relocation_ahead_of_the_reader() -> Model {
    let key = Key::new(2, A, B, 0);
    let mover = role(move |table| assert!(table.relocate(key)));
    (table(2, &[key]), vec![finds(key), mover], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    relocation_ahead_of_the_reader, at least 100,
    fails with "a present key was missed"
    for [RelocateClearsFirst]
}

/// The item moves from the bucket that the lookup reads second to the one that it reads first.
fn relocation_behind_the_reader() -> Model {
    let key = Key::new(2, A, B, 0);
    let mover = role(move |table| assert!(table.relocate(key.twin())));
    (table(2, &[key.twin()]), vec![finds(key), mover], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    relocation_behind_the_reader, at least 100,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateBumpsLate, RelocateClearsFirst, LookupWithoutVersion]
}

/// The item moves behind the reader's back, and back again.
fn relocation_there_and_back() -> Model {
    let key = Key::new(2, A, B, 0);
    let mover = role(move |table| assert!(table.relocate(key.twin()) && table.relocate(key)));
    (table(2, &[key.twin()]), vec![finds(key), mover], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    relocation_there_and_back, at least 100,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateBumpsLate, LookupWithoutVersion]
}

/// Two movers, each with a hop of its own.
fn relocation_by_two_movers() -> Model {
    let key = Key::new(2, A, B, 0);
    let there = role(move |table| _ = table.relocate(key.twin()));
    let back = role(move |table| _ = table.relocate(key));
    (table(2, &[key.twin()]), vec![finds(key), there, back], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    relocation_by_two_movers, at least 1000, preemptions 3 in the gate,
    fails with "a present key was missed"
    for [RelocateWithoutBump]
}

/// A twin of the key is inserted and another copy removed, so that the only copy changes places without a
/// relocation.
fn twin_comes_and_goes() -> Model {
    let key = Key::new(2, A, B, 0);
    let churn = role(move |table| {
        for (added, taken) in [(key, key.twin()), (key.twin(), key)] {
            table.insert(added).expect("there is room");
            assert!(table.remove(taken), "a copy was there");
        }
    });
    (table(2, &[key.twin()]), vec![finds(key), churn], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    twin_comes_and_goes, at least 100,
    fails with "a present key was missed"
    for [RemoveWithoutBump, RemoveBumpsLate, LookupWithoutVersion]
}

/// A batch of three keys. The second moves behind the reader's back.
fn batch_against_relocation() -> Model {
    let (before, moved, after) = (Key::new(6, E, F, 0), Key::new(6, A, B, 0), Key::new(6, F, E, 1));
    let reader = role(move |table| {
        assert_eq!(table.contains_batch([before, moved, after]), [true; 3], "a present key was missed");
    });
    let mover = role(move |table| assert!(table.relocate(moved.twin())));
    let table = table(6, &[before, moved.twin(), after]);
    (table, vec![reader, mover], role(move |table| assert_eq!(table.scan(), 3)))
}
model! {
    batch_against_relocation, at least 100,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateBumpsLate, RelocateClearsFirst, LookupWithoutVersion]
}

/// A batch looks for a key and its twin. Meanwhile another twin comes and goes, so that the only copy changes
/// places.
fn batch_where_a_twin_comes_and_goes() -> Model {
    let key = Key::new(2, A, B, 0);
    let reader = role(move |table| {
        assert_eq!(table.contains_batch([key, key.twin()]), [true; 2], "a present key was missed");
    });
    let churn = role(move |table| {
        table.insert(key).expect("there is room");
        assert!(table.remove(key.twin()), "a copy was there");
    });
    (table(2, &[key.twin()]), vec![reader, churn], role(move |table| assert_eq!(table.scan(), 1)))
}
model! {
    batch_where_a_twin_comes_and_goes, at least 100,
    fails with "a present key was missed"
    for [RemoveWithoutBump, RemoveBumpsLate, LookupWithoutVersion]
}

/// The filter passes a message. A thread that finds a second item knows that the twin is in, which the same thread
/// added earlier. It then removes the old copy. A reader that sees the removal must see the twin, although neither
/// the reader nor the remover has looked at it before.
fn knowledge_is_passed_on() -> Model {
    let (key, message) = (Key::new(6, A, B, 0), Key::new(6, E, F, 0));
    let adder = role(move |table| {
        table.insert(key).expect("there is room");
        table.insert(message).expect("there is room");
    });
    let remover = role(move |table| {
        if table.first_holds(message) {
            assert!(table.remove(key.twin()));
        }
    });
    let finally = role(move |table| assert!(table.contains(key)));
    (table(6, &[key.twin()]), vec![finds(key), remover, adder], finally)
}
model! {
    knowledge_is_passed_on, at least 1000, preemptions 3 in the gate,
    fails if an ordering is weaker
}

/// A key that was found absent stays absent, while another thread first adds a second copy to the other bucket and
/// then clears the table.
fn clear_behind_the_reader() -> Model {
    let key = Key::new(2, A, B, 0);
    let writer = role(move |table| {
        table.insert(key.twin()).expect("there is room");
        table.clear();
    });
    let reader = role(move |table| {
        if !table.contains(key.twin()) {
            assert!(!table.contains(key), "absent, then present, and nothing was inserted since");
        }
    });
    (table(2, &[key]), vec![reader, writer], role(move |table| assert_eq!(table.scan(), 0)))
}
model! {
    clear_behind_the_reader, at least 100,
    fails with "absent, then present, and nothing was inserted since"
    for [ClearWithoutBump]
}

/// Two threads. Each changes a key of its own and then looks for the other's. Returns the roles, the count of
/// threads that find it, and the keys.
fn look_for_each_other(change: fn(&Set, Key)) -> (Vec<Role>, Arc<AtomicUsize>, [Key; 2]) {
    let keys = [Key::new(6, A, B, 0), Key::new(6, E, F, 0)];
    let found = Arc::new(AtomicUsize::new(0));
    let thread = |own: Key, other: Key| {
        let found = Arc::clone(&found);
        role(move |table| {
            change(table, own);
            found.fetch_add(usize::from(table.contains(other)), Ordering::Relaxed);
        })
    };
    (vec![thread(keys[0], keys[1]), thread(keys[1], keys[0])], found, keys)
}

/// Each of two threads adds a key and then looks for the other's. At least one of them finds it.
fn inserts_that_look_for_each_other() -> Model {
    let (roles, found, _) = look_for_each_other(|table, own| table.insert(own).expect("there is room"));
    let finally = role(move |_| assert!(found.load(Ordering::Relaxed) > 0, "neither has seen the other"));
    let table = table(6, &[]);
    // loom lets a `SeqCst` load always read the initial value of an atomic. It treats the value of a `SeqCst`
    // exchange correctly.
    table.clear();
    (table, roles, finally)
}
model! {
    inserts_that_look_for_each_other, at least 60,
    fails if an ordering is weaker
}

/// Each of two threads removes a key and then looks for the other's. At least one of them does not find it.
fn removals_that_look_for_each_other() -> Model {
    let (roles, found, keys) =
        look_for_each_other(|table, own| assert!(table.remove(own), "a present item was not removed"));
    let finally = role(move |_| assert!(found.load(Ordering::Relaxed) < 2, "both were there after the other was gone"));
    (table(6, &keys), roles, finally)
}
model! {
    removals_that_look_for_each_other, at least 60,
    fails if an ordering is weaker
}

/// One thread clears the table and then looks for a key. The other adds that key and then looks for one that was there
/// before. If the first thread misses the new key although it stays, the second thread comes after it, and misses the
/// old key.
fn clear_and_insert_that_look_for_each_other() -> Model {
    // The new key's buckets are swept first, so its insertion need not see the rest of the sweep.
    let (new, old) = (Key::new(4, A, B, 0), Key::new(4, C, D, 0));
    let answers = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let [cleared, added] = [0, 1].map(|_| Arc::clone(&answers));
    let roles = vec![
        role(move |table| {
            table.clear();
            cleared[0].store(usize::from(table.contains(new)), Ordering::Relaxed);
        }),
        role(move |table| {
            table.insert(new).expect("there is room");
            added[1].store(usize::from(table.contains(old)), Ordering::Relaxed);
        }),
    ];
    let finally = role(move |table| {
        let [new_found, old_found] = [0, 1].map(|nth: usize| answers[nth].load(Ordering::Relaxed) > 0);
        assert!(table.count(new) == 0 || new_found || !old_found, "each came before the other");
    });
    (table(4, &[old]), roles, finally)
}
model! {
    clear_and_insert_that_look_for_each_other, at least 60, preemptions 3 in the gate,
    fails if an ordering is weaker
}
