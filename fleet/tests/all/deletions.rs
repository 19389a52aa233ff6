//! What a mistake with the fleet's keys leads to: errors, until an operator accepts the loss.

use fleet::{Etcd, SharedArguments, State};

use crate::nodes::{Local, SMALL, accept, fleet, found, key, now, ready, until};
use crate::support::cluster::Cluster;

/// A node never founds.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_mistyped_fleet_says_so_and_lets_nothing_pass() {
    let Some(cluster) = fleet(1).await else { return };
    let settings = fleet::Settings { fleet: "revokd".into(), ..fleet::Settings::new(&cluster.urls(0)) };
    let node = Local::begin_with(settings, 0);
    node.never_passes("alice").await;
    node.is_in(State::Waiting).await;
    let why = node.node.health().why;
    assert!(why.contains("no fleet of this name") && why.contains("--fleet") && why.contains("fleet found"), "{why}");
    assert!(!cluster.ctl(&["get", "--prefix", "revokd"]).contains("revokd"));
    // To found it twice changes nothing, except by intention.
    let (etcd, larger) = (Etcd::new(&cluster.urls(0)), SharedArguments { capacity: Some(7), ..SMALL });
    assert_eq!(fleet::found(&etcd, "revoked", &SMALL).await.unwrap().number, 1);
    assert!(fleet::found(&etcd, "revoked", &larger).await.unwrap_err().contains("--change"));
    let why = fleet::accept(&etcd, "revokd", None, &SMALL).await.unwrap_err();
    assert!(why.contains("no fleet of this name"), "{why}");
}

/// Each set of keys, while nodes run and while none does.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_mass_deletion_the_fleet_waits() {
    let Some(cluster) = fleet(1).await else { return };
    for (prefix, is_running) in
        [("revoked/", true), ("revoked/token/", true), ("revoked/", false), ("revoked/token/", false)]
    {
        let [a, b]: [Local; 2] = ready(&cluster).await;
        a.revoke("alice").await;
        until("the other", async || b.answer("alice").await.then_some(())).await;
        if !is_running {
            drop((a, b));
            cluster.ctl(&["del", "--prefix", prefix]);
            let node = Local::begin(&cluster.urls(0));
            node.never_passes("alice").await;
            node.is_in(State::Waiting).await;
            node.never_passes("alice").await;
            if prefix == "revoked/" {
                found(&cluster, &SMALL).await; // There is nothing of it any more.
            } else {
                accept(&cluster).await;
            }
            node.is_in(State::Ready).await;
            continue;
        }
        cluster.ctl(&["del", "--prefix", prefix]);
        a.waits_for_accept().await;
        b.waits_for_accept().await;
        let new = Local::begin(&cluster.urls(0));
        new.waits_for_accept().await;
        accept(&cluster).await;
        for node in [&a, &b, &new] {
            node.is_in(State::Ready).await;
        }
        a.revoke("alice").await;
        until("all to know", async || (new.answer("alice").await && b.answer("alice").await).then_some(())).await;
    }
}

/// A record is deleted, and written back as it was last, or as it was first. Neither a node that runs, nor one that
/// joins before that or after it, takes it for genuine.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_deleted_and_put_back_is_a_loss_until_it_is_accepted() {
    let Some(cluster) = fleet(1).await else { return };
    for is_first in [false, true] {
        let [a, b]: [Local; 2] = ready(&cluster).await;
        let token = if is_first { "first" } else { "last" };
        a.node.revoke(token, Some(now() + 20)).await.unwrap();
        let first = cluster.record(&key(token));
        let long = a.node.revoke(token, Some(now() + 1800)).await.unwrap().until;
        let last = cluster.record(&key(token));
        until("the other", async || (b.node.revoked_until(token).await == Ok(Some(long))).then_some(())).await;
        cluster.ctl(&["del", &key(token)]);
        let before = Local::begin(&cluster.urls(0));
        before.never_passes(token).await;
        cluster.write_back(if is_first { &first } else { &last });
        let after = Local::begin(&cluster.urls(0));
        for node in [&a, &b, &before, &after] {
            node.never_passes(token).await;
            node.waits_for_accept().await;
        }
        accept(&cluster).await;
        for node in [&a, &b, &before, &after] {
            node.is_in(State::Ready).await;
            // What is in etcd was accepted, and a node that acknowledges a revocation rejects the token.
            let is_new = node.node.revoke(token, Some(long)).await.unwrap().is_new;
            assert!(!is_new || is_first);
            assert_eq!(node.node.revoked_until(token).await, Ok(Some(long)));
        }
    }
}

/// The epoch's record, the head, and a token's record are overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_overwritten_stops_the_fleet_until_an_operator_has_mended_it() {
    let Some(cluster) = fleet(1).await else { return };
    for (damaged, is_deleted_later) in
        [("revoked/epoch".to_owned(), false), ("revoked/head".into(), false), (key("alice"), true)]
    {
        let node = Local::ready(&cluster.urls(0)).await;
        node.revoke("alice").await;
        cluster.ctl(&["put", &damaged, "format 2 ..."]);
        if damaged == "revoked/head" {
            // It came over the last one, so nothing is lost.
            drop(node);
            let node = Local::ready(&cluster.urls(0)).await;
            assert!(node.answer("alice").await);
            continue;
        }
        node.waits_for_accept().await;
        if is_deleted_later {
            cluster.ctl(&["del", &damaged]);
        }
        let restarted = Local::begin(&cluster.urls(0));
        restarted.waits_for_accept().await;
        accept(&cluster).await;
        node.is_in(State::Ready).await;
        restarted.is_in(State::Ready).await;
        node.revoke("alice").await;
        until("the other", async || restarted.answer("alice").await.then_some(())).await;
    }
}

/// A record that ends by its lease, long after its token, is not a loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_a_token_that_is_over_may_go() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    found(&cluster, &SharedArguments { margin: Some(0), ..SMALL }).await;
    let node = Local::ready(&cluster.urls(0)).await;
    let end = crate::nodes::now() + 2;
    node.node.revoke("alice", Some(end)).await.unwrap();
    assert!(node.answer("alice").await);
    until("its end", async || (!node.answer("alice").await).then_some(())).await;
    cluster.ctl(&["del", &key("alice")]);
    node.revoke("bob").await;
    assert!(node.answer("bob").await && node.node.is_ready());
    assert_eq!(node.node.revoke("alice", Some(end)).await.map(|done| done.is_new), Ok(false), "it is over");
}
