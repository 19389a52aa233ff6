//! A filter of a thousand keys that many more come into, and leave again.

use std::time::Duration;

use crate::filters::LOOKUPS;
use crate::support::clock::{by_turns, own_time};
use crate::support::keys::key;
use crate::support::ours::{Growable, fill, growable};
use crate::support::report::Spread;

/// How many keys there are before and after.
const FEW: u64 = 1000;

fn of(keys: u64) -> Growable {
    let filter = growable().build().expect("a valid filter");
    fill(&filter, 0..keys);
    filter
}

fn after_the_spike(most: u64) -> Growable {
    let filter = of(most);
    (FEW..most).for_each(|number| assert!(filter.remove(&key(number)), "it is in"));
    filter
}

pub(crate) fn table(most: u64, length: Duration) -> Vec<Vec<String>> {
    let shrunk = after_the_spike(most);
    let start = own_time();
    shrunk.shrink_to_fit();
    let took = (own_time() - start) as f64 / 1e3;
    let states = [
        ("fresh".to_owned(), of(FEW), FEW),
        ("at the most".to_owned(), of(most), most),
        ("after it".to_owned(), after_the_spike(most), FEW),
        (format!("shrunk, in {took:.0} µs"), shrunk, FEW),
    ];
    let singles = || LOOKUPS.into_iter().filter(|lookups| !lookups.batched);
    let head = ["", "keys", "KiB", "bits a key"].map(String::from).into_iter();
    let mut rows = vec![head.chain(singles().map(|lookups| format!("{}, ns", lookups.name))).collect::<Vec<_>>()];
    rows.extend(states.iter().map(|(name, filter, len)| {
        let memory = filter.stats().memory_usage as f64;
        let bits = format!("{:.1}", memory * 8.0 / *len as f64);
        vec![name.clone(), len.to_string(), format!("{:.1}", memory / 1024.0), bits]
    }));
    for lookups in singles() {
        let times = by_turns(states.len(), length, |state, round| {
            let (_, filter, len) = &states[state];
            lookups.time(filter, *len, round)
        });
        for (row, times) in rows[1..].iter_mut().zip(times) {
            row.push(format!("{:.1}", Spread::of(times).median));
        }
    }
    rows
}
