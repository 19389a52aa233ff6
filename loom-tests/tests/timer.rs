//! The time of a filter that reads it itself: it begins once, and what was shown is not forgotten.

mod common;

use std::sync::Arc;

use ccf_loom::model::{Fault, Seeded, Timer};

type Role = common::Role<Timer>;
type Model = (Arc<Timer>, Vec<Role>, Role);

fn role(run: impl FnOnce(&Timer) + Send + 'static) -> Role {
    Box::new(run)
}

/// Two threads are the first to read the source. For either, its readings mean the same times from then on.
fn two_that_begin() -> Model {
    let reader = |first: u64| {
        role(move |timer: &Timer| {
            let began = timer.time_at(first);
            assert!((100..=100 + 3).contains(&began), "it went on from another time: {began}");
            let then = timer.time_at(50);
            assert!(then - began <= 50 - first, "more time passed than the source says");
            assert_eq!(timer.time_at(50), then, "the time went back");
        })
    };
    let finally = role(|timer| {
        let began = 150 - timer.time_at(50);
        assert!(began == 10 || began == 13, "it began with neither reading: {began}");
    });
    (Arc::new(Timer::new(100)), vec![reader(10), reader(13)], finally)
}
model! {
    two_that_begin, at least 900, preemptions 3,
    fails with "the time went back"
    for [TimeBeginsTwice]
}

/// A thread begins, and another one sees that a time was noted. Then it goes by the same beginning, and not by none.
fn one_that_begins_and_one_that_goes_on() -> Model {
    let first = role(|timer: &Timer| assert_eq!(timer.time_at(10), 100, "it is the beginning"));
    let second = role(|timer: &Timer| {
        let time = timer.time_at(5010);
        assert!(time == 100 || time == 5100, "it went on from another time: {time}");
        // If the first thread had begun, so much time has passed. Otherwise this thread has begun.
        assert_eq!(timer.time_at(5010), time, "the time was taken for that of the beginning");
    });
    let finally = role(|timer| assert!([5100, 100].contains(&timer.time_at(5010))));
    (Arc::new(Timer::new(100)), vec![first, second], finally)
}
model! {
    one_that_begins_and_one_that_goes_on, at least 20,
    fails if an ordering is weaker
}

/// The source goes back: another thread reads an earlier time. The later one is where the time stands.
fn a_source_that_goes_back() -> Model {
    let timer = Timer::new(0);
    timer.time_at(10);
    let reader = |reading| role(move |timer: &Timer| assert!(timer.so_far_at(reading) >= reading - 10));
    let finally = role(|timer| assert_eq!(timer.so_far_at(10), 30, "a time that was shown is forgotten"));
    (Arc::new(timer), vec![reader(40), reader(20)], finally)
}
model! {
    a_source_that_goes_back, at least 55,
    fails with "a time that was shown is forgotten"
    for [TimeIsForgotten]
}
