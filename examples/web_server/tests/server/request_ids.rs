//! Of all requests with one identifier, one passes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::{Server, data, wait_for};
use crate::tokens::{revoke_all, tokens};

#[test]
fn of_racing_requests_with_one_identifier_one_passes() {
    const CLIENTS: usize = 6;
    let data = data();
    let server = Server::start(data.path(), &[]);
    let ids = tokens("request", 100);
    let passed: Vec<AtomicUsize> = ids.iter().map(|_| AtomicUsize::new(0)).collect();
    let start = std::sync::Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (client, ids, passed, start) = (server.client(), &ids, &passed, &start);
            scope.spawn(move || {
                start.wait();
                for (id, passed) in ids.iter().zip(passed) {
                    match client.protected("good", Some(id)) {
                        200 => drop(passed.fetch_add(1, Ordering::Relaxed)),
                        status => assert_eq!(status, 409),
                    }
                }
            });
        }
    });
    assert!(passed.iter().all(|passed| passed.load(Ordering::Relaxed) == 1), "{passed:?}");
}

#[test]
fn a_request_that_was_refused_for_its_token_may_come_again() {
    let data = data();
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    revoke_all(&client, ["bad".to_owned()]);
    assert_eq!(client.protected("bad", Some("id")), 401);
    assert_eq!(client.protected("good", Some("id")), 200);
    assert_eq!(client.protected("good", Some("id")), 409);
}

#[test]
fn identifiers_are_forgotten_when_their_time_is_over() {
    let data = data();
    let server = Server::start(data.path(), &["--window", "1", "--generations", "2"]);
    let client = server.client();
    assert_eq!(client.protected("good", Some("id")), 200);
    wait_for("the identifier to be forgotten", || client.protected("good", Some("id")) == 200);
}

#[test]
fn no_room_for_identifiers_is_no_reason_to_let_replays_pass() {
    let data = data();
    let server = Server::start(data.path(), &["--ids", "50"]);
    let client = server.client();
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for id in tokens("request", 400) {
        match client.protected("good", Some(&id)) {
            200 => accepted.push(id),
            503 => refused += 1,
            status => panic!("{status}"),
        }
    }
    assert!(accepted.len() >= 50 && refused > 0, "{} {refused}", accepted.len());
    assert!(accepted.iter().all(|id| client.protected("good", Some(id)) == 409));
}
