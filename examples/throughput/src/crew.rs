//! Threads that start together, and the clock that times them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};

use crate::failure::Failure;
use crate::keys::Keys;
use crate::progress::Stage;

pub(crate) type Filter = ConcurrentCuckooFilter<[u8]>;

/// How many operations a thread does before it looks at the clock again and reports its progress: enough that the
/// look costs nothing. It is also the number of keys in a batch.
pub(crate) const CHUNK: usize = 1_000;

/// How often the progress bar moves.
const TICK: Duration = Duration::from_millis(100);

/// What threads have done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Operations with nothing to check.
    pub(crate) inserts: u64,
    /// Operations whose answer has been checked.
    pub(crate) answers: u64,
    /// How many of these answers were wrong.
    pub(crate) unexpected: u64,
}

impl Tally {
    #[inline]
    pub(crate) fn count_insert(&mut self) {
        self.count_inserts(1);
    }

    #[inline]
    pub(crate) fn count_inserts(&mut self, inserts: usize) {
        self.inserts += inserts as u64;
    }

    #[inline]
    pub(crate) fn count_answer(&mut self, as_expected: bool) {
        self.answers += 1;
        self.unexpected += u64::from(!as_expected);
    }

    /// Counts the answers to a batch of so many keys. If there are more or fewer answers than keys, no answer can be
    /// matched to a key, so all count as wrong.
    pub(crate) fn count_answers(&mut self, keys: usize, answers: &[bool], expected: bool) {
        let as_expected = answers.iter().filter(|&&answer| answer == expected).count();
        let right = if answers.len() == keys { as_expected } else { 0 };
        self.answers += keys as u64;
        self.unexpected += (keys - right) as u64;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.inserts += other.inserts;
        self.answers += other.answers;
        self.unexpected += other.unexpected;
    }

    pub(crate) fn operations(self) -> u64 {
        self.inserts + self.answers
    }
}

/// A tally and the time it took.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measurement {
    pub(crate) tally: Tally,
    pub(crate) elapsed: Duration,
}

impl Measurement {
    pub(crate) fn millions_a_second(self) -> f64 {
        self.tally.operations() as f64 / self.elapsed.as_secs_f64() / 1e6
    }
}

/// What each thread works with.
pub(crate) struct Worker<'a> {
    /// A handle of the thread's own, as each thread of a server would have one.
    pub(crate) filter: Arc<Filter>,
    index: usize,
    threads: usize,
    operations: &'a AtomicU64,
}

impl Worker<'_> {
    /// This thread's part of the keys.
    pub(crate) fn share<'k>(&self, keys: Keys<'k>) -> Keys<'k> {
        keys.share(self.index, self.threads)
    }

    /// Adds a number of operations to the progress bar.
    pub(crate) fn report(&self, operations: usize) {
        // Relaxed: the count is only shown.
        self.operations.fetch_add(operations as u64, Ordering::Relaxed);
    }
}

/// One workload on one number of threads, measured in one or more runs.
pub(crate) struct Phase<'f> {
    filter: &'f Arc<Filter>,
    threads: usize,
    bound: Duration,
    stage: Stage,
    began: Instant,
    sum: Measurement,
}

impl<'f> Phase<'f> {
    pub(crate) fn new(filter: &'f Arc<Filter>, threads: usize, bound: Duration, stage: Stage) -> Self {
        Self { filter, threads, bound, stage, began: Instant::now(), sum: Measurement::default() }
    }

    /// Runs the work on every thread, and times it from when the first one starts to when the last one is done.
    pub(crate) fn run(
        &mut self,
        work: impl Fn(&Worker<'_>) -> Result<Tally, InsertError> + Sync,
    ) -> Result<(), Failure> {
        let barrier = Barrier::new(self.threads);
        let operations = AtomicU64::new(0);
        let (results, received) = mpsc::channel();
        let mut spans = Vec::with_capacity(self.threads);
        let mut outcome = Ok(());
        let earlier = self.sum.tally.operations();
        thread::scope(|scope| {
            for index in 0..self.threads {
                let worker =
                    Worker { filter: Arc::clone(self.filter), index, threads: self.threads, operations: &operations };
                let (barrier, work, results) = (&barrier, &work, results.clone());
                let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                    barrier.wait();
                    let started = Instant::now();
                    let tally = work(&worker);
                    // The receiver lives longer than this thread, so this can't fail.
                    let _ = results.send((started, Instant::now(), tally));
                });
                if let Err(error) = spawned {
                    // The threads that did start wait at the barrier for ever. They cannot be stopped from here.
                    crate::progress::say(format_args!("error: {}", Failure::Threads { wanted: self.threads, error }));
                    std::process::exit(1);
                }
            }
            drop(results);
            let launched = Instant::now();
            // Ends when the last worker has dropped its sender.
            loop {
                match received.recv_timeout(TICK) {
                    Ok((started, ended, Ok(tally))) => {
                        self.sum.tally.add(tally);
                        spans.push((started, ended));
                    }
                    Ok((_, _, Err(error))) => outcome = Err(error),
                    Err(RecvTimeoutError::Timeout) => {
                        let done = earlier + operations.load(Ordering::Relaxed);
                        self.stage.update(done, self.sum.elapsed + launched.elapsed());
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        outcome?;
        let first = spans.iter().map(|span| span.0).min();
        let last = spans.iter().map(|span| span.1).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.sum.elapsed += last - first;
        }
        self.stage.update(self.sum.tally.operations(), self.sum.elapsed);
        Ok(())
    }

    /// Whether it was measured for the time asked for, or took several times as long with the parts that are not
    /// measured: starting threads and filling the filter again.
    pub(crate) fn is_long_enough(&self) -> bool {
        self.sum.elapsed >= self.bound || self.began.elapsed() >= 3 * self.bound
    }

    pub(crate) fn finish(self) -> Measurement {
        self.stage.finish(self.sum.tally.operations(), self.sum.elapsed);
        self.sum
    }
}
