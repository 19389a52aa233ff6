//! PURE: dispatches a shape that is chosen at run time to types: one per encoding and, for the fast paths, one per
//! shape (`table/face/dyn_table.rs`).

use crate::table::expiring::clock::Clock;
use crate::table::face::dyn_table::Shaped;
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::{ExpiringTable, FilterTable, MapletTable};
use crate::table::table::{Table, memory_for};
#[cfg(feature = "snapshot")]
use crate::word::bucket::{Bucket, BucketOps};
#[cfg(feature = "snapshot")]
use crate::word::layout::Layout;
use crate::word::layout::{Encoding, Plain, SemiSorted, WithPayload, by_shape};
#[cfg(feature = "snapshot")]
use crate::word::layout::{OfShape, Shape};
#[cfg(feature = "snapshot")]
use crate::word::payloads::PayloadOps;

macro_rules! by_encoding {
    ($shape:expr, $Layout:ident => $body:expr) => {
        match $shape.encoding {
            Encoding::Plain => {
                type $Layout = Plain;
                $body
            }
            Encoding::SemiSorted => {
                type $Layout = SemiSorted;
                $body
            }
        }
    };
}

impl TablePlan {
    pub(crate) fn table(self) -> Option<Box<dyn FilterTable>> {
        let Self { shape, buckets, limit, pages } = self;
        by_shape!(shape, L, SLOTS, BITS => {
            let table = Table::<L>::new(pages, shape, buckets)?.with_limit(limit);
            Some(Box::new(Shaped::<_, SLOTS, BITS> { table }))
        })
    }

    /// An empty table whose slots have a payload, or `None` if there is no memory for it.
    pub(crate) fn table_with_payload(self) -> Option<Box<dyn MapletTable>> {
        let Self { shape, buckets, limit, pages } = self;
        by_shape!(with payload shape, L, SLOTS, BITS => {
            let table = Table::<WithPayload<L>>::new(pages, shape, buckets)?.with_limit(limit);
            Some(Box::new(Shaped::<_, SLOTS, BITS> { table }))
        })
    }

    /// An empty table whose entries expire by this clock, or `None` if there is no memory for it.
    pub(crate) fn table_with_clock(self, clock: Clock) -> Option<Box<dyn ExpiringTable>> {
        let Self { shape, buckets, limit, pages } = self;
        by_shape!(with payload shape, L, SLOTS, BITS => {
            let table = Table::<WithPayload<L>>::new(pages, shape, buckets)?.with_limit(limit).with_clock(clock)?;
            Some(Box::new(Shaped::<_, SLOTS, BITS> { table }))
        })
    }

    /// What `AnyTable::memory_usage` of such a table will be, without a clock.
    pub(crate) fn memory_usage(self) -> usize {
        let own = by_encoding!(self.shape, L => match self.shape.payload_bits {
            0 => size_of::<Table<L>>(),
            _ => size_of::<Table<WithPayload<L>>>(),
        });
        memory_for(self.buckets).saturating_add(own)
    }
}

/// How many copies words of this shape hold, or the place of the first that no table can hold. `None` if there is no
/// memory for the layout's decode table.
#[cfg(feature = "snapshot")]
pub(crate) fn copies_in(shape: Shape, words: &[u64]) -> Option<Result<u64, usize>> {
    Some(by_encoding!(shape, L => match shape.payload_bits {
        0 => copies_in_words(L::try_of(shape)?, words),
        _ => copies_in_words(WithPayload::<L>::try_of(shape)?, words),
    }))
}

/// The first payload for which `is_it` says so, in words of this shape, and the place of its word. `None` if there is no
/// memory for the layout's decode table.
#[cfg(feature = "snapshot")]
pub(crate) fn first_payload(shape: Shape, words: &[u64], is_it: &dyn Fn(u16) -> bool) -> Option<Option<(usize, u16)>> {
    Some(by_encoding!(shape, L => first_payload_in_words(WithPayload::<L>::try_of(shape)?, words, is_it)))
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
