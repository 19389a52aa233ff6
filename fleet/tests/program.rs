//! The program: its routes, signals and files. Each test has a cluster of one member.

mod node;
mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use node::{Node, now};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::cluster::Cluster;
use support::proxy::Mode;
use support::wait;

#[test]
fn each_request_has_its_answer() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let node = Node::start(&cluster.url(0), 1, &["--capacity", "3", "--leeway", "60"]);
    let exp = now() + 3600;
    let of = |token: &str, exp: Value| json!({ "token": token, "exp": exp }).to_string();
    let (status, said) = node.ask("PUT", "/revoked", &[], &of("alice", exp.into()));
    assert_eq!((status, &said["revoked"], said["until"].as_u64()), (201, &true.into(), Some(exp + 60)));
    assert!(said["position"].as_i64().unwrap() > 0);
    assert_eq!(node.ask("PUT", "/revoked", &[], &of("bob", exp.into())).0, 201);
    assert_eq!(node.ask("PUT", "/revoked", &[], &of("bob", exp.into())).0, 200);
    let asked = node.ask("POST", "/revoked", &[], "{\"token\": \"bob\"}");
    assert_eq!(asked, (200, json!({ "revoked": true, "until": exp + 60 })));
    let asked = node.ask("POST", "/revoked", &[], "{\"token\": \"carol\"}");
    assert_eq!(asked, (200, json!({ "revoked": false })));
    assert_eq!((node.protected("alice"), node.protected("bob"), node.protected("carol")), (401, 401, 200));
    assert_eq!(node.change("DELETE", "alice"), 204);
    assert_eq!(node.change("DELETE", "alice"), 404);
    assert_eq!(node.protected("alice"), 200);

    for (method, path, body, status, named) in [
        ("PUT", "/revoked", &*of("a", "soon".into()), 400, "soon"),
        ("PUT", "/revoked", "{\"token\": \"a\", \"until\": 17}", 400, "until"),
        ("PUT", "/revoked", &of("a b", exp.into()), 400, "' ' in a token"),
        ("PUT", "/revoked", "", 400, "the body is not"),
        ("POST", "/revoked", "alice", 400, "the body is not"),
        ("PUT", "/revoked", &of("alice", (now() * 1000).into()), 422, "milliseconds"),
        ("PUT", "/revoked", &of("alice", 1_700_000_000.into()), 200, "has expired"),
        ("PUT", "/revoked", &of("1", exp.into()), 201, "until"),
        ("PUT", "/revoked", &of("2", exp.into()), 201, "until"),
        ("PUT", "/revoked", &of("3", exp.into()), 507, "\"capacity\":3"),
        // A proxy would log this one.
        ("PUT", "/revoked/4", "", 404, ""),
        ("GET", "/protected", "", 401, "Bearer TOKEN"),
        ("GET", "/livez", "", 200, "alive"),
    ] {
        let (given, said) = node.ask(method, path, &[], body);
        assert!(given == status && said.to_string().contains(named), "{path}: {given} {said}");
    }
    assert_eq!(node.ask("GET", "/protected", &["a", "b"], "").0, 400);
    let health = node.get("/healthz").1;
    assert_eq!((&health["state"], &health["ending"]), (&"ready".into(), &false.into()), "{health}");

    let page = node.get("/metrics").1;
    let page = page.as_str().unwrap();
    for line in [
        "fleet_state{state=\"ready\"} 1",
        "fleet_requests_total{outcome=\"revoked\"} 2",
        "fleet_changes_requested_total{change=\"revoke\",result=\"new\"} 4",
        "fleet_changes_requested_total{change=\"restore\",result=\"unchanged\"} 1",
        "fleet_filter_len 3",
        "fleet_joins_total 1",
    ] {
        assert!(page.lines().any(|given| given == line), "{line} is not in\n{page}");
    }
    // What the alerts and the page for operators name is there.
    for text in [include_str!("../deploy/alerts.yaml"), include_str!("../README.md"), include_str!("../OPERATIONS.md")]
    {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for metric in words.filter(|word| word.starts_with("fleet_")) {
            let is_there = page.lines().any(|line| line.starts_with(metric));
            assert!(is_there, "{metric} is not in\n{page}");
        }
    }
    // One line for each change, without the token.
    let log = node.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("audit") && line.contains("result=\"new\"")).collect();
    assert!(lines.len() == 5 && lines.iter().all(|line| line.contains("from=\"127.0.0.1:")), "{log}");
    assert!(!log.contains("bob"));
}

#[test]
fn administrators_have_tokens_and_a_port_of_their_own() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tokens = path("tokens");
    // While one token replaces another, the file has both.
    fs::write(&tokens, "sesame\nsimsim\n").unwrap();
    let admin = ["--admin-listen", "127.0.0.1:0", "--admin-tokens", &tokens];
    let node = Node::start(&cluster.url(0), 2, &admin);
    let alice = json!({ "token": "alice", "exp": now() + 3600 }).to_string();
    let put = |bearers: &[&str]| node.ask("PUT", "/revoked", bearers, &alice).0;
    assert_eq!((put(&[]), put(&["open"]), put(&["sesame"]), put(&["simsim"])), (401, 401, 201, 200));
    assert_eq!(node.protected("alice"), 401);
    let on_first = node.ask_at(&node.addresses[0], "PUT", "/revoked", &["sesame"], &alice);
    assert_eq!(on_first.0, 404, "not where all others are");

    let fleet_key = path("fleet.key");
    fs::write(&fleet_key, Command::new(env!("CARGO_BIN_EXE_fleet")).arg("key").output().unwrap().stdout).unwrap();
    for (options, named) in [
        (&["--listen", "0.0.0.0:0"][..], "FLEET_ADMIN_TOKEN"),
        (&["--admin-listen", "0.0.0.0:0"], "--admin-tokens FILE"),
        (&["--resolution", "2days"], "--resolution is 172800; give 1 to 86400"),
        (&["--idle", "0"], "--idle"),
        (&["--key", "00"], "32 hexadecimal digits"),
        (&["--key-file", "missing"], "can't read missing"),
        (&["--key-file", &fleet_key], "has agreed on other settings"),
        (&["--etcd-certificate", "x"], "--etcd-key"),
    ] {
        let said = Node::fails(&cluster.url(0), options);
        assert!(said.contains(named), "{options:?}: {said}");
    }
}

/// A request on this connection.
fn send(mut stream: &TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer alice\r\n\r\n").unwrap();
}

/// The status of the next answer.
fn receive(mut stream: &TcpStream) -> u16 {
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") && !answer.ends_with(b"alive") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()[9..12].parse().unwrap()
}

#[test]
fn a_process_that_was_stopped_does_not_answer_from_its_old_filter() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let options = ["--stale-after", "500ms"];
    let (node, other) = (Node::start(&cluster.url(0), 1, &options), Node::start(&cluster.url(0), 1, &options));
    for round in 0..3 {
        assert_eq!(node.protected("alice"), 200);
        node.signal(Signal::STOP);
        // They wait in its queue when it goes on.
        let waiting: Vec<_> = (0..20).map(|_| node.connect()).collect();
        waiting.iter().for_each(|stream| send(stream, "/protected"));
        assert_eq!(other.change("PUT", "alice"), 201);
        std::thread::sleep(Duration::from_secs(1));
        // In the second round it can't ask anybody either.
        cluster.members[0].clients.set(if round == 1 { Mode::Silent } else { Mode::Forward });
        node.signal(Signal::CONT);
        for stream in &waiting {
            let status = receive(stream);
            assert!(status == 401 || status == 503, "round {round}: {status}");
        }
        cluster.members[0].clients.mend();
        node.wait_until_ready();
        other.wait_until_ready();
        assert_eq!(other.change("DELETE", "alice"), 204);
        wait("it to know", || (node.protected("alice") == 200).then_some(()));
    }
}

#[test]
fn a_node_that_ends_says_so_first_and_idle_connections_are_closed() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    // It ends when it has been told twice.
    let mut node = Node::start(&cluster.url(0), 1, &["--drain", "600", "--idle", "1", "--log-json"]);
    let (silent, kept) = (node.connect(), node.connect());
    send(&kept, "/protected");
    assert_eq!(receive(&kept), 200);
    for mut stream in [&silent, &kept] {
        // It is closed by the node, whenever that is.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    let kept = node.connect();
    node.signal(Signal::TERM);
    wait("it to say so", || (node.get("/healthz").0 == 503).then_some(()));
    // New connections and old ones are still served.
    assert_eq!(node.protected("alice"), 200);
    assert_eq!(node.get("/livez").0, 200);
    assert_eq!(node.get("/healthz").1["ending"], true);
    drop(kept);
    node.signal(Signal::TERM);
    assert!(node.process.0.wait().unwrap().success());
    assert!(node.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", node.log());
}

#[test]
fn an_operator_accepts_a_loss() {
    let Some(mut cluster) = Cluster::start(1, &[]) else { return };
    let node = Node::start(&cluster.url(0), 1, &[]);
    let backup = cluster.save("backup");
    assert_eq!(node.change("PUT", "alice"), 201);
    cluster.restore(&backup);
    // It asks for the operator when it has said in the cluster what was lost.
    let why = wait("it to wait for an operator", || {
        let health = node.get("/healthz").1;
        Some(health["why"].to_string()).filter(|why| health["state"] == "waiting" && why.contains("`fleet accept`"))
    });
    assert!(why.contains("lost something"), "{why}");
    for (path, status) in [("/protected", 503), ("/livez", 200)] {
        assert_eq!(node.ask("GET", path, &["alice"], "").0, status);
    }
    assert_eq!(node.change("PUT", "bob"), 503);
    let accept =
        || Command::new(env!("CARGO_BIN_EXE_fleet")).args(["accept", "--etcd", &cluster.url(0)]).output().unwrap();
    let said = accept();
    assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("accepted: "), "{said:?}");
    node.wait_until_ready();
    assert_eq!(node.protected("alice"), 200, "what the cluster has lost, the fleet has lost");
    assert!(String::from_utf8_lossy(&accept().stdout).contains("does not wait"));
}

/// A log that can't be written: the disk is full, its reader has ended, or reads no more. What a node has to say is lost, and
/// nothing else.
#[test]
fn a_log_that_nobody_takes_stops_nothing() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let pipe = || {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader, Stdio::from(writer))
    };
    let (ended, to_ended) = pipe();
    let (unread, to_unread) = pipe();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into();
    let options = ["--drain", "0", "--stale-after", "500ms"];
    let begin = |log| Node::begin(&cluster.urls(0), 1, &options, log);
    let nodes = [begin(full), begin(to_ended), begin(to_unread)];
    drop(ended);
    nodes.iter().for_each(Node::wait_until_ready);
    for round in 0..2 {
        // Its state changes, which it logs.
        cluster.members.iter().for_each(|member| member.clients.set(Mode::Cut));
        for node in &nodes {
            wait("it to be stale", || (node.get("/healthz").1["state"] == "stale").then_some(()));
        }
        cluster.members.iter().for_each(|member| member.clients.set(Mode::Forward));
        for (nth, node) in nodes.iter().enumerate() {
            node.wait_until_ready();
            // Each has a line in the log; of this many, a pipe has no room for all.
            for number in 0..300 {
                assert_eq!(node.change("PUT", &format!("{round}-{nth}-{number}")), 201);
            }
            assert_eq!(node.protected(&format!("{round}-{nth}-299")), 401);
        }
    }
    for mut node in nodes {
        node.signal(Signal::TERM);
        assert!(node.process.0.wait().unwrap().success());
    }
    drop(unread);
}

#[test]
fn a_node_is_alive_while_it_looks_for_etcd() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    cluster.members[0].clients.set(Mode::Silent);
    let begin = Instant::now();
    let node = Node::begin(&cluster.url(0), 1, &["--patience", "60"], Stdio::null());
    assert_eq!(node.get("/livez").0, 200);
    let (status, health) = node.get("/healthz");
    assert_eq!((status, &health["state"]), (503, &"joining".into()), "{health}");
    assert!(begin.elapsed() < PATIENCE, "it has not waited for etcd");
    cluster.members[0].clients.mend();
    node.wait_until_ready();
    assert_eq!(node.protected("alice"), 200);
}

/// A node that does not fit into its fleet ends, also if etcd comes up later than the node.
#[test]
fn a_node_of_another_key_ends_when_it_finds_its_fleet() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    drop(Node::start(&cluster.url(0), 1, &[]));
    cluster.members[0].clients.set(Mode::Cut);
    let mut node = Node::begin(&cluster.url(0), 1, &["--capacity", "17"], Stdio::null());
    assert_eq!(node.get("/livez").0, 200);
    cluster.members[0].clients.set(Mode::Forward);
    assert_eq!(node.process.0.wait().unwrap().code(), Some(1));
}
