use std::time::{Duration, UNIX_EPOCH};

use concurrent_cuckoo_filter::{ExpiringBuilder, ExpiringCuckooFilter, ExpiringInsertError, Expiry, Tick};

use crate::filter;
use crate::support::seeded;

const MINUTE: Duration = Duration::from_secs(60);

fn builder() -> ExpiringBuilder<u64> {
    ExpiringCuckooFilter::<u64>::builder().capacity(1000)
}

#[test]
fn the_fewest_bits_that_serve_are_taken() {
    for (resolutions, bits) in
        [(1, 2), (2, 2), (3, 3), (6, 3), (14, 4), (15, 5), (62, 6), (250, 8), (254, 8), (65_534, 16)]
    {
        let filter = builder()
            .lifetime(resolutions * MINUTE)
            .resolution(MINUTE)
            .false_positive_rate(0.2)
            .build()
            .expect("valid");
        assert_eq!(
            (filter.plan().layout.payload_bits, filter.plan().lifetime_in_ticks.unwrap()),
            (bits, u64::from(resolutions) + 1)
        );
        assert_eq!(filter.plan().resolution, Some(MINUTE));
    }
    // A part of a resolution counts as a whole one.
    let filter = builder().lifetime(14 * MINUTE + Duration::from_nanos(1)).resolution(MINUTE).build().expect("valid");
    assert_eq!((filter.plan().layout.payload_bits, filter.plan().lifetime_in_ticks.unwrap()), (5, 16));
    for resolution in [Duration::from_nanos(1), MINUTE, Duration::MAX] {
        let filter = builder().lifetime(resolution).resolution(resolution).build().expect("valid");
        assert_eq!(filter.plan().lifetime_in_ticks.unwrap(), 2);
    }
    let twice = builder().lifetime(14 * MINUTE).lifetime_in_ticks(3).build().expect("the later call counts");
    assert_eq!((twice.plan().lifetime_in_ticks.unwrap(), twice.plan().resolution), (3, None));
    for (ticks, bits) in [(1, 1), (15, 4), (16, 5), (65_535, 16)] {
        let filter = builder().lifetime_in_ticks(ticks).false_positive_rate(0.2).build().expect("valid");
        assert_eq!(
            (filter.plan().layout.payload_bits, filter.plan().lifetime_in_ticks.unwrap(), filter.plan().resolution),
            (bits, ticks, None)
        );
    }
}

#[test]
fn the_resolution_is_a_setting_of_its_own() {
    for lifetime in [Duration::from_nanos(1), 14 * MINUTE, 60 * MINUTE, 365 * 24 * 60 * MINUTE, Duration::MAX] {
        let plan = builder().lifetime(lifetime).plan().expect("valid");
        assert_eq!((plan.layout.payload_bits <= 4, plan.lifetime_in_ticks <= Some(15)), (true, true), "{plan}");
        assert!(plan.resolution.unwrap() >= lifetime / 14, "a fourteenth: {plan}");
    }
    let order = |builder: ExpiringBuilder<u64>| builder.plan().expect("valid");
    let (one, other) = (builder().lifetime(60 * MINUTE).resolution(MINUTE), builder().resolution(MINUTE));
    assert_eq!(order(one), order(other.lifetime(60 * MINUTE)));

    // A filter with a lifetime in ticks then knows how long they are.
    let filter = builder().lifetime_in_ticks(10).resolution(MINUTE).build().expect("valid");
    assert_eq!(filter.plan().lifetime_in_ticks, Some(10));
    filter.advance_to(filter.tick_at(UNIX_EPOCH + 100 * MINUTE).expect("after 1970"));
    assert_eq!(filter.insert_until(&1, UNIX_EPOCH + 105 * MINUTE), Ok(true));
    assert_eq!(filter.expires_at(&1), Some(Tick::new(105)));
    let zero = builder().lifetime_in_ticks(10).resolution(Duration::ZERO).build().unwrap_err();
    assert!(zero.to_string().contains("resolution of 0"), "{zero}");
}

#[test]
fn what_cannot_be_inserted_says_why() {
    let by_ticks = filter(100, 15, 0.001);
    assert_eq!(
        (by_ticks.now(), by_ticks.contains(&1), by_ticks.remove_expiring_at(&1, Tick::new(5))),
        (None, false, false)
    );
    let early = by_ticks.insert_until(&1, Tick::new(5)).expect_err("no tick is known");
    assert!(early.to_string().contains("call advance_to"), "{early}");
    assert_eq!(by_ticks.insert_if_absent_until(&1, Tick::new(5)), Err(ExpiringInsertError::ClockNotSet));
    assert_eq!(by_ticks.insert_or_renew_until(&1, Tick::new(5)), Err(ExpiringInsertError::ClockNotSet));
    by_ticks.advance_to(Tick::new(100));
    let unknown = by_ticks.insert_until(&1, Expiry::After(MINUTE)).expect_err("the length of a tick is not known");
    assert!(unknown.to_string().contains("lifetime_in_ticks"), "{unknown}");
    for far in [116, 130, 131, u64::MAX] {
        let too_long = by_ticks.insert_until(&1, Tick::new(far)).expect_err("it would live too long");
        // So far that the clock is probably wrong, it comes first.
        let named = match far {
            ..=130 => format!("expires at tick {far} would live for {} ticks, because the clock", far - 100),
            _ => format!("the clock of the ExpiringCuckooFilter shows tick 100, which is {} ticks before", far - 100),
        };
        // The filter's clock may stand still, while the caller's has advanced.
        for words in [&*named, "15 ticks at most", "shows tick 100", "advance_to"] {
            assert!(too_long.to_string().contains(words), "{words}: {too_long}");
        }
    }
    assert_eq!((by_ticks.len(), by_ticks.stats().inserts_failed), (0, 0));

    let timed = builder().lifetime(14 * MINUTE).resolution(MINUTE).hasher(seeded(1)).build().expect("valid");
    assert_eq!(timed.insert_until(&1, Expiry::After(MINUTE)), Err(ExpiringInsertError::ClockNotSet));
    timed.advance_to(Tick::new(100));
    timed.insert_until(&1, Expiry::After(14 * MINUTE)).expect("the longest lifetime");
    timed.insert_until(&2, Expiry::After(Duration::ZERO)).expect("the shortest");
    let too_long = timed
        .insert_until(&3, Expiry::After(14 * MINUTE + Duration::from_nanos(1)))
        .expect_err("longer than the longest");
    let ExpiringInsertError::LifetimeTooLong { expires_at, now, longest, .. } = too_long else { panic!() };
    assert_eq!((expires_at, now, longest), (Tick::new(116), Tick::new(100), 15));
    assert!(matches!(
        timed.insert_until(&3, Expiry::After(Duration::MAX)),
        Err(ExpiringInsertError::LifetimeTooLong { .. })
    ));
    assert_eq!([1, 2, 3].map(|key| timed.contains(&key)), [true, true, false]);
    timed.advance_to(Tick::new(101));
    assert_eq!([1, 2].map(|key| timed.contains(&key)), [true, false]);
    timed.advance_to(Tick::new(114));
    assert!(timed.contains(&1), "as long as was asked for, wherever in tick 100 it was added");
    timed.advance_to(Tick::new(115));
    assert!(!timed.contains(&1), "and one tick longer");
}

#[test]
fn dead_entries_need_no_room_and_leave_theirs() {
    let filter = filter(500, 15, 0.001);
    filter.advance_to(Tick::new(0));
    let full = (0..).find(|key| filter.insert_until(key, Tick::new(10)).is_err()).expect("it is full at some time");
    // An entry whose end has passed is not kept.
    assert_eq!(
        (filter.insert_until(&full, Tick::new(0)), filter.insert_if_absent_until(&full, Tick::new(0))),
        (Ok(false), Ok(false))
    );
    assert_eq!(
        (filter.insert_or_renew_until(&full, Tick::new(0)), filter.insert_or_renew_until(&0, Tick::new(0))),
        (Ok(false), Ok(false))
    );
    filter.clear();
    (0..).find(|_| filter.insert_until(&1, Tick::new(10)).is_err()).expect("its buckets are full at some time");
    filter.insert_or_renew_until(&1, Tick::new(12)).expect("that needs no room");
    filter.advance_to(Tick::new(10));
    filter.insert_until(&1, Tick::new(13)).expect("the others are dead");
    assert_eq!(filter.live_len(), 2);
}

#[test]
fn it_tells_of_itself() {
    let filter = filter(1000, 15, 0.001);
    assert!(filter.is_empty() && filter.capacity() >= 1000 && filter.plan().slots >= filter.capacity());
    assert!(filter.plan().max_false_positive_rate <= 0.001);
    filter.advance_to(Tick::new(7));
    filter.insert_until(&1, Tick::new(10)).expect("there is room");
    let debug = format!("{filter:?}");
    assert!(debug.contains("now: Some(Tick(7))") && debug.contains("lifetime_in_ticks: Some(15)"), "{debug}");
    let stats = filter.stats();
    assert_eq!((stats.len, stats.memory_usage), (1, filter.plan().memory_usage));
}
