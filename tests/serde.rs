//! The feature `serde`: `cargo test --all-features --test serde`.
#![cfg(all(feature = "serde", feature = "stable-hash"))]

use std::hash::{BuildHasher, BuildHasherDefault};

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, GrowableCuckooFilter, LoadSeed, RotatingCuckooFilter, StableHasher, StableState,
};
use serde::de::DeserializeSeed;

/// A hasher whose default is always the same.
#[derive(Clone)]
struct Fixed(StableState);

impl Default for Fixed {
    fn default() -> Self {
        Self(StableState::with_key([3; 16]))
    }
}

impl BuildHasher for Fixed {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        self.0.build_hasher()
    }
}

type Filter<S = Fixed> = ConcurrentCuckooFilter<u64, S>;

fn filter() -> Filter {
    let filter = Filter::with_capacity_and_hasher(3000, Fixed::default());
    (0..3000).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn assert_same(loaded: &Filter, filter: &Filter) {
    assert_eq!(format!("{loaded:?}"), format!("{filter:?}"));
    assert!((0..3000).all(|key| loaded.count(&key) == filter.count(&key)));
}

fn snapshot(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_compact_format_has_the_bytes_of_the_snapshot() {
    let filter = filter();
    let bytes = postcard::to_stdvec(&filter).unwrap();
    assert!(bytes.ends_with(&snapshot(&filter)) && bytes.len() <= snapshot(&filter).len() + 4);
    assert_same(&postcard::from_bytes(&bytes).unwrap(), &filter);
}

#[test]
fn a_format_without_bytes_has_their_numbers() {
    let filter = filter();
    let json = serde_json::to_string(&filter).unwrap();
    assert!(json.starts_with("[137,67,67,70,"), "{}", &json[..100]);
    assert_same(&serde_json::from_str(&json).unwrap(), &filter);
}

#[test]
fn a_seed_has_the_hasher_and_the_limit() {
    let filter = filter();
    let needed = filter.memory_usage();
    let seed = |key: u8, limit| LoadSeed::<Filter<_>, _>::new(StableState::with_key([key; 16]), limit);
    let (json, bytes) = (serde_json::to_string(&filter).unwrap(), postcard::to_stdvec(&filter).unwrap());
    let of_json = |key, limit| seed(key, limit).deserialize(&mut serde_json::Deserializer::from_str(&json));
    let of_bytes = |key, limit| seed(key, limit).deserialize(&mut postcard::Deserializer::from_bytes(&bytes));
    // The type of the hasher is another one, with the same hashes.
    let needed = needed + size_of::<Filter<StableState>>() - size_of::<Filter>();
    assert_eq!(of_json(3, needed).unwrap().len(), 3000);
    assert_eq!(of_bytes(3, needed).unwrap().len(), 3000);

    let refused = |key, limit| of_json(key, limit).unwrap_err().to_string();
    assert!(refused(3, needed - 1).contains(&format!("{needed} bytes, and the limit is {}", needed - 1)));
    assert!(refused(3, 100).contains("100 bytes are not enough"), "not even all bytes are kept");
    assert!(refused(4, needed).contains("another hasher"));
    assert!(of_bytes(3, needed - 1).is_err() && of_bytes(4, needed).is_err());
}

#[test]
fn what_load_refuses_is_refused() {
    let bytes = snapshot(&filter());
    let deserialize = |bytes: &[u8]| serde_json::from_str::<Filter>(&serde_json::to_string(bytes).unwrap());
    let reason = |bytes: &[u8]| deserialize(bytes).unwrap_err().to_string();
    assert!(deserialize(&bytes).is_ok());
    let mut damaged = bytes.clone();
    damaged[1000] ^= 1;
    assert!(deserialize(&damaged).is_err());
    assert!(reason(&bytes[..bytes.len() - 1]).contains("cut short"));
    assert!(reason(&[&bytes[..], b"more"].concat()).contains("ends 4 bytes before"));
    assert!(reason(b"no snapshot").contains("this is no snapshot"));
    assert!(serde_json::from_str::<Filter>("5").unwrap_err().to_string().contains("a snapshot of a filter"));
    // A default that is another one each time.
    let random = serde_json::from_str::<Filter<ahash::RandomState>>(&serde_json::to_string(&bytes).unwrap());
    assert!(random.unwrap_err().to_string().contains("another hasher"));
    type Sip = BuildHasherDefault<std::hash::DefaultHasher>;
    assert!(serde_json::from_str::<Filter<Sip>>(&serde_json::to_string(&bytes).unwrap()).is_err());
}

#[test]
fn without_a_limit_no_more_is_allocated_than_there_are_bytes() {
    // The header, up to the number of buckets, which says 2³⁴; without the rest.
    let mut bytes = snapshot(&filter())[..26].to_vec();
    bytes.extend((1u64 << 34).to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..19]);
    sum.update(&bytes[23..]);
    bytes.extend(sum.finalize().to_le_bytes());
    let refused = serde_json::from_str::<Filter>(&serde_json::to_string(&bytes).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("cut short"), "{refused}");
}

#[test]
fn filters_of_several_tables_are_serialized_too() {
    let growable = GrowableCuckooFilter::<u64, _>::with_capacity_and_hasher(10, Fixed::default());
    (0..1000).for_each(|key| growable.insert(&key).unwrap());
    let builder = RotatingCuckooFilter::<u64>::builder().capacity(1000).generations(2);
    let rotating = builder.hasher(Fixed::default()).build().unwrap();
    (0..1000).for_each(|key| rotating.insert(&key).unwrap());
    rotating.rotate();

    let bytes = postcard::to_stdvec(&(&growable, &rotating)).unwrap();
    let (grown, rotated): (GrowableCuckooFilter<u64, Fixed>, RotatingCuckooFilter<u64, Fixed>) =
        postcard::from_bytes(&bytes).unwrap();
    assert_eq!((grown.len(), grown.tables()), (1000, growable.tables()));
    assert_eq!((rotated.len(), rotated.generation()), (1000, 1));
    assert!((0..1000).all(|key| grown.contains(&key) && rotated.contains(&key)));

    let json = serde_json::to_string(&growable).unwrap();
    let seed = LoadSeed::<GrowableCuckooFilter<u64, _>, _>::new(Fixed::default(), growable.memory_usage() - 1);
    let refused = seed.deserialize(&mut serde_json::Deserializer::from_str(&json)).unwrap_err();
    assert!(refused.to_string().contains("the limit is"), "{refused}");
}
