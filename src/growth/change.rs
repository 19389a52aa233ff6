//! CONCURRENT: changes of a growing table: inserts, removals and `clear`.
//!
//! An insert makes a first attempt, under one gate at most. If that sees a copy of its class, the insert counts them
//! under the stripe (`growth/mod.rs`, *How many copies a class may have*). If there is no room, it searches for a path
//! to a bucket with room, and carries it out. The last relocation adds the copy too, unless the insert has to count
//! copies. `growth/mod.rs`, *How much one insert does*, says when it grows the table.
//!
//! ```text
//! insert                                       counts its item; one insert in 32 first makes a check (limit.rs),
//!   │                                          which grows the table if it holds more than its capacity (resize.rs)
//!   ├─▶ add_first                              first attempt (slots.rs): one gate
//!   └─▶ insert_slow                            if it adds no copy, takes the count back
//!         └─▶ add_slow
//!               ├─▶ add_under_stripe           only if a copy was seen: counts the copies (slots.rs: add_counted)
//!               ├─▶ make_room ─▶ relocate      up to four times (room.rs), each with two further steps:
//!               │     ├─▶ grow_if_over_capacity  if there was no path and the table is at its capacity (resize.rs)
//!               │     └─▶ try_add              unless a relocation has added it. After a long search:
//!               │                              grow_if_quarter_full
//!               └─▶ add_alone                  the size stays, all stripes are locked: adds, fails, or splits one group
//! ```
//!
//! `insert_if_absent` looks for a copy first, and begins with `add_under_stripe`; the rest is the same, with
//! `IfPresent::Skip`.
//!
//! # Why a failed insert is right
//! *The limit*: `limit.rs` has the argument.
//!
//! *Too many copies*: the insert holds the class's stripe. So no copy is removed, and from its count until it unlocks
//! there are at least as many. The limit is that of a state that it reads after the count.
//!
//! *No room*: in the end the insert holds the lock by which the size changes, and those of all stripes. So the size stays, no
//! copy is removed, and no relocation is half done: others can only add. It searches once more. If there is no path, each
//! bucket that it saw was full and stays full, so this is a moment without room. If there is one, it is carried out,
//! and the copy is added unless another thread has taken the room. Each further turn is due to a copy that another
//! thread has added, and free slots run out. So contention alone never makes an insert fail.
//!
//! `insert_if_absent` asks after that search whether there is a copy by now, and fails only if there is none. Both buckets of
//! the class are full then, and stay so. So there is none at the moment without room either. (It must ask after the search.
//! Before, there may be room, which a copy of the same class then takes.) It never has too many copies: it needs none where
//! there is one.
//!
//! A failed insert has added nothing and removed nothing. The table may have grown meanwhile, by at most
//! [`GROUPS_PER_INSERT`] groups. It stays so: to merge them again would take as long, and others may have filled them.

use crate::error::insert::GrowableInsertError;
use crate::growth::growing_table::{GrowingTable, Placed, SplitError, SplitMemory};
use crate::growth::limit::Checked;
use crate::growth::resize::is_quarter_full;
use crate::growth::room::{Room, WORDS_PER_HOP};
use crate::growth::slots::FirstAttempt;
use crate::sync::sizes::{CLEARED_AT_ONCE, GROUPS_PER_INSERT, SEARCHES_WHILE_GROWING};
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::image::spare::Spare;
use crate::word::bucket::Bucket;
use crate::word::classes::Class;
use crate::word::layouts::BothLayouts;

/// What an insert has done while no other thread changes the size.
enum AloneOutcome {
    Done(Result<Attempt, GrowableInsertError>),
    /// It has split a group, and is to try again.
    Split,
    /// It needs more memory, and is to get some and to try again.
    Short,
}

impl GrowingTable {
    /// Adds a copy of the class of this hash, a further one if there are some, and counts it. Fails if the class has as
    /// many as it may have.
    #[inline(always)]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), GrowableInsertError> {
        self.insert_class(self.plan.classes.of(hash))
    }

    /// [`insert`](Self::insert) of a class. Takes one gate if it sees no copy and there is room. If it sees
    /// one, it counts the copies under the class's stripe.
    #[inline(always)]
    pub(super) fn insert_class(&self, class: Class) -> Result<(), GrowableInsertError> {
        if !self.counters().count_permitted_insert() {
            return self.insert_checked(class, IfPresent::Add).map(drop);
        }
        let placed = self.placed(class, self.state());
        match self.add_first(&placed) {
            FirstAttempt::Added => {}
            first => _ = self.insert_slow(class, IfPresent::Add, placed, first, GROUPS_PER_INSERT)?,
        }
        Ok(())
    }

    /// Adds a copy of the class of this hash unless there is one, and counts it. Returns whether it did. Takes the class's
    /// stripe if a lookup has found none.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, GrowableInsertError> {
        // Avoids the lock where a lookup is enough.
        if self.contains(hash) {
            return Ok(false);
        }
        let class = self.plan.classes.of(hash);
        let if_present = IfPresent::Skip;
        if !self.counters().count_permitted_insert() {
            return Ok(self.insert_checked(class, if_present)? == Attempt::Added);
        }
        match self.add_under_stripe(class, if_present) {
            Ok(Attempt::Added) => Ok(true),
            Ok(Attempt::Present) => {
                self.counters().add_len(-1);
                Ok(false)
            }
            _ => {
                let placed = self.placed(class, self.state());
                let attempt = self.insert_slow(class, if_present, placed, FirstAttempt::NoRoom, GROUPS_PER_INSERT)?;
                Ok(attempt == Attempt::Added)
            }
        }
    }

    /// An insert that needs a check before it begins (`limit.rs`). The result is as for `insert_slow`.
    #[cold]
    #[inline(never)]
    fn insert_checked(&self, class: Class, if_present: IfPresent) -> Result<Attempt, GrowableInsertError> {
        let mut groups = GROUPS_PER_INSERT;
        match self.check(class, if_present, &mut groups) {
            Ok(Checked::MayAdd) => {}
            Ok(Checked::Present) => return Ok(Attempt::Present),
            Err(error) => {
                self.counters().insert_failed();
                return Err(error);
            }
        }
        let placed = self.placed(class, self.state());
        let first = if if_present == IfPresent::Add { self.add_first(&placed) } else { FirstAttempt::MustCount };
        match first {
            FirstAttempt::Added => Ok(Attempt::Added),
            first => self.insert_slow(class, if_present, placed, first, groups),
        }
    }

    /// One attempt to add a copy, if there is room in either bucket, without counting it. If a copy is seen, or if the
    /// insert adds only to an absent class, it counts the copies under the class's stripe, and `if_present` decides.
    #[inline(always)]
    fn try_add(&self, class: Class, if_present: IfPresent) -> Result<Attempt, GrowableInsertError> {
        if if_present == IfPresent::Add {
            match self.add_first(&self.placed(class, self.state())) {
                FirstAttempt::Added => return Ok(Attempt::Added),
                FirstAttempt::NoRoom => return Ok(Attempt::NoRoom),
                FirstAttempt::MustCount => {}
            }
        }
        self.add_under_stripe(class, if_present)
    }

    /// [`add_counted`](Self::add_counted) under the class's stripe, which this locks. The caller holds no lock.
    fn add_under_stripe(&self, class: Class, if_present: IfPresent) -> Result<Attempt, GrowableInsertError> {
        let changing = self.lock_to_change(class.base, 1, None);
        self.add_counted(class, if_present, changing.spare())
    }

    /// An insert whose `first` attempt has added nothing. Its copy is counted already. It splits at most `groups` groups. The
    /// result is `Added` or, unless a further copy is to be added, `Present`. `placed` is where the class was in the first attempt.
    #[cold]
    #[inline(never)]
    fn insert_slow(
        &self,
        class: Class,
        if_present: IfPresent,
        placed: Placed,
        first: FirstAttempt,
        mut groups: usize,
    ) -> Result<Attempt, GrowableInsertError> {
        let result = self.add_slow(class, if_present, placed, first, &mut groups);
        if !matches!(result, Ok(Attempt::Added)) {
            self.counters().add_len(-1);
        }
        if result.is_err() {
            self.counters().insert_failed();
        }
        result
    }

    /// `insert_slow` without the count. It splits at most `groups` groups, and leaves there how many more it might have
    /// split.
    pub(super) fn add_slow(
        &self,
        class: Class,
        if_present: IfPresent,
        mut placed: Placed,
        first: FirstAttempt,
        groups: &mut usize,
    ) -> Result<Attempt, GrowableInsertError> {
        // The first attempt has seen no copy on either side. So a relocation may add the first one without the stripe, except
        // for inserts of which only one may add: these exclude each other by the stripe.
        let mut may_be_first = first == FirstAttempt::NoRoom && if_present == IfPresent::Add;
        if first == FirstAttempt::MustCount {
            // Copies are counted before the search: there is no need for room if there may be no further one.
            match self.add_under_stripe(class, if_present)? {
                Attempt::NoRoom => placed = self.placed(class, self.state()),
                done => return Ok(done),
            }
        }
        for _ in 0..SEARCHES_WHILE_GROWING {
            let searched =
                if may_be_first { self.make_room_and_add_first(&placed) } else { self.make_room(&placed, None) };
            let buckets = self.state().buckets();
            if searched.room == Room::None {
                self.grow_if_over_capacity(groups);
            }
            let attempt = match searched.room {
                Room::Added => Attempt::Added,
                Room::Try | Room::None => self.try_add(class, if_present)?,
            };
            if attempt != Attempt::NoRoom {
                if attempt == Attempt::Added && searched.is_long {
                    self.grow_if_quarter_full(groups);
                }
                return Ok(attempt);
            }
            (placed, may_be_first) = (self.placed(class, self.state()), false);
            // Another search would find nothing.
            if searched.room == Room::None && self.state().buckets() == buckets {
                break;
            }
        }
        let (mut memory, spare, mut words) = (SplitMemory::default(), Spare::default(), 4 * WORDS_PER_HOP);
        loop {
            self.running_saves().fill(&spare, words);
            match self.add_alone(class, if_present, groups, (&mut memory, &spare)) {
                AloneOutcome::Done(result) => return result,
                AloneOutcome::Split => {}
                AloneOutcome::Short => {
                    memory.fill(self);
                    // Until it is enough for all searches under the locks, of which the number is bounded.
                    words *= 2;
                }
            }
        }
    }

    /// The last resort of `add_slow`, while no other thread changes the size or removes a copy. It may split a group instead:
    /// before the search if the table is at its capacity, or after a search without a path if the table [`is_quarter_full`].
    ///
    /// The caller has got the memory before: for a split, and for what a search copies for saves.
    fn add_alone(
        &self,
        class: Class,
        if_present: IfPresent,
        groups: &mut usize,
        (memory, spare): (&mut SplitMemory, &Spare),
    ) -> AloneOutcome {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        // Without the insert's own copy.
        let (state, len) = (self.state(), self.len().saturating_sub(1));
        let capacity = self.plan.capacity(state);
        let mut split = || {
            let left = groups.checked_sub(1)?;
            let split = self.split_group(memory);
            if !matches!(split, Err(SplitError::Short)) {
                *groups = left;
            }
            Some(split)
        };
        // It may grow, and perhaps it is why this fails.
        let mut error = GrowableInsertError::Full { len, capacity };
        if len >= capacity {
            match split() {
                Some(Ok(())) => return AloneOutcome::Split,
                Some(Err(SplitError::Short)) => return AloneOutcome::Short,
                Some(Err(SplitError::Failed(why))) => error = why,
                None => {}
            }
        }
        let result = self.under_all_locks_with(spare, |all| {
            while self.has_spare(all) {
                let searched = self.make_room(&self.placed(class, self.state()), Some(all));
                // Last: the room that there was may have gone to a copy of this class.
                match self.add_counted(class, if_present, self.running_saves().spare_if_running(Some(spare))) {
                    Ok(Attempt::NoRoom) if searched.room == Room::None => return Some(Err(error)),
                    Ok(Attempt::NoRoom) => {}
                    done => return Some(done),
                }
            }
            None
        });
        let Some(result) = result else { return AloneOutcome::Short };
        if let Err(GrowableInsertError::Full { .. }) = result
            && is_quarter_full(len, capacity)
        {
            match split() {
                Some(Ok(())) => return AloneOutcome::Split,
                Some(Err(SplitError::Short)) => return AloneOutcome::Short,
                Some(Err(SplitError::Failed(why))) => return AloneOutcome::Done(Err(why)),
                None => {}
            }
        }
        AloneOutcome::Done(result)
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        // The processor starts no load before it has taken the lock, but it does start a prefetch.
        self.prefetch_class(self.state(), class);
        let changing = self.lock_to_change(class.base, 1, None);
        let copies = self.copies(class);
        let removed = (0..2)
            .any(|side| copies[side] > 0 && self.remove_from_side(&changing.guard, changing.spare(), class, side));
        self.counters().removal(removed)
    }

    /// Removes every copy that is there when it begins. The size stays.
    ///
    /// It takes the gates of many buckets at once. With a gate for each bucket, it would take three locked instructions for
    /// each word instead of one, and they take nearly all of the time.
    pub(crate) fn clear(&self) {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        // All locks, so that no relocation carries a copy past this loop.
        self.under_all_locks(|all| {
            self.stripes.iter().for_each(|stripe| stripe.locked_with_all(all).bump());
            let state = self.state();
            let (buckets, layouts, mut copies) = (state.buckets(), BothLayouts::of_rows(state.rows()), 0);
            for first in (0..buckets).step_by(CLEARED_AT_ONCE) {
                let _gates = self.all_gates();
                for number in first..buckets.min(first + CLEARED_AT_ONCE) {
                    let removed = self.store(number, Bucket::default());
                    copies += layouts.of(state.is_split(number as u32)).occupied(removed) as i64;
                }
            }
            self.counters().add_len(-copies);
        });
    }
}
