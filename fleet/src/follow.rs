//! A node joins its fleet and follows it: one task, over one connection at a time.
//!
//! To *join* is to read all tokens at one revision, and to follow the changes from the next one on. Several times per
//! second the node sends the same member a *check*, a transaction of a quorum that reads the head twice: as it is now,
//! and as it was at the revision that the node had applied. The node goes on only if four comparisons hold:
//!
//! 1. **The cluster** that an answer names is the one in which the fleet is. Any other answer counts as none, and the node
//!    goes to the next member ([`survey`](crate::survey)).
//! 2. **The agreement** is the one under which the node has joined, and says of no loss.
//! 3. **The point that the node remembers** is in the cluster's history ([`Memory::place`](crate::history::Memory::place)).
//!    If heads can't tell, because the revision was compacted, the node reads all tokens, and compares them with its filter.
//! 4. **Each new head follows the last one** that the node has applied: etcd's watch gives the value before, and its
//!    revision. After a gap, the node reads all tokens ([`apply`](crate::apply)).
//!
//! If in addition the head now was changed at a revision that the node had applied when it sent this check, the node has
//! everything that was acknowledged before it sent this one, and is ready for `stale-after` from then on.
//!
//! If the second or the third comparison fails, the cluster has lost what the node knew. The node says so in the agreement,
//! all nodes stop, and wait until an operator accepts it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::Streaming;

use crate::apply::{Broken, apply};
use crate::etcd::Fault;
use crate::etcd::build::after;
use crate::etcd::messages::{WatchCreateRequest, WatchResponse};
use crate::filter::Known;
use crate::history::Agreement;
use crate::keys::TokenId;
use crate::link::{End, Link};
use crate::lock;
use crate::shared::{Job, Shared, State, count};
use crate::survey::find_cluster;

/// The pause before a node takes another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause of a node that waits for an operator, or that was refused.
const LOOK: Duration = Duration::from_millis(300);

/// Follows the fleet until the task is dropped.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let (mut member, mut capacity) = (0, shared.settings.capacity);
    // The filter of a node that has to join again, as long as it may be compared with what the cluster has.
    let mut old: Option<Arc<Known>> = None;
    let mut cluster = None;
    loop {
        let Err(end) = connect_and_follow(&shared, &mut cluster, member, capacity, old.as_deref()).await;
        if !matches!(end, End::Fault(_) | End::Stranger(_) | End::Refused(_)) {
            old = shared.known.swap(None).or(old);
        }
        // It keeps its filter, and says what it does.
        let without_answer = if shared.known.load().is_some() { State::Stale } else { State::Joining };
        sleep(match end {
            End::Fault(why) => {
                member += 1;
                shared.enter(without_answer, why);
                PAUSE
            }
            End::Stranger(why) => {
                member += 1;
                // Only all endpoints can tell whether this member is wrong, or the node.
                cluster = None;
                shared.enter(without_answer, why);
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
                member += 1;
                shared.enter(State::Refused, why);
                LOOK
            }
            End::Lost(why) => {
                count(&shared.tallies.losses);
                let why = format!("the cluster has lost something that node {} knew: {why}", shared.settings.node);
                shared.enter(State::Waiting, &why);
                announce(&shared, &why, cluster).await;
                old = None;
                PAUSE
            }
            End::Waiting(why) => {
                // The operator may go on in another cluster.
                cluster = None;
                shared.enter(State::Waiting, format!("{why}. It waits until an operator runs `fleet accept`"));
                LOOK
            }
        })
        .await;
    }
}

/// Connects to this member, and follows the fleet over the connection. `cluster` is the fleet's if the node knows it.
async fn connect_and_follow(
    shared: &Arc<Shared>,
    cluster: &mut Option<u64>,
    member: usize,
    capacity: usize,
    old: Option<&Known>,
) -> Result<Infallible, End> {
    let cluster = match *cluster {
        Some(cluster) => cluster,
        None => {
            let found = match find_cluster(&shared.client, &shared.names, shared.settings.one_try()).await {
                // Most endpoints are silent. The node stays with its own cluster.
                Err(Fault::Unclear(why)) => shared.client.cluster().ok_or(End::Fault(why))?,
                found => found?,
            };
            *cluster.insert(found)
        }
    };
    let link = Link { connection: shared.client.connect(member), shared: Arc::clone(shared), cluster };
    link.follow(capacity, old).await
}

/// Announces in the cluster that it has lost something, unless an operator has accepted a loss since the node joined.
async fn announce(shared: &Shared, why: &str, cluster: Option<u64>) {
    let (accepted, settings) = (lock(&shared.memory).as_ref().map_or(0, |memory| memory.accepted), &shared.settings);
    // The node has stopped, so it takes no other answers from there.
    if let Some(cluster) = cluster {
        shared.client.belong_to(cluster);
    }
    let here = Agreement::of_cluster(cluster.unwrap_or_default());
    let lost = |found: Option<Agreement>| {
        // The agreement may be what was lost.
        let found = found.filter(|found| !found.is_damaged());
        let found = found.unwrap_or_else(|| Agreement {
            settings: settings.agreement(),
            cluster: here.clone(),
            accepted,
            lost: None,
        });
        let is_new = found.lost.is_none() && found.accepted <= accepted;
        is_new.then(|| Agreement { lost: Some(why.to_owned()), ..found })
    };
    let soon = || Instant::now() + Duration::from_secs(2);
    while let Err(fault) = Agreement::amend(&shared.client, shared.names.agreement(), soon(), lost).await {
        tracing::error!("the loss can't be announced to the other nodes: {fault}");
        sleep(LOOK).await;
    }
    // What the node knew is for the operator to judge now.
    shared.forget();
}

impl Link {
    /// Joins over this connection, if the node has no filter, and follows until something is wrong.
    async fn follow(&self, capacity: usize, old: Option<&Known>) -> Result<Infallible, End> {
        #[cfg(test)]
        self.shared.hears().await;
        self.agree().await?;
        let known = match self.shared.known.load_full() {
            Some(known) => {
                self.is_same_history().await?;
                known
            }
            None => self.join(capacity, old).await?,
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
            let message = self.connection.accept(message.ok_or_else(|| ended("without a reason"))?, self.cluster)?;
            if message.canceled {
                return Err(match message.compact_revision {
                    0 => ended(&message.cancel_reason),
                    at => End::Join(format!("etcd was compacted up to revision {at}")),
                });
            }
            #[cfg(test)]
            self.shared.hears().await;
            apply(&self.shared, known, &message).map_err(|broken| match broken {
                Broken::NoRoom => End::NoRoom,
                Broken::Gap(why) => End::Join(why),
            })?;
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
            let Some(memory) = lock(&shared.memory).clone() else { continue };
            let sent = shared.clock.now();
            let found = self.find(Some(&memory), None, settings.one_try()).await?;
            if found.agreed != memory.agreement {
                // Somebody has written the same again. A change compares the revision.
                lock(&shared.memory).iter_mut().for_each(|memory| memory.agreement = found.agreed);
            }
            if found.is_compacted || found.head.revision == 0 {
                // A new head has a revision of its own, at which questions for single tokens can be asked again.
                self.renew_head();
            }
            let head = found.head.revision;
            for (sent, head) in [open.take(), Some((sent, head))].into_iter().flatten() {
                // The heads are compared, so the node's own is this one, or a later one.
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

    /// Asks for a change of nothing but the head.
    fn renew_head(&self) {
        let until = Instant::now() + self.shared.settings.patience;
        // If there is no room, the next beat does it.
        _ = self.shared.jobs.try_send(Job { id: TokenId([0; 16]), change: None, until, reply: None });
    }
}
