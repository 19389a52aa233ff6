//! Several tables as one filter: the moment of growth, and keys that look alike in different tables.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Growable, GrowableKey, Seeded};
use common::Role;

type Model = (Arc<Growable>, Vec<Role<Growable>>, Role<Growable>);

/// Keys of different classes in every table, which have the same buckets in each table.
fn keys<const N: usize>() -> [GrowableKey; N] {
    core::array::from_fn(|nth| GrowableKey::new(0, nth))
}

/// A filter of this many tables, with the given keys in the given tables.
fn filter(tables: usize, keys: &[(usize, GrowableKey)]) -> Arc<Growable> {
    let filter = Growable::new();
    (1..tables).for_each(|_| filter.grow());
    keys.iter().for_each(|&(table, key)| filter.place(table, key));
    Arc::new(filter)
}

fn role(run: impl FnOnce(&Growable) + Send + 'static) -> Role<Growable> {
    Box::new(run)
}

fn finds(key: GrowableKey) -> Role<Growable> {
    role(move |filter| assert!(filter.contains(key), "a present key was missed"))
}

/// Checks that at the end each key is in once, that nothing else is in, and that there are this many tables.
fn ends_with(keys: Vec<GrowableKey>, tables: usize) -> Role<Growable> {
    role(move |filter| {
        assert!(keys.iter().all(|&key| filter.count(key) == 1), "a present key was missed");
        assert_eq!(filter.len(), keys.len(), "an item was lost or doubled");
        assert_eq!(filter.tables(), tables, "one growth, one table");
    })
}

/// Two inserts find the first table full. One of them adds a table, both items go into it, and no other table is
/// added.
fn two_inserts_that_find_the_table_full() -> Model {
    let keys = keys::<6>();
    let inserter = |key: GrowableKey| {
        role(move |filter| {
            filter.insert(key).expect("one growth, one table for both");
            assert!(filter.contains(key), "a present key was missed");
        })
    };
    let full = [0, 1, 2, 3].map(|nth| (0, keys[nth]));
    (filter(1, &full), vec![inserter(keys[4]), inserter(keys[5])], ends_with(keys.to_vec(), 2))
}
model! {
    two_inserts_that_find_the_table_full, at least 40, preemptions 3,
    fails with "one growth, one table"
    for [GrowWithoutLock, GrowWithoutRecheck]
}

/// A lookup of a present key while the filter grows.
fn lookup_in_the_moment_of_growth() -> Model {
    let keys = keys::<5>();
    let inserter = role(move |filter| filter.insert(keys[4]).expect("the filter grows"));
    let full = [0, 1, 2, 3].map(|nth| (0, keys[nth]));
    (filter(1, &full), vec![finds(keys[0]), inserter], ends_with(keys.to_vec(), 2))
}
model! {
    lookup_in_the_moment_of_growth, at least 20, preemptions 3,
    fails with "a table is set before it is published"
    for [PublishBeforeSet]
}

/// Two threads add the same absent key, and the filter has to grow for it. Exactly one call returns *true*.
fn two_insert_if_absent_across_growth() -> Model {
    let keys = keys::<5>();
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |key: GrowableKey| {
        let added = Arc::clone(&added);
        role(move |filter| {
            let new = filter.insert_if_absent(key).expect("the filter grows");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        })
    };
    let full = [0, 1, 2, 3].map(|nth| (0, keys[nth]));
    let roles = vec![adder(keys[4]), adder(keys[4].twin())];
    let ends = ends_with(keys.to_vec(), 2);
    let finally = role(move |filter| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        ends(filter);
    });
    (filter(1, &full), roles, finally)
}
model! {
    two_insert_if_absent_across_growth, at least 20, preemptions 3,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutGate]
}

/// `y` and `z` are of one class in the first table and of two in the second. The removal of `y` takes the copy in the
/// second table.
fn remove_where_classes_differ() -> Model {
    let (y, z) = (GrowableKey::new(1, 0), GrowableKey::new(0, 0));
    let remover = role(move |filter| assert!(filter.remove(y), "a present key was not removed"));
    (filter(2, &[(1, y), (0, z)]), vec![finds(z), remover], ends_with(vec![z], 2))
}
model! {
    remove_where_classes_differ, at least 4, preemptions 3,
    fails with "a present key was missed"
    for [RemoveOldestFirst]
}

/// A twin of `z` goes into the first table, because the second has no room. A removal of the twin then takes the
/// copy of `z` in the second. So `z` moves from the newer table to the older.
fn twin_comes_and_goes_across_tables() -> Model {
    let [z, others @ ..] = keys::<4>();
    let full = [(1, z), (1, others[0]), (1, others[1]), (1, others[2])];
    let churn = role(move |filter| {
        filter.insert(z.twin()).expect("there is room in the first table");
        assert!(filter.remove(z.twin()), "a present key was not removed");
    });
    (filter(2, &full), vec![finds(z), churn], ends_with(vec![z, others[0], others[1], others[2]], 2))
}
model! {
    twin_comes_and_goes_across_tables, at least 20, preemptions 3,
    fails with "a present key was missed"
    for [LookupOldestFirst]
}

/// Two copies of one class, one in each table, and two removals: each takes one.
fn removals_of_one_class_across_tables() -> Model {
    let [x] = keys();
    let remover = |key| role(move |filter| assert!(filter.remove(key), "a present key was not removed"));
    (filter(2, &[(0, x), (1, x)]), vec![remover(x), remover(x.twin())], ends_with(vec![], 2))
}
model! {
    removals_of_one_class_across_tables, at least 4, preemptions 3,
    fails with "an item was lost or doubled"
    for [RemoveWithoutGate + RemoveWithoutLock + TakeOverwrites]
}

/// A key has one copy, or two. First one copy is in the second table, and later both are in the first.
fn count_against_a_key_that_changes_tables() -> Model {
    let [x, filler, others @ ..] = keys::<5>();
    let full = [(1, x), (1, others[0]), (1, others[1]), (1, others[2])];
    let churn = role(move |filter| {
        filter.insert(x).expect("there is room in the first table");
        assert!(filter.remove(x), "a present key was not removed");
        filter.insert(filler).expect("there is room in the second table");
        filter.insert(x).expect("there is room in the first table");
    });
    let counter = role(move |filter| assert!((1..=2).contains(&filter.count(x)), "miscounted"));
    let finally = role(move |filter| {
        assert_eq!((filter.count(x), filter.len(), filter.tables()), (2, 6, 2), "an item was lost or doubled");
    });
    (filter(2, &full), vec![counter, churn], finally)
}
model! {
    count_against_a_key_that_changes_tables, at least 20, preemptions 3,
    fails with "miscounted"
    for [CountWithoutGate, RemoveWithoutGate]
}

/// Each thread inserts a key and then looks for the other's. One of them inserts into a table that it has just
/// added. At least one finds the other's key.
fn inserts_that_look_for_each_other_across_growth() -> Model {
    let [x, y] = keys();
    let found = Arc::new(AtomicUsize::new(0));
    let seeker = |grows: bool, own: GrowableKey, other: GrowableKey| {
        let found = Arc::clone(&found);
        role(move |filter| {
            if grows {
                filter.grow();
            }
            filter.insert(own).expect("there is room");
            found.fetch_add(usize::from(filter.contains(other)), Ordering::Relaxed);
        })
    };
    let roles = vec![seeker(true, x, y), seeker(false, y, x)];
    let ends = ends_with(vec![x, y], 3);
    let finally = role(move |filter| {
        assert!(found.load(Ordering::Relaxed) > 0, "neither has seen the other");
        ends(filter);
    });
    // The filter has grown before, because of how loom works: see `Plan::build` in `src/tables/growth.rs`.
    (filter(2, &[]), roles, finally)
}
model! {
    inserts_that_look_for_each_other_across_growth, at least 20, preemptions 3,
    fails if an ordering is weaker
}
