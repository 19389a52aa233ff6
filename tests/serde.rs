//! The feature `serde`: `cargo test --all-features --test serde`.
#![cfg(all(feature = "serde", feature = "stable-hash"))]

#[path = "support/kinds.rs"]
mod kinds;
mod support;

use std::hash::{BuildHasher, BuildHasherDefault};

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, FromSnapshot, GrowableCuckooFilter, Loader, StableDefault, StableHashBuilder,
    StableHasher,
};
use kinds::{Hasher, Table, in_each_layout};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, SeqAccess, Visitor, value};
use serde::{Deserialize, Serialize};
use support::scattered;

/// A hasher whose default is always the same.
#[derive(Clone)]
struct Fixed(StableHashBuilder);

impl Default for Fixed {
    fn default() -> Self {
        Self(StableHashBuilder::with_key([3; 16]))
    }
}

impl BuildHasher for Fixed {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        self.0.build_hasher()
    }
}

impl StableDefault for Fixed {}

type Filter<S = Fixed> = ConcurrentCuckooFilter<u64, S>;

fn filter() -> Filter {
    let filter = Filter::with_capacity_and_hasher(3000, Fixed::default());
    (0..3000).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn snapshot(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
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
    let more = [&bytes[..], b"more"].concat();
    assert!(reason(&more).contains("the snapshot ends after"));
    let (loader, json) = (Loader::<Filter, _>::new(Fixed::default(), 1 << 20), serde_json::to_string(&more).unwrap());
    let error = loader.deserialize(&mut serde_json::Deserializer::from_str(&json)).unwrap_err();
    assert!(error.to_string().contains("more bytes follow"), "{error}");
    assert!(reason(b"not a snapshot").contains("this is not a snapshot"));
    assert!(serde_json::from_str::<Filter>("5").unwrap_err().to_string().contains("a snapshot of a filter"));
    let other = serde_json::from_str::<CuckooMaplet<u64, Fixed>>(&serde_json::to_string(&bytes).unwrap());
    assert!(other.unwrap_err().to_string().contains("of type ConcurrentCuckooFilter, but type CuckooMaplet"));
    type Sip = BuildHasherDefault<std::hash::DefaultHasher>;
    assert!(serde_json::from_str::<Filter<Sip>>(&serde_json::to_string(&bytes).unwrap()).is_err());
}

/// Like `ciborium`, which reads long bytes only if they are asked for as a buffer.
#[test]
fn a_format_that_has_only_buffers_of_bytes_is_read() {
    struct Buffers(Vec<u8>);

    impl<'de> Deserializer<'de> for Buffers {
        type Error = value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
            Err(serde::de::Error::custom("ask for a buffer"))
        }

        fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
            visitor.visit_byte_buf(self.0)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes option unit unit_struct newtype_struct seq
            tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    let bytes = snapshot(&filter());
    assert!(snapshot(&Filter::deserialize(Buffers(bytes.clone())).unwrap()) == bytes);
}

/// The rest is not JSON, and the error does not say so, because the rest is not read.
#[test]
fn a_snapshot_that_cannot_be_loaded_is_not_read_further() {
    let header: Vec<String> = snapshot(&filter())[..44].iter().map(u8::to_string).collect();
    let json = format!("[{}, and so on for 61 MB", header.join(","));
    let refused = |key, schema: &str| {
        let loader = Loader::<Filter<_>, _>::new(StableHashBuilder::with_key([key; 16]), 1 << 20).schema(schema);
        loader.deserialize(&mut serde_json::Deserializer::from_str(&json)).unwrap_err().to_string()
    };
    assert!(refused(3, "u64").contains("expected"), "only if all is well the rest is read");
    assert!(refused(4, "u64").contains("another hasher"));
    assert!(refused(3, "u32").contains(r#""u64", but "u32" was expected"#));
}

/// A sequence that must not be read again after it has ended. No format has to support that.
struct Strict<'a> {
    bytes: std::slice::Iter<'a, u8>,
    ended: bool,
}

impl<'de> SeqAccess<'de> for Strict<'_> {
    type Error = value::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, value::Error> {
        assert!(!self.ended, "it has ended");
        self.ended = self.bytes.len() == 0;
        self.bytes.next().map(|&byte| seed.deserialize(byte.into_deserializer())).transpose()
    }
}

#[test]
fn a_sequence_that_has_ended_is_not_asked_again() {
    let bytes = snapshot(&filter());
    for len in [0, 7, 40, 59, 2000, bytes.len() - 1, bytes.len()] {
        for limit in [1 << 20, usize::MAX] {
            let sequence = Strict { bytes: bytes[..len].iter(), ended: false };
            let loader = Loader::<Filter, _>::new(Fixed::default(), limit);
            let loaded = loader.deserialize(value::SeqAccessDeserializer::new(sequence));
            assert_eq!(loaded.is_ok(), len == bytes.len(), "{len} bytes: {loaded:?}");
        }
    }
}

#[test]
fn a_derived_struct_holds_a_filter() {
    #[derive(Serialize, Deserialize)]
    struct Service {
        name: String,
        #[serde(deserialize_with = "load")]
        revoked: Filter<StableHashBuilder>,
        seen: GrowableCuckooFilter<u64, Fixed>,
    }
    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Filter<StableHashBuilder>, D::Error> {
        Loader::new(StableHashBuilder::with_key([7; 16]), 1 << 20).deserialize(deserializer)
    }
    let revoked = Filter::with_capacity_and_hasher(100, StableHashBuilder::with_key([7; 16]));
    revoked.insert(&5).unwrap();
    let seen = GrowableCuckooFilter::with_capacity_and_hasher(100, Fixed::default());
    seen.insert(&6).unwrap();
    let service = Service { name: "gateway".into(), revoked, seen };
    for loaded in [
        serde_json::from_str::<Service>(&serde_json::to_string(&service).unwrap()).unwrap(),
        postcard::from_bytes(&postcard::to_stdvec(&service).unwrap()).unwrap(),
    ] {
        assert_eq!((&*loaded.name, loaded.revoked.len(), loaded.seen.len()), ("gateway", 1, 1));
        assert!(loaded.revoked.contains(&5) && loaded.seen.contains(&6));
    }
}

/// Each way to deserialize it leads to the same, within a limit.
fn is_serialized<F>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64)
where
    F: Table + FromSnapshot<Hasher> + Serialize + for<'de> Deserialize<'de>,
{
    let filter = new(1000);
    (0..1000).for_each(|nth| assert_eq!(filter.insert(&(scattered(nth), number(nth))), Ok(true)));
    let snapshot = filter.saved();
    let (bytes, json) = (postcard::to_stdvec(&filter).unwrap(), serde_json::to_string(&filter).unwrap());
    assert!(bytes.ends_with(&snapshot) && bytes.len() <= snapshot.len() + 4);
    assert_eq!(json, serde_json::to_string(&snapshot).unwrap());
    let loader = |limit| Loader::<F, _>::new(Hasher::default(), limit);
    let of_json = |limit| loader(limit).deserialize(&mut serde_json::Deserializer::from_str(&json));
    let of_bytes = |limit| loader(limit).deserialize(&mut postcard::Deserializer::from_bytes(&bytes));
    let needed = F::loaded(&snapshot).stats().memory_usage;
    for loaded in [
        postcard::from_bytes::<F>(&bytes).unwrap(),
        serde_json::from_str(&json).unwrap(),
        of_bytes(needed).unwrap(),
        of_json(needed).unwrap(),
    ] {
        assert!(loaded.saved() == snapshot, "{filter:?}");
    }
    assert!(of_bytes(needed - 1).is_err());
    assert!(of_json(needed - 1).unwrap_err().to_string().contains(&format!("the limit is {}", needed - 1)));
}

#[test]
fn a_filter_is_serialized_as_its_snapshot() {
    in_each_layout!(is_serialized);
}
