//! A cluster that was restored from a backup.

use super::*;
use crate::accept::accept;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_fleet_waits_for_an_operator() {
    let Some((mut cluster, nodes)) = three().await else { return };
    for (round, more) in [-1_i64, 0, 1].into_iter().enumerate() {
        let (early, late) = (format!("early-{round}"), format!("late-{round}"));
        revoke(&nodes[0], &early).await;
        let backup = cluster.save(&format!("backup-{round}"));
        revoke(&nodes[1], &late).await;
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
        let fresh = Node::start(settings(&cluster.urls(1))).await.unwrap();
        is_in(&fresh, State::Waiting).await;
        let settings = nodes[0].settings();
        let accepted = accept(settings).await.unwrap();
        assert!(accepted.loss.as_ref().is_some_and(|loss| loss.contains("node")), "{accepted:?}");
        assert!(accepted.endpoints.len() == 3 && accepted.endpoints[0].contains("records"), "{accepted:?}");
        assert_eq!(accept(settings).await.unwrap().loss, None);
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
    let node = start(settings(&cluster.urls(0))).await;
    assert!(answer(&node, "early-0").await && !answer(&node, "lost").await);
}

/// A cluster is restored so fast that its nodes have not noticed, and are still sure of their filters. The numbers of its
/// revisions begin again below those that they know.
#[tokio::test(flavor = "multi_thread")]
async fn until_a_node_notices_a_restore_it_acknowledges_nothing_and_lets_no_token_pass() {
    let Some(mut cluster) = Cluster::start(3, &[]) else { return };
    let node = start(Settings {
        stale_after: Duration::from_secs(3600),
        patience: Duration::from_secs(2),
        ..settings(&cluster.urls(0))
    })
    .await;
    revoke(&node, "early").await;
    let backup = cluster.save("backup");
    for number in 0..20 {
        revoke(&node, &number.to_string()).await;
    }
    let revision = cluster.revision();
    node.shared().is_deaf.store(true, Ordering::SeqCst);
    cluster.restore(&backup);
    let error = until("its answer", async || node.revoke("alice", node.time() + 600).await.err()).await;
    assert!(cluster.revision() < revision && error.to_string().contains("has not come to it"), "{error}");
    while cluster.revision() < revision {
        cluster.ctl(&["put", "something", "else"]);
    }
    for _ in 0..20 {
        assert!(node.is_revoked("19").await.is_err(), "it is lost, and the node has acknowledged it");
    }
    node.shared().is_deaf.store(false, Ordering::SeqCst);
    is_in(&node, State::Waiting).await;
}
