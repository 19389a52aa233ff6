//! CONCURRENT: how an insert that can reach only few buckets verifies that they have no room, such as two that are full
//! of copies of this pair. It locks only the stripes of the copies in these buckets. Changes under other stripes do not
//! invalidate it.

use crate::sync::sizes::{DEAD_END_TRIES, MAX_STRIPES};
use crate::table::attempt::IfPresent;
use crate::table::copy_count::CopyCount;
use crate::table::entries::Entries;
use crate::table::stripe::{Stripe, drain_writers};
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::Layout;

/// The most buckets that count as few. An item whose two buckets are the same counts that one twice.
const FEW: usize = 16;

/// A set of stripes: one bit for each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StripeSet([u64; Self::WORDS]);

impl StripeSet {
    const WORDS: usize = MAX_STRIPES.div_ceil(64);

    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }

    fn of<'a>(&'a self, all: &'a [Stripe]) -> impl Iterator<Item = &'a Stripe> {
        (0..all.len()).filter(move |&number| self.has(number)).map(|number| &all[number])
    }
}

impl<E: Entries> Table<E> {
    /// If few buckets can be reached from the item's two, and all of them were full at one point of this call: how many
    /// copies of its class there were at that point, and whether the insert needed room.
    ///
    /// The argument is that of `relocate.rs`, with two differences. The passes go through the stripes of the copies in
    /// these buckets only: a full bucket changes only when one of its copies is removed or replaced. And the second
    /// read must find the same stripes as the first, because the first pass went through those. The buckets do not
    /// change from the second read until the second pass begins, so the count is right for that moment. If a try is
    /// invalidated, its second read and pass serve as the first ones of the next try.
    #[cold]
    #[inline(never)]
    pub(super) fn copies_at_dead_end(&self, item: Item, if_present: IfPresent) -> Option<CopyCount> {
        let stripes = self.stripes_reached(item)?;
        let mut before = (self.drain_writers_of(&stripes), stripes);
        for _ in 0..DEAD_END_TRIES {
            let stripes = self.stripes_reached(item)?;
            let counted = self.count_copies(item, if_present);
            let now = (self.drain_writers_of(&stripes), stripes);
            if now == before {
                return Some(counted);
            }
            before = now;
        }
        None
    }

    /// [`drain_writers`] of these stripes.
    #[inline(never)]
    fn drain_writers_of(&self, stripes: &StripeSet) -> u64 {
        drain_writers(&mut stripes.of(&self.stripes), &self.counters)
    }

    /// The stripes of all copies in the item's two buckets and in all buckets to which relocations lead from there.
    /// `None` if one of these has room, if they are too many, or if entries expire.
    fn stripes_reached(&self, item: Item) -> Option<StripeSet> {
        if E::EXPIRE {
            // A sweep removes copies without a lock.
            return None;
        }
        let mut stripes = StripeSet([0; StripeSet::WORDS]);
        let mut reached = [item.first; FEW];
        reached[1] = item.second;
        let (mut next, mut count) = (0, 2);
        while next < count {
            let bucket = reached[next];
            let word = self.load(bucket);
            if word.has_room(self.layout) {
                return None;
            }
            for entry in word.entries(self.layout) {
                let bucket_sum = self.geometry.bucket_sum(self.layout.fingerprint_of(entry));
                stripes.add(self.stripes().number(bucket_sum));
                let alternate = self.geometry.other(bucket_sum, bucket);
                if !reached[..count].contains(&alternate) {
                    *reached.get_mut(count)? = alternate;
                    count += 1;
                }
            }
            next += 1;
        }
        Some(stripes)
    }
}
