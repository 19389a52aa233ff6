//! The program: its routes, signals and files. Each test has a cluster of one member.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::cluster::{Cluster, Process};
use support::proxy::Mode;
use support::wait;
use ureq::Agent;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

struct Node {
    process: Process,
    /// Of the routes for services, and of those for administrators.
    addresses: Vec<String>,
    agent: Agent,
    log: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

fn command(etcd: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
    for name in ["FLEET_ADMIN_TOKEN", "FLEET_ETCD", "FLEET_ETCD_USER", "FLEET_ETCD_PASSWORD"] {
        command.env_remove(name);
    }
    command.env("FLEET_KEY", KEY).args(["node", "--listen", "127.0.0.1:0", "--etcd", etcd]).args(options);
    command
}

impl Node {
    /// A node that listens on this many addresses.
    fn start(etcd: &str, addresses: usize, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = command(etcd, options);
        let mut child = command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(addresses);
        let addresses = lines.map(|line| line.unwrap().strip_prefix("listening on ").unwrap().to_owned()).collect();
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = Agent::config_builder().http_status_as_error(false).tls_config(tls);
        let agent = agent.timeout_global(Some(Duration::from_secs(60))).build().into();
        let node = Self { process: Process(child), addresses, agent, log, _folder: folder };
        node.wait_until_ready();
        node
    }

    fn wait_until_ready(&self) {
        wait("the node to be ready", || (self.get("/healthz").0 == 200).then_some(()));
    }

    /// What a node says that does not start.
    fn fails(etcd: &str, options: &[&str]) -> String {
        let mut command = command(etcd, options);
        if options.iter().any(|option| option.starts_with("--key")) {
            command.env_remove("FLEET_KEY");
        }
        let said = command.output().unwrap();
        assert!(!said.status.success());
        String::from_utf8(said.stderr).unwrap()
    }

    /// The status and the body, which is JSON as a rule.
    #[track_caller]
    fn ask_at(&self, address: &str, method: &str, path: &str, bearers: &[&str], body: &str) -> (u16, Value) {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{address}{path}"));
        for token in bearers {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = self.agent.run(request.body(body.as_bytes()).unwrap()).expect("an answer");
        let body = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str(&body).unwrap_or_else(|_| body.into()))
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, bearers: &[&str], body: &str) -> (u16, Value) {
        let address = if path.starts_with("/revoked") { self.addresses.last() } else { self.addresses.first() };
        self.ask_at(address.unwrap(), method, path, bearers, body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &[], "")
    }

    /// The status, as soon as the node can tell.
    #[track_caller]
    fn protected(&self, token: &str) -> u16 {
        let ask = || self.ask("GET", "/protected", &[token], "").0;
        wait("an answer", || Some(ask()).filter(|status| *status != 503))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[0].strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(support::LONGEST)).unwrap();
        stream
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

#[test]
fn each_request_has_its_answer() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let node = Node::start(&cluster.url(0), 1, &["--capacity", "3", "--leeway", "60"]);
    let exp = now() + 3600;
    let (status, said) = node.ask("PUT", &format!("/revoked/alice?exp={exp}"), &[], "");
    assert_eq!((status, &said["revoked"], said["until"].as_u64()), (201, &true.into(), Some(exp + 60)));
    assert!(said["position"].as_i64().unwrap() > 0);
    // The token may be in the body instead, where no proxy logs it.
    let body = json!({ "token": "bob", "exp": exp }).to_string();
    assert_eq!(node.ask("PUT", "/revoked", &[], &body).0, 201);
    assert_eq!(node.ask("PUT", "/revoked", &[], &body).0, 200);
    let asked = node.ask("POST", "/revoked", &[], "{\"token\": \"bob\"}");
    assert_eq!(asked, (200, json!({ "revoked": true, "until": exp + 60 })));
    assert_eq!(node.get("/revoked/carol"), (200, json!({ "revoked": false })));
    assert_eq!((node.protected("alice"), node.protected("bob"), node.protected("carol")), (401, 401, 200));
    assert_eq!(node.ask("DELETE", "/revoked/alice", &[], "").0, 204);
    assert_eq!(node.ask("DELETE", "/revoked", &[], "{\"token\": \"alice\"}").0, 404);
    assert_eq!(node.protected("alice"), 200);

    let too_late = format!("/revoked/alice?exp={}", now() * 1000);
    for (method, path, body, status, named) in [
        ("PUT", "/revoked/a?exp=soon", "", 400, "soon"),
        ("PUT", "/revoked/a?until=17", "", 400, "exp=SECONDS"),
        ("PUT", "/revoked/a?exp=17", "{\"exp\": 18}", 400, "17 in the query and 18 in the body"),
        ("PUT", "/revoked/a%20b", "", 400, "' ' in a token"),
        ("PUT", "/revoked/a", "{\"token\": \"a\"}", 400, "in the path and in the body"),
        ("PUT", "/revoked", "", 400, "there is no token"),
        ("POST", "/revoked", "alice", 400, "the body is not"),
        ("PUT", &too_late, "", 422, "milliseconds"),
        ("PUT", "/revoked/alice?exp=1700000000", "", 200, "has expired"),
        ("PUT", "/revoked/1", "", 201, "until"),
        ("PUT", "/revoked/2", "", 201, "until"),
        ("PUT", "/revoked/3", "", 507, "\"capacity\":3"),
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
    for text in [include_str!("../deploy/alerts.yaml"), include_str!("../README.md")] {
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
    let (certificate, key, tokens) = (path("certificate"), path("key"), path("tokens"));
    let certify = |name: &str| {
        let certified = rcgen::generate_simple_self_signed(["localhost".into(), name.into()]).unwrap();
        fs::write(&certificate, certified.cert.pem()).unwrap();
        fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        certified.cert.pem()
    };
    let old = certify("one");
    fs::write(&tokens, "sesame\n").unwrap();
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key];
    let admin = ["--admin-listen", "127.0.0.1:0", "--admin-tokens", &tokens];
    let node = Node::start(&cluster.url(0), 2, &[tls, admin].concat());
    assert!(node.addresses.iter().all(|address| address.starts_with("https://")));
    let path_of_alice = format!("/revoked/alice?exp={}", now() + 3600);
    let put = |bearers: &[&str]| node.ask("PUT", &path_of_alice, bearers, "").0;
    assert_eq!((put(&[]), put(&["open"]), put(&["sesame"])), (401, 401, 201));
    assert_eq!(node.protected("alice"), 401);
    assert!(shows(&node.addresses[0], &old));
    let on_first = node.ask_at(&node.addresses[0], "PUT", "/revoked/bob", &["sesame"], "");
    assert_eq!(on_first.0, 404, "not where all others are");

    fs::write(&tokens, "open\nsimsim\n").unwrap();
    let new = certify("two");
    node.signal(Signal::HUP);
    wait("the new tokens", || (put(&["sesame"]) == 401).then_some(()));
    assert_eq!((put(&["open"]), put(&["simsim"])), (200, 200));
    wait("the new certificate", || shows(&node.addresses[0], &new).then_some(()));
    assert!(!shows(&node.addresses[0], &old));
    // Files that are wrong change nothing.
    fs::write(&tokens, "\n").unwrap();
    fs::write(&certificate, "x").unwrap();
    node.signal(Signal::HUP);
    wait("the log", || node.log().contains("the certificate stays as it was").then_some(()));
    assert!(put(&["open"]) == 200 && shows(&node.addresses[0], &new));

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

/// Whether the node shows this certificate now.
fn shows(address: &str, pem: &str) -> bool {
    let certificate = ureq::tls::Certificate::from_pem(pem.as_bytes()).unwrap();
    let tls = ureq::tls::TlsConfig::builder().root_certs(vec![certificate].into()).build();
    let agent: Agent = Agent::config_builder().tls_config(tls).build().into();
    agent.get(format!("{}/livez", address.replace("127.0.0.1", "localhost"))).call().is_ok()
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
        assert_eq!(other.ask("PUT", "/revoked/alice", &[], "").0, 201);
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
        assert_eq!(other.ask("DELETE", "/revoked/alice", &[], "").0, 204);
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
    assert_eq!(node.ask("PUT", "/revoked/alice", &[], "").0, 201);
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
    assert_eq!(node.ask("PUT", "/revoked/bob", &[], "").0, 503);
    let accept =
        || Command::new(env!("CARGO_BIN_EXE_fleet")).args(["accept", "--etcd", &cluster.url(0)]).output().unwrap();
    let said = accept();
    assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("accepted: "), "{said:?}");
    node.wait_until_ready();
    assert_eq!(node.protected("alice"), 200, "what the cluster has lost, the fleet has lost");
    assert!(String::from_utf8_lossy(&accept().stdout).contains("does not wait"));
}
