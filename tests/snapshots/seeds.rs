//! The seeds of the fuzzer.

use crate::filters::{build, saved};
use crate::support::LAYOUTS;

/// What the fuzzer begins with: snapshots of every layout, empty, partly filled and full, each after the byte that says
/// what is to be made right. `cargo test --all-features --test snapshots writes_seeds -- --ignored`.
#[test]
#[ignore = "writes to the source tree"]
fn writes_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    std::fs::create_dir_all(folder).unwrap();
    for (mode, layout) in LAYOUTS.into_iter().enumerate() {
        for capacity in [0, 30] {
            let filter = build(layout, capacity);
            let items = [filter.capacity() as u64, 12][usize::from(capacity > 0)];
            (0..items).for_each(|key| filter.insert(&key).unwrap());
            let seed = [&[mode as u8 % 4][..], &saved(&filter)].concat();
            std::fs::write(format!("{folder}/{:?}-{}-{capacity}", filter.encoding(), layout.2), seed).unwrap();
        }
    }
}
