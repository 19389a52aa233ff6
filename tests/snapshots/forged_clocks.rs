//! Clocks that no filter has, and other errors in a snapshot of a filter whose entries expire.

use std::time::Duration;

use concurrent_cuckoo_filter::{ExpiringInsertError, Tick, WhenFull};

use crate::filters::{Expiring, expiring_builder, load, saved};
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
    loaded(&ForgedClock::evicting());
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
        ForgedClock { ahead: Some(15), ..ForgedClock::evicting() },
        ForgedClock { ahead: Some(u16::MAX), ..ForgedClock::evicting() },
    ];
    for clock in &wrong {
        let ForgedClock { expiry_bits, longest, resolution: (_, nanoseconds), place, lag, ahead, .. } = clock;
        let ahead = ahead.unwrap_or(0);
        let shown = format!(
            "Damaged(InvalidClock {{ expiry_bits: {expiry_bits}, longest: {longest}, nanoseconds: {nanoseconds}, place: {place}, lag: {lag}, ahead: {ahead} }}"
        );
        // What is 0 is left out where other types have no such number.
        let if_any = |number: u32, text: String| if number == 0 { String::new() } else { text };
        let words = [
            format!("expiries of {expiry_bits} bits"),
            format!("a lifetime of {longest} ticks"),
            if_any(*nanoseconds, format!("{nanoseconds} nanoseconds")),
            format!("the place {place}"),
            format!("a lag of {lag} ticks"),
            if_any(ahead.into(), format!("{ahead} evicted ticks")),
        ];
        refused(&Forged::of_expiring(clock), &shown, &words.each_ref().map(String::as_str));
    }
    for flags in [4, 7, 255] {
        let forged = Forged::of_expiring(&ForgedClock { flags, ..known() });
        refused(&forged, &format!("Unsupported(Flags {{ flags: {flags} }}"), &[&format!("{flags:#04x}")]);
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
    let evicts = ForgedClock { flags: 2, ahead: Some(0), ..ForgedClock::unknown() };
    for clock in [ForgedClock::unknown(), evicts] {
        let entries = Forged { words: vec![1 << 40; 2], count: 2, ..Forged::of_expiring(&clock) };
        refused(&entries, "Damaged(EntriesWithoutClock { entries: 2 }", &["2 entries", "clock was never set"]);
    }
    let entries = Forged { words: vec![1 << 40; 2], count: 2, ..Forged::of_expiring(&ForgedClock::known()) };
    assert_eq!(load::<Expiring>(&entries.bytes()).expect("with a clock, it may have them").len(), 2);
}

/// Each end that a filter cannot have, by its place on the ring: of the live ones, those that come later than the longest
/// lifetime after now. The ticks after now that were evicted count: these entries would live through them.
#[test]
fn an_entry_that_would_outlive_the_longest_lifetime_is_refused() {
    let (known, evicting) = (ForgedClock::known, ForgedClock::evicting);
    for clock in [
        ForgedClock { lag: 0, ..known() },
        known(),
        ForgedClock { lag: 16, ..known() },
        ForgedClock { lag: 0, longest: 9, ..known() },
        ForgedClock { longest: 1, ..known() },
        ForgedClock { lag: 0, ..evicting() },
        ForgedClock { lag: 0, ahead: Some(3), ..evicting() },
        ForgedClock { ahead: Some(3), place: 15, ..evicting() },
    ] {
        let ForgedClock { longest, place, lag, ahead, now, .. } = clock;
        let (longest, ahead) = (u64::from(longest), u64::from(ahead.unwrap_or(0)));
        let refused_ends = (0..16).filter(|&end: &u64| {
            let entry = Forged { words: vec![0, 1 << 40 | end << 46], count: 1, ..Forged::of_expiring(&clock) };
            let ticks = (end + 16 - u64::from(place) - 1) % 16 + 1;
            let is_live = ticks + u64::from(lag) <= 16;
            if is_live && ticks + ahead > longest {
                let shown =
                    format!("Damaged(LifetimeTooLong {{ bucket: 1, ticks: {}, limit: {longest} }}", ticks + ahead);
                let words = ["bucket 1".to_owned(), format!("{} more ticks", ticks + ahead), format!("is {longest}")];
                refused(&entry, &shown, &words.each_ref().map(String::as_str));
                return true;
            }
            let filter = load::<Expiring>(&entry.bytes()).expect("a filter can have such an entry");
            let lived = (0..).find(|ticks| {
                filter.advance_to(Tick::new(now + ticks));
                filter.live_len() == 0
            });
            assert_eq!(lived, Some(if is_live { ticks + ahead } else { 0 }));
            false
        });
        // Those that the ring has beyond the dead ones, the evicted ones and the lifetime.
        assert_eq!(refused_ends.count() as u64, 16 - (u64::from(lag) + longest - ahead).min(16));
    }
}

/// A filter that evicts, whose snapshot says that it has evicted more ticks than it has: the entries that expire last
/// would live longer than any entry can. When they expired, the sweep would count more evicted entries than there are.
#[test]
fn a_wrong_number_of_evicted_ticks_is_refused() {
    let filter = expiring_builder().capacity(1000).lifetime_in_ticks(14).when_full(WhenFull::EvictSoonest);
    let filter = filter.build().unwrap();
    filter.advance_to(Tick::new(1000));
    (0..700).for_each(|key| filter.insert_until(&key, Tick::new(1001 + key % 14)).map(drop).unwrap());
    let genuine = Forged::of(&saved(&filter));
    let with_evicted = |ticks: u16| {
        let mut forged = genuine.clone();
        forged.head[32..].copy_from_slice(&ticks.to_le_bytes());
        forged
    };
    load::<Expiring>(&with_evicted(0).bytes()).expect("it is as it was");
    for ticks in 1..14 {
        refused(&with_evicted(ticks), "Damaged(LifetimeTooLong", &["the longest lifetime is 14"]);
    }
    // Where no entry expires last, the number is possible, and the figures stay right while everything expires.
    (0..700).filter(|key| key % 14 >= 11).for_each(|key| {
        assert!(filter.remove_expiring_at(&key, Tick::new(1001 + key % 14)));
    });
    let mut forged = Forged::of(&saved(&filter));
    forged.head[32..].copy_from_slice(&3u16.to_le_bytes());
    let forged = load::<Expiring>(&forged.bytes()).expect("no entry outlives the lifetime");
    (1001..1030).for_each(|now| _ = forged.advance_to(Tick::new(now)));
    let expiry = forged.stats().expiry.expect("entries expire");
    assert_eq!((forged.len(), expiry.expired + expiry.evicted), (0, 550));
}
