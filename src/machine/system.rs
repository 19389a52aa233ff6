//! Calls of the system and of the allocator: the size of its pages, huge pages, pages that are returned to it, memory that it
//! clears, and the number of processors. They change how fast a program is and what memory it occupies, and never what it
//! computes.
#![allow(unsafe_code, reason = "system calls and a raw allocation; each has its SAFETY note")]

#[cfg(all(target_os = "linux", not(miri)))]
use crate::machine::pages::whole_pages;
use crate::sync::AtomicU64;

/// The size of the system's pages in bytes. It is a setting of the kernel: 4 KiB on x86-64, and 4, 16 or 64 KiB on others.
/// `None` if the system does not say, or is not asked.
pub(crate) fn page_size() -> Option<usize> {
    #[cfg(all(any(target_os = "linux", target_os = "macos"), not(miri)))]
    // SAFETY: this only returns a number.
    return usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok();
    #[cfg(not(all(any(target_os = "linux", target_os = "macos"), not(miri))))]
    None
}

/// How many processors the threads of this process may use, or more.
///
/// On Linux this is a system call. The standard library would also read the limits of control groups: for that it allocates,
/// and has 10 KB of machine code. Shards of counters need no exact number.
pub(crate) fn processors() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: the set is plain bits, of which none is set.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the system writes into the set, and no more than its size. Thread 0 is the calling one.
        let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        let number = if result == 0 {
            // SAFETY: this counts the bits of the set.
            usize::try_from(unsafe { libc::CPU_COUNT(&set) })
        } else {
            // There are more processors than the set has bits.
            // SAFETY: this only returns a number.
            usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) })
        };
        number.unwrap_or(1).max(1)
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Asks the system to back this memory with huge pages (2 MiB on x86-64). A large table needs so few of them that the
/// TLB holds all.
///
/// Linux grants it if `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise` or `always`, and if it has such
/// pages free. This is best effort: a failure changes only the speed.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for_huge_pages<T>(memory: &mut [T]) {
    #[cfg(not(miri))]
    if let Some(page) = page_size()
        && let Some(pages) = whole_pages(memory.as_ptr().addr(), size_of_val(memory), page)
    {
        let start = memory.as_mut_ptr().wrapping_byte_add(pages.start).cast();
        // SAFETY: the pages lie within `memory`, which is borrowed for this call, and they are whole ones, so the system
        // has nothing to round. This advice changes neither what they hold nor who may use them.
        let _ = unsafe { libc::madvise(start, pages.len(), libc::MADV_HUGEPAGE) };
    }
    #[cfg(miri)]
    let _ = memory;
}

/// Returns the whole pages of this list to the system, on Linux. Returns whether it did. Afterwards each element in
/// them is 0, or what it was. (A caller may not rely on either. A global allocator can give out memory that is mapped
/// from a file, and then it is what the file has.)
pub(crate) fn release(list: &[AtomicU64]) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Some(page) = page_size() {
        // SAFETY: the system reports this size.
        return unsafe { release_pages(list, page) };
    }
    let _ = list;
    false
}

/// [`release`] with pages of this size.
///
/// # Safety
/// `page` is the size of the system's pages, or a multiple of it. The system rejects a start within a page. But it
/// rounds a *length* up to whole pages, and the rest of the last one may belong to something else.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn release_pages(list: &[AtomicU64], page: usize) -> bool {
    whole_pages(list.as_ptr().addr(), size_of_val(list), page).is_none_or(|pages| {
        let start = list.as_ptr().cast_mut().wrapping_byte_add(pages.start).cast();
        // SAFETY: the pages lie within `list`, and by the caller's promise they are whole ones of the system's, so it has
        // nothing to round. It replaces them by others; for a thread that uses an element meanwhile, that is a store. The
        // elements are atomics, so it may happen while the list is shared, and any value is a valid one.
        unsafe { libc::madvise(start, pages.len(), libc::MADV_DONTNEED) == 0 }
    })
}

/// A list of `len` zeros, or `None` if the allocation fails. For a large list it asks the system for pages, and the
/// system clears each when it is first touched. So this takes no time, whatever the length.
pub(crate) fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    use std::alloc::{Layout, alloc_zeroed};

    let layout = Layout::array::<AtomicU64>(len).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    // SAFETY: the memory is from the global allocator, with the layout of `len` elements. Zeros are a valid `AtomicU64`
    // each, so all `len` elements are initialized.
    (!memory.is_null()).then(|| unsafe { Vec::from_raw_parts(memory, len, len) }.into_boxed_slice())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
#[path = "system_tests.rs"]
mod tests;
