//! CONCURRENT: how an insert makes sure that there is no room where few buckets are to blame, such as two buckets that
//! are full of copies of this pair. It costs the locks of a few stripes, and changes elsewhere do not disturb it.

use crate::table::stripe::{MAX_STRIPES, Stripe};
use crate::table::words::Table;
use crate::verify::fault::{self, Fault};
use crate::word::bucket::BucketOps;
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::Layout;

/// How many buckets are few.
const FEW: usize = 16;

/// How often an insert tries while others disturb it. A try costs less than a search of all that can be reached.
const TRIES: usize = if cfg!(ccf_model) { 2 } else { 4 };

/// A set of stripes: one bit for each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StripeSet([u64; MAX_STRIPES.div_ceil(64)]);

impl StripeSet {
    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Those of a table's stripes that are in the set.
    fn of(self, all: &[Stripe]) -> impl Iterator<Item = &Stripe> {
        let some = all.chunks(64).zip(self.0).filter(|&(_, bits)| bits != 0);
        some.flat_map(|(chunk, bits)| {
            (0..).zip(chunk).filter_map(move |(nth, stripe)| (bits >> nth & 1 != 0).then_some(stripe))
        })
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// If an item can only be in few buckets, and these were all full at a moment of this call: how many copies of its
    /// class there were at that moment.
    ///
    /// The argument is that of `stripe.rs` for "full", with two differences. The passes go through the stripes of the
    /// copies in these buckets, because nothing else can leave them. And the second look must find copies of the same
    /// stripes as the first, because the first pass went through these. If others have disturbed a try, its second look
    /// and pass are the first ones of the next try.
    pub(super) fn copies_if_enclosed(&self, item: Item) -> Option<usize> {
        let stripes = self.enclosing(item)?;
        let mut before = (stripes, self.settle(stripes.of(&self.stripes)));
        for _ in 0..TRIES {
            let stripes = self.enclosing(item)?;
            let copies = self.copies_locked(item);
            let now = (stripes, self.settle(stripes.of(&self.stripes)));
            if now == before {
                return Some(copies);
            }
            before = now;
        }
        None
    }

    /// The stripes of all copies in the item's two buckets and in all buckets to which these can move. `None` if there
    /// is room in one of these buckets, or if they are many.
    fn enclosing(&self, item: Item) -> Option<StripeSet> {
        if self.clock().is_some() {
            // Sweeps make room whatever the stripe.
            return None;
        }
        let mut stripes = StripeSet([0; _]);
        let mut reached = [item.first; FEW];
        reached[1] = item.second;
        let (mut next, mut count) = (0, 2);
        while next < count {
            let bucket = reached[next];
            let word = self.look(bucket);
            if self.layout.has_room(word) {
                return None;
            }
            for entry in self.layout.entries(word) {
                let sum = self.buckets.sum(self.layout.fingerprint_of(entry));
                let held_under = if fault::injected(Fault::FullPassesOwnStripe) { item.sum } else { sum };
                stripes.add(self.stripes().number(held_under));
                let alternate = self.buckets.other(sum, bucket);
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
