//! What the tasks of a node share, and how the record in etcd decides.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::disputes::Disputes;
use crate::error::NodeError;
use crate::etcd::build::{key_at, of_one_member, questions, range, revision};
use crate::etcd::messages::KeyValue;
use crate::etcd::{Answer, Client, Fault};
use crate::filter::{Known, Verdict};
use crate::history::{Agreement, Head, Memory, Place};
use crate::keys::{ChangeId, Names, Record, Secret, TokenId};
use crate::lock;
use crate::settings::Settings;

/// What a node can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// "Not revoked" comes from its filter.
    Ready,
    /// It reads the tokens. Each request asks etcd.
    Joining,
    /// It has no answer from the cluster, or is behind. Each request asks etcd.
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

/// How often a new reason for the same state is logged at most.
const LOG: Duration = Duration::from_secs(10);

/// How long a question for one token may take.
const QUESTION: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct Status {
    /// `Ready` for a node that follows, whether its filter's deadline is over or not.
    pub(crate) state: State,
    pub(crate) since: SystemTime,
    pub(crate) why: String,
    logged: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) questions: AtomicU64,
    pub(crate) false_positives: AtomicU64,
    pub(crate) joins: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) foreign: AtomicU64,
    pub(crate) losses: AtomicU64,
    pub(crate) gaps: AtomicU64,
    pub(crate) retries: AtomicU64,
    /// By how many seconds another node's clock was ahead of this one's at its last change, or behind.
    pub(crate) clock_difference: AtomicI64,
}

pub(crate) fn count(tally: &AtomicU64) {
    tally.fetch_add(1, Ordering::Relaxed);
}

/// A change of one token.
pub(crate) struct Job {
    pub(crate) id: TokenId,
    /// `None` for nothing but a new head.
    pub(crate) change: Option<Change>,
    pub(crate) until: Instant,
    pub(crate) reply: Option<oneshot::Sender<Result<Done, NodeError>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Until when the token is to be revoked; 0 if it is to be restored.
    pub(crate) end: u64,
    /// The record on which this was decided. Nothing is done if the token has another one by then.
    pub(crate) decided: Record,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) position: i64,
    /// Whether it was done. Otherwise the token has another record:
    pub(crate) is_done: bool,
    pub(crate) record: Record,
    /// The end in that record, if it can be read.
    pub(crate) end: Option<u64>,
}

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) names: Names,
    pub(crate) secret: Secret,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) known: ArcSwapOption<Known>,
    pub(crate) memory: Mutex<Option<Memory>>,
    pub(crate) disputes: Disputes,
    pub(crate) status: Mutex<Status>,
    /// Who waits for a change to come back from the watch. It gets the revisions in which it has come: several, if it
    /// was sent again.
    pub(crate) pending: Mutex<HashMap<ChangeId, watch::Sender<Vec<i64>>>>,
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) tallies: Tallies,
    /// A test keeps its connection and its watch from it.
    #[cfg(test)]
    pub(crate) is_deaf: std::sync::atomic::AtomicBool,
}

impl Shared {
    pub(crate) fn new(settings: Settings, client: Client, clock: Clock, jobs: mpsc::Sender<Job>) -> Arc<Self> {
        let (since, why) = (SystemTime::now(), "it has just started".into());
        let status = Status { state: State::Joining, since, why, logged: None };
        Arc::new(Self {
            names: Names::new(&settings.fleet),
            secret: Secret::new(settings.key),
            client,
            clock,
            known: ArcSwapOption::empty(),
            memory: Mutex::default(),
            disputes: Disputes::default(),
            status: Mutex::new(status),
            pending: Mutex::default(),
            jobs,
            tallies: Tallies::default(),
            #[cfg(test)]
            is_deaf: false.into(),
            settings,
        })
    }

    #[cfg(test)]
    pub(crate) async fn hears(&self) {
        while self.is_deaf.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn enter(&self, state: State, why: impl Into<String>) {
        let (mut status, why) = (lock(&self.status), why.into());
        if (status.state, &status.why) == (state, &why) {
            return;
        }
        if state.is_stopped() {
            tracing::error!(?state, "{why}");
        } else if state != status.state || status.logged.is_none_or(|at| at.elapsed() > LOG) {
            tracing::info!(?state, "{why}");
            status.logged = Some(Instant::now());
        }
        if state != status.state {
            status.since = SystemTime::now();
        }
        (status.state, status.why) = (state, why);
    }

    /// The revision up to which the node has applied everything, if it has a filter.
    pub(crate) fn applied(&self) -> Option<i64> {
        lock(&self.memory).as_ref().map(|memory| memory.revision)
    }

    /// An operator has to judge what the node knew, or has done so.
    pub(crate) fn forget(&self) {
        *lock(&self.memory) = None;
        self.disputes.clear();
    }

    /// Why the node answers nothing and changes nothing, if so.
    pub(crate) fn stopped(&self) -> Option<String> {
        let status = lock(&self.status);
        status.state.is_stopped().then(|| status.why.clone())
    }

    /// A client outside the fleet has written the record of this token.
    pub(crate) fn damaged(&self, id: TokenId) {
        count(&self.tallies.foreign);
        tracing::error!(%id, "record not written by this fleet; requests with its token get 503 until it is revoked again");
    }

    /// Until when the token is revoked, or `None` if it is not.
    pub(crate) async fn find(&self, token: &str) -> Result<Option<u64>, NodeError> {
        let id = self.secret.id(token);
        let hash = self.secret.hash(id);
        // Again if the node was stopped while it waited for an answer.
        for _ in 0..2 {
            let Some(known) = self.known.load_full() else { break };
            match known.lookup(hash) {
                Verdict::NotRevoked => return Ok(None),
                Verdict::Unsure => break,
                Verdict::Perhaps => {
                    count(&self.tallies.questions);
                    let Some(Memory { revision, head, .. }) = lock(&self.memory).clone() else { break };
                    // By any member, at the node's own revision: so never older than the filter.
                    let all = [self.names.token(id), self.names.head()].map(|key| of_one_member(range(key, revision)));
                    let answer = self.client.txn(&questions(all.into()), Instant::now() + QUESTION / 2).await;
                    // And not of a cluster that was restored so fast that the node has not noticed.
                    let Some(answer) = answer.ok().filter(|answer| Head::at(answer, 1) == head) else { break };
                    if known.is_fresh() {
                        let end = self.decide(id, key_at(&answer, 0).as_ref(), revision)?;
                        if end.is_none() {
                            count(&self.tallies.false_positives);
                        }
                        return Ok(end.filter(|end| self.is_live(*end)));
                    }
                }
            }
        }
        let (end, _) = self.ask(id, Instant::now() + QUESTION).await?;
        Ok(Some(end).filter(|end| self.is_live(*end)))
    }

    /// Whether a token of this end is still refused.
    pub(crate) fn is_live(&self, end: u64) -> bool {
        end > 0 && self.clock.earliest() < end.saturating_add(self.settings.clock_margin)
    }

    /// What a quorum says of the token now, in the history that the node knows: its end, 0 if it is not revoked, and its
    /// record.
    pub(crate) async fn ask(&self, id: TokenId, until: Instant) -> Result<(u64, Record), NodeError> {
        if let Some(why) = self.stopped() {
            return Err(NodeError::Unknown(why));
        }
        count(&self.tallies.questions);
        let memory = lock(&self.memory).clone();
        let of = |then: Option<&Memory>| {
            let mut all =
                vec![range(self.names.token(id), 0), range(self.names.agreement(), 0), range(self.names.head(), 0)];
            if let Some(memory) = then {
                all.extend([self.names.head(), self.names.token(id)].map(|key| range(key, memory.revision)));
            }
            questions(all)
        };
        let (answer, is_compacted) = match self.client.txn(&of(memory.as_ref()), until).await {
            Err(Fault::Compacted) if memory.is_some() => (self.client.txn(&of(None), until).await, true),
            answer => (answer, false),
        };
        let answer = answer.map_err(|fault| NodeError::Unknown(explain(fault)))?;
        let agreement = key_at(&answer, 1).as_ref().map(Agreement::parse).unwrap_or_default();
        if let Some(why) = agreement.why_wait(answer.cluster()) {
            return Err(NodeError::Unknown(why));
        }
        if let Some(memory) = &memory {
            let then = (!is_compacted).then(|| Head::at(&answer, 3));
            let place = memory.place(&Head::at(&answer, 2), then.as_ref());
            let is_known = matches!(place, Place::Newest | Place::Before);
            if !is_known || agreement.accepted != memory.accepted || answer.cluster() != memory.cluster {
                return Err(NodeError::Unknown("the cluster has another history than this node knows".into()));
            }
        }
        let record = key_at(&answer, 0);
        if let Some(end) = self.decide(id, record.as_ref(), revision(&answer))? {
            return Ok((end, Record::of(record.as_ref())));
        }
        // No node deletes the record of a live token. Whether there was one, the node's own revision says, or its filter. (The
        // node may not have heard yet of the last foreign change, and it may have been in dispute before.)
        let before = key_at(&answer, 4).and_then(|before| self.secret.end(id, &before));
        let before = before.or_else(|| self.disputes.at(id, memory.as_ref()?.revision));
        let is_in = || {
            let known = self.known.load();
            known.as_ref().is_some_and(|known| known.filter.by_hash().contains(self.secret.hash(id)))
        };
        if before.is_some_and(|end| self.is_live(end)) || (is_compacted && is_in()) {
            return Err(deleted());
        }
        Ok((0, Record::default()))
    }

    /// The end in a record that etcd has at this revision.
    pub(crate) fn decide(
        &self,
        id: TokenId,
        record: Option<&KeyValue>,
        revision: i64,
    ) -> Result<Option<u64>, NodeError> {
        if self.disputes.at(id, revision).is_some_and(|end| self.is_live(end)) {
            return Err(deleted());
        }
        let Some(record) = record else { return Ok(None) };
        match self.secret.end(id, record) {
            None => Err(NodeError::Unknown(format!(
                "the record of token {id} was not written by this fleet; revoke the token again"
            ))),
            end => Ok(end),
        }
    }
}

fn deleted() -> NodeError {
    NodeError::Unknown(
        "a client outside the fleet has changed or deleted the token's record; revoke the token again".into(),
    )
}

pub(crate) fn explain(fault: Fault) -> String {
    format!("etcd can't be asked: {fault}")
}
