//! What a history is, how threads make one, and how it is checked.

use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::model::{Fault, Seeded};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

use crate::common::{Job, job, on_real_threads, on_shuttle_threads, scaled, under_schedules};

/// An operation that has ended: what it was, when it was called, and when it answered.
#[derive(Clone, Debug)]
pub(crate) struct Event<O> {
    pub(crate) called: usize,
    pub(crate) answered: usize,
    pub(crate) operation: O,
}

impl<O> Event<O> {
    /// Whether the two operations were under way at the same time.
    pub(crate) fn overlaps<P>(&self, other: &Event<P>) -> bool {
        self.called < other.answered && other.called < self.answered
    }
}

/// A thread's record of its operations.
pub(crate) struct Diary<O> {
    clock: Arc<AtomicUsize>,
    events: Vec<Event<O>>,
}

impl<O> Diary<O> {
    /// The present moment. No two calls return the same.
    pub(crate) fn time(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Records an operation.
    pub(crate) fn write(&mut self, ask: impl FnOnce() -> O) {
        let _ = self.write_all(|| [ask()]);
    }

    /// Records operations that were under way together, and returns the records.
    pub(crate) fn write_all<I: IntoIterator<Item = O>>(&mut self, ask: impl FnOnce() -> I) -> &[Event<O>] {
        let called = self.time();
        let operations = ask();
        let answered = self.time();
        let before = self.events.len();
        self.events.extend(operations.into_iter().map(|operation| Event { called, answered, operation }));
        &self.events[before..]
    }

    /// Saves something with `save`, which calls its argument when the save has begun. Returns the result, and a
    /// function that records an operation as under way until the save began.
    pub(crate) fn save<R, S>(&self, save: S) -> (R, impl Fn(O) -> Event<O> + use<R, S, O>)
    where
        S: FnOnce(&mut dyn FnMut()) -> R,
    {
        let called = self.time();
        let mut answered = 0;
        let saved = save(&mut || answered = self.time());
        (saved, move |operation| Event { called, answered, operation })
    }

    /// Adds an operation with the times that it already has.
    pub(crate) fn add(&mut self, event: Event<O>) {
        self.events.push(event);
    }
}

/// An initial filter, and what each thread asks it.
pub(crate) trait World: Send + Sync + 'static {
    /// A question and its answer.
    type Operation: Clone + Debug + Send + 'static;
    /// The specification of the filter.
    type Specification: Specification<Operation = Self::Operation>;
    type Question: Copy + Send + 'static;
    /// What a thread remembers between its questions.
    type Thread: Send + 'static;

    /// Each seed gives another world.
    fn new(seed: u64) -> Self;

    /// What the filter holds at the beginning, as an operation.
    fn given(&self) -> Self::Operation;

    /// What each thread asks, and what it remembers at first.
    fn threads(&self) -> Vec<(Self::Thread, Vec<Self::Question>)>;

    fn ask(&self, question: Self::Question, thread: &mut Self::Thread, diary: &mut Diary<Self::Operation>);

    /// Asks the final questions, after all threads have ended.
    fn ask_at_last(&self, diary: &mut Diary<Self::Operation>);

    /// Adds operations that follow from the history as a whole. Returns `false` for a history that the
    /// specification does not cover.
    fn complete(&self, events: &mut Vec<Event<Self::Operation>>) -> bool;

    /// Checks what no operation asks about.
    fn audit(&self, _events: &[Event<Self::Operation>]) -> Result<(), String> {
        Ok(())
    }
}

/// Asks all questions, on threads that `run` runs, and returns what is wrong with the answers.
fn play<W: World>(world: Arc<W>, run: impl FnOnce(Vec<Job>)) -> Result<(), String> {
    let clock = Arc::new(AtomicUsize::new(1));
    let diary = || Diary { clock: Arc::clone(&clock), events: Vec::new() };
    let all = Arc::new(Mutex::new(Vec::new()));
    let asker = |(mut thread, questions): (W::Thread, Vec<W::Question>)| {
        let (world, all, mut diary) = (Arc::clone(&world), Arc::clone(&all), diary());
        job(move || {
            questions.into_iter().for_each(|question| world.ask(question, &mut thread, &mut diary));
            all.lock().expect("no thread fails").append(&mut diary.events);
        })
    };
    run(world.threads().into_iter().map(asker).collect());
    let mut last = diary();
    world.ask_at_last(&mut last);
    let mut events = std::mem::take(&mut *all.lock().expect("no thread fails"));
    events.append(&mut last.events);
    if !world.complete(&mut events) {
        return Ok(());
    }

    let given = world.given();
    // Each operation is a process of its own, so the operations of one batch may take effect in any order.
    let mut times = vec![(0, 0, Action::Call(given.clone())), (0, 0, Action::Response(given.clone()))];
    for (nth, Event { called, answered, operation }) in events.iter().enumerate() {
        times.push((*called, nth + 1, Action::Call(operation.clone())));
        times.push((*answered, nth + 1, Action::Response(operation.clone())));
    }
    times.sort_by_key(|&(time, ..)| time);
    let history = times.iter().map(|(_, process, action)| (*process, action.clone())).collect();
    if !WGLChecker::<W::Specification>::is_linearizable(History::from_actions(history)) {
        events.sort_by_key(|event| event.called);
        let lines = events
            .iter()
            .map(|Event { called, answered, operation }| format!("\n{called:4} to {answered:4}: {operation:?}"));
        return Err(format!("not linearizable, given {given:?}:{}", lines.collect::<String>()));
    }
    world.audit(&events)
}

/// What went wrong, including panics.
fn caught(play: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", message.unwrap_or("of another kind")))
    })
}

/// Checks one history of real threads for each of these seeds. Returns the first violation, if there is one.
pub(crate) fn on_real<W: World>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| {
        let result = caught(|| play(Arc::new(W::new(seed)), |jobs| on_real_threads(seed, faults, jobs)));
        result.map_err(|violation| format!("seed {seed}: {violation}"))
    })
}

/// The same under shuttle's schedules: some of each kind for each world.
pub(crate) fn under_shuttle<W: World>(seeds: Range<u64>, faults: &[Fault]) -> Result<(), String> {
    const SCHEDULES: usize = 10;
    seeds.into_iter().try_for_each(|seed| {
        let first = Arc::new(Mutex::new(Ok(())));
        let (result, faults) = (Arc::clone(&first), faults.to_vec());
        let model = move || {
            let world = Arc::new(W::new(seed));
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

/// Defines both ways to make histories of these worlds. The worlds are interleaved.
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
