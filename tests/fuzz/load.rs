//! Loads any bytes as a snapshot of a filter of each kind, including maplets, in each way. Nothing panics, nothing
//! allocates more than the limit, and bytes that are accepted are a snapshot to the last bit.
//!
//! The first byte of an input is its mode, and the rest is the snapshot:
//!
//! | bits of the mode | what |
//! |---|---|
//! | 0, 1 | how much of the snapshot is corrected before it is loaded (`repair.rs`) |
//! | 2 | the schema that the loader expects: 0 the one in the snapshot, 1 that of the key type |
//! | 3 to 7 | a number from 0 to 31: the kind of filter to load, and five times the way |
//!
//! The kinds are: 0 one table, 1 growable, 2 and 4 one whose entries expire, 3 a maplet. The ways are: 0 a
//! stream; through serde with a limit, 1 bytes and 2 numbers; through serde without a limit, 3 bytes and 4 numbers;
//! then again from 0 on.
#![no_main]

mod counting;
mod kinds;
mod mutate;
mod repair;

use concurrent_cuckoo_filter::SnapshotInfo;
use counting::peak_of;
use kinds::{Expiring, Growable, Kind, Maplet, OneTable, Way, kind_of};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use mutate::mutate;
use repair::{label, prepare, repair, stated_schema};

const LIMIT: usize = 1 << 20;

/// The longest attachment, which may be allocated on top of the limit.
const ATTACHMENT: usize = 1 << 16;

/// How much larger than its bytes a filter that is deserialized without a limit may be, as the documentation says.
const FACTOR: usize = 12;

/// How much memory the bytes may take besides, if they arrive one by one: they are in a queue that grows.
const COLLECTED: usize = 3;

/// The memory of an error: its message, which may name two schemas, and a box.
const ERROR: usize = 4 << 10;

fn check<F: Kind>(mode: u8, mut bytes: Vec<u8>) {
    repair(&mut bytes, mode % 4, F::NUMBER);
    let (way, limit) = match (mode >> 3) / 5 % 5 {
        0 => (Way::Stream, Some(LIMIT)),
        1 => (Way::Bytes, Some(LIMIT)),
        2 => (Way::Numbers, Some(LIMIT)),
        3 => (Way::Bytes, None),
        _ => (Way::Numbers, None),
    };
    // A loader that expects the schema in the snapshot takes any UTF-8. The other one takes only the schema of the
    // key type.
    let schema = if mode & 4 == 0 { stated_schema(&bytes) } else { "u64".to_owned() };

    let verified = SnapshotInfo::verify(&bytes[..]);
    let encoded = way.encode(&bytes);
    let (loaded, peak) = peak_of(|| way.load::<F>(&encoded, &schema, limit));
    let most = limit.unwrap_or((FACTOR + COLLECTED) * bytes.len());
    assert!(peak <= most + ATTACHMENT + ERROR, "{peak} bytes");
    let (filter, left) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => return assert!(!message.is_empty()),
    };
    assert!(verified.is_ok(), "what can be loaded was not verified: {verified:?}");
    let snapshot = &bytes[..bytes.len() - left];
    let (position, attachment) = label(snapshot);
    assert!(attachment.len() <= ATTACHMENT);
    let held = filter.memory_usage();
    assert!(held <= limit.unwrap_or(FACTOR * bytes.len()), "{held} bytes");
    let collected = if (way, limit) == (Way::Numbers, None) { COLLECTED * bytes.len() } else { 0 };
    // The caller holds the schema that it has named, besides the filter.
    assert!(peak <= held + attachment.len() + collected + schema.len(), "{peak} bytes");

    let mut saved = filter.snapshot(position, attachment);
    assert!(saved == snapshot, "the loaded filter is saved as other bytes");

    // Changes any one bit, which the fuzzer chooses.
    let bit = bytes.iter().fold(usize::from(mode), |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let bit = bit % (8 * saved.len());
    saved[bit / 8] ^= 1 << (bit % 8);
    let again = way.load::<F>(&way.encode(&saved), &schema, limit);
    assert!(again.is_err(), "bit {bit} makes no difference");

    filter.use_it();
    assert!(filter.memory_usage() <= limit.unwrap_or(usize::MAX));
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

fuzz_target!(init: prepare(), |input: &[u8]| {
    let Some((&mode, bytes)) = input.split_first() else { return };
    match kind_of(mode) {
        Growable::NUMBER => check::<Growable>(mode, bytes.to_vec()),
        Maplet::NUMBER => check::<Maplet>(mode, bytes.to_vec()),
        Expiring::NUMBER => check::<Expiring>(mode, bytes.to_vec()),
        _ => check::<OneTable>(mode, bytes.to_vec()),
    }
});
