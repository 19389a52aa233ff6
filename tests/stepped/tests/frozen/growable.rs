//! Threads that stop amid an operation on a filter that grows and shrinks.

use std::cell::Cell;

use ccf_steps::model::{Fault, Growable, GrowableKey};

use crate::frozen::{Act, Stop, waits};

/// A filter of four buckets of two slots. With two buckets, each key has both.
struct Scene {
    filter: Growable,
    /// Always in the filter. The last one is in twice, and once while it is removed and put back.
    present: Vec<GrowableKey>,
    /// Never in the filter.
    absent: GrowableKey,
    /// Is inserted by the thread that is stopped.
    own: GrowableKey,
    /// Is inserted by another one.
    others: GrowableKey,
}

/// Keys of different classes.
fn keys<const N: usize>(even: usize, odd: usize) -> [GrowableKey; N] {
    std::array::from_fn(|nth| GrowableKey::new(even, odd, nth))
}

impl Scene {
    fn new(filter: Growable, present: Vec<GrowableKey>) -> Self {
        present.iter().chain(present.last()).for_each(|&key| filter.insert(key).expect("there is room"));
        let [absent, own, others] = keys(0, 1);
        Self { filter, present, absent, own, others }
    }

    fn usual() -> Self {
        let ([x], [y]) = (keys(4, 5), keys(6, 7));
        Self::new(Growable::of_buckets(4), vec![x, y])
    }

    /// With two buckets, and without room for one more.
    fn full() -> Self {
        let ([x, z], [y]) = (keys(4, 5), keys(6, 7));
        Self::new(Growable::new(), vec![x, z, y])
    }

    /// What a lookup must answer, whatever step the stopped thread was about to take.
    fn check(&self) {
        assert!(self.present.iter().all(|&key| self.filter.contains(key)), "a present key was missed");
        assert!(!self.filter.contains(self.absent), "an absent key was found");
        let [x, y] = [self.present[0], self.twice()];
        assert_eq!(self.filter.contains_batch(&[x, self.absent, y]), [true, false, true], "a batch was wrong");
    }

    /// Inserts, counts and removes a key.
    fn change(&self) {
        self.filter.insert(self.others).expect("there is room");
        assert!(self.filter.contains(self.others), "a present key was missed");
        assert_eq!(self.filter.count(self.others), 1, "miscounted");
        assert!(self.filter.remove(self.others), "a present key was not removed");
        assert_eq!(self.filter.insert_if_absent(self.present[0]), Ok(false), "a present key was added");
    }

    /// Removes one of two copies, and counts the other.
    fn remove_and_count(&self) {
        assert_eq!(self.filter.count(self.twice()), 2, "miscounted");
        assert!(self.filter.remove(self.twice()), "a present key was not removed");
        assert_eq!(self.filter.count(self.twice()), 1, "miscounted");
        assert_eq!(self.filter.insert_if_absent(self.twice()), Ok(false), "a present key was added");
    }

    fn save(&self) {
        let loaded = self.filter.save_and_load(|| ());
        assert!(self.present.iter().all(|&key| loaded.contains(key)), "a present key is not in the snapshot");
    }

    /// Checks that each key is in as often as it should, if no thread has died, and that nothing else is in.
    fn end(&self, own: usize) {
        self.check();
        let copies = (1..).map(|nth| if nth == self.present.len() { 2 } else { 1 });
        for (&key, copies) in self.present.iter().zip(copies) {
            assert_eq!(self.filter.count(key), copies, "an item was lost or doubled");
        }
        assert_eq!(self.filter.count(self.own), own, "an item was lost or doubled");
        assert_eq!(self.filter.len(), self.present.len() + 1 + own, "an item was lost or doubled");
    }

    fn twice(&self) -> GrowableKey {
        self.present[self.present.len() - 1]
    }
}

const fn act(scene: fn() -> Scene, operation: fn(&Scene)) -> Act<Scene> {
    Act { scene, operation }
}

const LOOKUP: fn(&Scene) = |scene| assert!(!scene.filter.contains(scene.absent), "an absent key was found");
const BATCH: fn(&Scene) = |scene| {
    let found = scene.filter.contains_batch(&[scene.present[0], scene.absent]);
    assert_eq!(found, [true, false], "a batch was wrong");
};
const LOOKUPS: [Act<Scene>; 2] = [act(Scene::usual, LOOKUP), act(Scene::usual, BATCH)];

const INSERT: fn(&Scene) = |scene| scene.filter.insert(scene.own).expect("there is room");
/// With the insert that finds no room, and lets the filter grow.
const INSERTS: [Act<Scene>; 2] = [act(Scene::usual, INSERT), act(Scene::full, INSERT)];

/// Removes a key, and puts it back.
const REMOVE: fn(&Scene) = |scene| {
    assert!(scene.filter.remove(scene.twice()), "a present key was not removed");
    scene.filter.insert(scene.twice()).expect("there is room");
};
const COUNT: fn(&Scene) = |scene| assert_eq!(scene.filter.count(scene.twice()), 2, "miscounted");
const OTHERS: [Act<Scene>; 2] = [act(Scene::usual, REMOVE), act(Scene::usual, COUNT)];

/// Each moves the copies of a bucket.
const RESIZES: [Act<Scene>; 2] = [
    act(Scene::usual, |scene| _ = scene.filter.split_if_possible()),
    act(Scene::usual, |scene| _ = scene.filter.merge_if_possible()),
];

#[test]
fn no_operation_waits_for_a_stopped_lookup() {
    for act in LOOKUPS {
        let all = |_, scene: &Scene| {
            let all = || {
                scene.check();
                scene.change();
                scene.save();
                scene.filter.split_if_possible();
                scene.change();
                scene.filter.merge_if_possible();
                scene.change();
                scene.save();
            };
            assert!(!waits(all), "an operation waited for a lookup");
            scene.end(0);
        };
        act.stopped(&[], all, |scene| scene.end(0));
    }
}

#[test]
fn lookups_never_wait() {
    for act in INSERTS.into_iter().chain(OTHERS).chain(RESIZES) {
        act.stopped(&[], |_, scene| assert!(!waits(|| scene.check()), "a lookup waited"), |scene| scene.check());
    }
}

/// The control.
#[test]
#[should_panic(expected = "a present key was missed")]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_split_that_stops_with_the_entries_in_hand_is_noticed() {
    RESIZES[0].stopped(&[Fault::SplitsUnannounced], |_, scene| scene.check(), |_| ());
}

/// A writer holds up others only from a step that takes a lock to the step that releases it.
#[test]
fn no_operation_waits_for_a_writer_that_stopped_without_a_lock() {
    let all = |stop: Stop, scene: &Scene| {
        let all = || {
            scene.change();
            scene.save();
            scene.filter.split_if_possible();
            scene.change();
        };
        assert!(stop.locks > 0 || !waits(all), "an operation waited: {stop:?}");
    };
    INSERTS.iter().for_each(|act| act.stopped(&[], all, |scene| scene.end(1)));
    OTHERS.iter().for_each(|act| act.stopped(&[], all, |scene| scene.end(0)));
}

/// A split or a merge that is stopped holds up what changes the size too. Other operations wait only while it holds a
/// gate, and then only those that change a bucket of that gate.
#[test]
fn only_what_changes_the_size_waits_for_a_stopped_resize() {
    for act in RESIZES {
        let stops = Cell::new(0);
        let all = |stop: Stop, scene: &Scene| {
            stops.set(stops.get() + usize::from(stop.locks > 1));
            assert!(stop.locks > 1 || !waits(|| scene.remove_and_count()), "an operation waited: {stop:?}");
            let checks = || {
                scene.check();
                assert_eq!(scene.filter.count(scene.present[0]), 1, "miscounted");
            };
            assert!(!waits(checks), "what changes no word waited: {stop:?}");
        };
        act.stopped(&[], all, |scene| scene.check());
        assert!(stops.get() > 3, "it has many steps under a gate");
    }
}

/// No step of the real library can panic or be canceled. If one could, this would be the only damage: an item may
/// be counted twice or not at all, and an item that was being moved may have two copies.
#[test]
fn a_thread_that_dies_loses_no_item_and_holds_no_lock() {
    let is_well = |stop: Stop, scene: &Scene| {
        let filter = &scene.filter;
        let use_all = || {
            scene.check();
            filter.insert(scene.others).expect("there is room");
            filter.split_if_possible();
            scene.check();
            for &key in scene.present.iter().chain([&scene.others]) {
                assert!(filter.count(key) > 0, "an item was lost");
                assert!(filter.remove(key), "a present key was not removed");
            }
            filter.clear();
            let keys = || scene.present.iter().chain([&scene.others, &scene.own]);
            assert!(keys().all(|&key| filter.count(key) == 0 && !filter.contains(key)), "an item outlived `clear`");
            keys().for_each(|&key| filter.insert(key).expect("there is room"));
            scene.check();
        };
        assert!(!waits(use_all), "a lock is still held: {stop:?}");
    };
    for act in LOOKUPS.into_iter().chain(INSERTS).chain(OTHERS).chain(RESIZES) {
        act.dies(is_well);
    }
}
