//! What a node needs of an engine: a log of changes, the record of what they come to, and a place for snapshots.
//!
//! # What an engine must promise
//!
//! The log and its durability are the engine's. Each of these is needed; a fleet goes wrong without any one of them.
//!
//! - *Total order*: all followers read the same messages in the same order.
//! - *Durable acknowledgement*: when an append returns, its message survives a crash of the engine. (What the engine loses all the
//!   same, the fleet loses.)
//! - *Dense numbers*: messages are numbered 1, 2, 3 and so on. A follower sees by the number alone that a message is missing.
//! - *Deduplication*: a message that is sent twice under one identifier is appended once, and both get the same answer. So a sender
//!   that got no answer sends again.
//! - *A record that is changed in the same step*: for each token until when it is revoked. What a proposal comes to depends on it. So
//!   two nodes that revoke one token at the same time add one entry, and no filter is asked to remove what it does not have.
//! - *One clock*: the ticks of all filters come from the engine's clock, as messages of the log.
//!
//! # Engines
//!
//! - *Redis 7 and Valkey* (streams): total order and durability (`appendfsync always`) are theirs. One Lua script adds the rest.
//! - *NATS JetStream*: total order, dense numbers within a stream, and deduplication by `Nats-Msg-Id`. Its default acknowledges before
//!   the disk has it; `sync_interval: always` is durable, and slower. It has no record in the same step. A node would have to keep the
//!   record itself, propose, and have the stream refuse what was proposed on old knowledge (`Nats-Expected-Last-Sequence`).
//! - *Kafka*: total order within one partition. An idempotent producer's retries are recognised within one producer session only.
//!   Offsets are not dense once there are transactions. Durability comes from replicas in memory, not from the disk, by default. It
//!   has no record in the same step either, and no append on a condition.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::change::{Agreement, Change, Outcome, Position, Proposal, Tick, TokenId};

/// Tells apart the logs that an engine has had under one name: made up anew when a log begins. An engine that has lost all it knew
/// begins a new log, and nodes see by this that theirs is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch(pub(crate) u64);

/// A place in a log: what a node knows of it. Everything that a node asks for begins with its place. An engine that has less than
/// that has lost something, and answers [`EngineError::AnotherLog`] instead of something wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
}

/// Later than every time.
pub(crate) const NEVER: u64 = 1 << 53;

/// Which message it is, made up by the sender: what comes twice under one identifier counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageId(pub(crate) [u8; 16]);

/// A message of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) position: Position,
    /// In the order in which they are to be applied.
    pub(crate) changes: Vec<Change>,
    /// When the engine took it, in milliseconds since 1970 by the engine's clock.
    pub(crate) at: u64,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: Epoch,
    /// Of the last message. The first one is the tick with which a log begins, so this is never 0.
    pub(crate) position: Position,
    /// Of the first that is still there; one more than `position` if there is none.
    pub(crate) first: Position,
    /// What the clock of the filters says at the head.
    pub(crate) tick: Tick,
    /// The engine's clock, in milliseconds since 1970.
    pub(crate) now: u64,
}

impl Head {
    pub(crate) fn place(&self) -> Place {
        Place { epoch: self.epoch, position: self.position }
    }
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// Who has applied this position knows all that the outcomes say.
    pub(crate) position: Position,
    /// One for each proposal.
    pub(crate) outcomes: Vec<Outcome>,
}

/// Why the engine did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// It could not be reached, did not answer in time, or is not ready. It may have done it all the same: try again, with the same
    /// identifier.
    Unreachable(String),
    /// It does not do that, and to try again does not help: its settings, its memory or its rights have to be changed.
    Refused(String),
    /// The message has come later than its sender wanted it to be taken. `now` is the engine's clock.
    TooLate { before: u64, now: u64 },
    /// The log begins after the message that was to be read.
    Gap { position: Position, first: Position },
    /// The log is another one than that, or ends before it: the engine has lost what it knew. `found` is none if there is no log.
    AnotherLog { expected: Place, found: Option<Place> },
    /// The fleet has agreed on something else.
    Disagreement { ours: String, theirs: String },
    /// What came is not what was written: a damaged message or snapshot.
    Damaged(String),
    /// What was to be written as a snapshot could not be made.
    Content(io::Error),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the engine can't be reached: {why}"),
            Self::Refused(why) => write!(f, "the engine refuses: {why}"),
            Self::TooLate { before, now } => write!(
                f,
                "the message was to be taken before {before}, in milliseconds since 1970, and the engine's clock shows {now}; send it \
                 anew"
            ),
            Self::Gap { position, first } => write!(
                f,
                "the log begins at {first}, and what comes after {position} is to be read; load a snapshot of {} or later",
                first - 1
            ),
            Self::AnotherLog { expected, found: None } => {
                write!(f, "the engine has no log any more; {expected} was known of it")
            }
            Self::AnotherLog { expected, found: Some(found) } if found.epoch == expected.epoch => {
                write!(f, "the engine has lost the end of its log: {expected} was known of it, and it ends at {found}")
            }
            Self::AnotherLog { expected, found: Some(found) } => {
                write!(
                    f,
                    "the engine has begun a new log: it is at {found}, and {expected} was known of the former one"
                )
            }
            Self::Disagreement { ours, theirs } => write!(
                f,
                "the fleet has agreed on other settings: this node has {ours}, the fleet has {theirs}; start it with the fleet's, \
                 or under another name"
            ),
            Self::Damaged(what) => write!(f, "damaged: {what}"),
            Self::Content(error) => write!(f, "the snapshot can't be made: {error}"),
        }
    }
}

impl std::error::Error for EngineError {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {} of log {:016x}", self.position, self.epoch.0)
    }
}

/// A log that many nodes append to and follow. What an engine must promise is said [above](self).
///
/// Every call returns after some time, also if the engine hangs: then with [`EngineError::Unreachable`]. The next call begins anew, so
/// none of these is to be given up after an error.
pub(crate) trait Log: Send + Sync {
    /// Joins the fleet of this name, or founds it: agrees on what all nodes must have in common. A new log begins with a tick.
    fn agree(&self, agreement: &Agreement) -> Result<Head, EngineError>;

    /// What is not as it should be in the engine's settings, each with the remedy. Empty if all is well, or if the engine does not
    /// let itself be asked.
    fn concerns(&self) -> Result<Vec<String>, EngineError>;

    /// Where the log ends that has this epoch.
    fn head(&self, epoch: Epoch) -> Result<Head, EngineError>;

    /// Appends what the proposals come to as one message, or nothing if they change nothing. When this returns it is durable. An
    /// identifier that was taken before gets the answer of that time, and nothing is appended.
    ///
    /// If the engine's clock has come further than the log knows, its tick goes before as a message of its own. So a proposal is
    /// judged by the engine's clock.
    ///
    /// From `before` on, by the engine's clock in milliseconds since 1970, nothing is appended any more: [`EngineError::TooLate`]. A
    /// message can be on its way for minutes, in a connection that has gone dead. Who has given it up, and has been told by now that
    /// something else is true, must not be overtaken by it.
    fn append_before(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
    ) -> Result<Appended, EngineError>;

    /// The same, however late it comes.
    fn append(&self, known: Place, id: MessageId, proposals: &[Proposal]) -> Result<Appended, EngineError> {
        self.append_before(known, id, proposals, NEVER)
    }

    /// Appends the tick of the engine's clock, if that has come further than the log knows.
    fn append_tick(&self, known: Place) -> Result<Head, EngineError>;

    /// The messages after this place, on a connection of its own. The engine is not asked before the follower is.
    fn follow(&self, after: Place) -> Result<Box<dyn Follower>, EngineError>;

    /// Until when the token is revoked by the record, in seconds since 1970. None if it is not, or no longer by the engine's clock.
    fn revoked_until(&self, known: Place, token: TokenId) -> Result<Option<u64>, EngineError>;

    /// Forgets the messages up to this one.
    fn trim(&self, through: Place) -> Result<(), EngineError>;

    /// Says what this node's filter comes to at a place, and returns what all have said so far, by node.
    fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError>;
}

/// A place in the log, from where it is read.
pub(crate) trait Follower: Send {
    /// The next messages: waits for the first one up to so long, and returns none if there is none by then. An answer without messages
    /// says too that the engine is there, and that nothing had been appended when it answered.
    ///
    /// Numbers without a hole: a message that is not the next one is [`EngineError::Gap`], also if there is none to be read and the
    /// head is further. After [`EngineError::Unreachable`] the next call connects anew and goes on from the same place. After any
    /// other error the follower is of no more use.
    fn next(&mut self, wait: Duration) -> Result<Vec<Message>, EngineError>;
}

/// What is known of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotInfo {
    /// The last message that it has.
    pub(crate) place: Place,
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
    /// When it was complete, in milliseconds since 1970 by the engine's clock.
    pub(crate) at: u64,
    /// Which node wrote it.
    pub(crate) node: String,
    /// Under which name the engine has it.
    pub(crate) key: String,
}

/// Writes the content of a snapshot.
pub(crate) type Content<'a> = dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a;

/// Where the nodes of a fleet keep snapshots.
pub(crate) trait Snapshots: Send + Sync {
    /// Those of this log that are complete, the newest first.
    fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError>;

    /// A chunk that is damaged or missing is an error of the reader, and so is an engine that can't be reached.
    fn read(&self, info: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError>;

    /// Writes a snapshot in chunks. It is in the list when all of them are durable and were read back, and not before. Then those
    /// before the last `keep` are deleted.
    fn write(
        &self,
        place: Place,
        digest: u64,
        node: &str,
        keep: usize,
        content: &mut Content<'_>,
    ) -> Result<SnapshotInfo, EngineError>;

    /// Whether this node may write one now: one at a time may, for so long or until it gives that back. Who has it already gets it
    /// anew.
    fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError>;

    /// Nothing happens if another one has it by now.
    fn give_back(&self, node: &str) -> Result<(), EngineError>;
}
