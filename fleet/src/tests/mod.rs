//! Tests of nodes with a real cluster of three members, and a network that fails. `ci/steps` leaves out the steps that they
//! need, one at a time, and shows that each is noticed.

#[path = "../../tests/support/mod.rs"]
mod support;

mod basics;
mod clocks;
mod cluster;
mod foreign;
mod history;
mod load;
mod login;
mod lookup;
mod replies;
mod restores;
mod storm;
mod strangers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use self::load::Load;
use self::support::LONGEST;
use self::support::cluster::Cluster;
use self::support::proxy::Mode;
use crate::clock::Clock;
use crate::etcd::Etcd;
use crate::keys::Record;
use crate::node::Node;
use crate::settings::Settings;
use crate::shared::{Change, Done, Job, State};

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
fn settings(etcd: &str) -> Settings {
    Settings {
        etcd: Etcd::new(etcd),
        capacity: 20_000,
        resolution: 120,
        longest_lifetime: 3600,
        patience: Duration::from_secs(60),
        ..Settings::new([7; 16])
    }
}

/// The key of a token's record.
fn key(node: &Node, token: &str) -> String {
    format!("{}/token/{}", node.settings().fleet, node.token_id(token))
}

/// Sends one change through a node's queue, as a request does after it has read the record.
async fn send(node: &Node, token: &str, end: u64, decided: Record) -> Done {
    let (reply, done) = tokio::sync::oneshot::channel();
    let (shared, until) = (node.shared(), tokio::time::Instant::now() + LONGEST);
    let change = Some(Change { end, decided });
    let job = Job { id: shared.secret.id(token), change, until, reply: Some(reply) };
    shared.jobs.send(job).await.unwrap_or_else(|_| panic!("the node has ended"));
    done.await.unwrap().unwrap()
}

/// Lets all ways to the cluster fail, or work again.
fn network(cluster: &Cluster, mode: Mode) {
    cluster.members.iter().for_each(|member| member.clients.set(mode));
}

/// A node that is ready.
async fn start(settings: Settings) -> Node {
    start_with(settings, Clock::new()).await
}

async fn start_with(settings: Settings, clock: Clock) -> Node {
    let node = Node::begin_with(settings, clock).unwrap();
    tokio::time::timeout(LONGEST, node.joined()).await.expect("it to join in time").unwrap();
    ready(&node).await;
    node
}

async fn ready(node: &Node) {
    until("the node to be ready", async || node.is_ready().then_some(())).await;
}

async fn is_in(node: &Node, state: State) {
    until(&format!("{state:?}"), async || (node.health().state == state).then_some(())).await;
}

/// Asks for a revoked token all the time. The node may not know, but it must not say no.
struct Asking {
    is_over: Arc<AtomicBool>,
    tasks: tokio::task::JoinSet<()>,
}

impl Asking {
    fn start(node: &Arc<Node>, token: &'static str) -> Self {
        let (is_over, mut tasks) = (Arc::new(AtomicBool::new(false)), tokio::task::JoinSet::new());
        for _ in 0..16 {
            let (node, is_over) = (Arc::clone(node), Arc::clone(&is_over));
            tasks.spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    let before = node.health();
                    assert_ne!(node.is_revoked(token).await, Ok(false), "{before:?}, and then {node:?}");
                    tokio::task::yield_now().await;
                }
            });
        }
        Self { is_over, tasks }
    }

    async fn check(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.tasks.join_all().await;
    }
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
async fn three() -> Option<(Cluster, [Arc<Node>; 3])> {
    let cluster = Cluster::start(3, &[])?;
    let node = async |nth: usize| Arc::new(start(settings(&cluster.urls(nth))).await);
    let nodes = [node(0).await, node(1).await, node(2).await];
    Some((cluster, nodes))
}
