//! What must be refused and said: a second node of the same name, ambiguous requests, and passwords of the engine.

use std::process::Command;
use std::sync::atomic::Ordering;

use super::engine::Redis;
use super::link::Link;
use super::support::{QUICK, SECOND, fleet, nothing_passes, revoke_all, wait_for, wait_until_known, wait_until_ready};
use crate::nodes::{Node, PROGRAM, TICKING};

/// `program` starts two nodes with these options. One of their filters is damaged, and comparing digests must find it.
fn damage_is_found(program: &[&str], options: [&str; 2]) {
    let engine = Redis::start("");
    let link = Link::to(engine.address());
    let start = |url: &str, options| Node::spawn(program, url, &format!("{TICKING} {QUICK} {options}")).listening();
    let node = start(&engine.url(), options[0]).unwrap();
    // A second node of the same name may be refused.
    let other = match start(&link.url(), options[1]) {
        Ok(other) => other,
        Err(said) => return assert!(said.contains("name"), "{said}"),
    };
    let nodes = [node, other];
    wait_until_ready(&nodes);
    wait_until_known(&nodes, &revoke_all(&nodes[0], 5));
    link.way.damages.store(true, Ordering::SeqCst);
    let damaged = revoke_all(&nodes[0], 1);
    wait_for("the message to be damaged", || !link.way.damages.load(Ordering::SeqCst));
    // Otherwise the other node compares the last message that it has read.
    revoke_all(&nodes[0], 3);
    wait_for("the damage to be found", || nodes[1].protected(&damaged[0]) != 200);
    nothing_passes(SECOND, &nodes[1..], &damaged);
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
    /// Before: the damaged node was ready for 20 s, and let the token pass.
    fn two_nodes_with_one_name_find_that_their_filters_differ() {
        damage_is_found(&[PROGRAM], ["--node one"; 2])
    }

    /// In containers, both nodes have the process number 1 and the same `--listen`. Before: the same.
    fn two_nodes_in_containers_find_that_their_filters_differ() {
        let unshare = ["unshare", "--pid", "--fork", "--kill-child"];
        if !Command::new(unshare[0]).args(&unshare[1..]).arg("true").status().is_ok_and(|status| status.success()) {
            return eprintln!("skipped: `unshare --pid` is not allowed");
        }
        damage_is_found(&[&unshare[..], &[PROGRAM]].concat(), [""; 2])
    }

    /// Before: it was found at the next tick.
    fn control_two_nodes_with_two_names_find_that_their_filters_differ() {
        damage_is_found(&[PROGRAM], ["--node one", "--node two"])
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
