//! Until when a token is refused, from what is known about its expiry. All times are in seconds since 1970.
//!
//! The expiry comes with the request that revokes the token, or from the token itself: from the claim `exp` of a JSON
//! Web Token (JWT).
//!
//! # What is trusted
//! The claim is read **without checking the signature**, because the server has no key to check it with. That does no
//! harm. A genuine token has the expiry that its issuer has signed. A token that somebody has made up or changed is
//! another token. Anyone who checks signatures refuses it, so it does not matter for how long it is remembered. And only
//! administrators revoke tokens.

use jsonwebtoken::dangerous::insecure_decode_claims;
use serde::Deserialize;
use serde_json::Value;

use crate::options::Options;

/// Until when a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// In seconds since 1970.
    pub time: u64,
    /// The expiry is unknown, so the longest lifetime is assumed. If the token is revoked already, that revocation
    /// lasts long enough: the token is no younger than that revocation.
    pub assumed: bool,
}

/// Why a token is not revoked: a message for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The expiry in the request or in the token is not a time.
    Malformed(String),
    /// The token expires later than any token should.
    TooLate(String),
}

/// Until when the token is refused. `query` is that of the request.
///
/// Of the expiry that it names and the token's own, the later one holds: a shorter revocation would let the token pass
/// again. A token of unknown expiry is taken to live for the longest lifetime.
pub fn until(token: &str, query: Option<&str>, options: &Options, now: u64) -> Result<Until, Wrong> {
    let longest = options.longest_lifetime;
    let latest = now.saturating_add(longest);
    let known = named(query).and_then(|named| Ok(named.max(claimed(token)?))).map_err(Wrong::Malformed)?;
    let exp = known.unwrap_or(latest);
    if exp > latest {
        return Err(Wrong::TooLate(format!(
            "the token expires at {exp}, and the latest expiry that the server can remember now is {latest}: {longest} s \
             from now; check that it is in seconds, or restart the server with a larger --longest-lifetime"
        )));
    }
    Ok(Until { time: exp.saturating_add(options.leeway), assumed: known.is_none() })
}

fn named(query: Option<&str>) -> Result<Option<u64>, String> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let seconds = query.strip_prefix("exp=").and_then(|seconds| seconds.parse().ok());
    seconds.map(Some).ok_or_else(|| format!("{query:?} is not exp=SECONDS, the expiry in whole seconds since 1970"))
}

/// The expiry that the token itself states. `None` if it states none or is no JWT.
fn claimed(token: &str) -> Result<Option<u64>, String> {
    #[derive(Deserialize)]
    struct Claims {
        exp: Option<Value>,
    }
    let claims = insecure_decode_claims::<Claims>(token).ok();
    let Some(exp) = claims.and_then(|claims| claims.exp) else { return Ok(None) };
    // A JWT allows a fraction, which is rounded up. The cast turns a negative number into 0, which is long past, and one
    // that is too large into the greatest one, which is too late.
    let seconds = exp.as_u64().or_else(|| exp.as_f64().map(|seconds| seconds.ceil() as u64));
    seconds.map(Some).ok_or_else(|| format!("exp is {exp}, and should be a number of seconds since 1970"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn of(token: &str, query: Option<&str>) -> Result<u64, Wrong> {
        let options = Options::parse_from(["web-server", "--longest-lifetime=1000", "--leeway=60"]);
        until(token, query, &options, NOW).map(|until| until.time - NOW.min(until.time))
    }

    /// A token with these claims, in base64url, and a meaningless signature.
    fn jwt(claims: &str) -> String {
        format!("eyJhbGciOiJFUzUxMiJ9.{claims}.c2lnbmF0dXJl")
    }

    #[test]
    fn the_expiry_is_that_of_the_request_or_the_claim_and_the_later_one_holds() {
        let at_500 = jwt("eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwNTAwfQ"); // {"sub":"a","exp":1800000500}
        assert_eq!(of(&at_500, None), Ok(560));
        assert_eq!(of(&at_500, Some("exp=1800000100")), Ok(560));
        assert_eq!(of(&at_500, Some("exp=1800000600")), Ok(660));
        assert_eq!(of(&jwt("eyJleHAiOjE4MDAwMDA0OTkuMjV9"), None), Ok(560)); // {"exp":1800000499.25}
        assert_eq!(of(&jwt("eyJleHAiOi0xfQ"), None), Ok(0)); // {"exp":-1}
        // {"sub":"a"}, and tokens that are not JWTs.
        for token in [&jwt("eyJzdWIiOiJhIn0"), "opaque", "two.dots.only", "a..b"] {
            assert_eq!((of(token, None), of(token, Some("exp=1800000007"))), (Ok(1060), Ok(67)), "{token}");
        }
    }

    #[test]
    fn an_expiry_that_is_none_or_too_late_is_an_error_that_names_it() {
        let malformed = |token: &str, query, named: &str| {
            assert!(matches!(of(token, query), Err(Wrong::Malformed(error)) if error.contains(named)), "{query:?}");
        };
        malformed(&jwt("eyJleHAiOiJzb29uIn0"), None, "exp is \"soon\""); // {"exp":"soon"}
        for query in ["exp=soon", "exp=", "expiry=17", "exp=17&for=ever", "exp=-1"] {
            malformed("opaque", Some(query), query);
        }
        assert_eq!(of("opaque", Some("exp=1800001000")), Ok(1060));
        let Err(Wrong::TooLate(error)) = of("opaque", Some("exp=1800001001")) else { panic!("it is accepted") };
        assert!(["1800001001", "1800001000", "1000 s"].iter().all(|named| error.contains(named)), "{error}");
    }
}
