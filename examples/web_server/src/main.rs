//! A web server that refuses revoked tokens and repeated requests, with two cuckoo filters that all its threads
//! share.
//!
//! ```text
//! cargo run --release -p web-server
//! curl -X PUT http://127.0.0.1:3000/revoked/some-token?exp=$(($(date +%s) + 3600))
//! curl -i -H 'Authorization: Bearer some-token' http://127.0.0.1:3000/protected
//! ```
//!
//! A revoked token is refused until it expires, and is then forgotten. Most requests have a token that is not
//! revoked. The filter of revoked tokens answers "definitely absent" for these, in nanoseconds. Where it answers
//! "probably present", the server asks the exact store, a database on disk. The filter of request identifiers looks
//! up and adds in one step.
//!
//! - `arguments`: the command line;
//! - `key`: the secret key of the filters' hash;
//! - `store`: the exact list of revoked tokens;
//! - `writer`: the thread that changes store and filter, and keeps them in step;
//! - `snapshot`, `start`: saving and loading the filters, and what happens when a file is unusable;
//! - `revoked`: the filter of revoked tokens, with times instead of ticks;
//! - `wall_clock`, `clock`: the time, and warnings about a clock that goes back or jumps;
//! - `routes`, `request_id`, `refusal`, `bulk`, `outcomes`: HTTP;
//! - `failure`: why the server does not start, or does not end well.
//!
//! `examples/tokens`, which `examples/fleet` uses too, defines what a token is and until when it is refused.

mod arguments;
mod bulk;
mod clock;
mod failure;
mod key;
mod outcomes;
mod refusal;
mod request_id;
mod revoked;
mod routes;
mod snapshot;
mod start;
mod store;
mod wall_clock;
mod writer;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::serve::ListenerExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokens::signal::Signal;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::arguments::Arguments;
use crate::bulk::{End, Job, Progress};
use crate::failure::Failure;
use crate::routes::{MetricsPage, Shared};
use crate::start::Filters;
use crate::store::Store;
use crate::writer::Unavailable;

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    fs::create_dir_all(&arguments.data).map_err(|error| Failure::file("create", &arguments.data, error))?;
    let path = arguments.data.join("revoked.redb");
    let store = Store::open(&path, arguments.store_cache(), arguments.store_delay())
        .map_err(|error| Failure::file("open", &path, error))?;
    let store = Arc::new(store);
    let key = key::read_or_create(&arguments.key_file())?;
    let filters = Filters::start(arguments, key, &store)?;
    let (orders, writer) = writer::start(Arc::clone(&store), Arc::clone(&filters.revoked)).map_err(Failure::System)?;
    let recorder = PrometheusBuilder::new().install_recorder().map_err(|error| Failure::Metrics(error.to_string()))?;
    let shared = Arc::new(Shared::new(filters, store, orders, MetricsPage::new(recorder), arguments));
    if let Some(file) = &arguments.load {
        load(file, &shared)?;
    }
    let runtime = Runtime::new().map_err(Failure::System)?;
    runtime.block_on(serve(arguments, &shared))?;

    // Each revocation that was confirmed to a client is durable already. Those that are still under way end here.
    runtime.block_on(shared.orders.stop());
    if writer.join().is_err() {
        eprintln!("error: the writer has panicked");
    }
    shared.filters.end()?;
    eprintln!("saved; {} revoked tokens", shared.filters.revoked.live_len());
    Ok(())
}

/// Serves until SIGTERM or ctrl-c, and until all requests that are under way at that moment are answered.
async fn serve(arguments: &Arguments, shared: &Arc<Shared>) -> Result<(), Failure> {
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| Failure::Listen(arguments.listen.to_string(), error))?;
    let address = listener.local_addr().map_err(Failure::System)?;
    if shared.admin_token.is_none() {
        eprintln!("warning: there is no admin token, so anyone who reaches {address} may revoke and reinstate tokens");
    }
    // Before the address is printed: anyone who reads it may send the signal at once.
    let mut signal = Signal::new().map_err(Failure::System)?;
    // Only now, because a start that fails must not count as a gap.
    shared.filters.begin()?;
    println!("listening on http://{address}");
    io::stdout().flush().map_err(Failure::System)?;

    let (stop, stopped) = watch::channel(());
    let advancing = tokio::spawn(advance_now_and_then(Arc::clone(shared), arguments.resolution(), stopped.clone()));
    let forgetting = tokio::spawn(forget_now_and_then(Arc::clone(shared), stopped.clone()));
    let saving = arguments
        .snapshot_every()
        .map(|every| tokio::spawn(save_now_and_then(Arc::clone(shared), every, stopped.clone())));

    let listener = listener.tap_io(|stream| {
        // Small answers should not wait for the client's acknowledgements.
        let _ = stream.set_nodelay(true);
    });
    let mut until = stopped.clone();
    let serving = axum::serve(listener, routes::router(Arc::clone(shared)))
        .with_graceful_shutdown(async move { drop(until.changed().await) });
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        () = signal.wait() => {}
        ended = &mut serving => return ended.unwrap_or_else(|error| Err(error.into())).map_err(Failure::System),
    }

    eprintln!("ending: no more requests are taken");
    shared.stopping.store(true, Ordering::Relaxed);
    drop(stop);
    if tokio::time::timeout(arguments.grace(), serving).await.is_err() {
        eprintln!("warning: some requests were not done in {:?}, and are aborted", arguments.grace());
    }
    // So that no two threads write a snapshot. A bulk load needs no wait: it stops at its next chunk.
    let _ = advancing.await;
    let _ = forgetting.await;
    if let Some(saving) = saving {
        let _ = saving.await;
    }
    Ok(())
}

/// Tells the filters the time, at least a thousand times in each tick of the filter of revoked tokens.
///
/// That is because each call sweeps a thousandth of the filter, in some 10 to 50 µs. So expired tokens are removed
/// gradually, all of them within the tick. With few calls, the call that brings the next tick would do the rest at
/// once, in some 90 ms for 100 MB. It never makes more than a hundred calls a second: short ticks are for trials,
/// with filters that one call sweeps.
async fn advance_now_and_then(shared: Arc<Shared>, resolution: u64, mut stopped: watch::Receiver<()>) {
    let (shortest, longest) = (Duration::from_millis(10), Duration::from_millis(250));
    let mut ticks = tokio::time::interval(Duration::from_millis(resolution / 2).clamp(shortest, longest));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
        }
        // The call clears an expired generation of identifiers at once, in some 90 ms for 100 MB.
        let shared = Arc::clone(&shared);
        let _ = tokio::task::spawn_blocking(move || shared.filters.advance()).await;
    }
}

/// Makes the store forget expired tokens, some thousands at a time, so that nobody waits for long.
async fn forget_now_and_then(shared: Arc<Shared>, mut stopped: watch::Receiver<()>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
        }
        let before = shared.filters.revoked.forgettable_before();
        // Look first: an order to the writer is a transaction, which waits for the disk.
        let forgotten = match shared.store.has_expired_before(before) {
            Ok(false) => continue,
            Ok(true) => shared.orders.forget(before).await,
            Err(error) => Err(error.into()),
        };
        match forgotten {
            Ok(tokens) => shared.store.count_forgotten(tokens),
            Err(Unavailable(why)) => {
                eprintln!("error: expired tokens are no longer forgotten: {why}");
                return;
            }
        }
    }
}

async fn save_now_and_then(shared: Arc<Shared>, every: Duration, mut stopped: watch::Receiver<()>) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await; // The first tick comes at once.
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
        }
        let shared = Arc::clone(&shared);
        match tokio::task::spawn_blocking(move || shared.filters.save()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => eprintln!("error: {failure}; trying again in {every:?}"),
            Err(error) => eprintln!("error: {error}; trying again in {every:?}"),
        }
    }
}

/// Revokes the tokens of a file, and prints its progress to standard error.
fn load(file: &Path, shared: &Shared) -> Result<(), Failure> {
    let open = || File::open(file).map(|file| BufReader::with_capacity(1 << 18, file));
    let failed = |error| Failure::file("read", file, error);
    let mut counted = open().map_err(failed)?;
    let (mut lines, mut last) = (0, b'\n');
    // Not line by line: a file without line ends is one line, however long.
    loop {
        let bytes = counted.fill_buf().map_err(failed)?;
        let Some(&end) = bytes.last() else { break };
        last = end;
        lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
        let len = bytes.len();
        counted.consume(len);
    }
    lines += usize::from(last != b'\n');
    let job = Job::new(lines as u64);
    let mut said = 0;
    let say = |progress: &Progress| {
        // Some twenty lines, however long the file is.
        let part = progress.part(20);
        if progress.is_end() || part > said {
            eprintln!("{}: {progress}", file.display());
        }
        said = part;
    };
    match job.run(open().map_err(failed)?.lines(), &shared.limits, &shared.orders, &AtomicBool::new(false), say) {
        End::Finished => Ok(()),
        End::Full(full) => Err(Failure::Load(file.to_owned(), format!("{}; {}", full.error, full.remedy))),
        End::Stopped { error } => Err(Failure::Load(file.to_owned(), error)),
    }
}
