//! A model's atomics and locks: the real ones, with a hook before each step, that is, before each access to what
//! threads share.
//!
//! Between two steps a thread does nothing that others could notice. So whatever decides when a step is taken decides
//! the schedule. A hook may pause at random, switch to a scheduler of its own (shuttle), stop forever, or panic.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{self, Ordering};
use std::cell::RefCell;
use std::rc::Rc;

/// What a thread is about to do.
#[allow(unreachable_pub, reason = "models see it, through `model/mod.rs`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To read an atomic.
    Load,
    /// To write an atomic, or to exchange it.
    Write,
    /// To take a lock.
    Lock,
    /// To try again for a lock that another thread holds.
    Wait,
    /// To release a lock.
    Unlock,
}

type Hook = Rc<dyn Fn(Step)>;

std::thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// From here on, calls `hook` before each step of this thread. `None` removes the hook.
#[allow(unreachable_pub, reason = "models see it, through `model/mod.rs`")]
pub fn before_each_step(hook: Option<Hook>) {
    HOOK.set(hook);
}

fn about_to(step: Step) {
    // The hook is cloned and not called while it is borrowed: it may switch to another thread of the model, which
    // runs on this one too.
    match HOOK.with_borrow(Option::clone) {
        Some(hook) => hook(step),
        None if step == Step::Wait => std::thread::yield_now(),
        None => (),
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty, $($more:ident)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name(atomic::$name);

        #[allow(dead_code, reason = "both have what either needs")]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                about_to(Step::Load);
                self.0.load(ordering)
            }

            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                about_to(Step::Write);
                self.0.store(value, ordering);
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                about_to(Step::Write);
                self.0.compare_exchange_weak(current, new, success, failure)
            }

            $(pub(crate) fn $more(&self, value: $value, ordering: Ordering) -> $value {
                about_to(Step::Write);
                self.0.$more(value, ordering)
            })*
        }
    };
}

atomic!(AtomicU64, u64, swap fetch_add fetch_sub fetch_max);
atomic!(AtomicI64, i64, swap fetch_add fetch_sub fetch_max fetch_and fetch_or);

#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(atomic::AtomicPtr::new(pointer))
    }

    pub(crate) fn load(&self, ordering: Ordering) -> *mut T {
        about_to(Step::Load);
        self.0.load(ordering)
    }

    pub(crate) fn store(&self, pointer: *mut T, ordering: Ordering) {
        about_to(Step::Write);
        self.0.store(pointer, ordering);
    }
}

/// A lock whose waiters only ever try. A waiter that blocked its thread would also block a scheduler that runs on
/// that thread.
#[derive(Debug)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T>(parking_lot::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        about_to(Step::Lock);
        loop {
            if let Some(guard) = self.0.try_lock() {
                return MutexGuard(guard);
            }
            about_to(Step::Wait);
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        about_to(Step::Lock);
        self.0.try_lock().map(MutexGuard)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // The lock itself is released after this, even if the hook panics.
        about_to(Step::Unlock);
    }
}
