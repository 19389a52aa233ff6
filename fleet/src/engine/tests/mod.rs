//! What an engine promises, tested on a real `redis-server`.
//!
//! Each rule has a control: the same check fails if the engine leaves out the step that the rule is about.
//!
//! - `appending`: identifiers, outcomes, and the record;
//! - `clock`: ticks, clocks that jump, and what is forgotten;
//! - `following`: numbers without a hole, gaps, other logs, and messages of other people;
//! - `losing`: an engine that has lost something, and the operator;
//! - `keeping`: what nodes agree on, digests, snapshots, and the lease;
//! - `crashes`: the engine is killed;
//! - `network`: connections that fail, and an engine that is not ready.

mod appending;
mod clock;
mod crashes;
mod following;
mod keeping;
mod losing;
mod network;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::scripts::Scripts;
use super::{EngineSettings, RedisEngine, wire};
use crate::change::{Agreement, Change, Proposal, Tick, TokenId};
use crate::log::{
    Appended, Chain, EngineError, Epoch, Head, Joining, Log, Memory, Message, MessageId, NEVER, Place, Snapshots,
};
use crate::testing::server::{Server, ServerError};

/// A step of an engine that tests leave out, to show that they notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// To remember identifiers.
    Identifier,
    /// To remember until when a token is revoked.
    Record,
    /// To see that an entry has expired.
    Outlived,
    /// To refuse an entry if there are as many live entries as there may be.
    Count,
    /// To subtract expired entries from that count.
    Expiry,
    /// To refuse a message that comes too late.
    Before,
    /// To number the messages without a hole.
    Density,
    /// To compare the position that the caller knows with the head.
    Known,
    /// To compare the hash that the caller knows with the log's.
    Chain,
    /// To compare a tick with the one before.
    Forward,
    /// To compare the clock with the latest time that the caller allows.
    Early,
    /// To refuse to run on a replica.
    Master,
    /// To remove messages that no script has written.
    Clear,
    /// To wait for an operator.
    Waits,
    /// To check who has the lease.
    Lease,
    /// To see that a part of a change has come back.
    Begun,
    /// To compare a message's number with the next one.
    NextNumber,
    /// To compare epochs.
    Epoch,
}

/// The edits of the scripts' text that leave out a step.
fn edits(step: Step) -> &'static [(&'static str, &'static str)] {
    match step {
        Step::Identifier => &[("redis.call('SET', ANSWER, epoch .. answer)", "")],
        Step::Record => &[("return entry and entry.term > tick and entry", "return false")],
        Step::Outlived => &[("return entry and entry.term > tick and entry", "return entry")],
        Step::Count => &[("if live >= capacity then", "if false then")],
        Step::Expiry => &[("live = live - tonumber(redis.call('HGET', COUNTS, term))", "")],
        Step::Before => &[("if now >= tonumber(ARGV[7]) then", "if false then")],
        Step::Density => &[("head, chain, at = head + 1", "head, chain, at = head + 2")],
        Step::Known => &[("or head < position", "")],
        Step::Chain => &[("if found ~= ARGV[3] then", "if false then"), ("found ~= ARGV[3] and", "false and")],
        Step::Forward => {
            &[("if present <= tick then", "if present == tick then"), ("math.max(clock, at or 0)", "clock")]
        }
        Step::Early => &[("if clock > tonumber(ARGV[4]) then", "if false then")],
        Step::Master => &[("#!lua\n", "")],
        Step::Clear => &[("local cleared = clear()", "local cleared = false"), ("clear(true)", "")],
        Step::Waits => &[("if lost and tonumber(ARGV[10])", "if false and tonumber(ARGV[10])")],
        Step::Lease => &[("if holder and holder ~= ARGV[1] then return 0 end", "")],
        Step::Epoch => &[("epoch ~= ARGV[1] or", ""), ("if found ~= ARGV[3] then", "if false then")],
        Step::Begun => &[("if begun ~= done then\n", "if false then\n")],
        Step::NextNumber => &[],
    }
}

fn edit(text: &str, left_out: &[Step], has_set_time: bool) -> String {
    let mut text = text.to_owned();
    for (from, to) in left_out.iter().flat_map(|step| edits(*step)) {
        text = text.replace(from, to);
    }
    if has_set_time {
        let time = "local set = tonumber(redis.call('GET', PREFIX .. 'time'))\n\
                    local time = {math.floor(set / 1000), set % 1000 * 1000}";
        text = text.replace("local time = redis.call('TIME')", time);
    }
    text
}

#[test]
fn every_edit_changes_a_script() {
    let all = [
        include_str!("../scripts/common.lua"),
        include_str!("../scripts/append.lua"),
        include_str!("../scripts/agree.lua"),
        include_str!("../scripts/word.lua"),
        include_str!("../scripts/lease.lua"),
    ]
    .concat();
    let steps = [
        Step::Identifier,
        Step::Record,
        Step::Outlived,
        Step::Count,
        Step::Expiry,
        Step::Before,
        Step::Density,
        Step::Known,
        Step::Chain,
        Step::Forward,
        Step::Early,
        Step::Master,
        Step::Clear,
        Step::Waits,
        Step::Lease,
        Step::Epoch,
        Step::Begun,
    ];
    for (from, _) in steps.iter().flat_map(|step| edits(*step)) {
        assert!(all.contains(from), "{from}");
    }
    assert_ne!(edit(&all, &[], true), all);
}

impl RedisEngine {
    /// Leaves steps out, and reads the time from a key, in milliseconds since 1970.
    pub(crate) fn edited(settings: EngineSettings, left_out: &[Step], has_set_time: bool) -> Result<Self, EngineError> {
        Self::with(settings, Scripts::new(|text| edit(text, left_out, has_set_time)), left_out.to_vec())
    }

    pub(super) fn takes_epoch(&self) -> bool {
        !self.inner.left_out.contains(&Step::Epoch)
    }

    pub(super) fn takes_numbers(&self) -> bool {
        !self.inner.left_out.contains(&Step::NextNumber)
    }

    /// Without the comparison of numbers or epochs, the hash can't be compared either.
    pub(super) fn decode(&self, after: Place, position: u64, payload: &[u8]) -> Result<Message, EngineError> {
        let left_out = &self.inner.left_out;
        if [Step::Chain, Step::Epoch, Step::NextNumber].iter().any(|step| left_out.contains(step)) {
            return wire::unchecked(after, position, payload);
        }
        wire::message(after, payload)
    }
}

/// The seconds in a tick.
const RESOLUTION: u64 = 10;
/// The longest lifetime, in ticks.
const LONGEST: Tick = 100;
const CAPACITY: u64 = 10;

/// Long enough for the slowest machine.
const LONG: Duration = Duration::from_secs(60);
/// A short wait, for when nothing comes.
const SHORT: Duration = Duration::from_millis(20);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Runs the future to its end.
pub(crate) fn done<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// A real engine in a folder of its own, whose clock stays at the time that is set.
pub(crate) struct Engine {
    server: Mutex<Server>,
    pub(crate) url: String,
    _folder: TempDir,
}

impl Engine {
    /// Returns `None` if the engine is not installed and not required.
    pub(crate) fn start(options: &[&str]) -> Option<Arc<Self>> {
        let folder = tempfile::tempdir().unwrap();
        match Server::start_with(folder.path(), options) {
            Ok(server) => {
                let engine = Self { url: server.url(), server: Mutex::new(server), _folder: folder };
                Some(Arc::new(engine))
            }
            Err(missing @ ServerError::Missing) if std::env::var("FLEET_ENGINE").is_ok_and(|set| set == "required") => {
                panic!("FLEET_ENGINE=required, and {missing}");
            }
            Err(missing @ ServerError::Missing) => {
                static SAID: Once = Once::new();
                // Not with a print macro: its output is shown only if a test fails.
                SAID.call_once(|| writeln!(std::io::stderr(), "skipped what needs a real engine: {missing}").unwrap());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn settings(&self) -> EngineSettings {
        EngineSettings { timeout: LONG, ..EngineSettings::new(&self.url, "test") }
    }

    pub(crate) fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command.
    pub(crate) fn command<T: redis::FromRedisValue>(&self, parts: &[&[u8]]) -> T {
        let mut connection = redis::Client::open(&*self.url).unwrap().get_connection().unwrap();
        let mut command = redis::Cmd::new();
        command.arg(parts);
        command.query(&mut connection).unwrap()
    }

    /// The same for words.
    pub(crate) fn say<T: redis::FromRedisValue>(&self, line: &str) -> T {
        self.command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Sets the engine's clock, in milliseconds since 1970.
    pub(crate) fn set_time(&self, time: u64) {
        self.say::<()>(&format!("SET {{test}}:time {time}"));
    }

    /// Loses everything but the time.
    pub(crate) fn flush(&self) {
        let time: u64 = self.say("GET {test}:time");
        self.say::<()>("FLUSHALL");
        self.set_time(time);
    }
}

/// A client of an engine, as a node has one, whose calls wait for the answer.
struct Subject {
    engine: Arc<Engine>,
    client: RedisEngine,
}

/// Runs this check on an engine.
fn holds(check: impl Fn(&Subject)) {
    if let Some(subject) = Subject::start(&[]) {
        check(&subject);
    }
}

/// The control: on an engine that leaves out this step the check fails, with a message that contains these words.
fn fails_without(step: Step, words: &str, check: impl Fn(&Subject)) {
    let Some(subject) = Subject::start(&[step]) else { return };
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&subject))) else { panic!("it passes without {step:?}") };
    let said = panic.downcast_ref::<String>().cloned();
    let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
    assert!(said.contains(words), "without {step:?} it fails otherwise: {said}");
}

impl Subject {
    fn start(left_out: &[Step]) -> Option<Self> {
        let engine = Engine::start(&["--appendfsync", "no"])?;
        engine.set_time(start());
        Some(Self::of(engine, left_out))
    }

    fn of(engine: Arc<Engine>, left_out: &[Step]) -> Self {
        let client = RedisEngine::edited(engine.settings(), left_out, true).unwrap();
        Self { engine, client }
    }

    /// Another client of the same engine, as another node has one.
    fn other(&self) -> Self {
        Self::of(Arc::clone(&self.engine), &self.client.inner.left_out)
    }

    fn set_time(&self, time: u64) {
        self.engine.set_time(time);
    }

    /// Founds the fleet, or joins it.
    fn agree(&self) -> Head {
        self.agree_with(&agreement(), None, false).unwrap()
    }

    fn agree_with(
        &self,
        agreement: &Agreement,
        memory: Option<Memory>,
        accepts_loss: bool,
    ) -> Result<Head, EngineError> {
        done(self.client.agree(&Joining { agreement, memory, accepts_loss, latest: NEVER, node: "a" }))
    }

    fn word(&self, known: Place) -> Result<Head, EngineError> {
        done(self.client.word(known, NEVER))
    }

    fn append(&self, known: Place, id: MessageId, proposals: &[Proposal]) -> Result<Appended, EngineError> {
        done(self.client.append(known, id, proposals, NEVER, NEVER))
    }

    /// Appends a message that is new.
    fn send(&self, known: Place, proposals: &[Proposal]) -> Appended {
        self.append(known, fresh(), proposals).unwrap()
    }

    fn read(&self, after: Place, wait: Duration) -> Result<Vec<Message>, EngineError> {
        done(self.client.read(after, wait))
    }

    fn revoked_until(&self, known: Place, number: u64) -> Result<Option<u64>, EngineError> {
        done(self.client.revoked_until(known, &[token(number)])).map(|untils| untils[0])
    }

    /// All messages of the log.
    fn all(&self, epoch: Epoch) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map_or(before(epoch), |message| message.place);
            match self.read(after, Duration::ZERO).unwrap() {
                more if more.is_empty() => return messages,
                more => messages.extend(more),
            }
        }
    }

    fn trim(&self, oldest: Place) -> Result<(), EngineError> {
        done(self.client.trim(oldest))
    }

    /// Loses the last messages, as an engine does that answers before they are on disk. Returns where it ends.
    fn lose_end(&self, messages: u64) -> Place {
        let head: u64 = self.engine.say("HGET {test}:fleet head");
        let epoch = self.all_unchecked_epoch();
        let left = head - messages;
        let chain = self.chain_of(left);
        for position in left + 1..=head {
            self.engine.say::<()>(&format!("XDEL {{test}}:log {position}-0"));
        }
        self.engine.say::<()>(&format!("XSETID {{test}}:log {left}-0"));
        self.engine.say::<()>(&format!("HSET {{test}}:fleet head {left} chain {}", wire::hexadecimal(chain)));
        Place { epoch, position: left, chain }
    }

    fn all_unchecked_epoch(&self) -> Epoch {
        let bytes: Vec<u8> = self.engine.say("HGET {test}:fleet epoch");
        Epoch(u64::from_le_bytes(bytes.try_into().unwrap()))
    }

    /// The hash that the log has at a position.
    fn chain_of(&self, position: u64) -> Chain {
        let range = format!("XRANGE {{test}}:log {position}-0 {position}-0");
        let mut entries: Vec<(String, Vec<Vec<u8>>)> = self.engine.say(&range);
        wire::chain(&entries.pop().unwrap().1[1][..16]).unwrap()
    }
}

/// When the tests began, rounded down to the beginning of a tick, in milliseconds since 1970.
fn start() -> u64 {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        seconds / RESOLUTION * RESOLUTION * 1000
    });
    *START
}

/// The tick at the start.
fn tick() -> Tick {
    (start() / 1000 / RESOLUTION) as Tick
}

fn agreement() -> Agreement {
    Agreement {
        schema: "tokens".into(),
        probe: 1,
        capacity: CAPACITY,
        rate: 1_000_000,
        resolution: Duration::from_secs(RESOLUTION),
        longest: LONGEST,
        margin: Duration::from_secs(5),
    }
}

/// A token with this number.
fn token(number: u64) -> TokenId {
    let mut id = [0xab; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    TokenId(id)
}

fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

/// The proposal to revoke token `number` until the end of a tick.
fn revoke(number: u64, end: Tick) -> Proposal {
    Proposal::Revoke { token: token(number), hash: hash(number), until: until(end), end }
}

fn until(end: Tick) -> u64 {
    u64::from(end) * RESOLUTION
}

fn restore(number: u64) -> Proposal {
    Proposal::Restore { token: token(number), hash: hash(number) }
}

fn insert(number: u64, end: Tick) -> Change {
    Change::Insert { hash: hash(number), end }
}

/// An identifier that was not used before.
fn fresh() -> MessageId {
    let mut id = [0; 16];
    getrandom::fill(&mut id).unwrap();
    MessageId(id)
}

/// The place before the first message.
fn before(epoch: Epoch) -> Place {
    Place { epoch, position: 0, chain: Chain::START }
}

/// The changes of these messages, without ticks.
fn changes(messages: &[Message]) -> Vec<Change> {
    let all = messages.iter().flat_map(|message| message.changes.iter().copied());
    all.filter(|change| !matches!(change, Change::Tick { .. })).collect()
}

#[track_caller]
fn assert_another<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    assert!(matches!(result, Err(EngineError::AnotherLog { .. })), "another log is not noticed: {result:?}");
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {LONG:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
