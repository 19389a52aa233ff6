//! PURE: the settings of a node, and which of them must be the same on all nodes of its fleet.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, ExpiringCuckooFilter, StableHashBuilder};
use sha2::{Digest, Sha256};

use crate::change::{Agreement, Tick, TokenId};

/// Only hashes are used, so the type of the keys does not matter.
pub(crate) type Filter = ExpiringCuckooFilter<[u8], StableHashBuilder>;

/// What the keys are. It is in every snapshot.
const SCHEMA: &str = "fleet: StableHashBuilder::hash_bytes of the first 16 bytes of a token's SHA-256, version 1";

/// The number of the log's format: of messages, records and scripts. Nodes with another number do not start. Format 1
/// had no chain, and its clock was not compared.
const FORMAT: u32 = 2;

/// The room of the filter beyond its capacity. An entry is in the filter twice while it is extended, and this many
/// are extended at a time.
pub(crate) const EXTENDED_AT_ONCE: usize = 64;

/// The settings of a node.
#[derive(Clone)]
pub struct Settings {
    /// The name of this node, for logs and metrics. A random number is added to it, so two nodes of one name are
    /// still two.
    pub node: String,
    /// The key of the filters' hash: a secret that all nodes share.
    pub key: [u8; 16],
    /// How many tokens may be revoked at a time.
    pub capacity: usize,
    /// The false-positive rate.
    pub rate: f64,
    /// The length of a tick, in seconds.
    pub resolution: u64,
    /// The longest lifetime of a token, from its revocation to its expiry, in seconds.
    pub longest_lifetime: u64,
    /// How long a token is refused after its expiry, in seconds. Others may still accept it then, because their
    /// clocks may be behind.
    pub leeway: u64,
    /// By how much the engine's clock may be wrong, in whole seconds. Entries are kept for that much longer.
    pub clock_margin: Duration,
    /// How long a node trusts its filter without word from the engine.
    pub stale_after: Duration,
    /// How long a request to change something may take. The engine must remember identifiers for more than twice as
    /// long.
    pub patience: Duration,
    /// The least age of the newest snapshot at which the next one is written.
    pub snapshot_every: Duration,
    /// How many snapshots are kept, at least 2.
    pub snapshots: usize,
    /// The most memory that a filter from a snapshot may take, in bytes.
    pub memory_limit: usize,
    /// Whether the node goes on by itself after the engine has lost something. Otherwise an operator has to accept it.
    pub accepts_loss: bool,
    /// Where the node keeps the furthest place that it knows, if anywhere. Then it notices a loss that happened while
    /// no node was running.
    pub place_file: Option<PathBuf>,
}

impl Settings {
    /// The settings that the program has by default.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            node: "node".into(),
            key,
            capacity: 1_000_000,
            rate: 0.001,
            resolution: 600,
            longest_lifetime: 86_400,
            leeway: 60,
            clock_margin: Duration::from_secs(30),
            stale_after: Duration::from_secs(2),
            patience: Duration::from_secs(10),
            snapshot_every: Duration::from_secs(600),
            snapshots: 3,
            memory_limit: 1 << 30,
            accepts_loss: false,
            place_file: None,
        }
    }

    /// How often the engine is asked for its word. Several questions fit into the time after which the node is stale.
    pub(crate) fn beat(&self) -> Duration {
        // Tests have no time to wait.
        #[cfg(test)]
        return Duration::from_millis(5);
        #[cfg(not(test))]
        (self.stale_after / 8).clamp(Duration::from_millis(10), Duration::from_millis(250))
    }

    /// The longest lifetime of an entry in ticks. It is one more than needed, because the first tick is partly
    /// over.
    pub(crate) fn longest(&self) -> Tick {
        let longest = self.longest_lifetime.saturating_add(self.leeway).saturating_add(self.clock_margin.as_secs());
        let ticks = longest.div_ceil(self.resolution).saturating_add(1);
        Tick::try_from(ticks).unwrap_or(Tick::MAX)
    }

    /// The tick at which an entry expires that must be found until this time, by every clock that is accepted.
    pub(crate) fn end(&self, until: u64) -> Tick {
        let until = until.saturating_add(self.clock_margin.as_secs());
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
    pub fn agreement(&self) -> Agreement {
        Agreement {
            schema: format!("{SCHEMA}, format {FORMAT}"),
            probe: self.hasher().hash_bytes(b"which key?"),
            capacity: self.capacity as u64,
            rate: (self.rate * 1e9).round() as u64,
            resolution: Duration::from_secs(self.resolution),
            longest: self.longest(),
            margin: self.clock_margin,
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
            capacity: 1000,
            resolution: 1,
            longest_lifetime: 3600,
            clock_margin: Duration::from_secs(5),
            // Tests advance the time when they need to.
            stale_after: Duration::from_secs(600),
            patience: Duration::from_secs(30),
            snapshot_every: Duration::from_secs(10),
            memory_limit: 1 << 24,
            ..Settings::new(*b"sixteen secrets!")
        }
    }

    #[test]
    fn a_token_that_lives_as_long_as_allowed_fits_in_the_filter() {
        for (longest_lifetime, leeway, resolution) in [(86_400, 60, 600), (1, 0, 1), (3600, 59, 60), (10, 3, 7)] {
            let settings = Settings { longest_lifetime, leeway, resolution, ..quick("a") };
            let filter = settings.filter().unwrap();
            for now in [1_800_000_000, 1_800_000_599, 1_800_000_001] {
                filter.advance_to(now / resolution);
                let until = now + longest_lifetime + leeway;
                filter.insert_hash_until(17, settings.end(until).into()).unwrap();
                // It is found at each moment up to that time, by a clock that is ahead as far as is accepted.
                filter.advance_to((until - 1 + 5) / resolution);
                assert!(filter.contains_hash(17));
                filter.advance_to((until + 5).div_ceil(resolution));
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
