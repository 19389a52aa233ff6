//! CONCURRENT: the HTTP routes of a node.
//!
//! A filter answers in nanoseconds and never waits, so a request asks it on its own thread. The engine is asked on
//! another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::json;
use tokens::{expiry, token};

use super::life::Answer;
use super::page::{self, Health, Page};
use super::refusal::Refusal;
use super::{Node, Unavailable};
use crate::change::Outcome;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) node: Arc<Node>,
    pub(crate) admin_token: Option<String>,
    pub(crate) page: Page,
    pub(crate) is_ending: AtomicBool,
}

impl Shared {
    /// Until when the token is revoked, if it is.
    async fn revoked_until(&self, token: &str) -> Result<Option<u64>, Unavailable> {
        let answer = self.node.answer(self.node.hash(token));
        if answer == Answer::Absent {
            return Ok(None);
        }
        let (node, token) = (Arc::clone(&self.node), token.to_owned());
        let asked = tokio::task::spawn_blocking(move || node.asked(&token, answer)).await;
        asked.unwrap_or_else(|error| Err(Unavailable(format!("the node has failed: {error}; ask another node"))))
    }
}

type Answered = Result<Response, Refusal>;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let admin = Router::new()
        .route("/revoked/{token}", put(revoke).get(revoked).delete(restore))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), administrators_only));
    Router::new()
        .route("/protected", get(protected))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .merge(admin)
        .with_state(shared)
}

async fn protected(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answered {
    let answer = admit(&shared, &headers).await;
    let tallies = &shared.node.tallies;
    match &answer {
        Ok(()) => &tallies.accepted,
        Err(Refusal::Revoked) => &tallies.revoked,
        Err(Refusal::Unavailable(_)) => &tallies.unavailable,
        Err(_) => &tallies.malformed,
    }
    .add(1);
    // The protected content would be here.
    answer.map(|()| Json(json!({ "ok": true })).into_response())
}

/// Whether the request may pass. A real service would first check that the token is genuine and has not expired.
async fn admit(shared: &Shared, headers: &HeaderMap) -> Result<(), Refusal> {
    let token = token::bearer(headers)?;
    match shared.revoked_until(token).await? {
        None => Ok(()),
        Some(_) => Err(Refusal::Revoked),
    }
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
    let until = node.settings.lifetimes.until(&token, told, node.time()?)?.time;
    let (outcome, place) = node.revoke(&token, until).await?;
    let position = place.position;
    let (status, body) = match outcome {
        Outcome::Revoked { until } => {
            (StatusCode::CREATED, json!({ "revoked": true, "until": until, "position": position }))
        }
        Outcome::AlreadyRevoked { until } => {
            (StatusCode::OK, json!({ "revoked": true, "until": until, "position": position }))
        }
        Outcome::Expired => {
            let why = "the token has expired, so there is nothing to remember";
            (StatusCode::OK, json!({ "revoked": false, "until": until, "position": position, "why": why }))
        }
        Outcome::TooLate { latest } => {
            let latest = u64::from(latest) * node.settings.resolution;
            return Err(Refusal::TooLate(format!(
                "the token must be refused until {until}, in seconds since 1970, and the fleet can remember it until \
                 {latest} at most"
            )));
        }
        Outcome::Full { live, capacity } => return Err(Refusal::Full { live, capacity }),
        Outcome::Restored | Outcome::NotRevoked => return Err(strange(outcome).into()),
    };
    Ok((status, Json(body)).into_response())
}

async fn revoked(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answered {
    token::check(&token).map_err(Refusal::Malformed)?;
    let answer = match shared.revoked_until(&token).await? {
        Some(until) => json!({ "revoked": true, "until": until }),
        None => json!({ "revoked": false }),
    };
    Ok(Json(answer).into_response())
}

async fn restore(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answered {
    token::check(&token).map_err(Refusal::Malformed)?;
    match shared.node.restore(&token).await?.0 {
        Outcome::Restored => Ok(StatusCode::NO_CONTENT.into_response()),
        Outcome::NotRevoked => Err(Refusal::Missing("the token is not revoked")),
        other => Err(strange(other).into()),
    }
}

fn strange(outcome: Outcome) -> Unavailable {
    Unavailable(format!("the engine has answered another question: {outcome:?}; are all nodes of the same version?"))
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let health = Health::of(&shared.node);
    let is_ready = health.is_ready() && !shared.is_ending.load(Ordering::Relaxed);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, page::render(&shared.page, &shared.node)).into_response()
}

async fn administrators_only(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Answered {
    token::is_of_administrator(request.headers(), shared.admin_token.as_deref())?;
    Ok(next.run(request).await)
}
