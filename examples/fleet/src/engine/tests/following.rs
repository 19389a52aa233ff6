//! Numbers without a hole, gaps, and other logs.

use std::thread;
use std::time::Duration;

use super::subject::*;
use crate::engine::Step;
use crate::log::{EngineError, Epoch, Follower, Head, Place};

/// A short wait, for when nothing comes.
const SHORT: Duration = Duration::from_millis(50);

/// Founds a fleet with messages 2 to `through`.
fn fill(subject: &dyn Subject, through: u64) -> Head {
    let head = agree(subject);
    for position in head.position + 1..=through {
        let appended = append(subject, head, &[revoke(position, tick() + 50), restore(position)]);
        assert_eq!(appended.position, position, "not dense");
    }
    head
}

fn follow(subject: &dyn Subject, epoch: Epoch, position: u64) -> Box<dyn Follower> {
    subject.log().follow(Place { epoch, position }).unwrap()
}

/// Asserts that a follower notices that messages are missing.
fn assert_gap(follower: &mut dyn Follower, expected: (u64, u64)) {
    match follower.next(SHORT) {
        Err(EngineError::Gap { position, first }) => assert_eq!((position, first), expected),
        other => panic!("the gap is not noticed: {other:?}"),
    }
}

fn numbers_are_dense(subject: &dyn Subject) {
    let head = agree(subject);
    let nodes: Vec<_> = (0..3).map(|_| subject.client()).collect();
    thread::scope(|scope| {
        for (node, first) in nodes.iter().zip([1000, 2000, 3000]) {
            scope.spawn(move || {
                for number in first..first + 50 {
                    append(&**node, head, &[revoke(number, tick() + 50), restore(number)]);
                }
            });
        }
    });
    let end = subject.log().head(head.epoch).unwrap();
    assert_eq!(end.position, 151, "not dense");
    let messages = read(&mut *follow(subject, head.epoch, 0), end.position);
    assert!(messages.iter().map(|message| message.position).eq(1..=end.position), "not dense");
}

#[test]
fn numbers_have_no_hole_whoever_appends() {
    holds(numbers_are_dense);
    fails_without(Step::Density, "not dense", numbers_are_dense);
}

#[test]
fn a_follower_gets_what_comes_while_it_waits() {
    holds(|subject| {
        let head = agree(subject);
        let mut follower = follow(subject, head.epoch, head.position);
        assert_eq!(follower.next(SHORT).unwrap(), []);
        assert_eq!(follower.next(Duration::ZERO).unwrap(), []);
        let client = subject.client();
        let messages = thread::scope(|scope| {
            let waiting = scope.spawn(move || follower.next(LONG).unwrap());
            append(&*client, head, &[revoke(1, tick() + 5)]);
            waiting.join().unwrap()
        });
        assert_eq!(changes(&messages), [insert(1, tick() + 5)]);
    });
}

/// A log that was trimmed on purpose.
fn trimming_is_a_gap(subject: &dyn Subject) {
    let head = fill(subject, 10);
    let mut asleep = follow(subject, head.epoch, 3);
    let mut awake = follow(subject, head.epoch, 6);
    subject.log().trim(Place { epoch: head.epoch, position: 6 }).unwrap();
    assert_eq!(subject.log().head(head.epoch).unwrap().first, 7);
    assert!(awake.next(SHORT).unwrap().iter().map(|message| message.position).eq(7..=10));
    assert_gap(&mut *asleep, (3, 7));
}

#[test]
fn a_log_that_is_trimmed_past_a_follower_is_a_gap() {
    holds(trimming_is_a_gap);
    fails_without(Step::NextNumber, "the gap is not noticed", trimming_is_a_gap);
}

/// A log that somebody has trimmed by its length, and one that was emptied.
fn trimming_behind_our_back_is_a_gap(subject: &dyn Subject) {
    let head = fill(subject, 10);
    let mut asleep = follow(subject, head.epoch, 3);
    let mut nearly = follow(subject, head.epoch, 9);
    subject.cut_log(2);
    assert_gap(&mut *asleep, (3, 9));
    assert!(nearly.next(SHORT).unwrap().iter().map(|message| message.position).eq([10]));
}

fn an_empty_log_is_a_gap(subject: &dyn Subject) {
    let head = fill(subject, 10);
    let mut asleep = follow(subject, head.epoch, 9);
    let mut awake = follow(subject, head.epoch, 10);
    subject.cut_log(0);
    assert_eq!(subject.log().head(head.epoch).unwrap().first, 11);
    assert_eq!(awake.next(SHORT).unwrap(), []);
    assert_gap(&mut *asleep, (9, 11));
    // The numbers go on, so a follower that had everything goes on.
    assert_eq!(append(subject, head, &[revoke(1, tick() + 5)]).position, 11);
    assert_eq!(awake.next(LONG).unwrap()[0].position, 11);
}

#[test]
fn a_log_that_is_cut_by_its_length_is_a_gap() {
    holds(trimming_behind_our_back_is_a_gap);
    fails_without(Step::NextNumber, "the gap is not noticed", trimming_behind_our_back_is_a_gap);
}

#[test]
fn a_log_that_is_emptied_is_a_gap() {
    holds(an_empty_log_is_a_gap);
    fails_without(Step::SilentGap, "the gap is not noticed", an_empty_log_is_a_gap);
}

/// The engine has lost everything, and a new log has come as far as the old one and further.
fn a_new_log_is_noticed(subject: &dyn Subject) {
    let old = fill(subject, 10);
    let mut follower = follow(subject, old.epoch, 0);
    read(&mut *follower, 10);
    subject.flush();
    assert_another(subject.log().head(old.epoch));
    let new = fill(subject, 20);
    assert_another(follower.next(SHORT));
    assert_ne!(new.epoch, old.epoch);
    let known = Place { epoch: old.epoch, position: 10 };
    assert_another(subject.log().append(known, fresh(), &[revoke(1, tick() + 5)]));
    assert_another(subject.log().append_tick(known));
    assert_another(subject.log().revoked_until(known, token(1)));
    assert_another(subject.log().trim(known));
    assert_another(subject.log().compare(known, "a", 1));
    let written = subject.snapshots().write(known, 1, "a", 1, &mut |_| Ok(()));
    assert_another(written);
    assert_eq!(subject.log().head(new.epoch).unwrap().position, 20);
}

#[test]
fn a_log_that_begins_anew_is_another_one() {
    holds(a_new_log_is_noticed);
    fails_without(Step::Epoch, "another log is not noticed", a_new_log_is_noticed);
}

#[test]
fn an_engine_without_a_log_says_so_and_begins_none() {
    holds(|subject| {
        let head = fill(subject, 3);
        subject.flush();
        assert_another(subject.log().append(head.place(), fresh(), &[revoke(1, tick() + 5)]));
        assert_another(subject.log().append_tick(head.place()));
        assert_another(subject.log().revoked_until(head.place(), token(1)));
        assert_another(follow(subject, head.epoch, 0).next(SHORT));
    });
}

/// The engine has lost its last messages. This can happen to an engine that answers before the messages are on
/// disk.
fn a_lost_end_is_noticed(subject: &dyn Subject) {
    let head = fill(subject, 10);
    let mut follower = follow(subject, head.epoch, 0);
    read(&mut *follower, 10);
    subject.lose_end(2);
    let known = Place { epoch: head.epoch, position: 10 };
    assert_another(subject.log().append(known, fresh(), &[revoke(1, tick() + 5)]));
    assert_another(subject.log().append_tick(known));
    assert_another(subject.log().revoked_until(known, token(1)));
    assert_another(follower.next(SHORT));
    let behind = Place { epoch: head.epoch, position: 8 };
    assert_eq!(subject.log().append(behind, fresh(), &[revoke(1, tick() + 5)]).unwrap().position, 9);
}

#[test]
fn a_log_that_ends_before_what_is_known_is_another_one() {
    holds(a_lost_end_is_noticed);
    fails_without(Step::Known, "another log is not noticed", a_lost_end_is_noticed);
}
