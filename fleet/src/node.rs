//! A node: it joins the fleet in etcd, follows it, and answers.
//!
//! # Why "not revoked" is right
//!
//! 1. A change puts its tokens and a new head in one transaction ([`changes`](crate::changes)). A node reads all tokens and
//!    the head at one revision, and watches from the next one on. Its own head moves from X to Y only when etcd says that Y
//!    was put over X. So its filter has every change up to its head, in the history that this head names.
//! 2. Several times per second the node asks a majority for the head. When that head is one that the node has or comes to,
//!    the filter has everything that was acknowledged before the question was *sent*, and the node trusts it until
//!    `stale_after` later.
//! 3. A lookup reads that deadline, then the filter, then the clock. So it does not matter where the process was stopped.
//! 4. If the filter says "perhaps", or is not trusted, a majority is asked for the token's record. "There is none" counts
//!    only if the head in the same answer is one that the node has or comes to. A node without a filter has no head; it
//!    checks that the record of the last change is there, and that raft's term is not lower than when it was made.
//! 5. An answer does not count if its head is earlier than the last change that the node knew when it asked. That includes
//!    its own changes, which it acknowledges before its head has come to them, and what it knew before it joined again.
//!
//! # What is a loss
//!
//! Whatever contradicts this: a head before the node's own, a head that was put over another one, an epoch or a record that
//! was deleted or damaged, a lower term. The node says so in the epoch, which makes the changes of all nodes fail and their
//! watches end. Then all nodes answer with errors until an operator begins a new epoch, and join that one as new nodes.
//! What can't be compared because etcd has compacted it is not a loss: the node joins again as a new node.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use concurrent_cuckoo_filter::Stats;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tonic::{Status, Streaming};

use crate::core::{LastKnown, Node, NodeError};
use crate::epoch::amend;
use crate::etcd::messages::{Event, WatchCreateRequest, WatchResponse};
use crate::etcd::{Link, after, keys, range, txn};
use crate::records::{Epoch, Head, Said, TokenId, end, part};
use crate::replica::Replica;

/// How long a node waits before it asks the next member.
const NEXT: Duration = Duration::from_millis(50);

/// How long a node that has stopped waits before it asks again.
const STOPPED: Duration = Duration::from_millis(300);

/// How long a node that joins takes for each token, at least: a million in 25 seconds. So etcd has time for others.
const READ_ONE: Duration = Duration::from_micros(25);

/// How long a node without room waits before it tries again.
const FULL: Duration = Duration::from_secs(10);

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has no filter, and asks a majority for each token.
    Joining,
    /// It answers from its filter.
    Ready,
    /// Its filter is too old, and it asks a majority for each token.
    Stale,
    /// It answers with errors until an operator has done what [`Health::why`] says.
    Waiting,
}

/// What `/healthz` says of a node.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The name of the node.
    pub node: String,
    /// What it does.
    pub state: State,
    /// Why.
    pub why: String,
    /// The epoch under which it has joined.
    pub epoch: Option<Epoch>,
    /// The revision of the last change that it has.
    pub position: i64,
    /// How often it has joined.
    pub joins: u64,
    /// How often it has asked etcd for a token.
    pub questions: u64,
    /// By how many seconds the machine's clock was set since the start.
    pub clock_set_by: f64,
}

/// Why a node does not go on over its link.
enum End {
    /// The link, or what the member at its end said. What the node knows stays true, until it is too old.
    Next(String),
    /// The node has to read everything again, as a new node.
    Join(String),
    /// An operator has to do something, as the epoch says.
    Stop(String),
    /// The cluster has lost something, and the epoch does not say so yet.
    Lost(String),
    /// There are more tokens than the filter has room for.
    Full(String),
}

impl From<Status> for End {
    fn from(fault: Status) -> Self {
        Self::Next(fault.message().to_owned())
    }
}

impl Node {
    /// Follows the fleet, and makes changes. If this is dropped, the node soon has no answers; it can run again.
    pub async fn run(&self) -> Infallible {
        tokio::join!(self.follow(), self.publish(), self.publish(), self.publish(), self.publish()).0
    }

    // Join and follow.

    async fn follow(&self) -> Infallible {
        loop {
            let Err(end) = self.session(&self.client.next()).await;
            let pause = match end {
                End::Next(why) => {
                    let stand = self.stand();
                    // What an operator has to do is more important than what is wrong with one member.
                    let why = if stand.is_waiting { stand.why.clone() } else { why };
                    self.set(stand.is_waiting, why, stand.replica.clone());
                    NEXT
                }
                End::Join(why) => {
                    self.last_known(); // It outlives the replica.
                    self.set(false, why, None);
                    NEXT
                }
                End::Stop(why) => {
                    self.set(true, why, self.replica());
                    STOPPED
                }
                End::Lost(why) => {
                    self.lose(&why);
                    self.set(true, format!("the cluster has lost something: {why}"), self.replica());
                    self.announce(&why).await;
                    STOPPED
                }
                End::Full(why) => {
                    let why = format!("the filter has no room ({why}): run `fleet found` with a larger --capacity");
                    self.set(false, why, None);
                    FULL
                }
            };
            sleep(pause).await;
        }
    }

    /// One connection to one member, as long as all is well.
    async fn session(&self, link: &Link) -> Result<Infallible, End> {
        let known = self.replica();
        // A node that joins has time: etcd may be busy.
        let limit = if known.is_some() { self.client.one_try } else { 10 * self.client.one_try };
        let before = self.last_known();
        let said = Said::of(link.txn(Said::questions(&self.names, None), limit).await?)?;
        let epoch = judge(&said, known.as_deref())?.clone();
        before.compare(&said).map_err(End::Lost)?;
        self.client.belong_to(said.cluster);
        let replica = match known {
            Some(replica) if replica.epoch == epoch && replica.epoch_revision == said.epoch_revision => replica,
            _ => self.join(link, epoch, &said).await?,
        };
        let start_revision = replica.position() + 1;
        let (key, range_end) = (self.names.all.clone().into(), after(&self.names.all));
        let create = WatchCreateRequest { key, range_end, start_revision, prev_kv: true };
        let watch = link.watch(create, limit).await?;
        tokio::try_join!(self.hear(&replica, watch), self.check(&replica, link)).map(|(never, _)| never)
    }

    /// Reads all tokens at the revision of this answer.
    async fn join(&self, link: &Link, epoch: Epoch, said: &Said) -> Result<Arc<Replica>, End> {
        self.set(false, format!("it reads the tokens at revision {}", said.revision), None);
        let limit = 10 * self.client.one_try;
        let replica = Replica::new(epoch, said, self.settings.rate, &self.clock).map_err(End::Full)?;
        let last = self.last_record(said);
        let mut has_last = last.is_none();
        let mut next = Instant::now();
        for first in 0..=255 {
            sleep_until(next).await;
            for kv in keys(&link.txn(part(&self.names, first, said.revision), limit).await?, 0)? {
                next += READ_ONE;
                let damaged = || End::Stop(format!("{} is damaged: delete it", kv.key.escape_ascii()));
                let (id, end) = self.names.record(&kv).ok_or_else(damaged)?;
                replica.put(id, end).map_err(End::Full)?;
                has_last |= last.is_some_and(|last| last.0 == id && last.1 <= end);
            }
        }
        if !has_last {
            return Err(End::Stop(LAST_IS_MISSING.into()));
        }
        let replica = Arc::new(replica);
        self.joins.fetch_add(1, Ordering::Relaxed);
        self.set(false, "it compares its head with that of a majority".into(), Some(Arc::clone(&replica)));
        Ok(replica)
    }

    /// Applies changes as they come.
    async fn hear(&self, replica: &Replica, mut watch: Streaming<WatchResponse>) -> Result<Infallible, End> {
        loop {
            let message = watch.message().await.map_err(|status| End::Next(status.to_string()))?;
            let message = message.ok_or_else(|| End::Next("the watch has ended".into()))?;
            if message.canceled {
                return Err(match message.compact_revision {
                    0 => End::Next(format!("the watch was canceled: {}", message.cancel_reason)),
                    at => End::Join(format!("etcd was compacted up to revision {at}")),
                });
            }
            for event in message.events {
                self.apply(replica, event)?;
            }
        }
    }

    fn apply(&self, replica: &Replica, event: Event) -> Result<(), End> {
        let Some(kv) = event.kv else { return Ok(()) };
        // A watch that starts at a revision that its member has not reached yet repeats older events (etcd issue 20221).
        if kv.mod_revision <= replica.position() {
            return Ok(());
        }
        let key = kv.key.escape_ascii().to_string();
        let (is_deletion, compacted) = (event.kind == 1, || End::Join(format!("etcd was compacted up to {key}")));
        if kv.key == self.names.epoch.as_bytes() {
            Err(End::Next("there is a new epoch".into()))
        } else if kv.key == self.names.head.as_bytes() {
            if event.prev_kv.is_none() && (is_deletion || kv.version > 1) {
                return Err(compacted());
            }
            // In its transaction, the head is put after the tokens.
            let (before, revision) = (event.prev_kv.map(Head::of).unwrap_or_default(), kv.mod_revision);
            if is_deletion || !replica.advance_head(&before, Head::of(kv)) {
                let (was, ours) = (before.revision, replica.head().revision);
                return Err(End::Lost(format!(
                    "at revision {revision}, the change of {was} was replaced; the last one known is {ours}"
                )));
            }
            Ok(())
        } else if is_deletion {
            // Etcd deletes a record when its lease ends, long after its token.
            let before = event.prev_kv.ok_or_else(compacted)?;
            match end(&before) {
                Some(end) if end <= self.clock.latest() => Ok(()),
                _ => Err(End::Lost(format!("a client outside the fleet has deleted {key}"))),
            }
        } else {
            let damaged = || End::Lost(format!("a client outside the fleet has damaged {key}: delete it"));
            let (id, end) = self.names.record(&kv).ok_or_else(damaged)?;
            replica.put(id, end).map_err(End::Full)
        }
    }

    /// Asks a majority for the head, again and again.
    async fn check(&self, replica: &Replica, link: &Link) -> Result<Infallible, End> {
        let stale_after = self.settings.stale_after;
        let mut ticks = interval((stale_after / 8).clamp(Duration::from_millis(10), Duration::from_millis(250)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting = None;
        loop {
            ticks.tick().await;
            if !replica.advance(&self.clock) {
                return Err(End::Join("entries would end before their tokens".into()));
            }
            let (sent, known) = (self.clock.monotonic(), self.last_known());
            let said = Said::of(link.txn(Said::questions(&self.names, None), self.client.one_try).await?)?;
            waiting = self.compare(replica, sent, &known, said, waiting)?;
        }
    }

    /// Compares the head of a majority with the replica's own, and with what the node knew when it sent the question. Returns
    /// the oldest question whose head has not come yet: when it was sent, and that head.
    fn compare(
        &self,
        replica: &Replica,
        sent: Duration,
        known: &LastKnown,
        said: Said,
        waiting: Option<(Duration, Head)>,
    ) -> Result<Option<(Duration, Head)>, End> {
        let stale_after = self.settings.stale_after;
        if said.epoch_revision != replica.epoch_revision || said.valid().is_err() {
            return Err(End::Next("there is a new epoch, or another cluster".into()));
        }
        replica.saw_term(said.term);
        known.compare(&said).map_err(End::Lost)?;
        let mut still_waiting = None;
        for (sent, head) in waiting.into_iter().chain([(sent, said.head)]) {
            match replica.has_head(&head) {
                Some(true) => {
                    replica.has_all_until(sent, stale_after);
                    self.set(false, "it has every change".into(), self.replica());
                }
                // It passed it without having had it: the watch and the answers are of different histories. Or there were
                // very many changes.
                Some(false) => return Err(End::Next("the watch and the answers differ".into())),
                None => still_waiting = still_waiting.or(Some((sent, head))),
            }
        }
        match still_waiting {
            Some((sent, _)) if self.clock.monotonic() > sent + stale_after => {
                Err(End::Next("the watch is late".into()))
            }
            waiting => Ok(waiting),
        }
    }

    /// Says in the epoch that the cluster has lost something, unless there is a newer epoch, or it says so already.
    async fn announce(&self, why: &str) {
        let Some(replica) = self.replica() else { return };
        let lost = |said: &Said| {
            let epoch = said.epoch.clone().unwrap_or_else(|| replica.epoch.clone());
            let is_ours = epoch.number <= replica.epoch.number && epoch.lost.is_none();
            let (number, lost) = (replica.epoch.number, Some(format!("{why} ({})", self.settings.node)));
            Ok(is_ours.then_some(Epoch { number, lost, ..epoch }))
        };
        let until = Instant::now() + Duration::from_secs(2);
        match amend(&self.client, &self.names, lost, until).await {
            Ok(_) => tracing::error!("the cluster has lost something: {why}"),
            Err(error) => tracing::error!("the cluster has lost something: {why}; it can't be announced: {error}"),
        }
    }

    // Answer.

    /// Whether the token is revoked. See [`revoked_until`](Self::revoked_until).
    ///
    /// # Errors
    /// As there.
    pub async fn is_revoked(&self, token: &str) -> Result<bool, NodeError> {
        self.revoked_until(token).await.map(|until| until.is_some())
    }

    /// Until when the token is revoked, in seconds since 1970; `None` if it is not.
    ///
    /// A node that is ready answers from memory, unless the token is revoked or looks like one that is. Otherwise it asks
    /// etcd.
    ///
    /// # Errors
    /// If the token has no key, or if the node can't tell. Reject the request then.
    pub async fn revoked_until(&self, token: &str) -> Result<Option<u64>, NodeError> {
        let id = TokenId::of(token).map_err(NodeError::Token)?;
        let stand = self.stand();
        if stand.is_waiting {
            return Err(NodeError::Unknown(stand.why.clone()));
        }
        if stand.replica.as_ref().is_some_and(|replica| replica.lacks(id, &self.clock)) {
            return Ok(None);
        }
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.ask(id, stand.replica.as_deref()).await
    }

    /// Asks a majority for a token.
    async fn ask(&self, id: TokenId, replica: Option<&Replica>) -> Result<Option<u64>, NodeError> {
        let until = Instant::now() + self.settings.stale_after.max(Duration::from_secs(1));
        let last_known = self.last_known();
        let said = Said::of(self.client.txn(&Said::questions(&self.names, Some(id)), until).await?)?;
        let epoch = said.valid().map_err(NodeError::Unknown)?;
        last_known.compare(&said).map_err(NodeError::Unknown)?;
        if let Some(record) = &said.token {
            let end =
                end(record).ok_or_else(|| NodeError::Unknown("the token's record is damaged: delete it".into()))?;
            return Ok(Some(end).filter(|end| self.clock.earliest() < end.saturating_add(epoch.settings.margin)));
        }
        match replica {
            Some(replica) if replica.epoch_revision != said.epoch_revision => {
                return Err(NodeError::Unknown("there is a new epoch, and the node has not joined it yet".into()));
            }
            Some(replica) if !replica.comes_to(&said.head, until).await => {
                return Err(NodeError::Unknown("the node has not come to the last change in etcd".into()));
            }
            Some(_) => {}
            None => self.last_record_is_there(&said, until).await?,
        }
        // What the node has noticed meanwhile counts, too.
        self.is_allowed().map(|()| None)
    }

    /// A node that remembers nothing would not notice that somebody has deleted the tokens.
    async fn last_record_is_there(&self, said: &Said, until: Instant) -> Result<(), NodeError> {
        let Some((id, end)) = self.last_record(said) else { return Ok(()) };
        let questions = txn(vec![], vec![range(&self.names.token(id))], vec![]);
        let record = keys(&self.client.txn(&questions, until).await?, 0)?.pop();
        let is_there = record.and_then(|record| self.names.record(&record)).is_some_and(|(_, found)| found >= end);
        if is_there { Ok(()) } else { Err(NodeError::Unknown(LAST_IS_MISSING.into())) }
    }

    /// The token that the last change has left in etcd, unless it has ended, or an operator has accepted a loss since.
    fn last_record(&self, said: &Said) -> Option<(TokenId, u64)> {
        let last = said.head.token().filter(|(_, end)| *end > self.clock.latest());
        last.filter(|_| said.head.revision > said.epoch_revision)
    }

    /// What the node does.
    pub fn health(&self) -> Health {
        let stand = self.stand();
        let state = match &stand.replica {
            _ if stand.is_waiting => State::Waiting,
            Some(replica) if replica.is_fresh(&self.clock) => State::Ready,
            Some(_) => State::Stale,
            None => State::Joining,
        };
        Health {
            node: self.settings.node.clone(),
            state,
            why: stand.why.clone(),
            epoch: stand.replica.as_ref().map(|replica| replica.epoch.clone()),
            position: stand.replica.as_ref().map_or(0, |replica| replica.head().revision),
            joins: self.joins.load(Ordering::Relaxed),
            questions: self.questions.load(Ordering::Relaxed),
            clock_set_by: self.clock.was_set_by(),
        }
    }

    /// What its filter says of itself.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.replica().map(|replica| replica.stats())
    }

    /// Whether the node answers from its filter.
    pub fn is_ready(&self) -> bool {
        self.health().state == State::Ready
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.health()).finish()
    }
}

const LAST_IS_MISSING: &str =
    "the record of the last change is missing: somebody has deleted keys of the fleet; run `fleet accept`";

/// The epoch under which a node may go on, or why it may not, by what a majority of some cluster says.
fn judge<'a>(said: &'a Said, known: Option<&Replica>) -> Result<&'a Epoch, End> {
    let is_elsewhere = known.is_some_and(|known| known.epoch.cluster != said.cluster());
    let is_announced = said.epoch.as_ref().is_some_and(|epoch| epoch.lost.is_some());
    let epoch = match said.valid() {
        Ok(epoch) => epoch,
        // A member of another cluster decides nothing.
        Err(why) if is_elsewhere => return Err(End::Next(why)),
        Err(why) if known.is_none() || is_announced => return Err(End::Stop(why)),
        Err(_) if said.epoch.is_none() => {
            return Err(End::Lost("the record of the epoch was deleted or damaged".into()));
        }
        Err(why) => return Err(End::Lost(why)),
    };
    let Some(known) = known else { return Ok(epoch) };
    if is_elsewhere && epoch.number <= known.epoch.number {
        let (here, ours) = (said.cluster(), &known.epoch.cluster);
        return Err(End::Next(format!("cluster {here} has a fleet of this name, and this node is of cluster {ours}")));
    }
    if epoch.number < known.epoch.number {
        return Err(End::Lost(format!("it is in epoch {}, and was in epoch {}", epoch.number, known.epoch.number)));
    }
    Ok(epoch)
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
