//! Vector's transform `dedupe` drops events that have come before (`src/transforms/dedupe`).
//!
//! Today it keeps the fields of the last events in an LRU cache: 5,000 by default. (For a maximum age, let the time be the
//! filter's clock, instead of the number of new events.)

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use concurrent_cuckoo_filter::BuildError;

use crate::LastKeys;
use crate::adopters::vector::{ObjectMap, Transform};

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
    seen: LastKeys<u64>,
}

impl Dedupe {
    /// Remembers each event until at least so many new ones have come since it came last. A new event is lost with a
    /// probability of at most `false_positive_rate`.
    pub fn last(events: usize, fields: Fields, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self { fields, hasher: RandomState::new(), seen: LastKeys::new(events, false_positive_rate)? })
    }

    /// Returns whether the event came before, and remembers it for longer. In doubt it counts as new.
    pub fn is_duplicate(&self, event: &ObjectMap) -> bool {
        self.seen.check_and_renew(&self.key(event))
    }

    /// Returns whether the event came before, and changes nothing.
    pub fn remembers(&self, event: &ObjectMap) -> bool {
        self.seen.check(&self.key(event))
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
