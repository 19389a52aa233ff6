//! What was lost, damaged or replaced in etcd leads to errors, until an operator accepts the loss. And what is not the fleet's
//! decides nothing: a cluster or a fleet of another name.

use std::sync::atomic::Ordering;

use fleet::{Etcd, Settings, SharedArguments, State};

use crate::nodes::{Local, SMALL, accept, fleet, found, key, now, ready, until};
use crate::support::cluster::Cluster;

/// Something `happens` to a fleet of two nodes, which returns those that run all the time. Neither they nor a new node let
/// the token pass; all wait for an operator. When the loss is accepted, each node that acknowledges the token rejects it.
async fn is_a_loss(
    cluster: &mut Cluster,
    token: &str,
    happens: impl AsyncFnOnce(&mut Cluster, [Local; 2]) -> Vec<Local>,
) {
    let nodes = ready(cluster).await;
    let mut nodes = happens(cluster, nodes).await;
    nodes.push(Local::begin(&cluster.urls(0)));
    for node in &nodes {
        node.never_passes(token).await;
        node.waits_for_accept().await;
        node.never_passes(token).await;
    }
    accept(cluster).await;
    for node in &nodes {
        node.is_in(State::Ready).await;
        node.revoke(token).await;
        assert!(node.answer(token).await, "{token}: {:?}", node.node);
    }
}

/// The first node revokes a token until this time, and the second one hears of it.
async fn revoke([a, b]: &[Local; 2], token: &str, until_when: u64) {
    let end = a.node.revoke(token, Some(until_when)).await.unwrap().until;
    until("the other", async || (b.node.revoked_until(token).await == Ok(Some(end))).then_some(())).await;
}

/// Keys are deleted, while nodes run and while none does.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_mass_deletion_the_fleet_waits() {
    let Some(mut cluster) = fleet(1).await else { return };
    for (token, prefix, is_running) in
        [("all", "revoked/", true), ("tokens", "revoked/token/", true), ("unseen", "revoked/token/", false)]
    {
        let deletion = async |cluster: &mut Cluster, nodes: [Local; 2]| {
            revoke(&nodes, token, now() + 1800).await;
            let nodes = if is_running { nodes.into() } else { vec![] };
            cluster.ctl(&["del", "--prefix", prefix]);
            nodes
        };
        is_a_loss(&mut cluster, token, deletion).await;
    }
}

/// A record is deleted, and written back as it was last, or as it was first. Neither a node that runs, nor one that
/// joins before that or after it, takes it for genuine.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_deleted_and_put_back_is_a_loss_until_it_is_accepted() {
    let Some(mut cluster) = fleet(1).await else { return };
    for token in ["first", "last"] {
        let put_back = async |cluster: &mut Cluster, nodes: [Local; 2]| {
            revoke(&nodes, token, now() + 20).await;
            let first = cluster.record(&key(token));
            revoke(&nodes, token, now() + 1800).await;
            let last = cluster.record(&key(token));
            cluster.ctl(&["del", &key(token)]);
            let between = Local::begin(&cluster.urls(0));
            between.never_passes(token).await;
            cluster.write_back(if token == "first" { &first } else { &last });
            nodes.into_iter().chain([between]).collect()
        };
        is_a_loss(&mut cluster, token, put_back).await;
    }
}

/// The head, the epoch's record and a token's record are overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_overwritten_stops_the_fleet_until_an_operator_has_mended_it() {
    let Some(mut cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("alice").await;
    // It comes over the last one, so nothing is lost.
    cluster.ctl(&["put", "revoked/head", "format 2 ..."]);
    assert!(Local::ready(&cluster.urls(0)).await.answer("alice").await);
    for damaged in ["revoked/epoch".to_owned(), key("alice")] {
        let damage = async |cluster: &mut Cluster, nodes: [Local; 2]| {
            cluster.ctl(&["put", &damaged, "format 2 ..."]);
            nodes[0].waits_for_accept().await;
            if damaged != "revoked/epoch" {
                assert!(nodes[0].node.health().why.contains("delete it"), "{:?}", nodes[0].node);
                cluster.ctl(&["del", &damaged]);
            }
            nodes.into()
        };
        is_a_loss(&mut cluster, "alice", damage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_the_fleet_waits_for_an_operator() {
    let Some(mut cluster) = fleet(1).await else { return };
    let shorter = async |cluster: &mut Cluster, nodes: [Local; 2]| {
        revoke(&nodes, "shorter", now() + 5).await;
        let backup = cluster.save("backup");
        revoke(&nodes, "shorter", now() + 3000).await;
        cluster.restore_with(&backup, &[]);
        nodes.into()
    };
    is_a_loss(&mut cluster, "shorter", shorter).await;
    let lacking = async |cluster: &mut Cluster, nodes: [Local; 2]| {
        let backup = cluster.save("backup");
        revoke(&nodes, "lacking", now() + 3000).await;
        // So the other has to notice by itself what it did not acknowledge.
        nodes[0].stop();
        cluster.restore_with(&backup, &[]);
        nodes[1].never_passes("lacking").await;
        nodes[1].waits_for_accept().await;
        nodes[0].go_on();
        nodes.into()
    };
    is_a_loss(&mut cluster, "lacking", lacking).await;
}

/// The restored cluster has gone on, so that its revision is beyond the one that the node knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_slept_through_a_restore_notices_it() {
    let Some(mut cluster) = fleet(1).await else { return };
    let sleeping = async |cluster: &mut Cluster, nodes: [Local; 2]| {
        let backup = cluster.save("backup");
        revoke(&nodes, "late", now() + 3000).await;
        let [other, asleep] = nodes;
        drop(other);
        asleep.stop();
        cluster.restore_with(&backup, &[]);
        let new = Local::ready(&cluster.urls(0)).await;
        for token in ["x", "y", "z"] {
            new.revoke(token).await;
        }
        asleep.never_passes("late").await;
        asleep.monotonic.fetch_add(3, Ordering::SeqCst);
        asleep.never_passes("late").await;
        asleep.go_on();
        asleep.never_passes("late").await;
        new.waits_for_accept().await;
        vec![asleep, new]
    };
    is_a_loss(&mut cluster, "late", sleeping).await;
}

/// Even a node that remembers nothing sees a restore, by raft's term, if there was an election before the backup.
#[tokio::test(flavor = "multi_thread")]
async fn new_nodes_notice_a_restore_by_the_term() {
    let Some(mut cluster) = fleet(1).await else { return };
    let restore = async |cluster: &mut Cluster, nodes: [Local; 2]| {
        cluster.restart(0); // A member that starts elects itself again.
        cluster.restart(0);
        nodes[0].is_in(State::Ready).await;
        nodes[0].revoke("early").await;
        let backup = cluster.save("backup");
        nodes[0].revoke("late").await;
        drop(nodes);
        cluster.restore_with(&backup, &[]);
        let new = Local::begin(&cluster.urls(0));
        new.never_passes("late").await;
        new.waits_for_accept().await;
        assert!(new.node.health().why.contains("raft is in term"), "{:?}", new.node);
        vec![new]
    };
    is_a_loss(&mut cluster, "late", restore).await;
    // After that, terms count again from here.
    assert!(Local::ready(&cluster.urls(0)).await.answer("late").await);
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

/// A node never founds. Its name is the beginning of another one here: the two have nothing in common.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_mistyped_fleet_says_so_and_lets_nothing_pass() {
    let Some(cluster) = fleet(1).await else { return };
    let mistyped = Settings { fleet: "revoke".into(), ..Settings::new(&cluster.urls(0)) };
    let [node, other] = [Local::ready(&cluster.urls(0)).await, Local::begin_with(mistyped, 0)];
    node.revoke("alice").await;
    let says_so = async |of: &Local, name: &str| {
        of.never_passes("alice").await;
        of.is_in(State::Waiting).await;
        let why = of.node.health().why;
        assert!(["no fleet of this name", "--fleet", "fleet found"].iter().all(|word| why.contains(word)), "{why}");
        assert_eq!(cluster.ctl(&["get", "--prefix", name]), "");
    };
    says_so(&other, "revoke/").await;
    let (etcd, larger) = (Etcd::new(&cluster.urls(0)), SharedArguments { capacity: Some(7), ..SMALL });
    let why = fleet::accept(&etcd, "revoke", None, &SMALL).await.unwrap_err();
    assert!(why.contains("no fleet of this name"), "{why}");
    fleet::found(&etcd, "revoke", &SMALL).await.unwrap();
    other.is_in(State::Ready).await;
    other.revoke("bob").await;
    assert!(!other.answer("alice").await && !node.answer("bob").await);
    // To found it twice changes nothing, except by intention.
    assert_eq!(fleet::found(&etcd, "revoked", &SMALL).await.unwrap().number, 1);
    assert!(fleet::found(&etcd, "revoked", &larger).await.unwrap_err().contains("--change"));
    // Everything of a fleet is deleted while none of its nodes runs. It has to be founded again.
    drop(node);
    cluster.ctl(&["del", "--prefix", "revoked/"]);
    let new = Local::begin(&cluster.urls(0));
    says_so(&new, "revoked/").await;
    found(&cluster, &SMALL).await;
    new.is_in(State::Ready).await;
    assert!(other.answer("bob").await && other.node.is_ready(), "{:?}", other.node);
}
