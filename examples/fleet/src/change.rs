//! PURE: what a message of the log says, what a node proposes, and what comes of that.

use std::fmt;
use std::time::Duration;

/// The number of a message: the first has 1, the next 2, and so on without a hole. A node's position is the number of the last
/// message that it has applied, 0 before the first.
pub(crate) type Position = u64;

/// A tick of the filter's clock: seconds since 1970, divided by the resolution.
pub(crate) type Tick = u32;

/// A token, as everybody but its bearer knows it: the first 16 bytes of its SHA-256. (A token is a secret. The hash of one can't be
/// used as one.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenId(pub(crate) [u8; 16]);

/// One change of the set. The keys are hashes, as the filters of all nodes make them of a [`TokenId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Change {
    /// An entry is added that expires then.
    Insert { hash: u64, end: Tick },
    /// An entry is taken out that was added with this end and has not expired.
    Remove { hash: u64, end: Tick },
    /// An entry gets a later end.
    Extend { hash: u64, from: Tick, to: Tick },
    /// The clock of all filters is at this tick from here on. The only change of its message. At the position of each, nodes
    /// compare their digests, and snapshots are taken.
    Tick { now: Tick },
}

/// What a node asks the log to do with a token. The engine knows which tokens are revoked until when (its *record*), so it decides,
/// in one step with the append, what change that comes to, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// Revoked until that time at least, in seconds since 1970. `end` is the tick at which its entry expires, so it begins at `until`
    /// or later.
    Revoke { token: TokenId, hash: u64, until: u64, end: Tick },
    /// Revoked no longer.
    Restore { token: TokenId, hash: u64 },
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is revoked from this message on, or for longer than before. (Nothing is appended for it if its entry has the right end
    /// already: then only the record changes.)
    Revoked { until: u64 },
    /// It was revoked already, for as long or longer, so nothing was appended for it.
    AlreadyRevoked { until: u64 },
    /// It is restored from this message on.
    Restored,
    /// It was not revoked, so there is nothing to restore.
    NotRevoked,
    /// It would expire in a tick that is over.
    Expired,
    /// It would expire later than filters can hold. `latest` is the last tick at which one may expire now.
    TooLate { latest: Tick },
    /// As many entries live as the filters were made for.
    Full { live: u64, capacity: u64 },
}

/// What all nodes of a fleet must have in common. The first node writes it, and a node with another one does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// What the keys are, as the filter's snapshots say it.
    pub(crate) schema: String,
    /// The hash of a fixed probe: nodes with another key have another one.
    pub(crate) probe: u64,
    pub(crate) capacity: u64,
    /// The rate that the filters are built for, in billionths.
    pub(crate) rate: u64,
    /// The length of a tick, in whole seconds.
    pub(crate) resolution: Duration,
    /// The longest lifetime of an entry, in ticks.
    pub(crate) longest: Tick,
}

impl fmt::Display for Agreement {
    /// Two that differ are written differently: by this text they are compared.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, probe, capacity, rate, resolution, longest } = self;
        let resolution = resolution.as_secs();
        write!(
            f,
            "schema {schema:?}, key {probe:016x}, capacity {capacity}, rate {rate} in a billion, resolution {resolution} s, longest \
             lifetime {longest} ticks"
        )
    }
}
