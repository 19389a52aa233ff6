//! Members, disks, networks, processes and clocks that fail.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fleet::{Settings, SharedArguments, State};
use rustix::process::Signal;

use crate::nodes::{Local, Program, SMALL, fleet, found, key, now, ready, until};
use crate::support::cluster::Cluster;
use crate::support::proxy::Mode;

/// What can happen to a member, or to the way to it.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) begin: fn(&mut Cluster, usize),
    pub(crate) end: fn(&mut Cluster, usize),
}

pub(crate) const OF_MEMBERS: [Fault; 4] = [
    Fault { name: "killed", begin: Cluster::kill, end: Cluster::restart },
    Fault { name: "disk-full", begin: |of, nth| of.members[nth].fill_disk(), end: Cluster::restart },
    Fault {
        name: "stopped",
        begin: |of, nth| of.signal(nth, Signal::STOP),
        end: |of, nth| of.signal(nth, Signal::CONT),
    },
    Fault { name: "isolated", begin: |of, nth| of.isolate(nth, true), end: |of, nth| of.isolate(nth, false) },
];

pub(crate) const OF_THE_NETWORK: [Fault; 6] = [
    Fault { name: "silent", begin: |of, nth| of.members[nth].clients.set(Mode::Silent), end: mend },
    Fault { name: "silent-answers", begin: |of, nth| of.members[nth].clients.set(Mode::SilentAnswers), end: mend },
    Fault { name: "cut", begin: |of, nth| of.members[nth].clients.set(Mode::Cut), end: mend },
    Fault { name: "twice", begin: |of, nth| of.members[nth].clients.set(Mode::Twice), end: mend },
    Fault { name: "late", begin: |of, nth| of.members[nth].clients.set(LATE), end: mend },
    Fault { name: "very-late", begin: |of, nth| of.members[nth].clients.set(VERY_LATE), end: mend },
];

const LATE: Mode = Mode::Late(Duration::from_millis(100));

/// Longer than a node waits for an answer at first.
const VERY_LATE: Mode = Mode::Late(Duration::from_millis(700));

fn mend(cluster: &mut Cluster, nth: usize) {
    cluster.members[nth].clients.mend();
}

/// No acknowledged revocation passes while these members have a fault, longer than a node trusts its filter, and everything
/// goes on by itself after it.
async fn survive(cluster: &mut Cluster, nodes: &[Local], fault: &Fault, members: &[usize]) {
    let (name, hit) = (fault.name, members.len());
    let (token, meanwhile) = (format!("before-{name}-{hit}"), format!("during-{name}-{hit}"));
    nodes[0].revoke(&token).await;
    for node in nodes {
        until("all to know", async || node.answer(&token).await.then_some(())).await;
    }
    members.iter().for_each(|nth| (fault.begin)(cluster, *nth));
    for _ in 0..2 {
        for node in nodes {
            node.never_passes(&token).await;
        }
        let change = nodes[1].node.revoke(&meanwhile, Some(now() + 1800));
        _ = tokio::time::timeout(Duration::from_millis(1500), change).await;
    }
    members.iter().for_each(|nth| (fault.end)(cluster, *nth));
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
    for fault in &OF_THE_NETWORK {
        survive(&mut cluster, &nodes, fault, &[0, 1, 2]).await;
    }
}

/// The one that leads, and a majority.
#[tokio::test(flavor = "multi_thread")]
async fn members_that_fail_lose_no_acknowledged_revocation() {
    let Some(mut cluster) = fleet(3).await else { return };
    let nodes: [Local; 3] = ready(&cluster).await;
    for fault in &OF_MEMBERS {
        let leader = cluster.leader();
        survive(&mut cluster, &nodes, fault, &[leader]).await;
    }
    survive(&mut cluster, &nodes, &OF_MEMBERS[0], &[0, 1]).await;
}

/// A change is sent again when its answer is lost, and each is made once, or twice without harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_is_lost_is_repeated() {
    let Some(cluster) = fleet(1).await else { return };
    let node = Local::ready(&cluster.urls(0)).await;
    node.revoke("first").await; // with the lease
    cluster.members[0].clients.set(Mode::SilentAnswers);
    let revoking = std::sync::Arc::clone(&node.node);
    let change = tokio::spawn(async move { revoking.revoke("alice", Some(now() + 1000)).await });
    let is_in_etcd = async || cluster.ctl(&["get", "--prefix", "revoked/token/"]).contains(&key("alice")).then_some(());
    until("it to be in etcd", is_in_etcd).await;
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
            cluster.ctl(&["compact", &cluster.revision().to_string()]);
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
    assert!(asleep.node.health().joins > 1, "it has joined again after the compaction");
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
        let token = format!("meanwhile-{seconds}");
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

/// A token that is over passes, and its record may go. Then the longest lifetime is lowered while nodes run: tokens that live
/// longer stay revoked until their own end.
#[tokio::test(flavor = "multi_thread")]
async fn lowering_the_lifetime_ends_no_revocation_early() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    found(&cluster, &SharedArguments { margin: Some(0), ..SMALL }).await;
    let [a, b]: [Local; 2] = ready(&cluster).await;
    // On a busy machine, a token may be over before it is asked for.
    let is_rejected = async || {
        a.node.revoke("short", Some(now() + 2)).await.unwrap();
        a.answer("short").await.then_some(())
    };
    until("it to be rejected", is_rejected).await;
    until("its end", async || (!a.answer("short").await).then_some(())).await;
    assert_eq!(a.node.revoke("short", Some(now() - 1)).await.map(|done| done.is_new), Ok(false), "it is over");
    // As etcd does when a lease ends.
    cluster.ctl(&["del", &key("short")]);
    a.revoke("bob").await;
    until("the other to come so far", async || b.answer("bob").await.then_some(())).await;
    b.is_in(State::Ready).await;

    a.node.revoke("long", Some(now() + 3500)).await.unwrap();
    let shorter = SharedArguments { longest_lifetime: Some(2), margin: Some(0), capacity: None };
    let epoch = fleet::change(&fleet::Etcd::new(&cluster.urls(0)), "revoked", &shorter).await.unwrap();
    assert_eq!((epoch.number, epoch.settings.capacity), (2, 20_000));
    for node in [&a, &b] {
        until("the new epoch", async || (node.node.health().epoch.as_ref() == Some(&epoch)).then_some(())).await;
        node.is_in(State::Ready).await;
    }
    assert!(matches!(a.node.revoke("carol", Some(now() + 60)).await, Err(fleet::NodeError::TooLate(_))));
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        a.never_passes("long").await;
        b.never_passes("long").await;
    }
    assert!(a.node.health().joins > 2, "it has joined again before an entry has expired: {:?}", a.node);
    assert!(a.answer("long").await && !a.answer("fine").await);
}
