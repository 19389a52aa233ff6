//! A service that refuses revoked tokens: an axum server with a node of the fleet in it.
//!
//! ```sh
//! etcd --data-dir "$(mktemp -d)" &
//! export FLEET_KEY=$(cargo run -p concurrent-cuckoo-fleet -- key)
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
use fleet::{Etcd, Node, Settings};
use tokio::net::TcpListener;

/// How long the tokens of this service live, in seconds.
const LIFETIME: u64 = 3600;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The node logs each change of its state.
    // Without the last call, a full disk would make it panic.
    tracing_subscriber::fmt().with_writer(std::io::stderr).log_internal_errors(false).init();
    let listen = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4001".into());
    let etcd = env::var("FLEET_ETCD").unwrap_or_else(|_| "http://127.0.0.1:2379".into());
    let key = env::var("FLEET_KEY").map_err(|_| "set FLEET_KEY: 32 hexadecimal digits, the same on all servers")?;
    let node = Node::start(Settings {
        etcd: Etcd::new(&etcd),
        fleet: "orders".into(),
        longest_lifetime: LIFETIME,
        ..Settings::new(u128::from_str_radix(&key, 16)?.to_be_bytes())
    });
    let node = Arc::new(node.await?);
    let routes = Router::new()
        .route("/orders", get(async || Json(["a book", "a lamp"])))
        .route("/log-out", post(log_out))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&node), not_revoked))
        .route("/ready", get(ready))
        .with_state(node);
    Ok(axum::serve(TcpListener::bind(listen).await?, routes).await?)
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
    node.revoke(bearer(&headers)?, node.time() + LIFETIME).await?;
    Ok(())
}

/// For the load balancer: whether this server can answer.
async fn ready(State(node): State<Arc<Node>>) -> StatusCode {
    if node.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
