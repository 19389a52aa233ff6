//! A soak: round after round, threads at random work on a table of another layout, size and load, and then a count of
//! every copy in it.
//!
//! `CCF_SOAK_SECONDS=3600 cargo test --release --test soak -- --ignored --nocapture`
//!
//! A violation ends the soak with the seed of its round. `CCF_SOAK_SEED` set to that begins with the same round: the
//! same table and the same keys; only the threads meet in other ways.

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::InsertError;
use support::{Filter, LAYOUTS, Layout, Random, Raw, build};

const THREADS: u64 = 4;

/// Of keys: all threads, each thread, and those that look like another's.
const OWNERS: u64 = THREADS + 2;

/// How long the threads of a round work at most.
const WORK: Duration = Duration::from_millis(300);

/// How many buckets an insert looks at before it gives up: in a table of no more, it finds room wherever there is any.
const SEARCH_BUDGET: usize = 2048;

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak() {
    let setting = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let duration = Duration::from_secs(setting("CCF_SOAK_SECONDS").unwrap_or(60));
    let first = setting("CCF_SOAK_SEED").unwrap_or_else(|| std::hash::RandomState::new().hash_one(0) >> 16);
    println!("{} s, CCF_SOAK_SEED={first}", duration.as_secs());

    let (start, mut minutes) = (Instant::now(), 0);
    let (mut all, mut parts) = (Tally::default(), BTreeMap::<_, Tally>::new());
    for seed in first.. {
        let round = Round::new(seed);
        let tally = round.run();
        all.add(&tally);
        parts.entry(format!("{} by {}, {:?}", round.layout.2, round.layout.3, round.layout.0)).or_default().add(&tally);
        parts.entry(format!("{:?}: {}", round.work, round.size)).or_default().add(&tally);
        if start.elapsed() >= duration {
            break;
        }
        if start.elapsed().as_secs() / 60 > minutes {
            minutes = start.elapsed().as_secs() / 60;
            println!("{minutes:4} min: {all}; no violation");
        }
    }
    for (name, tally) in parts {
        println!("{name:42} {tally}");
    }
    println!("{:42} {all}", "all");
    println!("no violation in {} s", start.elapsed().as_secs());
}

/// What the threads of a round do.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Insert, remove, look up and count keys of their own and twins of permanent keys.
    Churn,
    /// Race to be the one that adds a key.
    AddOnce,
    /// Clear the table amid inserts and removals.
    Clear,
}

/// A table and what is done to it; all of it follows from the seed.
#[derive(Debug)]
struct Round {
    seed: u64,
    layout: Layout,
    size: &'static str,
    work: Work,
    /// How many items there are to be in the table, more or less: from 95 % of its capacity to 5 % more than it has
    /// slots.
    items: u64,
    filter: Filter,
}

impl Round {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let layout = LAYOUTS[seed as usize % LAYOUTS.len()];
        let slots = layout.2 as u64;
        let (size, capacity) = match random.below(12) {
            0..4 => ("a few buckets", 1 + random.below(8 * slots)),
            4..8 => ("hundreds of buckets", slots * (100 + random.below(200))),
            8..11 => ("thousands of buckets", slots * (1100 + random.below(5000))),
            _ => ("200,000 slots", 180_000),
        };
        // Churn takes much longer than the others.
        let work = match random.below(5) {
            0 => Work::Churn,
            1..3 => Work::AddOnce,
            _ => Work::Clear,
        };
        let filter = build(capacity, layout.0, layout.1);
        let (least, most) = (filter.capacity() as u64 * 95 / 100, filter.slots() as u64 * 105 / 100);
        Self { seed, layout, size, work, items: least + random.below(most - least + 1), filter }
    }

    fn run(&self) -> Tally {
        let tally = match self.work {
            Work::Churn => self.churn(),
            Work::AddOnce => self.add_once(),
            Work::Clear => self.clear(),
        };
        Tally { rounds: 1, ..tally }
    }

    /// The keys of an owner: 0 for those of all, 1 to [`THREADS`] for those of a thread, and one more for look-alikes.
    /// No two are the same.
    fn key(&self, owner: u64, index: u64) -> Raw {
        Raw(Random(self.seed.rotate_left(32) ^ owner << 40 ^ index).next())
    }

    #[track_caller]
    fn check(&self, holds: bool, violation: &str) {
        assert!(holds, "{violation}. CCF_SOAK_SEED={} begins with this round: {self:?}", self.seed);
    }

    #[track_caller]
    fn check_present(&self, key: Raw, tally: &mut Tally) {
        tally.lookups += 1;
        self.check(self.filter.contains(&key), "a present key was missed");
    }

    /// Puts so many keys in, or as many as there is room for.
    fn fill(&self, items: u64, tally: &mut Tally) -> Vec<Raw> {
        let keys = (0..items).map(|index| self.key(0, index));
        keys.take_while(|key| tally.taken(self.filter.insert(key)).is_some()).collect()
    }

    /// Keys that the filter cannot tell apart from this one, as far as a search of 100,000 meets any. Half of them have
    /// its two buckets the other way round, and so carry its copy to and fro when they come and go.
    fn alike(&self, key: Raw) -> Vec<Raw> {
        let alone = self.another_filter();
        alone.insert(&key).expect("it is empty");
        (0..100_000).map(|index| self.key(OWNERS - 1, index)).filter(|other| alone.contains(other)).collect()
    }

    /// An empty filter of the same layout and size.
    fn another_filter(&self) -> Filter {
        build(self.filter.capacity() as u64, self.layout.0, self.layout.1)
    }

    /// Runs `work` on all threads; returns the copies that it says it has added, of all threads together.
    fn on_all_threads(&self, tally: &mut Tally, work: impl Fn(u64, &mut Tally) -> Vec<Raw> + Sync) -> Vec<Raw> {
        let begin = Barrier::new(THREADS as usize);
        let on_one = &|id| {
            let mut tally = Tally::default();
            begin.wait();
            (work(id, &mut tally), tally)
        };
        let ended: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (1..=THREADS).map(|id| scope.spawn(move || on_one(id))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no violation")).collect()
        });
        ended.iter().for_each(|(_, of_one)| tally.add(of_one));
        ended.into_iter().flat_map(|(added, _)| added).collect()
    }

    fn churn(&self) -> Tally {
        let mut tally = Tally::default();
        let share = Random(!self.seed).below(50) + 45;
        let permanent = self.fill(self.items * share / 100, &mut tally);
        let twins: Vec<_> =
            permanent.iter().take(8).flat_map(|&key| self.alike(key)).chain(permanent.clone()).collect();
        // How many copies a thread has in the table, on average.
        let quota = (self.items - permanent.len() as u64) / THREADS + 1;
        let end = Instant::now() + WORK;
        let held = self.on_all_threads(&mut tally, |id, tally| {
            let mut random = Random(self.seed ^ id << 56);
            let mut held = Vec::new();
            while Instant::now() < end {
                if held.len() as u64 <= random.below(2 * quota) {
                    let twin = pick(&twins, &mut random).filter(|_| random.below(4) == 0);
                    let key = twin.unwrap_or_else(|| self.key(id, random.below(2 * quota)));
                    held.extend(tally.taken(self.filter.insert(&key)).map(|()| key));
                } else {
                    let key = held.swap_remove(random.below(held.len() as u64) as usize);
                    tally.removals += 1;
                    self.check(self.filter.remove(&key), "a present key was not removed");
                }
                let present = pick(&held, &mut random);
                for key in pick(&permanent, &mut random).into_iter().chain(present) {
                    self.check_present(key, tally);
                }
                if let Some(key) = present.filter(|_| random.below(32) == 0) {
                    let known = held.iter().filter(|&&held| held == key).count();
                    let count = self.filter.count(&key);
                    tally.counts += 1;
                    self.check(count >= known, "copies were not counted");
                    self.check(
                        count <= 2 * self.filter.slots_per_bucket(),
                        "more copies were counted than there is room",
                    );
                }
            }
            held
        });
        self.take_out_every_copy(&[permanent, held].concat(), &mut tally);
        tally
    }

    fn add_once(&self) -> Tally {
        let mut tally = Tally::default();
        let contested = self.items / 2;
        let mut permanent: Vec<_> = (0..contested).map(|index| self.key(0, index)).collect();
        permanent.retain(|key| tally.taken(self.filter.insert_if_absent(key)).unwrap_or(false));
        let end = Instant::now() + WORK;
        let won = self.on_all_threads(&mut tally, |id, tally| {
            let mut random = Random(self.seed ^ id << 56);
            let mut won = Vec::new();
            for key in (contested..self.items).map(|index| self.key(0, index)).take_while(|_| Instant::now() < end) {
                if let Some(added) = tally.taken(self.filter.insert_if_absent(&key)) {
                    self.check_present(key, tally);
                    won.extend(added.then_some(key));
                }
                for key in pick(&permanent, &mut random).into_iter().chain(pick(&won, &mut random)) {
                    self.check_present(key, tally);
                }
            }
            won
        });
        let copies = [permanent, won].concat();
        self.check(
            copies.iter().map(|key| key.0).collect::<HashSet<_>>().len() == copies.len(),
            "a key was added twice",
        );
        self.check(copies.iter().all(|key| self.filter.count(key) == 1), "a key was added in spite of another like it");
        self.take_out_every_copy(&copies, &mut tally);
        tally
    }

    fn clear(&self) -> Tally {
        let mut tally = Tally::default();
        let old = self.fill(self.items, &mut tally);
        // Which of these were added after the sweep had passed is open.
        let fresh = self.on_all_threads(&mut tally, |id, tally| {
            let mut fresh = Vec::new();
            match id {
                1 => self.filter.clear(),
                2 => old.iter().for_each(|key| {
                    tally.removals += 1;
                    self.filter.remove(key);
                }),
                _ => {
                    let keys = (0..self.items / 4).map(|index| self.key(id, index));
                    fresh.extend(keys.filter(|key| tally.taken(self.filter.insert(key)).is_some()));
                }
            }
            fresh
        });
        let left = self.filter.len();
        let removed = fresh.iter().filter(|key| self.filter.remove(key)).count();
        tally.removals += fresh.len() as u64;
        self.check(removed == left, "the length is wrong, or an old key outlived the clearing");
        self.check_empty(&mut tally);
        tally
    }

    /// The end of a round: whether the table, quiet by now, holds these copies and nothing else.
    fn take_out_every_copy(&self, copies: &[Raw], tally: &mut Tally) {
        self.check(self.filter.len() == copies.len(), "the length is wrong");
        // The same, put in by one thread alone. In what order makes no difference, but to a search that gives up.
        let model = self.another_filter();
        let all_fit = copies.iter().all(|key| model.insert(key).is_ok());
        let searches_are_exact = self.filter.slots() <= SEARCH_BUDGET * self.filter.slots_per_bucket();
        self.check(all_fit || !searches_are_exact, "copies that fitted together do not fit in another order");
        let mut known = HashMap::new();
        copies.iter().for_each(|key| *known.entry(key.0).or_insert(0) += 1);
        for (&key, &known) in &known {
            let count = self.filter.count(&Raw(key));
            self.check(count >= known, "a copy was lost");
            self.check(!all_fit || count == model.count(&Raw(key)), "there are copies that nobody added");
        }
        self.check(copies.iter().all(|key| self.filter.remove(key)), "a copy was lost");
        tally.counts += known.len() as u64;
        tally.removals += copies.len() as u64;
        self.check_empty(tally);
    }

    /// Asks for all keys that the round may have used, and for others, up to a million in all.
    fn check_empty(&self, tally: &mut Tally) {
        self.check(self.filter.is_empty(), "the length is not 0 when all copies are removed");
        let each = (50 * self.items).min(1_000_000 / OWNERS).max(2 * self.items + 2);
        for owner in 0..OWNERS {
            let found = (0..each).any(|index| self.filter.contains(&self.key(owner, index)));
            self.check(!found, "there is a copy that nobody knows of");
        }
        tally.lookups += OWNERS * each;
    }
}

fn pick(keys: &[Raw], random: &mut Random) -> Option<Raw> {
    (!keys.is_empty()).then(|| keys[random.below(keys.len() as u64) as usize])
}

/// Operations that were tried, and rounds.
#[derive(Default)]
struct Tally {
    rounds: u64,
    lookups: u64,
    inserts: u64,
    /// Of the inserts.
    refused: u64,
    removals: u64,
    counts: u64,
}

impl Tally {
    /// Counts an insert; what it returned, unless it was refused.
    fn taken<T>(&mut self, result: Result<T, InsertError>) -> Option<T> {
        self.inserts += 1;
        self.refused += u64::from(result.is_err());
        result.ok()
    }

    fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.lookups += other.lookups;
        self.inserts += other.inserts;
        self.refused += other.refused;
        self.removals += other.removals;
        self.counts += other.counts;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, lookups, inserts, refused, removals, counts } = self;
        let operations = lookups + inserts + removals + counts;
        write!(
            f,
            "{rounds:6} rounds, {operations:12} operations: {lookups} lookups, {inserts} inserts ({refused} refused), \
             {removals} removals, {counts} counts"
        )
    }
}
