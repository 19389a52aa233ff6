//! What a node has, and where it stands. What it does is in [`crate::node`] and [`crate::changes`].

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tonic::Status;

use crate::clock::Clock;
use crate::etcd::Client;
use crate::records::{Head, Names, Said, TokenId};
use crate::replica::Replica;
use crate::settings::Settings;

/// Why a node has no answer, or has not done what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// The token has no key: 400.
    Token(token_key::TokenError),
    /// The node can't tell, or does not know whether a change was made: 503. Ask again.
    Unknown(String),
    /// The expiry is too far in the future: 422. The latest one, in seconds since 1970.
    TooLate(u64),
    /// The fleet is full: 507.
    Full,
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(error) => error.fmt(f),
            Self::Unknown(why) => f.write_str(why),
            Self::TooLate(latest) => write!(
                f,
                "the latest expiry is now {latest}: check that yours is in seconds; if tokens live this long, run `fleet \
                 found` with a larger --longest-lifetime"
            ),
            Self::Full => f.write_str(
                "as many tokens are revoked as the fleet has room for: wait until some have expired, or run `fleet found` \
                 with a larger --capacity",
            ),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<Status> for NodeError {
    fn from(fault: Status) -> Self {
        Self::Unknown(fault.message().to_owned())
    }
}

/// What a node knows and does. There is a new one whenever that changes.
pub(crate) struct Stand {
    /// Whether it answers with errors.
    pub(crate) is_waiting: bool,
    pub(crate) why: String,
    pub(crate) replica: Option<Arc<Replica>>,
}

/// What the node knows of an epoch, also after it has joined again.
#[derive(Clone, Default)]
pub(crate) struct LastKnown {
    /// The revision of the epoch's record, and the epoch's number. (After a restore, another one may have that revision.)
    epoch: (i64, u64),
    /// The last change: one that the node has made, or the head of its replica, or of one before.
    change: Head,
    /// What the cluster has lost, as this node found out. There is no way back: only a new epoch mends it.
    lost: Option<String>,
}

impl LastKnown {
    /// Fails if the cluster lacks the change, or has lost something else. The answer must be one to a question that was sent
    /// when that was known already.
    pub(crate) fn compare(&self, said: &Said) -> Result<(), String> {
        let (theirs, ours) = (said.head.revision, self.change.revision);
        match &self.lost {
            _ if self.epoch != (said.epoch_revision, said.epoch.as_ref().map_or(0, |epoch| epoch.number)) => Ok(()),
            Some(why) => Err(why.clone()),
            None if theirs > ours || said.head == self.change => Ok(()),
            None => Err(format!(
                "its last change is of revision {theirs}, and this node knows of another one of revision {ours}"
            )),
        }
    }
}

/// What has become of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Until when the token is revoked, in seconds since 1970, without the margin. The token may be over already.
    pub until: u64,
    /// Whether this has changed something. (If the change was sent twice, this may be false.)
    pub is_new: bool,
}

/// A revocation on its way into etcd.
pub(crate) struct Change {
    pub(crate) id: TokenId,
    pub(crate) until: u64,
    /// When whoever has sent it gives up.
    pub(crate) by: Instant,
    pub(crate) reply: oneshot::Sender<Result<Revocation, NodeError>>,
}

/// The lease of the next records.
#[derive(Default)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    /// By the monotonic clock.
    pub(crate) usable_until: Duration,
    pub(crate) room: usize,
}

/// How many changes may wait.
const WAITING: usize = 10_000;

/// A node of a fleet. It follows the fleet while [`run`](Self::run) is polled.
pub struct Node {
    pub(crate) settings: Settings,
    pub(crate) names: Names,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    stand: ArcSwap<Stand>,
    last_known: Mutex<LastKnown>,
    /// Changes that wait.
    pub(crate) changes: mpsc::Sender<Change>,
    pub(crate) waiting: tokio::sync::Mutex<mpsc::Receiver<Change>>,
    pub(crate) lease: tokio::sync::Mutex<Lease>,
    pub(crate) joins: AtomicU64,
    pub(crate) questions: AtomicU64,
}

impl Node {
    /// A node, which does nothing yet.
    ///
    /// # Errors
    /// If the rate is not between 0 and 1, or if an address of etcd or a file for TLS can't be read.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self, String> {
        if !(settings.rate > 0.0 && settings.rate < 1.0) {
            return Err(format!("the rate is {}, and must be greater than 0 and less than 1", settings.rate));
        }
        let (changes, waiting) = mpsc::channel(WAITING);
        let stand = Stand { is_waiting: false, why: "it has just started".into(), replica: None };
        Ok(Self {
            names: Names::of(&settings.fleet),
            client: Client::new(&settings.etcd, settings.one_try())?,
            clock,
            stand: ArcSwap::from_pointee(stand),
            last_known: Mutex::default(),
            changes,
            waiting: waiting.into(),
            lease: Lease::default().into(),
            joins: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            settings,
        })
    }

    pub(crate) fn stand(&self) -> Arc<Stand> {
        self.stand.load_full()
    }

    pub(crate) fn replica(&self) -> Option<Arc<Replica>> {
        self.stand.load().replica.clone()
    }

    pub(crate) fn set(&self, is_waiting: bool, why: String, replica: Option<Arc<Replica>>) {
        let now = self.stand.load();
        let is_same = now.replica.as_ref().map(Arc::as_ptr) == replica.as_ref().map(Arc::as_ptr);
        if now.is_waiting == is_waiting && now.why == why && is_same {
            return;
        }
        tracing::info!(is_waiting, "{why}");
        self.stand.store(Arc::new(Stand { is_waiting, why, replica }));
    }

    /// Remembers a change in the epoch of this replica, even if the node joins again.
    pub(crate) fn remember(&self, replica: &Replica, change: Head) {
        let epoch = (replica.epoch_revision, replica.epoch.number);
        let mut known = self.last_known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.epoch != epoch {
            *known = LastKnown { epoch, change, lost: None };
        } else if known.change.revision < change.revision {
            known.change = change;
        }
    }

    /// Remembers a loss in the epoch of its replica. The first reason stays.
    pub(crate) fn lose(&self, why: &str) {
        self.last_known(); // It is of that epoch then.
        let mut known = self.last_known.lock().unwrap_or_else(PoisonError::into_inner);
        known.lost.get_or_insert_with(|| why.to_owned());
    }

    /// With the head of its replica.
    pub(crate) fn last_known(&self) -> LastKnown {
        if let Some(replica) = self.replica() {
            self.remember(&replica, replica.head());
        }
        self.last_known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails if the node waits for an operator.
    pub(crate) fn is_allowed(&self) -> Result<(), NodeError> {
        let stand = self.stand.load();
        if stand.is_waiting { Err(NodeError::Unknown(stand.why.clone())) } else { Ok(()) }
    }
}
