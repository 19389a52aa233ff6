//! How a [`ConcurrentCuckooFilter`] is built.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::{self, Settings};
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
use crate::plan::sizing::RateHolds;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::filter_plan::FilterPlan;
use crate::table::table::memory_for;
use crate::word::layout::Encoding;

/// Construction with the default hasher, and with all other settings as they are by default.
impl<T: ?Sized> ConcurrentCuckooFilter<T> {
    /// Makes an empty filter with room for `capacity` keys, at a false-positive rate of at most 0.1%.
    ///
    /// [`builder`](Self::builder) has the other settings, and returns an error where this function panics.
    ///
    /// # Panics
    /// Panics if the capacity is beyond the limit of the type, or if the allocation fails.
    #[must_use]
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, DefaultHashBuilder::new())
    }
}

/// Construction with a hasher, and with all other settings as they are by default.
impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// Makes an empty filter as [`with_capacity`](Self::with_capacity) does, with keys hashed by `hasher`:
    /// [`builder_with_hasher`](Self::builder_with_hasher) says which hashers are good.
    ///
    /// # Panics
    /// Panics if the capacity is beyond the limit of the type, or if the allocation fails.
    #[must_use]
    #[track_caller]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        settings::expect_built(capacity, Self::builder_with_hasher(hasher).capacity(capacity).build())
    }
}

/// Construction with the default hasher, which is keyed at random for each filter and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> ConcurrentCuckooFilter<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// filters that are built from either.
    pub fn builder() -> ConcurrentBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the filter mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
    ///
    /// type Filter = ConcurrentCuckooFilter<str, RandomState>; // one name for every use
    /// let builder = Filter::builder_with_hasher(RandomState::new()).capacity(1000);
    /// let (plan, filter): (_, Filter) = (builder.plan()?, builder.build()?);
    /// assert_eq!(plan.capacity, filter.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> ConcurrentBuilder<T, S> {
        let settings = Settings::new(FilterKind::Concurrent);
        ConcurrentBuilder { settings, hasher, key: PhantomData }
    }
}

/// Builds a [`ConcurrentCuckooFilter`]. [`ConcurrentCuckooFilter::builder`] makes one. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::<str>::builder()
///     .capacity(50_000)
///     .false_positive_rate(1e-4)
///     .build()?;
/// assert!(filter.capacity() >= 50_000);
/// assert!(filter.plan().max_false_positive_rate <= 1e-4);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConcurrentBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The settings that all builders have.
impl<T: ?Sized, S> ConcurrentBuilder<T, S> {
    /// Sets how many keys the filter must be able to hold: [`ConcurrentCuckooFilter::capacity`] says what that promises.
    /// Required. Any number works, without rounding to powers of two; 0 builds the smallest filter, one bucket.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }

    /// Sets the largest acceptable false-positive rate: the share of lookups of absent keys that may be answered
    /// `true`. The default is 0.001 (0.1%).
    ///
    /// **The rate holds up to the [capacity](ConcurrentCuckooFilter::capacity).** The filter takes keys beyond that
    /// while there is room, and the rate then rises in proportion. The builder chooses the layout with the least
    /// memory. Its rate is often lower than the one asked for ([`FilterPlan::max_false_positive_rate`]).
    ///
    /// Bits per key for ten million keys ([more](crate::guide::choosing_parameters#layouts)):
    ///
    /// | rate | 10% | 1% | 0.1% | 0.05% | 0.01% | 10⁻⁵ | 2 · 10⁻⁶ | 10⁻⁶ | 10⁻⁹ |
    /// |---|---|---|---|---|---|---|---|---|---|
    /// | bits | 8.3 | 11.0 | 13.2 | 15.8 | 16.8 | 23.2 | 23.2 | 30.7 | 38.6 |
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets whether to ask the system for huge pages for each table of 4 MiB or more. It is off by default.
    ///
    /// With pages of 2 MiB, a lookup in a large table finds the address translations of its two pages in the TLB. In a
    /// table of 192 MB, that makes lookups 5 to 7% faster, single ones and batches (`cargo bench --bench lookups --
    /// --only=batches`).
    ///
    /// This is best effort. Linux grants huge pages if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
    /// `always`, and if it has such pages free. On other systems the filter does not ask. Huge pages use no more
    /// memory, but a machine that is short of free ones may take longer to build the filter. A filter that is loaded,
    /// or made by `empty_like`, uses regular pages.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// Sets the schema of this filter's snapshots: a short name for what the keys are, up to 255 bytes. Each snapshot
    /// contains it, and `load` compares it. The default is the name of the key type.
    ///
    /// **Another schema is an error.** Without this check, a filter of other keys would answer "definitely absent" to
    /// everything.
    ///
    /// The default is [`core::any::type_name`] of the key type (for a longer name, its beginning and a checksum). It
    /// changes if the type is renamed or moved to another module, it differs between `String` and `str`, though they
    /// hash alike, and the compiler does not promise to keep it. So for snapshots that are kept, choose a name
    /// yourself, with a version in it, so you can bump it when the key's meaning changes while its type keeps its name.
    ///
    /// Needs the feature `snapshot`.
    #[cfg(feature = "snapshot")]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.settings.schema = Schema::named(schema.into());
        self
    }

    /// Sets the hasher of the keys. It replaces the one that the builder has.
    ///
    /// If an adversary may choose keys, the hasher needs a secret key: see the page
    /// [`security`](crate::guide::security).
    pub fn hasher<S2>(self, hasher: S2) -> ConcurrentBuilder<T, S2> {
        let Self { settings, .. } = self;
        ConcurrentBuilder { settings, hasher, key: PhantomData }
    }
}

/// What would be built.
impl<T: ?Sized, S> ConcurrentBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout and rate. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let table = self.settings.plan(self.settings.checked()?, 0, RateHolds::UpToCapacity)?;
        Ok(FilterPlan::of_table(FilterKind::Concurrent, table, size_of::<ConcurrentCuckooFilter<T, S>>()))
    }
}

/// The choice of the encoding.
impl<T: ?Sized, S> ConcurrentBuilder<T, S> {
    /// Restricts the choice of the layout to one encoding of the buckets.
    ///
    /// By default, the builder takes the layout that needs the least memory and, if two need the same, the plain one.
    /// Ask for [`Encoding::Plain`] if the table fits in the cache, and speed is worth the memory of the next layout.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.settings.encoding = Some(encoding);
        self
    }
}

impl<T: ?Sized, S> ConcurrentBuilder<T, S> {
    /// Builds the filter. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the capacity is missing, if a setting is invalid or cannot be met, or if the allocation fails. It
    /// names what was asked for and the limit.
    ///
    /// In stable Rust, not every failed allocation becomes an error. With any of the filters, these abort the process:
    ///
    /// - the box around a table of up to 192 bytes, except in a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter);
    /// - with the first filter of the process, except on Linux: what the standard library needs to count the processors;
    /// - when a thread waits for a lock: the table of waiting threads in `parking_lot`, of 1 KiB or more;
    /// - a schema: when it is given, when a builder is cloned, in `empty_like`, when an error names it, when it is returned
    ///   from a snapshot or kept by a `View`, and with each use if it is the name of a key type of more than 255 bytes;
    /// - the paths of files and the messages of errors, when they are made or displayed;
    /// - what the caller's types allocate: a hasher that is cloned, or the clock of a filter of recent keys or a rate limiter.
    pub fn build(self) -> Result<ConcurrentCuckooFilter<T, S>, BuildError> {
        let plan = self.settings.plan(self.settings.checked()?, 0, RateHolds::UpToCapacity)?;
        let table = plan.table().ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(plan.buckets) })?;
        Ok(ConcurrentCuckooFilter::from_parts(Parts { core: table, hasher: self.hasher, schema: self.settings.schema }))
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for ConcurrentBuilder<T, S> {
    fn default() -> Self {
        ConcurrentCuckooFilter::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for ConcurrentBuilder<T, S> {
    fn clone(&self) -> Self {
        let Self { settings, hasher, .. } = self;
        Self { settings: settings.clone(), hasher: hasher.clone(), key: PhantomData }
    }
}

/// Leaves out the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ConcurrentBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentBuilder")
            .field("capacity", &self.settings.capacity)
            .field("false_positive_rate", &self.settings.rate)
            .field("encoding", &self.settings.encoding)
            .finish_non_exhaustive()
    }
}
