//! Answers of the cluster that are lost, late, or come twice.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answers_are_lost_counts_once() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let (node, other) = (start(settings(&cluster.url(0))).await, start(settings(&cluster.url(1))).await);
    // Afterwards it has a lease for its tokens.
    revoke(&node, "bob").await;
    let before = cluster.revision();
    cluster.members[0].clients.set(Mode::SilentAnswers);
    let node = Arc::new(node);
    let revoking = {
        let node = Arc::clone(&node);
        tokio::spawn(async move { node.revoke("alice", node.time() + 600).await })
    };
    until("it to be made", async || answer(&other, "alice").await.then_some(())).await;
    until("it to be made again", async || (cluster.revision() > before + 1).then_some(())).await;
    assert!(!revoking.is_finished(), "nobody has told the node");
    cluster.members[0].clients.mend();
    revoking.await.unwrap().unwrap();
    assert!(answer(&node, "alice").await);
    for node in [&*node, &other] {
        ready(node).await;
        assert_eq!(node.health().len, Some(2));
    }
    assert_eq!(other.restore("alice").await, Ok(true));
    until("it to be gone", async || (node.is_revoked("alice").await == Ok(false)).then_some(())).await;
    until("its entry to be gone", async || (node.health().len == Some(1)).then_some(())).await;
}

/// The network is so slow that a request arrives when its node has long given it up, and sent it to another member.
#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_arrives_late_undoes_no_restore() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let node = start(settings(&cluster.urls(1))).await;
    // Etcd drops a request if it hears at the same time that it was given up.
    until("one that arrives late", async || {
        cluster.members[0].clients.mend();
        node.shared().client.current.store(2, Ordering::SeqCst);
        // Afterwards it has a lease for its tokens, and a connection.
        revoke(&node, "bob").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster.members[0].clients.set(Mode::Late(Duration::from_secs(2)));
        revoke(&node, "alice").await;
        assert_eq!(node.restore("alice").await, Ok(true));
        let revision = cluster.revision();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(!answer(&node, "alice").await);
        (cluster.revision() > revision).then_some(())
    })
    .await;
    // It has left the record as it was, too.
    let fresh = start(settings(&cluster.urls(1))).await;
    assert_eq!(fresh.is_revoked("alice").await, Ok(false));
}

/// The login of a JSON Web Token names the rights of its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_logs_in_again_when_rights_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, [7; 64]).unwrap();
    let Some(cluster) =
        Cluster::start(1, &["--auth-token", &format!("jwt,priv-key={},sign-method=HS256", key.display())])
    else {
        return;
    };
    for arguments in ["user add root:secret", "user grant-role root root", "auth enable"] {
        cluster.ctl(&arguments.split(' ').collect::<Vec<_>>());
    }
    let ours = settings(&cluster.url(0));
    let node = start(Settings {
        etcd: Etcd { user: Some("root".into()), password: Some("secret".into()), ..ours.etcd.clone() },
        ..ours
    })
    .await;
    revoke(&node, "alice").await;
    cluster.ctl(&["--user", "root:secret", "role", "add", "another"]);
    revoke(&node, "bob").await;
    ready(&node).await;
    assert!(answer(&node, "alice").await);
}
