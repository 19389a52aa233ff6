//! PURE: what a message of the log contains, what a node proposes, and what comes of a proposal.

use std::fmt;
use std::time::Duration;

/// The number of a message. The first has 1, the next 2, and so on without a hole. A node's position is the number
/// of the last message that it has applied, or 0 before the first.
pub type Position = u64;

/// A tick of the filter's clock: seconds since 1970, divided by the resolution.
pub type Tick = u32;

/// A token, as everybody except its bearer knows it: the first 16 bytes of its SHA-256. (A token is a secret. Its
/// hash can't be used as a token.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenId(pub [u8; 16]);

/// One change of the set. The keys are hashes. The filters of all nodes compute the same hash of a [`TokenId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Adds an entry.
    Insert {
        /// Of the token.
        hash: u64,
        /// The tick at which the entry expires.
        end: Tick,
    },
    /// Removes an entry that has not expired.
    Remove {
        /// Of the token.
        hash: u64,
        /// The end that the entry was added with.
        end: Tick,
    },
    /// Gives an entry a later end.
    Extend {
        /// Of the token.
        hash: u64,
        /// The end that it has.
        from: Tick,
        /// The end that it gets.
        to: Tick,
    },
    /// The clock of all filters is at this tick from here on. This is the only change of its message. At the
    /// position of each tick, nodes compare their digests, and snapshots are taken.
    Tick {
        /// The new tick.
        now: Tick,
    },
}

/// What a node asks the log to do with a token. The engine knows for each token until when it is revoked (its
/// *record*). So the engine decides which change this becomes, if any, in one step with the append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Revoke the token.
    Revoke {
        /// The token.
        token: TokenId,
        /// Its hash in the filters.
        hash: u64,
        /// At least until this time, in seconds since 1970.
        until: u64,
        /// The tick at which the entry expires. It begins at `until` or later.
        end: Tick,
    },
    /// Revoke it no longer.
    Restore {
        /// The token.
        token: TokenId,
        /// Its hash in the filters.
        hash: u64,
    },
}

/// The result of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The token is revoked from this message on, or for longer than before. (If its entry has the right end
    /// already, only the record changes, and nothing is appended.)
    Revoked {
        /// In seconds since 1970.
        until: u64,
    },
    /// The token was already revoked, for as long or longer. So nothing was appended.
    AlreadyRevoked {
        /// In seconds since 1970.
        until: u64,
    },
    /// The token is restored from this message on.
    Restored,
    /// The token was not revoked, so there is nothing to restore.
    NotRevoked,
    /// The entry would expire in a tick that is over.
    Expired,
    /// The entry would expire later than filters can hold.
    TooLate {
        /// The last tick at which an entry may expire now.
        latest: Tick,
    },
    /// The set is full: it has as many live entries as the filters were built for.
    Full {
        /// How many live entries there are.
        live: u64,
        /// How many there may be.
        capacity: u64,
    },
}

/// What all nodes of a fleet must have in common. The first node writes it. A node with a different agreement does
/// not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// What the keys are, as in the filter's snapshots, and the number of the log's format.
    pub schema: String,
    /// The hash of a fixed probe. Nodes with another key have another hash.
    pub probe: u64,
    /// How many tokens may be revoked at a time.
    pub capacity: u64,
    /// The rate that the filters are built for, in billionths.
    pub rate: u64,
    /// The length of a tick, in whole seconds.
    pub resolution: Duration,
    /// The longest lifetime of an entry, in ticks.
    pub longest: Tick,
    /// By how much clocks may differ.
    pub margin: Duration,
}

impl fmt::Display for Agreement {
    /// Agreements are compared by this text, so two that differ have different texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, probe, capacity, rate, resolution, longest, margin } = self;
        let (resolution, margin) = (resolution.as_secs(), margin.as_secs());
        write!(
            f,
            "schema {schema:?}, key {probe:016x}, capacity {capacity}, rate {rate} in a billion, resolution \
             {resolution} s, longest lifetime {longest} ticks, clock margin {margin} s"
        )
    }
}
