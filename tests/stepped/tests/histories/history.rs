//! What a history is, how threads make one, and how it is checked.

use std::iter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::model::{Fault, Seeded};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};

use crate::common::{Job, job, on_real_threads, on_shuttle_threads, scaled, under_schedules};
use crate::histories::room::Room;
use crate::histories::specification::{Answer, Entries, Failure, Multiset, Operation, State};

/// An operation that has ended: what it was, when it was called, and when it answered.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    called: usize,
    answered: usize,
    operation: Operation,
}

impl Event {
    /// Whether the two operations were under way at the same time.
    fn overlaps(&self, other: &Self) -> bool {
        self.called < other.answered && other.called < self.answered
    }
}

/// A thread's record of its operations.
pub(crate) struct Diary {
    clock: Arc<AtomicUsize>,
    events: Vec<Event>,
}

impl Diary {
    /// The present moment. No two calls return the same.
    fn time(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Records an operation.
    pub(crate) fn write(&mut self, ask: impl FnOnce() -> Operation) {
        self.write_all(|| [ask()]);
    }

    /// Records operations that were under way together.
    pub(crate) fn write_all<I: IntoIterator<Item = Operation>>(&mut self, ask: impl FnOnce() -> I) {
        let called = self.time();
        let operations = ask();
        let answered = self.time();
        self.events.extend(operations.into_iter().map(|operation| Event { called, answered, operation }));
    }
}

/// What a thread asks of a filter.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    Insert,
    InsertIfAbsent,
    Renew,
    Contains,
    ExpiresAt,
    Values,
    Remove,
    RemoveFirst,
    Replace,
    Count,
    /// Look up three keys at a time, insert them, or remove them.
    ContainsBatch,
    ValuesBatch,
    InsertBatch,
    RemoveBatch,
    /// End early what is in the way of an entry.
    Evict,
    /// Advance the clock by so many ticks, or pass the same tick again.
    Advance,
    Save,
    Split,
    Merge,
}

/// What a thread asks: about a key of which class, with which number (a value, or how many ticks from now the entry ends),
/// which other value replaces it, and whether about the key that tries its buckets in the opposite order.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    pub(crate) ask: Ask,
    pub(crate) class: usize,
    pub(crate) number: u64,
    pub(crate) other: u64,
    pub(crate) twin: bool,
}

/// A filter of some kind.
pub(crate) trait Kind: Send + Sync + Sized + 'static {
    type Key: Copy + Send + Sync + 'static;

    /// Each seed gives another world.
    fn world(random: &mut SmallRng) -> World<Self>;

    /// The number of an entry, as a question about it now has it.
    fn number(&self, asked: u64) -> u64 {
        asked
    }

    fn key(key: Self::Key, twin: bool) -> Self::Key;
    fn contains(&self, key: Self::Key) -> bool;
    fn contains_batch(&self, keys: [Self::Key; 3]) -> [bool; 3];
    fn insert(&self, key: Self::Key, number: u64) -> Result<bool, Failure>;
    fn insert_if_absent(&self, key: Self::Key, number: u64) -> Answer;
    fn remove(&self, key: Self::Key, number: u64) -> bool;
    fn count(&self, key: Self::Key, number: u64) -> usize;

    /// Saves it, and calls `begun` when the save has begun. Returns the tick and the entries of the snapshot.
    fn save(&self, keys: &[Self::Key], begun: &mut dyn FnMut()) -> (u64, Entries);

    /// Asks what only filters of this kind are asked.
    fn ask(world: &World<Self>, question: Question, diary: &mut Diary);

    /// Asks the final questions, after all threads have ended.
    fn ask_at_last(world: &World<Self>, diary: &mut Diary) {
        for class in 0..world.keys.len() {
            for number in 0..world.numbers {
                world.ask(Question { ask: Ask::Count, class, number, other: 0, twin: false }, diary);
            }
        }
    }

    /// Checks what no operation asks about. The last counts were so many in all.
    fn audit(&self, held: usize) -> Result<(), String>;
}

/// An initial filter, and what each thread asks it.
pub(crate) struct World<K: Kind> {
    pub(crate) filter: K,
    /// A key of each class.
    pub(crate) keys: Vec<K::Key>,
    pub(crate) room: Room,
    /// The longest lifetime, if entries expire, and how many values there are.
    pub(crate) longest: Option<u64>,
    pub(crate) numbers: u64,
    pub(crate) given: State,
    pub(crate) questions: Vec<Vec<Question>>,
}

/// What each of so many threads asks.
pub(crate) fn questions(
    random: &mut SmallRng,
    threads: usize,
    each: usize,
    asked: &[Ask],
    question: impl Fn(Ask, &mut SmallRng) -> Question,
) -> Vec<Vec<Question>> {
    let mut one = || {
        let ask = *asked.choose(random).expect("not empty");
        question(ask, random)
    };
    (0..threads).map(|_| (0..each).map(|_| one()).collect()).collect()
}

impl<K: Kind> World<K> {
    pub(crate) fn asked(&self, class: usize, answer: Answer) -> Operation {
        Operation::Asked(self.room, self.longest, class, answer)
    }

    /// Three classes, starting with this one, and their keys.
    pub(crate) fn several(&self, class: usize) -> ([usize; 3], [K::Key; 3]) {
        let classes = [0, 1, 2].map(|more| (class + more) % self.keys.len());
        (classes, classes.map(|class| self.keys[class]))
    }

    pub(crate) fn ask(&self, question: Question, diary: &mut Diary) {
        let Question { ask, class, number, twin, .. } = question;
        let (filter, key) = (&self.filter, K::key(self.keys[class], twin));
        let number = filter.number(number);
        match ask {
            Ask::Insert => diary.write(|| self.asked(class, Answer::Insert(number, filter.insert(key, number)))),
            Ask::InsertIfAbsent => diary.write(|| self.asked(class, filter.insert_if_absent(key, number))),
            Ask::Contains => diary.write(|| self.asked(class, Answer::Contains(filter.contains(key)))),
            Ask::Remove => diary.write(|| self.asked(class, Answer::Remove(number, filter.remove(key, number)))),
            Ask::Count => diary.write(|| self.asked(class, Answer::Count(number, filter.count(key, number)))),
            Ask::ContainsBatch => diary.write_all(|| {
                let (classes, keys) = self.several(class);
                let answers = iter::zip(classes, filter.contains_batch(keys));
                answers.map(|(class, found)| self.asked(class, Answer::Contains(found)))
            }),
            Ask::Save => {
                let called = diary.time();
                let mut answered = 0;
                let (now, entries) = filter.save(&self.keys, &mut || answered = diary.time());
                let operation = Operation::Saved { now, entries, under_way: Entries::default() };
                diary.events.push(Event { called, answered, operation });
            }
            _ => K::ask(self, question, diary),
        }
    }

    /// Adds to each save the inserts that were under way when it began.
    fn complete(&self, events: &mut [Event]) {
        let all = events.to_vec();
        for event in events {
            let during = event.clone();
            let Operation::Saved { under_way, .. } = &mut event.operation else { continue };
            for other in all.iter().filter(|other| other.overlaps(&during)) {
                if let Operation::Asked(_, None, class, answer) = &other.operation
                    && let Some(number) = answer.added()
                {
                    under_way[*class][number as usize] += 1;
                }
            }
        }
    }
}

/// Asks all questions, on threads that `run` runs, and returns what is wrong with the answers.
fn play<K: Kind>(world: Arc<World<K>>, run: impl FnOnce(Vec<Job>)) -> Result<(), String> {
    let clock = Arc::new(AtomicUsize::new(1));
    let diary = || Diary { clock: Arc::clone(&clock), events: Vec::new() };
    let all = Arc::new(Mutex::new(Vec::new()));
    let asker = |questions: Vec<Question>| {
        let (world, all, mut diary) = (Arc::clone(&world), Arc::clone(&all), diary());
        job(move || {
            questions.into_iter().for_each(|question| world.ask(question, &mut diary));
            all.lock().expect("no thread fails").append(&mut diary.events);
        })
    };
    run(world.questions.iter().cloned().map(asker).collect());
    let mut last = diary();
    K::ask_at_last(&world, &mut last);
    let counted = |event: &Event| match event.operation {
        Operation::Asked(_, _, _, Answer::Count(_, count)) => count,
        _ => 0,
    };
    let held = last.events.iter().map(counted).sum();
    let mut events = std::mem::take(&mut *all.lock().expect("no thread fails"));
    events.append(&mut last.events);
    world.complete(&mut events);

    let given = Operation::Given(world.given);
    // Each operation is a process of its own, so the operations of one batch may take effect in any order.
    let mut times = vec![(0, 0, Action::Call(given.clone())), (0, 0, Action::Response(given.clone()))];
    for (nth, Event { called, answered, operation }) in events.iter().enumerate() {
        times.push((*called, nth + 1, Action::Call(operation.clone())));
        times.push((*answered, nth + 1, Action::Response(operation.clone())));
    }
    times.sort_by_key(|&(time, ..)| time);
    let history = times.iter().map(|(_, process, action)| (*process, action.clone())).collect();
    if !WGLChecker::<Multiset>::is_linearizable(History::from_actions(history)) {
        events.sort_by_key(|event| event.called);
        let lines = events
            .iter()
            .map(|Event { called, answered, operation }| format!("\n{called:4} to {answered:4}: {operation:?}"));
        return Err(format!("not linearizable, given {given:?}:{}", lines.collect::<String>()));
    }
    world.filter.audit(held)
}

/// What went wrong, including panics.
fn caught(play: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", message.unwrap_or("of another kind")))
    })
}

fn world<K: Kind>(seed: u64) -> Arc<World<K>> {
    Arc::new(K::world(&mut SmallRng::seed_from_u64(seed)))
}

/// Checks one history of real threads for each of these seeds. Returns the first violation, if there is one.
pub(crate) fn on_real<K: Kind>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| {
        let result = caught(|| play(world::<K>(seed), |jobs| on_real_threads(seed, faults, jobs)));
        result.map_err(|violation| format!("seed {seed}: {violation}"))
    })
}

/// The same under shuttle's schedules: some of each kind for each world.
pub(crate) fn under_shuttle<K: Kind>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    const SCHEDULES: usize = 10;
    seeds.into_iter().try_for_each(|seed| {
        let first = Arc::new(Mutex::new(Ok(())));
        let (result, faults) = (Arc::clone(&first), faults.to_vec());
        let model = move || {
            let world = world::<K>(seed);
            let _seeded = Seeded::bugs(&faults);
            let played = play(world, on_shuttle_threads);
            let first = &mut *result.lock().expect("no thread fails");
            if first.is_ok() {
                *first = played;
            }
        };
        let all = caught(|| {
            under_schedules(seed, SCHEDULES, model);
            Ok(())
        });
        let first = first.lock().map_or_else(|_| all.clone(), |first| first.clone());
        first.and(all).map_err(|violation| format!("seed {seed}: {violation}"))
    })
}

/// Checks the histories of some seeds, with some faults.
pub(crate) type Check = fn(Range<u64>, &[Fault]) -> Result<(), String>;

/// Checks histories of several kinds of worlds, by turns.
pub(crate) fn by_turns(mut seeds: Range<u64>, faults: &[Fault], checks: &[Check]) -> Result<(), String> {
    seeds.try_for_each(|seed| checks.iter().try_for_each(|check| check(seed..seed + 1, faults)))
}

/// Asserts that no history of this many seeds, multiplied by `CCF_HISTORIES`, is a violation. They begin with
/// `CCF_WORLD`, or with 0.
pub(crate) fn must_hold(histories: Check, seeds: usize) {
    let first = std::env::var("CCF_WORLD").map_or(0, |first| first.parse().expect("the number of a world"));
    let seeds = first..first + scaled(seeds, "CCF_HISTORIES") as u64;
    histories(seeds, &[]).unwrap_or_else(|violation| panic!("{violation}"));
}

/// Defines both ways to make histories of these kinds of filters, and tests that they are linearizable. The worlds are
/// interleaved.
macro_rules! histories_of {
    ($($World:ty),+) => {
        fn real_threads(seeds: std::ops::Range<u64>, faults: &[ccf_steps::model::Fault]) -> Result<(), String> {
            use $crate::histories::history::{by_turns, on_real};
            by_turns(seeds, faults, &[$(on_real::<$World>),+])
        }

        fn random_schedules(seeds: std::ops::Range<u64>, faults: &[ccf_steps::model::Fault]) -> Result<(), String> {
            use $crate::histories::history::{by_turns, under_shuttle};
            by_turns(seeds, faults, &[$(under_shuttle::<$World>),+])
        }

        #[test]
        fn histories_of_real_threads_are_linearizable() {
            $crate::histories::history::must_hold(real_threads, 500);
        }

        #[test]
        fn histories_under_random_schedules_are_linearizable() {
            $crate::histories::history::must_hold(random_schedules, 100);
        }
    };
}
pub(crate) use histories_of;

/// Tests that with any of these steps left out, some history is not linearizable. Under shuttle, where each world has the
/// same histories in each run, a step has a world to begin with: one shortly before the first that notices it, unless that
/// is among the first few. The output names that world. Where the search takes long, it is left to `ci/nightly`.
macro_rules! without {
    (
        $histories:ident, in at most $seeds:literal worlds: $($fault:ident $(from $from:literal)?),*
        $(; nightly: $($long:ident),*)?
    ) => {
        mod $histories {
            use ccf_steps::model::Fault;

            fn finds(fault: Fault, from: u64) {
                let violation = super::$histories(from..from + $seeds, &[fault]).expect_err("the bug was not found");
                println!("{fault:?}: {}", violation.lines().next().unwrap_or_default());
            }

            $(
                #[test]
                #[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
                #[allow(non_snake_case)]
                fn $fault() {
                    finds(Fault::$fault, [$($from,)? 0][0]);
                }
            )*
            $($(
                #[test]
                #[ignore = "takes minutes: `ci/nightly`"]
                #[allow(non_snake_case)]
                fn $long() {
                    finds(Fault::$long, 0);
                }
            )*)?
        }
    };
}
pub(crate) use without;
