//! PURE: lookups in the words of a table of a fixed size.

use crate::machine::arch::VectorUnit;
use crate::plan::batch::{BLOCK, Block, BlockLookup, Hashes, LookupBatch};
use crate::plan::pairs::Pairs;
use crate::view::words::{ViewTable, Words};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Buckets, Items};
use crate::word::layout::{Fingerprint, Known, Layout, LayoutData, Shape, WithPayload, by_encoding, by_shape};
use crate::word::payloads::{PayloadOps, Payloads};
use crate::word::values::Values;

/// A block of keys: their buckets and fingerprints.
type Asked<'a> = Block<'a, Items<BLOCK>>;

/// A query about a key, and how its two buckets answer it.
trait Question: Copy {
    type Answer: Copy;

    const ABSENT: Self::Answer;

    fn answer(self, layout: impl Layout, pair: [Bucket; 2], fingerprint: Fingerprint) -> Self::Answer;

    /// The answers for a block.
    fn answer_all(self, layout: impl Layout, asked: Asked<'_>, pairs: &Pairs, answers: &mut [Self::Answer; BLOCK]);
}

/// Whether the key is present.
#[derive(Clone, Copy)]
struct AskPresence;

impl Question for AskPresence {
    type Answer = bool;

    const ABSENT: bool = false;

    #[inline(always)]
    fn answer(self, layout: impl Layout, [first, second]: [Bucket; 2], fingerprint: Fingerprint) -> bool {
        layout.either_holds(first, second, fingerprint)
    }

    #[inline(always)]
    fn answer_all(self, layout: impl Layout, asked: Asked<'_>, pairs: &Pairs, answers: &mut [bool; BLOCK]) {
        pairs.find(layout, &asked.prepared.entries, answers);
    }
}

/// Which values the key has.
#[derive(Clone, Copy)]
struct AskValues;

impl Question for AskValues {
    type Answer = Values;

    const ABSENT: Values = Values::EMPTY;

    #[inline(always)]
    fn answer(self, layout: impl Layout, [first, second]: [Bucket; 2], fingerprint: Fingerprint) -> Values {
        let found = layout.only_slot([first, second], layout.lanes_in_either(first, second, fingerprint));
        if found.several != 0 { layout.values(first, second, fingerprint) } else { layout.value_at(found.slot) }
    }

    #[inline(always)]
    fn answer_all(self, layout: impl Layout, asked: Asked<'_>, pairs: &Pairs, answers: &mut [Values; BLOCK]) {
        pairs.values(layout, &asked.prepared.entries, asked.len, answers);
    }
}

/// Whether the key has an entry with one of these payloads.
#[derive(Clone, Copy)]
struct AskAnyPayload(Payloads);

impl Question for AskAnyPayload {
    type Answer = bool;

    const ABSENT: bool = false;

    #[inline(always)]
    fn answer(self, layout: impl Layout, [first, second]: [Bucket; 2], fingerprint: Fingerprint) -> bool {
        let pattern = layout.pattern(fingerprint.0);
        let with = |bucket| layout.lanes_with_any(bucket, layout.folded(bucket), pattern, self.0);
        with(first) | with(second) != 0
    }

    #[inline(always)]
    fn answer_all(self, layout: impl Layout, asked: Asked<'_>, pairs: &Pairs, answers: &mut [bool; BLOCK]) {
        pairs.find_with(layout, &asked.prepared.entries, self.0, answers);
    }
}

/// A table whose slots have payloads.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
pub trait PayloadViewTable: ViewTable {
    fn values(&self, words: Words<'_>, hash: u64) -> Values;

    fn values_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values]));

    /// Whether the key has one of these payloads.
    fn contains_any(&self, words: Words<'_>, hash: u64, payloads: Payloads) -> bool;

    fn contains_any_batch(
        &self,
        words: Words<'_>,
        hashes: Hashes<'_>,
        payloads: Payloads,
        answers: &mut dyn FnMut(&[bool]),
    );
}

/// A table without its words. As in `table/by_shape.rs`, single lookups are compiled for each shape, and batches
/// only for each encoding.
#[derive(Clone, Copy)]
struct Fixed<L, const ROW: usize> {
    layout: L,
    buckets: Buckets,
}

impl<L: Layout, const ROW: usize> Fixed<L, ROW> {
    #[inline(always)]
    fn ask<Q: Question>(&self, question: Q, words: Words<'_>, hash: u64) -> Q::Answer {
        let layout = Known::<_, ROW>(&self.layout);
        let item = self.buckets.item(layout, hash);
        let pair = [words.get(item.first), words.get(item.second)];
        question.answer(layout, pair, layout.fingerprint_of(item.entry))
    }

    fn ask_all<Q: Question>(
        &self,
        question: Q,
        words: Words<'_>,
        hashes: Hashes<'_>,
        answers: &mut dyn FnMut(&[Q::Answer]),
    ) {
        let buckets = self.buckets;
        by_encoding!(self.layout, layout => {
            let lookup = FixedLookup { layout, buckets, question, words };
            VectorUnit::widest().run(LookupBatch { lookup, hashes, answers });
        });
    }
}

impl<L: Layout, const ROW: usize> ViewTable for Fixed<L, ROW> {
    fn contains(&self, words: Words<'_>, hash: u64) -> bool {
        self.ask(AskPresence, words, hash)
    }

    fn contains_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.ask_all(AskPresence, words, hashes, answers);
    }
}

impl<L: Layout, const ROW: usize> PayloadViewTable for Fixed<L, ROW> {
    fn values(&self, words: Words<'_>, hash: u64) -> Values {
        self.ask(AskValues, words, hash)
    }

    fn values_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values])) {
        self.ask_all(AskValues, words, hashes, answers);
    }

    fn contains_any(&self, words: Words<'_>, hash: u64, payloads: Payloads) -> bool {
        self.ask(AskAnyPayload(payloads), words, hash)
    }

    fn contains_any_batch(
        &self,
        words: Words<'_>,
        hashes: Hashes<'_>,
        payloads: Payloads,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        self.ask_all(AskAnyPayload(payloads), words, hashes, answers);
    }
}

/// A table of this shape, or `None` if there is no memory for its decode table.
pub(super) fn table(shape: Shape, buckets: usize) -> Option<Box<dyn ViewTable>> {
    let (layout, buckets) = (LayoutData::try_of(shape)?, Buckets::new(buckets));
    by_shape!(shape, ROW => Some(Box::new(Fixed::<_, ROW> { layout, buckets })))
}

/// A table of this shape whose slots have payloads, or `None` if there is no memory for its decode table.
pub(super) fn payload_table(shape: Shape, buckets: usize) -> Option<Box<dyn PayloadViewTable>> {
    let (layout, buckets) = (WithPayload::try_of(shape)?, Buckets::new(buckets));
    by_shape!(with payload shape, ROW => Some(Box::new(Fixed::<_, ROW> { layout, buckets })))
}

/// The lookups of a batch.
struct FixedLookup<'a, L, Q> {
    layout: L,
    buckets: Buckets,
    question: Q,
    words: Words<'a>,
}

impl<L: Layout, Q: Question> BlockLookup for FixedLookup<'_, L, Q> {
    type Prepared = Items<BLOCK>;

    type Answer = Q::Answer;

    const ABSENT: Q::Answer = Q::ABSENT;

    #[inline(always)]
    fn prepare(&self, unit: VectorUnit, hashes: &[u64; BLOCK], items: &mut Items<BLOCK>) {
        self.buckets.items(unit, self.layout.lanes(), hashes, items);
    }

    #[inline(always)]
    fn prefetch(&self, items: &Items<BLOCK>) {
        items.firsts.iter().chain(&items.seconds).for_each(|&bucket| self.words.prefetch(bucket as usize));
    }

    /// The places beyond the end of the last block repeat its first hash.
    #[inline(always)]
    fn look_up(&mut self, block: Asked<'_>, coming: &Items<BLOCK>, answers: &mut [Q::Answer; BLOCK]) {
        let mut pairs = Pairs::NONE;
        if self.words.are_far() {
            load::<_, true>(self.layout, self.words, block.prepared, coming, &mut pairs);
        } else {
            load::<_, false>(self.layout, self.words, block.prepared, coming, &mut pairs);
        }
        self.question.answer_all(self.layout, block, &pairs, answers);
    }
}

/// Reads the pairs of a block. If `PREFETCH`, prefetches the buckets of `coming`.
#[inline(never)]
fn load<L: Layout, const PREFETCH: bool>(
    layout: L,
    words: Words<'_>,
    items: &Items<BLOCK>,
    coming: &Items<BLOCK>,
    pairs: &mut Pairs,
) {
    for nth in 0..BLOCK {
        if PREFETCH {
            words.prefetch(coming.firsts[nth] as usize);
            words.prefetch(coming.seconds[nth] as usize);
        }
        pairs.set(layout, nth, words.get(items.firsts[nth] as usize), words.get(items.seconds[nth] as usize));
    }
}
