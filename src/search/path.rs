//! PURE: the breadth-first search for the shortest path to a bucket with room. A table passes itself as a [`Graph`],
//! and a closure that carries out a hop. So what a search reads, and what a hop does, is in `table/relocate.rs` and
//! `growth/room.rs` (for a merge, in `growth/resize.rs`).
//!
//! If both buckets of an item are full, something must move. The paper (section 3.2, algorithm 1) evicts at random and
//! carries the victim on. MemC3 (section 4.3.1) and Li et al. (*Algorithmic Improvements*, section 4.3.2) first search
//! for a *cuckoo path* without moving anything, and then move its items from the far end back. Li et al. search breadth
//! first, so that the path is as short as it can be. The alternate bucket of an item follows from its fingerprint
//! alone, so the search needs only the buckets.
//!
//! Nearly all paths have one hop or two. So a search first looks for such a path, bucket by bucket and without a queue.
//!
//! Copies of a few keys lead back and forth among few buckets. In a table of at most [`BUDGET`] buckets, a queue has no
//! bucket twice. In a larger one, only that of the try with [`SMALL_BUDGET`] has none twice. So where fewer buckets can be
//! reached, that try examines these and the search ends.
//!
//! The search runs without locks over buckets that other threads change meanwhile. So the path that it finds may be stale: the
//! closure that carries out its hops checks each again.

use crate::word::bucket::Bucket;
use crate::word::layout::Entry;
use crate::word::layouts::MOST_SLOTS;

/// How many buckets a search examines before it gives up.
///
/// The lowest load at which an insert failed, in 60 tables of 65,536 buckets, was 88.2% (b = 2), 94.7, 97.2, 98.4, 98.9
/// (b = 6) and 99.5% (b = 8). With half of this budget it is 0.3 to 0.7 points lower, with twice as much 0.1 to 0.5
/// higher.
pub(crate) const BUDGET: usize = 2048;

/// The budget of the first try with a queue. Where fewer buckets can be reached, it examines each once, and shows that
/// there is no room.
///
/// A try begins by clearing its scratch space, 12 bytes for each bucket of the budget. For the full budget, that takes
/// longer than most searches. The buckets that one try has examined are in the cache when the next try starts over.
const SMALL_BUDGET: usize = 256;

/// A search computes the alternates of a further bucket if fewer than this many are queued.
const AHEAD: usize = 4;

/// One hop of a path: move `entry` from bucket `from` to bucket `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) entry: Entry,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is a path. Its hops were passed to the caller, up to the first that it did not carry out: so they are
    /// done, or the path has gone stale. (There may be none, if one of the two buckets has room by now.)
    PathFound,
    /// No bucket within the budget has room. `trace` is a digest of all buckets that the search examined: with equal
    /// traces, they were equal.
    Nothing { trace: u64 },
}

/// A table as a search sees it: its buckets, and where their entries may move.
pub(crate) trait Graph {
    fn len(&self) -> usize;

    fn load(&self, bucket: usize) -> Bucket;

    fn prefetch(&self, bucket: usize);

    fn has_room(&self, bucket: usize, word: Bucket) -> bool;

    /// Passes on the entries in a bucket, each with the other bucket that may hold it.
    fn hops(&self, bucket: usize, each: impl FnMut(Entry, usize));
}

/// Searches for room near these two buckets, which were full a moment ago. If there is some, passes the hops of the path to
/// `carry_out`, from the free end back, until that returns `false`.
pub(crate) fn search<G: Graph>(graph: &G, from: [usize; 2], carry_out: &mut dyn FnMut(Hop) -> bool) -> Outcome {
    try_two_hops(graph, from, carry_out)
        .or_else(|| try_within::<SMALL_BUDGET, G>(graph, from, carry_out))
        .or_else(|| try_within::<BUDGET, G>(graph, from, carry_out))
        .expect("the last try has an outcome")
}

/// Looks for a path of at most two hops. Nearly all searches find one, so this does without a queue. `None` if there is
/// none.
#[inline(always)]
fn try_two_hops<G: Graph>(graph: &G, from: [usize; 2], carry_out: &mut dyn FnMut(Hop) -> bool) -> Option<Outcome> {
    let mut near = [Hops::NONE; 2];
    for nth in 0..2 {
        near[nth].follow(graph, from[nth]);
        if let Some(hop) = near[nth].with_room(graph) {
            carry_out(hop);
            return Some(Outcome::PathFound);
        }
    }
    try_second_hop(graph, &near, carry_out)
}

/// Looks for a path of two hops, of which the first is one of these. `None` if there is none.
#[inline(never)]
fn try_second_hop<G: Graph>(graph: &G, near: &[Hops; 2], carry_out: &mut dyn FnMut(Hop) -> bool) -> Option<Outcome> {
    let mut further = Hops::NONE;
    // Where one of the two buckets leads to the other, the hops out of that are among the first.
    let leads_on = |hop: &Hop| near.iter().all(|hops| hops.from != hop.to);
    for first in near.iter().flat_map(Hops::iter).filter(leads_on) {
        further.follow(graph, first.to);
        if let Some(second) = further.with_room(graph) {
            let _ = carry_out(second) && carry_out(first);
            return Some(Outcome::PathFound);
        }
    }
    None
}

/// The hops that the entries of one bucket can make. (Two buckets that a table merges as it shrinks may have more entries
/// together than a bucket has slots. Then these are only some, and the tries with a queue follow all.)
struct Hops {
    from: usize,
    /// The entries, and the other bucket of each. The first `len` are there.
    to: [(Entry, u32); MOST_SLOTS],
    len: usize,
}

impl Hops {
    const NONE: Self = Self { from: 0, to: [(Entry(0), 0); MOST_SLOTS], len: 0 };

    /// Makes these the hops out of this bucket, and prefetches where they lead.
    #[inline(always)]
    fn follow<G: Graph>(&mut self, graph: &G, from: usize) {
        let mut len = 0;
        graph.hops(from, |entry, to| {
            graph.prefetch(to);
            self.to[len % MOST_SLOTS] = (entry, to as u32);
            len += 1;
        });
        (self.from, self.len) = (from, len.min(MOST_SLOTS));
    }

    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = Hop> {
        let hop = |&(entry, to): &(Entry, u32)| Hop { entry, from: self.from, to: to as usize };
        self.to[..self.len.min(MOST_SLOTS)].iter().map(hop)
    }

    /// The first that leads to a bucket with room.
    #[inline(always)]
    fn with_room<G: Graph>(&self, graph: &G) -> Option<Hop> {
        self.iter().find(|hop| graph.has_room(hop.to, graph.load(hop.to)))
    }
}

/// The outcome of a search with a budget of `N` buckets, or `None` if a larger budget may lead further.
#[inline(never)]
fn try_within<const N: usize, G: Graph>(
    graph: &G,
    from: [usize; 2],
    carry_out: &mut dyn FnMut(Hop) -> bool,
) -> Option<Outcome> {
    // The array is here, and not in `Search`: moving it would take up the stack twice.
    search_breadth_first(graph, from, &mut [Node::NONE; N], carry_out)
}

/// The same, with the queue of that search.
#[inline(never)]
fn search_breadth_first<G: Graph>(
    graph: &G,
    from: [usize; 2],
    nodes: &mut [Node],
    carry_out: &mut dyn FnMut(Hop) -> bool,
) -> Option<Outcome> {
    let mut search = Search::new(nodes, graph.len());
    if let Some(leaf) = search.run(graph, from) {
        search.carry_out_path(leaf, carry_out);
        return Some(Outcome::PathFound);
    }
    // If the search reached fewer buckets than the budget, these are all that can be reached.
    let is_final = search.len < search.nodes.len() || search.nodes.len() == BUDGET;
    is_final.then_some(Outcome::Nothing { trace: search.trace })
}

/// A bucket to examine, and the entry that moves into it from its parent's bucket if the path leads through it.
#[derive(Clone, Copy)]
struct Node {
    bucket: u32,
    entry: Entry,
    parent: u16,
}

/// The parent of the item's own two buckets.
const ROOT: u16 = u16::MAX;

impl Node {
    /// A value to be overwritten.
    const NONE: Self = Self { bucket: 0, entry: Entry(0), parent: 0 };
}

/// The queue of one search, which is also the tree of its paths. It is on the stack, because no operation
/// allocates.
struct Search<'a> {
    /// The nodes, as many as the budget. The first `len` are in the queue.
    nodes: &'a mut [Node],
    len: usize,
    /// Whether the table has at most `BUDGET` buckets.
    is_small: bool,
    /// A bit for the number of each bucket in the queue, modulo `BUDGET`. In a small table each bucket has its own, so the
    /// search is exact. In a larger one, two buckets of the queue rarely share one.
    ///
    /// In a larger table, the try with the whole budget does without them: there is more to search than the small budget by
    /// then. (A plan that meets a bucket twice is still safe.)
    seen: [u64; BUDGET / 64],
    trace: u64,
}

impl<'a> Search<'a> {
    fn new(nodes: &'a mut [Node], buckets: usize) -> Self {
        Self { nodes, len: 0, is_small: buckets <= BUDGET, seen: [0; BUDGET / 64], trace: 0 }
    }

    /// Returns the node of the nearest bucket with room. Nodes are examined in the order of the queue (`examined` have
    /// been), and the alternates of their entries join it in the same order (those of `expanded` have).
    ///
    /// A search mostly waits for memory: whether a bucket has room is unpredictable, so the processor cannot run far
    /// ahead. So buckets are prefetched when they join the queue, and examined some places later.
    fn run(&mut self, graph: &impl Graph, from: [usize; 2]) -> Option<usize> {
        for bucket in from {
            self.join(graph, bucket, Entry(0), ROOT);
        }
        let (mut expanded, mut examined) = (0, 0);
        loop {
            while expanded < examined && self.len < self.nodes.len() && self.len - examined < AHEAD {
                let from = self.nodes[expanded].bucket as usize;
                // `for_each`, of which more is inlined than of a loop.
                graph.hops(from, |entry, bucket| self.join(graph, bucket, entry, expanded as u16));
                expanded += 1;
            }
            if examined == self.len {
                return None;
            }
            if self.has_room(graph, self.nodes[examined].bucket as usize) {
                return Some(examined);
            }
            examined += 1;
        }
    }

    /// Puts a bucket in the queue, unless it was there before or the queue is full.
    #[inline]
    fn join(&mut self, graph: &impl Graph, bucket: usize, entry: Entry, parent: u16) {
        if self.len >= self.nodes.len() {
            return;
        }
        if self.is_small || self.nodes.len() == SMALL_BUDGET {
            let (word, bit) = (&mut self.seen[bucket / 64 % (BUDGET / 64)], 1 << (bucket % 64));
            if *word & bit != 0
                && (self.is_small || self.nodes[..self.len].iter().any(|node| node.bucket as usize == bucket))
            {
                return;
            }
            *word |= bit;
        }
        graph.prefetch(bucket);
        self.nodes[self.len] = Node { bucket: bucket as u32, entry, parent };
        self.len += 1;
    }

    /// Examines a bucket: returns whether it has room, and adds it to the trace.
    #[inline]
    fn has_room(&mut self, graph: &impl Graph, number: usize) -> bool {
        let bucket = graph.load(number);
        self.trace = (self.trace.rotate_left(5) ^ bucket.0).wrapping_mul(0x2545_f491_4f6c_dd1d);
        graph.has_room(number, bucket)
    }

    /// Passes the hops of the path to this leaf to `carry_out`, from the leaf back.
    fn carry_out_path(&self, leaf: usize, carry_out: &mut dyn FnMut(Hop) -> bool) {
        let mut to = self.nodes[leaf];
        while to.parent != ROOT {
            let from = self.nodes[usize::from(to.parent)];
            if !carry_out(Hop { entry: to.entry, from: from.bucket as usize, to: to.bucket as usize }) {
                return;
            }
            to = from;
        }
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
