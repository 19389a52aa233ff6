//! One table at a high load. All the time, its oldest keys are removed and new ones inserted.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

use crate::support::clock::{Stopwatch, Times};
use crate::support::filled::on_new_threads;
use crate::support::keys::key;
use crate::support::ours;

/// A rate to request, the slots of a bucket that result from it, and the load.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) slots: usize,
    pub(crate) load: f64,
}

/// 8 slots in a bucket can be filled to 99 %. 5 slots, the default, cannot.
pub(crate) const SETTINGS: [Setting; 3] = [
    Setting { name: "5 of 14", rate: 0.001, slots: 5, load: 0.95 },
    Setting { name: "5 of 14", rate: 0.001, slots: 5, load: 0.98 },
    Setting { name: "8 of 8", rate: 0.07, slots: 8, load: 0.99 },
];

/// The number of lanes into which the keys are divided. All threads have the same number of lanes.
const LANES: u64 = 8;

/// The present keys of a lane: these numbers.
struct Lane {
    lane: u64,
    oldest: u64,
    next: u64,
    /// How many there should be.
    len: u64,
}

impl Lane {
    fn key(&self, number: u64) -> u64 {
        key(number * LANES + self.lane)
    }
}

/// How long each kind of operation took.
#[derive(Clone, Default)]
pub(crate) struct Operations {
    insert: Times,
    insert_if_absent: Times,
    refused: Times,
    remove: Times,
}

impl Operations {
    fn extend(&mut self, others: &Self) {
        self.insert.extend(&others.insert);
        self.insert_if_absent.extend(&others.insert_if_absent);
        self.refused.extend(&others.refused);
        self.remove.extend(&others.remove);
    }

    pub(crate) fn named(&self) -> [(&'static str, &Times); 4] {
        [
            ("insert", &self.insert),
            ("insert_if_absent", &self.insert_if_absent),
            ("either, refused", &self.refused),
            ("remove", &self.remove),
        ]
    }
}

/// A table, filled.
pub(crate) struct Churn {
    filter: ConcurrentCuckooFilter<u64, RandomState>,
    lanes: Vec<Mutex<Lane>>,
}

impl Churn {
    pub(crate) fn new(bytes: usize, setting: Setting) -> Self {
        let build = |capacity| ours::builder().capacity(capacity).false_positive_rate(setting.rate).build();
        let filter = ours::of_size(bytes, setting.slots, |capacity| build(capacity).expect("a valid filter"));
        assert_eq!(filter.plan().layout.slots_per_bucket, setting.slots);
        let len = (filter.plan().slots as f64 * setting.load) as u64 / LANES;
        let fill = |lane| {
            let lane = Lane { lane, oldest: 0, next: len, len };
            (0..len).for_each(|number| filter.insert(&lane.key(number)).expect("there is room"));
            Mutex::new(lane)
        };
        let lanes = (0..LANES).map(fill).collect();
        Self { filter, lanes }
    }

    /// The times of the operations of this many threads.
    pub(crate) fn run(&self, threads: u64, time: Duration) -> Operations {
        let end = Instant::now() + time;
        let (_, results) = on_new_threads(threads, |thread| self.work(thread, threads, end));
        let mut all = Operations::default();
        results.iter().for_each(|operations| all.extend(operations));
        all
    }

    fn work(&self, thread: u64, threads: u64, end: Instant) -> Operations {
        let mut operations = Operations::default();
        let lanes = self.lanes.iter().skip(thread as usize).step_by(threads as usize);
        let mut lanes: Vec<_> = lanes.map(|lane| lane.lock().expect("no panic")).collect();
        while Instant::now() < end {
            for lane in &mut lanes {
                let oldest = lane.key(lane.oldest);
                let removed = operations.remove.time(|| self.filter.remove(&oldest));
                assert!(removed, "a present key was not removed");
                lane.oldest += 1;
                // After a refused insert, there is one more key to insert.
                for _ in 0..(lane.len - (lane.next - lane.oldest)).min(2) {
                    self.add(lane, &mut operations);
                }
            }
        }
        operations
    }

    fn add(&self, lane: &mut Lane, operations: &mut Operations) {
        let new = lane.key(lane.next);
        let by_insert = lane.next.is_multiple_of(2);
        let watch = Stopwatch::start();
        let added =
            if by_insert { self.filter.insert(&new).map(|()| true) } else { self.filter.insert_if_absent(&new) };
        let kind = match added {
            Err(_) => &mut operations.refused,
            Ok(_) if by_insert => &mut operations.insert,
            Ok(_) => &mut operations.insert_if_absent,
        };
        kind.stop(watch);
        // Another key may look like this one. Then it is added anyway, and removed in its turn.
        if added.is_ok_and(|added| added || self.filter.insert(&new).is_ok()) {
            lane.next += 1;
        }
    }

    /// The times to begin a save, during the changes of this many threads.
    #[cfg(feature = "snapshot")]
    pub(crate) fn saves(&self, threads: u64, time: Duration) -> Times {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::thread;

        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let saver = scope.spawn(|| {
                let mut times = Times::default();
                while !ended.load(Ordering::Relaxed) {
                    drop(times.time(|| self.filter.begin_save()).expect("there is memory"));
                    thread::sleep(Duration::from_micros(500));
                }
                times
            });
            self.run(threads, time);
            ended.store(true, Ordering::Relaxed);
            saver.join().expect("no panic")
        })
    }
}
