//! Tokens, nonces or packets that may be used once, on several threads, a token log for `quinn`, and adapters for other
//! projects.

pub mod adopters;

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, BuildError, ExpiringCuckooFilter, ExpiringInsertError, Tick, WhenFull};
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
    /// In units of the caller's clock, mostly seconds.
    lifetime: u64,
    /// How many units a tick of the filter has.
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
        let seconds = lifetime.as_secs() + u64::from(lifetime.subsec_nanos() > 0);
        Self::within(seconds, uses, false_positive_rate, WhenFull::Refuse)
    }

    /// [`new`](Self::new) for a lifetime in units of another clock, and a choice of what happens to more uses.
    /// Where the clock is the number of uses so far, at least the last `lifetime` uses are remembered.
    pub fn within(
        lifetime: u64,
        uses: usize,
        false_positive_rate: f64,
        when_full: WhenFull,
    ) -> Result<Self, BuildError> {
        let lifetime = lifetime.max(1);
        let tick = lifetime.div_ceil(TICKS);
        // A use is kept for the ticks of a lifetime and one more, and its slot is free again after two more.
        let ticks = lifetime.div_ceil(tick);
        let capacity = uses.saturating_mul(ticks as usize + 3).div_ceil(ticks as usize);
        let used = ExpiringCuckooFilter::builder()
            .capacity(capacity)
            .false_positive_rate(false_positive_rate)
            .lifetime_in_ticks(ticks + 1)
            .when_full(when_full)
            .build()?;
        Ok(Self { used, lifetime, tick })
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
        if let Advance::Behind { .. } = self.advance(now) {
            return Err(Refused::Clock);
        }
        self.try_use_now(nonce)
    }

    /// Sets the time for [`try_use_now`](Self::try_use_now). A time before the latest one changes nothing.
    pub fn advance(&self, now: u64) -> Advance {
        self.used.advance_to(Tick::new(now / self.tick))
    }

    /// Uses a nonce that does not say when it was issued: it is remembered for a lifetime from the time that the last
    /// [`advance`](Self::advance) has set.
    ///
    /// # Errors
    /// As for [`try_use`](Self::try_use).
    pub fn try_use_now(&self, nonce: &N) -> Result<(), Refused> {
        match self.used.insert_if_absent(nonce) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::Used),
            Err(ExpiringInsertError::ClockNotSet) => Err(Refused::Clock),
            Err(_) => Err(Refused::Full),
        }
    }

    /// The filter, for its statistics, and for what else one does with uses.
    pub fn filter(&self) -> &ExpiringCuckooFilter<N> {
        &self.used
    }
}

/// Remembers at least the last keys, whose number is the capacity. The oldest leave, some seven percent of the capacity at a
/// time.
#[derive(Debug)]
pub struct LastKeys<K: ?Sized> {
    keys: UsedOnce<K>,
    /// How many keys were new. It is the clock of the filter.
    new: AtomicU64,
}

impl<K: Hash + ?Sized> LastKeys<K> {
    /// Makes room for so many keys. A new one is taken for an old one with a probability of at most
    /// `false_positive_rate`.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let keys = UsedOnce::within(capacity as u64, capacity, false_positive_rate, WhenFull::EvictSoonest)?;
        Ok(Self { keys, new: AtomicU64::new(0) })
    }

    /// Returns whether the key was seen, and remembers it. Of many threads that bring one key, one gets `false`. When in doubt, a
    /// key counts as seen.
    pub fn check_and_set(&self, key: &K) -> bool {
        // Relaxed: a thread that sees an old number lets old keys live on a little.
        self.keys.advance(self.new_keys());
        let used = self.keys.try_use_now(key);
        if used.is_ok() {
            self.new.fetch_add(1, Ordering::Relaxed);
        }
        used.is_err()
    }

    /// [`check_and_set`](Self::check_and_set), but a key that was seen is remembered anew, and when in doubt, a key counts as new.
    pub fn check_and_renew(&self, key: &K) -> bool {
        self.keys.advance(self.new_keys());
        // Without room, or without a clock, it counts as new.
        let seen = self.keys.filter().insert_or_renew(key) == Ok(false);
        self.new.fetch_add(u64::from(!seen), Ordering::Relaxed);
        seen
    }

    /// Returns whether the key was seen.
    pub fn check(&self, key: &K) -> bool {
        self.keys.filter().contains(key)
    }

    /// How many keys were new.
    pub fn new_keys(&self) -> u64 {
        self.new.load(Ordering::Relaxed)
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
