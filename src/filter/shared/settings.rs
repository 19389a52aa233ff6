//! The settings that all builders have: how they are stored and checked.

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::machine::memory::Pages;
use crate::plan::sizing::{self, RateHolds};
use crate::plan::table_plan::TablePlan;
use crate::snapshot::schema::Schema;
use crate::word::layout::{Encoding, Shape};

/// The false-positive rate if none is asked for.
const DEFAULT_RATE: f64 = 0.001;

/// What the caller asks of a filter, whatever its type.
#[derive(Clone, Debug)]
pub(in crate::filter) struct Settings {
    pub(in crate::filter) filter: FilterKind,
    pub(in crate::filter) capacity: Option<usize>,
    pub(in crate::filter) rate: f64,
    pub(in crate::filter) encoding: Option<Encoding>,
    pub(in crate::filter) pages: Pages,
    pub(in crate::filter) schema: Schema,
}

impl Settings {
    pub(in crate::filter) fn new(filter: FilterKind) -> Self {
        let (pages, schema) = (Pages::Usual, Schema::default());
        Self { filter, capacity: None, rate: DEFAULT_RATE, encoding: None, pages, schema }
    }

    /// The capacity, if one was given and if every other setting is valid by itself.
    pub(in crate::filter) fn checked(&self) -> Result<usize, BuildError> {
        let capacity = self.capacity.ok_or(BuildError::CapacityMissing { filter: self.filter })?;
        self.check()?;
        Ok(capacity)
    }

    /// Whether each setting beside the capacity is valid by itself.
    pub(in crate::filter) fn check(&self) -> Result<(), BuildError> {
        // 0 is a rate that is too low, and that error names the lowest one.
        if !(0.0..1.0).contains(&self.rate) {
            return Err(BuildError::InvalidRate { rate: self.rate });
        }
        #[cfg(feature = "snapshot")]
        self.schema.check()?;
        Ok(())
    }

    /// The plan of a table with this capacity and this many payload bits (0 in a filter). If none exists, the error
    /// says why. If keys are inserted until every slot is taken, the rate must hold until then.
    pub(in crate::filter) fn plan(
        &self,
        capacity: usize,
        payload_bits: u32,
        until: RateHolds,
    ) -> Result<TablePlan, BuildError> {
        let &Self { filter, encoding, rate, .. } = self;
        match sizing::smallest_table(rate, until, encoding, payload_bits, capacity) {
            Ok((shape, buckets, limit)) => Ok(TablePlan::new(shape, buckets, limit, self.pages)),
            Err(None) => {
                let lowest = Shape::lowest_rate(encoding, payload_bits);
                Err(BuildError::RateTooLow { filter, encoding, value_bits: payload_bits, rate, lowest })
            }
            Err(Some(largest)) => Err(BuildError::CapacityTooLarge { filter, capacity, largest }),
        }
    }
}

/// The filter that `with_capacity` has built.
#[track_caller]
pub(in crate::filter) fn expect_built<F>(capacity: usize, built: Result<F, BuildError>) -> F {
    match built {
        Ok(filter) => filter,
        Err(error) => panic!("with_capacity({capacity}): {error}"),
    }
}
