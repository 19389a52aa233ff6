//! Nodes for tests: in this process, with clocks that the tests set, and as processes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fleet::{Clock, Etcd, Node, Reading, Settings, SharedArguments, State, TokenId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use ureq::Agent;

use crate::support::cluster::{Cluster, Process};
use crate::support::{longest, wait};

pub(crate) fn now() -> u64 {
    Reading::of_this_machine().wall.as_secs()
}

/// Waits until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < longest(), "waited {:?} for {what}", longest());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) const SMALL: SharedArguments =
    SharedArguments { capacity: Some(20_000), longest_lifetime: Some(3600), margin: None };

/// A cluster of so many members, in which the fleet is founded.
pub(crate) async fn fleet(members: usize) -> Option<Cluster> {
    let cluster = Cluster::start(members, &[])?;
    found(&cluster, &SMALL).await;
    Some(cluster)
}

pub(crate) async fn found(cluster: &Cluster, settings: &SharedArguments) {
    fleet::found(&Etcd::new(&cluster.urls(0)), "revoked", settings).await.unwrap();
}

/// Accepts, as soon as etcd answers.
pub(crate) async fn accept(cluster: &Cluster) {
    let etcd = Etcd::new(&cluster.urls(0));
    until("it to be accepted", async || fleet::accept(&etcd, "revoked", None, &SharedArguments::default()).await.ok())
        .await;
}

/// A node in this process.
pub(crate) struct Local {
    pub(crate) node: Arc<Node>,
    task: Mutex<JoinHandle<()>>,
    /// What is added to the time of day and to the monotonic clock, in seconds.
    pub(crate) wall: Arc<AtomicI64>,
    pub(crate) monotonic: Arc<AtomicI64>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Local {
    /// A node that runs, with these members.
    pub(crate) fn begin(urls: &str) -> Self {
        Self::begin_with(Settings { patience: Duration::from_secs(60), ..Settings::new(urls) }, 0)
    }

    /// The same, whose time of day is wrong by this many seconds.
    pub(crate) fn begin_with(settings: Settings, wrong: i64) -> Self {
        let (wall, monotonic) = (Arc::new(AtomicI64::new(wrong)), Arc::new(AtomicI64::new(0)));
        let (of_wall, of_monotonic) = (Arc::clone(&wall), Arc::clone(&monotonic));
        let clock = Clock::new(move || {
            let now = Reading::of_this_machine();
            let shift = |time: Duration, by: &AtomicI64| {
                Duration::new(time.as_secs().saturating_add_signed(by.load(Ordering::SeqCst)), time.subsec_nanos())
            };
            Reading { wall: shift(now.wall, &of_wall), monotonic: shift(now.monotonic, &of_monotonic) }
        });
        let node = Arc::new(Node::new(settings, clock).unwrap());
        let task = Mutex::new(Self::spawn(&node));
        Self { node, task, wall, monotonic }
    }

    fn spawn(node: &Arc<Node>) -> JoinHandle<()> {
        let node = Arc::clone(node);
        tokio::spawn(async move { match node.run().await {} })
    }

    /// It does nothing more on its own, and still answers, as a node that hangs.
    pub(crate) fn stop(&self) {
        self.task.lock().unwrap().abort();
    }

    pub(crate) fn go_on(&self) {
        *self.task.lock().unwrap() = Self::spawn(&self.node);
    }

    pub(crate) async fn ready(urls: &str) -> Self {
        let local = Self::begin(urls);
        local.is_in(State::Ready).await;
        local
    }

    pub(crate) async fn is_in(&self, state: State) {
        let what = format!("{state:?}");
        until(&what, async || (self.node.health().state == state).then_some(())).await;
    }

    /// It answers with errors, and says that an operator has to run `fleet accept`.
    pub(crate) async fn waits_for_accept(&self) {
        self.is_in(State::Waiting).await;
        until("the command to run", async || self.node.health().why.contains("fleet accept").then_some(())).await;
        self.node.is_revoked("any").await.unwrap_err();
        self.node.revoke("any", None).await.unwrap_err();
    }

    /// Revokes a token for half an hour, sooner or later.
    pub(crate) async fn revoke(&self, token: &str) {
        until("a revocation", async || self.node.revoke(token, Some(now() + 1800)).await.ok()).await;
    }

    /// The answer for a token, sooner or later.
    pub(crate) async fn answer(&self, token: &str) -> bool {
        until("an answer", async || self.node.is_revoked(token).await.ok()).await
    }

    /// Asks several times. The node may not know, but it must not say that the token is not revoked.
    pub(crate) async fn never_passes(&self, token: &str) {
        let begin = Instant::now();
        for _ in 0..20 {
            assert_ne!(self.node.is_revoked(token).await, Ok(false), "{token}, {:?}", self.node);
            // A node that does not know takes as long for each answer as it trusts its filter.
            if begin.elapsed() > Duration::from_millis(300) {
                return;
            }
        }
    }
}

/// So many nodes, of which each has another member as its first.
pub(crate) async fn ready<const N: usize>(cluster: &Cluster) -> [Local; N] {
    let nodes = std::array::from_fn(|nth| Local::begin(&cluster.urls(nth)));
    for node in &nodes {
        node.is_in(State::Ready).await;
    }
    nodes
}

/// The key of a token's record.
pub(crate) fn key(token: &str) -> String {
    format!("revoked/token/{}", TokenId::of(token).unwrap())
}

/// A node as a process.
pub(crate) struct Program {
    pub(crate) process: Process,
    pub(crate) address: String,
    agent: Agent,
}

/// The program, without variables of this process.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
    for name in ["ADMIN_TOKEN", "ETCD", "ETCD_USER", "ETCD_PASSWORD", "NODE"] {
        command.env_remove(format!("FLEET_{name}"));
    }
    command.args(arguments);
    command
}

impl Program {
    pub(crate) fn ready(etcd: &str, options: &[&str]) -> Self {
        let node = Self::begin(etcd, options, &[]);
        node.wait_until_ready();
        node
    }

    /// A node with these options and variables, which may not be ready yet.
    pub(crate) fn begin(etcd: &str, options: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::begin_logging(etcd, options, variables, Stdio::null())
    }

    /// The same, with this log. Its standard output is closed as soon as the address is read.
    pub(crate) fn begin_logging(etcd: &str, options: &[&str], variables: &[(&str, &str)], log: Stdio) -> Self {
        let mut command = command(&["node", "--listen", "127.0.0.1:0", "--etcd", etcd]);
        command.args(options).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("it starts").to_owned();
        let agent = Agent::config_builder().http_status_as_error(false);
        let agent = agent.timeout_global(Some(Duration::from_secs(60))).build().into();
        Self { process: Process(child), address, agent }
    }

    pub(crate) fn wait_until_ready(&self) {
        wait("the node to be ready", || (self.get("/healthz").0 == 200).then_some(()));
    }

    /// The status and the body, which is JSON as a rule.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, bearers: &[&str], body: &str) -> (u16, Value) {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.address));
        for token in bearers {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = self.agent.run(request.body(body.as_bytes()).unwrap()).expect("an answer");
        let body = response.body_mut().read_to_string().unwrap();
        (response.status().as_u16(), serde_json::from_str(&body).unwrap_or_else(|_| body.into()))
    }

    /// The status of a revocation.
    #[track_caller]
    pub(crate) fn revoke(&self, token: &str) -> u16 {
        self.ask("PUT", "/revoked", &[], &json!({ "token": token, "exp": now() + 1800 }).to_string()).0
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

    /// A figure of its page for Prometheus.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").1;
        let line = page.as_str().unwrap().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    /// Waits until it has ended, with status 0.
    pub(crate) fn ends(mut self) {
        assert!(self.process.0.wait().unwrap().success());
    }
}
