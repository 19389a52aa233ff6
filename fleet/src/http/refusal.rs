//! What a node answers when it does not do what was asked.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokens::answers::{revoked, say, unauthorized};
use tokens::expiry::Wrong;
use tokens::token::NoToken;

use crate::node::NodeError;

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
    Missing(&'static str),
    /// The node does not know, or has not done what was asked.
    Node(NodeError),
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::TooLate { .. } => Self::TooLate(error.to_string()),
            error => Self::Node(error),
        }
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
            Self::Node(NodeError::Full { live, capacity }) => {
                let body = json!({
                    "error": NodeError::Full { live, capacity }.to_string(),
                    "len": live,
                    "capacity": capacity,
                    "remedy": "wait until tokens have expired, or start a fleet of another name with a larger \
                               --capacity, and revoke there what is revoked here",
                });
                (StatusCode::INSUFFICIENT_STORAGE, Json(body)).into_response()
            }
            Self::Missing(what) => say(StatusCode::NOT_FOUND, what),
            Self::Node(error) => say(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        }
    }
}
