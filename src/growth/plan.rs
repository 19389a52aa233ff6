//! Pure: the sizes of a growing table, and its load at each.
//!
//! A slot stores `base + sides - depth` bits (`word/classes.rs`). All bits of a class are in the slot and in the number
//! of the bucket together. So the rate depends only on the number of keys and the bits of a class: it is the one asked
//! for at the largest size, and less at every other. Each slot reserves a bit for each further doubling. Of all plans
//! for the most keys, the one whose classes have the fewest bits is chosen.
//!
//! A slot has at most 32 bits. So a filter with a low rate and a large maximum begins with more buckets than its first
//! capacity takes.

use core::ops::Range;

use crate::error::absorb::TableLayout;
use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::word::classes::{Classes, GROUP, State};
use crate::word::layout::{Encoding, NEVER_ZERO, Shape};
use crate::word::layouts;

/// The smallest number of buckets.
const LEAST_BUCKETS: usize = if cfg!(ccf_model) { 2 } else { 32 };

/// The fewest doublings of a filter, whatever its rate.
const LEAST_DOUBLINGS: u32 = 8;

/// The most bits of a base: a slot has them and one for each doubling.
const MOST_BASE_BITS: u32 = u32::BITS - LEAST_DOUBLINGS;

/// By default, a filter can grow to this many keys, and to 60 times its first capacity.
const REACH: usize = 60_000_000;
const REACH_TIMES: usize = 60;

/// The most buckets with which a filter begins to have this reach, if its first capacity takes fewer: 64 KiB.
const MOST_FOR_REACH: usize = (64 << 10) / size_of::<u64>();

/// The requirements for a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) capacity: usize,
    pub(crate) max_capacity: Option<usize>,
    pub(crate) rate: f64,
    pub(crate) encoding: Option<Encoding>,
}

/// What is decided about a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) classes: Classes,
    /// The number of buckets at first, which is also the smallest.
    pub(crate) first: usize,
    /// The largest number of buckets.
    pub(crate) largest: usize,
    /// The requested encoding, if any.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) pages: Pages,
    /// The limit for the memory, in bytes, including the caller's own memory.
    pub(crate) memory_limit: usize,
    /// The caller's own memory, in bytes.
    pub(crate) memory_of_caller: usize,
}

/// The load of a table whose buckets all have 0 to 8 slots, at eight places of the split pointer: from 0 to 7/8 of a
/// doubling. Buckets that are not split get twice as many keys as those that are. So the middle of a doubling is the
/// worst place.
///
/// An insert into a table as full as this takes 0.6 relocations on average
/// (`cargo test --release --lib loads_at_which -- --ignored --nocapture`). Only a table of the largest size gets as full: see
/// [`WHILE_GROWING`].
const TARGET: [[f64; 8]; 9] = [
    [0.0; 8],
    [0.0; 8],
    [0.775, 0.75, 0.735, 0.725, 0.725, 0.73, 0.745, 0.765],
    [0.865, 0.835, 0.815, 0.805, 0.81, 0.82, 0.835, 0.85],
    [0.91, 0.875, 0.855, 0.85, 0.855, 0.865, 0.88, 0.895],
    [0.93, 0.90, 0.88, 0.875, 0.88, 0.895, 0.91, 0.92],
    [0.945, 0.91, 0.895, 0.895, 0.90, 0.915, 0.925, 0.94],
    [0.955, 0.92, 0.905, 0.905, 0.91, 0.92, 0.935, 0.945],
    [0.96, 0.93, 0.915, 0.915, 0.92, 0.93, 0.94, 0.95],
];

/// [`TARGET`] where split buckets have one slot more.
const TARGET_OF_TWO: [[f64; 8]; 8] = [
    [0.0; 8],
    [0.0; 8],
    [0.775, 0.715, 0.69, 0.69, 0.715, 0.75, 0.795, 0.835],
    [0.865, 0.81, 0.785, 0.785, 0.80, 0.83, 0.86, 0.89],
    [0.91, 0.855, 0.835, 0.835, 0.85, 0.87, 0.895, 0.915],
    [0.93, 0.885, 0.865, 0.865, 0.88, 0.90, 0.92, 0.935],
    [0.945, 0.905, 0.885, 0.885, 0.90, 0.92, 0.935, 0.95],
    [0.955, 0.92, 0.90, 0.905, 0.915, 0.93, 0.945, 0.96],
];

/// The share of its [`TARGET`] up to which a table that can grow is filled.
///
/// Such a table is always near that load, so each insert pays for it: with the time that it waits for the memory of
/// further buckets, and with relocations. From empty to two million keys at the default rate, on one thread. (The full
/// and the examined buckets are simulated; the times are of single runs beside other work.)
///
/// | share | bits per key | inserts with both buckets full | buckets examined per insert | relocations per insert | time relative to a fixed filter |
/// |---|---|---|---|---|---|
/// | 1.00 | 23.1 | 0.53 | 4.6 | 0.78 | 2.6 to 3.1 |
/// | 0.96 | 23.7 | 0.46 | 2.7 | 0.59 | 2.7 |
/// | **0.92** | 24.3 | 0.39 | 1.7 | 0.46 | 2.2 |
/// | 0.88 | 25.0 | 0.32 | 1.2 | 0.36 | 2.1 |
/// | 0.84 | 25.7 | 0.26 | 0.8 | 0.28 | 2.0 |
/// | 0.75 | 27.3 | 0.16 | 0.3 | 0.16 | 1.7 |
///
/// The cost is convex in the load, so one that goes up and down between two values should cost more than a constant one of as
/// many bits. (That has not been tried.)
const WHILE_GROWING: f64 = 0.92;

/// How many square roots of the number of slots a small table leaves free, for 0 to 8 slots in a bucket. A table that finds
/// no room below its capacity grows a little early, unless it is at its largest size.
///
/// Among 20,000 tables of 32 buckets each, and fewer of up to 2,048, the first without room was below its target by
/// 2.88 square roots with two slots in a bucket, by 0.85 with three, and by 0.44 with four.
const MARGIN: [f64; 9] = [0.0, 0.0, 4.0, 1.6, 1.0, 0.8, 0.7, 0.6, 0.6];

/// The false-positive rate with this many keys in a table of these classes.
pub(crate) fn false_positive_rate(classes: Classes, keys: f64) -> f64 {
    // Two random bases are equal with this probability: their lowest bits are never all 0.
    let lows = f64::from(1 << NEVER_ZERO);
    let equal = (lows + 2.0) / (lows * lows) / 2f64.powi((classes.base_bits() - NEVER_ZERO) as i32);
    // A key is in either of two buckets, of which there are half as many even ones as all.
    -f64::exp_m1(2.0 * keys * f64::ln_1p(-equal / 2f64.powi(classes.side_bits() as i32)))
}

/// The fewest bits of a class with which this many keys have this rate.
fn bits_for(keys: usize, rate: f64) -> u32 {
    (2.0 * keys.max(1) as f64 / -f64::ln_1p(-rate)).log2().max(0.0) as u32
}

/// How many items a filter can hold by default.
fn reach(capacity: usize, rate: f64) -> usize {
    let mut most = capacity.saturating_mul(REACH_TIMES).max(REACH);
    while bits_for(most, rate) >= u32::BITS + MOST_FOR_REACH.ilog2() {
        most /= 2;
    }
    most
}

/// The lowest rate that a filter can have: that of the smallest table, with every slot taken.
pub(crate) fn lowest_rate(encoding: Option<Encoding>) -> f64 {
    let plan = Plan::of(Classes::new(MOST_BASE_BITS, LEAST_BUCKETS.ilog2() + 1), LEAST_BUCKETS, encoding);
    plan.rate(plan.slots(State::of_buckets(plan.largest)) as f64)
}

impl Plan {
    pub(crate) fn new(wanted: Wanted) -> Result<Self, BuildError> {
        let Wanted { capacity, max_capacity, rate, encoding } = wanted;
        let (filter, lowest) = (FilterKind::Growable, lowest_rate(encoding));
        if rate < lowest {
            return Err(BuildError::RateTooLow { filter, encoding, value_bits: 0, rate, lowest });
        }
        let asked = max_capacity.unwrap_or(0).max(capacity);
        let most = if max_capacity.is_some() { asked } else { reach(capacity, rate).max(asked) };
        let plan = match Self::widest_for(most, rate, encoding) {
            Some(plan) => plan,
            None => {
                let bases = NEVER_ZERO..=MOST_BASE_BITS;
                let widest = bases.filter_map(|base| Self::widest(base, sizing::LARGEST.ilog2(), rate, encoding));
                let widest = widest.max_by_key(Self::max_capacity).expect("the rate is at least the lowest");
                let largest = widest.max_capacity();
                if asked > largest {
                    return Err(BuildError::CapacityTooLarge { filter, capacity: asked, largest });
                }
                widest
            }
        };
        let fits = "it is at most the largest capacity";
        let full = |buckets: usize| plan.capacity_of_share(State::of_buckets(buckets), 1.0);
        let largest = if max_capacity.is_some() { plan.fewest(asked, full).expect(fits) } else { plan.largest };
        let plan = Self { largest, ..plan };
        Ok(Self { first: plan.buckets_for(capacity).expect(fits), ..plan })
    }

    /// The plan for `most` items whose classes have the fewest bits. Its largest table is as large as the rate allows.
    /// `None` if no table holds them.
    fn widest_for(most: usize, rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        let most_sides = sizing::LARGEST.ilog2();
        (bits_for(most, rate)..=MOST_BASE_BITS + most_sides).find_map(|bits| {
            let sides = bits.saturating_sub(MOST_BASE_BITS).max(LEAST_BUCKETS.ilog2() + 1)..=most_sides;
            let mut bases = sides.filter_map(|side_bits| Some((bits.checked_sub(side_bits)?, side_bits)));
            bases.find_map(|(base_bits, side_bits)| {
                let is_possible = base_bits >= NEVER_ZERO
                    && Self::of(Classes::new(base_bits, side_bits), LEAST_BUCKETS, encoding).max_capacity() >= most;
                let plan = is_possible.then(|| Self::widest(base_bits, side_bits, rate, encoding))??;
                (plan.max_capacity() >= most).then_some(plan)
            })
        })
    }

    /// The plan with the largest table that keeps to the rate with every slot taken. `None` if not even the first does.
    fn widest(base_bits: u32, side_bits: u32, rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        // A slot of the first table has at most 32 bits.
        let first = LEAST_BUCKETS.max(1 << (base_bits + side_bits).saturating_sub(u32::BITS));
        let plan = Self::of(Classes::new(base_bits, side_bits), first, encoding);
        let keeps = |groups: usize| plan.rate(plan.slots(State::of_buckets(groups * GROUP)) as f64) <= rate;
        let few = first / GROUP;
        let too_many = first_where(few..plan.largest / GROUP + 1, |groups| !keeps(groups));
        (too_many > few).then_some(Self { largest: (too_many - 1) * GROUP, ..plan })
    }

    /// The plan with tables of all sizes from the first on.
    pub(crate) fn of(classes: Classes, first: usize, encoding: Option<Encoding>) -> Self {
        let largest = 1 << classes.side_bits();
        Self { classes, first, largest, encoding, pages: Pages::Usual, memory_limit: usize::MAX, memory_of_caller: 0 }
    }

    /// The plan that a snapshot declares, if it is valid.
    #[cfg(feature = "snapshot")]
    pub(crate) fn declared(
        [base_bits, side_bits]: [u32; 2],
        [first, largest]: [u64; 2],
        encoding: Option<Encoding>,
    ) -> Option<Self> {
        let possible = (NEVER_ZERO..=u32::BITS).contains(&base_bits)
            && (1..=sizing::LARGEST.ilog2()).contains(&side_bits)
            && (LEAST_BUCKETS as u64..=1 << side_bits).contains(&first)
            && (first..=1 << side_bits).contains(&largest)
            && first.is_multiple_of(GROUP as u64)
            && largest.is_multiple_of(GROUP as u64)
            && base_bits + side_bits - first.ilog2() <= u32::BITS;
        let plan = possible.then(|| Self::of(Classes::new(base_bits, side_bits), first as usize, encoding))?;
        Some(Self { largest: largest as usize, ..plan })
    }

    /// The shape of the buckets that are not split, in a table of this size.
    pub(crate) fn shape(&self, state: State) -> Shape {
        layouts::shape(self.classes, self.encoding, state.level())
    }

    /// The layouts of the first table and of the largest.
    pub(crate) fn first_and_last(&self) -> [TableLayout; 2] {
        [self.first, self.largest].map(|buckets| TableLayout::of(self.shape(State::of_buckets(buckets)), buckets))
    }

    /// The false-positive rate with this many keys.
    pub(crate) fn rate(&self, keys: f64) -> f64 {
        false_positive_rate(self.classes, keys)
    }

    /// The slots of a bucket that is not split, and of one that is, in a table of this size.
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

    /// The capacity of a table of this size.
    pub(crate) fn capacity(&self, state: State) -> usize {
        let share = if state.buckets() == self.largest { 1.0 } else { WHILE_GROWING };
        self.capacity_of_share(state, share)
    }

    /// The capacity of a table of this size that is filled to this share of its [`TARGET`].
    fn capacity_of_share(&self, state: State, share: f64) -> usize {
        let ([whole, split], slots) = (self.slots_of(state), self.slots(state) as f64);
        let at = 8.0 * state.split() as f64 / (1u64 << state.level()) as f64;
        let targets = if split > whole { TARGET_OF_TWO[whole] } else { TARGET[whole] };
        let nth = at as usize;
        let next = targets.get(nth + 1).copied().unwrap_or(TARGET[split][0]);
        let target = share * (targets[nth] + (next - targets[nth]) * at.fract());
        ((target * slots - MARGIN[whole] * slots.sqrt()) as usize).max(2 * whole)
    }

    /// The capacity at the largest size.
    pub(crate) fn max_capacity(&self) -> usize {
        self.capacity(State::of_buckets(self.largest))
    }

    /// The smallest number of buckets, at least the first, with a capacity for this many items. `None` if there is
    /// none.
    pub(crate) fn buckets_for(&self, items: usize) -> Option<usize> {
        self.fewest(items, |buckets| self.capacity(State::of_buckets(buckets)))
    }

    /// [`buckets_for`](Self::buckets_for) with this function as the capacity.
    fn fewest(&self, items: usize, capacity: impl Fn(usize) -> usize) -> Option<usize> {
        let all = self.first / GROUP..self.largest / GROUP + 1;
        let buckets = first_where(all, |groups| capacity(groups * GROUP) >= items) * GROUP;
        (buckets <= self.largest).then_some(buckets)
    }
}

/// The first number for which `is` is true, as it is for all after that; the end of the range if there is none.
fn first_where(Range { start: mut least, end: mut most }: Range<usize>, is: impl Fn(usize) -> bool) -> usize {
    while least < most {
        let middle = least + (most - least) / 2;
        if is(middle) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    least
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
