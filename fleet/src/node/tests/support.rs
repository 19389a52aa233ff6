//! Nodes in this process. Each has a client of one engine, and the client fails on request.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::super::clock::Clock;
use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::{LeftOut, Step};
use super::super::{Core, Health, Node, NodeError, lock};
use crate::change::{Outcome, Proposal, Tick, TokenId};
use crate::engine::RedisEngine;
pub(super) use crate::engine::tests::done;
use crate::engine::tests::{self as engine_tests};
use crate::log::{
    Appended, EngineError, Epoch, Head, Joining, Log, Message, MessageId, Place, SnapshotInfo, Snapshots,
};

/// The longest wait for something that must happen sooner or later, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(60);

/// The time at which the tests begin, in seconds since 1970.
pub(super) const BEGIN: u64 = 1_800_000_000;

#[track_caller]
pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// An engine, and the time that its clock and those of all machines show.
#[derive(Clone)]
pub(super) struct Engine {
    pub(super) server: Arc<engine_tests::Engine>,
    time: Arc<Mutex<u64>>,
    clocks: Arc<Mutex<Vec<Clock>>>,
}

/// An engine whose clock is fixed at the time when the tests begin. `None` if it is not installed.
pub(super) fn engine() -> Option<Engine> {
    let server = engine_tests::Engine::start(&["--appendfsync", "no"])?;
    server.set_time(BEGIN * 1000);
    Some(Engine { server, time: Arc::new(Mutex::new(BEGIN)), clocks: Arc::default() })
}

impl Engine {
    /// A client that leaves out these steps.
    pub(super) fn without(&self, left_out: &[engine_tests::Step]) -> Arc<Client> {
        Client::new(RedisEngine::edited(self.server.settings(), left_out, true).unwrap())
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.without(&[])
    }

    pub(super) fn time(&self) -> u64 {
        *lock(&self.time)
    }

    /// Lets time pass by all clocks: the engine's, and those of all nodes.
    pub(super) fn pass(&self, time: Duration) {
        *lock(&self.time) += time.as_secs();
        lock(&self.clocks).iter().for_each(|clock| clock.pass(time));
        self.server.set_time(self.time() * 1000);
    }

    /// The engine's clock alone jumps by this much.
    pub(super) fn jump(&self, seconds: i64) {
        self.server.set_time(self.time().wrapping_add_signed(seconds) * 1000);
    }

    pub(super) fn say<T: redis::FromRedisValue>(&self, line: &str) -> T {
        self.server.say(line)
    }
}

type Delayed = (Place, MessageId, Vec<Proposal>, u64, u64);

/// A node's client of the engine.
pub(super) struct Client {
    pub(super) engine: RedisEngine,
    /// No call is answered.
    fails: AtomicBool,
    /// So many appends are done, and their answers get lost.
    pub(super) loses_answers: AtomicUsize,
    /// Its reader gets no messages, as if they were on their way.
    holds_messages: AtomicBool,
    /// Its appends stay on their way until [`arrive`](Self::arrive) is called.
    pub(super) delays_appends: AtomicBool,
    delayed: Mutex<Vec<Delayed>>,
    /// What happens after the first part of the record is read.
    pub(super) amid_records: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// A read of the snapshot at this position returns one wrong byte.
    pub(super) damaged: AtomicU64,
    /// The list has a wrong digest for the snapshot at this position.
    pub(super) wrong_digest: AtomicU64,
}

impl Client {
    fn new(engine: RedisEngine) -> Arc<Self> {
        Arc::new(Self {
            engine,
            fails: AtomicBool::new(false),
            loses_answers: AtomicUsize::new(0),
            holds_messages: AtomicBool::new(false),
            delays_appends: AtomicBool::new(false),
            delayed: Mutex::default(),
            amid_records: Mutex::default(),
            damaged: AtomicU64::new(0),
            wrong_digest: AtomicU64::new(0),
        })
    }

    /// The appends that were on their way reach the engine.
    pub(super) fn arrive(&self) {
        for (known, id, proposals, before, latest) in std::mem::take(&mut *lock(&self.delayed)) {
            let _ = done(self.engine.append(known, id, &proposals, before, latest));
        }
    }

    pub(super) fn hold_messages(&self, holds: bool) {
        self.holds_messages.store(holds, Ordering::SeqCst);
    }

    pub(super) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    fn reach(&self) -> Result<(), EngineError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(EngineError::Unreachable("a test says so".into())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Log for Client {
    async fn agree(&self, joining: &Joining<'_>) -> Result<Head, EngineError> {
        self.reach()?;
        self.engine.agree(joining).await
    }

    async fn concerns(&self) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    async fn word(&self, known: Place, latest: u64) -> Result<Head, EngineError> {
        self.reach()?;
        self.engine.word(known, latest).await
    }

    async fn append(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
        latest: u64,
    ) -> Result<Appended, EngineError> {
        self.reach()?;
        if self.delays_appends.load(Ordering::SeqCst) {
            lock(&self.delayed).push((known, id, proposals.to_vec(), before, latest));
            return Err(EngineError::Unreachable("the message is on its way".into()));
        }
        let appended = self.engine.append(known, id, proposals, before, latest).await;
        let loses = |left: usize| left.checked_sub(1);
        match self.loses_answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, loses) {
            Ok(_) => Err(EngineError::Unreachable("the answer is lost".into())),
            Err(_) => appended,
        }
    }

    async fn read(&self, after: Place, _: Duration) -> Result<Vec<Message>, EngineError> {
        self.reach()?;
        let quickly = Duration::from_millis(2);
        if self.holds_messages.load(Ordering::SeqCst) {
            tokio::time::sleep(quickly).await;
            return Ok(Vec::new());
        }
        self.engine.read(after, quickly).await
    }

    async fn revoked_until(&self, known: Place, tokens: &[TokenId]) -> Result<Vec<Option<u64>>, EngineError> {
        self.reach()?;
        self.engine.revoked_until(known, tokens).await
    }

    async fn records(&self, known: Place, cursor: u64) -> Result<(u64, Vec<(TokenId, Tick)>), EngineError> {
        let records = self.engine.records(known, cursor).await;
        if let Some(happening) = lock(&self.amid_records).take() {
            happening();
        }
        records
    }

    async fn trim(&self, oldest: Place) -> Result<(), EngineError> {
        self.engine.trim(oldest).await
    }

    async fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        self.reach()?;
        self.engine.compare(at, node, digest).await
    }

    async fn accept(&self) -> Result<Option<String>, EngineError> {
        self.engine.accept().await
    }
}

#[async_trait]
impl Snapshots for Client {
    async fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        let mut infos = self.engine.list(epoch).await?;
        for info in &mut infos {
            if info.place.position == self.wrong_digest.load(Ordering::SeqCst) {
                info.digest ^= 1;
            }
        }
        Ok(infos)
    }

    async fn chunk(&self, key: &str, number: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let mut chunk = self.engine.chunk(key, number).await?;
        let damaged = format!("{}:", self.damaged.load(Ordering::SeqCst));
        if let Some(chunk) = chunk.as_mut().filter(|_| key.starts_with(&damaged)) {
            let middle = chunk.len() / 2;
            chunk[middle] ^= 1;
        }
        Ok(chunk)
    }

    async fn put(&self, place: Place, key: &str, number: usize, chunk: Vec<u8>) -> Result<(), EngineError> {
        self.engine.put(place, key, number, chunk).await
    }

    async fn finish(&self, info: &SnapshotInfo, chunks: usize, keep: usize) -> Result<(), EngineError> {
        self.engine.finish(info, chunks, keep).await
    }

    async fn forget(&self, key: &str) -> Result<(), EngineError> {
        self.engine.forget(key).await
    }

    async fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError> {
        self.engine.lease(node, time).await
    }

    async fn give_back(&self, node: &str) -> Result<(), EngineError> {
        self.engine.give_back(node).await
    }
}

/// A node of a fleet, with everything that a test does to it.
pub(super) struct Member {
    node: Node,
    pub(super) client: Arc<Client>,
}

impl Member {
    pub(super) fn start(name: &str, engine: &Engine, left_out: &[Step]) -> Self {
        Self::start_with(quick(name), engine, engine.client(), left_out)
    }

    pub(super) fn start_with(settings: Settings, engine: &Engine, client: Arc<Client>, left_out: &[Step]) -> Self {
        Self::try_start(settings, engine, client, left_out).unwrap()
    }

    pub(super) fn try_start(
        settings: Settings,
        engine: &Engine,
        client: Arc<Client>,
        left_out: &[Step],
    ) -> Result<Self, String> {
        let clock = Clock::default();
        *clock.fixed.lock().unwrap() = Some(engine.time() * 1000);
        lock(&engine.clocks).push(clock.clone());
        let dyn_client = Arc::clone(&client) as Arc<_>;
        let starting = Node::start_with(settings, dyn_client, LeftOut(left_out.to_vec()), clock);
        Ok(Self { node: done(starting)?, client })
    }

    /// A node that is ready.
    #[track_caller]
    pub(super) fn ready(name: &str, engine: &Engine, left_out: &[Step]) -> Self {
        let member = Self::start(name, engine, left_out);
        member.wait_until(State::Ready);
        member
    }

    pub(super) fn node(&self) -> &Core {
        &self.node.core
    }

    pub(super) fn health(&self) -> Health {
        self.node.health()
    }

    pub(super) fn state(&self) -> State {
        self.health().state
    }

    #[track_caller]
    pub(super) fn wait_until(&self, state: State) {
        wait_for(&format!("{} to be {state}: {:?}", self.node().name, self.health()), || self.state() == state);
    }

    /// The reason of the last time that the node entered this state, if it ever did.
    pub(super) fn was(&self, state: State) -> Option<String> {
        self.health().history.into_iter().rev().find(|past| past.state == state).map(|past| past.why)
    }

    pub(super) fn answer(&self, token: &str) -> Answer {
        self.node().answer(self.node().hash(token))
    }

    pub(super) fn revoked_until(&self, token: &str) -> Result<Option<u64>, NodeError> {
        done(self.node.revoked_until(token))
    }

    pub(super) fn try_revoke(&self, token: &str, seconds: u64) -> Result<Outcome, NodeError> {
        let (until, hash) = (BEGIN + seconds, self.node().hash(token));
        let token = super::super::token_id(token);
        let end = self.node().settings.end(until);
        done(self.node().publish(Proposal::Revoke { token, hash, until, end })).map(|(outcome, _)| outcome)
    }

    #[track_caller]
    pub(super) fn revoke(&self, token: &str, seconds: u64) -> Outcome {
        self.try_revoke(token, seconds).unwrap()
    }

    pub(super) fn try_restore(&self, token: &str) -> Result<Outcome, NodeError> {
        match done(self.node.restore(token))? {
            true => Ok(Outcome::Restored),
            false => Ok(Outcome::NotRevoked),
        }
    }

    #[track_caller]
    pub(super) fn restore(&self, token: &str) -> Outcome {
        self.try_restore(token).unwrap()
    }

    pub(super) fn joins(&self) -> u64 {
        self.node().tallies.joins.get()
    }

    /// The digest at the last tick, and its position.
    pub(super) fn digest(&self) -> Option<(u64, u64)> {
        *lock(&self.node().digest)
    }

    /// The positions of the snapshots, the newest first.
    pub(super) fn snapshots(&self) -> Vec<u64> {
        let Some(known) = self.node().known_place() else { return Vec::new() };
        let infos = done(self.client.engine.list(known.epoch)).unwrap_or_default();
        infos.into_iter().map(|info| info.place.position).collect()
    }

    /// The first message that the log still has.
    pub(super) fn first(&self) -> u64 {
        self.node().known().map_or(0, |known| known.head.first)
    }
}

/// Lets some seconds pass, one by one. All these nodes apply the tick of each.
#[track_caller]
pub(super) fn pass(engine: &Engine, seconds: u64, nodes: &[&Member]) {
    for _ in 0..seconds {
        engine.pass(Duration::from_secs(1));
        let tick = engine.time();
        wait_for("all nodes to hear of the tick", || {
            nodes
                .iter()
                .all(|member| member.node().life.load().as_ref().is_some_and(|life| life.filter.now() >= Some(tick)))
        });
    }
}

/// Asserts that all nodes are ready, and that they have the same digest at the next tick.
#[track_caller]
pub(super) fn alike(engine: &Engine, nodes: &[&Member]) {
    nodes.iter().for_each(|member| member.wait_until(State::Ready));
    // A keeper that was busy leaves out a digest.
    wait_for("all nodes to have the same digest", || {
        pass(engine, 1, nodes);
        thread::sleep(Duration::from_millis(5));
        let digests: Vec<_> = nodes.iter().map(|member| member.digest()).collect();
        digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
    });
    nodes.iter().for_each(|member| member.wait_until(State::Ready));
}
