//! One round of one set: it is filled, asked for present and for absent keys, and emptied, while the clock runs and each
//! answer is checked.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::sets::{RATE, Set};

pub(crate) const OPERATIONS: [&str; 4] = ["insert", "find present", "find absent", "remove"];

/// How many keys a call of an operation is given. The clock is read between two calls.
const CHUNK: usize = 1_000;

pub(crate) struct Keys {
    pub(crate) present: Vec<String>,
    /// They are never inserted.
    pub(crate) absent: Vec<String>,
}

/// What was measured in one round.
pub(crate) struct Round {
    /// Of each operation, in millions per second.
    pub(crate) speeds: [Option<f64>; OPERATIONS.len()],
    /// The share of the lookups of absent keys that found one.
    pub(crate) false_positives: f64,
    /// How many answers about present keys were checked.
    pub(crate) checked: usize,
}

/// Measures a new set on this many threads. Lookups take at least this long. The error says which answers were wrong.
pub(crate) fn round<S: Sync>(set: &Set<S>, keys: &Keys, threads: usize, time: Duration) -> Result<Round, String> {
    let once = Duration::ZERO;
    let all = |keys: &[String], time, operation: fn(&S, &[&str]) -> usize, shared: &S| {
        on_threads(threads, time, keys, |keys| operation(shared, keys))
    };
    let must_be = |right: usize, done: &Done, otherwise: &str| {
        let wrong = format!("{}: {} of {} {otherwise}", set.name, right.abs_diff(done.yes), done.operations);
        if done.yes == right { Ok(()) } else { Err(wrong) }
    };
    let shared = (set.new)(keys.present.len());
    let insert = all(&keys.present, once, set.insert, &shared);
    must_be(insert.operations, &insert, "inserts failed")?;
    let hit = all(&keys.present, time, set.find, &shared);
    must_be(hit.operations, &hit, "lookups missed a present key")?;
    let miss = all(&keys.absent, time, set.find, &shared);
    let false_positives = miss.yes as f64 / miss.operations as f64;
    // Chance alone never comes near twice the rate, with so many lookups.
    if set.is_exact || false_positives > 2.0 * RATE {
        must_be(0, &miss, "lookups found an absent key")?;
    }
    let mut checked = insert.operations + hit.operations;
    let remove = set.remove.map(|remove| all(&keys.present, once, remove, &shared));
    if let Some(remove) = &remove {
        must_be(remove.operations, remove, "removals did not find their key")?;
        // An empty filter finds nothing, just as an exact set.
        let left = all(&keys.present, once, set.find, &shared);
        must_be(0, &left, "lookups found a removed key")?;
        checked += remove.operations + left.operations;
    }
    let speeds = [Some(insert), Some(hit), Some(miss), remove].map(|done| done.map(|done| done.speed()));
    Ok(Round { speeds, false_positives, checked })
}

/// How many operations threads did, for how many the answer was yes, and how long it took.
struct Done {
    operations: usize,
    yes: usize,
    elapsed: Duration,
}

impl Done {
    /// In millions per second.
    fn speed(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Gives each thread its share of the keys: all of them once, and then again until the time is up. The time is that from
/// the first start to the last end.
fn on_threads(threads: usize, time: Duration, keys: &[String], operation: impl Fn(&[&str]) -> usize + Sync) -> Done {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let ready = Barrier::new(threads);
    let work = |share: &[&str]| {
        ready.wait();
        let start = Instant::now();
        let (mut operations, mut yes) = (0, 0);
        for chunk in share.chunks(CHUNK).cycle() {
            yes += operation(chunk);
            operations += chunk.len();
            if operations >= share.len() && start.elapsed() >= time {
                break;
            }
        }
        (start, Instant::now(), operations, yes)
    };
    let runs: Vec<_> = thread::scope(|scope| {
        let share = |nth| &keys[keys.len() * nth / threads..keys.len() * (nth + 1) / threads];
        let work = &work;
        let workers: Vec<_> = (0..threads).map(share).map(|share| scope.spawn(move || work(share))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).collect()
    });
    let start = runs.iter().map(|run| run.0).min().expect("a thread");
    let end = runs.iter().map(|run| run.1).max().expect("a thread");
    let (operations, yes) = (runs.iter().map(|run| run.2).sum(), runs.iter().map(|run| run.3).sum());
    Done { operations, yes, elapsed: end - start }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::{FILTER, LOCKED};

    fn wrong<S: Sync>(set: Set<S>) -> Option<String> {
        let keys = |name: &str| (0..100).map(|nth| format!("{name}{nth}")).collect();
        round(&set, &Keys { present: keys("present"), absent: keys("absent") }, 2, Duration::ZERO).err()
    }

    /// The control: a set that is wrong in one way ends the round, with an error that says so.
    #[test]
    fn a_wrong_set_is_detected() {
        assert_eq!((wrong(FILTER), wrong(LOCKED)), (None, None));
        let loses_one = wrong(Set { insert: |set, keys| (FILTER.insert)(set, &keys[1..]) + 1, ..FILTER });
        assert_eq!(loses_one.as_deref(), Some("concurrent-cuckoo-filter: 2 of 100 lookups missed a present key"));
        let is_full = wrong(Set { insert: |set, keys| (FILTER.insert)(set, keys) - 1, ..FILTER });
        assert_eq!(is_full.as_deref(), Some("concurrent-cuckoo-filter: 2 of 100 inserts failed"));
        let finds_all = wrong(Set { find: |_, keys| keys.len(), ..FILTER });
        assert_eq!(finds_all.as_deref(), Some("concurrent-cuckoo-filter: 100 of 100 lookups found an absent key"));
        let finds_one = wrong(Set { find: |set, keys| (LOCKED.find)(set, keys).max(1), ..LOCKED });
        assert_eq!(finds_one.as_deref(), Some("RwLock<HashSet>: 2 of 100 lookups found an absent key"));
        let keeps_one =
            wrong(Set { remove: Some(|set, keys| (FILTER.remove.unwrap())(set, &keys[1..]) + 1), ..FILTER });
        assert_eq!(keeps_one.as_deref(), Some("concurrent-cuckoo-filter: 2 of 100 lookups found a removed key"));
        let misses_one = wrong(Set { remove: Some(|set, keys| (FILTER.remove.unwrap())(set, keys) - 1), ..FILTER });
        assert_eq!(misses_one.as_deref(), Some("concurrent-cuckoo-filter: 2 of 100 removals did not find their key"));
    }
}
