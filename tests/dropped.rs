//! A filter that is dropped gives all its memory back, whatever other filters are read meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::GrowableCuckooFilter;

#[allow(unsafe_code, unreachable_pub, reason = "an allocator cannot be written without it")]
#[path = "fuzz/counting.rs"]
mod counting;

fn fresh() -> GrowableCuckooFilter<u64> {
    GrowableCuckooFilter::builder().capacity(100).max_capacity(1_000_000).build().unwrap()
}

/// Threads read their filters amid growth. Another one makes filters that grow and shrink, and drops them.
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_filter_that_is_dropped_while_others_are_read_gives_all_its_memory_back() {
    let filters = || {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let filter = fresh();
                        for start in (0..100_000).step_by(1_000) {
                            filter.insert_batch(&(start..start + 1_000).collect::<Vec<u64>>()).unwrap();
                        }
                    }
                });
            }
            for _ in 0..200 {
                let filter = fresh();
                filter.reserve(20_000).unwrap();
                (0..100).for_each(|key| filter.insert(&key).unwrap());
                filter.shrink_to_fit();
            }
            stop.store(true, Ordering::Relaxed);
        });
        counting::in_use()
    };
    let before = filters();
    let after = filters();
    assert!(after < before + (1 << 20), "{after} bytes are in use, {before} before");
}
