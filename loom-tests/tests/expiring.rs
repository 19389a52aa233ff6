//! Entries that expire: what lives is found, what is dead is not, and nothing comes back to life when the ring comes round.
//!
//! Four ticks can be told apart here. So an end of 11 has the same place on the ring as one of 15.
//!
//! (`tests/stepped/tests/schedules/expiring.rs` and the histories there have what takes more steps than loom can explore.)

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::InsertError;
use ccf_loom::model::{Fault, Key, Seeded, SmallestOfValues};
use common::{A, B, C};

type Table = ccf_loom::model::Table<SmallestOfValues>;
type Role = common::Role<Table>;
type Model = (Arc<Table>, Vec<Role>, Role);

fn role(run: impl FnOnce(&Table) + Send + 'static) -> Role {
    Box::new(run)
}

/// The `nth` class whose pair is the buckets `A` and `B`. It tries `A` first.
fn key(nth: usize) -> Key {
    Key::of::<SmallestOfValues>(2, A, B, nth)
}

/// A table of two buckets at tick 10, for lifetimes of up to three ticks, with these entries in the first of their buckets.
fn table(entries: &[(Key, u64)]) -> Arc<Table> {
    let table = Table::with_clock(2, 3, 10);
    for &(key, end) in entries {
        table.place_until(key, end);
    }
    Arc::new(table)
}

/// Nothing is found any more, however often the ring comes round.
fn all_is_dead(keys: &'static [usize]) -> Role {
    role(move |table| {
        for tick in table.now() + 1..table.now() + 5 {
            table.advance_to(tick);
            for &nth in keys {
                assert!(!table.contains_live(key(nth)), "it came back to life");
            }
        }
    })
}

/// An entry is found by a lookup, however often its end is put off.
fn an_end_that_is_put_off() -> Model {
    let table = table(&[(key(0), 12), (key(0).twin(), 11)]);
    table.advance_to(11); // The other entry of the key is dead, and was not swept.
    let reader = role(|table| assert!(table.contains_live(key(0).twin()), "a living entry was missed"));
    let keeper = role(|table| {
        // By then 14 has been taken for an end of 10: no end of that time is left.
        table.keep_until(key(0), 14).expect("it has an entry");
        table.advance_to(12);
        table.keep_until(key(0), 15).expect("it has an entry");
    });
    let finally = role(|table| assert!(table.contains_live(key(0))));
    (table, vec![reader, keeper], finally)
}
model! {
    an_end_that_is_put_off, at least 100, preemptions 3,
    fails with "a living entry was missed"
    for [LookupWithoutClock]
}

/// A lookup of a batch, likewise.
fn an_end_that_is_put_off_under_a_batch() -> Model {
    let (table, mut roles, finally) = an_end_that_is_put_off();
    roles[0] =
        role(|table| assert_eq!(table.contains_live_batch([key(0).twin()]), [true], "a living entry was missed"));
    (table, roles, finally)
}
model! {
    an_end_that_is_put_off_under_a_batch, at least 100, preemptions 3,
    fails with "a living entry was missed"
    for [LookupWithoutClock]
}

/// One entry of a key dies, but not before another one has come.
fn one_dies_and_another_has_come() -> Model {
    let reader = role(|table| assert!(table.contains_live(key(0)), "a living entry was missed"));
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
    fails with "a living entry was missed"
    for [SweepWithoutBump, LookupWithoutVersion]
}

/// The same where a pass for an earlier tick is under way, and the dead entry makes room for one of another key, whose stripe is
/// another one.
fn one_is_dropped_and_another_has_come() -> Model {
    // Both have the bucket `B`.
    let (own, other) = (Key::of::<SmallestOfValues>(6, A, B, 0), Key::of::<SmallestOfValues>(6, C, B, 0));
    let filler = |nth, first| Key::of::<SmallestOfValues>(6, first, B, nth);
    let table = Table::with_clock(6, 2, 10);
    // `B` is full, and so is `C`.
    table.place_until(own.twin(), 12);
    table.place_until(filler(1, A).twin(), 12);
    table.advance_to(11);
    table.place_until(filler(1, C), 13);
    table.place_until(filler(2, C), 13);
    let reader = role(move |table| assert!(table.contains_live(own), "a living entry was missed"));
    let writer = role(move |table| {
        table.insert_until(own, 13).expect("there is room");
        // It sweeps a bucket, and does not settle.
        table.advance_to(12);
        table.insert_until(other, 14).expect("the dead make room");
    });
    let finally = role(move |table| assert!(table.contains_live(own) && table.contains_live(other)));
    (Arc::new(table), vec![reader, writer], finally)
}
model! {
    one_is_dropped_and_another_has_come, at least 100, preemptions 3,
    fails with "a living entry was missed"
    for [DropWithoutBump]
}

/// An entry that is about to die, and is relocated while it does.
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
    for [RelocateDead, SweepWithoutSettling, RelocateWithoutLock]
}

/// An entry that is about to die is added while it does.
fn insert_of_the_dying() -> Model {
    let inserter = role(|table| table.insert_until(key(0), 11).expect("there is room"));
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
    });
    (table(&[]), vec![inserter, clock], all_is_dead(&[0]))
}
model! {
    insert_of_the_dying, at least 20,
    fails with "it came back to life"
    for [SweepWithoutSettling, AddValueWithoutLock]
}

/// An entry that is about to die is made to live longer while it does.
fn extension_of_the_dying() -> Model {
    let keeper = role(|table| table.keep_until(key(0), 12).expect("there is room"));
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
        assert!(!table.contains_live(key(1)));
    });
    let finally = role(|table| {
        assert!(table.contains_live(key(0)), "what lives was swept");
        assert_eq!(table.live_len(), 1, "an entry was lost or doubled");
        all_is_dead(&[0])(table);
    });
    (table(&[(key(0).twin(), 11)]), vec![keeper, clock], finally)
}
model! {
    extension_of_the_dying, at least 20, preemptions 3,
    fails with "what lives was swept"
    for [AddValueWithoutLock + TakeOverwrites]
}

/// A tick has come, and the sweep is late. Whoever adds an entry with a long lifetime waits for it.
fn insert_ahead_of_the_sweep() -> Model {
    let inserter = role(|table| {
        let now = table.now();
        table.insert_until(key(0), now + 3).expect("there is room");
        assert!(table.contains_live(key(0)), "a living entry was missed");
    });
    let clock = role(|table| _ = table.advance_to(12));
    let finally = role(|table| assert!(table.contains_live(key(0)), "a living entry was missed"));
    (table(&[(key(1), 11)]), vec![inserter, clock], finally)
}
model! {
    insert_ahead_of_the_sweep, at least 20, preemptions 3,
    fails with "a living entry was missed"
    for [AddsBeforeSwept]
}

/// What has died before a lookup begins is not found, whoever sweeps meanwhile.
fn lookup_beside_a_sweep() -> Model {
    let reader = role(|table| {
        // Two ticks after the first, whoever has told it. The lookup reads the same moment or a later one.
        if table.peek() >= 12 {
            assert!(!table.contains_live(key(0)), "the dead was found");
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
    fails with "the dead was found"
    for [SweptTooSoon]
}

/// Two threads tell the same tick. Whichever returns, it is that tick.
fn two_that_tell_the_time() -> Model {
    let teller = || {
        role(|table| {
            table.advance_to(11);
            assert_eq!(table.now(), 11);
            assert!(!table.contains_live(key(0)), "the dead was found");
        })
    };
    (table(&[(key(0), 11)]), vec![teller(), teller()], all_is_dead(&[0]))
}
model! {
    two_that_tell_the_time, at least 20, preemptions 3,
    fails with "the dead was found"
    for [SweptTooSoon]
}

/// One thread tells the time, and then looks for a key that another adds before it looks for one that has died by then. Not both
/// miss what the other has done.
fn time_against_an_insert() -> Model {
    let missed = Arc::new(AtomicUsize::new(0));
    let (of_clock, of_inserter) = (Arc::clone(&missed), Arc::clone(&missed));
    let clock = role(move |table| {
        // A pass is under way already, so nobody settles.
        table.advance_to(12);
        of_clock.fetch_add(usize::from(!table.contains_live(key(1))), Ordering::Relaxed);
    });
    let inserter = role(move |table| {
        table.insert_until(key(1), 13).expect("there is room");
        of_inserter.fetch_add(usize::from(table.contains_live(key(0))), Ordering::Relaxed);
    });
    let finally = role(move |_| assert!(missed.load(Ordering::Relaxed) < 2, "no order leads to these answers"));
    let table = Table::with_clock(2, 2, 10);
    table.place_until(key(0).twin(), 12);
    // So that no word is as it was made: loom lets loads that are `SeqCst` miss later stores then.
    table.place_until(key(2), 12);
    table.advance_to(11);
    (Arc::new(table), vec![clock, inserter], finally)
}
model! {
    time_against_an_insert, at least 20, preemptions 3,
    fails with "no order leads to these answers"
    for [RelaxedPublish, RelaxedMoment]
}

/// The clock leaps ahead while an entry is added.
fn insert_beside_a_leap() -> Model {
    let inserter = role(|table| match table.insert_until(key(0), 101) {
        Ok(()) => assert!(table.contains_live(key(0)), "at no moment was it so: added and not found"),
        Err(error) => {
            assert!(matches!(error, InsertError::LifetimeTooLong { now: 10, .. }), "at no moment was it so: {error}");
        }
    });
    let clock = role(|table| _ = table.advance_to(100));
    (table(&[(key(1), 13)]), vec![inserter, clock], role(|table| assert!(!table.contains_live(key(1)))))
}
model! {
    insert_beside_a_leap, at least 20, preemptions 3,
    fails with "at no moment was it so"
    for [RestartWithoutLocks]
}

/// A save begins, and then the clock goes on and the dead are swept: the image is of its moment.
fn save_against_a_sweep() -> Model {
    let table = table(&[(key(0), 11), (key(1).twin(), 13)]);
    table.begin_save();
    let saver = role(|table| {
        let image = table.end_save();
        assert_eq!(image.now(), 10);
        assert_eq!((image.count_until(key(0), 11), image.live()), (1, 2), "the image lacks what lived at its moment");
    });
    let clock = role(|table| {
        table.advance_to(11);
        table.advance_to(11);
    });
    (table, vec![saver, clock], role(|table| assert_eq!(table.live_len(), 1)))
}
model! {
    save_against_a_sweep, at least 20,
    fails with "the image lacks what lived at its moment"
    for [SweepKeepsNothing]
}
