//! Pure: what a request's identifier may look like.

use axum::http::HeaderMap;
use tokens::token::{LONGEST, check};

use crate::refusal::Refusal;

/// The value of `X-Request-Id`, if there is one.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(value) = headers.get("x-request-id") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(id) if check(id).is_ok() => Ok(Some(id)),
        _ => Err(Refusal::Malformed(format!("X-Request-Id must have 1 to {LONGEST} ASCII characters, and no spaces"))),
    }
}
