//! CONCURRENT: lookups, which take no lock, and `count`, which does. `lookup/fixed.rs` has the optimistic read that a lookup is;
//! here is where it reads ([`LiveTable`]), and what is done if that was invalidated.

use crate::lookup::batch::{BLOCK, Hashes};
use crate::lookup::fixed::FixedLookup;
use crate::lookup::query::{Presence, Query};
use crate::lookup::source::BucketSource;
use crate::machine::arch::prefetch;
use crate::sync::AtomicU64;
use crate::table::counters::Counters;
use crate::table::entries::Entries;
use crate::table::stripe::Stripe;
use crate::table::table::{Stripes, Table, load};
use crate::word::bucket::Bucket;
use crate::word::geometry::{Item, Items};
use crate::word::layout::{Layout, by_encoding};

/// The words of a table, and the versions of its stripes.
#[derive(Clone, Copy)]
pub(crate) struct LiveTable<'a> {
    words: &'a [AtomicU64],
    stripes: Stripes<'a>,
    counters: &'a Counters,
}

impl<'a> BucketSource for LiveTable<'a> {
    type Version = (&'a Stripe, u64);

    #[inline(always)]
    fn version(self, bucket_sum: usize) -> (&'a Stripe, u64) {
        let stripe = self.stripes.get(bucket_sum);
        (stripe, stripe.version())
    }

    #[inline(always)]
    fn changes_since(self, (stripe, version): (&'a Stripe, u64)) -> u64 {
        stripe.changes_since(version)
    }

    #[inline(always)]
    fn load(self, bucket: usize) -> Bucket {
        load(self.words, bucket)
    }

    #[inline(always)]
    fn prefetch(self, bucket: usize) {
        prefetch(self.words, bucket);
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.words.len()
    }

    fn retried(self) {
        self.counters.lookup_retried();
    }
}

impl<E: Entries> Table<E> {
    /// Lookups in this table. The layout is that of the table, perhaps a known one.
    #[inline(always)]
    pub(super) fn lookup<L: Layout>(&self, layout: L) -> FixedLookup<L, LiveTable<'_>> {
        let source = LiveTable { words: &self.words, stripes: self.stripes(), counters: &self.counters };
        FixedLookup { layout, geometry: self.geometry, source }
    }

    /// Whether the table holds a copy of the class of this hash; where entries expire, a live one. Lock-free.
    /// `table/stripe.rs` proves that *false* is right, and `table/expiring/mod.rs` where entries expire.
    #[inline(always)]
    pub(super) fn contains(&self, layout: impl Layout, hash: u64) -> bool {
        if self.entries.may_hold_expired(self.entries.reading()) {
            return self.contains_among_expired(hash);
        }
        self.lookup(layout).ask(Presence::WITH_ANY, hash, || self.contains_slow(hash))
    }

    /// `contains` while the table may hold expired entries.
    #[inline(never)]
    fn contains_among_expired(&self, hash: u64) -> bool {
        self.lookup(self.layout()).ask(self.entries.presence(), hash, || self.contains_slow(hash))
    }

    /// `contains` where the first attempt was invalidated. (A match in it would have been valid, but passing it on would cost
    /// registers in all lookups.)
    #[cold]
    #[inline(never)]
    fn contains_slow(&self, hash: u64) -> bool {
        self.ask_again(self.entries.presence(), hash)
    }

    /// The answer for the key with this hash after the first attempt was invalidated.
    pub(super) fn ask_again<Q: Query>(&self, query: Q, hash: u64) -> Q::Answer {
        self.lookup(self.layout()).ask_again(query, hash)
    }

    /// Calls `answers` with the answers for all hashes, in order and a block at a time.
    pub(super) fn ask_all<Q: Query>(&self, query: Q, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Q::Answer])) {
        by_encoding!(self.layout, layout => self.lookup(layout).ask_all(query, hashes, answers));
    }

    /// How many copies there are of the item of this hash with this payload.
    #[inline(always)]
    pub(crate) fn count(&self, layout: impl Layout, hash: u64, payload: u16) -> usize {
        let item = self.geometry.item(layout, hash).with(layout, payload);
        let _guard = self.stripe(item.bucket_sum).lock(&self.counters);
        self.copies_of_item(layout, item)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, item: Item) {
        prefetch(&self.words, item.first);
        prefetch(&self.words, item.second);
    }

    #[inline(never)]
    pub(super) fn prefetch_block(&self, items: &Items<BLOCK>) {
        for nth in 0..BLOCK {
            self.prefetch(items.get(nth));
        }
    }
}
