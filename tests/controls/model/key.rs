//! The keys of models.

use crate::word::geometry::Geometry;
use crate::word::layout::{Fingerprint, Layout};

/// A key, or more precisely a class of keys: a fingerprint, and the order in which its two buckets are tried. In a
/// maplet, also the value of the copy in question.
///
/// `Table::key` and similar functions return keys, because a key depends on the layout of its table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    buckets: usize,
    pub(super) fingerprint: u32,
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) value: u16,
}

impl Key {
    pub(super) fn of(layout: impl Layout, buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        let geometry = Geometry::new(buckets);
        // Multiples of an odd number reach all fingerprints, in their high bits and low.
        let fingerprints = (1..1_000_000u64).map(|n| layout.fingerprint_from(n.wrapping_mul(0x9e37_79b9)));
        let fingerprint = fingerprints.filter(|&f| geometry.alternate(first, f) == second).nth(nth);
        let Fingerprint(fingerprint) = fingerprint.expect("some fingerprint leads there");
        Self { buckets, fingerprint, first, second, value: 0 }
    }

    pub(super) fn at_fingerprint(layout: impl Layout, buckets: usize, first: usize, nth: usize) -> Self {
        let Fingerprint(fingerprint) = layout.fingerprint_from((nth as u64 + 1).wrapping_mul(0x9e37_79b9));
        let second = Geometry::new(buckets).alternate(first, Fingerprint(fingerprint));
        Self { buckets, fingerprint, first, second, value: 0 }
    }

    /// A key of the same class that tries the buckets in the other order.
    pub fn twin(self) -> Self {
        Self { first: self.second, second: self.first, ..self }
    }

    pub fn with(self, value: u16) -> Self {
        Self { value, ..self }
    }

    pub(super) fn lookalike(self, layout: impl Layout) -> Self {
        assert!(layout.is_semi_sorted() && self.first + self.second == 1, "its pair is another one");
        Self { fingerprint: self.fingerprint ^ 1 << layout.lanes().bits, ..self }
    }

    /// The hash of which `Geometry::item` makes this class: in a model, no hash is mixed.
    pub(super) fn hash(self) -> u64 {
        ((self.first as u64) << 32).div_ceil(self.buckets as u64) << 32 | u64::from(self.fingerprint)
    }
}
