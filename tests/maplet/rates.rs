use crate::support::seeded;
use crate::{Maplet, maplet, seeded_maplet};

/// For each number of value bits, the rates that lead to each layout that exists for it: the highest first.
const ASKED: [f64; 5] = [0.2, 0.012, 0.001_05, 0.000_024, 1e-8];

/// For each layout and each number of value bits: distinct keys go in up to the capacity, and beyond it at least as
/// many as into a filter. Absent keys are mistaken for present ones as often as computed.
///
/// `cargo test --release --test maplet measured -- --nocapture` prints the table.
#[test]
fn measured_rates_and_loads_are_those_that_were_computed() {
    const ABSENT: u64 = if cfg!(debug_assertions) { 100_000 } else { 20_000 };
    println!(
        "| value bits | slots | fingerprint bits | bits a key | load at the first refusal | rate at capacity | computed |"
    );
    println!("|---|---|---|---|---|---|---|");
    for value_bits in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16] {
        let mut seen = Vec::new();
        for rate in ASKED {
            let builder = Maplet::builder_with_hasher(seeded(value_bits.into()));
            let Ok(maplet) = builder.capacity(60_000).value_bits(value_bits).false_positive_rate(rate).build() else {
                continue;
            };
            if seen.contains(&maplet.plan().layout.slots_per_bucket) {
                continue;
            }
            seen.push(maplet.plan().layout.slots_per_bucket);
            let highest = maplet.plan().max_false_positive_rate;
            assert!(0.0 < highest && highest <= rate);
            let value = |key: u64| (key % (1 << value_bits)) as u16;
            for key in 0..maplet.capacity() as u64 {
                maplet.insert(&key, value(key)).expect("it is made for as many");
            }
            let computed = maplet.stats().false_positive_rate;
            assert!(computed <= highest && highest < 2.0 * computed, "{computed} of {highest}");
            let found = (0..ABSENT).filter(|key| !maplet.values(&(key + (1 << 40))).is_empty()).count();
            let refused = (maplet.capacity() as u64..).find(|key| maplet.insert(key, value(*key)).is_err());
            let keys = refused.expect("it is full at some time");
            println!(
                "| {value_bits} | {} | {} | {:.1} | {:.1} % | {:.4} % | {:.4} % |",
                maplet.plan().layout.slots_per_bucket,
                maplet.plan().layout.fingerprint_bits,
                maplet.stats().memory_usage as f64 * 8.0 / maplet.capacity() as f64,
                maplet.stats().load_factor * 100.0,
                found as f64 / ABSENT as f64 * 100.0,
                computed * 100.0
            );
            // Five standard deviations.
            let expected = computed * ABSENT as f64;
            assert!(
                (found as f64 - expected).abs() <= 5.0 * (expected + 1.0).sqrt(),
                "{found} of {ABSENT}, computed {computed}"
            );
            assert!((0..keys).all(|key| maplet.values(&key).contains(value(key))), "a key has lost its value");
        }
        assert!(!seen.is_empty(), "there is a layout for {value_bits} bits");
    }
}

/// The size of each layout, compared with the documentation.
#[test]
fn as_many_bits_a_key_as_documented() {
    for (value_bits, rate, documented) in [(4, 0.011, 13.3), (4, 0.001, 16.9), (8, 0.0004, 23.4)] {
        let maplet = maplet(20_000_000, value_bits, rate);
        let bits = maplet.stats().memory_usage as f64 * 8.0 / maplet.capacity() as f64;
        assert!(bits <= documented, "{bits} bits a key, {value_bits} value bits at {rate}");
    }
}

/// A wrong value is found for a present key as rarely as for an absent one.
#[test]
fn other_values_of_present_keys_come_in_at_the_rate() {
    let maplet = maplet(100_000, 4, 0.011);
    (0..100_000).for_each(|key| maplet.insert(&key, (key % 16) as u16).expect("there is room"));
    let wrong = (0..100_000).filter(|key| maplet.values(key).len() > 1).count() as f64;
    let expected = maplet.stats().false_positive_rate * 100_000.0;
    // One in 16 of them has the same value.
    assert!(wrong <= expected + 5.0 * expected.sqrt() && wrong >= expected / 2.0, "{wrong} of {expected}");
}

/// The narrowest fingerprints, 7 bits, give the fewest alternate buckets. Small maplets with them also take as many
/// keys as they are made for.
#[test]
fn small_maplets_of_narrow_fingerprints_take_their_capacity() {
    const OF_EACH: usize = if cfg!(miri) { 10 } else { 20_000 };
    for value_bits in [5, 7, 10, 15] {
        for capacity in [1, 7, 10, 20, 40, 70, 100, 200, 500, 2000] {
            for seed in 0..(OF_EACH * 10 / (10 + capacity)) as u64 {
                let maplet = seeded_maplet(seed, capacity, value_bits, 0.2);
                assert_eq!(maplet.plan().layout.fingerprint_bits, 7);
                for key in 0..maplet.capacity() as u64 {
                    maplet.insert(&key, (key % 32) as u16).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                }
            }
        }
    }
}
