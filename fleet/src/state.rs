//! What a node can answer.

use serde::Serialize;

/// What a node can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// "Not revoked" comes from its filter.
    Ready,
    /// It reads the tokens. Each request asks etcd.
    Joining,
    /// It has no word from the cluster, or is behind. Each request asks etcd.
    Stale,
    /// The cluster has lost something; an operator has to accept it. Each request gets an error.
    Waiting,
    /// It has other settings than its fleet, or lacks a right. Each request gets an error.
    Refused,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ready, Self::Joining, Self::Stale, Self::Waiting, Self::Refused];

    pub(crate) fn is_stopped(self) -> bool {
        matches!(self, Self::Waiting | Self::Refused)
    }
}
