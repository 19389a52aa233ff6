//! Random operations: each strategy gives the same answers as a `BTreeMap`.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{is_exact, small};
use crate::store::{Store, Strategy};

const KEYS: u32 = 120;

fn check(strategy: Strategy, seed: u64) {
    let store = Store::new(small(strategy)).unwrap();
    let mut model = BTreeMap::new();
    let mut random = SmallRng::seed_from_u64(seed);
    let assert_same = |key: u32, model: &BTreeMap<u32, u32>| {
        let value = model.get(&key).map(|value| value.to_be_bytes().into());
        assert_eq!(store.get(&key.to_be_bytes()), value, "{strategy:?}, {key}");
    };
    for operation in 0..10_000_u32 {
        let key = random.random_range(0..KEYS);
        match random.random_range(0..100) {
            0..30 => {
                store.put(&key.to_be_bytes(), &operation.to_be_bytes());
                model.insert(key, operation);
            }
            30..50 => {
                store.delete(&key.to_be_bytes());
                model.remove(&key);
            }
            50..52 => assert!(store.segments().len() <= 12 && store.flush().is_ok()),
            52 => {
                let segments = store.segments().len();
                let start = random.random_range(0..=segments);
                let end = random.random_range(start..=segments);
                assert_eq!(store.compact(start..end).unwrap(), start < end);
            }
            _ => assert_same(key, &model),
        }
    }
    store.flush().unwrap();
    assert!(is_exact(&store));
    store.compact(0..store.segments().len()).unwrap();
    (0..KEYS + 50).for_each(|key| assert_same(key, &model));
    assert!(is_exact(&store));
    assert_eq!(store.segments().iter().sum::<usize>(), model.len(), "no deletion is left");
}

#[test]
fn both_strategies_agree_with_a_map() {
    for seed in 0..3 {
        check(Strategy::Maplet, seed);
        check(Strategy::FilterEach, seed);
    }
}
