//! CONCURRENT: revokes many tokens, from a request's body or a file, on a thread that may block.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokens::expiry::{Lifetimes, Until, Wrong, whole_seconds};
use tokens::token;

use crate::refusal::NoRoom;
use crate::wall_clock::WallClock;
use crate::writer::{Orders, Unavailable};

/// How many tokens become durable together. A single revocation waits for at most so many.
const CHUNK: usize = 4096;
/// How many jobs the server remembers the outcome of.
const REMEMBERED: usize = 100;

/// How late a token may expire.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) lifetimes: Lifetimes,
    pub(crate) wall_clock: WallClock,
}

impl Limits {
    /// Until when a token is refused. `told` is its expiry, if that is known.
    pub(crate) fn until(&self, token: &str, told: Option<u64>) -> Result<Until, Wrong> {
        self.lifetimes.until(token, told, self.wall_clock.now())
    }

    /// The token of a line, and until when it is refused.
    fn revocation(&self, line: &str) -> Result<(String, Until), String> {
        let (token, told) = match line.split_once(char::is_whitespace) {
            Some((token, exp)) => (token, Some(whole_seconds(exp.trim_start())?)),
            None => (line, None),
        };
        token::check(token)?;
        let until = self.until(token, told).map_err(|wrong| wrong.to_string())?;
        Ok((token.to_owned(), until))
    }
}

/// A bulk load and its progress.
#[derive(Debug)]
pub(crate) struct Job {
    total: u64,
    done: AtomicU64,
    inserted: AtomicU64,
    expired: AtomicU64,
    refused: AtomicU64,
    end: Mutex<Option<End>>,
}

/// How a bulk load has ended. Everything before the end is durable in any case.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum End {
    Finished,
    /// The filter is full. When there is room, send the lines after `done` again.
    Full(NoRoom),
    /// The store has failed, the server is ending, or a line has no valid token.
    Stopped {
        error: String,
    },
}

/// The body of the answer to `GET /jobs/{id}`.
#[derive(Debug, Serialize)]
pub(crate) struct Progress {
    total: u64,
    /// How many lines were processed, from the first one on.
    done: u64,
    /// How many of these tokens were not revoked before, or not for so long.
    inserted: u64,
    /// How many had expired, so that there was nothing to remember.
    expired: u64,
    /// How many the filter refused, because too many others look like them.
    refused: u64,
    finished: bool,
    #[serde(flatten)]
    end: Option<End>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, done, inserted, expired, refused, .. } = self;
        write!(f, "{done} of {total} lines, {inserted} tokens new, {expired} expired, {refused} refused")
    }
}

impl Progress {
    /// How much is done, in parts of a whole of `of` parts.
    pub(crate) fn part(&self, of: u64) -> u64 {
        (self.done * of).checked_div(self.total).unwrap_or(of)
    }

    pub(crate) fn is_end(&self) -> bool {
        self.finished
    }
}

impl Job {
    pub(crate) fn new(total: u64) -> Self {
        let zero = || AtomicU64::new(0);
        let end = Mutex::new(None);
        Self { total, done: zero(), inserted: zero(), expired: zero(), refused: zero(), end }
    }

    pub(crate) fn progress(&self) -> Progress {
        // The end first: once it is set, the other figures are final.
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Progress {
            total: self.total,
            done: get(&self.done),
            inserted: get(&self.inserted),
            expired: get(&self.expired),
            refused: get(&self.refused),
            finished: end.is_some(),
            end,
        }
    }

    /// Revokes the token of each line, `TOKEN` or `TOKEN EXPIRY`, in order. Returns how it ended, and stores that in
    /// the job.
    pub(crate) fn run<E: ToString>(
        &self,
        lines: impl Iterator<Item = Result<String, E>>,
        limits: &Limits,
        orders: &Orders,
        stopping: &AtomicBool,
        mut tell: impl FnMut(&Progress),
    ) -> End {
        let end = self.revoke(lines, limits, orders, stopping, &mut tell);
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end.clone());
        tell(&self.progress());
        end
    }

    fn revoke<E: ToString>(
        &self,
        mut lines: impl Iterator<Item = Result<String, E>>,
        limits: &Limits,
        orders: &Orders,
        stopping: &AtomicBool,
        tell: &mut impl FnMut(&Progress),
    ) -> End {
        let stopped = |error: String| End::Stopped { error };
        let mut more = true;
        while more {
            let mut tokens = Vec::with_capacity(CHUNK);
            // The place of each token's line within the chunk. Blank lines count too.
            let mut places = Vec::with_capacity(CHUNK);
            let (mut taken, mut wrong) = (0, None);
            while tokens.len() < CHUNK && wrong.is_none() {
                match lines.next() {
                    None => {
                        more = false;
                        break;
                    }
                    Some(Err(error)) => wrong = Some(error.to_string()),
                    Some(Ok(line)) => match line.trim() {
                        "" => taken += 1,
                        line => match limits.revocation(line) {
                            Ok(revocation) => {
                                tokens.push(revocation);
                                places.push(taken);
                                taken += 1;
                            }
                            Err(why) => wrong = Some(why),
                        },
                    },
                }
            }
            if stopping.load(Ordering::Relaxed) {
                return stopped("the server is ending; send the lines after `done` again".into());
            }
            let tally = match orders.revoke_many(tokens) {
                Ok(tally) => tally,
                Err(Unavailable(why)) => return stopped(why.to_string()),
            };
            let done = places.get(tally.done).copied().unwrap_or(taken);
            self.inserted.fetch_add(tally.inserted as u64, Ordering::Relaxed);
            self.expired.fetch_add(tally.expired as u64, Ordering::Relaxed);
            self.refused.fetch_add(tally.refused as u64, Ordering::Relaxed);
            let done = self.done.fetch_add(done, Ordering::Relaxed) + done;
            if let Some(full) = tally.full {
                return End::Full(NoRoom::new(full));
            }
            if let Some(wrong) = wrong {
                return stopped(format!("line {}: {wrong}", done + 1));
            }
            if more {
                tell(&self.progress());
            }
        }
        End::Finished
    }
}

/// The jobs that clients can ask for.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    last: AtomicU64,
    jobs: Mutex<BTreeMap<u64, Arc<Job>>>,
}

impl Jobs {
    pub(crate) fn add(&self, job: &Arc<Job>) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.insert(id, Arc::clone(job));
        while jobs.len() > REMEMBERED {
            jobs.pop_first();
        }
        id
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}
