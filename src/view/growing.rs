//! PURE: lookups in the words of a growing table, at the size that it had.

use core::hint::select_unpredictable;

use crate::view::words::{Lookups, Words};
use crate::word::classes::{Classes, State};
use crate::word::geometry::mixed;
use crate::word::layout::Encoding;
use crate::word::layouts::Layouts;

/// A table without its words.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Debug)]
pub struct Growing {
    classes: Classes,
    state: State,
    layouts: Layouts,
}

impl Growing {
    /// A table of this many buckets, or `None` if there is no memory for a decode table.
    pub(super) fn new(classes: Classes, encoding: Option<Encoding>, buckets: usize) -> Option<Self> {
        let state = State::of_buckets(buckets);
        Some(Self { classes, state, layouts: Layouts::new(classes, encoding, state.level())? })
    }
}

impl Lookups for Growing {
    fn prefetch(&self, words: Words<'_>, hash: u64) {
        let class = self.classes.of(mixed(hash));
        class.sides.iter().for_each(|&side| words.prefetch(self.state.place(side).number));
    }

    fn contains(&self, words: Words<'_>, hash: u64) -> bool {
        let (class, level) = (self.classes.of(mixed(hash)), self.state.level());
        let places = class.sides.map(|side| self.state.place(side));
        let stored = self.classes.stored_at(class, self.state, places);
        let [whole, split] = [level, level + 1].map(|depth| self.layouts.at(depth));
        let of = |side: usize| {
            // Without a branch on random bits.
            let layout = select_unpredictable(places[side].depth != level, &split, &whole);
            layout.matches(words.get(places[side].number), stored[side])
        };
        of(0) | of(1) != 0
    }
}
