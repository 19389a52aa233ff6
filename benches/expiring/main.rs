//! What it costs that each entry expires by itself, beside filters without that, and other ways to forget keys.
//!
//! `cargo bench --bench expiring [-- --quick | --keys=N | --only=large|small|sweep]`
//!
//! All hash with the same function and hold the same keys. Their runs are interleaved, a slice of keys each. A speed is
//! the median of all slices, in millions of lookups in a second of one thread's processor time. Beside it is how many
//! times as fast the `ExpiringCuckooFilter` of the same table is: the median of the rounds, with the min and max. Memory
//! is what is requested from the allocator. "Lost" are the keys that a filter threw out to make room.
//!
//! - **large**: 50 million keys, more than any cache holds. The filter with an end of 4 bits for each entry (0.1 %)
//!   is compared with the `ConcurrentCuckooFilter` with as many slots in a bucket, which has a lower rate in the same
//!   memory.
//! - **small**: a million keys, in a layout of three slots, because the rate of the others needs it. `cuckoo-clock` has
//!   lifetimes of 4 bits too, and fingerprints of 16 bits in its usual buckets of four slots. In buckets of eight,
//!   fingerprints of 17 bits have the same rate and take less memory. It rounds up to a power of two. A million is just
//!   below one, so it has as few free slots as the others. `moka` is a cache that is exact and keeps each key with a
//!   lifetime of its own. Its size has no bound here, because a bound would cost it time.
//! - **sweep**: the times of single calls of `advance_to` for a table of 192 MB. Either nothing was due; or a share was
//!   swept in the same tick; or a new tick came after a complete sweep; or it came although the whole sweep before was
//!   still to be done, so that the call does it; or it came so late that everything has expired.

#[path = "../counting.rs"]
mod counting;
mod subjects;
#[path = "../support/mod.rs"]
mod support;

use std::iter;
use std::time::Duration;

use concurrent_cuckoo_filter::{Advance, Tick};
use counting::counted;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use subjects::{Held, LARGE, SMALL, expiring};
use support::clock::{Times, by_turns, own_time};
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::report::{Spread, speed};

/// Lifetimes are from 1 to this.
const LONGEST: u64 = 15;

/// The current tick, where the clock does not move.
const NOW: u64 = 1000;

/// How many lookups are timed at a time, at most. That is enough for a small filter to be in the cache for nearly all
/// of them, whichever subject ran before.
const SLICE: u64 = 32 << 10;

/// The tick at which the entry of this number expires, if `now` is the current tick.
fn end(now: u64, number: u64) -> u64 {
    now + 1 + number % LONGEST
}

/// How much is measured.
struct Sizes {
    large: u64,
    small: u64,
    table_bytes: usize,
    /// For each kind of lookups of each subject.
    length: Duration,
}

/// What is timed, and whether the keys are present and come in batches.
const LOOKUPS: [(&str, bool, bool); 4] = [
    ("present", true, false),
    ("absent", false, false),
    ("present, batched", true, true),
    ("absent, batched", false, true),
];

struct Subject {
    name: &'static str,
    held: Held,
    bytes: usize,
    lost: u64,
    /// Nanoseconds a lookup, in each round.
    times: [Vec<f64>; LOOKUPS.len()],
}

impl Subject {
    fn new(&(name, make): &subjects::Subject, keys: u64) -> Self {
        eprintln!("{keys} keys: {name}");
        let mut lost = 0;
        let (held, bytes) = counted(|| {
            let held = make(keys as usize);
            for number in 0..keys {
                lost += u64::from(!(held.insert)(key(number), end(NOW, number)));
                if number % (keys / 4) == 0 {
                    (held.rest)();
                }
            }
            (held.rest)();
            held
        });
        Self { name, held, bytes, lost, times: Default::default() }
    }
}

/// Lookups in these subjects with this many keys. The ratios are to the first.
fn lookups(keys: u64, subjects: &[subjects::Subject], length: Duration) -> Vec<Vec<String>> {
    // The table that all semi-sorted filters share is made before any memory is counted.
    drop(subjects[0].1(1));
    let mut subjects: Vec<_> = subjects.iter().map(|subject| Subject::new(subject, keys)).collect();
    let length = length * subjects.len() as u32;
    for (nth, (name, present, batched)) in LOOKUPS.into_iter().enumerate() {
        let asked = |held: &Held, asked: &[u64]| match batched {
            true => held.contains_batch.as_ref().map(|look_up| look_up(asked)),
            false => Some((held.contains)(asked)),
        };
        // Those that have batches, if they are asked for.
        let with: Vec<usize> = (0..subjects.len()).filter(|&nth| asked(&subjects[nth].held, &[]).is_some()).collect();
        let times = by_turns(with.len(), length, |turn, round| {
            let Subject { name: subject, held, lost, .. } = &subjects[with[turn]];
            // The same keys for all.
            let mut random = SmallRng::seed_from_u64(round);
            let keys = drawn(&mut random, if present { 0..keys } else { ABSENT..2 * ABSENT }, SLICE.min(keys / 4));
            let start = own_time();
            let found = asked(held, &keys).expect("it can be asked");
            let time = (own_time() - start) as f64 / keys.len() as f64;
            assert!(!present || *lost > 0 || found == keys.len(), "{subject}: a key was not found ({name})");
            time
        });
        with.into_iter().zip(times).for_each(|(subject, times)| subjects[subject].times[nth] = times);
    }
    let names = LOOKUPS.iter().flat_map(|(name, ..)| [(*name).to_owned(), "expiring by it".into()]);
    let head = ["", "bits a key", "lost"].map(String::from).into_iter().chain(names).collect();
    let rows = subjects.iter().map(|subject| {
        let mut row = vec![subject.name.to_owned(), format!("{:.1}", subject.bytes as f64 * 8.0 / keys as f64)];
        row.push(subject.lost.to_string());
        for (times, expiring) in iter::zip(&subject.times, &subjects[0].times) {
            let known = !times.is_empty();
            row.push(if known { format!("{:.2}", speed(times)) } else { "–".into() });
            row.push(if known { Spread::of_ratios(times, expiring).show() } else { "–".into() });
        }
        row
    });
    iter::once(head).chain(rows).collect()
}

/// Single calls of `advance_to`, in microseconds.
fn sweep(bytes: usize) -> Vec<Vec<String>> {
    // 4 slots in 8 bytes.
    let filter = expiring((bytes / 8 * 4) * 95 / 100, 0.001);
    let len = filter.plan().slots as u64 * 9 / 10;
    let (mut now, mut next) = (NOW, 0);
    filter.advance_to(Tick::new(now));
    let [mut nothing, mut share, mut new, mut late, mut all]: [Times; 5] = Default::default();
    let advance = |times: &mut Times, now: &mut u64, ticks| {
        *now += ticks;
        assert_eq!(times.time(|| filter.advance_to(Tick::new(*now))), Advance::Forward { ticks });
    };
    for round in 0..5 {
        eprintln!("sweep, round {round}");
        // New entries take the place of those that are gone.
        let first = next;
        next += len - filter.len() as u64;
        let new_ones = (first..next).map(|number| (filter.hash_one(&key(number)), Tick::new(end(now, number))));
        filter.by_hash().insert_until_batch(new_ones, &mut Vec::new()).expect("room");
        (0..100_000).for_each(|_| _ = nothing.time(|| filter.advance_to(Tick::new(now))));
        advance(&mut new, &mut now, 1);
        advance(&mut late, &mut now, 1);
        while filter.stats().expiry.expect("it has a clock").oldest_unswept.is_some() {
            share.time(|| filter.advance_to(Tick::new(now)));
        }
    }
    advance(&mut all, &mut now, 1000);
    let head = iter::once("").chain(Times::HEAD).map(String::from).collect();
    let rows = [
        ("nothing is due", nothing),
        ("same tick, a share", share),
        ("new tick", new),
        ("new tick, none swept", late),
        ("all have expired", all),
    ];
    let rows = rows.iter().filter(|(_, times)| times.count() > 0);
    let row = |(name, times): &(&str, Times)| iter::once((*name).to_owned()).chain(times.row()).collect();
    iter::once(head).chain(rows.map(row)).collect()
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let mut sizes =
        Sizes { large: 50_000_000, small: 1_000_000, table_bytes: 192 << 20, length: Duration::from_secs(5) };
    if options.quick {
        sizes = Sizes { large: 5_000_000, table_bytes: 24 << 20, length: Duration::from_millis(500), ..sizes };
    }
    sizes.large = options.keys(sizes.large);
    if options.test {
        sizes = Sizes { large: 20_000, small: 10_000, table_bytes: 64 << 10, length: Duration::ZERO };
    }
    for (name, keys, subjects) in [("large", sizes.large, &LARGE[..]), ("small", sizes.small, &SMALL)] {
        options
            .part(name, || (format!("{keys} keys, million lookups a second"), lookups(keys, subjects, sizes.length)));
    }
    options.part("sweep", || {
        (format!("calls of `advance_to`, {} KiB, microseconds", sizes.table_bytes >> 10), sweep(sizes.table_bytes))
    });
}
