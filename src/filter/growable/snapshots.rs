//! Snapshots of a [`GrowableCuckooFilter`]: how it is saved and loaded.

use core::hash::BuildHasher;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::load::LoadError;
use crate::error::load_path::LoadPathError;
use crate::error::memory::OutOfMemory;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::shared::parts::Parts;
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
/// machine. [`load`](Self::load) detects another hasher by the hash of a fixed probe in the snapshot, and other keys
/// by the schema. The page [`beyond_one_process`](crate::guide::beyond_one_process) says what to do with snapshots.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{GrowableCuckooFilter, StableHashBuilder};
///
/// type Revoked = GrowableCuckooFilter<str, StableHashBuilder>;
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!"); // from the configuration
/// let revoked = Revoked::with_capacity_and_hasher(1000, hasher.clone());
/// revoked.insert("token-17")?;
/// # let folder = std::env::temp_dir().join(format!("snapshots-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("GrowableCuckooFilter");
/// revoked.save_to_path(&path)?;
///
/// let loaded = Revoked::load_from_path(&path, hasher.clone(), 1 << 20)?;
/// assert!(loaded.contains("token-17") && loaded.len() == 1);
/// let error = Revoked::load(&b"an empty file is not an empty filter"[..], hasher, 1 << 20).unwrap_err();
/// eprintln!("rebuild the filter: {error}");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// Writes a snapshot of the filter as it is when the call begins, while other threads use it: [`Save`] says exactly
    /// what is in it, and what that costs. Needs the feature `snapshot`.
    ///
    /// The snapshot has the size that the filter has when the call begins, and declares the sizes that it can have. It
    /// is `99 + schema + 8 · buckets` bytes long, where `schema` is the length of the schema in bytes.
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
    /// **`memory_limit` is the filter's limit from then on**, as
    /// [`GrowableBuilder::memory_limit`](crate::GrowableBuilder::memory_limit) sets it: growth beyond it fails. (The
    /// limit of the filter that was saved is not in the snapshot.)
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: rebuild it
    /// from the source of truth.
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

/// The limits of a loaded filter, in place of those that it had when it was saved.
impl<T: ?Sized, S> Loader<GrowableCuckooFilter<T, S>, S> {
    /// Sets how many keys the filter must be able to hold at its largest size, instead of the
    /// [`max_capacity`](crate::GrowableBuilder::max_capacity) with which it was saved. It holds from then on, also in snapshots of
    /// the loaded filter. Only a loader of growable filters has this setting.
    ///
    /// It is the way out if a filter is full and the process that uses it must start: for example if its snapshot, and what has
    /// changed since, are to be loaded and more keys are to come. Unlike other settings, it is not compared with the
    /// [expected plan](Loader::expect_plan). The filter keeps its layout, so with more keys than it was built for, its
    /// false-positive rate rises in proportion; [`Stats::false_positive_rate`](crate::Stats::false_positive_rate) reports it.
    /// [`plan`](GrowableCuckooFilter::plan) has the new numbers.
    ///
    /// # Errors
    /// Loading fails with [`LoadError::MaxCapacity`] if the filter's layout does not reach so far, or if the filter is larger than
    /// that in the snapshot.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{DefaultHashBuilder, GrowableCuckooFilter, LoadError, Loader};
    /// type Filter = GrowableCuckooFilter<u64>;
    /// let hasher = DefaultHashBuilder::new();
    /// let full = Filter::builder_with_hasher(hasher.clone()).capacity(0).max_capacity(1000).build()?;
    /// let keys = (0..).take_while(|key| full.insert(key).is_ok()).count();
    /// assert_eq!(keys, full.max_capacity());
    /// let mut snapshot = Vec::new();
    /// full.save(&mut snapshot)?;
    ///
    /// let loader = Loader::<Filter, _>::new(hasher, 1 << 20);
    /// let larger = loader.clone().max_capacity(2000).load(&snapshot[..])?.filter;
    /// assert!(larger.max_capacity() >= 2000 && larger.insert(&4711).is_ok());
    /// let error = loader.max_capacity(10).load(&snapshot[..]).unwrap_err();
    /// assert!(matches!(error, LoadError::MaxCapacity { .. }), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_capacity(self, keys: usize) -> Self {
        self.with_max_capacity(keys)
    }
}

impl<T: ?Sized, S: Send + Sync> HasImageSource for GrowableCuckooFilter<T, S> {
    fn image_source(&self) -> &(dyn ImageSource + 'static) {
        self.parts.core.image_source()
    }
}

impl<T: ?Sized, S: BuildHasher> FromSnapshot<S> for GrowableCuckooFilter<T, S> {
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
/// The filter is one value of bytes (`serialize_bytes`). These formats accept it, and were tried: JSON, MessagePack,
/// FlexBuffers and Pickle anywhere; CBOR (`ciborium`), `bincode` and `postcard` wherever they accept a field; RON, but
/// not in an enum with a `tag`; BSON and TOML as a field of a struct, because they have nothing but documents and
/// tables at the top level. **YAML (`serde_yaml`) has no type for bytes**, and fails.
#[cfg(feature = "serde")]
impl<T: ?Sized, S: BuildHasher> serde::Serialize for GrowableCuckooFilter<T, S> {
    fn serialize<R: serde::Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        crate::snapshot::serde::serialize(self.begin_save(), self.plan().memory_usage, serializer)
    }
}

/// Deserializes a filter from the bytes of a snapshot, checked as by [`load`](Self::load). It is for hashers whose
/// default is always the same. Needs the feature `serde`.
///
/// With any other hasher this does not compile. [`StableDefault`](crate::StableDefault) shows how a [`Loader`] does it.
///
/// **Only the number of bytes limits the memory.** No table is allocated before its bytes are there. So the filter,
/// whose memory goes up by doublings at first, uses at most 2.4 times its bytes and 10 KiB. Loading also needs the
/// input in memory (three times for a format without bytes, such as JSON). A filter that was loaded in this way can
/// grow without a limit. If that is too much, use a `Loader`, which takes a limit.
#[cfg(feature = "serde")]
impl<'de, T: ?Sized, S: crate::StableDefault> serde::Deserialize<'de> for GrowableCuckooFilter<T, S> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::DeserializeSeed;

        Loader::<Self, S>::new(S::default(), usize::MAX).deserialize(deserializer)
    }
}
