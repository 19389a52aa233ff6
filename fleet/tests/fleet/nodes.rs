//! An engine and nodes of one fleet, each a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use fleet::testing::proxy::Proxy;
use fleet::testing::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::support::{Answer, Client, LONGEST, now, wait_for};

/// How long a node trusts its filter without word from the engine.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(1);

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fleet");

/// Of all nodes.
const OPTIONS: &str =
    "--listen 127.0.0.1:0 --key 000102030405060708090a0b0c0d0e0f --capacity 300_000 --leeway 0 --stale-after 1";

/// Nodes with these options compare their filters and write snapshots each second.
pub(crate) const TICKING: &str =
    "--resolution 1 --longest-lifetime 4000 --snapshot-every 1 --patience 5 --clock-margin 5";

/// A process of a node. It is killed when this is dropped. Options are separated by spaces.
pub(crate) struct Node {
    child: Child,
    pub(crate) address: String,
    client: Client,
    stderr: NamedTempFile,
}

impl Node {
    #[track_caller]
    pub(crate) fn start(engine: &str, options: &str) -> Self {
        Self::spawn(&[PROGRAM], engine, options).listening().unwrap()
    }

    /// Starts a node that must fail to start. Returns its output.
    #[track_caller]
    pub(crate) fn fails(engine: &str, options: &str) -> String {
        match Self::spawn(&[PROGRAM], engine, options).listening() {
            Ok(_) => panic!("it starts with {options}"),
            Err(said) => said,
        }
    }

    /// Does not wait until it listens. `program` may start it inside of another one.
    pub(crate) fn spawn(program: &[&str], engine: &str, options: &str) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(["node", "--engine", engine]);
        command.args(OPTIONS.split(' ')).args(options.split_whitespace()).env_clear();
        // A file keeps everything that the node prints before its address. A pipe would have to be read meanwhile.
        let stderr = NamedTempFile::new().unwrap();
        let child = command.stdout(Stdio::piped()).stderr(stderr.reopen().unwrap()).spawn().unwrap();
        Self { child, address: String::new(), client: Client::new(LONGEST), stderr }
    }

    /// Waits until it listens. Returns what it says if it ends instead.
    pub(crate) fn listening(mut self) -> Result<Self, String> {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if let Some(address) = line.trim().strip_prefix("listening on ") {
            self.address = address.to_owned();
            return Ok(self);
        }
        assert!(matches!(self.child.wait().unwrap().code(), Some(1 | 2)));
        Err(self.said())
    }

    pub(crate) fn said(&self) -> String {
        std::io::read_to_string(self.stderr.reopen().unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it with SIGTERM. Returns whether its exit status is 0.
    pub(crate) fn end(mut self) -> bool {
        self.signal(Signal::TERM);
        self.child.wait().unwrap().success()
    }

    /// Each of the tokens has a header of its own.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, tokens: &[&str], body: &str) -> Answer {
        self.client.ask(method, &format!("{}{path}", self.address), tokens, body).unwrap()
    }

    pub(crate) fn protected(&self, token: &str) -> u16 {
        self.ask("GET", "/protected", &[token], "").status
    }

    /// Revokes a token that expires in an hour. 201 is the acknowledgement.
    pub(crate) fn revoke(&self, token: &str) -> u16 {
        self.ask("PUT", &format!("/revoked/{token}?exp={}", now() + 3600), &[], "").status
    }

    pub(crate) fn health(&self) -> Value {
        self.ask("GET", "/healthz", &[], "").json()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ask("GET", "/healthz", &[], "").status == 200
    }

    /// The number of the last message that it knows of.
    pub(crate) fn head(&self) -> u64 {
        self.health()["head"].as_u64().unwrap_or(0)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("a node said:\n{}", self.said());
        }
    }
}

/// A fleet. Each node may be replaced, and the engine may be killed, while others are asked.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<RwLock<Node>>,
    pub(crate) engine: Mutex<Server>,
    /// The URL of the engine.
    pub(crate) url: String,
    _folder: TempDir,
}

impl Fleet {
    /// A fleet of three nodes. The first one reaches the engine through the proxy.
    pub(crate) fn start(options: &str) -> (Self, Proxy) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path()).unwrap();
        let proxy = Proxy::start(server.address()).unwrap();
        let nodes = ["a", "b", "c"].map(|name| {
            let (engine, options) = if name == "a" { (proxy.url(), options) } else { (server.url(), "") };
            RwLock::new(Node::start(&engine, &format!("{TICKING} --node {name} {options}")))
        });
        let fleet = Self { nodes: nodes.into(), url: server.url(), engine: Mutex::new(server), _folder: folder };
        fleet.wait_until_ready();
        (fleet, proxy)
    }

    pub(crate) fn address(&self, node: usize) -> String {
        self.nodes[node].read().unwrap().address.clone()
    }

    pub(crate) fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].read().unwrap().signal(signal);
    }

    /// Kills a node and starts another one in its place.
    pub(crate) fn replace(&self, node: usize) {
        let mut node_here = self.nodes[node].write().unwrap();
        node_here.kill();
        *node_here = Node::start(&self.url, &format!("{TICKING} --node {}", ["a", "b", "c"][node]));
    }

    pub(crate) fn health(&self, node: usize) -> Option<Value> {
        let client = Client::new(Duration::from_secs(5));
        client.ask("GET", &format!("{}/healthz", self.address(node)), &[], "").map(|answer| answer.json())
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, node: usize, state: &str) {
        wait_for(&format!("node {node} to be {state}"), || self.health(node).filter(|health| health["state"] == state));
    }

    #[track_caller]
    pub(crate) fn wait_until_ready(&self) {
        (0..self.nodes.len()).for_each(|node| self.wait_until(node, "ready"));
    }

    /// Waits until all nodes are ready and report the same digest of the same position, which is not before this
    /// moment.
    #[track_caller]
    pub(crate) fn wait_until_alike(&self) {
        self.wait_until_ready();
        let heads = (0..self.nodes.len()).filter_map(|node| self.health(node)?["head"].as_u64());
        let head = heads.max().unwrap();
        wait_for("all nodes to have the same digest", || {
            let digests: Vec<_> =
                (0..self.nodes.len()).filter_map(|node| Some(self.health(node)?["digest"].clone())).collect();
            let is_new = digests[0]["position"].as_u64() >= Some(head);
            (is_new && digests.len() == self.nodes.len() && digests.iter().all(|digest| *digest == digests[0]))
                .then_some(())
        });
        self.wait_until_ready();
    }

    /// The answer of a node to a revocation.
    #[track_caller]
    pub(crate) fn put(&self, node: usize, token: &str) -> Answer {
        self.ask(node, "PUT", &format!("/revoked/{token}?exp={}", now() + 1000), &[])
    }

    #[track_caller]
    pub(crate) fn delete(&self, node: usize, token: &str) -> Answer {
        self.ask(node, "DELETE", &format!("/revoked/{token}"), &[])
    }

    /// The status for a request with this token.
    #[track_caller]
    pub(crate) fn protected(&self, node: usize, token: &str) -> u16 {
        self.ask(node, "GET", "/protected", &[token]).status
    }

    #[track_caller]
    pub(crate) fn ask(&self, node: usize, method: &str, path: &str, tokens: &[&str]) -> Answer {
        Client::new(LONGEST).ask(method, &format!("{}{path}", self.address(node)), tokens, "").unwrap()
    }
}
