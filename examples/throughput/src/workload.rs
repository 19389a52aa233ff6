//! What is measured and checked. All uses of the filter are in this file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, Encoding, InsertError};
use indicatif::HumanCount;

use crate::crew::{CHUNK, Filter, Measurement, Phase, Tally, Worker};
use crate::failure::Failure;
use crate::keys::{KeySet, Keys};
use crate::progress::Progress;

/// In the mix, one key of this many is removed and inserted again and again. All others stay.
const CHURN: usize = 20;

/// How many of its churning keys a thread keeps out of the filter. So it doesn't insert the key that it has just
/// removed.
const OUT: usize = 256;

/// Of so many operations of the mix, one is an insert and one is a removal.
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

/// How a thread passes its keys to the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// One key a call.
    Single,
    /// A whole chunk of keys a call.
    Batched,
}

impl Calls {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Batched];

    /// How many keys a call takes.
    pub(crate) fn keys(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Batched => CHUNK,
        }
    }
}

/// The names of what [`Figures::speeds`] returns.
pub(crate) const WORKLOADS: [&str; 5] = ["insert", "lookup present", "lookup absent", "90/5/5 mix", "remove"];

/// The results for one number of threads.
pub(crate) struct Figures {
    pub(crate) threads: usize,
    pub(crate) calls: Calls,
    pub(crate) insert: Measurement,
    pub(crate) present: Measurement,
    pub(crate) absent: Measurement,
    /// `None` in batches: the mix alternates between different operations.
    pub(crate) mix: Option<Measurement>,
    pub(crate) remove: Measurement,
    /// Of the full filter.
    pub(crate) expected_rate: f64,
    /// Of the full filter.
    pub(crate) bits_per_item: f64,
    /// A wrong value of `len`, if there was one.
    pub(crate) fault: Option<String>,
}

impl Figures {
    /// In millions of operations a second.
    pub(crate) fn speeds(&self) -> [Option<f64>; WORKLOADS.len()] {
        [Some(self.insert), Some(self.present), Some(self.absent), self.mix, Some(self.remove)]
            .map(|measurement| measurement.map(Measurement::millions_a_second))
    }

    /// How often a key that is present was not found.
    pub(crate) fn misses(&self) -> u64 {
        self.of_present_keys().unexpected
    }

    /// How many lookups of present keys were checked.
    pub(crate) fn checks(&self) -> u64 {
        self.of_present_keys().answers
    }

    fn of_present_keys(&self) -> Tally {
        let mut tally = Tally::default();
        [Some(self.present), self.mix, Some(self.remove)].iter().flatten().for_each(|part| tally.add(part.tally));
        tally
    }
}

/// Measures all workloads, each for at least `bound`, on a filter with room for the present keys.
pub(crate) fn run(
    filter: Filter,
    keys: &KeySet,
    threads: usize,
    calls: Calls,
    bound: Duration,
    progress: &Progress,
) -> Result<Figures, Failure> {
    let filter = &Arc::new(filter);
    let present = keys.present();
    let items = present.len();
    let phase = |name: &str, operations: usize| {
        let plural = if threads == 1 { "" } else { "s" };
        let batched = if calls == Calls::Batched { " in batches" } else { "" };
        let label = format!("{threads} thread{plural}: {name}{batched}");
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

    let [insert_name, present_name, absent_name, mix_name, remove_name] = WORKLOADS;
    let mut insert = phase(insert_name, items);
    loop {
        insert.run(|worker| insert_all(worker, calls, present))?;
        check_len("after all inserts", items);
        if insert.is_long_enough() {
            break;
        }
        filter.clear();
    }
    let insert = insert.finish();
    let expected_rate = filter.false_positive_rate();
    let bits_per_item = filter.memory_usage() as f64 * 8.0 / items as f64;

    let mut lookup = phase(present_name, items);
    lookup.run(|worker| Ok(look_up(worker, calls, present, true, bound)))?;
    let lookup_present = lookup.finish();

    let mut lookup = phase(absent_name, keys.absent().len());
    lookup.run(|worker| Ok(look_up(worker, calls, keys.absent(), false, bound)))?;
    let lookup_absent = lookup.finish();

    let mix = if calls == Calls::Single {
        // The keys are in random order, so any part will do.
        let churn = items.div_ceil(CHURN);
        let mut mix = phase(mix_name, 0);
        mix.run(|worker| mix_up(worker, present.range(churn..items), present.range(0..churn), bound))?;
        check_len("after the mix", items);
        Some(mix.finish())
    } else {
        None
    };

    let mut remove = phase(remove_name, items);
    loop {
        remove.run(|worker| Ok(remove_all(worker, calls, present)))?;
        check_len("after all removes", 0);
        if remove.is_long_enough() {
            break;
        }
        filter.insert_batch(present.iter())?;
    }
    let remove = remove.finish();

    Ok(Figures {
        threads,
        calls,
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

fn insert_all(worker: &Worker<'_>, calls: Calls, keys: Keys<'_>) -> Result<Tally, InsertError> {
    let filter = &*worker.filter;
    let mut tally = Tally::default();
    for chunk in worker.share(keys).chunks(CHUNK) {
        match calls {
            Calls::Single => {
                for key in chunk.iter() {
                    filter.insert(key)?;
                    tally.count_insert();
                }
            }
            Calls::Batched => tally.count_inserts(filter.insert_batch(chunk.iter()).map_err(|ended| ended.error)?),
        }
        worker.report(chunk.len());
    }
    Ok(tally)
}

fn remove_all(worker: &Worker<'_>, calls: Calls, keys: Keys<'_>) -> Tally {
    let filter = &*worker.filter;
    let mut tally = Tally::default();
    let mut removed = Vec::with_capacity(CHUNK);
    for chunk in worker.share(keys).chunks(CHUNK) {
        match calls {
            Calls::Single => chunk.iter().for_each(|key| tally.count_answer(filter.remove(key))),
            Calls::Batched => {
                removed.clear();
                filter.remove_batch(chunk.iter(), &mut removed);
                tally.count_answers(chunk.len(), &removed, true);
            }
        }
        worker.report(chunk.len());
    }
    tally
}

/// Looks up every key at least once, then continues until the time is up.
fn look_up(worker: &Worker<'_>, calls: Calls, keys: Keys<'_>, expected: bool, bound: Duration) -> Tally {
    let deadline = Instant::now() + bound;
    let filter = &*worker.filter;
    let keys = worker.share(keys);
    let mut tally = Tally::default();
    let mut found = Vec::with_capacity(CHUNK);
    let mut passes = 0;
    while keys.len() > 0 && (passes == 0 || Instant::now() < deadline) {
        for chunk in keys.chunks(CHUNK) {
            match calls {
                Calls::Single => {
                    chunk.iter().for_each(|key| tally.count_answer(filter.contains(key) == expected));
                }
                Calls::Batched => {
                    found.clear();
                    filter.contains_batch(chunk.iter(), &mut found);
                    tally.count_answers(chunk.len(), &found, expected);
                }
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

/// Until the time is up, looks up keys that stay, while other keys are removed and inserted again.
///
/// Only this thread removes and inserts the keys of its share of the churn. So it never removes a key that is not in
/// the filter, which is the one rule that callers of a cuckoo filter must keep.
fn mix_up(worker: &Worker<'_>, stay: Keys<'_>, churn: Keys<'_>, bound: Duration) -> Result<Tally, InsertError> {
    let deadline = Instant::now() + bound;
    let filter = &*worker.filter;
    let churn = worker.share(churn);
    let out = OUT.min(churn.len() / 2);
    let mut tally = Tally::default();

    // Three cyclic walks over the thread's keys. Inserts are `out` keys behind removals.
    let mut looked_up = worker.share(stay).iter().cycle();
    let mut removed = churn.iter().cycle();
    let mut inserted = churn.iter().cycle();
    for key in removed.by_ref().take(out) {
        tally.count_answer(filter.remove(key));
    }
    loop {
        for _ in 0..CHUNK / MIX {
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
        worker.report(CHUNK);
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
