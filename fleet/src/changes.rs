//! Changes on their way into etcd.
//!
//! Changes that come at the same time share a transaction. It does nothing unless the epoch is the one under which the node
//! has joined. For each token it says "unless the record is as long, put it"; then it puts a new head. So a change may arrive
//! twice, late, or in any order, and a client that does not know what came of it sends it again.
//!
//! The node acknowledges a change when etcd has committed it, and when it is in the node's own filter. It remembers the
//! revision of the change, so that it notices a cluster that lacks it. The node may have joined again meanwhile. That filter
//! is trusted only after a question that is sent later (`Node::check`), so it does not matter whether it was read before
//! the change.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use crate::core::{Change, Lease, Node, NodeError, Revocation};
use crate::etcd::messages::TxnResponse;
use crate::etcd::{greater, is_lost_lease, keys, put, range, same, sub_txn, txn};
use crate::records::{Head, TokenId, end};
use crate::replica::Replica;

/// How many changes are in one transaction. Etcd's own limit is 128 operations.
const GROUP: usize = 100;

/// How many tokens share a lease. When it ends, etcd deletes them in one step.
const TOKENS_OF_A_LEASE: usize = 10_000;

/// How long a lease is used, in seconds, and how long its records stay after their tokens have ended.
const HOUR: u64 = 3600;

impl Node {
    /// Revokes a token until this time at least, in seconds since 1970; without a time, for the longest lifetime. A JWT is
    /// revoked until its claim `exp` at least.
    ///
    /// When this returns, this node rejects the token, and every other one does so after its `stale_after`, until that time
    /// and the fleet's margin are over.
    ///
    /// # Errors
    /// If the token has no key, the expiry is too late, or the fleet is full; or if the outcome is unknown: repeat it.
    pub async fn revoke(&self, token: &str, exp: Option<u64>) -> Result<Revocation, NodeError> {
        let id = TokenId::of(token).map_err(NodeError::Token)?;
        let by = Instant::now() + self.settings.patience;
        let settings = self.joined(by).await?.epoch.settings.clone();
        let latest = self.clock.latest() + settings.longest_lifetime;
        let until = exp.max(claimed(token)).unwrap_or(latest);
        if until > latest {
            return Err(NodeError::TooLate(latest));
        }
        if until.saturating_add(settings.margin) <= self.clock.earliest() {
            return Ok(Revocation { until, is_new: false });
        }
        let (reply, done) = oneshot::channel();
        let late = || NodeError::Unknown("there are too many changes at a time".into());
        let sent = timeout_at(by, self.changes.send(Change { id, until, by, reply })).await;
        sent.map_err(|_| late())?.map_err(|_| late())?;
        done.await.map_err(|_| NodeError::Unknown("it may be revoked or not: the node has ended".into()))?
    }

    /// Makes the changes of the queue, a group at a time, until the node ends.
    pub(crate) async fn publish(&self) -> Infallible {
        loop {
            let mut group = Vec::new();
            self.waiting.lock().await.recv_many(&mut group, GROUP).await;
            let Some(by) = group.iter().map(|change: &Change| change.by).min() else { continue };
            let done = self.commit(&mut group, by).await;
            for change in group {
                let done = match &done {
                    Ok(done) => done.get(&change.id).copied().ok_or_else(|| unknown("etcd's answer lacks it")),
                    Err(error) => Err(error.clone()),
                };
                // Whoever has asked may be gone.
                _ = change.reply.send(done);
            }
        }
    }

    /// Commits a group. Changes for which there is no room are answered, and removed from it.
    async fn commit(&self, group: &mut Vec<Change>, by: Instant) -> Result<BTreeMap<TokenId, Revocation>, NodeError> {
        let replica = self.joined(by).await?;
        for change in group.extract_if(.., |change| replica.is_full_for(change.id)) {
            _ = change.reply.send(Err(NodeError::Full));
        }
        // A transaction can't change a key twice.
        let mut ends = BTreeMap::new();
        for change in &*group {
            let end = ends.entry(change.id).or_insert(change.until);
            *end = change.until.max(*end);
        }
        if ends.is_empty() {
            return Ok(BTreeMap::new());
        }
        let done = self.send(&replica, &ends, by).await?;
        // The node may have joined again.
        if let Some(replica) = self.replica() {
            for (id, done) in &done {
                replica.put(*id, done.until).map_err(unknown)?;
            }
        }
        self.is_allowed().map(|()| done)
    }

    async fn send(
        &self,
        replica: &Replica,
        ends: &BTreeMap<TokenId, u64>,
        by: Instant,
    ) -> Result<BTreeMap<TokenId, Revocation>, NodeError> {
        let (last, end) = ends.last_key_value().ok_or_else(|| unknown("there is no change"))?;
        let head = Head::value(replica.term(), *last, *end).map_err(unknown)?;
        loop {
            let lease = self.lease(replica, ends.len(), by).await?;
            let longer = |(id, end): (&TokenId, &u64)| {
                let (key, shorter) = (self.names.token(*id), end.saturating_sub(1).to_be_bytes());
                let put = put(&key, end.to_be_bytes().to_vec(), lease);
                sub_txn(txn(vec![greater(&key, &shorter)], vec![range(&key)], vec![put]))
            };
            let ops = ends.iter().map(longer).chain([put(&self.names.head, head.clone(), 0)]).collect();
            let change = txn(vec![same(&self.names.epoch, replica.epoch_revision)], ops, vec![]);
            match self.client.txn(&change, by).await {
                Err(fault) if is_lost_lease(&fault) && Instant::now() < by => {
                    *self.lease.lock().await = Lease::default();
                }
                Err(fault) => return Err(unknown(format!("it may be revoked or not: {}", fault.message()))),
                Ok(answer) if answer.succeeded => {
                    // Before it is acknowledged: from now on the node notices a cluster that lacks it.
                    let revision = answer.header.map_or(0, |header| header.revision);
                    self.remember(replica, Head { revision, value: head.into() });
                    return read(ends, &answer);
                }
                Ok(_) => {
                    return Err(unknown("it is not revoked: the fleet has another epoch, which the node has to join"));
                }
            }
        }
    }

    /// A lease that ends an hour after the last of its tokens, at least. Etcd measures it, so it does not depend on a
    /// node's clock.
    async fn lease(&self, replica: &Replica, tokens: usize, by: Instant) -> Result<i64, NodeError> {
        let mut lease = self.lease.lock().await;
        if lease.room < tokens || self.clock.monotonic() >= lease.usable_until {
            let seconds = replica.epoch.settings.longest() + 2 * HOUR;
            let id = self.client.lease(seconds, by).await?;
            let usable_until = self.clock.monotonic() + Duration::from_secs(HOUR);
            *lease = Lease { id, usable_until, room: TOKENS_OF_A_LEASE };
        }
        lease.room -= tokens;
        Ok(lease.id)
    }

    /// What the node knows, as soon as it has joined.
    async fn joined(&self, by: Instant) -> Result<Arc<Replica>, NodeError> {
        loop {
            self.is_allowed()?;
            match self.replica() {
                Some(replica) => return Ok(replica),
                None if Instant::now() >= by => return Err(unknown("the node has not joined the fleet")),
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

/// What the answer says of each token.
fn read(ends: &BTreeMap<TokenId, u64>, answer: &TxnResponse) -> Result<BTreeMap<TokenId, Revocation>, NodeError> {
    let mut done = BTreeMap::new();
    for (nth, (id, until)) in ends.iter().enumerate() {
        let of_token = answer.responses.get(nth).and_then(|response| response.txn.as_ref());
        let of_token = of_token.ok_or_else(|| unknown("etcd's answer is incomplete"))?;
        let until = if of_token.succeeded { keys(of_token, 0)?.pop().as_ref().and_then(end) } else { Some(*until) };
        let until = until.ok_or_else(|| unknown(format!("the record of {id} is damaged: delete it")))?;
        done.insert(*id, Revocation { until, is_new: !of_token.succeeded });
    }
    Ok(done)
}

fn unknown(why: impl std::fmt::Display) -> NodeError {
    NodeError::Unknown(why.to_string())
}

/// The claim `exp` of a JWT, rounded up. The signature is not checked: only administrators revoke.
fn claimed(token: &str) -> Option<u64> {
    let exp = token_key::claims(token)?.get("exp")?.as_f64()?;
    // The cast makes a negative number 0, which is long over, and one that is too large the greatest, which is too late.
    Some(exp.ceil() as u64)
}
