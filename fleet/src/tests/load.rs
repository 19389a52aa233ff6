//! Changes of the set, over three nodes, and a checker of all answers.

use std::sync::Mutex;

use fastrand::Rng;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use super::*;

/// A token whose revocation was acknowledged.
#[derive(Clone)]
pub(super) struct Revoked {
    pub(super) token: String,
    by: usize,
    at: Instant,
}

pub(super) struct Shared {
    pub(super) nodes: [RwLock<Option<Arc<Node>>>; 3],
    pub(super) kept: Mutex<Vec<Revoked>>,
    pub(super) restored: Mutex<Vec<String>>,
    pub(super) wrong: Mutex<Vec<String>>,
    /// How many were asked for, and how many of these the node could not tell.
    answers: [AtomicUsize; 2],
    is_over: AtomicBool,
    /// Writers hold it to read; who holds it to write stops them.
    pub(super) changing: RwLock<()>,
}

/// Four tasks that revoke and restore tokens, and four that ask about them.
pub(super) struct Load {
    pub(super) shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Load {
    pub(super) fn start(nodes: [Arc<Node>; 3], seed: u64) -> Self {
        println!("FLEET_SEED={seed}");
        let shared = Arc::new(Shared {
            nodes: nodes.map(|node| RwLock::new(Some(node))),
            kept: Mutex::default(),
            restored: Mutex::default(),
            wrong: Mutex::default(),
            answers: Default::default(),
            is_over: AtomicBool::new(false),
            changing: RwLock::default(),
        });
        let (mut chance, mut tasks) = (Rng::with_seed(seed), JoinSet::new());
        for writer in 0..4 {
            tasks.spawn(Arc::clone(&shared).write(writer, chance.fork()));
            tasks.spawn(Arc::clone(&shared).probe(chance.fork()));
        }
        Self { shared, tasks }
    }

    /// Waits until some more changes were acknowledged.
    pub(super) async fn more(&self) {
        let kept = || self.shared.kept.lock().unwrap().len();
        let wanted = kept() + 10;
        until("changes", async || (kept() >= wanted).then_some(())).await;
    }

    /// Stops, and checks that all nodes refuse everything that was acknowledged.
    pub(super) async fn check(self) {
        let shared = self.shared;
        shared.is_over.store(true, Ordering::SeqCst);
        self.tasks.join_all().await;
        let (kept, restored) = (shared.kept.lock().unwrap().clone(), shared.restored.lock().unwrap().clone());
        let check = async |nth| {
            let node = shared.node(nth).await.unwrap();
            ready(&node).await;
            for Revoked { token, .. } in &kept {
                assert!(answer(&node, token).await, "{token} at the end");
            }
            for token in &restored {
                assert!(!answer(&node, token).await, "{token} at the end");
            }
        };
        tokio::join!(check(0), check(1), check(2));
        assert_eq!(*shared.wrong.lock().unwrap(), Vec::<String>::new());
        let (kept, restored) = (kept.len(), restored.len());
        println!("{kept} kept and {restored} restored at the end; answers, and in doubt: {:?}", shared.answers);
    }
}

impl Shared {
    pub(super) async fn node(&self, nth: usize) -> Option<Arc<Node>> {
        self.nodes[nth].read().await.clone()
    }

    async fn write(self: Arc<Self>, writer: usize, mut chance: Rng) {
        let mut mine: Vec<String> = Vec::new();
        for number in 0.. {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let _changing = self.changing.read().await;
            let nth = chance.usize(..3);
            let Some(node) = self.node(nth).await else { continue };
            if chance.usize(..4) == 0 && !mine.is_empty() {
                let token = mine.swap_remove(chance.usize(..mine.len()));
                // Nobody else touches it, so it is restored, or the outcome is unknown.
                if node.restore(&token).await.is_ok() {
                    self.restored.lock().unwrap().push(token);
                }
                continue;
            }
            let is_kept = chance.usize(..3) > 0;
            let token = format!("{}-{writer}-{number}", if is_kept { "kept" } else { "passing" });
            // The client's own clock.
            match node.revoke(&token, Clock::new().earliest() + 3000).await {
                Ok(_) if is_kept => self.kept.lock().unwrap().push(Revoked { token, by: nth, at: Instant::now() }),
                Ok(_) => mine.push(token),
                Err(_) => {}
            }
        }
    }

    async fn probe(self: Arc<Self>, mut chance: Rng) {
        while !self.is_over.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let pick = {
                let all = self.kept.lock().unwrap();
                // The youngest more often.
                let back = if chance.bool() { chance.usize(..all.len().max(1)) } else { chance.usize(..5) };
                all.len().checked_sub(1 + back).map(|nth| all[nth].clone())
            };
            let Some(Revoked { token, by, at }) = pick else { continue };
            let age = at.elapsed();
            let nth = if age > Duration::from_secs(2) { chance.usize(..3) } else { by };
            if let Some(node) = self.node(nth).await {
                self.ask(&node, &token, true, age).await;
                self.ask(&node, &format!("innocent-{}", chance.usize(..100_000)), false, age).await;
            }
        }
    }

    async fn ask(&self, node: &Node, token: &str, expected: bool, age: Duration) {
        self.answers[0].fetch_add(1, Ordering::Relaxed);
        match node.is_revoked(token).await {
            // A loss that was accepted meanwhile takes tokens with it.
            Ok(answer) if answer != expected => {
                if !expected || self.kept.lock().unwrap().iter().any(|kept| kept.token == token) {
                    self.wrong.lock().unwrap().push(format!("{token} after {age:?}: {node:?}"));
                }
            }
            Ok(_) => {}
            Err(_) => _ = self.answers[1].fetch_add(1, Ordering::Relaxed),
        }
    }
}
