//! Short ways to build requests and to take answers apart.

use super::messages::{Compare, KeyValue, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse};

/// The end of the range of all keys with this prefix, which ends in `/`.
pub(crate) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// The question for one key, at this revision or, for 0, at the newest.
pub(crate) fn range(key: Vec<u8>, revision: i64) -> RequestOp {
    let range = RangeRequest { key: key.into(), revision, ..RangeRequest::default() };
    RequestOp { range: Some(range), ..RequestOp::default() }
}

/// The question for this many keys with this prefix, from this key on.
pub(crate) fn range_of(prefix: &[u8], from: Vec<u8>, limit: i64, revision: i64) -> RequestOp {
    let range_end = after(prefix).into();
    let range = RangeRequest { key: from.into(), range_end, limit, revision, serializable: false };
    RequestOp { range: Some(range), ..RequestOp::default() }
}

/// The same, asked of one member and not of a quorum.
pub(crate) fn of_one_member(mut question: RequestOp) -> RequestOp {
    question.range.iter_mut().for_each(|range| range.serializable = true);
    question
}

pub(crate) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.into(), value: value.into(), lease };
    RequestOp { put: Some(put), ..RequestOp::default() }
}

/// If all comparisons hold, `success`, else `failure`, in one step.
pub(crate) fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare, success, failure }
}

/// Several questions at one revision.
pub(crate) fn questions(all: Vec<RequestOp>) -> TxnRequest {
    txn(vec![], all, vec![])
}

/// Whether the key was last changed at this revision; 0 for a key that is not there.
pub(crate) fn same(key: Vec<u8>, revision: i64) -> Compare {
    Compare { target: 2, key: key.into(), mod_revision: Some(revision) }
}

/// The answer to the nth question of a transaction.
pub(crate) fn range_at(answer: &TxnResponse, nth: usize) -> RangeResponse {
    answer.responses.get(nth).and_then(|response| response.range.clone()).unwrap_or_default()
}

/// The only key in that answer, if it is there.
pub(crate) fn key_at(answer: &TxnResponse, nth: usize) -> Option<KeyValue> {
    range_at(answer, nth).kvs.into_iter().next()
}

/// The revision of the answer.
pub(crate) fn revision(answer: &TxnResponse) -> i64 {
    answer.header.map_or(0, |header| header.revision)
}
