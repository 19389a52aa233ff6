//! The ways from a snapshot to a filter.

use core::fmt;
use core::marker::PhantomData;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::load::LoadError;
use crate::snapshot::schema::Schema;
use crate::snapshot::source::{Label, Source};

/// How a filter of the type `F` is loaded: with which hasher `S`, of which schema, and how large it may be. Only with the
/// feature `snapshot`.
///
/// `F::load` and `F::load_from_path` are the short ways, for keys of the default schema and where neither position nor
/// attachment matters. With the feature `serde` this is a [`DeserializeSeed`](serde::de::DeserializeSeed) as well, so that
/// a filter can be deserialized with a hasher.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, LoadError, Loader, StableState};
///
/// type Revoked = ConcurrentCuckooFilter<str, StableState>;
///
/// let hasher = StableState::with_key(*b"sixteen secrets!");
/// let revoked = Revoked::builder_with_hasher(hasher.clone()).capacity(1000).schema("token, version 2").build()?;
/// let mut snapshot = Vec::new();
/// revoked.begin_save()?.position(17).attachment(*b"eu-west").write_to(&mut snapshot)?;
///
/// let loader = Loader::<Revoked, _>::new(hasher.clone(), 1 << 20);
/// let loaded = loader.schema("token, version 2").read(&snapshot[..])?;
/// assert_eq!((loaded.position, &*loaded.attachment), (Some(17), &b"eu-west"[..]));
///
/// // What the keys are is compared, so that another kind of keys is an error, and not a filter that says "no" to all.
/// let error = Revoked::load(&snapshot[..], hasher, 1 << 20).unwrap_err();
/// assert!(matches!(error, LoadError::OtherSchema { .. }), "{error}");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is read until `read` or `read_path` is called"]
pub struct Loader<F, S> {
    hasher: S,
    memory_limit: usize,
    schema: Schema,
    filter: PhantomData<fn() -> F>,
}

impl<F, S> Loader<F, S> {
    /// A loader for filters with this hasher, of at most so many bytes, as `memory_usage` counts them.
    ///
    /// The hasher must be the one with which the snapshot was made. Nothing larger than the limit is allocated. (An
    /// attachment of up to 64 KiB and, if this is the first filter of its layout, the decode table of up to 256 KiB that all
    /// semi-sorted filters share come on top.) Of a growable filter it is the limit from then on.
    pub fn new(hasher: S, memory_limit: usize) -> Self {
        Self { hasher, memory_limit, schema: Schema::default(), filter: PhantomData }
    }

    /// The schema that the snapshot must have, as [`Builder::schema`](crate::Builder::schema) has set it, and which the
    /// loaded filter will have. The name of the key type, if not called.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Schema::named(schema.into());
        self
    }
}

impl<F: FromSnapshot<S>, S> Loader<F, S> {
    /// Reads a snapshot.
    ///
    /// Exactly the snapshot is read, in pieces of 8 KiB, and what follows it is left. All that is read is checked, and no
    /// bytes whatever make this panic, or make a filter that does: every number of the header before anything is allocated,
    /// every bucket, the number of keys, and checksums, which find accidents for certain or nearly so. But whoever makes a
    /// snapshot on purpose decides what the filter says: take snapshots from those whom you trust with its answers.
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: rebuild it from
    /// the source of truth.
    pub fn read(self, mut from: impl Read) -> Result<Loaded<F>, LoadError> {
        self.read_of(&mut from, None)
    }

    /// Reads a snapshot from a file, which must have nothing after it.
    ///
    /// # Errors
    /// As for [`read`](Self::read); a file that can't be opened is [`LoadError::Io`], a longer one
    /// [`LoadError::TrailingBytes`].
    pub fn read_path(self, path: impl AsRef<Path>) -> Result<Loaded<F>, LoadError> {
        let path = path.as_ref();
        let mut file = File::open(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{} can't be opened: {error}", path.display())))?;
        let metadata = file.metadata()?;
        // Of a pipe, the length says nothing.
        self.read_of(&mut file, metadata.is_file().then_some(metadata.len()))
    }

    /// Reads a snapshot from a sequence of numbers, of which nobody knows how many there are.
    #[cfg(feature = "serde")]
    pub(crate) fn read_sequence(self, from: &mut dyn Read) -> Result<Loaded<F>, LoadError> {
        let source = Source::new(from, self.memory_limit, None);
        let source = if self.memory_limit == usize::MAX { source.collecting() } else { source };
        F::from_snapshot(source, self.hasher, self.schema)
    }

    pub(crate) fn read_of(self, from: &mut dyn Read, available: Option<u64>) -> Result<Loaded<F>, LoadError> {
        F::from_snapshot(Source::new(from, self.memory_limit, available), self.hasher, self.schema)
    }
}

impl<F, S: Clone> Clone for Loader<F, S> {
    fn clone(&self) -> Self {
        let Self { hasher, memory_limit, schema, filter } = self;
        Self { hasher: hasher.clone(), memory_limit: *memory_limit, schema: schema.clone(), filter: *filter }
    }
}

/// Without the hasher, whose key is a secret.
impl<F, S> fmt::Debug for Loader<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("memory_limit", &self.memory_limit)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// What a snapshot has: the filter, and what the caller has given it to take along. Only with the feature `snapshot`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded<F> {
    /// The filter.
    pub filter: F,
    /// The [position](crate::Save::position), if there was one.
    pub position: Option<u64>,
    /// The [attachment](crate::Save::attachment), empty if there was none.
    pub attachment: Vec<u8>,
}

impl<F> Loaded<F> {
    pub(crate) fn new(filter: F, Label { position, attachment }: Label) -> Self {
        Self { filter, position, attachment }
    }
}

/// A filter with the hasher `S` that can be loaded: all of this crate's. There is nothing to implement.
pub trait FromSnapshot<S>: Sized {
    /// Reads a snapshot.
    #[doc(hidden)]
    fn from_snapshot(source: Source<'_>, hasher: S, schema: Schema) -> Result<Loaded<Self>, LoadError>;
}
