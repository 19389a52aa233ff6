//! Pure: the breadth-first search for the shortest way to a bucket with room.
//!
//! Where both buckets of an item are full, something must move. The paper (section 3.2, algorithm 1) evicts at random
//! and carries the victim on; MemC3 (section 4.3.1) and Li et al. (*Algorithmic Improvements*, section 4.3.2) first
//! look for a *cuckoo path* without moving anything, breadth first, so that the path is as short as can be, and then
//! move its items from the far end back. The bucket of an item's alternate is known from its fingerprint alone, so the
//! search needs nothing but the buckets.
//!
//! The search runs without locks over buckets that others change meanwhile. Its result is a plan: whoever carries it
//! out checks each hop again.

use crate::bucket::{Bucket, BucketOps};
use crate::hash::{Geometry, Item};
use crate::layout::{Fingerprint, Layout};

/// How many buckets a search looks at before it gives up.
///
/// In 60 tables of 65,536 buckets, the lowest load at which an insert was refused:
///
/// | budget | b = 2 | 3 | 4 | 5 | 6 | 8 |
/// |---|---|---|---|---|---|---|
/// | 512 | 85.6 % | 92.7 % | 96.1 % | 97.2 % | 98.1 % | 98.8 % |
/// | 1,024 | 87.5 % | 94.3 % | 96.9 % | 97.9 % | 98.6 % | 99.2 % |
/// | **2,048** | 88.2 % | 94.7 % | 97.2 % | 98.4 % | 98.9 % | 99.5 % |
/// | 4,096 | 88.7 % | 95.0 % | 97.4 % | 98.6 % | 99.1 % | 99.6 % |
pub(crate) const BUDGET: usize = 2048;

/// The budgets of the first two tries, which nearly all searches end within.
///
/// A search begins by clearing its scratch space, 16 bytes for each bucket of the budget, and that of the full one
/// takes longer than most searches. What a try has looked at is in the cache when the next begins anew.
const FIRST_BUDGET: usize = 32;
const SECOND_BUDGET: usize = 256;

/// One hop of a plan: move `fingerprint` from bucket `from` to bucket `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// What a search came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All hops of the plan were handed on.
    Planned,
    /// No bucket within the budget has room. `trace` is a digest of all that was looked at: equal traces saw equal
    /// buckets.
    Nothing { trace: u64 },
}

/// Looks for room near the item's two buckets; where it finds some, hands the hops that bring it there to `carry_out`,
/// the one at the far end first, until that returns `false`.
pub(crate) fn make_room<L: Layout, G: Geometry>(
    layout: L,
    buckets: G,
    item: Item,
    look: impl Fn(usize) -> Bucket,
    mut carry_out: impl FnMut(Hop) -> bool,
) -> Outcome {
    try_within::<FIRST_BUDGET, L, G>(layout, buckets, item, &look, &mut carry_out)
        .or_else(|| try_within::<SECOND_BUDGET, L, G>(layout, buckets, item, &look, &mut carry_out))
        .or_else(|| try_within::<BUDGET, L, G>(layout, buckets, item, &look, &mut carry_out))
        .expect("the last try has an outcome")
}

/// The outcome of a search with a budget of `N` buckets, or `None` if a larger budget may lead further.
#[inline(never)]
fn try_within<const N: usize, L: Layout, G: Geometry>(
    layout: L,
    buckets: G,
    item: Item,
    look: &impl Fn(usize) -> Bucket,
    carry_out: &mut impl FnMut(Hop) -> bool,
) -> Option<Outcome> {
    let mut search = Search::<N>::new();
    if let Some(leaf) = search.run(layout, buckets, item, look) {
        search.hand_on(leaf, carry_out);
        return Some(Outcome::Planned);
    }
    // Fewer than the budget are all that can be reached.
    (search.len < N || N == BUDGET).then_some(Outcome::Nothing { trace: search.trace })
}

/// A bucket to look at, and the fingerprint that moves into it from its parent's bucket if the path leads through it.
#[derive(Clone, Copy)]
struct Node {
    bucket: usize,
    fingerprint: Fingerprint,
    parent: u16,
}

/// The parent of the item's own two buckets.
const ROOT: u16 = u16::MAX;

/// The queue of one search, which is also the tree of its paths; on the stack, for no operation allocates.
struct Search<const N: usize> {
    nodes: [Node; N],
    len: usize,
    /// The buckets in the queue, by number; used in tables of at most `BUDGET` buckets, where it makes the search
    /// exact.
    seen: [u64; BUDGET / 64],
    trace: u64,
}

impl<const N: usize> Search<N> {
    fn new() -> Self {
        Self {
            nodes: [Node { bucket: 0, fingerprint: Fingerprint(0), parent: ROOT }; N],
            len: 0,
            seen: [0; BUDGET / 64],
            trace: 0,
        }
    }

    /// Returns the node of the nearest bucket with room.
    ///
    /// A bucket is looked at when it joins the queue, not when its turn comes: so only a `b`th of the buckets looked at
    /// have their own alternates computed, and the loads of a bucket's alternates, which do not depend on each other,
    /// overlap.
    fn run<L: Layout, G: Geometry>(
        &mut self,
        layout: L,
        buckets: G,
        item: Item,
        look: &impl Fn(usize) -> Bucket,
    ) -> Option<usize> {
        for bucket in [item.first, item.second] {
            if self.visit(layout, buckets, Node { bucket, fingerprint: item.fingerprint, parent: ROOT }, look) {
                return Some(self.len - 1);
            }
        }
        let mut next = 0;
        while next < self.len && self.len < N {
            let from = self.nodes[next].bucket;
            for fingerprint in layout.fingerprints(look(from)) {
                let node = Node { bucket: buckets.alternate(from, fingerprint), fingerprint, parent: next as u16 };
                if self.visit(layout, buckets, node, look) {
                    return Some(self.len - 1);
                }
            }
            next += 1;
        }
        None
    }

    /// Puts a bucket in the queue, unless it has been there or the queue is full; returns whether it has room.
    #[inline]
    fn visit<L: Layout, G: Geometry>(
        &mut self,
        layout: L,
        buckets: G,
        node: Node,
        look: &impl Fn(usize) -> Bucket,
    ) -> bool {
        if self.len == N {
            return false;
        }
        // A larger table is so much larger than the budget that a search hardly ever meets a bucket twice, and a plan
        // that did is still safe.
        if buckets.count() <= BUDGET {
            let (word, bit) = (&mut self.seen[node.bucket / 64], 1 << (node.bucket % 64));
            if *word & bit != 0 {
                return false;
            }
            *word |= bit;
        }
        self.nodes[self.len] = node;
        self.len += 1;
        let bucket = look(node.bucket);
        self.trace = (self.trace.rotate_left(5) ^ bucket.0).wrapping_mul(0x2545_f491_4f6c_dd1d);
        layout.has_room(bucket)
    }

    fn hand_on(&self, leaf: usize, carry_out: &mut impl FnMut(Hop) -> bool) {
        let mut to = self.nodes[leaf];
        while to.parent != ROOT {
            let from = self.nodes[usize::from(to.parent)];
            if !carry_out(Hop { fingerprint: to.fingerprint, from: from.bucket, to: to.bucket }) {
                return;
            }
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::Buckets;
    use crate::layout::{Plain, SemiSorted, Shape};
    use crate::sizing;
    use crate::table::Table;

    /// How far each bucket that can be reached from the item's two is from them: by a search of another kind, to a
    /// fixed point.
    fn distances<L: Layout>(layout: L, buckets: Buckets, item: Item, words: &[Bucket]) -> HashMap<usize, usize> {
        let mut distances = HashMap::from([(item.first, 0), (item.second, 0)]);
        loop {
            let mut nearer = Vec::new();
            for (&from, &distance) in distances.iter().filter(|&(&from, _)| !layout.has_room(words[from])) {
                for fingerprint in layout.fingerprints(words[from]) {
                    let to = buckets.alternate(from, fingerprint);
                    if distances.get(&to).is_none_or(|&known| known > distance + 1) {
                        nearer.push((to, distance + 1));
                    }
                }
            }
            if nearer.is_empty() {
                return distances;
            }
            for (to, distance) in nearer {
                distances.entry(to).and_modify(|known| *known = distance.min(*known)).or_insert(distance);
            }
        }
    }

    /// Fills a table of plain words to the given share, each item in a bucket of its own, and plans the insert of one
    /// more.
    fn check<L: Layout>(count: usize, hashes: &[u64], one: u64) {
        let (layout, buckets) = (L::new(), Buckets::new(count));
        let mut words = vec![Bucket::default(); count];
        for &hash in hashes {
            let item = buckets.item(layout, hash);
            for bucket in [item.first, item.second] {
                if let Some(added) = layout.add(words[bucket], item.fingerprint) {
                    words[bucket] = added;
                    break;
                }
            }
        }
        let item = buckets.item(layout, one);
        let distances = distances(layout, buckets, item, &words);
        let nearest = distances.iter().filter(|&(&bucket, _)| layout.has_room(words[bucket])).map(|(_, &d)| d).min();

        let mut after = words.clone();
        let mut hops = 0;
        let outcome = make_room(
            layout,
            buckets,
            item,
            |bucket| words[bucket],
            |Hop { fingerprint, from, to }| {
                assert_eq!(buckets.alternate(from, fingerprint), to, "a hop leads to the alternate bucket");
                after[to] = layout.add(after[to], fingerprint).expect("each hop finds the room that the last one left");
                after[from] = layout.remove(after[from], fingerprint).expect("what is to be moved is there");
                hops += 1;
                true
            },
        );
        match outcome {
            Outcome::Planned => {
                assert_eq!(Some(hops), nearest, "the shortest path");
                assert!([item.first, item.second].iter().any(|&bucket| layout.has_room(after[bucket])), "room is made");
            }
            Outcome::Nothing { .. } => assert_eq!(nearest, None, "there is no path"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 5 } else { 2_000 }))]

        #[test]
        fn a_plan_is_the_shortest_path_to_room(
            count in prop_oneof![1..8usize, 8..80usize],
            filled in 0.7..1.4f64,
            hashes in prop::collection::vec(any::<u64>(), 450),
            one in any::<u64>(),
        ) {
            let items = |slots: usize| &hashes[..((count * slots) as f64 * filled) as usize % 450];
            check::<Plain<2, 32>>(count, items(2), one);
            check::<Plain<8, 8>>(count, items(8), one);
            check::<SemiSorted<3, 22>>(count, items(3), one);
            check::<SemiSorted<5, 14>>(count, items(5), one);
        }
    }

    #[test]
    fn a_plan_is_dropped_at_the_first_hop_that_fails() {
        let (layout, buckets) = (Plain::<2, 32>::new(), Buckets::new(1 << 20));
        // Buckets are full until the search has looked at thirty of them: the path has several hops.
        let looks = std::cell::Cell::new(0);
        let full = [1, 2].into_iter().map(Fingerprint);
        let full = full.fold(Bucket::default(), |bucket, f| layout.add(bucket, f).expect("two slots"));
        let look = |_| {
            looks.set(looks.get() + 1);
            if looks.get() > 30 { Bucket::default() } else { full }
        };
        let mut hops = 0;
        let refuse = |_| {
            hops += 1;
            false
        };
        let outcome = make_room(layout, buckets, buckets.item(layout, 7), look, refuse);
        assert!(matches!(outcome, Outcome::Planned));
        assert_eq!(hops, 1);
    }

    #[test]
    fn a_search_looks_at_no_more_buckets_than_its_budget() {
        let (layout, buckets) = (SemiSorted::<5, 14>::new(), Buckets::new(1 << 30));
        let full = (0..5).map(|i| layout.fingerprint(i * 0x1357_9bdf));
        let full = full.fold(Bucket::default(), |bucket, f| layout.add(bucket, f).expect("five slots"));
        let mut seen = std::cell::RefCell::new(std::collections::HashSet::new());
        let look = |bucket| {
            seen.borrow_mut().insert(bucket);
            full
        };
        let outcome = make_room(layout, buckets, buckets.item(layout, 7), look, |_| unreachable!("no room anywhere"));
        assert!(matches!(outcome, Outcome::Nothing { .. }));
        assert!(seen.get_mut().len() <= BUDGET, "{} buckets", seen.get_mut().len());
    }

    /// In large tables filled to the capacity, and with a quarter of the other slots taken too: the share of the searches
    /// that look at more buckets than so many.
    ///
    /// It falls geometrically: a doubling of the number roughly squares the share. At the higher load that can be
    /// followed up to the budget; at capacity it tells how seldom the budget ends a search, which is much too seldom to
    /// be seen.
    #[test]
    #[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
    fn how_far_searches_go() {
        const BUCKETS: usize = 1 << 19;
        const SEARCHES: usize = 4_000_000;
        const LIMITS: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, BUDGET - 1];
        fn row<L: Layout>(beyond: usize) -> String {
            let Shape { encoding, slots, fingerprint_bits } = L::SHAPE;
            let (all, capacity) = (BUCKETS * slots as usize, sizing::capacity_of(L::SHAPE, BUCKETS));
            let items = capacity + (all - capacity) * beyond / 4;
            let table = Table::<L>::new(BUCKETS, 0).expect("a few megabytes");
            (0..items).for_each(|hash| table.insert(table.item(hash as u64)).expect("tables take more"));
            let mut longer = [0; LIMITS.len()];
            for hash in items..items + SEARCHES {
                let mut search = Search::<BUDGET>::new();
                search.run(L::new(), Buckets::new(BUCKETS), table.item(hash as u64), &|bucket| table.look(bucket));
                LIMITS.iter().zip(&mut longer).for_each(|(&limit, longer)| *longer += usize::from(search.len > limit));
            }
            format!(
                "{:10} {slots} by {fingerprint_bits:2} | {:5.2} % | {}",
                format!("{encoding:?}"),
                items as f64 / all as f64 * 100.0,
                longer.map(|longer| format!("{:7.1e}", longer as f64 / SEARCHES as f64)).join(" "),
            )
        }
        println!("layout          |    load | share of the searches longer than {LIMITS:?}");
        let rows = [
            row::<Plain<8, 8>>,
            row::<Plain<7, 9>>,
            row::<Plain<6, 10>>,
            row::<SemiSorted<6, 12>>,
            row::<Plain<5, 12>>,
            row::<SemiSorted<5, 14>>,
            row::<Plain<4, 16>>,
            row::<SemiSorted<4, 17>>,
            row::<Plain<3, 21>>,
            row::<SemiSorted<3, 22>>,
            row::<Plain<2, 32>>,
        ];
        std::thread::scope(|scope| {
            let rows = rows.map(|row| scope.spawn(move || [row(0), row(1)].join("\n")));
            rows.into_iter().for_each(|rows| println!("{}", rows.join().expect("no panic")));
        });
    }
}
