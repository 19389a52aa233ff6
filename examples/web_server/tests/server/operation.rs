//! What operators see: the metrics page, admin tokens, the key, and the errors for bad requests and arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Answer, Server, data};
use crate::tokens::{revoke_all, tokens};

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
        "cuckoo_filter_clock_steps_back_total{filter=\"request_ids\"} 0",
        "cuckoo_filter_clock_jumps_total{filter=\"request_ids\"} 0",
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
    let error = |answer: Answer| answer.json()["error"].as_str().unwrap().to_owned();

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
    // Two servers with one store would not be in step.
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
        (["--rate", "1e-30"], "--capacity, --rate,"),
        (["--longest-lifetime", "0"], "at least 1"),
        (["--ticks", "65534"], "from 1 to 65533"),
        (["--clock-file", "/no/such/file"], "/no/such/file"),
        (["--load", "/no/such/file"], "/no/such/file"),
    ] {
        let said = Server::fails(data.path(), &arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
