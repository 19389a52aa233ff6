//! Loading: how a snapshot becomes a filter.

use core::fmt;
use core::marker::PhantomData;
use std::io::Read;
use std::path::Path;

use crate::error::load::LoadError;
use crate::error::load_path::LoadPathError;
use crate::machine::time::TimeSource;
use crate::snapshot::file;
use crate::snapshot::schema::Schema;
use crate::snapshot::source::{Metadata, SnapshotSource};
use crate::table::filter_plan::FilterPlan;

/// The settings for loading a filter of the type `F`: its hasher `S`, its schema, and how large it may be. Needs
/// the feature `snapshot`.
///
/// `F::load` and `F::load_from_path` are shorter. Use them for keys with the default schema, if you need neither
/// position nor attachment. With the feature `serde`, a loader is also a
/// [`DeserializeSeed`](serde::de::DeserializeSeed), so that a filter can be deserialized with a given hasher. The
/// page [`beyond_one_process`](crate::guide::beyond_one_process) says what to do with snapshots.
///
/// The loaded filter has the settings of the saved one. If your configuration may have changed,
/// [expect](Self::expect_plan) what it says now.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, LoadError, Loader, SnapshotMismatch, StableHashBuilder};
///
/// type Revoked = ConcurrentCuckooFilter<str, StableHashBuilder>;
///
/// let hasher = StableHashBuilder::with_key(*b"sixteen secrets!");
/// let revoked = Revoked::builder_with_hasher(hasher.clone()).capacity(1000).schema("token, version 2").build()?;
/// let mut snapshot = Vec::new();
/// revoked.begin_save()?.position(17).attachment(*b"eu-west").write_to(&mut snapshot)?;
///
/// let loader = Loader::<Revoked, _>::new(hasher.clone(), 1 << 20);
/// let loaded = loader.schema("token, version 2").load(&snapshot[..])?;
/// assert_eq!((loaded.position, &*loaded.attachment), (Some(17), &b"eu-west"[..]));
///
/// // The schema is compared, so another kind of keys is an error, not a filter that answers `false` to everything.
/// let error = Revoked::load(&snapshot[..], hasher, 1 << 20).unwrap_err();
/// assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Schema { .. })), "{error}");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is read until `load` or `load_from_path` is called"]
pub struct Loader<F, S> {
    hasher: S,
    memory_limit: usize,
    schema: Schema,
    plan: Option<FilterPlan>,
    time: TimeSource,
    /// Only a loader of growable filters has one.
    max_capacity: Option<usize>,
    filter: PhantomData<fn() -> F>,
}

impl<F, S> Loader<F, S> {
    /// A loader for filters with this hasher, of at most `memory_limit` bytes, as `memory_usage` counts them.
    ///
    /// The hasher must be the one with which the snapshot was made. The loader allocates nothing larger than the
    /// limit. (Loading also needs an attachment of up to 64 KiB and, if this is the first filter of its semi-sorted
    /// layout, the decode table of 4 to 256 KiB that all filters of that layout share.) For a growable filter, the limit
    /// stays in force after loading, and replaces the one that the filter had: so a filter that is full at its limit gets room by a
    /// higher one. If it has more keys than it takes within a lower one, loading fails with [`LoadError::TooManyKeys`].
    pub fn new(hasher: S, memory_limit: usize) -> Self {
        let (schema, time) = (Schema::default(), TimeSource::default());
        Self { hasher, memory_limit, schema, plan: None, time, max_capacity: None, filter: PhantomData }
    }

    /// Sets the schema that the snapshot must have, as [`ConcurrentBuilder::schema`](crate::ConcurrentBuilder::schema)
    /// has set it. The loaded filter has the same schema. The default is the name of the key type.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Schema::named(schema.into());
        self
    }

    /// Sets the plan that the snapshot's filter must have: that of a builder, or of another filter. With other
    /// settings, loading fails with [`SnapshotMismatch::Settings`](crate::SnapshotMismatch::Settings), and nothing is
    /// allocated for the filter then. By default, a snapshot of any settings is loaded.
    ///
    /// What the builder would build is compared, not the numbers that it was given: the layout and the number of
    /// buckets (and so capacity, rate, value bits), for growable filters those of the smallest and the largest size and
    /// the encoding that was asked for, and the load while they grow, for expiring ones also lifetime, resolution and [`WhenFull`](crate::WhenFull). The memory limit, huge pages and
    /// the schema are not compared.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder, LoadError, Loader, SnapshotMismatch};
    /// type Filter = ConcurrentCuckooFilter<str>;
    /// let hasher = DefaultHashBuilder::new();
    /// let configured = Filter::builder_with_hasher(hasher.clone()).capacity(1_000_000);
    /// let mut snapshot = Vec::new();
    /// configured.clone().build()?.save(&mut snapshot)?;
    ///
    /// let loader = Loader::<Filter, _>::new(hasher, 64 << 20);
    /// loader.clone().expect_plan(configured.plan()?).load(&snapshot[..])?;
    /// let error = loader.expect_plan(configured.capacity(2_000_000).plan()?).load(&snapshot[..]).unwrap_err();
    /// assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Settings { .. })), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_plan(mut self, plan: FilterPlan) -> Self {
        self.plan = Some(plan);
        self
    }
}

impl<F, S> Loader<F, S> {
    pub(crate) fn with_max_capacity(self, keys: usize) -> Self {
        Self { max_capacity: Some(keys), ..self }
    }

    #[cfg(feature = "serde")]
    pub(crate) fn has_limit(&self) -> bool {
        self.memory_limit < usize::MAX
    }

    /// The clock of the loaded filter, if it goes by one: for the types that have this as a setting.
    pub(crate) fn by_time(self, time: TimeSource) -> Self {
        Self { time, ..self }
    }

    /// The hasher, the schema, and what the snapshot must be of.
    pub(crate) fn into_parts(self) -> (S, Schema, Option<FilterPlan>) {
        (self.hasher, self.schema, self.plan)
    }
}

impl<F: FromSnapshot<S>, S> Loader<F, S> {
    /// Reads a snapshot.
    ///
    /// The loader reads exactly the snapshot, in pieces of 8 KiB, and leaves what follows it. It checks everything
    /// that it reads: every number of the header before anything is allocated, every bucket, the number of keys, and
    /// checksums. No input makes this panic, or makes a filter that panics. The checksums detect bursts up to 32 bits,
    /// and all but 1 in 2³² other corruptions. But anyone who makes a snapshot on purpose decides what the filter
    /// answers: only load snapshots from those whom you trust with its answers.
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty filter**:
    /// rebuild it from the source of truth.
    pub fn load(self, mut from: impl Read) -> Result<Loaded<F>, LoadError> {
        self.read_of(&mut from, None)
    }

    /// Reads a snapshot from a file. Nothing may follow the snapshot in the file.
    ///
    /// # Errors
    /// A [`LoadPathError`] with the path and the reason, which is as for [`load`](Self::load). A file that can't be
    /// opened is [`LoadError::NotFound`] or [`LoadError::Io`]; a file with more bytes has
    /// [`TrailingBytes`](crate::SnapshotDamage::TrailingBytes).
    pub fn load_from_path(self, path: impl AsRef<Path>) -> Result<Loaded<F>, LoadPathError> {
        file::read(path.as_ref(), |from, available| self.read_of(from, available))
    }

    pub(crate) fn read_of(self, from: &mut dyn Read, available: Option<u64>) -> Result<Loaded<F>, LoadError> {
        let source = SnapshotSource::new(from, self.memory_limit, available).expecting(self.plan).by_time(self.time);
        let source = source.with_max_capacity(self.max_capacity);
        F::from_snapshot(source, self.hasher, self.schema)
    }
}

impl<F, S: Clone> Clone for Loader<F, S> {
    fn clone(&self) -> Self {
        let &Self { ref hasher, memory_limit, ref schema, plan, ref time, max_capacity, filter } = self;
        let (schema, time) = (schema.clone(), time.clone());
        Self { hasher: hasher.clone(), memory_limit, schema, plan, time, max_capacity, filter }
    }
}

/// Shows nothing of the hasher, whose key is a secret.
impl<F, S> fmt::Debug for Loader<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("memory_limit", &self.memory_limit)
            .field("schema", &self.schema)
            .field("plan", &self.plan)
            .field("max_capacity", &self.max_capacity)
            .finish_non_exhaustive()
    }
}

/// The content of a snapshot: the filter, and what the caller added when saving. Needs the feature `snapshot`.
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
    pub(crate) fn new(filter: F, Metadata { position, attachment }: Metadata) -> Self {
        Self { filter, position, attachment }
    }
}

/// A filter with the hasher `S` that can be loaded. All filters of this crate are. There is nothing to implement: it
/// serves as a bound, for functions that take a [`Loader<F, S>`](Loader). Needs the feature `snapshot`.
pub trait FromSnapshot<S>: Sized {
    /// Reads a snapshot.
    #[doc(hidden)]
    fn from_snapshot(source: SnapshotSource<'_>, hasher: S, schema: Schema) -> Result<Loaded<Self>, LoadError>;
}
