//! Why a node has no answer.

/// Why a node has no answer, or has not done what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node can't tell whether the token is revoked.
    #[error("can't tell: {0}")]
    Unknown(String),
    /// Nobody has acknowledged the change in time. It may be made all the same. Sent again, it counts once.
    #[error("the change was not acknowledged: {0}; try again: a change that is sent twice counts once")]
    Unacknowledged(String),
    /// The token would have to be remembered for longer than the fleet can.
    #[error("until {until}, in seconds since 1970, is too late; the latest time is now {latest}")]
    #[non_exhaustive]
    TooLate {
        /// What was asked for.
        until: u64,
        /// The latest possible time.
        latest: u64,
    },
    /// As many tokens are revoked as the fleet was made for.
    #[error("{live} tokens are revoked, and the fleet was made for {capacity}")]
    #[non_exhaustive]
    Full {
        /// How many tokens are revoked.
        live: u64,
        /// How many may be.
        capacity: u64,
    },
}
