//! Clocks that no filter has, and other errors in a snapshot of a filter whose entries expire.

use std::time::Duration;

use concurrent_cuckoo_filter::{ExpiringInsertError, Tick};

use crate::filters::{Expiring, load, saved};
use crate::forged::{Forged, ForgedClock, refused};

fn loaded(clock: &ForgedClock) -> Expiring {
    let forged = Forged::of_expiring(clock).bytes();
    let filter = load::<Expiring>(&forged).expect("nothing is wrong with this one");
    assert_eq!(saved(&filter), forged);
    filter
}

#[test]
fn a_clock_that_no_filter_has_is_refused() {
    let (known, unknown) = (ForgedClock::known, ForgedClock::unknown);
    loaded(&known());
    loaded(&unknown());
    loaded(&ForgedClock::forgetful());
    loaded(&ForgedClock { flags: 2, ahead: Some(0), ..unknown() });
    let wrong = [
        // Ends of no bits, or of too many.
        ForgedClock { expiry_bits: 0, longest: 0, ..unknown() },
        ForgedClock { expiry_bits: 0, ..unknown() },
        ForgedClock { expiry_bits: 17, ..unknown() },
        ForgedClock { expiry_bits: 255, ..unknown() },
        // Lifetimes of no tick, and lifetimes for which the ends have too few bits.
        ForgedClock { longest: 0, ..known() },
        ForgedClock { longest: 16, ..known() },
        ForgedClock { longest: u32::MAX, ..known() },
        // More nanoseconds than a second has.
        ForgedClock { resolution: (0, 1_000_000_000), ..known() },
        ForgedClock { resolution: (u64::MAX, u32::MAX), ..known() },
        // Places that the ring does not have, and more ticks to sweep than it has.
        ForgedClock { place: 16, ..known() },
        ForgedClock { place: u16::MAX, ..known() },
        ForgedClock { lag: 17, ..known() },
        ForgedClock { lag: u32::MAX, ..known() },
        // The clock is at no tick, but the snapshot has one.
        ForgedClock { now: 1, ..unknown() },
        ForgedClock { place: 1, ..unknown() },
        ForgedClock { lag: 1, ..unknown() },
        ForgedClock { flags: 2, ahead: Some(1), ..unknown() },
        // As many ticks ended early as an entry lives, or more.
        ForgedClock { ahead: Some(15), ..ForgedClock::forgetful() },
        ForgedClock { ahead: Some(u16::MAX), ..ForgedClock::forgetful() },
    ];
    for clock in &wrong {
        let ForgedClock { expiry_bits, longest, resolution: (_, nanoseconds), place, lag, ahead, .. } = clock;
        let ahead = ahead.unwrap_or(0);
        let shown = format!(
            "InvalidClock {{ expiry_bits: {expiry_bits}, longest: {longest}, nanoseconds: {nanoseconds}, place: {place}, lag: {lag}, ahead: {ahead} }}"
        );
        let words = [
            format!("expiries of {expiry_bits} bits"),
            format!("a lifetime of {longest} ticks"),
            format!("{nanoseconds} nanoseconds"),
            format!("the place {place}"),
            format!("a lag of {lag} ticks"),
            format!("{ahead} evicted ticks"),
        ];
        refused(&Forged::of_expiring(clock), &shown, &words.each_ref().map(String::as_str));
    }
    for flags in [4, 7, 255] {
        let forged = Forged::of_expiring(&ForgedClock { flags, ..known() });
        refused(&forged, &format!("UnknownFlags {{ flags: {flags} }}"), &[&format!("{flags:#04x}")]);
    }
}

#[test]
fn the_extremes_of_what_a_clock_may_state_are_taken() {
    let clock = || ForgedClock { resolution: (u64::MAX, 999_999_999), place: 15, lag: 16, ..ForgedClock::known() };
    let filter = loaded(&ForgedClock { now: u64::MAX, ..clock() });
    assert_eq!((filter.now(), filter.plan().lifetime_in_ticks.unwrap()), (Some(Tick::new(u64::MAX)), 15));
    assert_eq!(filter.plan().resolution, Some(Duration::new(u64::MAX, 999_999_999)));
    assert_eq!(filter.insert_until(&1, Duration::from_secs(1)), Ok(true));
    assert_eq!(filter.expires_at(&1), Some(Tick::new(u64::MAX)));
    for longest in [1, 15] {
        let filter = loaded(&ForgedClock { longest, now: 0, ..clock() });
        filter.insert_until(&1, Tick::new(u64::from(longest))).expect("it sweeps first");
        assert!(matches!(
            filter.insert_until(&1, Tick::new(1 + u64::from(longest))),
            Err(ExpiringInsertError::LifetimeTooLong { .. })
        ));
        filter.advance_to(Tick::new(u64::from(longest) - 1));
        assert!(filter.contains(&1));
        filter.advance_to(Tick::new(longest.into()));
        assert!(!filter.contains(&1));
    }
    for (expiry_bits, longest, layout) in [(1, 1, [1, 5, 13]), (16, 65_535, [0, 2, 16])] {
        let clock = ForgedClock { expiry_bits, longest, resolution: (0, 0), ..ForgedClock::unknown() };
        let forged = Forged { layout, ..Forged::of_expiring(&clock) };
        let filter = load::<Expiring>(&forged.bytes()).expect("nothing is wrong with this one");
        assert_eq!(
            (filter.plan().layout.payload_bits, filter.plan().lifetime_in_ticks.unwrap()),
            (expiry_bits.into(), longest.into())
        );
        assert_eq!((filter.plan().resolution, filter.now()), (None, None));
    }
}

/// Without a tick nothing expires: such entries would be found, and would outlive the first tick.
#[test]
fn entries_without_a_clock_are_refused() {
    let forgets = ForgedClock { flags: 2, ahead: Some(0), ..ForgedClock::unknown() };
    for clock in [ForgedClock::unknown(), forgets] {
        let entries = Forged { words: vec![1 << 40; 2], count: 2, ..Forged::of_expiring(&clock) };
        refused(&entries, "EntriesWithoutClock { entries: 2 }", &["2 entries", "clock was not set"]);
    }
    let entries = Forged { words: vec![1 << 40; 2], count: 2, ..Forged::of_expiring(&ForgedClock::known()) };
    assert_eq!(load::<Expiring>(&entries.bytes()).expect("with a clock, it may have them").len(), 2);
}

/// As the page `security` says: for up to as many ticks as the ring has, and for those that were ended early besides.
#[test]
fn a_forged_entry_may_live_for_longer_than_the_lifetime_but_not_for_ever() {
    let (known, forgetful) = (ForgedClock::known(), ForgedClock::forgetful());
    for (clock, longest) in [(ForgedClock { lag: 0, ..known }, 16), (ForgedClock { lag: 0, ..forgetful }, 16 + 14)] {
        let lives_for = |end: u64| {
            let entry = Forged { words: vec![1 << 40 | end << 46, 0], count: 1, ..Forged::of_expiring(&clock) };
            let filter = load::<Expiring>(&entry.bytes()).expect("a snapshot may state it");
            let ticks = (0..).find(|ticks| {
                filter.advance_to(Tick::new(clock.now + ticks));
                filter.live_len() == 0
            });
            ticks.expect("it ends some time")
        };
        assert_eq!((0..16).map(lives_for).max(), Some(longest), "{} ticks by the snapshot", clock.longest);
    }
}
