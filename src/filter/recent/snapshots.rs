//! Snapshots of an [`RecentCuckooFilter`]: how it is saved and loaded.

use core::hash::BuildHasher;
use core::time::Duration;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::load::LoadError;
use crate::error::load_path::LoadPathError;
use crate::error::memory::OutOfMemory;
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::machine::time::TimeSource;
use crate::snapshot::file;
use crate::snapshot::loader::{FromSnapshot, Loaded, Loader};
use crate::snapshot::save::Save;
use crate::snapshot::schema::Schema;
use crate::snapshot::source::SnapshotSource;
use crate::table::core::Core as _;
use crate::table::image::read::{HasImageSource, ImageSource};

/// Snapshots: the filter as bytes, to survive a restart or to travel. All of this needs the feature `snapshot`.
///
/// A snapshot is useful only with the same hasher, and **not every hasher is stable**:
/// [`DefaultHashBuilder`](crate::DefaultHashBuilder) and [`std::hash::RandomState`] have random keys in each process.
/// `StableHashBuilder` (feature `stable-hash`) says for which keys its hashes survive a restart, an upgrade and another
/// machine. By the hash of a fixed probe in the snapshot, [`load`](Self::load) detects another hasher; by the schema,
/// other keys. The page [`beyond_one_process`](crate::guide::beyond_one_process) says what to do with snapshots.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{RecentCuckooFilter, StableHashBuilder};
///
/// type Seen = RecentCuckooFilter<str, StableHashBuilder>;
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!"); // from the configuration
/// let seen = Seen::builder_with_hasher(hasher.clone()).last(1000).build()?;
/// seen.insert("message-17");
/// # let folder = std::env::temp_dir().join(format!("snapshots-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("RecentCuckooFilter");
/// seen.save_to_path(&path)?;
///
/// let loaded = Seen::load_from_path(&path, hasher.clone(), 1 << 20)?;
/// assert!(!loaded.insert("message-17"), "seen before the restart");
/// let error = Seen::load(&b"an empty file is not an empty filter"[..], hasher, 1 << 20).unwrap_err();
/// eprintln!("rebuild the filter: {error}");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: ?Sized, S: BuildHasher> RecentCuckooFilter<T, S> {
    /// Writes a snapshot of the filter as it is when the call begins, while other threads use it: [`Save`] says exactly
    /// what is in it, and what that costs. Needs the feature `snapshot`.
    ///
    /// The snapshot contains all keys that are among the recent ones then, and how much longer each is to stay. It may also
    /// hold some that have just expired. [`load`](Self::load) says how that goes on. The snapshot is `100 + schema + 8 ·
    /// buckets` bytes long, with the length of the schema in bytes.
    ///
    /// # Errors
    /// Those of [`begin_save`](Self::begin_save) and [`Save::write_to`].
    pub fn save(&self, to: impl io::Write) -> io::Result<()> {
        self.begin_save()?.write_to(to)
    }

    /// Writes a snapshot to a file. The file has either all of the old bytes or all of the new ones, whatever happens:
    /// [`Save::write_to_path`] says how. Needs the feature `snapshot`.
    ///
    /// # Errors
    /// Those of [`begin_save`](Self::begin_save) and [`Save::write_to_path`]. The message of each has the path, the
    /// reason and what to do.
    pub fn save_to_path(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        file::not_saved(path, self.begin_save().map_err(io::Error::from))?.write_to_path(path)
    }

    /// Begins a save: the point-in-time view is fixed when this returns. It can be written at any time, on any thread,
    /// with a [position](Save::position) in the caller's log and an [attachment](Save::attachment). Needs the feature
    /// `snapshot`.
    ///
    /// The save borrows the filter. If a thread or a task that may outlive the caller is to write it, call
    /// [`begin_save_owned`](Self::begin_save_owned).
    ///
    /// Cost: it locks all stripes of the table for a few microseconds, after a running [`clear`](Self::clear). It
    /// allocates 8 bytes for each 8 KiB of the table.
    ///
    /// # Errors
    /// Fails if that allocation fails.
    pub fn begin_save(&self) -> Result<Save<'_>, OutOfMemory> {
        self.parts.begin_save::<T>()
    }

    /// [`begin_save`](Self::begin_save) of a filter in an [`Arc`], which the save keeps alive. So it can go to a thread
    /// or a task that outlives the caller: it is a `Save<'static>` if key type and hasher are `'static`. The
    /// point-in-time view is fixed in this call, on this thread. Needs the feature `snapshot`.
    ///
    /// Cost: as for `begin_save`, and a copy of the schema's name.
    ///
    /// # Errors
    /// As for `begin_save`.
    pub fn begin_save_owned<'a>(self: &Arc<Self>) -> Result<Save<'a>, OutOfMemory>
    where
        T: 'a,
        S: Send + Sync + 'a,
    {
        self.parts.begin_save_owned::<T>(self.clone())
    }

    /// Reads a snapshot into a new filter of at most `memory_limit` bytes. Needs the feature `snapshot`.
    ///
    /// `hasher` must be the one with which the snapshot was made. Everything that is read is checked, and nothing
    /// larger than `memory_limit` is allocated: [`Loader::load`] says what that means. A [`Loader`] also takes a schema
    /// other than the name of the key type, and returns the position and the attachment.
    ///
    /// # What a snapshot keeps
    /// It depends on the window:
    ///
    /// - **The last keys**: the count goes on as if nothing had happened. Each key stays until as many others have come after
    ///   it as are missing yet.
    /// - **The keys of a time**: each key keeps its age. The time between the save and the load does not count, because no
    ///   clock that nobody sets survives a restart. So each key is found for at least the window's duration, and for longer
    ///   by that time. If that is too long, [attach](Save::attachment) the time of day, and don't load what is too old.
    ///   The loaded filter goes by the system's clock, and its time goes on with the first operation. A [`Loader`] takes
    ///   [another clock](Loader::clock).
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: it does not
    /// know what was seen.
    pub fn load(from: impl io::Read, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
        Ok(Loader::<Self, S>::new(hasher, memory_limit).load(from)?.filter)
    }

    /// Reads a snapshot from a file, as [`load`](Self::load) does. Needs the feature `snapshot`.
    ///
    /// # Errors
    /// A [`LoadPathError`] with the path and the reason, which is as for `load`. A file that cannot be opened is
    /// [`LoadError::NotFound`] or [`LoadError::Io`]; one in which something follows the snapshot has
    /// [`TrailingBytes`](crate::SnapshotDamage::TrailingBytes).
    pub fn load_from_path(path: impl AsRef<Path>, hasher: S, memory_limit: usize) -> Result<Self, LoadPathError> {
        Ok(Loader::<Self, S>::new(hasher, memory_limit).load_from_path(path)?.filter)
    }
}

/// The settings for loading a filter of recent keys.
impl<T: ?Sized, S> Loader<RecentCuckooFilter<T, S>, S> {
    /// Sets the clock of a filter of a time, as [`RecentBuilder::clock`](crate::RecentBuilder::clock) does: the loaded filter
    /// takes the time from this function. By default, it goes by the system's clock, which it reads for the first time in the
    /// first operation on it.
    ///
    /// What the clock returns when the snapshot is loaded is now, and each key keeps its age.
    pub fn clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.by_time(TimeSource::of_caller(clock))
    }
}

impl<T: ?Sized, S: Send + Sync> HasImageSource for RecentCuckooFilter<T, S> {
    fn image_source(&self) -> &(dyn ImageSource + 'static) {
        self.parts.core.image_source()
    }
}

impl<T: ?Sized, S: BuildHasher> FromSnapshot<S> for RecentCuckooFilter<T, S> {
    fn from_snapshot(source: SnapshotSource<'_>, hasher: S, schema: Schema) -> Result<Loaded<Self>, LoadError> {
        let (parts, metadata) = Parts::load::<T>(source, hasher, schema, size_of::<Self>())?;
        Ok(Loaded::new(Self::from_parts(parts), metadata))
    }
}

/// Serializes the filter as the bytes of a snapshot. [`save`](Self::save) says what it holds while others change the
/// filter. Needs the feature `serde`.
///
/// `serde` needs all bytes at once, so this makes a second copy of the table, which `save` does not.
///
/// The filter is one value of bytes (`serialize_bytes`). These formats take it, and were tried: JSON, MessagePack,
/// FlexBuffers and Pickle anywhere; CBOR (`ciborium`), `bincode` and `postcard` wherever these take a field; RON, but
/// not in an enum with a `tag`; BSON and TOML as a field of a struct, because they have nothing but documents and
/// tables at the top. **YAML (`serde_yaml`) has no bytes**, and fails.
#[cfg(feature = "serde")]
impl<T: ?Sized, S: BuildHasher> serde::Serialize for RecentCuckooFilter<T, S> {
    fn serialize<R: serde::Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        crate::snapshot::serde::serialize(self.begin_save(), self.plan().memory_usage, serializer)
    }
}

/// Deserializes a filter from the bytes of a snapshot, checked as by [`load`](Self::load). It is for hashers whose
/// default is always the same. Needs the feature `serde`.
///
/// With any other hasher this does not compile. [`StableDefault`](crate::StableDefault) shows the way that does, a
/// [`Loader`].
///
/// **There is no memory limit, except by the bytes.** No table is allocated before its bytes are there. So the filter
/// uses at most 1.25 times its bytes, and a fixed part of 0.5 KiB. Loading also needs the input in memory (three times
/// for a format without bytes, such as JSON). If that is too much, use a `Loader`, which takes a limit.
#[cfg(feature = "serde")]
impl<'de, T: ?Sized, S: crate::StableDefault> serde::Deserialize<'de> for RecentCuckooFilter<T, S> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::DeserializeSeed;

        Loader::<Self, S>::new(S::default(), usize::MAX).deserialize(deserializer)
    }
}
