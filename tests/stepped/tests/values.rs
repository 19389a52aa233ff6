//! A lookup of values is interrupted between any two of its steps. Whatever other operations do meanwhile, the
//! lookup finds what the key had at one moment.
//!
//! The lookup and the other operations run on one thread. Before a step of the lookup, the hook does whole
//! operations. So each test decides what happens when, and nothing is left to chance.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use ccf_steps::model::{Fault, Key, Maplet, Seeded, before_each_step};
use proptest::prelude::*;

/// An operation that interrupts the lookup.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Adds a value to the emptier bucket. If both have as much room, the flag selects the second.
    Insert(u16, bool),
    Remove(u16),
    Replace(u16, u16),
    /// Moves a copy from one bucket to the other: from the second bucket if the flag is set, otherwise from the
    /// first.
    Relocate(u16, bool),
}

use Change::{Insert, Relocate, Remove, Replace};

fn key(value: u16, second_first: bool) -> Key {
    let key = <Maplet>::key(2, 0, 1, 0).with(value);
    if second_first { key.twin() } else { key }
}

fn change(table: &Maplet, change: Change) {
    match change {
        Insert(value, second_first) => _ = table.insert(key(value, second_first)),
        Remove(value) => _ = table.remove(key(value, false)),
        Replace(old, new) => _ = table.replace(key(old, false), new),
        Relocate(value, second_first) => _ = table.relocate(key(value, second_first)),
    }
}

/// The values that the key has now, found by counts under the lock.
fn values_now(table: &Maplet) -> BTreeSet<u16> {
    (0..4).filter(|&value| table.count(key(value, false)) > 0).collect()
}

/// What a lookup finds while these changes are made, each group before one of its steps, with these faults. Also
/// returns what the key had at each moment of the lookup.
fn look(given: &[Change], changes: &[Vec<Change>], faults: &'static [Fault]) -> (BTreeSet<u16>, Vec<BTreeSet<u16>>) {
    let table = Rc::new(Maplet::new(2));
    given.iter().for_each(|&given| change(&table, given));
    let had = Rc::new(RefCell::new(vec![values_now(&table)]));
    let (step, changing) = (Cell::new(0), Cell::new(false));
    let (of_others, history, changes) = (Rc::clone(&table), Rc::clone(&had), changes.to_vec());
    let _seeded = Seeded::bugs(faults);
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
        let (found, had) = look(&given, &changes, &[]);
        prop_assert!(had.contains(&found), "{:?} was found, and the key had {:?}", found, had);
    }
}

/// If the lookup ignores the version, or changes do not raise it, the same lookups find sets of values that the key
/// never had.
#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn without_a_step_a_lookup_finds_what_the_key_never_had() {
    // A look reads the version, the first bucket, the second one, and the version again.
    let before_the_second_bucket = |changes: &[Change]| vec![vec![], vec![], changes.to_vec()];
    // The first bucket has 1 or 0, the second 3 or 2. The key never has 1 and 2 together.
    let two = [Insert(1, false), Insert(3, true)];
    let replaced = before_the_second_bucket(&[Replace(1, 0), Replace(3, 2)]);
    let cases: [(&[Change], _, &'static [Fault]); 3] = [
        // First to the bucket that was read, and then to the other.
        (&[], before_the_second_bucket(&[Insert(1, false), Insert(2, true)]), &[Fault::AddValueWithoutBump]),
        (&two, replaced.clone(), &[Fault::ReplaceWithoutBump]),
        (&two, replaced, &[Fault::LookupWithoutVersion]),
    ];
    for (given, changes, faults) in cases {
        let (found, had) = look(given, &changes, &[]);
        assert!(had.contains(&found), "{found:?} was found, and the key had {had:?}");
        let (found, had) = look(given, &changes, faults);
        assert!(!had.contains(&found), "{faults:?} is not noticed: {found:?} of {had:?}");
    }
}
