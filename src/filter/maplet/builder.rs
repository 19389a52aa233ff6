//! How a [`CuckooMaplet`] is built.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::settings::{Settings, builder};
use crate::hasher::default::{DefaultHashBuilder, Is};
use crate::plan::sizing::RateHolds;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::plan::TablePlan;
use crate::table::table::memory_for;
use crate::word::layout::MOST_PAYLOAD_BITS;

/// The settings that only this builder has.
#[derive(Clone, Debug, Default)]
struct Own {
    value_bits: Option<u32>,
}

builder! {
    /// Builds a [`CuckooMaplet`]. [`CuckooMaplet::builder`] makes one. The page
    /// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
    MapletBuilder of CuckooMaplet as Maplet with Own, ".value_bits(4)";

    /// Sets how many pairs of a key and a value the maplet must be able to hold: [`CuckooMaplet::capacity`] says what that
    /// promises. Required. Any number works, without rounding to powers of two; 0 builds the smallest maplet, two buckets.
    capacity(pairs);

    /// Sets the largest acceptable false-positive rate: the share of lookups of absent keys that may find a value. It is
    /// 0.001 (0.1 %) if not called.
    ///
    /// It holds up to the [capacity](CuckooMaplet::capacity). The maplet takes some more pairs, and with them the rate
    /// rises in proportion. The builder chooses the layout with the least memory. The actual rate is often lower: see
    /// [`FilterPlan::max_false_positive_rate`].
    ///
    /// The rate of each layout with every slot taken, by the bits that a key takes at capacity. Somewhat lower rates take
    /// the same layout with fewer slots taken, if that needs less memory than the next one:
    ///
    /// | value bits | 11.0 bits per key | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|
    /// | 1 | 0.59 % | 0.12 % | 0.012 % | 0.0003 % | 1.9e-9 |
    /// | 2 | 1.2 % | 0.25 % | 0.024 % | 0.0006 % | 3.8e-9 |
    /// | 4 | 5.1 % | 1.0 % | 0.098 % | 0.0023 % | 1.5e-8 |
    /// | 6 | – | 4.3 % | 0.39 % | 0.0092 % | 6e-8 |
    /// | 8 | – | – | 1.7 % | 0.037 % | 2.4e-7 |
    /// | 12 | – | – | – | 0.6 % | 3.8e-6 |
    /// | 16 | – | – | – | – | 0.0061 % |
    false_positive_rate;

    plan;
}

impl<T: ?Sized, S> MapletBuilder<T, S> {
    /// Sets how many bits a value has, from 1 to 16. Required. Values are below `2^bits`.
    ///
    /// Each bit doubles the false-positive rate of a layout, or takes a larger layout.
    pub fn value_bits(mut self, bits: u32) -> Self {
        self.own.value_bits = Some(bits);
        self
    }

    /// Builds the maplet. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the capacity or the number of value bits is missing, if a setting is invalid or cannot be met, or
    /// if the allocation fails. (Some failed allocations [abort the process](crate::Builder::build).)
    pub fn build(self) -> Result<CuckooMaplet<T, S>, BuildError> {
        let plan = self.table_plan()?;
        let table = plan.table_with_payload();
        let table = table.ok_or_else(|| BuildError::OutOfMemory { bytes: memory_for(plan.buckets) })?;
        Ok(CuckooMaplet::from_parts(table, self.hasher, self.settings.schema))
    }

    fn table_plan(&self) -> Result<TablePlan, BuildError> {
        let capacity = self.settings.checked()?;
        let value_bits = self.own.value_bits.ok_or(BuildError::ValueBitsMissing)?;
        if !(1..=MOST_PAYLOAD_BITS).contains(&value_bits) {
            return Err(BuildError::InvalidValueBits { value_bits });
        }
        self.settings.plan(capacity, value_bits, RateHolds::UpToCapacity)
    }

    fn filter_plan(&self) -> Result<FilterPlan, BuildError> {
        let of_value = size_of::<CuckooMaplet<T, S>>();
        Ok(FilterPlan::of_table(FilterKind::Maplet, self.table_plan()?, of_value))
    }
}
