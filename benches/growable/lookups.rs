//! Lookups in a filter that has grown, beside those in a fixed filter of as many bytes.

use std::time::{Duration, Instant};

use crate::filters::{Fixed, Growable, LOOKUPS, SLICE, fill, of_size};
use crate::support::keys::key;
use crate::support::ours;
use crate::support::report::Spread;

/// How full the tables at rest are.
const LOAD: f64 = 0.9;

/// Returns how many keys are in.
fn filled(filter: &Growable) -> u64 {
    // Small tables, which tests have, are made for less.
    let len = filter.capacity().min((filter.slots() as f64 * LOAD) as usize) as u64;
    fill(filter, 0..len);
    assert_eq!(filter.tables(), 1, "it did not grow");
    len
}

/// Fills the table until it begins to double, and goes on until half of its buckets are moved. Returns how many keys are
/// in.
fn half_doubled(filter: &Growable) -> u64 {
    let mut len = filter.capacity() as u64;
    fill(filter, 0..len);
    let at_first = filter.memory_usage();
    let mut insert = || {
        filter.insert(&key(len)).expect("it grows");
        len += 1;
    };
    while filter.tables() == 1 {
        insert();
    }
    // The new table has twice the buckets, and an insert moves sixteen of the old ones.
    let old_buckets = (filter.memory_usage() - at_first) / size_of::<u64>() / 2;
    (0..old_buckets / 32).for_each(|_| insert());
    assert_eq!(filter.tables(), 2, "it is still being doubled");
    len
}

pub(crate) fn table(bytes: usize, length: Duration) -> Vec<Vec<String>> {
    let fixed: Fixed =
        ours::of_size(bytes, 5, |capacity| ours::builder().capacity(capacity).build().expect("a valid filter"));
    let fixed_len = fixed.capacity().min((fixed.slots() as f64 * LOAD) as usize) as u64;
    fill(&fixed, 0..fixed_len);
    let head = ["", "fixed filter", "growable", "growable over fixed"];
    let mut rows = vec![head.map(String::from).to_vec()];
    type State = (&'static str, u32, fn(&Growable) -> u64);
    let states: [State; 3] = [
        ("at rest, its largest size", 0, filled),
        ("at rest, a 64th of its largest size", 6, filled),
        ("half of a doubling", 1, half_doubled),
    ];
    for (name, doublings_left, fill) in states {
        let filter = of_size(bytes, doublings_left);
        let len = fill(&filter);
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
            rows.push(vec![format!("{name}, {}", lookups.name), of_fixed, of_growable, ratio]);
        }
    }
    rows
}
