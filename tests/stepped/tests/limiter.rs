//! Histories of a rate limiter, compared with an exact GCRA: there is an order of the calls of each key that respects which
//! ended before which began, and a tick for each call that came during it, such that the algorithm gives just these answers.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::WhenFull;
use ccf_steps::model::{Expiring, Fault, Key, ModelLayout, Seeded, Smallest, Step, Usual, before_each_step};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::common::{Job, Run, breaks_without, job, scaled, under_shuttle, with_real_threads};

/// How many ticks a debt may have in all histories.
const MOST: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    /// A request of so many ticks.
    Charge(u64),
    Forgive,
    /// How many ticks the key owes.
    Debt,
    /// The time goes on by a tick.
    Tick,
}

/// A call that has ended, with its answer: whether a request was allowed or a debt forgiven, or how large a debt was.
#[derive(Clone, Copy, Debug)]
struct Event {
    called: u64,
    answered: u64,
    /// The first and the last tick of the time during the call.
    ticks: [u64; 2],
    class: usize,
    ask: Ask,
    answer: u64,
}

impl Event {
    /// The end of the key's debt after this call at this tick, if its answer is right then.
    fn at(&self, tick: u64, end: u64) -> Option<u64> {
        let debt = end.saturating_sub(tick);
        match self.ask {
            Ask::Charge(cost) if debt + cost <= MOST => (self.answer == 1).then_some(tick + debt + cost),
            Ask::Charge(_) => (self.answer == 0).then_some(end),
            Ask::Forgive => (self.answer == u64::from(debt > 0)).then_some(tick),
            Ask::Debt => (self.answer == debt).then_some(end),
            Ask::Tick => Some(end),
        }
    }
}

/// Whether an order of these calls of one key, with ticks that never go back, explains their answers.
fn is_explained(events: &[Event]) -> bool {
    /// Tries each next call after those of the set `done`, from this tick on.
    fn search(events: &[Event], done: u32, tick: u64, end: u64, failed: &mut HashSet<(u32, u64, u64)>) -> bool {
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if !failed.insert((done, tick, end)) {
            return false;
        }
        let is_left = |nth: &usize| done & 1 << nth == 0;
        let first_to_end = (0..events.len()).filter(is_left).map(|nth| events[nth].answered).min();
        (0..events.len()).filter(is_left).any(|nth| {
            let event = events[nth];
            first_to_end.is_some_and(|answered| event.called < answered)
                && (tick.max(event.ticks[0])..=event.ticks[1]).any(|tick| {
                    event.at(tick, end).is_some_and(|end| search(events, done | 1 << nth, tick, end, failed))
                })
        })
    }
    search(events, 0, 0, 0, &mut HashSet::new())
}

/// A table, and what each thread asks.
struct World<L: ModelLayout> {
    table: Expiring<L>,
    keys: Vec<Key>,
    tick: AtomicU64,
    asked: Vec<Vec<(Ask, usize)>>,
}

impl<L: ModelLayout> World<L> {
    fn new(seed: u64) -> Self {
        const BUCKETS: usize = 8;
        let mut random = SmallRng::seed_from_u64(seed);
        let table = Expiring::of_debts(BUCKETS, WhenFull::EvictSoonest);
        let pair = |class| (2 * class % BUCKETS, (6 * class + 1) % BUCKETS);
        let keys = (0..4).map(|class| Expiring::<L>::key(BUCKETS, pair(class).0, pair(class).1, class)).collect();
        let (threads, used) = (random.random_range(2..=4), random.random_range(1..=4));
        let asks = [
            Ask::Charge(1),
            Ask::Charge(1),
            Ask::Charge(1),
            Ask::Charge(2),
            Ask::Charge(3),
            Ask::Debt,
            Ask::Forgive,
            Ask::Tick,
            Ask::Tick,
        ];
        let mut ask = || (*asks.choose(&mut random).expect("not empty"), random.random_range(0..used));
        let asked = (0..threads).map(|_| (0..24 / threads).map(|_| ask()).collect()).collect();
        Self { table, keys, tick: AtomicU64::new(0), asked }
    }

    fn answer(&self, ask: Ask, key: Key, tick: u64) -> u64 {
        match ask {
            Ask::Charge(cost) => u64::from(self.table.charge(key, tick, cost, MOST).is_ok()),
            Ask::Forgive => u64::from(self.table.forgive(key, tick)),
            Ask::Debt => self.table.debt(key, tick),
            Ask::Tick => self.tick.fetch_add(1, Ordering::SeqCst),
        }
    }

    fn violation(&self, events: &[Event]) -> Option<String> {
        if self.table.evicted() > 0 {
            return Some(format!("{} keys were evicted, though there is room", self.table.evicted()));
        }
        let of_class =
            |class| events.iter().copied().filter(|event| event.class == class && event.ask != Ask::Tick).collect();
        let wrong = (0..self.keys.len()).map(of_class).find(|events: &Vec<_>| !is_explained(events))?;
        Some(format!("no order explains the answers: {wrong:#?}"))
    }
}

/// Runs a world's threads, and checks their history.
fn run<L: ModelLayout + Send + Sync + 'static>(seed: u64, on_threads: &dyn Fn(Vec<Job>)) {
    let world = Arc::new(World::<L>::new(seed));
    let (time, events) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
    let jobs = (0..world.asked.len()).map(|thread| {
        let (world, time, events) = (Arc::clone(&world), Arc::clone(&time), Arc::clone(&events));
        job(move || {
            let mut own = Vec::new();
            for (nth, &(ask, class)) in world.asked[thread].iter().enumerate() {
                let key = if nth % 2 == 0 { world.keys[class] } else { world.keys[class].twin() };
                let (called, first) = (time.fetch_add(1, Ordering::SeqCst), world.tick.load(Ordering::SeqCst));
                let answer = world.answer(ask, key, first);
                let ticks = [first, world.tick.load(Ordering::SeqCst)];
                own.push(Event { called, answered: time.fetch_add(1, Ordering::SeqCst), ticks, class, ask, answer });
            }
            events.lock().expect("no thread has failed").extend(own);
        })
    });
    on_threads(jobs.collect());
    let events = events.lock().expect("no thread has failed");
    if let Some(violation) = world.violation(&events) {
        panic!("world {seed}: {violation}");
    }
}

const RUNS: [Run; 2] = [run::<Smallest>, run::<Usual>];

#[test]
fn histories_under_random_schedules_are_those_of_an_exact_limiter() {
    (0..scaled(60, "CCF_HISTORIES") as u64).for_each(under_shuttle(RUNS));
}

#[test]
fn histories_of_real_threads_are_those_of_an_exact_limiter() {
    (0..scaled(500, "CCF_HISTORIES") as u64).for_each(with_real_threads(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn requests_that_are_charged_without_the_lock_break_an_answer() {
    breaks_without(Fault::ChargeWithoutLock, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn requests_that_are_not_decided_again_break_an_answer() {
    breaks_without(Fault::ChargesByWhatWasRead, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn requests_that_are_rejected_without_the_clock_break_an_answer() {
    breaks_without(Fault::RejectsWithoutClock, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn requests_that_are_charged_by_a_late_clock_break_an_answer() {
    breaks_without(Fault::ChargesByLateClock, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn requests_whose_entry_was_swept_break_an_answer() {
    breaks_without(Fault::ChargesTheSwept, under_shuttle(RUNS));
}

/// How many locks a request takes that is rejected while, before the step of this number, its entry is moved to the other
/// bucket and the time stands still; and how many steps it has.
fn locks_of_a_rejected_request(interrupted: usize) -> (usize, usize) {
    const BUCKETS: usize = 2;
    let table: Rc<Expiring> = Rc::new(Expiring::of_debts(BUCKETS, WhenFull::EvictSoonest));
    let key = Expiring::<Smallest>::key(BUCKETS, 0, 1, 0);
    assert_eq!(table.charge(key, 0, 2, 2), Ok(()));
    let (steps, locks, moving) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Cell::new(false));
    let (of_mover, step_count, lock_count) = (Rc::clone(&table), Rc::clone(&steps), Rc::clone(&locks));
    before_each_step(Some(Rc::new(move |step| {
        if moving.get() {
            return;
        }
        if step_count.replace(step_count.get() + 1) == interrupted {
            moving.set(true);
            assert!(of_mover.relocate_until(key, 2), "there is room in the other bucket");
            moving.set(false);
        }
        match step {
            Step::Lock | Step::Wait | Step::Write => lock_count.set(lock_count.get() + 1),
            Step::Unlock | Step::Load => (),
        }
    })));
    // It reads the empty bucket first, and then the one that the entry has left by then.
    let answer = table.charge(key.twin(), 0, 1, 2);
    before_each_step(None);
    assert_eq!(answer, Err(1), "it is at its limit");
    (locks.get(), steps.get())
}

#[test]
fn a_request_that_is_rejected_throughout_takes_no_lock_and_writes_nothing() {
    let mut step = 0;
    while step < locks_of_a_rejected_request(step).1 {
        assert_eq!(locks_of_a_rejected_request(step).0, 0, "its entry was moved before step {step}");
        step += 1;
    }
    assert!(step > 5, "only {step} steps");
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_request_that_does_not_read_again_takes_a_lock() {
    let _seeded = Seeded::bugs(&[Fault::LocksAfterInvalidRead]);
    assert!((0..30).any(|step| locks_of_a_rejected_request(step).0 > 0));
}
