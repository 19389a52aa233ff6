//! The engines under test, and what can be done to them behind a node's back.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::change::{Agreement, Change, Position, Proposal, Tick, TokenId};
use crate::engine::Step;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::{RedisEngine, Settings};
use crate::engine::server::{Server, ServerError};
use crate::log::{Appended, EngineError, Epoch, Follower, Head, Log, Message, MessageId, Place, Snapshots};

/// The seconds in a tick.
pub(super) const RESOLUTION: u64 = 10;
/// The longest lifetime, in ticks.
pub(super) const LONGEST: Tick = 100;
pub(super) const CAPACITY: u64 = 10;
/// The size of a chunk.
pub(super) const CHUNK: usize = 1000;

/// Long enough for the slowest machine.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// An engine that tests can manipulate. Its clock stays at the time that is set.
pub(super) trait Subject: Send + Sync {
    fn name(&self) -> &'static str;

    fn log(&self) -> &dyn Log;

    fn snapshots(&self) -> &dyn Snapshots;

    /// Another client of the same engine, as another node has one.
    fn client(&self) -> Box<dyn Subject>;

    /// Sets the engine's clock, in milliseconds since 1970.
    fn set_time(&self, time: u64);

    /// Trims the log to this many messages, by its length.
    fn cut_log(&self, left: usize);

    /// Loses the last messages, and their content.
    fn lose_end(&self, messages: u64);

    /// Loses everything.
    fn flush(&self);

    /// Changes a byte of this chunk of every snapshot.
    fn damage_chunk(&self, number: usize);

    fn remove_chunk(&self, number: usize);
}

impl std::fmt::Debug for dyn Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Runs this check on each engine.
pub(super) fn holds(check: impl Fn(&dyn Subject)) {
    for subject in subjects(&[], Duration::from_secs(600)) {
        check(&*subject);
    }
}

/// The control: on each engine that leaves out this step the check fails, with a message that contains these words.
pub(super) fn fails_without(step: Step, words: &str, check: impl Fn(&dyn Subject)) {
    for subject in subjects(&[step], Duration::from_secs(600)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&*subject))) else {
            panic!("{subject:?} without {step:?} passes");
        };
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        assert!(said.contains(words), "{subject:?} without {step:?} fails otherwise: {said}");
    }
}

/// The engines that are available. Prints a line if the real one is not installed.
pub(super) fn subjects(left_out: &[Step], window: Duration) -> Vec<Box<dyn Subject>> {
    let mut memory = left_out.iter().fold(MemoryEngine::new(), |engine, &step| engine.without(step));
    memory.window = window;
    memory.chunk = CHUNK;
    memory.set_time(start());
    let mut subjects: Vec<Box<dyn Subject>> = vec![Box::new(memory)];
    if let Some(engine) = Engine::start() {
        let subject = RedisSubject::new(Arc::new(engine), left_out, window);
        subject.set_time(start());
        subjects.push(Box::new(subject));
    }
    subjects
}

/// When the tests began, rounded down to the beginning of a tick, in milliseconds since 1970.
pub(super) fn start() -> u64 {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        seconds / RESOLUTION * RESOLUTION * 1000
    });
    *START
}

/// A real engine in a folder of its own.
pub(super) struct Engine {
    pub(super) server: Mutex<Server>,
    pub(super) url: String,
    _folder: TempDir,
}

impl Engine {
    pub(super) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Returns `None` if the engine is not installed and not required.
    pub(super) fn start_with(options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        match Server::start_with(folder.path(), options) {
            Ok(server) => Some(Self { url: server.url(), server: Mutex::new(server), _folder: folder }),
            Err(missing @ ServerError::Missing) if std::env::var("FLEET_ENGINE").is_ok_and(|set| set == "required") => {
                panic!("FLEET_ENGINE=required, and {missing}");
            }
            Err(missing @ ServerError::Missing) => {
                static SAID: Once = Once::new();
                // Not with a print macro: its output is shown only if a test fails.
                SAID.call_once(|| {
                    writeln!(std::io::stderr(), "skipped what needs a real engine: {missing}").unwrap();
                });
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings { chunk: CHUNK, timeout: LONG, ..Settings::new(&self.url, "test") }
    }

    pub(super) fn client(&self) -> RedisEngine {
        RedisEngine::new(self.settings()).unwrap()
    }

    pub(super) fn server(&self) -> std::sync::MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command.
    pub(super) fn command<T: redis::FromRedisValue>(&self, parts: &[&[u8]]) -> T {
        let mut connection = redis::Client::open(&*self.url).unwrap().get_connection().unwrap();
        let mut command = redis::Cmd::new();
        command.arg(parts);
        command.query(&mut connection).unwrap()
    }
}

/// The real engine, with a clock that tests set.
pub(super) struct RedisSubject {
    engine: Arc<Engine>,
    client: RedisEngine,
    left_out: Vec<Step>,
    window: Duration,
}

impl RedisSubject {
    pub(super) fn new(engine: Arc<Engine>, left_out: &[Step], window: Duration) -> Self {
        let settings = Settings { window, ..engine.settings() };
        let client = RedisEngine::edited(settings, left_out, true).unwrap();
        Self { engine, client, left_out: left_out.to_vec(), window }
    }

    fn chunks(&self) -> Vec<Vec<u8>> {
        self.engine.command(&[b"KEYS", b"{test}:snapshot:*"])
    }
}

impl Subject for RedisSubject {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn log(&self) -> &dyn Log {
        &self.client
    }

    fn snapshots(&self) -> &dyn Snapshots {
        &self.client
    }

    fn client(&self) -> Box<dyn Subject> {
        Box::new(Self::new(Arc::clone(&self.engine), &self.left_out, self.window))
    }

    fn set_time(&self, time: u64) {
        self.engine.command::<()>(&[b"SET", b"time", time.to_string().as_bytes()]);
    }

    fn cut_log(&self, left: usize) {
        self.engine.command::<()>(&[b"XTRIM", b"{test}:log", b"MAXLEN", left.to_string().as_bytes()]);
    }

    fn lose_end(&self, messages: u64) {
        let head: Position = self.engine.command(&[b"HGET", b"{test}:fleet", b"head"]);
        let left = head - messages;
        for position in left + 1..=head {
            self.engine.command::<()>(&[b"XDEL", b"{test}:log", format!("{position}-0").as_bytes()]);
        }
        self.engine.command::<()>(&[b"XSETID", b"{test}:log", format!("{left}-0").as_bytes()]);
        self.engine.command::<()>(&[b"HSET", b"{test}:fleet", b"head", left.to_string().as_bytes()]);
    }

    fn flush(&self) {
        let time: Vec<u8> = self.engine.command(&[b"GET", b"time"]);
        self.engine.command::<()>(&[b"FLUSHALL"]);
        self.engine.command::<()>(&[b"SET", b"time", &time]);
    }

    fn damage_chunk(&self, number: usize) {
        for key in self.chunks() {
            let field = number.to_string();
            let mut chunk: Vec<u8> = self.engine.command(&[b"HGET", &key, field.as_bytes()]);
            chunk[0] ^= 1;
            self.engine.command::<()>(&[b"HSET", &key, field.as_bytes(), &chunk]);
        }
    }

    fn remove_chunk(&self, number: usize) {
        for key in self.chunks() {
            self.engine.command::<()>(&[b"HDEL", &key, number.to_string().as_bytes()]);
        }
    }
}

impl Subject for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn log(&self) -> &dyn Log {
        self
    }

    fn snapshots(&self) -> &dyn Snapshots {
        self
    }

    fn client(&self) -> Box<dyn Subject> {
        Box::new(self.client())
    }

    fn set_time(&self, time: u64) {
        self.set_time(time);
    }

    fn cut_log(&self, left: usize) {
        self.cut_log(left);
    }

    fn lose_end(&self, messages: u64) {
        self.lose_end(messages);
    }

    fn flush(&self) {
        self.flush();
    }

    fn damage_chunk(&self, number: usize) {
        self.damage_chunk(number);
    }

    fn remove_chunk(&self, number: usize) {
        self.remove_chunk(number);
    }
}

/// The tick at the start.
pub(super) fn tick() -> Tick {
    (start() / 1000 / RESOLUTION) as Tick
}

pub(super) fn agreement() -> Agreement {
    Agreement {
        schema: "tokens".into(),
        probe: 1,
        capacity: CAPACITY,
        rate: 1_000_000,
        resolution: Duration::from_secs(RESOLUTION),
        longest: LONGEST,
    }
}

/// A token with this number.
pub(super) fn token(number: u64) -> TokenId {
    let mut id = [0xab; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    TokenId(id)
}

pub(super) fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

/// The proposal to revoke token `number` until the end of a tick.
pub(super) fn revoke(number: u64, end: Tick) -> Proposal {
    Proposal::Revoke { token: token(number), hash: hash(number), until: until(end), end }
}

pub(super) fn until(end: Tick) -> u64 {
    u64::from(end) * RESOLUTION
}

pub(super) fn restore(number: u64) -> Proposal {
    Proposal::Restore { token: token(number), hash: hash(number) }
}

pub(super) fn insert(number: u64, end: Tick) -> Change {
    Change::Insert { hash: hash(number), end }
}

/// An identifier that was not used before.
pub(super) fn fresh() -> MessageId {
    let mut id = [0; 16];
    getrandom::fill(&mut id).unwrap();
    MessageId(id)
}

/// Founds the fleet, or joins it.
pub(super) fn agree(subject: &dyn Subject) -> Head {
    subject.log().agree(&agreement()).unwrap()
}

/// Appends a new message, as a node that knows this head.
pub(super) fn append(subject: &dyn Subject, head: Head, proposals: &[Proposal]) -> Appended {
    subject.log().append(head.place(), fresh(), proposals).unwrap()
}

/// The place before the first message.
pub(super) fn before(epoch: Epoch) -> Place {
    Place { epoch, position: 0 }
}

/// All messages up to the present head.
pub(super) fn all(log: &dyn Log, epoch: Epoch) -> Vec<Message> {
    let head = log.head(epoch).unwrap().position;
    let mut follower = log.follow(before(epoch)).unwrap();
    read(&mut *follower, head)
}

/// The messages up to this one.
pub(super) fn read(follower: &mut dyn Follower, through: Position) -> Vec<Message> {
    let deadline = Instant::now() + LONG;
    let mut messages: Vec<Message> = Vec::new();
    while messages.last().is_none_or(|last| last.position < through) {
        assert!(Instant::now() < deadline, "message {through} does not come");
        messages.extend(follower.next(Duration::from_millis(100)).unwrap());
    }
    messages
}

/// The changes of all messages, without the ticks.
pub(super) fn changes(messages: &[Message]) -> Vec<Change> {
    let changes = messages.iter().flat_map(|message| &message.changes);
    changes.filter(|change| !matches!(change, Change::Tick { .. })).copied().collect()
}

/// Asserts that an engine has noticed that its log is not the known one.
pub(super) fn assert_another<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    assert!(matches!(result, Err(EngineError::AnotherLog { .. })), "another log is not noticed: {result:?}");
}
