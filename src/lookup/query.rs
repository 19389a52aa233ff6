//! PURE: what a lookup in a table of a fixed size asks of a key's two buckets.

use crate::lookup::batch::BLOCK;
use crate::lookup::pairs::Pairs;
use crate::word::bucket::Bucket;
use crate::word::layout::{Fingerprint, Layout};
use crate::word::payloads::{OnlySlot, Payloads};
use crate::word::values::Values;

/// What a lookup asks. Tables and views give the same answers: this trait is all that a question consists of.
pub(crate) trait Query: Copy {
    type Answer: Copy;

    /// The answer for a key that is not there.
    const ABSENT: Self::Answer;

    /// By what it judges the entries that it finds, if they expire: what it reads of the clock before it reads buckets.
    type Reading: Copy;

    fn reading(self) -> Self::Reading;

    /// The answer of a key's two buckets. `None` if that would count only at a reading that the clock has no more.
    fn answer(
        self,
        reading: Self::Reading,
        layout: impl Layout,
        pair: [Bucket; 2],
        fingerprint: Fingerprint,
    ) -> Option<Self::Answer>;

    /// The answers for the first `len` pairs of a block. Returns `false` if those that are not [certain](Self::is_certain) do
    /// not count.
    fn answer_all<L: Layout>(
        self,
        reading: Self::Reading,
        layout: L,
        pairs: &Pairs,
        fingerprints: &[u32; BLOCK],
        len: usize,
        answers: &mut [Self::Answer; BLOCK],
    ) -> bool;

    /// Whether the answer counts even if the read was invalidated.
    fn is_certain(answer: &Self::Answer) -> bool;
}

/// Whether the key is present; if payloads are given, with one of them.
#[derive(Clone, Copy)]
pub(crate) struct Presence {
    pub(crate) with: Option<Payloads>,
}

impl Presence {
    /// Whether the key is present, with whatever payload.
    pub(crate) const WITH_ANY: Self = Self { with: None };
}

impl Query for Presence {
    type Answer = bool;
    type Reading = ();

    const ABSENT: bool = false;

    #[inline(always)]
    fn reading(self) {}

    #[inline(always)]
    fn answer(self, (): (), layout: impl Layout, pair: [Bucket; 2], fingerprint: Fingerprint) -> Option<bool> {
        Some(match self.with {
            None => Bucket::either_holds(layout, pair, fingerprint),
            Some(payloads) => Bucket::either_holds_with(layout, pair, fingerprint, payloads),
        })
    }

    #[inline(always)]
    fn answer_all<L: Layout>(
        self,
        (): (),
        layout: L,
        pairs: &Pairs,
        fingerprints: &[u32; BLOCK],
        _: usize,
        answers: &mut [bool; BLOCK],
    ) -> bool {
        match self.with {
            Some(payloads) if L::HAS_PAYLOAD => pairs.find_with(layout, fingerprints, payloads, answers),
            _ => pairs.find(layout, fingerprints, answers),
        }
        true
    }

    /// What was found was there when it was read.
    #[inline(always)]
    fn is_certain(found: &bool) -> bool {
        *found
    }
}

/// Which values the key has.
#[derive(Clone, Copy)]
pub(crate) struct AllValues;

impl Query for AllValues {
    type Answer = Values;
    type Reading = ();

    const ABSENT: Values = Values::EMPTY;

    #[inline(always)]
    fn reading(self) {}

    #[inline(always)]
    fn answer(self, (): (), layout: impl Layout, pair: [Bucket; 2], fingerprint: Fingerprint) -> Option<Values> {
        let found = OnlySlot::of(pair, Bucket::lanes_in_either(layout, pair, fingerprint));
        Some(if found.several != 0 {
            Bucket::values(layout.as_runtime(), pair, fingerprint)
        } else {
            found.slot.value(layout)
        })
    }

    #[inline(always)]
    fn answer_all<L: Layout>(
        self,
        (): (),
        layout: L,
        pairs: &Pairs,
        fingerprints: &[u32; BLOCK],
        len: usize,
        answers: &mut [Values; BLOCK],
    ) -> bool {
        pairs.values(layout, fingerprints, len, answers);
        true
    }

    /// There may be others.
    #[inline(always)]
    fn is_certain(_: &Values) -> bool {
        false
    }
}
