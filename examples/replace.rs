//! Replaces an expiring filter while it is in use: by a larger one, or by one whose hasher has another key.
//!
//! The guide's page `recipes` explains `Revoked`, and `tests/recipes.rs` shows what is lost if a step is left out.

use std::error::Error;
use std::sync::RwLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{mem, process};

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError, Stats, Tick};

type Filter = ExpiringCuckooFilter<str>;

/// The tokens that were revoked and have not expired.
pub(crate) struct Revoked {
    /// The newest filter, which gets all new tokens.
    pub(crate) current: Filter,
    /// The filters before it, each with the tick at which its last token has expired.
    pub(crate) old: Vec<(Filter, Tick)>,
}

impl Revoked {
    pub(crate) fn new(filter: Filter) -> Self {
        Self { current: filter, old: Vec::new() }
    }

    pub(crate) fn contains(&self, token: &str) -> bool {
        self.current.contains(token) || self.old.iter().any(|(filter, _)| filter.contains(token))
    }

    pub(crate) fn revoke(&self, token: &str, expiry: SystemTime) -> Result<bool, ExpiringInsertError> {
        self.current.insert_or_renew_until(token, expiry)
    }

    /// Sets the clock of all filters. Returns whether one of them has no live token any more: then call `drop_old`.
    pub(crate) fn advance_to(&self, now: Tick) -> bool {
        self.current.advance_to(now);
        self.old.iter().for_each(|(filter, _)| _ = filter.advance_to(now));
        self.old.iter().any(|(_, last)| *last <= now)
    }

    pub(crate) fn drop_old(&mut self, now: Tick) {
        self.old.retain(|(_, last)| *last > now);
    }

    /// New tokens go to this filter from now on. Those that are there are found until they expire.
    pub(crate) fn replace(&mut self, filter: Filter) {
        if let (Some(now), Some(longest)) = (self.current.now(), self.current.plan().lifetime_in_ticks) {
            filter.advance_to(now); // a new filter has no time, and takes no tokens
            let last = Tick::new(now.get() + longest);
            self.old.push((mem::replace(&mut self.current, filter), last));
        }
    }

    /// The capacity for as many tokens as came since these statistics, which are one lifetime old, and a quarter more.
    pub(crate) fn capacity_needed(&self, before: &Stats) -> usize {
        let since = self.current.stats().since(before);
        let lost = since.inserts_failed + since.expiry.map_or(0, |expiry| expiry.evicted);
        (self.current.live_len() + lost as usize) / 4 * 5
    }
}

/// All threads share it. They hold the lock for reading, except while a filter is replaced or dropped.
pub(crate) type Shared = RwLock<Revoked>;

/// A filter of tokens that live for at most an hour. Each has a hasher key of its own.
pub(crate) fn filter(capacity: usize) -> Result<Filter, Box<dyn Error>> {
    let (hour, tick) = (Duration::from_secs(3600), Duration::from_secs(300));
    let builder = Filter::builder().capacity(capacity).false_positive_rate(1e-5);
    Ok(builder.lifetime(hour).resolution(tick).build()?)
}

/// Revokes the token. If the filter is full, replaces it by one with twice the capacity.
pub(crate) fn revoke(shared: &Shared, token: &str, expiry: SystemTime) -> Result<bool, Box<dyn Error>> {
    let answer = shared.read().unwrap().revoke(token, expiry);
    if !matches!(answer, Err(ExpiringInsertError::Full { .. })) {
        return Ok(answer?);
    }
    let mut revoked = shared.write().unwrap();
    // Another thread may have been faster: then there is room now.
    if let Ok(answer) = revoked.revoke(token, expiry) {
        return Ok(answer);
    }
    let larger = filter(2 * revoked.current.capacity())?;
    revoked.replace(larger);
    Ok(revoked.revoke(token, expiry)?)
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // A service passes the wall clock. This program lets it run ahead, so that nobody has to wait.
    let time = |minutes: u64| UNIX_EPOCH + Duration::from_secs(1_699_963_200 + 60 * minutes);
    let revoked = Shared::new(Revoked::new(filter(1000)?));
    for minute in 0..180 {
        let now = revoked.read().unwrap().current.tick_at(time(minute))?;
        if revoked.read().unwrap().advance_to(now) {
            revoked.write().unwrap().drop_old(now);
        }
        // More and more tokens, each of which expires after an hour.
        for number in 0..=minute {
            revoke(&revoked, &format!("token {number} of minute {minute}"), time(minute + 60))?;
        }
        for earlier in minute.saturating_sub(59)..minute {
            assert!(revoked.read().unwrap().contains(&format!("token 0 of minute {earlier}")), "it has not expired");
        }
    }
    let revoked = revoked.into_inner().unwrap();
    println!("{} tokens; the filter has a capacity of {}", revoked.current.live_len(), revoked.current.capacity());
    // None was lost, so a capacity for those that are there would do.
    assert!(revoked.current.capacity() > 1000 && revoked.capacity_needed(&revoked.current.stats()) > 1000);
    Ok(())
}
