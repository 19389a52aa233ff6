//! PURE: the settings of a node, and which of them must be the same on all nodes of its fleet.

use std::fmt;
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, ExpiringCuckooFilter, StableHashBuilder};
use sha2::{Digest, Sha256};
use tokens::expiry::Lifetimes;

use crate::change::{Agreement, Tick, TokenId};

/// Only hashes are used, so the type of the keys does not matter.
pub(crate) type Filter = ExpiringCuckooFilter<[u8], StableHashBuilder>;

/// What the keys are. Change it if tokens are hashed in another way. Then old snapshots and the old log can't be
/// used any more.
const SCHEMA: &str = "fleet: StableHashBuilder::hash_bytes of the first 16 bytes of a token's SHA-256, version 1";

/// The room of the filter beyond its capacity. An entry is in the filter twice while it is extended, and this many
/// are extended at a time.
pub(crate) const EXTENDED_AT_ONCE: usize = 64;

#[derive(Clone)]
pub(crate) struct Settings {
    /// The name of this node. Two nodes of one fleet must not have the same name.
    pub(crate) node: String,
    /// The key of the filters' hash: a secret that all nodes share.
    pub(crate) key: [u8; 16],
    /// How many tokens may be revoked at a time.
    pub(crate) capacity: usize,
    /// The false-positive rate.
    pub(crate) rate: f64,
    /// The length of a tick, in seconds.
    pub(crate) resolution: u64,
    pub(crate) lifetimes: Lifetimes,
    /// How long a node trusts its filter without word from the engine.
    pub(crate) stale_after: Duration,
    /// How often the engine is asked where the log ends.
    pub(crate) beat: Duration,
    /// How long a request to change something may take.
    pub(crate) patience: Duration,
    pub(crate) snapshot_every: Duration,
    /// How many snapshots are kept.
    pub(crate) snapshots: usize,
    /// The most memory that a filter from a snapshot may take, in bytes.
    pub(crate) memory_limit: usize,
}

impl Settings {
    /// The longest lifetime of an entry in ticks. It is one more than needed, because the first tick is partly
    /// over.
    pub(crate) fn longest(&self) -> Tick {
        let Lifetimes { longest, leeway, .. } = self.lifetimes;
        let ticks = longest.saturating_add(leeway).div_ceil(self.resolution).saturating_add(1);
        Tick::try_from(ticks).unwrap_or(Tick::MAX)
    }

    /// The tick at which an entry expires that must be found until this time.
    pub(crate) fn end(&self, until: u64) -> Tick {
        Tick::try_from(until.div_ceil(self.resolution)).unwrap_or(Tick::MAX)
    }

    pub(crate) fn hasher(&self) -> StableHashBuilder {
        StableHashBuilder::with_key(self.key)
    }

    /// An empty filter.
    pub(crate) fn filter(&self) -> Result<Filter, BuildError> {
        Filter::builder_with_hasher(self.hasher())
            .capacity(self.capacity.saturating_add(EXTENDED_AT_ONCE))
            .lifetime_in_ticks(self.longest().into())
            .false_positive_rate(self.rate)
            .schema(SCHEMA)
            .build()
    }

    pub(crate) fn loader(&self) -> concurrent_cuckoo_filter::Loader<Filter, StableHashBuilder> {
        concurrent_cuckoo_filter::Loader::new(self.hasher(), self.memory_limit).schema(SCHEMA)
    }

    /// What all nodes must have in common.
    pub(crate) fn agreement(&self) -> Agreement {
        Agreement {
            schema: SCHEMA.into(),
            probe: self.hasher().hash_bytes(b"which key?"),
            capacity: self.capacity as u64,
            rate: (self.rate * 1e9).round() as u64,
            resolution: Duration::from_secs(self.resolution),
            longest: self.longest(),
        }
    }
}

/// Leaves out the key.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("node", &self.node)
            .field("agreement", &self.agreement())
            .finish_non_exhaustive()
    }
}

/// The identifier of a token, which everybody except its bearer uses.
pub(crate) fn token_id(token: &str) -> TokenId {
    let digest = Sha256::digest(token.as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    TokenId(id)
}

/// What two filters must have in common: then equal entries have equal places.
pub(crate) fn shape(filter: &Filter) -> impl PartialEq + fmt::Debug {
    (filter.slots(), filter.slots_per_bucket(), filter.fingerprint_bits(), filter.end_bits(), filter.longest_lifetime())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Short times, for tests.
    pub(crate) fn quick(node: &str) -> Settings {
        Settings {
            node: node.into(),
            key: *b"sixteen secrets!",
            capacity: 1000,
            rate: 0.001,
            resolution: 1,
            lifetimes: Lifetimes { longest: 3600, leeway: 60, keeper: "fleet" },
            // Tests advance the time when they need to.
            stale_after: Duration::from_secs(600),
            beat: Duration::from_millis(5),
            patience: Duration::from_secs(30),
            snapshot_every: Duration::from_secs(10),
            snapshots: 3,
            memory_limit: 1 << 24,
        }
    }

    #[test]
    fn a_token_that_lives_as_long_as_allowed_fits_in_the_filter() {
        for (longest, leeway, resolution) in [(86_400, 60, 600), (1, 0, 1), (3600, 59, 60), (10, 3, 7)] {
            let lifetimes = Lifetimes { longest, leeway, keeper: "fleet" };
            let settings = Settings { lifetimes, resolution, ..quick("a") };
            let filter = settings.filter().unwrap();
            for now in [1_800_000_000, 1_800_000_599, 1_800_000_001] {
                filter.advance_to(now / resolution);
                let until = now + longest + leeway;
                filter.insert_hash_until(17, settings.end(until).into()).unwrap();
                // It is found at each moment up to that time.
                filter.advance_to((until - 1) / resolution);
                assert!(filter.contains_hash(17));
                filter.advance_to(until.div_ceil(resolution));
                assert!(!filter.contains_hash(17));
                filter.restart_clock(0);
            }
        }
    }

    #[test]
    fn the_id_of_a_token_is_the_beginning_of_its_sha_256() {
        let id: String = token_id("abc").0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(id, "ba7816bf8f01cfea414140de5dae2223");
    }

    #[test]
    fn another_key_is_another_agreement() {
        let other = Settings { key: [1; 16], ..quick("a") };
        assert_ne!(other.agreement(), quick("a").agreement());
        assert_eq!(quick("b").agreement(), quick("a").agreement());
    }
}
