//! What a node answers when it does not do what was asked.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokens::answers::{revoked, say, unauthorized};
use tokens::expiry::Wrong;
use tokens::token::NoToken;

use super::Unavailable;

/// An answer other than success. Each has a JSON body with `error`, which says what was wrong and what would be
/// right.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request itself is wrong.
    Malformed(String),
    /// The needed token is missing or wrong.
    Unauthorized(&'static str),
    /// The token was revoked.
    Revoked,
    /// The token expires later than the fleet can remember.
    TooLate(String),
    /// As many tokens are revoked as the fleet was built for.
    Full {
        live: u64,
        capacity: u64,
    },
    Missing(&'static str),
    /// The node does not know, or can't do it now.
    Unavailable(Unavailable),
}

impl From<Unavailable> for Refusal {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

impl From<NoToken> for Refusal {
    fn from(error: NoToken) -> Self {
        match error {
            NoToken::Unauthorized(why) => Self::Unauthorized(why),
            NoToken::Malformed(why) => Self::Malformed(why),
        }
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
        match self {
            Self::Malformed(why) => say(StatusCode::BAD_REQUEST, &why),
            Self::Unauthorized(why) => unauthorized(why),
            Self::Revoked => revoked(),
            Self::TooLate(error) => {
                let body = json!({
                    "error": error,
                    "remedy": "check that the expiry is in seconds and not in milliseconds; if tokens live this long, \
                               start a fleet of another name with a larger --longest-lifetime, and revoke there what \
                               is revoked here",
                });
                (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
            }
            Self::Full { live, capacity } => {
                let body = json!({
                    "error": format!("{live} tokens are revoked, and the fleet was made for {capacity}"),
                    "len": live,
                    "capacity": capacity,
                    "remedy": "wait until tokens have expired, or start a fleet of another name with a larger \
                               --capacity, and revoke there what is revoked here",
                });
                (StatusCode::INSUFFICIENT_STORAGE, Json(body)).into_response()
            }
            Self::Missing(what) => say(StatusCode::NOT_FOUND, what),
            Self::Unavailable(Unavailable(why)) => say(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }
}
