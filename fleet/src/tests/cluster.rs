//! Members of the cluster that are killed, cut off, stopped, slow, full, or behind.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn members_and_a_network_that_fail_lose_no_acknowledged_change() {
    let Some((mut cluster, nodes)) = three().await else { return };
    let changes = Load::start(nodes, 1);
    for _ in 0..3 {
        changes.more().await;
        let leader = cluster.leader();
        cluster.kill(leader);
        changes.more().await;
        cluster.restart(leader);
    }
    let follower = (cluster.leader() + 1) % 3;
    cluster.members[follower].fill_disk();
    until("the member to notice", async || (!cluster.members[follower].is_alive()).then_some(())).await;
    changes.more().await;
    cluster.restart(follower);
    // A disk that is slow: the leader stops again and again.
    for _ in 0..3 {
        let leader = cluster.leader();
        cluster.pause(leader, true);
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.pause(leader, false);
        changes.more().await;
    }
    // Answers that are lost, late or repeated.
    let late = |millis| Mode::Late(Duration::from_millis(millis));
    for mode in [Mode::SilentAnswers, Mode::Twice, late(100), Mode::Silent, late(3000), Mode::Cut] {
        network(&cluster, mode);
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.members.iter().for_each(|member| member.clients.mend());
        changes.more().await;
    }
    changes.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_at_a_member_without_a_quorum_says_no_only_while_that_is_sure() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let lone = (cluster.leader() + 1) % 3;
    let other = start(settings(&cluster.urls(lone + 1))).await;
    // One that knows only this member, and one that has others to go to.
    let only = start(Settings { patience: Duration::from_secs(1), ..settings(&cluster.url(lone)) }).await;
    let moving = start(settings(&cluster.urls(lone))).await;
    revoke(&other, "before").await;
    cluster.isolate(lone, true);
    revoke(&other, "after").await;
    is_in(&only, State::Stale).await;
    let (after, before, more) =
        tokio::join!(only.is_revoked("after"), only.is_revoked("before"), only.revoke("more", only.time() + 60));
    assert!(after.is_err() && before.is_err() && more.is_err(), "in doubt");
    until("its neighbor", async || answer(&moving, "after").await.then_some(())).await;
    ready(&moving).await;
    cluster.isolate(lone, false);
    ready(&only).await;
    until("it to know", async || answer(&only, "after").await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_lags_never_decides_by_what_it_had() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let lagging = (cluster.leader() + 1) % 3;
    let node = start(settings(&cluster.urls(lagging + 1))).await;
    cluster.isolate(lagging, true);
    revoke(&node, "alice").await;
    ready(&node).await;
    for _ in 0..20 {
        // Its questions for single tokens go to the member that lags: the last in its list.
        node.shared().client.current.store(2, Ordering::SeqCst);
        assert!(answer(&node, "alice").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_space_changes_fail_and_answers_go_on() {
    let Some(cluster) = Cluster::start(3, &["--quota-backend-bytes", "4194304"]) else { return };
    let node = start(settings(&cluster.urls(0))).await;
    revoke(&node, "alice").await;
    cluster.fill();
    let error = until("a refusal", async || node.revoke("bob", node.time() + 60).await.err()).await;
    assert!(error.to_string().contains("no space left"), "{error}");
    ready(&node).await;
    assert!(answer(&node, "alice").await);
    assert_eq!(node.is_revoked("carol").await, Ok(false));
    // It goes on after it was cut off, and another node starts: both only read.
    network(&cluster, Mode::Cut);
    is_in(&node, State::Stale).await;
    network(&cluster, Mode::Forward);
    let fresh = start(settings(&cluster.urls(1))).await;
    for node in [&node, &fresh] {
        ready(node).await;
        assert!(answer(node, "alice").await && !answer(node, "carol").await);
    }
    // As an operator does it: `tests/procedures.rs` runs what the page says.
    cluster.ctl(&["compact", &cluster.revision().to_string()]);
    cluster.ctl(&["defrag"]);
    cluster.ctl(&["alarm", "disarm"]);
    revoke(&node, "bob").await;
    assert!(answer(&node, "bob").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_a_compaction_has_passed_joins_again() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let node = start(settings(&cluster.url(0))).await;
    let other = start(settings(&cluster.url(1))).await;
    revoke(&other, "alice").await;
    cluster.members[0].clients.set(Mode::Cut);
    is_in(&node, State::Stale).await;
    revoke(&other, "bob").await;
    assert_eq!(other.restore("alice").await, Ok(true));
    cluster.ctl(&["compact", &cluster.revision().to_string()]);
    ready(&other).await;
    cluster.members[0].clients.set(Mode::Forward);
    ready(&node).await;
    assert_eq!(node.shared().tallies.joins.load(Ordering::SeqCst), 2);
    assert!(answer(&node, "bob").await && !answer(&node, "alice").await);
    assert_eq!(other.shared().tallies.joins.load(Ordering::SeqCst), 1, "a node that follows needs not join again");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_many_pages_are_joined() {
    const TOKENS: u64 = 11_000;
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let settings = settings(&cluster.urls(0));
    let node = Arc::new(start(settings.clone()).await);
    let mut tasks = tokio::task::JoinSet::new();
    // As many at once as a transaction takes: of more, the last would wait long on a busy machine.
    for nth in 0..100 {
        let node = Arc::clone(&node);
        tasks.spawn(async move {
            for number in (nth..TOKENS).step_by(100) {
                node.revoke(&number.to_string(), node.time() + 1800).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let missing = |node: &Node| {
        let (shared, known) = (node.shared(), node.shared().known.load_full().unwrap());
        let is_in =
            |number: &u64| known.filter.by_hash().contains(shared.secret.hash(shared.secret.id(&number.to_string())));
        (0..TOKENS).filter(|number| !is_in(number)).count()
    };
    assert_eq!(missing(&node), 0);
    let other = start(settings).await;
    assert_eq!((missing(&other), other.health().len), (0, Some(TOKENS as usize)));
}
