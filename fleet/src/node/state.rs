//! The states of a node, each with its reason, and how one follows another.
//!
//! ```text
//!             loaded, and has applied all that the engine had
//!             when it was asked last
//!   joining ───────────────────────────────────────────▶ ready ◀──┐
//!      ▲                                                 │ │      │ word from the engine, and all
//!      │ loads a snapshot     no word for stale-after    │ │      │ that it had then is applied
//!      │                                 ┌───────────────┘ │      │
//!     gap ◀── the log begins later, ─────┼─────────────────┤      │
//!      ▲      or is another one          ▼                 │      │
//!      └────────────────────────────── stale ──────────────┼──────┘
//!                                        │                 │
//!   joining ◀── its filter differs ──────┴─────────────────┘
//! ```
//!
//! Only a *ready* node answers "not revoked" from its filter alone. It is ready for as long as its *lease* lasts.
//! The lease ends `stale-after` after a request to the engine was **sent** whose answer the node has caught up
//! with. So the time that the answer took on its way does not make the lease longer. A ready node knows everything
//! that the log had `stale-after` ago, and nearly always everything that it had a moment ago.
//!
//! Lookups do not come here. They compare the clock with the lease themselves (`life.rs`). This module gives the
//! reasons.

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;

use super::clock::Moment;

/// How many of the last states are remembered.
const REMEMBERED: usize = 32;

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The node loads a snapshot, or applies what came since.
    Joining,
    /// Its filter has everything that it should have.
    Ready,
    /// It has had no word from the engine for too long, can't keep up with the log, or sees clocks that contradict
    /// each other.
    Stale,
    /// The log does not go on where the node has stopped. It may wait for an operator.
    Gap,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Joining, Self::Ready, Self::Stale, Self::Gap];

    /// Its name in `/healthz`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Ready => "ready",
            Self::Stale => "stale",
            Self::Gap => "gap",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A state that a node has entered, when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) state: State,
    pub(crate) at: Moment,
    pub(crate) why: String,
}

/// The state of a node, and the states before.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    node: String,
    /// Until when it is ready, if it is.
    lease: Moment,
    /// Why it joins again, if the reason is its filter.
    cause: Option<String>,
    /// What went wrong when the engine was asked last, if it did not answer.
    complaint: Option<String>,
    /// The last states, the present one last. Never empty.
    entered: VecDeque<Entered>,
}

impl Standing {
    pub(crate) fn new(node: String, now: Moment) -> Self {
        let begin = Entered { state: State::Joining, at: now, why: "the node has just started".into() };
        Self { node, lease: Moment::NEVER, cause: None, complaint: None, entered: VecDeque::from([begin]) }
    }

    /// The state now.
    pub(crate) fn now(&mut self, now: Moment) -> &Entered {
        self.observe(now);
        &self.entered[self.entered.len() - 1]
    }

    /// The last states, the present one last.
    pub(crate) fn history(&self) -> impl Iterator<Item = &Entered> {
        self.entered.iter()
    }

    /// The node has had word, and is ready until then. Only for a node that follows the log.
    pub(crate) fn word(&mut self, now: Moment, until: Moment) {
        self.observe(now);
        self.complaint = None;
        self.lease = self.lease.max(until);
        if now < self.lease {
            let why = match self.state() {
                State::Stale => "the engine has answered again, and all that it had then is applied",
                _ => "all is applied that the engine had when it was asked",
            };
            self.cause = None;
            self.enter(State::Ready, now, why.into());
        }
    }

    /// The engine did not answer.
    pub(crate) fn silence(&mut self, now: Moment, why: String) {
        self.complaint = Some(why);
        self.observe(now);
        if self.state() == State::Stale {
            self.stale(now);
        }
    }

    /// The node does not trust its filter for now, for this reason. The next word ends that.
    pub(crate) fn doubt(&mut self, now: Moment, why: String) {
        match self.state() {
            State::Ready | State::Stale => self.leave(now, State::Stale, why),
            state => self.leave(now, state, why),
        }
    }

    /// The log does not go on where the node has stopped.
    pub(crate) fn gap(&mut self, now: Moment, why: String) {
        self.leave(now, State::Gap, why);
    }

    /// The node has to join again, for this reason.
    pub(crate) fn joining(&mut self, now: Moment, why: String) {
        self.cause = Some(why.clone());
        self.leave(now, State::Joining, why);
    }

    /// The progress of joining.
    pub(crate) fn progress(&mut self, now: Moment, what: String) {
        let why = match &self.cause {
            Some(cause) if self.state() == State::Joining => format!("{cause}; {what}"),
            _ => what,
        };
        self.leave(now, State::Joining, why);
    }

    fn leave(&mut self, now: Moment, state: State, why: String) {
        self.observe(now);
        self.lease = Moment::NEVER;
        self.enter(state, now, why);
    }

    fn state(&self) -> State {
        self.entered[self.entered.len() - 1].state
    }

    /// Time alone makes a ready node stale.
    fn observe(&mut self, now: Moment) {
        if self.state() == State::Ready && now >= self.lease {
            self.stale(self.lease);
        }
    }

    fn stale(&mut self, at: Moment) {
        let why = match &self.complaint {
            Some(complaint) => format!("no word in time: {complaint}"),
            None => "no word in time: the node has not caught up with the engine, or was paused".into(),
        };
        self.enter(State::Stale, at, why);
    }

    /// If the node is in this state already, the state keeps its beginning, and only the reason may change.
    fn enter(&mut self, state: State, at: Moment, why: String) {
        match self.entered.back_mut() {
            Some(present) if present.state == state => {
                if state != State::Ready && present.why != why {
                    tracing::debug!(node = self.node, %state, why, "still in this state");
                    present.why = why;
                }
            }
            _ => {
                match state {
                    State::Ready => tracing::info!(node = self.node, %state, why, "enters a state"),
                    _ => tracing::warn!(node = self.node, %state, why, "enters a state"),
                }
                if self.entered.len() == REMEMBERED {
                    self.entered.pop_front();
                }
                self.entered.push_back(Entered { state, at, why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment(second * 1_000_000_000)
    }

    /// A node that became ready at second 2, until second 4.
    fn ready() -> Standing {
        let mut standing = Standing::new("a".into(), at(1));
        standing.word(at(2), at(4));
        assert_eq!(standing.now(at(2)).state, State::Ready);
        standing
    }

    #[track_caller]
    fn is(standing: &mut Standing, now: Moment, state: State, since: Moment, named: &str) {
        let entered = standing.now(now).clone();
        assert_eq!((entered.state, entered.at), (state, since), "{entered:?}");
        assert!(entered.why.contains(named), "{entered:?}");
    }

    #[test]
    fn a_node_joins_until_it_has_word() {
        let mut standing = Standing::new("a".into(), at(1));
        is(&mut standing, at(100), State::Joining, at(1), "just started");
        standing.progress(at(2), "loads".into());
        is(&mut standing, at(2), State::Joining, at(1), "loads");
        // Word that is too old already.
        standing.word(at(5), at(5));
        is(&mut standing, at(5), State::Joining, at(1), "loads");
        standing.word(at(5), at(6));
        is(&mut standing, at(5), State::Ready, at(5), "all is applied");
    }

    #[test]
    fn a_ready_node_is_stale_from_the_end_of_its_lease_until_it_has_word() {
        let mut standing = ready();
        standing.word(at(3), at(5));
        is(&mut standing, Moment(at(5).0 - 1), State::Ready, at(2), "all is applied");
        // Nobody looked at second 5.
        is(&mut standing, at(65), State::Stale, at(5), "or was paused");
        standing.word(at(66), at(64));
        is(&mut standing, at(66), State::Stale, at(5), "or was paused");
        standing.word(at(67), at(68));
        is(&mut standing, at(67), State::Ready, at(67), "answered again");
    }

    #[test]
    fn a_stale_node_says_what_the_engine_did() {
        let mut standing = ready();
        standing.silence(at(3), "connection refused".into());
        is(&mut standing, at(3), State::Ready, at(2), "");
        is(&mut standing, at(4), State::Stale, at(4), "connection refused");
        standing.silence(at(5), "no answer".into());
        is(&mut standing, at(5), State::Stale, at(4), "no answer");
    }

    #[test]
    fn a_doubt_ends_readiness_at_once_and_the_next_word_ends_the_doubt() {
        let mut standing = ready();
        standing.doubt(at(3), "the clocks contradict".into());
        is(&mut standing, at(3), State::Stale, at(3), "contradict");
        standing.word(at(4), at(6));
        is(&mut standing, at(4), State::Ready, at(4), "answered again");
    }

    #[test]
    fn an_older_word_takes_nothing_away() {
        let mut standing = ready();
        standing.word(at(3), at(3));
        is(&mut standing, at(3), State::Ready, at(2), "");
    }

    #[test]
    fn a_gap_and_a_difference_end_readiness_at_once_and_lead_to_joining_anew() {
        for stale in [false, true] {
            let mut standing = ready();
            let now = if stale { at(9) } else { at(3) };
            standing.gap(now, "the log begins at 17".into());
            is(&mut standing, now, State::Gap, now, "17");
            standing.progress(at(10), "loads".into());
            is(&mut standing, at(10), State::Joining, at(10), "loads");
            standing.word(at(11), at(12));
            is(&mut standing, at(11), State::Ready, at(11), "");

            let mut standing = ready();
            standing.joining(now, "its filter differs".into());
            is(&mut standing, now, State::Joining, now, "differs");
            standing.progress(now, "loads".into());
            is(&mut standing, now, State::Joining, now, "its filter differs; loads");
            // The lease is gone, and not only hidden.
            is(&mut standing, Moment(at(4).0 - 1).max(now), State::Joining, now, "differs");
        }
    }

    #[test]
    fn the_last_states_are_remembered_in_their_order() {
        let mut standing = ready();
        for second in 0..100 {
            standing.word(at(10 + 2 * second), at(11 + 2 * second));
        }
        let states: Vec<_> = standing.history().map(|entered| (entered.state, entered.at)).collect();
        assert_eq!(states.len(), REMEMBERED);
        assert!(states.is_sorted_by_key(|(_, at)| *at), "{states:?}");
        assert!(states.windows(2).all(|pair| pair[0].0 != pair[1].0), "{states:?}");
    }
}
