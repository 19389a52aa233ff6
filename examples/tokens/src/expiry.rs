//! PURE: computes until when a token is refused, from what is known about its expiry. All times are in seconds since
//! 1970.
//!
//! The expiry comes with the request that revokes the token, or from the token itself: from the claim `exp` of a JSON
//! Web Token (JWT).
//!
//! # What is trusted
//! The claim is read **without checking the signature**, because the keeper of the list has no key to check it with.
//! That does no harm. A genuine token has the expiry that its issuer has signed. A token that somebody has made up or
//! changed is another token. Anyone who checks signatures refuses it, so it does not matter for how long it is
//! remembered. And only administrators revoke tokens.

use std::fmt;

use axum::body::Body;
use jsonwebtoken::dangerous::insecure_decode_claims;
use serde::Deserialize;
use serde_json::Value;

/// How long tokens are remembered, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Of a token, from its revocation to its expiry.
    pub longest: u64,
    /// How long a token is refused after its expiry. Others may still accept it then, because their clocks may be
    /// behind.
    pub leeway: u64,
    /// What error messages call the service that remembers them, such as "server".
    pub keeper: &'static str,
}

/// Until when a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// In seconds since 1970.
    pub time: u64,
    /// The expiry is unknown, so the longest lifetime is assumed. If the token is revoked already, that revocation
    /// lasts long enough: the token is no younger than that revocation.
    pub assumed: bool,
}

/// Why a token is not revoked.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// The expiry in the request or in the token is not a time.
    Malformed(String),
    /// The token expires later than any token should.
    TooLate {
        /// The token's expiry.
        exp: u64,
        /// The latest expiry that is allowed now.
        latest: u64,
        /// How many seconds from now `latest` is.
        longest: u64,
        /// [`Lifetimes::keeper`].
        keeper: &'static str,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "{why}"),
            Self::TooLate { exp, latest, longest, keeper } => write!(
                f,
                "the token expires at {exp}, in seconds since 1970, and the latest expiry that the {keeper} can \
                 remember now is {latest}: {longest} s from now"
            ),
        }
    }
}

impl Lifetimes {
    /// Until when the token is refused. `told` is the expiry in the request, if there is one.
    ///
    /// Of this expiry and the token's own, the later one holds: a shorter revocation would let the token pass again.
    /// A token of unknown expiry is taken to live for the longest lifetime.
    pub fn until(&self, token: &str, told: Option<u64>, now: u64) -> Result<Until, Wrong> {
        let latest = now.saturating_add(self.longest);
        let known = told.max(claimed(token).map_err(Wrong::Malformed)?);
        let exp = known.unwrap_or(latest);
        if exp > latest {
            return Err(Wrong::TooLate { exp, latest, longest: self.longest, keeper: self.keeper });
        }
        Ok(Until { time: exp.saturating_add(self.leeway), assumed: known.is_none() })
    }
}

/// The longest body of a request to revoke one token, in bytes.
const LONGEST_BODY: usize = 1024;

/// The expiry in a request to revoke one token, if there is one.
///
/// # Errors
/// What is wrong with it, as a message for the client.
pub async fn of_request(query: Option<&str>, body: Body) -> Result<Option<u64>, String> {
    let body = axum::body::to_bytes(body, LONGEST_BODY)
        .await
        .map_err(|error| format!("a body of more than {LONGEST_BODY} bytes, and it should be an expiry: {error}"))?;
    told(query, &body)
}

/// The expiry in a request, in its query or its body.
fn told(query: Option<&str>, body: &[u8]) -> Result<Option<u64>, String> {
    let (in_query, in_body) = (in_query(query)?, in_body(body)?);
    match (in_query, in_body) {
        (Some(query), Some(body)) if query != body => {
            Err(format!("exp is {query} in the query and {body} in the body; give one of them"))
        }
        (query, body) => Ok(query.or(body)),
    }
}

/// Parses whole seconds since 1970.
pub fn whole_seconds(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("the expiry {text:?} is not a whole number of seconds since 1970, such as 1800000000"))
}

fn in_query(query: Option<&str>) -> Result<Option<u64>, String> {
    match query.unwrap_or_default() {
        "" => Ok(None),
        query => match query.strip_prefix("exp=") {
            Some(seconds) => whole_seconds(seconds).map(Some),
            None => Err(format!("the query {query:?} is not exp=SECONDS, the expiry in seconds since 1970")),
        },
    }
}

fn in_body(body: &[u8]) -> Result<Option<u64>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Expiry {
        exp: Value,
    }
    if body.is_empty() {
        return Ok(None);
    }
    let body: Expiry = serde_json::from_slice(body).map_err(|error| {
        format!(
            "the body is not {{\"exp\": SECONDS}}, the expiry in seconds since 1970: {error}; send that, or no body"
        )
    })?;
    numeric_date(&body.exp).map(Some)
}

/// The expiry that the token itself states. `None` if it states none or is no JWT.
fn claimed(token: &str) -> Result<Option<u64>, String> {
    #[derive(Deserialize)]
    struct Claims {
        exp: Option<Value>,
    }
    let claims = insecure_decode_claims::<Claims>(token).ok();
    claims.and_then(|claims| claims.exp).map(|exp| numeric_date(&exp)).transpose()
}

/// A number of seconds since 1970. A JWT allows a fraction, which is rounded up.
fn numeric_date(exp: &Value) -> Result<u64, String> {
    // The cast turns a negative number into 0, which is long past. It turns a number that is too large into the
    // greatest one, which is refused as too late.
    let fraction = || exp.as_f64().map(|seconds| seconds.ceil() as u64);
    exp.as_u64().or_else(fraction).ok_or_else(|| format!("exp is {exp}, and should be a number of seconds since 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const LIFETIMES: Lifetimes = Lifetimes { longest: 1000, leeway: 60, keeper: "server" };

    /// A token with these claims and a meaningless signature. Header and claims are in base64url.
    fn jwt(claims: &str) -> String {
        format!("eyJhbGciOiJFUzUxMiJ9.{claims}.c2lnbmF0dXJl")
    }

    /// `{"sub":"a","exp":1800000500}`
    const AT_500: &str = "eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwNTAwfQ";

    #[test]
    fn the_expiry_of_a_jwt_is_its_claim_and_the_later_one_holds() {
        let until = |token: &str, told| LIFETIMES.until(token, told, NOW).unwrap().time;
        assert_eq!(until(&jwt(AT_500), None), NOW + 560);
        assert_eq!(until(&jwt(AT_500), Some(NOW + 100)), NOW + 560);
        assert_eq!(until(&jwt(AT_500), Some(NOW + 600)), NOW + 660);
        // {"exp":1800000499.25}
        assert_eq!(until(&jwt("eyJleHAiOjE4MDAwMDA0OTkuMjV9"), None), NOW + 560);
        // {"exp":-1}
        assert_eq!(until(&jwt("eyJleHAiOi0xfQ"), None), 60);
        // {"sub":"a"}, and tokens that are not JWTs.
        for token in [&jwt("eyJzdWIiOiJhIn0"), "opaque", "two.dots.only", "a..b", AT_500] {
            assert_eq!(until(token, None), NOW + 1060, "{token}");
            assert_eq!(until(token, Some(NOW + 7)), NOW + 67, "{token}");
        }
    }

    #[test]
    fn an_expiry_that_is_none_or_too_late_is_refused_by_name() {
        let wrong = |token: &str, told| LIFETIMES.until(token, told, NOW).unwrap_err().to_string();
        // {"exp":"soon"}
        assert!(wrong(&jwt("eyJleHAiOiJzb29uIn0"), None).contains("exp is \"soon\""));
        assert_eq!(LIFETIMES.until("opaque", Some(NOW + 1000), NOW).unwrap().time, NOW + 1060);
        let error = wrong("opaque", Some(NOW + 1001));
        assert!(["1800001001", "1800001000", "1000 s"].iter().all(|named| error.contains(named)), "{error}");
        assert!(wrong(&jwt(AT_500), Some(u64::MAX)).contains("18446744073709551615"));
    }

    #[test]
    fn a_request_tells_the_expiry_in_its_query_or_its_body() {
        for (query, body, exp) in [
            (None, "", None),
            (Some(""), "", None),
            (Some("exp=17"), "", Some(17)),
            (None, "{\"exp\": 17}", Some(17)),
            (None, "{\"exp\": 16.5}", Some(17)),
            (Some("exp=17"), "{\"exp\": 17}", Some(17)),
        ] {
            assert_eq!(told(query, body.as_bytes()), Ok(exp), "{query:?} {body}");
        }
        for (query, body, named) in [
            (Some("exp=soon"), "", "\"soon\""),
            (Some("exp="), "", "\"\""),
            (Some("expiry=17"), "", "expiry=17"),
            (Some("exp=17&for=ever"), "", "17&for=ever"),
            (Some("exp=17"), "{\"exp\": 18}", "17 in the query and 18 in the body"),
            (None, "{\"exp\": \"17\"}", "exp is \"17\""),
            (None, "{\"exp\": 17, \"for\": 1}", "unknown field `for`"),
            (None, "{}", "missing field `exp`"),
            (None, "17", "{\"exp\": SECONDS}"),
        ] {
            let error = told(query, body.as_bytes()).unwrap_err();
            assert!(error.contains(named), "{query:?} {body}: {error}");
        }
    }
}
