//! Nodes in this process. Each has a client of one engine in memory, and the client fails on request.

use std::future::Future;
use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::super::clock::Clock;
use super::super::life::Answer;
use super::super::page::Health;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::{LeftOut, Step};
use super::super::{Node, Started, Unavailable, lock};
use crate::change::{Agreement, Outcome, Proposal, TokenId};
use crate::engine::memory::MemoryEngine;
use crate::log::{
    Appended, Content, EngineError, Epoch, Follower, Head, Log, Message, MessageId, Place, SnapshotInfo, Snapshots,
};

/// The longest wait for something that must happen sooner or later, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(60);

/// The time at which the tests begin, in seconds since 1970.
pub(super) const BEGIN: u64 = 1_800_000_000;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());

/// Runs the future to its end.
pub(super) fn done<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

#[track_caller]
pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

type Delayed = (Place, MessageId, Vec<Proposal>, u64);

/// A node's client of the engine.
pub(super) struct Client {
    pub(super) engine: MemoryEngine,
    /// Its follower gets no messages, as if they were on their way.
    pub(super) holds_messages: Arc<AtomicBool>,
    /// Its appends stay on their way until [`arrive`](Self::arrive) is called.
    pub(super) delays_appends: AtomicBool,
    delayed: Mutex<Vec<Delayed>>,
    /// A read of the snapshot at this position returns one wrong byte.
    pub(super) damaged: AtomicU64,
    /// The list has a wrong digest for the snapshot at this position.
    pub(super) wrong_digest: AtomicU64,
}

impl Client {
    pub(super) fn new(engine: MemoryEngine) -> Arc<Self> {
        let (damaged, wrong_digest) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self {
            engine,
            holds_messages: Arc::default(),
            delays_appends: AtomicBool::new(false),
            delayed: Mutex::default(),
            damaged,
            wrong_digest,
        })
    }

    /// The appends that were on their way reach the engine.
    pub(super) fn arrive(&self) {
        for (known, id, proposals, before) in std::mem::take(&mut *lock(&self.delayed)) {
            let _ = self.engine.append_before(known, id, &proposals, before);
        }
    }

    pub(super) fn hold_messages(&self, holds: bool) {
        self.holds_messages.store(holds, Ordering::SeqCst);
    }
}

impl Log for Client {
    fn agree(&self, agreement: &Agreement) -> Result<Head, EngineError> {
        self.engine.agree(agreement)
    }

    fn concerns(&self) -> Result<Vec<String>, EngineError> {
        self.engine.concerns()
    }

    fn head(&self, epoch: Epoch) -> Result<Head, EngineError> {
        self.engine.head(epoch)
    }

    fn append_before(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
    ) -> Result<Appended, EngineError> {
        if self.delays_appends.load(Ordering::SeqCst) {
            lock(&self.delayed).push((known, id, proposals.to_vec(), before));
            return Err(EngineError::Unreachable("the message is on its way".into()));
        }
        self.engine.append_before(known, id, proposals, before)
    }

    fn append_tick(&self, known: Place) -> Result<Head, EngineError> {
        self.engine.append_tick(known)
    }

    fn follow(&self, after: Place) -> Result<Box<dyn Follower>, EngineError> {
        let (holds, follower) = (Arc::clone(&self.holds_messages), self.engine.follow(after)?);
        Ok(Box::new(Holding { holds, follower }))
    }

    fn revoked_until(&self, known: Place, token: TokenId) -> Result<Option<u64>, EngineError> {
        self.engine.revoked_until(known, token)
    }

    fn trim(&self, through: Place) -> Result<(), EngineError> {
        self.engine.trim(through)
    }

    fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        self.engine.compare(at, node, digest)
    }
}

struct Holding {
    holds: Arc<AtomicBool>,
    follower: Box<dyn Follower>,
}

impl Follower for Holding {
    fn next(&mut self, _: Duration) -> Result<Vec<Message>, EngineError> {
        let quickly = Duration::from_millis(2);
        if self.holds.load(Ordering::SeqCst) {
            thread::sleep(quickly);
            return Ok(Vec::new());
        }
        self.follower.next(quickly)
    }
}

impl Snapshots for Client {
    fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        let mut infos = self.engine.list(epoch)?;
        for info in &mut infos {
            if info.place.position == self.wrong_digest.load(Ordering::SeqCst) {
                info.digest ^= 1;
            }
        }
        Ok(infos)
    }

    fn read(&self, info: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError> {
        let mut reader = self.engine.read(info)?;
        if info.place.position != self.damaged.load(Ordering::SeqCst) {
            return Ok(reader);
        }
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(EngineError::Content)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn write(
        &self,
        place: Place,
        digest: u64,
        node: &str,
        keep: usize,
        content: &mut Content<'_>,
    ) -> Result<SnapshotInfo, EngineError> {
        self.engine.write(place, digest, node, keep, content)
    }

    fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError> {
        self.engine.lease(node, time)
    }

    fn give_back(&self, node: &str) -> Result<(), EngineError> {
        self.engine.give_back(node)
    }
}

/// An engine whose clock is fixed at the time when the tests begin.
pub(super) fn engine() -> MemoryEngine {
    let engine = MemoryEngine::new();
    engine.set_time(BEGIN * 1000);
    engine
}

/// A node of a fleet, with everything that a test does to it.
pub(super) struct Member {
    started: Started,
    pub(super) client: Arc<Client>,
    pub(super) clock: Clock,
}

impl Member {
    pub(super) fn start(name: &str, engine: &MemoryEngine, left_out: &[Step]) -> Self {
        Self::start_with(quick(name), Client::new(engine.client()), left_out)
    }

    pub(super) fn start_with(settings: Settings, client: Arc<Client>, left_out: &[Step]) -> Self {
        let clock = Clock::default();
        let engine = Arc::clone(&client) as Arc<_>;
        let started = Node::start_with(settings, engine, LeftOut(left_out.to_vec()), clock.clone()).unwrap();
        Self { started, client, clock }
    }

    /// A node that is ready.
    pub(super) fn ready(name: &str, engine: &MemoryEngine, left_out: &[Step]) -> Self {
        let member = Self::start(name, engine, left_out);
        member.wait_until(State::Ready);
        member
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        &self.started.node
    }

    pub(super) fn health(&self) -> Health {
        Health::of(self.node())
    }

    pub(super) fn state(&self) -> State {
        self.health().state
    }

    #[track_caller]
    pub(super) fn wait_until(&self, state: State) {
        wait_for(&format!("{} to be {state}: {:?}", self.node().settings.node, self.health()), || {
            self.state() == state
        });
    }

    /// The reason of the last time that the node entered this state, if it ever did.
    pub(super) fn was(&self, state: State) -> Option<String> {
        self.health().history.into_iter().rev().find(|past| past.state == state).map(|past| past.why)
    }

    pub(super) fn answer(&self, token: &str) -> Answer {
        self.node().answer(self.node().hash(token))
    }

    pub(super) fn revoked_until(&self, token: &str) -> Result<Option<u64>, Unavailable> {
        match self.answer(token) {
            Answer::Absent => Ok(None),
            answer => self.node().asked(token, answer),
        }
    }

    #[track_caller]
    pub(super) fn revoke(&self, token: &str, seconds: u64) -> Outcome {
        done(self.node().revoke(token, BEGIN + seconds)).unwrap().0
    }

    #[track_caller]
    pub(super) fn restore(&self, token: &str) -> Outcome {
        done(self.node().restore(token)).unwrap().0
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
        let Some(known) = self.node().known() else { return Vec::new() };
        let infos = self.client.engine.list(known.place.epoch).unwrap_or_default();
        infos.into_iter().map(|info| info.place.position).collect()
    }
}

/// Lets some seconds pass by the engine's clock, one by one. All nodes apply the tick of each.
#[track_caller]
pub(super) fn pass(engine: &MemoryEngine, time: &mut u64, seconds: u64, nodes: &[&Member]) {
    for _ in 0..seconds {
        *time += 1;
        engine.set_time(*time * 1000);
        let tick = *time;
        wait_for("all nodes to hear of the tick", || {
            nodes
                .iter()
                .all(|member| member.node().life.load().as_ref().is_some_and(|life| life.filter.now() >= Some(tick)))
        });
    }
}

/// Asserts that all nodes are ready, and that they have the same digest at the next tick.
#[track_caller]
pub(super) fn alike(engine: &MemoryEngine, time: &mut u64, nodes: &[&Member]) {
    nodes.iter().for_each(|member| member.wait_until(State::Ready));
    // A keeper that was busy leaves out a digest.
    wait_for("all nodes to have the same digest", || {
        pass(engine, time, 1, nodes);
        thread::sleep(Duration::from_millis(5));
        let digests: Vec<_> = nodes.iter().map(|member| member.digest()).collect();
        digests.iter().all(|digest| digest.is_some() && *digest == digests[0])
    });
    nodes.iter().for_each(|member| member.wait_until(State::Ready));
}
