//! The server in this process, with clocks that the tests set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::Router;
use axum::body::{Body, to_bytes};
use clap::Parser;
use http::Request;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tower::ServiceExt;
use web_server::options::{Clock, Options};
use web_server::revoked::Revoked;
use web_server::seen::Seen;
use web_server::server::router;

/// The beginning of a tick. With the options below, a tick has 100 seconds.
const START: u64 = 1_800_000_000;

struct Server {
    data: Arc<TempDir>,
    router: Router,
    revoked: Arc<Revoked>,
    /// What its clocks show: that of the tokens since 1970, that of the identifiers since the start.
    time: Arc<AtomicU64>,
    since_start: Arc<AtomicU64>,
}

impl Server {
    fn new(options: &[&str]) -> Self {
        Self::open(Arc::new(tempdir().unwrap()), 0, options).unwrap()
    }

    fn restart(self, seconds: u64, options: &[&str]) -> Self {
        let data = Arc::clone(&self.data);
        drop(self);
        Self::open(data, seconds, options).unwrap()
    }

    fn open(data: Arc<TempDir>, seconds: u64, options: &[&str]) -> anyhow::Result<Self> {
        let default = ["--longest-lifetime=1300", "--leeway=0", "--capacity=1000", "--ids=1000", "--window=140"];
        let program = ["web-server", "--data", data.path().to_str().unwrap()];
        let options = Options::parse_from([&program, default.as_slice(), options].concat());
        let [time, since_start] = [START + seconds, 0].map(|time| Arc::new(AtomicU64::new(time)));
        let clock = |time: &Arc<AtomicU64>| -> Clock {
            Arc::new({
                let time = Arc::clone(time);
                move || time.load(Relaxed)
            })
        };
        let revoked = Arc::new(Revoked::open(&options, clock(&time))?);
        let seen = Arc::new(Seen::new(&options, clock(&since_start))?);
        Ok(Self { data, router: router(&options, Arc::clone(&revoked), seen), revoked, time, since_start })
    }

    fn set_clock(&self, seconds: u64) {
        self.time.store(START + seconds, Relaxed);
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        (status, String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().into()).unwrap())
    }

    /// Revokes a token until a time after `START`.
    async fn revoke(&self, token: &str, seconds: u64) -> (u16, Value) {
        let (status, body) = self.send("PUT", &format!("/revoked/{token}?exp={}", START + seconds), &[]).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn reinstate(&self, token: &str) -> u16 {
        self.send("DELETE", &format!("/revoked/{token}"), &[]).await.0
    }

    /// The status of a request with this token and this identifier.
    async fn identified(&self, token: &str, id: &str) -> u16 {
        self.send("GET", "/protected", &[("authorization", &format!("Bearer {token}")), ("x-request-id", id)]).await.0
    }

    /// The status of a request with each of these tokens.
    async fn protected<const N: usize>(&self, tokens: [&str; N]) -> [u16; N] {
        let mut statuses = [0; N];
        for (token, status) in tokens.iter().zip(&mut statuses) {
            *status = self.send("GET", "/protected", &[("authorization", &format!("Bearer {token}"))]).await.0;
        }
        statuses
    }

    /// A figure of the filter of revoked tokens.
    async fn metric(&self, name: &str) -> u64 {
        let (_, page) = self.send("GET", "/metrics", &[]).await;
        let name = format!("cuckoo_filter_{name}{{filter=\"revoked\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).expect(&page).parse().unwrap()
    }
}

/// The filter is wrong about every twentieth token, and the store is not.
#[tokio::test]
async fn what_is_revoked_is_refused_and_all_else_passes() {
    let server = Server::new(&["--capacity=200", "--rate=0.07"]);
    let tokens: Vec<_> = (0..200).map(|i| format!("bad-{i}")).collect();
    for token in &tokens {
        assert_eq!(server.revoke(token, 500).await, (201, json!({ "revoked": true, "until": START + 500 })));
    }
    for good in (0..2000).map(|i| format!("good-{i}")) {
        assert_eq!(server.protected([&good]).await, [200]);
        assert_eq!(server.reinstate(&good).await, 404, "only what the store has is removed");
    }
    // Some 100 are expected. With none, the tokens above would show nothing.
    let wrong = server.metric("false_positives_recorded_total").await;
    assert!((20..300).contains(&wrong), "{wrong}");
    assert_eq!(server.metric("negatives_recorded_total").await, 2000 - wrong);
    for token in &tokens[..100] {
        assert_eq!(server.protected([token]).await, [401]);
        assert_eq!((server.reinstate(token).await, server.reinstate(token).await), (204, 404));
    }
    for (i, token) in tokens.iter().enumerate() {
        assert_eq!(server.protected([token]).await, [if i < 100 { 200 } else { 401 }]);
    }
    assert_eq!(server.metric("len").await, 100);
}

#[tokio::test]
async fn a_revoked_token_is_refused_until_its_expiry_to_the_second_and_then_forgotten() {
    // {"sub":"a","exp":1800000250}, with a meaningless signature.
    const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwMjUwfQ.c2lnbmF0dXJl";
    let server = Server::new(&["--longest-lifetime=1270", "--leeway=30"]);
    for (path, until) in [("told?exp=1800000250", 280), (JWT, 280), ("unknown", 1300)] {
        let answer = server.send("PUT", &format!("/revoked/{path}"), &[]).await;
        assert_eq!(answer, (201, json!({ "revoked": true, "until": START + until }).to_string()));
    }
    server.set_clock(279);
    assert_eq!(server.protected(["told", JWT, "unknown"]).await, [401, 401, 401]);
    assert!(server.send("GET", "/revoked/told", &[]).await.1.contains("1800000280"));
    server.set_clock(280);
    assert_eq!(server.protected(["told", JWT, "unknown"]).await, [200, 200, 401]);
    assert!(server.send("GET", "/revoked/told", &[]).await.1.contains("false"));
    assert_eq!(server.reinstate("told").await, 404, "it is no longer revoked");
    assert_eq!(server.revoke(JWT, 300).await.0, 201, "revoked anew");
    server.set_clock(400);
    assert_eq!(server.metric("len").await, 1, "the filter has forgotten the others");
    server.set_clock(1300);
    assert_eq!(server.protected(["unknown"]).await, [200]);
}

#[tokio::test]
async fn a_revocation_is_made_longer_and_never_shorter() {
    let server = Server::new(&[]);
    for (seconds, status, holds) in [(250, 201, 250), (850, 201, 850), (850, 200, 850), (450, 200, 850), (0, 200, 850)]
    {
        let answer = server.revoke("token", seconds).await;
        assert_eq!(answer, (status, json!({ "revoked": true, "until": START + holds })), "{seconds}");
    }
    // Without an expiry, it lives no longer than was said when it was first revoked.
    assert_eq!(server.send("PUT", "/revoked/token", &[]).await.0, 200);
    assert_eq!(server.metric("len").await, 1, "the entry with the earlier end has gone");
    server.set_clock(849);
    assert_eq!(server.protected(["token"]).await, [401]);
}

#[tokio::test]
async fn what_is_wrong_or_expired_is_told() {
    let server = Server::new(&[]);
    assert_eq!(server.revoke("longest", 1300).await.0, 201);
    let (status, body) = server.revoke("later", 1301).await;
    assert_eq!((status, body["error"].as_str().unwrap().contains("--longest-lifetime")), (422, true), "{body}");
    assert_eq!(server.revoke("expired", 0).await, (200, json!({ "revoked": false, "expired": START })));
    assert_eq!(server.protected(["later", "expired"]).await, [200, 200]);
    for path in ["/revoked/a?exp=tomorrow", "/revoked/two%20words"] {
        assert_eq!(server.send("PUT", path, &[]).await.0, 400);
    }
    for (headers, status) in [(&[] as &[_], 401), (&[("authorization", "Basic dXNlcg==")], 400)] {
        assert_eq!(server.send("GET", "/protected", headers).await.0, status);
    }
}

#[tokio::test]
async fn a_full_filter_gives_an_error_and_loses_nothing() {
    let server = Server::new(&["--capacity=50"]);
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for token in (0..300).map(|i| format!("bad-{i}")) {
        match server.revoke(&token, 500).await {
            (201, _) => accepted.push(token),
            (507, body) if body["remedy"].to_string().contains("--capacity") => refused.push(token),
            answer => panic!("{answer:?}"),
        }
    }
    assert!(accepted.len() >= 50 && !refused.is_empty(), "{} {}", accepted.len(), refused.len());
    let data = Arc::clone(&server.data);
    drop(server);
    assert!(Server::open(Arc::clone(&data), 0, &["--capacity=5"]).is_err(), "the filter would lack tokens");
    let server = Server::open(data, 0, &[]).unwrap();
    for token in &accepted {
        assert_eq!(server.protected([token]).await, [401]);
    }
    for token in &refused {
        assert_eq!((server.protected([token]).await, server.revoke(token, 500).await.0), ([200], 201));
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_the_time_goes_on_meanwhile() {
    let server = Server::new(&[]);
    for (token, seconds) in [("short", 250), ("long", 900), ("pardoned", 900)] {
        assert_eq!(server.revoke(token, seconds).await.0, 201);
    }
    assert_eq!(server.reinstate("pardoned").await, 204);
    let data = Arc::clone(&server.data);
    drop(server);
    assert!(
        Server::open(Arc::clone(&data), 0, &["--longest-lifetime=600"]).is_err(),
        "it would forget tokens too early"
    );
    let server = Server::open(data, 249, &[]).unwrap();
    assert_eq!(server.protected(["short", "long", "pardoned"]).await, [401, 401, 200]);
    let server = server.restart(300, &[]);
    assert_eq!(server.protected(["short", "long"]).await, [200, 401]);
    assert_eq!(server.metric("len").await, 1);
    assert_eq!((server.reinstate("long").await, server.metric("len").await), (204, 0));
}

#[tokio::test]
async fn a_clock_that_is_set_right_again_lets_no_revoked_token_pass() {
    let server = Server::new(&[]);
    assert_eq!(server.revoke("before", 900).await.0, 201);
    server.set_clock(1_000_000);
    assert_eq!(server.protected(["before"]).await, [200], "it has expired by this clock");
    assert_eq!((server.metric("clock_jumps_total").await, server.metric("len").await), (1, 0));
    server.revoked.forget_expired().unwrap();
    let negatives = server.metric("negatives_recorded_total").await;

    server.set_clock(10);
    assert_eq!((server.revoke("meanwhile", 900).await.0, server.revoke("pardoned", 900).await.0), (201, 201));
    assert_eq!(server.reinstate("pardoned").await, 204);
    let tokens = ["before", "meanwhile", "pardoned", "good"];
    assert_eq!(server.protected(tokens).await, [401, 401, 200, 200]);
    assert_eq!(server.metric("negatives_recorded_total").await, negatives, "the filter was asked");
    assert!(server.metric("clock_steps_back_total").await > 0);

    let server = server.restart(10, &[]);
    assert_eq!(server.protected(tokens).await, [401, 401, 200, 200]);
    assert_eq!(server.metric("negatives_recorded_total").await, 2, "the new filter is of no use");
    server.set_clock(900);
    assert_eq!(server.protected(["before"]).await, [200]);
}

#[tokio::test]
async fn the_store_forgets_expired_tokens_an_hour_later() {
    let server = Server::new(&[]);
    assert_eq!((server.revoke("short", 100).await.0, server.revoke("long", 1000).await.0), (201, 201));
    let data = Arc::clone(&server.data);
    drop(server);
    for (seconds, status) in [(3699, 401), (3700, 200)] {
        let server = Server::open(Arc::clone(&data), seconds, &[]).unwrap();
        server.revoked.forget_expired().unwrap();
        // A clock that is set back shows what the store has.
        assert_eq!(server.restart(10, &[]).protected(["short", "long"]).await, [status, 401]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_requests_with_one_identifier_one_passes_in_a_window() {
    let server = Arc::new(Server::new(&[]));
    for id in (0..20).map(|i| format!("request-{i}")) {
        let requests = [(); 20].map(|()| {
            let (server, id) = (Arc::clone(&server), id.clone());
            tokio::spawn(async move { server.identified("good", &id).await })
        });
        let mut statuses = Vec::new();
        for request in requests {
            statuses.push(request.await.unwrap());
        }
        statuses.sort();
        assert_eq!((statuses[0], &statuses[1..]), (200, &[409; 19][..]), "{id}");
    }
    server.since_start.store(140, Relaxed);
    assert_eq!(server.identified("good", "request-0").await, 409, "the window is not over");
    server.since_start.store(160, Relaxed);
    assert_eq!(server.identified("good", "request-0").await, 200);
    assert_eq!(server.identified("good", "two words").await, 400);
    // Of a request that was refused for its token, nothing is remembered.
    assert_eq!(server.revoke("bad", 500).await.0, 201);
    assert_eq!((server.identified("bad", "id").await, server.identified("good", "id").await), (401, 200));
}

#[tokio::test]
async fn no_room_for_identifiers_fails_closed_or_open_by_choice() {
    for (option, without_room) in [("--ids=50", 503), ("--ids-fail-open", 200)] {
        let server = Server::new(&["--ids=50", option]);
        let (mut known, mut unknown) = (0, 0);
        for id in (0..2000).map(|i| format!("request-{i}")) {
            match (server.identified("good", &id).await, server.identified("good", &id).await) {
                (200, 409) => known += 1,
                (first, second) if first == without_room && second == without_room => unknown += 1,
                statuses => panic!("{statuses:?}"),
            }
        }
        assert!(known >= 50 && unknown > 0, "{known} {unknown}");
    }
}

#[tokio::test]
async fn administrators_have_a_token() {
    let server = Server::new(&["--admin-token=secret"]);
    for (token, statuses) in [("Bearer secreu", [401, 401, 401]), ("Bearer secret", [201, 200, 204])] {
        for (method, status) in ["PUT", "GET", "DELETE"].iter().zip(statuses) {
            assert_eq!(server.send(method, "/revoked/a", &[("authorization", token)]).await.0, status);
        }
    }
    assert_eq!(server.send("PUT", "/revoked/a", &[]).await.0, 401);
}
