//! What a node knows, in one piece: the filter, and until when that is enough.
//!
//! # Why "no" is right
//! A lookup reads the deadline, then the filter, then the clock. The deadline is a fixed time after a question to a quorum
//! was *sent*; before it is stored, everything that the answer names is in the filter. So a filter that is read after the
//! deadline has everything that was acknowledged before that question. And the clock, which is read last, says that the
//! question was sent less than that time ago. It does not matter where the process was stopped in between: if the deadline
//! were read after the filter, a node that catches up in between would vouch for a filter that it no longer has.

#[cfg(test)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{AbsorbError, BuildError, Hashed, Tick};

use crate::clock::Clock;
use crate::settings::{Filter, Settings};

/// A node's answer from its filter.
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

/// Why a filter can't be copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Absorb(#[from] AbsorbError),
}

pub(crate) struct Known {
    settings: Settings,
    clock: Clock,
    pub(crate) filter: Filter,
    /// In nanoseconds of the monotonic clock.
    deadline: AtomicU64,
    /// Whether entries may be removed. Not if the end of an entry is not that of its token: a removal could then hit
    /// another token.
    is_exact: AtomicBool,
    /// The tick at which an entry expires before its token does; the node joins again before that.
    renew: AtomicU64,
    /// Called between the two reads of a lookup.
    #[cfg(test)]
    pub(crate) between: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Known {
    /// An empty filter for this many tokens.
    pub(crate) fn new(settings: &Settings, clock: &Clock, capacity: usize) -> Result<Self, BuildError> {
        let filter = settings.filter(capacity)?;
        filter.advance_to(Tick::new(clock.earliest() / settings.resolution));
        Ok(Self {
            settings: settings.clone(),
            clock: clock.clone(),
            filter,
            deadline: AtomicU64::new(0),
            is_exact: AtomicBool::new(true),
            renew: AtomicU64::new(u64::MAX),
            #[cfg(test)]
            between: Mutex::default(),
        })
    }

    /// A filter with the same entries.
    pub(crate) fn copy(&self) -> Result<Filter, CopyError> {
        let copy = self.filter.empty_like()?;
        copy.absorb(&self.filter)?;
        Ok(copy)
    }

    pub(crate) fn lookup(&self, hash: Hashed) -> Verdict {
        let deadline = self.deadline();
        let is_in = self.filter.by_hash().contains(hash);
        #[cfg(test)]
        if let Some(between) = &mut *self.between.lock().unwrap() {
            between();
        }
        if self.clock.now() >= deadline || self.is_behind(self.clock.earliest()) {
            Verdict::Unsure
        } else if is_in {
            Verdict::Perhaps
        } else {
            Verdict::NotRevoked
        }
    }

    fn deadline(&self) -> Duration {
        Duration::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Whether the filter would say "no" now for tokens that are not in it.
    pub(crate) fn is_fresh(&self) -> bool {
        self.clock.now() < self.deadline()
    }

    /// The node knows everything that was acknowledged at this moment.
    pub(crate) fn knows_all_of(&self, moment: Duration) {
        let deadline = moment + self.settings.stale_after;
        self.deadline.fetch_max(deadline.as_nanos() as u64, Ordering::Release);
    }

    /// Adds an entry for a token, which had this end before.
    pub(crate) fn put(&self, hash: Hashed, end: u64, before: Option<u64>) -> Result<(), NoRoom> {
        let (tick, before) = (self.settings.tick(end), before.map(|end| self.settings.tick(end)));
        if before == Some(tick) {
            return Ok(());
        }
        let latest = self.tick_of_filter() + self.settings.lifetime_in_ticks();
        if tick > latest {
            // A node whose clock is ahead has written it, or the value is damaged.
            self.is_exact.store(false, Ordering::Relaxed);
            self.renew.fetch_min(latest - 1, Ordering::Relaxed);
        }
        self.filter.by_hash().insert_until(hash, Tick::new(tick.min(latest))).map_err(|_| NoRoom)?;
        // Only now, so that a lookup finds one of the two.
        if let Some(before) = before {
            self.remove_tick(hash, before);
        }
        Ok(())
    }

    /// Removes the entry of a token that had this end.
    pub(crate) fn remove(&self, hash: Hashed, end: u64) {
        self.remove_tick(hash, self.settings.tick(end));
    }

    fn remove_tick(&self, hash: Hashed, tick: u64) {
        // An entry that stays costs a request to etcd now and then, no more.
        if self.is_exact.load(Ordering::Relaxed) && tick > self.tick_of_filter() {
            self.filter.by_hash().remove_expiring_at(hash, Tick::new(tick));
        }
    }

    /// Advances the filter's clock, unless an entry would expire before its token. Returns `false` then, or if the
    /// machine's clock was set back: the node has to join again.
    pub(crate) fn advance(&self) -> bool {
        let now = self.clock.earliest();
        let tick = now / self.settings.resolution;
        if tick >= self.renew.load(Ordering::Relaxed) {
            return false;
        }
        self.filter.advance_to(Tick::new(tick));
        !self.is_behind(now)
    }

    fn tick_of_filter(&self) -> u64 {
        self.filter.now().map_or(0, Tick::get)
    }

    /// Whether this time is before the filter's: the machine's clock was set back, and entries of live tokens may have
    /// expired.
    fn is_behind(&self, now: u64) -> bool {
        let filter = self.tick_of_filter() * self.settings.resolution;
        now.saturating_add(self.settings.clock_margin) < filter
    }
}
