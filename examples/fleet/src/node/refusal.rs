//! What a node answers where it does not do what was asked.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Unavailable;
use super::expiry::Wrong;

/// An answer other than success. Each has a JSON body with `error`, which says what was wrong and what would be right.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request itself is wrong.
    Malformed(String),
    /// Without the token that is needed, or with the wrong one.
    Unauthorized(&'static str),
    /// The token was revoked.
    Revoked,
    /// The token expires later than the fleet can remember.
    TooLate(String),
    /// As many tokens are revoked as the fleet was made for.
    Full {
        live: u64,
        capacity: u64,
    },
    Missing(&'static str),
    /// The node can't tell, or can't do it now.
    Unavailable(Unavailable),
}

impl From<Unavailable> for Refusal {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Malformed(why) => Self::Malformed(why),
            Wrong::TooLate { .. } => Self::TooLate(wrong.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let say = |status: StatusCode, error: &str| (status, Json(json!({ "error": error }))).into_response();
        match self {
            Self::Malformed(why) => say(StatusCode::BAD_REQUEST, &why),
            Self::Unauthorized(why) => challenge(say(StatusCode::UNAUTHORIZED, why), "Bearer"),
            Self::Revoked => {
                challenge(say(StatusCode::UNAUTHORIZED, "the token is revoked"), "Bearer error=\"invalid_token\"")
            }
            Self::TooLate(error) => {
                let body = json!({
                    "error": error,
                    "remedy": "check that the expiry is in seconds and not in milliseconds; if tokens live for so long, start a fleet \
                               of another name with a larger --longest-lifetime, and revoke there what is revoked here",
                });
                (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
            }
            Self::Full { live, capacity } => {
                let body = json!({
                    "error": format!("{live} tokens are revoked, and the fleet was made for {capacity}"),
                    "len": live,
                    "capacity": capacity,
                    "remedy": "wait until tokens have expired, or start a fleet of another name with a larger --capacity, and revoke \
                               there what is revoked here",
                });
                (StatusCode::INSUFFICIENT_STORAGE, Json(body)).into_response()
            }
            Self::Missing(what) => say(StatusCode::NOT_FOUND, what),
            Self::Unavailable(Unavailable(why)) => say(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }
}

fn challenge(mut response: Response, challenge: &'static str) -> Response {
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}
