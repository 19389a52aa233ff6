//! A model's atomics and locks: loom's. `ci/orderings` has one ordering of the source replaced by a weaker one.

use std::panic::Location;
use std::sync::OnceLock;

use super::Ordering;

/// As in `src/table/stripe.rs 123 Relaxed`: the end of a file's path and the line, where an ordering is replaced, and by
/// which.
fn parse(text: &str) -> Option<(String, u32, Ordering)> {
    let [file, line, by] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let by = match by {
        "Relaxed" => Ordering::Relaxed,
        "Acquire" => Ordering::Acquire,
        "Release" => Ordering::Release,
        "AcqRel" => Ordering::AcqRel,
        _ => return None,
    };
    Some((file.to_owned(), line.parse().ok()?, by))
}

/// The ordering, or the one that the environment variable `CCF_REPLACE` has for the line of the caller.
#[track_caller]
pub(crate) fn replaced(ordering: Ordering) -> Ordering {
    static REPLACEMENT: OnceLock<Option<(String, u32, Ordering)>> = OnceLock::new();
    let replacement = REPLACEMENT.get_or_init(|| {
        let text = std::env::var("CCF_REPLACE").ok()?;
        Some(parse(&text).unwrap_or_else(|| panic!("CCF_REPLACE={text}: not FILE LINE ORDERING")))
    });
    let at = Location::caller();
    match replacement {
        Some((file, line, by)) if ordering != Ordering::Relaxed && at.line() == *line && at.file().ends_with(file) => {
            *by
        }
        _ => ordering,
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty, $($more:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct $name(::loom::sync::atomic::$name);

        #[allow(dead_code, reason = "each has what any needs")]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(::loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                self.0.load(replaced(ordering))
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                self.0.store(value, replaced(ordering));
            }

            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange_weak(current, new, replaced(success), replaced(failure))
            }

            $(#[track_caller]
            pub(crate) fn $more(&self, value: $value, ordering: Ordering) -> $value {
                self.0.$more(value, replaced(ordering))
            })*
        }
    };
}

atomic!(AtomicU64, u64, swap fetch_add fetch_sub fetch_max);
atomic!(AtomicI64, i64, swap fetch_add fetch_sub fetch_max fetch_and fetch_or);

/// For the counters, which begin at 0.
impl Default for AtomicI64 {
    fn default() -> Self {
        Self::new(0)
    }
}

#[derive(Debug)]
pub(crate) struct AtomicPtr<T>(::loom::sync::atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        Self(::loom::sync::atomic::AtomicPtr::new(pointer))
    }

    #[track_caller]
    pub(crate) fn load(&self, ordering: Ordering) -> *mut T {
        self.0.load(replaced(ordering))
    }

    #[track_caller]
    pub(crate) fn store(&self, pointer: *mut T, ordering: Ordering) {
        self.0.store(pointer, replaced(ordering));
    }
}

pub(crate) use ::loom::sync::MutexGuard;

/// loom's mutex behind `parking_lot`'s interface: nothing panics under a lock, so there is no poison to report.
#[derive(Debug)]
pub(crate) struct Mutex<T>(::loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(::loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no thread panics while it holds this lock")
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
