//! The server in this process, with a clock that the tests set.

use std::net::SocketAddr;
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering::Relaxed};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::{Extension, Router, http::Request};
use clap::Parser;
use tempfile::{TempDir, tempdir};
use tokio::task::JoinSet;
use tower::ServiceExt;
use web_server::server::{Shared, router};
use web_server::{Clock, Options, limited::Clients, revoked::Revoked, seen::Seen};

/// The beginning of a tick. With the options below, a tick of the filter of tokens has 100 seconds.
const START: u64 = 1_800_000_000;

struct Server {
    data: Arc<TempDir>,
    router: Router,
    shared: Arc<Shared>,
    time: Arc<AtomicU64>,
}

impl Server {
    fn new(options: &[&str]) -> Self {
        Self::open(&Arc::new(tempdir().unwrap()), 0, options).unwrap()
    }

    fn open(data: &Arc<TempDir>, seconds: u64, options: &[&str]) -> anyhow::Result<Self> {
        let default = [
            "--longest-lifetime=1300",
            "--capacity=1000",
            "--ids=1000",
            "--window=140",
            "--limit=4000000",
            "--burst=10000",
        ];
        let program = ["web-server", "--data", data.path().to_str().unwrap()];
        let options = Options::parse_from([&program, default.as_slice(), options].concat());
        let time = Arc::new(AtomicU64::new(START + seconds));
        let shown = Arc::clone(&time);
        let clock: Clock = Arc::new(move || shown.load(Relaxed));
        let seen = {
            let clock = Arc::clone(&clock);
            Seen::with_clock(&options, move || Duration::from_secs(clock()))?
        };
        let revoked = Revoked::open(&options, clock)?;
        let clients = Clients::new(&options)?;
        let shared = Arc::new(Shared { revoked, seen, clients });
        let router = router(&shared).layer(Extension(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 1)))));
        Ok(Self { data: Arc::clone(data), router, shared, time })
    }

    fn end(self) -> Arc<TempDir> {
        self.data
    }

    /// Sends a request: method and path, after them the token if there is one, and then the identifier.
    async fn send(&self, line: &str) -> (u16, String) {
        let mut words = line.split(' ');
        let mut request = Request::builder().method(words.next().unwrap()).uri(words.next().unwrap());
        if let Some(token) = words.next() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(id) = words.next() {
            request = request.header("x-request-id", id);
        }
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        (head.status.as_u16(), String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap())
    }

    /// Sends requests, each of which must get this status.
    async fn expect<const N: usize>(&self, requests: [(&str, u16); N]) {
        for (line, expected) in requests {
            let (status, body) = self.send(line).await;
            assert_eq!(status, expected, "{line}: {body}");
        }
    }

    /// A figure of the filter of revoked tokens.
    async fn metric(&self, name: &str) -> u64 {
        let (_, page) = self.send("GET /metrics").await;
        let name = format!("cuckoo_filter_{name}{{filter=\"revoked\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).expect(&page).parse().unwrap()
    }
}

/// The filter is wrong about every twentieth token, and the store is not.
#[tokio::test]
async fn what_is_revoked_is_rejected_and_all_else_passes() {
    let server = Server::new(&["--capacity=200", "--rate=0.07"]);
    for i in 0..200 {
        server.expect([(&format!("PUT /revoked/bad-{i}?exp=1800000500"), 200)]).await;
    }
    for i in 0..2000 {
        // Only what the store has is removed from the filter.
        server.expect([(&format!("GET /protected good-{i}"), 200), (&format!("DELETE /revoked/good-{i}"), 404)]).await;
    }
    // Some 100 are expected. With none, the tokens above would show nothing.
    let wrong = server.metric("false_positives_recorded_total").await;
    assert!((20..300).contains(&wrong), "{wrong}");
    assert_eq!(server.metric("negatives_recorded_total").await, 2000 - wrong);
    for i in 0..200 {
        if i < 100 {
            server.expect([(&format!("DELETE /revoked/bad-{i}"), 204)]).await;
        }
        server.expect([(&format!("GET /protected bad-{i}"), if i < 100 { 200 } else { 401 })]).await;
    }
    assert_eq!(server.metric("len").await, 100);
}

#[tokio::test]
async fn a_revoked_token_is_rejected_until_its_expiry_to_the_second_and_then_forgotten() {
    let server = Server::new(&[]);
    for (path, until) in [("told?exp=1800000280", 280), ("unknown", 1300)] {
        let answer = server.send(&format!("PUT /revoked/{path}")).await;
        assert_eq!(answer, (200, format!("{{\"revoked\":true,\"until\":{}}}", START + until)));
    }
    for (seconds, told, unknown) in [(279, 401, 401), (280, 200, 401), (1299, 200, 401), (1300, 200, 200)] {
        server.time.store(START + seconds, Relaxed);
        server.expect([("GET /protected told", told), ("GET /protected unknown", unknown)]).await;
    }
    server.expect([("DELETE /revoked/told", 404)]).await;
    server.time.store(START + 1500, Relaxed);
    assert_eq!(server.metric("len").await, 0);
}

#[tokio::test]
async fn a_revocation_is_made_longer_and_never_shorter() {
    let server = Server::new(&[]);
    // Without an expiry, it lives no longer than was said when it was first revoked.
    for (exp, until) in [("?exp=1800000250", 250), ("?exp=1800000850", 850), ("?exp=1800000450", 850), ("", 850)] {
        let answer = server.send(&format!("PUT /revoked/token{exp}")).await;
        assert_eq!(answer, (200, format!("{{\"revoked\":true,\"until\":{}}}", START + until)), "{exp}");
    }
    assert_eq!(server.metric("len").await, 1, "the entry with the earlier end has gone");
    server.time.store(START + 849, Relaxed);
    server.expect([("GET /protected token", 401)]).await;
}

#[tokio::test]
async fn requests_that_are_wrong_change_nothing() {
    let server = Server::new(&[]);
    server.expect([("PUT /revoked/a?exp=1800001300", 200), ("PUT /revoked/b?exp=1800001301", 422)]).await;
    server.expect([("PUT /revoked/b?exp=tomorrow", 400), ("PUT /revoked/b?exp=1800000000", 200)]).await;
    server.expect([("GET /protected b", 200), ("GET /protected", 401), ("GET /protected tökän", 401)]).await;
    assert_eq!(server.metric("len").await, 1);
    let both = Request::get("/protected").header("authorization", "Bearer c").header("authorization", "Bearer d");
    let response = server.router.clone().oneshot(both.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
}

/// The header is `{"alg":"ES256"}`, and the claims are `{}`. The signatures differ in a bit that no byte uses, and in padding.
#[tokio::test]
async fn a_revoked_jwt_does_not_pass_in_another_spelling_of_its_signature() {
    let server = Server::new(&[]);
    let [revoked, other] = ["eyJhbGciOiJFUzI1NiJ9.e30", "eyJhbGciOiJFUzI1NiJ9.e30K"];
    server.expect([(&format!("PUT /revoked/{revoked}.AAA"), 200)]).await;
    for signature in ["AAA", "AAB", "AAA=", "BBB"] {
        server.expect([(&format!("GET /protected {revoked}.{signature}"), 401)]).await;
    }
    server.expect([(&format!("GET /protected {other}.AAA"), 200)]).await;
    server.expect([(&format!("DELETE /revoked/{revoked}.AAB"), 204)]).await;
    server.expect([(&format!("GET /protected {revoked}.AAA"), 200)]).await;
    // {"alg":"dir","enc":"A256GCM"}
    let encrypted = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0.a.b.c.d";
    server.expect([(&format!("GET /protected {encrypted}"), 400), (&format!("PUT /revoked/{encrypted}"), 400)]).await;
}

#[tokio::test]
async fn a_full_filter_gives_an_error_and_loses_nothing() {
    let server = Server::new(&["--capacity=50"]);
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for i in 0..300 {
        match server.send(&format!("PUT /revoked/bad-{i}")).await {
            (200, _) => accepted.push(i),
            (507, body) if body.contains("--capacity") => refused.push(i),
            answer => panic!("{answer:?}"),
        }
    }
    assert!(accepted.len() >= 50 && !refused.is_empty(), "{} {}", accepted.len(), refused.len());
    let data = server.end();
    assert!(Server::open(&data, 0, &["--capacity=5"]).is_err(), "its filter would lack tokens");
    let server = Server::open(&data, 0, &[]).unwrap();
    for i in accepted {
        server.expect([(&format!("GET /protected bad-{i}"), 401)]).await;
    }
    for i in refused {
        server.expect([(&format!("GET /protected bad-{i}"), 200), (&format!("PUT /revoked/bad-{i}"), 200)]).await;
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_the_store_forgets_expired_tokens_an_hour_later() {
    let server = Server::new(&[]);
    server.expect([("PUT /revoked/short?exp=1800000250", 200), ("PUT /revoked/long?exp=1800000900", 200)]).await;
    server.expect([("PUT /revoked/pardoned?exp=1800000900", 200), ("DELETE /revoked/pardoned", 204)]).await;
    let data = server.end();
    assert!(Server::open(&data, 0, &["--longest-lifetime=600"]).is_err(), "it would forget a token too early");
    for (seconds, short, live) in [(249, 401, 2), (300, 200, 1)] {
        let server = Server::open(&data, seconds, &[]).unwrap();
        server.expect([("GET /protected short", short), ("GET /protected long", 401)]).await;
        server.expect([("GET /protected pardoned", 200)]).await;
        assert_eq!(server.metric("len").await, live);
    }
    for (seconds, short) in [(3849, 401), (3850, 200)] {
        Server::open(&data, seconds, &[]).unwrap().shared.revoked.forget_expired().unwrap();
        // A clock that is set back shows what the store has.
        let server = Server::open(&data, 10, &[]).unwrap();
        server.expect([("GET /protected short", short), ("GET /protected long", 401)]).await;
    }
}

#[tokio::test]
async fn a_clock_that_is_set_right_again_lets_no_revoked_token_pass() {
    // The filter takes no token for another, so that it is known when the store is asked.
    const EXACT: &[&str] = &["--rate=1e-7"];
    let server = Server::new(EXACT);
    server.expect([("PUT /revoked/before?exp=1800000900", 200)]).await;
    server.time.store(START + 1_000_000, Relaxed);
    server.expect([("GET /protected before", 200)]).await; // By this clock it has expired.
    assert_eq!((server.metric("clock_jumps_total").await, server.metric("len").await), (1, 0));
    server.shared.revoked.forget_expired().unwrap();
    let negatives = server.metric("negatives_recorded_total").await;

    server.time.store(START + 10, Relaxed);
    server.expect([("PUT /revoked/meanwhile?exp=1800000900", 200), ("GET /protected meanwhile", 401)]).await;
    server.expect([("PUT /revoked/pardoned?exp=1800000900", 200), ("DELETE /revoked/pardoned", 204)]).await;
    let requests = [("GET /protected before", 401), ("GET /protected pardoned", 200), ("GET /protected good", 200)];
    server.expect(requests).await;
    assert_eq!(server.metric("negatives_recorded_total").await, negatives, "the filter was believed");
    assert!(server.metric("clock_steps_back_total").await > 0);

    let server = Server::open(&server.end(), 10, EXACT).unwrap();
    server.expect(requests).await;
    assert_eq!(server.metric("negatives_recorded_total").await, 2, "the new filter is of use");
    server.time.store(START + 900, Relaxed);
    server.expect([("GET /protected before", 200)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_requests_with_one_identifier_one_passes_in_a_window() {
    let server = Arc::new(Server::new(&[]));
    // The filter's hasher is random: an identifier that looks like an earlier one would be rejected.
    for id in (0..).filter(|id| !server.shared.seen.filter.contains(id.to_string().as_bytes())).take(20) {
        let send = |server: Arc<Server>| async move { server.send(&format!("GET /protected good {id}")).await.0 };
        let requests: JoinSet<u16> = (0..20).map(|_| send(Arc::clone(&server))).collect();
        let mut statuses = requests.join_all().await;
        statuses.sort();
        assert_eq!((statuses[0], &statuses[1..]), (200, &[409; 19][..]), "{id}");
    }
    server.time.store(START + 140, Relaxed);
    server.expect([("GET /protected good 0", 409)]).await; // The window is not over.
    server.time.store(START + 160, Relaxed);
    server.expect([("GET /protected good 0", 200)]).await;
    // Of a request that was rejected for its token, nothing is remembered. (Nor anything that looks like it, by now.)
    server.time.store(START + 320, Relaxed);
    server.expect([("PUT /revoked/bad", 200), ("GET /protected bad id", 401), ("GET /protected good id", 200)]).await;
}

#[tokio::test]
async fn too_many_identifiers_make_the_oldest_count_as_new() {
    let server = Server::new(&["--ids=50"]);
    let send = async |id: u32| server.send(&format!("GET /protected good {id}")).await.0;
    for id in 0..2000 {
        let second = START + u64::from(id) / 20;
        server.time.store(second, Relaxed);
        let statuses = (send(id).await, send(id).await);
        assert!(matches!(statuses, (200, 409) | (409, 409)), "{statuses:?}"); // One of 43,000 looks like an earlier one.
    }
    // All of this took 100 seconds, and the window is longer.
    assert_eq!(send(1999).await, 409);
    let mut new = 0;
    for id in 0..100 {
        new += usize::from(send(id).await == 200);
    }
    assert!(new > 90, "{new}");
    assert!(server.shared.seen.filter.stats().recent.unwrap().evicted_early_by > 0.0);
}
