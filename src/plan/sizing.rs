//! PURE: how many buckets a number of items needs.
//!
//! A table is full, for one item, when no path leads from its two buckets to a free slot. Three things cause that
//! before all slots are taken:
//!
//! - **The threshold.** Think of buckets as nodes and of items as edges: all items fit if and only if no `j`
//!   buckets have more than `j·b` items with both ends among them. For random items that holds up to a sharp
//!   threshold of the load (95.9% for b = 3, 98.0, 98.97 and 99.4% for b = 4, 5 and 6). In a small table, the
//!   items may by chance not fit below it. [`MARGIN`] square roots of the number of slots are left free for that.
//! - **One pair.** In a small table of small buckets, the most likely of these failures by a wide margin is that `2b +
//!   1` items share one pair of buckets: see [`pair_limit`].
//! - **The search's budget** (`search/path.rs`). In a large table, from 88% (b = 2) to 99% (b = 8) on, it ends some
//!   search before it finds a path that exists. [`TARGET_LOAD`] stays below that.
//!
//! The result: the probability that fewer distinct random keys than the capacity fill the table is below [`FAILURE`].
//! That is too rare to observe. So it is computed, or measured where it is not so small, or extrapolated from such
//! measurements:
//! - **Up to [`BUDGET`](crate::search::path::BUDGET) buckets** a search finds every path, so an insert fails only if the
//!   items do not fit. A test bounds the probability of that for every table of up to 128 buckets and some larger ones:
//!   it is at most 9e-10 (`small_tables_overflow_with_negligible_probability`). The bound takes all pairs of buckets to
//!   be equally likely. Fingerprints of eight bits favor some pairs, which adds a tenth at most. Where the bound is
//!   one in a hundred, at least half as many real tables have a failing insert:
//!   `small_tables_fail_as_often_as_computed`.
//! - **In larger tables**, filled to the capacity, at most three searches in a million examine more than 512 buckets,
//!   in any layout, and twice as many buckets about square that share. So the budget ends fewer than one search in 1e20
//!   (`path::tests::how_far_searches_go`). That is an extrapolation; tables that are a little fuller confirm it
//!   further. As to the threshold, the capacity lies 14 or more standard deviations below the median of the loads at
//!   which inserts failed.
//!
//! Of 36 million tables of 4 to 1,048,576 buckets, none had an insert that failed below its capacity
//! (`load_at_the_first_failed_insert`). In percent, the capacity, the lowest load at the first failed insert, and the
//! median of these loads:
//!
//! | slots × bits | 16 buckets | 128 | 1,024 | 65,536 |
//! |---|---|---|---|---|
//! | plain 8 × 8 | 79.7: 91.4, 100.0 | 93.2: 98.1, 99.8 | 95.7: 99.5, 99.8 | 96.8: 99.4, 99.6 |
//! | semi-sorted 5 × 14 | 37.5: 82.5, 100.0 | 89.8: 95.8, 99.1 | 94.5: 98.1, 99.0 | 96.7: 98.3, 98.5 |
//! | plain 2 × 32 | 12.5: 18.8, 93.8 | 10.6: 74.6, 90.2 | 37.9: 86.0, 89.8 | 81.6: 88.1, 88.7 |

use crate::word::geometry::Geometry;
use crate::word::layout::{Encoding, Shape};

/// The failure probability that the sizing allows: that any insert fails while a table is filled with `capacity`
/// distinct random keys.
const FAILURE: f64 = 1e-9;

/// The share of the slots of a large table that its capacity may take, for 0 to 8 slots per bucket.
///
/// It is 1 to 5% below the lowest load at which an insert was seen to fail.
const TARGET_LOAD: [f64; 9] = [0.0, 0.0, 0.83, 0.92, 0.955, 0.97, 0.97, 0.97, 0.97];

/// How many square roots of the number of slots the capacity of a small table leaves free.
const MARGIN: [f64; 9] = [0.0, 0.0, 5.0, 3.5, 2.3, 1.8, 1.5, 1.4, 1.2];

/// The share of its slots that a table's capacity may take so that it meets its rate, in 128ths: 1 to 128.
///
/// The rate of a layout is proportional to its load. So a layout whose rate with every slot taken is a little too high
/// meets it with fewer slots taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadLimit(u8);

impl LoadLimit {
    /// The limit of a layout that meets the rate with every slot taken.
    pub(crate) const NONE: Self = Self(128);

    /// The highest limit with which a layout meets the rate. `None` if there is none.
    pub(crate) fn of(shape: Shape, rate: f64) -> Option<Self> {
        // The probability that no slot matches falls geometrically with the load. What is rounded is within a step.
        let share = f64::ln_1p(-rate) / f64::ln_1p(-shape.false_positive_rate(1.0));
        let about = (share * f64::from(Self::NONE.0)) as u8;
        let most = about.saturating_add(1).min(Self::NONE.0);
        (1..=most).rev().map(Self).find(|limit| shape.false_positive_rate(limit.share()) <= rate)
    }

    fn share(self) -> f64 {
        f64::from(self.0) / f64::from(Self::NONE.0)
    }

    /// The limit in seven bits: 0 means none.
    #[cfg(feature = "snapshot")]
    pub(crate) fn number(self) -> u8 {
        self.0 % Self::NONE.0
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn of_number(number: u8) -> Self {
        if number == 0 { Self::NONE } else { Self(number % Self::NONE.0) }
    }
}

/// Up to which load a table is to meet its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateHolds {
    UpToCapacity,
    Always,
}

/// The smallest table for `capacity` items that keeps to the rate: its shape, its number of buckets, and its limit. Of
/// several, the one whose limit is highest, and then the first of [`SHAPES`](crate::word::layout::SHAPES). `Err` has
/// the largest capacity of all, if that is too small, or `None` if no shape keeps to the rate with every slot taken. (A
/// limit exists to save memory. A rate below the lowest would cost ever more of it.)
pub(crate) fn smallest_table(
    rate: f64,
    until: RateHolds,
    encoding: Option<Encoding>,
    payload_bits: u32,
    capacity: usize,
) -> Result<(Shape, usize, LoadLimit), Option<usize>> {
    if rate < Shape::lowest_rate(encoding, payload_bits) {
        return Err(None);
    }
    // A table with a limit may have room for none.
    let items = capacity.max(1);
    let mut smallest: Option<((usize, u8), Shape, LoadLimit)> = None;
    let mut largest_capacity = None;
    for shape in Shape::with(encoding, payload_bits) {
        let Some(limit) = LoadLimit::of(shape, rate) else { continue };
        if until == RateHolds::Always && limit != LoadLimit::NONE {
            continue;
        }
        let most = capacity_of(shape, LARGEST, limit);
        largest_capacity = largest_capacity.max(Some(most));
        if most < items {
            continue;
        }
        let buckets = buckets_for(shape, items, limit).max(shape.least_buckets());
        let size = (buckets, LoadLimit::NONE.0 - limit.0);
        if smallest.is_none_or(|(least, ..)| size < least) {
            smallest = Some((size, shape, limit));
        }
    }
    smallest.map(|((buckets, _), shape, limit)| (shape, buckets, limit)).ok_or(largest_capacity)
}

/// How many items a table of this many buckets, with this limit, has a capacity for. The number of buckets is 1 or
/// even, as [`buckets_for`] makes it.
#[inline(never)]
pub(crate) fn capacity_of(shape: Shape, buckets: usize, limit: LoadLimit) -> usize {
    let slots = buckets as f64 * f64::from(shape.slots);
    capacity_by_room(shape, buckets).min((limit.share() * slots) as usize)
}

fn capacity_by_room(shape: Shape, buckets: usize) -> usize {
    let bucket = shape.slots as usize;
    if buckets <= 2 {
        // All items have the same buckets, so every slot can be used.
        return buckets * bucket;
    }
    let slots = buckets as f64 * bucket as f64;
    let by_load = TARGET_LOAD[bucket] * slots - MARGIN[bucket] * slots.sqrt();
    // Two buckets' worth of items always fit, even if all share one pair.
    (by_load.min(pair_limit(bucket, buckets)) as usize).max(2 * bucket)
}

/// How many items a table can take until the probability that some pair of buckets gets more than it can hold
/// reaches half of [`FAILURE`].
///
/// With `p = (m/2)²` pairs, `n` items and `k = 2b + 1`, that probability is at most
/// `p · C(n, k) / pᵏ < p · nᵏ / (k! · pᵏ)`.
fn pair_limit(bucket: usize, buckets: usize) -> f64 {
    let pairs = (buckets as f64 / 2.0).powi(2);
    let k = 2 * bucket + 1;
    let factorial = (1..=k).map(|i| i as f64).product::<f64>();
    pairs * (FAILURE / 2.0 * factorial / pairs).powf(1.0 / k as f64)
}

/// The smallest table, with this limit, made for `capacity` items.
///
/// Its number of buckets is 1 or even. Then an item has either one bucket, because there is no other, or two that
/// differ (`word/geometry.rs`).
pub(crate) fn buckets_for(shape: Shape, capacity: usize, limit: LoadLimit) -> usize {
    if capacity <= capacity_of(shape, 1, limit) {
        return 1;
    }
    // By bisection: `capacity_of` grows with the number of buckets, which is `2 * middle`.
    let (mut few, mut enough) = (1, LARGEST / 2);
    while few < enough {
        let middle = few + (enough - few) / 2;
        if capacity_of(shape, 2 * middle, limit) >= capacity {
            enough = middle;
        } else {
            few = middle + 1;
        }
    }
    2 * enough
}

/// The expected rate of a table while the share `load` of all slots is taken.
pub(crate) fn false_positive_rate(shape: Shape, buckets: usize, load: f64) -> f64 {
    // Only a table of one bucket has items with one bucket.
    let buckets_of_an_item = buckets.min(2) as f64;
    shape.false_positive_rate(load * buckets_of_an_item / 2.0)
}

/// The most buckets of a table; even. On 64-bit machines they take 32 GiB, elsewhere all that an allocation can have.
pub(crate) const LARGEST: usize = {
    let addressable = isize::MAX as usize / size_of::<u64>();
    (if addressable < Geometry::MOST { addressable } else { Geometry::MOST }) / 2 * 2
};

#[cfg(test)]
#[path = "sizing_tests.rs"]
mod tests;
