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
    for operation in 0..10_000_u32 {
        let (key, segments) = (random.random_range(0..KEYS).to_be_bytes(), store.segments().len());
        match random.random_range(0..100) {
            0..30 => {
                store.put(&key, &operation.to_be_bytes());
                model.insert(key, operation.to_be_bytes());
            }
            30..50 => {
                store.delete(&key);
                model.remove(&key);
            }
            50..52 => assert_eq!(store.flush().is_err(), segments == store.options.most_segments),
            52 => {
                let start = random.random_range(0..=segments);
                let end = random.random_range(start..=segments);
                assert_eq!(store.compact(start..end).unwrap(), start < end);
            }
            _ => assert_eq!(store.get(&key).as_deref(), model.get(&key).map(|value| &value[..]), "{strategy:?}"),
        }
    }
    for _ in 0..2 {
        store.compact(0..store.segments().len()).unwrap();
        store.flush().unwrap();
        assert!(is_exact(&store));
    }
    for key in (0..KEYS + 50).map(u32::to_be_bytes) {
        assert_eq!(store.get(&key).as_deref(), model.get(&key).map(|value| &value[..]), "{strategy:?}");
    }
    assert_eq!(store.segments(), [model.len()], "no deletion is left");
}

#[test]
fn both_strategies_agree_with_a_map() {
    for seed in 0..3 {
        check(Strategy::Maplet, seed);
        check(Strategy::FilterEach, seed);
    }
}
