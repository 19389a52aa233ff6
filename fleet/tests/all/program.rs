//! The program: its routes, its log, its end, and what it says of bad arguments.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::nodes::{Program, command, fleet, now};
use crate::support::wait;

/// The token `{"alg":"ES256"}`, `{}`, with signatures that differ in a bit that no byte uses, in padding, and altogether.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_jwt_does_not_pass_in_another_spelling() {
    let Some(cluster) = fleet(1).await else { return };
    let node = Program::ready(&cluster.urls(0), &[]);
    let [revoked, fine] = ["eyJhbGciOiJFUzI1NiJ9.e30", "eyJhbGciOiJFUzI1NiJ9.e30K"];
    assert_eq!(node.revoke(&format!("{revoked}.AAA")), 201);
    for signature in ["AAA", "AAB", "AAA=", "+/+/", "BBB"] {
        assert_eq!(node.protected(&format!("{revoked}.{signature}")), 401, "{signature}");
        let asked =
            node.ask("POST", "/revoked", &[], &json!({ "token": format!("{revoked}.{signature}") }).to_string());
        assert_eq!((asked.0, &asked.1["revoked"]), (200, &json!(true)));
        assert_eq!(node.protected(&format!("{fine}.{signature}")), 200, "{signature}");
    }
    // Two PASETOs are two tokens.
    assert_eq!(node.revoke("v4.public.AAAA"), 201);
    assert_eq!((node.protected("v4.public.AAAA"), node.protected("v4.public.BBBB")), (401, 200));
    // An encrypted token has no key, and the answer says what has.
    let encrypted = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0.a.b.c.d";
    let (status, body) = node.ask("GET", "/protected", &[encrypted], "");
    assert!(status == 400 && body["error"].as_str().unwrap().contains("`jti`"), "{body}");
    assert_eq!(node.revoke(encrypted), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_get_the_statuses_of_the_readme() {
    let Some(cluster) = fleet(1).await else { return };
    let log = tempfile::NamedTempFile::new().unwrap();
    let node =
        Program::begin_logging(&cluster.urls(0), &["--admin-token", "secret"], &[], log.reopen().unwrap().into());
    node.wait_until_ready();
    let put = |body: &str| node.ask("PUT", "/revoked", &["secret"], body);
    for (bearers, status) in [(&[] as &[&str], 401), (&["a", "b"], 401), (&["a b"], 400), (&["a"], 200)] {
        assert_eq!(node.ask("GET", "/protected", bearers, "").0, status, "{bearers:?}");
    }
    let exp = now() + 100;
    for (body, status) in [
        (json!({ "token": "a", "exp": exp }), 201),
        (json!({ "token": "a", "exp": exp }), 200),
        (json!({ "token": "a", "exp": exp + 1 }), 201),
        (json!({ "token": "b", "exp": now() - 1000 }), 200),
        (json!({ "token": "b", "exp": 1000 * exp }), 422),
        (json!({ "token": "", "exp": exp }), 400),
        (json!({ "token": "b", "exp": "soon" }), 400),
        (json!({ "token": "b", "expiry": exp }), 400),
        // {"exp":1} and {"exp":4000000000}: the claim counts if it is later.
        (json!({ "token": "eyJhbGciOiJub25lIn0.eyJleHAiOjF9.", "exp": exp }), 201),
        (json!({ "token": "eyJhbGciOiJub25lIn0.eyJleHAiOjQwMDAwMDAwMDB9.", "exp": exp }), 422),
    ] {
        let (found, answer) = put(&body.to_string());
        assert_eq!(found, status, "{body}: {answer}");
        assert!(status < 300 || answer["error"].as_str().is_some_and(|why| !why.is_empty()));
    }
    assert_eq!(node.ask("PUT", "/revoked", &["wrong"], "{}").0, 401);
    assert_eq!(node.ask("POST", "/revoked", &[], "{}").0, 401);
    let asked = node.ask("POST", "/revoked", &["secret"], &json!({ "token": "a" }).to_string());
    assert_eq!(asked, (200, json!({ "revoked": true, "until": exp + 1 })));
    assert_eq!(node.protected("b"), 200);
    assert_eq!(node.get("/livez").0, 200);
    for (name, value) in [
        ("fleet_state{state=\"ready\"}", 1.0),
        ("fleet_requests_total{outcome=\"malformed\"}", 3.0),
        ("fleet_requests_total{outcome=\"passed\"}", 2.0),
        ("fleet_changes_total{result=\"new\"}", 3.0),
        ("fleet_changes_total{result=\"refused\"}", 2.0),
        ("fleet_log_lines_lost_total", 0.0),
        ("fleet_capacity", 20_000.0),
    ] {
        assert_eq!(node.metric(name), value, "{name}");
    }
    // The log has each change, and no token.
    let lines = || std::fs::read_to_string(log.path()).unwrap();
    wait("the audit lines", || (lines().matches("revoke id=").count() == 7).then_some(()));
    assert!(!lines().contains("eyJhbGci") && lines().contains("result=\"new\""), "{}", lines());
}

/// Whoever reads the log has stopped. Lines are lost, counted and reported, and the node goes on.
#[tokio::test(flavor = "multi_thread")]
async fn lines_of_the_log_that_are_lost_are_counted() {
    let Some(cluster) = fleet(1).await else { return };
    let (mut reader, writer) = std::io::pipe().unwrap();
    let options = ["--log-lines", "200", "--drain", "0s"];
    let node = Program::begin_logging(&cluster.urls(0), &options, &[("RUST_LOG", "info,h2=trace")], writer.into());
    node.wait_until_ready();
    wait("lost lines", || (node.metric("fleet_log_lines_lost_total") > 0.0).then_some(()));
    assert_eq!(node.revoke("alice"), 201);
    assert!(node.get("/healthz").1["log_lines_lost"].as_u64() > Some(0));
    assert_eq!(node.protected("alice"), 401);
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        reader.read_to_string(&mut log).map(|_| log)
    });
    std::thread::sleep(Duration::from_secs(2));
    node.signal(Signal::TERM);
    node.ends();
    let log = reading.join().unwrap().unwrap();
    assert!(log.contains("lines of this log were lost"), "{} bytes", log.len());
}

/// A log that nobody reads does not stop the end of the process, nor does a request that does not end.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_ends_gracefully() {
    let Some(cluster) = fleet(1).await else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    let node = Program::begin_logging(&cluster.urls(0), &["--drain", "1s"], &[("RUST_LOG", "h2=trace")], writer.into());
    node.wait_until_ready();
    let begin = Instant::now();
    node.signal(Signal::TERM);
    wait("it to say so", || (node.get("/healthz").0 == 503).then_some(()));
    assert_eq!((node.protected("alice"), node.get("/livez").0), (200, 200));
    node.ends();
    assert!(begin.elapsed() > Duration::from_secs(1), "{:?}", begin.elapsed());
    drop(reader);

    let node = Program::begin(&cluster.urls(0), &["--drain", "0s"], &[]);
    node.wait_until_ready();
    let address = node.address.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, b"PUT /revoked HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{")
        .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    node.signal(Signal::TERM);
    node.ends();
}

/// Before etcd is there, a node is alive, and lets nothing pass.
#[test]
fn a_node_without_etcd_is_alive_and_waits() {
    let node = Program::begin("http://127.0.0.1:1", &[], &[]);
    assert_eq!((node.get("/livez").0, node.get("/healthz").0), (200, 503));
    let (status, body) = node.ask("GET", "/protected", &["alice"], "");
    assert!(status == 503 && body["error"].as_str().unwrap().contains("127.0.0.1:1"), "{body}");
}

#[test]
fn bad_arguments_get_an_error_that_says_what_is_right() {
    for (arguments, said) in [
        (&["node", "--listen", "0.0.0.0:0"] as &[&str], "FLEET_ADMIN_TOKEN"),
        (&["node", "--etcd", "127.0.0.1:2379"], "http://HOST:PORT"),
        (&["node", "--fleet", "a/b"], "letters"),
        (&["node", "--rate", "2"], "less than 1"),
        (&["node", "--stale-after", "soon"], "250ms"),
        (&["node", "--etcd-user", "me"], "--etcd-password"),
        (&["node", "--etcd-authority", "/none", "--etcd", "https://localhost:1"], "can't read /none"),
        (&["found", "--capacity", "0"], "1.."),
        (&["found", "--longest-lifetime", "400000000"], "316224000"),
        (&["found", "--etcd", "http://127.0.0.1:1"], "more than half of the members"),
        (&["accept", "--etcd", "http://127.0.0.1:1"], "more than half of the members"),
    ] {
        let output = command(arguments).stdout(Stdio::piped()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(said), "{arguments:?}: {error}");
    }
}

/// The README's table of tests.
#[test]
fn the_tests_of_the_readme_are_there() {
    let names = ["-rho", "fn [a-z_]*(", "src", "tests"];
    let found = std::process::Command::new("grep").args(names).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let sources = String::from_utf8(found.unwrap().stdout).unwrap();
    let table = include_str!("../../README.md").split("## Tests").nth(1).unwrap();
    let words: Vec<_> = table.split('`').filter(|word| word.matches('_').count() > 3).collect();
    assert!(words.len() > 20);
    let missing: Vec<_> = words.into_iter().filter(|word| !sources.contains(&format!("fn {word}("))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
