//! PURE: the sizes of a growing table, and its load at each.
//!
//! A slot stores `base + sides - depth` bits (`word/classes.rs`). All bits of a class are in the slot and in the number
//! of the bucket together. So the rate depends only on the number of keys and the bits of a class: it is the one asked
//! for at the largest size, and less at every other. Each slot reserves a bit for each further doubling. Of all plans
//! for the most keys, the one whose classes have the fewest bits is chosen.
//!
//! If the caller says how many keys are expected, the rate has to hold up to that many only. Then a class has as many bits
//! as that takes, and the table can grow until its slots have too few bits left: to some 60 times as many keys.
//! Beyond the expected number, the rate rises in proportion to the keys.
//!
//! A slot has at most 32 bits. So a filter with a low rate and a large maximum begins with more buckets than its first
//! capacity takes.

use core::ops::{Range, RangeInclusive};

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::sync::sizes::{GROUP, LEAST_BUCKETS};
use crate::word::classes::{Classes, State};
use crate::word::layout::{Encoding, NEVER_ZERO, Shape};
use crate::word::layouts;
use crate::word::table_layout::TableLayout;

/// The fewest bits of a side.
const LEAST_SIDE_BITS: u32 = LEAST_BUCKETS.ilog2() + 1;

/// The fewest doublings of a filter, whatever its rate.
const LEAST_DOUBLINGS: u32 = 8;

/// The most bits of a base: a slot has them and one for each doubling.
const MOST_BASE_BITS: u32 = u32::BITS - LEAST_DOUBLINGS;

/// The most bits of a class.
const MOST_CLASS_BITS: u32 = MOST_BASE_BITS + sizing::LARGEST.ilog2();

/// A filter whose rate holds up to an expected number of keys can grow to at least this many times as many, if there is a
/// table for them. (At a high rate, a class has more bits than the rate needs for that.)
const LEAST_TIMES_EXPECTED: usize = 8;

/// By how many doublings the `max_capacity` of a filter can be raised when it is loaded, if its bases are long enough.
const SPARE_DOUBLINGS: u32 = 3;

/// The fewest bits of a base that gives bits to the sides. Shorter ones lead to few other buckets.
const LEAST_BASE_TO_SPARE: u32 = 8;

/// By default, a filter can grow to this many keys, and to 60 times its first capacity.
const REACH: usize = 60_000_000;
const REACH_TIMES: usize = 60;

/// The most buckets with which a filter begins to have this reach, if its first capacity takes fewer: 64 KiB. (Twice as many
/// if a class gets one bit more than the rate asks for.)
const MOST_FOR_REACH: usize = (64 << 10) / size_of::<u64>();

/// The requirements for a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirements {
    pub(crate) capacity: usize,
    pub(crate) max_capacity: Option<usize>,
    /// Up to how many keys the rate has to hold, if not at every size. Not less than `capacity`, and not more than
    /// `max_capacity`.
    pub(crate) expected: Option<usize>,
    pub(crate) rate: f64,
    pub(crate) encoding: Option<Encoding>,
    /// One of [`LOADS_WHILE_GROWING`].
    pub(crate) load_while_growing: f64,
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
    /// The share of its [`TARGET`] up to which a table that can grow is filled. It has no part in what classes there are, so
    /// filters that differ in it can be united.
    pub(crate) load_while_growing: f64,
    pub(crate) pages: Pages,
    /// Up to how many keys the rate has to hold, if not at every size. (A snapshot does not say.)
    pub(crate) expected: Option<usize>,
    /// The limit for the memory, in bytes, including the caller's own memory.
    pub(crate) memory_limit: usize,
    /// The most buckets that there may be within this limit.
    pub(crate) within_limit: usize,
    /// The caller's own memory, in bytes.
    pub(crate) memory_of_caller: usize,
}

/// The load of a table whose buckets all have 0 to 8 slots, at eight places of the split pointer: from 0 to 7/8 of a
/// doubling. Buckets that are not split get twice as many keys as those that are. So the middle of a doubling is the
/// worst place.
///
/// An insert into a table as full as this takes 0.6 relocations on average
/// (`cargo test --release --lib loads_at_which -- --ignored --nocapture`). Only a table of the largest size gets as full: see
/// [`LOAD_WHILE_GROWING`].
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

/// By default, a table that can grow is filled to this share of its [`TARGET`].
///
/// Such a table is always near that load, so each insert pays for it: with the time that it waits for the memory of
/// further buckets, and with relocations. `cargo bench --bench growable -- --only=loads` has the price of other shares.
///
/// The cost is convex in the load, so one that goes up and down between two values should cost more than a constant one of as
/// many bits. (That has not been tried.)
pub(crate) const LOAD_WHILE_GROWING: f64 = 0.85;

/// The shares that a builder accepts, and a snapshot may declare. Below the least, memory gains little time. Above the most,
/// nearly every other insert finds both buckets full.
pub(crate) const LOADS_WHILE_GROWING: RangeInclusive<f64> = 0.70..=0.95;

/// How many square roots of the number of slots a small table leaves free, for 0 to 8 slots in a bucket. A table that finds
/// no room below its capacity grows a little early, unless it is at its largest size.
///
/// Among 20,000 tables of 32 buckets each, and fewer of up to 2,048, the first without room was below its target by
/// 2.88 square roots with two slots in a bucket, by 0.85 with three, and by 0.44 with four.
const MARGIN: [f64; 9] = [0.0, 0.0, 4.0, 1.6, 1.0, 0.8, 0.7, 0.6, 0.6];

/// The fewest buckets of a table whose classes have this many bits: a slot has at most 32 of them.
fn least_buckets(class_bits: u32) -> usize {
    LEAST_BUCKETS.max(1 << class_bits.saturating_sub(u32::BITS))
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
    let plan = Plan::of(Classes::new(MOST_BASE_BITS, LEAST_SIDE_BITS), LEAST_BUCKETS, encoding);
    plan.rate(plan.slots(State::of_buckets(plan.largest)) as f64)
}

impl Plan {
    pub(crate) fn new(wanted: Requirements) -> Result<Self, BuildError> {
        let Requirements { capacity, max_capacity, expected, rate, encoding, .. } = wanted;
        let (filter, lowest) = (FilterKind::Growable, lowest_rate(encoding));
        if rate < lowest {
            return Err(BuildError::RateTooLow { filter, encoding, value_bits: 0, rate, lowest });
        }
        if let Some(expected) = expected {
            let plan = Self::for_expected(expected, wanted)?;
            return Ok(Self { expected: Some(expected), ..plan }.that_may_get_larger(max_capacity));
        }
        let asked = max_capacity.unwrap_or(0).max(capacity);
        let most = if max_capacity.is_some() { asked } else { reach(capacity, rate).max(asked) };
        let plan = match Self::widest_for(most, rate, encoding) {
            Some(plan) => plan,
            None => {
                let widest = Self::largest_of(rate, encoding);
                let largest = widest.max_capacity();
                if asked > largest {
                    return Err(BuildError::CapacityTooLarge { filter, capacity: asked, largest });
                }
                widest
            }
        };
        Ok(plan.with_sizes_for(wanted).that_may_get_larger(max_capacity))
    }

    /// This plan, with some bits less in a base and as many more in a side, if a largest capacity was asked for: so who loads a
    /// filter may give it a larger one. All that depends on the bits together stays as it is, such as the rate.
    fn that_may_get_larger(self, max_capacity: Option<usize>) -> Self {
        let (base, sides) = (self.classes.base_bits(), self.classes.side_bits());
        let bits = SPARE_DOUBLINGS.min(base.saturating_sub(LEAST_BASE_TO_SPARE)).min(sizing::LARGEST.ilog2() - sides);
        if max_capacity.is_none() { self } else { Self { classes: Classes::new(base - bits, sides + bits), ..self } }
    }

    /// The plan whose rate holds up to `expected` keys, with the fewest bits of a class with which it does and the table can
    /// grow far enough. Of the plans with these bits, the one with the longest bases that reaches as far as a filter does by
    /// default, or else the one that reaches farthest.
    fn for_expected(expected: usize, wanted: Requirements) -> Result<Self, BuildError> {
        let Requirements { capacity, max_capacity, rate, encoding, .. } = wanted;
        let most = max_capacity.unwrap_or_else(|| expected.saturating_mul(REACH_TIMES).max(REACH));
        let enough = max_capacity.unwrap_or_else(|| expected.saturating_mul(LEAST_TIMES_EXPECTED));
        let mut farthest: Option<Self> = None;
        for bits in bits_for(expected, rate).max(NEVER_ZERO + LEAST_SIDE_BITS)..=MOST_CLASS_BITS {
            // A table of the largest size is filled further than others, so that size is decided first.
            let sized = |plan: Self| {
                let fits = max_capacity.is_none_or(|most| plan.max_capacity() >= most);
                if fits { plan.with_largest_for(capacity, max_capacity) } else { plan }
            };
            let holds = |plan: &Self| sized(*plan).holds_rate_for(expected, rate);
            let holding = || Self::of_class_bits(bits, encoding).filter(holds);
            let Some(widest) = holding().max_by_key(Self::max_capacity) else { continue };
            if widest.max_capacity() >= enough {
                let plan = holding().find(|plan| plan.max_capacity() >= most).unwrap_or(widest);
                return Ok(plan.with_sizes_for(wanted));
            }
            farthest = farthest.into_iter().chain([widest]).max_by_key(Self::max_capacity);
        }
        let too_large =
            |capacity, largest| BuildError::CapacityTooLarge { filter: FilterKind::Growable, capacity, largest };
        match (farthest, max_capacity) {
            (Some(plan), None) => Ok(plan.with_sizes_for(wanted)),
            (Some(plan), Some(most)) => Err(too_large(most, plan.max_capacity())),
            (None, _) => Err(too_large(expected, Self::largest_of(rate, encoding).max_capacity())),
        }
    }

    /// The plans whose classes have this many bits, those with the longest bases first. Their tables are of any size.
    fn of_class_bits(bits: u32, encoding: Option<Encoding>) -> impl Iterator<Item = Self> {
        let splits = (NEVER_ZERO..=MOST_BASE_BITS).rev().filter_map(move |base| Some((base, bits.checked_sub(base)?)));
        let possible = splits.filter(|(_, sides)| (LEAST_SIDE_BITS..=sizing::LARGEST.ilog2()).contains(sides));
        possible.map(move |(base, sides)| Self::of(Classes::new(base, sides), least_buckets(bits), encoding))
    }

    /// Whether a table of the size that this many keys need keeps to the rate up to its capacity.
    fn holds_rate_for(&self, keys: usize, rate: f64) -> bool {
        let buckets = self.buckets_for(keys);
        buckets.is_some_and(|buckets| self.rate(self.capacity(State::of_buckets(buckets)) as f64) <= rate)
    }

    /// The plan with the largest table that keeps to the rate. The rate is at least the lowest.
    fn largest_of(rate: f64, encoding: Option<Encoding>) -> Self {
        let bases = NEVER_ZERO..=MOST_BASE_BITS;
        let widest = bases.filter_map(|base| Self::widest_of(base, sizing::LARGEST.ilog2(), rate, encoding));
        widest.max_by_key(Self::max_capacity).expect("the rate is at least the lowest")
    }

    /// This plan, filled as far as is wanted while it grows, with the fewest buckets that have the wanted capacities at first
    /// and at the largest size. If no largest capacity was asked for, it stays as large as it can be.
    fn with_sizes_for(self, Requirements { capacity, max_capacity, load_while_growing, .. }: Requirements) -> Self {
        let plan = Self { load_while_growing, ..self.with_largest_for(capacity, max_capacity) };
        Self { first: plan.buckets_for(capacity).expect("it is at most the largest capacity"), ..plan }
    }

    /// This plan, with the fewest buckets at the largest size that hold as many keys as were asked for.
    fn with_largest_for(self, capacity: usize, max_capacity: Option<usize>) -> Self {
        let Some(most) = max_capacity else { return self };
        let full = |buckets: usize| self.full_capacity(State::of_buckets(buckets));
        let largest = self.fewest(most.max(capacity), full).expect("it is at most the largest capacity");
        Self { largest, ..self }
    }

    /// The plan for `most` items whose classes have the fewest bits. Its largest table is as large as the rate allows.
    /// `None` if no table holds them.
    fn widest_for(most: usize, rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        let most_sides = sizing::LARGEST.ilog2();
        (bits_for(most, rate)..=MOST_CLASS_BITS).find_map(|bits| {
            let sides = bits.saturating_sub(MOST_BASE_BITS).max(LEAST_SIDE_BITS)..=most_sides;
            let mut bases = sides.filter_map(|side_bits| Some((bits.checked_sub(side_bits)?, side_bits)));
            bases.find_map(|(base_bits, side_bits)| {
                let is_possible = base_bits >= NEVER_ZERO
                    && Self::of(Classes::new(base_bits, side_bits), LEAST_BUCKETS, encoding).max_capacity() >= most;
                let plan = is_possible.then(|| Self::widest_of(base_bits, side_bits, rate, encoding))??;
                (plan.max_capacity() >= most).then_some(plan)
            })
        })
    }

    /// The plan with the largest table that keeps to the rate with every slot taken. `None` if not even the first does.
    fn widest_of(base_bits: u32, side_bits: u32, rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        let first = least_buckets(base_bits + side_bits);
        let plan = Self::of(Classes::new(base_bits, side_bits), first, encoding);
        let keeps = |groups: usize| plan.rate(plan.slots(State::of_buckets(groups * GROUP)) as f64) <= rate;
        let few = first / GROUP;
        let too_many = first_where(few..plan.largest / GROUP + 1, |groups| !keeps(groups));
        (too_many > few).then_some(Self { largest: (too_many - 1) * GROUP, ..plan })
    }

    /// The plan with tables of all sizes from the first on.
    pub(crate) fn of(classes: Classes, first: usize, encoding: Option<Encoding>) -> Self {
        Self {
            classes,
            first,
            largest: 1 << classes.side_bits(),
            encoding,
            load_while_growing: LOAD_WHILE_GROWING,
            pages: Pages::Usual,
            expected: None,
            memory_limit: usize::MAX,
            within_limit: usize::MAX,
            memory_of_caller: 0,
        }
    }

    /// The plan that a snapshot declares, if it is valid.
    #[cfg(feature = "snapshot")]
    pub(crate) fn declared(
        [base_bits, side_bits]: [u32; 2],
        [first, largest]: [u64; 2],
        encoding: Option<Encoding>,
        load_while_growing: f64,
    ) -> Option<Self> {
        let possible = (NEVER_ZERO..=u32::BITS).contains(&base_bits)
            && (1..=sizing::LARGEST.ilog2()).contains(&side_bits)
            && (LEAST_BUCKETS as u64..=1 << side_bits).contains(&first)
            && (first..=1 << side_bits).contains(&largest)
            && first.is_multiple_of(GROUP as u64)
            && largest.is_multiple_of(GROUP as u64)
            && base_bits + side_bits - first.ilog2() <= u32::BITS;
        let plan = possible.then(|| Self::of(Classes::new(base_bits, side_bits), first as usize, encoding))?;
        Some(Self { largest: largest as usize, load_while_growing, ..plan })
    }

    /// The shape of the buckets that are not split, in a table of this size.
    pub(crate) fn shape(&self, state: State) -> Shape {
        layouts::shape(self.classes, self.encoding, state.level())
    }

    /// The layout of a table of this many buckets.
    pub(crate) fn layout(&self, buckets: usize) -> TableLayout {
        TableLayout::of(self.shape(State::of_buckets(buckets)), buckets)
    }

    /// The false-positive rate with this many keys.
    pub(crate) fn rate(&self, keys: f64) -> f64 {
        self.classes.false_positive_rate(keys)
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
        if state.buckets() == self.last() {
            return self.full_capacity(state);
        }
        self.capacity_of_share(state, self.load_while_growing)
    }

    /// The capacity of a table with which growth ends at this size, whatever share of it is filled while it grows.
    pub(crate) fn full_capacity(&self, state: State) -> usize {
        self.capacity_of_share(state, 1.0)
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

    /// The number of buckets with which growth ends: the largest, or the most within the limit for the memory.
    pub(crate) fn last(&self) -> usize {
        self.largest.min(self.within_limit)
    }

    /// The capacity with which growth ends. The table never takes more keys than that (`limit.rs`).
    pub(crate) fn max_capacity(&self) -> usize {
        self.capacity(State::of_buckets(self.last()))
    }

    /// This plan, with the fewest buckets at the largest size that hold so many keys. `None` if no size does.
    #[cfg(feature = "snapshot")]
    pub(crate) fn with_max_capacity(self, keys: usize) -> Option<Self> {
        (keys <= self.widest().max_capacity()).then(|| self.widest().with_largest_for(0, Some(keys)))
    }

    /// This plan, with the largest size that its classes can have.
    #[cfg(feature = "snapshot")]
    pub(crate) fn widest(self) -> Self {
        Self { largest: 1 << self.classes.side_bits(), ..self }
    }

    /// The smallest number of buckets, at least the first, with a capacity for this many items. `None` if there is
    /// none.
    pub(crate) fn buckets_for(&self, items: usize) -> Option<usize> {
        self.fewest(items, |buckets| self.capacity(State::of_buckets(buckets)))
    }

    /// [`buckets_for`](Self::buckets_for) with this function as the capacity.
    fn fewest(&self, items: usize, capacity: impl Fn(usize) -> usize) -> Option<usize> {
        let all = self.first / GROUP..self.last() / GROUP + 1;
        let buckets = first_where(all, |groups| capacity(groups * GROUP) >= items) * GROUP;
        (buckets <= self.last()).then_some(buckets)
    }
}

/// The first number for which `is` is true, as it is for all after that; the end of the range if there is none.
pub(super) fn first_where(
    Range { start: mut least, end: mut most }: Range<usize>,
    is: impl Fn(usize) -> bool,
) -> usize {
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
