//! What operators do: they found a fleet, change its settings, and accept a loss. Each begins a new epoch.

use std::time::Duration;

use tokio::time::Instant;

use crate::etcd::{Client, Etcd, Link, put, same, txn};
use crate::records::{Epoch, Names, Said, Shared, SharedArguments};

/// How long a member may take.
const ONE_TRY: Duration = Duration::from_secs(3);

/// Founds a fleet with these settings. If there is one with the same settings, nothing changes.
///
/// # Errors
/// If there is one with other settings, or one that waits for [`accept`]. If a majority of the members does not answer, or
/// if they are of several clusters.
pub async fn found(etcd: &Etcd, fleet: &str, settings: &SharedArguments) -> Result<Epoch, String> {
    let next = |said: &Said| {
        if !said.has_fleet() {
            let (cluster, settings) = (said.cluster(), settings.over(&Shared::default()));
            return Ok(Some(Epoch { number: 1, cluster, lost: None, settings }));
        }
        let epoch = said.valid()?;
        if settings.over(&epoch.settings) == epoch.settings {
            return Ok(None);
        }
        Err(format!(
            "there is a fleet of this name with other settings, {:?}: to change them, add --change",
            epoch.settings
        ))
    };
    begin(etcd, fleet, next).await
}

/// Changes settings of a fleet. Its nodes join again.
///
/// # Errors
/// As [`found`], and if there is no fleet.
pub async fn change(etcd: &Etcd, fleet: &str, settings: &SharedArguments) -> Result<Epoch, String> {
    let next = |said: &Said| {
        let epoch = said.valid()?.clone();
        Ok(Some(Epoch { number: epoch.number + 1, settings: settings.over(&epoch.settings), ..epoch }))
    };
    begin(etcd, fleet, next).await
}

/// Lets a fleet go on with what its cluster has. `from` is the identifier of its cluster before, if it is in another one
/// now. If the settings can't be read, because the record of the epoch was deleted or damaged, the defaults hold where
/// `settings` says nothing. A fleet that has lost nothing gets a new epoch, too.
///
/// # Errors
/// As [`found`]. If there is no fleet, or if it was in another cluster than `from` says.
pub async fn accept(etcd: &Etcd, fleet: &str, from: Option<&str>, settings: &SharedArguments) -> Result<Epoch, String> {
    let next = |said: &Said| {
        let here = said.cluster();
        let before = match &said.epoch {
            Some(epoch) => epoch.clone(),
            None if said.has_fleet() => {
                let settings = settings.over(&Shared::default());
                Epoch { number: 0, cluster: here.clone(), lost: None, settings }
            }
            None => return said.valid().cloned().map(Some),
        };
        if before.cluster != here && from != Some(&before.cluster) {
            let copied = Said { epoch: Some(Epoch { lost: None, ..before }), ..said.clone() };
            return copied.valid().cloned().map(Some);
        }
        Ok(Some(Epoch { number: before.number + 1, cluster: here, lost: None, ..before }))
    };
    begin(etcd, fleet, next).await
}

/// Writes the epoch that follows, if all members that answer are of one cluster.
async fn begin(
    etcd: &Etcd,
    fleet: &str,
    next: impl Fn(&Said) -> Result<Option<Epoch>, String>,
) -> Result<Epoch, String> {
    let (client, names) = (Client::new(etcd, ONE_TRY)?, Names::of(fleet));
    client.belong_to(only_cluster(&client.each(), &names).await?);
    amend(&client, &names, next, Instant::now() + 3 * ONE_TRY).await
}

/// The cluster of a majority of these members. No other may answer.
async fn only_cluster(members: &[Link], names: &Names) -> Result<u64, String> {
    let (mut clusters, mut lines) = (Vec::new(), Vec::new());
    for member in members {
        let answer = member.txn(Said::questions(names, None), ONE_TRY).await.and_then(Said::of);
        lines.push(match &answer {
            Ok(said) => format!("{} is a member of cluster {}", member.member, said.cluster()),
            Err(fault) => fault.message().to_owned(),
        });
        clusters.extend(answer.map(|said| said.cluster));
    }
    let first = clusters.first().copied().filter(|first| clusters.iter().all(|cluster| cluster == first));
    first.filter(|_| 2 * clusters.len() > members.len()).ok_or_else(|| {
        format!("more than half of the members in --etcd must answer, all from one cluster: {}", lines.join("; "))
    })
}

/// Writes the epoch that follows from the one that is there, in one step, if there is one. Returns the epoch that is there
/// then.
pub(crate) async fn amend(
    client: &Client,
    names: &Names,
    next: impl Fn(&Said) -> Result<Option<Epoch>, String>,
    until: Instant,
) -> Result<Epoch, String> {
    let mut sent = None;
    loop {
        let said = client.txn(&Said::questions(names, None), until).await.and_then(Said::of);
        let said = said.map_err(|fault| fault.message().to_owned())?;
        // The answer may have been lost.
        if let (Some(sent), Some(epoch)) = (sent, &said.epoch)
            && sent == *epoch
        {
            return Ok(sent);
        }
        let Some(epoch) = next(&said)? else { return said.epoch.ok_or_else(|| "there is no epoch".into()) };
        let record = serde_json::to_vec(&epoch).map_err(|error| error.to_string())?;
        let change = txn(vec![same(&names.epoch, said.epoch_revision)], vec![put(&names.epoch, record, 0)], vec![]);
        if client.txn(&change, until).await.map_err(|fault| fault.message().to_owned())?.succeeded {
            return Ok(epoch);
        }
        sent = Some(epoch);
    }
}
