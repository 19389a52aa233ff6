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
use std::sync::atomic::Ordering;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::Streaming;
use tonic::transport::Channel;

use crate::clock::Moment;
use crate::etcd::messages::event::Kind;
use crate::etcd::messages::request_op::Request;
use crate::etcd::messages::{
    DeleteRangeRequest, Event, RequestOp, TxnRequest, TxnResponse, WatchCreateRequest, WatchResponse,
};
use crate::etcd::{Fault, exists, put, range, range_of, response_range, revision, same, txn};
use crate::filter::Known;
use crate::keys::{ChangeId, History, TokenId, after};
use crate::shared::{Head, Job, Memory, Phase, Shared, What, count, lock};

/// How many tokens are read at once.
const PAGE: i64 = 10_000;

/// How many of the last heads are kept, to compare them with the cluster's word.
const HEADS: usize = 4096;

/// A fleet without changes makes an empty one this often, if others write into the cluster: a compaction would pass it
/// otherwise.
const TOUCH: Duration = Duration::from_secs(30);

/// How many tokens that somebody deleted are put back at once.
const MEND: usize = 500;

/// How long a node that waits, or that was refused, does so before it looks again.
const LOOK: Duration = Duration::from_millis(300);

/// Why a node does not go on over this connection.
enum End {
    /// It goes on over the next one.
    Fault(String),
    /// It must read all tokens again.
    Join(String),
    /// The cluster has lost something that the node knew.
    Lost(String),
    /// Somebody has said so in the cluster.
    Waiting(String),
    Refused(String),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Denied(_) => Self::Refused(fault.to_string()),
            fault => Self::Fault(fault.to_string()),
        }
    }
}

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
    let mut link = Link { shared: Arc::clone(shared), channel, url, heads: VecDeque::new(), event: Instant::now() };
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
            None => link.join(capacity).await?,
        };
        link.follow(&known, capacity).await
    };
    match ended.await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

enum Never {}

/// One connection.
struct Link {
    shared: Arc<Shared>,
    channel: Channel,
    url: String,
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

impl Link {
    async fn ask(&self, question: TxnRequest) -> Result<TxnResponse, Fault> {
        let limit = self.shared.settings.one_try();
        self.shared.client.call(&self.channel, &self.url, "/etcdserverpb.KV/Txn", question, limit).await
    }

    /// Agrees with the other nodes on the settings, and checks that the node has all the rights it needs.
    async fn agree(&self) -> Result<(), End> {
        let names = &self.shared.names;
        let (key, ours) = (names.agreement(), self.shared.settings.agreement());
        // A transaction needs the rights for all that it might do, and this one never does it.
        let tokens = names.tokens();
        let everything = RequestOp::from(Request::DeleteRange(DeleteRangeRequest {
            range_end: after(&tokens).into(),
            key: tokens.into(),
        }));
        let head = names.head();
        let never = vec![exists(head.clone()), same(head.clone(), 0)];
        let never = txn(never, vec![everything, put(names.history(), vec![], 0), put(head, vec![], 0)], vec![]);
        if takes!(self.shared.settings, Rights) {
            self.ask(never).await?;
        }
        let question = txn(
            vec![exists(key.clone())],
            vec![range(key.clone(), 0).into()],
            vec![put(key, ours.clone().into_bytes(), 0)],
        );
        let answer = self.ask(question).await?;
        if !answer.succeeded {
            return Ok(());
        }
        let theirs = response_range(&answer, 0).kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
        match theirs {
            Some(theirs) if theirs != ours => Err(End::Refused(format!(
                "the fleet {:?} has agreed on other settings: {theirs}; this node has {ours}; give it those settings \
                 and that key, or the name of another fleet",
                self.shared.settings.fleet
            ))),
            _ => Ok(()),
        }
    }

    /// The head now, whether the cluster has lost something, and the head at the revision that the node knows.
    fn question(&self, memory: Option<&Memory>) -> Vec<RequestOp> {
        let names = &self.shared.names;
        let mut question = vec![range(names.head(), 0).into(), range(names.history(), 0).into()];
        if let Some(memory) = memory.filter(|_| takes!(self.shared.settings, History)) {
            question.push(range(names.head(), memory.revision).into());
        }
        question
    }

    /// Compares an answer to that question with what the node knows.
    fn compare(&self, answer: &TxnResponse, memory: Option<&Memory>) -> Result<History, End> {
        let history = History::parse(response_range(answer, 1).kvs.first().map(|kv| &kv.value[..]));
        if let Some(lost) = &history.lost {
            return Err(End::Waiting(lost.clone()));
        }
        let Some(memory) = memory else { return Ok(history) };
        if history.accepted > memory.accepted {
            *lock(&self.shared.memory) = None;
            return Err(End::Join("an operator has accepted that the cluster has lost something".into()));
        }
        let there = Head::of(&response_range(answer, 2));
        if takes!(self.shared.settings, History) && (there != memory.head || history.accepted != memory.accepted) {
            let (at, was, is) = (memory.revision, memory.head.revision, there.revision);
            return Err(End::Lost(format!(
                "at revision {at} its last change was that of revision {was}, and now another one, of {is}"
            )));
        }
        Ok(history)
    }

    /// What it means that the head at the node's own revision can't be read.
    fn unknown_revision(&self, fault: Fault, memory: &Memory) -> End {
        match fault {
            Fault::Future if takes!(self.shared.settings, History) => {
                End::Lost(format!("it has never come to revision {}", memory.revision))
            }
            fault => fault.into(),
        }
    }

    /// Whether the member has the history that the node knows.
    async fn is_same_history(&self) -> Result<(), End> {
        let Some(memory) = lock(&self.shared.memory).clone() else { return Ok(()) };
        match self.ask(txn(vec![], self.question(Some(&memory)), vec![])).await {
            Ok(answer) => self.compare(&answer, Some(&memory)).map(drop),
            Err(Fault::Compacted) if takes!(self.shared.settings, JoinAgain) => {
                Err(End::Join(format!("revision {} was compacted", memory.revision)))
            }
            Err(fault) => Err(self.unknown_revision(fault, &memory)),
        }
    }

    /// Reads all tokens at one revision.
    async fn join(&mut self, capacity: &mut usize) -> Result<Arc<Known>, End> {
        let (shared, settings) = (Arc::clone(&self.shared), &self.shared.settings);
        let memory = lock(&shared.memory).clone();
        let tokens = shared.names.tokens();
        // The rest of the pages may take any time, but the first question is the one that counts.
        let ask = async |memory: Option<&Memory>| {
            let mut question = self.question(memory);
            question.push(range_of(&tokens, tokens.clone(), PAGE, 0).into());
            self.page(txn(vec![], question, vec![])).await
        };
        let (answer, memory) = match (ask(memory.as_ref()).await, memory) {
            // What the node knew is too long ago to be compared. If the cluster had lost something, the other nodes would
            // have said so in it.
            (Err(Fault::Compacted), Some(_)) => (ask(None).await?, None),
            (Err(fault), Some(memory)) => return Err(self.unknown_revision(fault, &memory)),
            (answer, memory) => (answer?, memory),
        };
        let history = self.compare(&answer, memory.as_ref())?;
        let mut page = response_range(&answer, answer.responses.len() - 1);
        let at = revision(&answer);
        *capacity = (*capacity).max(usize::try_from(page.count).unwrap_or(usize::MAX));
        let known = Known::new(settings, &shared.clock, *capacity, at)
            .map_err(|error| End::Fault(format!("there is no memory for the filter: {error}")))?;
        loop {
            for kv in &page.kvs {
                let Some(id) = shared.names.id(&kv.key) else {
                    count(&shared.tallies.foreign);
                    continue;
                };
                let end = shared.secret.end(id, &kv.value).unwrap_or_else(|| {
                    count(&shared.tallies.foreign);
                    tracing::error!(%id, "nobody of the fleet has written this record; requests of its token get 503");
                    // So that the filter says "perhaps", for as long as it can.
                    u64::MAX
                });
                if known.put(settings, shared.secret.hash(id), end, None).is_err() {
                    *capacity = capacity.saturating_mul(2);
                    return Err(End::Join("the filter was too small".into()));
                }
            }
            let Some(last) = page.kvs.last().filter(|_| page.more && takes!(settings, Pages)) else { break };
            let from = [&last.key[..], &[0]].concat();
            let question = txn(vec![], vec![range_of(&tokens, from, PAGE, at).into()], vec![]);
            page = response_range(&self.page(question).await?, 0);
        }
        let memory = Memory { revision: at, head: Head::of(&response_range(&answer, 0)), accepted: history.accepted };
        *lock(&shared.memory) = Some(memory);
        let known = Arc::new(known);
        shared.known.store(Some(Arc::clone(&known)));
        // Whoever waits for a change that came before this revision would wait in vain.
        lock(&shared.pending).clear();
        count(&shared.tallies.joins);
        shared.enter(Phase::Following, format!("it has joined at revision {at}"));
        Ok(known)
    }

    /// A page of tokens may take longer than a word.
    async fn page(&self, question: TxnRequest) -> Result<TxnResponse, Fault> {
        let limit = 10 * self.shared.settings.one_try();
        self.shared.client.call(&self.channel, &self.url, "/etcdserverpb.KV/Txn", question, limit).await
    }

    /// Applies changes as they come, and asks for words.
    async fn follow(&mut self, known: &Arc<Known>, capacity: &mut usize) -> Result<Never, End> {
        let shared = Arc::clone(&self.shared);
        let one_try = shared.settings.one_try();
        let mut watch = self.watch(known.applied() + 1).await?;
        let mut ticks = interval(shared.settings.beat());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asking: Option<Pin<Box<dyn Future<Output = Word> + Send>>> = None;
        let mut open: Option<Open> = None;
        loop {
            tokio::select! {
                message = watch.message() => {
                    let message = message.map_err(|status| End::Fault(format!("{}: the watch has ended: {}", self.url, status.message())))?;
                    let message = message.ok_or_else(|| End::Fault(format!("{}: the watch has ended", self.url)))?;
                    if message.canceled {
                        return Err(match message.compact_revision {
                            0 => End::Fault(format!("{}: etcd has ended the watch: {}", self.url, message.cancel_reason)),
                            at if takes!(shared.settings, JoinAgain) => End::Join(format!("etcd was compacted up to revision {at}")),
                            at => End::Fault(format!("etcd was compacted up to revision {at}")),
                        });
                    }
                    if self.apply(known, &message).is_err() {
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
                    return Err(End::Fault(format!("{}: its watch is behind", self.url)));
                }
            }
        }
    }

    /// Asks for a word.
    fn word(&self, known: &Known) -> impl Future<Output = Word> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        let memory = lock(&shared.memory).clone().unwrap_or_else(|| Memory {
            revision: known.applied(),
            head: Head::default(),
            accepted: 0,
        });
        let mut question = self.question(Some(&memory));
        if !takes!(shared.settings, Quorum) {
            for op in &mut question {
                if let Some(Request::Range(range)) = &mut op.request {
                    range.serializable = true;
                }
            }
        }
        let (channel, url) = (self.channel.clone(), self.url.clone());
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
            Err(fault) => return Err(self.unknown_revision(fault, &memory)),
            Ok(answer) => answer,
        };
        self.compare(&answer, Some(&memory))?;
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
        let is_first = lock(&self.shared.memory).as_ref().is_some_and(|memory| memory.head == *head);
        match ours {
            Some(ours) if ours != head && takes!(self.shared.settings, History) => {
                Err(End::Lost(format!("revision {} is another change there", head.revision)))
            }
            None if !is_first && takes!(self.shared.settings, History) => Ok(()),
            _ => {
                known.extend(sent.plus(self.shared.settings.stale_after));
                self.shared.enter(Phase::Following, "it has everything");
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
        let until = Instant::now() + self.shared.settings.patience;
        // If there is no room, the next beat does it.
        _ = self.shared.jobs.try_send(Job { id, what, until, reply: None });
    }

    /// Puts back what somebody has deleted.
    fn mend(&self, known: &Known) {
        for (id, end) in known.some_missing(MEND) {
            if self.shared.is_live(end) {
                self.submit(id, What::Revoke { end });
            } else {
                known.forget(id);
            }
        }
    }

    async fn watch(&self, from: i64) -> Result<Streaming<WatchResponse>, End> {
        let (shared, prefix) = (&self.shared, self.shared.names.all());
        let create = WatchCreateRequest {
            range_end: after(&prefix).into(),
            key: prefix.into(),
            start_revision: from,
            prev_kv: true,
        };
        Ok(shared.client.watch(&self.channel, &self.url, create, shared.settings.one_try()).await?)
    }

    /// Applies all events of a message, one revision after the other.
    fn apply(&mut self, known: &Known, message: &WatchResponse) -> Result<(), crate::filter::NoRoom> {
        let at = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
        for events in message.events.chunk_by(|one, other| at(one) == at(other)) {
            let revision = events.first().map_or(0, at);
            if revision <= known.applied() {
                continue;
            }
            self.event = Instant::now();
            self.apply_revision(known, revision, events)?;
        }
        Ok(())
    }

    fn apply_revision(&mut self, known: &Known, revision: i64, events: &[Event]) -> Result<(), crate::filter::NoRoom> {
        let shared = Arc::clone(&self.shared);
        let (head_key, others) = (shared.names.head(), [shared.names.history(), shared.names.agreement()]);
        let head = events.iter().filter(|event| event.kind() == Kind::Put).filter_map(|event| event.kv.as_ref());
        let head = head.filter(|kv| kv.key == head_key).map(|kv| kv.value.to_vec()).next();
        let change = head.as_deref().and_then(ChangeId::of_head);
        let mut missing = Vec::new();
        for event in events {
            let Some(kv) = &event.kv else { continue };
            let Some(id) = shared.names.id(&kv.key) else {
                if kv.key != head_key && !others.iter().any(|key| kv.key == *key)
                    || kv.key == head_key && change.is_none()
                {
                    count(&shared.tallies.foreign);
                    tracing::error!(key = %kv.key.escape_ascii(), "somebody else changes keys of the fleet");
                }
                continue;
            };
            let before = event.prev_kv.as_ref().and_then(|before| shared.secret.end(id, &before.value));
            let hash = shared.secret.hash(id);
            match event.kind() {
                Kind::Put => match shared.secret.end(id, &kv.value) {
                    Some(end) => {
                        known.put(&shared.settings, hash, end, before)?;
                        known.found(id);
                    }
                    None => {
                        count(&shared.tallies.foreign);
                        tracing::error!(%id, "nobody of the fleet has written this record; requests of its token get 503");
                    }
                },
                // A node has restored it.
                Kind::Delete if change.is_some() => {
                    if let Some(before) = before {
                        known.remove(&shared.settings, hash, before);
                    }
                    known.forget(id);
                }
                // Its lease has ended, or somebody has deleted it.
                Kind::Delete => match before.filter(|end| shared.is_live(*end)) {
                    Some(end) if takes!(shared.settings, Mend) => {
                        count(&shared.tallies.foreign);
                        count(&shared.tallies.mended);
                        tracing::error!(%id, "somebody has deleted the record of a revoked token; it is put back");
                        missing.push((id, end));
                    }
                    _ => {}
                },
            }
        }
        known.miss(&missing);
        if let Some(memory) = &mut *lock(&shared.memory) {
            memory.revision = revision;
            if let Some(value) = &head {
                memory.head = Head { revision, value: value.clone() };
            } else if events.iter().filter_map(|event| event.kv.as_ref()).any(|kv| kv.key == head_key) {
                memory.head = Head::default();
            }
        }
        known.has_applied(revision);
        if let Some(value) = head {
            if self.heads.len() == HEADS {
                self.heads.pop_front();
            }
            self.heads.push_back(Head { revision, value });
        }
        if let Some((id, time)) = change {
            count(&shared.tallies.changes);
            if let Some(waits) = lock(&shared.pending).remove(&id) {
                _ = waits.send(revision);
            } else if known.is_fresh(&shared.clock) {
                let difference = time as i64 - shared.clock.latest() as i64;
                shared.tallies.clock_difference.store(difference, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
