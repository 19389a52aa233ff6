//! A rate limiter: of all threads that race for a key's last request exactly one gets it; what is rejected is rejected rightly,
//! and without a lock; and no charge is lost or noted too early.
//!
//! A debt has up to three ticks, and only four ticks can be told apart.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::WhenFull;
use ccf_loom::model::{Expiring, Fault, Key, Seeded};
use common::{A, B};

type Table = Expiring;
type Role = common::Role<Table>;
type Model = (Arc<Table>, Vec<Role>, Role);

fn role(run: impl FnOnce(&Table) + Send + 'static) -> Role {
    Box::new(run)
}

/// The `nth` class whose pair is the buckets `A` and `B`. It tries `A` first.
fn key(nth: usize) -> Key {
    Table::key(2, A, B, nth)
}

/// An empty table of two buckets.
fn table() -> Table {
    Table::of_debts(2, WhenFull::EvictSoonest)
}

/// The key may make one more request. One of two threads gets it.
fn two_that_race_for_the_last_request() -> Model {
    let table = table();
    table.charge(key(0), 0, 1, 2).expect("two are allowed");
    let allowed = Arc::new(AtomicUsize::new(0));
    let client = |key: Key| {
        let allowed = Arc::clone(&allowed);
        role(move |table: &Table| {
            let answer = table.charge(key, 0, 1, 2);
            allowed.fetch_add(usize::from(answer.is_ok()), Ordering::Relaxed);
            assert!(answer.is_ok() || answer == Err(1), "it is allowed at the next tick");
        })
    };
    let roles = vec![client(key(0)), client(key(0).twin())];
    let finally = role(move |table| {
        assert_eq!(allowed.load(Ordering::Relaxed), 1, "not exactly one got the last request");
        assert_eq!((table.debt(key(0), table.now()), table.live_len()), (2, 1));
    });
    (Arc::new(table), roles, finally)
}
model! {
    two_that_race_for_the_last_request, at least 160,
    fails with "not exactly one got the last request"
    for [ChargesByWhatWasRead]
}

/// A new key with a burst of one request. One of two threads gets it, and there is one entry.
fn two_that_bring_a_new_key() -> Model {
    let allowed = Arc::new(AtomicUsize::new(0));
    let client = |key: Key| {
        let allowed = Arc::clone(&allowed);
        role(move |table: &Table| {
            allowed.fetch_add(usize::from(table.charge(key, 0, 1, 1).is_ok()), Ordering::Relaxed);
        })
    };
    let roles = vec![client(key(0)), client(key(0).twin())];
    let finally = role(move |table| {
        assert_eq!(allowed.load(Ordering::Relaxed), 1, "not exactly one got the last request");
        assert_eq!((table.debt(key(0), table.now()), table.live_len(), table.len()), (1, 1, 1));
    });
    (Arc::new(table()), roles, finally)
}
model! {
    two_that_bring_a_new_key, at least 260,
    fails with "not exactly one got the last request"
    for [ChargeWithoutLock, ChargesByWhatWasRead]
}

/// A key that owes one tick makes a request while the time goes on by a tick and it makes another one. In either order both
/// are allowed.
fn a_request_while_a_tick_passes() -> Model {
    let table = table();
    table.charge(key(0), 0, 1, 2).expect("two are allowed");
    let client = role(|table| assert_eq!(table.charge(key(0), 0, 1, 2), Ok(()), "no order explains it"));
    let other = role(|table| assert_eq!(table.charge(key(0), 1, 1, 2), Ok(()), "no order explains it"));
    let finally = role(|table| assert!((1..=2).contains(&table.debt(key(0), table.now())), "a charge was lost"));
    (Arc::new(table), vec![client, other], finally)
}
model! {
    a_request_while_a_tick_passes, at least 11000, preemptions 3,
    fails with "no order explains it"
    for [RejectsWithoutClock]
}

/// Another thread moves the clock on. A request at the new tick leaves a debt from that tick on.
fn a_request_while_the_clock_is_late() -> Model {
    let mover = role(|table| table.move_on(1));
    let client = role(|table| assert_eq!(table.charge_by(key(0), 1, 2, 2), Ok(())));
    let finally = role(|table| {
        table.move_on(1);
        assert_eq!((table.now(), table.debt(key(0), table.now())), (1, 2), "a debt ends too early");
    });
    (Arc::new(table()), vec![mover, client], finally)
}
model! {
    a_request_while_the_clock_is_late, at least 310,
    fails with "a debt ends too early"
    for [ChargesByLateClock]
}

/// The entry of a key that has repaid its debt is swept while the key makes a request.
fn a_request_while_its_dead_entry_is_swept() -> Model {
    let table = table();
    table.charge(key(0), 0, 1, 3).expect("three are allowed");
    table.move_on(1);
    let sweeper = role(|table| {
        table.keep_up();
        table.keep_up();
    });
    let client = role(|table| assert_eq!(table.charge(key(0), 1, 1, 3), Ok(())));
    let finally = role(|table| {
        assert_eq!(table.debt(key(0), table.now()), 1, "a charge was lost");
        assert_eq!((table.live_len(), table.len()), (1, 1), "an entry was lost or doubled");
    });
    (Arc::new(table), vec![sweeper, client], finally)
}
model! {
    a_request_while_its_dead_entry_is_swept, at least 600, preemptions 3,
    fails with "a charge was lost"
    for [ChargesTheSwept]
}

/// The end of a new debt has the place on the ring of an entry that is yet to be swept.
fn a_debt_whose_place_is_not_swept_yet() -> Model {
    let table = table();
    table.charge(key(1), 0, 1, 3).expect("three are allowed");
    table.move_on(2);
    assert_eq!(table.lag(), 2);
    let sweeper = role(|table| table.keep_up());
    let client = role(|table| assert_eq!(table.charge(key(0), 2, 3, 3), Ok(())));
    let finally = role(|table| {
        assert_eq!((table.debt(key(0), table.now()), table.debt(key(1), table.now())), (3, 0), "a charge was lost")
    });
    (Arc::new(table), vec![sweeper, client], finally)
}
model! {
    a_debt_whose_place_is_not_swept_yet, at least 100, preemptions 2,
    fails with "a charge was lost"
    for [AddsBeforeSwept]
}

/// An entry is moved to the other bucket while its key makes a request.
fn a_request_while_the_entry_is_moved() -> Model {
    let table = table();
    table.charge(key(0), 0, 1, 3).expect("three are allowed");
    let mover = role(|table| _ = table.relocate_until(key(0), 1));
    let client = role(|table| assert_eq!(table.charge(key(0), 0, 1, 3), Ok(())));
    let finally = role(|table| {
        assert_eq!(
            (table.debt(key(0), table.now()), table.live_len()),
            (2, 1),
            "a charge was lost, or its entry doubled"
        );
    });
    (Arc::new(table), vec![mover, client], finally)
}
model! {
    a_request_while_the_entry_is_moved, at least 2100,
    fails with "a charge was lost, or its entry doubled"
    for [ChargeWithoutLock]
}

/// A key is forgiven while it makes its last request: before or after.
fn a_request_while_its_key_is_forgiven() -> Model {
    let table = table();
    table.charge(key(0), 0, 1, 2).expect("two are allowed");
    let remover = role(|table| assert!(table.forgive(key(0), 0), "it owes something"));
    let client = role(|table| assert_eq!(table.charge(key(0), 0, 1, 2), Ok(())));
    let finally = role(|table| {
        assert!(table.debt(key(0), table.now()) <= 1, "no order explains it");
        assert_eq!(
            (table.debt(key(0), table.now()), table.live_len()),
            (table.len() as u64, table.len()),
            "an entry was lost or doubled"
        );
    });
    (Arc::new(table), vec![remover, client], finally)
}
model! {
    a_request_while_its_key_is_forgiven, at least 260,
    fails if an ordering is weaker
}

/// The table is full of keys that owe as much, and two more come. Each takes the place of another one.
fn two_that_displace_others() -> Model {
    let table = table();
    for nth in 0..4 {
        assert_eq!(table.charge(key(nth), 0, 1, 2), Ok(()), "there are four slots");
    }
    let client = |nth| role(move |table: &Table| assert_eq!(table.charge(key(nth), 0, 1, 2), Ok(())));
    let finally = role(|table| {
        assert_eq!((table.live_len(), table.len(), table.evicted()), (4, 4, 2), "not one entry for each");
    });
    (Arc::new(table), vec![client(4), client(5)], finally)
}
model! {
    two_that_displace_others, at least 780, preemptions 1,
    fails if an ordering is weaker
}

/// The table is full, and fails closed. A key is forgiven while another one comes: that is allowed, or rejected before.
fn a_new_key_while_another_one_is_forgiven() -> Model {
    let table = Table::of_debts(2, WhenFull::Refuse);
    for nth in 0..4 {
        assert_eq!(table.charge(key(nth), 0, 1, 2), Ok(()), "there are four slots");
    }
    let allowed = Arc::new(AtomicUsize::new(0));
    let result = Arc::clone(&allowed);
    let remover = role(|table| assert!(table.forgive(key(0), 0), "it is there"));
    let client = role(move |table| {
        let answer = table.charge(key(4), 0, 1, 2);
        result.store(usize::from(answer.is_ok()), Ordering::Relaxed);
        assert!(answer.is_ok() || answer == Err(1));
    });
    let finally = role(move |table| {
        assert_eq!(table.live_len(), 3 + allowed.load(Ordering::Relaxed), "an entry was lost or doubled");
        assert_eq!((table.evicted(), table.debt(key(1), table.now())), (0, 1));
    });
    (Arc::new(table), vec![remover, client], finally)
}
model! {
    a_new_key_while_another_one_is_forgiven, at least 190, preemptions 2,
    fails if an ordering is weaker
}

/// The table is full, fails closed, and has rejected a key. A key that has an entry is charged while the clock is late.
fn a_known_key_in_a_full_limiter_while_the_clock_is_late() -> Model {
    let table = Table::of_debts(2, WhenFull::Refuse);
    for nth in 0..4 {
        assert_eq!(table.charge(key(nth), 0, 2, 3), Ok(()), "there are four slots");
    }
    assert_eq!(table.charge(key(4), 0, 1, 3), Err(2), "until the debts are repaid");
    let mover = role(|table| table.move_on(1));
    let client = role(|table| assert_eq!(table.charge_by(key(0), 1, 1, 3), Ok(()), "it has an entry"));
    let finally = role(|table| assert_eq!((table.debt(key(0), 1), table.live_len()), (2, 4)));
    (Arc::new(table), vec![mover, client], finally)
}
model! {
    a_known_key_in_a_full_limiter_while_the_clock_is_late, at least 310,
    fails if an ordering is weaker
}
