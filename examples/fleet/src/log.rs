//! What a node needs from an engine: a log of changes, the record that results from them, and a place for
//! snapshots.
//!
//! # What an engine must promise
//!
//! The log and its durability are the engine's task. Each of these promises is needed; a fleet goes wrong without
//! any one of them.
//!
//! - *Total order*: all followers read the same messages in the same order.
//! - *Durable acknowledgement*: when an append returns, its message survives a crash of the engine. (If the engine
//!   loses a message all the same, the fleet loses it.)
//! - *Dense numbers*: messages are numbered 1, 2, 3 and so on. A follower sees by the number alone that a message
//!   is missing.
//! - *Deduplication*: a message that is sent twice under one identifier is appended once, and both sends get the
//!   same answer. So a sender that got no answer sends again.
//! - *A record that is changed in the same step*: the record says for each token until when it is revoked. The
//!   result of a proposal depends on it. So two nodes that revoke one token at the same time add one entry, and no
//!   filter is asked to remove an entry that it does not have.
//! - *One clock*: the ticks of all filters come from the engine's clock, as messages of the log.
//!
//! # Engines
//!
//! - *Redis 7 and Valkey* (streams): they provide total order and durability (`appendfsync always`). One Lua script
//!   adds the rest.
//! - *NATS JetStream*: total order, dense numbers within a stream, and deduplication by `Nats-Msg-Id`. By default
//!   it acknowledges before the message is on disk; `sync_interval: always` is durable, and slower. It has no
//!   record that changes in the same step. A node would have to keep the record itself, propose, and have the
//!   stream refuse what was proposed on old knowledge (`Nats-Expected-Last-Sequence`).
//! - *Kafka*: total order within one partition. It recognizes an idempotent producer's retries within one producer
//!   session only. Offsets are not dense if there are transactions. By default, durability comes from replicas in
//!   memory, not from the disk. It has no record that changes in the same step either, and no conditional append.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::change::{Agreement, Change, Outcome, Position, Proposal, Tick, TokenId};

/// Identifies one log among those that an engine has had under one name. It is drawn anew when a log begins. An
/// engine that has lost everything begins a new log, and nodes see by the epoch that it is not theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch(pub(crate) u64);

/// A place in a log. Each request of a node carries the place that the node knows. An engine whose log is another
/// one, or ends before this place, has lost something. It answers [`EngineError::AnotherLog`] instead of something
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
}

/// Later than every time.
pub(crate) const NEVER: u64 = 1 << 53;

/// The identifier of a message, made by the sender. Messages with the same identifier count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageId(pub(crate) [u8; 16]);

/// A message of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) position: Position,
    /// In the order in which they must be applied.
    pub(crate) changes: Vec<Change>,
    /// When the engine took the message, in milliseconds since 1970 by the engine's clock.
    pub(crate) at: u64,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: Epoch,
    /// The position of the last message. The first message is the tick with which a log begins, so this is never 0.
    pub(crate) position: Position,
    /// The position of the first message that is still there. If there is none, this is `position` plus one.
    pub(crate) first: Position,
    /// The tick of the filters' clock at the head.
    pub(crate) tick: Tick,
    /// The engine's clock, in milliseconds since 1970.
    pub(crate) now: u64,
}

impl Head {
    pub(crate) fn place(&self) -> Place {
        Place { epoch: self.epoch, position: self.position }
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// A node that has applied this position knows everything that the outcomes say.
    pub(crate) position: Position,
    /// One for each proposal.
    pub(crate) outcomes: Vec<Outcome>,
}

/// Why the engine did not do what was asked.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// The engine could not be reached, did not answer in time, or is not ready. It may have done what was asked
    /// all the same. Try again, with the same identifier.
    Unreachable(String),
    /// The engine refuses, and trying again does not help. Its settings, its memory or its access rights have to be
    /// changed.
    Refused(String),
    /// The message arrived after the time until which its sender allowed it. `now` is the engine's clock.
    TooLate { before: u64, now: u64 },
    /// The log begins after the message that should be read.
    Gap { position: Position, first: Position },
    /// The log is another one than expected, or ends before the expected place: the engine has lost what it knew.
    /// `found` is `None` if there is no log.
    AnotherLog { expected: Place, found: Option<Place> },
    /// The fleet has agreed on other settings.
    Disagreement { ours: String, theirs: String },
    /// The bytes read are not those that were written: a damaged message or snapshot.
    Damaged(String),
    /// The content of a snapshot could not be made.
    Content(io::Error),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the engine can't be reached: {why}"),
            Self::Refused(why) => write!(f, "the engine refuses: {why}"),
            Self::TooLate { before, now } => write!(
                f,
                "the message had to arrive before {before}, in milliseconds since 1970, and the engine's clock shows \
                 {now}; send it again"
            ),
            Self::Gap { position, first } => write!(
                f,
                "the log begins at {first}, so messages after {position} are missing; load a snapshot of {} or later",
                first - 1
            ),
            Self::AnotherLog { expected, found: None } => {
                write!(f, "the engine has no log any more; this node knows {expected}")
            }
            Self::AnotherLog { expected, found: Some(found) } if found.epoch == expected.epoch => {
                write!(f, "the engine has lost the end of its log: this node knows {expected}, but it ends at {found}")
            }
            Self::AnotherLog { expected, found: Some(found) } => {
                write!(f, "the engine has begun a new log: it is at {found}, and this node knows {expected}")
            }
            Self::Disagreement { ours, theirs } => write!(
                f,
                "the fleet has agreed on other settings: this node has {ours}, the fleet has {theirs}; start the node \
                 with the fleet's settings, or with another fleet name"
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

/// A log that many nodes append to and follow. The [module](self) lists what an engine must promise.
///
/// Every call returns after some time, even if the engine hangs; then it returns [`EngineError::Unreachable`]. The
/// next call starts anew, so there is no need to discard any of these after an error.
pub(crate) trait Log: Send + Sync {
    /// Joins the fleet of this name, or founds it, and agrees on what all nodes must have in common. A new log
    /// begins with a tick.
    fn agree(&self, agreement: &Agreement) -> Result<Head, EngineError>;

    /// What is wrong in the engine's settings, each with the remedy. Empty if all is well, or if the engine does
    /// not allow the question.
    fn concerns(&self) -> Result<Vec<String>, EngineError>;

    /// Where the log of this epoch ends.
    fn head(&self, epoch: Epoch) -> Result<Head, EngineError>;

    /// Appends the result of the proposals as one message, or nothing if they change nothing. When this returns,
    /// the message is durable. If the identifier was used before, this returns the answer of that time, and nothing
    /// is appended.
    ///
    /// If the engine's clock is ahead of the log's last tick, its tick is appended first, as a message of its own.
    /// So a proposal is judged by the engine's clock.
    ///
    /// From `before` on, by the engine's clock in milliseconds since 1970, nothing is appended any more:
    /// [`EngineError::TooLate`]. A message can be on its way for minutes, in a connection that has gone dead. Its
    /// sender may have given it up, and may have been told something else since. The late message must not undo
    /// that.
    fn append_before(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
    ) -> Result<Appended, EngineError>;

    /// The same, without a time limit.
    fn append(&self, known: Place, id: MessageId, proposals: &[Proposal]) -> Result<Appended, EngineError> {
        self.append_before(known, id, proposals, NEVER)
    }

    /// Appends the tick of the engine's clock, if that is ahead of the log's last tick.
    fn append_tick(&self, known: Place) -> Result<Head, EngineError>;

    /// The messages after this place, on a connection of its own. Sends nothing until the follower is first asked.
    fn follow(&self, after: Place) -> Result<Box<dyn Follower>, EngineError>;

    /// Until when the token is revoked by the record, in seconds since 1970. `None` if it is not revoked, or no
    /// longer by the engine's clock.
    fn revoked_until(&self, known: Place, token: TokenId) -> Result<Option<u64>, EngineError>;

    /// Deletes the messages up to this one.
    fn trim(&self, through: Place) -> Result<(), EngineError>;

    /// Reports the digest of this node's filter at a place, and returns all digests reported so far, by node.
    fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError>;
}

/// A place in the log from which messages are read.
pub(crate) trait Follower: Send {
    /// The next messages. Waits up to `wait` for the first one, and returns an empty list if none comes. An empty
    /// list also says that the engine is there, and that nothing more had been appended when it answered.
    ///
    /// Numbers have no holes. A message that is not the next one is [`EngineError::Gap`]. The same error is
    /// returned if there is no message to read but the head is further on. After [`EngineError::Unreachable`] the
    /// next call connects again and goes on from the same place. After any other error the follower can't be used
    /// any more.
    fn next(&mut self, wait: Duration) -> Result<Vec<Message>, EngineError>;
}

/// What the engine knows about a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotInfo {
    /// The last message that the snapshot contains.
    pub(crate) place: Place,
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
    /// When it was complete, in milliseconds since 1970 by the engine's clock.
    pub(crate) at: u64,
    /// Which node wrote it.
    pub(crate) node: String,
    /// The name under which the engine stores it.
    pub(crate) key: String,
}

/// Writes the content of a snapshot.
pub(crate) type Content<'a> = dyn FnMut(&mut dyn io::Write) -> io::Result<()> + 'a;

/// Where the nodes of a fleet keep snapshots.
pub(crate) trait Snapshots: Send + Sync {
    /// The complete snapshots of this log, the newest first.
    fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError>;

    /// The content of a snapshot. The reader fails if a chunk is damaged or missing, or if the engine can't be
    /// reached.
    fn read(&self, info: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError>;

    /// Writes a snapshot in chunks. It appears in the list only when all of them are durable and were read back.
    /// Then the snapshots before the last `keep` are deleted.
    fn write(
        &self,
        place: Place,
        digest: u64,
        node: &str,
        keep: usize,
        content: &mut Content<'_>,
    ) -> Result<SnapshotInfo, EngineError>;

    /// Takes the lease for writing: whether this node may write a snapshot now. One node at a time has it, for this
    /// long or until it gives it back. A node that has it already gets it anew.
    fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError>;

    /// Gives the lease back. Does nothing if another node has it by now.
    fn give_back(&self, node: &str) -> Result<(), EngineError>;
}
