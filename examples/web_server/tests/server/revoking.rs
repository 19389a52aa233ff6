//! A revoked token is refused, and no other.

use std::thread;

use crate::support::{Server, data};
use crate::tokens::{assert_all_revoked, revoke_all, tokens};

#[test]
fn what_is_revoked_is_refused_and_all_else_passes() {
    let data = data();
    let server = Server::start(data.path(), &[]);
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let client = server.client();
            scope.spawn(move || {
                for i in 0..50 {
                    let (token, path) = (format!("{name}-{i}"), format!("/revoked/{name}-{i}"));
                    assert_eq!(client.protected(&token, None), 200, "{token}");
                    assert_eq!(client.get(&path).json()["revoked"], false);
                    assert_eq!(client.put(&path).status, 201);
                    assert_eq!(client.put(&path).status, 200, "it was revoked already");
                    assert_eq!(client.protected(&token, None), 401);
                    assert_eq!(client.get(&path).json()["revoked"], true);
                    if i % 2 == 0 {
                        assert_eq!(client.delete(&path).status, 204);
                        assert_eq!(client.delete(&path).status, 404, "it was reinstated already");
                        assert_eq!(client.protected(&token, None), 200);
                    }
                }
            });
        }
    });
    let client = server.client();
    for name in ["a", "b", "c", "d"] {
        for i in 0..50 {
            assert_eq!(client.protected(&format!("{name}-{i}"), None), if i % 2 == 0 { 200 } else { 401 });
        }
    }
    let stats = client.get("/stats").json();
    assert_eq!((&stats["revoked"]["len"], &stats["store_tokens"]), (&100.into(), &100.into()));
}

/// A filter that is wrong about every twentieth token, in front of a store that is not.
#[test]
fn a_false_positive_refuses_nobody_and_is_counted() {
    let data = data();
    let server = Server::start(data.path(), &["--capacity", "500", "--rate", "0.07"]);
    let client = server.client();
    let revoked = tokens("revoked", 500);
    assert_eq!(client.bulk(&revoked.join("\n"))["inserted"], 500);
    for token in tokens("good", 2000) {
        assert_eq!(client.protected(&token, None), 200, "{token}");
        assert_eq!(client.delete(&format!("/revoked/{token}")).status, 404, "only what the store has is removed");
    }
    assert_all_revoked(&client, &revoked);

    let stats = client.get("/stats").json();
    let count = |name: &str| stats["revoked"][name].as_u64().unwrap();
    let (false_positives, negatives) = (count("false_positives_recorded"), count("negatives_recorded"));
    assert_eq!(false_positives + negatives, 2000);
    // Some 100 are expected, with a standard deviation of 10.
    assert!((20..300).contains(&false_positives), "{false_positives}");
    // The others have cost no question to the store.
    assert_eq!(stats["store_questions"].as_u64().unwrap(), false_positives + 500);
    assert_eq!(stats["observed_false_positive_rate"], false_positives as f64 / 2000.0);
}

#[test]
fn without_the_filter_the_answers_are_the_same() {
    let data = data();
    let server = Server::start(data.path(), &["--no-filter"]);
    let client = server.client();
    revoke_all(&client, tokens("bad", 10));
    assert_all_revoked(&client, &tokens("bad", 10));
    for token in tokens("good", 10) {
        assert_eq!(client.protected(&token, None), 200);
    }
    assert_eq!(client.get("/stats").json()["store_questions"], 20);
}
