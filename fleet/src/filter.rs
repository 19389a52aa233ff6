//! What a node knows, in one piece: the filter, up to which revision it has everything, and until when that is enough.
//!
//! # Why "no" is right
//! A lookup reads the deadline, then the filter, then the clock. The deadline is a fixed time after a question to a quorum
//! was *sent*; before it is stored, everything that the answer names is in the filter. So a filter that is read after the
//! deadline has everything that was acknowledged before that question. And the clock, which is read last, says that the
//! question was sent less than that time ago. It does not matter where the process was stopped in between: if the deadline
//! were read after the filter, a node that catches up in between would vouch for a filter that it no longer has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use concurrent_cuckoo_filter::{BuildError, Expiry, Hashed};

use crate::clock::{Clock, Moment};
use crate::keys::TokenId;
use crate::settings::{Filter, Settings};

/// What the filter of a node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    NotRevoked,
    Perhaps,
    /// The node may lack a change.
    Unsure,
}

/// The filter has no room.
#[derive(Debug)]
pub(crate) struct NoRoom;

pub(crate) struct Known {
    pub(crate) filter: Filter,
    /// The revision up to which the filter has everything.
    applied: AtomicI64,
    deadline: AtomicU64,
    /// Entries can be removed. Not so if one of them has another end than its token, since removing an end that is not
    /// there may hit another token.
    is_exact: AtomicBool,
    /// The tick at which an entry expires before its token does; the node joins again before that.
    renew: AtomicU64,
    /// The ends of tokens that somebody else has deleted, until a node restores them, and whether they were put back. One
    /// that is back stays here: a question of before may still be under way.
    missing: Mutex<HashMap<TokenId, (u64, bool)>>,
    missing_len: AtomicUsize,
    not_back: AtomicUsize,
    /// Called between the two reads of a lookup.
    #[cfg(test)]
    pub(crate) between: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Known {
    /// An empty filter for this many tokens, at this revision.
    pub(crate) fn new(settings: &Settings, clock: &Clock, capacity: usize, revision: i64) -> Result<Self, BuildError> {
        let filter = settings.filter(capacity)?;
        filter.advance_to(now(settings, clock) / settings.resolution);
        Ok(Self {
            filter,
            applied: AtomicI64::new(revision),
            deadline: AtomicU64::new(0),
            is_exact: AtomicBool::new(true),
            renew: AtomicU64::new(u64::MAX),
            missing: Mutex::default(),
            missing_len: AtomicUsize::new(0),
            not_back: AtomicUsize::new(0),
            #[cfg(test)]
            between: Mutex::default(),
        })
    }

    pub(crate) fn lookup(&self, hash: u64, settings: &Settings, clock: &Clock) -> Verdict {
        let deadline = Moment(self.deadline.load(Ordering::Acquire));
        let is_in = self.filter.by_hash().contains(Hashed(hash));
        #[cfg(test)]
        if let Some(between) = &mut *self.between.lock().unwrap() {
            between();
        }
        let deadline =
            if takes!(settings, DeadlineFirst) { deadline } else { Moment(self.deadline.load(Ordering::Acquire)) };
        if clock.now() >= deadline && takes!(settings, Deadline) {
            return Verdict::Unsure;
        }
        if self.is_ahead_of(settings, now(settings, clock)) && takes!(settings, BehindFilter) {
            return Verdict::Unsure;
        }
        if is_in { Verdict::Perhaps } else { Verdict::NotRevoked }
    }

    /// Whether the filter would say "no" now for tokens that are not in it.
    pub(crate) fn is_fresh(&self, clock: &Clock) -> bool {
        clock.now() < Moment(self.deadline.load(Ordering::Acquire))
    }

    /// The node knows everything that was acknowledged at this moment less `stale-after`.
    pub(crate) fn extend(&self, deadline: Moment) {
        self.deadline.fetch_max(deadline.0, Ordering::Release);
    }

    pub(crate) fn applied(&self) -> i64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Everything up to this revision is in the filter.
    pub(crate) fn has_applied(&self, revision: i64) {
        self.applied.fetch_max(revision, Ordering::Release);
    }

    /// Adds an entry for a token, which had this end before.
    pub(crate) fn put(&self, settings: &Settings, hash: u64, end: u64, before: Option<u64>) -> Result<(), NoRoom> {
        let (tick, before) = (settings.tick(end), before.map(|end| settings.tick(end)));
        if before == Some(tick) {
            return Ok(());
        }
        let latest = self.filter.now().unwrap_or(0) + self.filter.plan().lifetime_in_ticks.unwrap();
        if tick > latest {
            // A node whose clock is ahead has written it, or the value is damaged.
            self.is_exact.store(false, Ordering::Relaxed);
            self.renew.fetch_min(latest - 1, Ordering::Relaxed);
        }
        self.filter.by_hash().insert_until(Hashed(hash), Expiry::AtTick(tick.min(latest))).map_err(|_| NoRoom)?;
        // Only now, so that a lookup finds one of the two.
        if let Some(before) = before {
            self.remove_tick(hash, before);
        }
        Ok(())
    }

    /// Removes the entry of a token that had this end.
    pub(crate) fn remove(&self, settings: &Settings, hash: u64, end: u64) {
        self.remove_tick(hash, settings.tick(end));
    }

    fn remove_tick(&self, hash: u64, tick: u64) {
        // What is left costs a question now and then, and no more.
        if self.is_exact.load(Ordering::Relaxed) && tick > self.filter.now().unwrap_or(0) {
            self.filter.by_hash().remove_expiring_at(Hashed(hash), tick);
        }
    }

    /// Lets entries expire. False if the filter can't go on; then it keeps them, until the node has joined again.
    pub(crate) fn advance(&self, settings: &Settings, clock: &Clock) -> bool {
        let now = now(settings, clock);
        let tick = now / settings.resolution;
        if tick >= self.renew.load(Ordering::Relaxed) && takes!(settings, Renew) {
            return false;
        }
        self.filter.advance_to(tick);
        !self.is_ahead_of(settings, now) || !takes!(settings, BehindFilter)
    }

    /// Whether the filter has forgotten what has not ended: the machine's clock was set back.
    fn is_ahead_of(&self, settings: &Settings, now: u64) -> bool {
        now.saturating_add(settings.clock_margin) < self.filter.now().unwrap_or(0) * settings.resolution
    }

    /// Changes what is missing. Whether something is costs a lookup no lock.
    fn change_missing(&self, change: impl FnOnce(&mut HashMap<TokenId, (u64, bool)>)) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut missing);
        self.not_back.store(missing.values().filter(|(_, is_back)| !is_back).count(), Ordering::Release);
        self.missing_len.store(missing.len(), Ordering::Release);
    }

    fn is_none_missing(&self) -> bool {
        self.missing_len.load(Ordering::Acquire) == 0
    }

    /// Somebody has deleted these tokens. They count as revoked until their ends.
    pub(crate) fn miss(&self, tokens: &[(TokenId, u64)]) {
        if !tokens.is_empty() {
            self.change_missing(|missing| missing.extend(tokens.iter().map(|(id, end)| (*id, (*end, false)))));
        }
    }

    /// The token is back.
    pub(crate) fn found(&self, id: TokenId) {
        if self.not_back.load(Ordering::Acquire) > 0 {
            self.change_missing(|missing| _ = missing.get_mut(&id).map(|(_, is_back)| *is_back = true));
        }
    }

    /// A node has restored it, or it has ended.
    pub(crate) fn forget(&self, id: TokenId) {
        if !self.is_none_missing() {
            self.change_missing(|missing| _ = missing.remove(&id));
        }
    }

    /// The end of a token that is not back: the filter still has its entry.
    pub(crate) fn entry_of_missing(&self, id: TokenId) -> Option<u64> {
        if self.not_back.load(Ordering::Acquire) == 0 {
            return None;
        }
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.get(&id).filter(|(_, is_back)| !is_back).map(|(end, _)| *end)
    }

    /// The end of a token that somebody has deleted.
    pub(crate) fn missing_end(&self, id: TokenId) -> Option<u64> {
        if self.is_none_missing() {
            return None;
        }
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).get(&id).map(|(end, _)| *end)
    }

    /// Some of the tokens that are not back.
    pub(crate) fn some_missing(&self, at_most: usize) -> Vec<(TokenId, u64)> {
        if self.not_back.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.iter().filter(|(_, (_, is_back))| !is_back).take(at_most).map(|(id, (end, _))| (*id, *end)).collect()
    }
}

/// The time by which tokens end.
pub(crate) fn now(settings: &Settings, clock: &Clock) -> u64 {
    _ = settings;
    if takes!(settings, BothClocks) { clock.earliest() } else { clock.latest() }
}
