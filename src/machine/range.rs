//! A range of addresses for a growing table's words, where the system can reserve addresses without memory: Linux and macOS
//! with 64 bits. So all words are at one address plus their index, and memory comes in page by page. Elsewhere
//! [`Range::reserve`] returns `None`, and the words are in segments (`segments.rs`). (Windows could reserve addresses too. The
//! standard library has no call for that, and a dependency for it alone would weigh more than it gains.)
//!
//! # The parts of a range
//!
//! | from the start on | what the system allows | memory |
//! |---|---|---|
//! | words in use, up to the end of a page | reads and writes | theirs |
//! | words that come next, some pages | reads and writes | none, until they are in use |
//! | words that went back | reads | none |
//! | words that never were in use | nothing | none |
//!
//! [`extend`](Range::extend) moves the end of the first part up, and [`give_back`](Range::give_back) moves it down. No call
//! moves the end of the third part down, and the range is unmapped when it is dropped.
//!
//! # Why no reader faults
//! A reader gets an index from a size of the table. The table is given a size after `extend` has returned for it. From then
//! on the word may be read, until the range is dropped, which no reader outlives.
//!
//! # Who may write where
//! Only words below the present end of the table are written, by a thread that holds the word's gate and has then read the
//! size (`growth/mod.rs`, rule 1). `give_back` is called for words beyond the end, under the lock by which the size changes. So
//! no thread writes to what went back. If one did, the system would end the process, instead of a copy getting lost.
//!
//! # What a late reader sees
//! A thread that has read a former size may read a word that went back, or has come in again since: what it was, zero, or
//! what it is now. For the reader, `give_back` is a store of zeros by another thread. A read of a page without memory takes
//! none up: the system shows the reader a page of zeros that all processes share.
//!
//! # Going back
//! With `MADV_DONTNEED`, Linux takes the pages at once. With `MADV_FREE` it would take them only when it is short of memory; until
//! then they would be resident, and `memory_usage` would be too low. macOS has only the like of that. There, and where the
//! memory is locked (`mlockall`), nothing goes back, and all of it still counts.
//!
//! # Fork
//! The child has a copy of the range as it is, as of all private memory. (So `MADV_DONTFORK` must never be asked for: the
//! child's filter would be gone.) It can go on to grow, and to shrink.
//!
//! # Limits
//! A reservation counts against `RLIMIT_AS` (`ulimit -v`), though it takes up no memory: it could use up the addresses that the
//! program needs for something else. Under such a limit nothing is reserved. A process can have only some 65,000 mappings
//! (`vm.max_map_count`), and a range takes up to four. It also costs the kernel a page or two, for its page tables. So a
//! process has at most 1,024 ranges, and at most 128 GiB of addresses in them. A filter that finds no more, or whose
//! reservation fails for any other reason, has segments.
//!
//! Nothing is assumed about overcommit. What a program may not touch is not committed; `extend` commits it, some pages at a time,
//! and if the system denies it, the table does not grow.
//!
//! # Huge pages
//! A page is only ever backed by a huge one if reads and writes are allowed in all of that. If the builder asks for huge
//! pages, `extend` allows them in steps of a huge page, and all of a step counts as held. If it does not, the system may
//! still prefer huge pages. But a step is then smaller than one, so each page is there before it could become part of one.

use crate::machine::memory::Pages;
use crate::sync::{AtomicU64, Ordering, Tally};

use reserved::Reserved;

/// How many pages may be written to at a time, ahead of the words in use.
const PAGES_AHEAD: usize = 16;

#[derive(Debug)]
pub(crate) struct Range {
    reserved: Reserved,
    /// How many words may be written to.
    writable: Tally,
}

impl Range {
    /// How many words a page has, where ranges can be reserved.
    pub(crate) fn words_of_page() -> Option<usize> {
        Reserved::words_of_page()
    }

    /// Whether a range of so many words could be reserved now.
    pub(crate) fn is_available(words: usize) -> bool {
        Reserved::is_available(words)
    }

    /// Reserves the addresses of so many words, a multiple of a page's. `None` if that is not possible.
    pub(crate) fn reserve(pages: Pages, words: usize) -> Option<Self> {
        let reserved = Reserved::new(words)?;
        if pages == Pages::Huge {
            reserved.prefer_huge_pages();
        }
        Some(Self { reserved, writable: Tally::new(0) })
    }

    /// The first word. It has the provenance of the whole range.
    pub(crate) fn start(&self) -> *mut AtomicU64 {
        self.reserved.start()
    }

    /// Makes the first `len` words usable. The new ones are zeros. The error is the number of bytes that the system denied.
    /// Only one thread at a time calls this.
    pub(crate) fn extend(&self, pages: Pages, len: usize) -> Result<(), usize> {
        // Relaxed, here and below: only threads that change the size, one at a time, need it.
        let writable = self.writable.load(Ordering::Relaxed) as usize;
        if len <= writable {
            return Ok(());
        }
        let end = end_of_step(pages, len).min(self.reserved.len());
        if !self.reserved.commit(writable..end) {
            return Err((end - writable) * size_of::<u64>());
        }
        self.writable.store(end as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the memory of the words from this index on to the system, in whole pages. Returns whether it did. No thread
    /// may write to them until the range is extended. Only one thread at a time calls this.
    pub(crate) fn give_back(&self, from: usize) -> bool {
        let kept = from.next_multiple_of(page());
        let writable = self.writable.load(Ordering::Relaxed) as usize;
        if kept >= writable {
            return true;
        }
        let done = self.reserved.decommit(kept..writable);
        if done {
            self.writable.store(kept as u64, Ordering::Relaxed);
        }
        done
    }

    /// How many bytes the first `in_use` words take up, those in use.
    pub(crate) fn held(&self, pages: Pages, in_use: usize) -> usize {
        // Where steps count as a whole, more may have been made usable before.
        let writable = self.writable.load(Ordering::Relaxed) as usize * size_of::<u64>();
        Self::held_by_new(pages, in_use).max(if pages == Pages::Huge { writable } else { 0 })
    }

    /// How many bytes the first `in_use` words of a new range take up.
    pub(crate) fn held_by_new(pages: Pages, in_use: usize) -> usize {
        let words = if pages == Pages::Huge { end_of_step(pages, in_use) } else { in_use.next_multiple_of(page()) };
        words * size_of::<u64>()
    }
}

fn page() -> usize {
    Range::words_of_page().expect("a range is there, or could be")
}

/// Where the step ends, of those in which words become usable, that the last of `len` words is in.
fn end_of_step(pages: Pages, len: usize) -> usize {
    let page = page();
    let step = match pages {
        Pages::Usual => PAGES_AHEAD * page,
        // A page of page tables has an entry of 8 bytes for each page of a huge one. A table below that doubles.
        Pages::Huge => (1 << len.max(1).ilog2()).clamp(page, page * page),
    };
    len.next_multiple_of(step)
}

/// The system's own calls.
#[cfg(all(any(target_os = "linux", target_os = "macos"), target_pointer_width = "64", not(miri)))]
mod reserved {
    #![allow(unsafe_code, reason = "system calls; each block has its SAFETY note")]

    use core::ops::Range;
    use core::ptr::null_mut;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::machine::system::page_size;
    use crate::sync::AtomicU64;

    /// How many ranges a process has at most.
    pub(super) const MOST_RANGES: usize = 1024;

    /// How many bytes of addresses they have at most: 128 GiB. An AArch64 process has 512 GiB or more.
    pub(super) const MOST_BYTES: usize = 128 << 30;

    /// How many bytes of addresses the ranges of this process have, each as at least a part of the limit.
    static RESERVED: AtomicUsize = AtomicUsize::new(0);

    /// Addresses of some words, all of whole pages. They are mapped until this is dropped.
    #[derive(Debug)]
    pub(crate) struct Reserved {
        start: *mut AtomicU64,
        len: usize,
    }

    // SAFETY: it is the address of a list of atomics, which all threads may share.
    unsafe impl Send for Reserved {}
    // SAFETY: as above. Its methods change what the system allows, not what this has.
    unsafe impl Sync for Reserved {}

    /// What these bytes count against the limit.
    fn share(bytes: usize) -> usize {
        bytes.max(MOST_BYTES / MOST_RANGES)
    }

    fn with(reserved: usize, bytes: usize) -> Option<usize> {
        reserved.checked_add(share(bytes)).filter(|&sum| sum <= MOST_BYTES)
    }

    /// Whether the process has a limit for its addresses.
    fn is_limited() -> bool {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it only writes to the struct.
        let done = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
        done != 0 || limit.rlim_cur != libc::RLIM_INFINITY
    }

    impl Reserved {
        pub(crate) fn words_of_page() -> Option<usize> {
            static WORDS: OnceLock<Option<usize>> = OnceLock::new();
            *WORDS.get_or_init(|| Some(page_size().filter(|page| page.is_power_of_two())? / size_of::<u64>()))
        }

        pub(crate) fn is_available(words: usize) -> bool {
            let bytes = words.checked_mul(size_of::<u64>());
            // Relaxed, here and below: the number orders nothing.
            bytes.is_some_and(|bytes| with(RESERVED.load(Ordering::Relaxed), bytes).is_some()) && !is_limited()
        }

        pub(crate) fn new(len: usize) -> Option<Self> {
            let bytes = len.checked_mul(size_of::<u64>()).filter(|_| !is_limited())?;
            RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |reserved| with(reserved, bytes)).ok()?;
            // SAFETY: the system chooses the addresses, so no other memory of the process is replaced. Nothing may be read
            // or written there yet.
            let start =
                unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0) };
            if start == libc::MAP_FAILED {
                RESERVED.fetch_sub(share(bytes), Ordering::Relaxed);
                return None;
            }
            Some(Self { start: start.cast(), len })
        }

        pub(crate) fn start(&self) -> *mut AtomicU64 {
            self.start
        }

        pub(crate) fn len(&self) -> usize {
            self.len
        }

        /// Where these words are, and how many bytes they take. They are whole pages.
        fn bytes(&self, words: Range<usize>) -> (*mut libc::c_void, usize) {
            assert!(words.start <= words.end && words.end <= self.len, "{words:?} of {}", self.len);
            (self.start.wrapping_add(words.start).cast(), words.len() * size_of::<u64>())
        }

        /// Makes these words zeros that may be read and written.
        pub(crate) fn commit(&self, words: Range<usize>) -> bool {
            let (start, bytes) = self.bytes(words);
            // SAFETY: these pages are this range's own. All that anyone may do with them before is allowed afterwards.
            unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
        }

        /// Returns the memory of these words to the system: they become zeros. They may still be read, and no longer written.
        pub(crate) fn decommit(&self, words: Range<usize>) -> bool {
            let (start, bytes) = self.bytes(words);
            #[cfg(target_os = "linux")]
            // SAFETY: these pages are this range's own, and the caller promises that no thread writes to them. The first call
            // replaces them by zeros; for a thread that reads a word meanwhile, that is a store. The words are atomics, and
            // any value is a valid one.
            return unsafe {
                libc::madvise(start, bytes, libc::MADV_DONTNEED) == 0
                    && libc::mprotect(start, bytes, libc::PROT_READ) == 0
            };
            #[cfg(not(target_os = "linux"))]
            {
                let _ = (start, bytes);
                false
            }
        }

        pub(crate) fn prefer_huge_pages(&self) {
            #[cfg(target_os = "linux")]
            {
                let (start, bytes) = self.bytes(0..self.len);
                // SAFETY: these pages are this range's own. The advice changes neither what they hold nor who may use them.
                let _ = unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
            }
        }
    }

    impl Drop for Reserved {
        fn drop(&mut self) {
            let (start, bytes) = self.bytes(0..self.len);
            // SAFETY: `new` has mapped just these pages, and no thread uses the range any more.
            if unsafe { libc::munmap(start, bytes) } == 0 {
                RESERVED.fetch_sub(share(bytes), Ordering::Relaxed);
            }
        }
    }
}

/// Where no range can be reserved.
#[cfg(not(all(any(target_os = "linux", target_os = "macos"), target_pointer_width = "64", not(miri))))]
mod reserved {
    use core::convert::Infallible;
    use core::ops::Range;

    use crate::sync::AtomicU64;

    #[derive(Debug)]
    pub(crate) struct Reserved(Infallible);

    impl Reserved {
        pub(crate) fn words_of_page() -> Option<usize> {
            None
        }

        pub(crate) fn is_available(_: usize) -> bool {
            false
        }

        pub(crate) fn new(_: usize) -> Option<Self> {
            None
        }

        pub(crate) fn start(&self) -> *mut AtomicU64 {
            match self.0 {}
        }

        pub(crate) fn len(&self) -> usize {
            match self.0 {}
        }

        pub(crate) fn commit(&self, _: Range<usize>) -> bool {
            match self.0 {}
        }

        pub(crate) fn decommit(&self, _: Range<usize>) -> bool {
            match self.0 {}
        }

        pub(crate) fn prefer_huge_pages(&self) {
            match self.0 {}
        }
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(miri)))]
#[path = "range_tests.rs"]
#[allow(unsafe_code, reason = "the tests read words and fork; each block has its SAFETY note")]
mod tests;
