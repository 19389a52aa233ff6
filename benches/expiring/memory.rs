//! How many bits an entry takes.

use crate::subjects::expiring;

/// How many bits each entry takes at capacity, by the rate that is requested and the longest lifetime in ticks.
pub(crate) fn table(capacity: usize) -> Vec<Vec<String>> {
    let head = ["longest lifetime", "rate asked for", "end", "slots a bucket", "rate when full", "bits an entry"];
    let asked = [(3, 0.001), (15, 0.001), (63, 0.001), (15, 0.000_11), (60, 0.000_1), (255, 0.000_4)];
    let row = |&(ticks, rate): &(u64, f64)| {
        let filter = expiring(capacity, rate, ticks);
        let bits = filter.stats().memory_usage as f64 * 8.0 / filter.capacity() as f64;
        vec![
            format!("{ticks} ticks"),
            format!("{:.3} %", rate * 100.0),
            format!("{} bits", filter.plan().layout.payload_bits),
            filter.plan().layout.slots_per_bucket.to_string(),
            format!("{:.4} %", filter.plan().max_false_positive_rate * 100.0),
            format!("{bits:.2}"),
        ]
    };
    std::iter::once(head.map(String::from).to_vec()).chain(asked.iter().map(row)).collect()
}
