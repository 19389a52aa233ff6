//! No operation allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

/// The system's allocator, with a count of each thread's own calls.
struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator as it is; the count is a plain thread-local without a destructor.
#[allow(unsafe_code, reason = "an allocator can't be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_operation_allocates() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(3000);
    let before = CALLS.get();
    // To the brim and beyond, so that paths are searched and inserts refused.
    let held = (0..).find(|key| filter.insert(key).is_err()).unwrap();
    for key in 0..held + 100 {
        assert_eq!(filter.contains(&key) as usize, filter.count(&key).min(1));
    }
    (0..held / 2).for_each(|key| assert!(filter.remove(&key)));
    (0..held / 2).for_each(|key| assert!(filter.insert_if_absent(&key).is_ok()));
    (0..30).for_each(|_| _ = filter.insert(&held));
    assert!(!filter.is_empty() && filter.load_factor() > 0.0 && filter.false_positive_rate() > 0.0);
    filter.clear();
    assert_eq!(CALLS.get() - before, 0);
}
