//! CONCURRENT: adding and taking a copy of one class in its two buckets: the steps of inserts and removals. Each holds
//! one gate for a few instructions, except `with_first_copy`, which is a part of a relocation. The other changes of words
//! are relocations (`room.rs`), splits and merges (`resize.rs`), `recover` (`growing_table.rs`) and `clear`
//! (`change.rs`).
//!
//! | step | room | copies | lock of the caller |
//! |---|---|---|---|
//! | `add_first` | in the emptier bucket | only the first | none |
//! | `with_first_copy` | the slot that a relocation frees | only the first | the gate |
//! | `add_counted` | in either bucket | as `IfPresent` says: up to the limit, or only the first | the class's stripe |
//! | `add`, `add_on` | in either bucket; on one side | the caller has counted them | the class's stripe |
//! | `remove_from_side` | | | the class's stripe |

use crate::error::insert::GrowableInsertError;
use crate::growth::growing_table::{GrowingTable, Placed, load, store};
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::image::spare::Spare;
use crate::table::stripe::Guard;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, Place, State, both};

/// What came of an attempt to add the first copy of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstAttempt {
    Added,
    /// Neither side held a copy, and the emptier bucket was full.
    NoRoom,
    /// There is a copy, or there may be one, so the caller has to count the copies under the stripe: the slots are compared without
    /// decoding them, a bucket may be moving, the table may have left the state in which the class was placed, or a save may
    /// be running. (Then the caller gets spare memory for the word, with the stripe.)
    MustCount,
}

impl GrowingTable {
    /// Adds the first copy of a class, to the emptier of its buckets. Leaves it to the caller to add to
    /// [`len`](Self::len).
    ///
    #[inline(always)]
    pub(super) fn add_first(&self, placed: &Placed) -> FirstAttempt {
        // This only determines where to try, and on which side there is surely no copy. Both words are loaded before either is
        // decoded, so the loads overlap.
        let &Placed { state, numbers, layouts, stored } = placed;
        if state.moves_any(numbers) {
            return FirstAttempt::MustCount;
        }
        let words = both(numbers, |number| self.load_if_there(number));
        let free = [layouts[0].free(words[0]), layouts[1].free(words[1])];
        let emptier = usize::from(free[1] > free[0]);
        let is_on = |side: usize| layouts[side].may_hold(words[side], stored[side]);
        if is_on(1 - emptier) {
            return FirstAttempt::MustCount;
        }
        if free[emptier] == 0 {
            return if is_on(emptier) { FirstAttempt::MustCount } else { FirstAttempt::NoRoom };
        }
        let (number, layout, stored) = (numbers[emptier], layouts[emptier], stored[emptier]);
        let Some(_gate) = self.enter_in(state, number) else { return FirstAttempt::MustCount };
        let word = self.word(number);
        let seen = load(word);
        if layout.may_hold(seen, stored) {
            return FirstAttempt::MustCount;
        }
        let Some(changed) = layout.add(seen, stored) else { return FirstAttempt::NoRoom };
        if self.running_saves().any() {
            return FirstAttempt::MustCount;
        }
        store(word, changed);
        FirstAttempt::Added
    }

    /// `left` with a copy of the class, if neither of the class's buckets holds one: as in
    /// [`add_first`](Self::add_first), the copies need not be counted. `left` is what the bucket of this number will
    /// hold instead of `seen`. The caller holds its gate, and has found under it that the table is in this state.
    ///
    /// `None` as well if that bucket is not one of the class's, if the class was placed in another state, or if the state
    /// has changed or a group is moving. In these last two cases, the word that was read of the other side may not be its
    /// contents.
    #[inline(always)]
    pub(super) fn with_first_copy(
        &self,
        placed: &Placed,
        state: State,
        number: usize,
        seen: Bucket,
        left: Bucket,
    ) -> Option<Bucket> {
        let &Placed { numbers, layouts, stored, .. } = placed;
        let (here, there) = (number % 2, 1 - number % 2);
        if placed.state != state || numbers[here] != number {
            return None;
        }
        let elsewhere = self.load_if_there(numbers[there]);
        let is_first =
            !layouts[here].may_hold(seen, stored[here]) && !layouts[there].may_hold(elsewhere, stored[there]);
        if is_first && self.state() == state && !state.is_moving() {
            layouts[here].add(left, stored[here])
        } else {
            None
        }
    }

    /// Adds a copy to the emptier of the class's buckets or, if that is full, to the other: a further one if there are
    /// some, for the caller holds the class's stripe, and has counted the copies. Returns whether there was room. Leaves it
    /// to the caller to add to [`len`](Self::len).
    #[inline(always)]
    pub(super) fn add(&self, class: Class, spare: Option<&Spare>) -> bool {
        let Placed { numbers, layouts, .. } = self.placed(class, self.state());
        let free = both([0, 1], |side| layouts[side].free(self.load_if_there(numbers[side])));
        let emptier = usize::from(free[1] > free[0]);
        [emptier, 1 - emptier].into_iter().any(|side| free[side] > 0 && self.add_on(class, side, spare))
    }

    /// Adds a copy on this side, a further one if there are some. Returns `false` if its bucket is full. Leaves it to the
    /// caller to add to [`len`](Self::len). The caller holds the class's stripe, with spare memory for a word.
    pub(crate) fn add_on(&self, class: Class, side: usize, spare: Option<&Spare>) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).add(seen, self.plan.classes.stored(class, depth)) else { return false };
        self.copy_for_saves(number, spare);
        self.store(number, changed);
        true
    }

    /// Adds a copy of the class as `if_present` says: unless there is one, or as a further one. It is an error if there are
    /// as many as the class may have. Leaves it to the caller to add to [`len`](Self::len). The caller holds the class's
    /// stripe, so this counts the copies exactly, and has spare memory for a word.
    pub(super) fn add_counted(
        &self,
        class: Class,
        if_present: IfPresent,
        spare: Option<&Spare>,
    ) -> Result<Attempt, GrowableInsertError> {
        let copies = self.copies(class).iter().sum();
        if if_present != IfPresent::Add && copies > 0 {
            return Ok(Attempt::Present);
        }
        let limit = self.most_copies(class, self.state());
        if copies >= limit {
            return Err(GrowableInsertError::TooManyCopies { copies, limit });
        }
        Ok(if self.add(class, spare) { Attempt::Added } else { Attempt::NoRoom })
    }

    /// How many copies a class may have in this state: half of the slots of its two buckets (`growth/mod.rs`).
    pub(super) fn most_copies(&self, class: Class, state: State) -> usize {
        class.sides.iter().map(|&side| self.layout(state.place(side).depth).slots()).sum::<usize>() / 2
    }

    /// Removes a copy of the class from this side. The lock is that of its stripe. `false` if there is none.
    pub(super) fn remove_from_side(&self, guard: &Guard<'_>, spare: Option<&Spare>, class: Class, side: usize) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).remove(seen, self.plan.classes.stored(class, depth)) else {
            return false;
        };
        self.copy_for_saves(number, spare);
        guard.bump();
        self.store(number, changed);
        true
    }
}
