//! CONCURRENT: a *life* is one filter of a node, from when it is loaded until the node loads another. Each life has
//! a *lease*: the time until which lookups trust the filter.
//!
//! # Why a lookup never answers "not revoked" from a filter that is too old
//!
//! A lookup reads the lease of a filter, looks into that filter, and then compares the clock with that lease, and with
//! what the lease is by then. It answers "not revoked" only if neither was over.
//!
//! - *The thread or the whole process is paused before the lookup, during it, or before the clock is read*: the
//!   clock is read afterwards and goes on meanwhile, so the lease is over. (If the clock were read first, a pause
//!   between the two would hide the age of the filter.) A pause after the clock was read only delays an answer that
//!   was true when it was made.
//! - *The filter catches up after such a pause, and its lease is renewed, before the lookup reads the clock*: what was
//!   found is from before. So the new lease says nothing about it, and the one from before the lookup is over.
//! - *The node joins again while a lookup runs*: the old filter has a lease of its own. This lease ends before the
//!   new filter is there, and is never renewed. A lookup that still holds the old filter finds its lease over. With
//!   one lease for all filters, it would find the new filter's lease.
//! - *The applier is held up* (by a long sweep, say) while the log goes on: the lease is renewed only for an answer
//!   of the engine whose position is applied. So it runs out.
//! - *Word comes late*: a lease counts from when the request was sent, not from when the answer came.
//! - *Word comes from another log* (a restored backup, a replica that became the master and lacks something): a word
//!   has the hash of its position. The lease is renewed only if the filter had the same hash there. Otherwise the
//!   filter is lost.
//! - *The clocks contradict each other*: the lease ends at once, and the next word begins another.
//!
//! # Why an acknowledged change is seen
//!
//! The applier changes the filter, then stores the position, then wakes the requests that wait for it. A `PUT` is
//! answered after that. A new filter becomes ready only after it has caught up with an answer of the engine, and
//! the request for this answer was sent after the filter was loaded. This answer is no earlier than any change that
//! the node has acknowledged before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::{Clock, Moment};
use super::settings::Filter;
use super::step::{LeftOut, Step};
use crate::change::Position;
use crate::log::{Chain, Epoch, Place};

/// Why a filter can't be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The log does not go on where the node has stopped.
    Gap(String),
    /// The filter differs from those of other nodes, or is not what the log says it should be.
    Differs(String),
    /// The node ends.
    End,
}

/// A filter's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The token is not revoked, for certain.
    Absent,
    /// The token may be revoked.
    Perhaps,
    /// The filter may be too old.
    Unsure,
}

pub(crate) struct Life {
    pub(crate) epoch: Epoch,
    pub(crate) filter: Filter,
    /// The last message that is in the filter.
    applied: AtomicU64,
    /// A [`Moment`]: until when the filter may be trusted.
    lease: AtomicU64,
    words: Mutex<Words>,
    /// The filter may be trusted for this long after a request was sent.
    stale_after: Duration,
    is_lost: AtomicBool,
    loss: Mutex<Option<Loss>>,
    left_out: LeftOut,
}

/// How many hashes are remembered: those of the last positions. A word that is older than that renews no lease.
const REMEMBERED: usize = 4096;

struct Words {
    /// When a request was sent, and where the log ended according to its answer. The oldest comes first.
    waiting: VecDeque<(Moment, Place)>,
    /// The hashes at the last positions, that of `applied` last. Never empty.
    chains: VecDeque<Chain>,
    /// When the latest request was sent whose answer is applied.
    basis: Option<Moment>,
    is_over: bool,
}

impl Life {
    pub(crate) fn new(place: Place, filter: Filter, stale_after: Duration, left_out: LeftOut) -> Self {
        let chains = VecDeque::from([place.chain]);
        Self {
            epoch: place.epoch,
            filter,
            applied: AtomicU64::new(place.position),
            lease: AtomicU64::new(0),
            words: Mutex::new(Words { waiting: VecDeque::new(), chains, basis: None, is_over: false }),
            stale_after,
            is_lost: AtomicBool::new(false),
            loss: Mutex::new(None),
            left_out,
        }
    }

    /// What the filter says about a token, and whether it may be trusted. Takes no lock and never waits.
    #[inline]
    pub(crate) fn answer(&self, hash: u64, clock: &Clock) -> Answer {
        // Before the filter, and once more after it: a lease that began in between says nothing about what was found.
        let begun = self.lease.load(Ordering::Acquire);
        let trusted_before = self.left_out.has(Step::LeaseAfterLookup) && self.is_trusted(clock, begun);
        #[cfg(test)]
        pause::here(pause::Point::Before);
        let found = self.filter.contains_hash(hash);
        #[cfg(test)]
        pause::here(pause::Point::After);
        // The clock is read after the filter, and so is the lease.
        fence(Ordering::Acquire);
        let begun = if self.left_out.has(Step::LeaseBeforeLookup) { u64::MAX } else { begun };
        if found {
            Answer::Perhaps
        } else if trusted_before || self.is_trusted(clock, begun) {
            Answer::Absent
        } else {
            Answer::Unsure
        }
    }

    /// Whether a lookup may be trusted that began with this lease.
    #[inline]
    fn is_trusted(&self, clock: &Clock, begun: u64) -> bool {
        let now = clock.now();
        self.left_out.has(Step::Lease) || now.0 < begun.min(self.lease.load(Ordering::Acquire))
    }

    /// The last message that is in the filter.
    pub(crate) fn position(&self) -> Position {
        self.applied.load(Ordering::Acquire)
    }

    pub(crate) fn place(&self) -> Place {
        let words = self.words();
        Place { epoch: self.epoch, position: self.position(), chain: words.chains[words.chains.len() - 1] }
    }

    /// Notes that the filter has these messages too, which follow those that it had. Returns the end of the lease if
    /// that began a lease or made it longer.
    pub(crate) fn applied(&self, places: impl IntoIterator<Item = Place>) -> Option<Moment> {
        let mut words = self.words();
        for place in places {
            words.chains.push_back(place.chain);
            self.applied.store(place.position, Ordering::Release);
        }
        let more = words.chains.len().saturating_sub(REMEMBERED);
        words.chains.drain(..more);
        self.settle(words)
    }

    /// Notes word of the engine: the answer to a request that was sent at `sent`. The log ended at `head`. Returns
    /// until when the filter may be trusted, if that is new.
    pub(crate) fn word(&self, sent: Moment, head: Place) -> Option<Moment> {
        let mut words = self.words();
        // Remove those whose answer would be too old.
        while words.waiting.front().is_some_and(|(earlier, _)| sent.since(*earlier) > self.stale_after) {
            words.waiting.pop_front();
        }
        words.waiting.push_back((sent, head));
        self.settle(words)
    }

    fn settle(&self, mut words: MutexGuard<'_, Words>) -> Option<Moment> {
        let applied = self.position();
        let mut news = None;
        while let Some(&(sent, head)) = words.waiting.front()
            && (head.position <= applied || self.left_out.has(Step::CatchUp))
        {
            words.waiting.pop_front();
            // How far before the end the hash of that position is.
            let back = applied.saturating_sub(head.position) as usize;
            let ours = words.chains.len().checked_sub(1 + back).map(|index| words.chains[index]);
            if ours == Some(head.chain) || self.left_out.has(Step::Chain) || self.left_out.has(Step::CatchUp) {
                news = Some(sent);
            } else if let Some(ours) = ours {
                drop(words);
                self.lose(Loss::Gap(format!(
                    "the engine's log has gone another way: it has {head}, and this node has applied {:016x} there",
                    ours.0
                )));
                return None;
            }
        }
        let sent = news.filter(|_| !words.is_over)?;
        words.basis = words.basis.max(Some(sent));
        let until = sent.plus(self.stale_after);
        // Under the lock, so that it can't undo a doubt that comes after it.
        self.lease.fetch_max(until.0, Ordering::Release);
        Some(until)
    }

    /// The filter is not trusted until the next word. Words that are under way count no more.
    pub(crate) fn doubt(&self) {
        let mut words = self.words();
        words.waiting.clear();
        self.lease.store(0, Ordering::Release);
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The filter has everything that the log had at this moment.
    pub(crate) fn basis(&self) -> Option<Moment> {
        self.words().basis
    }

    /// Marks the filter as unusable for this reason. The first reason counts.
    pub(crate) fn lose(&self, loss: Loss) {
        let mut lost = self.loss.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.is_none() {
            *lost = Some(loss);
        }
        drop(lost);
        self.end();
        self.is_lost.store(true, Ordering::Release);
    }

    /// Why the filter can't be used any more, if so.
    pub(crate) fn loss(&self) -> Option<Loss> {
        if !self.is_lost() {
            return None;
        }
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Ends the lease for good. It holds the lock, so a word that is just being noted can't renew the lease.
    fn end(&self) {
        if self.left_out.has(Step::OwnLease) {
            return;
        }
        let mut words = self.words();
        words.is_over = true;
        self.lease.store(0, Ordering::Release);
    }
}

/// Where a test stops a lookup.
#[cfg(test)]
pub(crate) mod pause {
    use std::cell::RefCell;

    /// It holds the filter, and has not looked into it yet, or has.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Point {
        Before,
        After,
    }

    type Once = Option<(Point, Box<dyn FnOnce()>)>;

    thread_local! {
        static NEXT: RefCell<Once> = const { RefCell::new(None) };
    }

    /// This thread's next lookup runs this action there.
    pub(crate) fn next(point: Point, action: impl FnOnce() + 'static) {
        NEXT.set(Some((point, Box::new(action))));
    }

    pub(crate) fn here(point: Point) {
        if let Some((_, action)) = NEXT.with_borrow_mut(|next| next.take_if(|(at, _)| *at == point)) {
            action();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::quick;
    use super::*;

    const HALF: Duration = Duration::from_millis(500);

    fn place(position: Position) -> Place {
        Place { epoch: Epoch(1), position, chain: Chain(position * 7) }
    }

    fn to(life: &Life, position: Position) -> Option<Moment> {
        life.applied((life.position() + 1..=position).map(place))
    }

    fn life(left_out: &[Step]) -> (Life, Clock) {
        let filter = quick("a").filter().unwrap();
        filter.advance_to(1000);
        (Life::new(place(10), filter, 2 * HALF, LeftOut(left_out.to_vec())), Clock::default())
    }

    #[test]
    fn a_filter_is_trusted_from_the_first_word_that_it_has_caught_up_with_until_the_lease_ends() {
        let (life, clock) = life(&[]);
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
        let sent = clock.now();
        clock.pass(HALF);
        assert_eq!(life.word(sent, place(12)), None);
        assert_eq!(to(&life, 11), None);
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
        assert_eq!(to(&life, 12), Some(sent.plus(2 * HALF)));
        assert_eq!((life.answer(1, &clock), life.basis()), (Answer::Absent, Some(sent)));
        // The lease counts from when the request was sent, and not from when the answer came.
        clock.pass(HALF);
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
    }

    /// The answer of a filter whose log has gone another way, at its end or before.
    fn another_history(left_out: &[Step], applied: Position) -> Answer {
        let (life, clock) = life(left_out);
        life.word(clock.now(), Place { chain: Chain(1), ..place(12) });
        to(&life, applied);
        life.answer(1, &clock)
    }

    #[test]
    fn a_word_with_another_hash_ends_the_trust_for_good() {
        assert_eq!(another_history(&[], 12), Answer::Unsure);
        assert_eq!(another_history(&[], 15), Answer::Unsure);
        let (life, clock) = life(&[]);
        to(&life, 15);
        life.word(clock.now(), place(13));
        assert_eq!(life.answer(1, &clock), Answer::Absent);
        life.word(clock.now(), Place { chain: Chain(1), ..place(14) });
        assert!(matches!(life.loss(), Some(Loss::Gap(why)) if why.contains("another way")));
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
    }

    #[test]
    fn control_without_the_hash_another_log_of_the_same_length_is_trusted() {
        assert_eq!(another_history(&[Step::Chain], 12), Answer::Absent);
    }

    #[test]
    fn a_doubt_lasts_until_the_next_word() {
        let (life, clock) = life(&[]);
        life.word(clock.now(), place(10));
        life.word(clock.now(), place(11));
        life.doubt();
        to(&life, 11);
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
        life.word(clock.now(), place(11));
        assert_eq!(life.answer(1, &clock), Answer::Absent);
    }

    #[test]
    fn control_without_catching_up_a_filter_that_lacks_messages_is_trusted() {
        let (life, clock) = life(&[Step::CatchUp]);
        life.word(clock.now(), place(12));
        assert_eq!(life.answer(1, &clock), Answer::Absent);
    }

    #[test]
    fn what_the_filter_has_is_perhaps_revoked_whatever_the_lease() {
        let (life, clock) = life(&[]);
        life.filter.insert_hash_until(1, 1010).unwrap();
        assert_eq!(life.answer(1, &clock), Answer::Perhaps);
        life.word(clock.now(), place(10));
        assert_eq!(life.answer(1, &clock), Answer::Perhaps);
    }

    /// The answer of a lookup that is paused for a minute while it holds the filter.
    fn paused_lookup(left_out: &[Step]) -> Answer {
        let (life, clock) = life(left_out);
        life.word(clock.now(), place(10));
        assert_eq!(life.answer(1, &clock), Answer::Absent);
        let passing = clock.clone();
        pause::next(pause::Point::Before, move || passing.pass(Duration::from_secs(60)));
        life.answer(1, &clock)
    }

    #[test]
    fn a_lookup_that_was_paused_on_its_way_is_not_sure() {
        assert_eq!(paused_lookup(&[]), Answer::Unsure);
    }

    #[test]
    fn control_the_lease_before_the_lookup_is_not_enough() {
        assert_eq!(paused_lookup(&[Step::LeaseAfterLookup]), Answer::Absent);
    }

    /// The answer of a lookup in a stale filter, which is stopped until the node has caught up.
    fn lookup_before_the_filter_has_caught_up(left_out: &[Step]) -> Answer {
        let (life, clock) = life(left_out);
        let life = std::sync::Arc::new(life);
        let inner = std::sync::Arc::clone(&life);
        let (sent, word) = (clock.now(), place(11));
        pause::next(pause::Point::After, move || {
            inner.filter.insert_hash_until(1, 1010).unwrap();
            to(&inner, 11);
            inner.word(sent, word);
        });
        life.answer(1, &clock)
    }

    #[test]
    fn a_lookup_before_the_filter_has_caught_up_is_not_sure() {
        assert_eq!(lookup_before_the_filter_has_caught_up(&[]), Answer::Unsure);
    }

    #[test]
    fn control_the_lease_after_the_lookup_is_not_enough() {
        assert_eq!(lookup_before_the_filter_has_caught_up(&[Step::LeaseBeforeLookup]), Answer::Absent);
    }

    #[test]
    fn control_without_a_lease_an_old_filter_is_trusted() {
        assert_eq!(paused_lookup(&[Step::Lease]), Answer::Absent);
    }

    #[test]
    fn a_filter_that_is_lost_is_never_trusted_again() {
        let (life, clock) = life(&[]);
        life.word(clock.now(), place(10));
        life.lose(Loss::Gap("first".into()));
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
        // Word that was still on its way.
        assert_eq!(life.word(clock.now(), place(10)), None);
        assert_eq!(life.answer(1, &clock), Answer::Unsure);
        life.lose(Loss::End);
        assert_eq!(life.loss(), Some(Loss::Gap("first".into())));
    }

    #[test]
    fn a_node_that_is_always_a_little_behind_stays_trusted() {
        let (life, clock) = life(&[]);
        // The log goes on by 10 messages in each tenth of a second, and the filter is three tenths behind.
        for tenth in 0..100u64 {
            life.word(clock.now(), place(40 + 10 * tenth));
            clock.pass(HALF / 5);
            to(&life, 10 + 10 * tenth);
            assert_eq!(life.answer(1, &clock) == Answer::Absent, tenth >= 3, "{tenth}");
        }
    }
}
