//! A save that has begun: its moment is past, and it has yet to be written.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::snapshot::file;
use crate::snapshot::format::Head;
use crate::snapshot::parts::MAX_ATTACHMENT;
use crate::snapshot::sink::{Header, Sink};
use crate::table::image::images::Images;

/// A save that has begun: the filter as it was at that moment, ready to be written. Needs the feature `snapshot`.
///
/// [`ConcurrentCuckooFilter::begin_save`](crate::ConcurrentCuckooFilter::begin_save) and its counterparts make it.
/// Write it with [`write_to`](Self::write_to) or [`write_to_path`](Self::write_to_path), on any thread. Or drop it,
/// and nothing has happened.
///
/// Don't keep it for longer than needed. While it exists, each insert, removal and relocation takes one more lock.
/// It also sets the word that it changes aside, which takes 16 to 64 bytes for each bucket that is changed for the
/// first time.
///
/// It takes along two things of the caller's own, which [`Loader::load`](crate::Loader::load) returns: a
/// [position](Self::position) and an [attachment](Self::attachment).
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Loader, StableHashBuilder};
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!");
/// let revoked = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, hasher.clone());
/// revoked.insert("token-17")?; // change 1 of a log
///
/// let save = revoked.begin_save()?.position(1); // between two changes of the log
/// revoked.remove("token-17"); // change 2
/// let mut snapshot = Vec::new();
/// save.write_to(&mut snapshot)?;
///
/// let loaded = Loader::<ConcurrentCuckooFilter<str, _>, _>::new(hasher, 1 << 20).load(&snapshot[..])?;
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
    images: Images<'a>,
}

impl<'a> Save<'a> {
    pub(crate) fn new(kind: FilterKind, probe: u64, schema: Cow<'a, str>, head: Head, images: Images<'a>) -> Self {
        Self { kind, probe, schema, position: None, attachment: Vec::new(), head, images }
    }

    /// Sets the caller's position: for example, how far the filter has come in a log of changes.
    ///
    /// It is exact if no change is made during `begin_save`: the snapshot then has all changes that were made
    /// before it and none that were made after it. With one thread that applies the changes, that thread calls
    /// `begin_save` between two of them. (The loaded filter goes on from there, and no change is applied twice or
    /// left out.)
    ///
    /// The exception is `clear`: what a `clear` removes while the snapshot is being written may be missing. A
    /// reader that replays the log from the position comes to the same `clear`, and is exact again.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder, Loader};
    /// let hasher = DefaultHashBuilder::new();
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity_and_hasher(1000, hasher.clone());
    /// let mut snapshot = Vec::new();
    /// filter.begin_save()?.position(42).write_to(&mut snapshot)?;
    /// let loaded = Loader::<ConcurrentCuckooFilter<str>, _>::new(hasher, 1 << 20).load(&snapshot[..])?;
    /// assert_eq!(loaded.position, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn position(mut self, position: u64) -> Self {
        self.position = Some(position);
        self
    }

    /// Attaches bytes of the caller's own, at most 65,536: for example the name of the source, an epoch, the
    /// configuration.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder, Loader};
    /// let hasher = DefaultHashBuilder::new();
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity_and_hasher(1000, hasher.clone());
    /// let mut snapshot = Vec::new();
    /// filter.begin_save()?.attachment(*b"eu-west").write_to(&mut snapshot)?;
    /// let loaded = Loader::<ConcurrentCuckooFilter<str>, _>::new(hasher, 1 << 20).load(&snapshot[..])?;
    /// assert_eq!(loaded.attachment, b"eu-west");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attachment(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.attachment = bytes.into();
        self
    }

    /// Writes the snapshot, in pieces of 8 KiB, and flushes. A file needs no buffer.
    ///
    /// # Errors
    /// - Those of `to`;
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the attachment is too long: then nothing was written;
    /// - [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the memory for words that are set aside was refused. The
    ///   changes themselves are done.
    ///
    /// What was written before an error is no snapshot, and the filter is as it was.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// let save = filter.begin_save()?;
    /// let mut snapshot = Vec::new();
    /// save.write_to(&mut snapshot)?;
    /// assert!(snapshot.starts_with(b"\x89CCF"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_to(self, mut to: impl Write) -> io::Result<()> {
        self.check()?;
        self.write(&mut to)
    }

    /// Writes the snapshot to a file. Whatever happens, the file has either all of the old bytes or all of the new
    /// ones.
    ///
    /// The snapshot is written to a new file in the same folder, which then replaces the old one. It gets the old
    /// file's permissions, and its owner if that is allowed. File and folder are synced, so a snapshot that was
    /// written survives a loss of power. If the path is a symbolic link, the file that it leads to is replaced.
    ///
    /// The new file is called `.NAME.DIGITS.partial`, with 16 random hexadecimal digits, until it replaces `NAME`. (Of a
    /// name of more than 229 bytes, it has the beginning and a checksum.)
    /// A process that dies leaves it behind. A later save to the same path deletes it, once nobody has written to
    /// it for ten minutes. (If a clock jumps ahead, or the machine was suspended, the file of a running save can be
    /// taken for abandoned. That save then fails, and the old file stays.)
    ///
    /// Of several saves to one path, the last one to be written wins, not the one whose moment is the latest. A
    /// file that is mounted by itself, as containers do, can't be replaced: the system refuses it.
    ///
    /// # Errors
    /// Each error has the path, the reason and what to do in its message:
    ///
    /// - the kinds of [`write_to`](Self::write_to);
    /// - those of the file system: [`NotFound`](io::ErrorKind::NotFound) if there is no such folder,
    ///   [`PermissionDenied`](io::ErrorKind::PermissionDenied), [`StorageFull`](io::ErrorKind::StorageFull),
    ///   [`InvalidFilename`](io::ErrorKind::InvalidFilename) for a name that is too long, and others;
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the path has no file name, as an empty one, or if there is
    ///   something else than a file.
    ///
    /// After an error the file is the old one, with one exception: if only the folder could not be synced, it is the
    /// new one, and the old one may be back after a loss of power.
    ///
    /// ```no_run
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// filter.begin_save()?.position(17).write_to_path("/var/lib/service/revoked.ccf")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write_to_path(self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        file::not_saved(path, self.check())?;
        file::replace(path, |file| self.write(file))
    }

    /// The [digest](crate::ConcurrentCuckooFilter::digest) of the filter at the moment of this save, instead of a
    /// snapshot.
    ///
    /// Use it to go on making changes while the digest is computed: the moment was when the save began. To write
    /// the snapshot too, begin two saves, one right after the other.
    ///
    /// # Errors
    /// Fails if the memory for words that are set aside is refused.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// let before = filter.digest()?;
    /// let save = filter.begin_save()?;
    /// filter.insert("a")?;
    /// assert_eq!(save.digest()?, before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn digest(self) -> Result<u64, OutOfMemory> {
        self.images.digest(self.kind, self.probe)
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
        let Self { kind, probe, schema, position, attachment, head, images } = self;
        let mut sink = Sink::new(to);
        sink.header(&Header { kind, probe, schema: &schema, position, attachment: &attachment })?;
        sink.head(head)?;
        images.tables.into_iter().try_for_each(|section| sink.section(section))?;
        sink.end()
    }
}

// A save does not change the filter, whether it succeeds or not.
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
