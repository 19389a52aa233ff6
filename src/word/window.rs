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
        /// The filter never holds more than this many, and for each other thread that inserts at the same time one more in each
        /// group of keys. It has room for that with [up to 16 threads](crate::RecentBuilder::last).
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

/// For example "the last 1001 to 1077 keys", "the last key" or "the keys of the last 65s to 70s". Times have four digits, or
/// whole seconds.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys { at_most: 1, .. } => write!(f, "the last key"),
            Self::Keys { at_least, at_most } if at_least == at_most => write!(f, "the last {at_least} keys"),
            Self::Keys { at_least, at_most } => write!(f, "the last {at_least} to {at_most} keys"),
            Self::Time { at_least, at_most } => {
                write!(f, "the keys of the last {:?} to {:?}", rounded(*at_least), rounded(*at_most))
            }
        }
    }
}

/// The duration rounded to four digits, or to whole seconds if that is less. What `Debug` then writes of the two times of a window
/// can be compared at a glance. (`Time` would write "1 day to 1550.76 min".)
fn rounded(time: Duration) -> Duration {
    let digits = time.as_nanos().checked_ilog10().unwrap_or(0) + 1;
    let unit = 10u64.pow(digits.saturating_sub(4).min(9));
    let nanos = (u64::from(time.subsec_nanos()) + unit / 2) / unit * unit;
    Duration::from_secs(time.as_secs()).saturating_add(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_written_as_people_write_them() {
        let keys = |at_least, at_most| Window::Keys { at_least, at_most };
        let time = |at_least, at_most| {
            let [at_least, at_most] = [at_least, at_most].map(Duration::from_nanos);
            Window::Time { at_least, at_most }
        };
        for (window, says) in [
            (keys(1, 1), "the last key"),
            (keys(13, 13), "the last 13 keys"),
            (keys(1001, 1077), "the last 1001 to 1077 keys"),
            (time(120_000_000_003, 129_230_769_234), "the keys of the last 120s to 129.2s"),
            (time(60_000_000_008, 64_615_384_624), "the keys of the last 60s to 64.62s"),
            (time(3_600_000_000_012, 3_876_923_076_936), "the keys of the last 3600s to 3877s"),
            (time(86_399_999_999_999, 93_046_153_846_160), "the keys of the last 86400s to 93046s"),
            (time(99_995_000_000, 999_949_999_999), "the keys of the last 100s to 999.9s"),
            (time(1_000_000, 2_000_000), "the keys of the last 1ms to 2ms"),
            (time(13_000_012, 14_000_013), "the keys of the last 13ms to 14ms"),
            (time(999_950_000, 1_076_923_080), "the keys of the last 1s to 1.077s"),
            (time(0, 1), "the keys of the last 0ns to 1ns"),
        ] {
            assert_eq!(window.to_string(), says);
        }
        assert!(rounded(Duration::MAX) >= Duration::from_secs(u64::MAX));
    }
}
