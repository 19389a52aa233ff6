//! What a node asks over its connection to a member, and what the answers mean.

use std::sync::Arc;

use crate::etcd::build::{key_at, put, questions, range, same, txn};
use crate::etcd::messages::{RequestOp, TxnRequest, TxnResponse};
use crate::etcd::{Connection, Fault};
use crate::history::History;
use crate::lock;
use crate::shared::{Head, Memory, Shared};

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
}
