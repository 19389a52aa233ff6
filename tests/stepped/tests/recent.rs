//! Histories of recent keys, checked by what the documentation promises: a key is found until so many others were counted
//! after it, it leaves in time, and of inserts of one key at most one in that time is told that it is new.
//!
//! The end of a tick is no operation of any caller. So the histories are not compared with a specification, as those of
//! `histories` are, but each answer with the calls before it and at the same time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::model::{Expiring, Fault, Key, ModelLayout, Seeded, Smallest, Usual};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::common::{Job, job, on_real_threads, on_shuttle_threads, scaled, under_schedules};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Insert,
    Renew,
    Contains,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
struct Event {
    called: usize,
    answered: usize,
    class: usize,
    ask: Ask,
    /// Whether the key was said to be among the recent ones.
    was_recent: bool,
}

impl Event {
    fn inserts(&self) -> bool {
        self.ask != Ask::Contains
    }

    /// Whether the key is a recent one, as the newest, when the call has ended.
    fn makes_newest(&self) -> bool {
        self.ask == Ask::Renew || self.ask == Ask::Insert && !self.was_recent
    }

    fn is_counted(&self) -> bool {
        self.inserts() && !self.was_recent
    }

    fn ended_before(&self, other: &Self) -> bool {
        self.answered < other.called
    }
}

/// A table, and what each thread asks.
struct World<L: ModelLayout> {
    table: Expiring<L>,
    keys: Vec<Key>,
    per_tick: u64,
    asked: Vec<Vec<(Ask, usize)>>,
}

impl<L: ModelLayout> World<L> {
    fn new(seed: u64) -> Self {
        // The fewest that have room for all that can be recent.
        const BUCKETS: usize = 16;
        let mut random = SmallRng::seed_from_u64(seed);
        let per_tick = random.random_range(1..=4);
        let table = Expiring::of_last_keys(BUCKETS, per_tick, random.random_range(0..per_tick));
        let pair = |class| (2 * class % BUCKETS, (6 * class + 1) % BUCKETS);
        let keys: Vec<_> =
            (0..10).map(|class| Expiring::<L>::key(BUCKETS, pair(class).0, pair(class).1, class)).collect();
        let (threads, used) = (random.random_range(2..=4), random.random_range(2..=keys.len()));
        let asks = [Ask::Insert, Ask::Insert, Ask::Renew, Ask::Contains];
        let mut ask = || (*asks.choose(&mut random).expect("not empty"), random.random_range(0..used));
        let asked = (0..threads).map(|_| (0..30 / threads).map(|_| ask()).collect()).collect();
        Self { table, keys, per_tick, asked }
    }

    /// What is wrong with the history.
    fn violation(&self, events: &[Event]) -> Option<String> {
        if self.table.evicted() > 0 {
            return Some(format!("{} keys were evicted, though there is room", self.table.evicted()));
        }
        let threads = self.asked.len() as u64;
        let count = |is_it: &dyn Fn(&Event) -> bool| events.iter().filter(|event| is_it(event)).count() as u64;
        for event in events {
            let of_key = || events.iter().filter(|other| other.class == event.class);
            for newest in of_key().filter(|other| other.makes_newest()) {
                // One that overlaps it may come later, unless both were told that the key is new.
                let comes_before = newest.ended_before(event)
                    || newest.is_counted() && event.is_counted() && newest.called < event.called;
                if event.was_recent || !comes_before {
                    continue;
                }
                // A renewal counts, or not. Of two that overlap, either may have come first.
                let (start, end) = (newest.called.min(event.called), newest.answered.max(event.answered));
                let may_count = |other: &Event| {
                    (other.is_counted() || other.ask == Ask::Renew)
                        && other.answered > start
                        && other.called < end
                        && ![newest.called, event.called].contains(&other.called)
                };
                let counted = count(&may_count);
                if counted < self.per_tick {
                    return Some(format!("{event:?} misses the key of {newest:?}, though only {counted} were counted"));
                }
            }
            // What was said to be recent has come, and not so many have come since.
            let is_due = |newest: &Event| {
                let since =
                    count(&|other| other.is_counted() && newest.ended_before(other) && other.ended_before(event));
                newest.called < event.answered && since < 2 * self.per_tick + 2 * (threads - 1)
            };
            if event.was_recent
                && !of_key().any(|other| other.makes_newest() && other.called != event.called && is_due(other))
            {
                return Some(format!("{event:?} finds a key that has left, or that has never come"));
            }
        }
        None
    }
}

/// Runs a world's threads, and checks their history.
fn run<L: ModelLayout>(seed: u64, on_threads: impl FnOnce(Vec<Job>)) {
    let world = Arc::new(World::<L>::new(seed));
    let (time, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let jobs = (0..world.asked.len()).map(|thread| {
        let (world, time, events) = (Arc::clone(&world), Arc::clone(&time), Arc::clone(&events));
        job(move || {
            let mut own = Vec::new();
            for &(ask, class) in &world.asked[thread] {
                let key = world.keys[class];
                let called = time.fetch_add(1, Ordering::SeqCst);
                let was_recent = match ask {
                    Ask::Insert => !world.table.insert_recent(key, 0),
                    Ask::Renew => !world.table.insert_or_renew_recent(key.twin(), 0),
                    Ask::Contains => world.table.contains(key),
                };
                own.push(Event { called, answered: time.fetch_add(1, Ordering::SeqCst), class, ask, was_recent });
            }
            events.lock().expect("no thread has failed").extend(own);
        })
    });
    on_threads(jobs.collect());
    let events = events.lock().expect("no thread has failed");
    if let Some(violation) = world.violation(&events) {
        panic!("world {seed}, {} keys per tick: {violation}\n{events:#?}", world.per_tick);
    }
}

fn under_shuttle(seed: u64) {
    under_schedules(seed, 20, move || run::<Smallest>(seed, on_shuttle_threads));
    under_schedules(seed, 10, move || run::<Usual>(seed, on_shuttle_threads));
}

#[test]
fn histories_under_random_schedules_keep_the_promises() {
    (0..scaled(40, "CCF_HISTORIES") as u64).for_each(under_shuttle);
}

#[test]
fn histories_of_real_threads_keep_the_promises() {
    for seed in 0..scaled(500, "CCF_HISTORIES") as u64 {
        run::<Smallest>(seed, |jobs| on_real_threads(seed, &[], jobs));
        run::<Usual>(seed, |jobs| on_real_threads(seed, &[], jobs));
    }
}

/// With this step left out, a history under some schedule breaks a promise.
fn breaks_without(fault: Fault) {
    let _seeded = Seeded::bugs(&[fault]);
    let breaks = |seed: &u64| catch_unwind(AssertUnwindSafe(|| under_shuttle(*seed))).is_err();
    let seed = (0..400).find(breaks).unwrap_or_else(|| panic!("the bug was not found: {fault:?}"));
    println!("{fault:?}: world {seed}");
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_tick_that_ends_twice_breaks_a_promise() {
    breaks_without(Fault::TickEndsTwice);
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_tick_that_ends_without_locks_breaks_a_promise() {
    breaks_without(Fault::TickEndsWithoutLocks);
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn entries_added_without_the_lock_break_a_promise() {
    breaks_without(Fault::AddValueWithoutLock);
}
