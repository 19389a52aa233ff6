//! Rotations against everything else: no young entry is lost, no entry that is there throughout is missed, and each
//! rotation happens exactly once.
//!
//! There are two live generations, unless a model says otherwise. So there are three tables, of two buckets of two
//! slots.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Generations, Seeded};
use common::Role;

type Model = (Arc<Generations>, Vec<Role<Generations>>, Role<Generations>);

const X: u64 = 1;

fn role(run: impl FnOnce(&Generations) + Send + 'static) -> Role<Generations> {
    Box::new(run)
}

/// A filter with this many live generations, after `prepare`.
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

/// One thread adds the key. The other thread rotates this many times, and looks for the key after each rotation. If
/// it misses the key, the insert comes after that rotation, and the key must live as long as one inserted then.
fn add_against_rotations(add: fn(&Generations), rotations: usize) -> Model {
    // Rotates once around the ring, for the reason given in `inserts_that_look_for_each_other` in `lookup.rs`.
    let start = generations(2, |generations| (0..3).for_each(|_| _ = generations.rotate()));
    let added_in = Arc::new(AtomicU64::new(start.generation()));
    let at_the_earliest = Arc::clone(&added_in);
    let rotator = role(move |generations| {
        for nth in 1..=rotations {
            let generation = generations.rotate();
            if generations.contains(X) {
                // After this, the key may be missed because it has expired.
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
        // The key is added in this generation at the latest, or in the next one if a copy may have been left in the
        // spare table.
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
    for [InsertIgnoresRotation]
}

/// The same with `insert_if_absent`.
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

/// A key in the oldest generation is added to the current one. Then the oldest expires. Both happen behind the
/// reader's back.
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

/// The same when an `insert_if_absent` looks. The key is refreshed in a generation that this call does not look
/// into.
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

/// Two threads add the same absent key, and one of them rotates. Exactly one call returns *true*.
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
        // Or the key was added before the first rotation, which is also correct.
        generations.insert(X).expect("there is room");
    });
    (generations(2, |_| ()), roles, finally)
}
model! {
    two_insert_if_absent_across_a_rotation, at least 100, preemptions 2,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutGate]
}

/// Two rotations at once count as two. The second one begins in a clean table, which stays clean.
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

/// Two threads pass the same tick. One of them rotates. When either call returns, the rotation has taken effect.
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

/// One thread rotates by its clock and then begins a new clock. A thread that sees the new clock also sees the
/// rotation.
fn new_clock() -> Model {
    let start = generations(2, |generations| _ = generations.advance_to(10));
    let starter = role(|generations| {
        generations.advance_to(11);
        generations.restart_clock(5);
    });
    let reader = role(|generations| {
        let restarted = generations.now() == Some(5);
        assert!(!restarted || generations.generation() == 1, "the old clock's tick has not taken effect");
    });
    let finally = role(|generations| {
        assert_eq!((generations.generation(), generations.now()), (1, Some(5)));
        generations.advance_to(6);
        assert_eq!(generations.generation(), 2, "the new clock goes on");
    });
    (start, vec![starter, reader], finally)
}
model! {
    new_clock, at least 5,
    fails if an ordering is weaker
}

/// Two threads find the current generation full. One of them rotates, and no entry is lost.
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
