//! Tokens whose records a client outside the fleet has changed or deleted.
//!
//! Such a change counts for nothing: the filter keeps the entry, and the node answers with an error for this token, from
//! the revision of the foreign change until a node has changed the record again (an administrator has revoked the token), or
//! until the token has ended. This is a matter of revisions: an answer of etcd may be older or newer than the foreign change.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::keys::TokenId;
use crate::lock;

#[derive(Clone, Copy)]
struct Dispute {
    /// Until when the token was revoked.
    end: u64,
    /// The revision of the foreign change.
    from: i64,
    /// The revision in which a node has changed the record again.
    to: Option<i64>,
}

#[derive(Default)]
pub(crate) struct Disputes(Mutex<HashMap<TokenId, Dispute>>);

impl Disputes {
    /// A client outside the fleet has changed the record of this token at this revision. It was revoked until `end`.
    /// Disputes whose tokens have ended, as `is_live` says, are dropped.
    pub(crate) fn open(&self, id: TokenId, end: u64, at: i64, is_live: impl Fn(u64) -> bool) {
        let mut all = lock(&self.0);
        all.retain(|_, dispute| is_live(dispute.end));
        let before = all.get(&id);
        let open = before.filter(|before| before.to.is_none());
        let dispute = Dispute {
            end: open.map_or(end, |open| open.end.max(end)),
            // Of a settled dispute, answers may still be on their way.
            from: before.map_or(at, |before| before.from),
            to: None,
        };
        all.insert(id, dispute);
    }

    /// The record is one that a node has put at this revision, which settles an earlier dispute. Returns the end of that: the filter still has
    /// its entry.
    pub(crate) fn settle(&self, id: TokenId, at: i64) -> Option<u64> {
        let mut all = lock(&self.0);
        let dispute = all.get_mut(&id).filter(|dispute| dispute.to.is_none() && dispute.from < at)?;
        dispute.to = Some(at);
        Some(dispute.end)
    }

    /// The end of the token, if its record is in dispute at this revision.
    pub(crate) fn at(&self, id: TokenId, revision: i64) -> Option<u64> {
        let all = lock(&self.0);
        let dispute = all.get(&id)?;
        (dispute.from <= revision && dispute.to.is_none_or(|to| revision < to)).then_some(dispute.end)
    }

    /// The end of the token, if its record is in dispute.
    pub(crate) fn end(&self, id: TokenId) -> Option<u64> {
        lock(&self.0).get(&id).filter(|dispute| dispute.to.is_none()).map(|dispute| dispute.end)
    }

    /// All open disputes: tokens, with their ends.
    pub(crate) fn all(&self) -> Vec<(TokenId, u64)> {
        let all = lock(&self.0);
        all.iter().filter(|(_, dispute)| dispute.to.is_none()).map(|(id, dispute)| (*id, dispute.end)).collect()
    }

    /// They are of a history that an operator has given up.
    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispute_lasts_from_the_foreign_change_to_the_next_one_of_a_node() {
        let (disputes, id) = (Disputes::default(), TokenId([1; 16]));
        disputes.open(id, 100, 7, |_| true);
        disputes.open(id, 90, 8, |_| true);
        assert_eq!([6, 7, 9].map(|at| disputes.at(id, at)), [None, Some(100), Some(100)]);
        assert_eq!((disputes.settle(id, 12), disputes.settle(id, 13)), (Some(100), None));
        // An answer that was on its way is judged by its own revision.
        assert_eq!([6, 11, 12].map(|at| disputes.at(id, at)), [None, Some(100), None]);
        disputes.open(id, 50, 20, |_| true);
        assert_eq!((disputes.at(id, 11), disputes.end(id)), (Some(50), Some(50)));
        disputes.open(TokenId([2; 16]), 90, 21, |end| end > 50);
        assert_eq!(disputes.end(id), None, "it has ended");
    }
}
