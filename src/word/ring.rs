//! PURE: the expiries of entries, encoded in a few bits, and what they mean at a reading of the clock.
//!
//! A filter counts time in *ticks*. The payload of an entry is its *expiry*, the tick at which it expires, modulo `2^e`: a
//! place on a ring of `2^e` ticks. An entry is *live* while its expiry is after `now`. A place on the ring means one
//! certain tick as long as all expiries in the table lie within `2^e` ticks in a row. These are the ticks after `swept`:
//! every entry with an expiry up to `swept` has been removed, and the filter accepts no expiry beyond `swept + 2^e`.
//!
//! ```text
//!         swept                 now                        swept + 2^e
//!   ───────|────────────────────|───────────────────────────|──────────
//!   none   | expired, to sweep  | live                      | rejected
//! ```

use core::hint::select_unpredictable;

use crate::word::payloads::Payloads;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// The last place: as many bits as an expiry has, all of them 1.
    last: u64,
}

pub(crate) const MOST_RING_BITS: u32 = 16;

/// The bits of a [`Reading`] that hold the lag.
const LAG_BITS: u32 = MOST_RING_BITS + 1;

/// `now`, and how far `swept` lags behind it, in one word: all that a lookup needs to distinguish live entries from
/// expired ones.
///
/// The ticks are the filter's own: the caller's less an offset (`table/expiring/clock.rs`). All bits are 0 while no
/// tick is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading(pub(crate) u64);

/// The filter's own ticks start again below this one.
pub(crate) const LAST_TICK: u64 = u64::MAX >> LAG_BITS;

impl Reading {
    pub(crate) const UNKNOWN: Self = Self(0);

    /// The lag is capped at the length of the ring: nothing is live then, whatever the lag is.
    pub(crate) fn new(ring: Ring, now: u64, lag: u64) -> Self {
        debug_assert!((1..=LAST_TICK).contains(&now));
        Self(now << LAG_BITS | lag.min(ring.len()))
    }

    #[inline(always)]
    pub(crate) fn is_known(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        self.0 >> LAG_BITS
    }

    #[inline(always)]
    pub(crate) fn lag(self) -> u64 {
        self.0 & ((1 << LAG_BITS) - 1)
    }
}

impl Ring {
    pub(crate) fn new(bits: u32) -> Self {
        debug_assert!((1..=MOST_RING_BITS).contains(&bits));
        Self { last: (1 << bits) - 1 }
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn of_bits(bits: u32) -> Option<Self> {
        (1..=MOST_RING_BITS).contains(&bits).then(|| Self::new(bits))
    }

    /// The shortest ring for lifetimes of this many ticks; `None` if none is long enough.
    ///
    /// At every moment there may be that many different expiries of live entries. There may also be entries that expire
    /// now and were not swept yet.
    pub(crate) fn for_lifetime(ticks: u64) -> Option<Self> {
        (1..=MOST_RING_BITS).map(Self::new).find(|ring| ring.longest() >= ticks)
    }

    pub(crate) fn bits(self) -> u32 {
        self.last.count_ones()
    }

    #[inline(always)]
    pub(crate) fn len(self) -> u64 {
        self.last + 1
    }

    pub(crate) fn longest(self) -> u64 {
        self.last
    }

    #[inline(always)]
    pub(crate) fn place(self, tick: u64) -> u16 {
        (tick & self.last) as u16
    }

    #[inline(always)]
    pub(crate) fn is_live(self, reading: Reading, place: u16) -> bool {
        // How many ticks after the next one it expires. Live entries are the first on the ring.
        let further = u64::from(place).wrapping_sub(reading.now() + 1) & self.last;
        further + reading.lag() <= self.last
    }

    /// The places of the expiries of live entries. `None` if there are none.
    pub(crate) fn live(self, reading: Reading) -> Option<Payloads> {
        let most = self.last.checked_sub(reading.lag())?;
        Some(Payloads { first: self.place(reading.now() + 1), most: most as u16 })
    }

    /// How many ticks after `now` a live entry expires, if its expiry has this place.
    #[inline(always)]
    pub(crate) fn ticks_until(self, reading: Reading, place: u16) -> u64 {
        (u64::from(place).wrapping_sub(reading.now() + 1) & self.last) + 1
    }

    /// How many ticks after `now` an entry expires whose expiry has this place; 0 if it has expired.
    #[inline(always)]
    pub(crate) fn ticks_left(self, reading: Reading, place: u16) -> u64 {
        let ticks = self.ticks_until(reading, place);
        select_unpredictable(self.is_live(reading, place), ticks, 0)
    }

    /// Whether the filter may accept an entry that expires at `expiry`, which is after `now`.
    #[inline(always)]
    pub(crate) fn has_room_for(self, reading: Reading, expiry: u64) -> bool {
        expiry - reading.now() + reading.lag() <= self.len()
    }
}

/// A number of places in a row on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arc {
    ring: Ring,
    first: u16,
    len: u64,
}

impl Arc {
    /// The places of the expired at a reading: of the ticks after `swept`, up to `now`.
    pub(crate) fn of_expired(ring: Ring, reading: Reading) -> Self {
        Self::up_to(ring, reading.now(), reading.lag())
    }

    /// The places of the expiries that entries can have at a reading, if the live ones expire at most `longest` ticks after now:
    /// those of the ticks after `swept`, up to that one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn of_entries(ring: Ring, reading: Reading, longest: u64) -> Self {
        // The whole ring, if the sweep lags so much that there is no place for the latest expiries yet.
        Self::up_to(ring, reading.now() + longest, (reading.lag() + longest).min(ring.len()))
    }

    /// The places of the last `len` ticks up to this one.
    pub(crate) fn up_to(ring: Ring, tick: u64, len: u64) -> Self {
        Self { ring, first: ring.place(tick.wrapping_sub(len).wrapping_add(1)), len }
    }

    /// The place, if there is exactly one.
    #[inline(always)]
    pub(crate) fn only(self) -> Option<u16> {
        (self.len == 1).then_some(self.first)
    }

    #[inline(always)]
    pub(crate) fn contains(self, place: u16) -> bool {
        u64::from(place.wrapping_sub(self.first)) & self.ring.last < self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_ring_that_is_long_enough_is_taken() {
        for (ticks, bits) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (15, 4), (16, 5), (63, 6), (251, 8), (65_535, 16)]
        {
            assert_eq!(Ring::for_lifetime(ticks).map(Ring::bits), Some(bits), "{ticks} ticks");
        }
        assert_eq!(Ring::for_lifetime(65_536), None);
    }

    #[test]
    fn a_reading_holds_every_tick_and_lag() {
        let ring = Ring::new(MOST_RING_BITS);
        let last = Reading::new(ring, LAST_TICK, ring.len());
        assert_eq!((last.now(), last.lag()), (LAST_TICK, ring.len()));
    }

    proptest! {
        /// The places agree with the ticks.
        #[test]
        fn places_stand_for_the_ticks_after_swept(bits in 1..=16u32, swept in 0..1u64 << 40, lag in 0..1u64 << 17, expiry in any::<u64>()) {
            let ring = Ring::new(bits);
            let now = swept + lag.min(ring.len()) + 1;
            let reading = Reading::new(ring, now, now - swept);
            prop_assert_eq!((reading.now(), reading.lag()), (now, (now - swept).min(ring.len())));
            let swept = now - reading.lag();
            let expiry = swept + 1 + expiry % ring.len();
            prop_assert_eq!(ring.is_live(reading, ring.place(expiry)), expiry > now);
            prop_assert_eq!(ring.live(reading).is_some_and(|live| {
                u64::from(ring.place(expiry).wrapping_sub(live.first)) & ring.last <= live.most.into()
            }), expiry > now);
            if expiry > now {
                prop_assert_eq!(ring.ticks_until(reading, ring.place(expiry)), expiry - now);
            }
            prop_assert_eq!(ring.ticks_left(reading, ring.place(expiry)), expiry.saturating_sub(now));
            prop_assert_eq!(Arc::of_expired(ring, reading).contains(ring.place(expiry)), expiry <= now);
            #[cfg(feature = "snapshot")]
            for longest in [1, ring.longest() / 2, ring.longest()] {
                prop_assert_eq!(Arc::of_entries(ring, reading, longest).contains(ring.place(expiry)), expiry <= now + longest);
            }
            for expiry in [expiry, expiry + ring.len()] {
                if expiry > now {
                    prop_assert_eq!(ring.has_room_for(reading, expiry), expiry <= swept + ring.len());
                }
            }
        }
    }
}
