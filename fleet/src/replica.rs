//! What a node knows: a filter of the tokens, and the last changes that are in it.
//!
//! Entries are never removed, and their expiries only grow. So a change that is applied twice, or late, does no harm.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Stats, Tick};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::records::{Epoch, Head, Said, TokenId};

/// How many ticks the longest lifetime has at most. Up to 254 take 8 bits of each slot.
const TICKS: u64 = 250;

/// How many of its heads a replica remembers.
const HEADS: usize = 1024;

/// The tokens of one epoch.
pub(crate) struct Replica {
    pub(crate) epoch: Epoch,
    pub(crate) epoch_revision: i64,
    /// The revision at which its tokens were read.
    joined_at: i64,
    filter: ExpiringCuckooFilter<TokenId>,
    /// The length of a tick, in seconds.
    tick: u64,
    /// Its head, and those before, the newest last: the filter has everything up to there, in the history that these name.
    heads: watch::Sender<VecDeque<Head>>,
    /// Until when the filter is enough to say that a token is not revoked, in nanoseconds of the monotonic clock.
    deadline: AtomicU64,
    /// The tick at which an entry expires before its token. It is held while an entry is added, and while the filter is told
    /// the time.
    too_late: Mutex<u64>,
    /// The greatest term of raft that the node has seen.
    term: AtomicU64,
}

impl Replica {
    /// A replica without tokens, whose head is the one in the answer.
    pub(crate) fn new(epoch: Epoch, said: &Said, rate: f64, clock: &Clock) -> Result<Self, String> {
        let (longest, capacity) = (epoch.settings.longest(), epoch.settings.capacity);
        let tick = longest.div_ceil(TICKS);
        // Nodes that revoke at the same time exceed the capacity a little, and ended entries stay for a tick.
        let room = capacity + capacity / 16 + 2000;
        let filter = ExpiringCuckooFilter::builder()
            .capacity(usize::try_from(room).map_err(|error| error.to_string())?)
            .lifetime_in_ticks(longest.div_ceil(tick) + 1)
            .false_positive_rate(rate)
            .build()
            .map_err(|error| error.to_string())?;
        filter.advance_to(Tick::new(clock.earliest() / tick));
        Ok(Self {
            epoch,
            epoch_revision: said.epoch_revision,
            joined_at: said.revision,
            filter,
            tick,
            heads: watch::Sender::new(VecDeque::from([said.head.clone()])),
            deadline: AtomicU64::new(0),
            too_late: Mutex::new(u64::MAX),
            term: AtomicU64::new(said.term),
        })
    }

    /// Whether a token is certainly not revoked. If not, it may be, or the replica is stale.
    pub(crate) fn lacks(&self, id: TokenId, clock: &Clock) -> bool {
        // In this order: it does not matter where the process is stopped. What is in the filter when the deadline is read
        // is found, and the clock is read last.
        let deadline = self.deadline.load(Ordering::Acquire);
        !self.filter.contains(&id) && clock.monotonic() < Duration::from_nanos(deadline) && !self.is_ahead(clock)
    }

    /// Whether the fleet has no room for this token.
    pub(crate) fn is_full_for(&self, id: TokenId) -> bool {
        // To count the live ones takes longer.
        let is_full = |len: usize| len as u64 >= self.epoch.settings.capacity;
        is_full(self.filter.len()) && is_full(self.filter.live_len()) && !self.filter.contains(&id)
    }

    pub(crate) fn is_fresh(&self, clock: &Clock) -> bool {
        clock.monotonic() < Duration::from_nanos(self.deadline.load(Ordering::Acquire)) && !self.is_ahead(clock)
    }

    /// Everything that was acknowledged before this moment of the monotonic clock is in the filter.
    pub(crate) fn has_all_until(&self, sent: Duration, stale_after: Duration) {
        let deadline = (sent + stale_after).as_nanos() as u64;
        // Release: whoever reads it finds what was inserted before. `fetch_max`: an older answer may come later.
        self.deadline.fetch_max(deadline, Ordering::Release);
    }

    /// Adds a token, or lets it live longer.
    pub(crate) fn put(&self, id: TokenId, end: u64) -> Result<(), String> {
        let tick = end.saturating_add(self.epoch.settings.margin).div_ceil(self.tick);
        let mut too_late = self.too_late.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = self.filter.now().map_or(0, Tick::get) + self.filter.plan().lifetime_in_ticks.unwrap_or(1);
        if tick > latest {
            // The longest lifetime was lowered, or another node's clock is ahead.
            *too_late = latest.min(*too_late);
        }
        let done = self.filter.insert_or_renew_until(&id, Tick::new(tick.min(latest)));
        done.map(drop).map_err(|error| error.to_string())
    }

    /// Tells the filter the time. False if entries would expire before their tokens within a tick, or if the clock was set
    /// back: then the filter is not told, because lookups still use it, and a new replica is needed.
    #[must_use]
    pub(crate) fn advance(&self, clock: &Clock) -> bool {
        let tick = clock.earliest() / self.tick;
        let too_late = self.too_late.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = tick + 1 >= *too_late || self.is_ahead(clock);
        if !is_over {
            self.filter.advance_to(Tick::new(tick));
        }
        !is_over
    }

    /// Whether the filter was told a time that has not come, and may have dropped tokens that have not ended.
    fn is_ahead(&self, clock: &Clock) -> bool {
        let filter = self.filter.now().map_or(0, Tick::get) * self.tick;
        clock.earliest() + self.epoch.settings.margin < filter
    }

    pub(crate) fn head(&self) -> Head {
        self.heads.borrow().back().cloned().unwrap_or_default()
    }

    /// The revision up to which every change is in the filter.
    pub(crate) fn position(&self) -> i64 {
        self.head().revision.max(self.joined_at)
    }

    /// Moves the head from one change to the next. False if the head is not the one before.
    pub(crate) fn advance_head(&self, before: &Head, next: Head) -> bool {
        self.heads.send_if_modified(|heads| {
            let is_next = heads.back() == Some(before);
            if is_next {
                heads.push_back(next);
                if heads.len() > HEADS {
                    heads.pop_front();
                }
            }
            is_next
        })
    }

    /// Whether a head is one that this replica has or had; `None` if it may come to it.
    pub(crate) fn has_head(&self, head: &Head) -> Option<bool> {
        has(&self.heads.borrow(), head)
    }

    /// Waits until the replica has come to this head. False if it has not in time, or if it is of another history.
    pub(crate) async fn comes_to(&self, head: &Head, until: Instant) -> bool {
        let mut heads = self.heads.subscribe();
        let decided = heads.wait_for(|heads| has(heads, head).is_some());
        matches!(timeout_at(until, decided).await, Ok(Ok(heads)) if has(&heads, head) == Some(true))
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.load(Ordering::Relaxed)
    }

    pub(crate) fn saw_term(&self, term: u64) {
        self.term.fetch_max(term, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.filter.stats()
    }
}

/// Whether a head is one of these; `None` if they have not come to it. If they have passed it without having it, it is of
/// another history, or too old to tell.
fn has(heads: &VecDeque<Head>, head: &Head) -> Option<bool> {
    if heads.back().is_some_and(|newest| newest.revision < head.revision) {
        return None;
    }
    let nth = heads.binary_search_by_key(&head.revision, |head| head.revision);
    Some(nth.is_ok_and(|nth| heads[nth] == *head))
}
