//! A table with a clock: its vector units, its own ticks when they begin again, and the pass that removes expired entries
//! out.

use crate::machine::memory::Pages;
use crate::table::attempt::IfPresent;
use crate::table::by_shape::{ExpiringTable, Shaped};
use crate::table::core::Core as _;
use crate::table::entries::{Entries as _, Expiry};
use crate::table::expiring::clock::{Advance, Clock, Until, WhenFull};
use crate::table::table::Table;
use crate::table::table_tests::assert_all_vector_units_find_the_same;
use crate::word::layout::{SHAPES_WITH_PAYLOAD, Shape};
use crate::word::ring::{LAST_TICK, Reading, Ring};

/// A table for lifetimes that leave `spare` ticks of the ring unused.
fn table(shape: Shape, buckets: usize, expiry_bits: u32, spare: u64) -> ExpiringTable {
    let shape = shape.with_payload(expiry_bits).expect("it leaves enough");
    let ring = Ring::new(expiry_bits);
    let clock = Clock::new(ring, ring.len() - spare, None, WhenFull::Refuse);
    let entries = Expiry::by(clock).expect("a small clock");
    Shaped::of(Table::new(Pages::Usual, shape, buckets, entries).expect("a small table"))
}

/// `is_swept`: whether the expired entries are out when the lookups begin.
fn compare_vector_units(shape: Shape, expiry_bits: u32, is_swept: bool) {
    // A sweep does 4,096 buckets at once.
    let buckets = if is_swept { 500 } else { 5000 };
    let table = table(shape, buckets, expiry_bits, 1);
    table.advance_to(100);
    let insert = |number, hash| {
        let added = table.add_until(hash, Until::After(1 + number % 3), IfPresent::Add);
        assert_eq!(added, Ok(true), "room");
        if number == buckets as u64 / 2 {
            table.advance_to(101);
        }
    };
    let contains = |hash| table.contains(hash);
    assert_all_vector_units_find_the_same(&table.table, table.table.entries.presence(), insert, contains);
    assert_eq!(table.clock().state().reading.lag() == 0, is_swept);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has none")]
fn all_vector_units_find_the_same_living() {
    for (shape, expiry_bits) in SHAPES_WITH_PAYLOAD.into_iter().zip([4, 4, 4, 8, 16]) {
        for is_swept in [true, false] {
            compare_vector_units(shape, expiry_bits, is_swept);
        }
    }
}

/// The clock's own ticks begin again after 2⁴⁷, longer than any process runs. No lifetime changes by it.
#[test]
fn lifetimes_last_while_the_clock_begins_its_own_ticks_again() {
    for (spare, lag, pace) in [(1, 0, 1), (1, 1, 1), (9, 5, 1), (1, 0, 2), (1, 0, 5)] {
        let table = table(Shape::semi_sorted(4, 17), 100, 4, spare);
        let ticks = (1000..1010).step_by(pace);
        let longest = 16 - spare;
        table.advance_to(1000);
        // As if the clock had run that long.
        let clock = table.clock();
        let reading = Reading::new(clock.ring, LAST_TICK - 3, lag);
        table.table.under_all_locks(|all| clock.set_callers_tick(all, reading, 1000, 0));
        clock.publish(reading);
        for tick in ticks.clone() {
            table.advance_to(tick);
            for lifetime in 1..=longest {
                let hash = tick * 100 + lifetime;
                assert_eq!(table.add_until(hash, Until::Tick(tick + lifetime), IfPresent::Add), Ok(true), "{hash}");
            }
        }
        for now in 1009..1030 {
            table.advance_to(now);
            for tick in ticks.clone() {
                for lifetime in 1..=longest {
                    assert_eq!(table.contains(tick * 100 + lifetime), tick + lifetime > now, "{tick} at {now}");
                }
            }
        }
        assert_eq!(clock.now(), Some(1029));
        assert!(clock.state().reading.now() < LAST_TICK, "they have begun again");
    }
}

/// A pass that is under way ends as one for the tick at which it began. The next pass takes the rest.
#[test]
#[cfg_attr(miri, ignore = "sweeps twelve thousand buckets again and again")]
fn a_pass_goes_on_while_the_clock_does() {
    let table = table(Shape::semi_sorted(4, 17), 3 * 4096, 4, 9);
    table.advance_to(0);
    for hash in 0..9000u64 {
        let added = table.add_until(hash << 40 | hash, Until::Tick(1 + hash % 3), IfPresent::Add);
        assert_eq!(added, Ok(true));
    }
    // Sweeps the first third of the table, and then, one tick later, the next third.
    assert_eq!(table.advance_to(1), Advance::Forward { ticks: 1 });
    let left = table.len();
    assert!((7500..8500).contains(&left), "{left} are left of 9,000");
    assert_eq!(table.advance_to(2), Advance::Forward { ticks: 1 });
    assert_eq!((table.live_in(0), table.clock().oldest_unswept()), (3000, Some(1)));
    table.advance_to(2);
    assert_eq!(table.clock().oldest_unswept(), Some(2), "those of tick 1 are out");
    assert_eq!(table.len(), 6000, "and no others");
    (0..3).for_each(|_| _ = table.advance_to(2));
    assert_eq!((table.len(), table.live_in(0)), (3000, 3000));
}
