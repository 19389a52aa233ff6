//! Pure: how a bucket's 64 bits are divided into fingerprints, and the false-positive rate that follows.
//!
//! Every layout is a row of [`SHAPES`]. A bucket is one word: `slots` *lanes* of `lane_bits` from the low end and, in a
//! semi-sorted layout, the rank of the fingerprints' top four bits at the high end (`word/semisort.rs`). What can be done
//! with a word stands in `word/bucket.rs`.

use crate::word::semisort;

/// How the fingerprints of a bucket are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Each fingerprint in full (section 3 of the paper).
    ///
    /// Quicker to change, and quicker to confirm a hit, at two to four times the rate of a semi-sorted bucket of the
    /// same size.
    Plain,
    /// The top four bits of the fingerprints sorted and stored as one rank, which saves a bit or more for each (section
    /// 5.2).
    ///
    /// A miss costs what it costs in a plain bucket; a hit looks in a table of 4 to 256 KiB, which all filters share.
    SemiSorted,
}

/// One item's fingerprint: the bits of its hash that the filter stores. Its low `lane_bits` are never all 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint(pub(crate) u32);

/// A row of [`SHAPES`]: what distinguishes one layout from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) encoding: Encoding,
    pub(crate) slots: u32,
    pub(crate) fingerprint_bits: u32,
}

/// Every layout, by memory per slot and then by speed. `Table` is compiled for each of them: see `table/build.rs`.
pub(crate) const SHAPES: [Shape; 11] = [
    Shape::plain(8, 8),
    Shape::plain(7, 9),
    Shape::plain(6, 10),
    Shape::semi_sorted(6, 12),
    Shape::plain(5, 12),
    Shape::semi_sorted(5, 14),
    Shape::plain(4, 16),
    Shape::semi_sorted(4, 17),
    Shape::plain(3, 21),
    Shape::semi_sorted(3, 22),
    Shape::plain(2, 32),
];

/// The bits of a fingerprint that a semi-sorted bucket stores in its rank.
pub(crate) const NIBBLE_BITS: u32 = 4;

/// The low bits of a hash that `geometry::nested` never returns as 0: as many as the narrowest low part of a fingerprint has.
pub(crate) const NEVER_ZERO: u32 = 8;

impl Shape {
    pub(crate) const fn plain(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::Plain, slots, fingerprint_bits }
    }

    pub(crate) const fn semi_sorted(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::SemiSorted, slots, fingerprint_bits }
    }

    /// The bits of a fingerprint that stand in a lane.
    pub(crate) const fn lane_bits(self) -> u32 {
        match self.encoding {
            Encoding::Plain => self.fingerprint_bits,
            Encoding::SemiSorted => self.fingerprint_bits - NIBBLE_BITS,
        }
    }

    /// The cheapest shape whose rate with every slot taken is at most `rate`, of `encoding` if one is asked for.
    pub(crate) fn cheapest(rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        Self::of(encoding).find(|shape| shape.false_positive_rate(1.0) <= rate)
    }

    /// The lowest rate that any shape reaches with every slot taken, of `encoding` if one is asked for.
    pub(crate) fn lowest_rate(encoding: Option<Encoding>) -> f64 {
        Self::of(encoding).map(|shape| shape.false_positive_rate(1.0)).fold(1.0, f64::min)
    }

    /// The cheapest shape whose rate in a table with nested classes, with every slot taken, is at most `rate`.
    pub(crate) fn cheapest_nested(rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        Self::of(encoding).find(|shape| shape.nested_false_positive_rate(1.0) <= rate)
    }

    /// The lowest such rate of any shape.
    pub(crate) fn lowest_nested_rate(encoding: Option<Encoding>) -> f64 {
        Self::of(encoding).map(|shape| shape.nested_false_positive_rate(1.0)).fold(1.0, f64::min)
    }

    fn of(encoding: Option<Encoding>) -> impl Iterator<Item = Self> {
        SHAPES.into_iter().filter(move |shape| encoding.is_none_or(|wanted| wanted == shape.encoding))
    }

    /// The expected false-positive rate while the share `load` of all slots is taken.
    ///
    /// A lookup compares its fingerprint with those in the `2b·load` slots taken in two buckets (the paper's section
    /// 5.1). Two random fingerprints are equal with probability `Σ p²` over their values, which is `2⁻ᶠ` but for the
    /// low part 1, twice as likely as the others.
    pub(crate) fn false_positive_rate(self, load: f64) -> f64 {
        self.rate(load, self.lane_bits())
    }

    /// The same for a table with nested classes, whose low part that is never 0 is the narrowest of all layouts
    /// (`word/geometry.rs`).
    pub(crate) fn nested_false_positive_rate(self, load: f64) -> f64 {
        self.rate(load, NEVER_ZERO)
    }

    /// The rate where so many low bits of a fingerprint are never all 0.
    fn rate(self, load: f64, low_bits: u32) -> f64 {
        let lows = 2f64.powi(low_bits as i32);
        let highs = 2f64.powi((self.fingerprint_bits - low_bits) as i32);
        let equal = (lows + 2.0) / (lows * lows) / highs;
        -f64::exp_m1(2.0 * f64::from(self.slots) * load * f64::ln_1p(-equal))
    }
}

/// The rate at which at least one of several tables mistakes an absent key, from the rates of each.
pub(crate) fn rate_of_any(rates: impl Iterator<Item = f64>) -> f64 {
    // The logarithms are added, for with small rates the products would be 1 but for rounding.
    -f64::exp_m1(rates.map(|rate| f64::ln_1p(-rate)).sum())
}

/// A layout as a type, so that every constant of its word-wide tricks is one for the compiler too.
pub(crate) trait Layout: Copy + core::fmt::Debug + Send + Sync + 'static {
    const SHAPE: Shape;

    const SLOTS: u32 = Self::SHAPE.slots;
    const SEMI_SORTED: bool = matches!(Self::SHAPE.encoding, Encoding::SemiSorted);
    const LANE_BITS: u32 = Self::SHAPE.lane_bits();
    /// All bits of the first lane.
    const LANE: u64 = (1 << Self::LANE_BITS) - 1;
    /// The lowest bit of every lane.
    const ONES: u64 = {
        let (mut ones, mut slot) = (0, 0);
        while slot < Self::SLOTS {
            ones |= 1 << (slot * Self::LANE_BITS);
            slot += 1;
        }
        ones
    };
    /// The highest bit of every lane.
    const TOPS: u64 = Self::ONES << (Self::LANE_BITS - 1);

    /// The layout, or `None` if there is no memory for its decode table.
    fn try_new() -> Option<Self>;

    /// The layout, for tests and models: they have memory.
    #[cfg(any(test, ccf_model))]
    fn new() -> Self {
        Self::try_new().expect("memory for the decode table")
    }

    /// Rank to sorted nibbles, where the layout is semi-sorted.
    fn unrank(&self) -> &'static [u32];

    /// The fingerprint in the low bits of a mixed hash.
    ///
    /// A lane of 0 means "empty slot", so a low part of 0 becomes 1; [`Shape::false_positive_rate`] counts what that
    /// costs.
    #[inline(always)]
    fn fingerprint(&self, hash: u64) -> Fingerprint {
        let bits = hash & ((1 << Self::SHAPE.fingerprint_bits) - 1);
        Fingerprint((bits + u64::from(bits & Self::LANE < 1)) as u32)
    }
}

/// The layout of [`Shape::plain`].
#[allow(unreachable_pub, reason = "models name it, through `verify/model.rs`")]
#[derive(Clone, Copy, Debug)]
pub struct Plain<const SLOTS: u32, const FINGERPRINT_BITS: u32>;

/// The layout of [`Shape::semi_sorted`].
#[allow(unreachable_pub, reason = "models name it, through `verify/model.rs`")]
#[derive(Clone, Copy)]
pub struct SemiSorted<const SLOTS: u32, const FINGERPRINT_BITS: u32> {
    unrank: &'static [u32],
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> Layout for Plain<SLOTS, FINGERPRINT_BITS> {
    const SHAPE: Shape = Shape::plain(SLOTS, FINGERPRINT_BITS);

    fn try_new() -> Option<Self> {
        Some(Self)
    }

    fn unrank(&self) -> &'static [u32] {
        unreachable!("a plain bucket has no rank")
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> Layout for SemiSorted<SLOTS, FINGERPRINT_BITS> {
    const SHAPE: Shape = Shape::semi_sorted(SLOTS, FINGERPRINT_BITS);

    fn try_new() -> Option<Self> {
        Some(Self { unrank: semisort::unrank_table(SLOTS)? })
    }

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.unrank
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> core::fmt::Debug for SemiSorted<SLOTS, FINGERPRINT_BITS> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SemiSorted<{SLOTS}, {FINGERPRINT_BITS}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_fits_in_a_word_and_they_are_ordered_by_memory() {
        for shape in SHAPES {
            let rank_bits = match shape.encoding {
                Encoding::Plain => 0,
                Encoding::SemiSorted => semisort::rank_bits(shape.slots),
            };
            let bits = shape.slots * shape.lane_bits() + rank_bits;
            assert!(bits <= 64, "{shape:?}");
            // So that the top bits of any word are an index of the decode table.
            assert!(bits == 64 || rank_bits == 0, "{shape:?}");
        }
        assert!(SHAPES.is_sorted_by_key(|shape| std::cmp::Reverse(shape.slots)));
    }

    /// The rate as the probability that a random fingerprint equals one of those stored, summed over all values that it
    /// can take.
    #[test]
    fn the_rate_is_that_of_the_fingerprints_values() {
        fn check<L: Layout>() {
            let bits = L::SHAPE.fingerprint_bits;
            let mut times = vec![0u64; 1 << bits];
            (0..1 << bits).for_each(|hash| times[L::new().fingerprint(hash).0 as usize] += 1);
            let equal = times.iter().map(|n| n * n).sum::<u64>() as f64 / 2f64.powi(2 * bits as i32);
            for load in [0.0, 0.5, 1.0] {
                let expected = 1.0 - (1.0 - equal).powf(2.0 * f64::from(L::SLOTS) * load);
                let given = L::SHAPE.false_positive_rate(load);
                assert!((given - expected).abs() <= 1e-9, "{:?} at load {load}: {given} for {expected}", L::SHAPE);
            }
        }
        check::<Plain<8, 8>>();
        check::<Plain<5, 12>>();
        check::<SemiSorted<6, 12>>();
        check::<SemiSorted<5, 14>>();
    }

    #[test]
    fn the_cheapest_shape_that_meets_the_rate_is_taken() {
        let plain = Some(Encoding::Plain);
        let semi_sorted = Some(Encoding::SemiSorted);
        assert_eq!(Shape::cheapest(0.5, None), Some(Shape::plain(8, 8)));
        assert_eq!(Shape::cheapest(0.02, None), Some(Shape::plain(6, 10)));
        assert_eq!(Shape::cheapest(0.01, None), Some(Shape::semi_sorted(6, 12)));
        assert_eq!(Shape::cheapest(0.0025, None), Some(Shape::plain(5, 12)), "as small as semi-sorted, and quicker");
        assert_eq!(Shape::cheapest(0.0025, semi_sorted), Some(Shape::semi_sorted(5, 14)));
        assert_eq!(Shape::cheapest(0.001, None), Some(Shape::semi_sorted(5, 14)));
        assert_eq!(Shape::cheapest(0.0001, None), Some(Shape::semi_sorted(4, 17)));
        assert_eq!(Shape::cheapest(0.0001, plain), Some(Shape::plain(3, 21)));
        assert_eq!(Shape::cheapest(2e-6, None), Some(Shape::semi_sorted(3, 22)));
        assert_eq!(Shape::cheapest(2e-9, None), Some(Shape::plain(2, 32)));
        assert_eq!(Shape::cheapest(1e-10, None), None);
        assert_eq!(Shape::cheapest(1e-6, semi_sorted), None);
    }
}
