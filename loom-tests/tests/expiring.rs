//! Entries that expire: a live entry is found, an expired one is not, and no expired entry comes back to life when the
//! ring wraps around.
//!
//! Only four ticks can be told apart here. So an end of 11 has the same place on the ring as one of 15.
//!
//! (`tests/stepped/tests/histories/expiring.rs` covers cases with more steps than loom can explore.)

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Key, Seeded};
use ccf_loom::{ExpiringInsertError, WhenFull};
use common::{A, B, C};

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

/// A table of two buckets at tick 10, for lifetimes of up to three ticks. Each of these entries is in the first of
/// its buckets.
fn table(entries: &[(Key, u64)]) -> Arc<Table> {
    fill(Table::with_clock(2, 3, 10, WhenFull::Refuse), entries)
}

/// The same for a table that evicts what ends first when it is full. It has four slots.
fn evicting(entries: &[(Key, u64); 4]) -> Arc<Table> {
    fill(Table::with_clock(2, 3, 10, WhenFull::EvictSoonest), entries)
}

fn fill(table: Table, entries: &[(Key, u64)]) -> Arc<Table> {
    for &(key, end) in entries {
        table.place_until(key, end);
    }
    Arc::new(table)
}

/// Checks that nothing is found, however often the ring wraps around.
fn all_is_dead(keys: &'static [usize]) -> Role {
    role(move |table| {
        for tick in table.now() + 1..table.now() + 5 {
            table.advance_to(tick);
            for &nth in keys {
                assert!(!table.contains(key(nth)), "it came back to life");
            }
        }
    })
}

/// A lookup finds an entry, however often its end is put off.
fn an_end_that_is_put_off() -> Model {
    let table = table(&[(key(0), 12), (key(0).twin(), 11)]);
    table.advance_to(11); // The key's other entry has expired, but is not swept.
    let reader = role(|table| assert!(table.contains(key(0).twin()), "a live entry was missed"));
    let keeper = role(|table| {
        // Before, the bits of 14 meant an end of 10. No entry with that end is left.
        table.insert_or_renew_until(key(0), 14).expect("it has an entry");
        table.advance_to(12);
        table.insert_or_renew_until(key(0), 15).expect("it has an entry");
    });
    let finally = role(|table| assert!(table.contains(key(0))));
    (table, vec![reader, keeper], finally)
}
model! {
    an_end_that_is_put_off, at least 100, preemptions 3,
    fails with "a live entry was missed"
    for [LookupWithoutClock]
}

/// The same for a lookup of a batch.
fn an_end_that_is_put_off_under_a_batch() -> Model {
    let (table, mut roles, finally) = an_end_that_is_put_off();
    roles[0] = role(|table| assert_eq!(table.contains_batch([key(0).twin()]), [true], "a live entry was missed"));
    (table, roles, finally)
}
model! {
    an_end_that_is_put_off_under_a_batch, at least 100, preemptions 3,
    fails with "a live entry was missed"
    for [LookupWithoutClock]
}

/// A lookup of a batch finds an entry that is relocated behind its back.
fn relocation_behind_a_batch() -> Model {
    let reader = role(|table| assert_eq!(table.contains_batch([key(0)]), [true], "a live entry was missed"));
    let mover = role(|table| assert!(table.relocate_until(key(0).twin(), 12)));
    (table(&[(key(0).twin(), 12)]), vec![reader, mover], role(|table| assert!(table.contains(key(0)))))
}
model! {
    relocation_behind_a_batch, at least 50,
    fails with "a live entry was missed"
    for [RelocateWithoutBump, LookupWithoutVersion]
}

/// One entry of a key expires, but not before another one has been added.
fn one_dies_and_another_has_come() -> Model {
    let reader = role(|table| assert!(table.contains(key(0)), "a live entry was missed"));
    let writer = role(|table| {
        table.insert_until(key(0), 13).expect("there is room");
        table.advance_to(11);
        table.advance_to(11);
    });
    (
        table(&[(key(0).twin(), 11)]),
        vec![reader, writer],
        role(|table| assert_eq!((table.len(), table.live_len()), (1, 1))),
    )
}
model! {
    one_dies_and_another_has_come, at least 100, preemptions 3,
    fails with "a live entry was missed"
    for [SweepWithoutBump, LookupWithoutVersion]
}

/// The same by a clock that follows the time: it moves on without a pass, so the lookup began at a moment without a lag, and no
/// stripe is bumped. The expired entry makes room for an entry of another key, in another stripe.
fn one_is_dropped_and_another_has_come() -> Model {
    // Both keys have the bucket `B`.
    let (own, other) = (Table::key(6, A, B, 0), Table::key(6, C, B, 0));
    let filler = |nth, first| Table::key(6, first, B, nth);
    let table = Table::with_clock(6, 2, 11, WhenFull::Refuse);
    // `B` is full, and so is `C`.
    table.place_until(own.twin(), 12);
    table.place_until(filler(1, A).twin(), 12);
    table.place_until(filler(1, C), 13);
    table.place_until(filler(2, C), 13);
    let reader = role(move |table| assert!(table.contains(own), "a live entry was missed"));
    let writer = role(move |table| {
        table.insert_until(own, 13).expect("there is room");
        table.move_on(12);
        table.insert_until(other, 14).expect("the expired entries make room");
    });
    let finally = role(move |table| assert!(table.contains(own) && table.contains(other)));
    (Arc::new(table), vec![reader, writer], finally)
}
model! {
    one_is_dropped_and_another_has_come, at least 100, preemptions 3,
    fails with "a live entry was missed"
    for [RemoveExpiredWithoutBump]
}

/// An entry is relocated while it expires.
fn relocation_of_the_dying() -> Model {
    let mover = role(|table| _ = table.relocate_until(key(0).twin(), 11));
    let clock = role(|table| {
        // Each call sweeps one bucket.
        table.advance_to(11);
        table.advance_to(11);
    });
    (table(&[(key(0).twin(), 11)]), vec![mover, clock], all_is_dead(&[0]))
}
model! {
    relocation_of_the_dying, at least 20,
    fails with "it came back to life"
    for [RelocateExpired, SweepWithoutDraining, RelocateWithoutLock]
}

/// An entry is added while it expires.
fn insert_of_the_dying() -> Model {
    let inserter = role(|table| _ = table.insert_until(key(0), 11).expect("there is room"));
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
    });
    (table(&[]), vec![inserter, clock], all_is_dead(&[0]))
}
model! {
    insert_of_the_dying, at least 20,
    fails with "it came back to life"
    for [SweepWithoutDraining, AddValueWithoutLock]
}

/// The end of an entry is put off while the entry expires.
fn extension_of_the_dying() -> Model {
    let keeper = role(|table| _ = table.insert_or_renew_until(key(0), 12).expect("there is room"));
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
        assert!(!table.contains(key(1)));
    });
    let finally = role(|table| {
        assert!(table.contains(key(0)), "a live entry was swept");
        assert_eq!(table.live_len(), 1, "an entry was lost or doubled");
        all_is_dead(&[0])(table);
    });
    (table(&[(key(0).twin(), 11)]), vec![keeper, clock], finally)
}
model! {
    extension_of_the_dying, at least 20, preemptions 3,
    fails with "a live entry was swept"
    for [AddValueWithoutLock + TakeOverwrites]
}

/// An entry is renewed while it expires. If the answer is that the key was there, then it is found from then on: the renewal
/// came before the tick.
fn renewal_of_the_dying() -> Model {
    let (was_new, found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (renewed, looked) = (Arc::clone(&was_new), Arc::clone(&found));
    let renewer = role(move |table| {
        let is_new = table.insert_or_renew_until(key(0), 13).expect("there is room");
        renewed.store(usize::from(is_new), Ordering::Relaxed);
    });
    let clock = role(move |table| {
        // A pass is under way already, so nobody settles.
        table.advance_to(12);
        looked.store(usize::from(table.contains(key(0))), Ordering::Relaxed);
    });
    let finally = role(move |table| {
        let (is_new, found) = (was_new.load(Ordering::Relaxed), found.load(Ordering::Relaxed));
        assert!(is_new + found > 0, "no order explains this: it was there, and then it was not");
        assert_eq!(table.live_len(), 1, "an entry was lost or doubled");
    });
    let table = Table::with_clock(2, 2, 10, WhenFull::Refuse);
    table.place_until(key(0), 12);
    table.place_until(key(1), 12);
    table.advance_to(11);
    (Arc::new(table), vec![renewer, clock], finally)
}
model! {
    renewal_of_the_dying, at least 20, preemptions 3,
    fails with "no order explains this"
    for [RenewsExpired]
}

/// An entry is renewed while the clock leaps over both of its ends. It was there at each moment before, so it is not new.
fn renewal_beside_a_leap() -> Model {
    let renewer = role(|table| {
        assert_eq!(table.insert_or_renew_until(key(0), 12), Ok(false), "no order explains this: it was there");
    });
    let clock = role(|table| _ = table.advance_to(12));
    (table(&[(key(0), 11)]), vec![renewer, clock], all_is_dead(&[0]))
}
model! {
    renewal_beside_a_leap, at least 20, preemptions 3,
    fails with "no order explains this"
    for [RestartWithoutLocks]
}

/// A tick has come, and the sweep is late. A thread that adds an entry with a long lifetime waits for the sweep.
fn insert_ahead_of_the_sweep() -> Model {
    let inserter = role(|table| {
        let now = table.now();
        table.insert_until(key(0), now + 3).expect("there is room");
        assert!(table.contains(key(0)), "a live entry was missed");
    });
    let clock = role(|table| _ = table.advance_to(12));
    let finally = role(|table| assert!(table.contains(key(0)), "a live entry was missed"));
    (table(&[(key(1), 11)]), vec![inserter, clock], finally)
}
model! {
    insert_ahead_of_the_sweep, at least 20, preemptions 3,
    fails with "a live entry was missed"
    for [AddsBeforeSwept]
}

/// A lookup does not find an entry that expired before it began, whichever thread sweeps meanwhile.
fn lookup_beside_a_sweep() -> Model {
    let reader = role(|table| {
        // The clock is two ticks past the first, whichever thread set it. The lookup reads the same moment or a
        // later one.
        if table.peek() >= 12 {
            assert!(!table.contains(key(0)), "an expired entry was found");
        }
    });
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(12);
    });
    (table(&[(key(0).twin(), 11)]), vec![reader, clock], all_is_dead(&[0]))
}
model! {
    lookup_beside_a_sweep, at least 20, preemptions 3,
    fails with "an expired entry was found"
    for [SweptTooSoon]
}

/// Two threads set the clock to the same tick. When either call returns, the clock shows that tick.
fn two_that_tell_the_time() -> Model {
    let teller = || {
        role(|table| {
            table.advance_to(11);
            assert_eq!(table.now(), 11);
            assert!(!table.contains(key(0)), "an expired entry was found");
        })
    };
    (table(&[(key(0), 11)]), vec![teller(), teller()], all_is_dead(&[0]))
}
model! {
    two_that_tell_the_time, at least 20, preemptions 3,
    fails with "an expired entry was found"
    for [SweptTooSoon]
}

/// One thread advances the clock, and then looks for a key that another thread adds. The other thread then looks
/// for a key that has expired by that tick. At least one of them sees what the other has done.
fn time_against_an_insert() -> Model {
    let missed = Arc::new(AtomicUsize::new(0));
    let (of_clock, of_inserter) = (Arc::clone(&missed), Arc::clone(&missed));
    let clock = role(move |table| {
        // A pass is under way already, so nobody settles.
        table.advance_to(12);
        of_clock.fetch_add(usize::from(!table.contains(key(1))), Ordering::Relaxed);
    });
    let inserter = role(move |table| {
        table.insert_until(key(1), 13).expect("there is room");
        of_inserter.fetch_add(usize::from(table.contains(key(0))), Ordering::Relaxed);
    });
    let finally = role(move |_| assert!(missed.load(Ordering::Relaxed) < 2, "no order leads to these answers"));
    let table = Table::with_clock(2, 2, 10, WhenFull::Refuse);
    table.place_until(key(0).twin(), 12);
    // Every word gets a store here, because loom lets `SeqCst` loads miss later stores to a word that still has its
    // initial value.
    table.place_until(key(2), 12);
    table.advance_to(11);
    (Arc::new(table), vec![clock, inserter], finally)
}
model! {
    time_against_an_insert, at least 20, preemptions 3,
    fails if an ordering is weaker
}

/// The clock leaps ahead while an entry is added.
fn insert_beside_a_leap() -> Model {
    let inserter = role(|table| match table.insert_until(key(0), 101) {
        Ok(kept) => assert!(kept && table.contains(key(0)), "no order explains this: added and not found"),
        Err(error) => {
            assert!(
                matches!(error, ExpiringInsertError::LifetimeTooLong { now, .. } if now.get() == 10),
                "no order explains this: {error}"
            );
        }
    });
    let clock = role(|table| _ = table.advance_to(100));
    (table(&[(key(1), 13)]), vec![inserter, clock], role(|table| assert!(!table.contains(key(1)))))
}
model! {
    insert_beside_a_leap, at least 20, preemptions 3,
    fails with "no order explains this"
    for [RestartWithoutLocks]
}

/// A save begins. Then the clock advances and expired entries are swept. The image is of the save's moment.
fn save_against_a_sweep() -> Model {
    let table = table(&[(key(0), 11), (key(1).twin(), 13)]);
    table.begin_save();
    let saver = role(|table| {
        let image = table.end_save();
        assert_eq!(image.now(), 10);
        assert_eq!((image.count_until(key(0), 11), image.live()), (1, 2), "the image lacks an entry of its moment");
    });
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
    });
    (table, vec![saver, clock], role(|table| assert_eq!(table.live_len(), 1)))
}
model! {
    save_against_a_sweep, at least 20,
    fails with "the image lacks an entry of its moment"
    for [SweepCopiesNothing]
}

/// Two inserts find no room. What ends first makes room for both, and nothing else goes.
fn two_that_find_no_room() -> Model {
    let inserter = |nth| role(move |table: &Table| _ = table.insert_until(key(nth), 13).expect("a tick makes room"));
    let finally = role(|table| {
        assert!(table.contains(key(2)) && table.contains(key(3)), "it was evicted without need");
        assert_eq!((table.live_len(), table.ahead(), table.now()), (4, 1, 10));
    });
    let table = evicting(&[(key(0), 11), (key(2), 12), (key(1).twin(), 11), (key(3).twin(), 12)]);
    (table, vec![inserter(4), inserter(5)], finally)
}
model! {
    two_that_find_no_room, at least 20, preemptions 2,
    fails with "it was evicted without need"
    for [EvictsAgain]
}

/// Two threads add the same key. The first makes room, and then the second needs none.
fn two_of_one_key_that_find_no_room() -> Model {
    let inserter = || role(|table| _ = table.insert_if_absent_until(key(4), 13).expect("a tick makes room"));
    let finally = role(|table| {
        assert!((1..=3).all(|nth| table.contains(key(nth))), "it was evicted without need");
        assert_eq!((table.live_len(), table.ahead()), (4, 1));
    });
    let table = evicting(&[(key(0), 11), (key(1), 12), (key(2).twin(), 12), (key(3).twin(), 12)]);
    (table, vec![inserter(), inserter()], finally)
}
model! {
    two_of_one_key_that_find_no_room, at least 20, preemptions 2,
    fails with "it was evicted without need"
    for [EvictsThoughPresent]
}

/// An entry gets the whole lifetime while a tick is ended early.
fn lifetime_beside_a_tick_that_ends_early() -> Model {
    let keeper = role(|table| assert_eq!(table.insert_or_renew(key(2)), Ok(false), "it has an entry"));
    let evictor = role(|table| assert_eq!(table.evict_for(key(4), 13), Some(1)));
    let finally = role(|table| {
        table.advance_to(12);
        assert!(table.contains(key(2)), "it ended too early");
        table.advance_to(13);
        assert!(!table.contains(key(2)), "it ended too late");
    });
    let table = evicting(&[(key(0), 11), (key(1), 11), (key(2).twin(), 12), (key(3).twin(), 12)]);
    (table, vec![keeper, evictor], finally)
}
model! {
    lifetime_beside_a_tick_that_ends_early, at least 20, preemptions 3,
    fails with "it ended too early"
    for [EvictWithoutLocks]
}

/// The same while the caller's clock overtakes a tick that was ended early.
fn lifetime_beside_a_clock_that_catches_up() -> Model {
    let keeper = role(|table| _ = table.insert_or_renew(key(2)).expect("it has an entry"));
    let clock = role(|table| _ = table.advance_to(12));
    let finally = role(|table| {
        table.advance_to(13);
        let lives_on = table.contains(key(2));
        table.advance_to(14);
        assert_eq!(table.contains(key(2)), lives_on, "no order explains this");
        table.advance_to(15);
        assert!(!table.contains(key(2)));
    });
    let table = evicting(&[(key(0), 11), (key(1), 11), (key(2).twin(), 13), (key(3).twin(), 13)]);
    assert_eq!(table.evict_for(key(4), 13), Some(1));
    (table, vec![keeper, clock], finally)
}
model! {
    lifetime_beside_a_clock_that_catches_up, at least 20, preemptions 3,
    fails with "no order explains this"
    for [RestartWithoutLocks]
}

/// The caller's tick goes forward, and then a tick is ended early. Whoever has seen the first has the tick right.
fn the_time_while_a_tick_ends_early() -> Model {
    let reader = role(|table| {
        // There is something to sweep only from tick 11 on.
        if table.lag() > 0 {
            assert_eq!(table.now(), 11, "time went back");
        }
    });
    let clock = role(|table| {
        table.advance_to(11);
        assert_eq!(table.evict_for(key(4), 13), Some(1));
    });
    let table = evicting(&[(key(0), 12), (key(1), 12), (key(2).twin(), 13), (key(3).twin(), 13)]);
    (table, vec![reader, clock], role(|table| assert_eq!((table.now(), table.ahead()), (11, 1))))
}
model! {
    the_time_while_a_tick_ends_early, at least 20, preemptions 3,
    fails if an ordering is weaker
}
