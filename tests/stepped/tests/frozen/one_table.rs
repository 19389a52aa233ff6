//! Threads that stop amid an operation on a table of a fixed size.

use std::cell::Cell;

use ccf_steps::WhenFull;
use ccf_steps::model::{Expiring, Fault, Key, Set};

use crate::frozen::{Act, Stop, waits};

const BUCKETS: usize = 4;

/// Nearly full: buckets A and B are full, C and D have room.
struct Scene {
    table: Set,
    /// Always in the table. `y` moves from B to C if room must be made.
    present: [Key; 4],
    /// Never in the table.
    absent: Key,
    /// Its buckets are A and B, so it can be inserted only by a relocation.
    by_relocation: Key,
    /// Has the pair of `y`, and so its stripe. It finds room at C.
    with_room: Key,
    /// A full table with a clock, which evicts what ends first. The [`young`] entry ends later.
    evicting: Expiring,
}

/// The `nth` class of the table with a clock.
fn of_clock(nth: usize) -> Key {
    <Expiring>::key(2, 0, 1, nth)
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
        let table = Set::new(BUCKETS);
        let present = [x, w, y, v];
        present.iter().for_each(|&key| table.place(key));
        let evicting = Expiring::with_clock(2, 3, 10, WhenFull::EvictSoonest);
        for (key, end) in [(of_clock(0), 11), (of_clock(1), 11), (young().twin(), 12), (of_clock(3).twin(), 12)] {
            evicting.place_until(key, end);
        }
        Self { table, present, absent, by_relocation, with_room: with_room.twin(), evicting }
    }

    /// What a lookup must answer, whatever step the stopped thread was about to take.
    fn check(&self) {
        assert!(self.present.iter().all(|&key| self.table.contains(key)), "a present key was missed");
        assert!(!self.table.contains(self.absent), "an absent key was found");
        assert!(self.evicting.contains(young()), "a present key was missed");
    }
}

const fn act(operation: fn(&Scene)) -> Act<Scene> {
    Act { scene: Scene::new, operation }
}

const INSERT: Act<Scene> = act(|scene| scene.table.insert(scene.by_relocation).expect("there is room at C"));
const INSERT_IF_ABSENT: Act<Scene> =
    act(|scene| assert_eq!(scene.table.insert_if_absent(scene.by_relocation), Ok(true), "there is room at C"));
const REMOVE: Act<Scene> = act(|scene| {
    // A second copy, so that the key stays.
    scene.table.insert(scene.present[2]).expect("there is room at C");
    assert!(scene.table.remove(scene.present[2]), "a present key was not removed");
});
const COUNT: Act<Scene> = act(|scene| assert_eq!(scene.table.count(scene.present[2]), 1, "miscounted"));
const EVICT: Act<Scene> = act(|scene| _ = scene.evicting.insert_until(of_clock(4), 13).expect("a tick makes room"));
const ACTS: [Act<Scene>; 4] = [INSERT, INSERT_IF_ABSENT, REMOVE, COUNT];

#[test]
fn lookups_do_not_wait_for_a_stopped_writer() {
    for act in ACTS.iter().chain([&EVICT]) {
        act.stopped(&[], |stop, scene| assert!(!waits(|| scene.check()), "a lookup waited: {stop:?}"), Scene::check);
    }
}

/// The control: if a relocation clears the old slot before it fills the new one, it can be stopped while its item
/// is in neither.
#[test]
#[should_panic(expected = "a present key was missed")]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_relocation_that_stops_with_its_item_in_hand_is_noticed() {
    INSERT.stopped(&[Fault::RelocateClearsFirst], |_, scene| scene.check(), |_| ());
}

#[test]
fn inserts_that_find_room_do_not_wait_for_a_stopped_writer() {
    let inserts = |_, scene: &Scene| {
        let insert = || scene.table.insert(scene.with_room).expect("there is room at C");
        assert!(!waits(insert), "an insert that finds room waited for a lock");
        assert!(scene.table.contains(scene.with_room), "a present key was missed");
    };
    let finds = |scene: &Scene| assert!(scene.table.contains(scene.with_room), "a present key was missed");
    ACTS.iter().for_each(|act| act.stopped(&[], inserts, finds));
}

/// The control of the tests above. The stopped writer holds the lock of the key that it moves from the step that
/// takes the lock to the step that releases it, and no longer.
#[test]
fn a_removal_waits_for_a_writer_that_stopped_under_its_lock() {
    let under_it = Cell::new(0);
    let removes = |stop: Stop, scene: &Scene| {
        let remove_moving = || assert!(scene.table.remove(scene.present[2]), "a present key was not removed");
        assert_eq!(waits(remove_moving), stop.locks > 0, "{stop:?}");
        under_it.set(under_it.get() + stop.locks);
    };
    INSERT.stopped(&[], removes, |_| ());
    assert!(under_it.get() > 1, "there are steps under the lock");
}

/// No step of the real library can panic or be canceled. If one could, this would be the only damage: an item may
/// be counted twice or not at all, and an item that was being moved may have two copies.
#[test]
fn a_thread_that_dies_loses_no_item_and_holds_no_lock() {
    let is_well = |_, scene: &Scene| {
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
    };
    ACTS.iter().for_each(|act| act.dies(is_well));
}
