//! The figures of the maplet: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::figures::figures;
use crate::filter::shared::operations::properties;
use crate::filter::stats::Stats;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::traits::AnyTable;

properties!(CuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?");

figures! {
    CuckooMaplet as Maplet of ".capacity(1000).value_bits(4)",
    a "maplet" of "pairs";
    /// A pair is a key and a value, and counts as often as it was inserted.
    len;
    ///
    /// All values of a key are in its two buckets. So a key can have as many values as these buckets have slots, 4 to
    /// 12 depending on the layout. Keys with several values each fill their buckets sooner.
    capacity;
    ///
    /// The bits of a value are the [payload](crate::TableLayout::payload_bits) of its layout.
    plan;
    /// relocations, failed inserts, retries, contention.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    stats;
}
