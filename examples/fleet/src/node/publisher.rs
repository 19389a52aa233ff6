//! The thread that sends proposals to the log. It groups those of concurrent requests into one message.
//!
//! # What a request is answered
//!
//! - *Read your writes*: a request is answered only after this node has applied the position that the engine named.
//!   So the answer is true on this node, and on every node that has caught up.
//! - *A lost acknowledgement*: the message is sent again under the same identifier, until a deadline. The engine
//!   returns its first answer. The deadline is far below the time for which the engine remembers identifiers.
//! - *A node that leaves `ready` before it has applied the position* goes on waiting: it may come back in time.
//!   Otherwise the answer is 503.
//! - *503 does not say whether the change was made*. It may be in the log. The client tries again, with the same
//!   result.
//! - *A message that was given up and arrives late* is not taken. It says until when it may be taken, by the
//!   engine's clock, and that time is over when the requests are given up. Otherwise a `DELETE` that was answered
//!   503 could undo a `PUT` that was acknowledged after it.
//! - *The engine has begun another log*: the message carries the place that this node knows, so a new log refuses
//!   it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::known::Known;
use super::life::Loss;
use super::step::Step;
use super::{Node, Unavailable, lock};
use crate::change::{Outcome, Proposal};
use crate::log::{Appended, EngineError, MessageId, NEVER, Place};

/// The most proposals in one message.
const AT_ONCE: usize = 100;

/// How many proposals may wait.
const WAITING: usize = 10_000;

struct Order {
    proposal: Proposal,
    deadline: Instant,
    answer: oneshot::Sender<Result<(Outcome, Place), Unavailable>>,
}

/// The entry for proposals.
pub(crate) struct Publisher(Mutex<Option<mpsc::Sender<Order>>>);

pub(crate) struct Orders(mpsc::Receiver<Order>);

pub(crate) fn new() -> (Publisher, Orders) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Publisher(Mutex::new(Some(sender))), Orders(receiver))
}

impl Publisher {
    /// Takes no more proposals.
    pub(crate) fn close(&self) {
        lock(&self.0).take();
    }
}

impl Node {
    /// Sends a proposal to the log, and waits until it is durable and applied here.
    pub(super) async fn publish(&self, proposal: Proposal) -> Result<(Outcome, Place), Unavailable> {
        let patience = self.settings.patience;
        let deadline = Instant::now() + patience;
        let done = async {
            let (answer, answered) = oneshot::channel();
            let orders = lock(&self.publisher.0).clone().ok_or_else(ending)?;
            orders.send(Order { proposal, deadline, answer }).await.map_err(|_| ending())?;
            drop(orders);
            let (outcome, place) = answered.await.unwrap_or_else(|_| Err(ending()))?;
            if !self.left_out.has(Step::Wait) {
                let has_come = |applied: &Option<Place>| applied.is_some_and(|applied| reaches(applied, place));
                self.applied.subscribe().wait_for(has_come).await.map_err(|_| ending())?;
            }
            Ok((outcome, place))
        };
        // A little longer than the publisher takes, because the publisher knows better why it failed.
        tokio::time::timeout(patience + Duration::from_millis(500), done).await.unwrap_or_else(|_| {
            let why = format!(
                "the change was not acknowledged and applied within {patience:?}, and may have been done; try again"
            );
            Err(Unavailable(why))
        })
    }
}

fn reaches(applied: Place, place: Place) -> bool {
    applied.epoch == place.epoch && applied.position >= place.position
}

fn ending() -> Unavailable {
    Unavailable("the node takes no more changes; ask another node".into())
}

pub(crate) fn run(node: &Node, mut orders: Orders) {
    let mut batch = Vec::with_capacity(AT_ONCE);
    while orders.0.blocking_recv_many(&mut batch, AT_ONCE) > 0 {
        let now = Instant::now();
        // An order that has waited too long has been answered already.
        batch.retain(|order| order.deadline > now && !order.answer.is_closed());
        if batch.is_empty() {
            continue;
        }
        let proposals: Vec<_> = batch.iter().map(|order| order.proposal).collect();
        // The earliest deadline: no request may be reported as given up while its message may still be taken.
        let deadline = batch.iter().map(|order| order.deadline).min().unwrap_or(now);
        match append(node, &proposals, deadline) {
            Ok((place, outcomes)) => {
                for (order, outcome) in batch.drain(..).zip(outcomes) {
                    // It does not matter if the client is gone.
                    let _ = order.answer.send(Ok((outcome, place)));
                }
            }
            Err(why) => {
                for order in batch.drain(..) {
                    let _ = order.answer.send(Err(why.clone()));
                }
            }
        }
    }
}

/// Sends one message, again and again until there is an answer.
fn append(node: &Node, proposals: &[Proposal], deadline: Instant) -> Result<(Place, Vec<Outcome>), Unavailable> {
    let mut id = new_id()?;
    let mut before = None;
    let mut is_on_its_way = false;
    let mut wait = Duration::from_millis(5);
    loop {
        let why = match node.known() {
            None => "the node has not reached the engine since it was started".to_owned(),
            Some(known) => match node.engine.append_before(
                known.place,
                id,
                proposals,
                *before.get_or_insert_with(|| latest(node, known, deadline)),
            ) {
                Ok(Appended { position, outcomes }) => {
                    if let Some(known) = &mut *lock(&node.known) {
                        known.at(known.place.epoch, position);
                    }
                    return Ok((Place { position, ..known.place }, outcomes));
                }
                Err(EngineError::Unreachable(why)) => {
                    is_on_its_way = true;
                    why
                }
                // An earlier attempt may still be taken.
                Err(error) if is_on_its_way => error.to_string(),
                Err(error) => {
                    if let (EngineError::AnotherLog { .. }, Some(life)) = (&error, &*node.life.load()) {
                        life.lose(Loss::Gap(error.to_string()));
                    }
                    return Err(Unavailable(format!("{error}; try again")));
                }
            },
        };
        if Instant::now() >= deadline || node.is_ending() {
            let why = format!("the engine has not acknowledged the change, which may have been done: {why}; try again");
            return Err(Unavailable(why));
        }
        // Not given up before the deadline, because until then the message may be taken.
        std::thread::sleep(wait.min(deadline.saturating_duration_since(Instant::now())));
        wait = (wait * 2).min(Duration::from_millis(200));
        node.tallies.retries.add(1);
        if node.left_out.has(Step::SameIdentifier) {
            id = new_id()?;
        }
    }
}

/// The time by the engine's clock from which on the message must not be taken. It is the deadline or a little
/// earlier, because the engine's clock is not behind what the node believes it to be.
fn latest(node: &Node, known: Known, deadline: Instant) -> u64 {
    if node.left_out.has(Step::Before) {
        return NEVER;
    }
    let left = deadline.saturating_duration_since(Instant::now());
    known.engine_now(node.clock.now()).saturating_add(left.as_millis() as u64)
}

fn new_id() -> Result<MessageId, Unavailable> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| Unavailable(format!("the system gives no random bytes: {error}")))?;
    Ok(MessageId(id))
}
