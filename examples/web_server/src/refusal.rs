//! Answers of the server other than success.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use concurrent_cuckoo_filter::InsertError;
use serde::Serialize;
use tokens::answers::{revoked, say, unauthorized};
use tokens::expiry::Wrong;
use tokens::token::NoToken;

use crate::store;
use crate::writer::Unavailable;

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
    /// The request's identifier has come before.
    Repeated,
    /// The token expires later than the server can remember.
    TooLate(Wrong),
    /// The filter of revoked tokens has no room for this one.
    Full(InsertError),
    /// The filter of request identifiers has no room. So the server can't tell whether this one comes again.
    IdsFull {
        error: InsertError,
        period: u64,
    },
    Missing(&'static str),
    TooLarge {
        limit: usize,
    },
    Busy,
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
            Wrong::TooLate { .. } => Self::TooLate(wrong),
        }
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Self {
        Self::Unavailable(error.into())
    }
}

/// The body of the answer when a filter is full, for programs to act on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NoRoom {
    pub(crate) error: String,
    pub(crate) len: Option<usize>,
    pub(crate) capacity: Option<usize>,
    pub(crate) remedy: &'static str,
}

impl NoRoom {
    pub(crate) fn new(error: InsertError) -> Self {
        let (len, capacity, remedy) = match error {
            InsertError::Full { len, capacity, .. } => (
                Some(len),
                Some(capacity),
                "wait until tokens have expired, or restart the server with a larger --capacity; nothing is lost by \
                 that, the filter is rebuilt from the store",
            ),
            _ => (
                None,
                None,
                "too many other tokens look like this one, which hardly happens by chance; stop the server, delete its \
                 key file and start it again: the filter is rebuilt with another key",
            ),
        };
        Self { error: error.to_string(), len, capacity, remedy }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Malformed(why) => say(StatusCode::BAD_REQUEST, &why),
            Self::Unauthorized(why) => unauthorized(why),
            Self::Revoked => revoked(),
            Self::Repeated => say(StatusCode::CONFLICT, "a request with this identifier has come before"),
            Self::TooLate(wrong) => {
                let body = serde_json::json!({
                    "error": wrong.to_string(),
                    "remedy": "check that the expiry is in seconds and not in milliseconds; if tokens live for so \
                               long, restart the server with a larger --longest-lifetime; nothing is lost by \
                               that, the filter is rebuilt from the store",
                });
                (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
            }
            Self::Full(error) => (StatusCode::INSUFFICIENT_STORAGE, Json(NoRoom::new(error))).into_response(),
            Self::IdsFull { error, period } => {
                let body = NoRoom {
                    remedy: "try again when a generation has passed; if it happens again, restart the server with a \
                             larger --ids",
                    ..NoRoom::new(error)
                };
                let mut response = (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(period));
                response
            }
            Self::Missing(what) => say(StatusCode::NOT_FOUND, what),
            Self::TooLarge { limit } => say(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("the body is longer than {limit} bytes; send it in parts, or raise --bulk-limit"),
            ),
            Self::Busy => {
                say(StatusCode::TOO_MANY_REQUESTS, "another bulk load is under way; wait until it has finished")
            }
            Self::Unavailable(Unavailable(why)) => say(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }
}
