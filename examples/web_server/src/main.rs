//! A server that rejects revoked tokens until they expire, requests that come again, and clients that send too many. `README.md` has examples.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::Context;
use clap::Parser;
use tokio::net::TcpListener;
use web_server::server::{Shared, router};
use web_server::{Options, limited::Clients, revoked::Revoked, seen::Seen};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let start = Instant::now();
    // Tokens age by a clock that goes on while the server is off.
    let since_1970 = Arc::new(|| UNIX_EPOCH.elapsed().unwrap_or_default().as_secs());
    let (revoked, seen) = (Revoked::open(&options, since_1970)?, Seen::new(&options)?);
    eprintln!("loaded {} revoked tokens in {:.1?}", revoked.stats().len, start.elapsed());
    let clients = Clients::new(&options)?;
    let shared = Arc::new(Shared { revoked, seen, clients });

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.context("cannot listen")?;
    println!("listening on http://{}", listener.local_addr()?);
    let router = router(&shared);
    thread::spawn(move || {
        loop {
            if let Err(error) = shared.revoked.forget_expired() {
                eprintln!("error: expired tokens stay in the store: {error:#}");
            }
            thread::sleep(Duration::from_secs(3600));
        }
    });
    Ok(axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await?)
}
