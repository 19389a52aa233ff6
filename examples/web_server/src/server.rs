//! The routes, and the two layers in front of the protected one.
#![allow(clippy::result_large_err, reason = "a response that refuses a request is sent at once")]

use std::future::ready;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use crate::figures::Figures;
use crate::layer::{Answer, GateLayer, OnFailure};
use crate::revoked::{Outcome, Revoked, Until};
use crate::{options::Options, seen::Seen};
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response, Result};
use axum::routing::{get, put};
use axum::{Json, Router, body::Body};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use serde_json::json;
use subtle::ConstantTimeEq;

/// The most characters of a token.
const LONGEST: usize = 4096;

/// What all requests share.
pub struct Shared {
    pub revoked: Revoked,
    pub seen: Seen,
    pub options: Options,
    pub metrics: Metrics,
}

/// What the page for Prometheus is made of.
pub struct Metrics {
    recorder: PrometheusRecorder,
    revoked: Figures,
    seen: Figures,
}

impl Default for Metrics {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        Self { recorder, revoked: Figures::new("revoked"), seen: Figures::new("request_ids") }
    }
}

pub fn router(shared: &Arc<Shared>) -> Router {
    let on_failure = |open| if open { OnFailure::Pass } else { OnFailure::Refuse };
    // These do not wait: the filter answers most questions, and the cache of the store most of the others. If your
    // store is on another machine, return a future that waits.
    let (for_tokens, for_ids) = (Arc::clone(shared), Arc::clone(shared));
    let ask_about_token = move |token: String| ready(ask_about_token(&for_tokens.revoked, &token));
    let ask_about_id = move |id: String| ready(ask_about_id(&for_ids.seen, &id));
    let tokens = GateLayer::new(token_of, ask_about_token, on_failure(shared.options.tokens_fail_open));
    let ids = GateLayer::new(id_of, ask_about_id, on_failure(shared.options.ids_fail_open));
    let administrators_only = middleware::from_fn_with_state(Arc::clone(shared), administrators_only);
    Router::new()
        .route("/protected", get(async || Json(json!({ "ok": true }))))
        // The last layer is asked first. So a request that was refused for its token may come again.
        .route_layer(ids)
        .route_layer(tokens)
        .route("/revoked/{token}", put(revoke).get(lookup).delete(reinstate).layer(administrators_only))
        .route("/metrics", get(metrics_page))
        .with_state(Arc::clone(shared))
}

/// A real server would first check that the token is genuine and has not expired.
fn token_of(request: &Parts) -> ControlFlow<Answer<Body>, String> {
    match bearer(&request.headers) {
        Ok(token) => Continue(token.to_owned()),
        Err(response) => Break(Answer::Refuse(response)),
    }
}

/// The token of `Authorization: Bearer TOKEN`, or what to answer to a request without.
fn bearer(headers: &HeaderMap) -> Result<&str, Response> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(unauthorized("there is no token; send the header `Authorization: Bearer TOKEN`", "Bearer"));
    };
    // A proxy and a service that each decide by another one could be played off against each other.
    if values.next().is_some() {
        return Err(malformed("there is more than one header Authorization; send one"));
    }
    match value.to_str().ok().and_then(|value| value.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => check(token.trim_start_matches(' ')),
        _ => Err(malformed("the header Authorization must be `Bearer TOKEN`")),
    }
}

/// Checks that a header can carry this token. A token that no header can carry would never come in a request.
fn check(token: &str) -> Result<&str, Response> {
    if token.is_empty() || token.len() > LONGEST {
        return Err(malformed(&format!("a token of {} bytes; it must have 1 to {LONGEST}", token.len())));
    }
    match token.chars().find(|c| !c.is_ascii_graphic()) {
        Some(c) => Err(malformed(&format!("{c:?} in a token; it may have ASCII letters, digits and punctuation"))),
        None => Ok(token),
    }
}

fn ask_about_token(revoked: &Revoked, token: &str) -> Answer<Body> {
    match revoked.until(token) {
        Ok(None) => Answer::Pass,
        Ok(Some(_)) => Answer::Refuse(unauthorized("the token is revoked", "Bearer error=\"invalid_token\"")),
        Err(error) => Answer::Failed(store_failed(error)),
    }
}

/// A request need not have an identifier.
fn id_of(request: &Parts) -> ControlFlow<Answer<Body>, String> {
    match request.headers.get("x-request-id").map(|id| id.to_str()) {
        None => Break(Answer::Pass),
        Some(Ok(id)) if check(id).is_ok() => Continue(id.to_owned()),
        _ => Break(Answer::Refuse(malformed("X-Request-Id must be ASCII, without spaces"))),
    }
}

fn ask_about_id(seen: &Seen, id: &str) -> Answer<Body> {
    match seen.is_first(id) {
        Ok(true) => Answer::Pass,
        Ok(false) => Answer::Refuse(say(StatusCode::CONFLICT, "a request with this identifier has come before")),
        Err(error) => {
            Answer::Failed(say(StatusCode::SERVICE_UNAVAILABLE, &format!("no room for identifiers: {error}")))
        }
    }
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    check(&token)?;
    let until = until(query.as_deref(), &shared.options, shared.revoked.now())?;
    let (status, answer) = match blocking(move || shared.revoked.revoke(&token, until)).await? {
        Outcome::New(until) => (StatusCode::CREATED, json!({ "revoked": true, "until": until })),
        Outcome::Known(until) => (StatusCode::OK, json!({ "revoked": true, "until": until })),
        Outcome::Expired(until) => (StatusCode::OK, json!({ "revoked": false, "expired": until })),
        Outcome::NoRoom(error) => {
            let remedy = "wait until tokens have expired, or restart the server with a larger --capacity";
            (StatusCode::INSUFFICIENT_STORAGE, json!({ "error": error.to_string(), "remedy": remedy }))
        }
    };
    Ok((status, Json(answer)).into_response())
}

/// Until when a token is refused: until the expiry in the query, or else for the longest lifetime.
fn until(query: Option<&str>, options: &Options, now: u64) -> Result<Until, Response> {
    let (longest, latest) = (options.longest_lifetime, now.saturating_add(options.longest_lifetime));
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(Until { time: latest, assumed: true });
    };
    match query.strip_prefix("exp=").and_then(|seconds| seconds.parse().ok()) {
        Some(time) if time <= latest => Ok(Until { time, assumed: false }),
        Some(time) => {
            let why = format!(
                "the token expires at {time}, and the latest expiry that the server can remember now is {latest}: \
                 {longest} s from now; check that it is in seconds, or restart the server with a larger \
                 --longest-lifetime"
            );
            Err(say(StatusCode::UNPROCESSABLE_ENTITY, &why))
        }
        None => Err(malformed(&format!("{query:?} is not exp=SECONDS, the expiry in whole seconds since 1970"))),
    }
}

async fn lookup(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Result<Response> {
    let until = blocking(move || shared.revoked.until(&token)).await?;
    Ok(Json(json!({ "revoked": until.is_some(), "until": until })).into_response())
}

async fn reinstate(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Result<StatusCode> {
    let was_revoked = blocking(move || shared.revoked.reinstate(&token)).await?;
    Ok(if was_revoked { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

/// The figures of both filters, for Prometheus.
async fn metrics_page(State(shared): State<Arc<Shared>>) -> String {
    let Metrics { recorder, revoked, seen } = &shared.metrics;
    metrics::with_local_recorder(recorder, || {
        revoked.record(|| shared.revoked.stats());
        seen.record(|| shared.seen.filter.stats());
    });
    recorder.handle().render()
}

async fn administrators_only(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Result<Response> {
    if let Some(wanted) = &shared.options.admin_token {
        // In constant time, so that the time does not reveal how much of the token was right.
        if !bool::from(bearer(request.headers())?.as_bytes().ct_eq(wanted.as_bytes())) {
            let why = "this is for administrators; send `Authorization: Bearer` with their token";
            return Err(unauthorized(why, "Bearer").into());
        }
    }
    Ok(next.run(request).await)
}

/// A change waits for the disk, so it has a thread of its own. It goes on even if the client leaves.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(act).await;
    Ok(done.map_err(anyhow::Error::from).flatten().map_err(store_failed)?)
}

/// An answer other than success: a JSON body with `error`, which says what was wrong and what would be right.
fn say(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

fn malformed(why: &str) -> Response {
    say(StatusCode::BAD_REQUEST, why)
}

fn unauthorized(why: &str, challenge: &'static str) -> Response {
    let mut response = say(StatusCode::UNAUTHORIZED, why);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn store_failed(error: anyhow::Error) -> Response {
    eprintln!("error: {error:#}");
    say(StatusCode::SERVICE_UNAVAILABLE, "the store of revoked tokens has failed")
}
