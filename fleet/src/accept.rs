//! An operator accepts that the cluster has lost something.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::etcd::Client;
use crate::history::Agreement;
use crate::keys::Names;
use crate::settings::Settings;
use crate::survey;

/// What an operator has accepted, and on what grounds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Accepted {
    /// A line for each endpoint: its cluster, its revision, how many records it has, and its last change.
    pub endpoints: Vec<String>,
    /// What was lost; `None` if the fleet did not wait for anything, and nothing was changed.
    pub loss: Option<String>,
}

/// Accepts that the cluster of these settings has lost something: the fleet goes on with what it has. The cluster is the one
/// of which a majority of the endpoints are members.
///
/// # Errors
/// There is no such majority, or it has no fleet of this name, or what etcd says.
pub async fn accept(settings: &Settings) -> Result<Accepted, String> {
    settings.check()?;
    let client = Client::new(&settings.etcd, settings.one_try())?;
    let (names, until) = (Names::new(&settings.fleet), Instant::now() + settings.patience);
    let sights = survey::of_all(&client, &names, settings.one_try()).await;
    let cluster = survey::majority(&sights, client.len()).ok_or_else(|| survey::no_majority(&sights, client.len()))?;
    client.belong_to(cluster);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut is_there, mut loss, mut damaged) = (false, None, None);
    let accepted = |found: Option<Agreement>| {
        is_there = found.is_some();
        let found = found?;
        loss = found.why_wait(cluster);
        damaged = loss.clone().filter(|_| found.is_damaged());
        if loss.is_none() || damaged.is_some() {
            return None;
        }
        let accepted = now.max(found.accepted + 1);
        Some(Agreement { cluster: Agreement::of_cluster(cluster), accepted, lost: None, ..found })
    };
    Agreement::amend(&client, names.agreement(), until, accepted).await.map_err(|fault| fault.to_string())?;
    let endpoints: Vec<_> = sights.iter().map(ToString::to_string).collect();
    if let Some(damaged) = damaged {
        return Err(damaged);
    }
    if is_there {
        return Ok(Accepted { endpoints, loss });
    }
    Err(format!("cluster {cluster:x} has no fleet {:?}: {}", settings.fleet, endpoints.join("; ")))
}
