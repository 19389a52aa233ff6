//! What a node makes of what etcd says, without an etcd.

use super::*;
use std::sync::atomic::AtomicU64;

use crate::clock::{Clock, Reading};
use crate::etcd::messages::KeyValue;
use crate::records::Shared;
use crate::settings::Settings;

const EPOCH: i64 = 5;

fn token(name: &str) -> TokenId {
    TokenId::of(name).unwrap()
}

/// A new head, as etcd has it.
fn record(revision: i64) -> KeyValue {
    kv("revoked/head", revision, Head::value(2, token("last"), u64::MAX).unwrap())
}

fn head(revision: i64) -> Head {
    Head::of(record(revision))
}

fn kv(key: &str, mod_revision: i64, value: impl Into<Vec<u8>>) -> KeyValue {
    KeyValue { key: key.to_owned().into(), mod_revision, version: 2, value: value.into().into() }
}

fn put(kv: KeyValue, prev_kv: Option<KeyValue>) -> Event {
    Event { kind: 0, kv: Some(kv), prev_kv }
}

fn delete(key: &str, revision: i64, prev_kv: Option<KeyValue>) -> Event {
    Event { kind: 1, kv: Some(kv(key, revision, "")), prev_kv }
}

/// A majority says that this is the head, in epoch 1 of cluster a.
fn said(head: Head, revision: i64) -> Said {
    let epoch = Epoch { number: 1, cluster: "a".into(), lost: None, settings: Shared::default() };
    Said { cluster: 10, revision, term: 3, epoch: Some(epoch), epoch_revision: EPOCH, head, token: None }
}

fn node() -> Node {
    Node::new(Settings::new("http://127.0.0.1:1"), Clock::default()).unwrap()
}

/// Its head is of revision 10, and it was read at revision 12.
fn replica(node: &Node) -> (Replica, KeyValue) {
    let first = record(10);
    let said = said(Head::of(first.clone()), 12);
    let epoch = said.epoch.clone().unwrap();
    (Replica::new(epoch, &said, 0.001, &node.clock).unwrap(), first)
}

#[tokio::test]
async fn a_gap_is_a_loss() {
    let (node, next, other) = (node(), record(13), record(10));
    let (replica, first) = replica(&node);
    // Over another value of the same revision, and over a later head.
    for before in [&other, &record(12)] {
        let done = node.apply(&replica, put(next.clone(), Some(before.clone())));
        assert!(matches!(done, Err(End::Lost(why)) if why.contains("revision 13")));
    }
    assert!(matches!(node.apply(&replica, delete("revoked/head", 13, Some(first.clone()))), Err(End::Lost(_))));
    assert!(node.apply(&replica, put(next.clone(), Some(first.clone()))).is_ok());
    let has = |kv: KeyValue| replica.has_head(&Head::of(kv));
    assert_eq!((has(first), has(next), has(other), has(record(14))), (Some(true), Some(true), Some(false), None));
}

#[tokio::test]
async fn older_events_are_passed_over() {
    let node = node();
    let (replica, first) = replica(&node);
    for event in [
        put(first.clone(), Some(record(9))),
        put(kv("revoked/epoch", EPOCH, "{}"), None),
        delete("revoked/token/x", 11, None),
        put(kv("revoked/token/x", 12, "damaged"), None),
    ] {
        assert!(node.apply(&replica, event).is_ok());
    }
    assert_eq!(replica.head(), Head::of(first));
    assert!(matches!(node.apply(&replica, put(kv("revoked/epoch", 13, "{}"), None)), Err(End::Next(_))));
}

#[tokio::test]
async fn what_was_compacted_is_read_again() {
    let node = node();
    let (replica, _) = replica(&node);
    let key = node.names.token(token("alice"));
    for event in [put(record(13), None), delete("revoked/head", 13, None), delete(&key, 13, None)] {
        assert!(matches!(node.apply(&replica, event), Err(End::Join(_))));
    }
}

#[tokio::test]
async fn a_deletion_is_a_loss_before_the_end_of_its_token() {
    let node = node();
    let (replica, _) = replica(&node);
    let (key, now) = (node.names.token(token("alice")), node.clock.earliest());
    let at = |end: u64| Some(kv(&key, 9, end.to_be_bytes()));
    assert!(node.apply(&replica, delete(&key, 13, at(now - 1))).is_ok());
    assert!(matches!(node.apply(&replica, delete(&key, 13, at(now + 100))), Err(End::Lost(_))));
    assert!(matches!(node.apply(&replica, delete(&key, 13, Some(kv(&key, 9, "x")))), Err(End::Lost(_))));
    assert!(matches!(node.apply(&replica, put(kv(&key, 13, "x"), at(now + 100))), Err(End::Lost(_))));
    assert!(node.apply(&replica, put(kv(&key, 13, (now + 100).to_be_bytes()), None)).is_ok());
    replica.has_all_until(node.clock.monotonic(), Duration::from_secs(60));
    assert!(!replica.lacks(token("alice"), &node.clock) && replica.lacks(token("bob"), &node.clock));
}

/// The node's own change, and the head that it has had: a restored cluster may have an earlier one.
#[tokio::test]
async fn an_answer_that_lacks_a_change_that_the_node_knew_is_a_loss() {
    let (node, own) = (node(), head(11));
    let (replica, first) = replica(&node);
    node.remember(&replica, own.clone());
    node.remember(&replica, head(9));
    let known = node.last_known();
    assert!(known.compare(&said(head(10), 20)).is_err() && known.compare(&said(head(11), 20)).is_err());
    assert!(known.compare(&said(own, 20)).is_ok() && known.compare(&said(head(12), 20)).is_ok());
    // In another epoch an operator has accepted what was lost.
    assert!(known.compare(&Said { epoch_revision: 6, ..said(head(10), 20) }).is_ok());
    let mut next = said(head(10), 20);
    next.epoch.iter_mut().for_each(|epoch| epoch.number += 1);
    assert!(known.compare(&next).is_ok());
    // The node compares it with each answer, but not with one to an earlier question.
    let compare = |known| node.compare(&replica, Duration::ZERO, known, said(Head::of(first.clone()), 20), None);
    assert!(matches!(compare(&known), Err(End::Lost(_))));
    assert!(compare(&LastKnown::default()).is_ok());
    // Its head moves on. It still knows that when it joins again.
    let moved = head(13);
    assert!(replica.advance_head(&Head::of(first.clone()), moved.clone()));
    let replica = Some(Arc::new(replica));
    for (why, replica) in [("it follows", replica), ("it joins", None)] {
        node.set(false, why.into(), replica);
        assert!(node.last_known().compare(&said(head(12), 20)).is_err());
        assert!(node.last_known().compare(&said(moved.clone(), 20)).is_ok());
    }
    // What it has found out stays true until there is a new epoch.
    node.lose("it");
    assert!(node.last_known().compare(&said(moved.clone(), 20)).is_err_and(|why| why == "it"));
    assert!(node.last_known().compare(&Said { epoch_revision: 6, ..said(moved, 20) }).is_ok());
}

#[tokio::test]
async fn a_node_is_ready_only_when_it_has_the_head_of_a_majority() {
    let node = node();
    let (replica, first) = replica(&node);
    let (begin, second) = (node.clock.monotonic(), record(13));
    let compare = |at: Duration, head: KeyValue, waiting| {
        node.remember(&replica, replica.head());
        node.compare(&replica, at, &node.last_known(), said(Head::of(head), 20), waiting)
    };
    // Its watch is late: it has not come to the head that a majority has.
    let Ok(waiting @ Some(_)) = compare(begin, second.clone(), None) else { panic!() };
    assert!(!replica.is_fresh(&node.clock));
    // Another question does not make the first one younger.
    let Ok(waiting) = compare(begin + Duration::from_millis(1), second.clone(), waiting) else { panic!() };
    assert_eq!(waiting.as_ref().map(|waiting| waiting.0), Some(begin));
    assert!(replica.advance_head(&Head::of(first.clone()), Head::of(second.clone())));
    assert!(matches!(compare(begin, second.clone(), waiting), Ok(None)));
    assert!(replica.is_fresh(&node.clock));
    // An earlier head, and another one of the same revision, are losses.
    assert!(matches!(compare(begin, first, None), Err(End::Lost(_))));
    assert!(matches!(compare(begin, record(13), None), Err(End::Lost(_))));
    // The watch comes to another head than the answers said, or does not come to it at all.
    let Ok(waiting @ Some(_)) = compare(begin, record(15), None) else { panic!() };
    assert!(replica.advance_head(&Head::of(second), Head::of(record(16))));
    assert!(matches!(compare(begin, record(20), waiting), Err(End::Next(_))));
    let long_ago = begin.saturating_sub(Duration::from_secs(3));
    assert!(matches!(compare(long_ago, record(20), None), Err(End::Next(why)) if why.contains("late")));
}

#[tokio::test]
async fn an_epoch_is_joined_only_if_nothing_contradicts_it() {
    let node = node();
    let (known, _) = replica(&node);
    let fine = || said(head(10), 20);
    let with = |change: fn(&mut Epoch)| {
        let mut said = fine();
        said.epoch.iter_mut().for_each(change);
        Said { epoch_revision: 15, ..said }
    };
    let of = |said: &Said, known: Option<&Replica>| match judge(said, known) {
        Ok(_) => "ok",
        Err(End::Next(_)) => "next",
        Err(End::Stop(_)) => "stop",
        Err(End::Lost(_)) => "lost",
        Err(_) => "other",
    };
    let nothing = |cluster| Said { cluster, epoch: None, epoch_revision: 0, head: Head::default(), ..fine() };
    for (said, new, old) in [
        (fine(), "ok", "ok"),
        (with(|epoch| epoch.number = 2), "ok", "ok"),
        (with(|epoch| epoch.number = 0), "ok", "lost"),
        (with(|epoch| epoch.lost = Some("it".into())), "stop", "stop"),
        (with(|epoch| epoch.cluster = "b".into()), "stop", "lost"),
        (nothing(10), "stop", "lost"),
        (Said { term: 1, ..fine() }, "stop", "lost"),
        // Another cluster: nothing there, a copy, another fleet, and this one after `fleet accept --from`.
        (nothing(11), "stop", "next"),
        (Said { cluster: 11, ..fine() }, "stop", "next"),
        (Said { cluster: 11, ..with(|epoch| epoch.cluster = "b".into()) }, "ok", "next"),
        (Said { cluster: 11, ..with(|epoch| (epoch.cluster, epoch.number) = ("b".into(), 2)) }, "ok", "ok"),
    ] {
        assert_eq!((of(&said, None), of(&said, Some(&known))), (new, old), "{said:?}");
    }
}

/// A node has joined while its clock was two days behind, so its entries end too early. Then the clock is corrected.
#[tokio::test]
async fn a_lookup_finds_a_token_while_its_node_notices_that_the_clock_was_set() {
    let behind = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&behind);
    let clock = Clock::new(move || {
        let now = Reading::of_this_machine();
        Reading { wall: now.wall - Duration::from_secs(read.load(Ordering::SeqCst)), ..now }
    });
    let node = Node::new(Settings::new("http://127.0.0.1:1"), clock).unwrap();
    behind.store(2 * 86_400, Ordering::SeqCst);
    let (replica, clock) = (replica(&node).0, &node.clock);
    replica.put(token("alice"), clock.latest() + 1800).unwrap();
    replica.has_all_until(clock.monotonic(), Duration::from_secs(60));
    assert!(replica.advance(clock) && !replica.lacks(token("alice"), clock) && replica.lacks(token("bob"), clock));
    behind.store(0, Ordering::SeqCst);
    assert!(!replica.advance(clock), "a new replica is needed");
    assert!(!replica.lacks(token("alice"), clock));
}

/// The process is stopped just before it reads the clock, and its node catches up meanwhile.
#[tokio::test]
async fn a_lookup_that_is_stopped_while_its_node_catches_up_is_not_certain() {
    let node = node();
    let replica = Arc::new(replica(&node).0);
    let start = node.clock.monotonic();
    replica.has_all_until(start, Duration::from_secs(2));
    let (catching_up, is_first) = (Arc::clone(&replica), AtomicU64::new(0));
    let clock = Clock::new(move || {
        let now = Reading::of_this_machine();
        if is_first.fetch_add(1, Ordering::SeqCst) == 0 {
            return now; // of the clock's own start
        }
        catching_up.put(token("alice"), u64::MAX / 2).unwrap();
        catching_up.has_all_until(now.monotonic + Duration::from_secs(10), Duration::from_secs(2));
        Reading { monotonic: now.monotonic + Duration::from_secs(10), ..now }
    });
    assert!(!replica.lacks(token("alice"), &clock));
}
