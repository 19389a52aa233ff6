//! A value that is replaced while threads read it, and freed when none reads it any more. With `machine/arch.rs`, one of
//! the two modules with `unsafe` code.
//!
//! A reader announces which value it reads, in a place that only it writes (a *hazard pointer*: Michael, *Hazard Pointers*,
//! 2004). It takes no lock, and it waits for nobody. Whoever has replaced a value frees it when no place names it. So a
//! thread that is stopped while it reads a value delays the freeing of that value, and of nothing else. (With epochs it
//! would delay the freeing of all that is replaced later.)
//!
//! # Why no value is freed while it is read
//! A reader announces the value, and then reads the pointer again. If that still names the value, it has it. The other
//! thread replaces the pointer, and then looks at all places. Between the two steps of each there is a barrier
//! (`sync/readers.rs`): so either the reader sees the new pointer, or the other thread sees the announcement. If the
//! reader has the value, the second is the case, until the reader takes the announcement back. (Or the value is a later
//! one at the same address, which the pointer names again. Then that one has not been replaced.) It takes it back with a
//! release store, which the look that no longer finds it acquires. So all that the reader has done with the value comes
//! before the freeing.
#![allow(
    unsafe_code,
    reason = "a pointer that others replace cannot be read without it; each block has its SAFETY note"
)]

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr;
use std::sync::Arc;

use crate::sync::fault::{self, Fault};
use crate::sync::readers::{Announced, Registry, latest};
use crate::sync::{AtomicPtr, Ordering};

/// A value, or none, that can be replaced.
#[derive(Debug)]
pub(crate) struct Replaceable<T> {
    /// From [`Arc::into_raw`], or null.
    pointer: AtomicPtr<T>,
    owns: PhantomData<Arc<T>>,
}

/// A value that is being read. It is not freed meanwhile.
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    /// From [`Arc::into_raw`]. (A reference could not be turned back into an `Arc`: the counts are not a part of the value.)
    pointer: *const T,
    lives: PhantomData<&'a T>,
    /// Taken back when this is dropped.
    _announced: Announced<'a>,
}

/// A value that was replaced, and that readers may still have. Where this is dropped, the value is never freed:
/// `free`, or `into_inner`, is for that.
#[derive(Debug)]
#[must_use = "a value that is dropped here is never freed"]
pub(crate) struct Retired<T>(ManuallyDrop<Arc<T>>);

fn raw<T>(value: Option<Arc<T>>) -> *mut T {
    value.map_or(ptr::null_mut(), |value| Arc::into_raw(value).cast_mut())
}

impl<T> Replaceable<T> {
    pub(crate) fn new(value: Option<Arc<T>>) -> Self {
        Self { pointer: AtomicPtr::new(raw(value)), owns: PhantomData }
    }

    /// Whether there is a value.
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        // Relaxed: for figures, and for callers that keep others from replacing it.
        !self.pointer.load(Ordering::Relaxed).is_null()
    }

    /// The value, if there is one.
    #[inline(always)]
    pub(crate) fn hold<'a>(&'a self, registry: &'a Registry) -> Option<Held<'a, T>> {
        // Acquire: whoever sees that there is no value any more sees what was done before. Of a value, the second read
        // counts.
        let mut pointer = self.pointer.load(Ordering::Acquire);
        loop {
            if pointer.is_null() {
                return None;
            }
            let announced = registry.announce(pointer.cast());
            // SeqCst: see `growth/mod.rs`. It acquires the value.
            let now = latest(&self.pointer, Ordering::SeqCst);
            if now == pointer || fault::injected(Fault::HoldWithoutRecheck) {
                return Some(Held { pointer, lives: PhantomData, _announced: announced });
            }
            pointer = now;
        }
    }

    /// The value, as one of its owners.
    pub(crate) fn get(&self, registry: &Registry) -> Option<Arc<T>> {
        let held = self.hold(registry)?;
        // SAFETY: the pointer is from `Arc::into_raw`, and while it is held the value has an owner: see `Held::deref`.
        Some(unsafe {
            Arc::increment_strong_count(held.pointer);
            Arc::from_raw(held.pointer)
        })
    }

    /// Puts another value in the place of this one, which may have readers yet.
    pub(crate) fn replace(&self, value: Option<Arc<T>>) -> Option<Retired<T>> {
        // SeqCst: in the order of all such steps it comes before the look at the places.
        let old = self.pointer.swap(raw(value), Ordering::SeqCst);
        // SAFETY: the pointer is from `Arc::into_raw`, and the exchange has given this thread its count.
        (!old.is_null()).then(|| Retired(ManuallyDrop::new(unsafe { Arc::from_raw(old) })))
    }
}

impl<T> Drop for Replaceable<T> {
    fn drop(&mut self) {
        if let Some(Retired(value)) = self.replace(None) {
            // Nobody else has a reference to `self`, so nobody has a `Held` of it.
            drop(ManuallyDrop::into_inner(value));
        }
    }
}

impl<T> Retired<T> {
    /// The value, for a caller that knows that no reader has it, or that another `Replaceable` or `Retired` has a count of
    /// the same value, which is given up by `free` alone. (A value that two `Replaceable`s name is announced by its address,
    /// whichever of them a reader has read.)
    pub(crate) fn into_inner(self) -> Arc<T> {
        ManuallyDrop::into_inner(self.0)
    }

    /// Returns the value if no reader has it: then it can be freed.
    pub(crate) fn free(self, registry: &Registry) -> Result<Arc<T>, Self> {
        let pointer = Arc::as_ptr(&self.0).cast_mut();
        if registry.is_announced(pointer.cast()) && !fault::injected(Fault::FreesWhileRead) {
            return Err(self);
        }
        Ok(ManuallyDrop::into_inner(self.0))
    }
}

impl<T> Deref for Retired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the pointer is from `Arc::into_raw`, and its `Replaceable` had that count when `hold` read the pointer
        // again. The count is given up in `Retired::free`, which asks all readers first; in `drop`, which has the only
        // reference to the `Replaceable`, and this has another; or in `Retired::into_inner`, whose caller knows that another
        // count is kept until `free` has asked all readers for it. By the argument above the value lives until the
        // announcement is taken back, which is when this is dropped.
        unsafe { &*self.pointer }
    }
}
#[cfg(test)]
#[path = "replaceable_tests.rs"]
mod tests;
