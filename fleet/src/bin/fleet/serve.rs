//! A node as a process: the HTTP servers in front of it, until SIGTERM or ctrl-c.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use fleet::Node;
use fleet::http::{Service, administrators, router};
use hyper_util::rt::TokioTimer;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::arguments::Arguments;

/// How long to wait at the end for running requests.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until a signal, or until the node can't go on.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), String> {
    let settings = arguments.settings()?;
    let listener = bind(arguments.listen)?;
    let admin_listener = arguments.admin_listen.map(bind).transpose()?;
    // The servers start at once, so that a supervisor finds the process alive while the node still looks for etcd.
    let service = Service::new(Node::begin(settings)?, arguments.admin_tokens()?)?;
    let handle = Handle::new();
    // Before the address is printed: a process that reads it may send a signal at once.
    let signals = Signals::new().map_err(|error| format!("can't catch signals: {error}"))?;
    let (routes, admin_routes) = (router(Arc::clone(&service)), administrators(Arc::clone(&service)));
    let serve_all = async {
        let served = match admin_listener {
            None => serve(arguments, listener, routes.merge(admin_routes), &handle).await,
            Some(admin_listener) => {
                let one = serve(arguments, listener, routes, &handle);
                let other = serve(arguments, admin_listener, admin_routes, &handle);
                tokio::try_join!(one, other).map(drop)
            }
        };
        served.map_err(|error| error.to_string())
    };
    let end_if_refused = async {
        match service.node().joined().await {
            Ok(()) => std::future::pending().await,
            Err(why) => why,
        }
    };
    // All in this one task: whichever ends, the process ends with it.
    tokio::select! {
        served = serve_all => served,
        why = end_if_refused => Err(why),
        () = service.node().failed() => Err("a task of the node has ended".into()),
        () = signals.obey(arguments, &service, &handle) => Err("the signals have ended".into()),
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| format!("can't listen on {address}: {error}"))
}

async fn serve(
    arguments: &Arguments,
    listener: TcpListener,
    routes: Router,
    handle: &Handle<SocketAddr>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    // Whether anybody reads it does not matter.
    _ = writeln!(io::stdout(), "listening on http://{address}").and_then(|()| io::stdout().flush());
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    let mut server = axum_server::from_tcp(listener)?.handle(handle.clone());
    // The time counts from the end of the last request, too.
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(arguments.idle);
    // Small answers must not wait for the client's acknowledgements. With HTTP/2 beside HTTP/1, there would be no limit for
    // the first byte of a connection. (`acceptor` forgets this, so it comes first.)
    server.acceptor(NoDelayAcceptor::new()).http1_only().serve(routes).await
}

/// SIGTERM and ctrl-c end the node.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn obey(mut self, arguments: &Arguments, service: &Service, handle: &Handle<SocketAddr>) {
        self.next().await;
        tracing::info!("ending: /healthz says so, and requests are taken for {:?} more", arguments.drain);
        service.end();
        // A second signal ends it sooner.
        _ = timeout(arguments.drain, self.next()).await;
        handle.graceful_shutdown(Some(GRACE));
        // The servers end now.
        std::future::pending().await
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
