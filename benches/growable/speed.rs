//! How fast a filter that grows is, beside a fixed one that holds as many keys: single operations and batches; the price of
//! each load while it grows; and `clear`.

use std::time::Instant;

use crate::support::clock::own_time;
use crate::support::keys::key;
use crate::support::ours::{Fixed, Growable, Ours, builder, default_5x14, fill, growable};
use crate::support::report::{Spread, median};
use crate::{LOOKUPS, LookupCase, SLICE};

/// Nanoseconds an insert of each of these keys, one by one.
fn time_of_singles(filter: &impl Ours, keys: u64) -> f64 {
    let start = own_time();
    (0..keys).for_each(|number| assert!(filter.insert(key(number)), "room"));
    (own_time() - start) as f64 / keys as f64
}

/// Nanoseconds an insert, in batches.
fn time_of_batches(filter: &impl Ours, keys: u64) -> f64 {
    let start = own_time();
    fill(filter, 0..keys);
    (own_time() - start) as f64 / keys as f64
}

/// Something that is filled again and again, with so many keys.
struct Subject<'a, F> {
    name: String,
    empty: Box<dyn Fn() -> F + 'a>,
    keys: u64,
    /// Single inserts, inserts in batches, single hits, hits in batches.
    times: [Vec<f64>; 4],
}

impl<'a, F: Ours> Subject<'a, F> {
    fn new(name: String, keys: u64, empty: impl Fn() -> F + 'a) -> Self {
        Self { name, empty: Box::new(empty), keys, times: Default::default() }
    }

    /// One round. The memory is touched for the first time while the clock runs, that of a fixed filter too.
    fn round(&mut self, round: u64, fewest_lookups: u64) {
        let start = own_time();
        let filter = (self.empty)();
        let built = (own_time() - start) as f64 / self.keys as f64;
        self.times[0].push(built + time_of_singles(&filter, self.keys));
        drop(filter);
        let start = own_time();
        let filter = (self.empty)();
        let built = (own_time() - start) as f64 / self.keys as f64;
        self.times[1].push(built + time_of_batches(&filter, self.keys));
        for (times, lookups) in self.times[2..].iter_mut().zip(hits()) {
            let slices = fewest_lookups.div_ceil(SLICE).max(1);
            let slices = (0..slices).map(|nth| lookups.time(&filter, self.keys, round * 1000 + nth));
            times.push(median(slices));
        }
    }

    /// M operations/s, and, beside those of a fixed filter, how many times as long they take.
    fn row(&self, fixed: Option<&[Vec<f64>; 4]>) -> Vec<String> {
        let cells = self.times.iter().enumerate().map(|(nth, times)| {
            let speed = format!("{:.1}", 1e3 / median(times.iter().copied()));
            match fixed {
                Some(fixed) => format!("{speed}: {}", Spread::of_ratios(times, &fixed[nth]).show()),
                None => speed,
            }
        });
        [self.name.clone()].into_iter().chain(cells).collect()
    }
}

/// Single hits, and hits in batches.
fn hits() -> [LookupCase; 2] {
    let [single, batched] = [false, true].map(|batched| {
        LOOKUPS.into_iter().find(|lookups| lookups.hits && lookups.batched == batched).expect("there is one")
    });
    [single, batched]
}

/// Whether all buckets have one layout.
fn has_one_layout(filter: &Growable) -> bool {
    let plan = filter.plan();
    plan.slots == plan.layout.buckets * plan.layout.slots_per_bucket
}

/// The largest size, in times as many keys, with which a filter of so many keys has buckets of one layout, or of two.
fn times_for(keys: u64, one_layout: bool) -> f64 {
    let holds = |times: f64| {
        let filter = growable().max_capacity((keys as f64 * times) as usize).build().expect("a valid filter");
        filter.reserve(keys as usize).expect("there is memory");
        let has_split = !filter.plan().layout.buckets.is_power_of_two();
        has_split && has_one_layout(&filter) == one_layout
    };
    (1..).map(|nth| 1.05 * 1.15f64.powi(nth)).find(|&times| holds(times)).expect("the layouts take turns")
}

/// Inserts and hits in a fixed filter of so many bytes, and in filters that grow from a thousand keys to as many as that holds
/// at 90% load.
pub(crate) fn speed(bytes: usize, rounds: u64, fewest_lookups: u64) -> Vec<Vec<String>> {
    let keys = (default_5x14(bytes).plan().slots as f64 * 0.9) as u64;
    let mut fixed = Subject::new(format!("fixed, {keys} keys"), keys, || default_5x14(bytes));
    let mut growing: Vec<_> = [true, false]
        .map(|one_layout| {
            let times = times_for(keys, one_layout);
            let most = (keys as f64 * times) as usize;
            let name = format!("growable to {times:.2} times, {} layouts", if one_layout { "one" } else { "two" });
            Subject::new(name, keys, move || growable().max_capacity(most).build().expect("a valid filter"))
        })
        .into();
    growing.push(Subject::new("growable, default".into(), keys, || growable().build().expect("a valid filter")));
    for round in 0..rounds {
        fixed.round(round, fewest_lookups);
        growing.iter_mut().for_each(|subject| subject.round(round, fewest_lookups));
    }
    let head = ["M/s: relative time", "inserts to 90 %", "in a batch", "hits", "in a batch"];
    let rows = growing.iter().map(|subject| subject.row(Some(&fixed.times)));
    [vec![head.map(String::from).to_vec(), fixed.row(None)], rows.collect()].concat()
}

/// An empty filter with this load while it grows.
fn with_load(keys: u64, load: f64) -> Growable {
    growable().expected_keys(keys as usize).load_while_growing(load).build().expect("a valid filter")
}

/// What each load while it grows costs and gains, with `expected_keys`. `None` is the load by default.
pub(crate) fn loads(keys: u64, rounds: u64, loads: &[f64]) -> Vec<Vec<String>> {
    let of_fixed = || builder().capacity(keys as usize).build().expect("a valid filter");
    let mut fixed = Subject::<Fixed>::new("fixed".into(), keys, of_fixed);
    let mut growing: Vec<_> =
        loads.iter().map(|&load| Subject::new(format!("{load:.2}"), keys, move || with_load(keys, load))).collect();
    for round in 0..rounds {
        fixed.round(round, 0);
        growing.iter_mut().for_each(|subject| subject.round(round, 0));
    }
    let times = |times: &[Vec<f64>; 4], nth: usize| {
        let ratio = Spread::of_ratios(&times[nth], &fixed.times[nth]);
        format!("{:.0} ({:.2})", median(times[nth].iter().copied()), ratio.median)
    };
    let head = ["load", "single insert, ns (relative)", "in a batch", "bits per key", "relocations per key"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let bits = of_fixed().stats().memory_usage as f64 * 8.0 / keys as f64;
    let [single, batch] = [0, 1].map(|nth| times(&fixed.times, nth));
    rows.push(vec!["fixed".into(), single, batch, format!("{bits:.1}"), String::new()]);
    for (subject, &load) in growing.iter().zip(loads) {
        let filter = with_load(keys, load);
        fill(&filter, 0..keys);
        let stats = filter.stats();
        let [single, batch] = [0, 1].map(|nth| times(&subject.times, nth));
        let bits = stats.memory_usage as f64 * 8.0 / keys as f64;
        let relocations = stats.relocations as f64 / keys as f64;
        rows.push(vec![subject.name.clone(), single, batch, format!("{bits:.1}"), format!("{relocations:.2}")]);
    }
    rows
}

/// Milliseconds that `clear` takes for 100 MB, in filters that hold as many keys as they have room for.
pub(crate) fn clear(sizes: &[(&str, usize)], rounds: usize) -> Vec<Vec<String>> {
    let head = ["ms per 100 MB", "fixed filter", "growable", "growable over fixed"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let of_bytes = |time: f64, bytes: usize| time / 1e6 * (100e6 / bytes as f64);
    for &(name, bytes) in sizes {
        let fixed = default_5x14(bytes);
        let grown = growable().build().expect("a valid filter");
        let [mut of_fixed, mut of_grown] = [Vec::new(), Vec::new()];
        while grown.stats().memory_usage < bytes {
            grown.reserve(grown.capacity() - grown.len() + 1).expect("there is memory");
        }
        // A small table is cleared several times, so that the clock is exact enough.
        let times = (4 << 20) / bytes.min(4 << 20);
        for _ in 0..rounds {
            let time = |clear: &dyn Fn(), fill: &dyn Fn()| {
                (0..times)
                    .map(|_| {
                        fill();
                        let start = Instant::now();
                        clear();
                        start.elapsed().as_nanos() as f64
                    })
                    .sum::<f64>()
                    / times as f64
            };
            let keys = (fixed.capacity() as u64, grown.capacity() as u64);
            of_fixed.push(of_bytes(time(&|| fixed.clear(), &|| fill(&fixed, 0..keys.0)), bytes));
            let memory = grown.stats().memory_usage;
            of_grown.push(of_bytes(time(&|| grown.clear(), &|| fill(&grown, 0..keys.1)), memory));
        }
        let ratio = Spread::of_ratios(&of_grown, &of_fixed).show();
        let [of_fixed, of_grown] = [of_fixed, of_grown].map(|times| format!("{:.1}", median(times)));
        rows.push(vec![name.into(), of_fixed, of_grown, ratio]);
    }
    rows
}
