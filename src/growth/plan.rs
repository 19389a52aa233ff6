//! Pure: the sizes of a table that grows, and how full it gets at each.
//!
//! A slot stores `base + sides - depth` bits (`word/classes.rs`), where the base has the bits that the rate asked for takes
//! at the largest size, and a side has one bit for each doubling from one bucket to the largest size. All bits of a class
//! are in the slot and in the number of the bucket together. So the rate follows from the number of keys alone, and is
//! below the one asked for at every size but the largest.
//!
//! A slot has at most 32 bits. So a filter with a low rate and a large maximum begins with more buckets than its first
//! capacity takes.

use crate::error::absorb::TableLayout;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::word::classes::{Classes, GROUP, State};
use crate::word::layout::{Encoding, NEVER_ZERO, Shape};
use crate::word::layouts;

/// The smallest number of buckets.
const LEAST_BUCKETS: usize = if cfg!(ccf_model) { 2 } else { 32 };

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
pub(crate) enum Impossible {
    RateTooLow { lowest: f64 },
    CapacityTooLarge { capacity: usize, largest: usize },
}

/// What is decided about a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) classes: Classes,
    /// The number of buckets at first, which is also the smallest.
    pub(crate) first: usize,
    /// The requested encoding, if any.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) pages: Pages,
    /// The limit for the memory, in bytes, including the caller's own memory.
    pub(crate) memory_limit: usize,
    /// The caller's own memory, in bytes.
    pub(crate) memory_of_caller: usize,
}

/// How full a table gets whose buckets all have so many slots, 0 to 8, at eight places of the split pointer: from 0 to 7/8
/// of a doubling. Buckets that are not split get twice as many keys as those that are. So the middle of a doubling is the
/// worst place.
///
/// Each is 3 to 6 % below the lowest load, in six tables of 65,536 buckets, at which a search of 2,048 buckets found no
/// room (`cargo test --release --lib load_at_the_first_failed_search -- --ignored --nocapture`).
const TARGET: [[f64; 8]; 9] = [
    [0.0; 8],
    [0.0; 8],
    [0.83, 0.795, 0.775, 0.765, 0.765, 0.775, 0.79, 0.81],
    [0.91, 0.87, 0.85, 0.84, 0.845, 0.855, 0.87, 0.89],
    [0.935, 0.90, 0.885, 0.88, 0.885, 0.895, 0.91, 0.925],
    [0.95, 0.915, 0.90, 0.90, 0.905, 0.92, 0.93, 0.94],
    [0.95, 0.92, 0.91, 0.91, 0.915, 0.925, 0.935, 0.945],
    [0.95, 0.925, 0.915, 0.915, 0.92, 0.93, 0.94, 0.945],
    [0.95, 0.93, 0.92, 0.92, 0.925, 0.935, 0.94, 0.945],
];

/// The same where the buckets that are split have one slot more.
const TARGET_OF_TWO: [[f64; 8]; 8] = [
    [0.0; 8],
    [0.0; 8],
    [0.83, 0.755, 0.715, 0.705, 0.725, 0.77, 0.82, 0.87],
    [0.91, 0.84, 0.805, 0.80, 0.82, 0.85, 0.885, 0.91],
    [0.935, 0.875, 0.85, 0.845, 0.865, 0.89, 0.915, 0.93],
    [0.95, 0.89, 0.87, 0.87, 0.885, 0.91, 0.925, 0.94],
    [0.95, 0.90, 0.885, 0.885, 0.90, 0.92, 0.93, 0.945],
    [0.95, 0.91, 0.895, 0.897, 0.91, 0.925, 0.935, 0.945],
];

/// How many square roots of the number of slots a small table leaves free, for 0 to 8 slots in a bucket
/// (`plan/sizing.rs`).
const MARGIN: [f64; 9] = [0.0, 0.0, 5.0, 3.5, 2.3, 1.8, 1.5, 1.4, 1.2];

/// The rate that a lookup of an absent key is answered `true`, with so many keys in a table of these classes.
pub(crate) fn false_positive_rate(classes: Classes, keys: f64) -> f64 {
    // Two random bases are equal with this probability: their lowest bits are never all 0.
    let lows = f64::from(1 << NEVER_ZERO);
    let equal = (lows + 2.0) / (lows * lows) / 2f64.powi((classes.base_bits() - NEVER_ZERO) as i32);
    // A key is in either of two buckets, of which there are half as many even ones as all.
    -f64::exp_m1(2.0 * keys * f64::ln_1p(-equal / 2f64.powi(classes.side_bits() as i32)))
}

/// The lowest rate that a filter can have.
pub(crate) fn lowest_rate(encoding: Option<Encoding>) -> f64 {
    rate_of_base(u32::BITS - LEAST_DOUBLINGS, encoding)
}

/// The rate of the largest table with every slot taken, with a base of so many bits.
fn rate_of_base(base_bits: u32, encoding: Option<Encoding>) -> f64 {
    // With the fewest doublings, which gives the highest rate, by a hair.
    let doublings = LEAST_BUCKETS.ilog2() + 1;
    let classes = Classes::new(base_bits, doublings);
    let slots = layouts::shape(classes, encoding, doublings).slots;
    false_positive_rate(classes, f64::from(slots << doublings))
}

impl Plan {
    pub(crate) fn new(wanted: Wanted) -> Result<Self, Impossible> {
        let Wanted { capacity, max_capacity, rate, encoding } = wanted;
        let fits = |&bits: &u32| rate_of_base(bits, encoding) <= rate;
        let base = (NEVER_ZERO..=u32::BITS - LEAST_DOUBLINGS).find(fits);
        let base = base.ok_or_else(|| Impossible::RateTooLow { lowest: lowest_rate(encoding) })?;
        let of = |side_bits: u32, first: usize| Self::of(Classes::new(base, side_bits), first, encoding);
        let largest = of(sizing::LARGEST.ilog2(), LEAST_BUCKETS).max_capacity();
        let asked = max_capacity.unwrap_or(0).max(capacity);
        if asked > largest {
            return Err(Impossible::CapacityTooLarge { capacity: asked, largest });
        }
        let reach = capacity.max(LEAST_FIRST).saturating_mul(REACH);
        let most = max_capacity.unwrap_or(reach).clamp(asked, largest);
        // A slot of the first table has at most 32 bits.
        let least = |side_bits: u32| 1 << (base + side_bits).saturating_sub(u32::BITS);
        let mut side_bits = LEAST_BUCKETS.ilog2() + 1;
        while of(side_bits, LEAST_BUCKETS).max_capacity() < most
            && (max_capacity.is_some()
                || least(side_bits + 1) <= MOST_FOR_REACH
                || of(side_bits, LEAST_BUCKETS).max_capacity() < asked)
        {
            side_bits += 1;
        }
        let plan = of(side_bits, LEAST_BUCKETS.max(least(side_bits)));
        let first = plan.buckets_for(capacity).expect("it is at most the largest capacity");
        Ok(Self { first: first.max(plan.first), ..plan })
    }

    pub(crate) fn of(classes: Classes, first: usize, encoding: Option<Encoding>) -> Self {
        Self { classes, first, encoding, pages: Pages::Usual, memory_limit: usize::MAX, memory_of_caller: 0 }
    }

    /// The plan that a snapshot declares, if there is such a one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn declared(base_bits: u32, side_bits: u32, first: u64, encoding: Option<Encoding>) -> Option<Self> {
        let possible = (NEVER_ZERO..=u32::BITS).contains(&base_bits)
            && (1..=sizing::LARGEST.ilog2()).contains(&side_bits)
            && (LEAST_BUCKETS as u64..=1 << side_bits).contains(&first)
            && first.is_multiple_of(GROUP as u64)
            && base_bits + side_bits - first.ilog2() <= u32::BITS;
        possible.then(|| Self::of(Classes::new(base_bits, side_bits), first as usize, encoding))
    }

    /// The shape of the buckets that are not split, in a table of this size.
    pub(crate) fn shape(&self, state: State) -> Shape {
        layouts::shape(self.classes, self.encoding, state.level())
    }

    /// The layouts of the first table and of the largest.
    pub(crate) fn first_and_last(&self) -> [TableLayout; 2] {
        [self.first, self.largest()].map(|buckets| TableLayout::of(self.shape(State::of_buckets(buckets)), buckets))
    }

    /// The probability that a lookup of an absent key finds one of so many keys.
    pub(crate) fn rate(&self, keys: f64) -> f64 {
        false_positive_rate(self.classes, keys)
    }

    /// The largest number of buckets.
    pub(crate) fn largest(&self) -> usize {
        1 << self.classes.side_bits()
    }

    /// How many slots the buckets of a table of this size have that are not split, and those that are.
    fn slots_of(&self, state: State) -> [usize; 2] {
        let slots = |depth| layouts::shape(self.classes, self.encoding, depth).slots as usize;
        let level = state.level();
        [slots(level), if state.split() == 0 { 0 } else { slots(level + 1) }]
    }

    /// How many slots a table of this size has.
    pub(crate) fn slots(&self, state: State) -> usize {
        let ([whole, split], level, at) = (self.slots_of(state), state.level(), state.split() as usize);
        whole * ((1 << level) - at) + split * 2 * at
    }

    /// How many items a table of this size is made for.
    pub(crate) fn capacity(&self, state: State) -> usize {
        let ([whole, split], slots) = (self.slots_of(state), self.slots(state) as f64);
        let at = 8.0 * state.split() as f64 / (1u64 << state.level()) as f64;
        let targets = if split > whole { TARGET_OF_TWO[whole] } else { TARGET[whole] };
        let nth = at as usize;
        let next = targets.get(nth + 1).copied().unwrap_or(TARGET[split][0]);
        let target = targets[nth] + (next - targets[nth]) * at.fract();
        ((target * slots - MARGIN[whole] * slots.sqrt()) as usize).max(2 * whole)
    }

    /// How many items the filter can be made for.
    pub(crate) fn max_capacity(&self) -> usize {
        self.capacity(State::of_buckets(self.largest()))
    }

    /// The smallest number of buckets, at least the first, that is made for so many items. `None` if there is none.
    pub(crate) fn buckets_for(&self, items: usize) -> Option<usize> {
        let capacity = |groups: usize| self.capacity(State::of_buckets(groups * GROUP));
        let (mut few, mut enough) = (self.first / GROUP, self.largest() / GROUP);
        if capacity(enough) < items {
            return None;
        }
        while few < enough {
            let middle = few + (enough - few) / 2;
            if capacity(middle) >= items {
                enough = middle;
            } else {
                few = middle + 1;
            }
        }
        Some(enough * GROUP)
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
