//! What a filter's memory comes to beside many threads that read it. A test of its own, since it measures the resident
//! memory of the process.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::GrowableCuckooFilter;

/// The resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has /proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it names the resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}

/// Lets the readers end when it is dropped, whatever the reason.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A filter of up to 0.6 MB grows and shrinks again and again while 400 threads read it. What it has given up must be
/// freed, whoever reads.
#[test]
fn memory_is_bounded_beside_400_readers() {
    /// Those that have read once and wait, as most threads of a pool do, and those that read all the time.
    const IDLE: usize = 396;
    const BUSY: usize = 4;
    const KEYS: u64 = 30_000;
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).build().expect("memory");
    let stop = AtomicBool::new(false);
    let cycle = || {
        for key in 0..KEYS {
            filter.insert(&key).expect("it grows");
        }
        let memory = filter.stats().memory_usage;
        for key in 0..KEYS {
            assert!(filter.remove(&key), "{key} was in");
        }
        filter.shrink_to_fit();
        memory
    };
    let read = Barrier::new(IDLE + 1);
    thread::scope(|scope| {
        let stopping = Stop(&stop);
        for _ in 0..IDLE {
            scope.spawn(|| {
                assert!(!filter.contains(&KEYS));
                read.wait();
                while !stop.load(Ordering::Relaxed) {
                    thread::park_timeout(Duration::from_millis(100));
                }
            });
        }
        read.wait();
        for _ in 0..BUSY {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    (KEYS..2 * KEYS).for_each(|key| _ = filter.contains(&key));
                }
            });
        }
        // What the threads themselves take, and what the allocator keeps, is there after some cycles.
        let most = (0..5).map(|_| cycle()).max().expect("some cycles") as u64;
        let before = resident();
        (0..20).for_each(|_| _ = cycle());
        let after = resident();
        drop(stopping);
        println!("{before} KiB, and {after} KiB after 20 cycles of a filter of up to {most} bytes");
        assert!(after < before + 4 * (most >> 10), "{before} KiB became {after} KiB, for a filter of {most} bytes");
    });
}
