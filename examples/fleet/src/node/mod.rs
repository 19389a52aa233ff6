//! CONCURRENT: a node: a filter in memory that follows the log, and the record behind it.
//!
//! ```text
//!   PUT, DELETE ──▶ publisher ──append──▶ engine ──follow──▶ applier ──▶ filter ◀── lookups, lock-free
//!        ▲                                  ▲ ▲                 │
//!        │                                  │ │  moments at     │ position
//!        │                           head,  │ │  ticks          ▼
//!        └── once it is applied here  tick  │ └── keeper ◀──────┤
//!                                           └──── watcher ──▶ lease
//! ```
//!
//! Four threads, and those of the HTTP server:
//! - the *applier* loads a filter (`joining`), follows the log and changes the filter (`apply`); no other thread
//!   changes it;
//! - the *watcher* asks the engine again and again where the log ends; the answer is the *word* by which the node
//!   is ready (`life`, `state`);
//! - the *publisher* groups the proposals of concurrent requests into messages;
//! - the *keeper* compares digests and writes snapshots, at positions of ticks.
//!
//! `life` shows why a lookup's answer is right, and `publisher` when and how a change is answered.

mod applier;
mod apply;
pub(crate) mod arguments;
mod clock;
mod digest;
mod joining;
mod keeper;
mod key;
mod known;
pub(crate) mod life;
mod page;
mod publisher;
mod refusal;
mod routes;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod step;
mod tallies;
#[cfg(test)]
mod tests;
mod watcher;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use concurrent_cuckoo_filter::StableHashBuilder;
use tokio::sync::watch;

use self::clock::{Clock, Moment};
use self::known::Known;
use self::life::{Answer, Life, Loss};
use self::publisher::Publisher;
use self::settings::{Settings, token_id};
use self::state::Standing;
use self::step::{LeftOut, Step};
use self::tallies::Tallies;
use crate::change::{Outcome, Position, Proposal};
use crate::log::{EngineError, Log, Place, SnapshotInfo, Snapshots};

/// Everything that a node needs from an engine.
pub(crate) trait Engine: Log + Snapshots {}

impl<E: Log + Snapshots> Engine for E {}

/// Why a node can't answer, or has not done what was asked.
#[derive(Clone, Debug)]
pub(crate) struct Unavailable(pub(crate) String);

/// A node of a fleet.
pub(crate) struct Node {
    pub(crate) settings: Settings,
    engine: Arc<dyn Engine>,
    hasher: StableHashBuilder,
    clock: Clock,
    left_out: LeftOut,
    /// The filter that lookups look into.
    life: ArcSwapOption<Life>,
    standing: Mutex<Standing>,
    known: Mutex<Option<Known>>,
    /// How far the filter has come, for requests that wait for that.
    applied: watch::Sender<Option<Place>>,
    publisher: Publisher,
    tallies: Tallies,
    /// The digest of the filter at the last position at which it was taken.
    digest: Mutex<Option<(Position, u64)>>,
    /// The newest snapshot that this node knows of.
    snapshot: Mutex<Option<SnapshotInfo>>,
    /// When that snapshot was complete, by the engine's clock; 0 if there is none.
    snapshot_at: AtomicU64,
    /// The engine did not answer the watcher's last question.
    is_silent: AtomicBool,
    is_ending: AtomicBool,
}

impl Node {
    /// Starts a node. It begins to join, and meanwhile answers from the record as soon as it has reached the
    /// engine.
    ///
    /// # Errors
    /// If the fleet has agreed on other settings than this node's, or the system gives no threads. An engine that
    /// can't be reached is not an error.
    pub(crate) fn start(settings: Settings, engine: Arc<dyn Engine>, left_out: LeftOut) -> Result<Started, String> {
        Self::start_with(settings, engine, left_out, Clock::default())
    }

    fn start_with(
        settings: Settings,
        engine: Arc<dyn Engine>,
        left_out: LeftOut,
        clock: Clock,
    ) -> Result<Started, String> {
        // So that a filter that can't be built is an error now, and not only later.
        settings.filter().map_err(|error| {
            format!("--capacity, --rate, --longest-lifetime, --leeway and --resolution can't be met: {error}")
        })?;
        match engine.agree(&settings.agreement()) {
            Err(EngineError::Unreachable(why)) => eprintln!("warning: the engine can't be reached yet: {why}"),
            Err(error) => return Err(error.to_string()),
            Ok(_) => {
                for concern in engine.concerns().unwrap_or_default() {
                    eprintln!("warning: {concern}");
                }
            }
        }
        let (publisher, proposals) = publisher::new();
        let node = Arc::new(Self {
            hasher: settings.hasher(),
            engine,
            standing: Mutex::new(Standing::new(clock.now())),
            clock,
            left_out,
            life: ArcSwapOption::empty(),
            known: Mutex::new(None),
            applied: watch::Sender::new(None),
            publisher,
            tallies: Tallies::default(),
            digest: Mutex::new(None),
            snapshot: Mutex::new(None),
            snapshot_at: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            settings,
        });
        let threads = [
            node.spawn("applier", |node| applier::run(&node)),
            node.spawn("watcher", |node| watcher::run(&node)),
            node.spawn("publisher", |node| publisher::run(&node, proposals)),
        ];
        let threads = threads.into_iter().collect::<io::Result<_>>().map_err(|error| format!("no thread: {error}"))?;
        Ok(Started { node, threads })
    }

    fn spawn(self: &Arc<Self>, name: &str, run: impl FnOnce(Arc<Self>) + Send + 'static) -> io::Result<JoinHandle<()>> {
        let node = Arc::clone(self);
        thread::Builder::new().name(name.into()).spawn(move || run(node))
    }

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

    /// The position of the filter, if there is one.
    pub(crate) fn position(&self) -> Option<Position> {
        self.life.load().as_ref().map(|life| life.place().position)
    }

    /// The memory of the filter, in bytes.
    pub(crate) fn memory(&self) -> Option<usize> {
        self.life.load().as_ref().map(|life| life.filter.memory_usage())
    }

    /// Until when the token is revoked according to the record, if it is. Waits for the engine.
    pub(crate) fn record(&self, token: &str) -> Result<Option<u64>, Unavailable> {
        self.tallies.questions.add(1);
        if self.left_out.has(Step::Record) {
            return Ok(None);
        }
        let place = self.known().map(|known| known.place).ok_or_else(|| {
            Unavailable(
                "the node has not reached the engine since it was started; try again, or ask another node".into(),
            )
        })?;
        self.engine.revoked_until(place, token_id(token)).map_err(|error| {
            Unavailable(format!("the node can't tell, and the record can't be asked: {error}; ask another node"))
        })
    }

    /// Asks the record, where the filter has given this answer.
    pub(crate) fn asked(&self, token: &str, answer: Answer) -> Result<Option<u64>, Unavailable> {
        // If the engine does not answer the watcher either, no request waits for it: all requests come here now.
        if answer == Answer::Unsure && self.is_silent.load(Ordering::Relaxed) {
            let why =
                "the node can't tell, and the record can't be asked: the engine does not answer; ask another node";
            return Err(Unavailable(why.into()));
        }
        let until = self.record(token)?;
        if until.is_none() && answer == Answer::Perhaps {
            // Or it was restored or expired at just this moment.
            self.tallies.false_positives.add(1);
        }
        Ok(until)
    }

    /// Revokes the token at least until this time. When this returns, the change is in the log and in this node's
    /// filter.
    pub(crate) async fn revoke(&self, token: &str, until: u64) -> Result<(Outcome, Place), Unavailable> {
        let end = self.settings.end(until);
        self.publish(Proposal::Revoke { token: token_id(token), hash: self.hash(token), until, end }).await
    }

    /// Ends the revocation of the token.
    pub(crate) async fn restore(&self, token: &str) -> Result<(Outcome, Place), Unavailable> {
        self.publish(Proposal::Restore { token: token_id(token), hash: self.hash(token) }).await
    }

    /// The time by the engine's clock, in seconds since 1970.
    pub(crate) fn time(&self) -> Result<u64, Unavailable> {
        let known = self.known().ok_or_else(|| {
            Unavailable(
                "the node has not reached the engine since it was started, so it does not know the time; try again"
                    .into(),
            )
        })?;
        Ok(known.engine_now(self.clock.now()) / 1000)
    }

    fn known(&self) -> Option<Known> {
        *lock(&self.known)
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

    /// Sleeps, but at most 250 ms, so that the node can end.
    fn sleep(&self, time: Duration) {
        thread::sleep(time.min(Duration::from_millis(250)));
    }

    fn say(&self, what: &str) {
        eprintln!("{}: {what}", self.settings.node);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node and its threads. The threads end when this is dropped.
pub(crate) struct Started {
    pub(crate) node: Arc<Node>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.node.is_ending.store(true, Ordering::Relaxed);
        self.node.publisher.close();
        if let Some(life) = &*self.node.life.load() {
            life.lose(Loss::End);
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                eprintln!("error: a thread of {} has panicked", self.node.settings.node);
            }
        }
    }
}
