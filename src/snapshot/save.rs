//! A save that has begun: its point-in-time view is fixed, and has yet to be written.

use core::fmt;
use core::ops::Range;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::machine::memory::boxed_slice;
use crate::snapshot::file;
use crate::snapshot::format::KindHeader;
use crate::snapshot::parts::MAX_ATTACHMENT;
use crate::snapshot::pieces::{Header, PIECE, Pieces};
use crate::table::image::read::TableImage;

/// A save that has begun: a point-in-time view of the filter, ready to be written. Needs the feature `snapshot`.
///
/// [`ConcurrentCuckooFilter::begin_save`](crate::ConcurrentCuckooFilter::begin_save) and its counterparts return it,
/// and it borrows the filter for `'a`. [`begin_save_owned`](crate::ConcurrentCuckooFilter::begin_save_owned) returns a
/// `Save<'static>` that holds an `Arc` of the filter. It can go to a thread or a task that outlives the caller.
///
/// Write it with [`write_to`](Self::write_to) or [`write_to_path`](Self::write_to_path), on any thread, or read it with
/// [`into_reader`](Self::into_reader). Dropping it cancels the save. [`Loader::load`](crate::Loader::load) returns the
/// caller's [position](Self::position) and [attachment](Self::attachment).
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use std::sync::Arc;
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Loader, StableHashBuilder};
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!");
/// let revoked = Arc::new(ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, hasher.clone()));
/// revoked.insert("token-17")?; // change 1 of a log
///
/// let save = revoked.begin_save_owned()?.position(1); // between two changes of the log
/// let written = std::thread::spawn(move || {
///     let mut snapshot = Vec::new();
///     save.write_to(&mut snapshot).map(|()| snapshot)
/// });
/// revoked.remove("token-17"); // change 2
///
/// let snapshot = written.join().expect("it does not panic")?;
/// let loaded = Loader::<ConcurrentCuckooFilter<str, _>, _>::new(hasher, 1 << 20).load(&snapshot[..])?;
/// assert_eq!(loaded.position, Some(1)); // go on with change 2
/// assert!(loaded.filter.contains("token-17"));
/// assert!(loaded.filter.remove("token-17"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What is in the snapshot
///
/// - **Each key that is present when the save begins**, with all its copies, even if it is relocated or removed
///   afterwards.
/// - **No key whose insert begins after that.** A key whose insert overlaps the beginning may be in the snapshot or not.
/// - Keys that a `clear` removes before the snapshot is written may be in it or not.
///
/// So if one thread makes all changes, and saves between two of them, the snapshot is exactly what the filter was then,
/// unless it clears the filter meanwhile.
///
/// The snapshot holds fingerprints. It holds neither keys nor the hasher's key. The page
/// `docs/snapshot_format.md` of the repository documents the format, for readers in other languages.
///
/// # Cost
///
/// One pass over the table, without a copy of it. Lookups go on. Operations that lock a stripe wait at the beginning
/// for as long as it takes to lock all of them (3 to 31 µs on average). Then each change takes one more lock, for about
/// 100 ns, or more with several saves. The first change to a bucket that has yet to be written also keeps the bucket's
/// old word (copy-on-write), in 32 bytes. So a slow writer costs memory in proportion to what is changed
/// meanwhile, but holds up no other thread. Any number of saves can run at a time.
#[must_use = "nothing is done until `write_to`, `write_to_path`, `into_reader` or `digest` is called"]
pub struct Save<'a> {
    header: Header<'a>,
    kind_header: KindHeader,
    image: TableImage<'a>,
}

impl<'a> Save<'a> {
    pub(crate) fn new(
        kind: FilterKind,
        probe: u64,
        schema: Cow<'a, str>,
        kind_header: KindHeader,
        image: TableImage<'a>,
    ) -> Self {
        Self { header: Header { kind, probe, schema, position: None, attachment: Vec::new() }, kind_header, image }
    }

    /// Sets the caller's position: for example, how far the filter has come in a log of changes.
    ///
    /// If one thread applies the changes, and calls `begin_save` between two of them, the loaded filter continues from
    /// there: no change is applied twice or left out. (What a `clear` removes while the snapshot is being written may be
    /// missing. A reader that replays the log from the position comes to the same `clear`, and is exact again.)
    pub fn position(mut self, position: u64) -> Self {
        self.header.position = Some(position);
        self
    }

    /// Attaches bytes of the caller's own, at most 65,536: for example the name of the source, an epoch, the
    /// configuration.
    pub fn attachment(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.header.attachment = bytes.into();
        self
    }

    /// Returns how many bytes the snapshot has, with the attachment that was given: for a `Content-Length`, or to
    /// reserve room. Changes of the filter meanwhile do not change the number.
    #[must_use]
    pub fn snapshot_len(&self) -> u64 {
        Pieces::len_of(&self.header, &self.kind_header, &self.image)
    }

    /// Returns the snapshot as an [`io::Read`], for what reads its data instead of being written to: the body of an
    /// upload, [`io::copy`].
    ///
    /// The bytes are those of [`write_to`](Self::write_to). The table is read 8 KiB at a time, as they are asked for. The
    /// save runs until the last of them is read, or the reader is dropped.
    ///
    /// Cost: a buffer of 8 KiB.
    ///
    /// # Errors
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the attachment is too long;
    /// - [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the memory for the buffer cannot be allocated. A read returns
    ///   it too, if the memory for old words could not be allocated. What was read before that is not a snapshot.
    pub fn into_reader(self) -> io::Result<SaveReader<'a>> {
        self.check()?;
        let buffer = boxed_slice(PIECE, || 0).and_then(|buffer| buffer.try_into().ok()).ok_or_else(OutOfMemory::new)?;
        Ok(SaveReader { pieces: self.into_pieces(), buffer, unread: 0..0 })
    }

    /// Writes the snapshot, in pieces of 8 KiB, and flushes. A file needs no buffer.
    ///
    /// # Errors
    /// - Those of the writer, `to`;
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the attachment is too long: then nothing was written;
    /// - [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the memory for old words could not be allocated. The changes
    ///   themselves are done.
    ///
    /// What was written before an error is not a snapshot. The filter is unchanged and usable.
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
    /// The new file is called `.NAME.DIGITS.partial`, with 16 random hexadecimal digits, until it replaces `NAME`. (If
    /// `NAME` has more than 229 bytes, its beginning and a checksum stand for it.) A process that dies leaves it
    /// behind. A later save to the same path deletes it, once it has not been written to for ten minutes.
    ///
    /// If several saves go to one path, the one that is written last wins, not the one that began last. A file that is
    /// mounted by itself, as containers do, can't be replaced.
    ///
    /// # Errors
    /// Each error has the path, the reason and what to do in its message:
    ///
    /// - the kinds of [`write_to`](Self::write_to);
    /// - those of the file system, such as [`NotFound`](io::ErrorKind::NotFound) if the folder does not exist;
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) if the path has no file name, or if what it names is not a file.
    ///
    /// After an error the file is the old one, with one exception: if only the folder could not be synced, it is the
    /// new one, and the old one may be back after a loss of power.
    pub fn write_to_path(self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        file::not_saved(path, self.check())?;
        file::replace(path, |file| self.write(file))
    }

    /// Returns the [digest](crate::ConcurrentCuckooFilter::digest) of the filter as it was when this save began,
    /// instead of writing a snapshot.
    ///
    /// To write the snapshot too, begin two saves, one right after the other.
    ///
    /// # Errors
    /// Fails if the memory for old words cannot be allocated.
    pub fn digest(self) -> Result<u64, OutOfMemory> {
        self.image.digest(self.header.kind, self.header.probe)
    }

    fn check(&self) -> io::Result<()> {
        let len = self.header.attachment.len();
        if len <= MAX_ATTACHMENT {
            return Ok(());
        }
        let message = format!(
            "the attachment has {len} bytes, but the limit is {MAX_ATTACHMENT}; keep the rest outside the snapshot"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    fn into_pieces(self) -> Pieces<'a> {
        Pieces::new(self.header, self.kind_header, self.image)
    }

    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        let (mut pieces, mut buffer) = (self.into_pieces(), [0; PIECE]);
        loop {
            match pieces.next(&mut buffer)? {
                0 => return to.flush(),
                len => to.write_all(&buffer[..len])?,
            }
        }
    }
}

/// A snapshot that is read: [`Save::into_reader`] makes it. Needs the feature `snapshot`.
///
/// It reads the filter as it was when the save began. Dropping it cancels the save.
pub struct SaveReader<'a> {
    pieces: Pieces<'a>,
    buffer: Box<[u8; PIECE]>,
    /// Which bytes of the buffer have yet to be read.
    unread: Range<usize>,
}

impl Read for SaveReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() && !to.is_empty() {
            self.unread = 0..self.pieces.next(&mut self.buffer)?;
        }
        let read = (&self.buffer[self.unread.clone()]).read(to)?;
        self.unread.start += read;
        Ok(read)
    }
}

// A save does not change the filter, whether it succeeds or not.
impl UnwindSafe for Save<'_> {}
impl RefUnwindSafe for Save<'_> {}
impl UnwindSafe for SaveReader<'_> {}
impl RefUnwindSafe for SaveReader<'_> {}

impl fmt::Debug for Save<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Save")
            .field("filter", &self.header.kind)
            .field("schema", &self.header.schema)
            .field("position", &self.header.position)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SaveReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveReader").finish_non_exhaustive()
    }
}
