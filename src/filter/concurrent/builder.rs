//! How a [`ConcurrentCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::shared::settings::{Settings, builder, constructors, setting_of_encoding};
use crate::hasher::default::{DefaultHashBuilder, Is};
use crate::plan::sizing::RateHolds;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::table::memory_for;
use crate::word::layout::Encoding;

constructors! {
    ConcurrentCuckooFilter:
    /// Makes an empty filter with room for `capacity` keys, at a false-positive rate of at most 0.1 %.
}

builder! {
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
    Builder of ConcurrentCuckooFilter as Concurrent with (), "";

    /// Sets how many keys the filter must be able to hold: [`ConcurrentCuckooFilter::capacity`] says what that promises.
    /// Required. Any number works, without rounding to powers of two; 0 builds the smallest filter, one bucket.
    capacity(keys);

    /// Sets the largest acceptable false-positive rate: the share of lookups of absent keys that may be answered
    /// `true`. It is 0.001 (0.1 %) if not called.
    ///
    /// **The rate holds up to the [capacity](ConcurrentCuckooFilter::capacity).** The filter takes some more keys, and
    /// with them the rate rises in proportion. The builder chooses the layout with the least memory. Its rate is often
    /// lower than the one asked for ([`FilterPlan::max_false_positive_rate`]).
    ///
    /// Bits per key for ten million keys ([more](crate::guide::choosing_parameters#layouts)):
    ///
    /// | rate | 10 % | 1 % | 0.1 % | 0.05 % | 0.01 % | 10⁻⁵ | 2 · 10⁻⁶ | 10⁻⁶ | 10⁻⁹ |
    /// |---|---|---|---|---|---|---|---|---|---|
    /// | bits | 8.3 | 11.0 | 13.2 | 15.8 | 16.8 | 23.2 | 23.2 | 30.7 | 38.6 |
    false_positive_rate;

    plan;
}
setting_of_encoding!(Builder);

impl<T: ?Sized, S> Builder<T, S> {
    /// Builds the filter. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the capacity is missing, if a setting is invalid or cannot be met, or if the allocation fails. It
    /// names what was asked for and the limit.
    ///
    /// In stable Rust, not every failed allocation becomes an error. With any of the filters, these abort the process:
    ///
    /// - the box around a table of up to 192 bytes, except in a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter);
    /// - with the first filter of the process: what the standard library needs to count the processors;
    /// - when a thread waits for a lock: the table of `parking_lot` with the threads that wait, from 1 KiB on;
    /// - strings: the paths of files, and the schema that is returned from a snapshot.
    pub fn build(self) -> Result<ConcurrentCuckooFilter<T, S>, BuildError> {
        let plan = self.settings.plan(self.settings.checked()?, 0, RateHolds::UpToCapacity)?;
        let table = plan.table().ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(plan.buckets) })?;
        Ok(ConcurrentCuckooFilter::from_parts(table, self.hasher, self.settings.schema))
    }

    fn filter_plan(&self) -> Result<FilterPlan, BuildError> {
        let table = self.settings.plan(self.settings.checked()?, 0, RateHolds::UpToCapacity)?;
        Ok(FilterPlan::of_table(FilterKind::Concurrent, table, size_of::<ConcurrentCuckooFilter<T, S>>()))
    }
}
