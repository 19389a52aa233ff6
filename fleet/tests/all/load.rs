//! Many tokens, many changes, and tokens that are extended.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::{Etcd, NodeError, SharedArguments, State};
use tokio::task::JoinSet;

use crate::nodes::{Local, Program, SMALL, fleet, found, now, ready, until};
use crate::support::cluster::Cluster;

/// What a variable says, or this.
pub(crate) fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Revokes so many tokens, up to 1,000 at a time, and returns how many per second.
async fn revoke_many(node: &Local, tokens: u64) -> f64 {
    let (begin, clients, exp) = (Instant::now(), 1000.min(tokens), Some(now() + 3000));
    let mut changes = JoinSet::new();
    for client in 0..clients {
        let node = Arc::clone(&node.node);
        changes.spawn(async move {
            for number in (client..tokens).step_by(clients as usize) {
                node.revoke(&format!("many-{number}"), exp).await.unwrap();
            }
        });
    }
    changes.join_all().await;
    tokens as f64 / begin.elapsed().as_secs_f64()
}

/// Twice as many threads as there are cores, which calculate until this is dropped.
fn busy() -> Arc<()> {
    let wanted = Arc::new(());
    for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
        let wanted = Arc::downgrade(&wanted);
        std::thread::spawn(move || while wanted.strong_count() > 0 {});
    }
    wanted
}

/// On a busy machine, new nodes join with many tokens, and the one that runs goes on. It was seen with 323,000 tokens,
/// which `FLEET_TOKENS=323000` repeats. A question for one token then cost etcd time in proportion to all of them; so a
/// tenth of them shows the same, and takes seconds.
#[tokio::test(flavor = "multi_thread")]
async fn many_tokens_are_revoked_in_groups_and_joined() {
    let tokens = variable("FLEET_TOKENS", 32_300);
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    found(&cluster, &SharedArguments { capacity: Some(2 * tokens), ..SMALL }).await;
    let node = Local::ready(&cluster.urls(0)).await;
    let before = cluster.revision();
    revoke_many(&node, tokens).await;
    let transactions = cluster.revision() - before;
    assert!(transactions < tokens as i64 / 3, "{transactions} for {tokens} changes");
    let _busy = busy();
    let joining = [(); 3].map(|()| Local::begin(&cluster.urls(0)));
    for number in 0..10 {
        node.node.revoke(&format!("meanwhile-{number}"), None).await.unwrap();
    }
    for new in &joining {
        new.is_in(State::Ready).await;
        for number in (0..tokens).step_by(tokens as usize / 30) {
            assert!(new.answer(&format!("many-{number}")).await);
        }
        assert!(new.answer("meanwhile-9").await && !new.answer("fine").await);
    }
    assert_eq!(node.node.health().joins, 1, "it has lost nothing: {:?}", node.node);
    // Two clients that revoke one token at the same time share a record.
    let (a, b) = tokio::join!(node.node.revoke("same", Some(now() + 100)), node.node.revoke("same", Some(now() + 200)));
    assert!(a.unwrap().until >= now() + 90 && b.unwrap().until >= now() + 190);
}

/// A token has one entry, however often it is extended, for `FLEET_EXTEND` seconds at least.
#[tokio::test(flavor = "multi_thread")]
async fn extending_tokens_takes_no_memory() {
    let Some(cluster) = fleet(1).await else { return };
    let node = Program::ready(&cluster.urls(0), &[]);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", node.process.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let begin = Instant::now();
    let extend = |round: u64| {
        std::thread::scope(|scope| {
            for token in 0..20 {
                let (node, exp) = (&node, now() + 60 * (round + 1));
                scope.spawn(move || {
                    let body = format!("{{\"token\": \"extended-{token}\", \"exp\": {exp}}}");
                    // A node that could not ask a quorum for a while says so, and the client asks again.
                    let answered = (0..60).any(|_| {
                        let answer = node.ask("PUT", "/revoked", &[], &body);
                        if answer.0 != 503 {
                            assert!(answer.0 < 300, "{answer:?}");
                            return true;
                        }
                        println!("{:?} s: {answer:?}", begin.elapsed());
                        std::thread::sleep(Duration::from_secs(1));
                        false
                    });
                    assert!(answered);
                });
            }
        });
    };
    (0..5).for_each(extend);
    let before = memory();
    let length = Duration::from_secs(variable("FLEET_EXTEND", 0));
    let mut round = 5;
    while round < 55 || begin.elapsed() < length {
        extend(round.min(58));
        round += 1;
        if round > 55 {
            // From now on, they live longer as time goes on.
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    assert!(memory() < before + 20_000, "{before} kB and then {} kB", memory());
    assert_eq!(node.metric("cuckoo_filter_len"), 20.0);
    assert_eq!(node.protected("extended-7"), 401);
    println!("{round} rounds of 20 tokens: {before} kB, and {} kB", memory());
}

/// A full fleet accepts no further tokens, forgets none, and goes on when it is given more room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_fleet_says_so_and_forgets_nothing() {
    let Some(cluster) = Cluster::start(1, &[]) else { return };
    found(&cluster, &SharedArguments { capacity: Some(100), ..SMALL }).await;
    let [a, b]: [Local; 2] = ready(&cluster).await;
    let mut revoked = Vec::new();
    for number in 0..300 {
        let token = format!("token-{number}");
        match a.node.revoke(&token, None).await {
            Ok(_) => revoked.push(token),
            Err(error) => assert_eq!(error, NodeError::Full),
        }
    }
    assert!((100..110).contains(&revoked.len()), "{}", revoked.len());
    assert!(NodeError::Full.to_string().contains("--capacity"));
    a.node.revoke(&revoked[0], Some(now() + 3600)).await.expect("it has a place already");
    for token in &revoked {
        assert!(a.answer(token).await && b.answer(token).await);
    }
    let change = async |capacity| {
        let settings = SharedArguments { capacity: Some(capacity), ..SharedArguments::default() };
        let epoch = fleet::change(&Etcd::new(&cluster.urls(0)), "revoked", &settings).await.ok();
        until("the epoch", async || (a.node.health().epoch == epoch && a.node.is_ready()).then_some(())).await;
    };
    change(500).await;
    a.revoke("more").await;
    assert!(a.answer(&revoked[0]).await);
    change(1).await;
    for token in &revoked {
        assert!(a.answer(token).await);
    }
    assert_eq!(a.node.revoke("another", None).await, Err(NodeError::Full));
}

/// `FLEET_TOKENS` tokens, a million if it is not set: how long they take, how long one node and two take to join, and how
/// much slower another client of etcd is meanwhile.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures, and takes minutes"]
async fn a_million_tokens() {
    let tokens = variable("FLEET_TOKENS", 1_000_000);
    let Some(cluster) = Cluster::start(3, &["--quota-backend-bytes", "8000000000"]) else { return };
    found(&cluster, &SharedArguments { capacity: Some(2 * tokens + 1000), ..SMALL }).await;
    // Not through the proxies, which would take a part of the processors.
    let node = Local::ready(&cluster.endpoints()).await;
    println!("{tokens} tokens: {:.0} changes per second", revoke_many(&node, tokens).await);
    // Another client of etcd asks for one key, again and again.
    let asks_while = |what: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            let (begin, mut answers, other) = (Instant::now(), 0, scope.spawn(what));
            while !other.is_finished() {
                cluster.question();
                answers += 1;
            }
            f64::from(answers) / begin.elapsed().as_secs_f64()
        })
    };
    let nothing = || std::thread::sleep(Duration::from_secs(10));
    let mut alone = asks_while(&nothing);
    for nodes in 1..=2 {
        let begin = Instant::now();
        let joining: Vec<_> = (0..nodes).map(|nth| Program::begin(&cluster.endpoint(1 + nth), &[], &[])).collect();
        // As if they were on machines of their own.
        for node in &joining {
            let pid = node.process.0.id().to_string();
            assert!(Command::new("renice").args(["-n", "19", "-p", &pid]).output().unwrap().status.success());
        }
        let beside = asks_while(&|| joining.iter().for_each(Program::wait_until_ready));
        let took = begin.elapsed();
        let alone_again = asks_while(&nothing);
        println!(
            "{nodes} more with {tokens} tokens: ready {took:.1?} after the start. Another client of etcd had {beside:.0} answers \
             per second, {alone:.0} before that and {alone_again:.0} after"
        );
        alone = alone_again;
        for node in joining {
            assert_eq!(node.protected("many-17"), 401);
        }
    }
    assert!(node.node.is_ready() && node.node.health().joins == 1, "{:?}", node.node);
}
