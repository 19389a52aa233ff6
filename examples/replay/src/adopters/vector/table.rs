//! Vector's enrichment table `memory` with a filter: other parts of the pipeline put keys in, and look them up
//! (`src/enrichment_tables/memory/cuckoo_table.rs`).
//!
//! Today it is the crate `cuckoo-clock`: a cuckoo filter with a `Mutex` for each bucket, fingerprints of 8 bits, and
//! times to live of 8 bits.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use concurrent_cuckoo_filter::{
    BuildError, ExpiringCuckooFilter, ExpiringInsertError, Expiry, LoadPathError, StableHashBuilder, TickError,
    WhenFull,
};

use crate::adopters::vector::{Condition, Error, ObjectMap, Table, Value};

/// The settings of a table.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long a key lives if its value does not say, and at most.
    pub ttl: Duration,
    /// How often [`MemoryTable::scan`] is called. A key lives for up to this much longer.
    pub scan_interval: Duration,
    /// The field of a value that has the time to live of its key, in seconds.
    pub ttl_field: String,
    /// For how many keys there is room. If more live at a time, those that would expire first go first.
    pub max_entries: usize,
    /// The share of absent keys that are found all the same, at most.
    pub false_positive_rate: f64,
    /// The secret key of the hashes. An export can be imported with the same one only.
    pub hash_key: [u8; 16],
}

type Keys = ExpiringCuckooFilter<str, StableHashBuilder>;

/// A table that has keys, without values, until they expire.
#[derive(Debug)]
pub struct MemoryTable {
    keys: Keys,
    config: Config,
}

impl MemoryTable {
    /// An empty table.
    pub fn new(config: Config) -> Result<Self, BuildError> {
        let keys = Keys::builder_with_hasher(StableHashBuilder::with_key(config.hash_key))
            .capacity(config.max_entries)
            .false_positive_rate(config.false_positive_rate)
            .lifetime(config.ttl, config.scan_interval)
            .when_full(WhenFull::EvictOldest)
            .build()?;
        Ok(Self { keys, config })
    }

    /// The table that was exported to this file, by a table with the same settings.
    pub fn import(path: &Path, config: Config, max_bytes: usize) -> Result<Self, LoadPathError> {
        let keys = Keys::load_from_path(path, StableHashBuilder::with_key(config.hash_key), max_bytes)?;
        Ok(Self { keys, config })
    }

    /// Writes the table to this file in one step, while others use it.
    pub fn export(&self, path: &Path) -> io::Result<()> {
        self.keys.save_to_path(path)
    }

    /// Lets keys expire. Vector calls its own at each interval. Call it once before the first key.
    ///
    /// # Errors
    /// A time before 1970.
    pub fn scan(&self, now: SystemTime) -> Result<(), TickError> {
        self.keys.advance_to(self.keys.tick_at(now)?);
        Ok(())
    }

    /// Puts the keys of an event into the table, or renews them. The value `Null` removes a key. Returns the keys that
    /// were refused, for Vector's count of failed inserts.
    pub fn handle_value(&self, value: &ObjectMap) -> Vec<(String, ExpiringInsertError)> {
        let mut refused = Vec::new();
        for (key, value) in value {
            let ttl = match value {
                Value::Null => {
                    self.keys.remove(key.as_str());
                    continue;
                }
                Value::Object(fields) => match fields.get(&self.config.ttl_field) {
                    Some(&Value::Integer(seconds)) => Duration::from_secs(seconds.max(0) as u64),
                    _ => self.config.ttl,
                },
                _ => self.config.ttl,
            };
            if let Err(error) = self.put(key, ttl) {
                refused.push((key.clone(), error));
            }
        }
        refused
    }

    /// Puts a key into the table, or renews it. It never lives for less than it was to live before.
    ///
    /// # Errors
    /// A time to live that is longer than that of the table, or no room.
    pub fn put(&self, key: &str, ttl: Duration) -> Result<(), ExpiringInsertError> {
        self.keys.insert_or_renew_until(key, Expiry::After(ttl)).map(drop)
    }

    /// For figures, and lookups by other means.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }
}

impl Table for MemoryTable {
    fn find_table_rows(&self, conditions: &[Condition<'_>]) -> Result<Vec<ObjectMap>, Error> {
        let key = match conditions {
            [Condition::Equals(key)] => *key,
            [Condition::Other] => return Err(Error::OnlyEqualityConditionAllowed),
            [] => return Err(Error::MissingCondition),
            _ => return Err(Error::OnlyOneConditionAllowed),
        };
        let Ok(Some(left)) = self.keys.remaining(key) else { return Ok(Vec::new()) };
        let row = [("key", key.into()), ("ttl", Value::Integer(left.as_secs() as i64)), ("value", Value::Null)];
        Ok(vec![row.map(|(name, value)| (name.to_owned(), value)).into()])
    }
}
