//! What a node asks over its connection to a member, and what the answers mean.

use std::sync::Arc;

use crate::etcd::build::{key_at, put, questions, range, range_at, range_of, revision, same, txn};
use crate::etcd::messages::{RangeResponse, RequestOp, TxnRequest, TxnResponse};
use crate::etcd::{Connection, Fault};
use crate::filter::Known;
use crate::history::History;
use crate::lock;
use crate::shared::{Head, Memory, Shared, State, count};

/// How many tokens are read at once.
const PAGE: i64 = 10_000;

/// Why a node does not go on over this connection.
pub(crate) enum End {
    /// It goes on over the next one.
    Fault(String),
    /// It must read all tokens again.
    Join(String),
    /// The same, into a larger filter.
    NoRoom,
    /// The cluster has lost something that the node knew.
    Lost(String),
    /// Somebody has said so in the cluster.
    Waiting(String),
    Refused(String),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Denied(_) => Self::Refused(fault.to_string()),
            fault => Self::Fault(fault.to_string()),
        }
    }
}

/// One connection.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Connection,
}

impl Link {
    pub(crate) async fn ask(&self, question: TxnRequest) -> Result<TxnResponse, Fault> {
        self.shared.client.txn_over(&self.connection, question, self.shared.settings.one_try()).await
    }

    /// Agrees with the other nodes on the settings, and checks that the node has all the rights it needs.
    pub(crate) async fn agree(&self) -> Result<(), End> {
        let (names, ours) = (&self.shared.names, self.shared.settings.agreement());
        let key = names.agreement();
        let never =
            [key.clone(), names.history(), names.head(), names.tokens()].map(|key| put(key, vec![], 0)).to_vec();
        // A transaction needs the rights for all that it might do. This one never does it: no revision is negative.
        let question = txn(vec![same(key.clone(), -1)], never, vec![range(key.clone(), 0)]);
        if key_at(&self.ask(question.clone()).await?, 0).is_none() {
            let agree = put(key.clone(), ours.clone().into_bytes(), 0);
            self.ask(txn(vec![same(key, 0)], vec![agree], vec![])).await?;
        }
        let theirs = key_at(&self.ask(question).await?, 0).unwrap_or_default().value;
        if theirs == ours.as_bytes() {
            return Ok(());
        }
        let (fleet, theirs) = (&self.shared.settings.fleet, String::from_utf8_lossy(&theirs));
        Err(End::Refused(format!(
            "the fleet {fleet:?} has agreed on other settings: {theirs}; this node has {ours}; give it those settings and \
             that key, or the name of another fleet"
        )))
    }

    /// The head now, whether the cluster has lost something, and the head at the revision that the node knows.
    pub(crate) fn question(&self, memory: Option<&Memory>) -> Vec<RequestOp> {
        let names = &self.shared.names;
        let mut question = vec![range(names.head(), 0), range(names.history(), 0)];
        if let Some(memory) = memory {
            question.push(range(names.head(), memory.revision));
        }
        question
    }

    /// Compares an answer to that question with what the node knows.
    pub(crate) fn compare(&self, answer: &TxnResponse, memory: Option<&Memory>) -> Result<History, End> {
        let history = History::parse(key_at(answer, 1).as_ref());
        if let Some(lost) = &history.lost {
            return Err(End::Waiting(lost.clone()));
        }
        let Some(memory) = memory else { return Ok(history) };
        if history.accepted > memory.accepted {
            *lock(&self.shared.memory) = None;
            return Err(End::Join("an operator has accepted that the cluster has lost something".into()));
        }
        let there = Head::at(answer, 2);
        if there != memory.head || history.accepted != memory.accepted {
            let (at, was, is) = (memory.revision, memory.head.revision, there.revision);
            return Err(End::Lost(format!(
                "at revision {at} its last change was that of revision {was}, and now another one, of {is}"
            )));
        }
        Ok(history)
    }

    /// What it means that the head at the node's own revision can't be read.
    pub(crate) fn unknown_revision(&self, fault: Fault, memory: &Memory) -> End {
        match fault {
            Fault::Future => End::Lost(format!("it has never come to revision {}", memory.revision)),
            fault => fault.into(),
        }
    }

    /// Whether the member has the history that the node knows.
    pub(crate) async fn is_same_history(&self) -> Result<(), End> {
        let Some(memory) = lock(&self.shared.memory).clone() else { return Ok(()) };
        match self.ask(questions(self.question(Some(&memory)))).await {
            Ok(answer) => self.compare(&answer, Some(&memory)).map(drop),
            Err(Fault::Compacted) => Err(End::Join(format!("revision {} was compacted", memory.revision))),
            Err(fault) => Err(self.unknown_revision(fault, &memory)),
        }
    }

    /// Reads all tokens at one revision, into a filter for this many at least.
    pub(crate) async fn join(&self, capacity: usize) -> Result<Arc<Known>, End> {
        let shared = &self.shared;
        let memory = lock(&shared.memory).clone();
        let tokens = shared.names.tokens();
        // The rest of the pages may take any time, but the first question is the one that counts.
        let ask = async |memory: Option<&Memory>| {
            let mut question = self.question(memory);
            question.push(range_of(&tokens, tokens.clone(), PAGE, 0));
            self.page(question).await
        };
        let (answer, memory) = match (ask(memory.as_ref()).await, memory) {
            // What the node knew is too long ago to be compared. If the cluster had lost something, the other nodes would
            // have said so in it.
            (Err(Fault::Compacted), Some(_)) => (ask(None).await?, None),
            (Err(fault), Some(memory)) => return Err(self.unknown_revision(fault, &memory)),
            (answer, memory) => (answer?, memory),
        };
        let history = self.compare(&answer, memory.as_ref())?;
        let mut page = range_at(&answer, answer.responses.len() - 1);
        let at = revision(&answer);
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
                    page = range_at(&self.page(vec![range_of(&part, from, PAGE, at)]).await?, 0);
                    fill(shared, &known, &page)?;
                    let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
                    from = [&last.key[..], &[0]].concat();
                }
            }
        } else {
            fill(shared, &known, &page)?;
        }
        *lock(&shared.memory) = Some(Memory { revision: at, head: Head::at(&answer, 0), accepted: history.accepted });
        let known = Arc::new(known);
        shared.known.store(Some(Arc::clone(&known)));
        // Whoever waits for a change that came before this revision would wait in vain.
        lock(&shared.pending).clear();
        count(&shared.tallies.joins);
        shared.enter(State::Ready, format!("it has joined at revision {at}"));
        Ok(known)
    }

    /// A page of tokens may take longer than a check.
    async fn page(&self, question: Vec<RequestOp>) -> Result<TxnResponse, Fault> {
        let limit = 10 * self.shared.settings.one_try();
        self.shared.client.txn_over(&self.connection, questions(question), limit).await
    }
}

/// Adds the tokens of a page.
fn fill(shared: &Shared, known: &Known, page: &RangeResponse) -> Result<(), End> {
    for kv in &page.kvs {
        let Some(id) = shared.names.id(&kv.key) else {
            count(&shared.tallies.foreign);
            continue;
        };
        let end = shared.secret.end(id, &kv.value).unwrap_or_else(|| {
            shared.damaged(id);
            // So that the filter says "perhaps", for as long as it can.
            u64::MAX
        });
        if end == 0 {
            continue;
        }
        known.put(shared.secret.hash(id), end, None).map_err(|_| End::NoRoom)?;
    }
    Ok(())
}
