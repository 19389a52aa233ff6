//! What a node asks over its connection to a member, and what the answers mean.

use std::sync::Arc;
use std::time::Duration;

use concurrent_cuckoo_filter::{Hashed, Tick};

use crate::etcd::build::{key_at, put, questions, range, range_at, range_of, revision, same, txn};
use crate::etcd::messages::{KeyValue, RangeResponse, RequestOp, TxnRequest, TxnResponse};
use crate::etcd::{Connection, Fault};
use crate::filter::Known;
use crate::history::{Agreement, Head, Memory, Place};
use crate::lock;
use crate::settings::Filter;
use crate::shared::{Shared, State, count};
use crate::survey::may_found;

/// How many tokens are read at once.
const PAGE: i64 = 10_000;

/// Why a node does not go on over this connection.
pub(crate) enum End {
    /// It goes on over the next one.
    Fault(String),
    /// The same, because this member belongs to another cluster.
    Stranger(String),
    /// It must read all tokens again.
    Join(String),
    /// The same, into a larger filter.
    NoRoom,
    /// The cluster has lost something that the node knew.
    Lost(String),
    /// The cluster has lost something, as the agreement says.
    Waiting(String),
    Refused(String),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Denied(_) => Self::Refused(fault.to_string()),
            Fault::Stranger { .. } => Self::Stranger(fault.to_string()),
            fault => Self::Fault(fault.to_string()),
        }
    }
}

/// One connection.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Connection,
    /// The cluster of the fleet. Answers of another one count as no answers.
    pub(crate) cluster: u64,
}

/// What a quorum says of the fleet.
pub(crate) struct Found {
    pub(crate) answer: TxnResponse,
    pub(crate) head: Head,
    pub(crate) agreement: Agreement,
    /// The revision of the agreement.
    pub(crate) agreed: i64,
    /// Where what the node remembers is in this history; `None` if it remembers nothing.
    pub(crate) place: Option<Place>,
    /// Whether the node's own revision was compacted.
    pub(crate) is_compacted: bool,
}

impl Link {
    async fn ask(&self, question: TxnRequest, limit: Duration) -> Result<TxnResponse, Fault> {
        let answer = self.shared.client.txn_over(&self.connection, question, limit).await?;
        self.connection.accept(answer, self.cluster)
    }

    fn one_try(&self) -> Duration {
        self.shared.settings.one_try()
    }

    /// Agrees with the other nodes on the settings and the cluster, and checks that the node has all the rights it needs. Only
    /// the first node of a fleet writes.
    pub(crate) async fn agree(&self) -> Result<(), End> {
        let (names, settings) = (&self.shared.names, &self.shared.settings);
        let (key, memory) = (names.agreement(), lock(&self.shared.memory).clone());
        let never = [key.clone(), names.head(), names.tokens()].map(|key| put(key, vec![], 0)).to_vec();
        // A transaction needs the rights for all that it might do. This one never does it: no revision is negative.
        let check = txn(vec![same(key.clone(), -1)], never, vec![range(key.clone(), 0)]);
        let read = questions(vec![range(key.clone(), 0)]);
        let mut answer = match self.ask(check, self.one_try()).await {
            // Without space, etcd rejects even what it would never write. If there is an agreement, reading it is enough.
            Err(Fault::NoSpace(_)) => self.ask(read.clone(), self.one_try()).await?,
            answer => answer?,
        };
        if memory.is_none() && key_at(&answer, 0).is_none() {
            may_found(&self.shared.client, names, self.cluster, self.one_try()).await.map_err(|why| {
                End::Fault(format!("{} has no agreement of the fleet; {why}", self.connection.member))
            })?;
            let ours = Agreement {
                settings: settings.agreement(),
                cluster: Agreement::of_cluster(self.cluster),
                ..Agreement::default()
            };
            let agree = txn(vec![same(key.clone(), 0)], vec![put(key, ours.value(), 0)], vec![]);
            self.ask(agree, self.one_try()).await?;
            answer = self.ask(read, self.one_try()).await?;
        }
        self.check_agreement(key_at(&answer, 0).as_ref(), memory.as_ref())?;
        self.shared.client.belong_to(self.cluster);
        Ok(())
    }

    /// Whether the node may go on under the agreement that the cluster has.
    fn check_agreement(&self, found: Option<&KeyValue>, memory: Option<&Memory>) -> Result<Agreement, End> {
        let Some(found) = found else {
            return Err(match memory {
                Some(_) => End::Lost("the agreement of the fleet was deleted".into()),
                None => End::Fault(format!("{}: the agreement of the fleet was just deleted", self.connection.member)),
            });
        };
        let agreement = Agreement::parse(found);
        let why_wait = agreement.why_wait(self.cluster);
        let ours = self.shared.settings.agreement();
        if !agreement.is_damaged() && agreement.settings != ours {
            let (fleet, theirs) = (&self.shared.settings.fleet, &agreement.settings);
            return Err(End::Refused(format!(
                "the fleet {fleet:?} has agreed on other settings: {theirs}; this node has {ours}; give it those settings \
                 and that key, or the name of another fleet"
            )));
        }
        if let Some(why) = why_wait {
            // A node that knows the agreement repairs it.
            let is_repaired = agreement.is_damaged() && memory.is_some();
            return Err(if is_repaired { End::Lost(why) } else { End::Waiting(why) });
        }
        let Some(memory) = memory else { return Ok(agreement) };
        if agreement.accepted > memory.accepted {
            self.shared.forget();
            return Err(End::Join("an operator has accepted that the cluster has lost something".into()));
        }
        if memory.cluster != self.cluster {
            let (theirs, ours) = (self.cluster, memory.cluster);
            return Err(End::Lost(format!("it was in cluster {ours:x}, and most endpoints are now in {theirs:x}")));
        }
        if agreement.accepted < memory.accepted {
            return Err(End::Lost("the cluster has forgotten what an operator has accepted".into()));
        }
        Ok(agreement)
    }

    /// Asks a quorum for the head and the agreement, and for `more`, which is answered last. Compares them with what the node
    /// remembers.
    pub(crate) async fn find(
        &self,
        memory: Option<&Memory>,
        more: Option<RequestOp>,
        limit: Duration,
    ) -> Result<Found, End> {
        let names = &self.shared.names;
        let all = |then: Option<&Memory>| {
            let mut all = vec![range(names.head(), 0), range(names.agreement(), 0)];
            all.extend(then.map(|memory| range(names.head(), memory.revision)));
            all.extend(more.clone());
            questions(all)
        };
        let (answer, is_compacted) = match (self.ask(all(memory), limit).await, memory) {
            (Err(Fault::Compacted), Some(_)) => (self.ask(all(None), limit).await?, true),
            (Err(Fault::Future), Some(memory)) => return Err(End::Lost(memory.is_ahead())),
            (answer, _) => (answer?, false),
        };
        let found = key_at(&answer, 1);
        let agreement = self.check_agreement(found.as_ref(), memory)?;
        let head = Head::at(&answer, 0);
        let place = memory.map(|memory| {
            let then = (!is_compacted).then(|| Head::at(&answer, 2));
            memory.place(&head, then.as_ref())
        });
        if let Some(Place::Elsewhere(why)) = place {
            return Err(End::Lost(why));
        }
        let agreed = found.map_or(0, |found| found.mod_revision);
        Ok(Found { answer, head, agreement, agreed, place, is_compacted })
    }

    /// Whether the node can go on with its filter and a watch over this connection: only if the cluster has the history that
    /// the node knows.
    pub(crate) async fn is_same_history(&self) -> Result<(), End> {
        let Some(memory) = lock(&self.shared.memory).clone() else { return Ok(()) };
        match self.find(Some(&memory), None, self.one_try()).await?.place {
            Some(Place::Forgotten) => Err(End::Join(format!("revision {} was compacted", memory.revision))),
            _ => Ok(()),
        }
    }

    /// Reads all tokens at one revision, into a filter for this many at least. `old` is the filter that the node had at the
    /// point that it remembers.
    pub(crate) async fn join(&self, capacity: usize, old: Option<&Known>) -> Result<Arc<Known>, End> {
        let shared = &self.shared;
        let memory = lock(&shared.memory).clone();
        let tokens = shared.names.tokens();
        // A page of tokens may take longer than a check. The rest of the pages may take any time, but the first question is
        // the one that counts.
        let limit = 10 * self.one_try();
        let first = range_of(&tokens, tokens.clone(), PAGE, 0);
        let found = self.find(memory.as_ref(), Some(first), limit).await?;
        let mut missing = match found.place {
            Some(Place::Forgotten) => Some(self.copy(old)?),
            _ => None,
        };
        let mut page = range_at(&found.answer, found.answer.responses.len() - 1);
        let at = revision(&found.answer);
        let capacity = capacity.max(usize::try_from(page.count).unwrap_or(usize::MAX));
        let known = Known::new(&shared.settings, &shared.clock, capacity)
            .map_err(|error| End::Fault(format!("there is no memory for the filter: {error}")))?;
        if page.more {
            // Etcd counts what is left of a range for each page of it. So the identifiers, which are even, are read by their
            // first digits.
            let digits = (page.count / PAGE).max(1).ilog(16) as usize + 1;
            for nth in 0..16_u64.pow(digits as u32) {
                let part = [&tokens[..], format!("{nth:0digits$x}").as_bytes()].concat();
                let mut from = part.clone();
                loop {
                    let answer = self.ask(questions(vec![range_of(&part, from, PAGE, at)]), limit).await?;
                    page = range_at(&answer, 0);
                    fill(shared, &known, &page, missing.as_mut())?;
                    let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
                    from = [&last.key[..], &[0]].concat();
                }
            }
        } else {
            fill(shared, &known, &page, missing.as_mut())?;
        }
        // The node remembers these itself.
        for (id, end) in shared.disputes.all() {
            let hash = shared.secret.hash(id);
            known.put(hash, end, None).map_err(|_| End::NoRoom)?;
            missing.iter_mut().for_each(|missing| remove_all(missing, hash));
        }
        if let (Some(missing), Some(memory)) = (missing, &memory) {
            self.is_nothing_missing(&missing, memory)?;
        }
        *lock(&shared.memory) = Some(Memory {
            cluster: self.cluster,
            agreement: found.agreed,
            accepted: found.agreement.accepted,
            revision: at,
            head: found.head,
        });
        let known = Arc::new(known);
        shared.known.store(Some(Arc::clone(&known)));
        // Whoever waits for a change that came before this revision would wait in vain.
        lock(&shared.pending).clear();
        count(&shared.tallies.joins);
        shared.enter(State::Ready, format!("it has joined at revision {at}"));
        Ok(known)
    }

    /// The entries of the old filter, to be compared with the records in etcd.
    fn copy(&self, old: Option<&Known>) -> Result<Filter, End> {
        let why = "etcd has compacted the revision that this node knew, and the node has no filter to compare";
        let old = old.ok_or_else(|| End::Lost(why.into()))?;
        old.copy().map_err(|error| End::Fault(format!("there is no memory for a copy of the filter: {error}")))
    }

    /// The heads could not tell whether the cluster has everything that the node knew, so the tokens must: `missing` is what
    /// is left of the node's old filter without all tokens that have a record in etcd. (A node deletes no record, and the
    /// lease of a record ends long after its entry.) A look-alike of a lost token may hide it, as often as the
    /// false-positive rate of a single entry says.
    fn is_nothing_missing(&self, missing: &Filter, memory: &Memory) -> Result<(), End> {
        // If its clock was set, what has ended by one of the two clocks is not missing.
        missing.advance_to(Tick::new(self.shared.clock.latest() / self.shared.settings.resolution));
        match missing.live_len() {
            0 => Ok(()),
            tokens => Err(End::Lost(format!(
                "etcd has compacted revision {}, up to which this node knew everything, and of the tokens in its filter \
                 {tokens} have no record any more",
                memory.revision
            ))),
        }
    }
}

/// Adds the tokens of a page, and takes them out of `missing`.
fn fill(shared: &Shared, known: &Known, page: &RangeResponse, mut missing: Option<&mut Filter>) -> Result<(), End> {
    for kv in &page.kvs {
        let Some(id) = shared.names.id(&kv.key) else {
            count(&shared.tallies.foreign);
            continue;
        };
        let hash = shared.secret.hash(id);
        if let Some(missing) = &mut missing {
            remove_all(missing, hash);
        }
        let end = match shared.secret.end(id, kv) {
            Some(end) => {
                // A node has changed the record since.
                shared.disputes.settle(id, kv.mod_revision);
                end
            }
            None => {
                shared.damaged(id);
                // So that the filter says "perhaps", for as long as it can.
                u64::MAX
            }
        };
        if end == 0 {
            continue;
        }
        known.put(hash, end, None).map_err(|_| End::NoRoom)?;
    }
    Ok(())
}

/// Removes all entries of a token, of which a filter may have two, and those of its look-alikes.
fn remove_all(filter: &mut Filter, hash: Hashed) {
    while filter.by_hash().remove(hash) {}
}
