//! A storm of changes, and probers that watch which tokens pass meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::nodes::{Fleet, STALE_AFTER};
use crate::support::{Chance, Client, now, wait_for};

/// A token whose revocation was acknowledged, and that is never restored.
#[derive(Clone)]
struct Acknowledged {
    token: String,
    /// The node that acknowledged it.
    by: usize,
    at: Instant,
}

#[derive(Default)]
pub(crate) struct Storm {
    acknowledged: Mutex<Vec<Acknowledged>>,
    /// Tokens whose restoring was acknowledged, and that are not revoked again.
    restored: Mutex<Vec<String>>,
    violations: Mutex<Vec<String>>,
    probes: AtomicU64,
    /// How long a writer rests after each change.
    rest: Duration,
    is_over: AtomicBool,
}

impl Storm {
    /// Runs writers and probers on all nodes while `happening` runs. No token may pass that must not. Afterwards
    /// all nodes must be ready and alike.
    #[track_caller]
    pub(crate) fn rage(fleet: &Fleet, chance: &mut Chance, happening: impl FnOnce(&Self)) {
        Self::rage_slowly(fleet, chance, Duration::ZERO, happening);
    }

    /// The same with writers that rest, so that a long storm does not fill the fleet.
    #[track_caller]
    pub(crate) fn rage_slowly(fleet: &Fleet, chance: &mut Chance, rest: Duration, happening: impl FnOnce(&Self)) {
        let storm = Self::blow(fleet, chance, rest, happening);
        assert_eq!(*storm.violations.lock().unwrap(), Vec::<String>::new());
        fleet.wait_until_alike();
        storm.check(fleet);
    }

    /// The violations that the probers found.
    #[track_caller]
    pub(crate) fn violations(fleet: &Fleet, chance: &mut Chance, happening: impl FnOnce(&Self)) -> Vec<String> {
        Self::blow(fleet, chance, Duration::ZERO, happening).violations.into_inner().unwrap()
    }

    fn blow(fleet: &Fleet, chance: &mut Chance, rest: Duration, happening: impl FnOnce(&Self)) -> Self {
        let storm = Self { rest, ..Self::default() };
        thread::scope(|scope| {
            for writer in 0..3 {
                let (storm, chance) = (&storm, chance.branch());
                scope.spawn(move || storm.write(fleet, writer, chance));
            }
            for _ in 0..2 {
                let (storm, chance) = (&storm, chance.branch());
                scope.spawn(move || storm.probe(fleet, chance));
            }
            // Also if it panics. Otherwise the test would hang, and nobody would see why.
            let end = End(&storm);
            storm.wait_for_more(20);
            happening(&storm);
            storm.wait_for_more(20);
            drop(end);
        });
        storm
    }

    /// Waits until a prober has found a violation.
    pub(crate) fn wait_for_violation(&self) {
        wait_for("a violation", || (!self.violations.lock().unwrap().is_empty()).then_some(()));
    }

    /// Waits until this many more revocations were acknowledged.
    pub(crate) fn wait_for_more(&self, number: usize) {
        let number = self.acknowledged.lock().unwrap().len() + number;
        wait_for("acknowledged revocations", || (self.acknowledged.lock().unwrap().len() >= number).then_some(()));
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn write(&self, fleet: &Fleet, writer: usize, mut chance: Chance) {
        // A node that sleeps holds up a writer only briefly. The outcome of the change is unknown then.
        let client = Client::new(Duration::from_secs(1));
        let mut mine: Vec<String> = Vec::new();
        for number in 0.. {
            if self.is_over() {
                return;
            }
            thread::sleep(self.rest);
            let node = chance.below(fleet.nodes.len());
            let address = fleet.address(node);
            if chance.below(4) == 0 && !mine.is_empty() {
                let token = mine.swap_remove(chance.below(mine.len()));
                let answer = client.ask("DELETE", &format!("{address}/revoked/{token}"), &[], "");
                // 404 would be possible if another process had done this before; there is none here.
                match answer.map(|answer| answer.status) {
                    Some(204) => self.restored.lock().unwrap().push(token),
                    Some(503) | None => {} // Unknown.
                    other => self.violation(format!("{other:?} for restoring {token} on node {node}")),
                }
                continue;
            }
            // Tokens that are restored have another name, so that probers leave them alone.
            let is_kept = chance.below(3) > 0;
            let token = format!("{}-{writer}-{number}", if is_kept { "kept" } else { "passing" });
            let url = format!("{address}/revoked/{token}?exp={}", now() + 3000);
            match client.ask("PUT", &url, &[], "").map(|answer| answer.status) {
                Some(201) if is_kept => {
                    self.acknowledged.lock().unwrap().push(Acknowledged { token, by: node, at: Instant::now() });
                }
                Some(201) => mine.push(token),
                Some(503) | None => thread::sleep(Duration::from_millis(5)),
                other => {
                    self.violation(format!("{other:?} for revoking {token} on node {node}, which nobody else does"))
                }
            }
        }
    }

    /// Asks nodes about tokens that they must refuse.
    fn probe(&self, fleet: &Fleet, mut chance: Chance) {
        let client = Client::new(Duration::from_secs(2));
        while !self.is_over() {
            let node = chance.below(fleet.nodes.len());
            let pick = {
                let all = self.acknowledged.lock().unwrap();
                // The youngest ones more often.
                let place =
                    if chance.below(2) == 0 { chance.below(all.len().max(1)) } else { all.len().saturating_sub(1) };
                all.get(place).cloned()
            };
            let Some(Acknowledged { token, by, at }) = pick else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            // Another node need not know it before a lease has passed.
            let (node, address) =
                if at.elapsed() > STALE_AFTER { (node, fleet.address(node)) } else { (by, fleet.address(by)) };
            let age = at.elapsed();
            self.probes.fetch_add(1, Ordering::Relaxed);
            if client.protected(&address, &token) == Some(200) {
                let took = at.elapsed() - age;
                let (again, health) = (client.protected(&address, &token), fleet.health(node));
                self.violation(format!(
                    "{token}, acknowledged by node {by}, has passed on node {node} after {age:?} and {took:?}; then \
                     {again:?} at {}, {health:?}",
                    now()
                ));
            }
        }
    }

    fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    /// Asserts that each node refuses everything that was revoked and lets pass everything that was restored. All
    /// nodes are ready.
    #[track_caller]
    fn check(&self, fleet: &Fleet) {
        let client = Client::new(Duration::from_secs(30));
        let (acknowledged, restored) = (self.acknowledged.lock().unwrap(), self.restored.lock().unwrap());
        for node in 0..fleet.nodes.len() {
            let address = fleet.address(node);
            for Acknowledged { token, .. } in acknowledged.iter() {
                assert_eq!(client.protected(&address, token), Some(401), "{token} on node {node}");
            }
            for token in restored.iter() {
                assert_eq!(client.protected(&address, token), Some(200), "{token} on node {node}");
            }
        }
        let probes = self.probes.load(Ordering::Relaxed);
        println!("{} revoked, {} restored, {probes} probes", acknowledged.len(), restored.len());
        assert!(probes > 0);
    }
}

struct End<'a>(&'a Storm);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}
