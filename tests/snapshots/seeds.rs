//! The seeds of the fuzzer.

use crate::filters::{build, builder, saved};
use crate::support::LAYOUTS;

/// Writes what the fuzzer begins with. Each seed is a mode, which `tests/fuzz/load.rs` explains, and a snapshot.
/// `cargo test --all-features --test snapshots writes_seeds -- --ignored`.
#[test]
#[ignore = "writes to the source tree"]
fn writes_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, mode: usize, snapshot: &[u8]| {
        std::fs::write(format!("{folder}/{name}"), [&[mode as u8 % 8][..], snapshot].concat()).unwrap();
    };

    // Every layout: a full table of the least size, and one that is partly filled.
    for (mode, layout) in LAYOUTS.into_iter().enumerate() {
        for capacity in [0, 30] {
            let filter = build(layout, capacity);
            let items = [filter.capacity() as u64, 12][usize::from(capacity > 0)];
            (0..items).for_each(|key| filter.insert(&key).unwrap());
            write(&format!("{:?}-{}-{capacity}", filter.encoding(), layout.2), mode, &saved(&filter));
        }
    }

    // Snapshots with a position and an attachment. One has a schema of its own, which a loader for the key type's refuses.
    let filter = build(LAYOUTS[4], 30);
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    let mut bytes = Vec::new();
    let save = filter.begin_save().unwrap().position(0x0123_4567_89ab_cdef).attachment(*b"eu-west");
    save.write_to(&mut bytes).unwrap();
    write("position-attachment", 6, &bytes);

    let filter = builder().capacity(30).schema("user, version 2").build().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    bytes.clear();
    filter.begin_save().unwrap().position(0).attachment([0x55; 100]).write_to(&mut bytes).unwrap();
    write("schema-position-attachment", 1, &bytes);
}
