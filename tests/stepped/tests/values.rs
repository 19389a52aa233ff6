//! A lookup of values that is interrupted between any two of its steps: whatever others do meanwhile, it finds what the key had
//! at one moment.
//!
//! Both run on one thread. Before a step of the lookup, the hook does whole operations of others. So each test decides
//! what happens when, and nothing is left to chance.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use ccf_steps::model::{Fault, Key, Seeded, SmallestOfValues, Table, before_each_step};
use proptest::prelude::*;

/// What others do.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Adds a value; to the second bucket, if both have as much room.
    Insert(u16, bool),
    Remove(u16),
    Replace(u16, u16),
    /// Moves a copy from one bucket to the other: from the second one or from the first one.
    Relocate(u16, bool),
}

use Change::{Insert, Relocate, Remove, Replace};

fn key(value: u16, second_first: bool) -> Key {
    let key = Key::of::<SmallestOfValues>(2, 0, 1, 0).with::<SmallestOfValues>(value);
    if second_first { key.twin() } else { key }
}

fn change(table: &Table<SmallestOfValues>, change: Change) {
    match change {
        Insert(value, second_first) => _ = table.insert(key(value, second_first)),
        Remove(value) => _ = table.remove(key(value, false)),
        Replace(old, new) => _ = table.replace(key(old, false), new),
        Relocate(value, second_first) => _ = table.relocate(key(value, second_first)),
    }
}

/// The values that the key has now, by counts under the lock.
fn values_now(table: &Table<SmallestOfValues>) -> BTreeSet<u16> {
    (0..4).filter(|&value| table.count(key(value, false)) > 0).collect()
}

/// What a lookup finds while these changes are made, some before each of its steps; and what the key had from the first to the
/// last.
fn look(given: &[Change], changes: &[Vec<Change>]) -> (BTreeSet<u16>, Vec<BTreeSet<u16>>) {
    let table = Rc::new(Table::<SmallestOfValues>::new(2));
    given.iter().for_each(|&given| change(&table, given));
    let had = Rc::new(RefCell::new(vec![values_now(&table)]));
    let (step, changing) = (Cell::new(0), Cell::new(false));
    let (of_others, history, changes) = (Rc::clone(&table), Rc::clone(&had), changes.to_vec());
    before_each_step(Some(Rc::new(move |_| {
        if changing.replace(true) {
            return;
        }
        for &one in changes.get(step.replace(step.get() + 1)).into_iter().flatten() {
            change(&of_others, one);
            history.borrow_mut().push(values_now(&of_others));
        }
        changing.set(false);
    })));
    let found = table.values(key(0, false)).into_iter().collect();
    before_each_step(None);
    let had = had.borrow().clone();
    (found, had)
}

fn change_strategy() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..4u16, any::<bool>()).prop_map(|(value, second)| Insert(value, second)),
        2 => (0..4u16).prop_map(Remove),
        3 => (0..4u16, 0..4u16).prop_map(|(old, new)| Replace(old, new)),
        2 => (0..4u16, any::<bool>()).prop_map(|(value, second)| Relocate(value, second)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_lookup_finds_the_values_of_one_moment(
        given in prop::collection::vec(change_strategy(), 0..4),
        changes in prop::collection::vec(prop::collection::vec(change_strategy(), 0..3), 0..12),
    ) {
        let (found, had) = look(&given, &changes);
        prop_assert!(had.contains(&found), "{:?} was found, and the key had {:?}", found, had);
    }
}

/// Between the looks at one bucket the value in the other is replaced and replaced back, each time: all words are the same at each
/// look, and yet at no moment.
#[test]
fn values_that_are_replaced_to_and_fro_are_not_taken_for_those_of_one_moment() {
    // The first bucket has 1 or 0, the second 2 or 3. It is never 1 and 2 together. A lookup reads the version, the first
    // bucket, the second one, and so on by turns.
    let given = [Insert(1, false), Insert(3, true)];
    let second_is_2 = vec![Replace(1, 0), Replace(3, 2)];
    let first_is_1 = vec![Replace(2, 3), Replace(0, 1)];
    let changes =
        [vec![], vec![], second_is_2.clone(), first_is_1.clone(), second_is_2.clone(), first_is_1.clone(), vec![]];
    let (found, had) = look(&given, &changes);
    assert!(had.contains(&found), "{found:?} was found, and the key had {had:?}");

    let _seeded = Seeded::bugs(&[Fault::ReplaceWithoutBump]);
    let (found, had) = look(&given, &changes);
    assert!(!had.contains(&found), "without its bump a replacement is not noticed: {found:?} of {had:?}");
}
