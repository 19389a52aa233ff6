//! Random operations: each strategy gives the same answers as a `BTreeMap`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{assert_exact, exact, scratch, small};
use crate::options::Strategy;
use crate::store::Store;

const KEYS: u32 = 120;

fn check(strategy: &Strategy, seed: u64) {
    let directory = scratch();
    let open = || Store::open(directory.path(), small(strategy.clone())).unwrap();
    let mut store = open();
    let mut model = BTreeMap::new();
    let mut random = SmallRng::seed_from_u64(seed);
    for operation in 0..3000 {
        let key = random.random_range(0..KEYS);
        match random.random_range(0..100) {
            0..35 => {
                store.put(&key.to_be_bytes(), &[operation as u8; 3]).unwrap();
                model.insert(key, vec![operation as u8; 3]);
            }
            35..50 => {
                store.delete(&key.to_be_bytes()).unwrap();
                model.remove(&key);
            }
            50..52 => {
                store.flush().unwrap();
            }
            52 => {
                let segments = store.segments().len();
                let start = random.random_range(0..=segments);
                let end = random.random_range(start..=segments);
                assert_eq!(store.compact(start..end).unwrap(), start < end);
            }
            53 if random.random_ratio(1, 4) => {
                store.save().ok();
                drop(store);
                store = open();
            }
            _ => assert_eq!(store.get(&key.to_be_bytes()).unwrap().as_ref(), model.get(&key), "{strategy:?}, {key}"),
        }
    }
    for key in 0..KEYS + 10 {
        assert_eq!(store.get(&key.to_be_bytes()).unwrap().as_ref(), model.get(&key), "{strategy:?}, {key}, at the end");
    }
    assert_exact(&store);
    assert!(!store.segments().is_empty() || model.is_empty());
}

#[test]
fn all_strategies_agree_with_a_map() {
    let watch = Arc::default();
    for seed in 0..2 {
        for strategy in [Strategy::Maplet, Strategy::FilterEach, Strategy::Engine, exact(20, &watch)] {
            check(&strategy, seed);
        }
    }
}
