//! A service that rejects revoked tokens: an axum server with a node of the fleet in it.
//!
//! ```sh
//! etcd --data-dir "$(mktemp -d)" &
//! cargo run -p concurrent-cuckoo-fleet --bin fleet -- found --fleet orders --longest-lifetime 3600
//! cargo run --release -p concurrent-cuckoo-fleet --example embed -- 127.0.0.1:4001 &
//! cargo run --release -p concurrent-cuckoo-fleet --example embed -- 127.0.0.1:4002 &
//! curl -i -H 'Authorization: Bearer alice' localhost:4002/orders      # 200
//! curl -i -H 'Authorization: Bearer alice' -X POST localhost:4001/log-out
//! curl -i -H 'Authorization: Bearer alice' localhost:4002/orders      # 401
//! ```

use std::env;
use std::error::Error;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use fleet::http::{Refusal, bearer};
use fleet::{Clock, Node, Settings};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The node logs each change of its state. Without the last call, a full disk would make it panic.
    tracing_subscriber::fmt().with_writer(std::io::stderr).log_internal_errors(false).init();
    let listen = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4001".into());
    let etcd = env::var("FLEET_ETCD").unwrap_or_else(|_| "http://127.0.0.1:2379".into());
    let settings = Settings { fleet: "orders".into(), ..Settings::new(&etcd) };
    let node = Arc::new(Node::new(settings, Clock::default())?);
    let routes = Router::new()
        .route("/orders", get(async || Json(["a book", "a lamp"])))
        .route("/log-out", post(log_out))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&node), not_revoked))
        .route("/ready", get(ready))
        .with_state(Arc::clone(&node));
    let listener = TcpListener::bind(listen).await?;
    // Both in this task: whichever ends, the process ends with it.
    tokio::select! {
        served = axum::serve(listener, routes) => Ok(served?),
        never = node.run() => match never {},
    }
}

/// Lets a request pass if its token is not revoked. A real service checks the token's signature and expiry first.
async fn not_revoked(State(node): State<Arc<Node>>, request: Request, next: Next) -> Result<Response, Refusal> {
    // From memory, unless the token may be revoked or the node may lack something. A node that can't tell gives an error:
    // the request must not pass then.
    if node.is_revoked(bearer(request.headers())?).await? {
        return Err(Refusal::Revoked);
    }
    Ok(next.run(request).await)
}

/// When this is answered, no server of the fleet accepts the token any more, after 2 seconds at the latest.
async fn log_out(State(node): State<Arc<Node>>, headers: HeaderMap) -> Result<(), Refusal> {
    node.revoke(bearer(&headers)?, None).await?;
    Ok(())
}

/// For the load balancer: whether this server can answer.
async fn ready(State(node): State<Arc<Node>>) -> StatusCode {
    if node.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
