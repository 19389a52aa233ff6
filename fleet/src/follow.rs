//! A node joins its fleet and follows it: one task, over one connection at a time.
//!
//! To *join* is to read all tokens at one revision, and to follow the changes from the next one on. Several times per
//! second the node sends the same member a *check*, a transaction of a quorum that reads the head twice: as it is now,
//! and as it was at the revision that the node had applied.
//!
//! - If the head at the node's own revision is the one that it knows, so is the history. After a restore from a backup
//!   there is no such revision, or another head at it.
//! - If the head now was changed at a revision that the node had applied when it sent this check, or a later one, it
//!   has everything that was acknowledged before it sent this one, and is ready for `stale-after` from then on.
//!
//! A cluster that has another history has lost what the node knew. The node says so in the cluster, all nodes stop, and
//! wait until an operator accepts it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::Streaming;

use crate::apply::apply;
use crate::etcd::Fault;
use crate::etcd::build::{after, questions};
use crate::etcd::messages::{WatchCreateRequest, WatchResponse};
use crate::filter::Known;
use crate::history::History;
use crate::keys::TokenId;
use crate::link::{End, Link};
use crate::lock;
use crate::shared::{Change, Head, Job, Shared, State, count};

/// How many tokens are put back at once.
const MEND: usize = 500;

/// The pause before a node takes another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause of a node that waits for an operator, or that was refused.
const LOOK: Duration = Duration::from_millis(300);

/// Follows the fleet until the task is dropped.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let (mut member, mut capacity) = (0, shared.settings.capacity);
    loop {
        let link = Link { connection: shared.client.connect(member), shared: Arc::clone(&shared) };
        let Err(end) = link.follow(capacity).await;
        if !matches!(end, End::Fault(_)) {
            shared.known.store(None);
        }
        sleep(match end {
            End::Fault(why) => {
                member += 1;
                // It keeps its filter, and says what it does.
                let state = if shared.known.load().is_some() { State::Stale } else { State::Joining };
                shared.enter(state, why);
                PAUSE
            }
            End::Join(why) => {
                shared.enter(State::Joining, format!("it joins again: {why}"));
                PAUSE
            }
            End::NoRoom => {
                capacity = capacity.saturating_mul(2);
                shared.enter(State::Joining, "it joins again: the filter was too small");
                PAUSE
            }
            End::Refused(why) => {
                shared.enter(State::Refused, why);
                LOOK
            }
            End::Lost(why) => {
                count(&shared.tallies.losses);
                let why = format!("the cluster has lost something that node {} knew: {why}", shared.settings.node);
                shared.enter(State::Waiting, &why);
                announce(&shared, &why).await;
                PAUSE
            }
            End::Waiting(why) => {
                shared.enter(State::Waiting, format!("{why}. It waits until an operator runs `fleet accept`"));
                LOOK
            }
        })
        .await;
    }
}

/// Announces in the cluster that it has lost something, unless an operator has accepted a loss since the node joined.
async fn announce(shared: &Shared, why: &str) {
    let remembered = lock(&shared.memory).as_ref().map_or(0, |memory| memory.accepted);
    let lost = |history: &History| {
        let is_new = history.lost.is_none() && history.accepted <= remembered;
        is_new.then(|| History { lost: Some(why.to_owned()), ..history.clone() })
    };
    let soon = || Instant::now() + Duration::from_secs(2);
    while let Err(fault) = History::amend(&shared.client, shared.names.history(), soon(), lost).await {
        tracing::error!("the loss can't be announced to the other nodes: {fault}");
        sleep(LOOK).await;
    }
    // What the node knew is for the operator to judge now.
    *lock(&shared.memory) = None;
}

impl Link {
    /// Joins over this connection, if the node has no filter, and follows until something is wrong.
    async fn follow(&self, capacity: usize) -> Result<Infallible, End> {
        #[cfg(test)]
        self.shared.hears().await;
        self.agree().await?;
        let known = match self.shared.known.load_full() {
            Some(known) => {
                self.is_same_history().await?;
                known
            }
            None => self.join(capacity).await?,
        };
        let Some(applied) = self.shared.applied() else { return Err(End::Join("it remembers nothing".into())) };
        let prefix = self.shared.names.all();
        let create = WatchCreateRequest {
            range_end: after(&prefix).into(),
            key: prefix.into(),
            start_revision: applied + 1,
            prev_kv: true,
        };
        let watch = self.shared.client.watch(&self.connection, create).await?;
        tokio::try_join!(self.hear(&known, watch), self.vouch(&known)).map(|(never, _)| never)
    }

    /// Applies changes as they come.
    async fn hear(&self, known: &Known, mut watch: Streaming<WatchResponse>) -> Result<Infallible, End> {
        let ended = |why: &str| End::Fault(format!("{}: the watch has ended: {why}", self.connection.member));
        loop {
            let message = watch.message().await.map_err(|status| ended(status.message()))?;
            let message = message.ok_or_else(|| ended("without a reason"))?;
            if message.canceled {
                return Err(match message.compact_revision {
                    0 => ended(&message.cancel_reason),
                    at => End::Join(format!("etcd was compacted up to revision {at}")),
                });
            }
            #[cfg(test)]
            self.shared.hears().await;
            apply(&self.shared, known, &message).map_err(|_| End::NoRoom)?;
        }
    }

    /// Sends checks.
    async fn vouch(&self, known: &Known) -> Result<Infallible, End> {
        let (shared, settings) = (&self.shared, &self.shared.settings);
        let mut ticks = interval(settings.beat());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // When the oldest check was sent whose head the node has not applied yet, and the revision of that head.
        let mut open: Option<(Duration, i64)> = None;
        loop {
            ticks.tick().await;
            if !known.advance() {
                return Err(End::Join("its clock has been set, or another node's clock is wrong".into()));
            }
            self.mend(known);
            let Some(memory) = lock(&shared.memory).clone() else { continue };
            let sent = shared.clock.now();
            let answer = match self.ask(questions(self.question(Some(&memory)))).await {
                // The watch goes on, so this is the history that the node knows. A new head comes after the compaction.
                Err(Fault::Compacted) => {
                    self.submit(TokenId([0; 16]), None);
                    continue;
                }
                answer => answer.map_err(|fault| self.unknown_revision(fault, &memory))?,
            };
            self.compare(&answer, Some(&memory))?;
            let head = Head::at(&answer, 0).revision;
            if head == 0 {
                // A new fleet, or somebody has deleted it: then it says nothing.
                self.submit(TokenId([0; 16]), None);
                continue;
            }
            for (sent, head) in [open.take(), Some((sent, head))].into_iter().flatten() {
                if memory.revision >= head {
                    known.knows_all_of(sent);
                    shared.enter(State::Ready, "it has everything");
                } else {
                    open = open.or(Some((sent, head)));
                }
            }
            if open.is_some_and(|(sent, _)| shared.clock.now() > sent + 3 * settings.one_try()) {
                return Err(End::Fault(format!("{}: its watch is behind", self.connection.member)));
            }
        }
    }

    fn submit(&self, id: TokenId, change: Option<Change>) {
        let until = Instant::now() + self.shared.settings.patience;
        // If there is no room, the next beat does it.
        _ = self.shared.jobs.try_send(Job { id, change, until, reply: None });
    }

    /// Restores records that another client of etcd has deleted or overwritten.
    fn mend(&self, known: &Known) {
        for (id, end, decided) in known.some_missing(MEND) {
            if self.shared.is_live(end) {
                self.submit(id, Some(Change { end, decided }));
            } else {
                known.forget(id);
            }
        }
    }
}
