//! Pure: the sizes and layouts that a filter that grows can have.
//!
//! At level `i` the table has `m << i` buckets and stores `b + k - i` bits of a fingerprint, where `b` are the bits that
//! the requested rate takes at the last level, `k`. Fewer bits leave room for more slots. So for a rate of 0.1 % a bucket
//! has two slots at first and five at the last level. The rate is below the requested one at every level, and far below
//! it before the last.
//!
//! A fingerprint has at most 32 bits, so `k` is at most `32 - b`: 18 doublings for a rate of 0.1 %. If that is too few to
//! reach the largest capacity, the filter begins with more buckets than its first capacity takes.

use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::word::geometry::{Doubled, Geometry};
use crate::word::layout::{Encoding, NEVER_ZERO, Shape};

/// The smallest number of buckets. It is even, and a smaller number would save too little.
const LEAST_BUCKETS: usize = 32;

/// How often a filter can double at least, whatever its rate.
const LEAST_DOUBLINGS: u32 = 8;

/// By default, a filter can grow to this multiple of its first capacity, or of [`LEAST_FIRST`] if that is more.
const REACH: usize = 1 << 16;
const LEAST_FIRST: usize = 1024;

/// How many buckets a filter may begin with for the sake of this reach, if its first capacity takes fewer: a mebibyte.
const MOST_FOR_REACH: usize = (1 << 20) / size_of::<u64>();

/// What a filter is to be able to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) capacity: usize,
    pub(crate) max_capacity: Option<usize>,
    pub(crate) rate: f64,
    pub(crate) encoding: Option<Encoding>,
}

/// Why a filter cannot do that.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unable {
    RateTooLow { lowest: f64 },
    CapacityTooLarge { capacity: usize, largest: usize },
}

/// What is decided about the tables of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Level 0.
    pub(crate) geometry: Doubled,
    pub(crate) doublings: u32,
    /// The requested encoding, if any.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) pages: Pages,
    /// The limit for the memory, in bytes, including the caller's own memory.
    pub(crate) memory_limit: usize,
    /// The caller's own memory, in bytes.
    pub(crate) memory_of_caller: usize,
}

/// The lowest rate that a filter can have.
pub(crate) fn lowest_rate(encoding: Option<Encoding>) -> f64 {
    Shape::doubled(u32::BITS - LEAST_DOUBLINGS, encoding).doubled_false_positive_rate(1.0)
}

/// The fewest bits of a fingerprint that give this rate with every slot taken.
fn base_bits(rate: f64, encoding: Option<Encoding>) -> Option<u32> {
    let fits = |&bits: &u32| Shape::doubled(bits, encoding).doubled_false_positive_rate(1.0) <= rate;
    (NEVER_ZERO + 1..=u32::BITS - LEAST_DOUBLINGS).find(fits)
}

impl Plan {
    pub(crate) fn new(wanted: Wanted) -> Result<Self, Unable> {
        let Wanted { capacity, max_capacity, rate, encoding } = wanted;
        let base = base_bits(rate, encoding).ok_or_else(|| Unable::RateTooLow { lowest: lowest_rate(encoding) })?;
        let last = Shape::doubled(base, encoding);
        let largest = sizing::capacity_of(last, sizing::LARGEST);
        let asked = max_capacity.unwrap_or(0).max(capacity);
        if asked > largest {
            return Err(Unable::CapacityTooLarge { capacity: asked, largest });
        }
        let most =
            max_capacity.unwrap_or_else(|| capacity.max(LEAST_FIRST).saturating_mul(REACH)).clamp(asked, largest);
        let most_buckets = sizing::buckets_for(last, most).max(LEAST_BUCKETS);
        let least = |doublings: u32| {
            let first = Shape::doubled(base + doublings, encoding);
            sizing::buckets_for(first, capacity).max(LEAST_BUCKETS)
        };
        let first = |doublings: u32| {
            let reaching = most_buckets.div_ceil(1 << doublings).next_multiple_of(2);
            let reaching = if max_capacity.is_some() { reaching } else { reaching.min(MOST_FOR_REACH) };
            reaching.max(least(doublings))
        };
        let mut doublings = 0;
        while doublings < u32::BITS - base && least(doublings) << doublings < most_buckets {
            doublings += 1;
        }
        // The first table may be so large that its doublings would not fit.
        while first(doublings) << doublings > sizing::LARGEST {
            doublings -= 1;
        }
        Ok(Self::of(Doubled::new(first(doublings), base, doublings), doublings, encoding))
    }

    /// The plan of a filter with this geometry at level 0.
    pub(crate) fn of(geometry: Doubled, doublings: u32, encoding: Option<Encoding>) -> Self {
        Self { geometry, doublings, encoding, pages: Pages::DEFAULT, memory_limit: usize::MAX, memory_of_caller: 0 }
    }

    /// The plan that a snapshot states, if there is such a one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn stated(buckets: u64, base_bits: u32, doublings: u32, encoding: Option<Encoding>) -> Option<Self> {
        let possible = (NEVER_ZERO + 1..=u32::BITS).contains(&base_bits)
            && doublings <= u32::BITS - base_bits
            && (1..=sizing::LARGEST as u64 >> doublings).contains(&buckets)
            && buckets.is_multiple_of(2);
        possible.then(|| Self::of(Doubled::new(buckets as usize, base_bits, doublings), doublings, encoding))
    }

    /// How many bits of a fingerprint the last level stores.
    #[cfg(feature = "snapshot")]
    pub(crate) fn base_bits(&self) -> u32 {
        self.geometry.at(self.doublings).stored_bits()
    }

    pub(crate) fn shape(&self, level: u32) -> Shape {
        Shape::doubled(self.geometry.at(level).stored_bits(), self.encoding)
    }

    pub(crate) fn buckets(&self, level: u32) -> usize {
        self.geometry.at(level).count()
    }

    /// How many items the table of this level is made for.
    pub(crate) fn capacity(&self, level: u32) -> usize {
        sizing::capacity_of(self.shape(level), self.buckets(level))
    }

    /// How many items the filter can be made for.
    pub(crate) fn max_capacity(&self) -> usize {
        self.capacity(self.doublings)
    }

    /// The lowest level that is made for this many items. `None` if there is none.
    pub(crate) fn level_for(&self, items: usize) -> Option<u32> {
        (0..=self.doublings).find(|&level| self.capacity(level) >= items)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
