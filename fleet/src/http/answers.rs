//! Answers other than success. Each has a JSON body with `error`, which says what was wrong and what would be right.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::NodeError;

#[derive(Debug)]
pub(crate) enum Refusal {
    /// The request itself is wrong.
    Malformed(String),
    /// The needed token is missing or wrong.
    Unauthorized(&'static str),
    /// The token was revoked.
    Revoked,
    Missing(&'static str),
    /// The node does not know, or has not done what was asked.
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
