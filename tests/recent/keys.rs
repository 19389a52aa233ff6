//! The last keys.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::RecentCuckooFilter;
use proptest::prelude::*;

use crate::support::{Identity, Raw};
use crate::{Filter, held, last, stats};

/// How many of the first `keys` keys are found.
fn found(filter: &Filter, keys: u64) -> u64 {
    (0..keys).filter(|key| filter.contains(key)).count() as u64
}

#[test]
fn the_last_keys_are_found_and_no_more_than_it_says() {
    for keys in [1, 2, 3, 13, 14, 15, 16, 28, 29, 100, 1000, 1001] {
        let filter = last(keys);
        let (at_least, at_most) = held(&filter);
        assert!(at_least >= keys as u64 && at_most as f64 <= 1.08 * keys as f64, "{keys}: {at_least}, {at_most}");
        let mut seen = (u64::MAX, 0);
        for key in 0..8 * keys as u64 + 50 {
            assert!(filter.insert(&key) && !filter.insert(&key), "{key} of the last {keys}");
            let so_far = key + 1;
            if keys <= 100 || key % 31 == 0 {
                let first = so_far.saturating_sub(at_least);
                assert!((first..so_far).all(|key| filter.contains(&key)), "{so_far} of the last {keys}");
                let found = found(&filter, so_far);
                assert!(found <= at_most, "{found} of the last {keys}");
                if so_far > at_most {
                    seen = (seen.0.min(found), seen.1.max(found));
                }
            }
        }
        if keys <= 100 {
            assert_eq!(seen, (at_least, at_most), "it is exact: the last {keys}");
        }
        assert_eq!(stats(&filter).evicted, 0, "{filter:?}");
    }
}

#[test]
fn repeated_keys_drive_no_key_out() {
    let filter = last(100);
    let (at_least, _) = held(&filter);
    (0..at_least).for_each(|key| assert!(filter.insert(&key)));
    for _ in 0..10_000 {
        assert!(!filter.insert(&(at_least - 1)) && !filter.insert_or_renew(&(at_least - 1)));
    }
    assert_eq!(found(&filter, at_least), at_least);
}

#[test]
fn a_key_that_is_renewed_stays_and_one_that_is_not_leaves() {
    let filter = last(1000);
    let (_, at_most) = held(&filter);
    assert!(filter.insert(&(1 << 40)) && filter.insert_or_renew(&(1 << 41)));
    for key in 0..20 * at_most {
        assert!(filter.insert(&key));
        // At the latest moment: it is about to expire each time.
        if key % 900 == 899 {
            assert!(!filter.insert_or_renew(&(1 << 41)), "after {key}");
        }
    }
    assert!(!filter.contains(&(1 << 40)) && filter.contains(&(1 << 41)));
    assert!(filter.insert_or_renew(&(1 << 40)), "it has left, so it is new");
}

/// A set of keys that are renewed all the time counts, so that there is room for all that the filter holds.
#[test]
fn many_keys_that_are_renewed_make_no_others_go_early() {
    let filter = last(1400);
    for round in 0..200 {
        (0..1000).for_each(|hot| _ = filter.insert_or_renew(&(1 << 40 | hot)));
        for key in 0..100 {
            assert!(filter.insert_or_renew(&(round * 100 + key)));
        }
    }
    assert_eq!((stats(&filter).evicted, stats(&filter).evicted_early_by), (0, 0.0));
    assert!((0..1000).all(|hot| filter.contains(&(1 << 40 | hot))));
}

#[test]
fn a_removed_key_is_new_again() {
    let filter = last(100);
    assert!(filter.insert(&1) && filter.insert(&2));
    assert!(filter.remove(&1) && !filter.remove(&1) && !filter.contains(&1) && filter.contains(&2));
    assert!(filter.insert(&1));
    filter.clear();
    assert!(filter.is_empty() && filter.insert(&1) && filter.recent_len() == 1);
}

/// What leaves is counted: nothing accumulates.
#[test]
fn the_number_of_keys_stays_below_the_capacity() {
    let filter = last(10_000);
    for key in 0..200_000 {
        filter.insert(&key);
        assert!(filter.len() <= filter.capacity() && (key % 1000 != 0 || filter.recent_len() <= filter.len()));
    }
    let stats = stats(&filter);
    assert_eq!(stats.expired + filter.len() as u64, 200_000);
    assert_eq!(stats.evicted, 0);
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64),
    Renew(u64),
    Remove(u64),
    Contains(u64),
    Batch(Vec<u64>),
}

/// The model: in which group each key is, and how many keys the present group has.
struct Model {
    per_group: u64,
    groups: u64,
    group: u64,
    counted: u64,
    keys: HashMap<u64, u64>,
}

impl Model {
    fn of(filter: &Filter) -> Self {
        let (at_least, at_most) = held(filter);
        let per_group = at_most + 1 - at_least;
        Self { per_group, groups: at_least / per_group, group: 0, counted: 0, keys: HashMap::new() }
    }

    fn has(&self, key: u64) -> bool {
        self.keys.get(&key).is_some_and(|group| group + self.groups >= self.group)
    }

    fn add(&mut self, key: u64, renew: bool) -> bool {
        let had = self.has(key);
        if !had || renew && self.keys[&key] < self.group {
            self.keys.insert(key, self.group);
            self.counted += 1;
            if self.counted == self.per_group {
                (self.group, self.counted) = (self.group + 1, 0);
            }
        }
        !had
    }
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..60u64;
    let operation = prop_oneof![
        4 => key().prop_map(Operation::Insert),
        3 => key().prop_map(Operation::Renew),
        1 => key().prop_map(Operation::Remove),
        3 => key().prop_map(Operation::Contains),
        1 => prop::collection::vec(key(), 0..50).prop_map(Operation::Batch),
    ];
    prop::collection::vec(operation, 1..400)
}

proptest! {
    /// On one thread, the filter does exactly what its documentation says.
    #[test]
    fn it_agrees_with_a_model(keys in 1..50usize, operations in operations()) {
        let filter = last(keys);
        let mut model = Model::of(&filter);
        for operation in operations {
            match operation {
                Operation::Insert(key) => prop_assert_eq!(filter.insert(&key), model.add(key, false)),
                Operation::Renew(key) => prop_assert_eq!(filter.insert_or_renew(&key), model.add(key, true)),
                Operation::Remove(key) => {
                    prop_assert_eq!(filter.remove(&key), model.has(key));
                    model.keys.remove(&key);
                }
                Operation::Contains(key) => prop_assert_eq!(filter.contains(&key), model.has(key)),
                Operation::Batch(keys) => {
                    let expected: Vec<_> = keys.iter().map(|&key| model.add(key, false)).collect();
                    let mut new = Vec::new();
                    let count = filter.insert_batch(&keys, &mut new);
                    prop_assert_eq!(count, new.iter().filter(|new| **new).count());
                    prop_assert_eq!(new, expected);
                }
            }
        }
        prop_assert_eq!(filter.recent_len(), (0..60).filter(|&key| model.has(key)).count());
    }
}

#[test]
fn batches_answer_as_single_calls_do() {
    let (one, other) = (last(500), last(500));
    let keys: Vec<u64> = (0..5000).map(|nth| nth * nth % 1777).collect();
    let (mut new, mut found, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    let count = one.insert_batch(&keys, &mut new);
    let single: Vec<_> = keys.iter().map(|key| other.insert(key)).collect();
    assert_eq!((count, new), (single.iter().filter(|new| **new).count(), single));
    let mut renewed = Vec::new();
    one.insert_or_renew_batch(&keys[..700], &mut renewed);
    assert_eq!(renewed, keys[..700].iter().map(|key| other.insert_or_renew(key)).collect::<Vec<_>>());
    one.contains_batch(&keys, &mut found);
    assert_eq!(found, keys.iter().map(|key| other.contains(key)).collect::<Vec<_>>());
    one.remove_batch(&keys[..100], &mut removed);
    assert_eq!(removed, keys[..100].iter().map(|key| other.remove(key)).collect::<Vec<_>>());

    let hashes = || keys.iter().map(|key| one.hash_one(key));
    let (mut by_hash, mut by_key) = (Vec::new(), Vec::new());
    one.by_hash().contains_batch(hashes(), &mut by_hash);
    one.contains_batch(&keys, &mut by_key);
    assert_eq!(by_hash, by_key);
    assert_eq!(one.by_hash().insert(one.hash_one(&9999)), other.insert(&9999));
    assert!(one.by_hash().contains(one.hash_one(&9999)) && !one.by_hash().insert_or_renew(one.hash_one(&9999)));
    one.by_hash().prefetch(one.hash_one(&9999));
    assert!(one.by_hash().remove(one.hash_one(&9999)) && !one.contains(&9999));
}

/// The two buckets of a key, in a table of this many buckets of four slots with 13 bits and four bits of expiry, and its
/// fingerprint (`docs/snapshot_format.md`).
fn buckets_of(key: u64, buckets: u64) -> ([u64; 2], u32) {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(key) * u128::from(key.wrapping_mul(2).wrapping_add(GOLDEN));
    let mixed = ((product >> 64) as u64 ^ product as u64).wrapping_mul(GOLDEN);
    let fingerprint = (mixed & 0x1_e1ff) as u32;
    let fingerprint = if fingerprint & 0x1ff == 0 { fingerprint + 1 } else { fingerprint };
    let spread = fingerprint.wrapping_mul(0x9e37_79b9) ^ fingerprint.wrapping_mul(0x3c6f);
    let first = ((u128::from(mixed) * u128::from(buckets)) >> 64) as u64;
    let sum = ((u64::from(spread) * buckets) >> 32) | 1;
    let mut pair = [first, (sum + buckets - first) % buckets];
    pair.sort_unstable();
    (pair, fingerprint)
}

/// Keys that all have the same two buckets, as only somebody who knows the hasher's key can choose them. A filter that is
/// nearly empty has no room for them, and takes them all the same: only others of these go.
#[test]
#[cfg_attr(miri, ignore = "tries millions of keys")]
fn keys_that_were_chosen_to_collide_are_taken_too() {
    type Unkeyed = RecentCuckooFilter<Raw, BuildHasherDefault<Identity>>;
    let filter = Unkeyed::builder_with_hasher(BuildHasherDefault::default()).last(1000).build().unwrap();
    let layout = filter.plan().layout;
    assert_eq!((layout.slots_per_bucket, layout.fingerprint_bits, layout.payload_bits), (4, 13, 4));
    let buckets = layout.buckets as u64;
    let mut chosen = HashMap::new();
    for key in 1..40 * buckets * buckets {
        let (pair, fingerprint) = buckets_of(key, buckets);
        if pair == [0, 7] {
            chosen.entry(fingerprint).or_insert(Raw(key));
        }
    }
    assert!(chosen.len() > 30, "{}", chosen.len());
    let others: Vec<_> = (0..100).map(crate::support::scattered).collect();
    others.iter().for_each(|key| assert!(filter.insert(key)));
    for key in chosen.values() {
        assert!(filter.insert(key) && filter.contains(key) && !filter.insert(key));
    }
    let kept = chosen.values().filter(|key| filter.contains(key)).count();
    assert!((4..=8).contains(&kept), "{kept}");
    // An eviction of whole groups would help nobody.
    assert!(others.iter().filter(|key| filter.contains(key)).count() > 90);
    let stats = filter.stats();
    assert_eq!(stats.inserts_failed, 0);
    assert!(stats.recent.as_ref().unwrap().evicted as usize >= chosen.len() - kept, "{stats:?}");
    assert_eq!(stats.recent.unwrap().evicted_early_by, 1.0);
}
