//! The figures of the pages that follow from plans, and are not measured: bits per key, and how far filters can grow. When a
//! plan changes, the check prints the right line. And what several pages say, in the same words.
#![cfg(target_pointer_width = "64")]

use std::time::Duration;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, Encoding, ExpiringCuckooFilter, FilterPlan, GrowableCuckooFilter,
};

#[path = "../examples/memory.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod memory;

const README: &str = include_str!("../README.md");
const MEMORY: &str = include_str!("../src/guide/memory.md");
const CHOOSING: &str = include_str!("../src/guide/choosing_parameters.md");
const GROWTH: &str = include_str!("../docs/growth.md");

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

/// The cells of the page's tables of bits per key and of megabytes: type, number of keys, rate, and what is there.
fn memory_cells(page: &str) -> Vec<[&str; 4]> {
    let (mut name, mut rates, mut cells) = ("", Vec::new(), Vec::new());
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")) else {
            name = line.strip_prefix("## ").unwrap_or(name);
            continue;
        };
        let [title, ref values @ ..] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        if title == "bits per key" || title.starts_with("MB for") {
            rates = values.to_vec();
        } else {
            let (name, keys) = title.strip_suffix(" keys").map_or((title, "MB"), |keys| (name, keys));
            cells.extend(rates.iter().zip(values).map(|(rate, value)| [name, keys, rate, value]));
        }
    }
    cells
}

/// What the page says of a type, for so many keys and a rate.
fn on_the_page(name: &str, keys: &str, rate: &str) -> &'static str {
    let mut cells = memory_cells(MEMORY).into_iter();
    let found = cells.find(|cell| cell[..3] == [name, keys, rate]);
    found.unwrap_or_else(|| panic!("the page has no {name} for {keys} keys at {rate}"))[3]
}

/// The counters of a filter depend on the number of processors, and its value on the crate's features. So the figures may differ
/// by these, and by the rounding.
#[test]
#[cfg_attr(miri, ignore = "tables of megabytes")]
fn the_page_on_memory_has_what_the_example_prints() {
    let printed = memory::tables().unwrap();
    let (on_the_page, printed) = (memory_cells(MEMORY), memory_cells(&printed));
    assert_eq!(on_the_page.len(), 8 * (1 + 5) * 5);
    for (page, here) in on_the_page.iter().zip(&printed) {
        assert_eq!(page[..3], here[..3], "run the example, and copy its tables to the page");
        let keys = match page[1] {
            "MB" | "10 million" => 1e7,
            "1 million" => 1e6,
            keys => keys.replace(',', "").parse::<f64>().unwrap(),
        };
        // Tables of `2 * 512` buckets and more have further counters, of 128 bytes.
        let counters = (keys / 1024.0).clamp(1.0, 64.0) - 1.0;
        let bits = 8.0 * (counters * 128.0 + 32.0) / keys + 0.11;
        let bits = if page[3].contains('.') { bits } else { bits + 0.9 };
        let [one, other] = [page, here].map(|cell| cell[3].parse::<f64>().unwrap());
        assert!((one - other).abs() <= bits, "run the example, and copy its tables to the page: {page:?}, {here:?}");
    }
    assert_eq!(on_the_page.len(), printed.len());
}

/// The table that says which type to use is the same in three places, and the page on memory has its last column.
#[test]
fn the_table_of_types_is_the_same_everywhere() {
    let rows = |page: &str| -> Vec<String> {
        let from = page.find("| you need |").expect("the page has the table");
        let lines = page[from..].lines().map(|line| line.trim_start_matches("//! "));
        let rows = lines.take_while(|line| line.starts_with('|'));
        rows.map(|row| row.replace("[`", "`").replace("`]", "`")).collect()
    };
    let table = rows(README);
    assert_eq!(table.len(), 2 + 6);
    assert_eq!(table, rows(include_str!("../src/lib.rs")), "src/lib.rs");
    assert_eq!(table, rows(include_str!("../src/guide/first_program.md")), "src/guide/first_program.md");
    let types = [
        "`ConcurrentCuckooFilter`",
        "`GrowableCuckooFilter`, `expected_keys` set",
        "`RecentCuckooFilter`, keys of the window",
        "`ExpiringCuckooFilter`, lifetime of 14 ticks",
        "`CuckooMaplet`, values of 4 bits",
        "`CuckooRateLimiter`, bursts of 20",
    ];
    for (row, name) in table[2..].iter().zip(types) {
        let name_in_row = name.split(',').next().unwrap();
        let end = format!("| {name_in_row} | {} |", on_the_page(name, "10 million", "0.1%"));
        assert!(row.ends_with(&end), "{row} does not end with {end}");
    }
}

/// Where other pages quote the page on memory.
#[test]
fn quoted_bits_per_key_are_those_of_the_page() {
    let of_fixed = |keys| on_the_page("`ConcurrentCuckooFilter`", keys, "0.1%");
    let (large, million, small) = (of_fixed("10 million"), of_fixed("1 million"), of_fixed("10,000"));
    assert_says(README, &format!("{large} bits per key for ten million keys at a false-positive rate of 0.1%"));
    let docs = include_str!("../src/filter/concurrent/filter.rs").replace("///", "");
    assert_says(
        &docs,
        &format!(
            "is {large} bits per key for ten million keys or more, {million} for a million and {small} for 10,000:"
        ),
    );
    let expected = |keys| on_the_page("`GrowableCuckooFilter`, `expected_keys` set", keys, "0.1%");
    let unexpected = |keys| on_the_page("`GrowableCuckooFilter`, not set", keys, "0.1%");
    for (name, keys) in
        [("10,000", "10,000"), ("100,000", "100,000"), ("1,000,000", "1 million"), ("10,000,000", "10 million")]
    {
        assert_says(GROWTH, &format!("| {name} | {} |", expected(keys)));
        let row = GROWTH.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        assert_eq!(row.split(" | ").nth(3), Some(unexpected(keys)), "{row}");
    }
    let rounded = |bits: &str| bits.parse::<f64>().unwrap().round();
    let settings = include_str!("../src/filter/growable/builder.rs").replace("///", "");
    let (with, without) = (rounded(expected("1 million")), rounded(unexpected("1 million")));
    assert_says(
        &settings,
        &format!("a filter for a million keys at 0.1% then uses {with} bits per key instead of {without}."),
    );
    let limiter = |keys, rate| on_the_page("`CuckooRateLimiter`, bursts of 20", keys, rate);
    let limits = include_str!("../src/guide/rate_limits.md");
    assert_says(limits, &format!("bursts of 4 to 112 ({} bits each)", limiter("1 million", "0.1%")));
    assert_says(limits, &format!("choose 10⁻⁵: {} bits per client.", limiter("1 million", "10⁻⁵")));
    let recent = |rate| on_the_page("`RecentCuckooFilter`, keys of the window", "10 million", rate);
    let settings = include_str!("../src/filter/recent/builder.rs").replace("///", "");
    let (first, second, third) = (recent("0.1%"), recent("0.01%"), recent("10⁻⁵"));
    assert_says(
        &settings,
        &format!("a large filter uses {first} bits at 0.1%, {second} at 0.0023%, and {third} below."),
    );
}

/// What the page on parameters says of plain buckets, and of rates that take no more memory than higher ones.
#[test]
fn the_memory_of_other_encodings_and_rates() {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(10_000_000);
    let plain = builder.encoding(Encoding::Plain).plan().unwrap();
    let default = fixed(10_000_000, 0.001);
    let [of_plain, of_default] = [plain, default].map(|plan| bits_per_key(&plan, 10_000_000));
    assert_says(
        CHOOSING,
        &format!("At the default rate they use {of_plain:.1} bits per key instead of {of_default:.1},"),
    );
    let fewer = default.max_false_positive_rate / plain.max_false_positive_rate;
    assert!((4.5..5.5).contains(&fewer), "{fewer}: with a fifth of the false positives");
    assert_eq!(fixed(10_000_000, 2e-6).memory_usage, fixed(10_000_000, 1e-5).memory_usage);

    let minute = Duration::from_secs(60);
    let builder = ExpiringCuckooFilter::<u64>::builder().capacity(10_000_000).lifetime(14 * minute).resolution(minute);
    let memory = |rate| builder.clone().false_positive_rate(rate).plan().unwrap().memory_usage;
    let [few, many] = [2.3e-5, 1e-5].map(|rate| 8.0 * memory(rate) as f64 / 1e7);
    assert_says(CHOOSING, &format!("2.3·10⁻⁵ needs {few:.1} bits per key, and 10⁻⁵ needs {many:.1}."));
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

/// How far a filter grows beyond the keys that were expected, up to the largest sizes.
#[test]
fn a_filter_grows_to_eight_times_the_keys_that_were_expected() {
    let builder = |keys, rate| GrowableCuckooFilter::<u64>::builder().expected_keys(keys).false_positive_rate(rate);
    // The hundredths of a billion keys up to which all filters do.
    let billions = |rate| {
        let grows = |&keys: &usize| {
            builder(keys, rate).plan().is_ok_and(|plan| plan.max_capacity.expect("it grows") >= 8 * keys)
        };
        assert!([1, 1000, 1_000_000].iter().all(grows), "{rate}");
        (1..).map(|hundredths| hundredths * 10_000_000).take_while(grows).count() as f64 / 100.0
    };
    let (low, default) = (billions(1e-6), billions(0.001));
    assert!((1..=6).all(|exponent| billions(10f64.powi(-exponent)) >= low), "the others come later");
    let settings = include_str!("../src/filter/growable/builder.rs").replace("///", "");
    let from = format!("from {low:.1} billion expected keys on at 10⁻⁶, and from {default:.1} billion on at 0.1%");
    assert_says(&settings, &from);
    assert_says(
        include_str!("../src/guide/growth.md"),
        &format!("Above {:.0} million expected keys at 10⁻⁶, or {default:.1} billion", (low * 10.0).round() * 100.0),
    );
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

/// Base64, as RFC 4648 has it.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let three = |part: &[u8]| {
        let number = part.iter().chain(&[0; 2]).take(3).fold(0, |number, &byte| number << 8 | usize::from(byte));
        let digits = [18, 12, 6, 0].map(|shift| char::from(DIGITS[number >> shift & 63]));
        digits
            .into_iter()
            .enumerate()
            .map(|(nth, digit)| if nth > part.len() { '=' } else { digit })
            .collect::<String>()
    };
    bytes.chunks(3).map(three).collect()
}

/// docs.rs has no files of the repository, so the documentation has the whole chart.
#[test]
fn the_documentation_has_the_chart_of_the_benchmarks() {
    let chart = base64(include_bytes!("../benches/plots/growth.svg"));
    assert!(
        include_str!("../src/guide/growth.svg.txt") == format!("[growth.svg]: data:image/svg+xml;base64,{chart}\n"),
        "(printf '[growth.svg]: data:image/svg+xml;base64,'; base64 -w0 benches/plots/growth.svg; echo) \
         >src/guide/growth.svg.txt"
    );
}
