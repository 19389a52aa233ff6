//! How the threads of a model run: real threads that pause at random, or shuttle's threads under a schedule that
//! shuttle chooses.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::cell::RefCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;

use ccf_steps::model::{Fault, Seeded, Step, before_each_step, inject};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler, UrwRandomScheduler};
use shuttle::sync::atomic::AtomicBool;
use shuttle::{Config, FailurePersistence, Runner};

/// What one thread does.
pub type Job = Box<dyn FnOnce() + Send>;

pub fn job(run: impl FnOnce() + Send + 'static) -> Job {
    Box::new(run)
}

/// `usual`, multiplied by the factor in the environment variable.
pub fn scaled(usual: usize, variable: &str) -> usize {
    usual * std::env::var(variable).map_or(1, |factor| factor.parse().expect("a number of times"))
}

/// Runs each job on a real thread. Before a step, a thread goes on at once, waits a little, or lets another one
/// run. So the steps of all threads interleave, although a whole operation takes less than a microsecond.
pub fn on_real_threads(seed: u64, faults: &[Fault], jobs: Vec<Job>) {
    let start = &Barrier::new(jobs.len());
    thread::scope(|scope| {
        for (id, job) in jobs.into_iter().enumerate() {
            scope.spawn(move || {
                inject(faults);
                let mut random = SmallRng::seed_from_u64(seed ^ (id as u64 + 1) << 56);
                // Some threads pause often, some seldom.
                let often = random.random_range(2..6);
                let random = RefCell::new(random);
                start.wait();
                before_each_step(Some(Rc::new(move |step| match random.borrow_mut().random::<u32>() {
                    _ if step == Step::Wait => thread::yield_now(),
                    chance if chance >> (32 - often) != 0 => (),
                    chance if chance % 8 == 0 => thread::yield_now(),
                    chance => (0..chance % 500).for_each(|_| spin_loop()),
                })));
                job();
                before_each_step(None);
            });
        }
    });
}

/// Runs each job on a thread of the current shuttle execution. Any of these threads may take the next step.
pub fn on_shuttle_threads(jobs: Vec<Job>) {
    // Each access to an atomic of shuttle's lets its scheduler choose which thread continues. A yield would do
    // more: it tells the scheduler to prefer other threads. That is right only for a thread that waits.
    let turn = AtomicBool::new(false);
    before_each_step(Some(Rc::new(move |step| match step {
        // The execution has failed and is being taken down.
        _ if thread::panicking() => (),
        Step::Wait => shuttle::thread::yield_now(),
        _ => _ = turn.load(Ordering::SeqCst),
    })));
    let threads: Vec<_> = jobs.into_iter().map(shuttle::thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a failed thread ends the execution"));
    before_each_step(None);
}

/// Runs a model under this many schedules of each of shuttle's kinds. The same seed gives the same schedules.
///
/// Uniform random walks are uniform over all schedules. A random scheduler favors schedules that switch threads
/// often. PCT (probabilistic concurrency testing) favors those that switch at few places, but for a long time.
pub fn under_schedules(seed: u64, schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    under_each_kind(seed, schedules, Arc::new(model));
}

/// Runs the threads of the world of a seed by this function, and checks their history.
pub type Run = fn(u64, &dyn Fn(Vec<Job>));

/// A check of the world of a seed under random schedules, with tables of the smallest and of the usual layout.
pub fn under_shuttle([smallest, usual]: [Run; 2]) -> impl Fn(u64) {
    move |seed| {
        under_schedules(seed, 20, move || smallest(seed, &on_shuttle_threads));
        under_schedules(seed, 10, move || usual(seed, &on_shuttle_threads));
    }
}

/// The same with real threads.
pub fn with_real_threads(runs: [Run; 2]) -> impl Fn(u64) {
    move |seed| runs.iter().for_each(|run| run(seed, &|jobs| on_real_threads(seed, &[], jobs)))
}

/// With this step left out, `check` of some seed fails.
pub fn breaks_without(fault: Fault, check: impl Fn(u64)) {
    let _seeded = Seeded::bugs(&[fault]);
    let breaks = |seed: &u64| catch_unwind(AssertUnwindSafe(|| check(*seed))).is_err();
    let seed = (0..400).find(breaks).unwrap_or_else(|| panic!("the bug was not found: {fault:?}"));
    println!("{fault:?}: world {seed}");
}

/// It takes any model: shuttle is compiled once for it, and not again for each model, which would take half a minute.
fn under_each_kind(seed: u64, schedules: usize, model: Arc<dyn Fn() + Send + Sync>) {
    let kinds: [Box<dyn Scheduler + Send>; 3] = [
        Box::new(UrwRandomScheduler::new_from_seed(seed, schedules)),
        Box::new(RandomScheduler::new_from_seed(seed, schedules)),
        Box::new(PctScheduler::new_from_seed(seed, 4, schedules)),
    ];
    for scheduler in kinds {
        let mut config = Config::new();
        // A search for a path keeps its queue on the stack.
        config.stack_size = 1 << 18;
        config.failure_persistence = FailurePersistence::None;
        let model = Arc::clone(&model);
        Runner::new(scheduler, config).run(move || model());
    }
}
