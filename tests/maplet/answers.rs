use std::collections::HashMap;

use concurrent_cuckoo_filter::{
    BuildError, CuckooMaplet, FilterKind, InsertBatchError, MapletInsertError, ValueTooLarge, Values,
};

use crate::{Maplet, maplet};

fn list(values: Values) -> Vec<u16> {
    values.into_iter().collect()
}

#[test]
fn a_key_has_its_values_until_they_are_removed() -> Result<(), MapletInsertError> {
    let maplet = maplet(100, 16, 0.001);
    assert!(maplet.values(&1).is_empty() && !maplet.contains(&1));
    maplet.insert(&1, 65_535)?;
    maplet.insert(&1, 0)?;
    maplet.insert(&1, 0)?;
    assert_eq!(list(maplet.values(&1)), [0, 65_535], "each value once, in order");
    assert_eq!([maplet.count(&1, 0), maplet.count(&1, 65_535), maplet.count(&1, 7)], [2, 1, 0]);
    assert_eq!(maplet.len(), 3);
    assert!(maplet.remove(&1, 0) && maplet.contains(&1));
    assert_eq!(list(maplet.values(&1)), [0, 65_535], "there is another copy");
    assert!(maplet.remove(&1, 0) && !maplet.remove(&1, 0));
    assert_eq!(list(maplet.values(&1)), [65_535]);
    assert!(maplet.remove(&1, 65_535));
    assert!(maplet.is_empty() && !maplet.contains(&1));
    Ok(())
}

#[test]
fn a_value_is_replaced_and_the_others_stay() -> Result<(), Box<dyn std::error::Error>> {
    let maplet = maplet(100, 4, 0.001);
    maplet.insert_batch([(&1, 3), (&1, 3), (&1, 9)])?;
    assert!(maplet.replace(&1, 3, 5)?);
    assert_eq!(list(maplet.values(&1)), [3, 5, 9], "one of two copies was replaced");
    assert!(!maplet.replace(&1, 4, 5)?, "it has no such value");
    assert!(maplet.replace(&1, 9, 9)?, "it has this value");
    assert_eq!((list(maplet.values(&1)), maplet.len()), (vec![3, 5, 9], 3));
    Ok(())
}

#[test]
fn insert_if_absent_tells_the_values_that_there_are() -> Result<(), MapletInsertError> {
    let maplet = maplet(100, 4, 0.001);
    assert!(maplet.insert_if_absent(&1, 3)?.is_empty());
    assert_eq!(list(maplet.insert_if_absent(&1, 7)?), [3]);
    maplet.insert(&1, 7)?;
    assert_eq!(list(maplet.insert_if_absent(&1, 1)?), [3, 7]);
    assert_eq!(maplet.len(), 2);
    Ok(())
}

#[test]
fn a_value_with_too_many_bits_is_an_error_and_no_change() {
    let maplet = maplet(100, 4, 0.001);
    let too_large = |error| matches!(error, MapletInsertError::ValueTooLarge { value: 16, value_bits: 4, .. });
    assert!(too_large(maplet.insert(&1, 16).unwrap_err()));
    assert!(too_large(maplet.insert_if_absent(&1, 16).unwrap_err()));
    assert!(maplet.is_empty());
    maplet.insert(&1, 0).expect("there is room");
    let ValueTooLarge { value, value_bits, .. } = maplet.replace(&1, 0, 16).unwrap_err();
    assert_eq!((value, value_bits), (16, 4));
    // A value that is too large cannot be there. Its low bits are 0, and the value 0 is there.
    assert_eq!(maplet.replace(&1, 16, 1), Ok(false));
    assert!(!maplet.remove(&1, 16));
    assert_eq!((maplet.count(&1, 16), maplet.count(&1, 0), maplet.len()), (0, 1, 1));
    let text = maplet.insert(&1, 16).unwrap_err().to_string();
    assert!(
        text.contains("the value 16 is too large") && text.contains("at most 15") && text.contains("value_bits"),
        "{text}"
    );
}

#[test]
fn parameters_that_cannot_be_met_are_errors_that_name_them() {
    let build = |capacity, bits, rate| {
        let builder = CuckooMaplet::<u64>::builder().capacity(capacity).value_bits(bits);
        builder.false_positive_rate(rate).build().unwrap_err()
    };
    for bits in [0, 17, u32::MAX] {
        let error = build(10, bits, 0.001);
        assert!(matches!(error, BuildError::InvalidValueBits { value_bits, .. } if value_bits == bits), "{error}");
        assert!(error.to_string().contains(&bits.to_string()), "{error}");
    }
    let error = CuckooMaplet::<u64>::builder().capacity(10).build().unwrap_err();
    assert!(matches!(error, BuildError::ValueBitsMissing), "{error}");
    let error = CuckooMaplet::<u64>::builder().value_bits(4).build().unwrap_err();
    assert!(matches!(error, BuildError::CapacityMissing { filter: FilterKind::Maplet, .. }), "{error}");
    assert!(error.to_string().contains(".capacity(keys)"), "{error}");
    let error = build(10, 16, 1e-6);
    let BuildError::RateTooLow { value_bits: 16, lowest, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains("CuckooMaplet with 16-bit values"), "{error}");
    assert!(CuckooMaplet::<u64>::builder().capacity(10).value_bits(16).false_positive_rate(lowest).build().is_ok());
    let error = build(usize::MAX, 4, 0.001);
    assert!(matches!(error, BuildError::CapacityTooLarge { filter: FilterKind::Maplet, .. }), "{error}");
}

#[test]
fn a_full_maplet_says_so_and_keeps_what_it_has() {
    let maplet = maplet(1000, 4, 0.001);
    let mut keys = 0u64;
    let error = loop {
        match maplet.insert(&keys, (keys % 16) as u16) {
            Ok(()) => keys += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, MapletInsertError::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("the CuckooMaplet is full"), "{error}");
    assert!(keys as usize >= maplet.capacity());
    assert!((0..keys).all(|key| maplet.values(&key).contains((key % 16) as u16)));
    assert_eq!(maplet.len() as u64, keys);
}

#[test]
fn a_key_has_at_most_a_value_for_each_slot_of_its_buckets() {
    let maplet = maplet(1000, 4, 0.001);
    let most = 2 * maplet.plan().layout.slots_per_bucket;
    (0..most as u16).for_each(|value| maplet.insert(&1, value).expect("there is a slot"));
    let error = maplet.insert(&1, 15).unwrap_err();
    assert!(matches!(error, MapletInsertError::TooManyCopies { copies, .. } if copies == most), "{error}");
    assert!(error.to_string().contains(&format!("{most} values of this key")), "{error}");
    assert_eq!(list(maplet.values(&1)), (0..most as u16).collect::<Vec<_>>());
}

#[test]
fn the_mask_has_a_bit_for_each_value_of_up_to_six_bits() -> Result<(), MapletInsertError> {
    for bits in 1..=16 {
        let maplet = maplet(100, bits, 0.1);
        let most = ((1u32 << bits) - 1) as u16;
        maplet.insert(&1, 0)?;
        maplet.insert(&1, most)?;
        assert_eq!(maplet.values(&1).mask(), (bits <= 6).then(|| 1 | 1 << most.min(63)), "{bits}");
    }
    Ok(())
}

#[test]
fn batches_answer_as_single_operations_do() {
    let maplet = maplet(10_000, 6, 0.01);
    let value = |key: u64| (key * 7 % 64) as u16;
    let keys: Vec<u64> = (0..9_000).collect();
    assert_eq!(maplet.insert_batch(keys.iter().map(|key| (key, value(*key)))), Ok(()));
    let asked: Vec<u64> = (0..20_077).rev().collect();
    let (mut found, mut contained) = (Vec::new(), Vec::new());
    maplet.values_batch(&asked, &mut found);
    maplet.contains_batch(&asked, &mut contained);
    assert_eq!(found, asked.iter().map(|key| maplet.values(key)).collect::<Vec<_>>());
    assert_eq!(contained, asked.iter().map(|key| maplet.contains(key)).collect::<Vec<_>>());
    assert!(keys.iter().all(|key| maplet.values(key).contains(value(*key))));

    // Every third pair has a wrong value, and every fifth a value with too many bits.
    let pairs: Vec<(u64, u16)> = keys
        .iter()
        .map(|&key| (key, if key % 5 == 0 { value(key) + 64 } else { value(key) ^ u16::from(key % 3 == 0) }))
        .collect();
    let mut model: HashMap<(u64, u16), bool> = HashMap::new();
    let twin = self::maplet_like(&maplet, &keys, value);
    for &(key, value) in &pairs {
        model.insert((key, value), twin.remove(&key, value));
    }
    let mut removed = Vec::new();
    maplet.remove_batch(pairs.iter().map(|(key, value)| (key, *value)), &mut removed);
    assert_eq!(removed, pairs.iter().map(|pair| model[pair]).collect::<Vec<_>>());
    assert_eq!(maplet.len(), twin.len());
    assert!(keys.iter().all(|key| maplet.values(key) == twin.values(key)));
    // A removal of a pair that is not in may take out a look-alike, but not with a value of too many bits.
    assert!(pairs.iter().zip(&removed).all(|((_, value), &removed)| *value < 64 || !removed), "those stay");
}

/// A maplet with the same hasher and the same pairs.
fn maplet_like(other: &Maplet, keys: &[u64], value: impl Fn(u64) -> u16) -> Maplet {
    let builder = Maplet::builder_with_hasher(other.hasher().clone()).capacity(10_000);
    let maplet = builder.value_bits(6).false_positive_rate(0.01).build().expect("a valid maplet");
    keys.iter().for_each(|key| maplet.insert(key, value(*key)).expect("there is room"));
    maplet
}

#[test]
fn a_batch_that_is_refused_tells_how_many_pairs_went_in() {
    let maplet = maplet(1000, 4, 0.001);
    let keys: Vec<u64> = (0..100).collect();
    let pairs = keys.iter().map(|key| (key, if *key == 77 { 16 } else { 1 }));
    let InsertBatchError { index: inserted, error, .. } = maplet.insert_batch(pairs).unwrap_err();
    assert_eq!(inserted, 77);
    assert!(matches!(error, MapletInsertError::ValueTooLarge { value: 16, .. }), "{error}");
    assert_eq!(maplet.len(), 77);

    let many: Vec<u64> = (100..100_000).collect();
    let InsertBatchError { index: inserted, error, .. } =
        maplet.insert_batch(many.iter().map(|key| (key, 2))).unwrap_err();
    assert!(matches!(error, MapletInsertError::Full { .. }), "{error}");
    assert_eq!(maplet.len(), 77 + inserted);
    assert!(many[..inserted].iter().all(|key| maplet.values(key).contains(2)));
}

#[test]
fn clear_takes_out_all_pairs() {
    let maplet = maplet(1000, 4, 0.001);
    (0..500).for_each(|key| maplet.insert(&key, 3).expect("there is room"));
    maplet.clear();
    assert!(maplet.is_empty() && (0..500).all(|key| maplet.values(&key).is_empty()));
}
