//! CONCURRENT: how a growing table makes room, by a path of relocations: the search, and one relocation, under the
//! stripe of the class that moves and the gates of its two buckets. `growth/mod.rs` has the rules.
//!
//! The search runs without locks. It reads all buckets as those of one state, and places the class of each hop in that
//! state. If the table is in another one by the time of the relocation, that finds the buckets of the class again. So a split
//! or a merge in between does no harm: at worst there is no copy of that class on that side.
//!
//! A word that has got another layout meanwhile is read as entries that nobody has added. Each of them still gives a class
//! whose bits fit in a slot (`Classes::of_stored`). So the relocation finds a whole copy of that class or none. (If none of
//! these bits is 1, it takes an empty slot for a copy, and changes nothing.)

use core::cell::Cell;

use crate::growth::growing_table::{GrowingTable, Placed, load, store};
use crate::search::path::{self, Graph, Outcome};
use crate::table::image::spare::Spare;
use crate::table::stripe::{AllLocked, Guard};
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, State, both};
use crate::word::layout::Entry;
use crate::word::layouts::{BothLayouts, GrowingLayout};

/// A search that follows more entries than this to their other buckets, in all its tries, is long.
///
/// Among distinct keys, hardly any search is long until the table is fuller than its capacity: of tables that were
/// filled up to a capacity of 50,000 keys with a `load_while_growing` of 0.92, 7 of 3,000 had one (with a limit of 64
/// entries, 30 of 1,500); with 0.95, 135; and with 0.85, none. Where each key has several copies, long searches begin before there is no room: their entries lead to buckets that the search has
/// seen.
const LONG_SEARCH: usize = 76;

/// How many words a relocation changes: those of two buckets. An attempt to add changes no more.
pub(super) const WORDS_PER_HOP: u64 = 2;

/// A growing table in one state, as the graph that a search follows.
struct GrowingGraph<'a> {
    table: &'a GrowingTable,
    state: State,
    layouts: BothLayouts,
    /// How many entries the search has followed, in all its tries (`path::search`). It counts the slots of each bucket
    /// that it follows, since that was full.
    followed: Cell<usize>,
}

impl<'a> GrowingGraph<'a> {
    fn new(table: &'a GrowingTable, state: State) -> Self {
        Self { table, state, layouts: BothLayouts::of_rows(state.rows()), followed: Cell::new(0) }
    }

    #[inline(always)]
    fn layout(&self, number: usize) -> &'static GrowingLayout {
        self.layouts.of(self.state.is_split(number as u32))
    }
}

impl Graph for GrowingGraph<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.state.buckets()
    }

    /// What the bucket holds. If it counts as empty because it is missing, that does no harm: the relocation finds the bucket
    /// again.
    #[inline(always)]
    fn load(&self, number: usize) -> Bucket {
        self.table.load_in(self.state, number)
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        self.table.prefetch_bucket(number);
    }

    #[inline(always)]
    fn has_room(&self, number: usize, word: Bucket) -> bool {
        self.layout(number).has_room(word)
    }

    #[inline(always)]
    fn hops(&self, number: usize, mut each: impl FnMut(Entry, usize)) {
        let alternates = self.table.plan.classes.alternates(self.state, number);
        let layout = self.layout(number);
        self.followed.set(self.followed.get() + layout.slots());
        layout.for_each_entry(self.load(number), |entry| each(entry, alternates.of(entry.0)));
    }
}

/// What a relocation has done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relocation {
    /// Nothing: the copy is no longer there, or there is no room on the other side.
    Nothing,
    /// It has moved the copy, and its slot is free.
    Moved,
    /// It has moved the copy, and the slot has the first copy of the class for which room is made.
    MovedAndAdded,
}

/// What came of making room for a copy of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The last relocation has added the copy too.
    Added,
    /// There is room, unless other threads have taken it or have invalidated the path: so it is worth another attempt.
    Try,
    /// There is no path to room, as far as the search has looked.
    None,
}

/// A search for room that is over. (The queue of a search is `Search` in `search/path.rs`.)
pub(super) struct FinishedSearch {
    pub(super) room: Room,
    /// The search was long, so the table should grow.
    pub(super) is_long: bool,
}

impl GrowingTable {
    /// For each class both of whose buckets are full, prefetches the buckets that [`make_room`](Self::make_room) would examine
    /// first: those to which the entries of one of the two may move. Nearly every search ends there.
    #[inline(never)]
    pub(super) fn prefetch_alternates(&self, classes: &[Class]) {
        let state = self.state();
        let graph = GrowingGraph::new(self, state);
        for &class in classes {
            let [first, second] = both(class.sides, |side| state.place(side).number);
            if !graph.has_room(first, graph.load(first)) && !graph.has_room(second, graph.load(second)) {
                graph.hops(first, |_, to| graph.prefetch(to));
            }
        }
    }

    /// Makes room in a bucket of either side of the class: searches for a path to room, and carries it out, from its free
    /// end back.
    ///
    /// It locks the stripe of each class that it moves, so the caller holds either none or `all` of them.
    pub(super) fn make_room(&self, placed: &Placed, all: Option<&AllLocked<'_>>) -> FinishedSearch {
        self.search(placed, None, all)
    }

    /// [`make_room`](Self::make_room), whose last relocation also adds the first copy of the class, to the slot that becomes
    /// free ([`relocate`](Self::relocate)). It adds none if the class has a copy by then. The caller holds no stripe.
    pub(super) fn make_room_and_add_first(&self, placed: &Placed) -> FinishedSearch {
        self.search(placed, Some(placed), None)
    }

    /// Makes room for a class, with `to_add` as the class whose first copy the last relocation adds. (Earlier relocations get
    /// that class too. Hardly ever does one free a slot of its buckets; the path then ends there.)
    fn search(&self, placed: &Placed, to_add: Option<&Placed>, all: Option<&AllLocked<'_>>) -> FinishedSearch {
        let state = placed.state;
        let graph = GrowingGraph::new(self, state);
        let (mut hops, mut last) = (0, Relocation::Nothing);
        let outcome = path::search(&graph, placed.numbers, &mut |hop| {
            if all.is_some_and(|all| !self.has_spare(all)) {
                return false;
            }
            let changing = self.lock_to_change(self.plan.classes.base(hop.entry.0), WORDS_PER_HOP, all);
            last = self.relocate(&changing.guard, changing.spare(), self.placed_by(hop, state), hop.from % 2, to_add);
            hops += u64::from(last != Relocation::Nothing);
            last == Relocation::Moved
        });
        if hops > 0 {
            self.counters().relocated(hops);
        }
        let room = match outcome {
            Outcome::PathFound if last == Relocation::MovedAndAdded => Room::Added,
            Outcome::PathFound => Room::Try,
            Outcome::Nothing { .. } => Room::None,
        };
        FinishedSearch { room, is_long: graph.followed.get() > LONG_SEARCH }
    }

    /// Whether a thread that holds the locks of all stripes has spare memory for a relocation, and for the words of an attempt
    /// to add after it.
    pub(super) fn has_spare(&self, all: &AllLocked<'_>) -> bool {
        all.spare.is_none_or(|spare| self.running_saves().has_enough(spare, 2 * WORDS_PER_HOP))
    }

    /// Moves a copy of a class from this side to the other, if there is one and there is room. The lock is that of its
    /// stripe. The caller has placed the class in some state, which need not be the present one.
    ///
    /// The store that removes the copy also adds the first copy of the class `to_add`, if that has none
    /// ([`with_first_copy`](Self::with_first_copy)). It needs no stripe for that, and leaves it to the caller to count that
    /// copy.
    pub(crate) fn relocate(
        &self,
        guard: &Guard<'_>,
        spare: Option<&Spare>,
        placed: Placed,
        side: usize,
        to_add: Option<&Placed>,
    ) -> Relocation {
        let (_gates, Placed { state, numbers, layouts, stored, .. }) = self.enter_both(placed);
        let words = both(numbers, |number| self.word(number));
        let (from, to) = (side, 1 - side);
        let seen = load(words[from]);
        let Some(left) = layouts[from].remove(seen, stored[from]) else { return Relocation::Nothing };
        let Some(added) = layouts[to].add(load(words[to]), stored[to]) else { return Relocation::Nothing };
        let with_first_copy = to_add.and_then(|class| self.with_first_copy(class, state, numbers[from], seen, left));
        self.copy_for_saves(numbers[to], spare);
        self.copy_for_saves(numbers[from], spare);
        store(words[to], added);
        // From here to the next store there are two copies. At no moment is there none.
        guard.bump();
        store(words[from], with_first_copy.unwrap_or(left));
        if with_first_copy.is_some() { Relocation::MovedAndAdded } else { Relocation::Moved }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
