//! The log: what is in memory and in no segment yet, so that it survives the process.
//!
//! Each memtable has a file, `log-NUMBER`. A record is a checksum, two lengths, the key and the value, in one
//! write. What was handed to the operating system survives a killed process. It does not survive a power cut: a
//! real store would sync the file.
//!
//! A process that is killed in a write leaves part of a record at the end. The put of that record has not returned,
//! so reading ends there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::memtable::Memtable;

/// This length of a value marks a deletion.
const DELETED: u32 = u32::MAX;
const HEADER: usize = 12;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) number: u64,
    file: File,
    buffer: Vec<u8>,
    /// A write has failed. There may be part of a record, and anything after it would not be read.
    broken: bool,
}

pub(crate) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("log-{number}"))
}

/// The numbers of the logs in the directory, sorted.
pub(crate) fn numbers(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_prefix("log-")?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

impl Log {
    /// Begins a log. There must be no log with this number.
    pub(crate) fn create(directory: &Path, number: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path(directory, number))?;
        Ok(Self { number, file, buffer: Vec::new(), broken: false })
    }

    /// Appends a record. After a failure every later call fails.
    pub(crate) fn append(&mut self, key: &[u8], entry: &Entry) -> io::Result<()> {
        let (value, length) = match entry {
            Entry::Value(value) => (&value[..], u32::try_from(value.len()).unwrap_or(DELETED)),
            Entry::Deleted => (&[][..], DELETED),
        };
        let key_length = u32::try_from(key.len()).unwrap_or(u32::MAX);
        if key_length > u32::from(u16::MAX) || (length == DELETED && *entry != Entry::Deleted) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the key has more than 65,535 bytes, or the value has 4 GiB or more",
            ));
        }
        if self.broken {
            return Err(io::Error::other("an earlier write to the log has failed"));
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&key_length.to_le_bytes());
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value);
        let checksum = crc32fast::hash(&self.buffer[4..]);
        self.buffer[..4].copy_from_slice(&checksum.to_le_bytes());
        let written = self.file.write_all(&self.buffer);
        self.broken = written.is_err();
        written
    }
}

/// Puts the records of a log into a memtable, up to the end of the log or to a record that was not written
/// entirely.
pub(crate) fn replay(directory: &Path, number: u64, into: &Memtable) -> io::Result<()> {
    let bytes = fs::read(path(directory, number))?;
    let mut rest = &bytes[..];
    while let Some((key, entry, after)) = record(rest) {
        into.put(key, entry);
        rest = after;
    }
    Ok(())
}

/// The first record, and the bytes after it.
fn record(bytes: &[u8]) -> Option<(&[u8], Entry, &[u8])> {
    let (header, body) = bytes.split_at_checked(HEADER)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (key_length, value_length) = (word(4) as usize, if word(8) == DELETED { 0 } else { word(8) as usize });
    let (key, body) = body.split_at_checked(key_length)?;
    let (value, after) = body.split_at_checked(value_length)?;
    if crc32fast::hash(&bytes[4..HEADER + key_length + value_length]) != word(0) {
        return None;
    }
    let entry = if word(8) == DELETED { Entry::Deleted } else { Entry::Value(value.to_vec()) };
    Some((key, entry, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_up_to_where_its_writer_was_killed() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = Log::create(directory.path(), 7).unwrap();
        let entries = [("a", Entry::Value(b"1".to_vec())), ("b", Entry::Deleted), ("c", Entry::Value(vec![]))];
        for (key, entry) in &entries {
            log.append(key.as_bytes(), entry).unwrap();
        }
        assert_eq!(numbers(directory.path()).unwrap(), [7]);
        let whole = fs::read(path(directory.path(), 7)).unwrap();
        let record_of_c = HEADER + 1;
        for length in 0..=whole.len() {
            fs::write(path(directory.path(), 7), &whole[..length]).unwrap();
            let memtable = Memtable::default();
            replay(directory.path(), 7, &memtable).unwrap();
            let expected = match whole.len() - length {
                0 => 3,
                left if left <= record_of_c => 2,
                left if left <= record_of_c + HEADER + 1 => 1,
                _ => 0,
            };
            assert_eq!(memtable.len(), expected, "{length} bytes");
            for (key, entry) in &entries[..expected] {
                assert_eq!(memtable.get(key.as_bytes()).as_ref(), Some(entry));
            }
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(path(directory.path(), 7), &damaged).unwrap();
        let memtable = Memtable::default();
        replay(directory.path(), 7, &memtable).unwrap();
        assert_eq!(memtable.len(), 2);
    }
}
