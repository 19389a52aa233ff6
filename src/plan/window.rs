//! PURE: how a filter of recent keys divides its window into ticks.
//!
//! An entry is added in some tick, of which a part may be over, and lives for a number of whole ticks. So it lives at least
//! one tick less than that, and the window has that many ticks. The ring of an entry's payload says how many there can be.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::word::ring::Ring;
use crate::word::window::Window;

/// What the window is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Keys,
    /// In nanoseconds.
    Time,
}

/// A window of so many ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) unit: Unit,
    /// How many keys or nanoseconds a tick has; at least 1.
    pub(crate) per_tick: u64,
    /// How many ticks an entry lives: those of the window, and one more; from 2 to [`most_lifetime`](Self::most_lifetime).
    pub(crate) lifetime: u64,
}

/// How many bits the ring of such a filter has: as few as its tolerance allows. Each more makes twice as many ticks, and twice
/// as many sweeps.
pub(crate) const RING_BITS: RangeInclusive<u32> = 4..=8;

/// The most keys of a window. No table has room for more, and products of them would not fit in 64 bits.
const MOST_KEYS: u64 = u64::MAX / 4;

/// How many threads may insert at the same time into a filter of the last keys without an eviction.
const THREADS: u64 = 16;

impl Division {
    /// The shortest tick of a time, in nanoseconds. With it, a clock of 47 bits (`word/ring.rs`) lasts for four thousand
    /// years.
    pub(crate) const SHORTEST: u64 = 1_000_000;

    /// The longest lifetime on this ring. It leaves one more place than the protocol needs (`table/expiring/recent.rs`): where
    /// keys are counted, for a sweep that is late by a tick; and where the time is the clock, for entries that are added when
    /// the clock is late by a tick.
    pub(crate) fn most_lifetime(ring: Ring) -> u64 {
        ring.longest() - 1
    }

    /// The least share by which a window may be asked to be longer: that of one of its ticks, if it has as many as it can have.
    pub(crate) fn least_share() -> f64 {
        1.0 / (Self::most_lifetime(Ring::new(*RING_BITS.end())) - 1) as f64
    }

    /// The window of at least so many of the last keys that is longer by this share at most, on the shortest ring that has one.
    /// If none has, it is the one that is the least longer. (Of no keys, it is that of one.)
    pub(crate) fn of_keys(keys: u64, share: f64) -> (Self, Ring) {
        Self::of(Unit::Keys, keys.clamp(1, MOST_KEYS), share)
    }

    /// The same for the window of at least this time, which is not 0. It may also be longer by less than two of the shortest
    /// ticks.
    pub(crate) fn of_time(time: Duration, share: f64) -> (Self, Ring) {
        // A time of more than 500 years has ticks of 2 years or more.
        Self::of(Unit::Time, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), share)
    }

    fn of(unit: Unit, window: u64, share: f64) -> (Self, Ring) {
        let rings = || RING_BITS.map(Ring::new).map(|ring| (Self::on(ring, unit, window), ring));
        let most = share * window as f64;
        let within = rings().find(|(division, _)| division.beyond(window) as f64 <= most);
        let least = || rings().min_by_key(|(division, _)| division.beyond(window));
        within.or_else(least).expect("there are rings")
    }

    /// The division on this ring that is the least longer than this window.
    fn on(ring: Ring, unit: Unit, window: u64) -> Self {
        let divisions = Self::divisions(ring, unit, window);
        divisions.min_by_key(|division| division.beyond_exactly(window)).expect("a window has a tick")
    }

    /// The divisions of this window on this ring, one for each number of ticks.
    fn divisions(ring: Ring, unit: Unit, window: u64) -> impl Iterator<Item = Self> {
        let shortest = if unit == Unit::Time { Self::SHORTEST } else { 1 };
        let most = (Self::most_lifetime(ring) - 1).min(window / shortest).max(1);
        // Not always that of the most ticks: of 100 keys, 13 ticks of 8 have room for 11 more, and 10 ticks of 10 for 9.
        (1..=most).rev().map(move |ticks| {
            let per_tick = window.div_ceil(ticks).max(shortest);
            Self { unit, per_tick, lifetime: window.div_ceil(per_tick) + 1 }
        })
    }

    /// The window of at least so many of the last keys on this ring, in a table with this capacity: of those that it has room
    /// for, the one that is the least longer. If it has room for none, returns how many entries it would need.
    ///
    /// There is one if the table has room for a longer window: with as many ticks, this one needs less.
    pub(crate) fn of_keys_in(ring: Ring, keys: usize, capacity: usize) -> Result<Self, usize> {
        let window = (keys as u64).clamp(1, MOST_KEYS);
        let divisions = || Self::divisions(ring, Unit::Keys, window);
        let fitting = divisions().filter(|division| division.entries_for(keys) <= capacity);
        let least = || divisions().map(|division| division.entries_for(keys)).min().expect("a window has a tick");
        fitting.min_by_key(|division| division.beyond_exactly(window)).ok_or_else(least)
    }

    /// The window of at least this time, which is not 0, on this ring.
    pub(crate) fn of_time_on(ring: Ring, time: Duration) -> Self {
        Self::on(ring, Unit::Time, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// By how much the window is longer than this one, if that is more than ticks of a time may be.
    fn beyond(self, window: u64) -> u64 {
        let beyond = self.beyond_exactly(window);
        if self.unit == Unit::Time && beyond < 2 * Self::SHORTEST { 0 } else { beyond }
    }

    fn beyond_exactly(self, window: u64) -> u64 {
        self.most().saturating_sub(window)
    }

    /// How many keys or nanoseconds the window has at most. The last key of a tick ends it.
    fn most(self) -> u64 {
        self.per_tick.saturating_mul(self.lifetime) - u64::from(self.unit == Unit::Keys)
    }

    /// The longest lifetime that the clock admits.
    pub(crate) fn longest(self) -> u64 {
        match self.unit {
            Unit::Keys => self.lifetime,
            Unit::Time => self.lifetime + 1,
        }
    }

    pub(crate) fn window(self) -> Window {
        let (at_least, at_most) = (self.per_tick.saturating_mul(self.lifetime - 1), self.most());
        match self.unit {
            Unit::Keys => Window::Keys { at_least, at_most },
            Unit::Time => {
                let [at_least, at_most] = [at_least, at_most].map(Duration::from_nanos);
                Window::Time { at_least, at_most }
            }
        }
    }

    /// How much of this window is left for an entry that has so many ticks to live in another filter, whose window is of the
    /// same unit, when so much of that filter's present tick is over. `None` if the entry is not within this window.
    ///
    /// When the entry was added in its tick is not known: as late as can be, so that it is found for at least this window.
    pub(crate) fn left_of(self, other: Self, of_tick: u64, ticks: u64) -> Option<u64> {
        // From the end of the entry's tick until now. Of a present tick, the entry may be the last one.
        let now = u128::from(other.lifetime) * u128::from(other.per_tick) + u128::from(of_tick);
        let age = now.saturating_sub((u128::from(ticks) + 1) * u128::from(other.per_tick));
        let window = u128::from(self.lifetime - 1) * u128::from(self.per_tick);
        // No more than a window, which a table has or a time of 64 bits.
        Some(u64::try_from(window.saturating_sub(age)).unwrap_or(u64::MAX)).filter(|&left| left > 0)
    }

    /// In how many ticks so much of a window is over, when so much of the present tick is: at least 1.
    pub(crate) fn ticks_for(self, left: u64, of_tick: u64) -> u64 {
        left.saturating_add(of_tick).div_ceil(self.per_tick)
    }

    /// The division of the window of so many keys for which a filter with this one may leave room: another one where keys are
    /// counted, and this one where it goes by the time.
    pub(crate) fn with_room_for(self, ring: Ring, keys: usize) -> Self {
        match self.unit {
            Unit::Keys => Self::on(ring, Unit::Keys, (keys as u64).clamp(1, MOST_KEYS)),
            Unit::Time => self,
        }
    }

    /// For how many entries a table must have room, if so many keys come in the time of a window: those of an entry's
    /// lifetime, and those of the tick that has just ended and whose entries are being swept. Where keys are counted, each
    /// thread but one may count one key in a tick that is full.
    pub(crate) fn entries_for(self, keys: usize) -> usize {
        let ticks = (self.lifetime - 1) as usize;
        match self.unit {
            Unit::Keys => {
                let of_tick = self.per_tick.saturating_add(THREADS - 1);
                usize::try_from(of_tick.saturating_mul(self.lifetime + 1)).unwrap_or(usize::MAX)
            }
            Unit::Time => keys.saturating_add(keys.div_ceil(ticks).saturating_mul(2)),
        }
    }

    /// The most keys whose [`entries_for`](Self::entries_for), with as many ticks as this window has, are no more than this.
    pub(crate) fn keys_for(self, entries: usize) -> usize {
        let (ticks, of_tick) = (self.lifetime - 1, entries as u64 / (self.lifetime + 1));
        let keys = match self.unit {
            Unit::Keys => of_tick.saturating_sub(THREADS - 1) * ticks,
            Unit::Time => of_tick * ticks + (entries as u64 % (self.lifetime + 1)).saturating_sub(2),
        };
        usize::try_from(keys).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARES: [f64; 6] = [0.5, 0.08, 0.05, 0.02, 0.008, 0.004];

    /// The window has what was asked for, and no more beyond it than its share, on the shortest ring that can do that.
    fn is_as_asked(keys: u64, share: f64) {
        let what = format!("the last {keys}, and at most {share} more");
        // Any number of ticks will do.
        let beyond = |ring| {
            let per_ticks = (1..Division::most_lifetime(ring).min(keys + 1)).map(|ticks| keys.div_ceil(ticks));
            let beyond = per_ticks.map(|per_tick| per_tick * (keys.div_ceil(per_tick) + 1) - 1 - keys);
            beyond.min().expect("a window has a tick")
        };
        let shortest = RING_BITS.map(Ring::new).find(|&ring| beyond(ring) as f64 <= share * keys as f64);
        let (division @ Division { per_tick, lifetime, .. }, ring) = Division::of_keys(keys, share);
        let Window::Keys { at_least, at_most } = division.window() else { unreachable!() };
        assert!((2..=Division::most_lifetime(ring)).contains(&lifetime), "{what}: {division:?}");
        assert_eq!((at_least, at_most), ((lifetime - 1) * per_tick, lifetime * per_tick - 1));
        assert!(at_least >= keys && at_most - keys == beyond(ring), "{what}: {division:?}");
        assert_eq!(division.entries_for(0) as u64, (per_tick + THREADS - 1) * (lifetime + 1), "{what}");
        // From 0.008 on, there is always one.
        assert!(shortest.map_or(share < 0.008, |shortest| ring == shortest), "{what}: {division:?}");
        assert!((at_most - keys) as f64 <= share.max(0.008) * keys as f64, "{what}: {division:?}");
    }

    #[test]
    fn each_number_of_keys_has_a_window_within_its_share() {
        for keys in (1..6000).chain([16_593, 63_757, 100_001, 1_000_000, 10_000_019]) {
            SHARES.into_iter().for_each(|share| is_as_asked(keys, share));
        }
        // Short windows are exact, and long ones have as few ticks as their share allows.
        for (keys, share, per_tick, ticks, bits) in [
            (1, 0.08, 1, 1, 4),
            (13, 0.08, 1, 13, 4),
            (100, 0.08, 4, 25, 5),
            (1_000_000, 0.08, 76_924, 13, 4),
            (1_000_000, 0.02, 16_394, 61, 6),
            (1_000_000, 0.004, 4000, 250, 8),
            (100_001, 0.004, 415, 241, 8),
        ] {
            let (division, ring) = Division::of_keys(keys, share);
            assert_eq!((division.per_tick, division.lifetime - 1, ring.bits()), (per_tick, ticks, bits), "{keys}");
        }
    }

    proptest! {
        #[test]
        fn any_number_of_keys_has_a_window_within_its_share(keys in 1..1u64 << 40, share in 0..SHARES.len()) {
            is_as_asked(keys, SHARES[share]);
        }

        #[test]
        fn any_time_has_a_window_within_its_share(time in 1..1u64 << 40, share in 0..SHARES.len()) {
            let (time, share) = (Duration::from_nanos(time), SHARES[share]);
            let (division, ring) = Division::of_time(time, share);
            prop_assert!(division.per_tick >= Division::SHORTEST && division.longest() <= ring.longest());
            let Window::Time { at_least, at_most } = division.window() else { unreachable!() };
            prop_assert!(at_least >= time);
            let beyond = at_most - time;
            prop_assert!(beyond <= time.mul_f64(share) || beyond < Duration::from_millis(2), "{division:?}");
            prop_assert_eq!(at_most - at_least, Duration::from_nanos(division.per_tick));
        }
    }

    #[test]
    fn the_most_keys_for_so_many_entries_are_found() {
        for unit in [Unit::Keys, Unit::Time] {
            for lifetime in [2, 3, 14, 254] {
                for entries in (1..3000).chain([1 << 33, (1 << 33) + 13]) {
                    let division = |keys: usize| {
                        let per_tick = (keys as u64).div_ceil(lifetime - 1).max(1);
                        Division { unit, per_tick, lifetime }
                    };
                    let needed = |keys: usize| division(keys).entries_for(keys);
                    let most = division(1).keys_for(entries);
                    assert!(most == 0 || needed(most) <= entries, "{most} for {entries}, {unit:?} {lifetime}");
                    assert!(needed(most + 1) > entries, "{most} for {entries}, {unit:?} {lifetime}");
                }
            }
        }
    }

    #[test]
    fn windows_that_are_very_long_or_short_do_not_overflow() {
        for share in SHARES {
            for (division, ring) in [
                Division::of_keys(0, share),
                Division::of_keys(u64::MAX, share),
                Division::of_time(Duration::MAX, share),
                Division::of_time(Duration::from_nanos(1), share),
            ] {
                assert!((2..=Division::most_lifetime(ring)).contains(&division.lifetime), "{division:?}");
                let (window, entries) = (division.window(), division.entries_for(usize::MAX));
                assert!(entries > 0, "{window:?}");
            }
        }
    }
}
