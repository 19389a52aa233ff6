//! A node as a process: the HTTP server in front of it, until SIGTERM or ctrl-c.

use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use fleet::node::{Engine, Node};
use hyper_util::rt::TokioTimer;
use tokens::signal::Signal;

use super::arguments::Arguments;

/// How long to wait at the end for running requests.
const GRACE: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

pub(crate) async fn run(arguments: &Arguments, engine: Arc<dyn Engine>) -> Result<(), String> {
    let settings = arguments.settings()?;
    let listener = TcpListener::bind(arguments.listen)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| format!("can't listen on {}: {error}", arguments.listen))?;
    let tls = match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            // An error only if there is one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let config = RustlsConfig::from_pem_file(certificate, key).await;
            Some(config.map_err(|error| format!("can't use the certificate and its key: {error}"))?)
        }
        _ => None,
    };
    let node = Arc::new(Node::start_without(settings, engine, arguments.left_out()).await?);
    let served = serve(arguments, Arc::clone(&node), listener, tls).await;
    node.end().await;
    served.map_err(|error| error.to_string())
}

async fn serve(
    arguments: &Arguments,
    node: Arc<Node>,
    listener: TcpListener,
    tls: Option<RustlsConfig>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if arguments.admin_token.is_none() {
        tracing::warn!(%address, "there is no admin token, so anyone who reaches the node may revoke and restore tokens");
    }
    let is_ending = Arc::new(AtomicBool::new(false));
    let router = fleet::http::router(node, arguments.admin_token.clone(), Arc::clone(&is_ending)).into_make_service();
    // Before the address is printed: a process that reads it may send the signal at once.
    let mut signal = Signal::new()?;
    println!("listening on {}://{address}", if tls.is_some() { "https" } else { "http" });
    io::stdout().flush()?;

    let handle = Handle::new();
    let ending = handle.clone();
    tokio::spawn(async move {
        signal.wait().await;
        tracing::info!("ending: no more requests are taken");
        is_ending.store(true, Ordering::Relaxed);
        ending.graceful_shutdown(Some(GRACE));
    });
    let mut server = axum_server::from_tcp(listener)?.handle(handle);
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    // Small answers must not wait for the client's acknowledgements.
    let plain = NoDelayAcceptor::new();
    match tls {
        Some(tls) => server.acceptor(RustlsAcceptor::new(tls).acceptor(plain)).serve(router).await,
        None => server.acceptor(plain).serve(router).await,
    }
}
