//! CONCURRENT: how a growing table makes room: by a path of relocations. A path is a plan: each hop names a class and a
//! side, and finds its bucket under the stripe and the gates. So a split or a merge in between does no harm.

use core::cell::Cell;
use core::hint::select_unpredictable;

use crate::growth::growing_table::{GrowingTable, load};
use crate::machine::arch::prefetch_line;
use crate::plan::path::{self, Graph, Hop, Outcome};
use crate::sync::sizes::GROUP;
use crate::table::stripe::Guard;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, State, both};
use crate::word::layout::Entry;
use crate::word::layouts::DynLayout;

/// A search that follows more entries than this to their other buckets, in all its tries, is long.
///
/// Among distinct keys, no search is long until the table is fuller than its capacity. Where each key has several copies,
/// long searches begin before there is no room: their entries lead to buckets that the search has seen.
const LONG_SEARCH: usize = 80;

/// A growing table in one state, as the graph that a search follows.
struct GrowingGraph<'a> {
    table: &'a GrowingTable,
    state: State,
    /// The layouts of buckets that are not split, and of buckets that are.
    layouts: [DynLayout<'a>; 2],
    /// How many entries the search has followed, in all its tries.
    followed: Cell<usize>,
}

impl<'a> GrowingGraph<'a> {
    fn new(table: &'a GrowingTable, state: State) -> Self {
        Self {
            table,
            state,
            layouts: [table.layout(state.level()), table.layout(state.level() + 1)],
            followed: Cell::new(0),
        }
    }

    #[inline(always)]
    fn layout(&self, number: usize) -> &DynLayout<'a> {
        let [whole, split] = &self.layouts;
        select_unpredictable(self.state.depth(number) != self.state.level(), split, whole)
    }
}

impl Graph for GrowingGraph<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.state.buckets()
    }

    #[inline(always)]
    fn load(&self, number: usize) -> Bucket {
        if self.state.is_moving() {
            let at = number.wrapping_sub(self.state.split() as usize);
            if at < GROUP {
                return load(&self.table.moving()[at]);
            }
        }
        self.table.words.get(number as u32).map_or(Bucket::default(), load)
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        if let Some(word) = self.table.words.get(number as u32) {
            prefetch_line(word);
        }
    }

    #[inline(always)]
    fn has_room(&self, number: usize, word: Bucket) -> bool {
        self.layout(number).has_room(word)
    }

    #[inline(always)]
    fn hops(&self, number: usize, word: Bucket) -> impl Iterator<Item = (Entry, usize)> {
        let (classes, depth, state) = (self.table.plan.classes, self.state.depth(number), self.state);
        self.layout(number).entries(word).map(move |entry| {
            self.followed.set(self.followed.get() + 1);
            (entry, state.place(classes.other_side(number, depth, entry.0)).number)
        })
    }
}

impl GrowingTable {
    /// Searches for a path to room in a bucket of either side, and carries it out. Also returns whether the search was long.
    pub(super) fn search(&self, sides: [u32; 2], relocate: &dyn Fn(Class, usize) -> bool) -> (Outcome, bool) {
        let state = self.state();
        let graph = GrowingGraph::new(self, state);
        let mut hops = 0;
        let outcome =
            path::search(&graph, both(sides, |side| state.place(side).number), &mut |Hop { entry, from, .. }| {
                let class = self.plan.classes.of_stored(from, state.depth(from), entry.0);
                let relocated = relocate(class, from % 2);
                hops += u64::from(relocated);
                relocated
            });
        if hops > 0 {
            self.counters().relocated(hops);
        }
        (outcome, graph.followed.get() > LONG_SEARCH)
    }

    /// Moves a copy of the class from this side to the other, if there is one and there is room. The guard is that of its
    /// stripe.
    pub(crate) fn relocate(&self, guard: &Guard<'_>, class: Class, side: usize) -> bool {
        if !self.is_on(class, side) {
            return false;
        }
        // From here to the take there are two copies. At no moment is there none.
        let is_added = self.add_on(class, 1 - side);
        if is_added {
            self.take_on(guard, class, side);
        }
        is_added
    }
}
