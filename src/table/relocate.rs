//! CONCURRENT: how an insert makes room by relocations, and how it makes sure that there is none.

use crate::error::insert::InsertError;
use crate::plan::path::{self, Hop, Outcome};
use crate::table::words::{Table, TakeFaults};
use crate::verify::fault::{self, Fault};
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::Layout;

/// What room is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Insert,
    /// In vain if the item is present by then.
    InsertIfAbsent,
}

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Makes room in one of the item's two buckets, which another insert may take before the caller does.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self, item: Item, purpose: Purpose) -> Result<(), InsertError> {
        let mut last = None;
        loop {
            let look = |bucket| self.look(bucket);
            let mut hops = 0;
            let outcome = path::make_room(self.layout, self.buckets, item, look, |hop| {
                let relocated = self.relocate(hop);
                hops += u64::from(relocated);
                relocated
            });
            if hops > 0 {
                self.counters.relocated(hops);
            }
            let trace = match outcome {
                Outcome::Planned => return Ok(()),
                Outcome::Nothing { trace } => trace,
            };
            let copies = self.count(item);
            if copies > 0 && purpose == Purpose::InsertIfAbsent && !fault::injected(Fault::FullThoughPresent) {
                // Another thread has added it meanwhile: no room is needed any more.
                return Ok(());
            }
            if copies == self.slots_of(item) {
                self.counters.insert_refused();
                return Err(InsertError::too_many(copies));
            }
            let bumps = self.settle();
            let certain = last.is_some_and(|(last_trace, last_bumps)| {
                last_bumps == bumps
                    || last_trace == trace && self.buckets.count() > path::BUDGET
                    || fault::injected(Fault::FullIgnoresVersions)
            });
            if certain || fault::injected(Fault::FullWithoutConfirmation) {
                self.counters.insert_refused();
                return Err(InsertError::full(self.counters.len(), self.capacity));
            }
            last = Some((trace, bumps));
        }
    }

    /// Waits until each relocation and removal that is under way has ended; returns how many bumps there have been.
    pub(crate) fn settle(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.lock(&self.counters).bumps()).fold(0, u64::wrapping_add)
    }

    /// Carries out one hop of a plan, if it still holds.
    pub(crate) fn relocate(&self, Hop { fingerprint, from, to }: Hop) -> bool {
        let guard = self.stripe(self.buckets.sum(fingerprint)).lock_unless(Fault::RelocateWithoutLock, &self.counters);
        if !self.holds(from, fingerprint) && !fault::injected(Fault::RelocateWithoutRecheck) {
            return false;
        }
        self.keep(from, Fault::RelocateKeepsNoSource);
        if !fault::injected(Fault::RelocateKeepsTargetLate) {
            self.keep(to, Fault::RelocateKeepsNoTarget);
        }
        if fault::injected(Fault::RelocateClearsFirst) {
            return self.bump_and_take(&guard, from, self.look(from), fingerprint, TakeFaults::RELOCATE)
                && self.put(to, fingerprint);
        }
        // From here to the take there are two copies, and at no moment none.
        self.put(to, fingerprint) && {
            if fault::injected(Fault::RelocateKeepsTargetLate) {
                self.keep(to, Fault::RelocateKeepsNoTarget);
            }
            self.bump_and_take(&guard, from, self.look(from), fingerprint, TakeFaults::RELOCATE);
            true
        }
    }
}
