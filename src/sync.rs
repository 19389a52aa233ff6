//! The only module that names atomics and locks: the real ones, or loom's where the crate is compiled as a model.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(not(ccf_loom))]
pub(crate) use core::sync::atomic::{AtomicI64, AtomicU64};
#[cfg(not(ccf_loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(ccf_loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(ccf_loom)]
pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64};

/// loom's mutex behind `parking_lot`'s interface: nothing panics under a lock, so there is no poison to report.
#[cfg(ccf_loom)]
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(ccf_loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("nothing panics while it holds a stripe")
    }
}
