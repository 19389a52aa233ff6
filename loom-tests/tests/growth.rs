//! A table that is doubled and halved while others use it: no copy is lost, doubled or missed, and no table is freed
//! while it is read.
//!
//! The table has two buckets at first, of two slots, and then four and eight. At first all keys have the same two buckets.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Growable, GrowableKey, Replaced, Seeded};
use common::Role;

type Model<Shared = Growable> = (Arc<Shared>, Vec<Role<Shared>>, Role<Shared>);

/// Keys of different classes, which have the same two buckets in each table.
fn keys<const N: usize>() -> [GrowableKey; N] {
    core::array::from_fn(|nth| GrowableKey::new(0, 4, nth))
}

/// A filter that has grown this many times. These keys are in the first of their buckets, and those in the second.
fn filter(growths: usize, firsts: &[GrowableKey], seconds: &[GrowableKey]) -> Growable {
    let filter = Growable::new();
    (0..growths).for_each(|_| filter.grow());
    firsts.iter().for_each(|&key| filter.place(key, false));
    seconds.iter().for_each(|&key| filter.place(key, true));
    filter
}

fn role(run: impl FnOnce(&Growable) + Send + 'static) -> Role<Growable> {
    Box::new(run)
}

fn finds(key: GrowableKey) -> Role<Growable> {
    role(move |filter| assert!(filter.contains(key), "a present key was missed"))
}

/// Splits a bucket, as an insert does.
fn helper() -> Role<Growable> {
    role(Growable::help)
}

/// Begins to grow, and splits the first buckets.
fn grower(splits: usize) -> Role<Growable> {
    role(move |filter| {
        filter.begin_growth();
        (0..splits).for_each(|_| filter.help());
    })
}

/// Checks that at the end each of these keys is in once, and that nothing else is in.
fn ends_with<const N: usize>(keys: [GrowableKey; N]) -> Role<Growable> {
    role(move |filter| {
        assert!(keys.iter().all(|&key| filter.count(key) == 1), "an item was lost or doubled");
        assert!(keys.iter().all(|&key| filter.contains(key)), "a present key was missed");
        assert_eq!(filter.len(), keys.len(), "an item was lost or doubled");
    })
}

/// A lookup begins before the growth, or amid it. Only one of the two buckets is split.
fn lookup_beside_a_split() -> Model {
    let [x] = keys();
    (Arc::new(filter(0, &[x], &[])), vec![grower(1), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_split, at least 20,
    fails with "a present key was missed"
    for [SplitMarksFirst, LookupIgnoresNext]
}

/// The same for a key in a batch.
fn batch_beside_a_split() -> Model {
    let [x, absent] = keys();
    let looks = role(move |filter| {
        assert_eq!(filter.contains_batch(&[x, absent]), [true, false], "a present key was missed");
    });
    (Arc::new(filter(0, &[x], &[])), vec![grower(1), looks], ends_with([x]))
}
model! {
    batch_beside_a_split, at least 20, preemptions 3,
    fails with "a present key was missed"
    for [SplitMarksFirst, LookupIgnoresNext]
}

/// A lookup begins before the growth, or amid it. The first bucket is split, and the key is in the second.
fn lookup_beside_the_end_of_a_growth() -> Model {
    let [x] = keys();
    (Arc::new(filter(0, &[], &[x])), vec![grower(2), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_the_end_of_a_growth, at least 20, preemptions 3,
    fails with "a present key was missed"
    for [LookupIgnoresNext, SwitchesTooSoon]
}

/// Two threads split a bucket each. One of them sees that all are split, and then looks for what the other has moved.
fn two_helpers() -> Model {
    let [x, y] = keys();
    let filter = filter(0, &[x], &[y]);
    filter.begin_growth();
    let helper = || {
        role(move |filter| {
            filter.help();
            assert!(filter.contains(x) && filter.contains(y), "a present key was missed");
        })
    };
    (Arc::new(filter), vec![helper(), helper()], ends_with([x, y]))
}
model! {
    two_helpers, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [SplitMarksFirst]
}

/// A lookup begins amid a growth, and ends when another growth has moved the key on.
fn lookup_beside_a_further_growth() -> Model {
    let [x] = keys();
    let filter = filter(0, &[x], &[]);
    filter.begin_growth();
    (Arc::new(filter), vec![role(Growable::grow), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_further_growth, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [LookupIgnoresLaterNext]
}

/// A helper has looked for its tables just before one growth ends and another one begins. It moves nothing before others
/// know of that.
fn helper_beside_a_further_growth() -> Model {
    let [x] = keys();
    let filter = filter(0, &[x], &[]);
    filter.begin_growth();
    (Arc::new(filter), vec![role(Growable::finish_and_begin_growth), helper(), finds(x)], ends_with([x]))
}
model! {
    helper_beside_a_further_growth, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [SplitsTooEarly]
}

/// The same for each operation that changes a class, or counts its copies.
fn writer_beside_a_further_growth(ask: fn(&Growable, GrowableKey)) -> Model {
    let [x] = keys();
    let filter = filter(0, &[x], &[]);
    filter.begin_growth();
    let finally = role(move |filter| assert_eq!(filter.count(x), filter.len(), "an item was lost or doubled"));
    (Arc::new(filter), vec![role(Growable::grow), role(move |filter| ask(filter, x))], finally)
}

fn count_beside_a_further_growth() -> Model {
    writer_beside_a_further_growth(|filter, x| assert_eq!(filter.count(x), 1, "a present key was missed"))
}
model! {
    count_beside_a_further_growth, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [WriterIgnoresLaterNext]
}

fn remove_beside_a_further_growth() -> Model {
    writer_beside_a_further_growth(|filter, x| assert!(filter.remove(x), "a present key was missed"))
}
model! {
    remove_beside_a_further_growth, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [WriterIgnoresLaterNext]
}

/// A bucket changes while it is split.
fn insert_beside_a_split() -> Model {
    let [x, y] = keys();
    let inserter = role(move |filter| filter.insert(y).expect("there is room"));
    (Arc::new(filter(0, &[], &[x])), vec![grower(1), inserter], ends_with([x, y]))
}
model! {
    insert_beside_a_split, at least 20, preemptions 3,
    fails with "an item was lost or doubled"
    for [SplitOverwrites]
}

/// An insert adds to a bucket of the larger table, and another thread fills that.
fn insert_against_a_helper() -> Model {
    let [x, y] = keys();
    let filter = filter(0, &[], &[x]);
    filter.begin_growth();
    let inserter = role(move |filter| filter.insert(y).expect("there is room"));
    (Arc::new(filter), vec![helper(), inserter], ends_with([x, y]))
}
model! {
    insert_against_a_helper, at least 20, preemptions 3,
    fails with "an item was lost or doubled"
    for [SplitWithoutLock, WriterBringsNothing]
}

/// A key is removed while its bucket is split. Then the same thread asks about it.
fn after_a_removal_beside_a_split(ask: fn(&Growable, GrowableKey), left: usize) -> Model {
    let [x] = keys();
    let filter = filter(0, &[x], &[]);
    let remover = role(move |filter| {
        assert!(filter.remove(x), "a present key was missed");
        ask(filter, x);
    });
    let finally = role(move |filter| {
        assert_eq!((filter.count(x), filter.len()), (left, left), "an item was lost or doubled");
    });
    (Arc::new(filter), vec![grower(1), remover], finally)
}

fn lookup_after_a_removal() -> Model {
    after_a_removal_beside_a_split(|filter, x| assert!(!filter.contains(x), "a removed key is there"), 0)
}
model! {
    lookup_after_a_removal, at least 20, preemptions 3,
    fails with "a removed key is there"
    for [LookupTooEarly]
}

fn remove_after_a_removal() -> Model {
    after_a_removal_beside_a_split(|filter, x| assert!(!filter.remove(x), "a removed key is there"), 0)
}
model! {
    remove_after_a_removal, at least 20, preemptions 3,
    fails with "a removed key is there"
    for [WriterBringsNothing]
}

fn count_after_a_removal() -> Model {
    after_a_removal_beside_a_split(|filter, x| assert_eq!(filter.count(x), 0, "a removed key is there"), 0)
}
model! {
    count_after_a_removal, at least 20, preemptions 3,
    fails with "a removed key is there"
    for [WriterBringsNothing]
}

fn insert_if_absent_after_a_removal() -> Model {
    let ask = |filter: &Growable, x| assert_eq!(filter.insert_if_absent(x), Ok(true), "a removed key is there");
    after_a_removal_beside_a_split(ask, 1)
}
model! {
    insert_if_absent_after_a_removal, at least 20, preemptions 3,
    fails with "an item was lost or doubled"
    for [WriterBringsNothing]
}

/// Two threads add the same absent key, and the filter grows meanwhile. Exactly one call returns *true*.
fn two_insert_if_absent() -> Model {
    let [x] = keys();
    let added = Arc::new(AtomicUsize::new(0));
    let adder = |key: GrowableKey, grows: bool| {
        let added = Arc::clone(&added);
        role(move |filter| {
            if grows {
                filter.begin_growth();
            }
            let new = filter.insert_if_absent(key).expect("there is room");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        })
    };
    let roles = vec![adder(x, true), adder(x, false)];
    let ends = ends_with([x]);
    let finally = role(move |filter| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        ends(filter);
    });
    (Arc::new(filter(0, &[], &[])), roles, finally)
}
model! {
    two_insert_if_absent, at least 20, preemptions 2,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutLock]
}

/// Two threads find the table full. One of them begins to grow, and both go on in one larger table.
fn two_that_find_the_table_full() -> Model {
    let [a, b, c, d] = keys();
    let grower = || {
        role(|filter| {
            filter.begin_growth_unless_begun();
            filter.help();
        })
    };
    (Arc::new(filter(0, &[a, b], &[c, d])), vec![grower(), grower()], ends_with([a, b, c, d]))
}
model! {
    two_that_find_the_table_full, at least 40, preemptions 2,
    fails with "an item was lost or doubled"
    for [ResizeWithoutLock]
}

/// The four buckets become eight. An insert makes room in the larger table: it moves `y` there, to a bucket that is
/// yet to be filled.
fn search_for_room_in_the_larger_table() -> Model {
    let [a, b, c, z] = keys();
    let y = GrowableKey::new(0, 6, 0);
    let filter = filter(1, &[y, a], &[b, c]);
    filter.begin_growth();
    let inserter = role(move |filter| filter.insert(z).expect("`y` can be moved"));
    (Arc::new(filter), vec![finds(y), inserter], ends_with([a, b, c, y, z]))
}
model! {
    search_for_room_in_the_larger_table, at least 20, preemptions 2,
    fails with "an item was lost or doubled"
    for [SearchBringsNothing]
}

/// An insert moves a key to make room, and the bucket that it leaves is split.
fn relocation_in_a_table_that_is_replaced() -> Model {
    let [x] = keys();
    (Arc::new(filter(1, &[x], &[])), vec![grower(1), role(move |filter| _ = filter.relocate(x, false))], ends_with([x]))
}
model! {
    relocation_in_a_table_that_is_replaced, at least 20, preemptions 2,
    fails with "an item was lost or doubled"
    for [RelocateOutdated]
}

/// A key is moved to a smaller table.
fn lookup_beside_a_shrink() -> Model {
    let [x] = keys();
    (Arc::new(filter(1, &[x], &[])), vec![role(Growable::shrink), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_shrink, at least 20, preemptions 3,
    fails with "a present key was missed"
    for [LookupIgnoresNext]
}

/// A key is moved to a smaller table and back.
fn lookup_beside_a_shrink_that_is_undone() -> Model {
    let [x] = keys();
    (Arc::new(filter(1, &[x], &[])), vec![role(Growable::shrink_in_vain), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_shrink_that_is_undone, at least 20, preemptions 3,
    fails with "a present key was missed"
    for [MoveWithoutBump, MoveBumpsLate, LookupIgnoresNext, UndoEndsTooSoon]
}

/// A key was inserted amid a shrink, into the smaller table. It is moved to the larger one, since the shrink is undone. A
/// lookup that reads the new count sees it there.
///
/// loom lets a `SeqCst` load pass over a `SeqCst` store only if a thread has stored something weaker before. So the larger
/// table is one whose words a split has stored.
fn lookup_that_counts_undone_shrinks() -> Model {
    let [x] = keys();
    let filter = filter(2, &[], &[]);
    filter.begin_shrink();
    filter.insert(x).expect("there is room");
    // There is no larger table. So the thread only ends the shrink.
    (Arc::new(filter), vec![role(Growable::grow_if_possible), finds(x)], ends_with([x]))
}
model! {
    lookup_that_counts_undone_shrinks, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [UndoEndsTooSoon]
}

fn remove_beside_a_shrink_that_is_undone() -> Model {
    let [x] = keys();
    let remover = role(move |filter| assert!(filter.remove(x), "a present key was missed"));
    (Arc::new(filter(1, &[x], &[])), vec![role(Growable::shrink_in_vain), remover], ends_with([]))
}
model! {
    remove_beside_a_shrink_that_is_undone, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [UndoEndsTooSoon]
}

/// After that it is moved to yet another table. A removal does not take that for the one that was given up.
fn remove_beside_two_shrinks() -> Model {
    let [x] = keys();
    let remover = role(move |filter| assert!(filter.remove(x), "a present key was missed"));
    let shrinker = role(|filter| {
        filter.shrink_in_vain();
        filter.shrink();
    });
    (Arc::new(filter(1, &[x], &[])), vec![shrinker, remover], ends_with([]))
}
model! {
    remove_beside_two_shrinks, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [WriterIgnoresLaterNext]
}

/// A key is added to a bucket that is being emptied.
fn insert_beside_a_shrink() -> Model {
    let [x, y] = keys();
    let inserter = role(move |filter| filter.insert(y).expect("there is room"));
    (Arc::new(filter(1, &[x], &[])), vec![role(Growable::shrink), inserter], ends_with([x, y]))
}
model! {
    insert_beside_a_shrink, at least 20, preemptions 2,
    fails with "an item was lost or doubled"
    for [SplitOverwrites]
}

/// A save has begun (see `save.rs`). The image has the key, which is moved meanwhile.
fn save_beside(growths: usize, resize: Role<Growable>) -> Model {
    let [x] = keys();
    let filter = filter(growths, &[x], &[]);
    let image = filter.image();
    let saver = role(move |_| assert_eq!(image.copies(x), 1, "an item is in the image too few or too many times"));
    (Arc::new(filter), vec![saver, resize], ends_with([x]))
}

fn save_beside_a_growth() -> Model {
    save_beside(0, grower(2))
}
model! {
    save_beside_a_growth, at least 20, preemptions 3,
    fails with "an item is in the image too few or too many times"
    for [SplitSetsNothingAside]
}

fn save_beside_a_shrink() -> Model {
    save_beside(1, role(Growable::shrink))
}
model! {
    save_beside_a_shrink, at least 20, preemptions 2,
    fails with "an item is in the image too few or too many times"
    for [RelocateSetsNoSourceAside]
}

/// Each thread inserts a key and then looks for the other's. One of them begins to grow before that. At least
/// one finds the other's key.
fn inserts_that_look_for_each_other() -> Model {
    let [x, y] = keys();
    let found = Arc::new(AtomicUsize::new(0));
    let seeker = |grows: bool, own: GrowableKey, other: GrowableKey| {
        let found = Arc::clone(&found);
        role(move |filter| {
            if grows {
                filter.begin_growth();
            }
            filter.insert(own).expect("there is room");
            found.fetch_add(usize::from(filter.contains(other)), Ordering::Relaxed);
        })
    };
    let roles = vec![seeker(true, x, y), seeker(false, y, x)];
    let ends = ends_with([x, y]);
    let finally = role(move |filter| {
        assert!(found.load(Ordering::Relaxed) > 0, "neither has seen the other");
        ends(filter);
    });
    (Arc::new(filter(0, &[], &[])), roles, finally)
}
model! {
    inserts_that_look_for_each_other, at least 20, preemptions 2,
    fails if an ordering is weaker
}

/// A value is replaced and freed while a thread reads it.
fn a_value_that_is_read() -> Model<Replaced> {
    let roles: Vec<Role<Replaced>> = vec![Box::new(Replaced::replace), Box::new(Replaced::read)];
    (Arc::new(Replaced::new()), roles, Box::new(Replaced::read))
}
model! {
    a_value_that_is_read, at least 20,
    fails with "it was freed while it was read"
    for [HoldWithoutRecheck, FreesWhileRead]
}
