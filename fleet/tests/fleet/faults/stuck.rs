//! Strange messages, a log without its beginning, an engine that lost everything. The fleet goes on by itself, or
//! waits for an operator where acknowledged revocations are lost.

use super::engine::Redis;
use super::support::{LOG, QUICK, SECOND, SNAPSHOTS, fleet, nothing_passes, wait_for_operator, wait_until_well};
use crate::nodes::Node;

/// `id` is made from the number of the last message.
/// Before: for each `id`, no revocation was acknowledged within 20 s, and the nodes joined again and again.
fn a_foreign_message_is_stepped_over(id: impl Fn(u64) -> String, is_told: bool) {
    let engine = Redis::start("");
    let (nodes, tokens) = fleet([(); 2].map(|()| engine.url()), 20);
    engine.ask(&format!("XADD {LOG} {} who somebody", id(nodes[0].head()))).unwrap();
    nothing_passes(SECOND, &nodes, &tokens);
    wait_until_well(&nodes, &tokens);
    // One between two numbers is in nobody's way, and stays.
    assert_eq!(nodes[0].health()["foreign"], u64::from(is_told));
    assert_eq!(nodes[0].said().contains("no node has written"), is_told);
    wait_until_well(&[Node::start(&engine.url(), QUICK)], &tokens);
}

tests! {
    fn a_foreign_message_between_two_numbers_is_stepped_over() {
        a_foreign_message_is_stepped_over(|head| format!("{head}-5"), false)
    }

    fn a_foreign_message_with_the_next_number_is_stepped_over() {
        a_foreign_message_is_stepped_over(|head| format!("{}-0", head + 1), true)
    }

    fn a_foreign_message_with_the_time_as_its_number_is_stepped_over() {
        a_foreign_message_is_stepped_over(|_| "*".into(), true)
    }

    fn a_foreign_message_with_the_greatest_number_is_stepped_over() {
        a_foreign_message_is_stepped_over(|_| format!("{0}-{0}", u64::MAX), true)
    }

    /// Before: no node became ready, and no revocation was acknowledged within 20 s.
    fn without_a_log_and_snapshots_nodes_rebuild_what_is_revoked() {
        let engine = Redis::start("");
        let (nodes, tokens) = fleet([engine.url()], 20);
        drop(nodes);
        engine.ask(&format!("XTRIM {LOG} MAXLEN 0")).unwrap();
        engine.delete(SNAPSHOTS);
        let nodes = [(); 2].map(|()| Node::start(&engine.url(), QUICK));
        nothing_passes(SECOND, &nodes, &tokens);
        wait_until_well(&nodes, &tokens);
    }

    /// Before: 8 to 20 of 20 passed in the first round, on nodes that were ready again at once.
    fn after_everything_is_deleted_the_fleet_waits_for_an_operator() {
        let engine = Redis::start("");
        let (nodes, tokens) = fleet([(); 2].map(|()| engine.url()), 20);
        engine.ask("FLUSHALL").unwrap();
        nothing_passes(SECOND, &nodes, &tokens);
        wait_for_operator(&nodes, &tokens);
    }
}
