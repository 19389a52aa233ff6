//! A storm of random faults, and a checker of all answers. `FLEET_STORM=SECONDS` says for how long; `FLEET_SEED` repeats the
//! choices of one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use fleet::{Epoch, Settings, SharedArguments, State};
use tokio::sync::RwLock;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::faults::{OF_MEMBERS, OF_THE_NETWORK};
use crate::load::variable;
use crate::nodes::{Local, SMALL, accept, found, key, now, until};
use crate::support::cluster::Cluster;

/// A token whose revocation was acknowledged.
#[derive(Clone)]
struct Revoked {
    token: String,
    by: usize,
    at: Instant,
}

/// What the tasks that revoke and ask share with the storm.
struct Load {
    nodes: [Mutex<Arc<Local>>; 3],
    revoked: Mutex<Vec<Revoked>>,
    wrong: Mutex<Vec<String>>,
    answers: AtomicUsize,
    unknown: AtomicUsize,
    /// Whoever revokes holds it to read; whoever holds it to write stops that.
    calm: RwLock<()>,
}

impl Load {
    fn node(&self, nth: usize) -> Arc<Local> {
        Arc::clone(&self.nodes[nth].lock().unwrap())
    }

    async fn revoke(self: Arc<Self>, writer: usize, mut chance: Rng) {
        for number in 0.. {
            sleep(Duration::from_millis(20)).await;
            let _calm = self.calm.read().await;
            let (by, token) = (chance.usize(..3), format!("revoked-{writer}-{number}"));
            if self.node(by).node.revoke(&token, Some(now() + 3000)).await.is_ok() {
                self.revoked.lock().unwrap().push(Revoked { token, by, at: Instant::now() });
            }
        }
    }

    async fn ask(self: Arc<Self>, mut chance: Rng) {
        loop {
            sleep(Duration::from_millis(1)).await;
            let pick = {
                let all = self.revoked.lock().unwrap();
                // The youngest more often.
                let back = if chance.bool() { chance.usize(..all.len().max(1)) } else { chance.usize(..5) };
                all.len().checked_sub(1 + back).map(|nth| all[nth].clone())
            };
            let Some(Revoked { token, by, at }) = pick else { continue };
            let age = at.elapsed();
            let node = self.node(if age > Duration::from_secs(2) { chance.usize(..3) } else { by });
            for (token, is_revoked) in [(token, true), (format!("fine-{}", chance.usize(..100_000)), false)] {
                self.answers.fetch_add(1, Ordering::Relaxed);
                match node.node.is_revoked(&token).await {
                    Ok(answer) if answer == is_revoked => {}
                    // A loss that was accepted meanwhile takes tokens with it.
                    Ok(_) if is_revoked && !self.revoked.lock().unwrap().iter().any(|of| of.token == token) => {}
                    Ok(_) => self.wrong.lock().unwrap().push(format!("{token} after {age:?}: {:?}", node.node)),
                    Err(_) => _ = self.unknown.fetch_add(1, Ordering::Relaxed),
                }
            }
        }
    }

    /// All nodes follow the epoch that is in etcd. (One that has not heard of it yet will join as a new node, and a new node
    /// does not miss a record that was deleted before.)
    async fn all_follow(&self, cluster: &Cluster) {
        let record = cluster.ctl(&["get", "--print-value-only", "revoked/epoch"]);
        let epoch: Epoch = serde_json::from_str(&record).unwrap();
        for nth in 0..3 {
            let node = self.node(nth);
            let has_joined = || node.node.health().epoch.as_ref() == Some(&epoch) && node.node.is_ready();
            until("the epoch", async || has_joined().then_some(())).await;
        }
    }

    async fn all_wait(&self) {
        for nth in 0..3 {
            self.node(nth).waits_for_accept().await;
        }
    }

    async fn all_ready(&self) {
        for nth in 0..3 {
            self.node(nth).is_in(State::Ready).await;
        }
    }
}

fn begin(cluster: &Cluster, nth: usize) -> Arc<Local> {
    let patience = Duration::from_secs(5);
    Arc::new(Local::begin_with(Settings { node: nth.to_string(), patience, ..Settings::new(&cluster.urls(nth)) }, 0))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes as long as FLEET_STORM says"]
async fn no_revoked_token_passes_in_a_storm() {
    let length = Duration::from_secs(variable("FLEET_STORM", 60));
    let seed = variable("FLEET_SEED", fastrand::u64(..));
    println!("FLEET_SEED={seed}");
    let mut chance = Rng::with_seed(seed);
    let Some(mut cluster) = Cluster::start(3, &[]) else { return };
    found(&cluster, &SharedArguments { capacity: Some(1_000_000), ..SMALL }).await;
    let nodes = [0, 1, 2].map(|nth| Mutex::new(begin(&cluster, nth)));
    let (revoked, wrong, answers, unknown, calm) = Default::default();
    let load = Arc::new(Load { nodes, revoked, wrong, answers, unknown, calm });
    load.all_ready().await;
    let mut tasks = JoinSet::new();
    for writer in 0..4 {
        tasks.spawn(Arc::clone(&load).revoke(writer, chance.fork()));
        tasks.spawn(Arc::clone(&load).ask(chance.fork()));
    }
    let (start, mut faults) = (Instant::now(), BTreeMap::<_, usize>::new());
    while start.elapsed() < length {
        let name = fault(&mut cluster, &load, &mut chance).await;
        *faults.entry(name).or_default() += 1;
        println!("{:.1?}: {name}", start.elapsed());
        if chance.bool() {
            load.all_ready().await;
        } else {
            sleep(Duration::from_millis(chance.u64(..1500))).await;
        }
        assert_eq!(*load.wrong.lock().unwrap(), Vec::<String>::new(), "FLEET_SEED={seed}, after {name}");
    }
    tasks.shutdown().await;
    load.all_ready().await;
    let revoked = load.revoked.lock().unwrap().clone();
    for nth in 0..3 {
        for Revoked { token, .. } in &revoked {
            assert!(load.node(nth).answer(token).await, "{token} at the end");
        }
    }
    assert_eq!(*load.wrong.lock().unwrap(), Vec::<String>::new());
    println!("{:.0?}: {} faults {faults:?}", start.elapsed(), faults.values().sum::<usize>());
    let (answers, unknown) = (load.answers.load(Ordering::Relaxed), load.unknown.load(Ordering::Relaxed));
    println!(
        "{answers} answers, of which {unknown} were errors, and none was wrong; {} tokens at the end",
        revoked.len()
    );
}

/// One fault, and its end.
async fn fault(cluster: &mut Cluster, load: &Load, chance: &mut Rng) -> &'static str {
    let nth = chance.usize(..3);
    let a_while = Duration::from_millis(100 + chance.u64(..3000));
    match chance.usize(..14) {
        of @ 0..=3 => {
            // As often as not, the one that leads.
            let nth = if chance.bool() { cluster.leader() } else { nth };
            (OF_MEMBERS[of].begin)(cluster, nth);
            sleep(a_while).await;
            (OF_MEMBERS[of].end)(cluster, nth);
            OF_MEMBERS[of].name
        }
        4..=6 => {
            let fault = chance.choice(&OF_THE_NETWORK).unwrap();
            (0..3).filter(|other| *other == nth || chance.bool()).for_each(|nth| (fault.begin)(cluster, nth));
            sleep(a_while).await;
            (0..3).for_each(|nth| (fault.end)(cluster, nth));
            fault.name
        }
        7 => {
            *load.nodes[nth].lock().unwrap() = begin(cluster, nth);
            "a node ends and another starts"
        }
        8 => {
            let node = load.node(nth);
            node.wall.store([12, -12, 3600, -3600, 86_400, -86_400][chance.usize(..6)], Ordering::SeqCst);
            sleep(a_while).await;
            node.wall.store(0, Ordering::SeqCst);
            "a node's clock is set"
        }
        9 => {
            let node = load.node(nth);
            node.stop();
            sleep(a_while).await;
            node.monotonic.fetch_add(3, Ordering::SeqCst);
            node.go_on();
            "a node's machine sleeps"
        }
        10 => {
            cluster.try_to_compact();
            "a compaction"
        }
        11 => {
            let larger = SharedArguments { capacity: Some(1_000_000 + chance.u64(..1000)), ..SMALL };
            let etcd = fleet::Etcd::new(&cluster.urls(0));
            until("new settings", async || fleet::change(&etcd, "revoked", &larger).await.ok()).await;
            "the settings change"
        }
        12 => {
            load.all_follow(cluster).await;
            let _calm = load.calm.write().await;
            // Until nodes hear of it, the token may pass: that is a limit.
            let lost = load.revoked.lock().unwrap().pop();
            if let Some(Revoked { token, .. }) = lost {
                let key = key(&token);
                let arguments: &[_] = if chance.bool() { &["del", &key] } else { &["put", &key, "damaged!!"] };
                cluster.ctl(arguments);
                load.all_wait().await;
                cluster.ctl(&["del", &key]);
                accept(cluster).await;
                load.all_ready().await;
            }
            "a client outside the fleet damages or deletes a record"
        }
        _ => {
            load.all_ready().await;
            let calm = load.calm.write().await;
            let (backup, before) = (cluster.save("backup"), load.revoked.lock().unwrap().len());
            drop(calm);
            sleep(a_while).await;
            let _calm = load.calm.write().await;
            load.all_ready().await;
            let is_lossy = load.revoked.lock().unwrap().len() > before;
            cluster.restore_with(&backup, &[]);
            if is_lossy {
                load.all_wait().await;
            }
            // What was revoked after the backup is lost. Nobody has let it pass until here.
            load.revoked.lock().unwrap().truncate(before);
            accept(cluster).await;
            load.all_ready().await;
            "a restore from a backup"
        }
    }
}
