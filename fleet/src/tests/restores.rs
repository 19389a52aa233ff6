//! A restored cluster of which the nodes' own revision was compacted, changes that arrive late, and a watch with a gap.

use super::*;
use crate::accept::accept;
use crate::apply::{Broken, apply};
use crate::etcd::messages::{Event, KeyValue, WatchResponse};
use crate::keys::ChangeId;
use crate::lock;

/// As `etcdutl snapshot restore --bump-revision N --mark-compacted` leaves a cluster: later revisions than before, and the
/// nodes' own one is compacted. In the second round others have changed the set since, and in the third that is all.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_compacts_what_the_nodes_knew_is_a_loss() {
    for (is_changed, is_compacted) in [(false, true), (true, true), (true, false)] {
        let Some((mut cluster, nodes)) = three().await else { return };
        revoke(&nodes[0], "early").await;
        let backup = cluster.save("backup");
        let lost: Vec<_> = (0..30).map(|number| format!("lost-{number}")).collect();
        for token in &lost {
            revoke(&nodes[1], token).await;
        }
        for node in &nodes {
            until("all to know", async || answer(node, "lost-29").await.then_some(())).await;
        }
        let revision = cluster.revision();
        network(&cluster, Mode::Cut);
        cluster.restore(&backup);
        while cluster.revision() <= revision + 10 {
            cluster.ctl(&["put", "something", "else"]);
        }
        if is_changed {
            network(&cluster, Mode::Forward);
            nodes.iter().for_each(|node| node.shared().is_deaf.store(true, Ordering::SeqCst));
            // Its own fleet is not known to have lost anything.
            let fresh = start(settings(&cluster.urls(0))).await;
            for number in 0..100 {
                revoke(&fresh, &format!("later-{number}")).await;
            }
            network(&cluster, Mode::Cut);
        }
        if is_compacted {
            cluster.ctl(&["compact", &cluster.revision().to_string()]);
        }
        network(&cluster, Mode::Forward);
        nodes.iter().for_each(|node| node.shared().is_deaf.store(false, Ordering::SeqCst));
        for node in &nodes {
            is_in(node, State::Waiting).await;
            for token in &lost {
                assert!(node.is_revoked(token).await.is_err(), "it may have been lost");
            }
        }
        until("an operator", async || accept(nodes[0].settings()).await.unwrap().loss).await;
        for node in &nodes {
            ready(node).await;
            assert!(answer(node, "early").await && !answer(node, "lost-0").await);
        }
    }
}

/// The network breaks between a restore's question and its transaction, which arrives when somebody else has revoked the
/// token again.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_arrives_late_undoes_no_acknowledged_revocation() {
    let Some((_cluster, nodes)) = three().await else { return };
    revoke(&nodes[0], "alice").await;
    let shared = nodes[0].shared();
    let (_, record) = shared.ask(shared.secret.id("alice"), tokio::time::Instant::now() + LONGEST).await.unwrap();
    let again = nodes[1].revoke("alice", nodes[1].time() + 60).await.unwrap();
    assert!(!again.is_new && again.until.is_some_and(|until| until > nodes[1].time() + 1000), "{again:?}");
    assert!(!send(&nodes[0], "alice", 0, record).await.is_done);
    for node in &nodes {
        ready(node).await;
        assert!(answer(node, "alice").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_leaves_out_a_change_is_noticed() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let node = start(settings(&cluster.url(0))).await;
    revoke(&node, "alice").await;
    ready(&node).await;
    let shared = node.shared();
    let (known, memory) = (shared.known.load_full().unwrap(), lock(&shared.memory).clone().unwrap());
    let head = |revision: i64, before: i64| WatchResponse {
        events: vec![Event {
            kv: Some(KeyValue {
                key: shared.names.head().into(),
                value: ChangeId([1; 16]).head(0).into(),
                mod_revision: revision,
                ..KeyValue::default()
            }),
            prev_kv: (before > 0).then(|| KeyValue { mod_revision: before, ..KeyValue::default() }),
            ..Event::default()
        }],
        ..WatchResponse::default()
    };
    let last = memory.head.revision;
    for before in [last + 1, last - 1, 0] {
        let broken = apply(shared, &known, &head(memory.revision + 2, before));
        assert!(matches!(broken, Err(Broken::Gap(_))), "{broken:?}");
    }
    assert_eq!((shared.applied(), shared.tallies.gaps.load(Ordering::SeqCst)), (Some(memory.revision), 3));
    assert!(apply(shared, &known, &head(memory.revision + 2, last)).is_ok());
}

/// Even a record that is valid: a node writes none without a new head.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_changes_without_a_new_head_gets_errors() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let node = start(settings(&cluster.url(0))).await;
    revoke(&node, "alice").await;
    let (shared, until) = (node.shared(), tokio::time::Instant::now() + LONGEST);
    let id = shared.secret.id("alice");
    let (end, record) = shared.ask(id, until).await.unwrap();
    // It hears of nothing else meanwhile.
    network(&cluster, Mode::Cut);
    is_in(&node, State::Stale).await;
    let kv = |value: &[u8], version: i64, changed: i64| KeyValue {
        key: shared.names.token(id).into(),
        value: value.to_vec().into(),
        create_revision: record.revision,
        mod_revision: changed,
        version,
    };
    let revoked = kv(&shared.secret.value(id, end, Record::default()), 1, record.revision);
    let restored = kv(&shared.secret.value(id, 0, record), 2, shared.applied().unwrap() + 1);
    assert_eq!((shared.secret.end(id, &revoked), shared.secret.end(id, &restored)), (Some(end), Some(0)));
    let known = shared.known.load_full().unwrap();
    let event = Event { kv: Some(restored.clone()), prev_kv: Some(revoked), ..Event::default() };
    let message = WatchResponse { events: vec![event], ..WatchResponse::default() };
    apply(shared, &known, &message).unwrap();
    assert_eq!(shared.disputes.at(id, restored.mod_revision), Some(end));
    assert!(known.filter.by_hash().contains(shared.secret.hash(id)), "it has its entry");
}
