//! Failures that were seen in other maplets.

use std::collections::HashMap;

use concurrent_cuckoo_filter::MapletInsertError;

use crate::maplet;

/// One maplet lost 644 of 20,000 keys at twice the capacity that was asked for, without an error.
#[test]
fn at_twice_the_capacity_nothing_is_lost_silently() {
    let maplet = maplet(10_000, 8, 0.001);
    let value = |key: u64| (key % 256) as u16;
    let inserted: Vec<u64> = (0..20_000).filter(|key| maplet.insert(key, value(*key)).is_ok()).collect();
    assert!(inserted.len() >= 10_000 && inserted.len() < 20_000);
    assert!(inserted.iter().all(|key| maplet.values(key).contains(value(*key))));
    assert_eq!(maplet.len(), inserted.len());
    // It does not answer "present" to everything, either.
    let found = (20_000..120_000u64).filter(|key| maplet.contains(key)).count();
    assert!((found as f64) < 100_000.0 * 0.002, "{found} of 100,000");
}

/// There is no resize: a larger maplet is filled from the source of the keys. A resize of another maplet emptied it.
#[test]
fn a_larger_maplet_that_is_filled_from_the_source_has_all() {
    let small = maplet(1000, 8, 0.001);
    let source: HashMap<u64, u16> = (0..3000).map(|key| (key, (key % 256) as u16)).collect();
    let refused = source.iter().find_map(|(key, value)| small.insert(key, *value).err());
    assert!(matches!(refused, Some(MapletInsertError::Full { .. })), "it refuses a key instead of losing one");
    let large = maplet(3000, 8, 0.001);
    assert_eq!(large.insert_batch(source.iter().map(|(key, value)| (key, *value))), Ok(()));
    assert!(source.iter().all(|(key, value)| large.values(key).contains(*value)));
}

/// One maplet overwrote the value of a key by that of a look-alike.
#[test]
fn a_lookalike_overwrites_no_value_of_another_key() {
    // Fingerprints have 7 bits, so any two of these keys look alike once in a few hundred times.
    let maplet = maplet(300, 7, 0.2);
    let keys: Vec<u64> = (0..300).collect();
    keys.iter().for_each(|key| maplet.insert(key, (*key % 100) as u16).expect("there is room"));
    let shared = keys.iter().filter(|key| maplet.values(key).len() > 1).count();
    assert!(shared > 0, "some look alike");
    for key in &keys {
        assert_eq!(maplet.replace(key, (*key % 100) as u16, 100 + (*key % 28) as u16), Ok(true));
    }
    assert!(keys.iter().all(|key| maplet.values(key).contains(100 + (*key % 28) as u16)));
    for (nth, key) in keys.iter().enumerate() {
        assert!(maplet.remove(key, 100 + (*key % 28) as u16), "each has its own");
        assert!(keys[nth + 1..].iter().all(|key| maplet.values(key).contains(100 + (*key % 28) as u16)));
    }
    assert!(maplet.is_empty());
}
