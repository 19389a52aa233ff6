//! A table that is split and merged a bucket at a time while others use it: no copy is lost, doubled or missed.
//!
//! The table has two buckets of two slots at first. The first split is of bucket 0, into 0 and 2, and the second of bucket
//! 1, into 1 and 3. All keys have the same two buckets at each size.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccf_loom::model::{Fault, Growable, GrowableKey, Seeded};
use common::Role;

type Model = (Arc<Growable>, Vec<Role<Growable>>, Role<Growable>);

/// Keys of different classes, which a split moves to the bucket that comes in.
fn keys<const N: usize>() -> [GrowableKey; N] {
    core::array::from_fn(|nth| GrowableKey::new(6, 7, nth))
}

/// Keys of different classes, which a split leaves in their buckets, with other bits in their slots.
fn keys_that_stay<const N: usize>() -> [GrowableKey; N] {
    core::array::from_fn(|nth| GrowableKey::new(4, 5, nth))
}

/// A table of so many buckets. These keys are on their even sides, and those on their odd ones.
fn filter(buckets: usize, even: &[GrowableKey], odd: &[GrowableKey]) -> Arc<Growable> {
    let filter = Growable::of_buckets(buckets);
    even.iter().for_each(|&key| filter.place(key, false));
    odd.iter().for_each(|&key| filter.place(key, true));
    Arc::new(filter)
}

fn role(run: impl FnOnce(&Growable) + Send + 'static) -> Role<Growable> {
    Box::new(run)
}

fn finds(key: GrowableKey) -> Role<Growable> {
    role(move |filter| assert!(filter.contains(key), "a present key was missed"))
}

fn splits() -> Role<Growable> {
    role(Growable::split)
}

fn merges() -> Role<Growable> {
    role(Growable::merge)
}

fn inserts(key: GrowableKey) -> Role<Growable> {
    role(move |filter| filter.insert(key).expect("there is room"))
}

/// Checks that at the end each of these keys is in once, and that nothing else is in.
fn ends_with<const N: usize>(keys: [GrowableKey; N]) -> Role<Growable> {
    role(move |filter| {
        assert!(keys.iter().all(|&key| filter.count(key) == 1), "an item was lost or doubled");
        assert!(keys.iter().all(|&key| filter.contains(key)), "a present key was missed");
        assert_eq!(filter.len(), keys.len(), "an item was lost or doubled");
    })
}

fn lookup_beside_a_split() -> Model {
    let [x] = keys();
    (filter(2, &[x], &[]), vec![splits(), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_split, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [SplitsUnannounced, LookupIgnoresMoving, LookupWithoutEpoch]
}

/// The same for a key in a batch.
fn batch_beside_a_split() -> Model {
    let [x, absent] = keys();
    let looks = role(move |filter| {
        assert_eq!(filter.contains_batch(&[x, absent]), [true, false], "a present key was missed");
    });
    (filter(2, &[x], &[]), vec![splits(), looks], ends_with([x]))
}
model! {
    batch_beside_a_split, at least 20, preemptions 2 in the gate else 3,
    fails with "a present key was missed"
    for [SplitsUnannounced, LookupWithoutEpoch]
}

/// An absent key is not found, whatever a bucket looks like while it is split: the other key's bits are not taken for its.
fn absent_key_beside_a_split() -> Model {
    let ([x], absent) = (keys(), GrowableKey::new(2, 3, 0));
    let looks = role(move |filter| assert!(!filter.contains(absent), "an absent key was found"));
    (filter(2, &[x], &[]), vec![splits(), looks], ends_with([x]))
}
model! {
    absent_key_beside_a_split, at least 20, preemptions 2 in the gate,
    fails if an ordering is weaker
}

fn lookup_beside_a_merge() -> Model {
    let [x] = keys_that_stay();
    (filter(3, &[x], &[]), vec![merges(), finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_merge, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [LookupIgnoresMoving, LookupWithoutEpoch]
}

/// Two readers agree on the order in which two keys come in, although one of them may have read the state before the
/// first key came in. The buckets of the second key are not those that are split.
fn readers_agree_beside_a_split() -> Model {
    let ([x], y) = (keys(), GrowableKey::new(4, 5, 0));
    let seen: [Arc<[AtomicUsize; 2]>; 2] = core::array::from_fn(|_| Arc::default());
    let reads = |nth: usize, order: [usize; 2]| {
        let seen = Arc::clone(&seen[nth]);
        role(move |filter| {
            for key in order {
                seen[key].store(filter.contains([x, y][key]).into(), Ordering::Relaxed);
            }
        })
    };
    let first = role(move |filter| {
        filter.split();
        filter.place(x, false);
    });
    // In this order, one after the other, only a read of an old value can be wrong.
    let roles = vec![first, reads(0, [0, 1]), role(move |filter| filter.place(y, true)), reads(1, [1, 0])];
    let agree = role(move |_| {
        let [first, second] = [0, 1].map(|nth| [0, 1].map(|key| seen[nth][key].load(Ordering::Relaxed)));
        assert!(first != [1, 0] || second != [0, 1], "two readers disagree on which key came in first");
    });
    (filter(2, &[], &[]), roles, agree)
}
model! {
    readers_agree_beside_a_split, at least 20, preemptions 0,
    fails if an ordering is weaker
}

/// The state is the same before and after; the epoch is not.
fn lookup_beside_a_state_that_comes_round() -> Model {
    let [x] = keys();
    let resizer = role(|filter| {
        filter.split();
        filter.merge();
    });
    (filter(2, &[x], &[]), vec![resizer, finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_state_that_comes_round, at least 20, preemptions 2 in the gate else 3,
    fails with "a present key was missed"
    for [LookupWithoutEpoch]
}

/// A copy moves from one side to the other, and a split moves it on.
fn lookup_beside_a_relocation_and_a_split(back: bool) -> Model {
    let [x] = keys();
    let mover = role(move |filter| assert!(filter.relocate(x, back), "no other thread moves it"));
    let filter = if back { filter(2, &[], &[x]) } else { filter(2, &[x], &[]) };
    (filter, vec![mover, splits(), finds(x)], ends_with([x]))
}

fn relocation_from_a_bucket_that_is_split() -> Model {
    lookup_beside_a_relocation_and_a_split(false)
}
model! {
    relocation_from_a_bucket_that_is_split, at least 20, preemptions 1 in the gate else 2,
    fails with "a present key was missed"
    for [LookupWithoutEpoch, RelocateClearsFirst]
}

fn relocation_to_a_bucket_that_is_split() -> Model {
    lookup_beside_a_relocation_and_a_split(true)
}
model! {
    relocation_to_a_bucket_that_is_split, at least 20, preemptions 1 in the gate else 2,
    fails with "a present key was missed"
    for [RelocateClearsFirst, RelocateWithoutGates]
}

/// Operations under the class's lock beside a split: the copies that they read are those of one moment.
fn writer_beside_a_split(ask: fn(&Growable, GrowableKey)) -> Model {
    let [x] = keys();
    let finally = role(move |filter| assert_eq!(filter.count(x), filter.len(), "an item was lost or doubled"));
    (filter(2, &[x], &[]), vec![splits(), role(move |filter| ask(filter, x))], finally)
}

fn count_beside_a_split() -> Model {
    writer_beside_a_split(|filter, x| assert_eq!(filter.count(x), 1, "a present key was missed"))
}
model! {
    count_beside_a_split, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [WriterWithoutEpoch]
}

fn remove_beside_a_split() -> Model {
    writer_beside_a_split(|filter, x| {
        assert!(filter.remove(x), "a present key was missed");
        assert!(!filter.contains(x), "a removed key is there");
    })
}
model! {
    remove_beside_a_split, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [WriterWithoutEpoch]
}

/// A copy is removed from a bucket that is split.
fn removal_of_what_a_split_moves() -> Model {
    let [x, y] = keys();
    let remover = role(move |filter| assert!(filter.remove(x), "a present key was missed"));
    (filter(2, &[x, y], &[]), vec![splits(), remover], ends_with([y]))
}
model! {
    removal_of_what_a_split_moves, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [TakesWithoutGate]
}

/// The bucket that the key is added to is empty, and the split leaves its word as it was.
fn insert_beside_a_split() -> Model {
    let [x] = keys();
    (filter(2, &[], &[]), vec![splits(), inserts(x)], ends_with([x]))
}
model! {
    insert_beside_a_split, at least 20,
    fails with "an item was lost or doubled"
    for [AddsWithoutGate, EntersFormerPlace]
}

/// The key is added to the bucket that is merged away, whose gate is its own.
fn insert_beside_a_merge() -> Model {
    let [x, y] = keys();
    let adder = role(move |filter| filter.place(y, false));
    (filter(3, &[x], &[]), vec![merges(), adder], ends_with([x, y]))
}
model! {
    insert_beside_a_merge, at least 20,
    fails with "an item was lost or doubled"
    for [AddsWithoutGate, EntersFormerPlace, LocksHalfTheGates]
}

/// A key is added to a bucket while that is emptied. The key that was in it does not come back.
fn clear_beside_an_insert() -> Model {
    let [x, y] = keys();
    let adder = role(move |filter| filter.place(y, false));
    let finally = role(move |filter| {
        assert_eq!(filter.count(x), 0, "an item outlived `clear`");
        assert_eq!(filter.len(), filter.count(y), "an item was lost or doubled");
    });
    (filter(2, &[x], &[]), vec![role(Growable::clear), adder], finally)
}
model! {
    clear_beside_an_insert, at least 20,
    fails with "an item outlived `clear`"
    for [ClearWithoutGates]
}

/// Two threads add the same absent key beside a split. Exactly one call returns *true*.
fn two_insert_if_absent() -> Model {
    let [x] = keys();
    let added = Arc::new(AtomicUsize::new(0));
    let adder = || {
        let added = Arc::clone(&added);
        role(move |filter| {
            let new = filter.insert_if_absent(x).expect("there is room");
            added.fetch_add(usize::from(new), Ordering::Relaxed);
        })
    };
    let roles = vec![adder(), adder(), splits()];
    let ends = ends_with([x]);
    let finally = role(move |filter| {
        assert_eq!(added.load(Ordering::Relaxed), 1, "exactly one adds it");
        ends(filter);
    });
    (filter(2, &[], &[]), roles, finally)
}
model! {
    two_insert_if_absent, at least 20, preemptions 1,
    fails with "exactly one adds it"
    for [InsertIfAbsentWithoutLock]
}

/// A save has begun. The image has the key, which is moved meanwhile.
fn save_beside(buckets: usize, [x]: [GrowableKey; 1], resize: Role<Growable>) -> Model {
    let filter = filter(buckets, &[x], &[]);
    filter.begin_save();
    let reader = role(move |filter| {
        assert_eq!(filter.copies_in_image(x), 1, "an item is in the image too few or too many times");
    });
    (filter, vec![reader, resize], ends_with([x]))
}

fn save_beside_a_split() -> Model {
    save_beside(2, keys(), splits())
}
model! {
    save_beside_a_split, at least 20,
    fails with "an item is in the image too few or too many times"
    for [SplitCopiesNothing]
}

/// The bucket that is merged away is split again before it is read.
fn save_beside_a_merge_and_a_split() -> Model {
    let resizer = role(|filter| {
        filter.merge();
        filter.split();
    });
    save_beside(3, keys_that_stay(), resizer)
}
model! {
    save_beside_a_merge_and_a_split, at least 20, preemptions 2,
    fails with "an item is in the image too few or too many times"
    for [SplitCopiesNothing]
}

/// A save's moment is before, after or between the splits of two buckets, and never amid one. If a bucket has come in
/// since the save asked for memory, it begins again, and keeps no gate for which the second split waits.
fn a_save_that_begins_beside_splits() -> Model {
    let [x] = keys();
    let resizer = role(|filter| {
        filter.split();
        filter.split();
    });
    let saver = role(move |filter| {
        filter.begin_save();
        assert_eq!(filter.copies_in_image(x), 1, "an item is in the image too few or too many times");
    });
    (filter(2, &[x], &[]), vec![saver, resizer], ends_with([x]))
}
model! {
    a_save_that_begins_beside_splits, at least 20, preemptions 2,
    // The split has got no memory for the words of this save, so it makes the save fail.
    fails with "a model has memory"
    for [SaveWithoutGates]
}

/// A key that is not in when a save has begun is not in its image. It is added to a bucket that has come in, and whose gate
/// has come in too.
fn insert_beside_a_save_that_begins() -> Model {
    let [x] = keys();
    let adder = role(move |filter| {
        filter.split();
        filter.place(x, false);
    });
    let saver = role(move |filter| {
        filter.begin_save();
        let is_in = filter.contains(x);
        assert!(filter.copies_in_image(x) <= usize::from(is_in), "an item is in the image too few or too many times");
    });
    (filter(2, &[], &[]), vec![adder, saver], ends_with([x]))
}
model! {
    insert_beside_a_save_that_begins, at least 20, preemptions 3,
    fails with "an item is in the image too few or too many times"
    for [SaveWithoutGates, SaveMissesNewGates]
}

/// Each thread inserts a key and then looks for the other's, and a bucket is split meanwhile. At least one finds the
/// other's key.
fn inserts_that_look_for_each_other() -> Model {
    let [x, y] = keys();
    let found = Arc::new(AtomicUsize::new(0));
    let seeker = |splits: bool, own: GrowableKey, other: GrowableKey| {
        let found = Arc::clone(&found);
        role(move |filter| {
            if splits {
                filter.split();
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
    (filter(2, &[], &[]), roles, finally)
}
model! {
    inserts_that_look_for_each_other, at least 20, preemptions 2,
    fails if an ordering is weaker
}

/// The system takes back the memory of a bucket that is merged away, while a lookup may still be about to read it.
fn lookup_beside_a_merge_that_gives_back() -> Model {
    let [x] = keys();
    let resizer = role(|filter| {
        filter.merge();
        filter.give_back();
    });
    (filter(3, &[x], &[]), vec![resizer, finds(x)], ends_with([x]))
}
model! {
    lookup_beside_a_merge_that_gives_back, at least 20, preemptions 2 in the gate,
    fails with "a present key was missed"
    for [LookupWithoutEpoch]
}

/// The same, and the bucket is there again before the lookup has ended.
fn lookup_beside_memory_that_comes_back() -> Model {
    let [x] = keys();
    let resizer = role(|filter| {
        filter.merge();
        filter.give_back();
        filter.split();
    });
    (filter(3, &[x], &[]), vec![resizer, finds(x)], ends_with([x]))
}
model! {
    lookup_beside_memory_that_comes_back, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [LookupWithoutEpoch]
}

/// A save that is running still reads the bucket that is merged away.
fn save_beside_a_merge_that_gives_back() -> Model {
    let resizer = role(|filter| {
        filter.merge();
        filter.give_back();
    });
    save_beside(3, keys(), resizer)
}
model! {
    save_beside_a_merge_that_gives_back, at least 20,
    fails with "an item is in the image too few or too many times"
    for [GivesBackBesideSave]
}

/// One thread gives back what is beyond the end, and another adds a bucket there.
fn split_beside_memory_that_goes_back() -> Model {
    let [x] = keys();
    let filter = filter(3, &[x], &[]);
    filter.merge();
    (filter, vec![role(Growable::give_back), splits()], ends_with([x]))
}
model! {
    split_beside_memory_that_goes_back, at least 20,
    fails with "an item was lost or doubled"
    for [GivesBackWithoutLock]
}

/// Eight buckets, of which both of the key's are full. What is in the even one can move to the odd bucket `to`, and what is in
/// the odd one to the even bucket 2. Returns the key, what is in the even bucket, and the rest.
fn filter_with_full_buckets(to: usize) -> (Arc<Growable>, GrowableKey, [GrowableKey; 2], [GrowableKey; 2]) {
    let key = GrowableKey::new(0, 1, 0);
    let in_even = core::array::from_fn(|nth| GrowableKey::new(0, to, 1 + nth));
    let in_odd = core::array::from_fn(|nth| GrowableKey::new(2, 1, nth));
    (filter(8, &in_even, &in_odd), key, in_even, in_odd)
}

/// An insert moves a key out of its way, from the bucket that a lookup reads last to the one that it reads first, and takes over
/// its slot in the same step. The lookup finds that key.
fn lookup_beside_an_insert_that_takes_over_a_slot() -> Model {
    let (filter, key, [x, y], [z, t]) = filter_with_full_buckets(1);
    (filter, vec![inserts(key), finds(z)], ends_with([key, x, y, z, t]))
}
model! {
    lookup_beside_an_insert_that_takes_over_a_slot, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateClearsFirst]
}

/// The same for a key in a batch. No change of the size invalidates it, so only the version of the key's stripe shows that it
/// has moved.
fn batch_beside_an_insert_that_takes_over_a_slot() -> Model {
    let (filter, key, [x, y], [z, t]) = filter_with_full_buckets(1);
    let looks = role(move |filter| assert_eq!(filter.contains_batch(&[z]), [true], "a present key was missed"));
    (filter, vec![inserts(key), looks], ends_with([key, x, y, z, t]))
}
model! {
    batch_beside_an_insert_that_takes_over_a_slot, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateClearsFirst]
}

/// Of a path of two hops, only the last one leaves a slot that the insert may take over.
fn insert_by_a_path_of_two_hops() -> Model {
    let (filter, key, [x, y], [z, t]) = filter_with_full_buckets(3);
    let beyond: [_; 2] = core::array::from_fn(|nth| GrowableKey::new(6, 3, nth));
    let others: [_; 2] = core::array::from_fn(|nth| GrowableKey::new(2, 5, nth));
    beyond.iter().for_each(|&key| filter.place(key, true));
    others.iter().for_each(|&key| filter.place(key, false));
    let all = [key, x, y, z, t, beyond[0], beyond[1], others[0], others[1]];
    (filter, vec![inserts(key), finds(beyond[0])], ends_with(all))
}
model! {
    insert_by_a_path_of_two_hops, at least 20, preemptions 1,
    fails with "an item was lost or doubled"
    for [AddsElsewhere]
}

/// Two inserts of one key have seen no copy of it, and each makes room in the same bucket. Only the first one may take over the
/// slot without counting the copies.
fn two_inserts_that_make_room_in_one_bucket() -> Model {
    let key = GrowableKey::new(0, 1, 0);
    let in_the_way = [3, 5].map(|odd| GrowableKey::new(0, odd, 0));
    let inserter = |moved| role(move |filter| _ = filter.relocate_for(key, moved));
    let finally = role(move |filter| {
        assert_eq!(filter.count(key), 1, "an insert has not counted the copies");
        assert!(in_the_way.iter().all(|&moved| filter.count(moved) == 1), "an item was lost or doubled");
    });
    (filter(8, &in_the_way, &[]), in_the_way.map(inserter).into(), finally)
}
model! {
    two_inserts_that_make_room_in_one_bucket, at least 5,
    fails with "an insert has not counted the copies"
    for [AddsBesideACopy]
}

/// A group is split after an insert has found its buckets, and before its relocation. The relocation does not add the insert's
/// copy as the slots would have stored it before.
fn insert_that_makes_room_beside_a_split() -> Model {
    let [key, moved] = keys_that_stay();
    let inserts = role(move |filter| {
        let is_added = filter.relocate_for(key, moved);
        assert!(!is_added || filter.contains(key), "a present key was missed");
    });
    let finally = role(move |filter| assert_eq!(filter.count(moved), 1, "an item was lost or doubled"));
    (filter(2, &[moved], &[]), vec![inserts, splits()], finally)
}
model! {
    insert_that_makes_room_beside_a_split, at least 20, preemptions 2,
    fails with "a present key was missed"
    for [AddsAsStoredBefore]
}

/// Two inserts that need no check, in threads that share a shard of the counters.
fn two_inserts_are_counted() -> Model {
    let [x, y, _] = keys();
    let finally = role(|filter| assert_eq!(filter.len(), 2, "an insert was not counted"));
    (filter(2, &[], &[]), vec![inserts(x), inserts(y)], finally)
}
model! {
    two_inserts_are_counted, at least 5,
    fails with "an insert was not counted"
    for [CountDropsUpdates]
}

/// A table that takes one more item. Of two inserts, exactly one is accepted; the other one's error names as many items as there are.
fn two_inserts_at_the_limit() -> Model {
    let [x, y, z] = keys();
    let accepted = Arc::new(AtomicUsize::new(0));
    let inserter = |key| {
        let accepted = Arc::clone(&accepted);
        role(move |filter| match filter.insert(key) {
            Ok(()) => _ = accepted.fetch_add(1, Ordering::Relaxed),
            Err(error) => assert!(error.to_string().contains("it holds 2 keys"), "the limit was not kept: {error}"),
        })
    };
    let filter = filter(2, &[x], &[]);
    filter.limit(2);
    let roles = vec![inserter(y), inserter(z)];
    let finally = role(move |filter| {
        assert_eq!((accepted.load(Ordering::Relaxed), filter.len()), (1, 2), "the limit was not kept");
    });
    (filter, roles, finally)
}
model! {
    two_inserts_at_the_limit, at least 5,
    fails with "the limit was not kept"
    for [AdmitsWithoutLock, CountsBeforeItChecks]
}

/// A table that is full. Each of two threads removes a key before it inserts another, so neither fails.
fn keys_come_and_go_at_the_limit() -> Model {
    let [x, y, z, t] = keys();
    let changes = |old, new| {
        role(move |filter| {
            assert!(filter.remove(old), "a present key was missed");
            assert!(filter.insert(new).is_ok(), "an insert below the limit failed");
        })
    };
    let filter = filter(2, &[x], &[y]);
    filter.limit(2);
    (filter, vec![changes(x, z), changes(y, t)], ends_with([z, t]))
}
model! {
    keys_come_and_go_at_the_limit, at least 20, preemptions 2,
    fails with "an insert below the limit failed"
    for [CountsBeforeItChecks]
}
