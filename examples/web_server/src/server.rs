//! The routes, and the two layers in front of the protected one.

use std::future::ready;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response, Result};
use axum::routing::{get, put};
use axum::{Json, Router};
use http::{StatusCode, request::Parts};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use tokens::answers::{self, say};
use tokens::expiry::{self, Lifetimes, Wrong};
use tokens::token::{self, NoToken};

use crate::layer::{Answer, GateLayer, OnFailure};
use crate::options::Options;
use crate::revoked::{Outcome, Revoked};
use crate::seen::Seen;

struct Shared {
    revoked: Arc<Revoked>,
    seen: Arc<Seen>,
    lifetimes: Lifetimes,
    admin_token: Option<String>,
}

/// The server.
pub fn router(options: &Options, revoked: Arc<Revoked>, seen: Arc<Seen>) -> Router {
    let on_failure = |open| if open { OnFailure::Pass } else { OnFailure::Refuse };
    // It does not wait: the filter answers most questions, and the cache of the store most of the others. If your store
    // is on another machine, return a future that waits.
    let ask = {
        let revoked = Arc::clone(&revoked);
        move |token: String| ready(ask_about_token(&revoked, &token))
    };
    let tokens = GateLayer::new(token_of, ask, on_failure(options.tokens_fail_open));
    let ask = {
        let seen = Arc::clone(&seen);
        move |id: String| ready(ask_about_id(&seen, &id))
    };
    let ids = GateLayer::new(id_of, ask, on_failure(options.ids_fail_open));

    let (lifetimes, admin_token) = (options.lifetimes(), options.admin_token.clone());
    let shared = Arc::new(Shared { revoked, seen, lifetimes, admin_token });
    let administration = Router::new()
        .route("/revoked/{token}", put(revoke).get(lookup).delete(reinstate))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), administrators_only));
    Router::new()
        .route("/protected", get(async || Json(json!({ "ok": true }))))
        // The last layer is asked first. So a request that was refused for its token may come again.
        .route_layer(ids)
        .route_layer(tokens)
        .merge(administration)
        .route("/metrics", get(metrics_page))
        .with_state(shared)
}

/// A real server would first check that the token is genuine and has not expired.
fn token_of(request: &Parts) -> ControlFlow<Answer<Body>, String> {
    match token::bearer(&request.headers) {
        Ok(token) => Continue(token.to_owned()),
        Err(error) => Break(Answer::Refuse(no_token(error))),
    }
}

fn ask_about_token(revoked: &Revoked, token: &str) -> Answer<Body> {
    match revoked.until(token) {
        Ok(None) => Answer::Pass,
        Ok(Some(_)) => Answer::Refuse(answers::revoked()),
        Err(error) => Answer::Failed(store_failed(error)),
    }
}

/// A request need not have an identifier.
fn id_of(request: &Parts) -> ControlFlow<Answer<Body>, String> {
    match request.headers.get("x-request-id").map(|id| id.to_str()) {
        None => Break(Answer::Pass),
        Some(Ok(id)) if token::check(id).is_ok() => Continue(id.to_owned()),
        _ => Break(Answer::Refuse(malformed("X-Request-Id must be ASCII, without spaces".into()))),
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
    body: Body,
) -> Result<Response> {
    token::check(&token).map_err(malformed)?;
    let told = expiry::of_request(query.as_deref(), body).await.map_err(malformed)?;
    let until = shared.lifetimes.until(&token, told, shared.revoked.now()).map_err(no_expiry)?;
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
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        shared.revoked.stats().publish("revoked");
        shared.seen.stats().publish("request_ids");
    });
    recorder.handle().render()
}

async fn administrators_only(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Result<Response> {
    token::is_of_administrator(request.headers(), shared.admin_token.as_deref()).map_err(no_token)?;
    Ok(next.run(request).await)
}

/// A change waits for the disk, so it has a thread of its own. It goes on even if the client leaves.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(act).await;
    Ok(done.map_err(anyhow::Error::from).flatten().map_err(store_failed)?)
}

fn malformed(why: String) -> Response {
    say(StatusCode::BAD_REQUEST, &why)
}

fn no_expiry(wrong: Wrong) -> Response {
    let remedy = "check that it is in seconds, or restart the server with a larger --longest-lifetime";
    match wrong {
        Wrong::Malformed(why) => malformed(why),
        Wrong::TooLate { .. } => say(StatusCode::UNPROCESSABLE_ENTITY, &format!("{wrong}; {remedy}")),
    }
}

fn no_token(error: NoToken) -> Response {
    match error {
        NoToken::Unauthorized(why) => answers::unauthorized(why),
        NoToken::Malformed(why) => malformed(why),
    }
}

fn store_failed(error: anyhow::Error) -> Response {
    eprintln!("error: {error:#}");
    say(StatusCode::SERVICE_UNAVAILABLE, "the store of revoked tokens has failed")
}
