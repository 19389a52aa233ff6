//! The engine says what is not so: which server it is, what time it is, and which log it has.

use std::thread;
use std::time::Instant;

use super::engine::Redis;
use super::link::Link;
use super::support::{
    KNOWN, QUICK, SECOND, fleet, nothing_passes, revoke_all, wait_for, wait_for_operator, wait_until_known,
    wait_until_well,
};
use crate::nodes::Node;

/// The first node stays with the master. The second one is led to the replica, or stays with a master that becomes
/// one. A third one starts at the replica.
fn a_node_at_a_replica_is_not_ready(master_changes: bool) {
    let old = Redis::start("");
    let new = Redis::start(&format!("--replicaof 127.0.0.1 {}", old.address().port()));
    let links = [(); 2].map(|()| Link::to(old.address()));
    let (nodes, mut tokens) = fleet(links.each_ref().map(Link::url), 5);
    let size = |redis: &Redis| redis.ask("DBSIZE").ok();
    wait_for("the replica to have everything", || size(&new).is_some_and(|new| Some(new) == size(&old)));
    let (master, replica) = if master_changes { (&new, &old) } else { (&old, &new) };
    master.ask("REPLICAOF NO ONE").unwrap();
    // A replica without its master keeps what it has, and answers questions. Open connections stay open.
    replica.ask("REPLICAOF 127.0.0.1 1").unwrap();
    links[usize::from(!master_changes)].lead_to(new.address(), false);
    let late = [Node::start(&replica.url(), QUICK)];
    tokens.extend(revoke_all(&nodes[0], 44));
    thread::sleep(KNOWN);
    nothing_passes(SECOND, &nodes[1..], &tokens);
    nothing_passes(SECOND / 10, &late, &tokens);
    wait_for("nodes at a replica to say that they are not ready", || !nodes[1].is_ready() && !late[0].is_ready());
    links[1].lead_to(master.address(), false);
    wait_until_well(&nodes, &tokens);
}

/// The clock jumps ahead by so many seconds, for one second.
#[cfg(target_os = "linux")]
fn nothing_is_forgotten(ahead: u64) {
    let engine = Redis::with_clock();
    let (nodes, mut tokens) = fleet([(); 3].map(|()| engine.url()), 20);
    let before = tokens.clone();
    // Another token that is valid for an hour: 200 means that the node takes it as expired.
    let mut revoke = |number: usize| match nodes[number % 3].revoke(&format!("more-{number}")) {
        201 => tokens.push(format!("more-{number}")),
        status => assert_eq!(status, 503, "the answer to a revocation"),
    };
    engine.set_clock(ahead);
    let start = Instant::now();
    for number in (0..).take_while(|_| start.elapsed() < SECOND) {
        nothing_passes(SECOND / 10, &nodes, &before);
        revoke(number);
    }
    engine.set_clock(0);
    nothing_passes(2 * SECOND, &nodes, &before);
    (1000..1003).for_each(revoke);
    wait_until_well(&nodes, &tokens);
}

/// The log goes back to an earlier copy of the engine's files, and goes on in another way. When the nodes meet it, it
/// has `more` messages more than they know.
fn a_log_that_went_back_is_seen(more: usize, is_hidden: bool) {
    let engine = Redis::start("");
    let link = Link::to(engine.address());
    let (nodes, _) = fleet([(); 2].map(|()| link.url()), 5);
    let copy = engine.copy();
    let lost = revoke_all(&nodes[0], 20);
    wait_until_known(&nodes, &lost);
    let copy = copy();
    let other = Node::start(&copy.url(), QUICK);
    // If this node refuses to write to a copy, that is fine. Then the log is shorter than the others know.
    let start = Instant::now();
    while !other.is_ready() && start.elapsed() < 5 * SECOND {}
    let written = (0..lost.len() + more).take_while(|number| other.revoke(&format!("other-{number}")) == 201).count();
    println!("{written} were revoked in the copy, which is at {}, and the nodes at {}", other.head(), nodes[0].head());
    drop(engine);
    link.lead_to(copy.address(), is_hidden);
    nothing_passes(SECOND, &nodes, &lost);
    wait_for_operator(&nodes, &lost);
}

tests! {
    /// Before: 44 of 44 revocations on the master passed on the ready node at the replica, in both tests.
    fn a_node_whose_way_leads_to_a_replica_is_not_ready() { a_node_at_a_replica_is_not_ready(false) }

    fn a_node_whose_master_becomes_a_replica_is_not_ready() { a_node_at_a_replica_is_not_ready(true) }

    /// Before: 20 of 20 passed on three ready nodes, and each new one was answered as expired, in both tests.
    #[cfg(target_os = "linux")]
    fn nothing_is_forgotten_when_the_clock_jumps_ahead_by_three_hours() { nothing_is_forgotten(3 * 3600) }

    #[cfg(target_os = "linux")]
    fn nothing_is_forgotten_when_the_clock_jumps_ahead_by_days() { nothing_is_forgotten(5 * 24 * 3600) }

    /// Before: 20 of 20 passed on two ready nodes. They noticed within a second, and accepted the log by themselves.
    fn a_log_that_went_back_and_has_come_to_the_same_number_is_seen() { a_log_that_went_back_is_seen(0, true) }

    /// Before: 20 of 20 passed on two ready nodes, which did not notice within 40 s.
    fn a_log_that_went_back_and_has_come_further_is_seen() { a_log_that_went_back_is_seen(10, true) }

    /// Before: as with the same number.
    fn a_log_that_went_back_is_seen_on_new_connections() { a_log_that_went_back_is_seen(0, false) }
}
