//! Tests that look inside the store.

mod hammer;
mod model;
mod steps;

use crate::list::MOST_LISTED;
use crate::segment::{Bytes, merge};
use crate::store::{Hasher, Options, Store, Strategy};

/// A small store with many segments and many false positives.
fn small(strategy: Strategy) -> Options {
    Options { strategy, false_positive_rate: 0.06, most_segments: 12, capacity: 200 }
}

/// Groups of keys that a maplet of a store with these options and this hasher can't tell apart.
fn look_alikes(options: &Options, hasher: &Hasher, groups: usize, of: usize) -> Vec<Vec<Bytes>> {
    let store = Store::with_hasher(options.clone(), hasher.clone()).unwrap();
    let list = store.list.load();
    let maplet = list.maplet.as_ref().unwrap();
    let mut keys = (0_u32..).map(|number| Bytes::from(number.to_be_bytes()));
    let mut group = || {
        let first = keys.next().unwrap();
        maplet.insert(&*first, 0).unwrap();
        let others = keys.by_ref().filter(|key| maplet.contains(&**key)).take(of - 1).collect();
        maplet.remove(&*first, 0);
        [vec![first], others].concat()
    };
    (0..groups).map(|_| group()).collect()
}

/// Whether the maplet has one pair for each key, with the slot of the newest segment that has it, and no others. The
/// store has no sealed memtable.
fn is_exact(store: &Store) -> bool {
    let before = store.list.load_full();
    let Some(maplet) = &before.maplet else { return true };
    // Another store with the same hasher can't tell the same keys apart.
    store.build_maplet(maplet.capacity()).unwrap();
    let after = store.list.load_full();
    let right = after.maplet.as_ref().unwrap();
    store.list.store(before.clone());
    assert_eq!(right.capacity(), maplet.capacity());
    let same = |key: &[u8]| (0..MOST_LISTED as u16).all(|slot| maplet.count(key, slot) == right.count(key, slot));
    maplet.len() == right.len() && merge(&before.segments).iter().all(|(key, ..)| same(key))
}
