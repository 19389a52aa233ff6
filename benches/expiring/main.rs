//! What it costs that entries expire one by one, compared with other ways to forget keys.
//!
//! `cargo bench --bench expiring [-- --quick | --keys=N | --only=large|small|memory|dead|sweep]`
//!
//! All filters hash with the same function and hold the same keys. Runs of filters that are compared are
//! interleaved, a slice of keys each, so a busy machine slows all of them down alike. A speed is the median of all
//! slices, in millions of operations in a second of one thread's processor time. Beside it is a ratio: how many
//! times as fast the `ExpiringCuckooFilter` is with which it is compared. This is the median of the ratios, each of
//! one turn, with the min and max.
//!
//! - **large**: 50 million keys, more than any cache holds. The filter with an end of 4 bits for each entry (0.1 %)
//!   is compared with the `ConcurrentCuckooFilter` with as many slots in a bucket, which has a lower rate in the same
//!   memory.
//! - **small**: a million keys. The same, and also a layout of three slots, because the rate of the other crates
//!   needs it: compared with `cuckoo-clock` and with `moka`. `cuckoo-clock` has lifetimes of 4 bits too, and
//!   fingerprints of 16 bits in its usual buckets of four slots. In buckets of eight, fingerprints of 17 bits have
//!   the same rate and take less memory. It rounds up to a power of two. A million is just below one, so it has as
//!   few free slots as the others. `moka` is a cache that is exact and keeps each key with a lifetime of its own.
//!   Its size has no bound here, because a bound would cost it time.
//!
//!   "Fill" is the mean speed of one fill, from empty until all keys are in. "Insert" and "remove" are slices of new
//!   and of the oldest keys at that load. Memory is what is requested from the allocator, without the allocator's own
//!   overhead. The overhead is next to nothing for one table. It is some bytes for each bucket of `cuckoo-clock` and
//!   for each entry of `moka`. "Lost" are the keys that a filter threw out to make room.
//! - **memory**: bits for each entry at capacity, and the rate with every slot taken.
//! - **dead**: a tenth of the slots holds entries that have died and were not swept. Is an insert slower there than
//!   in a table that is a tenth emptier? Both get the same new keys, until there are as many live ones as the
//!   capacity. The output shows relocations for each insert, the share of inserts that relocate, and speeds, for
//!   each fifth of the way.
//! - **sweep**: what it costs to take dead entries out. First, the processor time of a sweep over a table of a
//!   million entries. Then the times of single calls of `advance_to` for a table of 192 MB. Either nothing was due;
//!   or a share was swept in the same tick; or a new tick came after a complete sweep; or it came although the
//!   whole sweep before was still to be done, so that the call does it; or it came so late that everything has
//!   died. Last, another thread's inserts and lookups of absent keys beside no sweep, beside a sweep by shares (one
//!   call of `advance_to` after the other), and beside one late call. Processor time shows how much a thread did
//!   itself. The clock also counts what it waited for, and how long others were on its processor.

mod by_turns;
#[path = "../counting.rs"]
mod counting;
mod dead;
mod memory;
mod subjects;
#[path = "../support/mod.rs"]
mod support;
mod sweep;

use std::time::Duration;

use by_turns::Run;
use subjects::{Clocked, Held, Kind};
use support::options::Options;
use support::report::align;

/// Lifetimes are from 1 to this.
const LONGEST: u64 = 15;

/// The current tick, where the clock does not move.
const NOW: u64 = 1000;

/// The tick at which the entry of this number expires, if `now` is the current tick.
fn end(now: u64, number: u64) -> u64 {
    now + 1 + number % LONGEST
}

/// How much is measured.
pub(crate) struct Sizes {
    large: u64,
    small: u64,
    dead: u64,
    swept: u64,
    table_bytes: usize,
    rounds: usize,
    /// The total time for each kind of lookups and changes of each subject.
    length: Duration,
}

impl Sizes {
    fn of(options: &Options) -> Self {
        let keys = |usual| options.value("--keys").map_or(usual, |keys| keys.parse().expect("--keys=NUMBER"));
        let (small, swept) = (1_000_000, 1_000_000);
        match (options.test, options.quick) {
            (true, _) => Self {
                large: 20_000,
                small: 10_000,
                dead: 20_000,
                swept: 10_000,
                table_bytes: options.table_bytes(support::plan::Size::Large),
                rounds: 1,
                length: Duration::ZERO,
            },
            (false, true) => Self {
                large: keys(5_000_000),
                small,
                dead: 5_000_000,
                swept,
                table_bytes: 24 << 20,
                rounds: 5,
                length: Duration::from_millis(500),
            },
            (false, false) => Self {
                large: keys(50_000_000),
                small,
                dead: 20_000_000,
                swept,
                table_bytes: 192 << 20,
                rounds: 5,
                length: Duration::from_secs(5),
            },
        }
    }
}

/// The subjects, and which one each is compared with.
fn large(keys: u64) -> Vec<(Kind, usize)> {
    let kinds = [(Kind::Expiring { slots: 4 }, 0), (Kind::Concurrent { slots: 4 }, 0)];
    eprintln!("{keys} keys");
    kinds.to_vec()
}

fn small() -> Vec<(Kind, usize)> {
    vec![
        (Kind::Expiring { slots: 4 }, 0),
        (Kind::Concurrent { slots: 4 }, 0),
        (Kind::Expiring { slots: 3 }, 2),
        (Kind::Concurrent { slots: 3 }, 2),
        (Kind::CuckooClock { slots: 4 }, 2),
        (Kind::CuckooClock { slots: 8 }, 2),
        (Kind::Moka, 2),
    ]
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let sizes = Sizes::of(&options);
    let part = options.value("--only");
    let print = |title: &str, rows: &[Vec<String>]| {
        if !options.test {
            println!("## {title}\n\n{}", align(rows, 1));
        }
    };
    let wants = |name: &str| part.is_none_or(|part| part == name);
    for (name, keys, kinds) in [("large", sizes.large, large as fn(u64) -> _), ("small", sizes.small, |_| small())] {
        if wants(name) {
            let run = Run::new(keys, &kinds(keys), sizes.length);
            run.tables().iter().for_each(|(title, rows)| print(&format!("{name}: {keys} keys, {title}"), rows));
        }
    }
    if wants("memory") {
        print("memory: bits an entry at capacity", &memory::table(if options.test { 1000 } else { 20_000_000 }));
    }
    if wants("dead") {
        print(
            "dead: inserts where a tenth is dead, and where a tenth is empty",
            &dead::table(sizes.dead, options.test),
        );
    }
    if wants("sweep") {
        sweep::tables(&sizes).iter().for_each(|(title, rows)| print(&format!("sweep: {title}"), rows));
    }
}
