//! A storm of random faults, and a checker of all answers. `FLEET_STORM=SECONDS` says for how long; `FLEET_SEED` repeats one.

use fastrand::Rng;

use super::*;
use crate::accept::accept;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes as long as FLEET_STORM says"]
async fn no_revoked_token_passes_in_a_storm() {
    let of = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let length = Duration::from_secs(of("FLEET_STORM").unwrap_or(60));
    let seed = of("FLEET_SEED").unwrap_or_else(|| getrandom::u64().unwrap());
    let mut chance = Rng::with_seed(seed);
    let Some(mut cluster) = Cluster::start(3, &[]) else { return };
    let settings = |nth: usize, cluster: &Cluster| Settings {
        node: nth.to_string(),
        capacity: 1_000_000,
        patience: Duration::from_secs(5),
        ..settings(&cluster.urls(nth))
    };
    let node = async |nth| Arc::new(start(settings(nth, &cluster)).await);
    let storm = Load::start([node(0).await, node(1).await, node(2).await], seed);
    let (begin, mut faults, mut times) = (Instant::now(), std::collections::BTreeMap::<_, usize>::new(), Vec::new());
    while begin.elapsed() < length {
        let (member, nth) = (chance.usize(..3), chance.usize(..3));
        let a_while = Duration::from_millis(100 + chance.u64(..3000));
        let modes = [Mode::Silent, Mode::SilentAnswers, Mode::Cut, Mode::Twice, Mode::Late(a_while / 4)];
        let name = match chance.usize(..14) {
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
                *storm.shared.nodes[nth].write().await = None;
                tokio::time::sleep(a_while).await;
                let node = Node::start(settings(nth, &cluster)).await.unwrap();
                *storm.shared.nodes[nth].write().await = Some(Arc::new(node));
                "a node ends and another starts"
            }
            8 => {
                if let Some(node) = storm.shared.node(nth).await {
                    let seconds = [12, -12, 3600, -3600, 86_400, -86_400][chance.usize(..6)];
                    node.shared().clock.shift[0].store(seconds, Ordering::SeqCst);
                    tokio::time::sleep(a_while).await;
                    node.shared().clock.shift[0].store(0, Ordering::SeqCst);
                }
                "a node's clock is set"
            }
            9 => {
                if let Some(node) = storm.shared.node(nth).await {
                    node.shared().clock.shift[1].fetch_add(3, Ordering::SeqCst);
                }
                "a node's machine sleeps"
            }
            10 => {
                cluster.ctl(&["compact", &cluster.revision().to_string()]);
                "a compaction"
            }
            11 => {
                let kept = storm.shared.kept.lock().unwrap().last().cloned();
                // A node that does not follow yet can't tell such a deletion from a record that was never there.
                let mut nodes = Vec::new();
                for nth in 0..3 {
                    nodes.extend(storm.shared.node(nth).await);
                }
                for node in &nodes {
                    ready(node).await;
                }
                if let (Some(kept), Some(node)) = (kept, storm.shared.node(nth).await) {
                    let key = key(&node, &kept.token);
                    if chance.bool() {
                        cluster.ctl(&["put", &key, "x"])
                    } else {
                        cluster.ctl(&["del", &key])
                    };
                    // An administrator revokes it again.
                    tokio::time::sleep(a_while / 4).await;
                    until("it to be revoked again", async || {
                        node.revoke(&kept.token, Clock::new().earliest() + 3000).await.ok()
                    })
                    .await;
                    answer(&node, &kept.token).await;
                }
                "a client outside the fleet damages or deletes a record"
            }
            12 => {
                let kept = storm.shared.kept.lock().unwrap().last().cloned();
                if let (Some(kept), Some(node)) = (kept, storm.shared.node(nth).await) {
                    let key = key(&node, &kept.token);
                    // It is written back as it was, which is not what it is now.
                    let value = cluster.read(&key);
                    cluster.write(&key, &value);
                    tokio::time::sleep(a_while / 4).await;
                    until("it to be revoked again", async || {
                        node.revoke(&kept.token, Clock::new().earliest() + 3000).await.ok()
                    })
                    .await;
                }
                "a client outside the fleet writes an old record back"
            }
            _ => {
                let calm = storm.shared.changing.write().await;
                let backup = cluster.save("backup");
                let before = storm.shared.kept.lock().unwrap().len();
                drop(calm);
                tokio::time::sleep(a_while).await;
                let calm = storm.shared.changing.write().await;
                let revision = cluster.revision();
                cluster.restore(&backup);
                while chance.bool() && cluster.revision() <= revision {
                    cluster.ctl(&["put", "something", "else"]);
                }
                tokio::time::sleep(Duration::from_secs(3)).await;
                // What was revoked after the backup is lost. Nobody has let it pass until here.
                storm.shared.kept.lock().unwrap().truncate(before);
                storm.shared.restored.lock().unwrap().clear();
                let settings = settings(0, &cluster);
                until("all nodes to go on", async || {
                    _ = accept(&settings).await;
                    for nth in 0..3 {
                        if !storm.shared.node(nth).await.is_none_or(|node| node.is_ready()) {
                            return None;
                        }
                    }
                    Some(())
                })
                .await;
                drop(calm);
                "a restore from a backup"
            }
        };
        *faults.entry(name).or_default() += 1;
        println!("{:?}: {name}", begin.elapsed());
        if chance.bool() {
            let over = Instant::now();
            for nth in 0..3 {
                ready(&storm.shared.node(nth).await.unwrap()).await;
            }
            times.push(over.elapsed());
        } else {
            tokio::time::sleep(Duration::from_millis(chance.u64(..1500))).await;
        }
        assert_eq!(*storm.shared.wrong.lock().unwrap(), Vec::<String>::new(), "FLEET_SEED={seed}, after {name}");
    }
    times.sort();
    println!("{:?}: {} faults {faults:?}", begin.elapsed(), faults.values().sum::<usize>());
    println!("all nodes ready after a fault: median {:?}, at most {:?}", times.get(times.len() / 2), times.last());
    storm.check().await;
}
