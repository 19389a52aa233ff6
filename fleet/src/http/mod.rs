//! The HTTP routes of a node. [`router`] is the service that the program runs.

mod refusal;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use serde_json::json;
use tokens::expiry::{self, Lifetimes};
use tokens::token;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

use self::refusal::Refusal;
use crate::node::{Node, Revocation};

/// The most bytes of a body. It has an expiry at most.
const LONGEST_BODY: usize = 4096;

/// How long a client may take between two parts of a body.
const BODY: Duration = Duration::from_secs(5);

/// What all requests share.
struct Shared {
    node: Arc<Node>,
    admin_token: Option<String>,
    recorder: PrometheusRecorder,
    is_ending: Arc<AtomicBool>,
}

type Answered = Result<Response, Refusal>;

/// The routes of a node. Administrators send `admin_token`; without one, everybody may revoke. While `is_ending`,
/// `/healthz` says that the node is not ready, so that no new requests are sent to it.
pub fn router(node: Arc<Node>, admin_token: Option<String>, is_ending: Arc<AtomicBool>) -> Router {
    let recorder = PrometheusBuilder::new().build_recorder();
    // A change takes `patience` at most, and a little for the answer.
    let longest = node.settings().patience + Duration::from_secs(2);
    let shared = Arc::new(Shared { node, admin_token, recorder, is_ending });
    let admin = Router::new()
        .route("/revoked/{token}", put(revoke).get(revoked).delete(restore))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), administrators_only))
        .layer(RequestBodyLimitLayer::new(LONGEST_BODY))
        .layer(RequestBodyTimeoutLayer::new(BODY))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, longest));
    // The other routes read no body, and ask the engine for a second at most.
    Router::new()
        .route("/protected", get(protected))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .merge(admin)
        .with_state(shared)
}

async fn protected(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let answer = admit(&shared, &headers).await;
    let tallies = &shared.node.core().tallies;
    match &answer {
        Ok(()) => &tallies.accepted,
        Err(Refusal::Revoked) => &tallies.revoked,
        Err(Refusal::Node(_)) => &tallies.unavailable,
        Err(_) => &tallies.malformed,
    }
    .add(1);
    // The protected content would be here.
    answer.map(|()| Json(json!({ "ok": true })).into_response())
}

/// Whether the request may pass. A real service would first check that the token is genuine and has not expired.
async fn admit(shared: &Shared, headers: &HeaderMap) -> Result<(), Refusal> {
    let token = token::bearer(headers)?;
    if shared.node.is_revoked(token).await? { Err(Refusal::Revoked) } else { Ok(()) }
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Answered {
    token::check(&token).map_err(Refusal::Malformed)?;
    let told = expiry::of_request(query.as_deref(), body).await.map_err(Refusal::Malformed)?;
    let node = &shared.node;
    let lifetimes =
        Lifetimes { longest: node.settings().longest_lifetime, leeway: node.settings().leeway, keeper: "fleet" };
    let until = lifetimes.until(&token, told, node.time()?)?.time;
    let (status, body) = match node.revoke(&token, until).await? {
        Revocation { until: Some(until), is_new, position } => (
            if is_new { StatusCode::CREATED } else { StatusCode::OK },
            json!({ "revoked": true, "until": until, "position": position }),
        ),
        Revocation { until: None, position, .. } => {
            let why = "the token has expired, so there is nothing to remember";
            (StatusCode::OK, json!({ "revoked": false, "until": until, "position": position, "why": why }))
        }
    };
    Ok((status, Json(body)).into_response())
}

async fn revoked(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answered {
    token::check(&token).map_err(Refusal::Malformed)?;
    let answer = match shared.node.revoked_until(&token).await? {
        Some(until) => json!({ "revoked": true, "until": until }),
        None => json!({ "revoked": false }),
    };
    Ok(Json(answer).into_response())
}

async fn restore(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answered {
    token::check(&token).map_err(Refusal::Malformed)?;
    match shared.node.restore(&token).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Refusal::Missing("the token is not revoked")),
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let health = shared.node.health();
    let is_ready = health.is_ready() && !shared.is_ending.load(Ordering::Relaxed);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    ::metrics::with_local_recorder(&shared.recorder, || shared.node.record_metrics());
    (content_type, shared.recorder.handle().render()).into_response()
}

async fn administrators_only(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Answered {
    token::is_of_administrator(request.headers(), shared.admin_token.as_deref())?;
    Ok(next.run(request).await)
}
