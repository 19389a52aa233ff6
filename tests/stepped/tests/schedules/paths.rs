//! Paths of three hops, and other changes along them.

use ccf_steps::model::{Key, Nothing, Set, Usual};

use crate::schedules::scene::{A, B, D, E, Scene, chain, scene};

/// An insert moves three items, one after the other. Meanwhile two threads look for them, and another insert needs
/// the same path.
fn three_hops_under_readers() -> Scene {
    let chain = chain();
    let [first, second] = [4, 5].map(|nth| Key::new(6, A, B, nth));
    let reader = |keys: [Key; 3]| {
        move |table: &Set| {
            for key in keys {
                assert!(table.contains(key) && table.contains(key.twin()), "a present key was missed");
            }
        }
    };
    let (x, y, z) = (chain[2], chain[4], chain[6]);
    Scene::new(Set::new(6), &chain)
        .role(move |table| table.insert(first).expect("there is room at E"))
        .role(reader([z.twin(), y.twin(), x.twin()]))
        .role(reader([x, y, z]))
        .role(move |table| {
            assert!(table.remove(chain[0]), "a present key was not removed");
            table.insert(second).expect("there is room at E");
        })
        .ends_with(chain[1..].iter().chain([&first, &second]).map(|&key| (key, 1)).chain([(chain[0], 0)]).collect())
}
scene! {
    three_hops_under_readers,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateBumpsLate, LookupWithoutVersion],
    fails with "an item was lost or doubled"
    for [RelocateClearsFirst]
}

/// A batch looks for a key that moves there and back, and for another in the same buckets. Their fingerprints differ
/// only in their high parts.
fn a_lookalike_in_the_way() -> Scene<Nothing, Usual> {
    let key = Set::<Usual>::key(2, A, B, 0);
    let lookalike = Set::<Usual>::lookalike(key);
    Scene::new(Set::new(2), &[key.twin(), lookalike])
        .role(move |table| assert!(table.relocate(key.twin()) && table.relocate(key)))
        .role(move |table| {
            let found = table.contains_batch([lookalike, key, lookalike.twin()]);
            assert_eq!(found, [true; 3], "a present key was missed");
        })
        .ends_with(vec![(key, 1), (lookalike, 1)])
}
scene! {
    a_lookalike_in_the_way,
    fails with "a present key was missed"
    for [RelocateWithoutBump, RelocateBumpsLate, LookupWithoutVersion]
}

/// The items and the free slots along a path of three hops come and go while the path is searched and carried out.
fn stale_paths() -> Scene {
    let chain = chain();
    let (wanted, filler) = (Key::new(6, A, B, 4), Key::new(6, E, D, 5));
    let (x, y, z) = (chain[2], chain[4], chain[6]);
    let come_and_go = |key: Key| {
        move |table: &Set| {
            for _ in 0..2 {
                assert!(table.remove(key), "a present key was not removed: an item was lost or doubled");
                table.insert(key).expect("there is room, or an item was lost or doubled");
            }
        }
    };
    let all = chain.iter().chain([&wanted]).map(|&key| (key, 1)).chain([(filler, 0)]).collect();
    Scene::new(Set::new(6), &chain)
        .role(move |table| table.insert(wanted).expect("there is room at E, or an item was lost or doubled"))
        .role(come_and_go(y))
        .role(come_and_go(z.twin()))
        .role(move |table| {
            table.insert(filler).expect("there is room at E, or an item was lost or doubled");
            assert!(table.contains(x), "a present key was missed");
            assert!(table.remove(filler), "a present key was not removed: an item was lost or doubled");
        })
        .ends_with(all)
}
scene! {
    stale_paths,
    fails with "an item was lost or doubled"
    for [RelocateWithoutRecheck, AddOverwrites]
}

/// `clear` among inserts that relocate earlier items, removals and lookups. No earlier item is left after `clear`,
/// and the count of the items is correct.
fn clear_among_them() -> Scene {
    let chain = chain();
    let [first, second] = [4, 5].map(|nth| Key::new(6, A, B, nth));
    Scene::new(Set::new(6), &chain)
        .role(|table| table.clear())
        .role(move |table| _ = table.insert(first))
        .role(move |table| _ = table.insert_if_absent(second))
        .role(move |table| _ = (table.remove(chain[6]), table.contains(chain[4])))
        .finally(move |table| {
            let outlived = chain.iter().map(|&key| table.count(key)).sum::<usize>();
            assert_eq!(outlived, 0, "an item outlived clear, or was doubled");
            let added = table.count(first) + table.count(second);
            assert!(added <= 2, "an item outlived clear, or was doubled");
            assert_eq!((table.scan(), table.len()), (added, added), "an item outlived clear, or was doubled");
        })
}
scene! {
    clear_among_them,
    fails with "an item outlived clear, or was doubled"
    for [ClearWithoutLocks, CountDropsUpdates]
}
