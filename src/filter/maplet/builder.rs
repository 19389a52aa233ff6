//! How a [`CuckooMaplet`] is built.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::Settings;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
use crate::plan::sizing::RateHolds;
use crate::plan::table_plan::TablePlan;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::filter_plan::FilterPlan;
use crate::table::table::memory_for;
use crate::word::layout::MOST_PAYLOAD_BITS;

/// Construction with the default hasher, which is keyed at random for each maplet and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> CuckooMaplet<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// maplets that are built from either.
    pub fn builder() -> MapletBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> CuckooMaplet<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the maplet mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::CuckooMaplet;
    ///
    /// type Filter = CuckooMaplet<str, RandomState>; // one name for every use
    /// let builder = Filter::builder_with_hasher(RandomState::new()).capacity(1000).value_bits(4);
    /// let (plan, filter): (_, Filter) = (builder.plan()?, builder.build()?);
    /// assert_eq!(plan.capacity, filter.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> MapletBuilder<T, S> {
        let settings = Settings::new(FilterKind::Maplet);
        MapletBuilder { settings, value_bits: None, hasher, key: PhantomData }
    }
}

/// Builds a [`CuckooMaplet`]. [`CuckooMaplet::builder`] makes one. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
#[must_use = "a builder does nothing until `build` is called"]
pub struct MapletBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    value_bits: Option<u32>,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The settings that all builders have.
impl<T: ?Sized, S> MapletBuilder<T, S> {
    /// Sets how many pairs of a key and a value the maplet must be able to hold: [`CuckooMaplet::capacity`] says what that
    /// promises. Required. Any number works, without rounding to powers of two; 0 builds the smallest maplet, two buckets.
    pub fn capacity(mut self, pairs: usize) -> Self {
        self.settings.capacity = Some(pairs);
        self
    }

    /// Sets the largest acceptable false-positive rate: the share of lookups of absent keys that may find a value. The
    /// default is 0.001 (0.1%).
    ///
    /// It holds up to the [capacity](CuckooMaplet::capacity). The maplet takes pairs beyond that while there is room,
    /// and the rate then rises in proportion. The builder chooses the layout with the least memory. The actual rate is
    /// often lower: see [`FilterPlan::max_false_positive_rate`].
    ///
    /// The rate of each layout with every slot taken, by the bits that a key takes at capacity. Somewhat lower rates take
    /// the same layout with fewer slots taken, if that needs less memory than the next one:
    ///
    /// | value bits | 11.0 bits per key | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|
    /// | 1 | 0.59% | 0.12% | 0.012% | 0.0003% | 1.9e-9 |
    /// | 2 | 1.2% | 0.25% | 0.024% | 0.0006% | 3.8e-9 |
    /// | 4 | 5.1% | 1.0% | 0.098% | 0.0023% | 1.5e-8 |
    /// | 6 | – | 4.3% | 0.39% | 0.0092% | 6e-8 |
    /// | 8 | – | – | 1.7% | 0.037% | 2.4e-7 |
    /// | 12 | – | – | – | 0.6% | 3.8e-6 |
    /// | 16 | – | – | – | – | 0.0061% |
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
    /// `always`, and if it has such pages free. On other systems the maplet does not ask. Huge pages use no more
    /// memory, but a machine that is short of free ones may take longer to build the maplet. A maplet that is loaded,
    /// or made by `empty_like`, uses regular pages.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// Sets the schema of this maplet's snapshots: a short name for what the keys are, up to 255 bytes. Each snapshot
    /// contains it, and `load` compares it. The default is the name of the key type.
    ///
    /// **Another schema is an error.** Without this check, a maplet of other keys would answer "definitely absent" to
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
    pub fn hasher<S2>(self, hasher: S2) -> MapletBuilder<T, S2> {
        let Self { settings, value_bits, .. } = self;
        MapletBuilder { settings, value_bits, hasher, key: PhantomData }
    }
}

/// What would be built.
impl<T: ?Sized, S> MapletBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout and rate. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let of_value = size_of::<CuckooMaplet<T, S>>();
        Ok(FilterPlan::of_table(FilterKind::Maplet, self.table_plan()?, of_value))
    }
}

impl<T: ?Sized, S> MapletBuilder<T, S> {
    /// Sets how many bits a value has, from 1 to 16. Required. Values are below `2^bits`.
    ///
    /// Each bit doubles the false-positive rate of a layout, or requires a larger layout.
    pub fn value_bits(mut self, bits: u32) -> Self {
        self.value_bits = Some(bits);
        self
    }

    /// Builds the maplet. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the capacity or the number of value bits is missing, if a setting is invalid or cannot be met, or
    /// if the allocation fails. (Some failed allocations [abort the process](crate::ConcurrentBuilder::build).)
    pub fn build(self) -> Result<CuckooMaplet<T, S>, BuildError> {
        let plan = self.table_plan()?;
        let table = plan.table_of_values();
        let table = table.ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(plan.buckets) })?;
        Ok(CuckooMaplet::from_parts(Parts { core: table, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn table_plan(&self) -> Result<TablePlan, BuildError> {
        let capacity = self.settings.checked()?;
        let value_bits = self.value_bits.ok_or(BuildError::ValueBitsMissing)?;
        if !(1..=MOST_PAYLOAD_BITS).contains(&value_bits) {
            return Err(BuildError::InvalidValueBits { value_bits });
        }
        self.settings.plan(capacity, value_bits, RateHolds::UpToCapacity)
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for MapletBuilder<T, S> {
    fn default() -> Self {
        CuckooMaplet::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for MapletBuilder<T, S> {
    fn clone(&self) -> Self {
        let Self { settings, value_bits, hasher, .. } = self;
        Self { settings: settings.clone(), value_bits: *value_bits, hasher: hasher.clone(), key: PhantomData }
    }
}

/// Leaves out the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for MapletBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapletBuilder")
            .field("capacity", &self.settings.capacity)
            .field("false_positive_rate", &self.settings.rate)
            .field("encoding", &self.settings.encoding)
            .field("value_bits", &self.value_bits)
            .finish_non_exhaustive()
    }
}
