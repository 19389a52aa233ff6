//! Others who write into the cluster, and nodes that do not belong together.

use super::*;

/// Revokes the token again on one node, until all know.
async fn revoke_again(nodes: &[Arc<Node>; 3], token: &str) {
    revoke(&nodes[0], token).await;
    for node in nodes {
        until("all to know", async || (node.is_revoked(token).await == Ok(true)).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_lets_no_token_pass() {
    let Some((cluster, nodes)) = three().await else { return };
    let node = &nodes[0];
    revoke_again(&nodes, "alice").await;
    // Keys of no kind, and values that no node has written.
    cluster.ctl(&["put", "revoked/token/17", "x"]);
    cluster.ctl(&["put", "revoked/something", "x"]);
    cluster.ctl(&["put", &key(node, "dave"), "0123456789abcdef"]);
    until("it to be counted", async || (node.health().foreign >= 3).then_some(())).await;
    cluster.ctl(&["put", &key(node, "alice"), "0123456789abcdef"]);
    let fresh = start(settings(&cluster.urls(1))).await;
    for token in ["alice", "dave"] {
        let error = fresh.is_revoked(token).await.unwrap_err();
        assert!(error.to_string().contains("not written by this fleet"), "{error}");
    }
    assert!(!answer(&fresh, "carol").await);
    until("it to be counted", async || (node.health().foreign >= 4).then_some(())).await;
    assert!(node.is_revoked("alice").await.is_err() && node.restore("alice").await.is_err());
    // Revoked again, they are right again, and each has one entry.
    revoke_again(&nodes, "alice").await;
    revoke_again(&nodes, "dave").await;
    until("the others to know", async || (fresh.is_revoked("dave").await == Ok(true)).then_some(())).await;
    assert_eq!(node.health().len, Some(2));
    assert_eq!(node.restore("alice").await, Ok(true));
    assert!(!answer(node, "alice").await);
}

/// Whoever can write the fleet's keys can write a token's own older record back, the one that said "restored".
#[tokio::test(flavor = "multi_thread")]
async fn an_old_record_that_is_written_back_restores_nothing() {
    let Some((cluster, nodes)) = three().await else { return };
    let (node, alice) = (&nodes[0], key(&nodes[0], "alice"));
    revoke(node, "alice").await;
    let revoked = cluster.read(&alice);
    assert_eq!(node.restore("alice").await, Ok(true));
    let restored = cluster.read(&alice);
    revoke_again(&nodes, "alice").await;
    let asking: Vec<_> = nodes.iter().map(|node| Asking::start(node, "alice")).collect();
    // As it was, and with all that it has ever been.
    cluster.write(&alice, &restored);
    until("it to be seen", async || (node.health().foreign > 0).then_some(())).await;
    let fresh = start(settings(&cluster.urls(1))).await;
    assert!(fresh.is_revoked("alice").await.is_err());
    cluster.ctl(&["del", &alice]);
    cluster.write(&alice, &revoked);
    cluster.write(&alice, &restored);
    until("it to be seen", async || (node.health().foreign > 2).then_some(())).await;
    let another = start(settings(&cluster.urls(2))).await;
    for node in nodes.iter().map(|node| &**node).chain([&fresh, &another]) {
        ready(node).await;
        assert!(node.is_revoked("alice").await.is_err());
    }
    for asking in asking {
        asking.check().await;
    }
    revoke_again(&nodes, "alice").await;
    assert!(answer(&fresh, "alice").await && answer(&another, "alice").await);
    assert_eq!(node.restore("alice").await, Ok(true));
    assert!(!answer(node, "alice").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_token_does_not_pass_until_it_is_revoked_again() {
    let Some((cluster, nodes)) = three().await else { return };
    revoke_again(&nodes, "alice").await;
    let asking: Vec<_> = nodes.iter().map(|node| Asking::start(node, "alice")).collect();
    for round in 1..10 {
        cluster.ctl(&["del", &key(&nodes[0], "alice")]);
        for node in &nodes {
            until("it to be seen", async || (node.health().foreign >= round).then_some(())).await;
            assert!(node.is_revoked("alice").await.is_err());
        }
        // A node that reads all tokens again still knows it.
        if round == 5 {
            network(&cluster, Mode::Cut);
            is_in(&nodes[1], State::Stale).await;
            nodes[1].shared().known.store(None);
            network(&cluster, Mode::Forward);
            ready(&nodes[1]).await;
            assert!(nodes[1].is_revoked("alice").await.is_err());
        }
        revoke_again(&nodes, "alice").await;
    }
    for asking in asking {
        asking.check().await;
    }
    for node in &nodes {
        ready(node).await;
        assert_eq!(node.health().len, Some(1), "one entry");
    }
    // A node that does not hear of it yet.
    let node = &nodes[0];
    node.shared().is_deaf.store(true, Ordering::SeqCst);
    cluster.ctl(&["del", &key(node, "alice")]);
    let error = node.restore("alice").await.unwrap_err();
    assert!(error.to_string().contains("changed or deleted"), "{error}");
    node.shared().is_deaf.store(false, Ordering::SeqCst);
}

/// The agreement and the head are what the nodes compare, so without them the cluster has lost what they knew.
#[tokio::test(flavor = "multi_thread")]
async fn after_all_keys_were_deleted_the_fleet_waits() {
    for what in [&["del", "revoked/", "--prefix"][..], &["del", "revoked/head"], &["put", "revoked/agreement", "x"]] {
        let Some((cluster, nodes)) = three().await else { return };
        revoke_again(&nodes, "alice").await;
        cluster.ctl(what);
        for node in &nodes {
            is_in(node, State::Waiting).await;
            assert!(node.is_revoked("alice").await.is_err() && node.is_revoked("bob").await.is_err());
        }
        let fresh = Node::begin(settings(&cluster.urls(0))).unwrap();
        is_in(&fresh, State::Waiting).await;
        until("it to be announced", async || crate::accept::accept(nodes[0].settings()).await.ok()?.loss).await;
        for node in nodes.iter().map(|node| &**node).chain([&fresh]) {
            ready(node).await;
        }
        revoke_again(&nodes, "alice").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_do_not_belong_together_do_not_start_and_fleets_stay_apart() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let ours = settings(&cluster.urls(0));
    let node = start(ours.clone()).await;
    for other in [
        Settings { key: [8; 16], ..ours.clone() },
        Settings { capacity: 20_001, ..ours.clone() },
        Settings { clock_margin: 31, ..ours.clone() },
    ] {
        let error = Node::start(other).await.unwrap_err();
        assert!(error.contains("has agreed on other settings") && error.contains("capacity 20000"), "{error}");
    }
    // Before format 3, the agreement was a text.
    cluster.ctl(&["put", "old/agreement", "format 2, key x, capacity 20000"]);
    let error = Node::start(Settings { fleet: "old".into(), ..ours.clone() }).await.unwrap_err();
    assert!(error.contains("has agreed on other settings: format 2"), "{error}");
    for (wrong, named) in [
        (Settings { fleet: "a/b".into(), ..ours.clone() }, "--fleet \"a/b\""),
        (Settings { resolution: 0, ..ours.clone() }, "--resolution is 0"),
        (Settings { capacity: 0, ..ours.clone() }, "--capacity is 0"),
        (Settings { rate: 2.0, ..ours.clone() }, "--rate is 2"),
        (Settings { resolution: 3601, ..ours.clone() }, "--resolution is 3601; give 1 to 3600"),
        (Settings { stale_after: Duration::from_millis(1), ..ours.clone() }, "--stale-after is 1 ms; give 100"),
        (Settings { etcd: Etcd::default(), ..ours.clone() }, "no address of etcd"),
        (Settings { resolution: 1, longest_lifetime: 864_000, ..ours.clone() }, "no filter can have"),
        (Settings { etcd: Etcd::new("127.0.0.1:2379"), ..ours.clone() }, "http://HOST:PORT"),
    ] {
        let error = Node::start(wrong).await.unwrap_err();
        assert!(error.contains(named), "{error}");
    }
    let longer = start(Settings { fleet: "revoked2".into(), key: [9; 16], ..ours.clone() }).await;
    revoke(&node, "alice").await;
    revoke(&longer, "bob").await;
    for (node, token, other) in [(&node, "alice", "bob"), (&longer, "bob", "alice")] {
        ready(node).await;
        assert_eq!((answer(node, token).await, answer(node, other).await), (true, false));
        assert_eq!(node.health().foreign, 0);
        assert_eq!(start(node.settings().clone()).await.health().len, Some(1));
    }
    // A full fleet has no room for more, only for those that it has.
    let small = start(Settings { fleet: "small".into(), capacity: 2, ..ours.clone() }).await;
    revoke(&small, "1").await;
    revoke(&small, "2").await;
    let error = small.revoke("3", small.time() + 60).await.unwrap_err();
    assert_eq!(error, crate::NodeError::Full { live: 2, capacity: 2 });
    assert!(small.revoke("2", small.time() + 3600).await.unwrap().is_new);
    assert_eq!(small.restore("1").await, Ok(true));
    revoke(&small, "3").await;
    let latest = small.time() + 3660;
    let error = small.revoke("4", latest * 1000).await.unwrap_err();
    assert!(matches!(error, crate::NodeError::TooLate { .. }), "{error}");
    assert_eq!(small.revoke("4", latest - 7000).await.unwrap().until, None, "it has ended");
}
