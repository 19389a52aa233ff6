//! The task that sends proposals to the log. It groups those of concurrent requests into one message.
//!
//! # What a request is answered
//!
//! - *Read your writes*: a request is answered only after this node has applied the position that the engine named.
//!   So the answer is true on this node, and on every node that has caught up.
//! - *A lost acknowledgement*: the message is sent again under the same identifier, until a deadline. The engine
//!   returns its first answer. The deadline is far below the time for which the engine remembers identifiers.
//! - *A node that leaves `ready` before it has applied the position* goes on waiting: it may come back in time.
//!   Otherwise the node says that it can't tell.
//! - *That does not say whether the change was made*. It may be in the log. The client tries again, with the same
//!   result.
//! - *A message that was given up and arrives late* is not taken. It says until when it may be taken, by the
//!   engine's clock, and that time is over when the requests are given up. Otherwise a `restore` that was given up
//!   could undo a `revoke` that was acknowledged after it.
//! - *The engine has another log*: the message carries the place that this node knows, so another log refuses it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::sync::{mpsc, oneshot};

use super::life::Loss;
use super::step::Step;
use super::{Core, NodeError, unavailable};
use crate::change::{Outcome, Proposal};
use crate::log::{Appended, EngineError, MessageId, NEVER, Place};

/// The most proposals in one message.
const AT_ONCE: usize = 100;

/// How many proposals may wait.
pub(super) const WAITING: usize = 10_000;

pub(super) struct Order {
    proposal: Proposal,
    deadline: Instant,
    answer: oneshot::Sender<Result<(Outcome, Place), NodeError>>,
}

impl Core {
    /// Sends a proposal to the log, and waits until it is durable and applied here.
    pub(super) async fn publish(&self, proposal: Proposal) -> Result<(Outcome, Place), NodeError> {
        let ending = || unavailable("the node takes no more changes; ask another node");
        let patience = self.settings.patience;
        let deadline = Instant::now() + patience;
        let done = async {
            let (answer, answered) = oneshot::channel();
            self.orders.send(Order { proposal, deadline, answer }).await.map_err(|_| ending())?;
            let (outcome, place) = answered.await.unwrap_or_else(|_| Err(ending()))?;
            if !self.left_out.has(Step::Wait) {
                let has_come = |applied: &Option<Place>| {
                    applied.is_some_and(|applied| applied.epoch == place.epoch && applied.position >= place.position)
                };
                self.applied.subscribe().wait_for(has_come).await.map_err(|_| ending())?;
            }
            Ok((outcome, place))
        };
        // A little longer than the publisher takes, because the publisher knows better why it failed.
        tokio::time::timeout(patience + Duration::from_millis(500), done).await.unwrap_or_else(|_| {
            Err(unavailable(&format!(
                "the change was not acknowledged and applied within {patience:?}, and may have been done; try again"
            )))
        })
    }
}

pub(super) async fn run(node: Arc<Core>, mut orders: mpsc::Receiver<Order>) {
    let mut batch = Vec::with_capacity(AT_ONCE);
    while orders.recv_many(&mut batch, AT_ONCE).await > 0 {
        let now = Instant::now();
        // An order that has waited too long has been answered already.
        batch.retain(|order| order.deadline > now && !order.answer.is_closed());
        if batch.is_empty() {
            continue;
        }
        let proposals: Vec<_> = batch.iter().map(|order| order.proposal).collect();
        // The earliest deadline: no request may be reported as given up while its message may still be taken.
        let deadline = batch.iter().map(|order| order.deadline).min().unwrap_or(now);
        // It does not matter if the client is gone.
        match append(&node, &proposals, deadline).await {
            Ok(Appended { place, outcomes }) => {
                for (order, outcome) in batch.drain(..).zip(outcomes) {
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
async fn append(node: &Core, proposals: &[Proposal], deadline: Instant) -> Result<Appended, NodeError> {
    let mut id = new_id()?;
    let mut before = None;
    let mut is_on_its_way = false;
    let (least, most) = (Duration::from_millis(5), Duration::from_millis(200));
    let waits = ExponentialBuilder::default().with_min_delay(least).with_max_delay(most).without_max_times();
    for wait in waits.build() {
        let why = match (node.known_place(), node.engine_now()) {
            (Some(known), Some(engine_now)) => {
                // By the engine's clock. A little earlier than the deadline, if anything.
                let left = deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
                let before = *before.get_or_insert(engine_now.saturating_add(left));
                let before = if node.left_out.has(Step::Before) { NEVER } else { before };
                match node.engine.append(known, id, proposals, before, node.latest()).await {
                    Ok(appended) => {
                        node.learn(appended.place);
                        return Ok(appended);
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
                        return Err(unavailable(&format!("{error}; try again")));
                    }
                }
            }
            _ => "the node has not reached the engine since it was started".to_owned(),
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || node.is_ending() {
            let why = format!("the engine has not acknowledged the change, which may have been done: {why}; try again");
            return Err(unavailable(&why));
        }
        // Not given up before the deadline, because until then the message may be taken.
        tokio::time::sleep(wait.min(left)).await;
        node.tallies.retries.add(1);
        if node.left_out.has(Step::SameIdentifier) {
            id = new_id()?;
        }
    }
    Err(unavailable("the change was given up; try again"))
}

fn new_id() -> Result<MessageId, NodeError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| unavailable(&format!("the system gives no random bytes: {error}")))?;
    Ok(MessageId(id))
}
