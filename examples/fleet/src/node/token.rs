//! PURE: what a token may look like, and where it is in a request.

use axum::http::{HeaderMap, header};

use super::refusal::Refusal;

const LONGEST: usize = 4096;

/// Whether this could come in a header: what could not would never be found again.
pub(crate) fn check(token: &str) -> Result<(), String> {
    if token.is_empty() || token.len() > LONGEST {
        return Err(format!("a token of {} bytes; it must have 1 to {LONGEST}", token.len()));
    }
    match token.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(format!("{c:?} in a token; it may have ASCII letters, digits and punctuation")),
        None => Ok(()),
    }
}

/// The token of `Authorization: Bearer TOKEN`.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or(Refusal::Unauthorized("there is no token; send the header `Authorization: Bearer TOKEN`"))?;
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim_start_matches(' '))
        .ok_or_else(|| Refusal::Malformed("the header Authorization must be `Bearer TOKEN`".into()))?;
    check(token).map_err(Refusal::Malformed)?;
    Ok(token)
}
