//! What fleets are asked, and which tokens they let pass.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::nodes::Node;

/// Nodes with these options do not wait for long.
pub(crate) const QUICK: &str = "--patience 2";
/// The stream of a fleet that has no other name, and its snapshots.
pub(crate) const LOG: &str = "{revoked}:log";
pub(crate) const SNAPSHOTS: &str = "{revoked}:snapshot*";

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// All ready nodes know of an acknowledged revocation after this time: `--stale-after`, and a little.
pub(crate) const KNOWN: Duration = Duration::from_millis(1100);
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    crate::support::wait_for(what, || is_so().then_some(()));
}

/// Revokes so many new tokens, until each is acknowledged.
#[track_caller]
pub(crate) fn revoke_all(node: &Node, number: usize) -> Vec<String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let revoke = |_| {
        let token = format!("token-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        wait_for("a revocation to be acknowledged", || node.revoke(&token) == 201);
        token
    };
    (0..number).map(revoke).collect()
}

/// Nodes that are ready, one for each URL of an engine, and tokens whose revocation they know.
#[track_caller]
pub(crate) fn fleet<const N: usize>(engines: [String; N], tokens: usize) -> ([Node; N], Vec<String>) {
    let nodes = engines.map(|engine| Node::start(&engine, QUICK));
    wait_until_ready(&nodes);
    let tokens = revoke_all(&nodes[0], tokens);
    wait_until_known(&nodes, &tokens);
    (nodes, tokens)
}

#[track_caller]
pub(crate) fn wait_until_ready(nodes: &[Node]) {
    let is_ready = |node: &Node| node.is_ready() && node.protected("nobody") == 200;
    wait_for("nodes to be ready and let a token pass", || nodes.iter().all(is_ready));
}

#[track_caller]
pub(crate) fn wait_until_known(nodes: &[Node], tokens: &[String]) {
    let knows = |node: &Node| tokens.iter().all(|token| node.protected(token) == 401);
    wait_for("nodes to know what is revoked", || nodes.iter().all(knows));
}

/// Waits until all is well: nodes take revocations, are ready, refuse these tokens, and let others pass.
#[track_caller]
pub(crate) fn wait_until_well(nodes: &[Node], tokens: &[String]) {
    let more = revoke_all(&nodes[0], 1);
    wait_until_ready(nodes);
    wait_until_known(nodes, &[tokens, &more].concat());
}

/// Asks all nodes again and again for tokens whose revocation was acknowledged.
#[track_caller]
pub(crate) fn nothing_passes(time: Duration, nodes: &[Node], tokens: &[String]) {
    let start = Instant::now();
    while start.elapsed() < time {
        let (mut passed, mut ready) = (BTreeSet::new(), BTreeSet::new());
        for (number, node) in nodes.iter().enumerate() {
            for token in tokens {
                match node.protected(token) {
                    200 => _ = (passed.insert(token), node.is_ready() && ready.insert(number)),
                    status => assert!(matches!(status, 401 | 503), "{status} from node {number}"),
                }
            }
        }
        let (passed, asked) = (passed.len(), tokens.len());
        assert!(passed == 0, "{passed} of {asked} acknowledged tokens passed, on ready nodes: {ready:?}");
    }
}

/// The nodes are not ready soon, and stay so.
#[track_caller]
pub(crate) fn wait_for_operator(nodes: &[Node], tokens: &[String]) {
    thread::sleep(KNOWN);
    let start = Instant::now();
    while start.elapsed() < 3 * SECOND {
        assert!(nodes.iter().all(|node| !node.is_ready()), "a node does not wait for an operator");
        nothing_passes(SECOND / 10, nodes, tokens);
    }
}
