//! A node joins its fleet and follows it: one task, over one connection at a time.
//!
//! To *join* is to read all tokens at one revision, and to follow the changes from the next one on. Several times a second
//! the node asks the same member for its *word*, a transaction of a quorum that reads the head twice: as it is now, and as it
//! was at the revision that the node has applied.
//!
//! - The head at the node's own revision is the one that it knows: so this is the history that it knows. After a restore
//!   from a backup there is no such revision, or another head at it.
//! - The head now was changed at a revision that the node's watch has delivered, with that value. So the node has
//!   everything that was acknowledged before the question was sent, and is ready for `stale-after` from then on.
//!
//! A cluster that has another history has lost what the node knew. The node says so in the cluster, all nodes stop, and
//! wait until an operator accepts it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::Streaming;

use crate::apply::apply;
use crate::clock::Moment;
use crate::etcd::messages::request_op::Request;
use crate::etcd::messages::{TxnResponse, WatchCreateRequest, WatchResponse};
use crate::etcd::{Fault, put, range, response_range, revision, same, txn};
use crate::filter::Known;
use crate::join::join;
use crate::keys::{History, TokenId, after};
use crate::link::{End, Link};
use crate::shared::{Head, Job, Memory, Phase, Shared, What, count, lock};

/// A fleet without changes makes an empty one this often, if others write into the cluster: a compaction would pass it
/// otherwise.
const TOUCH: Duration = Duration::from_secs(30);

/// How many tokens that somebody deleted are put back at once.
const MEND: usize = 500;

/// How long a node that waits, or that was refused, does so before it looks again.
const LOOK: Duration = Duration::from_millis(300);

/// Follows the fleet until the task is dropped.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let pauses = || {
        ExponentialBuilder::default().with_min_delay(Duration::from_millis(10)).with_max_delay(LOOK).without_max_times()
    };
    let mut pause = pauses().build();
    let (mut member, mut capacity, mut has_agreed) = (0, shared.settings.capacity, false);
    loop {
        let began = Instant::now();
        match over(&shared, member, &mut capacity, &mut has_agreed).await {
            End::Fault(why) => {
                if takes!(shared.settings, NextMember) {
                    member += 1;
                }
                // It keeps its filter, and says what it does.
                let phase = if shared.known.load().is_some() { Phase::Following } else { Phase::Joining };
                shared.enter(phase, why);
            }
            End::Join(why) => {
                shared.known.store(None);
                shared.enter(Phase::Joining, format!("it joins again: {why}"));
            }
            End::Refused(why) => {
                shared.known.store(None);
                shared.enter(Phase::Refused, why);
                sleep(LOOK).await;
            }
            End::Lost(why) => {
                shared.known.store(None);
                count(&shared.tallies.losses);
                let why = format!("the cluster has lost something that node {} knew: {why}", shared.settings.node);
                shared.enter(Phase::Waiting, &why);
                announce(&shared, why).await;
            }
            End::Waiting(why) => {
                shared.known.store(None);
                shared.enter(Phase::Waiting, format!("{why}. It waits until an operator runs `fleet accept`"));
                sleep(LOOK).await;
            }
        }
        if began.elapsed() > 4 * LOOK {
            pause = pauses().build();
        }
        sleep(pause.next().unwrap_or(LOOK)).await;
    }
}

/// Says in the cluster that it has lost something, unless an operator has accepted a loss since the node joined.
async fn announce(shared: &Shared, why: String) {
    let remembered = lock(&shared.memory).as_ref().map_or(0, |memory| memory.accepted);
    let key = shared.names.history();
    loop {
        let soon = Instant::now() + Duration::from_secs(2);
        let said = async {
            let answer = shared.client.txn(&txn(vec![], vec![range(key.clone(), 0).into()], vec![]), soon).await?;
            let found = response_range(&answer, 0).kvs.first().cloned().unwrap_or_default();
            let history = History::parse((found.mod_revision > 0).then_some(&found.value[..]));
            if history.lost.is_some() || history.accepted > remembered {
                return Ok(true);
            }
            let lost = History { accepted: history.accepted, lost: Some(why.clone()) };
            let unchanged = same(key.clone(), found.mod_revision);
            let saying = txn(vec![unchanged], vec![put(key.clone(), lost.value(), 0)], vec![]);
            Ok::<_, Fault>(shared.client.txn(&saying, soon).await?.succeeded)
        };
        match said.await {
            // What the node knew is the operator's question now.
            Ok(true) => return *lock(&shared.memory) = None,
            Ok(false) => {}
            Err(fault) => {
                tracing::error!("the loss can't be announced to the other nodes: {fault}");
                sleep(LOOK).await;
            }
        }
    }
}

/// Joins over a connection, if the node has no filter, and follows until something is wrong.
async fn over(shared: &Arc<Shared>, member: usize, capacity: &mut usize, has_agreed: &mut bool) -> End {
    let (channel, url) = shared.client.connection(member);
    let link = Link { shared: Arc::clone(shared), channel, url };
    let ended = async {
        if !*has_agreed {
            link.agree().await?;
            *has_agreed = true;
        }
        let known = match shared.known.load_full() {
            Some(known) => {
                link.is_same_history().await?;
                known
            }
            None => join(&link, capacity).await?,
        };
        let mut session = Session { link, heads: VecDeque::new(), event: Instant::now() };
        session.follow(&known, capacity).await
    };
    match ended.await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

enum Never {}

/// The time over which a node follows the fleet over one connection.
struct Session {
    link: Link,
    /// The last heads, as the watch has delivered them.
    heads: VecDeque<Head>,
    /// When the last event came.
    event: Instant,
}

/// What the cluster has said, and when it was asked.
struct Word {
    sent: Moment,
    memory: Memory,
    answer: Result<TxnResponse, Fault>,
}

/// The question of a word whose answer names a head that the watch has not delivered yet.
struct Open {
    sent: Moment,
    head: Head,
    since: Instant,
}

impl Session {
    /// Applies changes as they come, and asks for words.
    async fn follow(&mut self, known: &Arc<Known>, capacity: &mut usize) -> Result<Never, End> {
        let shared = Arc::clone(&self.link.shared);
        let one_try = shared.settings.one_try();
        let mut watch = self.watch(known.applied() + 1).await?;
        let mut ticks = interval(shared.settings.beat());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asking: Option<Pin<Box<dyn Future<Output = Word> + Send>>> = None;
        let mut open: Option<Open> = None;
        loop {
            tokio::select! {
                message = watch.message() => {
                    let message = message.map_err(|status| End::Fault(format!("{}: the watch has ended: {}", self.link.url, status.message())))?;
                    let message = message.ok_or_else(|| End::Fault(format!("{}: the watch has ended", self.link.url)))?;
                    if message.canceled {
                        return Err(match message.compact_revision {
                            0 => End::Fault(format!("{}: etcd has ended the watch: {}", self.link.url, message.cancel_reason)),
                            at if takes!(shared.settings, JoinAgain) => End::Join(format!("etcd was compacted up to revision {at}")),
                            at => End::Fault(format!("etcd was compacted up to revision {at}")),
                        });
                    }
                    if !message.events.is_empty() {
                        self.event = Instant::now();
                    }
                    if apply(&shared, &mut self.heads, known, &message).is_err() {
                        *capacity = capacity.saturating_mul(2);
                        return Err(End::Join("the filter is full".into()));
                    }
                }
                word = async { asking.as_mut().unwrap().await }, if asking.is_some() => {
                    asking = None;
                    open = self.hear(known, word)?;
                }
                _ = ticks.tick() => {
                    if asking.is_none() && open.is_none() {
                        asking = Some(Box::pin(self.word(known)));
                    }
                    if !known.advance(&shared.settings, &shared.clock) {
                        return Err(End::Join("its clock has been set, or another node's clock is wrong".into()));
                    }
                    self.mend(known);
                }
            }
            if let Some(waits) = &open {
                if known.applied() >= waits.head.revision {
                    self.settle(known, waits.sent, &waits.head)?;
                    open = None;
                } else if waits.since.elapsed() > 3 * one_try {
                    return Err(End::Fault(format!("{}: its watch is behind", self.link.url)));
                }
            }
        }
    }

    /// Asks for a word.
    fn word(&self, known: &Known) -> impl Future<Output = Word> + Send + use<> {
        let shared = Arc::clone(&self.link.shared);
        let memory = lock(&shared.memory).clone().unwrap_or_else(|| Memory {
            revision: known.applied(),
            head: Head::default(),
            accepted: 0,
        });
        let mut question = self.link.question(Some(&memory));
        if !takes!(shared.settings, Quorum) {
            for op in &mut question {
                if let Some(Request::Range(range)) = &mut op.request {
                    range.serializable = true;
                }
            }
        }
        let (channel, url) = (self.link.channel.clone(), self.link.url.clone());
        async move {
            let (sent, limit) = (shared.clock.now(), shared.settings.one_try());
            let question = txn(vec![], question, vec![]);
            let answer = shared.client.call(&channel, &url, "/etcdserverpb.KV/Txn", question, limit).await;
            Word { sent, memory, answer }
        }
    }

    /// Decides what a word means. Returns it if the watch has to deliver its head first.
    fn hear(&mut self, known: &Known, word: Word) -> Result<Option<Open>, End> {
        let Word { sent, memory, answer } = word;
        let answer = match answer {
            // The watch goes on, so this is the history that the node knows. A new head comes after the compaction.
            Err(Fault::Compacted) => {
                self.touch();
                return Ok(None);
            }
            Err(fault) => return Err(self.link.unknown_revision(fault, &memory)),
            Ok(answer) => answer,
        };
        self.link.compare(&answer, Some(&memory))?;
        let head = Head::of(&response_range(&answer, 0));
        if head.revision == 0 {
            // A new fleet, or somebody has deleted it: then it says nothing.
            self.touch();
            return Ok(None);
        }
        if revision(&answer) > known.applied() && self.event.elapsed() > TOUCH {
            self.touch();
        }
        Ok(Some(Open { sent, head, since: Instant::now() }))
    }

    /// The node has applied the head that a word has named.
    fn settle(&self, known: &Known, sent: Moment, head: &Head) -> Result<(), End> {
        // Older ones than those that are kept were compared with the word itself, or the next one is.
        let ours = self.heads.iter().find(|known| known.revision == head.revision);
        let is_first = lock(&self.link.shared.memory).as_ref().is_some_and(|memory| memory.head == *head);
        match ours {
            Some(ours) if ours != head && takes!(self.link.shared.settings, History) => {
                Err(End::Lost(format!("revision {} is another change there", head.revision)))
            }
            None if !is_first && takes!(self.link.shared.settings, History) => Ok(()),
            _ => {
                known.extend(sent.plus(self.link.shared.settings.stale_after));
                self.link.shared.enter(Phase::Following, "it has everything");
                Ok(())
            }
        }
    }

    /// Makes an empty change.
    fn touch(&mut self) {
        self.event = Instant::now();
        self.submit(TokenId([0; 16]), What::Touch);
    }

    fn submit(&self, id: TokenId, what: What) {
        let until = Instant::now() + self.link.shared.settings.patience;
        // If there is no room, the next beat does it.
        _ = self.link.shared.jobs.try_send(Job { id, what, until, reply: None });
    }

    /// Puts back what somebody has deleted.
    fn mend(&self, known: &Known) {
        for (id, end) in known.some_missing(MEND) {
            if self.link.shared.is_live(end) {
                self.submit(id, What::Revoke { end });
            } else {
                known.forget(id);
            }
        }
    }

    async fn watch(&self, from: i64) -> Result<Streaming<WatchResponse>, End> {
        let (shared, prefix) = (&self.link.shared, self.link.shared.names.all());
        let create = WatchCreateRequest {
            range_end: after(&prefix).into(),
            key: prefix.into(),
            start_revision: from,
            prev_kv: true,
        };
        Ok(shared.client.watch(&self.link.channel, &self.link.url, create, shared.settings.one_try()).await?)
    }
}
