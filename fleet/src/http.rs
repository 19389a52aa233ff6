//! The HTTP routes of a node. Each answer other than success has a JSON body with `error`, which says what was wrong and
//! what would be right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::core::{Node, NodeError};
use crate::metrics::{self, Counts};
use crate::node::State as NodeState;
use crate::records::TokenId;

/// The most bytes of a body: a token and an expiry.
const LONGEST_BODY: usize = 16 << 10;

/// The most characters of a token.
const LONGEST_TOKEN: usize = 8 << 10;

/// What the routes share.
#[derive(Debug)]
pub struct Service {
    node: Arc<Node>,
    admin_token: Option<String>,
    is_ending: AtomicBool,
    /// Requests to `/protected`, and changes, by what came of them.
    requests: Counts,
    changes: Counts,
    /// Lines of the log that were lost.
    lost_lines: fn() -> u64,
}

impl Service {
    /// The service of this node. Administrators send `admin_token`; without one, everybody may revoke. `lost_lines` says
    /// how many lines of the log were lost.
    pub fn new(node: Arc<Node>, admin_token: Option<String>, lost_lines: fn() -> u64) -> Arc<Self> {
        let requests = Counts::of(["passed", "revoked", "malformed", "unavailable"]);
        let changes = Counts::of(["new", "unchanged", "refused", "unavailable"]);
        Arc::new(Self { node, admin_token, is_ending: AtomicBool::new(false), requests, changes, lost_lines })
    }

    /// From now on `/healthz` answers 503, so that load balancers send no new requests.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }
}

type Answered = Result<Response, Refusal>;

/// `GET /protected`, `PUT` and `POST /revoked`, `GET /healthz`, `/livez` and `/metrics`.
pub fn router(service: Arc<Service>) -> Router {
    Router::new()
        .route("/protected", get(protected))
        .route("/revoked", put(revoke).post(revoked))
        .route("/healthz", get(health))
        .route("/livez", get(async || "alive"))
        .route("/metrics", get(metrics_page))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(service)
}

/// Why a request is rejected.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The request itself is wrong: 400.
    Malformed(String),
    /// The needed token is missing or wrong: 401.
    Unauthorized(&'static str),
    /// The token is revoked: 401.
    Revoked,
    /// The node can't tell, or has not done what was asked: 400, 422, 503 or 507.
    Node(NodeError),
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let challenge = |challenge: &'static str| [(header::WWW_AUTHENTICATE, challenge)];
        match self {
            Self::Malformed(why) => say(StatusCode::BAD_REQUEST, why),
            Self::Unauthorized(why) => (challenge("Bearer"), say(StatusCode::UNAUTHORIZED, why)).into_response(),
            Self::Revoked => {
                let challenge = challenge("Bearer error=\"invalid_token\"");
                (challenge, say(StatusCode::UNAUTHORIZED, "the token is revoked")).into_response()
            }
            Self::Node(error) => {
                let status = match error {
                    NodeError::Token(_) => StatusCode::BAD_REQUEST,
                    NodeError::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
                    NodeError::TooLate(_) => StatusCode::UNPROCESSABLE_ENTITY,
                    NodeError::Full => StatusCode::INSUFFICIENT_STORAGE,
                };
                say(status, error.to_string())
            }
        }
    }
}

fn say(status: StatusCode, error: impl Into<Value>) -> Response {
    (status, Json(json!({ "error": error.into() }))).into_response()
}

/// The token of `Authorization: Bearer TOKEN`.
///
/// # Errors
/// If there is none, or more than one such header: a service behind this one might go by another of them.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Refusal::Unauthorized("send one header `Authorization: Bearer TOKEN`"));
    };
    let words = value.to_str().ok().and_then(|value| value.split_once(' '));
    let token = words.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    token.filter(|token| (1..=LONGEST_TOKEN).contains(&token.len())).ok_or_else(|| {
        Refusal::Malformed(format!(
            "the header must be `Bearer TOKEN`, with a token of at most {LONGEST_TOKEN} characters"
        ))
    })
}

async fn protected(State(service): State<Arc<Service>>, headers: HeaderMap) -> Answered {
    let admitted = admit(&service, &headers).await;
    service.requests.count(match &admitted {
        Ok(()) => "passed",
        Err(Refusal::Revoked) => "revoked",
        Err(Refusal::Node(NodeError::Unknown(_))) => "unavailable",
        Err(_) => "malformed",
    });
    // The protected content would be here.
    admitted.map(|()| Json(json!({ "ok": true })).into_response())
}

/// Whether the request may pass. A real service first checks that the token is genuine and has not expired.
async fn admit(service: &Service, headers: &HeaderMap) -> Result<(), Refusal> {
    if service.node.is_revoked(bearer(headers)?).await? { Err(Refusal::Revoked) } else { Ok(()) }
}

/// The body of a request of an administrator. No proxy logs it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    token: String,
    exp: Option<f64>,
}

fn asked(service: &Service, headers: &HeaderMap, body: &[u8]) -> Result<Asked, Refusal> {
    if let Some(admin_token) = &service.admin_token {
        // Hashes are compared, so that the time does not reveal how much of a token was right.
        let hash = |token: &str| ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        if hash(bearer(headers)?).as_ref() != hash(admin_token).as_ref() {
            return Err(Refusal::Unauthorized(
                "this is for administrators: send `Authorization: Bearer` with their token",
            ));
        }
    }
    let form = "{\"token\": \"…\", \"exp\": SECONDS}, with the expiry in seconds since 1970";
    serde_json::from_slice(body).map_err(|error| Refusal::Malformed(format!("the body is not {form}: {error}")))
}

async fn revoke(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Answered {
    let asked = asked(&service, &headers, &body)?;
    let id = TokenId::of(&asked.token).map_err(NodeError::Token)?;
    // The cast makes a negative number 0, which is long over, and one that is too large the greatest, which is too late.
    let done = service.node.revoke(&asked.token, asked.exp.map(|exp| exp.ceil() as u64)).await;
    let (result, until, error) = match &done {
        Ok(done) if done.is_new => ("new", Some(done.until), None),
        Ok(done) => ("unchanged", Some(done.until), None),
        Err(error @ NodeError::Unknown(_)) => ("unavailable", None, Some(error.to_string())),
        Err(error) => ("refused", None, Some(error.to_string())),
    };
    service.changes.count(result);
    tracing::info!(target: "audit", id = %id, result, until, error, "revoke");
    let done = done?;
    let status = if done.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(json!({ "until": done.until }))).into_response())
}

async fn revoked(State(service): State<Arc<Service>>, headers: HeaderMap, body: Bytes) -> Answered {
    let asked = asked(&service, &headers, &body)?;
    let until = service.node.revoked_until(&asked.token).await?;
    Ok(Json(json!({ "revoked": until.is_some(), "until": until })).into_response())
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let (health, is_ending) = (service.node.health(), service.is_ending.load(Ordering::Relaxed));
    let is_ready = health.state == NodeState::Ready && !is_ending;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!(health);
    body["ending"] = is_ending.into();
    body["log_lines_lost"] = (service.lost_lines)().into();
    (status, Json(body)).into_response()
}

async fn metrics_page(State(service): State<Arc<Service>>) -> Response {
    let page = metrics::page(&service.node, &service.requests, &service.changes, (service.lost_lines)());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}
