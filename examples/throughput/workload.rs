//! What is measured and checked. Everything that touches the filter stands here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, Encoding, InsertError};
use indicatif::HumanCount;

use crate::Failure;
use crate::crew::{BATCH, Filter, Measurement, Phase, Tally, Worker};
use crate::keys::{KeySet, Keys};
use crate::progress::Progress;

/// In the mix, one key in this many comes and goes; all others stay.
const CHURN: usize = 20;

/// How many of its churning keys a thread keeps out of the filter, so that it doesn't put back the one it has just
/// removed.
const OUT: usize = 256;

/// Out of so many operations of the mix, one is an insert and one a remove.
const MIX: usize = 20;

/// Which filter to build.
pub(crate) struct Setup {
    pub(crate) items: usize,
    pub(crate) rate: f64,
    pub(crate) encoding: Option<Encoding>,
}

impl Setup {
    pub(crate) fn build(&self) -> Result<Filter, Failure> {
        let mut builder = Filter::builder().capacity(self.items).false_positive_rate(self.rate);
        if let Some(encoding) = self.encoding {
            builder = builder.encoding(encoding);
        }
        builder.build().map_err(|error| match error {
            BuildError::RateTooLow { .. } if self.encoding.is_some() => {
                Failure::Argument(format!("{error}; give a higher --rate, or try without --encoding"))
            }
            BuildError::RateTooLow { .. } => Failure::Argument(format!("{error}; give a higher --rate")),
            other => Failure::Build(other),
        })
    }
}

/// What was found on one number of threads.
pub(crate) struct Figures {
    pub(crate) threads: usize,
    pub(crate) insert: Measurement,
    pub(crate) present: Measurement,
    pub(crate) absent: Measurement,
    pub(crate) mix: Measurement,
    pub(crate) remove: Measurement,
    /// Of the full filter.
    pub(crate) expected_rate: f64,
    /// Of the full filter.
    pub(crate) bits_per_item: f64,
    /// A wrong value of `len`, if there was one.
    pub(crate) fault: Option<String>,
}

impl Figures {
    /// How often a key that is present was not found.
    pub(crate) fn misses(&self) -> u64 {
        [self.present, self.mix, self.remove].map(|measurement| measurement.tally.unexpected).iter().sum()
    }

    /// How often that was looked at.
    pub(crate) fn checks(&self) -> u64 {
        [self.present, self.mix, self.remove].map(|measurement| measurement.tally.answers).iter().sum()
    }
}

/// Measures all workloads, each for at least `bound`, on a filter of room for the present keys.
pub(crate) fn run(
    filter: Filter,
    keys: &KeySet,
    threads: usize,
    bound: Duration,
    progress: &Progress,
) -> Result<Figures, Failure> {
    let filter = &Arc::new(filter);
    let present = keys.present();
    let items = present.len();
    let phase = |name: &str, operations: usize| {
        let label = format!("{threads} thread{}: {name}", if threads == 1 { "" } else { "s" });
        Phase::new(filter, threads, bound, progress.stage(&label, operations as u64, bound))
    };
    let mut fault = None;
    let mut check_len = |when: &str, expected: usize| {
        let len = filter.len();
        if len != expected {
            let (len, expected) = (HumanCount(len as u64), HumanCount(expected as u64));
            fault.get_or_insert_with(|| format!("len() was {len} and not {expected} {when} on {threads} threads"));
        }
    };

    let mut insert = phase("insert", items);
    loop {
        insert.run(|worker| insert_all(worker, present))?;
        check_len("after all inserts", items);
        if insert.is_long_enough() {
            break;
        }
        filter.clear();
    }
    let insert = insert.finish();
    let expected_rate = filter.false_positive_rate();
    let bits_per_item = filter.memory_usage() as f64 * 8.0 / items as f64;

    let mut lookup = phase("lookup of present keys", items);
    lookup.run(|worker| Ok(look_up(worker, present, true, bound)))?;
    let lookup_present = lookup.finish();

    let mut lookup = phase("lookup of absent keys", keys.absent().len());
    lookup.run(|worker| Ok(look_up(worker, keys.absent(), false, bound)))?;
    let lookup_absent = lookup.finish();

    // The keys are in random order, so the first are as good as any.
    let churn = items.div_ceil(CHURN);
    let mut mix = phase("90/5/5 mix", 0);
    mix.run(|worker| mix_up(worker, present.range(churn..items), present.range(0..churn), bound))?;
    check_len("after the mix", items);
    let mix = mix.finish();

    let mut remove = phase("remove", items);
    loop {
        remove.run(|worker| Ok(remove_all(worker, present)))?;
        check_len("after all removes", 0);
        if remove.is_long_enough() {
            break;
        }
        for key in present.iter() {
            filter.insert(key)?;
        }
    }
    let remove = remove.finish();

    Ok(Figures {
        threads,
        insert,
        present: lookup_present,
        absent: lookup_absent,
        mix,
        remove,
        expected_rate,
        bits_per_item,
        fault,
    })
}

fn insert_all(worker: &Worker<'_>, keys: Keys<'_>) -> Result<Tally, InsertError> {
    let filter = &*worker.filter;
    let mut tally = Tally::default();
    for chunk in worker.share(keys).chunks(BATCH) {
        for key in chunk.iter() {
            filter.insert(key)?;
            tally.count_insert();
        }
        worker.report(chunk.len());
    }
    Ok(tally)
}

fn remove_all(worker: &Worker<'_>, keys: Keys<'_>) -> Tally {
    let filter = &*worker.filter;
    let mut tally = Tally::default();
    for chunk in worker.share(keys).chunks(BATCH) {
        for key in chunk.iter() {
            tally.count_answer(filter.remove(key));
        }
        worker.report(chunk.len());
    }
    tally
}

/// Looks up every key at least once, then goes on until the time is up.
fn look_up(worker: &Worker<'_>, keys: Keys<'_>, expected: bool, bound: Duration) -> Tally {
    let deadline = Instant::now() + bound;
    let filter = &*worker.filter;
    let keys = worker.share(keys);
    let mut tally = Tally::default();
    let mut passes = 0;
    while keys.len() > 0 && (passes == 0 || Instant::now() < deadline) {
        for chunk in keys.chunks(BATCH) {
            for key in chunk.iter() {
                tally.count_answer(filter.contains(key) == expected);
            }
            worker.report(chunk.len());
            if passes > 0 && Instant::now() >= deadline {
                break;
            }
        }
        passes += 1;
    }
    tally
}

/// Looks up keys that stay while keys that churn go and come, until the time is up.
///
/// Only this thread removes and inserts the keys of its share of the churn, so it removes none that isn't in: that is
/// the one rule that a cuckoo filter has.
fn mix_up(worker: &Worker<'_>, stay: Keys<'_>, churn: Keys<'_>, bound: Duration) -> Result<Tally, InsertError> {
    let deadline = Instant::now() + bound;
    let filter = &*worker.filter;
    let churn = worker.share(churn);
    let out = OUT.min(churn.len() / 2);
    let mut tally = Tally::default();

    // Three walks in circles over the thread's keys. Inserts are `out` keys behind removes.
    let mut looked_up = worker.share(stay).iter().cycle();
    let mut removed = churn.iter().cycle();
    let mut inserted = churn.iter().cycle();
    for key in removed.by_ref().take(out) {
        tally.count_answer(filter.remove(key));
    }
    loop {
        for _ in 0..BATCH / MIX {
            for key in looked_up.by_ref().take(MIX / 2 - 1) {
                tally.count_answer(filter.contains(key));
            }
            if let Some(key) = removed.next() {
                tally.count_answer(filter.remove(key));
            }
            for key in looked_up.by_ref().take(MIX / 2 - 1) {
                tally.count_answer(filter.contains(key));
            }
            if let Some(key) = inserted.next() {
                filter.insert(key)?;
                tally.count_insert();
            }
        }
        worker.report(BATCH);
        if Instant::now() >= deadline {
            break;
        }
    }
    for key in inserted.take(out) {
        filter.insert(key)?;
        tally.count_insert();
    }
    Ok(tally)
}
