//! What a token may look like, where a request carries it, and who is an administrator.

use http::{HeaderMap, header};
use subtle::ConstantTimeEq;

/// The most characters of a token.
pub const LONGEST: usize = 4096;

/// Why a request has no token, or not the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoToken {
    /// The needed token is missing or wrong.
    Unauthorized(&'static str),
    /// The request itself is wrong.
    Malformed(String),
}

/// Checks that a header can carry this token. A token that no header can carry would never come in a request.
pub fn check(token: &str) -> Result<(), String> {
    if token.is_empty() || token.len() > LONGEST {
        return Err(format!("a token of {} bytes; it must have 1 to {LONGEST}", token.len()));
    }
    match token.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(format!("{c:?} in a token; it may have ASCII letters, digits and punctuation")),
        None => Ok(()),
    }
}

/// The token of `Authorization: Bearer TOKEN`.
pub fn bearer(headers: &HeaderMap) -> Result<&str, NoToken> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values
        .next()
        .ok_or(NoToken::Unauthorized("there is no token; send the header `Authorization: Bearer TOKEN`"))?;
    // A proxy and a service that each decide by another one could be played off against each other.
    if values.next().is_some() {
        return Err(NoToken::Malformed("there is more than one header Authorization; send one".into()));
    }
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim_start_matches(' '))
        .ok_or_else(|| NoToken::Malformed("the header Authorization must be `Bearer TOKEN`".into()))?;
    check(token).map_err(NoToken::Malformed)?;
    Ok(token)
}

/// Checks that the request comes from an administrator: that it has the token `wanted`. Without a `wanted` token
/// every request does.
pub fn is_of_administrator(headers: &HeaderMap, wanted: Option<&str>) -> Result<(), NoToken> {
    let Some(wanted) = wanted else { return Ok(()) };
    let given = bearer(headers)?;
    // In constant time, so that the time does not reveal how much of the token was right.
    if bool::from(given.as_bytes().ct_eq(wanted.as_bytes())) {
        return Ok(());
    }
    Err(NoToken::Unauthorized("this is for administrators; send `Authorization: Bearer` with their token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_headers_are_one_too_many() {
        let mut headers = HeaderMap::new();
        assert!(matches!(bearer(&headers), Err(NoToken::Unauthorized(_))));
        headers.append(header::AUTHORIZATION, "Bearer alice".parse().unwrap());
        assert_eq!(bearer(&headers), Ok("alice"));
        headers.append(header::AUTHORIZATION, "Bearer alice".parse().unwrap());
        assert!(matches!(bearer(&headers), Err(NoToken::Malformed(why)) if why.contains("more than one")));
    }
}
