//! Members of other clusters among the endpoints of a node.

use super::*;
use crate::accept::accept;

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_url_among_the_endpoints_is_passed_over() {
    let (Some(right), Some(stray)) = (Cluster::start(3, &[]), Cluster::start(1, &[])) else { return };
    let first = start(settings(&right.urls(0))).await;
    revoke(&first, "alice").await;
    // It is asked first.
    let node = start(settings(&format!("{},{}", stray.url(0), right.urls(0)))).await;
    assert!(answer(&node, "alice").await && !answer(&node, "bob").await);
    revoke(&node, "carol").await;
    // A change that needs no lease, so that it is the first that is sent there.
    let (reply, done) = tokio::sync::oneshot::channel();
    let (shared, until_then) = (node.shared(), tokio::time::Instant::now() + LONGEST);
    shared.client.current.store(0, Ordering::SeqCst);
    let job = Job { id: shared.secret.id(""), change: None, until: until_then, reply: Some(reply) };
    assert!(shared.jobs.try_send(job).is_ok());
    assert!(done.await.unwrap().is_ok());
    until("the other to know", async || answer(&first, "carol").await.then_some(())).await;
    assert_eq!(stray.ctl(&["get", "", "--prefix"]), "", "nothing was written there");
    // Between one and one, a node does not choose. It names both.
    let torn = Node::begin(settings(&format!("{},{}", stray.url(0), right.url(0)))).unwrap();
    let why = until("its reason", async || {
        let why = torn.health().why;
        why.contains("are members of one cluster").then_some(why)
    })
    .await;
    assert!(why.contains(&stray.url(0)) && why.contains(&right.url(0)), "{why}");
    for _ in 0..10 {
        assert!(!torn.is_ready() && torn.is_revoked("alice").await.is_err());
    }
    assert_eq!(stray.ctl(&["get", "", "--prefix"]), "");
}

/// Clusters of one member that were started with etcd's defaults have the same identifier.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_url_of_a_cluster_with_the_same_identifier_lets_no_token_pass() {
    let Some(right) = Cluster::start(1, &[]) else { return };
    let stray = right.twin();
    let first = start(settings(&right.url(0))).await;
    revoke(&first, "alice").await;
    let both = settings(&format!("{},{}", stray.url(0), right.url(0)));
    let node = Arc::new(start(Settings { patience: Duration::from_secs(1), ..both }).await);
    assert!(answer(&node, "alice").await && !answer(&node, "bob").await);
    assert_eq!(stray.ctl(&["get", "", "--prefix"]), "", "nothing was written there");
    // Only the wrong one answers.
    let asking = Asking::start(&node, "alice");
    right.members[0].clients.set(Mode::Cut);
    is_in(&node, State::Waiting).await;
    asking.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_was_wiped_and_started_as_a_cluster_of_its_own_is_passed_over() {
    let Some((mut cluster, nodes)) = three().await else { return };
    let tokens: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    for token in &tokens {
        revoke(&nodes[0], token).await;
    }
    for node in &nodes {
        until("all to know", async || answer(node, "49").await.then_some(())).await;
    }
    cluster.secede(0);
    let leader = cluster.leader_of(&[1, 2]);
    cluster.restart(leader);
    // Nodes that run, and one that starts.
    let fresh = start(settings(&cluster.urls(0))).await;
    for node in nodes.iter().map(|node| &**node).chain([&fresh]) {
        ready(node).await;
        for token in &tokens {
            assert!(answer(node, token).await, "{token}");
        }
    }
    let accepted = accept(&settings(&cluster.urls(0))).await.unwrap();
    assert_eq!(accepted.loss, None);
    assert!(
        accepted.endpoints[0].contains("0 records") && accepted.endpoints[1].contains("50 records"),
        "{accepted:?}"
    );
    for node in &nodes {
        ready(node).await;
        assert!(answer(node, "0").await);
    }
    assert_eq!(cluster.ctl_of(0, &["get", "", "--prefix"]), "", "nothing was written there");
}

/// As the operator's page says. The nodes have not lost anything that they know of.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_another_identifier_waits_for_an_operator() {
    let Some((mut cluster, nodes)) = three().await else { return };
    revoke(&nodes[0], "alice").await;
    until("all to know", async || answer(&nodes[2], "alice").await.then_some(())).await;
    let backup = cluster.save("backup");
    cluster.restore_with(&backup, &["--initial-cluster-token", "restored"]);
    for node in &nodes {
        is_in(node, State::Waiting).await;
        assert!(node.is_revoked("alice").await.is_err() && node.is_revoked("bob").await.is_err());
        assert!(node.health().why.contains("restored from a backup"), "{:?}", node.health());
    }
    let fresh = Node::begin(settings(&cluster.urls(1))).unwrap();
    is_in(&fresh, State::Waiting).await;
    let accepted = accept(nodes[0].settings()).await.unwrap();
    assert!(accepted.loss.is_some_and(|loss| loss.contains("copy of cluster")));
    for node in nodes.iter().map(|node| &**node).chain([&fresh]) {
        ready(node).await;
        assert!(answer(node, "alice").await);
    }
    revoke(&nodes[0], "bob").await;
    until("all to know", async || answer(&fresh, "bob").await.then_some(())).await;
}
