//! How a [`GrowableCuckooFilter`] is built.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::{BuildError, FIRST_CAPACITY};
use crate::error::kind::FilterKind;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::{self, Settings};
use crate::growth::growing_table::GrowingTable;
use crate::growth::plan::{LOAD_WHILE_GROWING, LOADS_WHILE_GROWING, Plan, Requirements};
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::filter_plan::FilterPlan;
use crate::word::layout::Encoding;

/// Construction with the default hasher, and with all other settings as they are by default.
impl<T: ?Sized> GrowableCuckooFilter<T> {
    /// Makes an empty filter with room for `capacity` keys before it grows. Its false-positive rate is at most 0.1% at
    /// any size. It can grow to at least 60 million keys. For capacities up to 160 million it can also grow to 60 times the
    /// capacity, and for larger ones to 9.9 billion keys ([`max_capacity`](Self::max_capacity)).
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
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
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

/// Makes an empty filter of the smallest size, which grows with its keys.
impl<T: ?Sized, S: Default> Default for GrowableCuckooFilter<T, S> {
    fn default() -> Self {
        Self::with_capacity_and_hasher(0, S::default())
    }
}

/// Construction with the default hasher, which is keyed at random for each filter and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> GrowableCuckooFilter<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// filters that are built from either.
    pub fn builder() -> GrowableBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> GrowableCuckooFilter<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the filter mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::GrowableCuckooFilter;
    ///
    /// type Filter = GrowableCuckooFilter<str, RandomState>; // one name for every use
    /// let builder = Filter::builder_with_hasher(RandomState::new()).capacity(1000);
    /// let (plan, filter): (_, Filter) = (builder.plan()?, builder.build()?);
    /// assert_eq!(plan.capacity, filter.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> GrowableBuilder<T, S> {
        let settings = Settings::new(FilterKind::Growable);
        GrowableBuilder {
            settings,
            max_capacity: None,
            expected_keys: None,
            load_while_growing: LOAD_WHILE_GROWING,
            memory_limit: None,
            hasher,
            key: PhantomData,
        }
    }
}

/// Builds a [`GrowableCuckooFilter`]. [`GrowableCuckooFilter::builder`] makes one. The page
/// [`growth`](crate::guide::growth) has the memory at each size.
///
/// ```
/// use concurrent_cuckoo_filter::GrowableCuckooFilter;
///
/// let filter = GrowableCuckooFilter::<str>::builder()
///     .capacity(10_000)
///     .false_positive_rate(1e-4)
///     .memory_limit(1 << 20)
///     .build()?;
/// assert!(filter.plan().memory_usage <= 1 << 20);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct GrowableBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    max_capacity: Option<usize>,
    expected_keys: Option<usize>,
    load_while_growing: f64,
    memory_limit: Option<usize>,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The settings that all builders have.
impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// Sets how many keys the filter can hold before it grows for the first time. The default is 1,000, or
    /// [`max_capacity`](Self::max_capacity) if that is less. 0 builds the smallest filter.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }

    /// Sets the largest acceptable false-positive rate of the whole filter: the share of lookups of absent keys that may be
    /// answered `true`. The default is 0.001 (0.1%).
    ///
    /// It holds however much the filter grows, and the rate comes near it only at the [largest size](Self::max_capacity). With
    /// [`expected_keys`](Self::expected_keys) it holds up to that many keys only, and the rate comes near it there. Beyond, it rises
    /// in proportion to the keys.
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
    pub fn hasher<S2>(self, hasher: S2) -> GrowableBuilder<T, S2> {
        let Self { settings, max_capacity, expected_keys, load_while_growing, memory_limit, .. } = self;
        GrowableBuilder {
            settings,
            max_capacity,
            expected_keys,
            load_while_growing,
            memory_limit,
            hasher,
            key: PhantomData,
        }
    }
}

/// What would be built.
impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout and rate. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// A [`memory_limit`](Self::memory_limit) is heeded: the plan's `max_capacity` and `max_memory_usage` are those of the size where
    /// the growth ends, because of the limit or at the largest size. To learn how much memory `n` keys need, plan for
    /// `max_capacity(n)`: if the limit is too low for them,
    /// [`MemoryLimitBelowMaxCapacity`](BuildError::MemoryLimitBelowMaxCapacity) says how many bytes they need.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let plan = self.growth_plan()?;
        Ok(GrowingTable::filter_plan(&plan, plan.first))
    }
}

/// The choice of the encoding.
impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// Restricts the choice of the layout to one encoding of the buckets.
    ///
    /// By default, the builder takes the layout that needs the least memory and, if two need the same, the plain one.
    /// Ask for [`Encoding::Plain`] if the table fits in the cache, and speed is worth the memory of the next layout.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.settings.encoding = Some(encoding);
        self
    }
}

impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// Sets how many keys the filter must be able to hold at its largest size. The default is at least 60 million, and
    /// 60 times [`capacity`](Self::capacity), if the rate allows it: the lower the rate and the larger the capacity,
    /// the less room there is to grow. At 10⁻⁵, a filter of ten million keys can grow to 17 times as many, and one of a
    /// hundred million to 1.5 times. The page `docs/growth.md` of the repository has a
    /// table, and [`GrowableCuckooFilter::max_capacity`] returns the number.
    ///
    /// The filter has the layout that is best for the rate at this size, so set it if you know it: a filter [far below its
    /// largest size](crate::guide::growth#memory) uses more bits per key. For a low rate and a large number, the filter
    /// begins larger than `capacity` requires.
    pub fn max_capacity(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }

    /// Sets how many keys the filter usually holds. The [false-positive rate](Self::false_positive_rate) holds up to
    /// this many keys, and not at every size. By default, it holds at every size.
    ///
    /// **Call it if you know the usual number of keys**, even roughly: a filter for a million keys at 0.1% then uses 16 bits
    /// per key instead of 30. Without it, each slot reserves a bit for each doubling up to the largest size, which most
    /// filters never reach.
    ///
    /// With more keys than expected, the filter grows on, to at least eight times as many (at the default rate, to about 60
    /// times), except near the largest size that any filter can have: from 0.7 billion expected keys on at 10⁻⁶, and from 1.5
    /// billion on at 0.1%. [`FilterPlan::max_capacity`] has the number. Its rate rises in proportion to the keys: twice the keys have twice the rate.
    /// [`Stats::false_positive_rate`](crate::Stats::false_positive_rate) reports it, and
    /// [`FilterPlan::false_positive_rate_with`] computes it for any number of keys. With a
    /// [`max_capacity`](Self::max_capacity), the filter can grow to that, which may take more bits per key.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::GrowableCuckooFilter;
    ///
    /// let plan = GrowableCuckooFilter::<u64>::builder().expected_keys(1_000_000).plan()?;
    /// assert!(plan.false_positive_rate_with(1_000_000) <= 0.001);
    /// assert!(plan.false_positive_rate_with(3_000_000) <= 0.003);
    /// assert!(plan.max_capacity >= Some(8_000_000));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.expected_keys = Some(keys);
        self
    }

    /// Sets how full the filter gets before it grows: its capacity is this share of what it would be if growth ended at
    /// its present size. The share is from 0.70 to 0.95, and 0.85 by default.
    ///
    /// A filter that grows is always about as full as this. The fuller it is, the more often an insert finds both
    /// buckets of its key full and has to relocate other keys, and the less memory the filter uses. So choose a higher
    /// load if the keys stay for long, and a lower one if they have to be loaded quickly. Per key, for twelve million keys
    /// with [`expected_keys`](Self::expected_keys) (`cargo bench --bench growable -- --only=loads --keys=12000000`):
    ///
    /// | load | bits | relocations |
    /// |---|---|---|
    /// | 0.70 | 20.0 | 0.08 |
    /// | 0.75 | 18.9 | 0.13 |
    /// | 0.80 | 17.9 | 0.20 |
    /// | 0.85 | 17.1 | 0.29 |
    /// | 0.90 | 16.2 | 0.41 |
    /// | 0.95 | 15.4 | 0.56 |
    ///
    /// Lookups are as fast with any load. Where growth ends, the load makes no difference: so neither to
    /// [`max_capacity`](Self::max_capacity) nor to the number of keys from which inserts fail. (A
    /// [`memory_limit`](Self::memory_limit) counts the filter's own memory as well, which is larger if the filter begins with
    /// more buckets. So a filter of a few kilobytes may end one step sooner with one load than with another.) Filters that
    /// differ in it alone can be [united](GrowableCuckooFilter::unite).
    ///
    /// ```
    /// use concurrent_cuckoo_filter::GrowableCuckooFilter;
    ///
    /// let builder = GrowableCuckooFilter::<u64>::builder().expected_keys(1_000_000);
    /// let [quick, small] = [0.75, 0.92].map(|load| builder.clone().load_while_growing(load));
    /// let [quick, small] = [quick.build()?, small.build()?];
    /// [&quick, &small].map(|filter| filter.reserve(1_000_000).unwrap());
    /// assert!(quick.stats().memory_usage > small.stats().memory_usage);
    /// assert_eq!(quick.max_capacity(), small.max_capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn load_while_growing(mut self, load: f64) -> Self {
        self.load_while_growing = load;
        self
    }

    /// Sets how many bytes the filter may use: [`memory_usage`](FilterPlan::memory_usage) is never more. By default
    /// there is no limit.
    ///
    /// The filter grows up to the limit. (Up to 4 KiB, and up to 256 KiB on systems other than 64-bit Linux and macOS, its memory
    /// goes up by doublings; with huge pages, up to 2 MiB.) [`plan`](Self::plan) says how to
    /// learn whether `n` keys fit.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Builds the filter, at its first size.
    ///
    /// # Errors
    /// A [`BuildError`] if a setting is invalid or cannot be met, if the filter goes beyond the memory limit at its first
    /// size or before it has the `max_capacity` that was given, or if the allocation fails. (Some failed allocations [abort
    /// the process](crate::ConcurrentBuilder::build).)
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let table = GrowingTable::new(self.growth_plan()?)?;
        Ok(GrowableCuckooFilter::from_parts(Parts { core: table, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn growth_plan(&self) -> Result<Plan, BuildError> {
        let (max_capacity, expected) = (self.max_capacity, self.expected_keys);
        let memory_limit = self.memory_limit.unwrap_or(usize::MAX);
        self.settings.check()?;
        let Settings { rate, encoding, pages, .. } = self.settings;
        let most = max_capacity.unwrap_or(usize::MAX);
        let usual = expected.unwrap_or(usize::MAX);
        let capacity = self.settings.capacity.unwrap_or(FIRST_CAPACITY.min(most).min(usual));
        if most < capacity {
            return Err(BuildError::MaxCapacityBelowCapacity { capacity, max_capacity: most });
        }
        if let Some(expected_keys) = expected
            && !(capacity..=most).contains(&expected_keys)
        {
            return Err(BuildError::InvalidExpectedKeys { capacity, expected_keys, max_capacity });
        }
        let load_while_growing = self.load_while_growing;
        if !LOADS_WHILE_GROWING.contains(&load_while_growing) {
            let [least, most] = [*LOADS_WHILE_GROWING.start(), *LOADS_WHILE_GROWING.end()];
            return Err(BuildError::InvalidLoadWhileGrowing { load_while_growing, least, most });
        }
        let plan = Plan::new(Requirements { capacity, max_capacity, expected, rate, encoding, load_while_growing })?;
        let memory_of_caller = size_of::<GrowableCuckooFilter<T, S>>();
        let plan = Plan { pages, memory_limit, memory_of_caller, ..plan };
        if let Some((needed, limit)) = GrowingTable::beyond_limit(&plan, plan.first) {
            return Err(BuildError::MemoryLimit { capacity, expected_keys: expected, needed, limit });
        }
        if let Some(max_capacity) = max_capacity {
            let buckets = plan.buckets_for(max_capacity).expect("the plan is made for so many");
            if let Some((needed, limit)) = GrowingTable::beyond_limit(&plan, buckets) {
                return Err(BuildError::MemoryLimitBelowMaxCapacity { max_capacity, needed, limit });
            }
        }
        Ok(GrowingTable::limited(plan))
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for GrowableBuilder<T, S> {
    fn default() -> Self {
        GrowableCuckooFilter::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for GrowableBuilder<T, S> {
    fn clone(&self) -> Self {
        let Self { settings, max_capacity, expected_keys, load_while_growing, memory_limit, hasher, .. } = self;
        Self {
            settings: settings.clone(),
            max_capacity: *max_capacity,
            expected_keys: *expected_keys,
            load_while_growing: *load_while_growing,
            memory_limit: *memory_limit,
            hasher: hasher.clone(),
            key: PhantomData,
        }
    }
}

/// Leaves out the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for GrowableBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowableBuilder")
            .field("capacity", &self.settings.capacity)
            .field("false_positive_rate", &self.settings.rate)
            .field("encoding", &self.settings.encoding)
            .field("max_capacity", &self.max_capacity)
            .field("expected_keys", &self.expected_keys)
            .field("load_while_growing", &self.load_while_growing)
            .field("memory_limit", &self.memory_limit)
            .finish_non_exhaustive()
    }
}
