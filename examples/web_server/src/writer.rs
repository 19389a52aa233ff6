//! CONCURRENT: the one thread that changes the store and the filter, and keeps them in step.
//!
//! At any moment the filter has each token of the store, so what it does not have is not revoked:
//!
//! - a token goes into the filter first and into the store then, which is durable before anybody is told;
//! - a reinstated token leaves the store first, and the filter when that is durable;
//! - a change of the store that fails is not undone in the filter, for it may be on the disk all the same.
//!
//! So a token can be in the filter and not in the store, but not the other way round. Only what the store has is removed
//! from the filter, once for each time it was inserted, which is what a cuckoo filter asks for. The thread is the only one
//! to do either, so no two requests for one token can both find it absent.
//!
//! What has come in meanwhile is done in one transaction: a hundred clients wait for the disk as long as one.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, StableState};
use tokio::sync::{mpsc, oneshot};

use crate::store::{self, Store, Tokens};

pub(crate) type Revoked = ConcurrentCuckooFilter<str, StableState>;

/// How many orders may wait, and how many are done in one transaction at most.
const ORDERS: usize = 1024;

/// Something to do, and where to send what came of it. The answer is sent when the change is durable.
pub(crate) enum Order {
    Revoke { token: String, answer: Answer<Result<Revocation, InsertError>> },
    Reinstate { token: String, answer: Answer<bool> },
    RevokeMany { tokens: Vec<String>, answer: Answer<Tally> },
    Stop,
}

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Unavailable>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revocation {
    New,
    Known,
}

/// What became of many tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// How many were looked at: all, unless the filter is full.
    pub(crate) done: usize,
    pub(crate) inserted: usize,
    /// Those that look like too many others.
    pub(crate) refused: usize,
    /// The filter is full: those from `done` on are as they were.
    pub(crate) full: Option<InsertError>,
}

/// The store has failed, or the server is ending.
#[derive(Clone, Debug)]
pub(crate) struct Unavailable(pub(crate) Arc<str>);

impl From<store::Error> for Unavailable {
    fn from(error: store::Error) -> Self {
        Self(format!("the store of revoked tokens has failed: {error}").into())
    }
}

/// Where orders are taken. Clones lead to the same thread.
#[derive(Clone)]
pub(crate) struct Orders(mpsc::Sender<Order>);

impl Orders {
    pub(crate) async fn revoke(&self, token: String) -> Result<Result<Revocation, InsertError>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Order::Revoke { token, answer }).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    pub(crate) async fn reinstate(&self, token: String) -> Result<bool, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Order::Reinstate { token, answer }).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Blocks the thread until it is done.
    pub(crate) fn revoke_many(&self, tokens: Vec<String>) -> Result<Tally, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.blocking_send(Order::RevokeMany { tokens, answer }).map_err(|_| ending())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(ending()))
    }

    /// Takes no more orders than have been given.
    pub(crate) async fn stop(&self) {
        // If it does not take this one, it has stopped.
        let _ = self.0.send(Order::Stop).await;
    }
}

fn ending() -> Unavailable {
    Unavailable("the server takes no more changes; try again when it has been started anew".into())
}

/// Starts the thread. It ends after [`Orders::stop`].
pub(crate) fn start(store: Arc<Store>, filter: Arc<Revoked>) -> std::io::Result<(Orders, JoinHandle<()>)> {
    let (sender, mut orders) = mpsc::channel(ORDERS);
    let thread = std::thread::Builder::new().name("writer".into()).spawn(move || {
        let mut open = true;
        let mut batch = Vec::new();
        while open && orders.blocking_recv_many(&mut batch, ORDERS) > 0 {
            if let Some(end) = batch.iter().position(|order| matches!(order, Order::Stop)) {
                batch.truncate(end);
                open = false;
            }
            carry_out(&store, &filter, batch.drain(..));
        }
    })?;
    Ok((Orders(sender), thread))
}

/// What is left to be done once the change is durable, or has failed.
type Afterwards<'a> = Box<dyn FnOnce(Result<(), Unavailable>) + 'a>;

fn carry_out(store: &Store, filter: &Revoked, orders: impl Iterator<Item = Order>) {
    let mut afterwards: Vec<Afterwards<'_>> = Vec::new();
    let durable = changed(store, filter, orders, &mut afterwards).map_err(Unavailable::from);
    if let Err(Unavailable(why)) = &durable {
        eprintln!("error: {why}");
    }
    for then in afterwards {
        then(durable.clone());
    }
}

fn changed<'a>(
    store: &Store,
    filter: &'a Revoked,
    orders: impl Iterator<Item = Order>,
    afterwards: &mut Vec<Afterwards<'a>>,
) -> store::Result<()> {
    let change = store.change()?;
    let mut tokens = change.tokens()?;
    for order in orders {
        match order {
            Order::Revoke { token, answer } => {
                let outcome = revoke(&mut tokens, filter, &token)?;
                afterwards.push(Box::new(move |durable| drop(answer.send(durable.map(|()| outcome)))));
            }
            Order::Reinstate { token, answer } => {
                let was_in = tokens.remove(&token)?;
                afterwards.push(Box::new(move |durable| {
                    if durable.is_ok() && was_in {
                        filter.remove(&*token);
                    }
                    drop(answer.send(durable.map(|()| was_in)));
                }));
            }
            Order::RevokeMany { tokens: many, answer } => {
                let tally = revoke_many(&mut tokens, filter, &many)?;
                afterwards.push(Box::new(move |durable| drop(answer.send(durable.map(|()| tally)))));
            }
            Order::Stop => {}
        }
    }
    drop(tokens);
    change.commit()
}

fn revoke(tokens: &mut Tokens<'_>, filter: &Revoked, token: &str) -> store::Result<Result<Revocation, InsertError>> {
    if tokens.contains(token)? {
        return Ok(Ok(Revocation::Known));
    }
    // A token that the filter refuses must not be in the store: the filter would say that it is not revoked.
    if let Err(refused) = filter.insert(token) {
        return Ok(Err(refused));
    }
    tokens.insert(token)?;
    Ok(Ok(Revocation::New))
}

fn revoke_many(tokens: &mut Tokens<'_>, filter: &Revoked, many: &[String]) -> store::Result<Tally> {
    let mut new = Vec::new();
    let mut seen = HashSet::new();
    for (place, token) in many.iter().enumerate() {
        if !tokens.contains(token)? && seen.insert(token) {
            new.push((place, token.as_str()));
        }
    }
    let mut tally = Tally { done: many.len(), ..Tally::default() };
    let mut rest = new.as_slice();
    while !rest.is_empty() {
        let (inserted, refused) = match filter.insert_batch(rest.iter().map(|&(_, token)| token)) {
            Ok(inserted) => (inserted, None),
            Err(error) => (error.inserted, Some(error.error)),
        };
        for (_, token) in &rest[..inserted] {
            tokens.insert(token)?;
        }
        tally.inserted += inserted;
        match refused {
            None => break,
            // Only this one has no room.
            Some(InsertError::TooManyCopies { .. }) => tally.refused += 1,
            Some(full) => {
                tally.done = rest[inserted].0;
                tally.full = Some(full);
                break;
            }
        }
        rest = &rest[inserted + 1..];
    }
    Ok(tally)
}
