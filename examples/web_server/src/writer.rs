//! CONCURRENT: the one thread that changes the store and the filter, and keeps them in step.
//!
//! At any moment the filter has each token of the store that has not expired by the filter's clock. So a token that
//! the filter does not have is not revoked:
//!
//! - a token goes into the filter first and then into the store, and is durable before any client is told;
//! - a reinstated token leaves the store first, and the filter when that is durable;
//! - a token that is to be revoked for longer goes into the filter once more, and its first entry is removed when
//!   that is durable;
//! - a change of the store that fails is not undone in the filter, because it may be on the disk all the same;
//! - an expired token leaves the filter by itself, and the store some time later.
//!
//! So a token can be in the filter and not in the store, but until it expires not the other way round. The thread
//! removes from the filter only what the store has, with the time until which the store says that it is revoked, and
//! once for each time it was inserted. That is what a cuckoo filter requires. Only this thread inserts and removes,
//! so no two requests for one token can both find it absent.
//!
//! Orders that have come in meanwhile go into one transaction: a hundred clients wait for the disk as long as one.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use concurrent_cuckoo_filter::InsertError;
use tokens::expiry::Until;
use tokio::sync::{mpsc, oneshot};

use crate::revoked::Revoked;
use crate::store::{self, Store, Tokens};

/// How many orders may wait, and how many go into one transaction at most.
const ORDERS: usize = 1024;

/// How many expired tokens one order makes the store forget at most, so that other orders do not wait for more.
const FORGOTTEN_AT_ONCE: usize = 4096;

/// An order, and where to send its outcome. The answer is sent when the change is durable.
pub(crate) enum Order {
    Revoke {
        token: String,
        until: Until,
        answer: Answer<Result<Revocation, InsertError>>,
    },
    Reinstate {
        token: String,
        answer: Answer<bool>,
    },
    RevokeMany {
        tokens: Vec<(String, Until)>,
        answer: Answer<Tally>,
    },
    /// Forget tokens that were revoked until a time before this one.
    Forget {
        before: u64,
        answer: Answer<usize>,
    },
    Stop,
}

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Unavailable>>;

/// The outcome for one token. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revocation {
    /// It is revoked until this time. Before, it was not, or not for so long.
    New { until: u64 },
    /// It was revoked already, until this time.
    Known { until: u64 },
    /// It was to be revoked until this time, which is over. There is nothing to remember.
    Expired { until: u64 },
}

/// The outcome for many tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// How many were processed: all, unless the filter is full.
    pub(crate) done: usize,
    pub(crate) inserted: usize,
    /// How many have expired.
    pub(crate) expired: usize,
    /// How many the filter refused because too many others look like them.
    pub(crate) refused: usize,
    /// The error if the filter is full. The tokens from `done` on are unchanged.
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

/// The way to give orders. Clones lead to the same thread.
#[derive(Clone)]
pub(crate) struct Orders(mpsc::Sender<Order>);

impl Orders {
    pub(crate) async fn revoke(
        &self,
        token: String,
        until: Until,
    ) -> Result<Result<Revocation, InsertError>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Order::Revoke { token, until, answer }).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    pub(crate) async fn reinstate(&self, token: String) -> Result<bool, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Order::Reinstate { token, answer }).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Makes the store forget some of the tokens that were revoked until a time before this one.
    pub(crate) async fn forget(&self, before: u64) -> Result<usize, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Order::Forget { before, answer }).await.map_err(|_| ending())?;
        answered.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Blocks the thread until the order is done.
    pub(crate) fn revoke_many(&self, tokens: Vec<(String, Until)>) -> Result<Tally, Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.0.blocking_send(Order::RevokeMany { tokens, answer }).map_err(|_| ending())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(ending()))
    }

    /// Stops the thread after the orders given so far.
    pub(crate) async fn stop(&self) {
        // If the thread does not take this order, it has stopped already.
        let _ = self.0.send(Order::Stop).await;
    }
}

fn ending() -> Unavailable {
    Unavailable("the server takes no more changes; try again after its restart".into())
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

/// What remains to be done once the change is durable or has failed.
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
    // The filter accepts ends within the longest lifetime from its own time on.
    let now = filter.advance();
    let mut replaced = Vec::new();
    for order in orders {
        match order {
            Order::Revoke { token, until, answer } => {
                let outcome = revoke(&mut tokens, filter, &token, until, now, &mut replaced)?;
                afterwards.push(Box::new(move |durable| drop(answer.send(durable.map(|()| outcome)))));
            }
            Order::Reinstate { token, answer } => {
                let until = tokens.remove(&token)?;
                let was_revoked = until.is_some_and(|until| until > now);
                afterwards.push(Box::new(move |durable| {
                    if let (Ok(()), Some(until)) = (&durable, until) {
                        filter.remove(&token, until);
                    }
                    drop(answer.send(durable.map(|()| was_revoked)));
                }));
            }
            Order::RevokeMany { tokens: many, answer } => {
                let tally = revoke_many(&mut tokens, filter, &many, now, &mut replaced)?;
                afterwards.push(Box::new(move |durable| drop(answer.send(durable.map(|()| tally)))));
            }
            Order::Forget { before, answer } => {
                let forgotten = tokens.forget_before(before, FORGOTTEN_AT_ONCE)?;
                afterwards.push(Box::new(move |durable| drop(answer.send(durable.map(|()| forgotten)))));
            }
            Order::Stop => {}
        }
    }
    afterwards.push(Box::new(move |durable| {
        if durable.is_ok() {
            replaced.iter().for_each(|(token, until)| filter.remove(token, *until));
        }
    }));
    drop(tokens);
    change.commit()
}

/// The tokens that are in the filter twice now, each with the time that the store no longer has.
type Replaced = Vec<(String, u64)>;

fn revoke(
    tokens: &mut Tokens<'_>,
    filter: &Revoked,
    token: &str,
    until: Until,
    now: u64,
    replaced: &mut Replaced,
) -> store::Result<Result<Revocation, InsertError>> {
    match tokens.revoked_until(token)? {
        Some(known) if suffices(known, until, now) => return Ok(Ok(Revocation::Known { until: known })),
        _ if until.time <= now => return Ok(Ok(Revocation::Expired { until: until.time })),
        _ => {}
    }
    let until = until.time;
    // A token that the filter refuses must not be in the store, because the filter would say that it is not revoked.
    if let Err(refused) = filter.insert(token, until) {
        return Ok(Err(refused));
    }
    replaced.extend(tokens.insert(token, until)?.map(|before| (token.to_owned(), before)));
    Ok(Ok(Revocation::New { until }))
}

/// Whether a token that is revoked until `known` need not be revoked again. What was answered once stays true, so a
/// revocation is never shortened.
fn suffices(known: u64, until: Until, now: u64) -> bool {
    known > now && (until.assumed || known >= until.time)
}

fn revoke_many(
    tokens: &mut Tokens<'_>,
    filter: &Revoked,
    many: &[(String, Until)],
    now: u64,
    replaced: &mut Replaced,
) -> store::Result<Tally> {
    let (mut new, mut expired) = (Vec::new(), Vec::new());
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for (place, (token, until)) in many.iter().enumerate() {
        let known = seen.get(token.as_str()).copied().max(tokens.revoked_until(token)?);
        if known.is_some_and(|known| suffices(known, *until, now)) {
            continue;
        }
        if until.time <= now {
            expired.push(place);
            continue;
        }
        seen.insert(token, until.time);
        new.push((place, token.as_str(), until.time));
    }
    let mut tally = Tally { done: many.len(), ..Tally::default() };
    let mut rest = new.as_slice();
    while !rest.is_empty() {
        let (inserted, refused) = match filter.insert_batch(rest.iter().map(|&(_, token, until)| (token, until))) {
            Ok(inserted) => (inserted, None),
            Err(error) => (error.inserted, Some(error.error)),
        };
        for &(_, token, until) in &rest[..inserted] {
            replaced.extend(tokens.insert(token, until)?.map(|before| (token.to_owned(), before)));
        }
        tally.inserted += inserted;
        match refused {
            None => break,
            // Only this token has no room.
            Some(InsertError::TooManyCopies { .. }) => tally.refused += 1,
            Some(full) => {
                tally.done = rest[inserted].0;
                tally.full = Some(full);
                break;
            }
        }
        rest = &rest[inserted + 1..];
    }
    tally.expired = expired.partition_point(|&place| place < tally.done);
    Ok(tally)
}
