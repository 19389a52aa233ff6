//! The only module that names the atomics and locks of the protocols. They are the real ones. Where the crate is
//! compiled as a model, they are those of `sync/loom.rs` or `sync/steps.rs`. (What is built once and then only read is in
//! the standard library's `OnceLock`, and the number of threads in a standard atomic.)

#[cfg(ccf_model = "loom")]
pub(crate) mod loom;
#[cfg(ccf_model)]
pub(crate) mod memory;
pub(crate) mod sizes;
#[cfg(ccf_model = "steps")]
pub(crate) mod steps;
pub(crate) mod thread;

pub(crate) use core::sync::atomic::Ordering;

/// Where the target has 64-bit atomics, the feature changes nothing.
#[cfg(target_has_atomic = "64")]
use core::sync::atomic as real;
#[cfg(all(not(target_has_atomic = "64"), feature = "portable-atomic"))]
use portable_atomic as real;

#[cfg(not(any(target_has_atomic = "64", feature = "portable-atomic")))]
compile_error!(
    "`concurrent-cuckoo-filter` needs 64-bit atomics, which this target does not have: enable its feature \
     `portable-atomic`. Lookups are not lock-free then"
);

/// An atomic that only counts. No operation depends on it, so it is the real one in models too: they need not try
/// schedules that differ in nothing else.
pub(crate) use real::AtomicU64 as Tally;

#[cfg(not(ccf_model))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(ccf_model))]
pub(crate) use real::{AtomicI64, AtomicPtr, AtomicU64};

#[cfg(ccf_model = "steps")]
pub(crate) use crate::sync::steps::{AtomicI64, AtomicPtr, AtomicU64, Mutex, MutexGuard};

#[cfg(ccf_model = "loom")]
pub(crate) use crate::sync::loom::{AtomicI64, AtomicPtr, AtomicU64, Mutex, MutexGuard};

/// Locks if the lock is free. (Under loom it waits for the lock: a failed try would only add executions.)
#[inline(always)]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    if cfg!(ccf_model = "loom") { Some(mutex.lock()) } else { mutex.try_lock() }
}

/// Locks. It calls `wait` first if the lock is contended. (Not in a model, where a try would only add executions.)
#[inline(always)]
pub(crate) fn lock(mutex: &Mutex<()>, wait: impl FnOnce()) -> MutexGuard<'_, ()> {
    #[cfg(not(ccf_model))]
    if let Some(guard) = try_lock(mutex) {
        return guard;
    } else {
        wait();
    }
    #[cfg(ccf_model)]
    let _ = wait;
    mutex.lock()
}
