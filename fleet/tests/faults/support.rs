//! Nodes, what they are asked, and which tokens they let pass.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tempfile::NamedTempFile;
use ureq::Agent;
use ureq::http::request::Builder;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fleet");
const OPTIONS: &str = "--listen 127.0.0.1:0 --key 000102030405060708090a0b0c0d0e0f --capacity 10000 --leeway 0 \
                       --stale-after 1 --patience 2";
/// Nodes with these options compare their filters each second.
pub(crate) const TICKING: &str = "--resolution 1 --longest-lifetime 4000 --snapshot-every 1";
pub(crate) const NAME: &str = "--node";
/// The stream of a fleet that has no other name, its snapshots, and the command that reads the stream.
pub(crate) const LOG: &str = "{revoked}:log";
pub(crate) const SNAPSHOTS: &str = "{revoked}:snapshot*";
pub(crate) const READS: &[u8] = b"XREAD";

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// All ready nodes know of an acknowledged revocation after this time: `--stale-after`, and a little.
pub(crate) const KNOWN: Duration = Duration::from_millis(1100);
/// The longest wait for something that must happen sooner or later.
const LONGEST: Duration = Duration::from_secs(20);

#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// It is killed when this is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A process of a node.
pub(crate) struct Node {
    process: Process,
    address: String,
    agent: Agent,
    stderr: NamedTempFile,
}

impl Node {
    #[track_caller]
    pub(crate) fn start(engine: &str, options: &str) -> Self {
        Self::spawn(&[PROGRAM], engine, options).listening().unwrap()
    }

    /// Does not wait until it listens. `program` may start it inside of another one.
    pub(crate) fn spawn(program: &[&str], engine: &str, options: &str) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(["node", "--engine", engine]);
        command.args(OPTIONS.split(' ')).args(options.split_whitespace()).env_clear();
        let stderr = NamedTempFile::new().unwrap();
        let child = command.stdout(Stdio::piped()).stderr(stderr.reopen().unwrap()).spawn();
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(5 * SECOND)).build().into();
        Self { process: Process(child.unwrap()), address: String::new(), agent, stderr }
    }

    /// Waits until it listens. Returns what it says if it ends instead.
    pub(crate) fn listening(mut self) -> Result<Self, String> {
        let mut line = String::new();
        BufReader::new(self.process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.address = line.trim().strip_prefix("listening on ").ok_or_else(|| self.said())?.to_owned();
        Ok(self)
    }

    pub(crate) fn said(&self) -> String {
        std::io::read_to_string(self.stderr.reopen().unwrap()).unwrap()
    }

    /// Returns the status and the body. The status is 0 if there is no answer. Each token has a header of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, tokens: &[&str]) -> (u16, String) {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.address));
        let with = |request: Builder, token: &&str| request.header("authorization", format!("Bearer {token}"));
        let answer = self.agent.run(tokens.iter().fold(request, with).body(()).unwrap());
        answer.map_or((0, String::new()), |mut answer| {
            (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap_or_default())
        })
    }

    pub(crate) fn protected(&self, token: &str) -> u16 {
        self.ask("GET", "/protected", &[token]).0
    }

    /// Revokes a token that expires in an hour. 201 is the acknowledgement.
    pub(crate) fn revoke(&self, token: &str) -> u16 {
        let hour = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3600);
        self.ask("PUT", &format!("/revoked/{token}?exp={}", hour.as_secs()), &[]).0
    }

    /// Revokes so many new tokens, until each is acknowledged.
    #[track_caller]
    pub(crate) fn revoke_all(&self, number: usize) -> Vec<String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let revoke = |_| {
            let token = format!("token-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            wait_for("a revocation to be acknowledged", || self.revoke(&token) == 201);
            token
        };
        (0..number).map(revoke).collect()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ask("GET", "/healthz", &[]).0 == 200
    }

    /// The number of the last message that it knows of.
    pub(crate) fn head(&self) -> u64 {
        let health: Value = serde_json::from_str(&self.ask("GET", "/healthz", &[]).1).unwrap();
        health["head"].as_u64().unwrap_or(0)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("a node said: {:.1000}", self.said());
        }
    }
}

/// Nodes that are ready, one for each URL of an engine, and tokens whose revocation they know.
#[track_caller]
pub(crate) fn fleet<const N: usize>(engines: [String; N], tokens: usize) -> ([Node; N], Vec<String>) {
    let nodes = engines.map(|engine| Node::start(&engine, ""));
    wait_until_ready(&nodes);
    let tokens = nodes[0].revoke_all(tokens);
    wait_until_known(&nodes, &tokens);
    (nodes, tokens)
}

#[track_caller]
pub(crate) fn wait_until_ready(nodes: &[Node]) {
    let is_ready = |node: &Node| node.is_ready() && node.protected("nobody") == 200;
    wait_for("nodes to be ready and let a token pass", || nodes.iter().all(is_ready));
}

#[track_caller]
pub(crate) fn wait_until_known(nodes: &[Node], tokens: &[String]) {
    let knows = |node: &Node| tokens.iter().all(|token| node.protected(token) == 401);
    wait_for("nodes to know what is revoked", || nodes.iter().all(knows));
}

/// Waits until all is well: nodes take revocations, are ready, refuse these tokens, and let others pass.
#[track_caller]
pub(crate) fn wait_until_well(nodes: &[Node], tokens: &[String]) {
    let more = nodes[0].revoke_all(1);
    wait_until_ready(nodes);
    wait_until_known(nodes, &[tokens, &more].concat());
}

/// Asks all nodes again and again for tokens whose revocation was acknowledged.
#[track_caller]
pub(crate) fn nothing_passes(time: Duration, nodes: &[Node], tokens: &[String]) {
    let start = Instant::now();
    while start.elapsed() < time {
        let (mut passed, mut ready) = (BTreeSet::new(), BTreeSet::new());
        for (number, node) in nodes.iter().enumerate() {
            for token in tokens {
                match node.protected(token) {
                    200 => _ = (passed.insert(token), node.is_ready() && ready.insert(number)),
                    status => assert!(matches!(status, 401 | 503), "{status} from node {number}"),
                }
            }
        }
        let (passed, asked) = (passed.len(), tokens.len());
        assert!(passed == 0, "{passed} of {asked} acknowledged tokens passed, on ready nodes: {ready:?}");
    }
}

/// The nodes are not ready soon, and stay so.
#[track_caller]
pub(crate) fn wait_for_operator(nodes: &[Node], tokens: &[String]) {
    thread::sleep(KNOWN);
    let start = Instant::now();
    while start.elapsed() < 3 * SECOND {
        assert!(nodes.iter().all(|node| !node.is_ready()), "a node does not wait for an operator");
        nothing_passes(SECOND / 10, nodes, tokens);
    }
}

/// Changes the hash of the token in the last message of an answer. Returns whether there is one.
pub(crate) fn damage(answer: &mut [u8]) -> bool {
    let insert = answer.len().checked_sub(15).filter(|at| answer[*at] == b'I');
    insert.is_some_and(|at| answer[at + 1..at + 5].iter_mut().map(|byte| *byte ^= 0xff).count() > 0)
}
