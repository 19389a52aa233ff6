//! What etcd says when it has no result.

use tonic::{Code, Status};

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The member has not come to the revision. If a quorum says so, the cluster never has.
    #[error("the member knows no such revision yet")]
    Future,
    #[error("the revision was compacted")]
    Compacted,
    #[error(
        "etcd has refused this: {0}; if authentication is on, set FLEET_ETCD_USER and FLEET_ETCD_PASSWORD, and give this user \
         the right to read and write the keys FLEET/"
    )]
    Denied(String),
    #[error(
        "etcd has no space left ({0}): compact it, defragment it or raise --quota-backend-bytes, then `etcdctl alarm disarm`"
    )]
    NoSpace(String),
    #[error("the lease is not there any more")]
    NoLease,
    /// The answer of a member of another cluster than the fleet's, which counts as no answer.
    #[error("{member} is a member of cluster {cluster:x}, and the fleet is in cluster {fleet:x}")]
    Stranger { member: String, cluster: u64, fleet: u64 },
    /// The outcome is unknown.
    #[error("{0}")]
    Unclear(String),
}

impl Fault {
    pub(super) fn of(status: &Status, member: &str) -> Self {
        let said = status.message();
        match status.code() {
            Code::OutOfRange if said.contains("future") => Self::Future,
            Code::OutOfRange if said.contains("compacted") => Self::Compacted,
            Code::ResourceExhausted if said.contains("space") => Self::NoSpace(said.into()),
            Code::NotFound if said.contains("lease") => Self::NoLease,
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied(said.into()),
            Code::InvalidArgument if said.contains("auth") || said.contains("user name") => Self::Denied(said.into()),
            code => {
                let mut why = format!("{member}: {said} ({code:?})");
                // What tonic says is only "transport error".
                let mut source = std::error::Error::source(status);
                while let Some(error) = source {
                    why = format!("{why}: {error}");
                    source = error.source();
                }
                Self::Unclear(why)
            }
        }
    }
}
