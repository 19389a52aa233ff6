//! PURE: how a bucket's 64 bits are divided into fingerprints, and the false-positive rate that follows.
//!
//! Every layout is a row of [`SHAPES`]. A bucket is one word. It has `slots` *lanes* of `lane_bits`, from the low
//! end. In a semi-sorted layout, the rank of the fingerprints' top four bits is at the high end
//! (`word/semisort.rs`). `word/bucket.rs` has the operations on a word.

use crate::word::semisort;

/// How the fingerprints of a bucket are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Each fingerprint in full (section 3 of the paper).
    ///
    /// Faster to change, and faster to confirm a hit. The false-positive rate is two to four times that of a
    /// semi-sorted bucket of the same size.
    Plain,
    /// The top four bits of the fingerprints are sorted, and stored as one rank. This saves a bit or more for each
    /// fingerprint (section 5.2).
    ///
    /// A miss costs what it costs in a plain bucket. A hit reads a table of 4 to 256 KiB, which all filters share.
    SemiSorted,
}

/// One key's fingerprint: the bits of its hash that the filter stores. Its low part, which is in the lane, is never
/// 0.
///
/// Where slots have a payload, the bits that the payload takes in an [`Entry`] are 0 here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint(pub(crate) u32);

/// What a slot holds: a fingerprint and, if slots have one, a payload.
///
/// From the low end: the fingerprint's low part; the payload; and, in a semi-sorted layout, the fingerprint's top
/// four bits. The first two are in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Entry(pub(crate) u32);

/// A row of [`SHAPES`]: what distinguishes one layout from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) encoding: Encoding,
    pub(crate) slots: u32,
    pub(crate) fingerprint_bits: u32,
    /// 0 in a filter.
    pub(crate) payload_bits: u32,
}

/// Every layout of a filter, by memory per slot and then by speed. `Table` is compiled for each of them: see
/// `table/build.rs`.
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

/// Those of them from which slots with a payload are made.
///
/// A payload takes its bits from the lane, and semi-sorted buckets have a bit or more to spare for each slot. So of
/// the layouts that take as much memory, they have the lowest rate. Only a payload that leaves too little of a lane
/// needs a plain bucket.
pub(crate) const SHAPES_WITH_PAYLOAD: [Shape; 5] = [
    Shape::semi_sorted(6, 12),
    Shape::semi_sorted(5, 14),
    Shape::semi_sorted(4, 17),
    Shape::semi_sorted(3, 22),
    Shape::plain(2, 32),
];

/// The bits of a fingerprint that a semi-sorted bucket stores in its rank.
pub(crate) const NIBBLE_BITS: u32 = 4;

/// The fewest bits that a payload leaves of a fingerprint's low part.
///
/// With one bit, the low part would always be 1; with two, one of three values. Such bits would hardly distinguish
/// keys.
const LEAST_LOW_BITS: u32 = 3;

/// The most bits of a payload.
pub(crate) const MOST_PAYLOAD_BITS: u32 = 16;

/// The low bits of a hash that `geometry::nested` never returns as 0: as many as the narrowest low part of a
/// fingerprint has.
pub(crate) const NEVER_ZERO: u32 = 8;

impl Shape {
    pub(crate) const fn plain(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::Plain, slots, fingerprint_bits, payload_bits: 0 }
    }

    pub(crate) const fn semi_sorted(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::SemiSorted, slots, fingerprint_bits, payload_bits: 0 }
    }

    /// This shape, of a filter, with so many bits of each fingerprint given to a payload. `None` if that leaves too
    /// few.
    pub(crate) fn with_payload(self, bits: u32) -> Option<Self> {
        let left = self.low_bits().checked_sub(bits)?;
        let fingerprint_bits = self.fingerprint_bits - bits;
        (left >= LEAST_LOW_BITS).then_some(Self { fingerprint_bits, payload_bits: bits, ..self })
    }

    /// The shape of a filter that has as many bits for each slot.
    pub(crate) fn without_payload(self) -> Self {
        Self { fingerprint_bits: self.fingerprint_bits + self.payload_bits, payload_bits: 0, ..self }
    }

    /// The fewest buckets that a table has.
    ///
    /// With one bucket a lookup would look twice at one word. In a maplet it could then find a value at the first
    /// look, and its replacement at the second (`table/values.rs`).
    pub(crate) fn least_buckets(self) -> usize {
        if self.payload_bits == 0 { 1 } else { 2 }
    }

    /// How many bits of a fingerprint are in a lane.
    pub(crate) const fn low_bits(self) -> u32 {
        match self.encoding {
            Encoding::Plain => self.fingerprint_bits,
            Encoding::SemiSorted => self.fingerprint_bits - NIBBLE_BITS,
        }
    }

    /// How many bits a lane has.
    pub(crate) const fn lane_bits(self) -> u32 {
        self.low_bits() + self.payload_bits
    }

    /// The cheapest shape whose rate with every slot taken is at most `rate`, with so many payload bits. Of
    /// `encoding`, if one is given.
    pub(crate) fn cheapest(rate: f64, encoding: Option<Encoding>, payload_bits: u32) -> Option<Self> {
        Self::with(encoding, payload_bits).find(|shape| shape.false_positive_rate(1.0) <= rate)
    }

    /// The lowest rate that any such shape reaches with every slot taken; 1 if there is none.
    pub(crate) fn lowest_rate(encoding: Option<Encoding>, payload_bits: u32) -> f64 {
        Self::with(encoding, payload_bits).map(|shape| shape.false_positive_rate(1.0)).fold(1.0, f64::min)
    }

    /// The cheapest shape whose rate in a table with nested classes, with every slot taken, is at most `rate`.
    pub(crate) fn cheapest_nested(rate: f64, encoding: Option<Encoding>) -> Option<Self> {
        Self::of(encoding).find(|shape| shape.nested_false_positive_rate(1.0) <= rate)
    }

    /// The lowest such rate of any shape.
    pub(crate) fn lowest_nested_rate(encoding: Option<Encoding>) -> f64 {
        Self::of(encoding).map(|shape| shape.nested_false_positive_rate(1.0)).fold(1.0, f64::min)
    }

    /// The shapes of `encoding`, or all, with so many payload bits, by memory per slot.
    pub(crate) fn with(encoding: Option<Encoding>, payload_bits: u32) -> impl Iterator<Item = Self> {
        Self::of(encoding).filter_map(move |shape| match payload_bits {
            0 => Some(shape),
            bits if SHAPES_WITH_PAYLOAD.contains(&shape) => shape.with_payload(bits),
            _ => None,
        })
    }

    fn of(encoding: Option<Encoding>) -> impl Iterator<Item = Self> {
        SHAPES.into_iter().filter(move |shape| encoding.is_none_or(|wanted| wanted == shape.encoding))
    }

    /// The expected false-positive rate while the share `load` of all slots is taken.
    ///
    /// A lookup compares its fingerprint with those in the `2b·load` slots taken in two buckets (the paper's
    /// section 5.1). Two random fingerprints are equal with probability `Σ p²` over their values. That is `2⁻ᶠ`,
    /// except for the low part 1, which is twice as likely as the others.
    pub(crate) fn false_positive_rate(self, load: f64) -> f64 {
        self.rate(load, self.low_bits())
    }

    /// The same for a table with nested classes. There, the low part that is never 0 is the narrowest of all
    /// layouts (`word/geometry.rs`).
    pub(crate) fn nested_false_positive_rate(self, load: f64) -> f64 {
        self.rate(load, NEVER_ZERO)
    }

    /// The rate if this many low bits of a fingerprint are never all 0.
    fn rate(self, load: f64, low_bits: u32) -> f64 {
        let lows = 2f64.powi(low_bits as i32);
        let highs = 2f64.powi((self.fingerprint_bits - low_bits) as i32);
        let equal = (lows + 2.0) / (lows * lows) / highs;
        -f64::exp_m1(2.0 * f64::from(self.slots) * load * f64::ln_1p(-equal))
    }
}

/// The rate at which at least one of several tables mistakes an absent key, from the rate of each.
pub(crate) fn rate_of_any(rates: impl Iterator<Item = f64>) -> f64 {
    // Logarithms are added, because with small rates rounding would make the products 1.
    -f64::exp_m1(rates.map(|rate| f64::ln_1p(-rate)).sum())
}

/// A layout as a type, so that every constant of its word-wide tricks is a constant for the compiler too.
pub(crate) trait Layout: Copy + core::fmt::Debug + Send + Sync + 'static {
    /// The shape of a filter with this layout: its slots hold fingerprints and nothing else.
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
    /// All bits of an entry.
    const ENTRY: u64 = (1 << Self::SHAPE.fingerprint_bits) - 1;
    /// Whether slots have a payload.
    const HAS_PAYLOAD: bool = false;

    /// Rank to sorted nibbles, where the layout is semi-sorted.
    fn unrank(&self) -> &'static [u32];

    /// The bits of an entry except those of a payload.
    ///
    /// In the layouts of filters this is a constant of all bits. So whatever is done about payloads costs nothing
    /// there.
    #[inline(always)]
    fn of_fingerprint(self) -> u64 {
        Self::ENTRY
    }

    /// The bits of a bucket except those of payloads. In a filter, the constant of all bits.
    #[inline(always)]
    fn of_fingerprints(self) -> u64 {
        u64::MAX
    }

    /// The bits of an entry that are a payload, not shifted. They are those of the first lane too.
    #[inline(always)]
    fn payload(self) -> u64 {
        Self::ENTRY & !self.of_fingerprint()
    }

    /// How many bits a payload has.
    #[inline(always)]
    fn payload_bits(self) -> u32 {
        0
    }

    /// All bits of a payload, at the low end.
    #[inline(always)]
    fn payload_mask(self) -> u64 {
        0
    }

    /// How far a payload is from the low end of its lane: the bits of a fingerprint's low part.
    #[inline(always)]
    fn payload_shift(self) -> u32 {
        Self::LANE_BITS - self.payload_bits()
    }

    /// The shape, including the payload.
    fn shape(self) -> Shape {
        Self::SHAPE
    }

    /// The fingerprint in the low bits of a mixed hash.
    ///
    /// A lane whose low part is 0 means "empty slot", so a low part of 0 becomes 1. [`Shape::false_positive_rate`]
    /// includes what that costs.
    #[inline(always)]
    fn fingerprint(self, hash: u64) -> Fingerprint {
        let bits = hash & self.of_fingerprint();
        Fingerprint((bits + u64::from(bits & Self::LANE < 1)) as u32)
    }

    /// The fingerprint with a payload.
    #[inline(always)]
    fn entry(self, fingerprint: Fingerprint, payload: u16) -> Entry {
        let payload = u64::from(payload) << self.payload_shift() & self.payload();
        Entry(fingerprint.0 | payload as u32)
    }

    /// The payload of an entry.
    #[inline(always)]
    fn payload_of(self, entry: Entry) -> u16 {
        ((u64::from(entry.0) & self.payload()) >> self.payload_shift()) as u16
    }

    /// The fingerprint of an entry.
    #[inline(always)]
    fn fingerprint_of(self, entry: Entry) -> Fingerprint {
        Fingerprint(entry.0 & self.of_fingerprint() as u32)
    }
}

/// A layout that its type alone describes: the layout of a filter.
pub(crate) trait OfFilter: Layout {
    /// The layout, or `None` if there is no memory for its decode table.
    fn try_new() -> Option<Self>;

    /// The layout, for tests and models. They have enough memory.
    #[cfg(any(test, ccf_model))]
    fn new() -> Self {
        Self::try_new().expect("memory for the decode table")
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

    fn unrank(&self) -> &'static [u32] {
        unreachable!("a plain bucket has no rank")
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> OfFilter for Plain<SLOTS, FINGERPRINT_BITS> {
    fn try_new() -> Option<Self> {
        Some(Self)
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> Layout for SemiSorted<SLOTS, FINGERPRINT_BITS> {
    const SHAPE: Shape = Shape::semi_sorted(SLOTS, FINGERPRINT_BITS);

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.unrank
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> OfFilter for SemiSorted<SLOTS, FINGERPRINT_BITS> {
    fn try_new() -> Option<Self> {
        Some(Self { unrank: semisort::unrank_table(SLOTS)? })
    }
}

impl<const SLOTS: u32, const FINGERPRINT_BITS: u32> core::fmt::Debug for SemiSorted<SLOTS, FINGERPRINT_BITS> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SemiSorted<{SLOTS}, {FINGERPRINT_BITS}>")
    }
}

/// The layout `L` with some bits of each lane given to a payload.
/// The number of these bits is known at run time only. A type for each number would mean sixteen times as many
/// tables to compile, to save two or three instructions of a lookup.
#[allow(unreachable_pub, reason = "models name it, through `verify/model.rs`")]
#[derive(Clone, Copy, Debug)]
pub struct WithPayload<L> {
    layout: L,
    of_fingerprint: u64,
    of_fingerprints: u64,
    payload_bits: u32,
    payload_mask: u64,
}

#[allow(private_bounds, reason = "models name it, and do nothing with it")]
impl<L: OfFilter> WithPayload<L> {
    /// The layout of this shape, or `None` if there is no memory for its decode table.
    pub(crate) fn try_of(shape: Shape) -> Option<Self> {
        assert_eq!(shape.without_payload(), L::SHAPE, "the caller has chosen the layout by it");
        let payload = ((1 << shape.payload_bits) - 1) << shape.low_bits();
        Some(Self {
            layout: L::try_new()?,
            of_fingerprint: L::ENTRY & !payload,
            of_fingerprints: !(payload * L::ONES),
            payload_bits: shape.payload_bits,
            payload_mask: (1 << shape.payload_bits) - 1,
        })
    }
}

impl<L: Layout> Layout for WithPayload<L> {
    const SHAPE: Shape = L::SHAPE;
    const HAS_PAYLOAD: bool = true;

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.layout.unrank()
    }

    #[inline(always)]
    fn of_fingerprint(self) -> u64 {
        self.of_fingerprint
    }

    #[inline(always)]
    fn of_fingerprints(self) -> u64 {
        self.of_fingerprints
    }

    #[inline(always)]
    fn payload_bits(self) -> u32 {
        self.payload_bits
    }

    #[inline(always)]
    fn payload_mask(self) -> u64 {
        self.payload_mask
    }

    fn shape(self) -> Shape {
        L::SHAPE.with_payload(self.payload_bits).expect("it was made of such a shape")
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
