//! The memory and the false-positive rate of a filter at each of its sizes.

use crate::support::ours::{fill, growable};

/// From the first size to one that holds this many keys.
pub(crate) fn table(keys: u64) -> Vec<Vec<String>> {
    let filter = growable().build().expect("a valid filter");
    let head = ["keys", "KiB", "slots", "bits a key", "rate with every slot taken, computed, %"];
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
        let memory = filter.stats().memory_usage as f64;
        rows.push(vec![
            len.to_string(),
            format!("{:.1}", memory / 1024.0),
            filter.plan().slots.to_string(),
            format!("{:.1}", memory * 8.0 / len as f64),
            format!("{:.5}", filter.plan().max_false_positive_rate * 100.0),
        ]);
    }
    rows
}
