//! Tests of nodes with a real cluster of three members, and a network that fails. Each has a control: the same with a step
//! left out goes wrong.

#[path = "../../tests/support/mod.rs"]
mod support;

mod basics;
mod clocks;
mod cluster;
mod foreign;
mod history;
mod lookup;
mod replies;
mod storm;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use self::support::LONGEST;
use self::support::cluster::Cluster;
use crate::clock::Clock;
use crate::etcd::Etcd;
use crate::node::Node;
use crate::settings::{Settings, Step};
use crate::state::State;

/// Ends a test that needs etcd if there is none.
macro_rules! needs_etcd {
    () => {
        if !crate::tests::support::has_etcd() {
            return;
        }
    };
}
use needs_etcd;

/// Waits until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Settings for tests: with a short resolution, and with patience.
fn settings(etcd: &str, skip: &'static [Step]) -> Settings {
    Settings {
        etcd: Etcd::new(etcd),
        capacity: 2000,
        resolution: 120,
        longest_lifetime: 3600,
        patience: Duration::from_secs(60),
        skip,
        ..Settings::new([7; 16])
    }
}

/// A node that is ready.
async fn start(settings: Settings) -> Node {
    let node = Node::start_with(settings, Clock::new()).await.unwrap();
    ready(&node).await;
    node
}

async fn ready(node: &Node) {
    until("the node to be ready", async || node.is_ready().then_some(())).await;
}

async fn is_in(node: &Node, state: State) {
    until(&format!("{state:?}"), async || (node.health().state == state).then_some(())).await;
}

/// The answer for a token, sooner or later.
async fn answer(node: &Node, token: &str) -> bool {
    until("an answer", async || node.is_revoked(token).await.ok()).await
}

/// Revokes a token for half an hour, sooner or later.
async fn revoke(node: &Node, token: &str) {
    until("a revocation", async || node.revoke(token, node.time() + 1800).await.ok()).await;
}

/// A cluster of three, and a node of a fleet at each.
async fn three(skip: &'static [Step]) -> (Cluster, [Arc<Node>; 3]) {
    let cluster = Cluster::start(3, &[]);
    let node = async |nth: usize| Arc::new(start(settings(&cluster.urls(nth), skip)).await);
    let nodes = [node(0).await, node(1).await, node(2).await];
    (cluster, nodes)
}

/// A node of a fleet of its own, with a step left out: the control beside the nodes that take it.
async fn control(cluster: &Cluster, first: usize, skip: &'static [Step]) -> Node {
    start(Settings { fleet: format!("{:?}", skip[0]), ..settings(&cluster.urls(first), skip) }).await
}

/// Keeps revoking tokens over these nodes, and asks about them, until it is told to stop.
struct Changes {
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<Vec<String>>>,
    acknowledged: Arc<AtomicUsize>,
}

impl Changes {
    fn start(nodes: &[Arc<Node>]) -> Self {
        let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = |(nth, node): (usize, &Arc<Node>)| {
            let (node, is_over, acknowledged) = (Arc::clone(node), Arc::clone(&is_over), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                let mut done: Vec<String> = Vec::new();
                for number in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let token = format!("{nth}-{number}");
                    if node.revoke(&token, node.time() + 1800).await.is_ok() {
                        acknowledged.fetch_add(1, Ordering::SeqCst);
                        done.push(token);
                    }
                    for token in done.iter().rev().take(3) {
                        assert_ne!(node.is_revoked(token).await, Ok(false), "{token}: acknowledged by this node");
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                done
            })
        };
        let tasks = nodes.iter().enumerate().map(task).collect();
        Self { is_over, tasks, acknowledged }
    }

    /// Waits until some more changes were acknowledged.
    async fn more(&self) {
        let wanted = self.acknowledged.load(Ordering::SeqCst) + 10;
        until("changes", async || (self.acknowledged.load(Ordering::SeqCst) >= wanted).then_some(())).await;
    }

    /// Stops, and checks that all nodes refuse everything that was acknowledged.
    async fn check(self, nodes: &[Arc<Node>]) {
        self.is_over.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(task.await.unwrap());
        }
        assert!(!all.is_empty());
        for node in nodes {
            ready(node).await;
            for token in &all {
                assert!(answer(node, token).await, "{token}");
            }
            assert!(!answer(node, "another").await);
        }
    }
}
