//! PURE: lookups in the words of a table of a fixed size.

use crate::table::face::by_layout::{OfLayout, of_layout, of_layout_with_payload};
use crate::view::words::{Lookups, Words};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Buckets, Geometry};
use crate::word::layout::{Borrowed, Fingerprint, Layout, OfShape, Shape};
use crate::word::payloads::{PayloadOps, Payloads};
use crate::word::values::Values;

/// A table whose slots have payloads.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
pub trait PayloadLookups: Lookups {
    fn values(&self, words: Words<'_>, hash: u64) -> Values;

    /// Whether the key has an entry with one of these payloads.
    fn contains_any(&self, words: Words<'_>, hash: u64, payloads: Payloads) -> bool;
}

/// A table without its words. As in `table/face/dyn_table.rs`, lookups are compiled for each shape.
#[derive(Clone, Copy, Debug)]
struct Fixed<L, const SLOTS: u32, const BITS: u32> {
    layout: L,
    buckets: Buckets,
}

impl<L: Layout, const SLOTS: u32, const BITS: u32> Fixed<L, SLOTS, BITS> {
    /// The layout, the key's two buckets and its fingerprint.
    #[inline(always)]
    fn find(&self, words: Words<'_>, hash: u64) -> (Borrowed<'_, L, SLOTS, BITS>, [Bucket; 2], Fingerprint) {
        let layout = Borrowed(&self.layout);
        let item = self.buckets.item(layout, hash);
        (layout, [words.get(item.first), words.get(item.second)], layout.fingerprint_of(item.entry))
    }
}

impl<L: Layout, const SLOTS: u32, const BITS: u32> Lookups for Fixed<L, SLOTS, BITS> {
    fn prefetch(&self, words: Words<'_>, hash: u64) {
        let item = self.buckets.item(Borrowed::<_, SLOTS, BITS>(&self.layout), hash);
        words.prefetch(item.first);
        words.prefetch(item.second);
    }

    fn contains(&self, words: Words<'_>, hash: u64) -> bool {
        let (layout, [first, second], fingerprint) = self.find(words, hash);
        layout.either_holds(first, second, fingerprint)
    }
}

impl<L: Layout, const SLOTS: u32, const BITS: u32> PayloadLookups for Fixed<L, SLOTS, BITS> {
    fn values(&self, words: Words<'_>, hash: u64) -> Values {
        let (layout, [first, second], fingerprint) = self.find(words, hash);
        let found = layout.only_place([first, second], layout.lanes_in_either(first, second, fingerprint));
        if found.several != 0 { layout.values(first, second, fingerprint) } else { layout.value_at(found.place) }
    }

    fn contains_any(&self, words: Words<'_>, hash: u64, payloads: Payloads) -> bool {
        let (layout, [first, second], fingerprint) = self.find(words, hash);
        let pattern = layout.pattern(fingerprint.0);
        let with = |bucket| layout.lanes_with_any(bucket, layout.folded(bucket), pattern, payloads);
        with(first) | with(second) != 0
    }
}

/// A table of this many buckets.
struct Make(Buckets);

impl OfLayout for Make {
    type Made = Box<dyn Lookups>;

    fn make<L: OfShape, const SLOTS: u32, const BITS: u32>(self, layout: L) -> Self::Made {
        Box::new(Fixed::<L, SLOTS, BITS> { layout, buckets: self.0 })
    }
}

/// A table of this many buckets whose slots have payloads.
struct MakeWithPayload(Buckets);

impl OfLayout for MakeWithPayload {
    type Made = Box<dyn PayloadLookups>;

    fn make<L: OfShape, const SLOTS: u32, const BITS: u32>(self, layout: L) -> Self::Made {
        Box::new(Fixed::<L, SLOTS, BITS> { layout, buckets: self.0 })
    }
}

/// Lookups in a table of this shape, or `None` if there is no memory for its decode table.
pub(super) fn lookups(shape: Shape, buckets: usize) -> Option<Box<dyn Lookups>> {
    of_layout(shape, Make(Buckets::new(buckets)))
}

/// Lookups in a table of this shape whose slots have payloads, or `None` if there is no memory for its decode table.
pub(super) fn payload_lookups(shape: Shape, buckets: usize) -> Option<Box<dyn PayloadLookups>> {
    of_layout_with_payload(shape, MakeWithPayload(Buckets::new(buckets)))
}
