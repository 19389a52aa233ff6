//! An engine and nodes of one fleet, each a process.

use std::io::{BufRead, BufReader, Seek};
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

const OPTIONS: [&str; 20] = [
    "--listen",
    "127.0.0.1:0",
    "--key",
    "000102030405060708090a0b0c0d0e0f",
    "--capacity",
    "300_000",
    "--resolution",
    "1",
    "--longest-lifetime",
    "3600",
    "--leeway",
    "0",
    "--stale-after",
    "1",
    "--snapshot-every",
    "1",
    "--patience",
    "5",
    "--clock-margin",
    "5",
];

/// A process of a node. It is killed when this is dropped.
pub(crate) struct Node {
    child: Child,
    pub(crate) address: String,
    stderr: NamedTempFile,
}

impl Node {
    #[track_caller]
    pub(crate) fn start(engine: &str, name: &str, options: &[&str]) -> Self {
        let mut node = Self::spawn(engine, name, options);
        let mut line = String::new();
        BufReader::new(node.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            node.child.wait().unwrap();
            panic!("it does not start: {}", node.said());
        };
        node.address = address.to_owned();
        node
    }

    /// Starts a node that must fail to start. Returns its output.
    #[track_caller]
    pub(crate) fn fails(engine: &str, name: &str, options: &[&str]) -> String {
        let mut node = Self::spawn(engine, name, options);
        let mut line = String::new();
        BufReader::new(node.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "", "it starts with {options:?}");
        assert!(matches!(node.child.wait().unwrap().code(), Some(1 | 2)));
        node.said()
    }

    fn spawn(engine: &str, name: &str, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
        command.arg("node").args(["--engine", engine, "--node", name]).args(OPTIONS);
        for variable in ["FLEET_ADMIN_TOKEN", "FLEET_ENGINE_URL", "FLEET_KEY"] {
            command.env_remove(variable);
        }
        command.args(options).stdout(Stdio::piped());
        // A file keeps everything that the node prints before its address. A pipe would have to be read meanwhile.
        let stderr = NamedTempFile::new().unwrap();
        let child = command.stderr(stderr.reopen().unwrap()).spawn().unwrap();
        Self { child, address: String::new(), stderr }
    }

    pub(crate) fn said(&self) -> String {
        let mut file = self.stderr.reopen().unwrap();
        file.rewind().unwrap();
        std::io::read_to_string(file).unwrap()
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
    pub(crate) fn start(options: &[&str]) -> (Self, Proxy) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path()).unwrap();
        let proxy = Proxy::start(server.address()).unwrap();
        let nodes = ["a", "b", "c"].map(|name| {
            let (engine, options) = if name == "a" { (proxy.url(), options) } else { (server.url(), &[][..]) };
            RwLock::new(Node::start(&engine, name, options))
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
        *node_here = Node::start(&self.url, ["a", "b", "c"][node], &[]);
    }

    pub(crate) fn health(&self, node: usize) -> Option<Value> {
        let client = Client::new(Duration::from_secs(5));
        client.get(&format!("{}/healthz", self.address(node))).map(|answer| answer.json())
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
        let client = Client::new(LONGEST);
        let url = format!("{}/revoked/{token}?exp={}", self.address(node), now() + 1000);
        client.ask("PUT", &url, None, "").unwrap()
    }

    #[track_caller]
    pub(crate) fn delete(&self, node: usize, token: &str) -> Answer {
        let client = Client::new(LONGEST);
        client.ask("DELETE", &format!("{}/revoked/{token}", self.address(node)), None, "").unwrap()
    }

    /// The status for a request with this token.
    #[track_caller]
    pub(crate) fn protected(&self, node: usize, token: &str) -> u16 {
        Client::new(LONGEST).protected(&self.address(node), token).unwrap()
    }
}
