//! Changes on their way into the cluster.
//!
//! Concurrent changes share a transaction, which does nothing unless the agreement is the one under which the node has joined:
//! so nothing is changed in another cluster, nor after a loss was announced. For each token it has a transaction of its own:
//! put a record, if the one there is the one that this was decided on. A node deletes none, and each put changes the
//! revision of the record. So a change that is sent again, or that arrives when others have followed it, changes nothing.
//! (A revocation that finds the token revoked already puts its record again, for this very reason: `Node::revoke`.)
//!
//! With them goes a new head, and the node answers when its own watch has delivered *that* head, at the revision of etcd's
//! answer: from then on its filter has the changes, and those that they met.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::NodeError;
use crate::etcd::Fault;
use crate::etcd::build::{key_at, put, range, revision, same, txn};
use crate::etcd::messages::{RequestOp, ResponseOp, TxnResponse};
use crate::keys::{ChangeId, Record};
use crate::lock;
use crate::shared::{Change, Done, Job, Shared, count, explain};

/// How many changes are in one transaction. Etcd's own limit is 128 operations.
const GROUP: usize = 100;

/// How many tokens share a lease. When it ends, etcd deletes them in one step.
const TOKENS_OF_A_LEASE: usize = 10_000;

/// How long a record stays after its token may be forgotten. It does not matter when etcd deletes it, if only it is late.
const LATER: u64 = 3600;

/// The longest time of a lease, less a tick. Etcd's own limit is 9,000,000,000 s.
const LONGEST: u64 = 8_999_000_000;

/// The lease of the next records.
#[derive(Default)]
pub(crate) struct Lease {
    id: i64,
    /// Not before this moment of the monotonic clock.
    ends: Duration,
    room: usize,
}

/// Takes changes from the queue until the node ends. Several of these share a queue and a lease.
pub(crate) async fn publish(shared: Arc<Shared>, queue: Arc<Mutex<mpsc::Receiver<Job>>>, lease: Arc<Mutex<Lease>>) {
    let mut group = Vec::new();
    loop {
        if group.is_empty() && queue.lock().await.recv_many(&mut group, GROUP).await == 0 {
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
    lease: &'a Mutex<Lease>,
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
        let mut id = ChangeId([0; 16]);
        let done = match getrandom::fill(&mut id.0) {
            Ok(()) => self.acknowledged(id, until).await,
            Err(error) => Err(format!("the system gives no random bytes: {error}")),
        };
        lock(&self.shared.pending).remove(&id);
        for (nth, job) in self.jobs.into_iter().enumerate() {
            reply(job, done.as_ref().map(|done| done[nth]).map_err(|why| NodeError::Unacknowledged(why.clone())));
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
        let needs_room = |job: &mut Job| {
            job.change.is_some_and(|change| change.end > 0)
                && !known.filter.by_hash().contains(shared.secret.hash(job.id))
        };
        for job in self.jobs.extract_if(.., needs_room) {
            reply(job, Err(NodeError::Full { live: live as u64, capacity: capacity as u64 }));
        }
    }

    /// Sends the group until it is in the node's own filter.
    async fn acknowledged(&self, id: ChangeId, until: Instant) -> Result<Vec<Done>, String> {
        let shared = self.shared;
        loop {
            if let Some(why) = shared.stopped() {
                return Err(why);
            }
            let (told, mut watched) = watch::channel(Vec::new());
            lock(&shared.pending).insert(id, told);
            let answer = self.send(id, until).await.map_err(explain)?;
            if !answer.succeeded {
                // The node joins again, or stops. Nothing was done.
                if Instant::now() + shared.settings.beat() >= until {
                    return Err(
                        "the agreement of the fleet has changed, and the node has not joined again in time".into()
                    );
                }
                sleep(shared.settings.beat()).await;
                continue;
            }
            // What it says of a record is in the filter from its own revision on. It may be the answer to a second request.
            let has_come = watched.wait_for(|revisions| revisions.contains(&revision(&answer)));
            match timeout_at(until, has_come).await {
                Ok(Ok(_)) => return Ok(self.read(&answer)),
                // The node has joined again, and may have missed it.
                Ok(Err(_)) => count(&shared.tallies.retries),
                Err(_) => return Err("it is made, and this node has not come to it in time".into()),
            }
        }
    }

    async fn send(&self, id: ChangeId, until: Instant) -> Result<TxnResponse, Fault> {
        let shared = self.shared;
        loop {
            let lease = self.lease(until).await?;
            let mut ops: Vec<_> = self.jobs.iter().map(|job| self.op(job, lease)).collect();
            ops.push(put(shared.names.head(), id.head(shared.clock.latest()), 0));
            // A node without a memory is about to join; no revision is negative.
            let agreement = lock(&shared.memory).as_ref().map_or(-1, |memory| memory.agreement);
            let change = txn(vec![same(shared.names.agreement(), agreement)], ops, vec![]);
            match shared.client.txn(&change, until).await {
                // The cluster was restored from a backup, or somebody has revoked the lease.
                Err(Fault::NoLease) => *self.lease.lock().await = Lease::default(),
                answer => return answer,
            }
        }
    }

    /// One for each change, so that the answer has as many.
    fn op(&self, job: &Job, lease: i64) -> RequestOp {
        let shared = self.shared;
        let Some(Change { end, decided }) = job.change else { return range(shared.names.head(), 0) };
        let key = shared.names.token(job.id);
        let put = put(key.clone(), shared.secret.value(job.id, end, decided).to_vec(), lease);
        let txn = txn(vec![same(key.clone(), decided.revision)], vec![put], vec![range(key, 0)]);
        RequestOp { txn: Some(txn), ..RequestOp::default() }
    }

    /// What the answer says of each change.
    fn read(&self, answer: &TxnResponse) -> Vec<Done> {
        let of = |(job, response): (&Job, &ResponseOp)| {
            let done = Done { position: revision(answer), is_done: true, record: Record::default(), end: None };
            let Some(of_token) = response.txn.as_ref().filter(|of_token| !of_token.succeeded) else { return done };
            let record = key_at(of_token, 0);
            let end = record.as_ref().and_then(|record| self.shared.secret.end(job.id, record));
            Done { is_done: false, record: Record::of(record.as_ref()), end, ..done }
        };
        self.jobs.iter().zip(&answer.responses).map(of).collect()
    }

    /// A lease that ends after all nodes have forgotten these tokens; 0 if there are none. It is measured by etcd, and
    /// from now on, so a node's clock can only make it longer.
    async fn lease(&self, until: Instant) -> Result<i64, Fault> {
        let (shared, settings) = (self.shared, &self.shared.settings);
        let Some(end) = self.jobs.iter().filter_map(|job| job.change).map(|change| change.end).max() else {
            return Ok(0);
        };
        let rest = end.saturating_sub(shared.clock.earliest()).max(settings.longest_lifetime + settings.leeway);
        let needed = rest.saturating_add(2 * settings.clock_margin + 2 * settings.resolution + LATER).min(LONGEST);
        let (mut lease, now, room) = (self.lease.lock().await, shared.clock.now(), self.jobs.len());
        if lease.room < room || lease.ends < now + Duration::from_secs(needed) {
            // So that several groups can use it.
            let seconds = needed + settings.resolution.max(60);
            let id = shared.client.lease(seconds as i64, until).await?;
            *lease = Lease { id, ends: now + Duration::from_secs(seconds), room: TOKENS_OF_A_LEASE };
        }
        lease.room -= room;
        Ok(lease.id)
    }
}

fn reply(job: Job, done: Result<Done, NodeError>) {
    if let Some(reply) = job.reply {
        // The one who asked may be gone.
        _ = reply.send(done);
    }
}
