//! Changes on their way into the cluster.
//!
//! Concurrent changes share a transaction. For each token it has a transaction of its own: revoke, unless the record has
//! this end or a later one; restore, if the record is the one that this was decided on. So a change that is sent again
//! changes nothing more. With them goes a new head, and the node answers when its own watch has delivered *that* head:
//! from then on its filter has the changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use concurrent_cuckoo_filter::Hashed;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::clock::Moment;
use crate::error::NodeError;
use crate::etcd::messages::compare::{Operand, Result as Is, Target};
use crate::etcd::messages::request_op::Request;
use crate::etcd::messages::response_op::Response;
use crate::etcd::messages::{DeleteRangeRequest, RequestOp, TxnResponse};
use crate::etcd::{Fault, compare, put, range, response_range, revision, same, txn};
use crate::keys::ChangeId;
use crate::shared::{Done, Job, Shared, What, count, lock};

/// How many changes are in one transaction. Etcd's own limit is 128 operations.
const GROUP: usize = 100;

/// How many transactions are under way at a time.
const WORKERS: usize = 8;

/// How many tokens share a lease. When it ends, etcd deletes them in one step.
const TOKENS_OF_A_LEASE: usize = 10_000;

/// How long a record stays after its token may be forgotten. It does not matter when etcd deletes it, if only it is late.
const LATER: u64 = 3600;

/// The lease of the next records.
struct Lease {
    id: i64,
    /// Not before this moment.
    ends: Moment,
    room: usize,
}

/// Takes changes from the queue until the node ends.
pub(crate) async fn publish(shared: Arc<Shared>, jobs: mpsc::Receiver<Job>) {
    let (jobs, lease) = (Arc::new(Mutex::new(jobs)), Arc::new(Mutex::new(None)));
    let workers = (0..WORKERS).map(|_| work(Arc::clone(&shared), Arc::clone(&jobs), Arc::clone(&lease)));
    let mut workers: tokio::task::JoinSet<()> = workers.collect();
    while workers.join_next().await.is_some() {}
}

async fn work(shared: Arc<Shared>, jobs: Arc<Mutex<mpsc::Receiver<Job>>>, lease: Arc<Mutex<Option<Lease>>>) {
    let mut group = Vec::new();
    loop {
        if group.is_empty() && jobs.lock().await.recv_many(&mut group, GROUP).await == 0 {
            return;
        }
        // A transaction can't change a key twice.
        let mut ids = HashSet::new();
        let (now, later) = group.drain(..).partition(|job: &Job| ids.insert(job.id));
        group = later;
        Group { shared: &shared, lease: &lease, jobs: now }.run().await;
    }
}

struct Group<'a> {
    shared: &'a Shared,
    lease: &'a Mutex<Option<Lease>>,
    jobs: Vec<Job>,
}

impl Group<'_> {
    async fn run(mut self) {
        let Some(until) = self.jobs.iter().map(|job| job.until).min() else { return };
        // A node acknowledges what it has in its filter, so it needs one.
        while self.shared.known.load().is_none() && self.shared.stopped().is_none() && Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        self.refuse_if_full();
        if self.jobs.is_empty() {
            return;
        }
        match self.acknowledged(until).await {
            Ok(done) => {
                for (job, done) in self.jobs.into_iter().zip(done) {
                    reply(job, done);
                }
            }
            Err(why) => {
                for job in self.jobs {
                    reply(job, Err(NodeError::Unacknowledged(why.clone())));
                }
            }
        }
    }

    /// Tokens that are not revoked have no room in a full fleet.
    fn refuse_if_full(&mut self) {
        let shared = self.shared;
        let Some(known) = shared.known.load_full() else { return };
        let capacity = shared.settings.capacity;
        if known.filter.len() < capacity {
            return;
        }
        let live = known.filter.live_len();
        if live < capacity {
            return;
        }
        let needs_room = |job: &Job| {
            matches!(job.what, What::Revoke { .. })
                && !known.filter.by_hash().contains(Hashed(shared.secret.hash(job.id)))
        };
        let (refused, rest) = self.jobs.drain(..).partition(needs_room);
        self.jobs = rest;
        for job in refused {
            reply(job, Err(NodeError::Full { live: live as u64, capacity: capacity as u64 }));
        }
    }

    /// Sends the group until it is in the node's own filter.
    async fn acknowledged(&self, until: Instant) -> Result<Vec<Result<Done, NodeError>>, String> {
        let shared = self.shared;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| format!("the system gives no random bytes: {error}"))?;
        let id = ChangeId(id);
        let mut first: Option<Vec<Result<Done, NodeError>>> = None;
        let mut sent = 0;
        loop {
            if let Some(why) = shared.stopped() {
                return Err(why);
            }
            let (told, mut watched) = oneshot::channel();
            lock(&shared.pending).insert(id, told);
            let _forget = Forget(shared, id);
            sent += 1;
            if sent > 1 {
                count(&shared.tallies.retries);
            }
            let answer = self.send(id, until).await.map_err(|fault| shared.explain(fault))?;
            let position = revision(&answer);
            // Of several answers, the first says what the change did.
            let done = first.get_or_insert_with(|| self.read(&answer));
            if !takes!(shared.settings, Watched) {
                return Ok(done.clone());
            }
            if !takes!(shared.settings, Identifier) {
                while shared.known.load().as_ref().is_none_or(|known| known.applied() < position) {
                    sleep(Duration::from_millis(1)).await;
                }
                return Ok(done.clone());
            }
            match timeout_at(until, &mut watched).await {
                Ok(Ok(_)) => return Ok(done.clone()),
                // The node has joined again, and may have missed it.
                Ok(Err(_)) => {}
                Err(_) => return Err("it is made, and this node has not come to it in time".into()),
            }
        }
    }

    async fn send(&self, id: ChangeId, until: Instant) -> Result<TxnResponse, Fault> {
        loop {
            match self.send_once(id, until).await {
                // The cluster was restored from a backup, or somebody has revoked the lease.
                Err(Fault::NoLease) => *self.lease.lock().await = None,
                answer => return answer,
            }
        }
    }

    async fn send_once(&self, id: ChangeId, until: Instant) -> Result<TxnResponse, Fault> {
        let shared = self.shared;
        let lease = match self.jobs.iter().filter_map(|job| job.what.end()).max() {
            Some(end) => self.lease(end, until).await?,
            None => 0,
        };
        let mut ops: Vec<_> = self.jobs.iter().filter_map(|job| self.op(job, lease)).collect();
        ops.push(put(shared.names.head(), id.head(shared.clock.latest()), 0));
        shared.client.txn(&txn(vec![], ops, vec![]), until).await
    }

    fn op(&self, job: &Job, lease: i64) -> Option<RequestOp> {
        let shared = self.shared;
        let key = shared.names.token(job.id);
        let txn = match job.what {
            What::Revoke { end } => {
                // A later end, or this one: the second half of a value is at most this.
                let mut least = [0xff; 16];
                least[..8].copy_from_slice(&end.saturating_sub(1).to_be_bytes());
                let operand = Operand::Value(least.to_vec().into());
                let is_later = compare(key.clone(), Is::Greater, Target::Value, operand);
                let value = shared.secret.value(job.id, end);
                txn(vec![is_later], vec![range(key.clone(), 0).into()], vec![put(key, value.to_vec(), lease)])
            }
            What::Replace { end, decided } => {
                let value = shared.secret.value(job.id, end);
                txn(vec![same(key.clone(), decided)], vec![put(key, value.to_vec(), lease)], vec![])
            }
            What::Restore { decided } => {
                let compare = same(
                    key.clone(),
                    if takes!(shared.settings, Decided) { decided } else { return Some(delete(key)) },
                );
                txn(vec![compare], vec![delete(key)], vec![])
            }
            What::Touch => return None,
        };
        Some(Request::Txn(txn).into())
    }

    /// What the answer says of each change.
    fn read(&self, answer: &TxnResponse) -> Vec<Result<Done, NodeError>> {
        let position = revision(answer);
        let of = |(nth, job): (usize, &Job)| {
            let of_token = match answer.responses.get(nth).and_then(|response| response.response.as_ref()) {
                Some(Response::Txn(txn)) => Some(txn),
                _ => None,
            };
            let succeeded = of_token.is_some_and(|txn| txn.succeeded);
            let (end, is_new) = match job.what {
                What::Revoke { end } if !succeeded => (Some(end), true),
                What::Revoke { .. } => {
                    let record = response_range(of_token?, 0);
                    (record.kvs.first().and_then(|kv| self.shared.secret.end(job.id, &kv.value)), false)
                }
                What::Replace { end, .. } => (Some(end), succeeded),
                What::Restore { .. } => (None, succeeded),
                What::Touch => (None, true),
            };
            Some(Done { position, end, is_new })
        };
        let unreadable = || Err(NodeError::Unacknowledged("etcd's answer can't be read".into()));
        self.jobs.iter().enumerate().map(|job| of(job).map_or_else(unreadable, Ok)).collect()
    }

    /// A lease that ends after all nodes have forgotten a token of this end. It is measured by etcd, and from now on, so a
    /// node's clock can only make it longer.
    async fn lease(&self, end: u64, until: Instant) -> Result<i64, Fault> {
        let (shared, settings) = (self.shared, &self.shared.settings);
        let rest = end.saturating_sub(shared.clock.earliest()).max(settings.longest_lifetime + settings.leeway);
        let needed = rest.saturating_add(2 * settings.clock_margin + 2 * settings.resolution + LATER);
        let mut lease = self.lease.lock().await;
        let now = shared.clock.now();
        let room = self.jobs.len();
        if let Some(lease) =
            lease.as_mut().filter(|lease| lease.room >= room && lease.ends >= now.plus(Duration::from_secs(needed)))
        {
            lease.room -= room;
            return Ok(lease.id);
        }
        // So that several groups can use it.
        let seconds = needed.saturating_add(settings.resolution.max(60));
        let id = shared.client.lease(i64::try_from(seconds).unwrap_or(i64::MAX).min(9_000_000_000), until).await?;
        *lease = Some(Lease { id, ends: now.plus(Duration::from_secs(seconds)), room: TOKENS_OF_A_LEASE - room });
        Ok(id)
    }
}

fn delete(key: Vec<u8>) -> RequestOp {
    Request::DeleteRange(DeleteRangeRequest { key: key.into(), range_end: Default::default() }).into()
}

fn reply(job: Job, done: Result<Done, NodeError>) {
    if let Some(reply) = job.reply {
        // The one who asked may be gone.
        _ = reply.send(done);
    }
}

/// Forgets a change when nobody waits for it any more.
struct Forget<'a>(&'a Shared, ChangeId);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.0.pending).remove(&self.1);
    }
}
