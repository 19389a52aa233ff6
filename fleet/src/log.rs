//! What a node needs from an engine: a log of changes, the record that results from them, and a place for
//! snapshots.
//!
//! # What an engine must promise
//!
//! The log and its durability are the engine's task. A fleet goes wrong without any one of these promises.
//!
//! - *Total order and dense numbers*: all nodes read the same messages in the same order, numbered 1, 2, 3 and so
//!   on.
//! - *A chain*: each message carries a hash of its content and of the hash before it. Numbers repeat after a restored
//!   backup or a fail-over. The hash of a position does not: it stands for all messages up to there.
//! - *Durable acknowledgement*: when an append returns, its message survives a crash of the engine.
//! - *Deduplication*: a message that is sent twice under one identifier is appended once, and both sends get the
//!   same answer.
//! - *A record that is changed in the same step*: the record says for each token until when it is revoked.
//! - *Only the master answers*: everything except [`Log::read`] fails on a replica. What `read` returns proves
//!   itself by the chain, and a node trusts it only up to a position that the master named.
//! - *Suspicion*: what depends on the engine's clock is refused if that clock is later than the caller's own clocks
//!   allow ([`Log::word`]). Nothing is forgotten by the engine's clock alone.
//!
//! # A word
//!
//! A node's claim "this token is not revoked" rests on a *word*: an answer of [`Log::word`]. It says: *I am the
//! master; your place is in my log; my log ends here, with this hash; my clock is not later than yours allows.* The
//! node is ready once it has applied that place, with the same hash, and until `stale_after` has passed since it
//! sent the question.
//!
//! # Engines
//!
//! Redis 7 and Valkey provide order and durability (streams, `appendfsync always`). Lua scripts add the rest. NATS
//! JetStream and Kafka have no record that changes in the same step, and no scripts: there, each node would have to
//! keep the record itself and have the log refuse what was proposed on old knowledge.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::change::{Agreement, Change, Outcome, Position, Proposal, Tick, TokenId};

/// Identifies one log among those that an engine has had under one name. It is drawn anew when a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

/// A hash of a message and of the hash before it, so of the whole log up to it. [`Chain::START`] stands before the
/// first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain(pub u64);

impl Chain {
    /// The hash before the first message.
    pub const START: Self = Self(0);
}

/// A place in a log. Each request of a node carries the place that the node knows. An engine whose log does not go
/// through this place has lost something, or is another one. It answers [`EngineError::AnotherLog`] instead of
/// something wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which log.
    pub epoch: Epoch,
    /// The last message before this place.
    pub position: Position,
    /// The hash of that message.
    pub chain: Chain,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch: Epoch(epoch), position, chain: Chain(chain) } = self;
        write!(f, "position {position} (hash {chain:016x}) of log {epoch:016x}")
    }
}

/// Later than every time.
pub const NEVER: u64 = 1 << 53;

/// The identifier of a message, made by the sender. Messages with the same identifier count once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(pub [u8; 16]);

/// A message of the log. Its hash was compared with that of the message before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The place after this message.
    pub place: Place,
    /// In the order in which they must be applied.
    pub changes: Vec<Change>,
    /// When the engine took the message, in milliseconds since 1970 by the engine's clock.
    pub at: u64,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The end of the log.
    pub place: Place,
    /// The position of the first message that is still there, or that of the next one.
    pub first: Position,
    /// The tick of the filters' clock at the head.
    pub tick: Tick,
    /// How many entries are live at the head.
    pub live: u64,
    /// The engine's clock, in milliseconds since 1970.
    pub now: u64,
    /// How many messages that no node has written were removed from the log so far.
    pub foreign: u64,
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// A node that has applied this place knows everything that the outcomes say.
    pub place: Place,
    /// One for each proposal.
    pub outcomes: Vec<Outcome>,
}

/// What a node knew of the log before, and from when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The furthest place that the node knew.
    pub place: Place,
    /// The engine's clock when it was known to be in the log, in milliseconds since 1970.
    pub at: u64,
}

/// How a node joins a fleet.
#[derive(Clone, Debug)]
pub struct Joining<'a> {
    /// What all nodes must have in common.
    pub agreement: &'a Agreement,
    /// What this node knew of the log before. If the engine has another log, somebody has lost something.
    pub memory: Option<Memory>,
    /// Whether to accept that without asking an operator.
    pub accepts_loss: bool,
    /// The latest time that the engine's clock may show.
    pub latest: u64,
    /// The name of the node.
    pub node: &'a str,
}

/// Why the engine did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// It may have done what was asked all the same. Try again, with the same identifier.
    #[error("the engine can't be reached: {0}")]
    Unreachable(String),
    /// Trying again does not help. Its settings, its memory or its access rights have to be changed.
    #[error("the engine refuses: {0}")]
    Refused(String),
    /// The message arrived after the time until which its sender allowed it.
    #[error(
        "the message had to arrive before {before}, in milliseconds since 1970, and the engine's clock shows {now}; \
         send it again"
    )]
    TooLate {
        /// The end of that time.
        before: u64,
        /// The engine's clock.
        now: u64,
    },
    /// The engine's clock is later than the node's own clocks allow.
    #[error(
        "the engine's clock shows {now}, in milliseconds since 1970, and by this node's own clocks it can't be later \
         than {latest}; set the clock of the engine's machine, or that of this one"
    )]
    Clock {
        /// The engine's clock.
        now: u64,
        /// The latest time that the node allows.
        latest: u64,
    },
    /// The log begins after the message that should be read.
    #[error("the log begins at {first}, so it does not say what follows {position}")]
    Gap {
        /// The last message that the node has.
        position: Position,
        /// The first message that is still there.
        first: Position,
    },
    /// The log does not go through the expected place: the engine has lost what it knew, or is another one.
    #[error("{}", another(.expected, .found))]
    AnotherLog {
        /// What the node knows.
        expected: Place,
        /// The end of the engine's log, if there is one.
        found: Option<Place>,
    },
    /// The engine has lost what a node knew, and an operator has to say how to go on.
    #[error("{0}; the fleet waits until an operator runs `fleet accept` (see RUNBOOK.md)")]
    Waits(String),
    /// The fleet has agreed on other settings.
    #[error(
        "the fleet has agreed on other settings: this node has {ours}, the fleet has {theirs}; start the node with \
         the fleet's settings and version, or with another fleet name"
    )]
    Disagreement {
        /// Those of this node.
        ours: String,
        /// Those of the fleet.
        theirs: String,
    },
    /// The bytes read are not those that were written: a damaged message or snapshot.
    #[error("damaged: {0}")]
    Damaged(String),
}

fn another(expected: &Place, found: &Option<Place>) -> String {
    match found {
        None => format!("the engine has no log any more; this node knows {expected}"),
        Some(found) if found.epoch == expected.epoch => format!(
            "the engine's log has gone another way (a restored backup, or a fail-over?): this node knows {expected}, \
             and the log is at {found}"
        ),
        Some(found) => format!("the engine has begun a new log: it is at {found}, and this node knows {expected}"),
    }
}

/// A log that many nodes append to and follow. The [module](self) lists what an engine must promise.
///
/// Every call returns after some time, even if the engine hangs; then it returns [`EngineError::Unreachable`]. The
/// next call starts anew. `known` is a place that the caller knows, and `latest` is the latest time, in milliseconds
/// since 1970, that the caller's own clocks allow.
#[async_trait]
pub trait Log: Send + Sync {
    /// Joins the fleet of this name, or founds it, and agrees on what all nodes must have in common. A new log
    /// begins with a tick.
    async fn agree(&self, joining: &Joining<'_>) -> Result<Head, EngineError>;

    /// What is wrong in the engine's settings, each with the remedy. Empty if all is well, or if the engine does
    /// not allow the question.
    async fn concerns(&self) -> Result<Vec<String>, EngineError>;

    /// The word by which a node is ready: where the log ends. If the engine's clock is in a later tick than the log,
    /// this appends the tick.
    async fn word(&self, known: Place, latest: u64) -> Result<Head, EngineError>;

    /// Appends the result of the proposals as one message, or nothing if they change nothing. When this returns,
    /// the message is durable. If the identifier was used before, this returns the answer of that time, and nothing
    /// is appended.
    ///
    /// From `before` on, by the engine's clock, nothing is appended any more: [`EngineError::TooLate`]. A message can
    /// be on its way for minutes, in a connection that has gone dead. Its sender may have given it up, and may have
    /// been told something else since. The late message must not undo that.
    async fn append(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
        latest: u64,
    ) -> Result<Appended, EngineError>;

    /// The messages after this place. Waits up to `wait` for the first one, and returns an empty list if none comes.
    /// This may come from a replica: it says nothing about what is missing at the end.
    ///
    /// # Errors
    /// [`EngineError::Gap`] if a number is missing, and [`EngineError::AnotherLog`] if a message does not have the
    /// hash that follows from the one before.
    async fn read(&self, after: Place, wait: Duration) -> Result<Vec<Message>, EngineError>;

    /// Until when each token is revoked by the record, in seconds since 1970.
    async fn revoked_until(&self, known: Place, tokens: &[TokenId]) -> Result<Vec<Option<u64>>, EngineError>;

    /// A part of the record, to rebuild a filter from: tokens and the ticks at which their entries end, and where to
    /// go on (0 at the end). It begins at 0. A token that is in the record all the time is in one part at least.
    async fn records(&self, known: Place, cursor: u64) -> Result<(u64, Vec<(TokenId, Tick)>), EngineError>;

    /// Deletes the messages before this one.
    async fn trim(&self, oldest: Place) -> Result<(), EngineError>;

    /// Reports the digest of this node's filter at a place, and returns all digests reported so far, by node.
    async fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError>;

    /// An operator accepts the log as it is, although nodes knew another one. Returns what the fleet waited for.
    async fn accept(&self) -> Result<Option<String>, EngineError>;
}

/// What the engine knows about a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The last message that the snapshot contains.
    pub place: Place,
    /// How long it is.
    pub bytes: u64,
    /// The digest of the filter in it.
    pub digest: u64,
    /// When it was begun, in milliseconds since 1970 by the engine's clock.
    pub at: u64,
    /// Which node wrote it.
    pub node: String,
    /// The name under which the engine stores it.
    pub key: String,
}

/// Where the nodes of a fleet keep snapshots, in numbered chunks.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// The snapshots of this log, the newest first.
    async fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError>;

    /// A chunk, from 0 on, as it was given to [`put`](Self::put). `None` if it is missing.
    async fn chunk(&self, key: &str, number: usize) -> Result<Option<Vec<u8>>, EngineError>;

    /// Stores a chunk durably. If its writer does not finish the snapshot, the chunks go away by themselves.
    async fn put(&self, place: Place, key: &str, number: usize, chunk: Vec<u8>) -> Result<(), EngineError>;

    /// Puts a snapshot of so many chunks into the list, and removes those before the last `keep`.
    async fn finish(&self, info: &SnapshotInfo, chunks: usize, keep: usize) -> Result<(), EngineError>;

    /// Removes a snapshot.
    async fn forget(&self, key: &str) -> Result<(), EngineError>;

    /// Takes the lease for writing: whether this node may write a snapshot now. One node at a time has it, for this
    /// long or until it gives it back. A node that has it already gets it anew.
    async fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError>;

    /// Gives the lease back. Does nothing if another node has it by now.
    async fn give_back(&self, node: &str) -> Result<(), EngineError>;
}
