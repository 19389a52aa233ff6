//! Instructions per operation, as callgrind counts them. The counts are the same in every run, however busy the
//! machine is.
//!
//! `ci/instructions` runs this, compares the counts with the figures in `benches/instructions.csv`, and can record
//! new ones. `cargo bench` alone counts nothing, and says so, because counting needs valgrind and a runner.
//!
//! Each figure is that of [`OPERATIONS`] operations in a loop over a slice of keys, divided by their number.
//! `loop_alone` is the loop, and `hash` the loop and the hash of the key. What goes beyond is the filter's own
//! share.
//!
//! The code is like a user's: the filter comes from another crate, the loop does not know its layout, and no value
//! is forced through memory without need.

mod support;

use std::convert::identity;
use std::hint::black_box;

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Tick};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use support::hash::HASH;
use support::keys::{ABSENT, Shuffled, key};
use support::ours::builder;

type Filter = ConcurrentCuckooFilter<u64, RandomState>;
type Expiring = ExpiringCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;

/// How many operations each figure is the mean of. (`ci/instructions` reads this line.)
const OPERATIONS: usize = 10_000;

#[derive(Clone, Copy, Debug)]
enum Layout {
    Default5x14,
    Plain5x12,
    Plain4x16,
}

impl Layout {
    /// `subject(self)`, with the arguments in the order that `operations!` needs.
    fn with(self, subject: fn(Self) -> &'static Subject) -> &'static Subject {
        subject(self)
    }

    /// An empty filter with a few slots more than `slots`.
    fn filter(self, slots: usize) -> Filter {
        let builder = builder().capacity(slots);
        let (builder, layout) = match self {
            Self::Default5x14 => (builder, (5, 14)),
            Self::Plain5x12 => (builder.false_positive_rate(0.002_5).encoding(Encoding::Plain), (5, 12)),
            Self::Plain4x16 => (builder.false_positive_rate(0.000_125).encoding(Encoding::Plain), (4, 16)),
        };
        let filter = builder.build().expect("a valid filter");
        assert_eq!((filter.plan().layout.slots_per_bucket, filter.plan().layout.fingerprint_bits), layout, "{self:?}");
        filter
    }
}

/// A filter, and the keys of the operations to come.
#[derive(Debug)]
struct Subject<F = Filter> {
    filter: F,
    keys: Vec<u64>,
}

impl<F> Subject<F> {
    /// It is never dropped: that would only cost time.
    fn new(filter: F, keys: impl Iterator<Item = u64>) -> &'static Self {
        let keys: Vec<u64> = keys.take(OPERATIONS).map(key).collect();
        assert_eq!(keys.len(), OPERATIONS);
        Box::leak(Box::new(Self { filter, keys }))
    }
}

impl Subject {
    /// A filter with 90% of its slots taken. `choose` makes each key from a present and an absent one.
    fn at_90(layout: Layout, mut choose: impl FnMut(u64, u64) -> u64) -> &'static Self {
        let filter = layout.filter(4 * OPERATIONS);
        let len = filter.plan().slots as u64 * 9 / 10;
        fill(&filter, len);
        let mut present = Shuffled::new(0..len, 0.0);
        Self::new(filter, (ABSENT..).map(|absent| choose(present.next(), absent)))
    }

    /// A filter and new keys that bring it from one load to the other.
    fn between(layout: Layout, from: f64, to: f64) -> &'static Self {
        let filter = layout.filter((OPERATIONS as f64 / (to - from)) as usize);
        let len = (filter.plan().slots as f64 * to) as u64 - OPERATIONS as u64;
        fill(&filter, len);
        Self::new(filter, len..)
    }
}

/// The current tick of all filters whose entries expire, and the end of all entries.
const NOW: u64 = 1000;
const END: u64 = NOW + 10;

/// An empty filter whose entries expire, with a few slots more than `slots`: 4 of 17 bits in a bucket, 4 of which
/// are an end.
fn expiring(slots: usize) -> Expiring {
    let builder = Expiring::builder_with_hasher(HASH).capacity(slots).lifetime_in_ticks(15);
    let filter = builder.build().expect("a valid filter");
    assert_eq!(
        (
            filter.plan().layout.slots_per_bucket,
            filter.plan().layout.fingerprint_bits,
            filter.plan().layout.payload_bits
        ),
        (4, 13, 4)
    );
    filter.advance_to(Tick::new(NOW));
    filter
}

/// Such a filter with 90% of its slots taken, and keys with numbers from `from` on.
fn expiring_at_90(from: u64) -> &'static Subject<Expiring> {
    let filter = expiring(4 * OPERATIONS);
    let len = filter.plan().slots as u64 * 9 / 10;
    (0..len).for_each(|index| _ = filter.insert_until(&key(index), Tick::new(END)).expect("room"));
    let mut order = Shuffled::new(from..from + len, 0.0);
    Subject::new(filter, (0..).map(|_| order.next()))
}

/// An empty one, and new keys that fill it to half.
fn expiring_to_half() -> &'static Subject<Expiring> {
    Subject::new(expiring(2 * OPERATIONS), 0..)
}

/// A filter that can grow, and keys with numbers from `from` on. If it is `mixed`, its buckets have two layouts: those that are
/// split another one than the others. If not, they have the same one, from 147,000 keys on.
fn growable(mixed: bool, from: u64) -> &'static Subject<Growable> {
    let builder = Growable::builder_with_hasher(HASH).capacity(4 * OPERATIONS);
    let filter = builder.build().expect("a valid filter");
    filter.reserve((if mixed { 6 } else { 20 }) * OPERATIONS).expect("there is memory");
    let len = filter.capacity() as u64 * 9 / 10;
    (0..len).for_each(|number| filter.insert(&key(number)).expect("there is room"));
    let mut order = Shuffled::new(from..from + len, 0.0);
    Subject::new(filter, (0..).map(|_| order.next()))
}

/// One that begins small, and new keys. Its largest size, if it is given, is for so many.
fn growable_from_empty(most: Option<usize>) -> &'static Subject<Growable> {
    let builder = Growable::builder_with_hasher(HASH).capacity(1000);
    let builder = most.into_iter().fold(builder, |builder, most| builder.max_capacity(most));
    Subject::new(builder.build().expect("a valid filter"), 0..)
}

/// Inserts twenty keys. So all the operations together insert 200,000.
fn inserts_20(filter: &Growable, key: &u64) -> bool {
    (0..20).all(|nth| filter.insert(&key.wrapping_add(nth)).is_ok())
}

fn fill(filter: &Filter, len: u64) {
    (0..len).for_each(|index| filter.insert(&key(index)).expect("room"));
}

fn present(layout: Layout) -> &'static Subject {
    Subject::at_90(layout, |present, _| present)
}

fn absent(layout: Layout) -> &'static Subject {
    Subject::at_90(layout, |_, absent| absent)
}

/// Present or absent keys, at random.
fn either(layout: Layout) -> &'static Subject {
    let mut coins = SplitMix64::seed_from_u64(0);
    Subject::at_90(layout, |present, absent| if coins.next_u64().is_multiple_of(2) { present } else { absent })
}

fn to_half(layout: Layout) -> &'static Subject {
    Subject::between(layout, 0.0, 0.5)
}

fn to_90(layout: Layout) -> &'static Subject {
    Subject::between(layout, 0.85, 0.9)
}

/// One operation on one key after the other. Returns how often the answer was yes.
#[inline(always)]
fn each(operation: impl Fn(&Filter, &u64) -> bool) -> impl Fn(&Filter, &[u64]) -> usize {
    each_of(operation)
}

/// The same on any filter.
#[inline(always)]
fn each_of<F>(operation: impl Fn(&F, &u64) -> bool) -> impl Fn(&F, &[u64]) -> usize {
    move |filter, keys| {
        let mut yes = 0;
        for key in keys {
            yes += usize::from(operation(filter, key));
            // This is no instruction, but it keeps small operations from being vectorized, as nothing around a real
            // call is.
            black_box(());
        }
        yes
    }
}

/// How many keys are found by batches of a thousand.
fn found_in_batch(filter: &Filter, keys: &[u64]) -> usize {
    in_batches(keys, |keys, found| filter.contains_batch(keys, found))
}

/// The same where entries expire.
fn live_in_batch(filter: &Expiring, keys: &[u64]) -> usize {
    in_batches(keys, |keys, found| filter.contains_batch(keys, found))
}

/// How many keys are removed by batches of a thousand.
fn removed_in_batch(filter: &Filter, keys: &[u64]) -> usize {
    in_batches(keys, |keys, removed| filter.remove_batch(keys, removed))
}

fn in_batches(keys: &[u64], operation: impl Fn(&[u64], &mut Vec<bool>)) -> usize {
    let mut answers = Vec::with_capacity(1000);
    let mut yes = 0;
    for keys in keys.chunks(1000) {
        answers.clear();
        operation(keys, &mut answers);
        yes += answers.iter().map(|&answer| usize::from(answer)).sum::<usize>();
    }
    yes
}

/// `OPERATION: KEYS => WHAT, HOW OFTEN IT SAYS YES;` where `WHAT` is a function of the filter and all keys:
/// [`each`] of some operation, or a function that takes them all at once.
///
/// The arguments of `bench` must begin with a word that is in this macro: gungraun makes a variable with the place
/// of the first word, and with its hygiene.
macro_rules! operations {
    ($($name:ident: $subject:ident => $operation:expr, $yes:expr;)*) => {
        $(
            #[library_benchmark]
            #[bench::default_5x14(Layout::Default5x14.with($subject))]
            #[bench::plain_5x12(Layout::Plain5x12.with($subject))]
            #[bench::plain_4x16(Layout::Plain4x16.with($subject))]
            fn $name(subject: &'static Subject) {
                let yes: usize = ($operation)(&subject.filter, &subject.keys);
                // False positives and duplicate fingerprints, and nothing else.
                assert!(yes.abs_diff($yes) <= OPERATIONS / 100, "{}: {yes} times yes", stringify!($name));
            }
        )*
        library_benchmark_group!(name = operations, benchmarks = [$($name),*]);
    };
}

/// The same for a filter of another type, in one layout.
macro_rules! operations_of {
    ($group:ident, $filter:ty, $layout:ident; $($name:ident: $subject:ident($($how:tt)*) => $operation:expr, $yes:expr;)*) => {
        $(
            #[library_benchmark]
            #[bench::$layout(identity($subject($($how)*)))]
            fn $name(subject: &'static Subject<$filter>) {
                let yes: usize = ($operation)(&subject.filter, &subject.keys);
                assert!(yes.abs_diff($yes) <= OPERATIONS / 100, "{}: {yes} times yes", stringify!($name));
            }
        )*
        library_benchmark_group!(name = $group, benchmarks = [$($name),*]);
    };
}

/// gungraun makes a module with a `main`, which runs itself again under callgrind for each figure.
mod counted {
    use gungraun::{Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group};

    use super::*;

    const NONE: usize = 0;
    const HALF: usize = OPERATIONS / 2;
    const ALL: usize = OPERATIONS;

    operations! {
        loop_alone: absent => each(|_, &key| key == 0), NONE;
        hash: absent => each(|filter, key| filter.hasher().hash_one(key) == *key), NONE;
        lookup_hit: present => each(|filter, key| filter.contains(key)), ALL;
        lookup_miss: absent => each(|filter, key| filter.contains(key)), NONE;
        lookup_half_hits: either => each(|filter, key| filter.contains(key)), HALF;
        batched_lookup_hit: present => found_in_batch, ALL;
        batched_lookup_miss: absent => found_in_batch, NONE;
        batched_lookup_half_hits: either => found_in_batch, HALF;
        batched_insert_to_half: to_half => |filter: &Filter, keys: &[u64]| filter.insert_batch(keys).map_or(0, |()| keys.len()), ALL;
        batched_remove: present => removed_in_batch, ALL;
        insert_to_half: to_half => each(|filter, key| filter.insert(key).is_ok()), ALL;
        insert_85_to_90: to_90 => each(|filter, key| filter.insert(key).is_ok()), ALL;
        insert_if_absent_of_present: present => each(|filter, key| filter.insert_if_absent(key).unwrap_or(false)), NONE;
        insert_if_absent_of_absent: to_half => each(|filter, key| filter.insert_if_absent(key).unwrap_or(false)), ALL;
        remove: present => each(|filter, key| filter.remove(key)), ALL;
        count: present => each(|filter, key| filter.count(key) == 1), ALL;
    }

    operations_of! { expiring_operations, Expiring, expiring_4x13;
        expiring_lookup_hit: expiring_at_90(0) => each_of(|filter: &Expiring, key| filter.contains(key)), ALL;
        expiring_lookup_miss: expiring_at_90(ABSENT) => each_of(|filter: &Expiring, key| filter.contains(key)), NONE;
        expiring_batched_lookup_hit: expiring_at_90(0) => live_in_batch, ALL;
        expiring_batched_lookup_miss: expiring_at_90(ABSENT) => live_in_batch, NONE;
        expiring_insert_to_half: expiring_to_half() => each_of(|filter: &Expiring, key| filter.insert_until(key, Tick::new(END)).is_ok()), ALL;
        expiring_remove: expiring_at_90(0) => each_of(|filter: &Expiring, key| filter.remove_expiring_at(key, Tick::new(END))), ALL;
    }

    operations_of! { growable_operations, Growable, growable;
        growable_lookup_hit: growable(false, 0) => each_of(|filter: &Growable, key| filter.contains(key)), ALL;
        growable_lookup_miss: growable(false, ABSENT) => each_of(|filter: &Growable, key| filter.contains(key)), NONE;
        mixed_lookup_hit: growable(true, 0) => each_of(|filter: &Growable, key| filter.contains(key)), ALL;
        mixed_lookup_miss: growable(true, ABSENT) => each_of(|filter: &Growable, key| filter.contains(key)), NONE;
        growable_20_inserts_from_empty: growable_from_empty(None) => each_of(inserts_20), ALL;
        bounded_20_inserts_from_empty: growable_from_empty(Some(24 * OPERATIONS)) => each_of(inserts_20), ALL;
        growable_remove: growable(false, 0) => each_of(|filter: &Growable, key| filter.remove(key)), ALL;
    }

    // No caches are simulated: only instructions are needed.
    gungraun::main!(
        config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"]));
        library_benchmark_groups = operations, expiring_operations, growable_operations
    );

    pub(super) fn run() {
        main();
    }
}

fn main() {
    // gungraun reads the path of the runner at compile time. The runner calls this program again, with arguments of
    // its own.
    if option_env!("GUNGRAUN_RUNNER").is_none() {
        eprintln!("instructions: not counted here; `ci/instructions` does that, with valgrind");
        return;
    }
    counted::run();
}
