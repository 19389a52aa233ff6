//! What must be refused and said: a second node of the same name, ambiguous requests, and passwords of the engine.

use std::process::Command;

use super::engine::Redis;
use super::support::{QUICK, SECOND, fleet, nothing_passes, revoke_all, wait_for, wait_until_known, wait_until_ready};
use crate::nodes::{Node, PROGRAM, TICKING};

/// `program` starts two nodes with these options. The second one does not apply the first change that it receives, and
/// comparing digests must find that.
fn a_difference_is_found(program: &[&str], options: [&str; 2]) {
    let engine = Redis::start("");
    let start = |options| Node::spawn(program, &engine.url(), &format!("{TICKING} {QUICK} {options}")).listening();
    let nodes = [options[0], &format!("{} --leave-out change", options[1])].map(|options| start(options).unwrap());
    wait_until_ready(&nodes);
    let lacking = revoke_all(&nodes[0], 1);
    // Of two nodes that differ, nobody knows which one is wrong.
    let is_found = || nodes.iter().any(|node| node.said().contains("its filter differed"));
    wait_for("the difference to be found", is_found);
    wait_until_known(&nodes, &lacking);
    nothing_passes(SECOND, &nodes[1..], &lacking);
}

/// Waits until a node says "password", and one of these words.
fn says(user: &str, words: &[&str]) {
    let engine = Redis::start("");
    engine.ask("CONFIG SET requirepass sesame").unwrap();
    let node = Node::spawn(&[PROGRAM], &engine.url().replace("//", &format!("//{user}")), QUICK);
    wait_for(&format!("the word \"password\", and one of {words:?}"), || {
        let said = node.said().to_lowercase();
        said.contains("password") && words.iter().any(|word| said.contains(word))
    });
    assert!(!node.said().contains("tadpole"), "it says the password itself");
}

tests! {
    /// Before: a node with a damaged filter was ready for 20 s, and let the token pass.
    fn two_nodes_with_one_name_find_that_their_filters_differ() {
        a_difference_is_found(&[PROGRAM], ["--node one"; 2])
    }

    /// In containers, both nodes have the process number 1 and the same `--listen`. Before: the same.
    fn two_nodes_in_containers_find_that_their_filters_differ() {
        let unshare = ["unshare", "--pid", "--fork", "--kill-child"];
        if !Command::new(unshare[0]).args(&unshare[1..]).arg("true").status().is_ok_and(|status| status.success()) {
            return eprintln!("skipped: `unshare --pid` is not allowed");
        }
        a_difference_is_found(&[&unshare[..], &[PROGRAM]].concat(), [""; 2])
    }

    /// Before: it was found at the next tick.
    fn control_two_nodes_with_two_names_find_that_their_filters_differ() {
        a_difference_is_found(&[PROGRAM], ["--node one", "--node two"])
    }

    /// Before: [200, 401, 200].
    fn a_request_with_two_tokens_is_malformed() {
        let engine = Redis::start("");
        let ([node], revoked) = fleet([engine.url()], 1);
        let alice = revoked[0].as_str();
        let answers = [["bob", alice], [alice, "bob"], ["bob", "bob"]];
        assert_eq!(answers.map(|tokens| node.ask("GET", "/protected", &tokens, "").status), [400; 3]);
    }

    /// Before: "the engine refuses: ResponseError: Protocol error: unauthenticated multibulk length".
    fn a_missing_password_is_named() {
        says("", &["missing", "without", "needs", "wants", "asks for", "no password", "requires"])
    }

    /// Before: "the engine refuses: Password authentication failed - AuthenticationFailed". This passed.
    fn a_wrong_password_is_named() { says(":tadpole@", &["wrong", "not accepted", "refused", "failed"]) }
}
