//! How a [`GrowableCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::shared::settings::{Settings, builder, constructors, setting_of_encoding};
use crate::growth::plan::{Plan, Wanted};
use crate::growth::table::GrowingTable;
use crate::hasher::default::{DefaultHashBuilder, Is};
use crate::table::face::filter_plan::FilterPlan;
use crate::word::layout::Encoding;

/// The first capacity if none is given, or the largest if that is less.
const FIRST_CAPACITY: usize = 1000;

constructors! {
    GrowableCuckooFilter:
    /// Makes an empty filter with room for `capacity` keys before it grows. Its false-positive rate is at most 0.1 % at
    /// any size. It can grow to at least 60 million keys, and to 60 times `capacity`.
}

/// Makes an empty filter of the smallest size, which grows with its keys.
impl<T: ?Sized, S: Default> Default for GrowableCuckooFilter<T, S> {
    fn default() -> Self {
        Self::with_capacity_and_hasher(0, S::default())
    }
}

/// The settings that only this builder has.
#[derive(Clone, Debug, Default)]
struct Own {
    max_capacity: Option<usize>,
    memory_limit: Option<usize>,
}

builder! {
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
    GrowableBuilder of GrowableCuckooFilter as Growable with Own, "";

    /// Sets how many keys the filter can hold before it grows for the first time. If not called, it is 1,000, or
    /// [`max_capacity`](Self::max_capacity) if that is less. 0 builds the smallest filter.
    capacity(keys);

    /// Sets the largest acceptable false-positive rate of the whole filter, however much it grows: the share of
    /// lookups of absent keys that may be answered `true`. It is 0.001 (0.1 %) if not called.
    ///
    /// The rate comes near this only at the [largest size](Self::max_capacity). Before that it is lower.
    false_positive_rate;

    ///
    /// A [`memory_limit`](Self::memory_limit) is checked as `build` checks it. Otherwise it changes nothing here: the plan's
    /// `max_capacity` and `max_memory_usage` are those of the largest size, whether or not the limit ends the growth before.
    /// To learn whether `n` keys fit, plan for `max_capacity(n)`: if they do not,
    /// [`MemoryLimitBelowMaxCapacity`](BuildError::MemoryLimitBelowMaxCapacity) says how many bytes they need.
    plan;
}
setting_of_encoding!(GrowableBuilder);

impl<T: ?Sized, S> GrowableBuilder<T, S> {
    /// Sets how many keys the filter must be able to hold at its largest size. If not called, that is at least 60
    /// million, and 60 times [`capacity`](Self::capacity). (Below a rate of 4·10⁻⁶ it can be less:
    /// [`GrowableCuckooFilter::max_capacity`] tells.)
    ///
    /// The filter has the layout that is best for the rate at this size, so name it if you know it: a filter [far below its
    /// largest size](crate::guide::growth#memory) uses more bits per key. For a low rate and a large number, the filter
    /// begins larger than `capacity` requires.
    pub fn max_capacity(mut self, keys: usize) -> Self {
        self.own.max_capacity = Some(keys);
        self
    }

    /// Sets how many bytes the filter may use: [`memory_usage`](FilterPlan::memory_usage) is never
    /// more. There is no limit if not called.
    ///
    /// The filter grows up to the limit. (Up to 4 KiB, and up to 256 KiB on systems other than 64-bit Linux and macOS, its memory
    /// goes up by doublings; with huge pages, up to 2 MiB.) [`plan`](Self::plan) says how to
    /// learn whether `n` keys fit.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.own.memory_limit = Some(bytes);
        self
    }

    /// Builds the filter, at its first size.
    ///
    /// # Errors
    /// A [`BuildError`] if a setting is invalid or cannot be met, if the filter goes beyond the memory limit at its first
    /// size or before it has the `max_capacity` that was given, or if the allocation fails. (Some failed allocations [abort
    /// the process](crate::Builder::build).)
    pub fn build(self) -> Result<GrowableCuckooFilter<T, S>, BuildError> {
        let table = GrowingTable::new(self.growth_plan()?)?;
        Ok(GrowableCuckooFilter::from_parts(table, self.hasher, self.settings.schema))
    }

    fn growth_plan(&self) -> Result<Plan, BuildError> {
        let Own { max_capacity, memory_limit } = self.own;
        let memory_limit = memory_limit.unwrap_or(usize::MAX);
        self.settings.check()?;
        let Settings { rate, encoding, pages, .. } = self.settings;
        let most = max_capacity.unwrap_or(usize::MAX);
        let capacity = self.settings.capacity.unwrap_or(FIRST_CAPACITY.min(most));
        if most < capacity {
            return Err(BuildError::MaxCapacityBelowCapacity { capacity, max_capacity: most });
        }
        let plan = Plan::new(Wanted { capacity, max_capacity, rate, encoding })?;
        let memory_of_caller = size_of::<GrowableCuckooFilter<T, S>>();
        let plan = Plan { pages, memory_limit, memory_of_caller, ..plan };
        if let Some((needed, limit)) = GrowingTable::beyond_limit(&plan, plan.first) {
            return Err(BuildError::MemoryLimit { needed, limit });
        }
        if let Some(max_capacity) = max_capacity {
            let buckets = plan.buckets_for(max_capacity).expect("the plan is made for so many");
            if let Some((needed, limit)) = GrowingTable::beyond_limit(&plan, buckets) {
                return Err(BuildError::MemoryLimitBelowMaxCapacity { max_capacity, needed, limit });
            }
        }
        Ok(plan)
    }

    fn filter_plan(&self) -> Result<FilterPlan, BuildError> {
        let plan = self.growth_plan()?;
        Ok(GrowingTable::filter_plan(&plan, plan.first))
    }
}
