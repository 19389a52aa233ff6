//! CONCURRENT: a node: a filter in memory that follows the log, and the record behind it.
//!
//! ```text
//!   revoke ──▶ publisher ──append──▶ engine ──read──▶ applier ──▶ filter ◀── lookups, lock-free
//!     ▲                               ▲ ▲ ▲             │
//!     │                               │ │ │  moments at │ position
//!     │                          word │ │ │  ticks      ▼
//!     └── once it is applied here     │ │ └── keeper ◀──┤
//!                 lookups ──inquiry───┘ └──── watcher ──▶ lease
//! ```
//!
//! Two threads, because they work on the filter, and tasks of the runtime:
//! - the *applier* (a thread) loads a filter (`joining`, `rebuild`), follows the log and changes the filter (`apply`);
//!   no other thread changes it;
//! - the *keeper* (a thread) compares digests and writes snapshots, at positions of ticks;
//! - the *watcher* asks the engine again and again for its *word*, by which the node is ready (`life`, `state`, `time`);
//! - the *publisher* groups the proposals of concurrent requests into messages;
//! - the *inquiry* groups the questions of concurrent requests to the record.
//!
//! `life` shows why a lookup's answer is right, and `publisher` when and how a change is answered.

mod applier;
mod apply;
mod chunks;
mod clock;
mod digest;
mod health;
mod inquiry;
mod joining;
mod keeper;
mod life;
mod metrics;
mod publisher;
mod rebuild;
mod settings;
mod state;
mod step;
mod tallies;
#[cfg(test)]
mod tests;
mod time;
mod watcher;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use arc_swap::ArcSwapOption;
use concurrent_cuckoo_filter::StableHashBuilder;
use tokens::figures::Figures;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use self::clock::{Clock, Moment};
pub use self::health::{DigestAt, Health, Lag, Past, SnapshotAt};
use self::inquiry::Inquiry;
use self::life::{Answer, Life, Loss};
use self::publisher::Order;
pub use self::settings::Settings;
use self::settings::token_id;
use self::state::Standing;
pub use self::state::State;
pub use self::step::{LeftOut, Step};
use self::tallies::Tallies;
use self::time::Time;
use crate::change::{Outcome, Position, Proposal};
use crate::log::{EngineError, Head, Log, Memory, Place, SnapshotInfo, Snapshots};

/// Everything that a node needs from an engine.
pub trait Engine: Log + Snapshots {}

impl<E: Log + Snapshots> Engine for E {}

/// Why a node does not answer, or has not done what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The node can't tell, or the change may or may not have been made. Try again, or ask another node.
    #[error("{0}")]
    Unavailable(String),
    /// The token must be refused for longer than the fleet can remember.
    #[error(
        "the token must be refused until {until}, in seconds since 1970, and the fleet can remember it until {latest} at most"
    )]
    TooLate {
        /// What was asked for, in seconds since 1970.
        until: u64,
        /// What would be possible.
        latest: u64,
    },
    /// As many tokens are revoked as the fleet was made for.
    #[error("{live} tokens are revoked, and the fleet was made for {capacity}")]
    Full {
        /// How many tokens are revoked.
        live: u64,
        /// How many may be.
        capacity: u64,
    },
}

/// What has become of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Until when the token is revoked, in seconds since 1970. `None` if it has expired already, so there is nothing to
    /// remember.
    pub until: Option<u64>,
    /// It is revoked, or revoked for longer, because of this call.
    pub is_new: bool,
    /// A node that has applied this position knows it.
    pub position: Position,
}

/// A node of a fleet: a filter that follows the log.
///
/// [`is_revoked`](Self::is_revoked) answers from memory, in nanoseconds, as long as the node is *ready*. Otherwise, and
/// for a token that may be revoked, it asks the record in the engine. If it can't tell, it says so.
///
/// The node ends when this is dropped.
pub struct Node {
    core: Arc<Core>,
    tasks: Vec<AbortHandle>,
    applier: Mutex<Option<JoinHandle<()>>>,
}

/// What the threads and tasks of a node share.
pub(crate) struct Core {
    pub(crate) settings: Settings,
    /// The name, with a random number.
    name: String,
    engine: Arc<dyn Engine>,
    runtime: Handle,
    hasher: StableHashBuilder,
    clock: Clock,
    left_out: LeftOut,
    /// The filter that lookups look into.
    life: ArcSwapOption<Life>,
    standing: Mutex<Standing>,
    known: Mutex<Option<Known>>,
    time: Mutex<Time>,
    /// Why nothing is answered at all, although the engine answers.
    trouble: Mutex<Trouble>,
    /// How far the filter has come, for requests that wait for that.
    applied: watch::Sender<Option<Place>>,
    orders: mpsc::Sender<Order>,
    inquiry: Inquiry,
    pub(crate) tallies: Tallies,
    /// Those of the filters, one after the other.
    figures: Figures,
    /// The digest of the filter at the last position at which it was taken.
    digest: Mutex<Option<(Position, u64)>>,
    /// The newest snapshot that this node knows of.
    snapshot: Mutex<Option<SnapshotInfo>>,
    /// When that snapshot was begun, by the engine's clock; 0 if there is none.
    snapshot_at: AtomicU64,
    /// The engine did not answer the watcher's last question.
    is_silent: AtomicBool,
    is_ending: AtomicBool,
}

/// The furthest place that a node knows. Each request carries it, so an engine that has lost something reports that.
#[derive(Clone, Copy, Debug)]
struct Known {
    memory: Memory,
    head: Head,
}

impl Known {
    fn new(head: Head) -> Self {
        Self { memory: Memory { place: head.place, at: head.now }, head }
    }

    /// The log has reached this place. News of another log is ignored, because it comes too late.
    fn at(&mut self, place: Place) {
        let known = &mut self.memory.place;
        if place.epoch == known.epoch && place.position > known.position {
            *known = place;
        }
    }
}

/// Contradictions of which each alone is enough to answer nothing.
#[derive(Debug, Default)]
struct Trouble {
    /// The engine's clock contradicts this node's.
    clock: Option<String>,
    /// The log has a tick that contradicts this node's clock.
    tick: Option<String>,
    /// The engine has lost something, and the fleet waits for an operator.
    loss: Option<String>,
}

impl Node {
    /// Starts a node, within a Tokio runtime. It begins to join, and meanwhile answers from the record as soon as it
    /// has reached the engine.
    ///
    /// # Errors
    /// If the fleet has agreed on other settings than this node's, the engine refuses, or the system gives no thread. An
    /// engine that can't be reached is not an error.
    pub async fn start(settings: Settings, engine: Arc<dyn Engine>) -> Result<Self, String> {
        Self::start_without(settings, engine, LeftOut::default()).await
    }

    /// The same without some steps, for tests.
    #[doc(hidden)]
    pub async fn start_without(settings: Settings, engine: Arc<dyn Engine>, left_out: LeftOut) -> Result<Self, String> {
        Self::start_with(settings, engine, left_out, Clock::default()).await
    }

    async fn start_with(
        settings: Settings,
        engine: Arc<dyn Engine>,
        left_out: LeftOut,
        clock: Clock,
    ) -> Result<Self, String> {
        // So that a filter that can't be built is an error now, and not only later.
        settings.filter().map_err(|error| {
            format!("the capacity, rate, longest lifetime, leeway and resolution can't be met: {error}")
        })?;
        let random = getrandom::u64().map_err(|error| format!("the system gives no random bytes: {error}"))?;
        let name = format!("{}#{random:016x}", settings.node);
        let (orders, received) = mpsc::channel(publisher::WAITING);
        let (inquiry, questions) = inquiry::new();
        let core = Arc::new(Core {
            standing: Mutex::new(Standing::new(name.clone(), clock.now())),
            hasher: settings.hasher(),
            runtime: Handle::current(),
            time: Mutex::new(Time::new(settings.clock_margin)),
            name,
            engine,
            clock,
            left_out,
            life: ArcSwapOption::empty(),
            known: Mutex::new(None),
            trouble: Mutex::default(),
            applied: watch::Sender::new(None),
            orders,
            inquiry,
            tallies: Tallies::default(),
            figures: Figures::new("revoked"),
            digest: Mutex::new(None),
            snapshot: Mutex::new(None),
            snapshot_at: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            settings,
        });
        let memory = watcher::remembered(&core);
        match joining::agree(&core, memory).await {
            Err(EngineError::Unreachable(why)) => {
                tracing::warn!(node = core.name, why, "the engine can't be reached yet");
            }
            Err(error @ (EngineError::Clock { .. } | EngineError::Waits(_))) => {
                tracing::warn!(node = core.name, %error, "the node can't join yet");
            }
            Err(error) => return Err(error.to_string()),
            Ok(_) => {
                for concern in core.engine.concerns().await.unwrap_or_default() {
                    tracing::warn!(node = core.name, concern, "the engine's settings are not safe");
                }
            }
        }
        let tasks = vec![
            tokio::spawn(watcher::run(Arc::clone(&core))).abort_handle(),
            tokio::spawn(publisher::run(Arc::clone(&core), received)).abort_handle(),
            tokio::spawn(inquiry::run(Arc::clone(&core), questions)).abort_handle(),
        ];
        let applying = Arc::clone(&core);
        let applier = thread::Builder::new().name("applier".into()).spawn(move || applier::run(&applying, memory));
        let applier = Mutex::new(Some(applier.map_err(|error| format!("no thread: {error}"))?));
        Ok(Self { core, tasks, applier })
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// The name of the node: that of its settings, and a random number.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The settings of the node.
    pub fn settings(&self) -> &Settings {
        &self.core.settings
    }

    /// Whether the token is revoked.
    ///
    /// # Errors
    /// [`NodeError::Unavailable`] if the node can't tell. Then a request with this token must not pass.
    pub async fn is_revoked(&self, token: &str) -> Result<bool, NodeError> {
        Ok(self.revoked_until(token).await?.is_some())
    }

    /// Until when the token is revoked, in seconds since 1970, if it is.
    ///
    /// # Errors
    /// As for [`is_revoked`](Self::is_revoked).
    pub async fn revoked_until(&self, token: &str) -> Result<Option<u64>, NodeError> {
        match self.core.answer(self.core.hash(token)) {
            Answer::Absent => Ok(None),
            answer => self.core.ask(token, answer).await,
        }
    }

    /// Revokes the token at least until this time, in seconds since 1970. When this returns, the change is on the
    /// engine's disk and in this node's filter. All ready nodes refuse the token after
    /// [`stale_after`](Settings::stale_after) at the latest.
    ///
    /// # Errors
    /// After [`NodeError::Unavailable`], the token may be revoked or not. To revoke it again is safe.
    pub async fn revoke(&self, token: &str, until: u64) -> Result<Revocation, NodeError> {
        let core = &*self.core;
        let end = core.settings.end(until);
        let proposal = Proposal::Revoke { token: token_id(token), hash: core.hash(token), until, end };
        let (outcome, Place { position, .. }) = core.publish(proposal).await?;
        match outcome {
            Outcome::Revoked { until } => Ok(Revocation { until: Some(until), is_new: true, position }),
            Outcome::AlreadyRevoked { until } => Ok(Revocation { until: Some(until), is_new: false, position }),
            Outcome::Expired => Ok(Revocation { until: None, is_new: false, position }),
            Outcome::TooLate { latest } => {
                let latest =
                    (u64::from(latest) * core.settings.resolution).saturating_sub(core.settings.clock_margin.as_secs());
                Err(NodeError::TooLate { until, latest })
            }
            Outcome::Full { live, capacity } => Err(NodeError::Full { live, capacity }),
            Outcome::Restored | Outcome::NotRevoked => Err(strange(outcome)),
        }
    }

    /// Ends the revocation of the token. Returns whether it was revoked.
    ///
    /// # Errors
    /// After [`NodeError::Unavailable`], the token may be revoked or not. To restore it again is safe.
    pub async fn restore(&self, token: &str) -> Result<bool, NodeError> {
        let proposal = Proposal::Restore { token: token_id(token), hash: self.core.hash(token) };
        match self.core.publish(proposal).await?.0 {
            Outcome::Restored => Ok(true),
            Outcome::NotRevoked => Ok(false),
            outcome => Err(strange(outcome)),
        }
    }

    /// The time by the engine's clock, in seconds since 1970.
    ///
    /// # Errors
    /// If the node has not reached the engine yet.
    pub fn time(&self) -> Result<u64, NodeError> {
        let now = self.core.engine_now().ok_or_else(|| {
            unavailable("the node has not reached the engine since it was started, so it does not know the time")
        })?;
        Ok(now / 1000)
    }

    /// The state of the node, and what it knows.
    pub fn health(&self) -> Health {
        Health::of(&self.core)
    }

    /// Ends the node, and waits for its threads. Without this, a runtime that is shut down at once would take away what
    /// they wait for.
    pub async fn end(&self) {
        self.stop();
        let applier = lock(&self.applier).take();
        let joined = tokio::task::spawn_blocking(|| applier.map(JoinHandle::join)).await;
        if !matches!(joined, Ok(None | Some(Ok(())))) {
            tracing::error!(node = self.core.name, "a thread of the node has panicked");
        }
    }

    fn stop(&self) {
        self.core.is_ending.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(AbortHandle::abort);
        if let Some(life) = &*self.core.life.load() {
            life.lose(Loss::End);
        }
    }

    /// Whether the node answers from its filter.
    pub fn is_ready(&self) -> bool {
        let now = self.core.clock.now();
        self.core.standing().now(now).state == State::Ready
    }
}

fn strange(outcome: Outcome) -> NodeError {
    unavailable(&format!("the engine has answered another question: {outcome:?}; are all nodes of the same version?"))
}

impl Core {
    pub(crate) fn hash(&self, token: &str) -> u64 {
        self.hasher.hash_bytes(&token_id(token).0)
    }

    /// What the filter alone answers. Takes no lock.
    #[inline]
    pub(crate) fn answer(&self, hash: u64) -> Answer {
        match &*self.life.load() {
            Some(life) => life.answer(hash, &self.clock),
            None => Answer::Unsure,
        }
    }

    /// Asks the record, where the filter has given this answer.
    async fn ask(&self, token: &str, answer: Answer) -> Result<Option<u64>, NodeError> {
        if let Some(why) = lock(&self.trouble).first() {
            return Err(unavailable(&format!("the node can't tell: {why}")));
        }
        // If the engine does not answer the watcher either, no request waits for it: all requests come here now.
        if answer == Answer::Unsure && self.is_silent.load(Ordering::Relaxed) {
            return Err(unavailable(
                "the node can't tell, and the record can't be asked: the engine does not answer; ask another node",
            ));
        }
        self.tallies.questions.add(1);
        if self.left_out.has(Step::Record) {
            return Ok(None);
        }
        let until = self.inquiry.ask(token_id(token)).await.map_err(|why| {
            unavailable(&format!("the node can't tell, and the record can't be asked: {why}; ask another node"))
        })?;
        // Longer than told, because the clock may be ahead.
        let now = self.engine_now().unwrap_or_default() / 1000;
        let margin = self.settings.clock_margin.as_secs();
        let until = until.filter(|until| until.saturating_add(margin) > now);
        if until.is_none() && answer == Answer::Perhaps {
            // Or it was restored or expired at just this moment.
            if let Some(life) = &*self.life.load() {
                life.filter.record_false_positives(1);
            }
        }
        Ok(until)
    }

    /// Runs engine calls on a thread.
    fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn known(&self) -> Option<Known> {
        *lock(&self.known)
    }

    fn known_place(&self) -> Option<Place> {
        self.known().map(|known| known.memory.place)
    }

    fn learn(&self, place: Place) {
        if let Some(known) = &mut *lock(&self.known) {
            known.at(place);
        }
    }

    /// The engine's clock as this node believes it, in milliseconds since 1970.
    fn engine_now(&self) -> Option<u64> {
        lock(&self.time).now(self.clock.now())
    }

    /// The latest time that the engine's clock may show.
    fn latest(&self) -> u64 {
        if self.left_out.has(Step::Clocks) {
            return crate::log::NEVER;
        }
        lock(&self.time).latest(self.clock.now(), self.clock.machine())
    }

    /// The engine's clock has shown this time since it was asked.
    fn hear(&self, engine: u64, asked: Moment) -> Result<(), String> {
        let heard = lock(&self.time).hear(engine, asked, self.clock.now(), self.clock.machine());
        if self.left_out.has(Step::Clocks) { Ok(()) } else { heard }
    }

    /// Notes a contradiction, or that it is over. The node answers nothing until then.
    fn trouble(&self, of: fn(&mut Trouble) -> &mut Option<String>, why: Option<String>) {
        let mut trouble = lock(&self.trouble);
        let noted = of(&mut trouble);
        if *noted == why {
            return;
        }
        match &why {
            Some(why) if noted.is_none() => tracing::error!(node = self.name, why, "the node answers nothing"),
            None => tracing::info!(node = self.name, "the node answers again"),
            Some(_) => {}
        }
        *noted = why;
    }

    /// The clocks contradict each other.
    fn contradiction(&self, of: fn(&mut Trouble) -> &mut Option<String>, why: String) {
        self.tallies.contradictions.add(1);
        self.trouble(of, Some(why.clone()));
        if let Some(life) = &*self.life.load() {
            life.doubt();
        }
        self.standing().doubt(self.clock.now(), why);
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        lock(&self.standing)
    }

    /// Records a lease that has begun or was made longer.
    fn leased(&self, until: Option<Moment>) {
        if let Some(until) = until {
            self.standing().word(self.clock.now(), until);
        }
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }
}

impl Trouble {
    fn first(&self) -> Option<&String> {
        self.loss.as_ref().or(self.clock.as_ref()).or(self.tick.as_ref())
    }
}

fn unavailable(why: &str) -> NodeError {
    NodeError::Unavailable(why.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Node {
    fn drop(&mut self) {
        // Its thread ends within a second. Nobody waits for that here, because this may be a thread of the runtime.
        self.stop();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.core.name).finish_non_exhaustive()
    }
}
