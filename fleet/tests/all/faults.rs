//! Members, disks, networks, processes and clocks that fail.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fleet::{Settings, SharedArguments, State};
use rustix::process::Signal;

use crate::nodes::{Local, Program, SMALL, fleet, found, now, ready, until};
use crate::support::cluster::Cluster;
use crate::support::proxy::Mode;

fn network(cluster: &Cluster, mode: Mode) {
    cluster.members.iter().for_each(|member| member.clients.set(mode));
}

/// No acknowledged revocation passes while this fault lasts, longer than a node trusts its filter, and everything goes on by
/// itself after it.
async fn survive(
    cluster: &mut Cluster,
    nodes: &[Local],
    name: &str,
    begin: impl Fn(&mut Cluster),
    end: impl Fn(&mut Cluster),
) {
    let (token, meanwhile) = (format!("before-{name}"), format!("during-{name}"));
    nodes[0].revoke(&token).await;
    for node in nodes {
        until("all to know", async || node.answer(&token).await.then_some(())).await;
    }
    begin(cluster);
    for _ in 0..2 {
        for node in nodes {
            node.never_passes(&token).await;
        }
        let change = nodes[1].node.revoke(&meanwhile, Some(now() + 1800));
        _ = tokio::time::timeout(Duration::from_millis(1500), change).await;
    }
    end(cluster);
    nodes[1].revoke(&meanwhile).await;
    for node in nodes {
        until("all to know", async || node.answer(&meanwhile).await.then_some(())).await;
        node.is_in(State::Ready).await;
        assert!(node.answer(&token).await && !node.answer("fine").await, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_that_fail_lose_no_acknowledged_revocation() {
    let Some(mut cluster) = fleet(3).await else { return };
    let nodes: [Local; 3] = ready(&cluster).await;
    for mode in [Mode::Silent, Mode::SilentAnswers, Mode::Cut, Mode::Twice, Mode::Late(Duration::from_millis(100))] {
        let mend = |cluster: &mut Cluster| cluster.members.iter().for_each(|member| member.clients.mend());
        survive(&mut cluster, &nodes, &format!("{mode:?}").replace(' ', ""), |cluster| network(cluster, mode), mend)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_fail_lose_no_acknowledged_revocation() {
    let Some(mut cluster) = fleet(3).await else { return };
    let nodes: [Local; 3] = ready(&cluster).await;
    let leader = cluster.leader();
    survive(&mut cluster, &nodes, "kill", |of| of.kill(leader), |of| of.restart(leader)).await;
    let leader = cluster.leader();
    survive(&mut cluster, &nodes, "isolate", |of| of.isolate(leader, true), |of| of.isolate(leader, false)).await;
    let leader = cluster.leader();
    survive(&mut cluster, &nodes, "pause", |of| of.pause(leader, true), |of| of.pause(leader, false)).await;
    let (kill, restart) = (
        |of: &mut Cluster| (0..2).for_each(|nth| of.kill(nth)),
        |of: &mut Cluster| (0..2).for_each(|nth| of.restart(nth)),
    );
    survive(&mut cluster, &nodes, "majority", kill, restart).await;
}

/// A change is sent again when its answer is lost, and each is made once, or twice without harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_is_lost_is_repeated() {
    let Some(cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("first").await; // with the lease
    network(&cluster, Mode::SilentAnswers);
    let revoking = std::sync::Arc::clone(&node.node);
    let change = tokio::spawn(async move { revoking.revoke("alice", Some(now() + 1000)).await });
    until("it to be in etcd", async || {
        cluster.ctl(&["get", "--prefix", "revoked/token/"]).contains(&crate::nodes::key("alice")).then_some(())
    })
    .await;
    cluster.members[0].clients.mend();
    let done = change.await.unwrap().unwrap();
    assert!(!done.is_new, "its repetition found it done");
    assert!(node.answer("alice").await);
    // A shorter one changes nothing, and a longer one does.
    let shorter = node.node.revoke("alice", Some(now() + 10)).await.unwrap();
    assert_eq!(shorter, done);
    let longer = node.node.revoke("alice", Some(done.until + 100)).await.unwrap();
    assert_eq!((longer.until, longer.is_new), (done.until + 100, true));
}

/// A node at a member that the others do not hear: it says "not revoked" only as long as that is certain.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_at_a_member_without_a_majority_goes_to_another_one() {
    let Some(cluster) = fleet(3).await else { return };
    let (alone, other) = (Local::ready(&cluster.url(0)).await, Local::ready(&cluster.url(1)).await);
    let all = Local::ready(&cluster.urls(0)).await;
    cluster.isolate(0, true);
    other.revoke("alice").await;
    tokio::time::sleep(Duration::from_secs(2)).await; // as long as a node may be behind
    alone.never_passes("alice").await;
    assert_eq!(alone.node.health().state, State::Stale);
    alone.node.is_revoked("fine").await.unwrap_err();
    assert!(all.answer("alice").await);
    all.is_in(State::Ready).await;
    cluster.isolate(0, false);
    alone.is_in(State::Ready).await;
    assert!(alone.answer("alice").await);
}

/// A process that was stopped does not answer from its old filter, and neither does one whose machine has slept.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_sleep_the_first_answer_is_right() {
    let Some(cluster) = fleet(1).await else { return };
    let [node, asleep]: [Local; 2] = ready(&cluster).await;
    let stopped = Program::ready(&cluster.urls(0), &[]);
    for round in 0..3 {
        let token = format!("token-{round}");
        asleep.stop();
        stopped.signal(Signal::STOP);
        node.revoke(&token).await;
        if round == 1 {
            // What it has to read next is gone.
            cluster.ctl(&["put", "something", "else"]);
            let revision: i64 = cluster.revision();
            cluster.ctl(&["compact", &revision.to_string()]);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        stopped.signal(Signal::CONT);
        asleep.monotonic.fetch_add(2, Ordering::SeqCst);
        assert_ne!(stopped.ask("GET", "/protected", &[&token], "").0, 200);
        asleep.never_passes(&token).await;
        asleep.go_on();
        asleep.is_in(State::Ready).await;
        stopped.wait_until_ready();
        assert!(asleep.answer(&token).await);
        assert_eq!(stopped.protected(&token), 401);
    }
    assert!(asleep.node.health().joins >= 1);
}

/// Setting the time of day ends no revocation early, on a node that runs and on one that starts.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_ends_no_revocation_early() {
    let Some(cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("alice").await;
    for seconds in [12, -12, 86_400, -86_400, 10 * 86_400] {
        node.wall.store(seconds, Ordering::SeqCst);
        node.never_passes("alice").await;
        let token = format!("meanwhile {seconds}").replace(' ', "-");
        node.revoke(&token).await;
        assert!(node.answer(&token).await && node.answer("alice").await, "{seconds}");
    }
    node.wall.store(0, Ordering::SeqCst);
    node.is_in(State::Ready).await;
    assert!(node.answer("alice").await && !node.answer("fine").await);

    // It starts with a clock that is ten days ahead, which is corrected then.
    let wrong = Local::begin_with(Settings::new(&cluster.urls(0)), 10 * 86_400);
    until("it to join", async || (wrong.node.health().joins > 0).then_some(())).await;
    wrong.wall.store(0, Ordering::SeqCst);
    wrong.never_passes("alice").await;
    wrong.is_in(State::Ready).await;
    assert!(wrong.answer("alice").await && !wrong.answer("fine").await);
}

/// Without space, lookups go on and nodes start; a change fails at once and says why.
#[tokio::test(flavor = "multi_thread")]
async fn without_space_answers_go_on() {
    let Some(cluster) = Cluster::start(1, &["--quota-backend-bytes", "4194304"]) else { return };
    found(&cluster, &SMALL).await;
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("alice").await;
    cluster.fill();
    let begin = std::time::Instant::now();
    let why = node.node.revoke("bob", None).await.unwrap_err().to_string();
    assert!(why.contains("space exceeded") && begin.elapsed() < Duration::from_secs(30), "{why}");
    assert!(node.answer("alice").await && node.node.is_ready());
    let new = Local::ready(&cluster.urls(0)).await;
    assert!(new.answer("alice").await && !new.answer("fine").await);
}

/// A member whose disk is full ends; the others go on, and it comes back when there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_disk_is_full_is_passed_over() {
    let Some(mut cluster) = fleet(3).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    cluster.members[0].fill_disk();
    for nth in 0..20 {
        node.revoke(&format!("token-{nth}")).await;
    }
    cluster.restart(0);
    cluster.kill(1);
    let new = Local::ready(&cluster.url(0)).await;
    for nth in 0..20 {
        assert!(new.answer(&format!("token-{nth}")).await);
    }
}

/// The longest lifetime is lowered while nodes run: tokens that live longer stay revoked until their own end.
#[tokio::test(flavor = "multi_thread")]
async fn lowering_the_lifetime_ends_no_revocation_early() {
    let Some(cluster) = fleet(1).await else { return };
    let [a, b]: [Local; 2] = ready(&cluster).await;
    a.node.revoke("long", Some(now() + 3500)).await.unwrap();
    let shorter = SharedArguments { longest_lifetime: Some(2), margin: Some(0), capacity: None };
    let epoch = fleet::change(&fleet::Etcd::new(&cluster.urls(0)), "revoked", &shorter).await.unwrap();
    assert_eq!((epoch.number, epoch.settings.capacity), (2, 20_000));
    for node in [&a, &b] {
        until("the new epoch", async || (node.node.health().epoch.as_ref() == Some(&epoch)).then_some(())).await;
        node.is_in(State::Ready).await;
    }
    assert!(matches!(a.node.revoke("bob", Some(now() + 60)).await, Err(fleet::NodeError::TooLate(_))));
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        a.never_passes("long").await;
        b.never_passes("long").await;
    }
    assert!(a.node.health().joins > 2, "it has joined again before an entry has expired: {:?}", a.node);
    assert!(a.answer("long").await && !a.answer("fine").await);
}
