//! CONCURRENT: what a lookup asks where entries expire: rule 6 of `table/expiring/mod.rs`.

use crate::lookup::batch::BLOCK;
use crate::lookup::pairs::Pairs;
use crate::lookup::query::{Presence, Query};
use crate::table::expiring::clock::Clock;
use crate::word::bucket::Bucket;
use crate::word::layout::{Fingerprint, Layout};
use crate::word::ring::Reading;

/// Whether the key has a live entry, by this clock. One reading of it serves for all lookups of a block.
#[derive(Clone, Copy)]
pub(crate) struct LivePresence<'a>(pub(in crate::table) &'a Clock);

impl LivePresence<'_> {
    /// What is asked at this reading: the presence of the key with the expiry of a live entry. `None` if no entry is live.
    #[inline(always)]
    fn presence_at(self, reading: Reading) -> Option<Presence> {
        if reading.lag() == 0 {
            return Some(Presence::WITH_ANY);
        }
        self.0.ring.live(reading).map(|live| Presence { with: Some(live) })
    }

    /// Whether an answer counts that was given by this reading, even if it is *false*.
    #[inline(always)]
    fn is_still(self, reading: Reading) -> bool {
        // Without expired entries, the answer depends on no expiry.
        reading.lag() == 0 || self.0.is_still(reading)
    }
}

impl Query for LivePresence<'_> {
    type Answer = bool;
    type Reading = Reading;

    const ABSENT: bool = false;

    #[inline(always)]
    fn reading(self) -> Reading {
        self.0.reading()
    }

    #[inline(always)]
    fn answer(
        self,
        reading: Reading,
        layout: impl Layout,
        pair: [Bucket; 2],
        fingerprint: Fingerprint,
    ) -> Option<bool> {
        let presence = self.presence_at(reading);
        let found = presence.and_then(|presence| presence.answer((), layout, pair, fingerprint)).unwrap_or(false);
        (found || self.is_still(reading)).then_some(found)
    }

    #[inline(always)]
    fn answer_all<L: Layout>(
        self,
        reading: Reading,
        layout: L,
        pairs: &Pairs,
        fingerprints: &[u32; BLOCK],
        len: usize,
        answers: &mut [bool; BLOCK],
    ) -> bool {
        if let Some(presence) = self.presence_at(reading) {
            presence.answer_all((), layout, pairs, fingerprints, len, answers);
        } else {
            *answers = [false; BLOCK];
        }
        self.is_still(reading)
    }

    #[inline(always)]
    fn is_certain(found: &bool) -> bool {
        *found
    }
}
