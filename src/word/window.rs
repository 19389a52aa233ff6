//! PURE: which keys a filter of recent keys holds.

use core::fmt;
use core::time::Duration;

/// Which keys a [`RecentCuckooFilter`](crate::RecentCuckooFilter) holds: what its builder was asked for, rounded up to
/// what the filter can tell apart.
///
/// ```
/// use concurrent_cuckoo_filter::{RecentCuckooFilter, Window};
///
/// let seen = RecentCuckooFilter::<str>::builder().last(1_000_000).build()?;
/// let Window::Keys { at_least, at_most, .. } = seen.window() else { unreachable!() };
/// assert!(at_least >= 1_000_000 && at_most < 1_080_000);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// The last keys ([`last`](crate::RecentBuilder::last)).
    #[non_exhaustive]
    Keys {
        /// A key is among those that the filter holds until this many keys have come after it.
        at_least: u64,
        /// The filter never holds more than this many, and for each thread that inserts at the same time one more in each group
        /// of keys.
        at_most: u64,
    },
    /// The keys of a time ([`within`](crate::RecentBuilder::within)).
    #[non_exhaustive]
    Time {
        /// A key is held for at least this long.
        at_least: Duration,
        /// A key is not held any longer.
        at_most: Duration,
    },
}

/// For example "the last 1001 to 1077 keys" or "the keys of the last 65s to 70s".
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys { at_least, at_most } => write!(f, "the last {at_least} to {at_most} keys"),
            Self::Time { at_least, at_most } => write!(f, "the keys of the last {at_least:?} to {at_most:?}"),
        }
    }
}
