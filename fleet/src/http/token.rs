//! What a token may look like, where a request carries it, and who is an administrator.

use axum::http::{HeaderMap, header};

use super::answers::Refusal;

/// The most characters of a token.
const LONGEST: usize = 4096;

/// Checks that a header can carry this token. Any other would never come in a request.
pub(crate) fn check(token: &str) -> Result<(), Refusal> {
    let wrong = token.chars().find(|c| !c.is_ascii_graphic());
    Err(Refusal::Malformed(match wrong {
        _ if token.is_empty() || token.len() > LONGEST => {
            format!("a token of {} bytes; it must have 1 to {LONGEST}", token.len())
        }
        Some(c) => format!("{c:?} in a token; it may have ASCII letters, digits and punctuation"),
        None => return Ok(()),
    }))
}

/// The token of `Authorization: Bearer TOKEN`.
///
/// # Errors
/// If there is none, or more than one header, or a token that no header can carry.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let missing = Refusal::Unauthorized("there is no token; send the header `Authorization: Bearer TOKEN`");
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(missing)?;
    // A proxy and a service that each decide by another one could be played off against each other.
    if values.next().is_some() {
        return Err(Refusal::Malformed("there is more than one header Authorization; send one".into()));
    }
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim_start_matches(' '))
        .ok_or_else(|| Refusal::Malformed("the header Authorization must be `Bearer TOKEN`".into()))?;
    check(token)?;
    Ok(token)
}

/// Checks that the request has one of these tokens, if there are any.
pub(crate) fn is_of_administrator(headers: &HeaderMap, wanted: &[String]) -> Result<(), Refusal> {
    if wanted.is_empty() {
        return Ok(());
    }
    let given = bearer(headers)?;
    // Hashes are compared, so that the time does not reveal how much of a token was right.
    let hash = |token: &str| ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let given = hash(given);
    if wanted.iter().filter(|wanted| hash(wanted).as_ref() == given.as_ref()).count() > 0 {
        return Ok(());
    }
    Err(Refusal::Unauthorized("this is for administrators; send `Authorization: Bearer` with their token"))
}
