//! PURE: what a block of lookups has read, and what follows from it. It is in arrays, with a loop for each step, so
//! that vector units do the steps.

use crate::lookup::batch::BLOCK;
use crate::word::bucket::{Bucket, Pattern};
use crate::word::layout::{Fingerprint, Layout};
use crate::word::payloads::{OnlySlot, Payloads};
use crate::word::values::Values;

/// Both buckets of each item of a block, and what the decode table has for each.
pub(crate) struct Pairs {
    firsts: [u64; BLOCK],
    seconds: [u64; BLOCK],
    of_firsts: [u32; BLOCK],
    of_seconds: [u32; BLOCK],
}

impl Pairs {
    /// A value to be overwritten.
    pub(crate) const NONE: Self =
        Self { firsts: [0; BLOCK], seconds: [0; BLOCK], of_firsts: [0; BLOCK], of_seconds: [0; BLOCK] };

    /// Sets the two buckets of an item.
    ///
    /// It also asks the decode table. In a loop of its own that would become a vector instruction, which takes longer than
    /// the loads.
    #[inline(always)]
    pub(crate) fn set<L: Layout>(&mut self, layout: L, nth: usize, first: Bucket, second: Bucket) {
        (self.firsts[nth], self.seconds[nth]) = (first.0, second.0);
        if layout.is_semi_sorted() {
            (self.of_firsts[nth], self.of_seconds[nth]) = (first.folded(layout), second.folded(layout));
        }
    }

    /// [`set`](Self::set) where a bucket is decoded when it is compared.
    #[inline(always)]
    pub(crate) fn set_encoded(&mut self, nth: usize, [first, second]: [Bucket; 2]) {
        (self.firsts[nth], self.seconds[nth]) = (first.0, second.0);
    }

    #[inline(always)]
    pub(crate) fn buckets(&self, nth: usize) -> [Bucket; 2] {
        [self.firsts[nth], self.seconds[nth]].map(Bucket)
    }

    #[inline(always)]
    pub(crate) fn lanes(&self, layout: impl Layout, nth: usize, fingerprint: u32) -> [u64; 2] {
        let folded = [self.of_firsts[nth], self.of_seconds[nth]];
        Bucket::lanes_in(layout, self.buckets(nth), folded, Pattern::new(layout, fingerprint))
    }

    #[inline(always)]
    pub(crate) fn find(&self, layout: impl Layout, fingerprints: &[u32; BLOCK], answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate() {
            let [in_first, in_second] = self.lanes(layout, nth, fingerprints[nth]);
            *answer = in_first | in_second != 0;
        }
    }

    /// [`find`](Self::find) where the two buckets of an item store different bits of it.
    #[inline(always)]
    pub(crate) fn find_stored(&self, layout: impl Layout, stored: &[[u32; BLOCK]; 2], answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate() {
            let [first, second] = self.buckets(nth);
            let in_first = first.lanes_equal(layout, self.of_firsts[nth], Pattern::new(layout, stored[0][nth]));
            let in_second = second.lanes_equal(layout, self.of_seconds[nth], Pattern::new(layout, stored[1][nth]));
            *answer = in_first | in_second != 0;
        }
    }

    /// Whether either bucket of each item holds its fingerprint with one of these payloads.
    #[inline(always)]
    pub(crate) fn find_with(
        &self,
        layout: impl Layout,
        fingerprints: &[u32; BLOCK],
        payloads: Payloads,
        answers: &mut [bool; BLOCK],
    ) {
        for (nth, answer) in answers.iter_mut().enumerate() {
            let [first, second] = self.buckets(nth);
            let pattern = Pattern::new(layout, fingerprints[nth]);
            let with = |bucket: Bucket, folded| bucket.lanes_with_any(layout, folded, pattern, payloads);
            *answer = with(first, self.of_firsts[nth]) | with(second, self.of_seconds[nth]) != 0;
        }
    }

    /// The payloads of the first `len` items.
    #[inline(always)]
    pub(crate) fn values(
        &self,
        layout: impl Layout,
        fingerprints: &[u32; BLOCK],
        len: usize,
        answers: &mut [Values; BLOCK],
    ) {
        let mut slots = [OnlySlot::default(); BLOCK];
        for (nth, slot) in slots.iter_mut().enumerate() {
            *slot = OnlySlot::of(self.buckets(nth), self.lanes(layout, nth, fingerprints[nth]));
        }
        for (nth, OnlySlot { slot, several }) in slots.into_iter().enumerate().take(len) {
            answers[nth] = if several != 0 {
                Bucket::values(layout, self.buckets(nth), Fingerprint(fingerprints[nth]))
            } else {
                slot.value(layout)
            };
        }
    }
}
