//! One table at a high load. All the time, its oldest keys are removed and new ones inserted.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::keys::key;
use crate::support::ours::{self, Fixed};
use crate::times::{Stopwatch, Times};

/// A rate to request, the slots of a bucket that result from it, and the load.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) slots: usize,
    pub(crate) load: f64,
}

/// 8 slots in a bucket can be filled to 99%. 5 slots, the default, cannot.
pub(crate) const SETTINGS: [Setting; 3] = [
    Setting { name: "5 of 14", rate: 0.001, slots: 5, load: 0.95 },
    Setting { name: "5 of 14", rate: 0.001, slots: 5, load: 0.98 },
    Setting { name: "8 of 8", rate: 0.07, slots: 8, load: 0.99 },
];

/// The kinds of operations. Keys of even numbers are added by the first, others by the second.
pub(crate) const NAMES: [&str; 3] = ["insert", "insert_if_absent", "begin_save"];
pub(crate) const SAVE: usize = 2;

/// The times of each kind. (Those of inserts that fail are in `failed.rs`.)
type Operations = [Times; NAMES.len()];

/// The number of lanes into which the keys are divided. All threads have the same number of lanes.
const LANES: usize = 8;

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
        key(number * LANES as u64 + self.lane)
    }
}

/// A table, filled.
pub(crate) struct Churn {
    filter: Fixed,
    lanes: Vec<Lane>,
}

impl Churn {
    pub(crate) fn new(bytes: usize, setting: Setting) -> Self {
        let build = |capacity| ours::builder().capacity(capacity).false_positive_rate(setting.rate).build();
        let filter = ours::of_size(bytes, setting.slots, |capacity| build(capacity).expect("a valid filter"));
        assert_eq!(filter.plan().layout.slots_per_bucket, setting.slots);
        let len = (filter.plan().slots as f64 * setting.load) as u64 / LANES as u64;
        let fill = |lane| {
            let lane = Lane { lane, oldest: 0, next: len, len };
            (0..len).for_each(|number| filter.insert(&lane.key(number)).expect("there is room"));
            lane
        };
        let lanes = (0..LANES as u64).map(fill).collect();
        Self { filter, lanes }
    }

    /// The times of the operations of this many threads. If `saving` is set, another thread begins saves meanwhile.
    pub(crate) fn run(&mut self, threads: usize, time: Duration, saving: bool) -> Operations {
        let (filter, end) = (&self.filter, Instant::now() + time);
        let mut all = Operations::default();
        thread::scope(|scope| {
            let lanes = self.lanes.chunks_mut(LANES / threads);
            let mut threads: Vec<_> = lanes.map(|lanes| scope.spawn(move || change(filter, lanes, end))).collect();
            if saving {
                threads.push(scope.spawn(move || begin_saves(filter, end)));
            }
            for thread in threads {
                let times = thread.join().expect("no panic");
                all.iter_mut().zip(&times).for_each(|(all, times)| all.extend(times));
            }
        });
        all
    }
}

fn change(filter: &Fixed, lanes: &mut [Lane], end: Instant) -> Operations {
    let mut times = Operations::default();
    while Instant::now() < end {
        for lane in &mut *lanes {
            let oldest = lane.key(lane.oldest);
            assert!(filter.remove(&oldest), "a present key was not removed");
            lane.oldest += 1;
            // After a failed insert, there is one more key to insert.
            for _ in 0..(lane.len - (lane.next - lane.oldest)).min(2) {
                lane.next += u64::from(add(filter, lane.key(lane.next), lane.next as usize % 2, &mut times));
            }
        }
    }
    times
}

/// Adds the key by the operation of this number. Returns whether there was room.
fn add(filter: &Fixed, key: u64, operation: usize, times: &mut Operations) -> bool {
    let watch = Stopwatch::start();
    let added = if operation == 0 { filter.insert(&key).map(|()| true) } else { filter.insert_if_absent(&key) };
    let Ok(added) = added else { return false };
    times[operation].stop(watch);
    // Another key may look like this one. Then it is added anyway, and removed in its turn.
    added || filter.insert(&key).is_ok()
}

fn begin_saves(filter: &Fixed, end: Instant) -> Operations {
    let mut times = Operations::default();
    while Instant::now() < end {
        drop(times[SAVE].time(|| filter.begin_save()).expect("there is memory"));
        thread::sleep(Duration::from_micros(500));
    }
    times
}
