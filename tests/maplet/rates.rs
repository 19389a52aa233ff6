use crate::{maplet, seeded_maplet};

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
