//! CONCURRENT: lookups in a growing table, and the reads of operations that hold a stripe's lock. `lookup/growing.rs` has the
//! optimistic read that a lookup is; here is where it reads, and what is done if that was invalidated.

use crate::growth::growing_table::{GrowingTable, load};
use crate::lookup::batch::Hashes;
use crate::lookup::growing::GrowingLookup;
use crate::lookup::source::GrowingSource;
use crate::machine::arch::{at, prefetch_line};
use crate::table::stripe::Stripe;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, Classes, State, both, stripe_number};

impl<'a> GrowingSource for &'a GrowingTable {
    type Version = (&'a Stripe, u64);

    #[inline(always)]
    fn classes(self) -> Classes {
        self.plan.classes
    }

    #[inline(always)]
    fn epoch(self) -> u64 {
        self.epoch()
    }

    #[inline(always)]
    fn state(self) -> State {
        self.state()
    }

    #[inline(always)]
    fn is_still(self, epoch: u64) -> bool {
        self.is_still(epoch)
    }

    #[inline(always)]
    fn stripe(self, base: u32) -> u32 {
        (stripe_number(base) & (self.stripes.len() - 1)) as u32
    }

    #[inline(always)]
    fn version(self, stripe: u32) -> (&'a Stripe, u64) {
        let stripe = at(&self.stripes, stripe as usize);
        (stripe, stripe.version())
    }

    #[inline(always)]
    fn changes_since(self, (stripe, version): (&'a Stripe, u64)) -> u64 {
        stripe.changes_since(version)
    }

    #[inline(always)]
    fn load_pair(self, numbers: [u32; 2]) -> Option<[Bucket; 2]> {
        self.words.read_pair(numbers, load)
    }

    #[inline(always)]
    fn prefetch(self, number: u32) {
        self.prefetch_bucket(number as usize);
    }

    fn contains_slow(self, hash: u64) -> bool {
        self.contains_slow(hash)
    }
}

impl GrowingTable {
    /// Whether there is a copy of the class of this hash. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        GrowingLookup(self).contains(hash)
    }

    /// Calls `answers` with the answers for all hashes, in order and a block at a time.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        GrowingLookup(self).contains_all(hashes, answers);
    }

    /// `contains` where the first attempt was invalidated, or where a bucket is being moved.
    #[cold]
    #[inline(never)]
    fn contains_slow(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        let stripe = self.stripe(class.base);
        loop {
            let epoch = self.epoch();
            let state = self.state();
            let version = stripe.version();
            let found = self.copies_in(class, state).iter().any(|&copies| copies > 0);
            // If the state is the same, a match is certain, whatever was taken meanwhile.
            if self.is_still(epoch) && (found || stripe.is_still(version)) {
                return found;
            }
            self.counters().lookup_retried();
        }
    }

    /// How many copies of the class there are on each side, in this state.
    #[inline]
    fn copies_in(&self, class: Class, state: State) -> [usize; 2] {
        both([0, 1], |side| self.copies_on(class, side, state))
    }

    /// How many copies of the class there are on one side, in this state.
    #[inline(always)]
    fn copies_on(&self, class: Class, side: usize, state: State) -> usize {
        let (bucket, depth) = self.contents(state, class.sides[side]);
        self.layout(depth).count(bucket, self.plan.classes.stored(class, depth))
    }

    /// How many copies of the class there are on each side. The caller holds the class's stripe, so no copy is taken
    /// out meanwhile.
    pub(super) fn copies(&self, class: Class) -> [usize; 2] {
        self.in_one_state(|state| self.copies_in(class, state))
    }

    /// Retries `read` until the state is the same afterwards.
    #[inline(always)]
    fn in_one_state<R>(&self, read: impl Fn(State) -> R) -> R {
        loop {
            let epoch = self.epoch();
            let found = read(self.state());
            if self.is_still(epoch) {
                return found;
            }
        }
    }

    /// How many copies of the class of this hash there are.
    pub(crate) fn count(&self, hash: u64) -> usize {
        let class = self.plan.classes.of(hash);
        let _guard = self.stripe(class.base).lock(self.counters());
        self.copies(class).iter().sum()
    }

    /// Prefetches the buckets and the stripes of these hashes.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        let state = self.state();
        for class in hashes.iter().map(|&hash| self.plan.classes.of(hash)) {
            self.prefetch_class(state, class);
            prefetch_line(self.stripe(class.base));
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_class(&self, state: State, class: Class) {
        class.sides.into_iter().for_each(|side| self.prefetch_bucket(state.place(side).number));
    }

    /// Prefetches a bucket that there is or was.
    #[inline(always)]
    pub(super) fn prefetch_bucket(&self, number: usize) {
        if let Some(word) = self.words.get(number as u32) {
            prefetch_line(word);
        }
    }
}
