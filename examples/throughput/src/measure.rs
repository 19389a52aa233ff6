//! Threads that start together, the clock, the five workloads, and the check of every answer.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::sets::{BATCH, Figures, Operation, Set, SetKind};

pub(crate) const WORKLOADS: [&str; 5] = ["insert", "lookup present", "lookup absent", "90/5/5 mix", "remove"];
/// The indices of some of them.
pub(crate) const PRESENT: usize = 1;
pub(crate) const ABSENT: usize = 2;
pub(crate) const MIX: usize = 3;

/// In the mix, one key of this many is removed and inserted again and again. All others stay.
const CHURN: usize = 20;

/// How many of its churning keys a thread keeps out of the set. So it doesn't insert the key that it has just removed,
/// whose place is still in the cache.
const OUT: usize = 256;

/// What threads did, and for how long.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measurement {
    pub(crate) operations: usize,
    /// How many operations had the answer yes.
    pub(crate) yes: usize,
    pub(crate) elapsed: Duration,
}

impl Measurement {
    fn count(&mut self, keys: &[&[u8]], yes: usize) {
        self.operations += keys.len();
        self.yes += yes;
    }
}

/// All workloads on one set, one after the other. In batches there is no mix: it alternates between operations.
pub(crate) struct Round {
    pub(crate) workloads: [Option<Measurement>; WORKLOADS.len()],
    pub(crate) full: Figures,
}

/// The rounds of one set with so many threads.
pub(crate) struct Row {
    pub(crate) threads: usize,
    pub(crate) set: SetKind,
    pub(crate) rounds: Vec<Round>,
}

impl Row {
    /// The median of the rounds, in millions of operations a second.
    pub(crate) fn speed(&self, workload: usize) -> Option<f64> {
        let measured = self.rounds.iter().filter_map(|round| round.workloads[workload]);
        let mut speeds: Vec<f64> =
            measured.map(|measured| measured.operations as f64 / measured.elapsed.as_secs_f64() / 1e6).collect();
        speeds.sort_by(f64::total_cmp);
        speeds.get(speeds.len() / 2).copied()
    }
}

/// Measures an empty set, which is empty again in the end. Lookups and the mix take at least `time` each. The error says
/// which answer was wrong.
pub(crate) fn round(
    set: &impl Set,
    row: &Row,
    present: &[&[u8]],
    absent: &[&[u8]],
    time: Duration,
) -> Result<Round, String> {
    let whose = format!("in the {} on {} threads", row.set.name(), row.threads);
    let figures = |when: &str, expected: usize| {
        let figures = set.figures();
        let wrong = || format!("wrong answers: {} items and not {expected} {when} {whose}", figures.items);
        if figures.items == expected { Ok(figures) } else { Err(wrong()) }
    };
    // Every answer about a present key must be yes.
    let yes = |done: Measurement| {
        let wrong = || format!("wrong answers: {} misses of present keys {whose}", done.operations - done.yes);
        if done.yes == done.operations { Ok(done) } else { Err(wrong()) }
    };
    let all = |operation, keys: &[&[u8]], time| {
        on_threads(row.threads, keys, |share| pass(share, time, |batch| set.apply(operation, batch)))
    };

    let insert = yes(all(Operation::Insert, present, Duration::ZERO))?;
    let full = figures("after all inserts", present.len())?;
    let find_present = yes(all(Operation::Find, present, time))?;
    let find_absent = all(Operation::Find, absent, time);
    let mix = (row.set != SetKind::Batches).then(|| on_threads(row.threads, present, |share| mix(share, time, set)));
    let mix = mix.map(yes).transpose()?;
    figures("after the mix", present.len())?;
    let remove = yes(all(Operation::Remove, present, Duration::ZERO))?;
    figures("after all removes", 0)?;
    Ok(Round { workloads: [Some(insert), Some(find_present), Some(find_absent), mix, Some(remove)], full })
}

/// Runs the work on every thread, each with its share of the keys, and times it from when the first one starts to when
/// the last one is done.
fn on_threads(threads: usize, keys: &[&[u8]], work: impl Fn(&[&[u8]]) -> Measurement + Sync) -> Measurement {
    let barrier = Barrier::new(threads);
    let spans: Vec<(Instant, Instant, Measurement)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|index| {
                let share = &keys[keys.len() * index / threads..keys.len() * (index + 1) / threads];
                let (barrier, work) = (&barrier, &work);
                scope.spawn(move || {
                    barrier.wait();
                    let started = Instant::now();
                    let done = work(share);
                    (started, Instant::now(), done)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let first = spans.iter().map(|span| span.0).min().expect("a thread");
    let last = spans.iter().map(|span| span.1).max().expect("a thread");
    Measurement {
        operations: spans.iter().map(|span| span.2.operations).sum(),
        yes: spans.iter().map(|span| span.2.yes).sum(),
        // Not 0, so that speeds are finite.
        elapsed: (last - first).max(Duration::from_nanos(1)),
    }
}

/// Goes over all keys once, and then again until the time is up. The clock is read only once for each batch, so that
/// this costs nothing.
fn pass(keys: &[&[u8]], time: Duration, operation: impl Fn(&[&[u8]]) -> usize) -> Measurement {
    let deadline = Instant::now() + time;
    let mut done = Measurement::default();
    for batch in keys.chunks(BATCH).cycle() {
        done.count(batch, operation(batch));
        if done.operations >= keys.len() && Instant::now() >= deadline {
            break;
        }
    }
    done
}

/// Until the time is up, looks up keys that stay, while other keys are removed and inserted again.
///
/// Only this thread removes and inserts the keys of its share. So it never removes a key that is not in the set, which
/// is the one rule that callers of a cuckoo filter must keep.
fn mix(keys: &[&[u8]], time: Duration, set: &impl Set) -> Measurement {
    let deadline = Instant::now() + time;
    let mut done = Measurement::default();
    let mut step = |operation, keys: Option<&[&[u8]]>| {
        let keys = keys.unwrap_or_default();
        done.count(keys, set.apply(operation, keys));
    };
    // The keys are in random order, so any part will do.
    let (churn, stay) = keys.split_at(keys.len().div_ceil(CHURN));
    let out = OUT.min(churn.len() / 2);
    let mut looked_up = stay.chunks(9).cycle();
    let mut inserted = churn.chunks(1).cycle();
    let mut removed = inserted.clone();

    // From here on, inserts are `out` keys behind removals.
    removed.by_ref().take(out).for_each(|key| step(Operation::Remove, Some(key)));
    loop {
        for _ in 0..BATCH / 20 {
            step(Operation::Find, looked_up.next());
            step(Operation::Remove, removed.next());
            step(Operation::Find, looked_up.next());
            step(Operation::Insert, inserted.next());
        }
        if Instant::now() >= deadline {
            break;
        }
    }
    inserted.take(out).for_each(|key| step(Operation::Insert, Some(key)));
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::Filter;

    /// Keeps its promises, but for one key.
    struct Forgetful(Filter, Vec<u8>);

    impl Set for Forgetful {
        fn apply(&self, operation: Operation, keys: &[&[u8]]) -> usize {
            let forgotten = operation == Operation::Find && keys.contains(&&*self.1);
            self.0.apply(operation, keys) - usize::from(forgotten)
        }

        fn figures(&self) -> Figures {
            self.0.figures()
        }
    }

    /// What is wrong with a round of three threads, whose shares are no multiples of a batch, on 12,345 keys.
    fn wrong(set: impl Fn(Filter, &[u8]) -> Forgetful) -> String {
        let text: String = (0..22_345).map(|key| format!("{key}\n")).collect();
        let keys = crate::keys::lines(text.as_bytes());
        let (present, absent) = keys.split_at(12_345);
        let row = Row { threads: 3, set: SetKind::Filter, rounds: Vec::new() };
        let set = set(Filter::with_capacity(12_346), present[7_000]);
        round(&set, &row, present, absent, Duration::ZERO).err().expect("a wrong answer")
    }

    #[test]
    fn a_missed_key_or_a_wrong_number_of_items_is_a_wrong_answer() {
        let missed = wrong(|filter, key| Forgetful(filter, key.into()));
        assert!(missed.contains("1 misses of present keys in the filter on 3 threads"), "{missed}");
        let too_many = wrong(|filter, key| {
            filter.insert(key).unwrap();
            Forgetful(filter, b"no key".into())
        });
        assert!(too_many.contains("12346 items and not 12345 after all inserts"), "{too_many}");
    }
}
