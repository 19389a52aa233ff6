//! PURE: answers other than success. Each has a JSON body with `error`, which says what was wrong and what would be
//! right.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// An answer with this error and nothing else.
pub fn say(status: StatusCode, error: &str) -> Response {
    (status, Json(serde_json::json!({ "error": error }))).into_response()
}

/// The answer to a request without a token, or with the wrong one.
pub fn unauthorized(why: &str) -> Response {
    challenge(say(StatusCode::UNAUTHORIZED, why), "Bearer")
}

/// The answer to a request with a revoked token.
pub fn revoked() -> Response {
    challenge(say(StatusCode::UNAUTHORIZED, "the token is revoked"), "Bearer error=\"invalid_token\"")
}

fn challenge(mut response: Response, challenge: &'static str) -> Response {
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}
