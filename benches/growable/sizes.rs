//! The memory and the false-positive rate of a filter at each of its sizes.

use crate::filters::{Growable, builder, fill};
use crate::support::keys::{ABSENT, key};

fn bits_a_key(filter: &Growable) -> f64 {
    filter.stats().memory_usage as f64 * 8.0 / filter.len() as f64
}

/// How many of this many absent keys are found.
fn found(filter: &Growable, absent: u64) -> usize {
    let mut found = Vec::with_capacity(1024);
    let mut of = |start: u64| {
        let keys: Vec<u64> = (start..start + 1024).map(key).collect();
        found.clear();
        filter.contains_batch(&keys, &mut found);
        found.iter().filter(|&&found| found).count()
    };
    (ABSENT..ABSENT + absent).step_by(1024).map(&mut of).sum()
}

/// From the first size to one that holds this many keys.
pub(crate) fn table(keys: u64, absent: u64) -> Vec<Vec<String>> {
    let filter: Growable = builder().build().expect("a valid filter");
    let head = ["keys", "KiB", "slots", "bits a key", "rate, measured, %", "rate with every slot taken, computed, %"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut len = 0;
    // Four sizes in each doubling.
    for next in (0..).map(|nth: i32| (1000.0 * 2f64.powf(f64::from(nth) / 4.0)) as u64) {
        let next = next.min(filter.max_capacity() as u64);
        if next > keys || next == len {
            break;
        }
        fill(&filter, len..next);
        len = next;
        let rate = found(&filter, absent) as f64 / absent.next_multiple_of(1024) as f64;
        rows.push(vec![
            len.to_string(),
            format!("{:.1}", filter.stats().memory_usage as f64 / 1024.0),
            filter.plan().slots.to_string(),
            format!("{:.1}", bits_a_key(&filter)),
            format!("{:.5}", rate * 100.0),
            format!("{:.5}", filter.plan().max_false_positive_rate * 100.0),
        ]);
    }
    rows
}
