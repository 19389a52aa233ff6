//! Changes on their way into the cluster.
//!
//! Concurrent changes share a transaction. For each token it has a transaction of its own: revoke, unless the record has
//! this end or a later one; restore, if the record is the one that this was decided on. So a change that is sent again
//! changes nothing more. With them goes a new head, and the node answers when its own watch has delivered *that* head:
//! from then on its filter has the changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::NodeError;
use crate::etcd::Fault;
use crate::etcd::build::{delete, differs, greater, key_at, put, questions, range, revision, same, txn};
use crate::etcd::messages::{RequestOp, TxnResponse};
use crate::keys::ChangeId;
use crate::lock;
use crate::shared::{Done, Job, Shared, What, count, explain};

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

type Outcome = Result<Done, NodeError>;

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
        let done = self.acknowledged(until).await;
        for (nth, job) in self.jobs.into_iter().enumerate() {
            let of_job = |done: &Vec<Outcome>| done[nth].clone();
            reply(job, done.as_ref().map_err(|why| NodeError::Unacknowledged(why.clone())).and_then(of_job));
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
            matches!(job.what, What::Revoke { .. }) && !known.filter.by_hash().contains(shared.secret.hash(job.id))
        };
        for job in self.jobs.extract_if(.., needs_room) {
            reply(job, Err(NodeError::Full { live: live as u64, capacity: capacity as u64 }));
        }
    }

    /// Sends the group until it is in the node's own filter.
    async fn acknowledged(&self, until: Instant) -> Result<Vec<Outcome>, String> {
        let shared = self.shared;
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| format!("the system gives no random bytes: {error}"))?;
        let id = ChangeId(id);
        let mut first = None;
        loop {
            if let Some(why) = shared.stopped() {
                return Err(why);
            }
            let (told, mut watched) = oneshot::channel();
            lock(&shared.pending).insert(id, told);
            let _forget = Forget(shared, id);
            let answer = self.send(id, until).await.map_err(explain)?;
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
                Ok(Err(_)) => count(&shared.tallies.retries),
                Err(_) => return Err("it is made, and this node has not come to it in time".into()),
            }
        }
    }

    async fn send(&self, id: ChangeId, until: Instant) -> Result<TxnResponse, Fault> {
        let shared = self.shared;
        loop {
            let lease = self.lease(until).await?;
            let mut ops: Vec<_> = self.jobs.iter().filter_map(|job| self.op(job, lease)).collect();
            ops.push(put(shared.names.head(), id.head(shared.clock.latest()), 0));
            match shared.client.txn(&questions(ops), until).await {
                // The cluster was restored from a backup, or somebody has revoked the lease.
                Err(Fault::NoLease) => *self.lease.lock().await = Lease::default(),
                answer => return answer,
            }
        }
    }

    fn op(&self, job: &Job, lease: i64) -> Option<RequestOp> {
        let shared = self.shared;
        let key = shared.names.token(job.id);
        let txn = match job.what {
            What::Revoke { end, over } => {
                // A later end, or this one: the second half of a value is at most this.
                let mut least = [0xff; 16];
                least[..8].copy_from_slice(&end.saturating_sub(1).to_be_bytes());
                let is_later = vec![greater(key.clone(), least.to_vec()), differs(key.clone(), over)];
                let value = shared.secret.value(job.id, end).to_vec();
                txn(is_later, vec![range(key.clone(), 0)], vec![put(key, value, lease)])
            }
            What::Restore { decided } if takes!(shared.settings, Decided) => {
                txn(vec![same(key.clone(), decided)], vec![delete(key, vec![])], vec![])
            }
            What::Restore { .. } => txn(vec![], vec![delete(key, vec![])], vec![]),
            What::Touch => return None,
        };
        Some(RequestOp { txn: Some(txn), ..RequestOp::default() })
    }

    /// What the answer says of each change.
    fn read(&self, answer: &TxnResponse) -> Vec<Outcome> {
        let position = revision(answer);
        let of = |(nth, job): (usize, &Job)| {
            let mut done = Done { position, end: None, over: 0, is_new: true };
            let of_token = answer.responses.get(nth).and_then(|response| response.txn.as_ref());
            match (job.what, of_token) {
                (What::Touch, _) => {}
                (_, None) => return Err(NodeError::Unacknowledged("etcd's answer can't be read".into())),
                (What::Restore { .. }, Some(txn)) => done.is_new = txn.succeeded,
                (What::Revoke { end, .. }, Some(txn)) if !txn.succeeded => done.end = Some(end),
                (What::Revoke { .. }, Some(txn)) => {
                    let record = key_at(txn, 0).unwrap_or_default();
                    let end = self.shared.secret.end(job.id, &record.value);
                    done = Done { end, over: record.mod_revision, is_new: false, ..done };
                }
            }
            Ok(done)
        };
        self.jobs.iter().enumerate().map(of).collect()
    }

    /// A lease that ends after all nodes have forgotten these tokens; 0 if none is revoked. It is measured by etcd, and
    /// from now on, so a node's clock can only make it longer.
    async fn lease(&self, until: Instant) -> Result<i64, Fault> {
        let (shared, settings) = (self.shared, &self.shared.settings);
        let ends = self.jobs.iter().filter_map(|job| match job.what {
            What::Revoke { end, .. } => Some(end),
            _ => None,
        });
        let Some(end) = ends.max() else { return Ok(0) };
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

fn reply(job: Job, done: Outcome) {
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
