//! Answers other than success. Each has a JSON body with `error`, which says what was wrong and what would be right.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::NodeError;

/// Why a request is refused: an answer with the status of this, and a JSON body.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The request itself is wrong: 400.
    Malformed(String),
    /// The needed token is missing or wrong: 401.
    Unauthorized(&'static str),
    /// The token was revoked: 401.
    Revoked,
    /// There is no such thing: 404.
    Missing(&'static str),
    /// The node does not know, or has not done what was asked: 503, 422 or 507.
    Node(NodeError),
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Malformed(why) => say(StatusCode::BAD_REQUEST, json!({ "error": why })),
            Self::Unauthorized(why) => challenge(why, "Bearer"),
            Self::Revoked => challenge("the token is revoked", "Bearer error=\"invalid_token\""),
            Self::Missing(what) => say(StatusCode::NOT_FOUND, json!({ "error": what })),
            Self::Node(error) => {
                let text = error.to_string();
                match error {
                    NodeError::TooLate { .. } => say(
                        StatusCode::UNPROCESSABLE_ENTITY,
                        json!({
                            "error": text,
                            "remedy": "check that the expiry is in seconds and not in milliseconds; if tokens live this \
                                       long, the fleet needs a larger --longest-lifetime",
                        }),
                    ),
                    NodeError::Full { live, capacity } => say(
                        StatusCode::INSUFFICIENT_STORAGE,
                        json!({
                            "error": text,
                            "len": live,
                            "capacity": capacity,
                            "remedy": "wait until tokens have expired, or give the fleet a larger --capacity",
                        }),
                    ),
                    _ => say(StatusCode::SERVICE_UNAVAILABLE, json!({ "error": text })),
                }
            }
        }
    }
}

fn say(status: StatusCode, body: Value) -> Response {
    (status, Json(body)).into_response()
}

fn challenge(why: &str, challenge: &'static str) -> Response {
    let mut response = say(StatusCode::UNAUTHORIZED, json!({ "error": why }));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}
