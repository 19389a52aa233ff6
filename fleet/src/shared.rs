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
use crate::error::NodeError;
use crate::etcd::build::{key_at, of_one_member, questions, range};
use crate::etcd::messages::{KeyValue, TxnResponse};
use crate::etcd::{Client, Fault};
use crate::filter::{Known, Verdict};
use crate::history::History;
use crate::keys::{ChangeId, Names, Secret, TokenId};
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

/// The head at the revision that the node has applied: which history it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// 0 if there is none.
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
}

/// What a node remembers of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The revision up to which it has applied everything, and the head there.
    pub(crate) revision: i64,
    pub(crate) head: Head,
    pub(crate) accepted: u64,
}

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
    pub(crate) mended: AtomicU64,
    pub(crate) losses: AtomicU64,
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
    /// The revision of the last change of its record, 0 if there is none. Nothing is done if it has another one.
    pub(crate) decided: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) position: i64,
    /// Whether it was done. Otherwise the record that is there:
    pub(crate) is_new: bool,
    /// The revision of its last change.
    pub(crate) changed: i64,
    /// Its end, if it can be read.
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

    /// Why the node answers nothing and changes nothing, if so.
    pub(crate) fn stopped(&self) -> Option<String> {
        let status = lock(&self.status);
        status.state.is_stopped().then(|| status.why.clone())
    }

    /// Nobody of the fleet has written the record of this token.
    pub(crate) fn damaged(&self, id: TokenId) {
        count(&self.tallies.foreign);
        tracing::error!(%id, "nobody of the fleet has written this record; requests of its token get 503");
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
                        let record = key_at(&answer, 0);
                        let end = self.decide(id, record.as_ref())?.or_else(|| known.missing_end(id));
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

    /// What a quorum says of the token now, in the history that the node knows: its end, and the revision of its last
    /// change; 0 for one that has no record.
    pub(crate) async fn ask(&self, id: TokenId, until: Instant) -> Result<(u64, i64), NodeError> {
        if let Some(why) = self.stopped() {
            return Err(NodeError::Unknown(why));
        }
        count(&self.tallies.questions);
        let mut all = vec![range(self.names.token(id), 0), range(self.names.history(), 0)];
        let memory = lock(&self.memory).clone();
        if let Some(memory) = &memory {
            all.extend([range(self.names.head(), memory.revision), range(self.names.token(id), memory.revision)]);
        }
        let answer =
            self.client.txn(&questions(all), until).await.map_err(|fault| NodeError::Unknown(explain(fault)))?;
        let history = History::parse(key_at(&answer, 1).as_ref());
        if let Some(lost) = history.lost {
            return Err(NodeError::Unknown(lost));
        }
        if memory.is_some_and(|memory| Head::at(&answer, 2) != memory.head || history.accepted != memory.accepted) {
            return Err(NodeError::Unknown("the cluster has another history than this node knows".into()));
        }
        let (record, before) = (key_at(&answer, 0), key_at(&answer, 3));
        if let Some(end) = self.decide(id, record.as_ref())? {
            return Ok((end, record.map_or(0, |record| record.mod_revision)));
        }
        let of_node = || self.known.load().as_ref().and_then(|known| known.missing_end(id));
        match before.and_then(|before| self.secret.end(id, &before.value)).or_else(of_node) {
            Some(end) if self.is_live(end) => {
                Err(NodeError::Unknown("somebody has deleted its record, and it is not put back yet".into()))
            }
            _ => Ok((0, 0)),
        }
    }

    /// The end in a record.
    pub(crate) fn decide(&self, id: TokenId, record: Option<&KeyValue>) -> Result<Option<u64>, NodeError> {
        let Some(record) = record else { return Ok(None) };
        match self.secret.end(id, &record.value) {
            None => Err(NodeError::Unknown(format!("the record of token {id} is damaged; revoke it again"))),
            end => Ok(end),
        }
    }
}

pub(crate) fn explain(fault: Fault) -> String {
    format!("etcd can't be asked: {fault}")
}
