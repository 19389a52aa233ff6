//! A node of a fleet.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep, timeout, timeout_at};

use crate::changes::publish;
use crate::clock::Clock;
use crate::error::NodeError;
use crate::etcd::Client;
use crate::etcd::build::{key_at, questions, range, revision};
use crate::follow::follow;
use crate::keys::Record;
use crate::lock;
use crate::settings::Settings;
use crate::shared::{Change, Done, Job, Shared, State, explain};

/// How many transactions of changes are under way at a time.
const AT_A_TIME: usize = 8;

/// How many changes may wait.
const QUEUE: usize = 10_000;

/// A node of a fleet: a filter of the revoked tokens in memory, which follows the fleet's changes in etcd.
///
/// All methods can be called at the same time. When it is dropped, it ends.
pub struct Node {
    shared: Arc<Shared>,
    /// They end with it.
    #[cfg_attr(not(test), expect(dead_code, reason = "they end when it is dropped"))]
    tasks: JoinSet<()>,
    /// Becomes true when one of them ends.
    has_failed: watch::Receiver<bool>,
}

/// Tells, when a task that holds it ends, whatever the reason.
struct Alarm(watch::Sender<bool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// What came of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revocation {
    /// Until when the token is revoked, in seconds since 1970: the later one, if it was revoked already. `None` if it has
    /// ended, so that there is nothing to remember.
    pub until: Option<u64>,
    /// Whether this call has revoked it, or for longer than before.
    pub is_new: bool,
    /// The revision of etcd in which this is.
    pub position: i64,
}

/// How a node is.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The name of the node.
    pub node: String,
    /// What it can answer.
    pub state: State,
    /// Since when it does what it does, in seconds since 1970.
    pub since: f64,
    /// Why.
    pub why: String,
    /// The cluster of the fleet, in hexadecimal digits, as etcd's logs have it. `None` as long as the node does not know it.
    pub cluster: Option<String>,
    /// The revision of etcd up to which its filter has everything.
    pub position: Option<i64>,
    /// The entries of its filter, with those that have just ended.
    pub len: Option<usize>,
    /// By how many seconds this machine's clock was set since the start.
    pub clock_set_by: i64,
    /// By how many seconds the clock of the node that made the last change is ahead of this one's.
    pub clock_difference: i64,
    /// How many changes of the fleet's keys were made by clients outside the fleet.
    pub foreign: u64,
}

impl Node {
    /// Starts a node, and waits until it is ready, or for `patience`. If the cluster can't be reached, it goes on trying.
    ///
    /// # Errors
    /// What is wrong with the settings, with the rights of the user, or that the fleet has agreed on others.
    pub async fn start(settings: Settings) -> Result<Self, String> {
        let patience = settings.patience;
        let node = Self::begin(settings)?;
        // If it has not joined by then, it goes on trying.
        timeout(patience, node.joined()).await.unwrap_or(Ok(())).map(|()| node)
    }

    /// Starts a node, and does not wait until it has joined. Call it within a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn begin(settings: Settings) -> Result<Self, String> {
        Self::begin_with(settings, Clock::new())
    }

    pub(crate) fn begin_with(settings: Settings, clock: Clock) -> Result<Self, String> {
        settings.check()?;
        let client = Client::new(&settings.etcd, settings.one_try())?;
        let (failed, has_failed) = watch::channel(false);
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (shared, mut tasks) = (Shared::new(settings, client, clock, jobs), JoinSet::new());
        let alarm = Alarm(failed.clone());
        tasks.spawn(with(alarm, follow(Arc::clone(&shared))));
        let (queue, lease) = (Arc::new(Mutex::new(queue)), Arc::default());
        for _ in 0..AT_A_TIME {
            let alarm = Alarm(failed.clone());
            tasks.spawn(with(alarm, publish(Arc::clone(&shared), Arc::clone(&queue), Arc::clone(&lease))));
        }
        Ok(Self { shared, tasks, has_failed })
    }

    /// Waits until the node has joined its fleet for the first time, or waits for an operator.
    ///
    /// # Errors
    /// The fleet has agreed on other settings, or the node lacks a right.
    pub async fn joined(&self) -> Result<(), String> {
        loop {
            let status = lock(&self.shared.status).clone();
            match status.state {
                State::Refused => return Err(status.why),
                State::Joining => sleep(Duration::from_millis(2)).await,
                _ => return Ok(()),
            }
        }
    }

    /// Waits until the node can't go on, which happens only if this crate has a bug: one of its tasks has panicked. End the
    /// process then. The node answers with errors only.
    pub async fn failed(&self) {
        // An error says that all tasks have ended.
        _ = self.has_failed.clone().wait_for(|failed| *failed).await;
    }

    /// Whether [`failed`](Self::failed) would return at once.
    pub fn has_failed(&self) -> bool {
        *self.has_failed.borrow() || self.has_failed.has_changed().is_err()
    }

    /// Whether the token is revoked. A ready node says "no" from memory, and asks etcd otherwise.
    ///
    /// # Errors
    /// [`NodeError::Unknown`]: treat the token as revoked, or answer 503.
    pub async fn is_revoked(&self, token: &str) -> Result<bool, NodeError> {
        Ok(self.revoked_until(token).await?.is_some())
    }

    /// Until when the token is revoked, in seconds since 1970; `None` if it is not.
    ///
    /// # Errors
    /// [`NodeError::Unknown`].
    pub async fn revoked_until(&self, token: &str) -> Result<Option<u64>, NodeError> {
        match self.stopped() {
            Some(why) => Err(NodeError::Unknown(why)),
            None => self.shared.find(token).await,
        }
    }

    /// Revokes a token until this time, in seconds since 1970. When this returns, this node refuses it, and so does each
    /// ready node after `stale_after` at the latest.
    ///
    /// # Errors
    /// [`NodeError::Unacknowledged`], [`NodeError::TooLate`] or [`NodeError::Full`].
    pub async fn revoke(&self, token: &str, until: u64) -> Result<Revocation, NodeError> {
        let (shared, settings) = (&self.shared, &self.shared.settings);
        let latest = shared.clock.latest() + settings.longest_lifetime + settings.leeway;
        if until > latest {
            return Err(NodeError::TooLate { until, latest });
        }
        if !shared.is_live(until) {
            let position = shared.applied().unwrap_or_default();
            return Ok(Revocation { until: None, is_new: false, position });
        }
        let by = Instant::now() + settings.patience;
        // What the token is found to be revoked until, and its record.
        let (mut found, mut decided) = (None, Record::default());
        loop {
            let end = until.max(found.unwrap_or(0));
            let done = self.change(token, end, decided, by).await?;
            if done.is_done {
                let is_new = found.is_none_or(|found| found < until);
                return Ok(Revocation { until: Some(end), is_new, position: done.position });
            }
            // The record is put again, even if it says the same: a restore that was decided on it, and is still on its way,
            // changes nothing then.
            (found, decided) = (done.end, done.record);
        }
    }

    /// Revokes a token no longer. Returns whether it was revoked.
    ///
    /// # Errors
    /// [`NodeError::Unacknowledged`], or [`NodeError::Unknown`] if a client outside the fleet has changed or deleted its
    /// record: revoke it first.
    pub async fn restore(&self, token: &str) -> Result<bool, NodeError> {
        if let Some(why) = self.stopped() {
            return Err(NodeError::Unacknowledged(why));
        }
        let by = Instant::now() + self.shared.settings.patience;
        let mut was_there = false;
        loop {
            let (end, record) = self.shared.ask(self.shared.secret.id(token), by).await?;
            if !self.shared.is_live(end) {
                return Ok(was_there);
            }
            was_there = true;
            if self.change(token, 0, record, by).await?.is_done {
                return Ok(was_there);
            }
        }
    }

    async fn change(&self, token: &str, end: u64, decided: Record, until: Instant) -> Result<Done, NodeError> {
        if let Some(why) = self.stopped() {
            return Err(NodeError::Unacknowledged(why));
        }
        let (reply, done) = oneshot::channel();
        let job =
            Job { id: self.shared.secret.id(token), change: Some(Change { end, decided }), until, reply: Some(reply) };
        let late = |_| NodeError::Unacknowledged("there are too many changes at a time".into());
        timeout_at(until, self.shared.jobs.send(job)).await.map_err(late)?.map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }

    /// Why the node answers nothing and changes nothing, if so.
    fn stopped(&self) -> Option<String> {
        let failed = || self.has_failed().then(|| "a task of the node has ended; restart the process".to_owned());
        self.shared.stopped().or_else(failed)
    }

    /// The name by which logs and etcd know a token. It does not reveal the token.
    pub fn token_id(&self, token: &str) -> String {
        self.shared.secret.id(token).to_string()
    }

    /// The time in seconds since 1970, as this node counts the ends of tokens.
    pub fn time(&self) -> u64 {
        self.shared.clock.latest()
    }

    /// Whether the node says "not revoked" from memory.
    pub fn is_ready(&self) -> bool {
        self.health().state == State::Ready && !self.has_failed()
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// How the node is.
    pub fn health(&self) -> Health {
        let shared = &self.shared;
        let status = lock(&shared.status).clone();
        let known = shared.known.load();
        let state = match status.state {
            state if state.is_stopped() => state,
            _ if known.as_ref().is_some_and(|known| known.is_fresh()) => State::Ready,
            State::Ready => State::Stale,
            state => state,
        };
        Health {
            node: shared.settings.node.clone(),
            state,
            since: status.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            why: status.why,
            cluster: shared.client.cluster().map(|cluster| format!("{cluster:x}")),
            position: shared.applied(),
            len: known.as_ref().map(|known| known.filter.len()),
            clock_set_by: shared.clock.was_set_by(),
            clock_difference: shared.tallies.clock_difference.load(Ordering::Relaxed),
            foreign: shared.tallies.foreign.load(Ordering::Relaxed),
        }
    }

    /// Until when the token is revoked, as a quorum says now. This is what each request would cost without a filter.
    ///
    /// # Errors
    /// [`NodeError::Unknown`].
    pub async fn ask_etcd(&self, token: &str) -> Result<Option<u64>, NodeError> {
        let (shared, id) = (&self.shared, self.shared.secret.id(token));
        let question = questions(vec![range(shared.names.token(id), 0)]);
        let answer = shared.client.txn(&question, Instant::now() + shared.settings.patience).await;
        let answer = answer.map_err(|fault| NodeError::Unknown(explain(fault)))?;
        Ok(shared.decide(id, key_at(&answer, 0).as_ref(), revision(&answer))?.filter(|end| shared.is_live(*end)))
    }

    /// How the node and its filter are: name, meaning, value.
    pub(crate) fn figures(&self) -> Vec<(&'static str, &'static str, f64)> {
        let Health { position, clock_set_by: set, clock_difference: difference, .. } = self.health();
        let mut figures = vec![
            (
                "fleet_position",
                "the revision of etcd up to which the filter has everything",
                position.unwrap_or(0) as f64,
            ),
            ("fleet_clock_set_by_seconds", "by how much this machine's clock was set since the start", set as f64),
            (
                "fleet_clock_difference_seconds",
                "by how much the last other changing node's clock is ahead",
                difference as f64,
            ),
        ];
        let Some(known) = self.shared.known.load_full() else { return figures };
        let stats = known.filter.stats();
        figures.extend([
            ("fleet_filter_len", "entries in the filter, with those that have just ended", stats.len as f64),
            ("fleet_filter_capacity", "how many tokens may be revoked at a time", self.shared.settings.capacity as f64),
            ("fleet_filter_bytes", "the memory of the filter", stats.memory_usage as f64),
            ("fleet_filter_load", "the share of slots that are taken", stats.load_factor),
            ("fleet_filter_rate", "the expected false-positive rate at this load", stats.false_positive_rate),
        ]);
        figures
    }

    /// What the node has counted: name, meaning, value.
    pub(crate) fn counts(&self) -> [(&'static str, &'static str, u64); 8] {
        let all = &self.shared.tallies;
        [
            ("fleet_questions_total", "how often etcd was asked for a token", &all.questions),
            ("fleet_false_positives_total", "how often the answer was \"not revoked\"", &all.false_positives),
            ("fleet_joins_total", "how often all tokens were read", &all.joins),
            ("fleet_changes_total", "changes of the set that were applied, each of 1 to 100 tokens", &all.changes),
            ("fleet_retries_total", "changes sent again since the node had joined again", &all.retries),
            ("fleet_foreign_total", "changes of the fleet's keys by clients outside the fleet", &all.foreign),
            ("fleet_gaps_total", "how often the watch had left out a change, and all tokens were read", &all.gaps),
            ("fleet_losses_total", "how often the cluster had lost what this node knew", &all.losses),
        ]
        .map(|(name, meaning, tally)| (name, meaning, tally.load(Ordering::Relaxed)))
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.health()).finish()
    }
}

/// Runs a task that must not end.
async fn with(_alarm: Alarm, task: impl Future<Output = ()>) {
    task.await;
}

fn gone() -> NodeError {
    NodeError::Unacknowledged("the node has ended".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its supervisor has to restart it: as long as it runs, it would be stale forever.
    #[tokio::test]
    async fn a_node_whose_task_has_ended_says_so_and_answers_nothing() {
        let mut node = Node::begin(Settings::new([7; 16])).unwrap();
        assert!(!node.has_failed());
        node.tasks.abort_all();
        node.failed().await;
        assert!(node.has_failed() && !node.is_ready());
        for error in [
            node.is_revoked("alice").await.unwrap_err(),
            node.revoke("alice", node.time() + 60).await.unwrap_err(),
            node.restore("alice").await.unwrap_err(),
        ] {
            assert!(error.to_string().contains("restart"), "{error}");
        }
    }
}
