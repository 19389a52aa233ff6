//! Which cluster is the fleet's: the one of which a majority of the endpoints are members.
//!
//! Every answer of etcd has the identifier of its cluster. A node that has joined takes answers of its own cluster only. One
//! that has not, or that meets a member of another cluster, asks all endpoints. So one wrong URL in the list, or one member
//! that was wiped and started as a cluster of its own, is passed over and named, and never decides.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::etcd::build::{key_at, of_one_member, questions, range, range_at, range_of, revision};
use crate::etcd::messages::TxnResponse;
use crate::etcd::{Answer, Client, Fault};
use crate::history::Head;
use crate::keys::Names;

/// What one endpoint answers, for itself.
pub(crate) struct Sight {
    pub(crate) endpoint: String,
    pub(crate) said: Result<TxnResponse, Fault>,
}

impl Sight {
    pub(crate) fn cluster(&self) -> Option<u64> {
        self.said.as_ref().ok().map(Answer::cluster)
    }

    /// Whether it has the agreement of the fleet.
    pub(crate) fn has_fleet(&self) -> bool {
        self.said.as_ref().is_ok_and(|answer| key_at(answer, 0).is_some())
    }

    fn head(&self) -> Head {
        self.said.as_ref().map(|answer| Head::at(answer, 1)).unwrap_or_default()
    }
}

/// One line for an operator.
impl fmt::Display for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = match &self.said {
            Ok(answer) => answer,
            Err(fault) => return write!(f, "{}: {fault}", self.endpoint),
        };
        let (head, tokens) = (self.head(), range_at(answer, 2).count);
        write!(
            f,
            "{}: cluster {:x}, revision {}, {tokens} records, last change ",
            self.endpoint,
            answer.cluster(),
            revision(answer)
        )?;
        if head.revision == 0 { write!(f, "none") } else { write!(f, "{} at {}", head.revision, head.time()) }
    }
}

/// What all endpoints say of the fleet.
pub(crate) async fn of_all(client: &Client, names: &Names, limit: Duration) -> Vec<Sight> {
    let mut all = Vec::new();
    for nth in 0..client.len() {
        all.push(of_one(client, names, nth, limit).await);
    }
    all
}

async fn of_one(client: &Client, names: &Names, nth: usize, limit: Duration) -> Sight {
    let tokens = names.tokens();
    // A member without a quorum answers, too: for its own cluster it is as good a witness as any.
    let of_fleet = [range(names.agreement(), 0), range(names.head(), 0), range_of(&tokens, tokens.clone(), 1, 0)];
    let connection = client.connect(nth);
    let said = client.txn_over(&connection, questions(of_fleet.map(of_one_member).into()), limit).await;
    Sight { endpoint: connection.member, said }
}

/// The cluster of which more than half of all these endpoints are members.
pub(crate) fn majority(sights: &[Sight], endpoints: usize) -> Option<u64> {
    let mut members = BTreeMap::<u64, usize>::new();
    for cluster in sights.iter().filter_map(Sight::cluster) {
        *members.entry(cluster).or_default() += 1;
    }
    members.into_iter().find(|(_, members)| 2 * members > endpoints).map(|(cluster, _)| cluster)
}

/// Asks the endpoints until more than half of them are members of one cluster.
pub(crate) async fn find_cluster(client: &Client, names: &Names, limit: Duration) -> Result<u64, Fault> {
    let mut sights = Vec::new();
    for nth in 0..client.len() {
        sights.push(of_one(client, names, nth, limit).await);
        if let Some(cluster) = majority(&sights, client.len()) {
            return Ok(cluster);
        }
    }
    let is_denied = |sight: &Sight| matches!(sight.said, Err(Fault::Denied(_)));
    if let Some(Sight { said: Err(denied), .. }) = sights.iter().find(|sight| is_denied(sight)) {
        return Err(denied.clone());
    }
    Err(Fault::Unclear(no_majority(&sights, client.len())))
}

/// Whether the first node of a fleet may found it in this cluster, in which it has found no agreement: a majority of the
/// endpoints are members, and no endpoint has the fleet. (Two clusters of one member that were started with etcd's defaults
/// have the same identifier.)
pub(crate) async fn may_found(client: &Client, names: &Names, cluster: u64, limit: Duration) -> Result<(), String> {
    let sights = of_all(client, names, limit).await;
    if let Some(other) = sights.iter().find(|sight| sight.has_fleet()) {
        return Err(format!("another endpoint has the fleet: {other}"));
    }
    match majority(&sights, client.len()) {
        Some(found) if found == cluster => Ok(()),
        _ => Err(no_majority(&sights, client.len())),
    }
}

pub(crate) fn no_majority(sights: &[Sight], endpoints: usize) -> String {
    let all: Vec<_> = sights.iter().map(ToString::to_string).collect();
    format!(
        "fewer than {} of the {endpoints} endpoints are members of one cluster: {}",
        endpoints / 2 + 1,
        all.join("; ")
    )
}
