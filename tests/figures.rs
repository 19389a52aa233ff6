//! The figures of the pages that follow from plans, and are not measured: bits per key, and how far filters can grow. When a
//! plan changes, the check prints the right line.
#![cfg(target_pointer_width = "64")]

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringCuckooFilter, FilterPlan, GrowableCuckooFilter,
};

const README: &str = include_str!("../README.md");
const CHOOSING: &str = include_str!("../src/guide/choosing_parameters.md");
const GROWTH: &str = include_str!("../src/guide/growth.md");

/// Asserts that the page has this text, if the page's line breaks are taken for spaces.
fn assert_says(page: &str, text: &str) {
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(text), "the page does not say: {text}");
}

fn bits_per_key(plan: &FilterPlan, keys: usize) -> f64 {
    8.0 * plan.memory_usage as f64 / keys as f64
}

fn fixed(keys: usize, rate: f64) -> FilterPlan {
    ConcurrentCuckooFilter::<u64>::builder().capacity(keys).false_positive_rate(rate).plan().unwrap()
}

/// 7817 as "7,817".
fn grouped(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}

#[test]
fn the_bits_per_key_of_each_rate() {
    let keys = 10_000_000;
    for (name, rate) in [
        ("10%", 0.1),
        ("3%", 0.03),
        ("1%", 0.01),
        ("0.1%", 0.001),
        ("0.06%", 0.0006),
        ("0.01%", 1e-4),
        ("6 · 10⁻⁵", 6e-5),
        ("10⁻⁵", 1e-5),
        ("2 · 10⁻⁶", 2e-6),
        ("10⁻⁶", 1e-6),
        ("10⁻⁹", 1e-9),
    ] {
        let plan = fixed(keys, rate);
        let (layout, load) = (plan.layout, 100.0 * plan.capacity as f64 / plan.slots as f64);
        let encoding = if layout.encoding == Encoding::Plain { "plain" } else { "semi-sorted" };
        let (bits, slots, fingerprint_bits) =
            (bits_per_key(&plan, keys), layout.slots_per_bucket, layout.fingerprint_bits);
        assert_says(CHOOSING, &format!("| {name} | {bits:.1} | {encoding} {slots}×{fingerprint_bits} | {load:.0}% |"));
    }
    let rates = [0.1, 0.01, 0.001, 0.0005, 1e-4, 1e-5, 2e-6, 1e-6, 1e-9];
    let bits = rates.map(|rate| format!(" {:.1} |", bits_per_key(&fixed(keys, rate), keys))).concat();
    assert_says(include_str!("../src/filter/concurrent/builder.rs"), &format!("/// | bits |{bits}"));
}

#[test]
fn the_bits_per_key_of_small_tables_and_of_the_other_types() {
    let [hundred, thousand, ten_thousand, million] = [100, 1000, 10_000, 1_000_000].map(|keys| {
        let bits = bits_per_key(&fixed(keys, 0.001), keys);
        if bits < 40.0 { format!("{bits:.1}") } else { format!("{bits:.0}") }
    });
    assert_says(
        CHOOSING,
        &format!(
            "100 keys use {hundred} bits each, 1,000 use {thousand}, 10,000 use {ten_thousand}, and a million use {million}."
        ),
    );
    let figures = include_str!("../src/filter/concurrent/filter.rs").replace("///", "");
    assert_says(
        &figures,
        &format!("{million} for a million, {ten_thousand} for 10,000, {thousand} for 1,000 and {hundred} for 100."),
    );
    assert_says(README, &format!("in {million} bits per key instead of"));
    let maplet = [1000, 100_000, 10_000_000]
        .map(|keys| bits_per_key(&CuckooMaplet::<u64>::builder().capacity(keys).value_bits(4).plan().unwrap(), keys));
    let [thousand, more, most] = maplet.map(|bits| format!("{bits:.1}"));
    assert_says(
        CHOOSING,
        &format!("uses {thousand} bits per key for 1,000 keys, {more} for 100,000 and {most} from a few million on."),
    );
    assert_says(README, &format!("| `CuckooMaplet` | {most} with 4-bit values |"));
    assert_says(
        README,
        &format!("| `ConcurrentCuckooFilter` | {:.1} |", bits_per_key(&fixed(10_000_000, 0.001), 10_000_000)),
    );
    // A lifetime of so many resolutions may touch one tick more.
    let second = std::time::Duration::from_secs(1);
    let [few, many] = [14, 254].map(|resolutions| {
        let builder = ExpiringCuckooFilter::<u64>::builder()
            .capacity(10_000_000)
            .lifetime(resolutions * second)
            .resolution(second);
        bits_per_key(&builder.plan().unwrap(), 10_000_000)
    });
    assert_says(
        README,
        &format!("{few:.1} for lifetimes of up to 14 times the resolution, {many:.1} for up to 254 times |"),
    );
}

/// How far a filter can grow by default, and the most that can be set.
#[test]
fn the_largest_sizes_of_growable_filters() {
    let builder = |rate| GrowableCuckooFilter::<u64>::builder().false_positive_rate(rate);
    let largest = |capacity, rate| builder(rate).capacity(capacity).plan().unwrap().max_capacity.unwrap();
    let most = |rate| match builder(rate).max_capacity(usize::MAX).plan() {
        Err(BuildError::CapacityTooLarge { largest, .. }) => largest,
        other => panic!("{other:?}"),
    };
    let millions = |keys: usize| grouped((keys as f64 / 1e6).round() as u64);
    for (name, rate) in [("10%", 0.1), ("1%", 0.01), ("0.1%", 0.001), ("10⁻⁴", 1e-4), ("10⁻⁵", 1e-5), ("10⁻⁶", 1e-6)]
    {
        let sizes = [1000, 1_000_000, 10_000_000, 100_000_000].map(|capacity| largest(capacity, rate));
        let cells = sizes.map(|size| format!(" {} |", millions(size))).concat();
        assert_says(GROWTH, &format!("| {name} |{cells} {} |", millions(most(rate))));
        assert!(rate < 5e-6 || sizes[..2].iter().all(|&size| size >= 60_000_000), "at least 60 million: {sizes:?}");
    }
    let times = |capacity: usize, rate| largest(capacity, rate) as f64 / capacity as f64;
    let (ten, hundred) = (times(10_000_000, 1e-5), times(100_000_000, 1e-5));
    assert_says(
        GROWTH,
        &format!(
            "for ten million keys grows to {ten:.0} times that, and one for a hundred million to {hundred:.1} times."
        ),
    );
    let settings = include_str!("../src/filter/growable/builder.rs").replace("///", "");
    assert_says(
        &settings,
        &format!("can grow to {ten:.0} times as many, and one of a hundred million to {hundred:.1} times."),
    );
    assert_eq!(
        builder(1e-6).capacity(50_000_000).plan().unwrap().capacity,
        largest(50_000_000, 1e-6),
        "it cannot grow"
    );

    // What `with_capacity` and the filter's documentation promise of the default rate.
    assert!((100..=160_000_000).step_by(7_999_995).all(|keys| times(keys, 0.001) >= 60.0));
    assert!([0, 1000, 1_000_000].map(|keys| largest(keys, 0.001)).iter().all(|size| size / 1_000_000 == 61));
    assert!([170_000_000, 1_000_000_000, 9_900_000_000].iter().all(|&keys| largest(keys, 0.001) > 9_900_000_000));
    // And the documentation of the error.
    let Err(BuildError::CapacityTooLarge { largest, .. }) =
        ConcurrentCuckooFilter::<u64>::builder().capacity(usize::MAX).plan()
    else {
        panic!("no table is so large")
    };
    assert_eq!((largest / 1_000_000_000, (most(0.001) as f64 / 1e9).round()), (20, 10.0));
}

/// What a growable filter uses at each size. Its buckets are counted, and its keys are not inserted.
#[test]
#[cfg_attr(miri, ignore = "tables of megabytes")]
fn the_bits_per_key_of_growable_filters() {
    let with_room = |filter: &GrowableCuckooFilter<u64>, keys: usize| {
        filter.reserve(keys).unwrap();
        8.0 * filter.stats().memory_usage as f64 / keys as f64
    };
    let without = GrowableCuckooFilter::with_capacity(1000);
    for keys in [1000, 10_000, 100_000, 1_000_000, 4_000_000, 10_000_000, 50_000_000] {
        let with = GrowableCuckooFilter::builder().capacity(1000).expected_keys(keys).build().unwrap();
        let [bits, of_without] = [&with, &without].map(|filter| with_room(filter, keys));
        let (rate, digits) = (100.0 * with.plan().false_positive_rate_with(keys), usize::from(of_without < 80.0));
        if keys == 1_000_000 {
            let text =
                format!("| {bits:.0} for a million keys if you say that you expect them; {of_without:.0} otherwise |");
            assert_says(README, &text);
        }
        // Next to other filters that grow, which were measured at some of these sizes.
        let is_compared = (10_000..=4_000_000).contains(&keys);
        let (is_only_compared, keys) = (keys == 4_000_000, grouped(keys as u64));
        if is_compared {
            assert_says(GROWTH, &format!("| {keys} | {bits:.1} | {of_without:.1} |"));
        }
        if !is_only_compared {
            assert_says(GROWTH, &format!("| {keys} | {bits:.1} | {rate:.3} | {of_without:.digits$} |"));
        }
    }
    let filter = GrowableCuckooFilter::builder().capacity(1000).max_capacity(20_000_000).build().unwrap();
    let [hundredth, million, tenth, nearly, all] =
        [200_000, 1_000_000, 2_000_000, 18_000_000, 20_000_000].map(|keys| with_room(&filter, keys));
    assert_says(
        GROWTH,
        &format!(
            "With a `max_capacity` of 20 million, the filter uses {million:.1} bits per key for a million keys, {tenth:.1} for \
             two million, and {nearly:.1} for 18 million."
        ),
    );
    assert_says(
        GROWTH,
        &format!("{all:.0} per key at the largest size, {tenth:.0} at a tenth of it, under 32 at a hundredth."),
    );
    assert!(hundredth < 32.0, "{hundredth}");

    let plan = GrowableCuckooFilter::<u64>::builder().capacity(9_000_000).plan().unwrap();
    let (most, bits) = (plan.max_capacity.unwrap() / 1_000_000, bits_per_key(&plan, 9_000_000));
    assert_says(
        GROWTH,
        &format!("can grow to {most} million by default, and so it uses {bits:.1} bits per key at first."),
    );
    let empty = GrowableCuckooFilter::<u64>::with_capacity(0).stats().memory_usage as f64 / 1000.0;
    assert_says(GROWTH, &format!("(`with_capacity(0)`) uses {empty:.1} KB."));
}
