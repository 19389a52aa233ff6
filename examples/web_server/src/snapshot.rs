//! Files with a filter in them: written beside the old one and put in its place when they are whole.
//!
//! A few bytes of the server's own stand before the filter's. They say which store the filter belongs to, and up to where
//! it is complete; a checksum protects them, as the filter's own does the rest.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use concurrent_cuckoo_filter::LoadError;

const MAGIC: [u8; 8] = *b"websnap1";
const STAMP: usize = MAGIC.len() + 8 + 8 + 4;

/// What a snapshot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The [identity](crate::store::Store::id) of the store.
    pub(crate) store: u64,
    /// For revoked tokens, the epoch that began before it was made: what was revoked in earlier ones is in. For request
    /// identifiers, the seconds of a generation.
    pub(crate) at: u64,
}

impl Stamp {
    fn bytes(self) -> [u8; STAMP] {
        let mut bytes = [0; STAMP];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.store.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; STAMP]) -> Option<Self> {
        let number = |from: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[from + i]));
        let stamp = Self { store: number(8), at: number(16) };
        (stamp.bytes() == bytes).then_some(stamp)
    }
}

/// Why a snapshot is of no use.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// There is none.
    Missing,
    Io(io::Error),
    /// The server's own bytes are damaged, or it is another kind of file.
    Stamp,
    /// There is more in the file than a filter.
    Longer,
    Filter(LoadError),
    /// The filter is as it was saved, but does not fit here.
    Unfit(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is none"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Stamp => write!(f, "its first {STAMP} bytes are damaged, or it is no snapshot of this server"),
            Self::Longer => write!(f, "there are bytes after its end"),
            Self::Filter(error) => write!(f, "{error}"),
            Self::Unfit(why) => write!(f, "{why}"),
        }
    }
}

/// Saves a filter, of whatever kind. Whoever reads `path`, also after a crash at any moment, finds the old file or the new
/// one, whole.
pub(crate) fn write(
    path: &Path,
    stamp: Stamp,
    save: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    let mut to = BufWriter::with_capacity(1 << 18, File::create(&beside)?);
    to.write_all(&stamp.bytes())?;
    save(&mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&beside, path)?;
    // The name is durable when the directory is.
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Loads what [`write()`] has written.
pub(crate) fn read<F>(
    path: &Path,
    load: impl FnOnce(Stamp, &mut BufReader<File>) -> Result<F, Unusable>,
) -> Result<F, Unusable> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Unusable::Missing,
        _ => Unusable::Io(error),
    })?;
    let mut from = BufReader::with_capacity(1 << 18, file);
    let mut stamp = [0; STAMP];
    match from.read_exact(&mut stamp) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(Unusable::Stamp),
        result => result.map_err(Unusable::Io)?,
    }
    let filter = load(Stamp::from_bytes(stamp).ok_or(Unusable::Stamp)?, &mut from)?;
    match from.read(&mut [0]).map_err(Unusable::Io)? {
        0 => Ok(filter),
        _ => Err(Unusable::Longer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_with_one_bit_changed_is_none() {
        let stamp = Stamp { store: 0x0123_4567_89ab_cdef, at: 42 };
        let bytes = stamp.bytes();
        assert_eq!(Stamp::from_bytes(bytes), Some(stamp));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Stamp::from_bytes(changed), None, "bit {bit}");
        }
    }

    #[test]
    fn a_save_that_fails_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some.snapshot");
        let stamp = Stamp { store: 1, at: 2 };
        write(&path, stamp, |to| to.write_all(b"old")).unwrap();
        let failed = write(&path, stamp, |to| to.write_all(b"new").and(Err(io::Error::other("the disk is full"))));
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        let found = read(&path, |found, from| {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).map_err(Unusable::Io)?;
            Ok((found, bytes))
        });
        assert_eq!(found.unwrap(), (stamp, b"old".to_vec()));
    }
}
