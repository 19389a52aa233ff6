//! A node as a process: the HTTP servers in front of it, until SIGTERM or ctrl-c.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use fleet::Node;
use fleet::http::{Service, administrators, router};
use hyper_util::rt::TokioTimer;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::arguments::Arguments;

/// How long to wait at the end for running requests.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) async fn run(arguments: &Arguments) -> Result<(), String> {
    let settings = arguments.settings()?;
    let listener = bind(arguments.listen)?;
    let admin_listener = arguments.admin_listen.map(bind).transpose()?;
    let tls = match (&arguments.tls_certificate, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            // An error only if there is one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let config = RustlsConfig::from_pem_file(certificate, key).await;
            Some(config.map_err(|error| format!("can't use the certificate and its key: {error}"))?)
        }
        _ => None,
    };
    let service = Service::new(Node::start(settings).await?, arguments.admin_tokens()?)?;
    let handle = Handle::new();
    // Before the address is printed: a process that reads it may send a signal at once.
    let signals = Signals::new().map_err(|error| format!("can't catch signals: {error}"))?;
    tokio::spawn(signals.obey(arguments.clone(), Arc::clone(&service), tls.clone(), handle.clone()));

    let (routes, admin_routes) = (router(Arc::clone(&service)), administrators(service));
    let served = match admin_listener {
        None => serve(arguments, listener, tls, routes.merge(admin_routes), handle).await,
        Some(admin_listener) => {
            let (tls_too, handle_too) = (tls.clone(), handle.clone());
            let both = tokio::try_join!(
                serve(arguments, listener, tls, routes, handle),
                serve(arguments, admin_listener, tls_too, admin_routes, handle_too),
            );
            both.map(drop)
        }
    };
    served.map_err(|error| error.to_string())
}

fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| format!("can't listen on {address}: {error}"))
}

async fn serve(
    arguments: &Arguments,
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    routes: Router,
    handle: Handle<SocketAddr>,
) -> io::Result<()> {
    println!("listening on {}://{}", if tls.is_some() { "https" } else { "http" }, listener.local_addr()?);
    io::stdout().flush()?;
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    let mut server = axum_server::from_tcp(listener)?.handle(handle);
    // The time counts from the end of the last request, too.
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(arguments.idle);
    // Small answers must not wait for the client's acknowledgements.
    let plain = NoDelayAcceptor::new();
    // With HTTP/2 beside it, there would be no limit for the first byte of a connection. (`acceptor` forgets this.)
    match tls {
        Some(tls) => server.acceptor(RustlsAcceptor::new(tls).acceptor(plain)).http1_only().serve(routes).await,
        None => server.acceptor(plain).http1_only().serve(routes).await,
    }
}

/// SIGTERM and ctrl-c end the node, SIGHUP reads the files again.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn obey(
        mut self,
        arguments: Arguments,
        service: Arc<Service>,
        tls: Option<RustlsConfig>,
        handle: Handle<SocketAddr>,
    ) {
        while !self.is_end().await {
            reload(&arguments, &service, tls.as_ref()).await;
        }
        tracing::info!("ending: /healthz says so, and requests are taken for {:?} more", arguments.drain);
        service.end();
        // A second signal ends it sooner.
        _ = timeout(arguments.drain, async { while !self.is_end().await {} }).await;
        handle.graceful_shutdown(Some(GRACE));
    }

    /// Waits for a signal.
    async fn is_end(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.interrupt.recv() => true,
            _ = self.hang_up.recv() => false,
        }
    }
}

async fn reload(arguments: &Arguments, service: &Service, tls: Option<&RustlsConfig>) {
    match arguments.admin_tokens() {
        Ok(tokens) => service.set_tokens(tokens),
        Err(error) => tracing::error!("the administrators' tokens stay as they were: {error}"),
    }
    if let (Some(tls), Some(certificate), Some(key)) = (tls, &arguments.tls_certificate, &arguments.tls_key)
        && let Err(error) = tls.reload_from_pem_file(certificate, key).await
    {
        tracing::error!("the certificate stays as it was: {error}");
    }
    tracing::info!("files were read again");
}
