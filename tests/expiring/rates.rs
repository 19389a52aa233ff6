use concurrent_cuckoo_filter::Tick;

use crate::support::seeded;
use crate::{Filter, filter};

/// For each layout and some lengths of lifetimes: distinct keys go in up to the capacity, absent keys are found as
/// often as computed, and expired keys are found no more often than absent ones.
///
/// `cargo test --release --test expiring measured -- --nocapture` prints the table.
#[test]
fn measured_rates_and_loads_are_those_that_were_computed() {
    const ABSENT: u64 = 100_000;
    println!("| ticks | slots | fingerprint bits | bits an entry | rate at capacity | of the expired | computed |");
    println!("|---|---|---|---|---|---|---|");
    for ticks in [3, 15, 63, 255, 4095, 65_535] {
        let mut seen = Vec::new();
        for rate in [0.2, 0.012, 0.001_05, 0.000_024, 1e-8] {
            let builder = Filter::builder_with_hasher(seeded(ticks)).capacity(60_000);
            let Ok(filter) = builder.lifetime_in_ticks(ticks).false_positive_rate(rate).build() else { continue };
            if seen.contains(&filter.plan().layout.slots_per_bucket) {
                continue;
            }
            seen.push(filter.plan().layout.slots_per_bucket);
            let highest = filter.plan().max_false_positive_rate;
            assert!(0.0 < highest && highest <= rate);
            filter.advance_to(Tick::new(1));
            let keys = filter.capacity() as u64;
            (0..keys).for_each(|key| {
                _ = filter.insert_until(&key, Tick::new(2 + key % ticks)).expect("it is made for as many")
            });
            let computed = filter.stats().false_positive_rate;
            assert!(computed <= highest && highest < 2.0 * computed, "{computed} of {highest}");
            let found = (0..ABSENT).filter(|key| filter.contains(&(key + (1 << 40)))).count() as f64;
            assert!((0..keys).all(|key| filter.contains(&key)), "a live key was missed");
            // Others replace those that expire.
            filter.advance_to(Tick::new(2));
            let expired: Vec<u64> = (0..keys).step_by(ticks as usize).collect();
            for key in &expired {
                filter.insert_until(&(key + (1 << 41)), Tick::new(2 + ticks)).expect("the dead make room");
            }
            let revived = expired.iter().filter(|key| filter.contains(key)).count() as f64;
            println!(
                "| {ticks} | {} | {} | {:.1} | {:.4} % | {:.4} % | {:.4} % |",
                filter.plan().layout.slots_per_bucket,
                filter.plan().layout.fingerprint_bits,
                filter.stats().memory_usage as f64 * 8.0 / keys as f64,
                found / ABSENT as f64 * 100.0,
                revived / expired.len() as f64 * 100.0,
                computed * 100.0
            );
            // Five standard deviations.
            for (found, asked) in [(found, ABSENT as f64), (revived, expired.len() as f64)] {
                let expected = computed * asked;
                assert!(
                    (found - expected).abs() <= 5.0 * (expected + 1.0).sqrt(),
                    "{found} of {asked}, computed {computed}"
                );
            }
        }
        assert!(!seen.is_empty(), "there is a layout for {ticks} ticks");
    }
}

/// The size of each layout, compared with the documentation.
#[test]
fn as_many_bits_an_entry_as_documented() {
    for (ticks, rate, documented) in [(15, 0.011, 13.3), (15, 0.001, 16.9), (61, 0.0001, 23.4), (255, 0.0004, 23.4)] {
        let filter = filter(20_000_000, ticks, rate);
        let bits = filter.stats().memory_usage as f64 * 8.0 / filter.capacity() as f64;
        assert!(bits <= documented, "{bits} bits an entry for {ticks} ticks at {rate}");
    }
}

/// If a tenth of the slots holds dead entries that are not swept, the table is nearly as good as one that is a
/// tenth emptier.
#[test]
fn dead_entries_are_room() {
    let relocations = |dead: bool| {
        let filter = filter(600_000, 15, 0.001);
        let slots = filter.plan().slots as u64;
        filter.advance_to(Tick::new(0));
        let (living, dying) = (slots * 80 / 100, slots / 10);
        (0..living).for_each(|key| _ = filter.insert_until(&key, Tick::new(15)).expect("there is room"));
        if dead {
            (0..dying).for_each(|key| _ = filter.insert_until(&(key | 1 << 40), Tick::new(1)).expect("there is room"));
            filter.advance_to(Tick::new(1));
            assert!(filter.len() as u64 > living + dying * 9 / 10, "nearly all of them are there still");
        }
        let before = filter.stats().relocations;
        for key in 0..slots * 14 / 100 {
            filter.insert_until(&(key | 1 << 41), Tick::new(15)).expect("there is room, and dead entries make more");
        }
        filter.stats().relocations - before
    };
    let (among_the_dead, without) = (relocations(true), relocations(false));
    assert!(without > 1000 && among_the_dead <= without * 5 / 4, "{among_the_dead} relocations, and {without}");
}
