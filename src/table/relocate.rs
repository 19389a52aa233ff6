//! CONCURRENT: how an insert makes room by relocations, and how it makes sure that there is none.

use crate::error::insert::InsertError;
use crate::plan::path::{self, Hop, Outcome};
use crate::table::stripe::{Guard, Stripe};
use crate::table::words::{Table, TakeFaults};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::BucketOps;
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::Layout;
use crate::word::values::Values;

/// How many searches an insert makes while others change the table. After that, it makes one that nobody disturbs.
///
/// Alone, an insert that finds a path needs one. More are needed where others have taken the room that it has made.
const SEARCHES: u32 = if cfg!(ccf_model) { 2 } else { 4 };

/// How many of these may be in vain. Alone, a refused insert needs as many.
const SEARCHES_IN_VAIN: u32 = 2;

/// What room is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Insert,
    /// In vain if the item is present by then.
    InsertIfAbsent,
}

/// What an insert has done so far to find room.
#[derive(Default)]
pub(super) struct Effort {
    searches: u32,
    /// Those that found no path.
    in_vain: u32,
    /// Of the last of those: its trace, and how many bumps there had been when it ended.
    last: Option<(u64, u64)>,
}

impl Effort {
    /// Whether others have disturbed the insert often enough that it is to shut them out.
    pub(super) fn is_enough(&self) -> bool {
        self.searches >= SEARCHES || self.in_vain >= SEARCHES_IN_VAIN
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Makes room in one of the item's two buckets, if others let it. Another insert may take that room before the caller does.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self, item: Item, purpose: Purpose, effort: &mut Effort) -> Result<(), InsertError> {
        while !effort.is_enough() {
            effort.searches += 1;
            let trace = match self.search(item, |hop| self.relocate(hop)) {
                Outcome::Planned => return Ok(()),
                Outcome::Nothing { trace } => trace,
            };
            let copies = self.copies_locked(item);
            if copies > 0 && purpose == Purpose::InsertIfAbsent && !fault::injected(Fault::FullThoughPresent) {
                // Another thread has added it meanwhile: no room is needed any more.
                return Ok(());
            }
            if copies == self.slots_of(item) {
                return Err(self.refusal(item, copies));
            }
            let bumps = self.settle();
            let certain = effort.last.is_some_and(|(last_trace, last_bumps)| {
                last_bumps == bumps
                    || last_trace == trace && self.buckets.count() > path::BUDGET
                    || fault::injected(Fault::FullIgnoresVersions)
            });
            if certain || fault::injected(Fault::FullWithoutConfirmation) {
                return Err(self.refusal(item, copies));
            }
            effort.in_vain += 1;
            effort.last = Some((trace, bumps));
        }
        Ok(())
    }

    /// [`insert_undisturbed`](Self::insert_undisturbed), for who need not know the payloads: whether it was added.
    #[cold]
    #[inline(never)]
    pub(super) fn is_inserted_undisturbed(&self, item: Item, purpose: Purpose) -> Result<bool, InsertError> {
        Ok(self.insert_undisturbed(item, purpose)?.is_none())
    }

    /// Adds a copy of the item while nobody else takes any out; for `InsertIfAbsent`, unless there is one of its class. Returns
    /// the payloads of those, or `None` if it was added.
    ///
    /// It holds the locks of all stripes, so other threads can only add copies. So each further turn of the loop is due to a
    /// copy that another thread has added, and the free slots run out.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_undisturbed(&self, item: Item, purpose: Purpose) -> Result<Option<Values>, InsertError> {
        self.with_all_locked(Fault::FullWithoutLocks, || {
            // Another thread has added it meanwhile: no room is needed any more.
            let suffice = |copies| purpose == Purpose::InsertIfAbsent && copies > 0;
            loop {
                if suffice(self.copies(item)) {
                    return Ok(Some(self.values_locked(item)));
                }
                self.bump_to_add(&self.stripe(item.sum).held(), Fault::AddValueWithoutBump);
                if self.put_in_either::<true>(item) {
                    return Ok(None);
                }
                let relocate = |hop: Hop| self.relocate_under(&self.stripe_of(hop).held(), hop);
                if let Outcome::Nothing { .. } = self.search(item, relocate) {
                    // Only now: what is full stays full, so this is a moment at which there is no room.
                    let copies = self.copies(item);
                    let present = suffice(copies).then(|| self.values_locked(item));
                    return if present.is_some() { Ok(present) } else { Err(self.refusal(item, copies)) };
                }
            }
        })
    }

    /// Searches for a path to room for the item, and has its hops carried out.
    fn search(&self, item: Item, relocate: impl Fn(Hop) -> bool) -> Outcome {
        let look = |bucket| self.look(bucket);
        let mut hops = 0;
        let outcome = path::make_room(self.layout, self.buckets, item, look, |hop| {
            let relocated = relocate(hop);
            hops += u64::from(relocated);
            relocated
        });
        if hops > 0 {
            self.counters.relocated(hops);
        }
        outcome
    }

    /// The error of an insert that found no room for the item, of which there are so many copies; counted.
    fn refusal(&self, item: Item, copies: usize) -> InsertError {
        self.counters.insert_refused();
        if copies == self.slots_of(item) {
            InsertError::too_many(copies)
        } else {
            InsertError::full(self.counters.len(), self.capacity)
        }
    }

    /// Waits until each relocation and removal that is under way has ended; returns how many bumps there have been.
    pub(crate) fn settle(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.lock(&self.counters).bumps()).fold(0, u64::wrapping_add)
    }

    /// Carries out one hop of a plan, if it still holds.
    pub(crate) fn relocate(&self, hop: Hop) -> bool {
        let guard = self.stripe_of(hop).lock_unless(Fault::RelocateWithoutLock, &self.counters);
        self.relocate_under(&guard, hop)
    }

    fn stripe_of(&self, hop: Hop) -> &Stripe {
        self.stripe(self.buckets.sum(self.layout.fingerprint_of(hop.entry)))
    }

    /// `relocate` under the lock of the entry's stripe.
    fn relocate_under(&self, guard: &Guard<'_>, Hop { entry, from, to }: Hop) -> bool {
        if !self.layout.holds_entry(self.look(from), entry) && !fault::injected(Fault::RelocateWithoutRecheck) {
            return false;
        }
        self.keep(from, Fault::RelocateKeepsNoSource);
        if !fault::injected(Fault::RelocateKeepsTargetLate) {
            self.keep(to, Fault::RelocateKeepsNoTarget);
        }
        if fault::injected(Fault::RelocateClearsFirst) {
            return self.bump_and_take(guard, from, self.look(from), entry, TakeFaults::RELOCATE)
                && self.put(to, entry);
        }
        self.bump_to_add(guard, Fault::RelocateAddsWithoutBump);
        // From here to the take there are two copies, and at no moment none.
        self.put(to, entry) && {
            if fault::injected(Fault::RelocateKeepsTargetLate) {
                self.keep(to, Fault::RelocateKeepsNoTarget);
            }
            self.bump_and_take(guard, from, self.look(from), entry, TakeFaults::RELOCATE);
            true
        }
    }
}
