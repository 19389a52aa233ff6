//! The seeds of the fuzzer.

use concurrent_cuckoo_filter::{Encoding, Tick, WhenFull};

use crate::filters::{
    Growable, Kind, build, build_expiring, build_maplet, expiring_builder, saved, small_growable, state, value_of,
};
use crate::support::{LAYOUTS, MAPLET_LAYOUTS};

/// Writes the first inputs of the fuzzer. Each seed is a mode, which `tests/fuzz/load.rs` explains, and a snapshot.
/// `cargo test --all-features --test snapshots writes_seeds -- --ignored`.
#[test]
#[ignore = "writes to the source tree"]
fn writes_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    std::fs::create_dir_all(folder).unwrap();
    // By turns with the least repair and with the most, for either schema, and in each way.
    let mut turns = 0u8..;
    let mut write = |name: &str, kind: u8, snapshot: &[u8]| {
        let turn = turns.next().unwrap();
        let (repaired, of_type, way) = (1 + 2 * (turn % 2), turn / 2 % 2, turn / 4 % 5);
        let mode = repaired | of_type << 2 | (kind + 5 * way) << 3;
        std::fs::write(format!("{folder}/{name}"), [&[mode][..], snapshot].concat()).unwrap();
    };

    // For every layout: a full table of the smallest size, and one that is partly filled.
    for capacity in [0, 30] {
        for layout @ (encoding, _, slots, bits) in LAYOUTS {
            let filter = build(layout, capacity);
            (0..[filter.capacity() as u64, 12][capacity / 30]).for_each(|key| filter.insert(&key).unwrap());
            write(&format!("{encoding:?}-{slots}-{bits}-{capacity}"), 0, &saved(&filter));
        }
        for layout @ (bits, _, slots, _) in MAPLET_LAYOUTS {
            let maplet = build_maplet(layout, capacity);
            (0..[2 * slots as u64, 12][capacity / 30]).for_each(|key| _ = maplet.insert(&key, value_of(key, bits)));
            write(&format!("maplet-{bits}-{slots}-{capacity}"), 3, &labeled(&maplet));

            // The smallest before the first tick, the larger one with a clock that has begun anew.
            let filter = build_expiring(layout, capacity);
            if capacity > 0 {
                filter.advance_to(Tick::new(28_500_000));
                let end = |key| Tick::new(28_500_001 + u64::from(value_of(key, bits) / 2));
                (0..12).for_each(|key| _ = filter.insert_until(&key, end(key)));
                filter.restart_clock(Tick::new(7));
            }
            write(&format!("expiring-{bits}-{slots}-{capacity}"), 4, &labeled(&filter));
        }
    }
    for encoding in [Encoding::Plain, Encoding::SemiSorted] {
        for (rate, level) in [(0.03, 2), (0.002, 1), (1e-4, 2)] {
            // The largest size is not far, so there are several layouts. Some are between two doublings.
            let builder = Growable::builder_with_hasher(state()).capacity(10).max_capacity(500).encoding(encoding);
            let filter = builder.false_positive_rate(rate).build().unwrap();
            filter.reserve(level * 150).unwrap();
            (0..60).for_each(|key| filter.insert(&key).unwrap());
            write(&format!("growable-{rate}-{encoding:?}"), 1, &saved(&filter));
        }
    }
    write("growable", 1, &saved(&small_growable()));
    // One that evicts, and has ended some ticks early.
    let builder = expiring_builder().capacity(8).lifetime_in_ticks(15).when_full(WhenFull::EvictSoonest);
    let filter = builder.build().unwrap();
    filter.advance_to(Tick::new(7));
    (0..).find(|key| filter.insert_until(key, Tick::new(12)).is_err()).unwrap();
    filter.insert(&1).unwrap();
    write("expiring-evicting", 4, &saved(&filter));
    // The same in each layout, for the longest lifetimes and for half of these. Some entries are yet to be swept.
    for (bits, rate, slots, _) in MAPLET_LAYOUTS {
        for longest in [(1 << bits) - 1, 1 << (bits - 1)] {
            let builder = expiring_builder().capacity(8).lifetime_in_ticks(longest).false_positive_rate(rate);
            let filter = builder.when_full(WhenFull::EvictSoonest).build().unwrap();
            filter.advance_to(Tick::new(7));
            let end = |key| Tick::new(8 + key % longest);
            (0..).find(|key| filter.insert_until(key, end(*key)).is_err()).unwrap();
            filter.advance_to(Tick::new(8));
            _ = filter.insert(&1);
            write(&format!("evicting-{bits}-{slots}-{longest}"), 4, &saved(&filter));
        }
    }
}

fn labeled(filter: &impl Kind) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.begin().position(7).attachment(*b"x").write_to(&mut bytes).unwrap();
    bytes
}
