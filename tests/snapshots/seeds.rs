//! The seeds of the fuzzer.

use std::time::Duration;

use concurrent_cuckoo_filter::{Encoding, GrowableCuckooFilter, Tick, WhenFull};

use crate::filters::{
    build, build_expiring, build_maplet, builder, expiring_builder, saved, small_expiring, small_maplets, state,
    value_of,
};
use crate::forged::{Forged, ForgedClock};
use crate::support::{LAYOUTS, MAPLET_LAYOUTS};

/// The mode of a seed: how much the fuzzer repairs, whether it expects the key type's schema, which kind of filter
/// it loads, and in which way. The numbers are those of `tests/fuzz/load.rs`.
fn mode(repaired: u8, of_type: bool, kind: u8, way: u8) -> u8 {
    repaired | u8::from(of_type) << 2 | (kind + 5 * way) << 3
}

/// Writes the first inputs of the fuzzer. Each seed is a mode, which `tests/fuzz/load.rs` explains, and a snapshot.
/// `cargo test --all-features --test snapshots writes_seeds -- --ignored`.
#[test]
#[ignore = "writes to the source tree"]
fn writes_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, mode: u8, snapshot: &[u8]| {
        std::fs::write(format!("{folder}/{name}"), [&[mode][..], snapshot].concat()).unwrap();
    };

    // For every layout: a full table of the smallest size, and one that is partly filled.
    for (number, layout) in (0u8..).zip(LAYOUTS) {
        for capacity in [0, 30] {
            let filter = build(layout, capacity);
            let items = [filter.capacity() as u64, 12][usize::from(capacity > 0)];
            (0..items).for_each(|key| filter.insert(&key).unwrap());
            let mode = mode(number % 4, number % 8 >= 4, 0, 0);
            write(&format!("{:?}-{}-{capacity}", filter.plan().layout.encoding, layout.2), mode, &saved(&filter));
        }
    }

    // Small growable filters that have grown, or not. Each is written once with the least repair and once with the most,
    // in all ways.
    let mut way = (0..5).cycle();
    let mut each = |name: &str, kind: u8, snapshot: &[u8]| {
        for repaired in [1, 3] {
            write(&format!("{name}-{repaired}"), mode(repaired, true, kind, way.next().unwrap()), snapshot);
        }
    };
    for (rate, encoding, level) in [
        (0.9, Encoding::Plain, 0),
        (0.03, Encoding::Plain, 2),
        (0.002, Encoding::SemiSorted, 1),
        (0.001, Encoding::SemiSorted, 0),
        (1e-4, Encoding::SemiSorted, 2),
        (1e-6, Encoding::Plain, 1),
    ] {
        // The largest size is not far, so there are several layouts.
        let builder = GrowableCuckooFilter::<u64>::builder().capacity(10).max_capacity(500).encoding(encoding);
        let filter = builder.false_positive_rate(rate).hasher(state()).build().unwrap();
        // Some are between two doublings.
        filter.reserve(level * 150).unwrap();
        (0..60).for_each(|key| filter.insert(&key).unwrap());
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        each(&format!("growable-{rate}-{encoding:?}-{level}"), 1, &bytes);
    }

    // For every layout of maplets: a full one of the smallest size, and a larger one that is partly filled.
    for (layout, larger) in MAPLET_LAYOUTS.into_iter().zip(small_maplets()) {
        let (value_bits, _, slots, _) = layout;
        let maplet = build_maplet(layout, 0);
        (0..2 * slots as u64).for_each(|key| _ = maplet.insert(&key, value_of(key, value_bits)));
        let mut bytes = Vec::new();
        maplet.save(&mut bytes).unwrap();
        each(&format!("maplet-{value_bits}-{slots}-full"), 3, &bytes);
        bytes.clear();
        larger.begin_save().unwrap().position(7).attachment(*b"x").write_to(&mut bytes).unwrap();
        each(&format!("maplet-{value_bits}-{slots}"), 3, &bytes);
    }

    // For every layout of filters whose entries expire: one of the smallest size, before the first tick; and a
    // larger one that is partly filled, with a clock that has begun anew.
    for (layout, larger) in MAPLET_LAYOUTS.into_iter().zip(small_expiring()) {
        let (expiry_bits, _, slots, _) = layout;
        each(&format!("expiring-{expiry_bits}-{slots}-new"), 4, &saved(&build_expiring(layout, 0)));
        larger.restart_clock(Tick::new(7));
        let mut bytes = Vec::new();
        larger.begin_save().unwrap().position(7).attachment(*b"x").write_to(&mut bytes).unwrap();
        each(&format!("expiring-{expiry_bits}-{slots}"), 4, &bytes);
    }
    // A full filter with entries that are not swept, as if it was saved during a sweep.
    let filter = expiring_builder().capacity(30).lifetime(Duration::from_secs(70), Duration::from_millis(9_500));
    let filter = filter.build().unwrap();
    filter.advance_to(Tick::new(28_500_000));
    (0..).take_while(|key| filter.insert_until(key, Tick::new(28_500_001 + key % 8)).is_ok()).for_each(drop);
    let mut bytes = saved(&filter);
    // Changes the place of the tick, and the lag. The repair corrects the seals.
    bytes[70] ^= 2;
    bytes[72] = 5;
    each("expiring-unswept", 4, &bytes);
    // One that forgets, and has ended some ticks early.
    let forgetful = expiring_builder().capacity(8).lifetime_in_ticks(15).when_full(WhenFull::EvictOldest);
    let filter = forgetful.build().unwrap();
    filter.advance_to(Tick::new(7));
    (0..).find(|key| filter.insert_until(key, Tick::new(12)).is_err()).unwrap();
    filter.insert(&1).unwrap();
    bytes.clear();
    filter.save(&mut bytes).unwrap();
    each("expiring-forgetful", 4, &bytes);
    // Entries, though no tick is known.
    let forged = Forged { words: vec![1 << 40; 2], count: 2, ..Forged::of_expiring(&ForgedClock::unknown()) };
    each("expiring-without-clock", 4, &forged.bytes());

    // Snapshots with a position and an attachment. One has a schema of its own, which a loader for the key type's
    // schema refuses.
    let filter = build(LAYOUTS[4], 30);
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    let mut bytes = Vec::new();
    let save = filter.begin_save().unwrap().position(0x0123_4567_89ab_cdef).attachment(*b"eu-west");
    save.write_to(&mut bytes).unwrap();
    write("position-attachment", mode(2, true, 0, 0), &bytes);

    let filter = builder().capacity(30).schema("user, version 2").build().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    bytes.clear();
    filter.begin_save().unwrap().position(0).attachment([0x55; 100]).write_to(&mut bytes).unwrap();
    write("schema-position-attachment", mode(1, false, 0, 0), &bytes);
}
