//! The manifest: the file that says which segments are live. It is replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const NAME: &str = "manifest.json";
const FORMAT: u32 = 1;

/// The parts of a store, except its logs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Manifest {
    format: u32,
    /// How often the manifest has been replaced. This is the position of the maplet's snapshots.
    pub(crate) version: u64,
    /// The key of the hash of the maplet and the filters, drawn at random when the store was made.
    pub(crate) hash_key: [u8; 16],
    /// The next new segment gets this number.
    pub(crate) next_number: u64,
    /// The content of logs with smaller numbers is in segments.
    pub(crate) first_log: u64,
    /// From the newest to the oldest.
    pub(crate) segments: Vec<Live>,
}

/// A live segment.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Live {
    /// The segment's name. No other segment that was ever live has it.
    pub(crate) number: u64,
    /// Its value in the maplet, as long as it lives. Another segment gets the slot later.
    pub(crate) slot: u16,
    pub(crate) keys: u64,
    /// Drawn at random when the segment was written. Without it, a snapshot could be used for a store with another
    /// history.
    pub(crate) id: u64,
}

impl Manifest {
    pub(crate) fn new(hash_key: [u8; 16]) -> Self {
        Self { format: FORMAT, version: 0, hash_key, next_number: 0, first_log: 0, segments: Vec::new() }
    }

    /// Returns `None` if there is no manifest: the store is new.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path(directory)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let manifest: Self = serde_json::from_slice(&bytes)?;
        if manifest.format == FORMAT {
            Ok(Some(manifest))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a manifest of another version of this program"))
        }
    }

    /// Replaces the previous manifest by this one. Whenever the process dies, one of the two is there.
    pub(crate) fn replace(&self, directory: &Path) -> io::Result<()> {
        let new = directory.join("manifest.new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        fs::rename(&new, path(directory))?;
        // The name must be on disk too, before anything is deleted that the old manifest named.
        File::open(directory)?.sync_all()
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}
