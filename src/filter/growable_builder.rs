//! How a [`GrowableCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::growable::GrowableCuckooFilter;
use crate::filter::settings::{Settings, constructors, setting_of_encoding, settings_of_all};
use crate::hasher::default::DefaultHashBuilder;
use crate::tables::growth::{Refusal, Tables};
use crate::tables::growth_plan::{self, Plan};
use crate::word::layout::Encoding;

/// The fewest buckets of the first table: even, and not worth a smaller number.
const LEAST_BUCKETS: usize = 32;

constructors! {
    GrowableCuckooFilter by GrowableBuilder:
    /// An empty filter with room for `capacity` keys to begin with, at a false-positive rate of at most 0.1 % for any number
    /// of keys, and with no limit to its memory.
}

/// An empty filter of the smallest size, which grows with its keys.
impl<T: ?Sized, S: Default> Default for GrowableCuckooFilter<T, S> {
    fn default() -> Self {
        Self::with_capacity_and_hasher(0, S::default())
    }
}

/// Builds a [`GrowableCuckooFilter`]; made by [`GrowableCuckooFilter::builder`].
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
    /// The rate is that of all tables, the capacity that of the first.
    settings: Settings,
    own: Own,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// What this builder alone asks for.
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

    /// How many keys the filter is to hold before it grows for the first time. Required; 0 is allowed.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }

    /// The largest acceptable false-positive rate of the whole, however much it grows: the share of lookups of absent keys
    /// that may be answered `true`. 0.001 (0.1 %) if not called.
    ///
    /// Each table may use up five eighths of what the ones before it have left, with every slot taken.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// How many bytes the filter may take up, at most: [`memory_usage`](GrowableCuckooFilter::memory_usage) is never more.
    /// No limit if not called.
    ///
    /// Growth that would go beyond it is refused. Each table is about twice as large as the one before, so a filter with a
    /// limit may stay below half of it.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.own.memory_limit = bytes;
        self
    }

    /// Builds the filter, with its first table.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if [`capacity`](Self::capacity) was not called;
    /// - [`BuildError::InvalidRate`] for a rate that is not between 0 and 1, both excluded, or no number;
    /// - [`BuildError::RateTooLow`] for a rate that 48 tables together could not meet, below about 4.56e-8 (7.01e-5 if only semi-sorted
    ///   ones are allowed);
    /// - [`BuildError::CapacityTooLarge`] for a table that would not fit in the address space;
    /// - `BuildError::SchemaTooLong` for a schema of more than 255 bytes (feature `snapshot`);
    /// - [`BuildError::MemoryLimit`] if the first table alone goes beyond the limit;
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory. (Not all requests can fail; see
    ///   [`Builder::build`](crate::Builder::build).)
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let Self { settings, own: Own { memory_limit }, hasher, .. } = self;
        let capacity = settings.checked()?;
        let Settings { rate, encoding, pages, .. } = settings;
        let lowest = growth_plan::lowest_rate(encoding);
        let first = growth_plan::shapes(rate, encoding).next().filter(|_| rate >= lowest);
        let first = first.ok_or_else(|| settings.rate_too_low(lowest, 1))?;
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
