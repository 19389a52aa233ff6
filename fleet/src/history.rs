//! Whether the cluster has the history that a node knows.
//!
//! A node remembers one point of the history that it has applied: a revision, and the head there. Each change puts a head of
//! 16 random bytes, so two histories with the same head at the same revision are the same up to there. [`Memory::place`]
//! finds this point in what the cluster says now.
//!
//! Whatever contradicts the memory is a *loss*: the cluster lacks something that the node knew. A loss is announced in the
//! agreement, which every node reads several times per second, and all nodes answer with errors until an operator accepts
//! it. A cluster that was restored from a backup with a new identifier, or started anew, is not the one that the agreement
//! names. That is a loss, too, whether a node knew better or not.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::etcd::build::{key_at, put, questions, range, same, txn};
use crate::etcd::messages::{KeyValue, TxnResponse};
use crate::etcd::{Client, Fault};
use crate::keys::ChangeId;

/// The last change at a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The revision of this change; 0 if there was none yet.
    pub(crate) revision: i64,
    pub(crate) value: Vec<u8>,
}

impl Head {
    /// In the answer to the nth question.
    pub(crate) fn at(answer: &TxnResponse, nth: usize) -> Self {
        key_at(answer, nth)
            .map(|head| Self { revision: head.mod_revision, value: head.value.to_vec() })
            .unwrap_or_default()
    }

    /// When its node made it, for people.
    pub(crate) fn time(&self) -> String {
        let Some((_, seconds)) = ChangeId::of_head(&self.value) else { return "an unknown time".into() };
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).filter(|_| seconds < 1 << 37);
        time.map_or_else(|| "an unknown time".into(), |time| humantime::format_rfc3339_seconds(time).to_string())
    }
}

/// What a node remembers of the history that it has applied.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) cluster: u64,
    /// The revision of the agreement under which it joined. A change is made only as long as it is the same.
    pub(crate) agreement: i64,
    pub(crate) accepted: u64,
    /// The revision up to which it has applied everything, and the head there.
    pub(crate) revision: i64,
    pub(crate) head: Head,
}

/// Where the point that a node remembers is in the cluster's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The cluster has exactly what the node has.
    Newest,
    /// The cluster has the node's history, and changes after it.
    Before,
    /// The cluster has later changes, and has forgotten what was at the node's revision. Whether the node's history comes
    /// before them can't be told from heads.
    Forgotten,
    /// The cluster has another history.
    Elsewhere(String),
}

impl Memory {
    /// Compares with the head that the cluster has now, and the one that it had at the node's revision, which is `None` if
    /// that was compacted.
    pub(crate) fn place(&self, now: &Head, then: Option<&Head>) -> Place {
        let (at, ours) = (self.revision, &self.head);
        let known =
            format!("this node knew everything up to revision {at}, with the change of revision {}", ours.revision);
        if now == ours {
            // Since the node's last change there was none, so there is nothing that it could lack, or the cluster.
            return Place::Newest;
        }
        if now.revision <= at {
            // The node has applied every change up to its revision, and this one was not among them.
            return Place::Elsewhere(format!(
                "{known}; the cluster's last change is another one, of revision {}",
                now.revision
            ));
        }
        match then {
            None => Place::Forgotten,
            Some(then) if then == ours => Place::Before,
            Some(then) => {
                Place::Elsewhere(format!("{known}; the cluster has there that of revision {}", then.revision))
            }
        }
    }

    /// The revision has not come yet, as a quorum says.
    pub(crate) fn is_ahead(&self) -> String {
        format!("this node knew everything up to revision {}, to which the cluster has never come", self.revision)
    }
}

/// What all nodes of a fleet have in common, in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Agreement {
    /// The settings that all nodes must share, as a text.
    pub(crate) settings: String,
    /// The identifier of the cluster in which the fleet is, in hexadecimal digits, as etcd's logs have it.
    pub(crate) cluster: String,
    /// When an operator last accepted a loss, in seconds since 1970; 0 if never. Grows with each.
    pub(crate) accepted: u64,
    /// What was lost, until an operator accepts it.
    pub(crate) lost: Option<String>,
}

impl Agreement {
    pub(crate) fn of_cluster(cluster: u64) -> String {
        format!("{cluster:x}")
    }

    /// The agreement in a record. One that can't be read has no settings, and counts as a loss.
    pub(crate) fn parse(found: &KeyValue) -> Self {
        serde_json::from_slice(&found.value).unwrap_or_else(|error| {
            // Up to format 2 it was the text of the settings.
            let text = String::from_utf8_lossy(&found.value);
            if text.starts_with("format ") {
                return Self { settings: text.into_owned(), ..Self::default() };
            }
            let why = format!(
                "the key /agreement of the fleet is damaged ({error}): find out who has written it, delete it, and start \
                 the nodes again"
            );
            Self { lost: Some(why), ..Self::default() }
        })
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.settings.is_empty()
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Why nothing may go on in this cluster under this agreement, if so.
    pub(crate) fn why_wait(&self, cluster: u64) -> Option<String> {
        if let Some(lost) = &self.lost {
            return Some(lost.clone());
        }
        let here = Self::of_cluster(cluster);
        (self.cluster != here).then(|| {
            format!(
                "the cluster has lost something: it is cluster {here}, and its data are a copy of cluster {}: it was \
                 restored from a backup, or started anew",
                self.cluster
            )
        })
    }

    /// Writes what follows from the agreement that is there. Returns whether something does.
    pub(crate) async fn amend(
        client: &Client,
        key: Vec<u8>,
        until: Instant,
        mut next: impl FnMut(Option<Self>) -> Option<Self>,
    ) -> Result<bool, Fault> {
        loop {
            let answer = client.txn(&questions(vec![range(key.clone(), 0)]), until).await?;
            let found = key_at(&answer, 0);
            let Some(after) = next(found.as_ref().map(Self::parse)) else { return Ok(false) };
            let unchanged = same(key.clone(), found.map_or(0, |found| found.mod_revision));
            let change = txn(vec![unchanged], vec![put(key.clone(), after.value(), 0)], vec![]);
            if client.txn(&change, until).await?.succeeded {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(revision: i64) -> Head {
        Head { revision, value: vec![revision as u8; 24] }
    }

    #[test]
    fn a_history_is_placed_by_its_heads() {
        let memory = Memory { cluster: 1, agreement: 2, accepted: 0, revision: 20, head: head(17) };
        let other = Head { value: vec![0; 24], ..head(17) };
        let is_elsewhere = |now: &Head, then: Option<&Head>| matches!(memory.place(now, then), Place::Elsewhere(_));
        assert_eq!(memory.place(&head(17), Some(&head(17))), Place::Newest);
        // An idle fleet in a cluster that was compacted.
        assert_eq!(memory.place(&head(17), None), Place::Newest);
        assert_eq!(memory.place(&head(25), Some(&head(17))), Place::Before);
        assert_eq!(memory.place(&head(25), None), Place::Forgotten);
        assert!(is_elsewhere(&head(25), Some(&head(16))) && is_elsewhere(&head(25), Some(&other)));
        // A head below the remembered one is a loss, also where the rest was compacted.
        for now in [&head(16), &other, &head(20), &Head::default()] {
            assert!(is_elsewhere(now, None) && is_elsewhere(now, Some(&head(17))));
        }
    }
}
