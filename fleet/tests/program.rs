//! The program: its routes, signals and files. Each test has a cluster of one member.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::cluster::Cluster;
use support::proxy::Mode;
use support::{has_etcd, wait};
use ureq::Agent;

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

struct Node {
    child: Child,
    /// Of the routes for services, and of those for administrators.
    addresses: Vec<String>,
    agent: Agent,
    log: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
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
    /// A node that listens on this many addresses, and answers this token's certificate authority.
    fn start(etcd: &str, addresses: usize, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = command(etcd, options);
        let mut child = command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = || match lines.next() {
            Some(line) => line.unwrap().strip_prefix("listening on ").unwrap().to_owned(),
            None => panic!("it has ended: {}", fs::read_to_string(&log).unwrap()),
        };
        let addresses = (0..addresses).map(|_| address()).collect();
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = Agent::config_builder().http_status_as_error(false).tls_config(tls);
        let agent = agent.timeout_global(Some(Duration::from_secs(60))).build().into();
        Self { child, addresses, agent, log, _folder: folder }
    }

    fn ready(etcd: &str, options: &[&str]) -> Self {
        let node = Self::start(etcd, 1, options);
        node.wait_until_ready();
        node
    }

    fn wait_until_ready(&self) {
        wait("the node to be ready", || (self.get("/healthz").status == 200).then_some(()));
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

    fn try_ask(&self, address: usize, method: &str, path: &str, bearers: &[&str], body: &str) -> Option<Answer> {
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.addresses[address]));
        for token in bearers {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = self.agent.run(request.body(body.as_bytes()).unwrap()).ok()?;
        Some(Answer { status: response.status().as_u16(), body: response.body_mut().read_to_string().ok()? })
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, bearers: &[&str], body: &str) -> Answer {
        let last = self.addresses.len() - 1;
        self.try_ask(if path.starts_with("/revoked") { last } else { 0 }, method, path, bearers, body)
            .expect("an answer")
    }

    #[track_caller]
    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    /// The status, as soon as the node can tell.
    #[track_caller]
    fn protected(&self, token: &str) -> u16 {
        let ask = || self.ask("GET", "/protected", &[token], "").status;
        wait("an answer", || Some(ask()).filter(|status| *status != 503))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
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
    if !has_etcd() {
        return;
    }
    let cluster = Cluster::start(1, &[]);
    let node = Node::ready(&cluster.url(0), &["--capacity", "3", "--leeway", "60"]);
    let exp = now() + 3600;
    let answer = node.ask("PUT", &format!("/revoked/alice?exp={exp}"), &[], "");
    assert_eq!((answer.status, answer.json()["until"].as_u64()), (201, Some(exp + 60)));
    assert!(answer.json()["position"].as_i64().unwrap() > 0 && answer.json()["revoked"] == true);
    // The token may be in the body instead, where no proxy logs it.
    let body = json!({ "token": "bob", "exp": exp }).to_string();
    assert_eq!(node.ask("PUT", "/revoked", &[], &body).status, 201);
    assert_eq!(node.ask("PUT", "/revoked", &[], &body).status, 200);
    let asked = node.ask("POST", "/revoked", &[], "{\"token\": \"bob\"}").json();
    assert_eq!(asked, json!({ "revoked": true, "until": exp + 60 }));
    assert_eq!(node.get("/revoked/carol").json(), json!({ "revoked": false }));
    assert_eq!((node.protected("alice"), node.protected("bob"), node.protected("carol")), (401, 401, 200));
    assert_eq!(node.ask("DELETE", "/revoked/alice", &[], "").status, 204);
    assert_eq!(node.ask("DELETE", "/revoked", &[], "{\"token\": \"alice\"}").status, 404);
    assert_eq!(node.protected("alice"), 200);

    for (method, path, body, named) in [
        ("PUT", "/revoked/a?exp=soon", "", "soon"),
        ("PUT", "/revoked/a?until=17", "", "exp=SECONDS"),
        ("PUT", "/revoked/a?exp=17", "{\"exp\": 18}", "17 in the query and 18 in the body"),
        ("PUT", "/revoked/a%20b", "", "' ' in a token"),
        ("PUT", "/revoked/a", "{\"token\": \"a\"}", "in the path and in the body"),
        ("PUT", "/revoked", "", "there is no token"),
        ("POST", "/revoked", "alice", "the body is not"),
    ] {
        let answer = node.ask(method, path, &[], body);
        assert!(answer.status == 400 && answer.body.contains(named), "{path}: {} {}", answer.status, answer.body);
    }
    let answer = node.ask("PUT", &format!("/revoked/alice?exp={}", now() * 1000), &[], "");
    assert!(answer.status == 422 && answer.body.contains("milliseconds"), "{}", answer.body);
    let answer = node.ask("PUT", "/revoked/alice?exp=1700000000", &[], "");
    assert!(answer.status == 200 && answer.body.contains("has expired"), "{}", answer.body);
    for token in ["1", "2"] {
        assert_eq!(node.ask("PUT", &format!("/revoked/{token}"), &[], "").status, 201);
    }
    let answer = node.ask("PUT", "/revoked/3", &[], "");
    assert!(answer.status == 507 && answer.json()["capacity"] == 3, "{}", answer.body);
    assert_eq!(node.get("/protected").status, 401);
    assert_eq!(node.ask("GET", "/protected", &["a", "b"], "").status, 400);

    assert_eq!(node.get("/livez").status, 200);
    let health = node.get("/healthz").json();
    assert_eq!((&health["state"], &health["ending"]), (&"ready".into(), &false.into()), "{health}");
    let page = node.get("/metrics").body;
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
    // One line for each change, without the token.
    let log = node.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("audit") && line.contains("result=\"new\"")).collect();
    assert!(lines.len() == 5 && lines.iter().all(|line| line.contains("from=\"127.0.0.1:")), "{log}");
    assert!(!log.contains("bob"));
}

#[test]
fn administrators_have_tokens_and_a_port_of_their_own() {
    if !has_etcd() {
        return;
    }
    let cluster = Cluster::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let certify = |name: &str| {
        let certified = rcgen::generate_simple_self_signed(["localhost".into(), name.into()]).unwrap();
        fs::write(path("certificate"), certified.cert.pem()).unwrap();
        fs::write(path("key"), certified.signing_key.serialize_pem()).unwrap();
        certified.cert.pem()
    };
    let old = certify("one");
    fs::write(path("tokens"), "sesame\n").unwrap();
    let (certificate, key, tokens) = (path("certificate"), path("key"), path("tokens"));
    let options = [
        "--admin-listen",
        "127.0.0.1:0",
        "--admin-tokens",
        &tokens,
        "--tls-certificate",
        &certificate,
        "--tls-key",
        &key,
    ];
    let node = Node::start(&cluster.url(0), 2, &options);
    node.wait_until_ready();
    assert!(node.addresses.iter().all(|address| address.starts_with("https://")));
    let path_of_alice = format!("/revoked/alice?exp={}", now() + 3600);
    let put = |bearers: &[&str]| node.ask("PUT", &path_of_alice, bearers, "").status;
    assert_eq!((put(&[]), put(&["open"]), put(&["sesame"])), (401, 401, 201));
    assert_eq!(node.protected("alice"), 401);
    assert!(shows(&node.addresses[0], &old));
    let on_first = node.try_ask(0, "PUT", "/revoked/bob", &["sesame"], "").unwrap();
    assert_eq!(on_first.status, 404, "not where all others are");

    fs::write(path("tokens"), "open\nsimsim\n").unwrap();
    let new = certify("two");
    node.signal(Signal::HUP);
    wait("the new tokens", || (put(&["sesame"]) == 401).then_some(()));
    assert_eq!((put(&["open"]), put(&["simsim"])), (200, 200));
    wait("the new certificate", || shows(&node.addresses[0], &new).then_some(()));
    assert!(!shows(&node.addresses[0], &old));
    // Files that are wrong change nothing.
    fs::write(path("tokens"), "\n").unwrap();
    fs::write(path("certificate"), "x").unwrap();
    node.signal(Signal::HUP);
    wait("the log", || node.log().contains("the certificate stays as it was").then_some(()));
    assert!(put(&["open"]) == 200 && shows(&node.addresses[0], &new));

    for (options, named) in [
        (&["--listen", "0.0.0.0:0"][..], "FLEET_ADMIN_TOKEN"),
        (&["--admin-listen", "0.0.0.0:0"], "--admin-tokens FILE"),
        (&["--resolution", "0"], "--resolution is 0"),
        (&["--resolution", "2days"], "--resolution is 172800; give 1 to 86400"),
        (&["--idle", "0"], "--idle"),
        (&["--stale-after", "0"], "--stale-after"),
        (&["--capacity", "0"], "--capacity"),
        (&["--rate", "2"], "--rate"),
        (&["--key", "00"], "32 hexadecimal digits"),
        (&["--key-file", "missing"], "can't read missing"),
        (&["--etcd-certificate", "x"], "--etcd-key"),
    ] {
        let said = Node::fails(&cluster.url(0), options);
        assert!(said.contains(named), "{options:?}: {said}");
    }
    let key = Command::new(env!("CARGO_BIN_EXE_fleet")).arg("key").output().unwrap().stdout;
    fs::write(path("fleet.key"), &key).unwrap();
    let said = Node::fails(&cluster.url(0), &["--key-file", &path("fleet.key")]);
    assert!(said.contains("has agreed on other settings"), "{said}");
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
    if !has_etcd() {
        return;
    }
    let cluster = Cluster::start(1, &[]);
    let options = ["--stale-after", "500ms"];
    let (node, other) = (Node::ready(&cluster.url(0), &options), Node::ready(&cluster.url(0), &options));
    for round in 0..3 {
        assert_eq!(node.protected("alice"), 200);
        node.signal(Signal::STOP);
        // They wait in its queue when it goes on.
        let waiting: Vec<_> = (0..20).map(|_| node.connect()).collect();
        waiting.iter().for_each(|stream| send(stream, "/protected"));
        assert_eq!(other.ask("PUT", "/revoked/alice", &[], "").status, 201);
        std::thread::sleep(Duration::from_secs(1));
        // In the second round it can't ask anybody either.
        cluster.members[0].clients.set(if round == 1 { Mode::Silent } else { Mode::Forward });
        node.signal(Signal::CONT);
        for stream in &waiting {
            let status = receive(stream);
            assert!(status == 401 || status == 503, "round {round}: {status}");
        }
        cluster.members[0].clients.set(Mode::Cut);
        cluster.members[0].clients.set(Mode::Forward);
        node.wait_until_ready();
        other.wait_until_ready();
        assert_eq!(other.ask("DELETE", "/revoked/alice", &[], "").status, 204);
        wait("it to know", || (node.protected("alice") == 200).then_some(()));
    }
}

#[test]
fn a_node_that_ends_says_so_first_and_idle_connections_are_closed() {
    if !has_etcd() {
        return;
    }
    let cluster = Cluster::start(1, &[]);
    // It ends when it has been told twice.
    let node = Node::ready(&cluster.url(0), &["--drain", "600", "--idle", "1", "--log-json"]);
    let (silent, kept) = (node.connect(), node.connect());
    send(&kept, "/protected");
    assert_eq!(receive(&kept), 200);
    for mut stream in [&silent, &kept] {
        // It is closed by the node, whenever that is.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    let kept = node.connect();
    node.signal(Signal::TERM);
    wait("it to say so", || (node.get("/healthz").status == 503).then_some(()));
    // New connections and old ones are still served.
    assert_eq!(node.protected("alice"), 200);
    assert_eq!(node.get("/livez").status, 200);
    assert_eq!(node.get("/healthz").json()["ending"], true);
    drop(kept);
    node.signal(Signal::TERM);
    let mut node = node;
    assert!(node.child.wait().unwrap().success());
    assert!(node.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", node.log());
}

#[test]
fn an_operator_accepts_a_loss() {
    if !has_etcd() {
        return;
    }
    let mut cluster = Cluster::start(1, &[]);
    let node = Node::ready(&cluster.url(0), &[]);
    let backup = cluster.save("backup");
    assert_eq!(node.ask("PUT", "/revoked/alice", &[], "").status, 201);
    cluster.restore(&backup);
    let why = wait("it to wait", || {
        let health = node.get("/healthz").json();
        (health["state"] == "waiting").then(|| health["why"].to_string())
    });
    assert!(why.contains("lost something"), "{why}");
    for (path, status) in [("/protected", 503), ("/livez", 200)] {
        assert_eq!(node.ask("GET", path, &["alice"], "").status, status);
    }
    assert_eq!(node.ask("PUT", "/revoked/bob", &[], "").status, 503);
    let accept =
        || Command::new(env!("CARGO_BIN_EXE_fleet")).args(["accept", "--etcd", &cluster.url(0)]).output().unwrap();
    let said = accept();
    assert!(said.status.success() && String::from_utf8_lossy(&said.stdout).contains("accepted: "), "{said:?}");
    node.wait_until_ready();
    assert_eq!(node.protected("alice"), 200, "what the cluster has lost, the fleet has lost");
    assert!(String::from_utf8_lossy(&accept().stdout).contains("does not wait"));
}
