//! Why a time could not be turned into a tick, or back.

use core::error::Error;
use core::time::Duration;

use crate::error::insert::RESOLUTION_UNKNOWN;
use crate::error::message::messages;
use crate::word::human::Time;

/// Why an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) could not turn a time or a duration into ticks of its clock,
/// or ticks into a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TickError {
    /// The filter was built [by ticks](crate::ExpiringBuilder::lifetime_in_ticks), so it does not know how long a tick is.
    ResolutionUnknown,
    /// The time is before 1970, when tick 0 begins. So the system's clock is probably not set.
    #[non_exhaustive]
    BeforeEpoch {
        /// How long before.
        by: Duration,
    },
}

messages! {
    TickError:
    Self::ResolutionUnknown => "{RESOLUTION_UNKNOWN}";
    Self::BeforeEpoch { by } => "the time is {} before 1970, when tick 0 begins; check the system's clock", Time(*by);
}

impl Error for TickError {}
