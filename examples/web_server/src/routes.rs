//! CONCURRENT: the routes, and the state that all requests share.
//!
//! A filter answers in nanoseconds and never waits. So the thread of the request asks it directly.

use std::io::{BufRead, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use concurrent_cuckoo_filter::Stats;
use metrics::{Counter, Gauge, counter, gauge};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use serde_json::json;
use tokens::{expiry, token};
use tokio::sync::Semaphore;

use crate::bulk::{Job, Jobs, Limits};
use crate::outcomes::Outcomes;
use crate::refusal::Refusal;
use crate::request_id;
use crate::start::Filters;
use crate::store::{self, Store};
use crate::writer::{Orders, Revocation, Unavailable};

/// The state that all requests share.
pub(crate) struct Shared {
    pub(crate) filters: Filters,
    pub(crate) store: Arc<Store>,
    pub(crate) orders: Orders,
    pub(crate) no_filter: bool,
    pub(crate) admin_token: Option<String>,
    pub(crate) bulk_limit: usize,
    pub(crate) limits: Limits,
    /// How many seconds a generation has.
    pub(crate) period: u64,
    pub(crate) page: MetricsPage,
    /// How many answers "absent" are not yet recorded in the filter's statistics.
    negatives: AtomicU64,
    jobs: Jobs,
    /// Allows one bulk load at a time, because each has its whole body in memory.
    bulk: Arc<Semaphore>,
    /// Set when the server is ending: bulk loads stop at the next chunk.
    pub(crate) stopping: AtomicBool,
}

/// What the metrics page needs.
pub(crate) struct MetricsPage {
    handle: PrometheusHandle,
    outcomes: Outcomes,
    live: Gauge,
    unswept: Gauge,
    unswept_ticks: Gauge,
    questions: Counter,
    tokens: Gauge,
    forgotten: Counter,
}

impl MetricsPage {
    /// Call this after the recorder is installed.
    pub(crate) fn new(handle: PrometheusHandle) -> Self {
        metrics::describe_gauge!("web_server_revoked_live", "tokens in the filter that have not expired");
        metrics::describe_gauge!("web_server_revoked_unswept", "expired tokens that still take up room in the filter");
        metrics::describe_gauge!(
            "web_server_revoked_unswept_ticks",
            "how many ticks the sweep of the filter is behind, 0 if there is nothing to sweep"
        );
        metrics::describe_counter!(
            "web_server_store_questions_total",
            "how often the exact store was asked for a token"
        );
        metrics::describe_gauge!(
            "web_server_store_tokens",
            "tokens in the exact store, including expired ones that it has not yet forgotten"
        );
        metrics::describe_counter!(
            "web_server_store_forgotten_total",
            "expired tokens that the exact store has forgotten"
        );
        Self {
            handle,
            outcomes: Outcomes::new(),
            live: gauge!("web_server_revoked_live"),
            unswept: gauge!("web_server_revoked_unswept"),
            unswept_ticks: gauge!("web_server_revoked_unswept_ticks"),
            questions: counter!("web_server_store_questions_total"),
            tokens: gauge!("web_server_store_tokens"),
            forgotten: counter!("web_server_store_forgotten_total"),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        filters: Filters,
        store: Arc<Store>,
        orders: Orders,
        page: MetricsPage,
        arguments: &crate::arguments::Arguments,
    ) -> Self {
        let limits = Limits { lifetimes: arguments.lifetimes(), wall_clock: filters.wall_clock.clone() };
        Self {
            filters,
            store,
            orders,
            no_filter: arguments.no_filter,
            admin_token: arguments.admin_token.clone(),
            bulk_limit: arguments.bulk_limit(),
            limits,
            period: arguments.period(),
            page,
            negatives: AtomicU64::new(0),
            jobs: Jobs::default(),
            bulk: Arc::new(Semaphore::new(1)),
            stopping: AtomicBool::new(false),
        }
    }

    /// Until when the token is revoked, if it is. If the filter says "absent", that is certain. If it says "present",
    /// the store confirms or denies it.
    async fn revoked_until(&self, token: &str) -> store::Result<Option<u64>> {
        let (now, revoked) = (self.filters.wall_clock.now(), &self.filters.revoked);
        // A filter that was told a later time may have forgotten tokens that have not expired.
        let filtered = !self.no_filter && !revoked.is_ahead_of(now);
        if filtered && !revoked.contains(token) {
            self.negatives.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let until = self.store.revoked_until(token).await?;
        if filtered && until.is_none() {
            // Or it is being revoked at this moment, and no client has been told yet.
            revoked.filter.record_false_positives(1);
        }
        // To the second. The filter only knows the tick.
        Ok(until.filter(|until| *until > now))
    }

    fn stats(&self) -> Figures {
        let revoked = &self.filters.revoked.filter;
        revoked.record_negatives(self.negatives.swap(0, Ordering::Relaxed));
        // It reads the whole filter, which takes some milliseconds for 10 MB. So other threads take over this
        // thread's other requests.
        let revoked_live = tokio::task::block_in_place(|| revoked.live_len());
        Figures { revoked: revoked.stats(), revoked_live, request_ids: self.filters.ids.stats() }
    }
}

/// The figures of the filters.
struct Figures {
    revoked: Stats,
    revoked_live: usize,
    request_ids: Stats,
}

type Answer = Result<Response, Refusal>;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let admin = Router::new()
        // `bulk` only with POST. With the other methods, it is a token like any other.
        .route("/revoked/{token}", put(revoke).get(revoked).delete(reinstate).post(bulk))
        .route("/jobs/{id}", get(job))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), administrators_only));
    Router::new()
        .route("/protected", get(protected))
        .route("/stats", get(stats))
        .route("/metrics", get(page))
        .route("/healthz", get(health))
        .merge(admin)
        .with_state(shared)
}

async fn protected(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Answer {
    let answer = admit(&shared, &headers).await;
    let outcomes = &shared.page.outcomes;
    match &answer {
        Ok(()) => &outcomes.accepted,
        Err(Refusal::Revoked) => &outcomes.revoked,
        Err(Refusal::Repeated) => &outcomes.repeated,
        Err(Refusal::IdsFull { .. } | Refusal::Unavailable(_)) => &outcomes.unavailable,
        Err(_) => &outcomes.malformed,
    }
    .increment(1);
    // A real server would serve the protected resource here.
    answer.map(|()| Json(json!({ "ok": true })).into_response())
}

/// Whether the request may pass. A real server would first check that the token is genuine and has not expired.
async fn admit(shared: &Shared, headers: &HeaderMap) -> Result<(), Refusal> {
    let token = token::bearer(headers)?;
    let id = request_id::of(headers)?;
    if shared.revoked_until(token).await?.is_some() {
        return Err(Refusal::Revoked);
    }
    // The last check, so that a request that was refused for another reason can come again. Of all requests with one
    // identifier, also at the same time, one passes.
    match id.map(|id| shared.filters.ids.insert_if_absent(id)) {
        None | Some(Ok(true)) => Ok(()),
        Some(Ok(false)) => Err(Refusal::Repeated),
        Some(Err(error)) => Err(Refusal::IdsFull { error, period: shared.period }),
    }
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Answer {
    token::check(&token).map_err(Refusal::Malformed)?;
    let told = expiry::of_request(query.as_deref(), body).await.map_err(Refusal::Malformed)?;
    let until = shared.limits.until(&token, told)?;
    let (status, answer) = match shared.orders.revoke(token, until).await?.map_err(Refusal::Full)? {
        Revocation::New { until } => (StatusCode::CREATED, json!({ "revoked": true, "until": until })),
        Revocation::Known { until } => (StatusCode::OK, json!({ "revoked": true, "until": until })),
        Revocation::Expired { until } => {
            let why = "the token has expired, so there is nothing to remember";
            (StatusCode::OK, json!({ "revoked": false, "until": until, "why": why }))
        }
    };
    Ok((status, Json(answer)).into_response())
}

async fn revoked(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answer {
    token::check(&token).map_err(Refusal::Malformed)?;
    let answer = match shared.revoked_until(&token).await? {
        Some(until) => json!({ "revoked": true, "until": until }),
        None => json!({ "revoked": false }),
    };
    Ok(Json(answer).into_response())
}

async fn reinstate(State(shared): State<Arc<Shared>>, Path(token): Path<String>) -> Answer {
    token::check(&token).map_err(Refusal::Malformed)?;
    match shared.orders.reinstate(token).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Refusal::Missing("the token is not revoked")),
    }
}

async fn bulk(State(shared): State<Arc<Shared>>, Path(name): Path<String>, body: Body) -> Answer {
    if name != "bulk" {
        return Err(Refusal::Missing("POST is for /revoked/bulk; to revoke one token, PUT /revoked/TOKEN"));
    }
    let permit = Arc::clone(&shared.bulk).try_acquire_owned().map_err(|_| Refusal::Busy)?;
    let limit = shared.bulk_limit;
    let body: Bytes = axum::body::to_bytes(body, limit).await.map_err(|error| {
        // Either the body was too long, or the client is gone and reads no answer.
        let _ = error;
        Refusal::TooLarge { limit }
    })?;
    let lines =
        body.iter().filter(|&&byte| byte == b'\n').count() + usize::from(!body.ends_with(b"\n") && !body.is_empty());
    let job = Arc::new(Job::new(lines as u64));
    let id = shared.jobs.add(&job);
    tokio::task::spawn_blocking(move || {
        job.run(Cursor::new(body).lines(), &shared.limits, &shared.orders, &shared.stopping, |_| ());
        drop(permit);
    });
    let location = format!("/jobs/{id}");
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(json!({ "job": id, "lines": lines })))
        .into_response())
}

async fn job(State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Answer {
    let job = shared.jobs.get(id).ok_or(Refusal::Missing("there is no such job, or it was long ago"))?;
    Ok(Json(job.progress()).into_response())
}

async fn stats(State(shared): State<Arc<Shared>>) -> Answer {
    #[derive(Serialize)]
    struct Body {
        revoked: Stats,
        /// Tokens that have not expired.
        revoked_live: usize,
        observed_false_positive_rate: Option<f64>,
        request_ids: Stats,
        /// In seconds since 1970.
        request_ids_known_since: u64,
        store_tokens: u64,
        store_forgotten: u64,
        store_questions: u64,
    }
    let Figures { revoked, revoked_live, request_ids } = shared.stats();
    let body = Body {
        observed_false_positive_rate: revoked.observed_false_positive_rate(),
        revoked,
        revoked_live,
        request_ids,
        request_ids_known_since: shared.filters.ids_known_since,
        store_tokens: shared.store.len()?,
        store_forgotten: shared.store.forgotten(),
        store_questions: shared.store.questions(),
    };
    Ok(Json(body).into_response())
}

async fn page(State(shared): State<Arc<Shared>>) -> Answer {
    let Figures { revoked, revoked_live, request_ids } = shared.stats();
    revoked.publish("revoked");
    request_ids.publish("request_ids");
    shared.page.live.set(revoked_live as f64);
    shared.page.unswept.set(revoked.len.saturating_sub(revoked_live) as f64);
    shared.page.unswept_ticks.set(shared.filters.revoked.unswept_ticks(&revoked) as f64);
    shared.page.forgotten.absolute(shared.store.forgotten());
    shared.page.questions.absolute(shared.store.questions());
    shared.page.tokens.set(shared.store.len()? as f64);
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((content_type, shared.page.handle.render()).into_response())
}

async fn health(State(shared): State<Arc<Shared>>) -> Answer {
    if shared.stopping.load(Ordering::Relaxed) {
        return Err(Unavailable("the server is ending".into()).into());
    }
    // A store that has failed once answers nothing until the server is restarted.
    shared.store.len()?;
    Ok(Json(json!({ "ok": true })).into_response())
}

async fn administrators_only(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Answer {
    token::is_of_administrator(request.headers(), shared.admin_token.as_deref())?;
    Ok(next.run(request).await)
}
