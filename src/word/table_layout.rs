//! PURE: how a whole table is laid out, in the terms of the API.

use core::fmt;

use crate::word::human::s;
use crate::word::layout::{Encoding, Shape};

/// How the table of a filter is laid out. Filters that are built with the same settings have the same layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TableLayout {
    /// How many buckets there are.
    pub buckets: usize,
    /// How a bucket stores its fingerprints.
    pub encoding: Encoding,
    /// How many slots a bucket has.
    pub slots_per_bucket: usize,
    /// How many bits a fingerprint has.
    pub fingerprint_bits: u32,
    /// How many bits a slot has beside the fingerprint: those of a value or an expiry; 0 in a filter without either.
    pub payload_bits: u32,
}

impl TableLayout {
    pub(crate) fn of(shape: Shape, buckets: usize) -> Self {
        let Shape { encoding, slots, fingerprint_bits, payload_bits } = shape;
        Self { buckets, encoding, slots_per_bucket: slots as usize, fingerprint_bits, payload_bits }
    }

    pub(crate) fn shape(self) -> Shape {
        let Self { encoding, slots_per_bucket, fingerprint_bits, payload_bits, .. } = self;
        Shape { encoding, slots: slots_per_bucket as u32, fingerprint_bits, payload_bits }
    }
}

/// For example "1000 buckets of 5 slots with 14 bits, semi-sorted".
impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buckets, encoding, slots_per_bucket, fingerprint_bits, payload_bits } = self;
        write!(f, "{buckets} bucket{} of {slots_per_bucket} slots with {fingerprint_bits}", s(*buckets as u64))?;
        if *payload_bits > 0 {
            write!(f, " + {payload_bits}")?;
        }
        let encoding = match encoding {
            Encoding::Plain => "plain",
            Encoding::SemiSorted => "semi-sorted",
        };
        write!(f, " bits, {encoding}")
    }
}
