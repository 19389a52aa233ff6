use std::thread;

use super::*;
use crate::growth::plan::{LOAD_WHILE_GROWING, Requirements};
use crate::sync::sizes::LEAST_BUCKETS;
use crate::table::image::read::TableImage;
use crate::word::classes::Classes;
use crate::word::geometry::mixed;

/// A table that can grow to 10,000 items, without any.
fn small_table(rate: f64) -> GrowingTable {
    let load_while_growing = LOAD_WHILE_GROWING;
    let wanted = Requirements {
        capacity: 0,
        max_capacity: Some(10_000),
        expected: None,
        rate,
        encoding: None,
        load_while_growing,
    };
    GrowingTable::new(Plan::new(wanted).expect("it is possible")).expect("some kilobytes")
}

/// Splits a group. No other thread changes the size.
fn split(table: &GrowingTable) -> Result<bool, GrowableInsertError> {
    table.split_if(|| Some(table.resizing().lock.lock()), || true)
}

/// Whatever led to its size: splits, or merges.
#[test]
#[cfg_attr(miri, ignore = "hundreds of tables")]
fn a_table_that_has_another_size_is_like_a_new_one_of_that_size() {
    for rate in [0.1, 0.001] {
        let table = small_table(rate);
        let plan = table.plan;
        let is_like_new = |memory: bool| {
            let new = GrowingTable::of_buckets(plan, table.state().buckets()).expect("some kilobytes");
            assert_eq!((table.state(), table.capacity()), (new.state(), new.capacity()));
            assert!(!memory || table.memory_usage() == new.memory_usage(), "{table:?}");
        };
        is_like_new(true);
        while split(&table).is_ok() {
            is_like_new(true);
        }
        assert_eq!(table.state().buckets(), plan.largest);
        // On the heap, what was allocated stays.
        while table.merge_if(|| true) {
            is_like_new(false);
        }
        assert_eq!(table.state().buckets(), plan.first);
    }
}

/// A table has a stripe for 16 of its first buckets: 32 at least, unless it stays too small for these, and 1,024 at most.
/// Its counters have as many shards as those of a table of 16 times as many buckets.
#[test]
fn stripes_and_counters_are_made_for_the_first_size() {
    for (first, largest, stripes, counted_by) in [
        (1 << 5, 1 << 5, 2, 1 << 5),
        (1 << 5, 1 << 8, 16, 1 << 8),
        (1 << 5, 1 << 20, 32, 1 << 9),
        (1 << 10, 1 << 20, 64, 1 << 14),
        (1 << 13, 1 << 20, 512, 1 << 15),
        (1 << 20, 1 << 20, 1024, 1 << 15),
    ] {
        let plan = Plan { largest, ..Plan::of(Classes::new(12, 20), first, None) };
        let made = (GrowingTable::stripes_of(&plan), GrowingTable::counted_by(&plan));
        assert_eq!(made, (stripes, counted_by), "{first}, {largest}");
    }
}

/// In the order in which all threads take them: else a relocation and a split could wait for each other.
#[test]
fn the_gates_of_both_sides_are_locked_in_order() {
    let table = GrowingTable::new(Plan::of(Classes::new(12, 20), MOST_GATES, None)).expect("some kilobytes");
    let waits = || table.counters().counts().lock_waits;
    for class in (0..if cfg!(miri) { 2 } else { 50 }).map(|key| table.plan.classes.of(mixed(key))) {
        let placed = table.placed(class, table.state());
        let mut gates = both(placed.numbers, gate_of);
        gates.sort_unstable();
        let [low, high] = both(gates, |nth| &table.gates[nth]);
        let before = waits();
        thread::scope(|scope| {
            let held = low.lock();
            let other = scope.spawn(|| drop(table.enter_both(placed)));
            while waits() == before && !other.is_finished() {
                thread::yield_now();
            }
            assert!(!other.is_finished() && high.try_lock().is_some(), "it waits for {gates:?}, and has none");
            drop(held);
        });
        let _gates = table.enter_both(placed);
        assert!(low.try_lock().is_none() && high.try_lock().is_none(), "it has both of {gates:?}");
    }
}

/// In the order in which all threads take them. The two buckets of a class have two gates, and those of a group have no others.
#[test]
fn the_gates_of_a_split_are_in_order_and_are_those_of_its_buckets() {
    for level in LEAST_BUCKETS.ilog2()..18 {
        for first in (0..1 << level).step_by(GROUP) {
            let pairs = [first, first + (1 << level)].map(|first| [gate_of(first), gate_of(first + 1)]);
            assert_eq!([pairs[0][1], pairs[1][1]], [pairs[0][0] + 1, pairs[1][0] + 1], "level {level}, {first}");
            assert!(pairs[0][0] <= pairs[1][0] && pairs[1][1] < MOST_GATES, "level {level}, {first}");
            for number in first..first + GROUP {
                let gates = [number, number + (1 << level)].map(gate_of);
                assert_eq!(gates, [pairs[0][number % 2], pairs[1][number % 2]], "level {level}, {number}");
            }
        }
    }
}

/// A table of 128 buckets that holds these hashes, and the words of its last group before that was split.
fn table_and_whole_words(hashes: &[u64]) -> (GrowingTable, [Bucket; GROUP]) {
    let table = small_table(0.001);
    hashes.iter().for_each(|&hash| table.insert(hash).expect("there is room"));
    while table.state().buckets() < 96 {
        split(&table).expect("it may grow");
    }
    let state = table.state();
    assert_eq!((state.level(), state.split()), (6, 32), "it has not grown by itself");
    let whole = core::array::from_fn(|nth| table.load(32 + nth));
    split(&table).expect("it may grow");
    (table, whole)
}

/// The thread has stored some buckets of a group, and not the others.
#[test]
fn a_split_that_a_thread_has_left_is_undone() {
    let hashes: Vec<u64> = (0..100).map(mixed).collect();
    let (table, whole) = table_and_whole_words(&hashes);
    for (moving, word) in table.moving().iter().zip(whole) {
        moving.store(word.0, Ordering::Relaxed);
    }
    table.change_state(State::of_buckets(96).moving());
    // (What it has stored in the others is right, but at another depth.)
    (0..GROUP / 2).for_each(|nth| _ = table.store(32 + nth, Bucket::default()));
    assert!(hashes.iter().all(|&hash| table.contains(hash)));
    assert!(hashes.iter().all(|&hash| table.count(hash) == 1 && table.remove(hash)), "{:?}", table.state());
    assert_eq!((table.state().is_moving(), table.len()), (false, 0));
}

/// The thread has copied the words for the saves, and has stored nothing yet. A save that began before has the words as
/// they were.
#[test]
fn a_merge_that_a_thread_has_left_is_completed() {
    let hashes: Vec<u64> = (0..100).map(mixed).collect();
    let (table, whole) = table_and_whole_words(&hashes);
    let begin = || TableImage::begin(&table).expect("some kilobytes");
    let digest = |image: TableImage<'_>| image.digest(FilterKind::Growable, 0).expect("some kilobytes");
    let (before, image) = (digest(begin()), begin());
    let spare = Spare::default();
    table.running_saves().fill(&spare, WORDS_PER_SPLIT);
    for (nth, (moving, word)) in table.moving().iter().zip(whole).enumerate() {
        table.copy_for_saves(32 + nth, Some(&spare));
        moving.store(word.0, Ordering::Relaxed);
    }
    table.change_state(State::of_buckets(96).moving());
    assert!(hashes.iter().all(|&hash| table.contains(hash)));
    // The next change of the size completes it first.
    split(&table).expect("it may grow");
    assert_eq!(table.state().buckets(), 128);
    assert!(hashes.iter().all(|&hash| table.count(hash) == 1));
    assert_eq!((digest(image), digest(begin())), (before, before));
}
