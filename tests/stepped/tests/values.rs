//! A lookup of values that is interrupted between any two of its steps: whatever others do meanwhile, it finds what the key had
//! at one moment.
//!
//! Both run on one thread. Before a step of the lookup, the hook does whole operations of others. So each test decides
//! what happens when, and nothing is left to chance.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use ccf_steps::model::{
    AnyLayout, Fault, Key, Seeded, SmallestOfValues, Table, UsualOfValues, before_each_step, inject,
};
use proptest::prelude::*;

/// What others do.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Adds a value; to the second bucket, if both have as much room.
    Insert(u16, bool),
    Remove(u16),
    /// Takes the value, by a removal that has raised the version before the lookup began, and has not got further yet.
    RemoveAtLast(u16),
    Replace(u16, u16),
    /// Moves a copy from one bucket to the other: from the second one or from the first one.
    Relocate(u16, bool),
}

use Change::{Insert, Relocate, Remove, RemoveAtLast, Replace};

fn key<L: AnyLayout>(value: u16, second_first: bool) -> Key {
    let key = Key::of::<L>(2, 0, 1, 0).with::<L>(value);
    if second_first { key.twin() } else { key }
}

fn change<L: AnyLayout>(table: &Table<L>, change: Change, faults: &[Fault]) {
    match change {
        Insert(value, second_first) => _ = table.insert(key::<L>(value, second_first)),
        Remove(value) => _ = table.remove(key::<L>(value, false)),
        RemoveAtLast(value) => {
            inject(&[Fault::RemoveWithoutBump]);
            assert!(table.remove(key::<L>(value, false)));
            inject(faults);
        }
        Replace(old, new) => _ = table.replace(key::<L>(old, false), new),
        Relocate(value, second_first) => _ = table.relocate(key::<L>(value, second_first)),
    }
}

/// The values that the key has now, by counts under the lock.
fn values_now<L: AnyLayout>(table: &Table<L>) -> BTreeSet<u16> {
    (0..4).filter(|&value| table.count(key::<L>(value, false)) > 0).collect()
}

/// What a lookup finds while these changes are made, some before each of its steps, with these faults; and what the key had from
/// the first to the last. `placed` are there to begin with, each in its first bucket.
fn look<L: AnyLayout + 'static>(
    placed: &[Key],
    given: &[Change],
    changes: &[Vec<Change>],
    faults: &'static [Fault],
) -> (BTreeSet<u16>, Vec<BTreeSet<u16>>) {
    let table = Rc::new(Table::<L>::new(2));
    placed.iter().for_each(|&key| table.place(key));
    given.iter().for_each(|&given| change(&table, given, &[]));
    let had = Rc::new(RefCell::new(vec![values_now(&table)]));
    let (step, changing) = (Cell::new(0), Cell::new(false));
    let (of_others, history, changes) = (Rc::clone(&table), Rc::clone(&had), changes.to_vec());
    let _seeded = Seeded::bugs(faults);
    before_each_step(Some(Rc::new(move |_| {
        if changing.replace(true) {
            return;
        }
        for &one in changes.get(step.replace(step.get() + 1)).into_iter().flatten() {
            change(&of_others, one, faults);
            history.borrow_mut().push(values_now(&of_others));
        }
        changing.set(false);
    })));
    let found = table.values(key::<L>(0, false)).into_iter().collect();
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
        let (found, had) = look::<SmallestOfValues>(&[], &given, &changes, &[]);
        prop_assert!(had.contains(&found), "{:?} was found, and the key had {:?}", found, had);
    }
}

/// The steps of a lookup's first look: the version, the first bucket, the second one, the first one again, the version. If it
/// finds several values, it looks again, at the version and then at the buckets by turns.
const FIRST_LOOK: usize = 5;

/// Between the looks at one bucket the value in the other is replaced and replaced back, each time: all words are the same at each
/// look, and yet at no moment.
#[test]
fn values_that_are_replaced_to_and_fro_are_not_taken_for_those_of_one_moment() {
    // The first bucket has 1 or 0, the second 2 or 3. It is never 1 and 2 together.
    let given = [Insert(1, false), Insert(3, true)];
    let second_is_2 = vec![Replace(1, 0), Replace(3, 2)];
    let first_is_1 = vec![Replace(2, 3), Replace(0, 1)];
    let by_turns = [second_is_2.clone(), first_is_1.clone(), second_is_2, first_is_1];
    let changes: Vec<_> = vec![vec![]; FIRST_LOOK + 2].into_iter().chain(by_turns).collect();
    let (found, had) = look::<SmallestOfValues>(&[], &given, &changes, &[]);
    assert!(had.contains(&found), "{found:?} was found, and the key had {had:?}");

    let (found, had) = look::<SmallestOfValues>(&[], &given, &changes, &[Fault::ReplaceWithoutBump]);
    assert!(!had.contains(&found), "without its bump a replacement is not noticed: {found:?} of {had:?}");
}

/// A removal has announced what it takes and not yet taken it when a lookup begins. While the lookup looks, the value is taken,
/// two others come, and the first one comes back.
#[test]
fn a_value_that_goes_and_comes_back_is_not_taken_for_one_that_stays() {
    let other = |nth| Key::of::<UsualOfValues>(2, 0, 1, nth);
    // The first bucket is full of one value and others' items. The second has more room than the first will have, until the two
    // others are there. And it has another value already, so that the lookup finds several.
    let one = key::<UsualOfValues>(1, false);
    let placed = [other(1), other(2), other(3), other(4), one, other(5).twin()];
    let given = [Insert(0, true)];
    let changes: Vec<_> = vec![vec![]; FIRST_LOOK + 2]
        .into_iter()
        .chain([vec![RemoveAtLast(1), Insert(2, false)], vec![Insert(3, false), Insert(1, false)]])
        .collect();
    let (found, had) = look::<UsualOfValues>(&placed, &given, &changes, &[]);
    assert!(had.contains(&found), "{found:?} was found, and the key had {had:?}");

    let (found, had) = look::<UsualOfValues>(&placed, &given, &changes, &[Fault::ValuesLookAgainOnce]);
    assert!(!had.contains(&found), "one look at the second bucket is not enough: {found:?} of {had:?}");
}
