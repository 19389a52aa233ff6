//! A filter in a mapped file, which another process replaces now and then.

#![allow(unsafe_code, reason = "a file is mapped; see `map`")]

use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Loader, StableHashBuilder, View};
use memmap2::Mmap;

/// What the publisher saves.
pub type Blocked = ConcurrentCuckooFilter<str, StableHashBuilder>;

/// What the readers look up in.
pub type BlockedView = View<Blocked, Mmap>;

/// The schema of the keys, which both sides name.
pub const SCHEMA: &str = "blocked domains, lower case";

/// The newest snapshot at a path, for all threads of a process.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    hasher: StableHashBuilder,
    current: RwLock<Arc<BlockedView>>,
}

impl Mapped {
    /// Maps the file that is there now.
    ///
    /// # Errors
    /// It cannot be mapped, or is no whole snapshot of such a filter.
    pub fn open(path: impl Into<PathBuf>, hasher: StableHashBuilder) -> Result<Self, Box<dyn Error>> {
        let path = path.into();
        let current = view(&path, &hasher)?;
        current.verify()?;
        Ok(Self { path, hasher, current: RwLock::new(Arc::new(current)) })
    }

    /// The view to look up in. The lock is held only while the `Arc` is cloned, and the old file stays mapped for as long
    /// as anybody has its view.
    #[must_use]
    pub fn current(&self) -> Arc<BlockedView> {
        Arc::clone(&self.current.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Takes the file that is there now, if it is another one: of another position. Returns whether it is. One thread
    /// calls this now and then; lookups go on meanwhile.
    ///
    /// # Errors
    /// As for [`open`](Self::open). The view is the old one then: keep it, and raise an alarm at some age.
    pub fn reload(&self) -> Result<bool, Box<dyn Error>> {
        let newer = view(&self.path, &self.hasher)?;
        if newer.info().position == self.current().info().position {
            return Ok(false);
        }
        // Reads the whole file. If it is large, and its file system has checksums or the publisher has signed it, leave this
        // out: then the first answer takes two pages of the file.
        newer.verify()?;
        *self.current.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(newer);
        Ok(true)
    }
}

fn view(path: &Path, hasher: &StableHashBuilder) -> Result<BlockedView, Box<dyn Error>> {
    Ok(Loader::new(hasher.clone(), 0).schema(SCHEMA).view(map(path)?)?)
}

fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: a map must not change. It is of the file that had this name when it was opened, and stays that when the name
    // goes to another file. The publisher replaces files (`save_to_path` renames) and never writes into one, and by the
    // rights of the folder nobody else can. If somebody did: a write would change words while they are read, which the
    // language leaves undefined, and the answers would be wrong; and if the file was truncated, the next read beyond its
    // end would end this process (SIGBUS on Unix), whatever its code is.
    unsafe { Mmap::map(&file) }
}
