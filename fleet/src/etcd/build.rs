//! Short ways to build requests and to take answers apart.

use super::messages::compare::{Operand, Result as Is, Target};
use super::messages::request_op::Request;
use super::messages::response_op::Response;
use super::messages::{Compare, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse};
use crate::keys::after;

/// The question for one key, at this revision or, for 0, at the newest.
pub(crate) fn range(key: Vec<u8>, revision: i64) -> RangeRequest {
    RangeRequest { key: key.into(), revision, ..RangeRequest::default() }
}

/// The question for all keys with this prefix, from this key on.
pub(crate) fn range_of(prefix: &[u8], from: Vec<u8>, limit: i64, revision: i64) -> RangeRequest {
    RangeRequest { key: from.into(), range_end: after(prefix).into(), limit, revision, serializable: false }
}

pub(crate) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    RequestOp::from(Request::Put(PutRequest { key: key.into(), value: value.into(), lease }))
}

impl From<Request> for RequestOp {
    fn from(request: Request) -> Self {
        Self { request: Some(request) }
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(range: RangeRequest) -> Self {
        Request::Range(range).into()
    }
}

/// If all comparisons hold, `success`, else `failure`, in one step.
pub(crate) fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare, success, failure }
}

/// Whether the key is there.
pub(crate) fn exists(key: Vec<u8>) -> Compare {
    compare(key, Is::Greater, Target::Create, Operand::CreateRevision(0))
}

/// Whether the key was last changed at this revision; 0 for a key that is not there.
pub(crate) fn same(key: Vec<u8>, revision: i64) -> Compare {
    compare(key, Is::Equal, Target::Mod, Operand::ModRevision(revision))
}

pub(crate) fn compare(key: Vec<u8>, result: Is, target: Target, operand: Operand) -> Compare {
    Compare { result: result.into(), target: target.into(), key: key.into(), operand: Some(operand) }
}

/// The answer to the nth question of a transaction.
pub(crate) fn response_range(answer: &TxnResponse, nth: usize) -> RangeResponse {
    match answer.responses.get(nth).and_then(|response| response.response.as_ref()) {
        Some(Response::Range(range)) => range.clone(),
        _ => RangeResponse::default(),
    }
}

/// The revision of the answer.
pub(crate) fn revision(answer: &TxnResponse) -> i64 {
    answer.header.map_or(0, |header| header.revision)
}
