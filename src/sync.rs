//! The only module that names atomics and locks: the real ones or, where the crate is compiled as a model, loom's or
//! those of `steps.rs`.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(not(ccf_model))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(not(ccf_model))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(ccf_model = "steps")]
pub(crate) use crate::steps::{AtomicI64, AtomicU64, Mutex, MutexGuard};

#[cfg(ccf_model = "loom")]
pub(crate) use loom::sync::MutexGuard;
#[cfg(ccf_model = "loom")]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64};

/// loom's mutex behind `parking_lot`'s interface: nothing panics under a lock, so there is no poison to report.
#[cfg(ccf_model = "loom")]
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(ccf_model = "loom")]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("nothing panics while it holds a stripe")
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
