//! Snapshots that were changed at random, with correct checksums: what the fuzz targets do (`tests/fuzz`), without a
//! fuzzer. Whatever is loaded is used: no operation panics or overflows, and no count is wrong.
//!
//! `CCF_MUTATED=1000000 cargo test --all-features --test mutated` makes as many snapshots.
#![cfg(all(feature = "serde", feature = "stable-hash"))]

#[allow(unreachable_pub, reason = "the fuzz targets share it")]
#[path = "fuzz/kinds.rs"]
mod kinds;
#[allow(unreachable_pub, reason = "the fuzz targets share it")]
#[path = "fuzz/repair.rs"]
mod repair;

use concurrent_cuckoo_filter::{SnapshotInfo, Tick, View};
use kinds::{Expiring, Fixed, Growable, Kind, Maplet, OneTable, Way, hashes, kind_of};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use repair::{label, prepare, repair, stated_schema};

const LIMIT: usize = 1 << 20;

/// Loads the snapshot, of which the mode says how much is corrected before, as `tests/fuzz/load.rs` does. If it can be
/// loaded, uses the filter. Returns whether it could.
fn is_loaded_and_used<F: Kind>(mode: u8, mut bytes: Vec<u8>) -> bool {
    repair(&mut bytes, mode % 4, F::NUMBER);
    let schema = if mode & 4 == 0 { stated_schema(&bytes) } else { "u64".to_owned() };
    let way = [Way::Stream, Way::Bytes, Way::Stream, Way::Stream, Way::Numbers][usize::from(mode >> 3) / 5 % 5];
    let verified = SnapshotInfo::verify(&bytes[..]);
    let (filter, left) = match way.load::<F>(&way.encode(&bytes), &schema, Some(LIMIT)) {
        Ok(loaded) => loaded,
        Err(message) => {
            assert!(!message.is_empty());
            return false;
        }
    };
    assert!(verified.is_ok(), "what can be loaded was not verified: {verified:?}");
    let snapshot = &bytes[..bytes.len() - left];
    let (position, attachment) = label(snapshot);
    assert!(filter.snapshot(position, attachment) == snapshot, "the loaded filter is saved as other bytes");
    filter.use_it();
    true
}

/// Looks up in a view of these bytes, whether they can be loaded or not.
fn view(bytes: &[u8]) {
    let now = SnapshotInfo::read(bytes).ok().and_then(|info| info.now).map_or(0, Tick::get);
    if let Ok(view) = View::<Expiring, _>::new(bytes, Fixed::default()) {
        for tick in [0, now, now.saturating_add(3), u64::MAX] {
            hashes(20).for_each(|hash| _ = view.by_hash().contains_at(hash, Tick::new(tick)));
        }
        _ = view.verify();
    }
    if let Ok(view) = View::<Maplet, _>::new(bytes, Fixed::default()) {
        hashes(20).for_each(|hash| _ = view.by_hash().values(hash));
    }
    if let Ok(view) = View::<OneTable, _>::new(bytes, Fixed::default()) {
        hashes(20).for_each(|hash| _ = view.by_hash().contains(hash));
    }
    if let Ok(view) = View::<Growable, _>::new(bytes, Fixed::default()) {
        hashes(20).for_each(|hash| _ = view.by_hash().contains(hash));
    }
}

/// The seeds of the fuzzer.
fn seeds() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Changes a few bytes, or moves some: numbers at the ends of their ranges are more likely than others.
fn mutate(random: &mut SmallRng, input: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 << random.random_range(0..4) {
        // The numbers of the header come first, and there are few of them.
        let end = if random.random() { input.len() } else { input.len().min(120) };
        let at = random.random_range(0..end);
        match random.random_range(0..8) {
            0 => input[at] ^= 1 << random.random_range(0..8),
            1 => input[at] = random.random(),
            2 => input[at] = [0, 1, 2, 3, 4, 14, 15, 16, 127, 128, 255][random.random_range(0..11)],
            3 => input[at] = input[at].wrapping_add(1),
            4 => input[at] = input[at].wrapping_sub(1),
            5 => {
                let with = [0, u8::MAX][random.random_range(0..2)];
                let len = (1 << random.random_range(0..4)).min(input.len() - at);
                input[at..at + len].fill(with);
            }
            6 => {
                let len = (8 * random.random_range(1..5)).min(input.len() - at).min(other.len());
                let from = random.random_range(0..=other.len() - len);
                input[at..at + len].copy_from_slice(&other[from..from + len]);
            }
            _ if random.random() => input.insert(at, random.random()),
            _ if input.len() > 60 => _ = input.remove(at),
            _ => (),
        }
    }
}

/// Seen to fail: without the check of an entry's lifetime, within some hundred snapshots.
#[test]
fn whatever_is_loaded_can_be_used() {
    let rounds = std::env::var("CCF_MUTATED").map_or(10_000, |rounds| rounds.parse::<u64>().expect("a number"));
    let first = std::env::var("CCF_MUTATED_SEED").map_or(0, |seed| seed.parse::<u64>().expect("a number"));
    prepare();
    let seeds = seeds();
    let mut loaded = 0;
    for seed in first..first + if cfg!(miri) { 10 } else { rounds } {
        let random = &mut SmallRng::seed_from_u64(seed);
        let [mut input, other] = [(); 2].map(|()| seeds[random.random_range(0..seeds.len())].clone());
        mutate(random, &mut input, &other);
        // As in the fuzzer, a snapshot is often correct except for one number.
        let kind = kind_of(input[0]);
        if random.random() {
            repair(&mut input[1..], 3, kind);
            mutate(random, &mut input, &other);
        }
        let level = [1, 1, 2, 3, 3, 3][random.random_range(0..6)];
        let (mode, bytes) = (input[0] & !3 | level, input[1..].to_vec());
        // Replays a failure: its message is followed by this line.
        let replay = Replay(seed);
        view(&bytes);
        loaded += u64::from(match kind_of(mode) {
            Growable::NUMBER => is_loaded_and_used::<Growable>(mode, bytes),
            Maplet::NUMBER => is_loaded_and_used::<Maplet>(mode, bytes),
            Expiring::NUMBER => is_loaded_and_used::<Expiring>(mode, bytes),
            _ => is_loaded_and_used::<OneTable>(mode, bytes),
        });
        drop(replay);
    }
    println!("{loaded} of {rounds} were loaded");
    assert!(loaded >= rounds / 10, "only {loaded} of {rounds} could be loaded");
}

/// Prints how to repeat a failure.
struct Replay(u64);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("CCF_MUTATED=1 CCF_MUTATED_SEED={} repeats it", self.0);
        }
    }
}
