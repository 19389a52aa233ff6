//! How a [`GrowableCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::shared::settings::{Settings, constructors, setting_of_encoding, settings_of_all};
use crate::hasher::default::DefaultHashBuilder;
use crate::tables::growth::{Refusal, Tables};
use crate::tables::growth_plan::{self, Plan};
use crate::word::layout::Encoding;

/// The smallest number of buckets of the first table. It is even, and a smaller number would save too little.
const LEAST_BUCKETS: usize = 32;

constructors! {
    GrowableCuckooFilter by GrowableBuilder:
    /// Makes an empty filter with room for `capacity` keys before it grows. Its false-positive rate is at most 0.1 %
    /// for any number of keys, and its memory has no limit.
}

/// Makes an empty filter of the smallest size, which grows with its keys.
impl<T: ?Sized, S: Default> Default for GrowableCuckooFilter<T, S> {
    fn default() -> Self {
        Self::with_capacity_and_hasher(0, S::default())
    }
}

/// Builds a [`GrowableCuckooFilter`]. [`GrowableCuckooFilter::builder`] makes one.
///
/// ```
/// use concurrent_cuckoo_filter::GrowableCuckooFilter;
///
/// let filter = GrowableCuckooFilter::<str>::builder()
///     .capacity(10_000)
///     .false_positive_rate(1e-4)
///     .memory_limit(1 << 20)
///     .build()?;
/// assert!(filter.memory_usage() <= 1 << 20);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct GrowableBuilder<T: ?Sized, S = DefaultHashBuilder> {
    /// The rate is that of all tables together, the capacity that of the first.
    settings: Settings,
    own: Own,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The settings that only this builder has.
#[derive(Clone, Debug)]
struct Own {
    memory_limit: usize,
}

settings_of_all!(GrowableBuilder);
setting_of_encoding!(GrowableBuilder);

impl<T: ?Sized, S> GrowableBuilder<T, S> {
    fn with_hasher(hasher: S) -> Self {
        let own = Own { memory_limit: usize::MAX };
        Self { settings: Settings::new(FilterKind::Growable), own, hasher, key: PhantomData }
    }

    /// Sets how many keys the filter can hold before it grows for the first time. This is required; 0 is allowed.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::builder().capacity(10_000).build()?;
    /// (0..10_000).try_for_each(|key| filter.insert(&key))?;
    /// assert_eq!(filter.tables(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(mut self, keys: usize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }

    /// Sets the largest acceptable false-positive rate of the whole filter, however much it grows: the share of
    /// lookups of absent keys that may be answered `true`. It is 0.001 (0.1 %) if not called.
    ///
    /// Each table gets five eighths of what the tables before it have left of the rate. Its own rate stays within
    /// that with every slot taken.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::GrowableCuckooFilter;
    /// let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).false_positive_rate(1e-4).build()?;
    /// (0..5000).try_for_each(|key| filter.insert(&key))?;
    /// assert!(filter.tables() > 1 && filter.max_false_positive_rate() <= 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets how many bytes the filter may take up: [`memory_usage`](GrowableCuckooFilter::memory_usage) is never
    /// more. There is no limit if not called.
    ///
    /// The filter refuses to grow beyond the limit. Each table is about twice as large as the one before, so a filter
    /// with a limit may stay below half of it.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError};
    /// let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).memory_limit(1 << 14).build()?;
    /// let error = (0..).find_map(|key| filter.insert(&key).err()).expect("it is full at some time");
    /// assert!(matches!(error, InsertError::MemoryLimit { .. }), "{error}");
    /// assert!(filter.memory_usage() <= 1 << 14);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.own.memory_limit = bytes;
        self
    }

    /// Builds the filter, with its first table.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if [`capacity`](Self::capacity) was not called.
    /// - [`BuildError::InvalidRate`] for a rate that is not a number between 0 and 1, both excluded.
    /// - [`BuildError::RateTooLow`] for a rate that 48 tables together could not meet: below about 4.56e-8, or
    ///   7.01e-5 if only semi-sorted tables are allowed.
    /// - [`BuildError::CapacityTooLarge`] for a table that would not fit in the address space.
    /// - `BuildError::SchemaTooLong` for a schema of more than 255 bytes (feature `snapshot`).
    /// - [`BuildError::MemoryLimit`] if the first table alone goes beyond the limit.
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory. (Not all requests can fail; see
    ///   [`Builder::build`](crate::Builder::build).)
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, GrowableCuckooFilter};
    /// let filter = GrowableCuckooFilter::<str>::builder().capacity(1000).build()?;
    /// assert!(filter.is_empty());
    ///
    /// let error = GrowableCuckooFilter::<str>::builder().capacity(1000).memory_limit(100).build().unwrap_err();
    /// assert!(matches!(error, BuildError::MemoryLimit { .. }), "{error}");
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let Self { settings, own: Own { memory_limit }, hasher, .. } = self;
        let capacity = settings.checked()?;
        let Settings { rate, encoding, pages, .. } = settings;
        let lowest = growth_plan::lowest_rate(encoding);
        let first = growth_plan::shapes(rate, encoding).next().filter(|_| rate >= lowest);
        let first = first.ok_or_else(|| settings.rate_too_low(lowest))?;
        let plan = Plan {
            buckets: settings.buckets_for(first, capacity, 1)?.max(LEAST_BUCKETS),
            rate,
            encoding,
            pages,
            memory_limit,
            memory_of_caller: size_of::<GrowableCuckooFilter<T, S>>(),
        };
        let tables = Tables::new(plan).map_err(|refusal| match refusal {
            Refusal::MemoryLimit { needed } => BuildError::MemoryLimit { needed, limit: memory_limit },
            Refusal::OutOfMemory { bytes } => BuildError::OutOfMemory { bytes },
        })?;
        Ok(GrowableCuckooFilter::from_parts(tables, hasher, settings.schema))
    }
}
