//! Rotations against everything else: no young entry is lost, none that is there throughout is missed, and what is to
//! happen once happens once.
//!
//! Two live generations, unless a model says otherwise, so three tables, of two buckets of two slots.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Generations, Seeded};
use common::Role;

type Model = (Arc<Generations>, Vec<Role<Generations>>, Role<Generations>);

/// A key.
const X: u64 = 1;

fn role(run: impl FnOnce(&Generations) + Send + 'static) -> Role<Generations> {
    Box::new(run)
}

/// So many live generations, after `prepare`.
fn generations(live: usize, prepare: impl FnOnce(&Generations)) -> Arc<Generations> {
    let generations = Generations::new(live, false);
    prepare(&generations);
    Arc::new(generations)
}

fn rotates() -> Role<Generations> {
    role(|generations| _ = generations.rotate())
}

fn inserts(generations: &Generations) {
    generations.insert(X).expect("there is room");
}

/// One thread adds the key; the other rotates so many times, and after each looks for it. If it misses it, the insert
/// comes after that rotation, and the key must live as long as one that does.
fn add_against_rotations(add: fn(&Generations), rotations: usize) -> Model {
    // Once around the ring: see `inserts_that_look_for_each_other` in `lookup.rs`.
    let start = generations(2, |generations| (0..3).for_each(|_| _ = generations.rotate()));
    let added_in = Arc::new(AtomicU64::new(start.generation()));
    let at_the_earliest = Arc::clone(&added_in);
    let rotator = role(move |generations| {
        for nth in 1..=rotations {
            let generation = generations.rotate();
            if generations.contains(X) {
                // From here on it may be missed because it has expired.
                (nth..rotations).for_each(|_| _ = generations.rotate());
                break;
            }
            at_the_earliest.store(generation, Ordering::Relaxed);
        }
    });
    let finally = role(move |generations| {
        while generations.generation() < added_in.load(Ordering::Relaxed) + 2 {
            assert!(generations.contains(X), "a young entry was lost");
            generations.rotate();
        }
        // Added in this generation at the latest; or one more, where a copy may have been left in the spare.
        let latest = 3 + rotations as u64 + u64::from(rotations >= 2);
        while generations.generation() < latest + 2 {
            generations.rotate();
        }
        assert!(!generations.contains(X), "an entry outlived its generation");
    });
    (start, vec![role(add), rotator], finally)
}

/// A key is added while its generation becomes an older one.
fn insert_against_rotation() -> Model {
    add_against_rotations(inserts, 1)
}
model! {
    insert_against_rotation, at least 20,
    fails with "a young entry was lost"
    for [InsertIgnoresRotation, RelaxedRotation, RelaxedGeneration]
}

/// The same by `insert_if_absent`.
fn insert_if_absent_against_rotation() -> Model {
    add_against_rotations(|generations| assert_eq!(generations.insert_if_absent(X), Ok(true)), 1)
}
model! {
    insert_if_absent_against_rotation, at least 20,
    fails with "a young entry was lost"
    for [InsertIgnoresRotation]
}

/// A key is added while its generation expires, and its table is cleared.
fn insert_against_expiry() -> Model {
    add_against_rotations(inserts, 2)
}
model! {
    insert_against_expiry, at least 20,
    fails with "a young entry was lost"
    for [InsertIgnoresRotation]
}

/// A key in the oldest generation is added to the current one, and then the oldest expires, all behind the reader's
/// back.
fn refresh_and_rotation_behind_the_reader() -> Model {
    let start = generations(2, |generations| {
        inserts(generations);
        generations.rotate();
    });
    let reader = role(|generations| assert!(generations.contains(X), "a present key was missed"));
    let writer = role(|generations| {
        inserts(generations);
        generations.rotate();
    });
    (start, vec![reader, writer], role(|generations| assert!(generations.contains(X), "a young entry was lost")))
}
model! {
    refresh_and_rotation_behind_the_reader, at least 100,
    fails with "a present key was missed"
    for [LookupIgnoresRotation, RotationClearsFirst]
}

/// The same where an `insert_if_absent` looks: the key is refreshed in a generation that it does not look into.
fn refresh_and_rotation_behind_an_insert_if_absent() -> Model {
    let start = generations(3, |generations| {
        inserts(generations);
        generations.rotate();
    });
    let adder = role(|generations| assert_eq!(generations.insert_if_absent(X), Ok(false), "it was there"));
    let writer = role(|generations| {
        generations.rotate();
        inserts(generations);
        generations.rotate();
    });
    (start, vec![adder, writer], role(|generations| assert!(generations.contains(X), "a young entry was lost")))
}
model! {
    refresh_and_rotation_behind_an_insert_if_absent, at least 100,
    fails with "it was there"
    for [LookupIgnoresRotation]
}

/// Two threads add one key that is absent, while one of them rotates: exactly one is told that it did.
fn two_insert_if_absent_across_a_rotation() -> Model {
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |rotates: bool| {
        let added = Arc::clone(&added);
        role(move |generations| {
            if rotates {
                generations.rotate();
            }
            let new = generations.insert_if_absent(X).expect("there is room");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        })
    };
    let roles = vec![adder(false), adder(true)];
    let finally = role(move |generations| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        generations.rotate();
        // Or it was added before the first rotation, which is as good.
        generations.insert(X).expect("there is room");
    });
    (generations(2, |_| ()), roles, finally)
}
model! {
    two_insert_if_absent_across_a_rotation, at least 100, preemptions 2,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutGate]
}

/// Two rotations at once are two, and the second one begins in a table that is clean, and stays so.
fn two_rotations() -> Model {
    let writer = role(|generations| {
        generations.rotate();
        inserts(generations);
    });
    let finally = role(|generations| {
        assert_eq!(generations.generation(), 2);
        assert!(generations.contains(X), "a young entry was lost");
    });
    (generations(2, |_| ()), vec![rotates(), writer], finally)
}
model! {
    two_rotations, at least 20, preemptions 2,
    fails with "a young entry was lost"
    for [RotationIntoDirtyTable]
}

/// Two threads bring the same tick: one of them rotates, and when either goes on, the rotation has taken effect.
fn two_of_one_tick() -> Model {
    let start = generations(2, |generations| _ = generations.advance_to(0));
    let caller = || {
        role(|generations| {
            generations.advance_to(1);
            assert!(generations.generation() >= 1, "the tick has not taken effect");
        })
    };
    let finally = role(|generations| assert_eq!(generations.generation(), 1, "one tick, one rotation"));
    (start, vec![caller(), caller()], finally)
}
model! {
    two_of_one_tick, at least 20,
    fails with "one tick, one rotation"
    for [RotationWithoutLock]
}

/// One thread rotates by its clock and then begins a new one. Whoever sees the new clock sees the rotation.
fn new_clock() -> Model {
    let start = generations(2, |generations| _ = generations.advance_to(10));
    let starter = role(|generations| {
        generations.advance_to(11);
        generations.restart_clock(5);
    });
    let reader = role(|generations| {
        let restarted = generations.tick() == Some(5);
        assert!(!restarted || generations.generation() == 1, "the old clock's tick has not taken effect");
    });
    let finally = role(|generations| {
        assert_eq!((generations.generation(), generations.tick()), (1, Some(5)));
        generations.advance_to(6);
        assert_eq!(generations.generation(), 2, "the new clock goes on");
    });
    (start, vec![starter, reader], finally)
}
model! {
    new_clock, at least 5,
    fails with "the old clock's tick has not taken effect"
    for [RelaxedRestart]
}

/// Two threads find the current generation full: one of them rotates, and nothing is forgotten.
fn two_inserts_into_a_full_generation() -> Model {
    let start = Generations::new(2, true);
    (1..=4).for_each(|key| start.insert(key).expect("there is room"));
    let inserter = |key| role(move |generations: &Generations| generations.insert(key).expect("there is room"));
    let finally = role(|generations| {
        assert_eq!(generations.generation(), 1, "rotated twice for one full generation");
        assert!((1..=6).all(|key| generations.contains(key)), "a young entry was lost");
    });
    (Arc::new(start), vec![inserter(5), inserter(6)], finally)
}
model! {
    two_inserts_into_a_full_generation, at least 20, preemptions 2,
    fails with "rotated twice for one full generation"
    for [FullRotatesAgain, RotationWithoutLock]
}
