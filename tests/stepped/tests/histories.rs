//! Histories of concurrent operations, checked for linearizability.
//!
//! A history is what two to four threads did to one tiny table, nearly full, whose keys collide: when each operation
//! was called, when it answered, and what. It is *linearizable* if the operations can be put in an order in which each
//! comes before those called after its answer, and in which a multiset, asked one by one, would have given the same
//! answers (Herlihy and Wing, *Linearizability*, 1990). The search for such an order is that of Wing and Gong (*Testing
//! and Verifying Concurrent Objects*, 1993) with Lowe's memory of what was tried, in the crate `todc-utils`.
//!
//! `CCF_HISTORIES=1000 cargo test --release -p stepped-tests --test histories` checks a thousand times as many.

mod common;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::InsertError;
use ccf_steps::model::{AnyLayout, Fault, Key, Seeded, Smallest, Table, Usual};
use common::{Job, job, on_real_threads, on_shuttle_threads, scaled, under_schedules};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

/// How many classes of keys a world has, at most.
const CLASSES: usize = 8;

/// How many copies there are of each class.
type Copies = [u8; CLASSES];

/// The buckets of each class, and how many copies a bucket holds.
#[derive(Clone, Copy, Debug)]
struct Room {
    slots: usize,
    buckets: usize,
    pairs: [(usize, usize); CLASSES],
}

impl Room {
    /// Whether these copies fit in the table, however they must be placed: whether no set of buckets has more copies
    /// with both ends in it than slots (Hall's theorem).
    ///
    /// Where one more copy fits, a path leads to a free slot, whatever the placement is now. So an insert may be
    /// refused if and only if this says no.
    fn fits(&self, copies: Copies) -> bool {
        (1..1u32 << self.buckets).all(|set| {
            let inside = |bucket: usize| set >> bucket & 1 == 1;
            let both = self.pairs.iter().map(|&(one, other)| inside(one) && inside(other));
            let held = copies.iter().zip(both).map(|(&copies, both)| usize::from(copies) * usize::from(both));
            held.sum::<usize>() <= self.slots * set.count_ones() as usize
        })
    }
}

/// What a thread asked of a class of keys, and what it was told.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Insert(Result<(), InsertError>),
    InsertIfAbsent(Result<bool, InsertError>),
    Contains(bool),
    Remove(bool),
    Count(usize),
}

/// What happened, as the checker sees it.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// The table was filled.
    Given(Copies),
    Asked(Room, usize, Answer),
}

/// What the table is meant to be: a multiset of classes.
struct Multiset;

impl Specification for Multiset {
    type State = Copies;
    type Operation = Operation;

    fn init() -> Copies {
        [0; CLASSES]
    }

    fn apply(operation: &Operation, &before: &Copies) -> (bool, Copies) {
        let (room, class, answer) = match *operation {
            Operation::Given(copies) => return (true, copies),
            Operation::Asked(room, class, answer) => (room, class, answer),
        };
        let copies = usize::from(before[class]);
        let (mut more, mut less) = (before, before);
        more[class] += 1;
        less[class] = less[class].saturating_sub(1);
        let refusal_is_due = |error| match error {
            InsertError::Full { .. } => !room.fits(more),
            InsertError::TooManyCopies { copies: reported, .. } => reported == copies && !room.fits(more),
            _ => false,
        };
        match answer {
            Answer::Insert(Ok(())) => (true, more),
            Answer::Insert(Err(error)) => (refusal_is_due(error), before),
            Answer::InsertIfAbsent(Ok(true)) => (copies == 0, more),
            Answer::InsertIfAbsent(Ok(false)) => (copies > 0, before),
            Answer::InsertIfAbsent(Err(error)) => (copies == 0 && refusal_is_due(error), before),
            Answer::Contains(answer) => (answer == (copies > 0), before),
            Answer::Remove(answer) => (answer == (copies > 0), less),
            Answer::Count(answer) => (answer == copies, before),
        }
    }
}

/// What a thread is to ask, of a key of which class, and whether of the key that tries its buckets the other way round.
#[derive(Clone, Copy)]
struct Question {
    ask: Ask,
    class: usize,
    twin: bool,
}

#[derive(Clone, Copy)]
enum Ask {
    Insert,
    InsertIfAbsent,
    Contains,
    Remove,
    Count,
}

/// A table to begin with, and what each thread is to ask.
struct World<L> {
    room: Room,
    keys: [Key; CLASSES],
    table: Table<L>,
    given: Copies,
    questions: Vec<Vec<Question>>,
}

/// An operation that has ended: when it was called and when it answered, of which thread, and what.
struct Event {
    called: usize,
    answered: usize,
    thread: usize,
    operation: Operation,
}

impl<L: AnyLayout> World<L> {
    /// Another one for each seed.
    fn new(seed: u64) -> Arc<Self> {
        let random = &mut SmallRng::seed_from_u64(seed);
        // Some worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 3);
        let buckets = if narrow { 2 } else { *[1, 2, 4, 4, 6, 8].choose(random).expect("not empty") };
        let table = Table::<L>::new(buckets);
        let slots = table.slots_per_bucket();

        let mut pairs = [(0, 0); CLASSES];
        for class in 0..CLASSES {
            pairs[class] = match random.random_range(0..=class) {
                // A pair that an earlier class has.
                earlier if earlier < class && random.random() => pairs[earlier],
                _ if buckets == 1 => (0, 0),
                // Of two buckets, one is even and one is odd.
                _ => (random.random_range(0..buckets / 2) * 2, random.random_range(0..buckets / 2) * 2 + 1),
            };
        }
        let keys = std::array::from_fn(|class| Key::of::<L>(buckets, pairs[class].0, pairs[class].1, class));

        // Full but for a few slots, unless the keys that are in use leave some free.
        let used = random.random_range(if narrow { 1..=2 } else { 3..=CLASSES });
        let free = random.random_range(0..4);
        let mut given = [0; CLASSES];
        for _ in 0..slots * buckets * 4 {
            let class = random.random_range(0..used);
            if table.len() + free < slots * buckets && table.insert(keys[class]).is_ok() {
                given[class] += 1;
            }
        }

        use Ask::*;
        let asked =
            [Insert, Insert, Insert, Remove, Remove, Remove, Contains, Contains, Contains, InsertIfAbsent, Count];
        let threads = random.random_range(2..=4);
        let mut question = || Question {
            ask: *asked.choose(random).expect("not empty"),
            class: random.random_range(0..used),
            twin: random.random(),
        };
        let questions = (0..threads).map(|_| (0..36 / threads).map(|_| question()).collect()).collect();
        Arc::new(Self { room: Room { slots, buckets, pairs }, keys, table, given, questions })
    }

    fn ask(&self, Question { ask, class, twin }: Question) -> Answer {
        let key = if twin { self.keys[class].twin() } else { self.keys[class] };
        match ask {
            Ask::Insert => Answer::Insert(self.table.insert(key)),
            Ask::InsertIfAbsent => Answer::InsertIfAbsent(self.table.insert_if_absent(key)),
            Ask::Contains => Answer::Contains(self.table.contains(key)),
            Ask::Remove => Answer::Remove(self.table.remove(key)),
            Ask::Count => Answer::Count(self.table.count(key)),
        }
    }

    /// Has all questions asked, on threads that `run` runs, and says what is wrong with the answers.
    fn play(self: Arc<Self>, run: impl FnOnce(Vec<Job>)) -> Result<(), String> {
        let clock = Arc::new(AtomicUsize::new(0));
        let events = Arc::new(Mutex::new(Vec::new()));
        let asker = |thread: usize, questions: Vec<Question>| {
            let (world, clock, events) = (Arc::clone(&self), Arc::clone(&clock), Arc::clone(&events));
            let time = move || clock.fetch_add(1, Ordering::SeqCst);
            job(move || {
                let ask = |&question: &Question| {
                    let called = time();
                    let operation = Operation::Asked(world.room, question.class, world.ask(question));
                    Event { called, answered: time(), thread, operation }
                };
                let mut answers: Vec<Event> = questions.iter().map(ask).collect();
                events.lock().expect("nobody fails").append(&mut answers);
            })
        };
        let threads = self.questions.iter().enumerate();
        run(threads.map(|(thread, questions)| asker(thread, questions.clone())).collect());
        // In the end, how many there are of each class.
        asker(0, (0..CLASSES).map(|class| Question { ask: Ask::Count, class, twin: false }).collect())();

        let mut times = vec![(0, 0, Action::Call(Operation::Given(self.given)))];
        times.push((0, 0, Action::Response(Operation::Given(self.given))));
        for Event { called, answered, thread, operation } in events.lock().expect("nobody fails").drain(..) {
            times.push((called + 1, thread, Action::Call(operation)));
            times.push((answered + 1, thread, Action::Response(operation)));
        }
        times.sort_by_key(|&(time, ..)| time);
        let history = || times.iter().map(|(_, thread, action)| (*thread, action.clone())).collect();
        if !WGLChecker::<Multiset>::is_linearizable(History::from_actions(history())) {
            return Err(format!("not linearizable, given {:?} in {:?}: {times:#?}", self.given, self.room));
        }
        let counts = times.iter().rev().filter_map(|(_, _, action)| match action {
            Action::Response(Operation::Asked(_, _, Answer::Count(count))) => Some(count),
            _ => None,
        });
        let held = counts.take(CLASSES).sum::<usize>();
        if (self.table.scan(), self.table.len()) != (held, held) {
            return Err(format!("{held} copies, {} in the buckets, len {}", self.table.scan(), self.table.len()));
        }
        Ok(())
    }
}

/// Checks so many histories of real threads, from a seed on; the first violation, if there is one.
fn on_real<L: AnyLayout>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| {
        let result = World::<L>::new(seed).play(|jobs| on_real_threads(seed, faults, jobs));
        result.map_err(|violation| format!("seed {seed}: {violation}"))
    })
}

/// The same under shuttle's schedules: some of each kind for each world.
fn under_shuttle<L: AnyLayout + 'static>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    const SCHEDULES: usize = 10;
    seeds.into_iter().try_for_each(|seed| {
        let result = Arc::new(Mutex::new(Ok(())));
        let first = Arc::clone(&result);
        let faults = faults.to_vec();
        under_schedules(seed, SCHEDULES, move || {
            let world = World::<L>::new(seed);
            let _seeded = Seeded::bugs(&faults);
            let result = world.play(on_shuttle_threads);
            let first = &mut *first.lock().expect("nobody fails");
            if first.is_ok() {
                *first = result;
            }
        });
        Arc::into_inner(result)
            .expect("all have ended")
            .into_inner()
            .expect("nobody fails")
            .map_err(|violation| format!("seed {seed}: {violation}"))
    })
}

/// Checks the histories of some seeds, with some faults.
type Check = fn(Range<u64>, &[Fault]) -> Result<(), String>;

/// Checks histories of a small table and of one with the usual layout, by turns.
fn on_either(seeds: u64, faults: &[Fault], check: [Check; 2]) -> Result<(), String> {
    const TURN: u64 = 50;
    let mut turns = (0..seeds).step_by(TURN as usize).map(|from| from..(from + TURN).min(seeds));
    turns.try_for_each(|seeds| check.iter().try_for_each(|check| check(seeds.clone(), faults)))
}

fn real_threads(seeds: u64, faults: &[Fault]) -> Result<(), String> {
    on_either(seeds, faults, [on_real::<Smallest>, on_real::<Usual>])
}

fn random_schedules(seeds: u64, faults: &[Fault]) -> Result<(), String> {
    on_either(seeds, faults, [under_shuttle::<Smallest>, under_shuttle::<Usual>])
}

#[test]
fn histories_of_real_threads_are_linearizable() {
    assert_eq!(real_threads(scaled(5000, "CCF_HISTORIES") as u64, &[]), Ok(()));
}

#[test]
fn histories_under_random_schedules_are_linearizable() {
    assert_eq!(random_schedules(scaled(200, "CCF_HISTORIES") as u64, &[]), Ok(()));
}

/// With any of these steps left out, some history is not linearizable.
macro_rules! without {
    ($histories:ident, in at most $seeds:literal worlds: $($(#[$attribute:meta])? $fault:ident),*) => {
        mod $histories {
            use super::*;
            $(
                #[test]
                $(#[$attribute])?
                #[allow(non_snake_case)]
                fn $fault() {
                    let violation = super::$histories($seeds, &[Fault::$fault]).expect_err("the bug was not found");
                    println!("{}", violation.lines().next().unwrap_or_default());
                }
            )*
        }
    };
}
without! {
    random_schedules, in at most 40_000 worlds:
    AddOverwrites, CountDropsUpdates, CountWithoutLock, FullIgnoresVersions, FullThoughPresent, FullWithoutConfirmation,
    InsertIfAbsentWithoutLock, LookupWithoutVersion, RelocateBumpsLate, RelocateClearsFirst, RelocateWithoutBump,
    RelocateWithoutLock, RelocateWithoutRecheck, RemoveBumpsLate, RemoveWithoutBump, RemoveWithoutLock, TakeOverwrites
}
without! {
    real_threads, in at most 1_000_000 worlds:
    AddOverwrites, CountDropsUpdates, CountWithoutLock, FullThoughPresent, FullWithoutConfirmation,
    InsertIfAbsentWithoutLock, LookupWithoutVersion, RelocateClearsFirst, RelocateWithoutBump, RelocateWithoutLock,
    RelocateWithoutRecheck, RemoveWithoutBump, RemoveWithoutLock, TakeOverwrites,
    #[ignore = "takes minutes: two threads must pause at just the right steps"]
    RelocateBumpsLate,
    #[ignore = "takes minutes: two threads must pause at just the right steps"]
    RemoveBumpsLate
}
