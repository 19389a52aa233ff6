//! The HTTP routes of a node. [`router`] has those for services and for load balancers, and [`administrators`] those that
//! change the set.

mod answers;
mod expiry;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use serde_json::json;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};

pub use self::answers::Refusal;
pub use self::token::bearer;
use crate::error::NodeError;
use crate::node::{Node, Revocation};
use crate::shared::State as Ready;

/// The most bytes of a body: a token and an expiry.
const LONGEST_BODY: usize = 16 << 10;

/// How long a client may take between two parts of a body.
const BODY: Duration = Duration::from_secs(5);

/// What the routes share.
pub struct Service {
    node: Node,
    /// What administrators send. Without one, everybody may revoke.
    tokens: Vec<String>,
    is_ending: AtomicBool,
    recorder: PrometheusRecorder,
}

type Answered = Result<Response, Refusal>;

impl Service {
    /// The service of this node. Administrators have one of these tokens; if there is none, everybody may change the set.
    ///
    /// # Errors
    /// None but for a mistake in this crate.
    pub fn new(node: Node, tokens: Vec<String>) -> Result<Arc<Self>, String> {
        let buckets = [1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &buckets);
        let recorder = builder.map_err(|error| error.to_string())?.build_recorder();
        metrics::with_local_recorder(&recorder, || {
            describe_counter!("fleet_requests_total", "requests to /protected, by outcome");
            describe_histogram!("fleet_request_seconds", "how long requests to /protected took");
            describe_counter!("fleet_changes_requested_total", "requests to change the set, by change and result");
            describe_histogram!("fleet_change_seconds", "how long requests to change the set took");
            // So that a rate can be told from the first one on.
            for outcome in ["accepted", "revoked", "malformed", "unavailable"] {
                counter!("fleet_requests_total", "outcome" => outcome).absolute(0);
            }
        });
        Ok(Arc::new(Self { node, tokens, is_ending: AtomicBool::new(false), recorder }))
    }

    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// From now on `/healthz` says that the node is not ready, so that no new requests are sent to it.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }
}

/// `GET /protected`, `/healthz`, `/livez` and `/metrics`.
pub fn router(service: Arc<Service>) -> Router {
    // They read no body, and ask etcd for some seconds at most.
    Router::new()
        .route("/protected", get(protected))
        .route("/metrics", get(page))
        .route("/healthz", get(health))
        .route("/livez", get(alive))
        .with_state(service)
}

/// `PUT`, `POST` and `DELETE /revoked`, with the token in the body.
pub fn administrators(service: Arc<Service>) -> Router {
    // A change takes `patience` at most, and a little for the answer.
    let longest = service.node.settings().patience + Duration::from_secs(3);
    Router::new()
        .route("/revoked", put(revoke).post(revoked).delete(restore))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&service), administrators_only))
        .layer(RequestBodyLimitLayer::new(LONGEST_BODY))
        .layer(RequestBodyTimeoutLayer::new(BODY))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, longest))
        .with_state(service)
}

async fn protected(State(service): State<Arc<Service>>, headers: HeaderMap) -> Answered {
    let began = Instant::now();
    let answer = admit(&service, &headers).await;
    let outcome = match &answer {
        Ok(()) => "accepted",
        Err(Refusal::Revoked) => "revoked",
        Err(Refusal::Node(_)) => "unavailable",
        Err(_) => "malformed",
    };
    metrics::with_local_recorder(&service.recorder, || {
        counter!("fleet_requests_total", "outcome" => outcome).increment(1);
        histogram!("fleet_request_seconds").record(began.elapsed());
    });
    // The protected content would be here.
    answer.map(|()| Json(json!({ "ok": true })).into_response())
}

/// Whether the request may pass. A real service would first check that the token is genuine and has not expired.
async fn admit(service: &Service, headers: &HeaderMap) -> Result<(), Refusal> {
    let token = bearer(headers)?;
    if service.node.is_revoked(token).await? { Err(Refusal::Revoked) } else { Ok(()) }
}

/// What an administrator asks for.
struct Asked {
    token: String,
    exp: Option<u64>,
    from: Option<SocketAddr>,
    began: Instant,
}

impl Asked {
    /// The token and its expiry are in the body, which no proxy logs.
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        let asked = expiry::body(body)?;
        token::check(&asked.token)?;
        let exp = asked.exp.map(|exp| expiry::numeric_date(&exp)).transpose()?;
        Ok(Self { token: asked.token, exp, from: None, began: Instant::now() })
    }

    /// One line, and the figures, for each change: what came of it, and until when the token is revoked.
    fn audit(&self, service: &Service, change: &'static str, done: Result<(&'static str, Option<u64>), &NodeError>) {
        let (id, from) = (service.node.token_id(&self.token), self.from.map(|from| from.to_string()));
        let error = done.err().map(ToString::to_string);
        let (result, until) = done.unwrap_or(("error", None));
        metrics::with_local_recorder(&service.recorder, || {
            counter!("fleet_changes_requested_total", "change" => change, "result" => result).increment(1);
            histogram!("fleet_change_seconds").record(self.began.elapsed());
        });
        tracing::info!(target: "audit", change, id, result, until, from, error, "change");
    }
}

impl FromRequest<Arc<Service>> for Asked {
    type Rejection = Response;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, Response> {
        let from = request.extensions().get().map(|ConnectInfo(from)| *from);
        let body = Bytes::from_request(request, service).await.map_err(IntoResponse::into_response)?;
        let asked = Self::read(&body).map_err(IntoResponse::into_response)?;
        Ok(Self { from, ..asked })
    }
}

async fn revoke(State(service): State<Arc<Service>>, asked: Asked) -> Answered {
    let (node, settings) = (&service.node, service.node.settings());
    let until = expiry::until(&asked.token, asked.exp, node.time(), settings.longest_lifetime, settings.leeway)?;
    let done = node.revoke(&asked.token, until).await;
    let result = done.as_ref().map(|done| match done {
        Revocation { until: None, .. } => ("expired", None),
        Revocation { is_new: true, until, .. } => ("new", *until),
        Revocation { until, .. } => ("unchanged", *until),
    });
    asked.audit(&service, "revoke", result);
    let (status, body) = match done? {
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

async fn revoked(State(service): State<Arc<Service>>, asked: Asked) -> Answered {
    let answer = match service.node.revoked_until(&asked.token).await? {
        Some(until) => json!({ "revoked": true, "until": until }),
        None => json!({ "revoked": false }),
    };
    Ok(Json(answer).into_response())
}

async fn restore(State(service): State<Arc<Service>>, asked: Asked) -> Answered {
    let done = service.node.restore(&asked.token).await;
    let result = done.as_ref().map(|was_revoked| (if *was_revoked { "new" } else { "unchanged" }, None));
    asked.audit(&service, "restore", result);
    if done? { Ok(StatusCode::NO_CONTENT.into_response()) } else { Err(Refusal::Missing("the token is not revoked")) }
}

/// A process whose node can't go on is not alive: its supervisor restarts it.
async fn alive(State(service): State<Arc<Service>>) -> (StatusCode, &'static str) {
    if service.node.has_failed() {
        return (StatusCode::SERVICE_UNAVAILABLE, "a task of the node has ended");
    }
    (StatusCode::OK, "alive")
}

async fn health(State(service): State<Arc<Service>>) -> Response {
    let health = service.node.health();
    let is_ending = service.is_ending.load(Ordering::Relaxed);
    let is_ready = service.node.is_ready() && !is_ending;
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!(health);
    body["ending"] = is_ending.into();
    (status, Json(body)).into_response()
}

/// A page for Prometheus.
async fn page(State(service): State<Arc<Service>>) -> Response {
    metrics::with_local_recorder(&service.recorder, || record(&service.node));
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (content_type, service.recorder.handle().render()).into_response()
}

fn record(node: &Node) {
    let state = node.health().state;
    describe_gauge!("fleet_state", "1 for the state of the node, 0 for the others");
    for of in Ready::ALL {
        let name = json!(of).as_str().unwrap_or_default().to_owned();
        gauge!("fleet_state", "state" => name).set(f64::from(u8::from(of == state)));
    }
    for (name, meaning, value) in node.figures() {
        describe_gauge!(name, meaning);
        gauge!(name).set(value);
    }
    for (name, meaning, value) in node.counts() {
        describe_counter!(name, meaning);
        counter!(name).absolute(value);
    }
}

async fn administrators_only(State(service): State<Arc<Service>>, request: Request, next: Next) -> Answered {
    token::is_of_administrator(request.headers(), &service.tokens)?;
    Ok(next.run(request).await)
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Service").field(&self.node).finish()
    }
}
