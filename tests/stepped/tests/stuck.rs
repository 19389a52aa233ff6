//! A filter that grows, in the one state in which a resize can neither be ended nor undone: a further copy of a key came
//! in during a shrink, and neither table has room for all copies.
//!
//! No operation may do harm there, and it ends as soon as there is room.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use ahash::RandomState;
use ccf_steps::model::{Step, before_each_step};
use ccf_steps::{GrowableCuckooFilter, InsertError, ReserveError};

type Filter = GrowableCuckooFilter<u64, RandomState>;

/// The key with many copies.
const X: u64 = 0;

/// How many of them the two buckets of the largest table hold.
const SLOTS: usize = 10;

/// A filter with both tables. Its only key is `X`, and there is one copy more than fits in the larger one.
fn stuck() -> Arc<Filter> {
    // With a random hasher, one of the other keys may have its two buckets among those that the copies fill.
    let hasher = RandomState::with_seeds(1, 2, 3, 4);
    let filter =
        Arc::new(Filter::builder_with_hasher(hasher).capacity(100).max_capacity(5_000).build().expect("valid"));
    filter.reserve(filter.max_capacity()).expect("there is memory");
    (0..SLOTS).for_each(|_| filter.insert(&X).expect("there is room"));
    assert!(filter.insert(&X).is_err() && filter.capacity() >= 5_000, "{filter:?}");

    // A thread begins to insert one more, and reads that no resize is under way.
    let ((stops, stopped), (lets_go, let_go), inserter) = (channel(), channel(), Arc::clone(&filter));
    let inserter = thread::spawn(move || {
        before_step(1, move || {
            stops.send(()).expect("the other thread waits for this");
            let_go.recv().expect("the other thread sends this");
        });
        inserter.insert(&X)
    });
    stopped.recv().expect("it takes more than one step");
    // It goes on when a shrink has moved the first copy.
    let (inserter, moving, shrinker) = (Cell::new(Some(inserter)), Cell::new(false), Arc::clone(&filter));
    let asks = Cell::new(false);
    before_each_step(Some(Rc::new(move |step| {
        if asks.replace(true) {
            return;
        }
        match step {
            Step::Lock => moving.set(shrinker.tables() == 2),
            Step::Unlock if moving.get() => {
                if let Some(inserter) = inserter.take() {
                    lets_go.send(()).expect("it waits for this");
                    assert_eq!(inserter.join().expect("it does not fail"), Ok(()), "a copy has made room");
                }
            }
            _ => {}
        }
        asks.set(false);
    })));
    filter.shrink_to_fit();
    before_each_step(None);
    assert_eq!((filter.tables(), filter.len(), filter.count(&X)), (2, SLOTS + 1, SLOTS + 1), "{filter:?}");
    filter
}

/// Does `at` before the `nth` step of this thread.
fn before_step(nth: usize, at: impl Fn() + 'static) {
    let taken = Cell::new(0);
    before_each_step(Some(Rc::new(move |_| {
        if taken.replace(taken.get() + 1) == nth {
            at();
        }
    })));
}

/// Checks that a filter that was stuck is so no longer, and does all that a filter does.
fn works(filter: &Filter, copies: usize) {
    filter.reserve(1).expect("there is room, and a resize ends");
    assert_eq!((filter.tables(), filter.len(), filter.count(&X)), (1, copies, copies), "{filter:?}");
    (1..=2_000).for_each(|key| filter.insert(&key).expect("there is room"));
    assert!((1..=2_000).all(|key| filter.contains(&key) && filter.count(&key) > 0));
    let mut bytes = Vec::new();
    filter.save(&mut bytes).expect("no resize is under way");
    let loaded = Filter::load(&bytes[..], filter.hasher().clone(), usize::MAX).expect("it was just saved");
    assert_eq!(
        (loaded.len(), loaded.digest().expect("there is memory")),
        (filter.len(), filter.digest().expect("as above"))
    );
    assert!((1..=2_000).all(|key| filter.remove(&key)));
    (0..copies).for_each(|_| assert!(filter.remove(&X)));
    filter.shrink_to_fit();
    assert!(
        filter.is_empty() && filter.capacity() < 1_000 && !(0..=2_000).any(|key| filter.contains(&key)),
        "{filter:?}"
    );
}

#[test]
fn lookups_and_counts_are_right() {
    let filter = stuck();
    let mut found = Vec::new();
    filter.contains_batch(&[X, 1, X, 2], &mut found);
    assert_eq!(found, [true, false, true, false]);
    assert!(filter.contains(&X) && !filter.contains(&1));
    assert_eq!((filter.count(&X), filter.count(&1), filter.len()), (SLOTS + 1, 0, SLOTS + 1));
}

#[test]
fn other_keys_come_and_go() {
    let filter = stuck();
    for key in 1..=1_000 {
        filter.insert(&key).expect("there is room for distinct keys");
    }
    assert_eq!(filter.insert_if_absent(&1_001), Ok(true));
    assert_eq!(filter.insert_if_absent(&1_000), Ok(false));
    assert_eq!(filter.insert_batch(&(1_002..=1_100).collect::<Vec<_>>()), Ok(99));
    assert_eq!(filter.len(), SLOTS + 1 + 1_100);
    assert!((1..=1_100).all(|key| filter.contains(&key) && filter.count(&key) == 1));
    let mut removed = Vec::new();
    filter.remove_batch(&(1_001..=1_100).collect::<Vec<_>>(), &mut removed);
    assert!(removed.len() == 100 && removed.iter().all(|&removed| removed));
    assert!((1..=1_000).all(|key| filter.remove(&key)) && !filter.remove(&1));
    assert_eq!((filter.len(), filter.count(&X)), (SLOTS + 1, SLOTS + 1));
}

#[test]
fn a_further_copy_is_refused_and_changes_nothing() {
    let filter = stuck();
    let error = filter.insert(&X).expect_err("there is no room");
    assert!(matches!(error, InsertError::Full { .. } | InsertError::TooManyCopies { .. }), "{error}");
    assert_eq!(filter.insert_if_absent(&X), Ok(false));
    assert_eq!(filter.insert_batch(&[1, X, 2]).expect_err("there is no room for the second").index, 1);
    assert_eq!((filter.len(), filter.count(&X), filter.count(&1)), (SLOTS + 2, SLOTS + 1, 1));
    assert_eq!(filter.stats().inserts_refused, 3, "with that of the beginning");
}

#[test]
fn a_removal_makes_room_and_the_resize_is_undone() {
    let filter = stuck();
    assert!(filter.remove(&X));
    assert_eq!((filter.len(), filter.count(&X)), (SLOTS, SLOTS));
    works(&filter, SLOTS);
    let filter = stuck();
    (0..=SLOTS).for_each(|_| assert!(filter.remove(&X)));
    assert!(!filter.remove(&X) && !filter.contains(&X) && filter.is_empty());
    works(&filter, 0);
}

#[test]
fn what_needs_one_table_is_refused_and_changes_nothing() {
    let filter = stuck();
    let error = filter.begin_save().expect_err("there are two tables");
    assert!(error.kind() == std::io::ErrorKind::Other && error.to_string().contains("remove some keys"), "{error}");
    let error = filter.digest().expect_err("there are two tables");
    assert!(error.kind() == std::io::ErrorKind::Other && error.to_string().contains("remove some keys"), "{error}");
    filter.shrink_to_fit();
    filter.shrink_to(4_000);
    assert_eq!((filter.tables(), filter.len(), filter.count(&X)), (2, SLOTS + 1, SLOTS + 1));
    assert!(filter.remove(&X));
    works(&filter, SLOTS);
}

/// The filter can have more keys, so it is not that the capacity is too large.
#[test]
fn reserve_fails_with_an_error_that_fits() {
    let filter = stuck();
    for additional in [1, 100, 4_000] {
        let error = filter.reserve(additional).expect_err("a resize can neither be ended nor undone");
        assert!(!matches!(error, ReserveError::CapacityTooLarge { .. }), "{error}");
    }
    assert_eq!((filter.tables(), filter.len(), filter.count(&X)), (2, SLOTS + 1, SLOTS + 1));
}

#[test]
fn a_merge_fails_with_an_error_that_fits() {
    let filter = stuck();
    let other = filter.empty_like().expect("there is memory");
    other.insert(&1).expect("there is room");
    assert_eq!(filter.absorb(&other), Ok(1), "it takes what it has room for");
    let error = other.absorb(&filter).expect_err("it cannot be read");
    assert!(!error.to_string().contains("memory"), "{error}");
    assert_eq!((filter.len(), filter.count(&X), filter.count(&1), other.len()), (SLOTS + 2, SLOTS + 1, 1, 1));
}

#[test]
fn clear_empties_it_and_all_works_again() {
    let filter = stuck();
    (1..=100).for_each(|key| filter.insert(&key).expect("there is room"));
    filter.clear();
    assert_eq!((filter.len(), filter.count(&X), filter.count(&1)), (0, 0, 0), "{filter:?}");
    assert!(!(0..=100).any(|key| filter.contains(&key)));
    filter.insert(&X).expect("it is empty");
    works(&filter, 1);
}
