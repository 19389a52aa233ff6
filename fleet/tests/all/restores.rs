//! Backups, and clusters that are not the one that a node knows.

use fleet::{Etcd, SharedArguments, State};

use crate::nodes::{Local, SMALL, accept, fleet, found, now, ready, until};
use crate::support::cluster::Cluster;

/// The backup lacks a token, or has it with an earlier end. Nodes that knew more notice it.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_fleet_waits_for_an_operator() {
    let Some(mut cluster) = fleet(1).await else { return };
    for is_extended in [true, false] {
        let [a, b]: [Local; 2] = ready(&cluster).await;
        if is_extended {
            a.node.revoke("alice", Some(now() + 5)).await.unwrap();
        }
        let backup = cluster.save("backup");
        let end = a.node.revoke("alice", Some(now() + 3000)).await.unwrap().until;
        until("b", async || (b.node.revoked_until("alice").await == Ok(Some(end))).then_some(())).await;
        if !is_extended {
            a.stop(); // So b has to notice it by itself.
        }
        cluster.restore_with(&backup, &[]);
        b.never_passes("alice").await;
        b.waits_for_accept().await;
        if !is_extended {
            a.go_on();
        }
        a.never_passes("alice").await;
        a.waits_for_accept().await;
        let new = Local::begin(&cluster.urls(0));
        new.waits_for_accept().await;
        accept(&cluster).await;
        for node in [&a, &b, &new] {
            node.is_in(State::Ready).await;
        }
        b.revoke("alice").await;
        until("all", async || (a.answer("alice").await && new.answer("alice").await).then_some(())).await;
    }
}

/// The restored cluster has gone on, so that its revision is beyond the one that the node knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_slept_through_a_restore_notices_it() {
    let Some(mut cluster) = fleet(1).await else { return };
    let [a, asleep]: [Local; 2] = ready(&cluster).await;
    a.revoke("early").await;
    until("it to know", async || asleep.answer("early").await.then_some(())).await;
    drop(a);
    let backup = cluster.save("backup");
    let revoking = Local::ready(&cluster.urls(0)).await;
    revoking.revoke("late").await;
    until("it to know", async || asleep.answer("late").await.then_some(())).await;
    asleep.stop();
    drop(revoking);
    cluster.restore_with(&backup, &[]);
    let new = Local::ready(&cluster.urls(0)).await;
    for token in ["x", "y", "z"] {
        new.revoke(token).await;
    }
    asleep.never_passes("late").await;
    asleep.monotonic.fetch_add(3, std::sync::atomic::Ordering::SeqCst);
    asleep.never_passes("late").await;
    asleep.go_on();
    asleep.never_passes("late").await;
    asleep.waits_for_accept().await;
    new.waits_for_accept().await;
}

/// Even a node that remembers nothing sees a restore, by raft's term, if there was an election before the backup.
#[tokio::test(flavor = "multi_thread")]
async fn new_nodes_notice_a_restore_by_the_term() {
    let Some(mut cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    cluster.restart(0); // A member that starts elects itself again.
    cluster.restart(0);
    node.is_in(State::Ready).await;
    node.revoke("early").await;
    let backup = cluster.save("backup");
    node.revoke("late").await;
    drop(node);
    cluster.restore_with(&backup, &[]);
    let node = Local::begin(&cluster.urls(0));
    node.never_passes("late").await;
    node.waits_for_accept().await;
    assert!(node.node.health().why.contains("raft is in term"), "{:?}", node.node);
    accept(&cluster).await;
    node.is_in(State::Ready).await;
    // After that, terms count again from here.
    node.revoke("late").await;
    assert!(Local::ready(&cluster.urls(0)).await.answer("late").await);
}

/// A copy in another cluster goes on only if the operator names the cluster that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_in_another_cluster_needs_the_name_of_the_old_one() {
    let Some(mut cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("alice").await;
    let backup = cluster.save("backup");
    node.revoke("late").await;
    let before = node.node.health().epoch.unwrap().cluster;
    cluster.restore_with(&backup, &["--initial-cluster-token", "another"]);
    let new = Local::begin(&cluster.urls(0));
    node.never_passes("late").await;
    new.waits_for_accept().await;
    // It goes by its memory for as long as that is new, and then waits for the old cluster, or for an operator.
    node.is_in(State::Stale).await;
    node.never_passes("late").await;
    assert!(node.node.health().why.contains(&format!("fleet accept --from {before}")), "{:?}", node.node);
    let (etcd, none) = (Etcd::new(&cluster.urls(0)), SharedArguments::default());
    for from in [None, Some("abc")] {
        let why = fleet::accept(&etcd, "revoked", from, &none).await.unwrap_err();
        assert!(why.contains(&format!("--from {before}")) && why.contains("for good"), "{why}");
    }
    assert!(fleet::found(&etcd, "revoked", &SMALL).await.is_err());
    fleet::accept(&etcd, "revoked", Some(&before), &none).await.unwrap();
    for node in [&node, &new] {
        node.is_in(State::Ready).await;
        assert!(node.answer("alice").await);
    }
}

/// A member was wiped and has started as a cluster of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_cluster_decides_nothing() {
    let Some(mut cluster) = fleet(3).await else { return };
    let (all, one) = (Local::ready(&cluster.urls(0)).await, Local::ready(&cluster.url(0)).await);
    all.revoke("alice").await;
    until("it to know", async || one.answer("alice").await.then_some(())).await;
    cluster.secede(0);
    one.never_passes("alice").await;
    one.is_in(State::Stale).await;
    one.never_passes("alice").await;
    // A node that lists all members passes this one over, also if it starts now.
    let new = Local::ready(&cluster.urls(0)).await;
    for node in [&all, &new] {
        assert!(node.answer("alice").await);
        node.revoke("bob").await;
    }
    // The commands that write an epoch do not go by one of two clusters.
    let why = fleet::found(&Etcd::new(&cluster.urls(0)), "revoked", &SMALL).await.unwrap_err();
    assert!(why.contains("all from one cluster"), "{why}");
    // If somebody founds a fleet there all the same, the nodes of this one are not misled.
    fleet::found(&Etcd::new(&cluster.url(0)), "revoked", &SMALL).await.unwrap();
    one.never_passes("alice").await;
    assert!(one.node.health().why.contains("has a fleet of this name") || !one.node.is_ready(), "{:?}", one.node);
    let health = all.node.health();
    all.revoke("carol").await;
    until("the other", async || new.answer("carol").await.then_some(())).await;
    assert!(all.answer("alice").await);
    assert_eq!(all.node.health().epoch, health.epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn fleets_of_one_cluster_stay_apart() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    let mut nodes = Vec::new();
    for name in ["one", "one.more"] {
        fleet::found(&Etcd::new(&cluster.urls(0)), name, &SMALL).await.unwrap();
        let settings = fleet::Settings { fleet: name.into(), ..fleet::Settings::new(&cluster.urls(0)) };
        let node = Local::begin_with(settings, 0);
        node.is_in(State::Ready).await;
        node.revoke(name).await;
        nodes.push(node);
    }
    assert!(!nodes[0].answer("one.more").await && !nodes[1].answer("one").await);
    cluster.ctl(&["del", "--prefix", "one/"]);
    nodes[0].waits_for_accept().await;
    assert!(nodes[1].answer("one.more").await && nodes[1].node.is_ready());
    // A copy under this name would not be a node's business: its keys begin with another one.
    found(&cluster, &SMALL).await;
}
