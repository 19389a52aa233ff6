//! Others who write into the cluster, and nodes that do not belong together.

use super::*;

fn key(node: &Node, token: &str) -> String {
    format!("{}/token/{}", node.settings().fleet, node.token_id(token))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_or_delete_lets_no_token_pass() {
    let Some((cluster, nodes)) = three().await else { return };
    let node = &nodes[0];
    revoke(node, "alice").await;
    revoke(node, "bob").await;
    until("all to know", async || answer(&nodes[1], "bob").await.then_some(())).await;
    // Keys of no kind, and values that no node has written.
    cluster.ctl(&["put", "revoked/token/17", "x"]);
    cluster.ctl(&["put", "revoked/something", "x"]);
    cluster.ctl(&["put", &key(node, "dave"), "0123456789abcdef"]);
    until("it to be counted", async || (node.health().foreign >= 3).then_some(())).await;
    let fresh = start(settings(&cluster.urls(1))).await;
    assert!(fresh.is_revoked("dave").await.is_err_and(|error| error.to_string().contains("damaged")));
    assert!(answer(&fresh, "bob").await && !answer(&fresh, "carol").await);
    // Revoked again, it is right again.
    revoke(node, "dave").await;
    assert!(answer(node, "dave").await);
    until("the others to know", async || (fresh.is_revoked("dave").await == Ok(true)).then_some(())).await;

    // Somebody overwrites a token, deletes one, and then all that the fleet has.
    for (change, token, mended) in [
        (&["put", &key(node, "alice"), "0123456789abcdef"][..], "alice", 1),
        (&["del", &key(node, "bob")], "bob", 2),
        (&["del", "revoked/", "--prefix"], "alice", 5),
    ] {
        cluster.ctl(change);
        until("it to be put back", async || {
            for token in ["alice", "bob"] {
                for node in &nodes {
                    assert_ne!(node.is_revoked(token).await, Ok(false));
                }
            }
            let is_mended = node.shared().tallies.mended.load(Ordering::SeqCst) == mended;
            (is_mended && !cluster.ctl(&["get", &key(node, token)]).is_empty()).then_some(())
        })
        .await;
        assert!(answer(node, token).await);
    }
    for node in &nodes {
        ready(node).await;
        assert!(answer(node, "alice").await && answer(node, "bob").await && !answer(node, "carol").await);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_right_is_found_at_the_start() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let ours = settings(&cluster.urls(0));
    drop(start(ours.clone()).await);
    for (user, rights) in [
        ("all", &[["--prefix=true", "readwrite", "revoked/"]][..]),
        ("reads", &[["--prefix=true", "read", "revoked/"]]),
        ("half", &[["--prefix=true", "read", "revoked/"], ["--prefix=false", "readwrite", "revoked/agreement"]]),
    ] {
        cluster.ctl(&["user", "add", &format!("{user}:secret")]);
        cluster.ctl(&["role", "add", user]);
        for [prefix, right, key] in rights {
            cluster.ctl(&["role", "grant-permission", prefix, user, right, key]);
        }
        cluster.ctl(&["user", "grant-role", user, user]);
    }
    cluster.ctl(&["user", "add", "root:secret"]);
    cluster.ctl(&["user", "grant-role", "root", "root"]);
    cluster.ctl(&["auth", "enable"]);
    let login = |user: &str, password: &str| Settings {
        etcd: Etcd { user: Some(user.into()), password: Some(password.into()), ..ours.etcd.clone() },
        ..ours.clone()
    };
    for settings in [login("reads", "secret"), login("half", "secret"), login("all", "wrong"), ours.clone()] {
        let error = Node::start(settings).await.unwrap_err();
        assert!(error.contains("has refused this"), "{error}");
    }
    let node = start(login("all", "secret")).await;
    revoke(&node, "alice").await;
    assert!(answer(&node, "alice").await);
}

/// A storm found this: the question came before the deletion was mended, and the answer after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_mended_while_a_question_is_under_way_lets_no_token_pass() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let node = Arc::new(start(settings(&cluster.urls(0))).await);
    revoke(&node, "alice").await;
    let asking = Asking::start(&node, "alice");
    for round in 1..20 {
        ready(&node).await;
        cluster.ctl(&["del", &key(&node, "alice")]);
        until("it to be mended", async || (node.shared().tallies.mended.load(Ordering::SeqCst) >= round).then_some(()))
            .await;
        until("it to be back", async || (!cluster.ctl(&["get", &key(&node, "alice")]).is_empty()).then_some(())).await;
    }
    // As somebody does who reads that a record is damaged. The node sees both at once.
    node.shared().is_deaf.store(true, Ordering::SeqCst);
    cluster.ctl(&["put", &key(&node, "alice"), "x"]);
    cluster.ctl(&["del", &key(&node, "alice")]);
    node.shared().is_deaf.store(false, Ordering::SeqCst);
    until("it to be back", async || (!cluster.ctl(&["get", &key(&node, "alice")]).is_empty()).then_some(())).await;
    asking.check().await;
    assert_eq!((node.health().len, node.shared().tallies.joins.load(Ordering::SeqCst)), (Some(1), 1), "one entry");
    // It would be put back.
    node.shared().is_deaf.store(true, Ordering::SeqCst);
    cluster.ctl(&["del", &key(&node, "alice")]);
    let error = node.restore("alice").await.unwrap_err();
    assert!(error.to_string().contains("somebody has deleted its record"), "{error}");
}
