//! A cluster that was restored from a backup.

use super::support::proxy::Mode;
use super::*;
use crate::node::accept;

/// Lets all ways to the cluster fail, or work again.
fn network(cluster: &Cluster, mode: Mode) {
    cluster.members.iter().for_each(|member| member.clients.set(mode));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_fleet_waits_for_an_operator() {
    needs_etcd!();
    let (mut cluster, nodes) = three(&[]).await;
    for (round, more) in [-1_i64, 0, 1].into_iter().enumerate() {
        let control =
            start(Settings { fleet: format!("control-{round}"), ..settings(&cluster.urls(0), &[Step::History]) }).await;
        let (early, late) = (format!("early-{round}"), format!("late-{round}"));
        revoke(&nodes[0], &early).await;
        let backup = cluster.save(&format!("backup-{round}"));
        for node in [&nodes[1], &control] {
            revoke(node, &late).await;
        }
        until("all to know", async || (answer(&nodes[0], &late).await && answer(&nodes[2], &late).await).then_some(()))
            .await;
        let revision = cluster.revision();
        network(&cluster, Mode::Cut);
        cluster.restore(&backup);
        // The cluster has fewer revisions than before, as many, or more.
        while more >= 0 && cluster.revision() < revision + 10 * more {
            cluster.ctl(&["put", "something", "else"]);
        }
        assert_eq!((cluster.revision() - revision).signum(), more, "as planned");
        network(&cluster, Mode::Forward);
        for node in &nodes {
            is_in(node, State::Waiting).await;
            assert!(node.is_revoked(&late).await.is_err(), "it may have been lost");
            assert!(node.revoke("another", node.time() + 60).await.is_err());
        }
        // Also for a node that knows nothing of it.
        let fresh = Node::start(settings(&cluster.urls(1), &[])).await.unwrap();
        is_in(&fresh, State::Waiting).await;
        assert!(!answer(&control, &late).await, "control: it passes");
        let settings = nodes[0].settings();
        assert!(accept(settings).await.unwrap().is_some_and(|lost| lost.contains("node")));
        assert_eq!(accept(settings).await, Ok(None));
        for node in nodes.iter().map(|node| &**node).chain([&fresh]) {
            ready(node).await;
            assert!(answer(node, &early).await && !answer(node, &late).await);
        }
        // At once, although the lease of its last tokens may be gone with them.
        nodes[1].revoke(&late, nodes[1].time() + 1800).await.unwrap();
        until("all to know", async || answer(&nodes[0], &late).await.then_some(())).await;
    }
    // Nodes without a memory can't know that something is missing.
    let backup = cluster.save("last");
    revoke(&nodes[0], "lost").await;
    drop(nodes);
    cluster.restore(&backup);
    let node = start(settings(&cluster.urls(0), &[])).await;
    assert!(answer(&node, "early-0").await && !answer(&node, "lost").await);
}

/// The numbers of revisions begin again below those that the node knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_acknowledged_when_it_is_in_the_filter_and_not_by_its_number() {
    needs_etcd!();
    let mut cluster = Cluster::start(3, &[]);
    let urls = cluster.urls(0);
    let node = async |fleet: &str, skip| {
        let patience = Duration::from_secs(2);
        start(Settings { fleet: fleet.into(), patience, ..settings(&urls, skip) }).await
    };
    // Both do not compare the history, so that they go on.
    let (ours, control) =
        (node("ours", &[Step::History]).await, node("control", &[Step::History, Step::Identifier]).await);
    let backup = cluster.save("backup");
    for node in [&ours, &control] {
        for number in 0..20 {
            revoke(node, &number.to_string()).await;
        }
    }
    cluster.restore(&backup);
    for node in [&ours, &control] {
        ready(node).await;
    }
    assert!(ours.revoke("alice", ours.time() + 600).await.is_err(), "its watch has not delivered it");
    until("control: an acknowledged token that passes", async || {
        (control.revoke("alice", control.time() + 600).await.is_ok() && control.is_revoked("alice").await == Ok(false))
            .then_some(())
    })
    .await;
}
