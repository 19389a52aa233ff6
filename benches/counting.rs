//! How much memory a value takes. (For the program that includes this file, the system's allocator counts.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

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
