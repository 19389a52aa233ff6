//! The real server, on a loopback port, driven over HTTP by several clients, ended, killed and started again.
#![cfg(unix)] // For SIGTERM.

mod support;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use support::{Client, Server, wait_for};

/// A directory that goes when the test ends, and the server's data in it.
fn data() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn revoke_all(client: &Client, tokens: impl IntoIterator<Item = String>) {
    for token in tokens {
        assert_eq!(client.put(&format!("/revoked/{token}")).status, 201, "{token}");
    }
}

fn tokens(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{name}-{i}")).collect()
}

#[track_caller]
fn assert_all_revoked(client: &Client, tokens: &[String]) {
    let passed: Vec<_> = tokens.iter().filter(|token| client.protected(token, None) != 401).collect();
    assert!(passed.is_empty(), "{} of {} revoked tokens pass: {:?}", passed.len(), tokens.len(), passed.first());
}

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
    // Some 100 are to be expected, with a standard deviation of 10.
    assert!((20..300).contains(&false_positives), "{false_positives}");
    // The others have cost the store nothing.
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

#[test]
fn a_bulk_load_tells_how_far_it_is() {
    let data = data();
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    // Three lines of five are tokens that were not there before.
    let body: String = (0..10_000).map(|i| format!("a-{i}\nb-{i}\r\n\n  c-{i} \na-{}\n", i / 2)).collect();
    let answer = client.post("/revoked/bulk", body.as_bytes());
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json()["lines"], 50_000);
    let path = format!("/jobs/{}", answer.json()["job"]);
    let mut last = 0;
    let end = wait_for("the job to finish", || {
        let progress = client.get(&path).json();
        let done = progress["done"].as_u64().unwrap();
        assert!((last..=50_000).contains(&done), "{done} after {last}");
        last = done;
        (progress["finished"] == true).then_some(progress)
    });
    assert_eq!((&end["state"], &end["total"], &end["done"]), (&"finished".into(), &50_000.into(), &50_000.into()));
    assert_eq!((&end["inserted"], &end["refused"]), (&30_000.into(), &0.into()));
    for i in (0..10_000).step_by(331) {
        assert_all_revoked(&client, &[format!("a-{i}"), format!("b-{i}"), format!("c-{i}")]);
    }
    assert_eq!(client.bulk(&body)["inserted"], 0, "all of them were known");
    assert_eq!(client.get("/stats").json()["revoked"]["len"], 30_000);
    assert_eq!(client.get("/jobs/77").status, 404);

    let end = client.bulk("fine\nnot a token\nnever looked at");
    assert_eq!((&end["state"], &end["done"], &end["inserted"]), (&"stopped".into(), &1.into(), &1.into()));
    assert!(end["error"].as_str().unwrap().starts_with("line 2: "), "{end}");
    assert_eq!((client.protected("fine", None), client.protected("never", None)), (401, 200));
}

#[test]
fn a_file_is_loaded_before_the_first_request() {
    let data = data();
    let file = data.path().join("tokens");
    fs::write(&file, tokens("bad", 10_000).join("\n")).unwrap();
    let server = Server::start(data.path(), &["--load", file.to_str().unwrap()]);
    assert!(server.said().contains("10000 of 10000 lines, 10000 tokens new"), "{}", server.said());
    assert!(server.said().contains("4096 of 10000 lines"), "no progress: {}", server.said());
    assert_all_revoked(&server.client(), &["bad-0".into(), "bad-9999".into()]);
}

#[test]
fn a_full_filter_is_insufficient_storage_and_loses_nothing() {
    let data = data();
    let server = Server::start(data.path(), &["--capacity", "100"]);
    let client = server.client();
    let (mut revoked, mut refused) = (Vec::new(), Vec::new());
    for token in tokens("bad", 400) {
        let answer = client.put(&format!("/revoked/{token}"));
        match answer.status {
            201 => revoked.push(token),
            507 => {
                let body = answer.json();
                assert_eq!(body["len"], revoked.len());
                assert!(body["capacity"].as_u64().unwrap() >= 100);
                assert!(body["remedy"].as_str().unwrap().contains("--capacity"), "{body}");
                assert!(body["error"].as_str().unwrap().contains("full"), "{body}");
                refused.push(token);
            }
            status => panic!("{status}"),
        }
    }
    assert!(revoked.len() >= 100 && !refused.is_empty(), "{} {}", revoked.len(), refused.len());
    assert_all_revoked(&client, &revoked);
    // What was refused is not half revoked: a restart must not bring it back.
    assert!(refused.iter().all(|token| client.protected(token, None) == 200));
    assert_eq!(client.get("/stats").json()["store_tokens"], revoked.len());

    // A bulk load ends at the token for which there is no room, and says where that was.
    let body = refused.join("\n");
    let end = client.bulk(&body);
    assert_eq!(end["state"], "full", "{end}");
    let (done, inserted) = (end["done"].as_u64().unwrap() as usize, end["inserted"].as_u64().unwrap());
    assert_eq!(inserted, done as u64);
    revoked.extend(refused.drain(..done));
    assert_all_revoked(&client, &revoked);
    assert!(refused.iter().all(|token| client.protected(token, None) == 200));

    // Where one was removed there is room for it.
    let path = format!("/revoked/{}", revoked[7]);
    assert_eq!((client.delete(&path).status, client.put(&path).status), (204, 201));

    // The remedy.
    server.end();
    let server = Server::start(data.path(), &["--capacity", "1000"]);
    let client = server.client();
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&client, &revoked);
    revoke_all(&client, refused.clone());
    assert_all_revoked(&client, &refused);

    // And not the other way round: a filter without some of the tokens must not be served from.
    server.end();
    let said = Server::fails(data.path(), &["--capacity", "100"]);
    assert!(said.contains("--capacity") && said.contains("400 revoked tokens"), "{said}");
}

#[test]
fn the_metrics_page_has_both_filters_and_the_requests() {
    let data = data();
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    revoke_all(&client, tokens("bad", 3));
    for _ in 0..2 {
        client.protected("bad-0", None);
        client.protected("good", Some("id"));
    }
    client.get("/protected");
    let page = client.get("/metrics");
    assert_eq!(page.status, 200);
    for line in [
        "web_server_requests_total{outcome=\"accepted\"} 1",
        "web_server_requests_total{outcome=\"repeated\"} 1",
        "web_server_requests_total{outcome=\"revoked\"} 2",
        "web_server_requests_total{outcome=\"malformed\"} 1",
        "web_server_requests_total{outcome=\"unavailable\"} 0",
        "web_server_store_questions_total 2",
        "web_server_store_tokens 3",
    ] {
        assert!(page.body.lines().any(|found| found == line), "no {line} in\n{}", page.body);
    }
    for filter in ["revoked", "request_ids"] {
        let label = format!("{{filter=\"{filter}\"}}");
        let found =
            page.body.lines().filter(|line| line.starts_with("cuckoo_filter_") && line.contains(&label)).count();
        assert!(found >= 10, "{found} of {filter} in\n{}", page.body);
    }
}

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

    let server = Server::start(data.path(), &[]);
    let client = server.client();
    assert!(server.said().contains("revoked tokens: loaded from"), "{}", server.said());
    assert!(server.said().contains("and 0 revoked since"), "{}", server.said());
    assert_all_revoked(&client, &revoked);
    assert!(reinstated.iter().all(|token| client.protected(token, None) == 200));
    assert!(ids.iter().all(|id| client.protected("good", Some(id)) == 409), "an identifier passes again");
    assert_eq!(client.protected("good", Some("another")), 200);
    assert_eq!(client.get("/stats").json()["revoked"]["len"], 200);

    // Nor by a second one, in which nothing has changed.
    server.end();
    let server = Server::start(data.path(), &[]);
    assert_all_revoked(&server.client(), &revoked);
    assert!(ids.iter().all(|id| server.client().protected("good", Some(id)) == 409), "an identifier passes again");
}

#[test]
fn with_a_damaged_snapshot_the_filter_is_rebuilt() {
    let data = data();
    let snapshot = data.path().join("revoked.snapshot");
    let revoked = tokens("bad", 300);
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), revoked.clone());
    server.end();
    let whole = fs::read(&snapshot).unwrap();
    assert_eq!(whole.len() as u64, fs::metadata(&snapshot).unwrap().len());

    let mut damaged: Vec<Vec<u8>> =
        vec![Vec::new(), whole[..whole.len() / 2].to_vec(), whole[..whole.len() - 1].to_vec()];
    damaged.push([whole.as_slice(), b"!"].concat());
    // In the server's own part, in the filter's header, in its body and in the checksum.
    for place in [9, 20, 30, whole.len() / 2, whole.len() - 2] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        damaged.push(bytes);
    }
    for bytes in damaged {
        fs::write(&snapshot, &bytes).unwrap();
        let server = Server::start(data.path(), &[]);
        assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
        assert_all_revoked(&server.client(), &revoked);
        server.kill();
    }
}

/// The snapshot is whole, but it is not this store's, or not of its present.
#[test]
fn a_snapshot_that_does_not_belong_to_the_store_is_not_used() {
    let (data, other) = (data(), data());
    let (snapshot, key) = ("revoked.snapshot", "key");
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), tokens("bad", 10));
    server.end();
    let old = fs::read(data.path().join(snapshot)).unwrap();

    // Of an earlier day: what came then is no longer known one by one.
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), tokens("later", 10));
    server.end();
    fs::write(data.path().join(snapshot), &old).unwrap();
    let server = Server::start(data.path(), &[]);
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("later", 10));
    server.end();

    // Of another store, with the same key.
    fs::copy(data.path().join(key), other.path().join(key)).unwrap();
    let server = Server::start(other.path(), &[]);
    revoke_all(&server.client(), tokens("other", 25));
    server.end();
    fs::copy(data.path().join(snapshot), other.path().join(snapshot)).unwrap();
    let server = Server::start(other.path(), &[]);
    assert!(server.said().contains("another store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("other", 25));
    server.end();

    // The key was lost: no hash is what it was.
    fs::remove_file(data.path().join(key)).unwrap();
    let server = Server::start(data.path(), &[]);
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("later", 10));
}

/// SIGKILL in the midst of writes, with a snapshot that was made in the midst of others.
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

/// Until the server is gone; returns what it has confirmed: the tokens that are revoked and those that are reinstated.
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

#[test]
fn administrators_have_a_token() {
    let data = data();
    let server = Server::start(data.path(), &["--admin-token", "secret"]);
    let (nobody, wrong) = (server.client(), server.client().with_token("secreu"));
    for client in [nobody, wrong] {
        assert_eq!(client.put("/revoked/a").status, 401);
        assert_eq!(client.get("/revoked/a").status, 401);
        assert_eq!(client.delete("/revoked/a").status, 401);
        assert_eq!(client.post("/revoked/bulk", b"a").status, 401);
        assert_eq!(client.get("/jobs/1").status, 401);
    }
    let admin = server.client().with_token("secret");
    assert_eq!(admin.put("/revoked/a").status, 201);
    assert_eq!(admin.get("/revoked/a").json()["revoked"], true);
    assert!(!server.said().contains("no admin token"), "{}", server.said());

    let open = Server::start(&data.path().join("open"), &[]);
    assert!(open.said().contains("no admin token"), "{}", open.said());
    let said = Server::fails(&data.path().join("public"), &["--listen", "0.0.0.0:0"]);
    assert!(said.contains("WEB_SERVER_ADMIN_TOKEN"), "{said}");
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let data = data();
    let server = Server::start(data.path(), &["--bulk-limit", "1"]);
    let client = server.client();
    let error = |answer: support::Answer| answer.json()["error"].as_str().unwrap().to_owned();

    let answer = client.get("/protected");
    assert_eq!(answer.status, 401);
    assert!(error(answer).contains("Authorization: Bearer"));
    let answer = client.with_header("authorization", "Basic dXNlcjpwYXNz").get("/protected");
    assert_eq!(answer.status, 400);
    assert_eq!(client.protected("good", Some("two words")), 400);
    assert_eq!(client.protected(&"x".repeat(5000), None), 400);
    let answer = client.put("/revoked/two%20words");
    assert_eq!(answer.status, 400);
    assert!(error(answer).contains("' '"));
    let answer = client.post("/revoked/bulk", &vec![b'x'; (1 << 20) + 1]);
    assert_eq!(answer.status, 413);
    assert!(error(answer).contains("--bulk-limit"));
    assert_eq!(client.bulk("fine\n")["inserted"], 1, "a refused load is in nobody's way");
    assert_eq!(client.put("/revoked/bulk").status, 201, "a token of that name");
    assert_eq!(client.post("/revoked/other", b"token").status, 404);
    assert_eq!(client.get("/healthz").status, 200);
}

#[test]
fn the_key_is_secret_and_checked() {
    let data = data();
    let key = data.path().join("key");
    let server = Server::start(data.path(), &[]);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read(&key).unwrap();
    assert_eq!(first.len(), 16);
    assert_ne!(first, [0; 16]);
    // Two servers at one store would not be in step.
    let said = Server::fails(data.path(), &[]);
    assert!(said.contains("revoked.redb"), "{said}");
    server.end();
    assert_eq!(fs::read(&key).unwrap(), first, "a restart keeps the key");

    fs::write(&key, b"short").unwrap();
    let said = Server::fails(data.path(), &[]);
    assert!(said.contains("has 5 bytes, and a key has 16"), "{said}");
}

#[test]
fn bad_arguments_are_told_what_is_wrong() {
    let data = data();
    for (arguments, expected) in [
        (["--capacity", "0"], "at least 1"),
        (["--rate", "1"], "below 1"),
        (["--generations", "1"], "from 2 to 255"),
        (["--window", "0"], "at least 1"),
        (["--rate", "1e-30"], "--capacity and --rate"),
        (["--load", "/no/such/file"], "/no/such/file"),
    ] {
        let said = Server::fails(data.path(), &arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
