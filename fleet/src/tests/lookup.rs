//! Lookups of a node that was stopped in between, and changes that meet others.

use tokio::sync::{Mutex, mpsc, oneshot};

use super::*;
use crate::changes::publish;
use crate::etcd::build::{questions, range};
use crate::etcd::complete;
use crate::etcd::messages::TxnResponse;
use crate::filter::Verdict;
use crate::lock;

/// A storm of an earlier design let one token pass; this was the only cause that was found.
#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_that_is_stopped_while_its_node_catches_up_is_not_sure() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let other = start(settings(&cluster.urls(1))).await;
    let node = start(settings(&cluster.url(0))).await;
    cluster.members[0].clients.set(Mode::Silent);
    is_in(&node, State::Stale).await;
    revoke(&other, "alice").await;
    let known = node.shared().known.load_full().unwrap();
    let (told, go_on) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    *known.between.lock().unwrap() = Some(Box::new(move || {
        _ = told.0.send(());
        _ = go_on.1.recv();
    }));
    let hash = node.shared().secret.hash(node.shared().secret.id("alice"));
    let lookup = std::thread::spawn(move || known.lookup(hash));
    told.1.recv().unwrap();
    cluster.members[0].clients.mend();
    ready(&node).await;
    go_on.0.send(()).unwrap();
    assert_eq!(lookup.join().unwrap(), Verdict::Unsure);
}

/// Its words are answered all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_watch_is_late_is_not_ready_and_acknowledges_nothing() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let other = start(settings(&cluster.urls(0))).await;
    let node = start(Settings { patience: Duration::from_secs(2), ..settings(&cluster.urls(0)) }).await;
    let shared = node.shared();
    shared.is_deaf.store(true, Ordering::SeqCst);
    revoke(&other, "alice").await;
    is_in(&node, State::Stale).await;
    assert!(answer(&node, "alice").await);
    // What it does itself is done, but not in its filter. Also if this is the answer to a second request, and only the first
    // one has come.
    let first = shared.applied().unwrap();
    let come =
        until("its request", async || lock(&shared.pending).values().next().map(|told| told.send_replace(vec![first])));
    let (done, _) = tokio::join!(node.revoke("bob", node.time() + 600), come);
    let error = done.unwrap_err();
    assert!(error.to_string().contains("has not come to it"), "{error}");
    until("it to be made", async || answer(&other, "bob").await.then_some(())).await;
    shared.is_deaf.store(false, Ordering::SeqCst);
    ready(&node).await;
    assert!(answer(&node, "alice").await);
}

/// As after a sleep of the machine. With a process that is really stopped: `tests/program.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_after_a_sleep_is_not_that_of_the_old_filter() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let other = start(settings(&cluster.urls(1))).await;
    let stale_after = Duration::from_secs(600);
    let node = start(Settings { stale_after, ..settings(&cluster.url(0)) }).await;
    cluster.members[0].clients.set(Mode::Silent);
    revoke(&other, "alice").await;
    // It doesn't know it, and need not yet.
    assert_eq!(node.is_revoked("alice").await, Ok(false));
    node.shared().clock.shift[1].fetch_add(601, Ordering::SeqCst);
    assert!(node.is_revoked("alice").await.is_err());
    cluster.members[0].clients.mend();
    ready(&node).await;
    until("it to know", async || answer(&node, "alice").await.then_some(())).await;
}

/// Each has its own answer, also beside a change of nothing but the head.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_share_a_transaction_are_told_apart() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let node = start(settings(&cluster.url(0))).await;
    let (shared, until) = (node.shared(), tokio::time::Instant::now() + LONGEST);
    let (soon, late) = (node.time() + 60, node.time() + 600);
    node.revoke("alice", soon).await.unwrap();
    let (jobs, queue) = mpsc::channel(3);
    let [_, alice, bob] = ["", "alice", "bob"].map(|token| {
        let (reply, done) = oneshot::channel();
        let change = (!token.is_empty()).then_some(Change { end: late, decided: Record::default() });
        jobs.try_send(Job { id: shared.secret.id(token), change, until, reply: Some(reply) }).unwrap();
        done
    });
    drop(jobs);
    publish(Arc::clone(shared), Arc::new(Mutex::new(queue)), Arc::default()).await;
    let (alice, bob) = (alice.await.unwrap().unwrap(), bob.await.unwrap().unwrap());
    assert_eq!((alice.is_done, alice.end, bob.is_done), (false, Some(soon), true));
    // An answer that lacks one of them is none.
    let question = questions(vec![range(vec![], 0)]);
    let answer = TxnResponse { succeeded: true, ..TxnResponse::default() };
    assert!(complete(&question, answer).is_err());
}
