//! Whether the cluster has lost something that a node knew, as the fleet says in the cluster.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::etcd::build::{key_at, put, questions, range, same, txn};
use crate::etcd::messages::KeyValue;
use crate::etcd::{Client, Fault};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// When an operator last accepted a loss, in seconds since 1970; 0 if never. Grows with each.
    pub(crate) accepted: u64,
    /// What was lost, until an operator accepts it.
    pub(crate) lost: Option<String>,
}

impl History {
    pub(crate) fn parse(found: Option<&KeyValue>) -> Self {
        let Some(found) = found else { return Self::default() };
        serde_json::from_slice(&found.value).unwrap_or_else(|error| Self {
            accepted: 0,
            lost: Some(format!("the key /history of the fleet is damaged: {error}")),
        })
    }

    /// Writes what follows from what is there, and returns that; `None` if nothing does.
    pub(crate) async fn amend(
        client: &Client,
        key: Vec<u8>,
        until: Instant,
        next: impl Fn(&Self) -> Option<Self>,
    ) -> Result<Option<Self>, Fault> {
        loop {
            let answer = client.txn(&questions(vec![range(key.clone(), 0)]), until).await?;
            let found = key_at(&answer, 0);
            let before = Self::parse(found.as_ref());
            let Some(after) = next(&before) else { return Ok(None) };
            let unchanged = same(key.clone(), found.map_or(0, |found| found.mod_revision));
            let value = serde_json::to_vec(&after).unwrap_or_default();
            let change = txn(vec![unchanged], vec![put(key.clone(), value, 0)], vec![]);
            if client.txn(&change, until).await?.succeeded {
                return Ok(Some(before));
            }
        }
    }
}
