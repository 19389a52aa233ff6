//! The time since 1970, in whole seconds. Tokens expire and identifiers age by it.
//!
//! It is a wall clock, because saved entries must continue to age from where they were, after a restart too. A wall
//! clock can be wrong, and can be set.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub(crate) struct WallClock {
    /// For tests: the time is when this file was modified, which the tests set.
    file: Option<PathBuf>,
    /// The time when the server began.
    first: u64,
    began: Instant,
}

impl WallClock {
    /// The machine's clock, or one that shows when the file was last modified.
    pub(crate) fn new(file: Option<&Path>) -> io::Result<Self> {
        let mut clock = Self { file: file.map(Path::to_owned), first: 0, began: Instant::now() };
        clock.first = seconds(clock.read()?);
        Ok(clock)
    }

    pub(crate) fn now(&self) -> u64 {
        seconds(self.read().unwrap_or(UNIX_EPOCH))
    }

    /// The time without jumps ahead: it is never later than it can be if the clock was right when the server began.
    ///
    /// For actions that can't be undone.
    pub(crate) fn without_jumps(&self) -> u64 {
        self.now().min(self.first.saturating_add(self.began.elapsed().as_secs()))
    }

    fn read(&self) -> io::Result<SystemTime> {
        match &self.file {
            None => Ok(SystemTime::now()),
            Some(file) => fs::metadata(file)?.modified(),
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
