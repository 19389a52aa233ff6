//! How fast a table is doubled by `reserve`, and halved by `shrink_to_fit`, on one thread that nobody disturbs.

use std::time::{Duration, Instant};

use crate::filters::of_size;
use crate::support::clock::own_time;
use crate::support::ours::fill;
use crate::support::report::Spread;

pub(crate) fn table(bytes: usize, length: Duration) -> Vec<Vec<String>> {
    let head = ["entries", "doubled", "halved"];
    let filter = of_size(bytes, 1);
    let entries = filter.capacity() * 9 / 10;
    fill(&filter, 0..entries as u64);
    // As small as these keys need: it was made for its largest size, which is filled further than the others.
    filter.shrink_to_fit();
    let (slots, start) = (filter.plan().slots, Instant::now());
    let (mut doubled, mut halved) = (Vec::new(), Vec::new());
    let time = |work: &dyn Fn()| {
        let start = own_time();
        work();
        (own_time() - start) as f64
    };
    while start.elapsed() < length || doubled.is_empty() {
        doubled.push(time(&|| filter.reserve(entries * 6 / 5).expect("there is memory")));
        assert!(filter.plan().slots > 2 * slots, "it has doubled");
        halved.push(time(&|| filter.shrink_to_fit()));
        assert_eq!(filter.plan().slots, slots, "it is as large as before");
    }
    let [doubled, halved] = [doubled, halved].map(|times| Spread::of(times).median);
    let speed = |time: f64| format!("{:.1}", entries as f64 * 1e3 / time);
    let row = vec![format!("{entries} keys"), speed(doubled), speed(halved)];
    vec![head.map(String::from).to_vec(), row]
}
