//! The program, as a process.

#![allow(dead_code, reason = "two test programs use parts of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use ureq::Agent;

use crate::support::cluster::Process;
use crate::support::{LONGEST, wait};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A node as a process.
pub(crate) struct Node {
    pub(crate) process: Process,
    /// Of the routes for services, and of those for administrators.
    pub(crate) addresses: Vec<String>,
    agent: Agent,
    log: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

fn command(etcd: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
    for name in
        ["ADMIN_TOKEN", "ETCD", "ETCD_USER", "ETCD_PASSWORD", "ETCD_OTHER_PASSWORD"].map(|of| format!("FLEET_{of}"))
    {
        command.env_remove(name);
    }
    command.env("FLEET_KEY", KEY).args(["node", "--listen", "127.0.0.1:0", "--etcd", etcd]).args(options);
    command
}

impl Node {
    /// A node that listens on this many addresses.
    pub(crate) fn start(etcd: &str, addresses: usize, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let node = Self::begin(etcd, addresses, options, fs::File::create(&log).unwrap().into());
        let node = Self { log, _folder: folder, ..node };
        node.wait_until_ready();
        node
    }

    /// The same, before it is ready, and with its log there. Its standard output is closed as soon as the addresses are
    /// read.
    pub(crate) fn begin(etcd: &str, addresses: usize, options: &[&str], log: Stdio) -> Self {
        Self::spawn(&mut command(etcd, options), addresses, log)
    }

    /// A node with these environment variables.
    pub(crate) fn start_with(etcd: &str, variables: &[(&str, &str)]) -> Self {
        let node = Self::spawn(command(etcd, &[]).envs(variables.iter().copied()), 1, Stdio::null());
        node.wait_until_ready();
        node
    }

    fn spawn(command: &mut Command, addresses: usize, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(addresses);
        let addresses = lines.map(|line| line.unwrap().strip_prefix("listening on ").unwrap().to_owned()).collect();
        let agent = Agent::config_builder().http_status_as_error(false);
        let agent = agent.timeout_global(Some(Duration::from_secs(60))).build().into();
        let folder = tempfile::tempdir().unwrap();
        Self { process: Process(child), addresses, agent, log: folder.path().join("none"), _folder: folder }
    }

    pub(crate) fn wait_until_ready(&self) {
        wait("the node to be ready", || (self.get("/healthz").0 == 200).then_some(()));
    }

    /// What a node says that does not start.
    pub(crate) fn fails(etcd: &str, options: &[&str]) -> String {
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
    pub(crate) fn ask_at(&self, address: &str, method: &str, path: &str, bearers: &[&str], body: &str) -> (u16, Value) {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{address}{path}"));
        for token in bearers {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = self.agent.run(request.body(body.as_bytes()).unwrap()).expect("an answer");
        let body = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str(&body).unwrap_or_else(|_| body.into()))
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, bearers: &[&str], body: &str) -> (u16, Value) {
        let address = if path.starts_with("/revoked") { self.addresses.last() } else { self.addresses.first() };
        self.ask_at(address.unwrap(), method, path, bearers, body)
    }

    /// The status of a request of an administrator for this token.
    #[track_caller]
    pub(crate) fn change(&self, method: &str, token: &str) -> u16 {
        self.ask(method, "/revoked", &[], &json!({ "token": token }).to_string()).0
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &[], "")
    }

    /// The status, as soon as the node can tell.
    #[track_caller]
    pub(crate) fn protected(&self, token: &str) -> u16 {
        let ask = || self.ask("GET", "/protected", &[token], "").0;
        wait("an answer", || Some(ask()).filter(|status| *status != 503))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[0].strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        stream
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}
