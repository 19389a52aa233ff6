//! Lookups in a filter that has grown, beside those in a fixed filter of as many bytes.

use std::time::Duration;

use crate::filters::{LOOKUPS, of_size};
use crate::support::clock::by_turns;
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
            let times = by_turns(2, length, |subject, round| match subject {
                0 => lookups.time(&fixed, fixed_len, round),
                _ => lookups.time(&filter, len, round),
            });
            let ratio = Spread::of_ratios(&times[1], &times[0]).show();
            let median = |nth: usize| format!("{:.1}", Spread::of(times[nth].iter().copied()).median);
            rows.push(vec![format!("{name}, {layouts}: {}", lookups.name), median(0), median(1), ratio]);
        }
    }
    rows
}
