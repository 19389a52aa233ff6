//! An insert is interrupted between its steps. At each moment there is room for it, or it needs none any more. So it must
//! not fail, even if its searches always look for the free slot where that has just been.
//!
//! All of this runs on one thread: before chosen steps of the insert, the hook makes the changes of other threads. Each
//! choice of these steps is tried, so nothing is left to chance.
//!
//! In these tables of four buckets, `A` and `B` are full, and so are `C` and `D` except for one slot. That is in `C` until
//! an item of these two moves there. A search reads `D` before `C`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::rc::Rc;

use ccf_steps::model::{Fault, Key, ModelLayout, Seeded, Smallest, SmallestOfValues, Step, Table, before_each_step};
use ccf_steps::{ExpiringInsertError, InsertError, WhenFull};

const BUCKETS: usize = 4;

/// The buckets and the number of each key that stays. It is in the first of its buckets.
const STAYING: [(usize, usize, usize); 6] = {
    let [a, b, c, d] = [0, 1, 2, 3];
    [(a, b, 1), (a, d, 0), (b, a, 2), (b, c, 0), (d, c, 1), (c, d, 2)]
};

/// The key that is inserted. Its buckets are `A` and `B`.
fn inserted<L: ModelLayout>() -> Key {
    Key::of::<L>(BUCKETS, 0, 1, 0)
}

/// The `nth` class of the buckets `C` and `D`.
fn between<L: ModelLayout>(nth: usize) -> Key {
    Key::of::<L>(BUCKETS, 2, 3, nth)
}

/// All keys that are in the table from the beginning. The last one is in `D`, and moves.
fn given<L: ModelLayout>() -> impl Iterator<Item = Key> {
    let staying = STAYING.into_iter().map(|(first, second, nth)| Key::of::<L>(BUCKETS, first, second, nth));
    staying.chain([between::<L>(0).twin()])
}

/// What other threads do before one step of the insert.
type Change<L> = fn(&Table<L>);

/// The insert, with the answer whether the key was added.
type Insert<L, E> = fn(&Table<L>) -> Result<bool, E>;

struct Scene<L, E> {
    make: fn() -> Table<L>,
    insert: Insert<L, E>,
    /// In this order.
    changes: Vec<Change<L>>,
}

impl<L: ModelLayout + 'static, E: Debug> Scene<L, E> {
    /// Inserts the key, and makes each change before the step of this number. Only those steps are counted during which
    /// the insert holds no lock, because a change may need it. Returns how many there were, and the answer.
    fn play(&self, interrupted: &[usize]) -> (usize, Result<bool, E>) {
        let (table, steps) = (Rc::new((self.make)()), Rc::new(Cell::new(0)));
        let (locks, changing) = (Cell::new(0), Cell::new(false));
        let (of_others, counter) = (Rc::clone(&table), Rc::clone(&steps));
        let (changes, interrupted) = (self.changes.clone(), interrupted.to_vec());
        before_each_step(Some(Rc::new(move |step| {
            if changing.get() {
                return;
            }
            if locks.get() == 0 {
                let now = counter.replace(counter.get() + 1);
                if let Some(nth) = interrupted.iter().position(|&step| step == now) {
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
        (steps.get(), answer)
    }

    /// Plays each choice of steps, also for the first changes alone. Returns the first one that makes the insert fail.
    fn failure(&self) -> Option<(Vec<usize>, E)> {
        let mut choices = VecDeque::from([vec![]]);
        while let Some(choice) = choices.pop_front() {
            let (steps, answer) = self.play(&choice);
            if let Err(error) = answer {
                return Some((choice, error));
            }
            if choice.len() < self.changes.len() {
                let next = choice.last().map_or(0, |last| last + 1);
                choices.extend((next..steps).map(|step| [&choice[..], &[step]].concat()));
            }
        }
        None
    }

    /// Checks that the insert never fails, and that it does if these steps of the protocol are left out.
    fn check(&self, faults: &'static [Fault]) {
        if let Some((steps, error)) = self.failure() {
            panic!("interrupted before its steps {steps:?}, the insert failed: {error:?}");
        }
        if cfg!(ccf_uncontrolled) {
            return;
        }
        let _seeded = Seeded::bugs(faults);
        let failure = self.failure();
        println!("without {faults:?}: {failure:?}");
        assert!(failure.is_some(), "{faults:?} is not detected");
    }
}

fn full_but_for_one_slot() -> Table {
    let table = Table::new(BUCKETS);
    given::<Smallest>().for_each(|key| table.place(key));
    assert_eq!(table.len() + 1, BUCKETS * table.slots_per_bucket());
    table
}

/// Moves an item to its other bucket, and with it the free slot. (If the insert has moved other items, there may be no room
/// for this one.)
fn move_the_slot(table: &Table) {
    let key = between::<Smallest>(0);
    _ = table.relocate(key) || table.relocate(key.twin());
}

/// A scene in which the slot moves this often.
fn slot_moves(times: usize) -> Scene<Smallest, InsertError> {
    let insert = |table: &Table| table.insert(inserted::<Smallest>()).map(|()| true);
    Scene { make: full_but_for_one_slot, insert, changes: vec![move_the_slot; times] }
}

#[test]
fn a_slot_that_moves_once_is_found() {
    slot_moves(1).check(&[Fault::FullWithoutConfirmation]);
}

/// The slot moves during each of the two searches that an insert makes before it takes all locks, and between them.
#[test]
fn a_slot_that_keeps_moving_is_found() {
    slot_moves(3).check(&[Fault::FullIgnoresVersions]);
}

/// After a search has missed the slot, another thread inserts the same key. Then the table is full.
#[test]
fn a_key_that_has_come_needs_no_room() {
    let insert = |table: &Table| table.insert_if_absent(inserted::<Smallest>());
    let come = |table: &Table| _ = table.insert_if_absent(inserted::<Smallest>()).expect("there is room");
    let changes: Vec<Change<_>> = vec![move_the_slot, come];
    Scene { make: full_but_for_one_slot, insert, changes }.check(&[Fault::FullThoughPresent]);
}

/// The same with a clock. All entries live until tick 13.
fn with_clock() -> Table<SmallestOfValues> {
    let table = Table::with_clock(BUCKETS, 3, 10, WhenFull::Refuse);
    given::<SmallestOfValues>().for_each(|key| table.place_until(key, 13));
    table
}

fn move_the_slot_with_clock(table: &Table<SmallestOfValues>) {
    let key = between::<SmallestOfValues>(0);
    _ = table.relocate_until(key, 13) || table.relocate_until(key.twin(), 13);
}

/// After a search has missed the slot, the entry expires, and then another one takes the slot.
#[test]
fn an_entry_that_has_expired_needs_no_room() {
    let expire_and_fill = |table: &Table<SmallestOfValues>| {
        table.advance_to(11);
        _ = table.insert_until(between::<SmallestOfValues>(3), 13);
    };
    let inserts: [Insert<_, ExpiringInsertError>; 3] = [
        |table| table.insert_until(inserted::<SmallestOfValues>(), 11),
        |table| table.insert_if_absent_until(inserted::<SmallestOfValues>(), 11),
        |table| table.insert_or_renew_until(inserted::<SmallestOfValues>(), 11),
    ];
    for insert in inserts {
        let changes: Vec<Change<_>> = vec![move_the_slot_with_clock, expire_and_fill];
        Scene { make: with_clock, insert, changes }.check(&[Fault::FullThoughExpired]);
    }
}

/// After a search has missed the slot, another thread adds an entry of the same key. Then the table is full.
#[test]
fn a_key_that_has_come_needs_no_room_until_then() {
    let inserts: [Insert<_, ExpiringInsertError>; 2] = [
        |table| table.insert_if_absent_until(inserted::<SmallestOfValues>(), 12),
        |table| table.insert_or_renew_until(inserted::<SmallestOfValues>(), 12),
    ];
    let come =
        |table: &Table<_>| _ = table.insert_if_absent_until(inserted::<SmallestOfValues>(), 13).expect("there is room");
    for insert in inserts {
        let changes: Vec<Change<_>> = vec![move_the_slot_with_clock, come];
        Scene { make: with_clock, insert, changes }.check(&[Fault::FullThoughPresent, Fault::FullThoughExpired]);
    }
}
