//! A save that has begun: its moment is past, and it is yet to be written.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use crate::error::kind::FilterKind;
use crate::snapshot::file;
use crate::snapshot::format::Head;
use crate::snapshot::parts::MAX_ATTACHMENT;
use crate::snapshot::sink::{Header, Sink};
use crate::table::begun::Begun;

/// A save whose moment is past: the filter as it was then, ready to be written. Only with the feature
/// `snapshot`.
///
/// Made by [`ConcurrentCuckooFilter::begin_save`](crate::ConcurrentCuckooFilter::begin_save) and its like. Write it with
/// [`write_to`](Self::write_to) or [`write_to_path`](Self::write_to_path), on any thread; or drop it, and nothing has
/// happened. While it exists, inserts, removals and relocations put aside the words that they change, which takes 16 to 64
/// bytes for each bucket that is changed for the first time, and take a lock for each change: so don't keep it for longer than
/// it takes.
///
/// It takes two things with it that are the caller's own, and that [`Loader::read`](crate::Loader::read) gives back: a
/// [position](Self::position) and an [attachment](Self::attachment).
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Loader, StableState};
///
/// let hasher = StableState::with_key(*b"sixteen secrets!");
/// let revoked = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, hasher.clone());
/// revoked.insert("token-17")?; // change 1 of a log
///
/// let save = revoked.begin_save()?.position(1); // between two changes of the log
/// revoked.remove("token-17"); // change 2
/// let mut snapshot = Vec::new();
/// save.write_to(&mut snapshot)?;
///
/// let loaded = Loader::<ConcurrentCuckooFilter<str, _>, _>::new(hasher, 1 << 20).read(&snapshot[..])?;
/// assert_eq!(loaded.position, Some(1)); // go on with change 2
/// assert!(loaded.filter.contains("token-17"));
/// assert!(loaded.filter.remove("token-17"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is done until `write_to`, `write_to_path` or `digest` is called"]
pub struct Save<'a> {
    kind: FilterKind,
    probe: u64,
    schema: Cow<'a, str>,
    position: Option<u64>,
    attachment: Vec<u8>,
    head: Head,
    begun: Begun<'a>,
}

impl<'a> Save<'a> {
    pub(crate) fn new(kind: FilterKind, probe: u64, schema: Cow<'a, str>, head: Head, begun: Begun<'a>) -> Self {
        Self { kind, probe, schema, position: None, attachment: Vec::new(), head, begun }
    }

    /// The caller's position: how far the filter has come in a log of changes, say.
    ///
    /// It is exact if no change is made during `begin_save`: the snapshot then has all changes that were made before it and
    /// none that were made after it. (Except `clear`: what that removes while the snapshot is being written may be missing. Who
    /// repeats the log from here comes to the same `clear`, and is exact again.) To have it so with one thread that applies the changes, that thread calls `begin_save`
    /// between two of them. (The loaded filter goes on from there, and no change is applied twice or left out.)
    pub fn position(mut self, position: u64) -> Self {
        self.position = Some(position);
        self
    }

    /// Bytes of the caller's own, 65,536 at most: the name of the source, an epoch, the configuration.
    pub fn attachment(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.attachment = bytes.into();
        self
    }

    /// Writes the snapshot, in pieces of 8 KiB, and flushes. A file needs no buffer.
    ///
    /// # Errors
    /// Those of `to`; `InvalidInput` if the attachment is too long, and nothing was written; `OutOfMemory` if the memory was
    /// refused in which words are put aside (the changes themselves are done). What has been written then
    /// is no snapshot, and the filter is as it was.
    pub fn write_to(self, mut to: impl Write) -> io::Result<()> {
        self.check()?;
        self.write(&mut to)
    }

    /// Writes the snapshot to a file, which has either all of the old bytes or all of the new ones, whatever happens.
    ///
    /// The snapshot is written to a new file in the same folder, which then takes the place of the old one: with its
    /// permissions, and of its owner if that is allowed. File and folder are synced, so a snapshot that was written
    /// survives a loss of power. If the path is a symbolic link, what it leads to is replaced.
    ///
    /// The new file is called `.NAME.DIGITS.partial`, with 16 random hexadecimal digits, until it takes the place of `NAME`. A
    /// process that dies leaves it behind. A later save to the same path deletes it, once nobody has written to it for ten
    /// minutes. (By a clock that jumps ahead, or a machine that was suspended, a running save's file can be taken for
    /// abandoned. That save then fails, and the old file stays.)
    ///
    /// Of several saves to one path, the last one to be written wins, not the one whose moment is the latest. A file that is
    /// mounted by itself, as containers do, can't be replaced: the system refuses it.
    ///
    /// # Errors
    /// As for [`write_to`](Self::write_to), and those of the file system. The file is the old one then, except where only
    /// the folder could not be synced: then it is the new one, and the old one may be back after a loss of power.
    pub fn write_to_path(self, path: impl AsRef<Path>) -> io::Result<()> {
        self.check()?;
        file::replace(path.as_ref(), |file| self.write(file))
    }

    /// The [digest](crate::ConcurrentCuckooFilter::digest) of the filter at the moment of this save, instead of a snapshot.
    ///
    /// For who wants to go on making changes while it is computed: the moment was when the save was begun. For the snapshot
    /// too, begin two saves, one right after the other.
    ///
    /// # Errors
    /// `OutOfMemory` if the memory was refused in which words are put aside.
    pub fn digest(self) -> io::Result<u64> {
        self.begun.digest(self.kind, self.probe)
    }

    fn check(&self) -> io::Result<()> {
        let len = self.attachment.len();
        if len <= MAX_ATTACHMENT {
            return Ok(());
        }
        let message = format!(
            "the attachment has {len} bytes, and a snapshot has room for {MAX_ATTACHMENT}; keep the rest beside it"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        let Self { kind, probe, schema, position, attachment, head, begun } = self;
        let mut sink = Sink::new(to);
        sink.header(&Header { kind, probe, schema: &schema, position, attachment: &attachment })?;
        sink.head(head)?;
        begun.sections.into_iter().try_for_each(|section| sink.section(section))?;
        sink.end()
    }
}

// A filter is not changed by a save, whatever becomes of it.
impl UnwindSafe for Save<'_> {}
impl RefUnwindSafe for Save<'_> {}

impl fmt::Debug for Save<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Save")
            .field("filter", &self.kind)
            .field("schema", &self.schema)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
