//! The public interface, as one thread sees it.

mod support;

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    ConcurrentBuilder, ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringBuilder, ExpiringCuckooFilter,
    GrowableCuckooFilter,
};
use support::{Identity, Raw, Seeded, seeded};

type Filter<T> = ConcurrentCuckooFilter<T>;

/// A filter that takes no key of these tests for another. With random keys of its hasher, it would now and then.
fn exact<T: ?Sized>() -> ConcurrentCuckooFilter<T, Seeded> {
    ConcurrentCuckooFilter::with_capacity_and_hasher(100, seeded(1))
}

#[test]
fn borrowed_forms_of_a_key_are_the_same_key() {
    let strings = Filter::<String>::with_capacity(10);
    strings.insert("a").unwrap();
    assert!(strings.contains(&"a".to_string()) && strings.contains("a"));
    let bytes = Filter::<[u8]>::with_capacity(10);
    bytes.insert(b"a".as_slice()).unwrap();
    assert!(bytes.contains(vec![b'a'].as_slice()));
    let pairs = exact::<(u32, String)>();
    pairs.insert(&(1, "a".into())).unwrap();
    assert!(pairs.contains(&(1, "a".into())) && !pairs.contains(&(2, "a".into())));
}

#[test]
fn a_filter_is_send_and_sync_whatever_its_keys_are() {
    fn check<F: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    check::<Filter<Rc<str>>>();
    check::<Filter<*const u8>>();
    check::<Arc<Filter<str>>>();
    check::<ConcurrentBuilder<Rc<str>>>();
    check::<(ExpiringCuckooFilter<Rc<str>>, ExpiringBuilder<*const u8>)>();
    let erased: Arc<Filter<dyn std::fmt::Debug>> = Arc::new(Filter::with_capacity(1));
    assert!(erased.is_empty());
}

#[test]
#[cfg_attr(target_arch = "s390x", ignore = "the figures are for cache lines of at most 128 bytes")]
fn a_small_filter_takes_little_memory() {
    for (capacity, most) in [(100, 56.0), (1000, 24.0), (10_000, 16.0)] {
        let bits = |bytes: usize| bytes as f64 * 8.0 / capacity as f64;
        let one = bits(Filter::<u64>::with_capacity(capacity).stats().memory_usage);
        let growable = GrowableCuckooFilter::<u64>::builder().capacity(capacity);
        let largest = bits(growable.clone().max_capacity(capacity).build().unwrap().stats().memory_usage);
        assert!(one <= most, "{capacity}: {one} bits a key");
        assert!(largest <= 2.3 * most + bits(1_000), "{capacity}: {largest} bits a key in one that can grow");
        // If it may grow much larger, it needs more locks and counters, and longer fingerprints.
        let small = bits(growable.build().unwrap().stats().memory_usage);
        assert!(small <= bits(8_500) + 60.0, "{capacity}: {small} bits a key");
    }
}

#[test]
fn any_capacity_is_met_without_rounding_to_powers_of_two() {
    for capacity in [0, 1, 2, 3, 5, 6, 7, 10, 11, 100, 1000, 10_007, 65_536, 65_537, 100_000, 1_000_003] {
        let filter = Filter::<u64>::with_capacity(capacity);
        assert!(filter.capacity() >= capacity && filter.plan().slots >= filter.capacity());
        if capacity >= 10_000 {
            let bits = filter.stats().memory_usage as f64 * 8.0 / capacity as f64;
            let with_stripes = if capacity >= 1_000_000 { 13.4 } else { 16.0 };
            assert!(bits < with_stripes, "{bits} bits a key for {capacity}");
            assert!(
                filter.plan().slots as f64 <= 1.06 * capacity as f64,
                "{} slots for {capacity}",
                filter.plan().slots
            );
        }
    }
}

/// The table of rates in the page on choosing parameters. A row that differs is printed as it should be.
#[test]
fn the_documented_rates_lead_to_the_documented_layouts() {
    let page = include_str!("../src/guide/choosing_parameters.md");
    let rows = page.split("| rate asked for |").nth(1).expect("the table").lines().skip(2);
    let rows: Vec<&str> = rows.take_while(|row| row.starts_with('|')).collect();
    assert!(rows.len() > 10);
    let mut wrong = Vec::new();
    for row in rows {
        let asked = documented_rate(row.split('|').nth(1).unwrap().trim()).unwrap();
        let builder = Filter::<u64>::builder().capacity(10_000_000).false_positive_rate(asked);
        let plan = builder.plan().unwrap();
        assert!(plan.max_false_positive_rate <= asked);
        let layout = plan.layout;
        let encoding = if layout.encoding == Encoding::Plain { "plain" } else { "semi-sorted" };
        let bits = (layout.buckets * 64) as f64 / plan.capacity as f64;
        let least = 1.44 - asked.log2();
        let right = format!(
            "|{}| {bits:.1} | {encoding} {}×{} | {:.0}% | {:.1} | {:.1} | {:.1} |",
            row.split('|').nth(1).unwrap(),
            layout.slots_per_bucket,
            layout.fingerprint_bits,
            plan.capacity as f64 / plan.slots as f64 * 100.0,
            least,
            bits - least,
            -asked.log2() * std::f64::consts::LOG2_E,
        );
        if row != right {
            wrong.push(right);
        }
    }
    assert!(wrong.is_empty(), "these rows are right:\n{}", wrong.join("\n"));
}

/// The cells of the table in the documentation of `false_positive_rate`, row by row, without its head.
fn documented_steps(builder: &str) -> Vec<Vec<&str>> {
    let rows = builder.split("pub fn false_positive_rate").next().unwrap().lines();
    let rows = rows.filter_map(|line| line.trim().strip_prefix("/// |")?.strip_suffix('|'));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    assert!(rows[1].iter().all(|cell| *cell == "---"), "{rows:?}");
    rows
}

/// A rate as the tables have it; `None` if there is none.
fn documented_rate(cell: &str) -> Option<f64> {
    let digit = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c);
    let (factor, power) = cell.split_once("10⁻").map_or((cell, None), |(factor, power)| (factor, power.chars().next()));
    if let Some(power) = power.and_then(digit) {
        let factor = factor.strip_suffix(" · ").map_or(1.0, |factor| factor.parse().unwrap());
        return Some(factor * 10f64.powi(-(power as i32)));
    }
    match cell.strip_suffix("%") {
        _ if cell == "–" => None,
        Some(percent) => Some(percent.parse::<f64>().unwrap() / 100.0),
        None => Some(cell.parse().unwrap()),
    }
}

/// The steps of the rate in the documentation of the builders. A rate is rounded there by 6% at most.
#[test]
#[cfg_attr(miri, ignore = "builds large tables")]
fn the_steps_of_the_rate_are_those_of_the_documentation() {
    const KEYS: usize = 4_000_000;
    let is = |bits: f64, documented: &str| (bits / documented.parse::<f64>().unwrap() - 1.0).abs() < 0.005;

    let rows = documented_steps(include_str!("../src/filter/concurrent/builder.rs"));
    for (rate, documented) in rows[0].iter().zip(&rows[2]).skip(1) {
        let rate = documented_rate(rate).unwrap();
        let plan = Filter::<u64>::builder().capacity(10_000_000).false_positive_rate(rate).plan().unwrap();
        let bits = (plan.layout.buckets * 64) as f64 / plan.capacity as f64;
        assert_eq!(format!("{bits:.1}"), *documented, "{rate}: {bits}");
    }

    type Bits = fn(usize, f64) -> Option<f64>;
    let maplet: Bits = |value_bits, rate| {
        let builder = CuckooMaplet::<u64>::builder().capacity(KEYS).value_bits(value_bits as u32);
        let maplet = builder.false_positive_rate(rate).build().ok()?;
        Some((maplet.plan().slots / maplet.plan().layout.slots_per_bucket * 64) as f64 / maplet.capacity() as f64)
    };
    let expiring: Bits = |resolutions, rate| {
        let builder = ExpiringCuckooFilter::<u64>::builder().capacity(KEYS).false_positive_rate(rate);
        let filter = builder
            .lifetime(Duration::from_secs(resolutions as u64))
            .resolution(Duration::from_secs(1))
            .build()
            .ok()?;
        Some((filter.plan().slots / filter.plan().layout.slots_per_bucket * 64) as f64 / filter.capacity() as f64)
    };
    for (builder, bits, first_rate) in [
        (include_str!("../src/filter/maplet/builder.rs"), maplet, 1),
        (include_str!("../src/filter/expiring/builder.rs"), expiring, 2),
    ] {
        let rows = documented_steps(builder);
        for row in &rows[2..] {
            let payload = row[0].split(' ').next().unwrap().replace(',', "").parse().unwrap();
            for (cell, head) in row.iter().zip(&rows[0]).skip(first_rate) {
                let documented = head.split(' ').next().unwrap();
                let Some(rate) = documented_rate(cell) else { continue };
                let just_met = bits(payload, rate * 1.06).expect("there is such a layout");
                assert!(is(just_met, documented), "{row:?}: {just_met} at {rate}, not {documented}");
                // With a few more slots free, the layout has a somewhat lower rate.
                let lower = bits(payload, rate * 0.5);
                assert!(lower.is_none_or(|more| more > just_met + 1.0), "{row:?}: less than {rate}");
            }
        }
    }
}

/// The sizes in the documentation of the builders.
#[test]
fn capacity_0_builds_the_smallest_filter() {
    let filter = Filter::<u64>::with_capacity(0);
    assert_eq!((filter.plan().slots, filter.capacity()), (5, 5));
    let growable = GrowableCuckooFilter::<u64>::with_capacity(0);
    assert_eq!(growable.capacity(), 10);
    let maplet = CuckooMaplet::<u64>::builder().capacity(0).value_bits(4).build().unwrap();
    assert_eq!((maplet.plan().slots, maplet.capacity()), (8, 8));
    let minute = Duration::from_secs(60);
    let expiring =
        ExpiringCuckooFilter::<u64>::builder().capacity(0).lifetime(14 * minute).resolution(minute).build().unwrap();
    assert_eq!((expiring.plan().slots, expiring.capacity()), (8, 8));
}

#[test]
fn debug_prints_statistics_and_no_secrets() {
    #[derive(Clone, Debug)]
    struct Secret;
    impl BuildHasher for Secret {
        type Hasher = std::hash::DefaultHasher;
        fn build_hasher(&self) -> Self::Hasher {
            Self::Hasher::new()
        }
    }
    let builder = Filter::<u64>::builder().capacity(10).hasher(Secret);
    assert!(!format!("{builder:?}").contains("Secret"));
    let filter = builder.build().unwrap();
    filter.insert(&1).unwrap();
    let text = format!("{filter:?}");
    assert!(text.contains("len: 1") && text.contains("false_positive_rate"), "{text}");
    assert!(!text.contains("Secret") && !text.contains("words") && text.len() < 500, "{text}");
    assert!(matches!(filter.hasher(), Secret));
}

#[test]
fn filters_are_keyed_apart() {
    // Keys that are false positives of one filter are none of another, except by chance.
    let [one, other] = [0, 1].map(|_| {
        let filter = Filter::<u64>::builder().capacity(2000).false_positive_rate(0.05).build().unwrap();
        (0..2000).for_each(|key| filter.insert(&key).unwrap());
        let absent = if cfg!(miri) { 2000..2600 } else { 2000..22_000 };
        absent.filter(|key| filter.contains(key)).collect::<HashSet<u64>>()
    });
    assert!(!one.is_empty() && one.intersection(&other).count() < one.len() / 2);
}

#[test]
fn extreme_hashes_are_keys_like_any_other() {
    let filter = ConcurrentCuckooFilter::<Raw, _>::with_capacity_and_hasher(200, BuildHasherDefault::<Identity>::new());
    let hashes: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, !(1 << bit)]).chain([0, u64::MAX]).collect();
    for (i, &hash) in hashes.iter().enumerate() {
        filter.insert(&Raw(hash)).unwrap();
        assert_eq!(filter.len(), i + 1);
    }
    assert!(hashes.iter().all(|&hash| filter.contains(&Raw(hash)) && filter.remove(&Raw(hash))));
    assert!(filter.is_empty());
}
