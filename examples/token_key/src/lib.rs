#![doc = include_str!("../README.md")]

use std::error::Error;
use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

/// Decodes what lenient libraries decode: with or without padding, whatever the unused bits are.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A token that has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is empty, or has a character that is not visible ASCII.
    NotAToken,
    /// The token is encrypted (JWE).
    Encrypted,
    /// The token is JSON. A JWT in its JSON serialization can be spelled in many ways.
    Json,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAToken => "a token consists of visible ASCII characters, without spaces; send it as it was issued",
            Self::Encrypted => {
                "the token is encrypted (JWE), and can be spelled in several ways; send the claim `jti` of its content instead"
            }
            Self::Json => "the token is JSON, which can be spelled in several ways; send a JWT in its compact form",
        })
    }
}

impl Error for TokenError {}

/// The key of this token.
///
/// - A JWT has exactly three parts, and the first is a JSON object with `alg`, in base64url. Its key is the text before
///   the last dot.
/// - The key of any other token (opaque tokens, API keys, PASETO, the `jti` of an encrypted token) is the whole text. So
///   whatever checks such tokens must accept only one spelling of each.
///
/// Cost: a JWT's header is decoded and parsed, which takes about a microsecond.
///
/// # Errors
/// If the token is encrypted or JSON, or if no HTTP header can carry it as a token. Reject the request: such a token can't
/// be found in a set, whatever it stores.
pub fn key(token: &str) -> Result<&str, TokenError> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::NotAToken);
    }
    if token.starts_with('{') {
        return Err(TokenError::Json);
    }
    let parts = token.split('.').count();
    let header = token.split('.').next().unwrap_or_default();
    match token.rsplit_once('.') {
        Some((signed, _)) if parts == 3 && is_header(header) => Ok(signed),
        Some(_) if parts == 5 && is_header(header) => Err(TokenError::Encrypted),
        _ => Ok(token),
    }
}

/// The claims of a JWT, if this is one. **The signature is not checked.**
pub fn claims(token: &str) -> Option<Value> {
    let (_, claims) = key(token).ok().filter(|key| key.len() < token.len())?.split_once('.')?;
    serde_json::from_slice(&LENIENT.decode(standard_to_url(claims)).ok()?).ok()
}

/// Whether this is the header of a JWT or of a JWE. It has to recognize every header that some library accepts: otherwise
/// the key would be the whole text of a token whose signature can be spelled in several ways.
fn is_header(part: &str) -> bool {
    let header = LENIENT.decode(standard_to_url(part)).ok();
    let header = header.and_then(|header| serde_json::from_slice::<Value>(&header).ok());
    header.is_some_and(|header| header.get("alg").is_some())
}

fn standard_to_url(part: &str) -> String {
    part.replace('+', "-").replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(json: &str) -> String {
        base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(json)
    }

    #[test]
    fn the_key_of_a_jwt_is_what_is_signed() {
        let signed = format!("{}.{}", encode(r#"{"alg":"ES256"}"#), encode(r#"{"sub":"a"}"#));
        for signature in ["AAA", "AAB", "AAA=", "+/+/", "-_-_", "AA%A", ""] {
            assert_eq!(key(&format!("{signed}.{signature}")), Ok(&*signed), "{signature}");
        }
        let other = format!("{}.{}", encode(r#"{"alg":"ES256"}"#), encode(r#"{"sub":"b"}"#));
        assert_eq!(key(&format!("{other}.AAA")), Ok(&*other));
    }

    /// A header in another spelling is another token, but must be recognized all the same: its issuer may write it so.
    #[test]
    fn a_header_is_recognized_in_each_spelling_that_some_library_accepts() {
        // Of two bytes in the last group, so that there are unused bits and padding.
        let (plain, odd) = (encode(r#"{"alg":"none"}"#), encode("{\"alg\":\"?>?>~~\"}"));
        let last = format!("{}1", plain.strip_suffix('0').unwrap());
        for header in [plain.clone(), format!("{plain}="), last, odd.replace('-', "+").replace('_', "/")] {
            let signed = format!("{header}.e30");
            assert_eq!(key(&format!("{signed}.AAA")), Ok(&*signed), "{header}");
        }
    }

    #[test]
    fn the_key_of_any_other_token_is_its_whole_text() {
        let header = encode(r#"{"alg":"ES256"}"#);
        let others = [
            "opaque".to_owned(),
            "12|AbCd".to_owned(),
            "a.b.c".to_owned(),
            "v4.public.AAA".to_owned(),
            "v4.public.AAB".to_owned(),
            "v4.local.AAA.Zm9v".to_owned(),
            "a.b.c.d.e".to_owned(),
            format!("{header}.e30"),
            format!("{header}.e30.AAA.AAA"),
            // Three parts, but the first is a number, or has no `alg`.
            format!("{}.e30.AAA", encode("17")),
            format!("{}.e30.AAA", encode(r#"{"typ":"x"}"#)),
        ];
        for token in &others {
            assert_eq!(key(token), Ok(&**token));
        }
    }

    #[test]
    fn what_has_no_key_is_an_error_that_says_what_to_send() {
        let jwe = format!("{}.a.b.c.d", encode(r#"{"alg":"dir","enc":"A256GCM"}"#));
        assert_eq!(key(&jwe), Err(TokenError::Encrypted));
        assert!(key(&jwe).unwrap_err().to_string().contains("`jti`"));
        assert_eq!(key(r#"{"payload":"a","signature":"b"}"#), Err(TokenError::Json));
        for token in ["", " a", "a\n", "tökän"] {
            assert_eq!(key(token), Err(TokenError::NotAToken), "{token:?}");
        }
    }

    #[test]
    fn claims_are_those_of_a_jwt_only() {
        let header = encode(r#"{"alg":"ES256"}"#);
        let token = format!("{header}.{}.AAA", encode(r#"{"exp":17}"#));
        assert_eq!(claims(&token).unwrap()["exp"], 17);
        for token in [format!("{header}.!!.AAA"), "a.b.c".to_owned(), "opaque".to_owned()] {
            assert_eq!(claims(&token), None, "{token}");
        }
    }
}
