//! Tokens, nonces or packets that state when they were issued and may be used once, a token log for `quinn`, and adapters for
//! other projects. (For nonces that state no time, a [`RecentCuckooFilter`](concurrent_cuckoo_filter::RecentCuckooFilter) is
//! enough: see [`adopters`].)

pub mod adopters;

use std::hash::Hash;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, BuildError, ExpiringCuckooFilter, Tick};
use quinn_proto::{TokenLog, TokenReuseError};

/// A lifetime has so many ticks of the filter, at most. Their number needs 4 bits in each entry.
const TICKS: u64 = 14;

/// Remembers which nonces have been used, each for as long as it would be valid.
///
/// A nonce is anything that may be used once: the number in a token, a request or a packet. Times are in seconds since
/// 1970.
///
/// ```
/// use std::time::Duration;
/// use replay::{Refused, UsedOnce};
///
/// // 10,000 nonces of ten minutes. At most one new nonce in a million is taken for a used one.
/// let nonces = UsedOnce::<str>::new(Duration::from_secs(600), 10_000, 1e-6)?;
/// let issued = 1_800_000_000;
/// assert_eq!(nonces.try_use("nonce-1", issued, issued + 5), Ok(()));
/// assert_eq!(nonces.try_use("nonce-1", issued, issued + 600), Err(Refused::Used));
/// assert_eq!(nonces.try_use("nonce-1", issued, issued + 601), Err(Refused::Expired));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Debug)]
pub struct UsedOnce<N: ?Sized> {
    used: ExpiringCuckooFilter<N>,
    /// In seconds, as the next one: how long a tick of the filter is.
    lifetime: u64,
    tick: u64,
}

/// Why a nonce may not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has been used, or looks like one that has been used.
    Used,
    /// Its lifetime is over.
    Expired,
    /// It was issued after now, or the clock has gone back. Nobody knows whether it has been used.
    Clock,
    /// There is no room to remember that it is used, so it is not used.
    Full,
}

impl<N: Hash + ?Sized> UsedOnce<N> {
    /// Makes room for so many uses within any one lifetime. A new nonce is taken for a used one with a probability of
    /// at most `false_positive_rate`. The lifetime is rounded up to whole seconds.
    pub fn new(lifetime: Duration, uses: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let lifetime = (lifetime.as_secs() + u64::from(lifetime.subsec_nanos() > 0)).max(1);
        let tick = lifetime.div_ceil(TICKS);
        // A use is kept for the ticks of a lifetime and one more, and its slot is free again after two more.
        let ticks = lifetime.div_ceil(tick);
        let capacity = uses.saturating_mul(ticks as usize + 3).div_ceil(ticks as usize);
        let builder = ExpiringCuckooFilter::builder().capacity(capacity).false_positive_rate(false_positive_rate);
        Ok(Self { used: builder.lifetime_in_ticks(ticks + 1).build()?, lifetime, tick })
    }

    /// Uses a nonce. It is one step: of many threads that bring one nonce, at most one gets `Ok`. Exactly one does if
    /// the filter has room, and mistakes the nonce for no other.
    ///
    /// # Errors
    /// The nonce must not be used. When in doubt, a nonce counts as used, and never as new.
    pub fn try_use(&self, nonce: &N, issued: u64, now: u64) -> Result<(), Refused> {
        // A nonce from the future would outlive the memory of its use.
        let age = now.checked_sub(issued).ok_or(Refused::Clock)?;
        if age > self.lifetime {
            return Err(Refused::Expired);
        }
        // The filter may have forgotten uses that were to end between this time and the later one that it has seen.
        if let Advance::Behind { .. } = self.used.advance_to(Tick::new(now / self.tick)) {
            return Err(Refused::Clock);
        }
        match self.used.insert_if_absent(nonce) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::Used),
            Err(_) => Err(Refused::Full),
        }
    }

    /// The filter, for its statistics, and for what else one does with uses.
    pub fn filter(&self) -> &ExpiringCuckooFilter<N> {
        &self.used
    }
}

/// The log of the address-validation tokens of `quinn`, which a server sends in NEW_TOKEN frames.
///
/// After an error `quinn` goes on as if the client had brought no token: the address is not validated yet. So every
/// doubt, a full filter included, costs the client at most a round trip.
impl TokenLog for UsedOnce<u128> {
    /// Goes by its own lifetime, so that a longer one in the configuration of `quinn` lets no token be used twice.
    fn check_and_insert(&self, nonce: u128, issued: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        self.try_use(&nonce, unix_seconds(issued), unix_seconds(SystemTime::now())).map_err(|_| TokenReuseError)
    }
}

/// Whole seconds since 1970, as in the tokens of `quinn`.
pub fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
