//! What a filter that grows in place costs.
//!
//! `cargo bench --bench growable [-- --quick | --l2 | --large | --only=PART | --keys=N | --rounds=R]`, where `PART` is:
//!
//! | part | what |
//! |---|---|
//! | `lookups` | lookups, single and batched, at four sizes, beside a fixed filter of as many bytes |
//! | `inserts` | inserts of `N` keys into a filter that grows, beside a fixed one of the final size |
//! | `threads` | inserts by several threads into such a filter, into one that begins with its final size, and a fixed one |
//! | `longest` | the longest of these inserts. Ask for this part alone: see below |
//! | `sizes` | the memory and the false-positive rate at every size, up to `N` keys |
//! | `expected` | the same of filters whose `expected_keys` are the keys that they get; a chart, `growth.svg`, in `--out` |
//! | `doubling` | how many entries a second `reserve` moves to a larger table, and `shrink_to_fit` to a smaller one |
//! | `spike` | a thousand keys, a million, and a thousand again, then `shrink_to_fit` |
//! | `speed` | inserts and hits, single and in batches, beside a fixed filter of 384 KiB, or of 96 MiB |
//! | `loads` | the time, the memory and the relocations of `N` inserts, by `load_while_growing` |
//! | `clear` | `clear`, beside that of a fixed filter |
//!
//! `N` is 50 million, or 2 million with `--quick`. `R` is how often `speed`, `loads` and `clear` are measured. Except for `threads`, all work is that of one thread, and is timed by
//! its processor time. Two sides of a comparison run by turns, and each ratio compares two runs of one round.
//!
//! The allocator of glibc takes a new segment from memory that it has to clear if the process has freed a larger one before,
//! up to 32 MB. The insert that needs it then takes 0.2 ms longer for each megabyte. So `longest` needs a process of its
//! own.

mod speed;
#[path = "../support/mod.rs"]
mod support;

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::by_threads::{ByThreads, thread_counts};
use support::clock::{by_turns, own_time};
use support::filled::on_threads;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::ours::{BATCH, Fixed, Growable, Ours, builder, default_5x14, fill, growable};
use support::plan::Size;
use support::plot::{Axis, Chart, Line, Marker, Scale, Series, Style};
use support::report::{Spread, median};
use support::subject::Set;

/// How many keys are timed at a time.
const SLICE: u64 = 20 * BATCH as u64;

/// An empty filter that has grown to three quarters of this many bytes. This many is its largest size, but for so many
/// doublings.
fn of_size(bytes: usize, doublings_left: u32) -> Growable {
    // Five slots a bucket at the largest size, of which about 96% are its capacity.
    let most = (bytes / size_of::<u64>() * 5 * 96 / 100) << doublings_left;
    let filter = growable().capacity(0).max_capacity(most).build().expect("a valid filter");
    let at_first = filter.stats().memory_usage;
    while filter.stats().memory_usage - at_first < bytes * 3 / 4 {
        filter.reserve(filter.capacity() + 1).expect("there is memory");
    }
    filter
}

/// What is looked up, and how.
#[derive(Clone, Copy)]
struct LookupCase {
    name: &'static str,
    hits: bool,
    batched: bool,
}

const LOOKUPS: [LookupCase; 4] = [
    LookupCase { name: "hit", hits: true, batched: false },
    LookupCase { name: "miss", hits: false, batched: false },
    LookupCase { name: "hit, batched", hits: true, batched: true },
    LookupCase { name: "miss, batched", hits: false, batched: true },
];

impl LookupCase {
    /// Nanoseconds a lookup, where the keys in the filter have the numbers below `len`. The seed decides which are looked
    /// up.
    fn time(self, filter: &impl Ours, len: u64, seed: u64) -> f64 {
        let numbers = if self.hits { 0..len } else { ABSENT..2 * ABSENT };
        let keys = drawn(&mut SmallRng::seed_from_u64(seed), numbers, SLICE);
        let start = own_time();
        let found = if self.batched { batched(filter, &keys) } else { single(filter, &keys) };
        let time = own_time() - start;
        assert!(if self.hits { found == SLICE } else { found < SLICE / 100 }, "{found} of {SLICE} found");
        time as f64 / SLICE as f64
    }
}

#[inline(never)]
fn single(filter: &impl Ours, keys: &[u64]) -> u64 {
    keys.iter().filter(|&&key| filter.contains(key)).count() as u64
}

#[inline(never)]
fn batched(filter: &impl Ours, keys: &[u64]) -> u64 {
    let mut found = Vec::with_capacity(keys.len());
    keys.chunks(BATCH).for_each(|keys| filter.contains_batch(keys, &mut found));
    black_box(&found).iter().filter(|&&found| found).count() as u64
}

/// How full the tables are, of their capacity.
const LOAD: f64 = 0.9;

/// Fills the table to nine tenths of its capacity, after it has grown by so many eighths. Returns how many keys are in.
fn filled(filter: &Growable, eighths: usize) -> u64 {
    let more = filter.capacity() * eighths / 8;
    filter.reserve(filter.capacity() - filter.len() + more).expect("there is memory");
    let len = (filter.capacity() as f64 * LOAD) as u64;
    fill(filter, 0..len);
    len
}

/// Lookups in a filter that has grown, beside those in a fixed filter of as many bytes.
fn lookups(bytes: usize, length: Duration) -> Vec<Vec<String>> {
    let fixed = default_5x14(bytes);
    let fixed_len = fixed.capacity().min((fixed.plan().slots as f64 * LOAD) as usize) as u64;
    fill(&fixed, 0..fixed_len);
    let head = ["", "fixed filter", "growable", "growable over fixed"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let states = [("3/4 of its largest size", 0, 0), ("half of it", 1, 3), ("an 85th", 6, 0), ("a 62nd", 6, 3)];
    for (name, doublings_left, eighths) in states {
        let filter = of_size(bytes, doublings_left);
        let len = filled(&filter, eighths);
        let plan = filter.plan();
        let has_one = plan.slots == plan.layout.buckets * plan.layout.slots_per_bucket;
        let layouts = if has_one { "one layout" } else { "two layouts" };
        for lookups in LOOKUPS {
            let times = by_turns(2, length, |subject, round| match subject {
                0 => lookups.time(&fixed, fixed_len, round),
                _ => lookups.time(&filter, len, round),
            });
            let ratio = Spread::of_ratios(&times[1], &times[0]).show();
            let [fixed, growable] = [0, 1].map(|nth: usize| format!("{:.1}", median(times[nth].iter().copied())));
            rows.push(vec![format!("{name}, {layouts}: {}", lookups.name), fixed, growable, ratio]);
        }
    }
    rows
}

/// With room for a thousand keys at first, as by default.
fn of_a_thousand() -> Growable {
    growable().build().expect("a valid filter")
}

/// Nanoseconds an insert. A fixed filter's memory is touched for the first time while the clock runs, as a growable
/// one's is.
fn time_of_inserts(keys: u64, insert: impl Fn(u64)) -> f64 {
    let start = own_time();
    (0..keys).for_each(|number| insert(key(number)));
    (own_time() - start) as f64 / keys as f64
}

/// Inserts into an empty filter that grows to the number of keys, beside those into a fixed filter of the final size.
fn inserts(keys: u64, rounds: usize) -> Vec<Vec<String>> {
    let (mut of_growable, mut of_fixed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let filter = of_a_thousand();
        of_growable.push(time_of_inserts(keys, |key| filter.insert(&key).expect("it grows")));
        let capacity = filter.capacity();
        drop(filter);
        let start = own_time();
        let filter = Fixed::of_keys(capacity);
        let built = (own_time() - start) as f64 / keys as f64;
        of_fixed.push(built + time_of_inserts(keys, |key| filter.insert(&key).expect("there is room")));
    }
    let ratio = Spread::of_ratios(&of_growable, &of_fixed).show();
    let [of_fixed, of_growable] = [of_fixed, of_growable].map(|times| format!("{:.1}", median(times)));
    let head = ["", "fixed filter", "growable", "growable over fixed"].map(String::from).to_vec();
    vec![head, vec!["insert".to_owned(), of_fixed, of_growable, ratio]]
}

/// An empty filter for so many keys.
type Build = fn(usize) -> Box<dyn Set>;

/// Inserts by several threads, in millions a second by the wall clock.
fn threads(keys: u64, rounds: usize, options: &Options) -> io::Result<()> {
    let threads = thread_counts();
    let speed = |filter: &dyn Set, threads: u64| {
        let numbers = |thread| (thread..keys).step_by(threads as usize);
        let (time, _) = on_threads(threads, |thread| {
            numbers(thread).for_each(|number| assert!(filter.insert(key(number)), "there is room"));
        });
        keys as f64 / time.as_secs_f64() / 1e6
    };
    let kinds: [(&str, Build); 3] = [
        ("growable, from a thousand keys", |_| Box::new(of_a_thousand())),
        ("growable, from its final size", |keys| Box::new(Growable::of_keys(keys))),
        ("fixed filter", |keys| Box::new(Fixed::of_keys(keys))),
    ];
    let mut rows = kinds.map(|(name, _)| (name.to_owned(), vec![Vec::new(); threads.len()])).to_vec();
    for _ in 0..rounds {
        for ((_, build), (_, speeds)) in kinds.iter().zip(&mut rows) {
            for (&threads, speeds) in threads.iter().zip(speeds) {
                speeds.push(speed(&*build(keys as usize), threads));
            }
        }
    }
    let about = format!("{keys} keys into an empty filter");
    let inserts = ByThreads { title: "Inserts".into(), about, unit: "inserts", threads: &threads, rows, array: None };
    inserts.show(options, "target/growable", "threads")
}

/// The longest inserts, in microseconds of processor time. The work of each insert is the same in each run, so of what it
/// took in several, the least counts: the rest is the machine's.
fn longest(keys: u64, runs: usize) -> Vec<Vec<String>> {
    let least = |build: &dyn Fn() -> Box<dyn Fn(u64)>| {
        let mut least = vec![u32::MAX; keys as usize];
        for _ in 0..runs {
            let insert = build();
            for (number, least) in (0..keys).zip(&mut least) {
                let key = key(number);
                let start = own_time();
                insert(key);
                *least = (*least).min((own_time() - start) as u32);
            }
        }
        least.sort_unstable_by(|one, other| other.cmp(one));
        [0, 1, 9, 99].map(|nth| format!("{:.1}", f64::from(least[nth]) / 1e3)).to_vec()
    };
    let of_growable = least(&|| {
        let filter = of_a_thousand();
        Box::new(move |key| filter.insert(&key).expect("it grows"))
    });
    let largest = of_a_thousand();
    largest.reserve(keys as usize).expect("there is memory");
    let capacity = largest.capacity();
    drop(largest);
    let of_fixed = least(&|| {
        let filter = Fixed::of_keys(capacity);
        Box::new(move |key| filter.insert(&key).expect("there is room"))
    });
    let head = ["", "the longest", "the second", "the tenth", "the hundredth"].map(String::from).to_vec();
    let rows = [("growable", of_growable), ("fixed filter", of_fixed)];
    let rows = rows.map(|(name, times)| [vec![name.to_owned()], times].concat());
    [vec![head], rows.to_vec()].concat()
}

/// What a filter uses with so many keys in it.
struct Used {
    keys: u64,
    bits_per_key: f64,
    /// The false-positive rate, computed from the number of keys.
    rate: f64,
}

impl Used {
    fn by(filter: &Growable) -> Self {
        let stats = filter.stats();
        let keys = filter.len() as u64;
        Self { keys, bits_per_key: stats.memory_usage as f64 * 8.0 / keys as f64, rate: stats.false_positive_rate }
    }

    fn point(&self) -> (f64, f64) {
        (self.keys as f64, self.bits_per_key)
    }
}

/// The memory and the false-positive rate of filters that expect as many keys as they get, and of one that is made for a
/// thousand: at four sizes in each decade up to this many keys, and at this many.
fn expected(keys: u64) -> [Vec<Used>; 2] {
    let sizes = (0..).map(|nth| (1000.0 * 10f64.powf(f64::from(nth) / 4.0)).round() as u64);
    let mut sizes: Vec<u64> = sizes.take_while(|&size| size < keys).collect();
    sizes.push(keys);
    let (without, mut len) = (growable().build().expect("a valid filter"), 0);
    let both = sizes.into_iter().map(|size| {
        let with = growable().expected_keys(size as usize).build().expect("a valid filter");
        fill(&with, 0..size);
        fill(&without, len..size);
        len = size;
        (Used::by(&with), Used::by(&without))
    });
    let (with, without) = both.unzip();
    [with, without]
}

fn expected_table([with, without]: &[Vec<Used>; 2]) -> Vec<Vec<String>> {
    let head = ["keys", "bits per key, expected_keys", "its rate, %", "bits per key, without", "its rate, %"];
    let of = |used: &Used| [format!("{:.1}", used.bits_per_key), format!("{:.5}", used.rate * 100.0)];
    let row =
        |(with, without): (&Used, &Used)| [vec![with.keys.to_string()], [of(with), of(without)].concat()].concat();
    [vec![head.map(String::from).to_vec()], with.iter().zip(without).map(row).collect()].concat()
}

/// Bits per key of other filters that grow, by the number of keys. Each began small. They were built from their authors'
/// sources and measured on 2026-11-28, with the false-positive rates that are in the names. Those that double their tables
/// vary by a factor of two between these points. None can be used by several threads at once.
///
/// - InfiniFilter: Dayan, Bercea, Reviriego and Pagh, SIGMOD 2023. Aleph filter: Dayan, Bercea and Pagh, VLDB 2024. In both,
///   the fingerprints of new keys get longer as they grow (*widening*). The Aleph filter can also be told how far it will
///   grow (*predictive*).
/// - Taffy cuckoo filter: Apple, *Stretching Your Data With Taffy Filters*, arXiv 2109.01947. It cannot remove keys.
const OTHERS: [(&str, &[(f64, f64)]); 3] = [
    ("InfiniFilter and Aleph, 0.27%", &[(1e4, 27.9), (1e5, 24.9), (1e6, 42.0), (4e6, 44.0)]),
    ("Aleph, predictive, to 0.10%", &[(1e5, 23.6), (1e6, 31.5), (4e6, 27.3)]),
    ("Taffy cuckoo, 0.05 to 0.12%", &[(1e4, 26.3), (1e5, 21.0), (1e6, 33.6)]),
];

/// A round number of keys on an axis.
fn in_thousands(keys: f64) -> String {
    if keys < 1e6 { format!("{} k", keys / 1e3) } else { format!("{} M", keys / 1e6) }
}

fn expected_chart([with, without]: &[Vec<Used>; 2]) -> Chart {
    let ours = |name: &str, used: &[Used], color, marker| Series {
        name: name.into(),
        points: used.iter().map(Used::point).collect(),
        style: Style { color, marker, line: Line::Thick },
    };
    let fixed = |used: &Used| {
        let plan = builder().capacity(used.keys as usize).plan().expect("a valid filter");
        (used.keys as f64, plan.memory_usage as f64 * 8.0 / used.keys as f64)
    };
    let mut series = vec![
        ours("ours, up to 0.1 %", without, 1, Marker::Square),
        ours("ours, expected_keys, to 0.1 %", with, 0, Marker::Circle),
        Series {
            name: "ours, of a fixed size, 0.06 %".into(),
            points: with.iter().map(fixed).collect(),
            style: Style { color: 7, marker: Marker::None, line: Line::Dashed },
        },
    ];
    let markers = [Marker::Diamond, Marker::Triangle, Marker::Cross];
    series.extend(OTHERS.iter().zip(markers).zip(2..).map(|((&(name, points), marker), color)| {
        let style = Style { color, marker, line: Line::Dashed };
        Series { name: name.into(), points: points.to_vec(), style }
    }));
    let axis = |label: &str| Axis { scale: Scale::Log10, ..Axis::linear(label) };
    let subtitle = "Each begins small. The false-positive rates are in the legend. Others were measured only where they have a mark";
    Chart {
        title: "Bits per key of filters that grow".into(),
        subtitle: subtitle.into(),
        x: Axis { show: in_thousands, ..axis("keys") },
        y: Axis { range: Some((10.0, 100.0)), ..axis("bits per key") },
        series,
    }
}

/// The memory and the false-positive rate from the first size to one that holds this many keys.
fn sizes(keys: u64) -> Vec<Vec<String>> {
    let filter = of_a_thousand();
    let head = ["keys", "KiB", "slots", "bits a key", "rate with every slot taken, computed, %"];
    let mut rows = vec![head.map(String::from).to_vec()];
    let mut len = 0;
    // Four sizes in each doubling.
    for next in (0..).map(|nth: i32| (1000.0 * 2f64.powf(f64::from(nth) / 4.0)) as u64) {
        let next = next.min(filter.max_capacity() as u64);
        if next > keys || next == len {
            break;
        }
        fill(&filter, len..next);
        len = next;
        let memory = filter.stats().memory_usage as f64;
        rows.push(vec![
            len.to_string(),
            format!("{:.1}", memory / 1024.0),
            filter.plan().slots.to_string(),
            format!("{:.1}", memory * 8.0 / len as f64),
            format!("{:.5}", filter.plan().max_false_positive_rate * 100.0),
        ]);
    }
    rows
}

/// How fast a table is doubled by `reserve`, and halved by `shrink_to_fit`, on one thread that nobody disturbs.
fn doubling(bytes: usize, length: Duration) -> Vec<Vec<String>> {
    let head = ["entries", "doubled", "halved"];
    let filter = of_size(bytes, 1);
    let entries = filter.capacity() * 9 / 10;
    fill(&filter, 0..entries as u64);
    // As small as these keys need: it was made for its largest size, which is filled further than the others.
    filter.shrink_to_fit();
    let (slots, start) = (filter.plan().slots, Instant::now());
    let (mut doubled, mut halved) = (Vec::new(), Vec::new());
    let time = |work: &dyn Fn()| {
        let start = own_time();
        work();
        (own_time() - start) as f64
    };
    while start.elapsed() < length || doubled.is_empty() {
        doubled.push(time(&|| filter.reserve(entries * 6 / 5).expect("there is memory")));
        assert!(filter.plan().slots > 2 * slots, "it has doubled");
        halved.push(time(&|| filter.shrink_to_fit()));
        assert_eq!(filter.plan().slots, slots, "it is as large as before");
    }
    let [doubled, halved] = [doubled, halved].map(|times| format!("{:.1}", entries as f64 * 1e3 / median(times)));
    let row = vec![format!("{entries} keys"), doubled, halved];
    vec![head.map(String::from).to_vec(), row]
}

/// How many keys there are before and after.
const FEW: u64 = 1000;

fn filled_with(keys: u64) -> Growable {
    let filter = of_a_thousand();
    fill(&filter, 0..keys);
    filter
}

fn after_the_spike(most: u64) -> Growable {
    let filter = filled_with(most);
    (FEW..most).for_each(|number| assert!(filter.remove(&key(number)), "it is in"));
    filter
}

/// A filter of a thousand keys that many more come into, and leave again.
fn spike(most: u64, length: Duration) -> Vec<Vec<String>> {
    let shrunk = after_the_spike(most);
    let start = own_time();
    shrunk.shrink_to_fit();
    let took = (own_time() - start) as f64 / 1e3;
    let states = [
        ("fresh".to_owned(), filled_with(FEW), FEW),
        ("at the most".to_owned(), filled_with(most), most),
        ("after it".to_owned(), after_the_spike(most), FEW),
        (format!("shrunk, in {took:.0} µs"), shrunk, FEW),
    ];
    let singles = || LOOKUPS.into_iter().filter(|lookups| !lookups.batched);
    let head = ["", "keys", "KiB", "bits a key"].map(String::from).into_iter();
    let mut rows = vec![head.chain(singles().map(|lookups| format!("{}, ns", lookups.name))).collect::<Vec<_>>()];
    rows.extend(states.iter().map(|(name, filter, len)| {
        let memory = filter.stats().memory_usage as f64;
        let bits = format!("{:.1}", memory * 8.0 / *len as f64);
        vec![name.clone(), len.to_string(), format!("{:.1}", memory / 1024.0), bits]
    }));
    for lookups in singles() {
        let times = by_turns(states.len(), length, |state, round| {
            let (_, filter, len) = &states[state];
            lookups.time(filter, *len, round)
        });
        for (row, times) in rows[1..].iter_mut().zip(times) {
            row.push(format!("{:.1}", median(times)));
        }
    }
    rows
}

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let (length, keys, rounds) = options.pick((1, 20_000, 1), (300, 2_000_000, 3), (3000, 50_000_000, 5));
    // Of sides that run by turns.
    let (length, keys) = (Duration::from_millis(length), options.keys(keys));
    for size in options.sizes() {
        let (name, bytes) = (size.name(), options.table_bytes(size));
        options.part("lookups", || (format!("{name}: nanoseconds a lookup"), lookups(bytes, length)));
    }
    options.part("inserts", || (format!("{keys} inserts: nanoseconds each"), inserts(keys, rounds)));
    if options.wants("threads") {
        threads(keys, rounds, &options)?;
    }
    options.part("longest", || {
        let title = format!("The longest of {keys} inserts, each the least of {rounds} runs: microseconds");
        (title, longest(keys, rounds))
    });
    options.part("sizes", || ("Every size: bits a key and false-positive rate".into(), sizes(keys)));
    if options.wants("expected") {
        let used = expected(keys);
        options.part("expected", || ("Filters that expect as many keys as they get".into(), expected_table(&used)));
        expected_chart(&used).write(&options, "target/growable", "growth")?;
    }
    for size in options.sizes() {
        let (name, bytes) = (size.name(), options.table_bytes(size));
        options.part("doubling", || {
            let title = format!("{name}: to twice the size and back, millions of entries a second");
            (title, doubling(bytes, length))
        });
    }
    let rounds = options.value("--rounds").map_or(rounds as u64, |rounds| rounds.parse().expect("--rounds=NUMBER"));
    for size in options.sizes() {
        let (name, bytes) = if let Size::L2 = size { ("384 KiB", 384 << 10) } else { ("96 MiB", 96 << 20) };
        let (bytes, lookups) = options.pick((8 << 10, 0), (bytes, 2_000_000), (bytes, 10_000_000));
        options.part("speed", || (format!("{name}: M operations/s"), speed::speed(bytes, rounds, lookups)));
    }
    let shares = options.pick(&[0.85][..], &[0.7, 0.85, 0.95][..], &[0.70, 0.75, 0.80, 0.85, 0.90, 0.95][..]);
    options.part("loads", || {
        (format!("{keys} keys from 1,000, by load_while_growing"), speed::loads(keys, rounds, shares))
    });
    let sizes = options.pick(
        &[("64 KiB", 64 << 10)][..],
        &[("384 KiB", 384 << 10)][..],
        &[("384 KiB", 384 << 10), ("3 MiB", 3 << 20), ("96 MiB", 96 << 20)][..],
    );
    options.part("clear", || ("clear".into(), speed::clear(sizes, rounds as usize)));
    let most = if options.test { 20_000 } else { 1_000_000 };
    options.part("spike", || (format!("1,000 keys, {most}, and 1,000 again"), spike(most, length)));
    Ok(())
}
