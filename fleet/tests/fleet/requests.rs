//! The answer to each request.

use std::thread;

use fleet::testing::server::Server;
use tempfile::TempDir;

use crate::nodes::{Fleet, Node, TICKING};
use crate::support::{needs_engine, now, wait_for};

/// A small fleet of one node.
fn one(options: &str) -> (Server, Node, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).unwrap();
    let node = Node::start(&server.url(), &format!("{TICKING} --node one {options}"));
    wait_for("it to be ready", || node.is_ready().then_some(()));
    (server, node, folder)
}

#[test]
fn a_revocation_says_until_when_and_at_which_position_and_all_nodes_refuse_the_token() {
    needs_engine!();
    let (fleet, _proxy) = Fleet::start("");
    let answer = fleet.put(0, "alice");
    assert_eq!(answer.status, 201);
    let body = answer.json();
    assert_eq!(body["revoked"], true);
    assert!(body["until"].as_u64().unwrap() > now() + 900, "{body}");
    let position = body["position"].as_u64().unwrap();
    for node in 0..3 {
        wait_for("the node to have it", || {
            let health = fleet.health(node)?;
            (health["position"].as_u64()? >= position).then_some(())
        });
        assert_eq!(fleet.protected(node, "alice"), 401);
        assert_eq!(fleet.protected(node, "bob"), 200);
        let told = fleet.ask(node, "GET", "/revoked/alice", &[]).json();
        assert_eq!((&told["revoked"], &told["until"]), (&true.into(), &body["until"]));
    }
    // Once more, for a shorter time, on another node.
    let again = fleet.ask(1, "PUT", &format!("/revoked/alice?exp={}", now() + 10), &[]);
    assert_eq!((again.status, &again.json()["until"]), (200, &body["until"]));
    assert_eq!(fleet.delete(2, "alice").status, 204);
    assert_eq!(fleet.delete(1, "alice").status, 404);
    fleet.wait_until_alike();
    assert_eq!([0, 1, 2].map(|node| fleet.protected(node, "alice")), [200; 3]);
}

#[test]
fn of_two_nodes_that_revoke_the_same_token_at_the_same_time_one_does_it() {
    needs_engine!();
    let (fleet, _proxy) = Fleet::start("");
    for token in 0..20 {
        let token = format!("token-{token}");
        let mut statuses = thread::scope(|scope| {
            let threads = [0, 1, 2].map(|node| {
                let (fleet, token) = (&fleet, &token);
                scope.spawn(move || {
                    // The same expiry from all of them.
                    let path = format!("/revoked/{token}?exp={}", now() / 100 * 100 + 1000);
                    fleet.ask(node, "PUT", &path, &[]).status
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        statuses.sort();
        assert_eq!(statuses, [200, 200, 201], "{token}");
    }
    fleet.wait_until_alike();
    // One entry for each token: restored once, it is gone.
    for token in 0..20 {
        assert_eq!(fleet.delete(token % 3, &format!("token-{token}")).status, 204);
    }
    fleet.wait_until_alike();
    for token in 0..20 {
        assert_eq!([0, 1, 2].map(|node| fleet.protected(node, &format!("token-{token}"))), [200; 3]);
    }
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    needs_engine!();
    let (_server, node, _folder) = one("--capacity 2 --leeway 60");
    let ask = |method: &str, path: &str, body: &str| {
        let answer = node.ask(method, path, &[], body);
        (answer.status, answer.body)
    };
    for (path, body, named) in [
        ("/revoked/alice?exp=soon", "", "soon"),
        ("/revoked/alice?until=17", "", "exp=SECONDS"),
        ("/revoked/alice?exp=17", "{\"exp\": 18}", "17 in the query and 18 in the body"),
        ("/revoked/a%20b", "", "' ' in a token"),
    ] {
        let (status, answer) = ask("PUT", path, body);
        assert!(status == 400 && answer.contains(named), "{path}: {status} {answer}");
    }
    let (status, answer) = ask("PUT", &format!("/revoked/alice?exp={}", now() * 1000), "");
    assert!(status == 422 && answer.contains("milliseconds"), "{status} {answer}");
    let (status, answer) = ask("PUT", "/revoked/alice?exp=1700000000", "");
    assert!(status == 200 && answer.contains("\"until\":1700000060") && answer.contains("has expired"), "{answer}");

    assert_eq!(ask("PUT", "/revoked/1", "").0, 201);
    assert_eq!(ask("PUT", "/revoked/2", &format!("{{\"exp\": {}}}", now() + 1000)).0, 201);
    let (status, answer) = ask("PUT", "/revoked/3", "");
    assert_eq!(status, 507, "{answer}");
    assert!(["\"len\":2", "\"capacity\":2", "remedy"].iter().all(|named| answer.contains(named)), "{answer}");
    assert_eq!(node.protected("3"), 200);

    assert_eq!(ask("GET", "/protected", "").0, 401);
    assert!(node.end(), "it ends well");
}

#[test]
fn only_administrators_revoke_where_there_is_a_token_for_them() {
    needs_engine!();
    let (server, node, _folder) = one("--admin-token sesame");
    let put = |tokens: &[&str]| node.ask("PUT", "/revoked/alice", tokens, "");
    assert_eq!(put(&[]).status, 401);
    assert_eq!(put(&["open"]).status, 401);
    assert_eq!(put(&["sesame"]).status, 201);
    assert_eq!(node.protected("alice"), 401);
    let said = Node::fails(&server.url(), &format!("{TICKING} --listen 0.0.0.0:0"));
    assert!(said.contains("FLEET_ADMIN_TOKEN"), "{said}");
}

#[test]
fn a_node_says_how_it_is() {
    needs_engine!();
    let (_server, node, _folder) = one("");
    assert_eq!(node.ask("PUT", "/revoked/alice", &[], "").status, 201);
    assert_eq!(node.protected("alice"), 401);
    assert_eq!(node.protected("bob"), 200);
    let health = wait_for("a digest and a snapshot", || {
        let health = node.health();
        (health["digest"].is_object() && health["snapshot"].is_object()).then_some(health)
    });
    assert_eq!(health["state"], "ready");
    assert!(health["head"].as_u64() >= health["position"].as_u64());
    assert!(health["lag"]["messages"].is_u64() && health["lag"]["seconds"].as_f64().unwrap() < 1.0, "{health}");
    assert!(health["since"].as_f64().unwrap() > 1.7e9, "{health}");
    let page = node.ask("GET", "/metrics", &[], "").body;
    for line in [
        "fleet_state{state=\"ready\"} 1",
        "fleet_state{state=\"stale\"} 0",
        "fleet_requests_total{outcome=\"revoked\"} 1",
        "fleet_requests_total{outcome=\"accepted\"} 1",
        "fleet_joins_total 1",
        "cuckoo_filter_len{filter=\"revoked\"} 1",
    ] {
        assert!(page.lines().any(|given| given == line), "{line} is not in\n{page}");
    }
    for name in [
        "fleet_position",
        "fleet_head",
        "fleet_lag_messages",
        "fleet_lag_seconds",
        "fleet_digest",
        "fleet_digest_position",
        "fleet_snapshot_position",
        "fleet_snapshot_age_seconds",
    ] {
        assert!(page.lines().any(|line| line.starts_with(&format!("{name} "))), "{name} is not in\n{page}");
    }
}

#[test]
fn a_node_with_another_key_or_too_much_patience_does_not_start() {
    needs_engine!();
    let (server, _node, _folder) = one("");
    let said = Node::fails(&server.url(), &format!("{TICKING} --key ffffffffffffffffffffffffffffffff"));
    assert!(said.contains("has agreed on other settings"), "{said}");
    let said = Node::fails(&server.url(), &format!("{TICKING} --capacity 99"));
    assert!(said.contains("format 2") && said.contains("settings and version"), "{said}");
    let said = Node::fails(&server.url(), &format!("{TICKING} --patience 10 --remember 20"));
    assert!(said.contains("--remember 20"), "{said}");
}

#[test]
fn a_fleet_of_another_format_is_refused_and_left_as_it_is() {
    needs_engine!();
    let (server, node, _folder) = one("");
    drop(node);
    // What the first version has written.
    let mut redis = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let agreed: String = redis::cmd("HGET").arg("{revoked}:fleet").arg("agreed").query(&mut redis).unwrap();
    let older = agreed.replace(", format 2", "");
    assert_ne!(older, agreed);
    let () = redis::cmd("HSET").arg("{revoked}:fleet").arg("agreed").arg(&older).query(&mut redis).unwrap();
    let before: Vec<Vec<u8>> = redis::cmd("HGETALL").arg("{revoked}:fleet").query(&mut redis).unwrap();
    let said = Node::fails(&server.url(), TICKING);
    assert!(said.contains("format 2") && said.contains("another fleet name"), "{said}");
    let after: Vec<Vec<u8>> = redis::cmd("HGETALL").arg("{revoked}:fleet").query(&mut redis).unwrap();
    assert_eq!(before, after);
}

#[test]
fn a_key_is_asked_for_and_lands_only_where_it_is_told_to() {
    needs_engine!();
    let folder = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fleet"));
        command.args(options).current_dir(folder.path()).env_remove("FLEET_KEY").output().unwrap()
    };
    let said = run(&["node", "--listen", "127.0.0.1:0"]);
    assert!(!said.status.success() && String::from_utf8_lossy(&said.stderr).contains("fleet key"), "{said:?}");
    let key = run(&["key"]);
    assert!(key.status.success() && key.stdout.len() == 33, "{key:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// By the command line, as an operator does it.
#[test]
fn after_a_loss_the_operator_accepts_it() {
    needs_engine!();
    let (server, node, _folder) = one("");
    let put = |tokens: &[&str]| node.ask("PUT", "/revoked/alice", tokens, "");
    assert_eq!(put(&[]).status, 201);
    assert_eq!(server.say("FLUSHALL").unwrap(), "+OK");
    let why = |node: &Node| {
        let health = node.health();
        (health["state"] != "ready").then(|| health["why"].as_str().unwrap().to_owned())
    };
    wait_for("it to wait", || why(&node).filter(|why| why.contains("fleet accept")));
    assert_eq!(node.protected("alice"), 503);
    assert!(put(&[]).body.contains("fleet accept"));
    let mut accept = std::process::Command::new(env!("CARGO_BIN_EXE_fleet"));
    let accepted = accept.args(["accept", "--engine", &server.url()]).output().unwrap();
    let said = String::from_utf8_lossy(&accepted.stdout).into_owned();
    assert!(accepted.status.success() && said.contains("node one"), "{said}");
    wait_for("it to be ready", || node.is_ready().then_some(()));
    assert_eq!(node.protected("alice"), 200, "what the engine forgets, the fleet forgets");
}
