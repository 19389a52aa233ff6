//! A node as a process: its threads, and the HTTP server in front of it, until SIGTERM or ctrl-c.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::serve::ListenerExt;
use tokens::signal::Signal;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::arguments::Arguments;
use super::page::Page;
use super::routes::{self, Shared};
use super::{Engine, Node, Started};

/// How long to wait at the end for running requests.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &Arguments, engine: Arc<dyn Engine>) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| format!("can't start threads: {error}"))?;
    let listener = runtime
        .block_on(TcpListener::bind(arguments.listen))
        .map_err(|error| format!("can't listen on {}: {error}", arguments.listen))?;
    let started = Node::start(arguments.settings()?, engine, arguments.left_out())?;
    runtime.block_on(serve(arguments, &started, listener)).map_err(|error| error.to_string())
}

async fn serve(arguments: &Arguments, started: &Started, listener: TcpListener) -> io::Result<()> {
    let address = listener.local_addr()?;
    if arguments.admin_token.is_none() {
        eprintln!("warning: there is no admin token, so anyone who reaches {address} may revoke and restore tokens");
    }
    let shared = Arc::new(Shared {
        node: Arc::clone(&started.node),
        admin_token: arguments.admin_token.clone(),
        page: Page::new(),
        is_ending: AtomicBool::new(false),
    });
    // Before the address is printed: a process that reads it may send the signal at once.
    let mut signal = Signal::new()?;
    println!("listening on http://{address}");
    io::stdout().flush()?;

    let (stop, mut stopped) = watch::channel(());
    let listener = listener.tap_io(|stream| {
        // Small answers must not wait for the client's acknowledgements.
        let _ = stream.set_nodelay(true);
    });
    let serving = axum::serve(listener, routes::router(Arc::clone(&shared)))
        .with_graceful_shutdown(async move { drop(stopped.changed().await) });
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        () = signal.wait() => {}
        ended = &mut serving => return ended.unwrap_or_else(|error| Err(error.into())),
    }
    eprintln!("ending: no more requests are taken");
    shared.is_ending.store(true, Ordering::Relaxed);
    drop(stop);
    if tokio::time::timeout(GRACE, serving).await.is_err() {
        eprintln!("warning: some requests were not finished within {GRACE:?}, and are cut off");
    }
    Ok(())
}
