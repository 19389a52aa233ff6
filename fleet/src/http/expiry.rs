//! Until when a token is refused, from what is known about its expiry. All times are in seconds since 1970.
//!
//! The expiry comes with the request, or from the token itself: the claim `exp` of a JSON Web Token. The claim is read
//! **without checking the signature**. A token that somebody has made up or changed is another token, which anyone who
//! checks signatures refuses anyway; and only administrators revoke tokens.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::answers::Refusal;
use crate::error::NodeError;

/// The body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) token: String,
    pub(crate) exp: Option<Value>,
}

pub(crate) fn body(bytes: &[u8]) -> Result<Body, Refusal> {
    let form = "{\"token\": \"…\", \"exp\": SECONDS}, with the expiry in seconds since 1970";
    serde_json::from_slice(bytes).map_err(|error| Refusal::Malformed(format!("the body is not {form}: {error}")))
}

/// Until when the token is refused. Of the expiry in the request and the token's own, the later one holds. A token of
/// unknown expiry lives for the longest lifetime.
pub(crate) fn until(token: &str, told: Option<u64>, now: u64, longest: u64, leeway: u64) -> Result<u64, Refusal> {
    let latest = now.saturating_add(longest);
    let exp = told.max(claimed(token)?).unwrap_or(latest);
    if exp > latest {
        return Err(NodeError::TooLate { until: exp, latest }.into());
    }
    Ok(exp.saturating_add(leeway))
}

/// The expiry that the token itself states. `None` if it states none or is no JWT.
fn claimed(token: &str) -> Result<Option<u64>, Refusal> {
    #[derive(Deserialize)]
    struct Claims {
        exp: Option<Value>,
    }
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Ok(None);
    };
    let claims = URL_SAFE_NO_PAD.decode(claims).ok().and_then(|claims| serde_json::from_slice::<Claims>(&claims).ok());
    claims.and_then(|claims| claims.exp).map(|exp| numeric_date(&exp)).transpose()
}

/// A number of seconds since 1970. A JWT allows a fraction, which is rounded up.
pub(crate) fn numeric_date(exp: &Value) -> Result<u64, Refusal> {
    // The cast turns a negative number into 0, which is long past, and one that is too large into the greatest, which is
    // refused as too late.
    let fraction = || exp.as_f64().map(|seconds| seconds.ceil() as u64);
    let wrong = || Refusal::Malformed(format!("exp is {exp}, and should be a number of seconds since 1970"));
    exp.as_u64().or_else(fraction).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// A token with these claims, in base64url, and a meaningless signature.
    fn jwt(claims: &str) -> String {
        format!("eyJhbGciOiJFUzUxMiJ9.{claims}.c2lnbmF0dXJl")
    }

    /// `{"sub":"a","exp":1800000500}`
    const AT_500: &str = "eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwNTAwfQ";

    #[test]
    fn the_expiry_of_a_jwt_is_its_claim_and_the_later_one_holds() {
        let end = |token: &str, told| until(token, told, NOW, 1000, 60).unwrap();
        assert_eq!(end(&jwt(AT_500), None), NOW + 560);
        assert_eq!(end(&jwt(AT_500), Some(NOW + 100)), NOW + 560);
        assert_eq!(end(&jwt(AT_500), Some(NOW + 600)), NOW + 660);
        // {"exp":1800000499.25}
        assert_eq!(end(&jwt("eyJleHAiOjE4MDAwMDA0OTkuMjV9"), None), NOW + 560);
        // {"exp":-1}
        assert_eq!(end(&jwt("eyJleHAiOi0xfQ"), None), 60);
        // {"sub":"a"}, and tokens that are not JWTs.
        for token in [&jwt("eyJzdWIiOiJhIn0"), "opaque", "two.dots.only", "a..b", AT_500] {
            assert_eq!(end(token, None), NOW + 1060, "{token}");
            assert_eq!(end(token, Some(NOW + 7)), NOW + 67, "{token}");
        }
        // {"exp":"soon"}
        assert!(
            matches!(claimed(&jwt("eyJleHAiOiJzb29uIn0")), Err(Refusal::Malformed(why)) if why.contains("\"soon\""))
        );
        assert!(until("opaque", Some(NOW + 1001), NOW, 1000, 60).is_err());
    }
}
