//! shadowsocks-rust: a proxy refuses connections whose nonce or salt it has seen
//! (`crates/shadowsocks/src/security/replay/mod.rs`).
//!
//! Today it has two Bloom filters of half a million nonces each, in a spin lock. When the newer one is full, the older
//! one is cleared. For the ciphers of 2022, whose requests are valid for 30 seconds, it keeps the salts of a minute in
//! an LRU cache, in another spin lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, WhenFull};

use crate::UsedOnce;

/// Twice the greatest difference between the clocks of client and server, in seconds.
const SALT_LIFETIME: u64 = 60;

/// What the protector asks of a cipher.
pub trait CipherKind {
    /// Whether it is a cipher of 2022.
    fn is_aead_2022(&self) -> bool;
}

/// The method of shadowsocks-rust's `ReplayProtector`.
pub trait ReplayProtector {
    /// Returns whether the nonce was seen, and remembers it.
    fn check_nonce_and_set(&self, method: impl CipherKind, nonce: &[u8]) -> bool;
}

/// Remembers at least the last nonces, and all salts of a minute.
#[derive(Debug)]
pub struct RecentNonces {
    nonces: UsedOnce<[u8]>,
    /// How many nonces were new. It is the clock of their filter.
    new: AtomicU64,
    salts: UsedOnce<[u8]>,
    started: Instant,
}

impl RecentNonces {
    /// Makes room for so many nonces, and for so many salts in a minute. A new one is taken for an old one with a
    /// probability of at most `false_positive_rate`: the client must connect again.
    ///
    /// # Errors
    /// Those of the filters' builder. A rate below 1.5e-8 is too low.
    pub fn new(nonces: usize, salts: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self {
            nonces: UsedOnce::within(nonces as u64, nonces, false_positive_rate, WhenFull::EvictOldest)?,
            new: AtomicU64::new(0),
            // If more salts come, the minute is not cut short: the connections are refused.
            salts: UsedOnce::new(Duration::from_secs(SALT_LIFETIME), salts, false_positive_rate)?,
            started: Instant::now(),
        })
    }

    /// [`check_nonce_and_set`](ReplayProtector::check_nonce_and_set), by a clock in seconds.
    pub fn check_at(&self, method: impl CipherKind, nonce: &[u8], seconds: u64) -> bool {
        if nonce.is_empty() {
            return false; // a cipher without nonces
        }
        if method.is_aead_2022() {
            self.salts.advance(seconds);
            return self.salts.try_use_now(nonce).is_err();
        }
        // Relaxed: a thread that sees an old number lets old nonces live on a little.
        self.nonces.advance(self.new.load(Ordering::Relaxed));
        let used = self.nonces.try_use_now(nonce);
        if used.is_ok() {
            self.new.fetch_add(1, Ordering::Relaxed);
        }
        used.is_err()
    }

    /// For figures: the nonces, and the salts.
    pub fn filters(&self) -> [&UsedOnce<[u8]>; 2] {
        [&self.nonces, &self.salts]
    }
}

impl ReplayProtector for RecentNonces {
    fn check_nonce_and_set(&self, method: impl CipherKind, nonce: &[u8]) -> bool {
        self.check_at(method, nonce, self.started.elapsed().as_secs())
    }
}
