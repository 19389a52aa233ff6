//! Clocks that go back, jump, and begin anew.

use concurrent_cuckoo_filter::Advance;

use crate::filters::{Filter, exact};

fn filter() -> Filter {
    exact(3, 100).build().unwrap()
}

#[test]
fn an_advance_tells_what_it_has_led_to() {
    let filter = filter();
    assert_eq!(filter.now(), None);
    let counts = || (filter.stats().clock_steps_back, filter.stats().clock_jumps);
    assert_eq!(filter.advance_to(100), Advance::Origin);
    assert_eq!(filter.advance_to(100), Advance::Current);
    assert_eq!(filter.advance_to(101), Advance::Forward { ticks: 1 });
    assert_eq!((filter.advance_to(103), counts()), (Advance::Forward { ticks: 2 }, (0, 0)));
    assert_eq!((filter.advance_to(106), counts()), (Advance::Forward { ticks: 3 }, (0, 1)), "all has expired");
    assert_eq!((filter.advance_to(1_000_000), counts()), (Advance::Forward { ticks: 999_894 }, (0, 2)));
    for by in [1, 2, 1_000_000] {
        assert_eq!(filter.advance_to(1_000_000 - by), Advance::Behind { by });
    }
    assert_eq!((filter.advance_to(1_000_000), counts()), (Advance::Current, (3, 2)));
    assert_eq!(filter.advance_to(u64::MAX), Advance::Forward { ticks: u64::MAX - 1 - 1_000_000 });
    assert_eq!(filter.advance_to(u64::MAX), Advance::Current);
    assert_eq!(filter.now(), Some(u64::MAX - 1));
}

/// For example a filter that was saved at a late tick and runs from 0 after loading, or a filter that got one wrong
/// tick.
#[test]
fn a_new_clock_lets_keys_expire_again() {
    for wrong in [1000, u64::MAX, u64::MAX - 1] {
        let filter = filter();
        filter.advance_to(10);
        filter.advance_to(wrong);
        filter.insert(&1).unwrap();
        // Without a new clock, nothing ever expires.
        for tick in 11..500 {
            assert!(matches!(filter.advance_to(tick), Advance::Behind { .. }));
            assert!(filter.contains(&1));
        }
        assert_eq!(filter.stats().clock_steps_back, 489);
        let generation = filter.generation();
        filter.restart_clock(500);
        assert_eq!((filter.generation(), filter.advance_to(500)), (generation, Advance::Current));
        assert_eq!(filter.advance_to(499), Advance::Behind { by: 1 });
        // The key lives at least as long as it would have, and at most one period longer.
        filter.advance_to(502);
        assert!(filter.contains(&1));
        filter.advance_to(503);
        assert!(!filter.contains(&1) && filter.is_empty());
    }
}

/// The periods of the new clock end at other times than those of the old one. To forget no key too soon, begin the
/// new clock one tick ahead.
#[test]
fn a_new_clock_a_tick_ahead_lets_no_key_live_shorter() {
    let filter = filter();
    filter.advance_to(100);
    filter.insert(&1).unwrap();
    filter.restart_clock(8); // it shows 7, and is about to show 8
    assert_eq!(filter.advance_to(7), Advance::Behind { by: 1 });
    for tick in [8, 9, 10] {
        filter.advance_to(tick);
        assert!(filter.contains(&1), "two whole periods at least, at {tick}");
    }
    filter.advance_to(11);
    assert!(!filter.contains(&1));
}

#[test]
fn a_clock_may_begin_at_the_end_of_all_ticks() {
    let filter = filter();
    filter.restart_clock(u64::MAX);
    assert_eq!(filter.advance_to(u64::MAX), Advance::Current);
    filter.restart_clock(0);
    assert_eq!(filter.advance_to(1), Advance::Forward { ticks: 1 });
}
