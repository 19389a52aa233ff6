//! The statistics of a filter whose entries expire.

use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, ExpiryStats, Tick};

fn expiry(filter: &ExpiringCuckooFilter<u64>) -> ExpiryStats {
    filter.stats().expiry.expect("entries expire")
}

/// How many entries [`amid_a_sweep`] has for each of its four ends.
const EACH: u64 = 10_000;

/// A filter with more buckets than one call sweeps. A quarter of its entries each died at ticks 1, 2 and 3. Those
/// of tick 1 are swept.
pub(crate) fn amid_a_sweep() -> ExpiringCuckooFilter<u64> {
    let builder = ExpiringCuckooFilter::builder().capacity(4 * EACH as usize).false_positive_rate(0.02);
    let filter = builder.lifetime_in_ticks(9).build().unwrap();
    filter.advance_to(Tick::new(0));
    (0..4 * EACH).for_each(|key| _ = filter.insert_until(&key, Tick::new(1 + key % 4)).unwrap());
    (0..3).for_each(|_| _ = filter.advance_to(Tick::new(1)));
    assert_eq!((filter.len() as u64, expiry(&filter).oldest_unswept), (3 * EACH, None));
    filter.advance_to(Tick::new(3));
    filter
}

#[test]
fn what_expires_is_counted_when_it_is_taken_out() {
    let filter = amid_a_sweep();
    let stats = filter.stats();
    assert_eq!((stats.capacity, stats.slots), (filter.capacity(), filter.plan().slots));
    assert_eq!((expiry(&filter).sweeps, expiry(&filter).oldest_unswept), (1, Some(Tick::new(2))));
    assert!((EACH + 1..3 * EACH).contains(&expiry(&filter).expired), "{stats:?}");
    assert_eq!((stats.len as u64 + expiry(&filter).expired, filter.live_len() as u64), (4 * EACH, EACH));

    while expiry(&filter).oldest_unswept.is_some() {
        assert_eq!(filter.advance_to(Tick::new(3)), Advance::Current);
    }
    let stats = filter.stats();
    assert_eq!((stats.len as u64, expiry(&filter).expired, expiry(&filter).sweeps), (EACH, 3 * EACH, 2));
    assert_eq!((expiry(&filter).clock_steps_back, expiry(&filter).clock_jumps, stats.inserts_failed), (0, 0, 0));
    // An entry that was removed or cleared has not expired.
    assert!(filter.remove_expiring_at(&3, Tick::new(4)));
    filter.clear();
    assert_eq!((filter.stats().len, expiry(&filter).expired), (0, 3 * EACH));
}

#[test]
fn steps_back_and_jumps_of_the_clock_are_counted() {
    let filter = ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
    let counts = || (expiry(&filter).clock_steps_back, expiry(&filter).clock_jumps);
    for (tick, expected) in [
        (100, (0, 0)),
        (100, (0, 0)),
        (99, (1, 0)),
        (0, (2, 0)),
        // An entry may still live. One tick more, and all expire.
        (114, (2, 0)),
        (129, (2, 1)),
        (1 << 60, (2, 2)),
        (129, (3, 2)),
    ] {
        filter.advance_to(Tick::new(tick));
        assert_eq!(counts(), expected, "after {tick}");
    }
    // A new clock counts as neither.
    filter.restart_clock(Tick::new(3));
    filter.advance_to(Tick::new(4));
    assert_eq!(counts(), (3, 2));
}

#[test]
fn dead_entries_that_make_room_are_counted_too() {
    let filter = ExpiringCuckooFilter::<u64>::builder().capacity(0).lifetime_in_ticks(9).build().unwrap();
    let (mut inserted, mut refused) = (0, 0);
    for tick in 0..200 {
        filter.advance_to(Tick::new(tick));
        for nth in 0..5 {
            match filter.insert_until(&(10 * tick + nth), Tick::new(tick + 1 + nth)) {
                Ok(_) => inserted += 1,
                Err(_) => refused += 1,
            }
        }
        let stats = filter.stats();
        assert_eq!(
            (stats.len as u64 + expiry(&filter).expired, stats.inserts_failed),
            (inserted, refused),
            "at {tick}"
        );
    }
    assert!(refused > 0, "a table of the least size");
}
