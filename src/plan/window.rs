//! PURE: how a filter of recent keys divides its window into ticks.
//!
//! An entry is added in some tick, of which a part may be over, and lives for a number of whole ticks. So it lives at least
//! one tick less than that, and the window has that many ticks. The ring of an entry's payload says how many there can be.

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

    /// The window of at least so many of the last keys. (Of none, it is that of one.)
    pub(crate) fn of_keys(keys: u64, ring: Ring) -> Self {
        Self::of(Unit::Keys, keys, 1, ring)
    }

    /// The window of at least this time, which is not 0.
    pub(crate) fn of_time(time: Duration, ring: Ring) -> Self {
        // A time of more than 500 years has ticks of 40 years or more.
        Self::of(Unit::Time, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Self::SHORTEST, ring)
    }

    fn of(unit: Unit, window: u64, shortest: u64, ring: Ring) -> Self {
        let per_tick = window.div_ceil(Self::most_lifetime(ring) - 1).max(shortest);
        Self { unit, per_tick, lifetime: window.div_ceil(per_tick).max(1) + 1 }
    }

    /// The longest lifetime that the clock admits.
    pub(crate) fn longest(self) -> u64 {
        match self.unit {
            Unit::Keys => self.lifetime,
            Unit::Time => self.lifetime + 1,
        }
    }

    pub(crate) fn window(self) -> Window {
        let Self { per_tick, lifetime, .. } = self;
        match self.unit {
            // The last key of a tick ends it.
            Unit::Keys => Window::Keys {
                at_least: per_tick.saturating_mul(lifetime - 1),
                at_most: per_tick.saturating_mul(lifetime) - 1,
            },
            Unit::Time => {
                let time = |ticks: u64| Duration::from_nanos(per_tick.saturating_mul(ticks));
                Window::Time { at_least: time(lifetime - 1), at_most: time(lifetime) }
            }
        }
    }

    /// For how many entries a table must have room, if so many keys come in the time of a window: those of an entry's
    /// lifetime, and those of the tick that has just ended and whose entries are being swept.
    pub(crate) fn entries_for(self, keys: usize) -> usize {
        let ticks = (self.lifetime - 1) as usize;
        match self.unit {
            Unit::Keys => usize::try_from(self.per_tick.saturating_mul(self.lifetime + 1)).unwrap_or(usize::MAX),
            Unit::Time => keys.saturating_add(keys.div_ceil(ticks).saturating_mul(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_has_what_was_asked_for_and_at_most_a_tick_more(keys in 1..1u64 << 40, bits in 4..=8u32) {
            let ring = Ring::new(bits);
            let division @ Division { per_tick, lifetime, .. } = Division::of_keys(keys, ring);
            prop_assert!((2..=Division::most_lifetime(ring)).contains(&lifetime));
            prop_assert!((lifetime - 1) * per_tick >= keys && (lifetime - 2) * per_tick < keys);
            let Window::Keys { at_least, at_most } = division.window() else { unreachable!() };
            prop_assert!((at_least, at_most) == ((lifetime - 1) * per_tick, lifetime * per_tick - 1));
            prop_assert!(division.entries_for(0) as u64 > at_most);

            let time = Duration::from_nanos(keys);
            let division = Division::of_time(time, ring);
            prop_assert!(division.longest() <= ring.longest());
            let Window::Time { at_least, at_most } = division.window() else { unreachable!() };
            prop_assert!(at_least >= time && at_least < time + Duration::from_nanos(division.per_tick));
            prop_assert_eq!(at_most - at_least, Duration::from_nanos(division.per_tick));
        }
    }

    #[test]
    fn windows_that_are_very_long_or_short_do_not_overflow() {
        for bits in 4..=8 {
            let ring = Ring::new(bits);
            for division in [
                Division::of_keys(0, ring),
                Division::of_keys(u64::MAX, ring),
                Division::of_time(Duration::MAX, ring),
                Division::of_time(Duration::from_nanos(1), ring),
            ] {
                assert!((2..=Division::most_lifetime(ring)).contains(&division.lifetime), "{division:?}");
                let (window, entries) = (division.window(), division.entries_for(usize::MAX));
                assert!(entries > 0, "{window:?}");
            }
        }
    }
}
