//! The routes, and the three layers in front of the protected one.
#![allow(clippy::result_large_err, reason = "a response that rejects a request is sent at once")]

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response, Result};
use axum::routing::{get, put};
use axum::{Json, Router};
use concurrent_cuckoo_filter::FigureValue;
use serde_json::json;
use tower_http::auth::AsyncRequireAuthorizationLayer;

use crate::limited::Clients;
use crate::revoked::{Outcome, Revoked};
use crate::seen::Seen;

/// What all requests share.
pub struct Shared {
    pub revoked: Revoked,
    pub seen: Seen,
    pub clients: Clients,
}

pub fn router(shared: &Arc<Shared>) -> Router {
    // A check does not wait: the filter answers most questions, and the cache of the store most of the others. If your
    // store is on another machine, put an `async` block in the place of `ready`.
    let layer = |check: fn(&Shared, &Request) -> Result<(), Response>| {
        let shared = Arc::clone(shared);
        AsyncRequireAuthorizationLayer::new(move |request: Request| ready(check(&shared, &request).map(|()| request)))
    };
    Router::new()
        .route("/protected", get(async || Json(json!({ "ok": true }))))
        // The last layer is asked first. So a request that was rejected for its token may come again.
        .route_layer(layer(|shared, request| check_id(shared, request.headers())))
        .route_layer(layer(|shared, request| check_token(shared, request.headers())))
        .route_layer(layer(|shared, request| shared.clients.rejection(request).map_or(Ok(()), Err)))
        .route("/revoked/{token}", put(revoke).delete(reinstate))
        .route("/metrics", get(metrics_page))
        .with_state(Arc::clone(shared))
}

/// A real server would first check that the token is genuine and has not expired.
fn check_token(shared: &Shared, headers: &HeaderMap) -> Result<(), Response> {
    let token = bearer(headers).ok_or_else(|| unauthorized("send one header `Authorization: Bearer TOKEN`"))?;
    match shared.revoked.until(key(token)?) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(unauthorized("the token is revoked")),
        Err(error) => Err(store_failed(error)), // to fail open, return `Ok(())`
    }
}

/// What the set stores of a token. Of a JWT, that is not the whole text: its signature can be spelled in several ways.
fn key(token: &str) -> Result<&str, Response> {
    token_key::key(token).map_err(|error| say(StatusCode::BAD_REQUEST, &error.to_string()))
}

/// The token of `Authorization: Bearer TOKEN`. None of several such headers counts: a service behind this one might go by
/// another of them.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A request need not have an identifier.
fn check_id(shared: &Shared, headers: &HeaderMap) -> Result<(), Response> {
    let Some(id) = headers.get("x-request-id") else { return Ok(()) };
    if shared.seen.is_first(id.as_bytes()) { Ok(()) } else { Err(say(StatusCode::CONFLICT, "duplicate request ID")) }
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    let exp = query.as_deref().filter(|query| !query.is_empty()).map(|query| {
        let seconds = query.strip_prefix("exp=").and_then(|seconds| seconds.parse().ok());
        let why = || format!("{query:?} is not exp=SECONDS, the expiry in whole seconds since 1970");
        seconds.ok_or_else(|| say(StatusCode::BAD_REQUEST, &why()))
    });
    let exp = exp.transpose()?;
    let key = key(&token)?.to_owned();
    let answer = match blocking(move || shared.revoked.revoke(&key, exp)).await? {
        Outcome::Revoked(until) => json!({ "revoked": true, "until": until }),
        Outcome::Expired => json!({ "revoked": false }),
        Outcome::TooLate(latest) => {
            let why = format!(
                "the latest expiry that the server can remember now is {latest}; check that yours is in seconds, or \
                 restart the server with a larger --longest-lifetime"
            );
            return Err(say(StatusCode::UNPROCESSABLE_ENTITY, &why).into());
        }
        Outcome::NoRoom(error) => {
            let remedy = "wait until tokens have expired, or restart the server with a larger --capacity";
            return Err(say(StatusCode::INSUFFICIENT_STORAGE, &format!("{error}; {remedy}")).into());
        }
    };
    Ok(Json(answer).into_response())
}

async fn reinstate(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Result<StatusCode> {
    let key = key(&token)?.to_owned();
    let was_revoked = blocking(move || shared.revoked.reinstate(&key)).await?;
    Ok(if was_revoked { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

/// The figures of all filters for Prometheus, which requires all samples of a name together.
async fn metrics_page(State(shared): State<Arc<Shared>>) -> String {
    let mut samples: BTreeMap<&str, String> = BTreeMap::new();
    for (filter, stats) in [
        ("revoked", shared.revoked.stats()),
        ("request_ids", shared.seen.filter.stats()),
        ("clients", shared.clients.limiter.stats()),
    ] {
        for figure in stats.figures() {
            let (kind, value) = match figure.value {
                FigureValue::Counter(count) => ("counter", count.to_string()),
                FigureValue::Gauge(value) => ("gauge", value.to_string()),
            };
            let (name, help) = (figure.name, figure.help);
            let head = || format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
            *samples.entry(name).or_insert_with(head) += &format!("{name}{{filter=\"{filter}\"}} {value}\n");
        }
    }
    samples.into_values().collect()
}

/// A change waits for the disk, so it has a thread of its own. It goes on even if the client leaves.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(act).await;
    Ok(done.map_err(anyhow::Error::from).and_then(|done| done).map_err(store_failed)?)
}

/// An answer other than success: a JSON body with `error`, which says what was wrong and what would be right.
fn say(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

fn unauthorized(why: &str) -> Response {
    ([(header::WWW_AUTHENTICATE, "Bearer")], say(StatusCode::UNAUTHORIZED, why)).into_response()
}

fn store_failed(error: anyhow::Error) -> Response {
    eprintln!("error: {error:#}");
    say(StatusCode::SERVICE_UNAVAILABLE, "the store of revoked tokens has failed")
}
