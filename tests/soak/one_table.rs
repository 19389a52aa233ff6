//! The soak of one table: of every layout, from one bucket to 200,000 slots, and up to overfull.

use std::collections::HashMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::removable::Ground;
use crate::rounds::{self, THREADS, Tally, on_all_threads, pick};
use crate::support::{Filter, LAYOUTS, Layout, Raw, build};

/// How many buckets an insert reads before it gives up. In a table of at most this many buckets, it finds room if
/// there is any.
const SEARCH_BUDGET: usize = 2048;

/// What the threads of a round do.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Insert, remove, look up and count, with keys of their own and twins of permanent keys.
    Churn,
    /// Race to be the first to add a key.
    AddOnce,
    /// Clear the table during inserts and removals.
    Clear,
}

/// A table and what is done to it.
#[derive(Debug)]
pub(crate) struct Round {
    layout: Layout,
    size: &'static str,
    work: Work,
    /// From 95 % of the capacity of the table to 5 % more items than it has slots.
    ground: Ground<Filter>,
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let layout = LAYOUTS[(seed % LAYOUTS.len() as u64) as usize];
        let slots = layout.2 as u64;
        let (size, capacity) = match random.random_range(0..12) {
            0..4 => ("a few buckets", random.random_range(1..=8 * slots)),
            4..8 => ("hundreds of buckets", slots * random.random_range(100..300)),
            8..11 => ("thousands of buckets", slots * random.random_range(1100..6100)),
            _ => ("200,000 slots", 180_000),
        };
        // Churn takes much longer than the other kinds of work.
        let work = match random.random_range(0..5) {
            0 => Work::Churn,
            1..3 => Work::AddOnce,
            _ => Work::Clear,
        };
        let filter = build(capacity, layout.0, layout.1);
        let (least, most) = (filter.capacity() as u64 * 95 / 100, filter.plan().slots as u64 * 105 / 100);
        let items = random.random_range(least..=most);
        Self { layout, size, work, ground: Ground { seed, items, filter } }
    }

    fn kinds(&self) -> [String; 2] {
        let (encoding, _, slots, bits) = self.layout;
        [format!("{slots} by {bits}, {encoding:?}"), format!("{:?}: {}", self.work, self.size)]
    }

    fn run(&self, steps: u64) -> Tally {
        match self.work {
            Work::Churn => self.churn(steps),
            Work::AddOnce => self.add_once(),
            Work::Clear => self.ground.clear_amid_changes(),
        }
    }
}

impl Round {
    /// An empty filter of the same layout and size.
    fn another_filter(&self) -> Filter {
        build(self.ground.filter.capacity() as u64, self.layout.0, self.layout.1)
    }

    fn churn(&self, steps: u64) -> Tally {
        let (ground, filter) = (&self.ground, &self.ground.filter);
        let mut tally = Tally::default();
        let share = SmallRng::seed_from_u64(!ground.seed).random_range(0..50) + 45;
        let permanent = ground.fill(ground.items * share / 100, &mut tally);
        let alike = permanent.iter().take(8).flat_map(|&key| ground.alike(&self.another_filter(), key));
        let twins: Vec<_> = alike.chain(permanent.clone()).collect();
        // How many copies a thread has in the table, on average.
        let quota = (ground.items - permanent.len() as u64) / THREADS + 1;
        let held = on_all_threads(&mut tally, |id, tally| {
            let mut random = SmallRng::seed_from_u64(ground.seed ^ id << 56);
            let mut held = Vec::new();
            for _ in 0..steps {
                if held.len() as u64 <= random.random_range(0..2 * quota) {
                    let twin = pick(&twins, &mut random).filter(|_| random.random_ratio(1, 4));
                    let key = twin.unwrap_or_else(|| ground.key(id, random.random_range(0..2 * quota)));
                    held.extend(tally.taken(filter.insert(&key)).map(|()| key));
                } else {
                    let key = held.swap_remove(random.random_range(0..held.len()));
                    tally.removals += 1;
                    assert!(filter.remove(&key), "a present key was not removed");
                }
                let present = pick(&held, &mut random);
                for key in pick(&permanent, &mut random).into_iter().chain(present) {
                    ground.check_present(key, tally);
                }
                if let Some(key) = present.filter(|_| random.random_ratio(1, 32)) {
                    let known = held.iter().filter(|&&held| held == key).count();
                    let count = filter.count(&key);
                    tally.counts += 1;
                    assert!(count >= known, "copies were not counted");
                    assert!(
                        count <= 2 * filter.plan().layout.slots_per_bucket,
                        "more copies were counted than there is room for"
                    );
                }
            }
            held
        });
        self.take_out_every_copy(&[permanent, held.concat()].concat(), &mut tally);
        tally
    }

    fn add_once(&self) -> Tally {
        let mut tally = Tally::default();
        let contested = self.ground.items / 2;
        let copies = self.ground.race_to_add(contested, &mut tally, |result, tally| tally.taken(result));
        assert!(
            copies.iter().all(|key| self.ground.filter.count(key) == 1),
            "a key was added although a look-alike was in"
        );
        self.take_out_every_copy(&copies, &mut tally);
        tally
    }

    /// The end of a round: checks that the table, which nobody uses any more, holds exactly these copies.
    fn take_out_every_copy(&self, copies: &[Raw], tally: &mut Tally) {
        let filter = &self.ground.filter;
        assert_eq!(filter.len(), copies.len(), "the length is wrong");
        // The same keys, inserted by one thread. The order makes no difference, except to a search that gives up.
        let model = self.another_filter();
        let all_fit = copies.iter().all(|key| model.insert(key).is_ok());
        let searches_are_exact = filter.plan().slots <= SEARCH_BUDGET * filter.plan().layout.slots_per_bucket;
        assert!(all_fit || !searches_are_exact, "copies that fitted together do not fit in another order");
        let mut known = HashMap::new();
        copies.iter().for_each(|key| *known.entry(key.0).or_insert(0) += 1);
        for (&key, &known) in &known {
            let count = filter.count(&Raw(key));
            assert!(count >= known, "a copy was lost");
            assert!(!all_fit || count == model.count(&Raw(key)), "there are copies that no thread added");
        }
        assert!(copies.iter().all(|key| filter.remove(key)), "a copy was lost");
        tally.counts += known.len() as u64;
        tally.removals += copies.len() as u64;
        self.ground.check_empty(tally);
    }
}
