//! How much of a lookup is the hasher: the default one, and others that a user can choose.
//!
//! `cargo bench --bench hashers [-- --quick | --l2 | --large]`
//!
//! Each filter has the default layout, takes the same memory and is 90% full. One thread looks up `u64` keys and
//! strings of 16 bytes, half of them present, at random. In each round every hasher has a turn, and each ratio compares
//! two turns of one round: how many times as fast lookups are as with the default hasher. The output shows the median of
//! the rounds, with the min and max.
//!
//! The default hasher is `ahash`. It has code for the processor's AES instructions, which is chosen when a program is
//! compiled: `RUSTFLAGS='-C target-feature=+aes' cargo bench --bench hashers` measures it. The page `security` says
//! what each of them promises.

mod support;

use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::time::Instant;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::keys::{ABSENT, key};
use support::options::Options;
use support::report::{Spread, align, speed};

/// How many lookups a turn has.
const TURN: usize = 100_000;

/// Keys that are made of numbers.
trait Key: Hash + Sized {
    fn of(number: u64) -> Self;
}

impl Key for u64 {
    #[inline(always)]
    fn of(number: u64) -> Self {
        key(number)
    }
}

/// Sixteen characters, as an identifier or a token might have.
#[derive(Hash)]
struct Text([u8; 16]);

impl Key for Text {
    #[inline(always)]
    fn of(number: u64) -> Self {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let number = key(number);
        Self(std::array::from_fn(|nth| DIGITS[(number >> (4 * nth)) as usize % 16]))
    }
}

/// Looks up the keys of some numbers. Returns nanoseconds for each lookup.
type Turn = Box<dyn Fn(&[u64]) -> f64>;

/// A filter with this hasher, and how many keys are in it.
fn filled<K: Key + 'static, S: BuildHasher + 'static>(hasher: S, bytes: usize) -> (Turn, u64) {
    let builder = ConcurrentCuckooFilter::<K, S>::builder_with_hasher(hasher).capacity(bytes / 8 * 5 * 95 / 100);
    let filter = builder.build().expect("a valid filter");
    let len = filter.plan().slots as u64 * 9 / 10;
    (0..len).for_each(|number| filter.insert(&K::of(number)).expect("room"));
    let turn = move |keys: &[u64]| {
        let keys: Vec<K> = keys.iter().map(|&number| K::of(number)).collect();
        let start = Instant::now();
        black_box(keys.iter().filter(|key| filter.contains(key)).count());
        start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64
    };
    (Box::new(turn), len)
}

/// The hashers, and what to build with them. The first is the one to compare with.
fn subjects<K: Key + 'static>(bytes: usize) -> Vec<(&'static str, Turn, u64)> {
    let mut subjects = Vec::new();
    let mut add = |name, (turn, len)| subjects.push((name, turn, len));
    add("ahash (default)", filled::<K, _>(DefaultHashBuilder::new(), bytes));
    add("foldhash, fast", filled::<K, _>(foldhash::fast::RandomState::default(), bytes));
    add("foldhash, quality", filled::<K, _>(foldhash::quality::RandomState::default(), bytes));
    add("rapidhash, fast", filled::<K, _>(rapidhash::fast::RandomState::new(), bytes));
    add("rapidhash, quality", filled::<K, _>(rapidhash::quality::RandomState::new(), bytes));
    add("SipHash-1-3 (std)", filled::<K, _>(std::hash::RandomState::new(), bytes));
    // Without a key, to show how little is left to gain.
    add("FxHash", filled::<K, _>(rustc_hash::FxBuildHasher, bytes));
    subjects
}

fn measure<K: Key + 'static>(keys: &str, bytes: usize, rounds: usize, rows: &mut Vec<Vec<String>>) {
    let subjects = subjects::<K>(bytes);
    let mut random = SmallRng::seed_from_u64(17);
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        let len = subjects[0].2;
        let draw = |_| {
            let from = if random.random() { 0 } else { ABSENT };
            from + random.random_range(0..len)
        };
        let turn: Vec<u64> = (0..TURN).map(draw).collect();
        for ((_, subject, _), times) in subjects.iter().zip(&mut times) {
            times.push(subject(&turn));
        }
    }
    for ((name, ..), of_this) in subjects.iter().zip(&times) {
        let ratio = Spread::of_ratios(&times[0], of_this).show();
        rows.push(vec![keys.to_owned(), (*name).to_owned(), format!("{:.0}", speed(of_this)), ratio]);
    }
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let rounds = options.pick(1, 15, 101);
    for size in options.sizes() {
        let bytes = options.table_bytes(size);
        let header = ["keys", "hasher", "M lookups/s", "times as fast as the default"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        measure::<u64>("u64", bytes, rounds, &mut rows);
        measure::<Text>("16 bytes", bytes, rounds, &mut rows);
        println!("{} KiB, half of the keys are present:\n\n{}", bytes >> 10, align(&rows, 2));
    }
}
