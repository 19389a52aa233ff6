//! Where readers announce what they read, so that it is not freed meanwhile: see `sync/replaceable.rs`.
//!
//! # The barrier
//! A reader stores an announcement and then reads a pointer; another thread stores that pointer and then reads the
//! announcements. Neither load may come before the store. On most processors that takes a fence, which makes a reader wait
//! for all its loads: in a table larger than the cache it then takes twice as long. So where the system can do it, the
//! rare thread that frees pays for both: it asks the system to make every thread of the process execute a fence (Linux:
//! `membarrier`), and a reader only keeps the compiler from reordering the two. Elsewhere both execute a fence.

use core::ptr;

use crossbeam_utils::CachePadded;

#[cfg(ccf_model)]
use crate::sync::thread::thread_number;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// How many values a thread can announce at a time: a table, and the one that takes its place. A further one is counted.
const AT_ONCE: usize = 2;

/// The places where one thread announces what it reads.
type Places = [AtomicPtr<()>; AT_ONCE];

/// An announcement, until it is dropped.
#[derive(Debug)]
pub(crate) struct Announced<'a> {
    /// `None` if there was no place. Then the reader is only counted.
    place: Option<&'a AtomicPtr<()>>,
    others: &'a AtomicU64,
}

impl Drop for Announced<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.place {
            // Release: what the reader has done comes before the freeing.
            Some(place) => place.store(ptr::null_mut(), Ordering::Release),
            None => _ = self.others.fetch_sub(1, Ordering::Release),
        }
    }
}

/// Whether one of these places has the pointer.
fn is_in(places: &Places, pointer: *mut ()) -> bool {
    // SeqCst: it also acquires the end of an announcement.
    places.iter().any(|place| latest(place, Ordering::SeqCst) == pointer)
}

/// A load. loom takes one that is `SeqCst` for an acquire load; an exchange reads the latest value there too.
#[inline(always)]
#[cfg_attr(ccf_model = "loom", track_caller)]
pub(crate) fn latest<T>(pointer: &AtomicPtr<T>, ordering: Ordering) -> *mut T {
    #[cfg(ccf_model = "loom")]
    let ordering = crate::sync::loom::replaced(ordering);
    #[cfg(ccf_model = "loom")]
    if ordering == Ordering::SeqCst {
        let null = ptr::null_mut();
        return pointer.compare_exchange(null, null, ordering, ordering).unwrap_or_else(|now| now);
    }
    pointer.load(ordering)
}

/// The places of all threads. All filters share them, since a thread seldom reads two values at once.
#[cfg(not(ccf_model))]
mod shared {
    use core::cell::Cell;
    use core::sync::atomic::{AtomicBool, compiler_fence, fence};
    use std::sync::LazyLock;

    use super::*;
    use crate::machine::arch;

    /// How many threads can have places. If there are more, the others are counted: meanwhile nothing is freed.
    const THREADS: usize = 256;

    struct OfThread {
        is_owned: AtomicBool,
        places: Places,
    }

    static THREADS_PLACES: [CachePadded<OfThread>; THREADS] = [const {
        CachePadded::new(OfThread {
            is_owned: AtomicBool::new(false),
            places: [const { AtomicPtr::new(ptr::null_mut()) }; AT_ONCE],
        })
    }; THREADS];

    /// Readers without a place.
    static OTHERS: AtomicU64 = AtomicU64::new(0);

    /// Whether the system makes all threads execute a fence.
    static BY_SYSTEM: LazyLock<bool> = LazyLock::new(arch::prepare_fence_everywhere);

    std::thread_local! {
        /// The places of this thread, if it has any and the system makes all threads execute a fence.
        static FAST: Cell<Option<&'static Places>> = const { Cell::new(None) };
        /// The number of this thread's places plus one; 0 before the first use; `NONE` if it can have none.
        static OWN: Cell<usize> = const { Cell::new(0) };
        static RELEASE: Release = const { Release };
    }

    const NONE: usize = usize::MAX;

    /// Gives the places back when the thread ends.
    struct Release;

    impl Drop for Release {
        fn drop(&mut self) {
            FAST.set(None);
            if let Some(own) = OWN.replace(NONE).checked_sub(1).and_then(|number| THREADS_PLACES.get(number)) {
                // Release: the next owner finds the places empty.
                own.is_owned.store(false, Ordering::Release);
            }
        }
    }

    /// The places where a filter's readers announce themselves.
    #[derive(Debug)]
    pub(crate) struct Registry;

    impl Registry {
        pub(crate) fn new() -> Self {
            // Before there is anything to read.
            LazyLock::force(&BY_SYSTEM);
            Self
        }

        /// Announces a pointer. The next load of the pointer's source comes after that, for those who look.
        #[inline(always)]
        pub(crate) fn announce(&self, pointer: *mut ()) -> Announced<'static> {
            // Relaxed: only this thread writes its places.
            let place = match FAST.get() {
                Some([place, _]) if place.load(Ordering::Relaxed).is_null() => place,
                Some([_, place]) if place.load(Ordering::Relaxed).is_null() => place,
                _ => return announce_slow(pointer),
            };
            // Relaxed: the barrier orders it.
            place.store(pointer, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            Announced { place: Some(place), others: &OTHERS }
        }

        /// Whether any reader may have announced the pointer, which its source no longer names.
        pub(crate) fn is_announced(&self, pointer: *mut ()) -> bool {
            let is_there = || {
                OTHERS.load(Ordering::SeqCst) > 0
                    || THREADS_PLACES.iter().any(|of_thread| is_in(&of_thread.places, pointer))
            };
            // As long as it is seen without the barrier, that is not needed.
            if is_there() {
                return true;
            }
            fence(Ordering::SeqCst);
            // If the system refuses, it cannot be told.
            (*BY_SYSTEM && !arch::fence_everywhere()) || is_there()
        }
    }

    /// For a thread whose first place is taken, which has no places yet, or which has to execute a fence.
    #[cold]
    #[inline(never)]
    fn announce_slow(pointer: *mut ()) -> Announced<'static> {
        if OWN.get() == 0 {
            // Not while the thread ends: then nobody would give the places back.
            let number = if RELEASE.try_with(|_| ()).is_ok() { acquire() } else { None };
            OWN.set(number.map_or(NONE, |number| number + 1));
            FAST.set(number.filter(|_| *BY_SYSTEM).map(|number| &THREADS_PLACES[number].places));
        }
        let own = THREADS_PLACES.get(OWN.get().wrapping_sub(1));
        let place = own.and_then(|own| own.places.iter().find(|place| place.load(Ordering::Relaxed).is_null()));
        match place {
            Some(place) => place.store(pointer, Ordering::Relaxed),
            None => _ = OTHERS.fetch_add(1, Ordering::Relaxed),
        }
        fence(Ordering::SeqCst);
        Announced { place, others: &OTHERS }
    }

    /// Makes this thread the owner of places that have none.
    fn acquire() -> Option<usize> {
        (0..THREADS).find(|&number| {
            let is_owned = &THREADS_PLACES[number].is_owned;
            // Acquire, with the release of the owner before.
            is_owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })
    }
}

#[cfg(not(ccf_model))]
pub(crate) use shared::Registry;

/// In a model, each filter has places of its own, since a model's atomics live for one execution. Readers take them by
/// exchanges, and all is `SeqCst`.
#[cfg(ccf_model)]
#[derive(Debug)]
pub(crate) struct Registry {
    readers: [CachePadded<Places>; 4],
    others: AtomicU64,
}

#[cfg(ccf_model)]
impl Registry {
    pub(crate) fn new() -> Self {
        let places = || core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        Self { readers: core::array::from_fn(|_| CachePadded::new(places())), others: AtomicU64::new(0) }
    }

    pub(crate) fn announce(&self, pointer: *mut ()) -> Announced<'_> {
        let own = &self.readers[thread_number() % self.readers.len()];
        let place = own.iter().find(|place| {
            place.compare_exchange(ptr::null_mut(), pointer, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        });
        if place.is_none() {
            self.others.fetch_add(1, Ordering::SeqCst);
        }
        Announced { place, others: &self.others }
    }

    pub(crate) fn is_announced(&self, pointer: *mut ()) -> bool {
        self.others.load(Ordering::SeqCst) > 0 || self.readers.iter().any(|places| is_in(places, pointer))
    }
}
