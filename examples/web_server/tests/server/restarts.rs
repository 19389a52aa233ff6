//! What is known after a restart and after a hard kill; requests that are under way at the end.

use std::collections::HashSet;
use std::fs;
use std::thread;

use crate::support::{Client, Server, data, wait_for};
use crate::tokens::{assert_all_revoked, revoke_all, tokens};

#[test]
fn nothing_is_forgotten_by_a_restart() {
    let data = data();
    let (revoked, reinstated, ids) = (tokens("bad", 200), tokens("pardoned", 20), tokens("request", 200));
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    revoke_all(&client, revoked.iter().chain(&reinstated).cloned());
    for token in &reinstated {
        assert_eq!(client.delete(&format!("/revoked/{token}")).status, 204);
    }
    for id in &ids {
        assert_eq!(client.protected("good", Some(id)), 200);
    }
    server.end();

    // The files that a process leaves if it dies while it saves.
    let partial = [".revoked.snapshot.0123456789abcdef.partial", ".request-ids.snapshot.0123456789abcdef.partial"];
    for name in partial {
        fs::write(data.path().join(name), b"half").unwrap();
    }
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    assert!(partial.iter().all(|name| !data.path().join(name).exists()), "they fill the disk");
    assert!(server.said().contains("revoked tokens: loaded from"), "{}", server.said());
    assert!(server.said().contains("and 0 revoked since"), "{}", server.said());
    assert_all_revoked(&client, &revoked);
    assert!(reinstated.iter().all(|token| client.protected(token, None) == 200));
    assert!(ids.iter().all(|id| client.protected("good", Some(id)) == 409), "an identifier passes again");
    assert_eq!(client.protected("good", Some("another")), 200);
    assert_eq!(client.get("/stats").json()["revoked"]["len"], 200);

    // A second restart, with nothing changed, loses nothing either.
    server.end();
    let server = Server::start(data.path(), &[]);
    assert_all_revoked(&server.client(), &revoked);
    assert!(ids.iter().all(|id| server.client().protected("good", Some(id)) == 409), "an identifier passes again");
}

/// SIGKILL during writes, after a snapshot that was made during others.
#[test]
fn what_was_confirmed_survives_a_hard_kill() {
    let data = data();
    let snapshot = data.path().join("revoked.snapshot");
    let mut expected = HashSet::new();
    for round in 0..3 {
        let server = Server::start(data.path(), &["--snapshot-every", "1"]);
        let _ = fs::remove_file(&snapshot);
        let confirmed: Vec<(Vec<String>, HashSet<String>)> = thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let client = server.client();
                    scope.spawn(move || revoke_and_reinstate(&client, &format!("{round}-{writer}")))
                })
                .collect();
            // Writes go on while a snapshot is made, and for a while after that.
            wait_for("a snapshot", || snapshot.exists());
            let so_far = stored(&server);
            wait_for("writes after the snapshot", || stored(&server) > so_far + 20);
            server.kill();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });

        let server = Server::start(data.path(), &[]);
        let client = server.client();
        assert!(server.said().contains("revoked tokens: loaded from"), "{}", server.said());
        assert!(!server.said().contains("and 0 revoked since"), "nothing came after the snapshot: {}", server.said());
        for (revoked, _) in &confirmed {
            expected.extend(revoked.iter().cloned());
        }
        for (_, reinstated) in &confirmed {
            assert!(reinstated.iter().all(|token| client.protected(token, None) == 200));
        }
        assert_all_revoked(&client, &expected.iter().cloned().collect::<Vec<_>>());
        server.kill();
    }
}

fn stored(server: &Server) -> u64 {
    server.client().get("/stats").json()["store_tokens"].as_u64().unwrap()
}

/// Writes until the server is gone. Returns what it has confirmed: the tokens that are revoked and those that are
/// reinstated.
fn revoke_and_reinstate(client: &Client, name: &str) -> (Vec<String>, HashSet<String>) {
    let (mut revoked, mut reinstated) = (Vec::new(), HashSet::new());
    for i in 0.. {
        let path = format!("/revoked/{name}-{i}");
        match client.try_put(&path) {
            Some(answer) => assert_eq!(answer.status, 201),
            None => break,
        }
        let token = format!("{name}-{i}");
        if i % 5 == 0 {
            match client.try_delete(&path) {
                Some(answer) => assert_eq!(answer.status, 204),
                None => break,
            }
            reinstated.insert(token);
        } else {
            revoked.push(token);
        }
    }
    (revoked, reinstated)
}

#[test]
fn at_the_end_requests_under_way_are_answered() {
    let data = data();
    let server = Server::start(data.path(), &["--store-delay", "500"]);
    let client = server.client();
    revoke_all(&client, ["bad".to_owned()]);
    thread::scope(|scope| {
        let slow = scope.spawn(|| server.client().protected("bad", None));
        wait_for("the request to be at the store", || client.get("/stats").json()["store_questions"] == 1);
        server.terminate();
        assert_eq!(slow.join().unwrap(), 401);
    });
    server.wait();
}
