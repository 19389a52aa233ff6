//! A filter in a `static`, which a thread saves at intervals: loaded at the start, and saved a last time at the end.
//!
//! It holds tokens that never expire, such as keys of an API. (For those that do, `examples/expiring.rs` has the type.) The keys
//! of the filter are the names of the tokens. If yours can be spelled in several ways, such as JWTs, insert one form of each:
//! `examples/token_key` has a function.
//!
//! `cargo run --features snapshot,stable-hash --example saver -- FILE install` saves an empty filter, once, to a file that
//! does not exist yet. Without `install`, each line of the input is a token to revoke, and the end of the input (Ctrl-D) shuts down.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, process};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, LoadError, Loader, StableHashBuilder};

pub(crate) type Revoked = ConcurrentCuckooFilter<str, StableHashBuilder>;

/// Every thread reaches it from here, so it needs no `Arc`. It is set once, when it is loaded.
static REVOKED: OnceLock<Revoked> = OnceLock::new();

/// What the keys are. A snapshot of anything else does not load.
const SCHEMA: &str = "revoked tokens, version 1";

/// The key belongs in the configuration. The default hasher has another key in each process.
fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"sixteen secrets!")
}

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let done = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [file, "install"] => install(Path::new(file)),
        [file] => serve(Path::new(file), Duration::from_secs(60), io::stdin().lock(), io::stdout()),
        _ => {
            eprintln!("usage: saver FILE [install]");
            process::exit(2);
        }
    };
    if let Err(error) = done {
        eprintln!("{error}"); // what is wrong, and what to do
        process::exit(1);
    }
}

/// Saves an empty filter. It is a step of its own: a mistyped path in [`serve`] is an error then, and not an empty filter,
/// by which no token would be revoked. For the same reason it replaces no file.
pub(crate) fn install(path: &Path) -> Result<(), Box<dyn Error>> {
    if path.try_exists()? {
        return Err(format!(
            "{path:?} exists already, and an empty filter would replace it; to revoke tokens, leave out \"install\""
        )
        .into());
    }
    // A false positive refuses a good token, and nothing exact is asked afterwards.
    let builder = Revoked::builder_with_hasher(hasher()).capacity(100_000).false_positive_rate(1e-5);
    let empty = builder.schema(SCHEMA).build()?;
    Ok(empty.save_to_path(path)?)
}

pub(crate) fn load(path: &Path) -> Result<Revoked, Box<dyn Error>> {
    let loaded =
        Loader::new(hasher(), 64 << 20).schema(SCHEMA).load_from_path(path).map_err(|error| match error.error {
            LoadError::NotFound(_) => format!("{error} (\"saver FILE install\" does that)"),
            _ => error.to_string(),
        })?;
    Ok(loaded.filter)
}

/// The program, from its start to its clean end.
pub(crate) fn serve(
    path: &Path,
    interval: Duration,
    tokens: impl BufRead,
    mut answers: impl Write,
) -> Result<(), Box<dyn Error>> {
    let loaded = load(path)?;
    let revoked = REVOKED.get_or_init(|| loaded);
    let saver = Saver::start(revoked, path.to_owned(), interval);
    let done = revoke(revoked, tokens, &mut answers);
    // Also after an error. All changes are made, so the last save has them.
    saver.stop()?;
    done
}

fn revoke(revoked: &Revoked, tokens: impl BufRead, answers: &mut impl Write) -> Result<(), Box<dyn Error>> {
    for token in tokens.lines() {
        let is_new = revoked.insert_if_absent(&*token?)?;
        writeln!(answers, "{}", if is_new { "revoked" } else { "was revoked before" })?;
    }
    Ok(())
}

/// The thread that saves. A process that is killed loses what changed since its last save: if that must not happen, also
/// append each change to a log (`examples/snapshot.rs`).
pub(crate) struct Saver {
    /// Dropped to stop the thread.
    running: Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Saver {
    /// The only thread that saves to this path: of two overlapping saves, the older one could be written last.
    pub(crate) fn start(revoked: &'static Revoked, path: PathBuf, interval: Duration) -> Self {
        let (running, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            loop {
                // Waits for the interval, or less if it is stopped meanwhile.
                let is_last = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
                let saved = save(revoked, &path);
                if is_last {
                    return saved;
                }
                // The old file is still there, and the next save may succeed. A service raises an alarm if none does.
                saved.unwrap_or_else(|error| eprintln!("not saved: {error}"));
            }
        });
        Self { running, thread }
    }

    /// Saves a last time. Returns when that is done.
    pub(crate) fn stop(self) -> io::Result<()> {
        drop(self.running);
        self.thread.join().expect("the saver does not panic")
    }
}

/// The filter stays in use. From a `&'static`, `begin_save` returns a `Save<'static>`, which may also go to another thread.
fn save(revoked: &'static Revoked, path: &Path) -> io::Result<()> {
    revoked.begin_save()?.write_to_path(path)
}
