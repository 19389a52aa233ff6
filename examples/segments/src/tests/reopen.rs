//! Where the maplet comes from when a store is opened. In each case it has exactly the pairs it needs.

use std::fs;
use std::path::Path;

use super::{assert_exact, scratch, small};
use crate::opened::Origin;
use crate::options::{Options, Strategy};
use crate::store::Store;

fn open(directory: &Path) -> Store {
    Store::open(directory, small(Strategy::Maplet)).unwrap()
}

#[test]
fn more_segments_than_a_store_can_have_are_refused() {
    let directory = scratch();
    for asked in [0, 256] {
        let options = Options { most_segments: asked, ..small(Strategy::Maplet) };
        let error = Store::open(&directory, options).err().unwrap().to_string();
        assert_eq!(error, format!("a store can have 1 to 255 segments, not {asked}: change `most_segments`"));
    }
    assert!(Store::open(&directory, Options { most_segments: 255, ..small(Strategy::Maplet) }).is_ok());
}

/// Puts these keys, deletes every fifth, and flushes.
fn flush_keys(store: &Store, keys: std::ops::Range<u32>) {
    for key in keys {
        if key % 5 == 0 {
            store.delete(&key.to_le_bytes()).unwrap();
        } else {
            store.put(&key.to_le_bytes(), b"value").unwrap();
        }
    }
    assert!(store.flush().unwrap());
}

/// Opens the store again, and gets each key.
fn reopened(directory: &Path, keys: u32) -> Origin {
    let store = open(directory);
    assert_exact(&store);
    for key in 0..keys + 50 {
        let value = store.get(&key.to_le_bytes()).unwrap();
        assert_eq!(value.is_some(), key < keys && key % 5 != 0, "{key}");
    }
    // The maplet reports if a pair that these steps move is not there.
    flush_keys(&store, 0..keys);
    store.compact(0..store.segments().len()).unwrap();
    assert_exact(&store);
    store.opened().maplet.clone()
}

#[track_caller]
fn assert_scanned(origin: Origin, mention: &str) {
    let Origin::Scanned { reason } = origin else { panic!("{origin:?}") };
    assert!(reason.contains(mention), "{reason}");
}

#[test]
fn a_snapshot_is_brought_up_to_date() {
    let directory = scratch();
    let store = open(directory.path());
    flush_keys(&store, 0..100);
    flush_keys(&store, 50..150);
    assert!(store.save().unwrap());
    drop(store);
    // First nothing has changed. Then there are two new segments with keys of older ones and new keys; one of the
    // two is merged from two flushes.
    let store = open(directory.path());
    assert_eq!(store.opened().maplet, Origin::FromSnapshot { segments: 0 });
    assert_exact(&store);
    flush_keys(&store, 140..200);
    flush_keys(&store, 0..20);
    flush_keys(&store, 190..220);
    assert!(store.compact(0..2).unwrap());
    drop(store);
    assert_eq!(reopened(directory.path(), 220), Origin::FromSnapshot { segments: 2 });
}

#[test]
fn a_snapshot_whose_segments_are_gone_is_not_used() {
    let directory = scratch();
    let store = open(directory.path());
    flush_keys(&store, 0..100);
    flush_keys(&store, 50..150);
    store.save().unwrap();
    store.compact(0..1).unwrap();
    drop(store);
    assert_scanned(reopened(directory.path(), 150), "merged into another");
}

#[test]
fn no_snapshot_a_damaged_one_and_another_stores_are_not_used() {
    let [directory, other] = [scratch(), scratch()];
    for directory in [&directory, &other] {
        flush_keys(&open(directory.path()), 0..30);
    }
    let snapshot = open(directory.path()).snapshot_path();
    assert_scanned(reopened(directory.path(), 30), "there is no snapshot");
    open(other.path()).save().unwrap();
    fs::copy(open(other.path()).snapshot_path(), &snapshot).unwrap();
    assert_scanned(reopened(directory.path(), 30), "can't be loaded");
    open(directory.path()).save().unwrap();
    let mut bytes = fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&snapshot, bytes).unwrap();
    assert_scanned(reopened(directory.path(), 30), "can't be loaded");
}

#[test]
fn a_store_that_went_another_way_does_not_take_the_snapshot() {
    let directory = scratch();
    flush_keys(&open(directory.path()), 0..30);
    let manifest = directory.path().join("manifest.json");
    let before = fs::read(&manifest).unwrap();
    let store = open(directory.path());
    flush_keys(&store, 0..40);
    store.save().unwrap();
    drop(store);
    // The manifest is put back, and another segment with the same number and slot is flushed.
    fs::write(&manifest, before).unwrap();
    let store = open(directory.path());
    flush_keys(&store, 20..50);
    drop(store);
    assert_scanned(reopened(directory.path(), 50), "merged into another");
}
