//! PURE: tables of a fixed size in the bytes of a snapshot. As in `table/by_shape.rs`, single lookups are compiled for each row
//! of `shapes!`, and batches only for each encoding.

use crate::filter::view::words::{SnapshotWords, ViewTable};
use crate::lookup::batch::Hashes;
use crate::lookup::fixed::FixedLookup;
use crate::lookup::query::{AllValues, Presence, Query};
use crate::word::by_row::{ByRow, by_row};
use crate::word::geometry::Geometry;
use crate::word::layout::{Layout, RuntimeLayout, Shape, WithPayload, by_encoding};
use crate::word::payloads::Payloads;
use crate::word::values::Values;

/// A table but for its words: where a key would be.
#[derive(Debug)]
struct Fixed<L> {
    layout: L,
    geometry: Geometry,
    row: usize,
}

/// A lookup in the words of a snapshot, compiled for a row.
type Ask<L, A> = fn(&Fixed<L>, SnapshotWords<'_>, u64) -> A;

/// The same for an entry with one of these payloads.
type AskWith = fn(&Fixed<WithPayload>, Payloads, SnapshotWords<'_>, u64) -> bool;

impl<L: Layout> Fixed<L> {
    fn new(layout: L, shape: Shape, buckets: usize) -> Self {
        Self { layout, geometry: Geometry::new(buckets), row: Shape::row(shape.encoding, shape.slots) }
    }

    /// The answer for the key with this hash. The layout is that of the table, perhaps a known one.
    #[inline(always)]
    fn ask<Q: Query>(&self, layout: impl Layout, query: Q, words: SnapshotWords<'_>, hash: u64) -> Q::Answer {
        let lookup = FixedLookup { layout, geometry: self.geometry, source: words };
        lookup.ask(query, hash, || unreachable!("no thread changes a snapshot"))
    }

    fn ask_all<Q: Query>(
        &self,
        query: Q,
        words: SnapshotWords<'_>,
        hashes: Hashes<'_>,
        answers: &mut dyn FnMut(&[Q::Answer]),
    ) {
        by_encoding!(self.layout, layout => {
            FixedLookup { layout, geometry: self.geometry, source: words }.ask_all(query, hashes, answers);
        });
    }
}

/// The table of a concurrent filter.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Debug)]
pub struct FilterView(Fixed<RuntimeLayout>);

/// The table of a maplet or of an expiring filter.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Debug)]
pub struct PayloadView(Fixed<WithPayload>);

impl FilterView {
    /// A table of this shape, or `None` if there is no memory for its decode table.
    pub(super) fn new(shape: Shape, buckets: usize) -> Option<Self> {
        Some(Self(Fixed::new(RuntimeLayout::try_of(shape)?, shape, buckets)))
    }
}

impl ViewTable for FilterView {
    fn contains(&self, words: SnapshotWords<'_>, hash: u64) -> bool {
        static CONTAINS: ByRow<Ask<RuntimeLayout, bool>> =
            by_row!(shapes, { |table, layout, words, hash| table.ask(layout, Presence::WITH_ANY, words, hash) });
        CONTAINS.of(self.0.row)(&self.0, words, hash)
    }

    fn contains_batch(&self, words: SnapshotWords<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.0.ask_all(Presence::WITH_ANY, words, hashes, answers);
    }
}

impl PayloadView {
    /// A table of this shape, or `None` if there is no memory for its decode table.
    pub(super) fn new(shape: Shape, buckets: usize) -> Option<Self> {
        Some(Self(Fixed::new(WithPayload::try_of(shape)?, shape, buckets)))
    }

    pub(super) fn values(&self, words: SnapshotWords<'_>, hash: u64) -> Values {
        static VALUES: ByRow<Ask<WithPayload, Values>> =
            by_row!(shapes_with_payload, { |table, layout, words, hash| table.ask(layout, AllValues, words, hash) });
        VALUES.of(self.0.row)(&self.0, words, hash)
    }

    pub(super) fn values_batch(
        &self,
        words: SnapshotWords<'_>,
        hashes: Hashes<'_>,
        answers: &mut dyn FnMut(&[Values]),
    ) {
        self.0.ask_all(AllValues, words, hashes, answers);
    }

    /// Whether the key has one of these payloads.
    pub(super) fn contains_with(&self, payloads: Payloads, words: SnapshotWords<'_>, hash: u64) -> bool {
        static CONTAINS_WITH: ByRow<AskWith> = by_row!(shapes_with_payload, {
            |table, layout, payloads, words, hash| table.ask(layout, Presence { with: Some(payloads) }, words, hash)
        });
        CONTAINS_WITH.of(self.0.row)(&self.0, payloads, words, hash)
    }

    pub(super) fn contains_with_batch(
        &self,
        payloads: Payloads,
        words: SnapshotWords<'_>,
        hashes: Hashes<'_>,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        self.0.ask_all(Presence { with: Some(payloads) }, words, hashes, answers);
    }
}

impl ViewTable for PayloadView {
    fn contains(&self, words: SnapshotWords<'_>, hash: u64) -> bool {
        static CONTAINS: ByRow<Ask<WithPayload, bool>> = by_row!(shapes_with_payload, {
            |table, layout, words, hash| table.ask(layout, Presence::WITH_ANY, words, hash)
        });
        CONTAINS.of(self.0.row)(&self.0, words, hash)
    }

    fn contains_batch(&self, words: SnapshotWords<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.0.ask_all(Presence::WITH_ANY, words, hashes, answers);
    }
}
