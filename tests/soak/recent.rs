//! The soak of a `RecentCuckooFilter`: threads bring keys of their own, of which each finds those that must be there, while
//! others bring theirs, renew and remove, the clock moves on, and the filter is saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[cfg(feature = "snapshot")]
use concurrent_cuckoo_filter::Loader;
use concurrent_cuckoo_filter::{RecentCuckooFilter, Window};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::kinds::Hasher;
use crate::support::{Ends, Raw, scattered};

type Recent = RecentCuckooFilter<Raw, Hasher>;

/// A filter, and what all threads know of it.
#[derive(Debug)]
struct Round {
    seed: u64,
    filter: Recent,
    threads: u64,
    /// How many calls have returned that may have counted a key, and how many have added one.
    counted: AtomicU64,
    added: AtomicU64,
    removed: AtomicU64,
    /// The filter's time, in milliseconds.
    time: Arc<AtomicU64>,
    /// Whether more keys come than there is room for.
    floods: bool,
}

/// A key of a thread that is among the recent ones.
#[derive(Clone, Copy, Debug)]
struct Own {
    key: Raw,
    /// How many keys were counted, and what time it was, before it came.
    counted: u64,
    time: u64,
}

impl Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let rate = [0.04, 0.001, 2e-5, 1e-7][random.random_range(0..4)];
        let tolerance = if random.random() && rate > 1e-6 && rate < 0.01 { 0.04 } else { 0.08 };
        let builder = Recent::builder_with_hasher(Hasher::default()).false_positive_rate(rate).tolerance(tolerance);
        let keys = [3, 20, 300, 5000][random.random_range(0..4)] + random.random_range(0..20);
        let floods = random.random_ratio(1, 4);
        let builder = match random.random() {
            false => builder.last(keys),
            // In a second, threads bring far fewer keys than there is room for, or far more.
            true => builder.within(Duration::from_secs(1), if floods { keys } else { 400_000 }),
        };
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        let builder = builder.clock(move || Duration::from_millis(clock.load(SeqCst)));
        let filter = builder.build().expect("valid settings");
        let [counted, added, removed] = [0; 3].map(AtomicU64::new);
        Self { seed, filter, threads: random.random_range(2..=4), counted, added, removed, time, floods }
    }

    /// Whether the key must still be there.
    fn must_have(&self, own: &Own) -> bool {
        match self.filter.window() {
            // Each other thread may have counted a key and not returned, when this one came and now.
            Window::Keys { at_least, .. } => self.counted.load(SeqCst) - own.counted + 2 * self.threads < at_least,
            Window::Time { at_least, .. } => {
                !self.floods && Duration::from_millis(self.time.load(SeqCst) - own.time) <= at_least
            }
            window => panic!("{window}"),
        }
    }

    fn work(&self, id: u64, steps: u64) {
        let mut random = SmallRng::seed_from_u64(self.seed ^ (id << 48));
        let mut own: Vec<Own> = Vec::new();
        for step in 0..steps {
            let (counted, time) = (self.counted.load(SeqCst), self.time.load(SeqCst));
            let insert = |key: Raw, renews: bool| {
                let is_new = if renews { self.filter.insert_or_renew(&key) } else { self.filter.insert(&key) };
                self.counted.fetch_add(u64::from(is_new || renews), SeqCst);
                self.added.fetch_add(u64::from(is_new), SeqCst);
                is_new
            };
            match random.random_range(0..16) {
                // Keys that all threads bring.
                0..3 => _ = insert(scattered(1 << 60 | random.random_range(0..2000)), random.random()),
                3 if !own.is_empty() => {
                    let nth = random.random_range(0..own.len());
                    let must_have = self.must_have(&own[nth]);
                    let is_new = insert(own[nth].key, true);
                    assert!(!(is_new && must_have && self.must_have(&own[nth])), "{:?} was new again", own[nth]);
                    own[nth] = Own { counted, time, ..own[nth] };
                }
                4 if self.filter.plan().max_false_positive_rate < 1e-6 && !own.is_empty() => {
                    // Where keys are not taken for others, they may be removed.
                    let Own { key, .. } = own.swap_remove(random.random_range(0..own.len()));
                    self.removed.fetch_add(u64::from(self.filter.remove(&key)), SeqCst);
                }
                5 => {
                    let keys: Vec<_> = own.iter().map(|own| own.key).collect();
                    let mut found = Vec::new();
                    self.filter.contains_batch(&keys, &mut found);
                    for (own, found) in own.iter().zip(found) {
                        assert!(found || !self.must_have(own), "{own:?} is gone");
                    }
                }
                #[cfg(feature = "snapshot")]
                6 if step % 64 == 0 => self.check_saved(&own),
                _ => {
                    let key = scattered(id << 48 | step);
                    if insert(key, false) {
                        own.push(Own { key, counted, time });
                    }
                }
            }
            if let Some(some) = own.get(random.random_range(0..own.len().max(1))) {
                assert!(self.filter.contains(&some.key) || !self.must_have(some), "{some:?} is gone");
            }
            if own.len() > 500 {
                own.retain(|own| self.must_have(own));
                own.truncate(400);
            }
            if id == 0 && step % 8 == 0 {
                self.time.fetch_add(random.random_range(0..20), SeqCst);
            }
        }
    }

    /// What must be in the filter when a save begins, and still must be when it has ended, is in the snapshot.
    #[cfg(feature = "snapshot")]
    fn check_saved(&self, own: &[Own]) {
        let mut bytes = Vec::new();
        self.filter.save(&mut bytes).expect("there is memory");
        let loader = Loader::<Recent, _>::new(Hasher::default(), usize::MAX).clock(|| Duration::ZERO);
        let loaded = loader.load(&bytes[..]).expect("it was just saved").filter;
        for own in own.iter().filter(|own| self.must_have(own)) {
            assert!(loaded.contains(&own.key), "{own:?} is not in the snapshot");
        }
        assert_eq!(loaded.window(), self.filter.window());
    }

    fn run(&self, steps: u64) {
        let failed = AtomicBool::new(false);
        thread::scope(|threads| {
            for id in 0..self.threads {
                let failed = &failed;
                threads.spawn(move || {
                    let ends = Ends(failed);
                    self.work(id, steps);
                    std::mem::forget(ends);
                });
            }
        });
        assert!(!failed.load(SeqCst));
        let (stats, filter) = (self.filter.stats(), &self.filter);
        let recent = stats.recent.as_ref().expect("a filter of recent keys");
        let left = recent.expired + recent.evicted + self.removed.load(SeqCst) + filter.len() as u64;
        assert_eq!(self.added.load(SeqCst), left, "each key that came is there, or has left: {stats:?}");
        assert_eq!(stats.inserts_failed, 0);
        if !self.floods {
            assert_eq!((recent.evicted, recent.evicted_early_by), (0, 0.0), "there is room for all: {stats:?}");
        }
        let most = match filter.window() {
            Window::Keys { at_most, .. } => at_most + self.threads * 300,
            _ => filter.plan().slots as u64,
        };
        assert!(filter.recent_len() as u64 <= most && filter.recent_len() <= filter.len());
        self.time.fetch_add(10_000, SeqCst);
        if let Window::Time { .. } = filter.window() {
            assert_eq!(filter.recent_len(), 0);
        }
    }
}

fn run(seed: u64, steps: u64) {
    let round = Round::new(seed);
    println!("CCF_SOAK_SEED={seed}: {}", round.filter.plan());
    round.run(steps);
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// A few short rounds, which are the same each time, but for the interleaving of threads.
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_sample_of_recent_keys() {
    let first = setting("CCF_SOAK_SEED").unwrap_or(0);
    (first..first + 12).for_each(|seed| run(seed, 5_000));
}

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_recent() {
    let seconds = setting("CCF_SOAK_SECONDS").unwrap_or(60);
    let first = setting("CCF_SOAK_SEED").unwrap_or(1);
    let start = std::time::Instant::now();
    let rounds =
        (first..).take_while(|_| start.elapsed().as_secs() < seconds).inspect(|&seed| run(seed, 50_000)).count();
    println!("no violation in {rounds} rounds");
}
