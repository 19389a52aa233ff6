//! What it costs that entries expire one by one, and how that compares with other ways to forget keys.
//!
//! `cargo bench --bench expiring [-- --quick | --keys=N | --only=large|small|memory|dead|sweep]`
//!
//! All filters hash with the same function and hold the same keys. Where filters are compared, they are asked by turns, a slice of
//! keys each, so that a busy machine slows all of them down alike. A speed is the median of all slices, in millions of operations
//! in a second of one thread's processor time. Beside it stands how many times as fast the `ExpiringCuckooFilter` is that it is to be compared with:
//! the median of the ratios, each of one turn, with the least and the greatest.
//!
//! - **large**: 50 million keys, more than any cache holds. The filter with an end of 4 bits for each entry (0.1 %) against the
//!   `ConcurrentCuckooFilter` with as many slots in a bucket, which has a lower rate in the same memory, and against the
//!   `RotatingCuckooFilter` of four generations with a rate of 0.1 %, which tells four ages apart and not fifteen.
//! - **small**: a million keys. The same, and in a layout of three slots, since the rate of other crates asks for it: against
//!   `cuckoo-clock` and against `moka`. `cuckoo-clock` has lifetimes of 4 bits too, and fingerprints of 16 bits in its usual buckets of
//!   four slots. In buckets of eight, fingerprints of 17 bits have the same rate and take less memory. It rounds up to a power of
//!   two; a million is just below one, so it has as few slots to spare as the others. `moka` is a cache that is exact and keeps each key
//!   with a lifetime of its own. It has no bound on its size here, which would cost it time.
//!
//!   *Fill* is the mean speed of one fill, from empty until all keys are in. *Insert* and *remove* are slices of new and of the
//!   oldest keys at that load. Memory is what is asked of the allocator, without what the allocator adds to it. That is next to
//!   nothing for one table; for each bucket of `cuckoo-clock` and each entry of `moka` it is some bytes more. "Lost" are the keys
//!   that a filter threw out to make room.
//! - **memory**: bits for each entry at capacity, and the rate with every slot taken.
//! - **dead**: a tenth of the slots holds entries that have died and were not swept. Is an insert slower there than in a table that
//!   is a tenth emptier? Both get the same new keys, until the live ones are as many as the capacity. Shown are relocations for each
//!   insert, the share of inserts that relocate, and speeds, in fifths of the way.
//! - **sweep**: what it takes to take dead entries out. First, the processor time of a sweep over a table of a million entries.
//!   Then the times of single calls of `advance_to` for a table of 192 MB: nothing was due; a share was swept in the same tick; a
//!   new tick came after a complete sweep; it came although the whole sweep before was still to be done, so that the call does
//!   it; and it came so late that everything has died. At last, another thread's inserts and lookups of absent keys beside no
//!   sweep, beside a sweep by shares (one call of `advance_to` after the other), and beside one late call. Processor time tells
//!   how much a thread did itself; the clock also counts what it waited for, and how long others were on its processor.

mod by_turns;
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

/// Which lifetimes there are: from 1 to this.
const LONGEST: u64 = 15;

/// The tick that is now, where the clock stands still.
const NOW: u64 = 1000;

/// At which tick the entry of this number expires, if this one is now.
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
    /// How long each kind of lookups and changes of each subject takes in all.
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

/// What is compared with which one of them.
fn large(keys: u64) -> Vec<(Kind, usize)> {
    let kinds = [(Kind::Expiring { slots: 4 }, 0), (Kind::Concurrent { slots: 4 }, 0), (Kind::Rotating, 0)];
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
