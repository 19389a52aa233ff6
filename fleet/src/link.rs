//! One connection to a member, what is asked over it, and what the answers mean.

use std::sync::Arc;

use tonic::transport::Channel;

use crate::etcd::messages::request_op::Request;
use crate::etcd::messages::{DeleteRangeRequest, RequestOp, TxnRequest, TxnResponse};
use crate::etcd::{Fault, exists, put, range, response_range, same, txn};
use crate::keys::{History, after};
use crate::shared::{Head, Memory, Shared, lock};

/// Why a node does not go on over this connection.
pub(crate) enum End {
    /// It goes on over the next one.
    Fault(String),
    /// It must read all tokens again.
    Join(String),
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
    pub(crate) channel: Channel,
    pub(crate) url: String,
}

impl Link {
    pub(crate) async fn ask(&self, question: TxnRequest) -> Result<TxnResponse, Fault> {
        let limit = self.shared.settings.one_try();
        self.shared.client.call(&self.channel, &self.url, "/etcdserverpb.KV/Txn", question, limit).await
    }

    /// Agrees with the other nodes on the settings, and checks that the node has all the rights it needs.
    pub(crate) async fn agree(&self) -> Result<(), End> {
        let names = &self.shared.names;
        let (key, ours) = (names.agreement(), self.shared.settings.agreement());
        // A transaction needs the rights for all that it might do, and this one never does it.
        let tokens = names.tokens();
        let everything = RequestOp::from(Request::DeleteRange(DeleteRangeRequest {
            range_end: after(&tokens).into(),
            key: tokens.into(),
        }));
        let head = names.head();
        let never = vec![exists(head.clone()), same(head.clone(), 0)];
        let never = txn(never, vec![everything, put(names.history(), vec![], 0), put(head, vec![], 0)], vec![]);
        if takes!(self.shared.settings, Rights) {
            self.ask(never).await?;
        }
        let question = txn(
            vec![exists(key.clone())],
            vec![range(key.clone(), 0).into()],
            vec![put(key, ours.clone().into_bytes(), 0)],
        );
        let answer = self.ask(question).await?;
        if !answer.succeeded {
            return Ok(());
        }
        let theirs = response_range(&answer, 0).kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
        match theirs {
            Some(theirs) if theirs != ours => Err(End::Refused(format!(
                "the fleet {:?} has agreed on other settings: {theirs}; this node has {ours}; give it those settings \
                 and that key, or the name of another fleet",
                self.shared.settings.fleet
            ))),
            _ => Ok(()),
        }
    }

    /// The head now, whether the cluster has lost something, and the head at the revision that the node knows.
    pub(crate) fn question(&self, memory: Option<&Memory>) -> Vec<RequestOp> {
        let names = &self.shared.names;
        let mut question = vec![range(names.head(), 0).into(), range(names.history(), 0).into()];
        if let Some(memory) = memory.filter(|_| takes!(self.shared.settings, History)) {
            question.push(range(names.head(), memory.revision).into());
        }
        question
    }

    /// Compares an answer to that question with what the node knows.
    pub(crate) fn compare(&self, answer: &TxnResponse, memory: Option<&Memory>) -> Result<History, End> {
        let history = History::parse(response_range(answer, 1).kvs.first().map(|kv| &kv.value[..]));
        if let Some(lost) = &history.lost {
            return Err(End::Waiting(lost.clone()));
        }
        let Some(memory) = memory else { return Ok(history) };
        if history.accepted > memory.accepted {
            *lock(&self.shared.memory) = None;
            return Err(End::Join("an operator has accepted that the cluster has lost something".into()));
        }
        let there = Head::of(&response_range(answer, 2));
        if takes!(self.shared.settings, History) && (there != memory.head || history.accepted != memory.accepted) {
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
            Fault::Future if takes!(self.shared.settings, History) => {
                End::Lost(format!("it has never come to revision {}", memory.revision))
            }
            fault => fault.into(),
        }
    }

    /// Whether the member has the history that the node knows.
    pub(crate) async fn is_same_history(&self) -> Result<(), End> {
        let Some(memory) = lock(&self.shared.memory).clone() else { return Ok(()) };
        match self.ask(txn(vec![], self.question(Some(&memory)), vec![])).await {
            Ok(answer) => self.compare(&answer, Some(&memory)).map(drop),
            Err(Fault::Compacted) if takes!(self.shared.settings, JoinAgain) => {
                Err(End::Join(format!("revision {} was compacted", memory.revision)))
            }
            Err(fault) => Err(self.unknown_revision(fault, &memory)),
        }
    }
}
