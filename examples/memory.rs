//! The memory that each type uses, by the number of keys and the false-positive rate: it prints the tables of the guide's page
//! on memory. No key is inserted.

use std::error::Error;
use std::process;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter, GrowableCuckooFilter,
    RecentCuckooFilter,
};

type Bytes = Result<usize, Box<dyn Error>>;

/// How many bytes a filter uses for so many keys at a false-positive rate.
type Memory = fn(usize, f64) -> Bytes;

/// Each type, with the settings on which its memory depends besides the keys and the rate.
const TYPES: [(&str, Memory); 8] = [
    ("`ConcurrentCuckooFilter`", fixed),
    ("`GrowableCuckooFilter`, `expected_keys` set", expected),
    ("`GrowableCuckooFilter`, not set", unexpected),
    ("`RecentCuckooFilter`, keys of the window", recent),
    ("`ExpiringCuckooFilter`, lifetime of 14 ticks", expiring::<14>),
    ("`ExpiringCuckooFilter`, lifetime of 254 ticks", expiring::<254>),
    ("`CuckooMaplet`, values of 4 bits", maplet::<4>),
    ("`CuckooRateLimiter`, bursts of 20", limiter),
];

const RATES: [(&str, f64); 5] = [("1%", 0.01), ("0.1%", 0.001), ("0.01%", 1e-4), ("10⁻⁵", 1e-5), ("10⁻⁶", 1e-6)];

const KEYS: [(&str, usize); 5] =
    [("1,000", 1000), ("10,000", 10_000), ("100,000", 100_000), ("1 million", 1_000_000), ("10 million", 10_000_000)];

fn main() {
    match tables() {
        Ok(tables) => print!("{tables}"),
        Err(error) => {
            eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
            process::exit(1);
        }
    }
}

/// The memory for ten million keys, and then the bits per key of each type.
pub(crate) fn tables() -> Result<String, Box<dyn Error>> {
    let mut megabytes = head("MB for 10 million keys");
    let mut bits = String::new();
    for (name, bytes) in TYPES {
        bits += &format!("\n## {name}\n\n{}", head("bits per key"));
        for (number, keys) in KEYS {
            let used = RATES.map(|(_, rate)| bytes(keys, rate)).into_iter().collect::<Result<Vec<_>, _>>()?;
            bits += &row(&format!("{number} keys"), &used, |bytes| in_bits(bytes, keys));
            if number == "10 million" {
                megabytes += &row(name, &used, |bytes| format!("{:.1}", bytes as f64 / 1e6));
            }
        }
    }
    Ok(megabytes + &bits)
}

fn in_bits(bytes: usize, keys: usize) -> String {
    let bits = 8.0 * bytes as f64 / keys as f64;
    let digits = usize::from(bits < 99.95);
    format!("{bits:.digits$}")
}

fn head(title: &str) -> String {
    let names = RATES.map(|(name, _)| format!(" {name} |")).concat();
    format!("| {title} |{names}\n|---|{}\n", "---|".repeat(RATES.len()))
}

fn row(title: &str, used: &[usize], cell: impl Fn(usize) -> String) -> String {
    let cells: Vec<_> = used.iter().map(|&bytes| cell(bytes)).collect();
    format!("| {title} | {} |\n", cells.join(" | "))
}

fn fixed(keys: usize, rate: f64) -> Bytes {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(keys);
    Ok(builder.false_positive_rate(rate).plan()?.memory_usage)
}

fn expected(keys: usize, rate: f64) -> Bytes {
    let builder = GrowableCuckooFilter::<u64>::builder().expected_keys(keys);
    grown(builder.false_positive_rate(rate).build()?, keys)
}

fn unexpected(keys: usize, rate: f64) -> Bytes {
    grown(GrowableCuckooFilter::<u64>::builder().false_positive_rate(rate).build()?, keys)
}

/// What it uses when it has grown to so many keys.
fn grown(filter: GrowableCuckooFilter<u64>, keys: usize) -> Bytes {
    filter.reserve(keys)?;
    Ok(filter.stats().memory_usage)
}

fn recent(keys: usize, rate: f64) -> Bytes {
    let builder = RecentCuckooFilter::<u64>::builder().last(keys);
    Ok(builder.false_positive_rate(rate).plan()?.memory_usage)
}

fn expiring<const TICKS: u32>(entries: usize, rate: f64) -> Bytes {
    let tick = Duration::from_secs(60);
    let builder = ExpiringCuckooFilter::<u64>::builder().capacity(entries).lifetime(TICKS * tick).resolution(tick);
    Ok(builder.false_positive_rate(rate).plan()?.memory_usage)
}

fn maplet<const VALUE_BITS: u32>(pairs: usize, rate: f64) -> Bytes {
    let builder = CuckooMaplet::<u64>::builder().capacity(pairs).value_bits(VALUE_BITS);
    Ok(builder.false_positive_rate(rate).plan()?.memory_usage)
}

fn limiter(clients: usize, rate: f64) -> Bytes {
    let minute = Duration::from_secs(60);
    let builder = CuckooRateLimiter::<u64>::builder().allow(100, minute).burst(20).capacity(clients);
    Ok(builder.false_positive_rate(rate).plan()?.memory_usage)
}
