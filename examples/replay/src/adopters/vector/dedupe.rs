//! Vector's transform `dedupe` drops events that have come before (`src/transforms/dedupe`).
//!
//! Today it keeps the fields of the last events in an LRU cache: 5,000 by default, with a maximum age if one is set.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, WhenFull};

use crate::adopters::vector::{ObjectMap, Transform};
use crate::{Refused, UsedOnce};

/// What makes two events equal.
#[derive(Clone, Debug)]
pub enum Fields {
    /// These fields are equal.
    Match(Vec<String>),
    /// All fields but these are equal.
    Ignore(Vec<String>),
}

/// Drops events that have come before. Many threads may share it.
#[derive(Debug)]
pub struct Dedupe {
    fields: Fields,
    hasher: RandomState,
    /// Hashes of events.
    seen: UsedOnce<u64>,
    clock: Clock,
    /// Whether an event that comes again is remembered for longer.
    renews: bool,
}

#[derive(Debug)]
enum Clock {
    /// How many events were new.
    New(AtomicU64),
    /// In milliseconds.
    Since(Instant),
}

impl Dedupe {
    /// Remembers each event until at least so many new ones have come since it came last. A new event is lost with a
    /// probability of at most `false_positive_rate`.
    pub fn last(events: usize, fields: Fields, false_positive_rate: f64) -> Result<Self, BuildError> {
        let clock = Clock::New(AtomicU64::new(0));
        Self::new(events as u64, events, fields, false_positive_rate, clock, true)
    }

    /// Remembers an event for `max_age`, and up to a fourteenth longer. An event that comes again starts anew if
    /// `refresh_on_drop` is set. If more events than `events` come in that time, the oldest are forgotten sooner.
    pub fn timed(
        events: usize,
        fields: Fields,
        false_positive_rate: f64,
        max_age: Duration,
        refresh_on_drop: bool,
    ) -> Result<Self, BuildError> {
        let (clock, millis) = (Clock::Since(Instant::now()), max_age.as_millis() as u64);
        Self::new(millis, events, fields, false_positive_rate, clock, refresh_on_drop)
    }

    fn new(
        lifetime: u64,
        events: usize,
        fields: Fields,
        rate: f64,
        clock: Clock,
        renews: bool,
    ) -> Result<Self, BuildError> {
        let seen = UsedOnce::within(lifetime, events, rate, WhenFull::EvictOldest)?;
        Ok(Self { fields, hasher: RandomState::new(), seen, clock, renews })
    }

    /// Returns whether the event came before, and remembers it. In doubt it counts as new.
    pub fn is_duplicate(&self, event: &ObjectMap) -> bool {
        match &self.clock {
            Clock::New(new) => {
                let duplicate = self.is_duplicate_at(event, new.load(Ordering::Relaxed));
                new.fetch_add(u64::from(!duplicate), Ordering::Relaxed);
                duplicate
            }
            Clock::Since(start) => self.is_duplicate_at(event, start.elapsed().as_millis() as u64),
        }
    }

    /// [`is_duplicate`](Self::is_duplicate), by a clock of the caller.
    pub fn is_duplicate_at(&self, event: &ObjectMap, now: u64) -> bool {
        let key = self.key(event);
        self.seen.advance(now);
        if self.renews {
            // Without room, or without a clock, it counts as new.
            return self.seen.filter().insert_or_renew(&key) == Ok(false);
        }
        self.seen.try_use_now(&key) == Err(Refused::Used)
    }

    /// Returns whether the event came before, and changes nothing.
    pub fn remembers(&self, event: &ObjectMap) -> bool {
        self.seen.filter().contains(&self.key(event))
    }

    fn key(&self, event: &ObjectMap) -> u64 {
        let mut hash = self.hasher.build_hasher();
        match &self.fields {
            Fields::Match(names) => names.iter().for_each(|name| event.get(name).hash(&mut hash)),
            Fields::Ignore(names) => {
                event.iter().filter(|(name, _)| !names.contains(name)).for_each(|field| field.hash(&mut hash));
            }
        }
        hash.finish()
    }
}

impl Transform for Dedupe {
    fn transform_one(&mut self, event: ObjectMap) -> Option<ObjectMap> {
        (!self.is_duplicate(&event)).then_some(event)
    }
}
