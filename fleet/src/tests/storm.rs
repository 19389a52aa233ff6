//! A storm of random faults, and a checker of all answers. `FLEET_STORM=SECONDS` says for how long; `FLEET_SEED` repeats one.

use std::sync::Mutex;

use fastrand::Rng;

use super::support::proxy::Mode;
use super::*;
use crate::node::accept;

/// A token whose revocation was acknowledged.
#[derive(Clone)]
struct Revoked {
    token: String,
    by: usize,
    at: Instant,
}

#[derive(Default)]
struct Storm {
    nodes: [tokio::sync::RwLock<Option<Arc<Node>>>; 3],
    kept: Mutex<Vec<Revoked>>,
    restored: Mutex<Vec<String>>,
    wrong: Mutex<Vec<String>>,
    answers: AtomicUsize,
    doubts: AtomicUsize,
    is_over: AtomicBool,
    /// Changes are stopped, for a backup.
    is_calm: AtomicBool,
    busy: AtomicUsize,
}

impl Storm {
    async fn node(&self, nth: usize) -> Option<Arc<Node>> {
        self.nodes[nth].read().await.clone()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Lets nothing be changed any more, or again.
    async fn calm(&self, is_calm: bool) {
        self.is_calm.store(is_calm, Ordering::SeqCst);
        until("calm", async || (!is_calm || self.busy.load(Ordering::SeqCst) == 0).then_some(())).await;
    }

    async fn write(&self, writer: usize, mut chance: Rng) {
        let mut mine: Vec<String> = Vec::new();
        for number in 0.. {
            if self.is_over() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.busy.fetch_add(1, Ordering::SeqCst);
            let nth = chance.usize(..3);
            if let Some(node) = self.node(nth).await.filter(|_| !self.is_calm.load(Ordering::SeqCst)) {
                if chance.usize(..4) == 0 && !mine.is_empty() {
                    let token = mine.swap_remove(chance.usize(..mine.len()));
                    // Nobody else touches it, so it is restored, or the outcome is unknown.
                    if node.restore(&token).await.is_ok() {
                        self.restored.lock().unwrap().push(token);
                    }
                } else {
                    let is_kept = chance.usize(..3) > 0;
                    let token = format!("{}-{writer}-{number}", if is_kept { "kept" } else { "passing" });
                    // The client's own clock.
                    let end = crate::clock::Clock::new().earliest() + 3000;
                    match node.revoke(&token, end).await {
                        Ok(_) if is_kept => {
                            self.kept.lock().unwrap().push(Revoked { token, by: nth, at: Instant::now() });
                        }
                        Ok(_) => mine.push(token),
                        Err(_) => {}
                    }
                }
            }
            self.busy.fetch_sub(1, Ordering::SeqCst);
        }
    }

    async fn probe(&self, mut chance: Rng) {
        while !self.is_over() {
            let pick = {
                let all = self.kept.lock().unwrap();
                // The youngest more often.
                let back = if chance.bool() { chance.usize(..all.len().max(1)) } else { chance.usize(..5) };
                all.len().checked_sub(1 + back).map(|nth| all[nth].clone())
            };
            let Some(Revoked { token, by, at }) = pick else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let age = at.elapsed();
            let nth = if age > Duration::from_secs(2) { chance.usize(..3) } else { by };
            if let Some(node) = self.node(nth).await {
                self.check(&node, &token, true, age).await;
                self.check(&node, &format!("innocent-{}", chance.usize(..100_000)), false, age).await;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn check(&self, node: &Node, token: &str, expected: bool, age: Duration) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        match node.is_revoked(token).await {
            Ok(answer) if answer == expected => {}
            Ok(_) => {
                // A loss that was accepted meanwhile takes tokens with it.
                if !expected || self.kept.lock().unwrap().iter().any(|kept| kept.token == token) {
                    self.wrong.lock().unwrap().push(format!("{token} after {age:?}: {node:?}"));
                }
            }
            Err(_) => {
                self.doubts.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes as long as FLEET_STORM says"]
async fn no_revoked_token_passes_in_a_storm() {
    needs_etcd!();
    let of = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let length = Duration::from_secs(of("FLEET_STORM").unwrap_or(60));
    let seed = of("FLEET_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    println!("FLEET_SEED={seed}");
    let mut chance = Rng::with_seed(seed);
    let mut cluster = Cluster::start(3, &[]);
    let storm = Arc::new(Storm::default());
    let settings = |nth: usize, cluster: &Cluster| Settings {
        node: nth.to_string(),
        capacity: 1_000_000,
        patience: Duration::from_secs(5),
        ..settings(&cluster.urls(nth), &[])
    };
    for nth in 0..3 {
        *storm.nodes[nth].write().await = Some(Arc::new(start(settings(nth, &cluster)).await));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (writing, probing) = (Arc::clone(&storm), Arc::clone(&storm));
        let (one, two) = (chance.fork(), chance.fork());
        tasks.spawn(async move { writing.write(writer, one).await });
        tasks.spawn(async move { probing.probe(two).await });
    }
    let (begin, mut faults) = (Instant::now(), std::collections::BTreeMap::<_, usize>::new());
    while begin.elapsed() < length {
        let (member, nth) = (chance.usize(..3), chance.usize(..3));
        let a_while = Duration::from_millis(100 + chance.u64(..3000));
        let modes = [Mode::Silent, Mode::SilentAnswers, Mode::Cut, Mode::Twice, Mode::Late(a_while / 4)];
        let name = match chance.usize(..13) {
            0 => {
                let leader = cluster.leader();
                cluster.kill(leader);
                tokio::time::sleep(a_while).await;
                cluster.restart(leader);
                "the leader is killed"
            }
            1 => {
                cluster.members[member].fill_disk();
                tokio::time::sleep(a_while).await;
                cluster.restart(member);
                "a member's disk is full"
            }
            2 => {
                cluster.pause(member, true);
                tokio::time::sleep(a_while).await;
                cluster.pause(member, false);
                "a member stops for a while"
            }
            3 => {
                cluster.isolate(member, true);
                tokio::time::sleep(a_while).await;
                cluster.isolate(member, false);
                "a member is cut off from the others"
            }
            4..=6 => {
                for (other, of) in cluster.members.iter().enumerate() {
                    if other == member || chance.usize(..3) == 0 {
                        of.clients.set(modes[chance.usize(..modes.len())]);
                    }
                }
                tokio::time::sleep(a_while).await;
                for of in &cluster.members {
                    of.clients.mend();
                }
                "the network to some members"
            }
            7 => {
                *storm.nodes[nth].write().await = None;
                tokio::time::sleep(a_while).await;
                let node = Node::start(settings(nth, &cluster)).await.unwrap();
                *storm.nodes[nth].write().await = Some(Arc::new(node));
                "a node ends and another starts"
            }
            8 => {
                if let Some(node) = storm.node(nth).await {
                    let seconds = [12, -12, 3600, -3600, 86_400, -86_400][chance.usize(..6)];
                    node.shared().clock.shift[0].store(seconds, Ordering::SeqCst);
                    tokio::time::sleep(a_while).await;
                    node.shared().clock.shift[0].store(0, Ordering::SeqCst);
                }
                "a node's clock is set"
            }
            9 => {
                if let Some(node) = storm.node(nth).await {
                    node.shared().clock.shift[1].fetch_add(3, Ordering::SeqCst);
                }
                "a node's machine sleeps"
            }
            10 => {
                cluster.ctl(&["compact", &cluster.revision().to_string()]);
                "a compaction"
            }
            11 => {
                let kept = storm.kept.lock().unwrap().last().cloned();
                // A node that has no word can't tell such a deletion from a restore.
                for node in [storm.node(0).await, storm.node(1).await, storm.node(2).await].into_iter().flatten() {
                    ready(&node).await;
                }
                if let (Some(kept), Some(node)) = (kept, storm.node(nth).await) {
                    let key = format!("revoked/token/{}", node.token_id(&kept.token));
                    if chance.bool() {
                        cluster.ctl(&["put", &key, "x"]);
                        until("it to be mended", async || {
                            let node = storm.node(nth).await?;
                            node.revoke(&kept.token, node.time() + 3000).await.ok()
                        })
                        .await;
                    } else {
                        cluster.ctl(&["del", &key]);
                    }
                }
                "somebody damages or deletes a record"
            }
            _ => {
                storm.calm(true).await;
                let backup = cluster.save("backup");
                let before = storm.kept.lock().unwrap().len();
                storm.calm(false).await;
                tokio::time::sleep(a_while).await;
                storm.calm(true).await;
                let revision = cluster.revision();
                cluster.restore(&backup);
                while chance.bool() && cluster.revision() <= revision {
                    cluster.ctl(&["put", "something", "else"]);
                }
                tokio::time::sleep(Duration::from_secs(3)).await;
                // What was revoked after the backup is lost. Nobody has let it pass until here.
                storm.kept.lock().unwrap().truncate(before);
                storm.restored.lock().unwrap().clear();
                let settings = settings(0, &cluster);
                until("all nodes to go on", async || {
                    _ = accept(&settings).await;
                    for nth in 0..3 {
                        if !storm.node(nth).await.is_none_or(|node| node.is_ready()) {
                            return None;
                        }
                    }
                    Some(())
                })
                .await;
                storm.calm(false).await;
                "a restore from a backup"
            }
        };
        *faults.entry(name).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(chance.u64(..1500))).await;
        assert_eq!(*storm.wrong.lock().unwrap(), Vec::<String>::new(), "FLEET_SEED={seed}, after {name}");
    }
    storm.is_over.store(true, Ordering::SeqCst);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let (kept, restored) = (storm.kept.lock().unwrap().clone(), storm.restored.lock().unwrap().clone());
    for nth in 0..3 {
        let node = storm.node(nth).await.unwrap();
        ready(&node).await;
        for (token, expected) in
            kept.iter().map(|kept| (&kept.token, true)).chain(restored.iter().map(|token| (token, false)))
        {
            assert_eq!(answer(&node, token).await, expected, "{token} at the end");
        }
    }
    assert_eq!(*storm.wrong.lock().unwrap(), Vec::<String>::new(), "FLEET_SEED={seed}");
    let of = |tally: &AtomicUsize| tally.load(Ordering::SeqCst);
    println!("{:?}: {} faults {faults:?}", begin.elapsed(), faults.values().sum::<usize>());
    println!(
        "{} kept and {} restored at the end; {} answers, {} in doubt",
        kept.len(),
        restored.len(),
        of(&storm.answers),
        of(&storm.doubts)
    );
}
