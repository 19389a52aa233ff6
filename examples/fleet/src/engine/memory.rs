//! CONCURRENT: an engine in memory, for quick tests. It does what the real one does, and fails on request.
//!
//! ```text
//! let engine = MemoryEngine::new();   // one client, with an engine of its own
//! let other = engine.client();        // another client of the same engine, with faults of its own
//! engine.fail(true);                  // its calls fail from now on; those of `other` don't
//! ```

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Step;
use super::chunks::{CHUNK, ChunkReader, ChunkWriter, checksum, engine_error};
use crate::change::{Agreement, Change, Outcome, Position, Proposal, Tick, TokenId};
use crate::log::{
    Appended, Content, EngineError, Epoch, Follower, Head, Log, Message, MessageId, Place, SnapshotInfo, Snapshots,
};

/// A follower returns at most this many messages at once.
const AT_ONCE: usize = 1000;

/// A client of an engine in memory.
pub(crate) struct MemoryEngine {
    shared: Arc<Shared>,
    faults: Arc<Mutex<Faults>>,
    left_out: HashSet<Step>,
    /// How long a call waits for an engine that hangs.
    pub(crate) timeout: Duration,
    /// How long an identifier is remembered.
    pub(crate) window: Duration,
    pub(crate) chunk: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signaled when something was appended, lost or trimmed.
    changed: Condvar,
}

#[derive(Default)]
struct Faults {
    failing: bool,
    hanging: bool,
    lost_acknowledgements: u32,
}

#[derive(Default)]
struct State {
    /// In milliseconds since 1970. If `None`, the machine's clock is used.
    time: Option<u64>,
    epochs: u64,
    fleet: Option<Fleet>,
    snapshots: BTreeMap<String, (SnapshotInfo, Chunks)>,
    unfinished: BTreeMap<String, Chunks>,
    lease: Option<(String, u64)>,
}

type Chunks = BTreeMap<usize, Vec<u8>>;

struct Fleet {
    epoch: Epoch,
    agreed: String,
    capacity: u64,
    resolution: u64,
    longest: Tick,
    tick: Tick,
    head: Position,
    messages: VecDeque<Message>,
    record: HashMap<TokenId, Entry>,
    /// How many live entries end at each tick.
    ends: BTreeMap<Tick, i64>,
    answers: HashMap<MessageId, (u64, Appended)>,
    digests: HashMap<Position, BTreeMap<String, u64>>,
}

#[derive(Clone, Copy)]
struct Entry {
    until: u64,
    end: Tick,
}

impl MemoryEngine {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::default(),
            faults: Arc::default(),
            left_out: HashSet::new(),
            timeout: Duration::from_millis(100),
            window: Duration::from_secs(600),
            chunk: CHUNK,
        }
    }

    /// Another client of this engine. Each client has faults of its own.
    pub(crate) fn client(&self) -> Self {
        let Self { timeout, window, chunk, .. } = *self;
        let (shared, left_out) = (Arc::clone(&self.shared), self.left_out.clone());
        Self { shared, faults: Arc::default(), left_out, timeout, window, chunk }
    }

    /// Leaves a step out.
    pub(crate) fn without(mut self, step: Step) -> Self {
        self.left_out.insert(step);
        self
    }

    /// Sets whether this client's calls fail at once, as when the engine is not there.
    pub(crate) fn fail(&self, failing: bool) {
        lock(&self.faults).failing = failing;
        self.wake();
    }

    /// Sets whether this client's calls get no answer, and fail after [`timeout`](Self::timeout).
    pub(crate) fn hang(&self, hanging: bool) {
        lock(&self.faults).hanging = hanging;
        self.wake();
    }

    /// The engine does this client's next appends, but their answers are lost.
    pub(crate) fn lose_acknowledgements(&self, appends: u32) {
        lock(&self.faults).lost_acknowledgements = appends;
    }

    /// Sets the engine's clock, in milliseconds since 1970.
    pub(crate) fn set_time(&self, time: u64) {
        self.state().time = Some(time);
    }

    /// Keeps only the last messages, this many, without telling any client.
    pub(crate) fn cut_log(&self, left: usize) {
        if let Some(fleet) = &mut self.state().fleet {
            let cut = fleet.messages.len().saturating_sub(left);
            fleet.messages.drain(..cut);
        }
        self.wake();
    }

    /// Loses the last messages and their answers, like an engine that has lost its last moments.
    pub(crate) fn lose_end(&self, messages: u64) {
        if let Some(fleet) = &mut self.state().fleet {
            fleet.head -= messages;
            let head = fleet.head;
            fleet.messages.retain(|message| message.position <= head);
            fleet.answers.clear();
        }
        self.wake();
    }

    /// Loses everything.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        *state = State { time: state.time, epochs: state.epochs, ..State::default() };
        drop(state);
        self.wake();
    }

    /// Changes a byte in this chunk of all snapshots, also of those that are being written.
    pub(crate) fn damage_chunk(&self, number: usize) {
        self.with_chunks(|chunks| {
            if let Some(byte) = chunks.get_mut(&number).and_then(|chunk| chunk.first_mut()) {
                *byte ^= 1;
            }
        });
    }

    pub(crate) fn remove_chunk(&self, number: usize) {
        self.with_chunks(|chunks| _ = chunks.remove(&number));
    }

    fn with_chunks(&self, mut change: impl FnMut(&mut Chunks)) {
        let State { snapshots, unfinished, .. } = &mut *self.state();
        snapshots.values_mut().for_each(|(_, chunks)| change(chunks));
        unfinished.values_mut().for_each(change);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    fn wake(&self) {
        self.shared.changed.notify_all();
    }

    fn is_left_out(&self, step: Step) -> bool {
        self.left_out.contains(&step)
    }

    /// Every call begins with this.
    fn ask(&self) -> Result<MutexGuard<'_, State>, EngineError> {
        ask(&self.shared, &self.faults, self.timeout)
    }

    /// The fleet, if it is the one that the caller knows, and the log has at least what the caller knows of it.
    fn fleet<'a>(&self, state: &'a mut State, known: Place) -> Result<&'a mut Fleet, EngineError> {
        let found = state.fleet.as_ref().map(|fleet| Place { epoch: fleet.epoch, position: fleet.head });
        let another = EngineError::AnotherLog { expected: known, found };
        let Some(fleet) = &mut state.fleet else { return Err(another) };
        let is_other = fleet.epoch != known.epoch && !self.is_left_out(Step::Epoch);
        let is_behind = fleet.head < known.position && !self.is_left_out(Step::Known);
        if is_other || is_behind { Err(another) } else { Ok(fleet) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask<'a>(
    shared: &'a Shared,
    faults: &Mutex<Faults>,
    timeout: Duration,
) -> Result<MutexGuard<'a, State>, EngineError> {
    let deadline = Instant::now() + timeout;
    let mut state = lock(&shared.state);
    loop {
        let Faults { failing, hanging, .. } = *lock(faults);
        if failing {
            return Err(EngineError::Unreachable("it was told to fail".into()));
        }
        if !hanging {
            return Ok(state);
        }
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            return Err(EngineError::Unreachable("it was told to hang".into()));
        };
        (state, _) = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
    }
}

impl State {
    fn now(&self) -> u64 {
        self.time.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64)
    }
}

impl Fleet {
    fn head(&self, now: u64) -> Head {
        let Self { epoch, head, tick, .. } = *self;
        Head { epoch, position: head, first: self.first(), tick, now }
    }

    fn first(&self) -> Position {
        self.messages.front().map_or(self.head + 1, |message| message.position)
    }

    fn push(&mut self, changes: Vec<Change>, at: u64, step: u64) {
        self.head += step;
        self.messages.push_back(Message { position: self.head, changes, at });
    }

    fn live(&self) -> u64 {
        self.ends.values().sum::<i64>().try_into().unwrap_or_default()
    }

    fn count(&mut self, end: Tick, plus: i64) {
        *self.ends.entry(end).or_default() += plus;
    }
}

impl MemoryEngine {
    fn advance(&self, fleet: &mut Fleet, now: u64) {
        let tick = (now / 1000 / fleet.resolution) as Tick;
        if tick > fleet.tick || tick != fleet.tick && self.is_left_out(Step::Forward) {
            fleet.tick = tick;
            if !self.is_left_out(Step::Expiry) {
                fleet.ends = fleet.ends.split_off(&(tick + 1));
            }
            fleet.push(vec![Change::Tick { now: tick }], now, self.stride());
        }
    }

    fn stride(&self) -> u64 {
        if self.is_left_out(Step::Density) { 2 } else { 1 }
    }

    /// The outcome of a proposal. Its change is added to `changes`.
    fn decide(&self, fleet: &mut Fleet, proposal: Proposal, changes: &mut Vec<Change>) -> Outcome {
        let tick = fleet.tick;
        let (Proposal::Revoke { token, .. } | Proposal::Restore { token, .. }) = proposal;
        let entry = fleet.record.get(&token).copied();
        let entry = entry.filter(|entry| entry.end > tick || self.is_left_out(Step::Outlived));
        let entry = entry.filter(|_| !self.is_left_out(Step::Record));
        match (proposal, entry) {
            (Proposal::Revoke { until, .. }, Some(entry)) if entry.until >= until => {
                Outcome::AlreadyRevoked { until: entry.until }
            }
            (Proposal::Revoke { end, .. }, _) if end <= tick => Outcome::Expired,
            (Proposal::Revoke { end, .. }, _) if end - tick > fleet.longest => {
                Outcome::TooLate { latest: tick + fleet.longest }
            }
            (Proposal::Revoke { hash, until, end, .. }, Some(Entry { end: from, .. })) => {
                if end > from {
                    fleet.count(from, -1);
                    fleet.count(end, 1);
                    changes.push(Change::Extend { hash, from, to: end });
                }
                fleet.record.insert(token, Entry { until, end: end.max(from) });
                Outcome::Revoked { until }
            }
            (Proposal::Revoke { hash, until, end, .. }, None) => {
                let (live, capacity) = (fleet.live(), fleet.capacity);
                if live >= capacity && !self.is_left_out(Step::Count) {
                    return Outcome::Full { live, capacity };
                }
                fleet.count(end, 1);
                changes.push(Change::Insert { hash, end });
                fleet.record.insert(token, Entry { until, end });
                Outcome::Revoked { until }
            }
            (Proposal::Restore { hash, .. }, Some(Entry { end, .. })) => {
                fleet.count(end, -1);
                changes.push(Change::Remove { hash, end });
                fleet.record.remove(&token);
                Outcome::Restored
            }
            (Proposal::Restore { .. }, None) => Outcome::NotRevoked,
        }
    }
}

impl Log for MemoryEngine {
    fn agree(&self, agreement: &Agreement) -> Result<Head, EngineError> {
        let mut state = self.ask()?;
        let (now, agreed) = (state.now(), agreement.to_string());
        if state.fleet.is_none() {
            state.epochs += 1;
            let Agreement { capacity, resolution, longest, .. } = *agreement;
            state.fleet = Some(Fleet {
                epoch: Epoch(state.epochs),
                agreed: agreed.clone(),
                capacity,
                resolution: resolution.as_secs(),
                longest,
                tick: 0,
                head: 0,
                messages: VecDeque::new(),
                record: HashMap::new(),
                ends: BTreeMap::new(),
                answers: HashMap::new(),
                digests: HashMap::new(),
            });
        }
        let State { fleet: Some(fleet), .. } = &mut *state else { unreachable!("it was just founded") };
        if fleet.agreed != agreed {
            return Err(EngineError::Disagreement { ours: agreed, theirs: fleet.agreed.clone() });
        }
        self.advance(fleet, now);
        let head = fleet.head(now);
        drop(state);
        self.wake();
        Ok(head)
    }

    fn concerns(&self) -> Result<Vec<String>, EngineError> {
        self.ask().map(|_| Vec::new())
    }

    fn head(&self, epoch: Epoch) -> Result<Head, EngineError> {
        let mut state = self.ask()?;
        let now = state.now();
        Ok(self.fleet(&mut state, Place { epoch, position: 0 })?.head(now))
    }

    fn append_before(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
    ) -> Result<Appended, EngineError> {
        let mut state = self.ask()?;
        let now = state.now();
        let fleet = self.fleet(&mut state, known)?;
        fleet.answers.retain(|_, (expires, _)| *expires > now);
        let appended = match fleet.answers.get(&id) {
            Some((_, answer)) if !self.is_left_out(Step::Identifier) => answer.clone(),
            _ if now >= before && !self.is_left_out(Step::Before) => {
                return Err(EngineError::TooLate { before, now });
            }
            _ => {
                self.advance(fleet, now);
                let mut changes = Vec::new();
                let outcomes = proposals.iter().map(|&proposal| self.decide(fleet, proposal, &mut changes)).collect();
                if !changes.is_empty() {
                    fleet.push(changes, now, self.stride());
                }
                let appended = Appended { position: fleet.head, outcomes };
                fleet.answers.insert(id, (now + self.window.as_millis() as u64, appended.clone()));
                appended
            }
        };
        drop(state);
        self.wake();
        if appended.outcomes.len() != proposals.len() {
            return Err(EngineError::Refused("the identifier was used for another message before".into()));
        }
        let lost = &mut lock(&self.faults).lost_acknowledgements;
        if *lost > 0 {
            *lost -= 1;
            return Err(EngineError::Unreachable("it was told to lose the acknowledgement".into()));
        }
        Ok(appended)
    }

    fn append_tick(&self, known: Place) -> Result<Head, EngineError> {
        let mut state = self.ask()?;
        let now = state.now();
        let fleet = self.fleet(&mut state, known)?;
        self.advance(fleet, now);
        let head = fleet.head(now);
        drop(state);
        self.wake();
        Ok(head)
    }

    fn follow(&self, after: Place) -> Result<Box<dyn Follower>, EngineError> {
        // The follower fails when its client does.
        let engine = Self { faults: Arc::clone(&self.faults), ..self.client() };
        Ok(Box::new(MemoryFollower { engine, after }))
    }

    fn revoked_until(&self, known: Place, token: TokenId) -> Result<Option<u64>, EngineError> {
        let mut state = self.ask()?;
        let now = state.now();
        let entry = self.fleet(&mut state, known)?.record.get(&token).copied();
        Ok(entry.map(|entry| entry.until).filter(|until| until.saturating_mul(1000) > now))
    }

    fn trim(&self, through: Place) -> Result<(), EngineError> {
        let mut state = self.ask()?;
        self.fleet(&mut state, through)?.messages.retain(|message| message.position > through.position);
        drop(state);
        self.wake();
        Ok(())
    }

    fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        let mut state = self.ask()?;
        let said = self.fleet(&mut state, at)?.digests.entry(at.position).or_default();
        said.insert(node.to_owned(), digest);
        Ok(said.clone().into_iter().collect())
    }
}

struct MemoryFollower {
    engine: MemoryEngine,
    after: Place,
}

impl Follower for MemoryFollower {
    fn next(&mut self, wait: Duration) -> Result<Vec<Message>, EngineError> {
        let Self { engine, after } = self;
        let deadline = Instant::now() + wait;
        loop {
            let mut state = engine.ask()?;
            let fleet = engine.fleet(&mut state, *after)?;
            let there = fleet.messages.iter().filter(|message| message.position > after.position);
            let messages: Vec<_> = there.take(AT_ONCE).cloned().collect();
            let gap = EngineError::Gap { position: after.position, first: fleet.first() };
            if messages.is_empty() && fleet.head > after.position && !engine.is_left_out(Step::SilentGap) {
                return Err(gap);
            }
            for message in &messages {
                if message.position != after.position + 1 && !engine.is_left_out(Step::NextNumber) {
                    return Err(gap);
                }
                after.position = message.position;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !messages.is_empty() || left.is_zero() {
                return Ok(messages);
            }
            drop(engine.shared.changed.wait_timeout(state, left));
        }
    }
}

impl Snapshots for MemoryEngine {
    fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        let state = self.ask()?;
        let mut infos: Vec<_> = state.snapshots.values().map(|(info, _)| info.clone()).collect();
        infos.retain(|info| info.place.epoch == epoch);
        infos.sort_by_key(|info| std::cmp::Reverse((info.place.position, info.at)));
        Ok(infos)
    }

    fn read(&self, info: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError> {
        let (shared, faults, timeout) = (Arc::clone(&self.shared), Arc::clone(&self.faults), self.timeout);
        let key = info.key.clone();
        let reader = ChunkReader::new(info.bytes, move |number| {
            let state = ask(&shared, &faults, timeout)?;
            Ok(state.snapshots.get(&key).and_then(|(_, chunks)| chunks.get(&number).cloned()))
        });
        Ok(Box::new(if self.is_left_out(Step::Checksum) { reader.unchecked() } else { reader }))
    }

    fn write(
        &self,
        place: Place,
        digest: u64,
        node: &str,
        keep: usize,
        content: &mut Content<'_>,
    ) -> Result<SnapshotInfo, EngineError> {
        let key = {
            let mut state = self.ask()?;
            self.fleet(&mut state, place)?;
            let key = format!("{}:{node}:{}", place.position, state.now());
            state.unfinished.insert(key.clone(), Chunks::new());
            key
        };
        let mut writer = ChunkWriter::new(self.chunk, |number, chunk| {
            if let Some(chunks) = self.ask()?.unfinished.get_mut(&key) {
                chunks.insert(number, chunk);
            }
            Ok(())
        });
        let written = content(&mut writer).and_then(|()| writer.finish());
        let mut state = self.ask()?;
        let chunks = state.unfinished.remove(&key).unwrap_or_default();
        let (bytes, sums) = written.map_err(engine_error)?;
        if !self.is_left_out(Step::ReadBack) {
            for (number, sum) in sums.into_iter().enumerate() {
                if checksum(number, chunks.get(&number).cloned())? != sum {
                    return Err(EngineError::Damaged(format!("chunk {number} was not read back as it was written")));
                }
            }
        }
        self.fleet(&mut state, place)?;
        let info = SnapshotInfo { place, bytes, digest, at: state.now(), node: node.to_owned(), key: key.clone() };
        state.snapshots.insert(key, (info.clone(), chunks));
        drop(state);
        let kept: HashSet<_> = self.list(place.epoch)?.into_iter().take(keep).map(|info| info.key).collect();
        self.ask()?.snapshots.retain(|key, _| kept.contains(key));
        Ok(info)
    }

    fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError> {
        let mut state = self.ask()?;
        let now = state.now();
        let has_other = state.lease.as_ref().is_some_and(|(holder, until)| holder != node && *until > now);
        if has_other && !self.is_left_out(Step::Lease) {
            return Ok(false);
        }
        state.lease = Some((node.to_owned(), now + time.as_millis() as u64));
        Ok(true)
    }

    fn give_back(&self, node: &str) -> Result<(), EngineError> {
        let mut state = self.ask()?;
        if state.lease.as_ref().is_some_and(|(holder, _)| holder == node) {
            state.lease = None;
        }
        Ok(())
    }
}
