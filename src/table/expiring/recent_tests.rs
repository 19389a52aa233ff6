use super::*;
use crate::machine::memory::Pages;
use crate::table::attempt::IfPresent;
use crate::table::by_shape::{ExpiringTable, Shaped};
use crate::table::expiring::clock::{Clock, Drive, Until};
use crate::word::layout::Shape;
use crate::word::ring::{Reading, Ring};

const LIFETIME: u64 = 14;

fn table(buckets: usize, drive: Drive) -> ExpiringTable {
    let longest = if matches!(drive, Drive::Time { .. }) { LIFETIME + 1 } else { LIFETIME };
    let clock = Clock::with_drive(Ring::new(4), longest, drive);
    let shape = Shape::semi_sorted(4, 17).with_payload(4).expect("it leaves enough");
    let table = Expiry::by(clock).and_then(|entries| Table::new(Pages::Usual, shape, buckets, entries));
    Shaped::of(table.expect("a small table"))
}

fn of_keys(buckets: usize, per_tick: u64) -> ExpiringTable {
    table(buckets, Drive::by_keys(per_tick, 0).expect("a small count"))
}

/// A hash for each number, which goes to any bucket.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn add(table: &ExpiringTable, number: u64, tick: u64) -> Result<bool, crate::error::insert::ExpiringInsertError> {
    let until = Until::FromAtLeast { tick, ticks: LIFETIME };
    table.add_until(hash(number), until, IfPresent::Skip)
}

/// While another thread has the lock of the sweep, as one that was preempted in the middle of it, inserts go on, and a tick
/// ends. (If one of them waited, this test would not end.)
#[test]
fn inserts_do_not_wait_for_a_sweep() {
    let table = of_keys(500, 50);
    let clock = table.clock();
    for number in 0..LIFETIME * 50 + 10 {
        assert_eq!(add(&table, number, 0), Ok(true));
        table.keep_up();
    }
    let now = clock.now().expect("it is set");
    let pass = clock.lock_sweep();
    for number in 10_000..10_045 {
        assert_eq!(add(&table, number, 0), Ok(true));
        table.keep_up();
    }
    assert_eq!((clock.state().now, clock.state().reading.lag()), (Some(now + 1), 1));
    assert!(!table.contains(hash(50)) && table.contains(hash(100)), "the tick has ended");
    drop(pass);
    table.keep_up();
    assert_eq!(clock.state().reading.lag(), 0);
}

/// The same for a clock that follows the time: an operation goes by the clock as it is. But what it adds lives as long as if
/// the clock were not late.
#[test]
fn an_entry_that_is_added_by_a_late_clock_lives_as_long_as_others() {
    let table = table(500, Drive::Time { tolerated_lag: 0 });
    let clock = table.clock();
    assert_eq!(add(&table, 1, 0), Ok(true));
    let pass = clock.lock_sweep();
    table.move_on(1, false);
    assert_eq!(clock.now(), Some(0), "it is late");
    assert_eq!(add(&table, 2, 1), Ok(true));
    // By more than a tick: the caller has to wait.
    assert!(add(&table, 3, 2).is_err());
    drop(pass);
    table.move_on(2, true);
    assert_eq!(add(&table, 3, 2), Ok(true));
    for tick in 2..20 {
        table.move_on(tick, false);
        for (number, added_at) in [(1, 0), (2, 1), (3, 2)] {
            assert_eq!(table.contains(hash(number)), tick < added_at + LIFETIME, "{number} at {tick}");
        }
    }
}

/// The clock's own ticks begin again after 2⁴⁷: half a year of ten million keys per second, each of which ends a tick.
#[test]
fn keys_stay_as_long_while_the_clock_begins_its_own_ticks_again() {
    for lag in [0, 1] {
        let table = of_keys(500, 1);
        let clock = table.clock();
        let reading = Reading::new(clock.ring, LAST_TICK - 20, lag);
        table.table.under_all_locks(|all| clock.set_callers_tick(all, reading, 7, 0));
        clock.publish(reading);
        for number in 0..100 {
            assert_eq!(add(&table, number, 0), Ok(true));
            table.keep_up();
            for other in 0..=number {
                assert_eq!(table.contains(hash(other)), number - other < LIFETIME - 1, "{other} at {number}");
            }
        }
        assert!(clock.state().reading.now() < LAST_TICK, "they have begun again");
        assert_eq!(clock.state().now, Some(107));
    }
}
