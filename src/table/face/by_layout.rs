//! PURE: dispatches a shape that is chosen at run time to types: one for each shape, for the fast paths
//! (`table/face/dyn_table.rs`).

use crate::error::kind::FilterKind;
use crate::table::entries::{Expiry, Nothing, Value};
use crate::table::expiring::clock::Clock;
use crate::table::face::dyn_table::Shaped;
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::{ExpiringTable, FilterTable, MapletTable};
use crate::table::table::{Table, memory_for};
#[cfg(feature = "snapshot")]
use crate::word::bucket::{Bucket, BucketOps};
#[cfg(feature = "snapshot")]
use crate::word::layout::{Layout, Shape, by_encoding};
use crate::word::layout::{LayoutData, WithPayload, by_shape};
#[cfg(feature = "snapshot")]
use crate::word::payloads::PayloadOps;

impl TablePlan {
    pub(crate) fn table(self) -> Option<Box<dyn FilterTable>> {
        let Self { shape, buckets, limit, pages } = self;
        let table = Table::new(pages, shape, buckets, Nothing)?.with_limit(limit);
        by_shape!(shape, ROW => Some(Box::new(Shaped::<_, ROW> { table })))
    }

    /// An empty table whose slots have a payload, or `None` if there is no memory for it.
    pub(crate) fn table_with_payload(self) -> Option<Box<dyn MapletTable>> {
        let Self { shape, buckets, limit, pages } = self;
        let table = Table::new(pages, shape, buckets, Value)?.with_limit(limit);
        by_shape!(with payload shape, ROW => Some(Box::new(Shaped::<_, ROW> { table })))
    }

    /// An empty table whose entries expire by this clock, or `None` if there is no memory for it.
    pub(crate) fn table_with_clock(self, clock: Clock) -> Option<Box<dyn ExpiringTable>> {
        let Self { shape, buckets, limit, pages } = self;
        let table = Table::new(pages, shape, buckets, Expiry::by(clock)?)?.with_limit(limit);
        by_shape!(with payload shape, ROW => Some(Box::new(Shaped::<_, ROW> { table })))
    }

    /// What `AnyTable::memory_usage` of such a table in a filter of this kind will be, without a clock.
    pub(crate) fn memory_usage(self, filter: FilterKind) -> usize {
        let own = match filter {
            FilterKind::Concurrent | FilterKind::Growable => size_of::<Table<Nothing>>(),
            FilterKind::Maplet => size_of::<Table<Value>>(),
            FilterKind::Expiring | FilterKind::Recent => size_of::<Table<Expiry>>(),
        };
        memory_for(self.buckets).saturating_add(own)
    }
}

/// How many copies words of this shape hold, or the place of the first that no table can hold. `None` if there is no
/// memory for the layout's decode table.
#[cfg(feature = "snapshot")]
pub(crate) fn copies_in(shape: Shape, words: &[u64]) -> Option<Result<u64, usize>> {
    Some(match shape.payload_bits {
        0 => by_encoding!(LayoutData::try_of(shape)?, layout => copies_in_words(layout, words)),
        _ => by_encoding!(WithPayload::try_of(shape)?, layout => copies_in_words(layout, words)),
    })
}

/// The first payload for which `is_it` says so, in words of this shape, and the place of its word. `None` if there is no
/// memory for the layout's decode table.
#[cfg(feature = "snapshot")]
pub(crate) fn first_payload(shape: Shape, words: &[u64], is_it: &dyn Fn(u16) -> bool) -> Option<Option<(usize, u16)>> {
    Some(by_encoding!(WithPayload::try_of(shape)?, layout => first_payload_in_words(layout, words, is_it)))
}

#[cfg(feature = "snapshot")]
fn first_payload_in_words<L: Layout>(layout: L, words: &[u64], is_it: &dyn Fn(u16) -> bool) -> Option<(usize, u16)> {
    (0..).zip(words).find_map(|(nth, &word)| {
        let lanes = layout.lanes_with(Bucket(word), is_it);
        (lanes != 0).then(|| (nth, layout.payload_in(Bucket(word), lanes)))
    })
}

#[cfg(feature = "snapshot")]
fn copies_in_words<L: Layout>(layout: L, words: &[u64]) -> Result<u64, usize> {
    let mut copies = 0;
    for (nth, &word) in words.iter().enumerate() {
        let word = Bucket(word);
        if !layout.is_valid(word) {
            return Err(nth);
        }
        copies += layout.occupied(word) as u64;
    }
    Ok(copies)
}
