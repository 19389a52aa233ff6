//! A snapshot names its kind of keys, and its position in the caller's log.

use std::borrow::Borrow;
use std::hash::Hash;
use std::io;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, LoadError, Loader, SnapshotInfo, SnapshotMismatch, StableHashBuilder,
};

use crate::filters::{Expiring, Filter, Growable, Maplet, builder, expiring_builder, maplet_builder, saved, state};

/// Asserts that a snapshot of a filter of `T` loads as one of `T`, and that loading it as one of `U` fails with an
/// error that names both.
fn assert_told_apart<T: ?Sized + Borrow<Q>, Q: Hash + ?Sized, U: ?Sized>(key: &Q, names: [&str; 2]) {
    let filter = ConcurrentCuckooFilter::<T, _>::with_capacity_and_hasher(10, state());
    filter.insert(key).unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let loaded = ConcurrentCuckooFilter::<T, StableHashBuilder>::load(&bytes[..], state(), 1 << 20).unwrap();
    assert!(loaded.contains(key));
    let error = ConcurrentCuckooFilter::<U, StableHashBuilder>::load(&bytes[..], state(), 1 << 20).unwrap_err();
    assert!(matches!(&error, LoadError::Mismatch(SnapshotMismatch::Schema { .. })), "{error:?}");
    assert!(names.iter().all(|name| error.to_string().contains(&format!("{name:?}"))), "{error}");
}

#[derive(Hash)]
struct Token {
    id: u64,
}

/// Not the same type as [`Token`], although the two may have the same name in two versions of a program.
mod later {
    #[derive(Hash)]
    pub(crate) struct Token {
        pub(crate) id: u64,
        pub(crate) realm: u8,
    }
}

#[derive(Hash)]
#[allow(dead_code, reason = "one of them is enough")]
enum Level {
    Low,
    High,
}

#[test]
fn filters_of_other_keys_are_told_apart() {
    assert_told_apart::<str, str, [u8]>("a", ["str", "[u8]"]);
    assert_told_apart::<[u8], [u8], str>(b"a", ["str", "[u8]"]);
    assert_told_apart::<u32, u32, u64>(&7, ["u32", "u64"]);
    assert_told_apart::<String, str, Vec<u8>>("a", ["alloc::string::String", "alloc::vec::Vec<u8>"]);
    let (token, later) = ("snapshots::schemas::Token", "snapshots::schemas::later::Token");
    assert_told_apart::<Token, Token, later::Token>(&Token { id: 7 }, [token, later]);
    assert_told_apart::<Level, Level, u8>(&Level::High, ["snapshots::schemas::Level", "u8"]);
}

/// In two versions of a program, a struct has the same name, but one version has one more field.
#[test]
fn a_changed_struct_is_told_apart_by_a_schema_of_its_own() {
    let first =
        ConcurrentCuckooFilter::<Token>::builder().hasher(state()).capacity(10).schema("token 1").build().unwrap();
    first.insert(&Token { id: 7 }).unwrap();
    let mut bytes = Vec::new();
    first.save(&mut bytes).unwrap();
    type Later = ConcurrentCuckooFilter<later::Token, StableHashBuilder>;
    let loader = || Loader::<Later, _>::new(state(), 1 << 20);
    let error = loader().schema("token 2").load(&bytes[..]).unwrap_err().to_string();
    assert!(error.contains("\"token 1\"") && error.contains("\"token 2\""), "{error}");
    assert!(matches!(loader().load(&bytes[..]), Err(LoadError::Mismatch(SnapshotMismatch::Schema { .. }))));
    // A caller who names the wrong schema declares that it is right.
    let loaded = loader().schema("token 1").load(&bytes[..]).unwrap().filter;
    assert!(!loaded.contains(&later::Token { id: 7, realm: 1 }));
    let mut again = Vec::new();
    loaded.save(&mut again).unwrap();
    assert_eq!(again, bytes, "a loaded filter keeps its schema");
}

#[test]
fn a_schema_may_have_255_bytes() {
    for len in [0, 1, 255] {
        let schema = "é".repeat(len / 2) + &"x".repeat(len % 2);
        let bytes = saved(&builder().capacity(10).schema(schema.clone()).build().unwrap());
        assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().schema, schema);
        let loader = Loader::<Filter, _>::new(state(), 1 << 20).schema(schema);
        assert_eq!(saved(&loader.load(&bytes[..]).unwrap().filter), bytes);
    }
    let error = builder().capacity(10).schema("x".repeat(256)).build().unwrap_err();
    assert!(matches!(error, BuildError::SchemaTooLong { len: 256, limit: 255, .. }), "{error:?}");
    assert!(error.to_string().contains("256 bytes") && error.to_string().contains("room for 255"), "{error}");
    let loader = Loader::<Filter, _>::new(state(), 1 << 20).schema("x".repeat(256));
    let error = loader.load(&saved(&builder().capacity(10).build().unwrap())[..]).unwrap_err();
    assert!(
        matches!(error, LoadError::Mismatch(SnapshotMismatch::SchemaTooLong { len: 256, limit: 255, .. })),
        "{error:?}"
    );
}

#[test]
fn position_and_attachment_come_back() {
    let filter = builder().capacity(10).build().unwrap();
    for (position, attachment) in
        [(None, vec![]), (Some(0), vec![1]), (Some(u64::MAX), b"eu-west".to_vec()), (Some(17), vec![9; 65_536])]
    {
        let mut save = filter.begin_save().unwrap().attachment(attachment.clone());
        if let Some(position) = position {
            save = save.position(position);
        }
        let mut bytes = Vec::new();
        save.write_to(&mut bytes).unwrap();
        let loaded = Loader::<Filter, _>::new(state(), 1 << 20).load(&bytes[..]).unwrap();
        assert_eq!((loaded.position, &loaded.attachment), (position, &attachment));
        Filter::load(&bytes[..], state(), 1 << 20).expect("the short way leaves them");
    }
    let (save, loader) = (filter.begin_save().unwrap().position(17), Loader::<Filter, _>::new(state(), 1 << 20));
    let shown = format!("{save:?} {loader:?}");
    assert!(shown.contains("position: Some(17)") && shown.contains("memory_limit: 1048576"), "{shown}");
    drop(save);
    let mut bytes = Vec::new();
    let error = filter.begin_save().unwrap().attachment([0; 65_537]).write_to(&mut bytes).unwrap_err();
    assert_eq!((error.kind(), bytes.len()), (io::ErrorKind::InvalidInput, 0));
    assert!(error.to_string().contains("65537 bytes") && error.to_string().contains("65536"), "{error}");
}

/// Loading, viewing and inspecting a snapshot tell what its owner has added.
macro_rules! assert_labelled {
    ($Filter:ty, $builder:expr) => {{
        let filter = $builder.schema("user, version 2").build().unwrap();
        let mut bytes = Vec::new();
        filter.begin_save().unwrap().position(17).attachment("eu-west").write_to(&mut bytes).unwrap();
        let loader = || Loader::<$Filter, _>::new(state(), 1 << 20);
        let loaded = loader().schema("user, version 2").load(&bytes[..]).unwrap();
        assert_eq!((loaded.position, &*loaded.attachment), (Some(17), &b"eu-west"[..]));
        let view = loader().schema("user, version 2").view(&bytes[..]).unwrap();
        for info in [&SnapshotInfo::read(&bytes[..]).unwrap(), view.info()] {
            assert_eq!((&*info.schema, info.position, &*info.attachment), ("user, version 2", Some(17), &b"eu-west"[..]));
            assert_eq!(info.bytes, bytes.len() as u64);
        }
        let error = loader().load(&bytes[..]).unwrap_err();
        assert!(matches!(&error, LoadError::Mismatch(SnapshotMismatch::Schema { snapshot, .. }) if snapshot == "user, version 2"), "{error:?}");
    }};
}

#[test]
fn each_type_has_them() {
    assert_labelled!(Filter, builder().capacity(10));
    assert_labelled!(Maplet, maplet_builder().capacity(10).value_bits(4));
    assert_labelled!(Expiring, expiring_builder().capacity(10).lifetime_in_ticks(14));
    assert_labelled!(Growable, Growable::builder_with_hasher(state()).capacity(10));
}
