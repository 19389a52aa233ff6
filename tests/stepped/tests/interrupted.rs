//! An insert is interrupted between its steps. At each moment there is room for it, or it needs none any more. So it must
//! not fail, even if its searches always look for the free slot where that has just been. And no item may get lost.
//!
//! All of this runs on one thread: before chosen steps of the insert, the hook makes the changes of other threads. Each
//! choice of these steps is tried, so nothing is left to chance.
//!
//! These tables are full except for one slot. That is in one of two buckets, `G` and `H`, and an item of these two moves it
//! to the other one. The inserted key has the buckets `A` and `B`, and paths of three hops lead from there to `G` and `H`:
//! a search looks for shorter ones first, in another way.

use std::cell::Cell;
use std::fmt::Debug;
use std::rc::Rc;

use ccf_steps::model::{
    Expiring, Expiry, Fault, Growable, GrowableKey, Key, ModelEntries, Nothing, Seeded, Set, Smallest, Step, Table,
    before_each_step,
};
use ccf_steps::{ExpiringInsertError, InsertError, WhenFull};

const BUCKETS: usize = 8;

/// The buckets and the number of each key that stays. It is in the first of its buckets.
const STAYING: [(usize, usize, usize); 14] = {
    let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7];
    [
        (a, b, 1),
        (a, d, 0),
        (b, a, 2),
        (b, c, 0),
        (c, d, 0),
        (c, f, 0),
        (d, c, 1),
        (d, e, 0),
        (e, f, 0),
        (e, h, 0),
        (f, e, 1),
        (f, g, 0),
        (g, h, 1),
        (h, g, 2),
    ]
};

/// The key that is inserted. Its buckets are `A` and `B`.
fn inserted<E: ModelEntries>() -> Key {
    Table::<E, Smallest>::key(BUCKETS, 0, 1, 0)
}

/// The `nth` class of the buckets `G` and `H`.
fn between<E: ModelEntries>(nth: usize) -> Key {
    Table::<E, Smallest>::key(BUCKETS, 6, 7, nth)
}

/// All keys that are in the table from the beginning, each in the first of its buckets. The last one moves.
fn given<E: ModelEntries>() -> impl Iterator<Item = Key> {
    let staying =
        STAYING.into_iter().map(|(first, second, nth)| Table::<E, Smallest>::key(BUCKETS, first, second, nth));
    staying.chain([between::<E>(0)])
}

/// The same, with the last one in the other bucket.
fn given_otherwise<E: ModelEntries>() -> impl Iterator<Item = Key> {
    given::<E>().take(STAYING.len()).chain([between::<E>(0).twin()])
}

/// What other threads do before one step of the insert.
type Change<T> = fn(&T);

/// The insert, with the answer whether the key was added.
type Insert<T, E> = fn(&T) -> Result<bool, E>;

struct Scene<T, E> {
    /// Each is tried. The free slot is in either bucket at first, so a scene does not depend on the order in which a search
    /// reads them.
    tables: Vec<fn() -> T>,
    insert: Insert<T, E>,
    /// In this order.
    changes: Vec<Change<T>>,
    /// Whether the table holds just what it must, after so many of the changes.
    is_right: fn(&T, usize) -> bool,
}

impl<T: 'static, E: Debug> Scene<T, E> {
    /// Inserts the key, and makes each change before the step of this number. Only those steps are counted during which
    /// the insert holds no lock, because a change may need it. Returns how many there were, and what went wrong.
    fn play(&self, table: T, interrupted: &[usize]) -> (usize, Option<String>) {
        let (table, steps) = (Rc::new(table), Rc::new(Cell::new(0)));
        let (locks, changing) = (Cell::new(0), Cell::new(false));
        let (of_others, counter) = (Rc::clone(&table), Rc::clone(&steps));
        let (changes, chosen) = (self.changes.clone(), interrupted.to_vec());
        before_each_step(Some(Rc::new(move |step| {
            if changing.get() {
                return;
            }
            if locks.get() == 0 {
                let now = counter.replace(counter.get() + 1);
                if let Some(nth) = chosen.iter().position(|&step| step == now) {
                    changing.set(true);
                    changes[nth](&of_others);
                    changing.set(false);
                }
            }
            match step {
                Step::Lock => locks.set(locks.get() + 1),
                Step::Unlock => locks.set(locks.get() - 1),
                Step::Load | Step::Write | Step::Wait => (),
            }
        })));
        let answer = (self.insert)(&table);
        before_each_step(None);
        let wrong = match answer {
            Err(error) => Some(format!("the insert failed: {error:?}")),
            Ok(_) if !(self.is_right)(&table, interrupted.len()) => Some("an item was lost or doubled".to_owned()),
            Ok(_) => None,
        };
        (steps.get(), wrong)
    }

    /// Plays each choice of steps: of none, of one for the first change alone, and so on. Returns the first one with which
    /// something goes wrong.
    fn failure(&self) -> Option<(Vec<usize>, String)> {
        let mut lengths = 0..=self.changes.len();
        lengths.find_map(|len| self.tables.iter().find_map(|&table| self.failure_with(table, &mut Vec::new(), len)))
    }

    /// The same for the choices that begin with this one, and have so many more steps.
    fn failure_with(&self, table: fn() -> T, choice: &mut Vec<usize>, more: usize) -> Option<(Vec<usize>, String)> {
        let (steps, wrong) = self.play(table(), choice);
        if more == 0 {
            return wrong.map(|wrong| (choice.clone(), wrong));
        }
        let next = choice.last().map_or(0, |last| last + 1);
        (next..steps).find_map(|step| {
            choice.push(step);
            let failure = self.failure_with(table, choice, more - 1);
            choice.pop();
            failure
        })
    }

    /// Checks that nothing goes wrong, and that this does if these steps of the protocol are left out.
    fn check(&self, faults: &'static [Fault], goes_wrong: &str) {
        if let Some((steps, wrong)) = self.failure() {
            panic!("interrupted before its steps {steps:?}: {wrong}");
        }
        if cfg!(ccf_uncontrolled) {
            return;
        }
        let _seeded = Seeded::bugs(faults);
        let (steps, wrong) = self.failure().unwrap_or_else(|| panic!("{faults:?} is not detected"));
        println!("without {faults:?}, interrupted before its steps {steps:?}: {wrong}");
        assert!(wrong.contains(goes_wrong), "{faults:?}: {wrong}");
    }
}

fn full_but_for_one_slot(keys: impl Iterator<Item = Key>) -> Set {
    let table = Set::new(BUCKETS);
    keys.for_each(|key| table.place(key));
    assert_eq!(table.len() + 1, BUCKETS * table.slots_per_bucket());
    table
}

fn tables() -> Vec<fn() -> Set> {
    vec![|| full_but_for_one_slot(given::<Nothing>()), || full_but_for_one_slot(given_otherwise::<Nothing>())]
}

/// Moves an item to its other bucket, and with it the free slot. (If the insert has moved other items, there may be no room
/// for this one.)
fn move_the_slot(table: &Set) {
    let key = between::<Nothing>(0);
    _ = table.relocate(key) || table.relocate(key.twin());
}

/// Whether no key that stays was lost or doubled, and the length is right.
fn has_all(table: &Set, _: usize) -> bool {
    given::<Nothing>().all(|key| table.count(key) == 1) && table.scan() == table.len()
}

/// A scene in which the slot moves this often.
fn slot_moves(times: usize) -> Scene<Set, InsertError> {
    let insert: Insert<Set, _> = |table| table.insert(inserted::<Nothing>()).map(|()| true);
    Scene { tables: tables(), insert, changes: vec![move_the_slot; times], is_right: has_all }
}

#[test]
fn a_slot_that_moves_is_found() {
    slot_moves(1).check(&[Fault::FullWithoutConfirmation], "the insert failed");
}

/// The slot moves during each of the two searches that an insert makes before it takes all locks, and between them.
#[test]
fn a_slot_that_keeps_moving_is_found() {
    slot_moves(3).check(&[Fault::FullIgnoresVersions], "the insert failed");
}

/// After a search has missed the slot, another thread inserts the same key. Then the table is full.
#[test]
fn a_key_that_has_come_needs_no_room() {
    let insert: Insert<Set, _> = |table| table.insert_if_absent(inserted::<Nothing>());
    let come: Change<Set> = |table| _ = table.insert_if_absent(inserted::<Nothing>()).expect("there is room");
    Scene { tables: tables(), insert, changes: vec![move_the_slot, come], is_right: has_all }
        .check(&[Fault::FullThoughPresent], "the insert failed");
}

/// The same with a clock. All entries live until tick 13.
fn with_clock(keys: impl Iterator<Item = Key>) -> Expiring {
    let table = Expiring::with_clock(BUCKETS, 3, 10, WhenFull::Refuse);
    keys.for_each(|key| table.place_until(key, 13));
    table
}

fn move_the_slot_with_clock(table: &Expiring) {
    let key = between::<Expiry>(0);
    _ = table.relocate_until(key, 13) || table.relocate_until(key.twin(), 13);
}

/// A scene of each of these inserts. After a search has missed the slot, `change` happens, and then the table is full.
fn each_with_clock(
    inserts: &[Insert<Expiring, ExpiringInsertError>],
    change: Change<Expiring>,
    faults: &'static [Fault],
) {
    let is_right =
        |table: &Expiring, _| given::<Expiry>().all(|key| table.contains(key)) && table.scan() == table.len();
    for &insert in inserts {
        let tables: Vec<fn() -> Expiring> =
            vec![|| with_clock(given::<Expiry>()), || with_clock(given_otherwise::<Expiry>())];
        let changes = vec![move_the_slot_with_clock, change];
        Scene { tables, insert, changes, is_right }.check(faults, "the insert failed");
    }
}

/// The entry expires, and then another one takes the slot.
#[test]
fn an_entry_that_has_expired_needs_no_room() {
    let expire_and_fill = |table: &Expiring| {
        table.advance_to(11);
        _ = table.insert_until(between::<Expiry>(3), 13);
    };
    let inserts: [Insert<Expiring, _>; 3] = [
        |table| table.insert_until(inserted::<Expiry>(), 11),
        |table| table.insert_if_absent_until(inserted::<Expiry>(), 11),
        |table| table.insert_or_renew_until(inserted::<Expiry>(), 11),
    ];
    each_with_clock(&inserts, expire_and_fill, &[Fault::FullThoughExpired]);
}

/// Another thread adds an entry of the same key.
#[test]
fn a_key_that_has_come_needs_no_room_until_then() {
    let come = |table: &Expiring| _ = table.insert_if_absent_until(inserted::<Expiry>(), 13).expect("there is room");
    let inserts: [Insert<Expiring, _>; 2] = [
        |table| table.insert_if_absent_until(inserted::<Expiry>(), 12),
        |table| table.insert_or_renew_until(inserted::<Expiry>(), 12),
    ];
    each_with_clock(&inserts, come, &[Fault::FullThoughPresent, Fault::FullThoughExpired]);
}

/// The class of a growing filter of four buckets that goes from the odd bucket of the inserted key to an even one.
fn on_the_path() -> GrowableKey {
    GrowableKey::new(2, 1, 0)
}

fn of_growable() -> GrowableKey {
    GrowableKey::new(0, 1, 0)
}

/// Those that stay: each with the buckets of its sides, its number, and whether it is on the odd side.
fn staying_in_growable() -> impl Iterator<Item = (GrowableKey, bool)> {
    let keys =
        [(0, 1, 1, false), (0, 3, 0, false), (0, 1, 2, true), (2, 3, 0, false), (2, 3, 1, true), (0, 3, 1, true)];
    keys.into_iter().map(|(even, odd, nth, is_odd)| (GrowableKey::new(even, odd, nth), is_odd))
}

/// Both buckets of the inserted key are full, and one slot is free, in the bucket 2.
fn growable() -> Growable {
    let filter = Growable::of_buckets(4);
    staying_in_growable().for_each(|(key, is_odd)| filter.place(key, is_odd));
    filter.place(on_the_path(), true);
    filter
}

/// The item that a relocation is about to move is removed, and inserted again. Meanwhile the filter grows.
#[test]
fn an_item_that_has_gone_is_not_moved_while_the_filter_grows() {
    let remove: Change<Growable> = |filter| assert!(filter.remove(on_the_path()), "it was there");
    let split: Change<Growable> = |filter| _ = filter.split_if_possible();
    let come_back: Change<Growable> = |filter| filter.insert(on_the_path()).expect("it may grow");
    let is_right = |filter: &Growable, changes| {
        let stay = staying_in_growable().all(|(key, _)| filter.count(key) == 1);
        let back = usize::from(![1, 2].contains(&changes));
        stay && [of_growable(), on_the_path()].map(|key| filter.count(key)) == [1, back]
            && filter.len() == staying_in_growable().count() + 1 + back
    };
    let insert: Insert<Growable, _> = |filter| filter.insert(of_growable()).map(|()| true);
    Scene { tables: vec![growable], insert, changes: vec![remove, split, come_back], is_right }
        .check(&[Fault::RelocateWithoutRecheck], "an item was lost or doubled");
}
