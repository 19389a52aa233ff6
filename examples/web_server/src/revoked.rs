//! The revoked tokens: a filter in memory, in front of a store on disk. Here, a token is what `token_key::key` says of it.
//!
//! **The filter always has each token of the store that has not expired by the filter's clock.** So a token that the
//! filter does not have is not revoked, and the store is not asked. For that, a token goes into the filter first and
//! into the store then, and leaves them in the other order.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError, Stats, Tick};
use redb::{Database, ReadableTable, TableDefinition};

use crate::{Clock, Options, TICKS};

/// The keys of the tokens (`token_key::key`), each with the time until which it is revoked, in seconds since 1970.
const TOKENS: TableDefinition<'_, &str, u64> = TableDefinition::new("revoked");

/// How long the store keeps expired tokens, in seconds. So a clock that is ahead by less than that loses nothing.
const KEPT: u64 = 3600;

/// What has become of a token that was to be revoked. Times are in seconds since 1970.
pub enum Outcome {
    /// It is revoked until then.
    Revoked(u64),
    /// It has expired, so there is nothing to remember.
    Expired,
    /// It is not revoked: its expiry is later than this, the latest that can be remembered now.
    TooLate(u64),
    /// It is not revoked.
    NoRoom(ExpiringInsertError),
}

/// The revoked tokens. Every operation fails if the store fails.
pub struct Revoked {
    filter: ExpiringCuckooFilter<str>,
    store: Database,
    /// How many seconds a tick of the filter has.
    tick: u64,
    /// The longest lifetime of a token, in seconds.
    longest: u64,
    clock: Clock,
    /// When this was opened, by two clocks.
    opened: (u64, Instant),
}

impl Revoked {
    /// Opens the store and fills the filter from it. Fails if a token of the store does not fit in the filter, which
    /// would then be wrong.
    pub fn open(options: &Options, clock: Clock) -> anyhow::Result<Self> {
        let path = options.data.join("revoked.redb");
        fs::create_dir_all(&options.data).with_context(|| format!("cannot create {}", options.data.display()))?;
        let store = Database::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let change = store.begin_write()?;
        change.open_table(TOKENS)?; // Makes the table, so that it can be read.
        change.commit()?;

        // One tick is to spare, for a clock that is set back a little before a restart.
        let longest = options.longest_lifetime;
        let tick = longest.div_ceil(TICKS - 1);
        let lifetime = longest.saturating_add(tick);
        let builder = ExpiringCuckooFilter::builder().capacity(options.capacity).false_positive_rate(options.rate);
        let filter = builder.lifetime(Duration::from_secs(lifetime)).resolution(Duration::from_secs(tick)).build()?;
        let revoked = Self { filter, store, tick, longest, opened: (clock(), Instant::now()), clock };
        revoked.advance();
        for entry in revoked.store.begin_read()?.open_table(TOKENS)?.iter()? {
            let (token, until) = entry?;
            let inserted = revoked.filter.insert_until(token.value(), Tick::new(revoked.end(until.value())));
            inserted.context("a token does not fit: raise --capacity or --longest-lifetime, or set the clock")?;
        }
        Ok(revoked)
    }

    /// Until when the token is revoked, if it is.
    pub fn until(&self, token: &str) -> anyhow::Result<Option<u64>> {
        let now = self.advance();
        let found = self.filter.contains(token);
        // A filter that was told a later time may have forgotten tokens too early. This comes after the lookup, so that
        // the clock can't jump unnoticed between the two.
        let is_ahead = self.filter.now() > Some(Tick::new(now / self.tick));
        if !found && !is_ahead {
            self.filter.record_negatives(1);
            return Ok(None);
        }
        let until = self.store.begin_read()?.open_table(TOKENS)?.get(token)?.map(|until| until.value());
        if found && until.is_none() {
            self.filter.record_false_positives(1);
        }
        // The store knows the second, and the filter only the tick.
        Ok(until.filter(|until| *until > now))
    }

    /// Revokes the token until its expiry or, if that is unknown, for the longest lifetime. When this returns, that is on
    /// disk.
    ///
    /// What was promised once stays true: a revocation is made longer, and never shorter.
    pub fn revoke(&self, token: &str, exp: Option<u64>) -> anyhow::Result<Outcome> {
        // There is one change at a time: this waits for the others.
        let change = self.store.begin_write()?;
        let now = self.advance();
        let latest = now.saturating_add(self.longest);
        let until = exp.unwrap_or(latest);
        let before = change.open_table(TOKENS)?.get(token)?.map(|until| until.value());
        match before {
            _ if until > latest => return Ok(Outcome::TooLate(latest)),
            // A token of unknown expiry is no younger than its earlier revocation, so that lasts long enough.
            Some(known) if known > now && (exp.is_none() || known >= until) => return Ok(Outcome::Revoked(known)),
            _ if until <= now => return Ok(Outcome::Expired),
            _ => {}
        }
        if let Err(error) = self.filter.insert_until(token, Tick::new(self.end(until))) {
            return Ok(Outcome::NoRoom(error));
        }
        change.open_table(TOKENS)?.insert(token, until)?;
        // If this fails, the change may be on disk all the same. So the token stays in the filter.
        change.commit()?;
        if let Some(before) = before {
            self.filter.remove_expiring_at(token, Tick::new(self.end(before)));
        }
        Ok(Outcome::Revoked(until))
    }

    /// Ends the revocation of the token. Returns `true` if it was revoked.
    pub fn reinstate(&self, token: &str) -> anyhow::Result<bool> {
        let change = self.store.begin_write()?;
        let until = change.open_table(TOKENS)?.remove(token)?.map(|until| until.value());
        let Some(until) = until else { return Ok(false) };
        change.commit()?;
        // Only what the store had, and with the same end. Otherwise another token might lose its entry.
        self.filter.remove_expiring_at(token, Tick::new(self.end(until)));
        Ok(until > (self.clock)())
    }

    /// Removes tokens from the store that expired more than an hour ago.
    pub fn forget_expired(&self) -> anyhow::Result<()> {
        // Not by the clock alone: if it jumps ahead by mistake, the store forgets nothing because of that.
        let (time, instant) = self.opened;
        let now = (self.clock)().min(time + instant.elapsed().as_secs());
        let change = self.store.begin_write()?;
        change.open_table(TOKENS)?.retain(|_, until| until.saturating_add(KEPT) > now)?;
        Ok(change.commit()?)
    }

    pub fn stats(&self) -> Stats {
        self.advance();
        self.filter.stats()
    }

    /// Tells the filter the time, and returns it. If there is nothing to do, that costs a few loads.
    fn advance(&self) -> u64 {
        let now = (self.clock)();
        self.filter.advance_to(Tick::new(now / self.tick));
        now
    }

    /// The tick at which an entry must expire to be found until this time.
    fn end(&self, until: u64) -> u64 {
        until.div_ceil(self.tick)
    }
}
