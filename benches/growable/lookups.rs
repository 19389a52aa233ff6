//! Lookups in a filter that has grown, beside those in a fixed filter of as many bytes.

use std::time::{Duration, Instant};

use crate::filters::{LOOKUPS, SLICE, of_size};
use crate::support::ours::{Growable, default_5x14, fill};
use crate::support::report::Spread;

/// How full the tables are, of their capacity.
const LOAD: f64 = 0.9;

/// Fills the table to nine tenths of its capacity, after it has grown by so many eighths. Returns how many keys are in.
fn filled(filter: &Growable, eighths: usize) -> u64 {
    let more = filter.capacity() * eighths / 8;
    filter.reserve(filter.capacity() - filter.len() + more).expect("there is memory");
    let len = (filter.capacity() as f64 * LOAD) as u64;
    fill(filter, 0..len);
    len
}

pub(crate) fn table(bytes: usize, length: Duration) -> Vec<Vec<String>> {
    let fixed = default_5x14(bytes);
    let fixed_len = fixed.capacity().min((fixed.plan().slots as f64 * LOAD) as usize) as u64;
    fill(&fixed, 0..fixed_len);
    let head = ["", "fixed filter", "growable", "growable over fixed"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let states = [("3/4 of its largest size", 0, 0), ("half of it", 1, 3), ("an 85th", 6, 0), ("a 62nd", 6, 3)];
    for (name, doublings_left, eighths) in states {
        let filter = of_size(bytes, doublings_left);
        let len = filled(&filter, eighths);
        let plan = filter.plan();
        let has_one = plan.slots == plan.layout.buckets * plan.layout.slots_per_bucket;
        let layouts = if has_one { "one layout" } else { "two layouts" };
        for lookups in LOOKUPS {
            let (mut of_fixed, mut of_growable) = (Vec::new(), Vec::new());
            let (start, mut seed) = (Instant::now(), 0);
            while start.elapsed() < length || of_fixed.is_empty() {
                of_fixed.push(lookups.time(&fixed, fixed_len, seed));
                of_growable.push(lookups.time(&filter, len, seed));
                seed += SLICE;
            }
            let ratio = Spread::of_ratios(&of_growable, &of_fixed).show();
            let [of_fixed, of_growable] =
                [of_fixed, of_growable].map(|times| format!("{:.1}", Spread::of(times).median));
            rows.push(vec![format!("{name}, {layouts}: {}", lookups.name), of_fixed, of_growable, ratio]);
        }
    }
    rows
}
