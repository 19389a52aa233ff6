//! How much memory a value takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::subjects::expiring;

/// The system's allocator. It adds up what is in use while counting is on. At other times it costs a load.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static IN_USE: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    // Relaxed: only one thread allocates while counting is on.
    if COUNTS.load(Ordering::Relaxed) {
        IN_USE.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[allow(unsafe_code, reason = "no safe code is asked for memory")]
// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    // Not the default implementation, which would write to the whole table.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `make` returns, and by how many bytes the memory in use has grown.
pub(crate) fn counted<R>(make: impl FnOnce() -> R) -> (R, usize) {
    IN_USE.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let made = make();
    COUNTS.store(false, Ordering::Relaxed);
    (made, IN_USE.load(Ordering::Relaxed).max(0) as usize)
}

/// How many bits each entry takes at capacity, by the rate that is requested and the longest lifetime in ticks.
pub(crate) fn table(capacity: usize) -> Vec<Vec<String>> {
    let head = ["longest lifetime", "rate asked for", "end", "slots a bucket", "rate when full", "bits an entry"];
    let asked = [(3, 0.001), (15, 0.001), (63, 0.001), (15, 0.000_11), (60, 0.000_1), (255, 0.000_4)];
    let row = |&(ticks, rate): &(u64, f64)| {
        let filter = expiring(capacity, rate, ticks);
        let bits = filter.memory_usage() as f64 * 8.0 / filter.capacity() as f64;
        vec![
            format!("{ticks} ticks"),
            format!("{:.3} %", rate * 100.0),
            format!("{} bits", filter.expiry_bits()),
            filter.slots_per_bucket().to_string(),
            format!("{:.4} %", filter.max_false_positive_rate() * 100.0),
            format!("{bits:.2}"),
        ]
    };
    std::iter::once(head.map(String::from).to_vec()).chain(asked.iter().map(row)).collect()
}
