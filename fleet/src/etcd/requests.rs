//! Short ways to build requests and to take answers apart.

use prost::bytes::Bytes;
use tonic::Status;

use super::messages::{Compare, KeyValue, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse};

/// The question for one key.
pub(crate) fn range(key: &str) -> RequestOp {
    let range = RangeRequest { key: key.to_owned().into(), ..RangeRequest::default() };
    RequestOp { range: Some(range), ..RequestOp::default() }
}

/// The question for all keys with this prefix, at a revision.
pub(crate) fn range_of(prefix: &str, revision: i64) -> RequestOp {
    let range = RangeRequest { key: prefix.to_owned().into(), range_end: after(prefix), revision };
    RequestOp { range: Some(range), ..RequestOp::default() }
}

/// The end of the range of all keys with this prefix of ASCII.
pub(crate) fn after(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end.into()
}

pub(crate) fn put(key: &str, value: Vec<u8>, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.to_owned().into(), value: value.into(), lease };
    RequestOp { put: Some(put), ..RequestOp::default() }
}

/// A transaction in another one.
pub(crate) fn sub_txn(txn: TxnRequest) -> RequestOp {
    RequestOp { txn: Some(txn), ..RequestOp::default() }
}

/// If all comparisons hold, `success`, else `failure`, in one step.
pub(crate) fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare, success, failure }
}

/// Whether the key was last changed at this revision; 0 for a key that is not there.
pub(crate) fn same(key: &str, revision: i64) -> Compare {
    Compare { target: 2, key: key.to_owned().into(), mod_revision: Some(revision), ..Compare::default() }
}

/// Whether the key is there and its value is greater, byte by byte.
pub(crate) fn greater(key: &str, value: &[u8]) -> Compare {
    Compare { result: 1, target: 3, key: key.to_owned().into(), value: Some(value.to_vec().into()), mod_revision: None }
}

/// The keys in the answer to the nth question. An answer that lacks it is a fault: it would look like keys that are not
/// there.
pub(crate) fn keys(answer: &TxnResponse, nth: usize) -> Result<Vec<KeyValue>, Status> {
    let range = answer.responses.get(nth).and_then(|response| response.range.clone());
    range.map(|range| range.kvs).ok_or_else(|| Status::internal("etcd's answer is incomplete"))
}
