//! shadowsocks-rust: a proxy refuses connections whose nonce or salt it has seen
//! (`crates/shadowsocks/src/security/replay/mod.rs`).
//!
//! Today it has two Bloom filters of half a million nonces each, in a spin lock. When the newer one is full, the older
//! one is cleared. For the ciphers of 2022, whose requests are valid for 30 seconds, it keeps the salts of a minute in
//! an LRU cache, in another spin lock.

use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::BuildError;

use crate::{LastKeys, UsedOnce};

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
    nonces: LastKeys<[u8]>,
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
            nonces: LastKeys::new(nonces, false_positive_rate)?,
            // If more salts come, the minute is not cut short: the connections are refused.
            salts: UsedOnce::new(Duration::from_secs(SALT_LIFETIME), salts, false_positive_rate)?,
            started: Instant::now(),
        })
    }

    /// [`check_nonce_and_set`](ReplayProtector::check_nonce_and_set) for a cipher of 2022 or another, by a clock in
    /// seconds.
    pub fn check_at(&self, is_aead_2022: bool, nonce: &[u8], seconds: u64) -> bool {
        if nonce.is_empty() {
            return false; // a cipher without nonces
        }
        if is_aead_2022 {
            self.salts.advance(seconds);
            return self.salts.try_use_now(nonce).is_err();
        }
        self.nonces.check_and_set(nonce)
    }

    /// Returns whether the nonce, or the salt of a cipher of 2022, was seen.
    pub fn has(&self, is_aead_2022: bool, nonce: &[u8]) -> bool {
        if is_aead_2022 { self.salts.filter().contains(nonce) } else { self.nonces.check(nonce) }
    }
}

impl ReplayProtector for RecentNonces {
    fn check_nonce_and_set(&self, method: impl CipherKind, nonce: &[u8]) -> bool {
        self.check_at(method.is_aead_2022(), nonce, self.started.elapsed().as_secs())
    }
}
