//! Recent keys: of all threads that race to insert one key, at most one is told that it is new; a key is found until so many
//! others were counted after it; and no insert fails.
//!
//! A key lives for two ticks, and only four ticks can be told apart.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Key, Seeded};
use common::{A, B};

type Table = ccf_loom::model::Expiring;
type Role = common::Role<Table>;
type Model = (Arc<Table>, Vec<Role>, Role);

fn role(run: impl FnOnce(&Table) + Send + 'static) -> Role {
    Box::new(run)
}

/// The `nth` class whose pair is the buckets `A` and `B`. It tries `A` first.
fn key(nth: usize) -> Key {
    Table::key(2, A, B, nth)
}

/// An empty table of two buckets, with this many keys per tick, of which some have come.
fn table(per_tick: u64, added: u64) -> Arc<Table> {
    Arc::new(Table::of_last_keys(2, per_tick, added))
}

/// Two threads bring the same key. One of them is told that it is new, whether the tick ends meanwhile or not.
fn two_that_bring_one_key() -> Model {
    let new = Arc::new(AtomicUsize::new(0));
    let inserter = |renews: bool| {
        let new = Arc::clone(&new);
        role(move |table: &Table| {
            let key = if renews { key(0) } else { key(0).twin() };
            let is_new = if renews { table.insert_or_renew_recent(key, 0) } else { table.insert_recent(key, 0) };
            new.fetch_add(usize::from(is_new), Ordering::Relaxed);
            assert!(table.contains(key), "a recent key was missed");
        })
    };
    let roles = vec![inserter(false), inserter(true)];
    let finally = role(move |table| {
        assert_eq!(new.load(Ordering::Relaxed), 1, "both were told that it is new, or none");
        assert_eq!(table.live_len(), 1);
    });
    (table(3, 2), roles, finally)
}
model! {
    two_that_bring_one_key, at least 2000, preemptions 3,
    fails with "both were told that it is new, or none"
    for [AddValueWithoutLock]
}

/// Two keys fill a tick, and both threads see that. It ends once. (If it ended twice, both keys would have left.)
fn two_that_pass_the_end_of_a_tick() -> Model {
    let inserter = |nth| role(move |table: &Table| assert!(table.insert_recent(key(nth), 0), "it is new"));
    let finally = role(|table| {
        assert!(table.contains(key(0)) && table.contains(key(1)), "a recent key was missed");
        assert_eq!(table.now(), 1);
    });
    (table(2, 0), vec![inserter(0), inserter(1)], finally)
}
model! {
    two_that_pass_the_end_of_a_tick, at least 1200, preemptions 3,
    fails with "a recent key was missed"
    for [TickEndsTwice]
}

/// A key is added while another thread ends the tick. It is found until three others were counted after it.
fn a_key_at_the_end_of_a_tick() -> Model {
    let other_came_first = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&other_came_first);
    let inserter = role(move |table| {
        seen.store(usize::from(table.contains(key(1))), Ordering::Relaxed);
        assert!(table.insert_recent(key(0), 0), "it is new");
    });
    let other = role(|table| assert!(table.insert_recent(key(1), 0), "it is new"));
    let finally = role(move |table| {
        // Two more come. With the other thread's key there are three, unless that came first.
        table.insert_recent(key(2), 0);
        table.insert_recent(key(3), 0);
        if other_came_first.load(Ordering::Relaxed) > 0 {
            assert!(table.contains(key(0)), "a recent key was missed");
        }
        assert_eq!(table.evicted(), 0);
    });
    (table(3, 2), vec![inserter, other], finally)
}
model! {
    a_key_at_the_end_of_a_tick, at least 3000, preemptions 2,
    fails with "a recent key was missed"
    for [TickEndsWithoutLocks]
}

/// Another table, with a key that was counted in its present tick.
fn other_with(key: Key) -> Table {
    let other = Table::of_last_keys(2, 2, 0);
    assert!(other.insert_recent(key, 0), "it is new");
    other
}

/// A table takes over a key while another thread ends a tick. Two more are to come until the key leaves: with those that have
/// come in the first tick, that is when two ticks have ended.
fn a_union_at_the_end_of_a_tick() -> Model {
    let other = other_with(key(0));
    let uniter = role(move |table| table.unite_recent(&other, 2));
    let inserter = role(|table| assert!(table.insert_recent(key(1), 0), "it is new"));
    let finally = role(|table| {
        assert_eq!(table.expires_at(key(0)), Some(2), "a key stays for too long, or not long enough");
        assert_eq!(table.now(), 1, "what was taken over has counted");
    });
    (table(2, 1), vec![uniter, inserter], finally)
}
model! {
    a_union_at_the_end_of_a_tick, at least 120, preemptions 3,
    fails with "a key stays for too long, or not long enough"
    for [UnionReadsClockWithoutLocks]
}

/// A key comes by a union and by an insert. It has one entry, and it is new only if it came by the insert first.
fn a_union_beside_an_insert_of_the_same() -> Model {
    let other = other_with(key(0).twin());
    let uniter = role(move |table| table.unite_recent(&other, 2));
    let inserter = role(|table| {
        table.insert_recent(key(0), 0);
        assert!(table.contains(key(0)), "a recent key was missed");
    });
    let finally = role(|table| assert_eq!((table.live_len(), table.len()), (1, 1), "not one entry for the key"));
    (table(2, 0), vec![uniter, inserter], finally)
}
model! {
    a_union_beside_an_insert_of_the_same, at least 40, preemptions 3,
    fails with "not one entry for the key"
    for [AddValueWithoutLock]
}

/// A sweep ends while another thread ends a tick. Both take effect.
fn a_tick_that_ends_during_a_sweep() -> Model {
    let table = table(1, 0);
    // Each of these ends a tick. The first key has left, and is yet to be swept: one of two buckets is left.
    for nth in 0..2 {
        table.insert_recent(key(nth), 0);
    }
    table.keep_up();
    assert_eq!(table.now(), 2);
    let sweeper = role(|table| table.keep_up());
    let inserter = role(|table| assert!(table.insert_recent(key(2), 0), "it is new"));
    let finally = role(|table| {
        assert_eq!(table.now(), 3, "a tick was undone");
        assert!(!table.contains(key(1)), "it came back to life");
        assert!(table.contains(key(2)), "a recent key was missed");
    });
    (table, vec![sweeper, inserter], finally)
}
model! {
    a_tick_that_ends_during_a_sweep, at least 2300, preemptions 3,
    fails with "a tick was undone"
    for [SweepUndoesTicks]
}

/// The table is full of keys of the present tick, and two more come. Each takes the place of another one, and is found.
fn two_that_displace_others() -> Model {
    let table = table(100, 0);
    for nth in 0..4 {
        assert!(table.insert_recent(key(nth), 0), "there are four slots");
    }
    let inserter = |nth| role(move |table: &Table| assert!(table.insert_recent(key(nth), 0), "it is new"));
    let finally = role(|table| {
        assert_eq!((table.live_len(), table.len(), table.evicted()), (4, 4, 2), "not one entry for each");
        assert_eq!(table.now(), 0);
    });
    (table, vec![inserter(4), inserter(5)], finally)
}
model! {
    two_that_displace_others, at least 80, preemptions 1,
    fails if an ordering is weaker
}

/// A lookup goes on while a key is displaced: a key that stays is found.
fn a_lookup_while_another_key_is_displaced() -> Model {
    let table = table(100, 0);
    for nth in 0..4 {
        assert!(table.insert_recent(key(nth), 0), "there are four slots");
    }
    let inserter = role(|table| assert!(table.insert_recent(key(4), 0), "it is new"));
    // Of the entries that expire first, the first one in the first bucket goes. These are in the second one.
    let reader = role(|table| {
        let found = (0..4).filter(|&nth| table.contains(key(nth))).count();
        assert!(found >= 3, "a recent key was missed");
    });
    (table, vec![inserter, reader], role(|table| assert!(table.contains(key(4)), "a recent key was missed")))
}
model! {
    a_lookup_while_another_key_is_displaced, at least 2500, preemptions 1,
    fails if an ordering is weaker
}

/// A key is renewed while the time passes by the tick at which it would expire. If it was told to be a recent one, then it
/// was renewed before that tick.
fn a_key_that_is_renewed_when_its_time_is_over() -> Model {
    let (was_new, found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (renewed, looked) = (Arc::clone(&was_new), Arc::clone(&found));
    let renewer = role(move |table| {
        let is_new = table.insert_or_renew_recent(key(0), 1);
        renewed.store(usize::from(is_new), Ordering::Relaxed);
        assert!(table.contains(key(0)), "a recent key was missed");
    });
    let lookup = role(move |table| {
        // Two ticks pass at once.
        table.move_on(2);
        looked.store(usize::from(table.contains(key(0))), Ordering::Relaxed);
    });
    let finally = role(move |table| {
        let (is_new, found) = (was_new.load(Ordering::Relaxed), found.load(Ordering::Relaxed));
        assert!(is_new + found > 0, "no order explains this: it was there, and then it was not");
        assert_eq!(table.live_len(), 1, "an entry was lost or doubled");
        table.move_on(5);
        assert!(!table.contains(key(0)));
    });
    let table = Table::of_recent_time(2);
    table.insert_recent(key(0), 0);
    (Arc::new(table), vec![renewer, lookup], finally)
}
model! {
    a_key_that_is_renewed_when_its_time_is_over, at least 500, preemptions 3,
    fails with "no order explains this"
    for [RenewsExpired]
}
