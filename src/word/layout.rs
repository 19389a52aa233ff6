//! PURE: how a bucket's 64 bits are divided into fingerprints, and the false-positive rate that follows.
//!
//! Every layout is a row of `shapes!`. A bucket is one word. It has `slots` *lanes* of `lane_bits`, from the low
//! end. In a semi-sorted layout, the rank of the fingerprints' top bits, four or three of each, is at the high
//! end (`word/semisort.rs`). `word/bucket.rs` has the operations on a word.

use crate::word::semisort;

/// How the fingerprints of a bucket are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Each fingerprint in full (section 3 of the paper).
    ///
    /// Faster to read and to change. The false-positive rate is two to four times that of a semi-sorted bucket of the
    /// same size.
    Plain,
    /// The top four bits of the fingerprints are sorted, and stored as one rank. This saves a bit or more for each
    /// fingerprint (section 5.2). With seven or eight slots it is the top three bits.
    ///
    /// A lookup reads a decode table twice. It has 4 to 256 KiB, and all filters of the layout share it.
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
/// From the low end: the fingerprint's low part; the payload; and, in a semi-sorted layout, the fingerprint's high
/// part. The first two are in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Entry(pub(crate) u32);

/// What distinguishes one layout from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) encoding: Encoding,
    pub(crate) slots: u32,
    pub(crate) fingerprint_bits: u32,
    /// 0 in a filter.
    pub(crate) payload_bits: u32,
}

/// Every layout of a filter, by memory per slot and then by speed: its encoding, how many slots a bucket has, and how many
/// bits a fingerprint has. They are passed to the macro `$called`, behind what else it is given.
macro_rules! shapes {
    ($called:ident! { $($given:tt)* }) => {
        $called! { $($given)*
            Plain 8 8,
            SemiSorted 8 9,
            Plain 7 9,
            SemiSorted 7 10,
            Plain 6 10,
            SemiSorted 6 12,
            Plain 5 12,
            SemiSorted 5 14,
            Plain 4 16,
            SemiSorted 4 17,
            Plain 3 21,
            SemiSorted 3 22,
            Plain 2 32,
        }
    };
}

/// Those from which slots with a payload are made.
///
/// A payload takes its bits from the lane, and semi-sorted buckets have a bit or more to spare for each slot. So of
/// the layouts that take as much memory, they have the lowest rate. Only a payload that leaves too little of a lane
/// needs a plain bucket.
macro_rules! shapes_with_payload {
    ($called:ident! { $($given:tt)* }) => {
        $called! { $($given)*
            SemiSorted 6 12,
            SemiSorted 5 14,
            SemiSorted 4 17,
            SemiSorted 3 22,
            Plain 2 32,
        }
    };
}

macro_rules! list {
    ($($Encoding:ident $slots:literal $bits:literal,)*) => {
        [$(Shape { encoding: Encoding::$Encoding, slots: $slots, fingerprint_bits: $bits, payload_bits: 0 }),*]
    };
}

/// Every layout of a filter, by memory per slot and then by speed.
pub(crate) const SHAPES: [Shape; shapes!(list! {}).len()] = shapes!(list! {});

/// Those from which slots with a payload are made.
pub(crate) const SHAPES_WITH_PAYLOAD: [Shape; shapes_with_payload!(list! {}).len()] = shapes_with_payload!(list! {});

#[cfg(test)]
/// Expands to `$body` with the row of this shape as the constant `$ROW`; or, `with payload`, of a shape whose slots have a
/// payload.
macro_rules! by_shape {
    (with payload $shape:expr, $ROW:ident => $body:expr) => {
        $crate::word::layout::shapes_with_payload!(by_shape! { @arms $shape, $ROW => $body; })
    };
    (@arms $shape:expr, $ROW:ident => $body:expr; $($Encoding:ident $slots:literal $bits:literal,)*) => {
        match ($shape.encoding, $shape.slots) {
            $(($crate::word::layout::Encoding::$Encoding, $slots) => {
                const $ROW: usize = $crate::word::layout::Shape::row($crate::word::layout::Encoding::$Encoding, $slots);
                $body
            })*
            _ => unreachable!("{:?} is not one of {:?}", $shape, $crate::word::layout::SHAPES),
        }
    };
    ($shape:expr, $ROW:ident => $body:expr) => {
        $crate::word::layout::shapes!(by_shape! { @arms $shape, $ROW => $body; })
    };
}

/// Expands to `$body` with `$known` as the layout `$layout`, of which the compiler then knows the encoding.
///
/// This is the place for the choice: once per operation. A choice inside the operations on a word costs a relocation a tenth
/// more instructions.
macro_rules! by_encoding {
    ($layout:expr, $known:ident => $body:expr) => {{
        let layout = $layout;
        if layout.is_semi_sorted() {
            let $known = $crate::word::layout::ConstLayout::<_, { $crate::word::layout::SEMI_SORTED }>(layout);
            $body
        } else {
            let $known = $crate::word::layout::ConstLayout::<_, { $crate::word::layout::PLAIN }>(layout);
            $body
        }
    }};
}

#[cfg(test)]
pub(crate) use by_shape;
pub(crate) use {by_encoding, shapes, shapes_with_payload};

/// The fewest bits that a payload leaves of a fingerprint's low part.
///
/// With one bit, the low part would always be 1; with two, one of three values. Such bits would hardly distinguish
/// keys.
const LEAST_LOW_BITS: u32 = 3;

pub(crate) const MOST_PAYLOAD_BITS: u32 = 16;

/// How many low bits of a hash `geometry::mixed` never returns as all 0: as many as the narrowest low part of a
/// fingerprint has in a table that grows. So no slot of such a table stores 0.
pub(crate) const NEVER_ZERO: u32 = 8;

impl Shape {
    #[cfg(test)]
    pub(crate) const fn plain(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::Plain, slots, fingerprint_bits, payload_bits: 0 }
    }

    #[cfg(test)]
    pub(crate) const fn semi_sorted(slots: u32, fingerprint_bits: u32) -> Self {
        Self { encoding: Encoding::SemiSorted, slots, fingerprint_bits, payload_bits: 0 }
    }

    /// The place in [`SHAPES`] of the shape of this encoding with so many slots.
    pub(crate) const fn row(encoding: Encoding, slots: u32) -> usize {
        let mut row = 0;
        while SHAPES[row].encoding as u8 != encoding as u8 || SHAPES[row].slots != slots {
            row += 1;
        }
        row
    }

    /// This shape of a filter, with `bits` bits of each fingerprint given to a payload. `None` if that leaves too few.
    pub(crate) fn with_payload(self, bits: u32) -> Option<Self> {
        let left = self.low_bits().checked_sub(bits)?;
        let fingerprint_bits = self.fingerprint_bits - bits;
        (left >= LEAST_LOW_BITS).then_some(Self { fingerprint_bits, payload_bits: bits, ..self })
    }

    /// The fewest buckets that a table has.
    ///
    /// With one bucket, a lookup would read one word twice. In a maplet it could then find a value at the first read,
    /// and its replacement at the second (`table/maplet.rs`).
    pub(crate) fn least_buckets(self) -> usize {
        if self.payload_bits == 0 { 1 } else { 2 }
    }

    /// How many bits of a fingerprint are in a lane.
    pub(crate) const fn low_bits(self) -> u32 {
        match self.encoding {
            Encoding::Plain => self.fingerprint_bits,
            Encoding::SemiSorted => self.fingerprint_bits - semisort::high_bits(self.slots),
        }
    }

    /// The bits of an entry that are the fingerprint's: all but those of the payload.
    const fn fingerprint_mask(self) -> u32 {
        let entry = (1 << (self.fingerprint_bits + self.payload_bits)) - 1;
        let payload = ((1u64 << self.payload_bits) - 1) << self.low_bits();
        (entry & !payload) as u32
    }

    pub(crate) const fn lane_bits(self) -> u32 {
        self.low_bits() + self.payload_bits
    }

    /// The lowest rate that any such shape reaches with every slot taken; 1 if there is none.
    pub(crate) fn lowest_rate(encoding: Option<Encoding>, payload_bits: u32) -> f64 {
        Self::with(encoding, payload_bits).map(|shape| shape.false_positive_rate(1.0)).fold(1.0, f64::min)
    }

    /// The shapes of `encoding`, or all, with `payload_bits`, by memory per slot.
    pub(crate) fn with(encoding: Option<Encoding>, payload_bits: u32) -> impl Iterator<Item = Self> {
        (0..SHAPES.len()).filter_map(move |row| Self::of_row(row, encoding, payload_bits))
    }

    /// The shape of this row of [`SHAPES`] with `payload_bits`. `None` if it is of another encoding, or cannot have such a
    /// payload.
    #[inline(never)]
    fn of_row(row: usize, encoding: Option<Encoding>, payload_bits: u32) -> Option<Self> {
        let shape = SHAPES[row];
        match payload_bits {
            _ if encoding.is_some_and(|wanted| wanted != shape.encoding) => None,
            0 => Some(shape),
            bits if SHAPES_WITH_PAYLOAD.contains(&shape) => shape.with_payload(bits),
            _ => None,
        }
    }

    /// The expected false-positive rate while the share `load` of all slots is taken.
    ///
    /// A lookup compares its fingerprint with those in the `2b·load` slots taken in two buckets (the paper's
    /// section 5.1). Two random fingerprints are equal with probability `Σ p²` over their values. That is `2⁻ᶠ`,
    /// except for the low part 1, which is twice as likely as the others.
    #[inline(never)]
    pub(crate) fn false_positive_rate(self, load: f64) -> f64 {
        let low_bits = self.low_bits();
        let lows = 2f64.powi(low_bits as i32);
        let highs = 2f64.powi((self.fingerprint_bits - low_bits) as i32);
        let equal = (lows + 2.0) / (lows * lows) / highs;
        -f64::exp_m1(2.0 * f64::from(self.slots) * load * f64::ln_1p(-equal))
    }
}

/// The numbers of a layout that the arithmetic on words needs. A table has them by value, in one or two cache lines:
/// an operation reads each where it uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    /// The lowest bit of every lane.
    pub(crate) ones: u64,
    /// The highest bit of every lane.
    pub(crate) tops: u64,
    /// All bits of a lane, at the low end.
    pub(crate) mask: u32,
    /// The bits of an entry that are the fingerprint's.
    pub(crate) fingerprint_mask: u32,
    /// How many bits a lane has.
    pub(crate) bits: u8,
    pub(crate) slots: u8,
    /// How many bits they have together.
    pub(super) end: u8,
    /// Where the rank begins. It reaches to the top of the word. In a plain layout, the top bit.
    pub(crate) rank_at: u8,
    /// How far [`semisort::unfold`] moves some of the high parts.
    pub(crate) fold: u8,
    /// The highest value of a high part: 0 in a plain layout, where slots have none.
    highest: u8,
}

impl Lanes {
    #[inline(never)]
    const fn of(shape: Shape) -> Self {
        let (bits, slots) = (shape.lane_bits(), shape.slots);
        let ones = semisort::ones(slots, bits);
        let (rank_at, fold, high_bits) = match shape.encoding {
            Encoding::Plain => (u64::BITS - 1, 0, 0),
            Encoding::SemiSorted => {
                (u64::BITS - semisort::rank_bits(slots), semisort::fold(slots, bits), semisort::high_bits(slots))
            }
        };
        Self {
            ones,
            tops: ones << (bits - 1),
            mask: u32::MAX >> (u32::BITS - bits),
            fingerprint_mask: shape.fingerprint_mask(),
            bits: bits as u8,
            slots: slots as u8,
            end: (slots * bits) as u8,
            rank_at: rank_at as u8,
            fold: fold as u8,
            highest: (1 << high_bits) - 1,
        }
    }

    #[inline(always)]
    pub(crate) fn all(self) -> u64 {
        u64::MAX >> (u64::BITS - u32::from(self.end))
    }

    /// The bits of every high part in a list (`word/semisort.rs`).
    #[inline(always)]
    pub(crate) fn list(self) -> u64 {
        self.ones * u64::from(self.highest)
    }

    /// [`Layout::fingerprint_from`] where the encoding is not known when the code is compiled. (For a plain layout it takes
    /// an instruction more.)
    #[inline(always)]
    pub(crate) fn fingerprint_from(self, hash: u64) -> Fingerprint {
        let bits = hash as u32 & self.fingerprint_mask;
        Fingerprint(bits + u32::from(bits & self.mask == 0))
    }

    /// The bit above all lanes. In a semi-sorted layout there is one.
    #[inline(always)]
    pub(crate) fn above(self) -> u64 {
        1 << self.end
    }
}

/// The numbers of the payloads in a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) bits: u32,
    /// All bits of a payload, at the low end.
    pub(crate) mask: u32,
    /// The bits of a bucket except those of payloads.
    pub(crate) fingerprints_mask: u64,
}

impl Payload {
    const NONE: Self = Self { bits: 0, mask: 0, fingerprints_mask: u64::MAX };
}

/// How the buckets of a table are laid out.
///
/// A table has its layout as data: [`RuntimeLayout`] or, if slots have a payload, [`WithPayload`]. Most code takes it as it is.
/// Where that is worth its machine code, an operation is compiled several times, with a [`ConstLayout`]: for each encoding
/// (what takes some hundred instructions, such as a search for a path, and batches), or for each row of `shapes!` (the short
/// operations on single keys).
pub(crate) trait Layout: Copy + core::fmt::Debug + Send + Sync {
    const HAS_PAYLOAD: bool = false;
    /// How many bits a lane has, if that is known when the code is compiled.
    const CONST_LANE_BITS: Option<u8> = None;

    /// The layout as data.
    type Runtime: Layout;

    /// The layout as data, for what is done too rarely to be compiled for each layout.
    fn as_runtime(&self) -> &Self::Runtime;

    /// Whether buckets are semi-sorted. A constant where the encoding is known when the code is compiled.
    fn is_semi_sorted(&self) -> bool;

    fn lanes(&self) -> Lanes;

    /// Rank to folded list, where the layout is semi-sorted.
    fn unrank(&self) -> &'static [u32];

    /// In a filter, a constant.
    #[inline(always)]
    fn payload(&self) -> Payload {
        Payload::NONE
    }

    /// How far a payload is from the low end of its lane: the bits of a fingerprint's low part.
    #[inline(always)]
    fn payload_shift(self) -> u32 {
        u32::from(self.lanes().bits) - self.payload().bits
    }

    fn shape(self) -> Shape {
        let lanes = self.lanes();
        let encoding = if self.is_semi_sorted() { Encoding::SemiSorted } else { Encoding::Plain };
        let fingerprint_bits = lanes.fingerprint_mask.count_ones();
        Shape { encoding, slots: lanes.slots.into(), fingerprint_bits, payload_bits: self.payload().bits }
    }

    /// The bits of an entry that are in its lane.
    #[inline(always)]
    fn low(self, bits: u32) -> u32 {
        if self.is_semi_sorted() { bits & self.lanes().mask } else { bits }
    }

    /// The bits of an entry that a semi-sorted bucket stores in its rank, at the low end.
    #[inline(always)]
    fn high(self, bits: u32) -> u32 {
        if self.is_semi_sorted() { bits >> self.lanes().bits } else { 0 }
    }

    /// The fingerprint in the low bits of a mixed hash.
    ///
    /// A lane whose low part is 0 means "empty slot", so a low part of 0 becomes 1. [`Shape::false_positive_rate`]
    /// includes what that costs.
    #[inline(always)]
    fn fingerprint_from(self, hash: u64) -> Fingerprint {
        let bits = hash & u64::from(self.lanes().fingerprint_mask);
        Fingerprint((bits + u64::from(self.low(bits as u32) < 1)) as u32)
    }

    #[inline(always)]
    fn entry(self, fingerprint: Fingerprint, payload: u16) -> Entry {
        if !Self::HAS_PAYLOAD {
            return Entry(fingerprint.0);
        }
        Entry(fingerprint.0 | (u32::from(payload) & self.payload().mask) << self.payload_shift())
    }

    #[inline(always)]
    fn payload_of(self, entry: Entry) -> u16 {
        if Self::HAS_PAYLOAD { (entry.0 >> self.payload_shift() & self.payload().mask) as u16 } else { 0 }
    }

    #[inline(always)]
    fn fingerprint_of(self, entry: Entry) -> Fingerprint {
        Fingerprint(if Self::HAS_PAYLOAD { entry.0 & self.lanes().fingerprint_mask } else { entry.0 })
    }
}

impl<L: Layout> Layout for &L {
    const HAS_PAYLOAD: bool = L::HAS_PAYLOAD;
    const CONST_LANE_BITS: Option<u8> = L::CONST_LANE_BITS;

    type Runtime = L::Runtime;

    #[inline(always)]
    fn as_runtime(&self) -> &L::Runtime {
        (**self).as_runtime()
    }

    #[inline(always)]
    fn is_semi_sorted(&self) -> bool {
        (**self).is_semi_sorted()
    }

    #[inline(always)]
    fn lanes(&self) -> Lanes {
        (**self).lanes()
    }

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        (**self).unrank()
    }

    #[inline(always)]
    fn payload(&self) -> Payload {
        (**self).payload()
    }
}

/// A layout whose numbers are read when the program runs.
#[derive(Clone, Copy)]
pub(crate) struct RuntimeLayout {
    pub(super) lanes: Lanes,
    /// A plain bucket has no rank: the list says 0 whatever is read as one.
    pub(super) unrank: &'static [u32],
}

impl RuntimeLayout {
    pub(super) const fn plain(shape: Shape) -> Self {
        Self { lanes: Lanes::of(shape), unrank: &[0; 2] }
    }

    /// The layout of this shape, or `None` if there is no memory for its decode table.
    pub(crate) fn try_of(shape: Shape) -> Option<Self> {
        Some(match shape.encoding {
            Encoding::Plain => Self::plain(shape),
            Encoding::SemiSorted => {
                Self { lanes: Lanes::of(shape), unrank: semisort::unrank_table(shape.slots, shape.lane_bits())? }
            }
        })
    }

    /// [`try_of`](Self::try_of) for tests, which have enough memory.
    #[cfg(test)]
    pub(crate) fn of(shape: Shape) -> Self {
        Self::try_of(shape).expect("memory for the decode table")
    }
}

impl Layout for RuntimeLayout {
    type Runtime = Self;

    #[inline(always)]
    fn as_runtime(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn is_semi_sorted(&self) -> bool {
        self.lanes.highest != 0
    }

    #[inline(always)]
    fn lanes(&self) -> Lanes {
        self.lanes
    }

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.unrank
    }
}

impl core::fmt::Debug for RuntimeLayout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RuntimeLayout").field("lanes", &self.lanes).finish_non_exhaustive()
    }
}

/// A layout as data, with some bits of each lane given to a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithPayload {
    layout: RuntimeLayout,
    payload: Payload,
}

impl WithPayload {
    /// The layout of this shape, or `None` if there is no memory for its decode table.
    pub(crate) fn try_of(shape: Shape) -> Option<Self> {
        let layout = RuntimeLayout::try_of(shape)?;
        let (bits, mask) = (shape.payload_bits, (1 << shape.payload_bits) - 1);
        let fingerprints_mask = !((u64::from(mask) << shape.low_bits()) * layout.lanes.ones);
        Some(Self { layout, payload: Payload { bits, mask, fingerprints_mask } })
    }

    /// [`try_of`](Self::try_of) for tests, which have enough memory.
    #[cfg(test)]
    pub(crate) fn of(shape: Shape) -> Self {
        Self::try_of(shape).expect("memory for the decode table")
    }
}

impl Layout for WithPayload {
    const HAS_PAYLOAD: bool = true;

    type Runtime = Self;

    #[inline(always)]
    fn as_runtime(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn is_semi_sorted(&self) -> bool {
        self.layout.is_semi_sorted()
    }

    #[inline(always)]
    fn lanes(&self) -> Lanes {
        self.layout.lanes
    }

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.layout.unrank
    }

    #[inline(always)]
    fn payload(&self) -> Payload {
        self.payload
    }
}

/// A layout of which the compiler knows the encoding or, with a row of [`SHAPES`], most numbers. `ROW` is the row,
/// [`PLAIN`] or [`SEMI_SORTED`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConstLayout<L, const ROW: usize>(pub(crate) L);

/// In place of a row: all plain layouts.
pub(crate) const PLAIN: usize = SHAPES.len();

/// In place of a row: all semi-sorted layouts.
pub(crate) const SEMI_SORTED: usize = SHAPES.len() + 1;

impl<L: Layout, const ROW: usize> ConstLayout<L, ROW> {
    const ENCODING: Encoding = match ROW {
        PLAIN => Encoding::Plain,
        SEMI_SORTED => Encoding::SemiSorted,
        row => SHAPES[row].encoding,
    };

    const LANES: Option<Lanes> = if ROW < SHAPES.len() { Some(Lanes::of(SHAPES[ROW])) } else { None };
}

impl<L: Layout, const ROW: usize> Layout for ConstLayout<L, ROW> {
    const HAS_PAYLOAD: bool = L::HAS_PAYLOAD;
    const CONST_LANE_BITS: Option<u8> = match Self::LANES {
        None => None,
        Some(known) => Some(known.bits),
    };

    type Runtime = L::Runtime;

    #[inline(always)]
    fn as_runtime(&self) -> &L::Runtime {
        self.0.as_runtime()
    }

    #[inline(always)]
    fn is_semi_sorted(&self) -> bool {
        matches!(Self::ENCODING, Encoding::SemiSorted)
    }

    #[inline(always)]
    fn lanes(&self) -> Lanes {
        match Self::LANES {
            None => self.0.lanes(),
            // A payload takes its bits from the fingerprint, and how many is not known.
            Some(known) if L::HAS_PAYLOAD => Lanes { fingerprint_mask: self.0.lanes().fingerprint_mask, ..known },
            Some(known) => known,
        }
    }

    #[inline(always)]
    fn unrank(&self) -> &'static [u32] {
        self.0.unrank()
    }

    #[inline(always)]
    fn payload(&self) -> Payload {
        self.0.payload()
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
