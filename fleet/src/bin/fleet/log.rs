//! The log, on standard error, where writing may fail or block: a disk is full, or the reader of a pipe has stopped or ended.
//! A line is lost then, and nothing else happens. So a thread of its own writes the lines, from a queue of limited length.
//!
//! (What `tracing-subscriber` does by itself: if a line can't be written, it says so with `eprintln!`, which panics because
//! standard error can't be written. The panic ends the task that has logged.)

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How many lines may wait.
const QUEUE: usize = 10_000;

/// How long the end of the process waits for the last lines.
const LAST: Duration = Duration::from_secs(1);

/// Where lines wait to be written. It is its own writer: each event of the log is one call of `write`.
#[derive(Clone)]
struct Queue(SyncSender<Vec<u8>>);

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.0.try_send(line.to_vec()) {
            // A line that has no room is lost.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Ok(line.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Waits for a moment, when it is dropped, until the lines so far are written.
pub(crate) struct Logs {
    queue: SyncSender<Vec<u8>>,
    written: Arc<(Mutex<bool>, Condvar)>,
}

impl Logs {
    /// Writes why the process ends.
    pub(crate) fn error(&self, why: &str) {
        // If there is no room, the status says it.
        _ = self.queue.try_send(format!("error: {why}\n").into_bytes());
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        // An empty line is the last one.
        if self.queue.try_send(Vec::new()).is_ok() {
            let (is_written, told) = &*self.written;
            let is_written = is_written.lock().unwrap_or_else(PoisonError::into_inner);
            // If it takes longer, nobody reads.
            _ = told.wait_timeout_while(is_written, LAST, |is_written| !*is_written);
        }
    }
}

/// Starts the log. `RUST_LOG` chooses what is logged, such as `RUST_LOG=debug` or `RUST_LOG=info,audit=off`.
pub(crate) fn start(as_json: bool) -> Logs {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let (queue, lines) = sync_channel(QUEUE);
    let logs = tracing_subscriber::fmt().with_writer(Queue(queue.clone())).with_env_filter(filter);
    let logs = logs.log_internal_errors(false);
    if as_json {
        logs.json().init()
    } else {
        logs.with_ansi(false).init()
    }
    // A panic is told in the same way.
    let panics = queue.clone();
    std::panic::set_hook(Box::new(move |panic| _ = panics.try_send(format!("{panic}\n").into_bytes())));
    let written = Arc::default();
    let written_too = Arc::clone(&written);
    // If there is no thread for it, there is no log.
    _ = thread::Builder::new().name("log".into()).spawn(move || write(&lines, &written_too));
    Logs { queue, written }
}

fn write(lines: &Receiver<Vec<u8>>, written: &(Mutex<bool>, Condvar)) {
    for line in lines {
        if line.is_empty() {
            *written.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            written.1.notify_all();
        }
        // A line that can't be written is lost.
        _ = io::stderr().write_all(&line);
    }
}
