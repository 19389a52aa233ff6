//! Threads that stop in the middle of an operation, for a second or for good. Each test stops a thread before each
//! of its steps in turn.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ccf_steps::WhenFull;
use ccf_steps::model::{Fault, Key, SmallestOfValues, Step, Table, before_each_step, inject};

const BUCKETS: usize = 4;

/// Nearly full: buckets A and B are full, C and D have room.
struct Scene {
    table: Table,
    /// Always in the table. `y` moves from B to C if room must be made.
    present: [Key; 4],
    /// Never in the table.
    absent: Key,
    /// Its buckets are A and B, so it can be inserted only by a relocation.
    by_relocation: Key,
    /// Has the pair of `y`, and so its stripe. It finds room at C.
    with_room: Key,
    /// A full table with a clock, which forgets what ends first. The [`young`] entry ends later.
    forgetful: Table<SmallestOfValues>,
}

/// The `nth` class of the table with a clock.
fn of_clock(nth: usize) -> Key {
    Key::of::<SmallestOfValues>(2, 0, 1, nth)
}

fn young() -> Key {
    of_clock(2)
}

impl Scene {
    fn new() -> Self {
        let [a, b, c] = [0, 1, 2];
        let [x, w, by_relocation, absent] = [0, 1, 2, 3].map(|nth| Key::new(BUCKETS, a, b, nth));
        let [y, with_room] = [0, 1].map(|nth| Key::new(BUCKETS, b, c, nth));
        let v = Key::new(BUCKETS, b, a, 4);
        let table = Table::new(BUCKETS);
        let present = [x, w, y, v];
        present.iter().for_each(|&key| table.place(key));
        let forgetful = Table::with_clock(2, 3, 10, WhenFull::ForgetOldest);
        for (key, end) in [(of_clock(0), 11), (of_clock(1), 11), (young().twin(), 12), (of_clock(3).twin(), 12)] {
            forgetful.place_until(key, end);
        }
        Self { table, present, absent, by_relocation, with_room: with_room.twin(), forgetful }
    }

    /// What a lookup must answer, whatever step the stopped thread was about to take.
    fn check(&self) {
        assert!(self.present.iter().all(|&key| self.table.contains(key)), "a present key was missed");
        assert!(!self.table.contains(self.absent), "an absent key was found");
        assert!(self.forgetful.contains_live(young()), "a present key was missed");
    }
}

/// The operation that is stopped.
type Operation = fn(&Scene);

const INSERT: Operation = |scene| scene.table.insert(scene.by_relocation).expect("there is room at C");
const INSERT_IF_ABSENT: Operation =
    |scene| assert_eq!(scene.table.insert_if_absent(scene.by_relocation), Ok(true), "there is room at C");
const REMOVE: Operation = |scene| {
    // A second copy, so that the key stays.
    scene.table.insert(scene.present[2]).expect("there is room at C");
    assert!(scene.table.remove(scene.present[2]), "a present key was not removed");
};
const COUNT: Operation = |scene| assert_eq!(scene.table.count(scene.present[2]), 1, "miscounted");
const FORGET: Operation = |scene| scene.forgetful.insert_until(of_clock(4), 13).expect("a tick makes room");
const OPERATIONS: [Operation; 4] = [INSERT, INSERT_IF_ABSENT, REMOVE, COUNT];

/// The steps that an operation takes.
fn steps_of(operation: Operation) -> Vec<Step> {
    let steps = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&steps);
    let scene = Scene::new();
    before_each_step(Some(Rc::new(move |step| log.borrow_mut().push(step))));
    operation(&scene);
    before_each_step(None);
    steps.take()
}

/// Does `at` before the `nth` step of this thread.
fn before_step(nth: usize, at: impl Fn() + 'static) {
    let taken = Cell::new(0);
    before_each_step(Some(Rc::new(move |_| {
        if taken.replace(taken.get() + 1) == nth {
            at();
        }
    })));
}

/// Runs the operation on its own thread. The thread stops before the `nth` step until `meanwhile` has ended, and
/// then continues.
fn stopped_before(nth: usize, operation: Operation, faults: &[Fault], scene: &Scene, meanwhile: impl FnOnce()) {
    let (stops, stopped) = channel();
    let (lets_go, let_go) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            inject(faults);
            before_step(nth, move || {
                stops.send(()).expect("the other thread waits for this");
                // Until the other end is dropped.
                _ = let_go.recv();
            });
            operation(scene);
        });
        stopped.recv().expect("the operation has this many steps");
        meanwhile();
        drop(lets_go);
    });
}

/// Lookups go on for a second while a thread is stopped before a step. This runs for all steps of the operation at
/// once, each in its own table.
fn lookups_go_on(operation: Operation) {
    thread::scope(|scope| {
        for nth in 0..steps_of(operation).len() {
            scope.spawn(move || {
                let scene = Scene::new();
                stopped_before(nth, operation, &[], &scene, || {
                    let end = Instant::now() + Duration::from_secs(1);
                    while Instant::now() < end {
                        scene.check();
                    }
                });
                scene.check();
            });
        }
    });
}

#[test]
fn lookups_do_not_wait_for_a_stopped_insert_that_relocates() {
    lookups_go_on(INSERT);
}

#[test]
fn lookups_do_not_wait_for_a_stopped_insert_if_absent() {
    lookups_go_on(INSERT_IF_ABSENT);
}

#[test]
fn lookups_do_not_wait_for_a_stopped_remove() {
    lookups_go_on(REMOVE);
}

#[test]
fn lookups_do_not_wait_for_a_stopped_count() {
    lookups_go_on(COUNT);
}

#[test]
fn lookups_do_not_wait_for_a_stopped_insert_that_forgets() {
    lookups_go_on(FORGET);
}

/// The control: if a relocation clears the old slot before it fills the new one, it can be stopped while its item
/// is in neither.
#[test]
#[should_panic(expected = "a present key was missed")]
fn a_relocation_that_stops_with_its_item_in_hand_is_noticed() {
    let faults = [Fault::RelocateClearsFirst];
    for nth in 0..steps_of(INSERT).len() {
        let scene = Scene::new();
        stopped_before(nth, INSERT, &faults, &scene, || scene.check());
    }
}

/// Whether the operation waits for a lock. If it does, it is not carried out.
fn waits(operation: impl FnOnce()) -> bool {
    before_each_step(Some(Rc::new(|step| assert_ne!(step, Step::Wait, "it waits for a lock"))));
    let result = catch_unwind(AssertUnwindSafe(operation));
    before_each_step(None);
    result.is_err()
}

#[test]
fn inserts_that_find_room_do_not_wait_for_a_stopped_writer() {
    for operation in OPERATIONS {
        for nth in 0..steps_of(operation).len() {
            let scene = Scene::new();
            stopped_before(nth, operation, &[], &scene, || {
                let insert = || scene.table.insert(scene.with_room).expect("there is room at C");
                assert!(!waits(insert), "an insert that finds room waited for a lock");
                assert!(scene.table.contains(scene.with_room), "a present key was missed");
            });
            assert!(scene.table.contains(scene.with_room), "a present key was missed");
        }
    }
}

/// The control of the tests above. The stopped writer holds the lock of the key that it moves from the step that
/// takes the lock to the step that releases it, and no longer.
#[test]
fn a_removal_waits_for_a_writer_that_stopped_under_its_lock() {
    let steps = steps_of(INSERT);
    let place = |wanted| steps.iter().position(|&step| step == wanted).expect("a relocation locks");
    let locked = place(Step::Lock) + 1..=place(Step::Unlock);
    assert!(locked.contains(&(place(Step::Unlock) - 1)), "there are steps under the lock");
    for nth in 0..steps.len() {
        let scene = Scene::new();
        stopped_before(nth, INSERT, &[], &scene, || {
            let remove_moving = || assert!(scene.table.remove(scene.present[2]), "a present key was not removed");
            assert_eq!(waits(remove_moving), locked.contains(&nth), "step {nth} of {steps:?}");
        });
    }
}

/// No step of the real library can panic or be cancelled. If one could, this would be the only damage: an item may
/// be counted twice or not at all, and an item that was being moved may have two copies.
#[test]
fn a_thread_that_dies_loses_no_item_and_holds_no_lock() {
    for operation in OPERATIONS {
        for nth in 0..steps_of(operation).len() {
            let scene = Scene::new();
            before_step(nth, || panic!("this thread dies"));
            let died = catch_unwind(AssertUnwindSafe(|| operation(&scene))).is_err();
            before_each_step(None);
            assert!(died, "the operation has this many steps");
            scene.check();
            let use_all = || {
                scene.table.insert(scene.with_room).expect("there is room at C");
                for &key in scene.present.iter().chain([&scene.with_room]) {
                    assert!(scene.table.count(key) > 0, "an item was lost");
                    assert!(scene.table.remove(key), "a present key was not removed");
                }
                scene.table.clear();
                assert_eq!(scene.table.scan(), 0);
            };
            assert!(!waits(use_all), "a lock is still held");
        }
    }
}
