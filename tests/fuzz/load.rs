//! Loads any bytes as a snapshot of a filter of each kind, maplets included, in each way. Nothing panics, nothing allocates more
//! than the limit, and bytes that are accepted are a snapshot to the last bit.
//!
//! The first byte of an input is its mode, and the rest is the snapshot:
//!
//! | bits of the mode | what |
//! |---|---|
//! | 0, 1 | how much of the snapshot is made right before it is loaded (`repair.rs`) |
//! | 2 | the schema that the loader expects: 0 the one that is stated, 1 that of the key type |
//! | 3 to 7 | a number from 0 to 31: the kind of filter to load, and five times the way |
//!
//! The kinds are 0 one table, 1 growable, 2 rotating, 3 a maplet, 4 one whose entries expire. The ways are 0 a stream; through serde,
//! 1 bytes and 2 numbers, with a limit; 3 bytes and 4 numbers, without; then as from 0 on.
#![no_main]

mod counting;
mod kinds;
mod repair;

use counting::peak_of;
use kinds::{Expiring, Growable, Kind, Maplet, OneTable, Rotating, Way};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use repair::{label, prepare, repair, stated_schema};

const LIMIT: usize = 1 << 20;

/// The longest attachment, which may be allocated on top of the limit.
const ATTACHMENT: usize = 1 << 16;

/// By how much a filter that is deserialized without a limit may be larger than its bytes, as the documentation says.
const FACTOR: usize = 12;

/// By how much the bytes may be there a second time, where they come one by one: in a queue that grows.
const COLLECTED: usize = 3;

/// What an error takes: its message, which may name two schemas, and a box.
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
    // A loader that expects what is stated takes any schema in UTF-8; the other one only that of the key type.
    let schema = if mode & 4 == 0 { stated_schema(&bytes) } else { "u64".to_owned() };

    let encoded = way.encode(&bytes);
    let (loaded, peak) = peak_of(|| way.load::<F>(&encoded, &schema, limit));
    let most = limit.unwrap_or((FACTOR + COLLECTED) * bytes.len());
    assert!(peak <= most + ATTACHMENT + ERROR, "{peak} bytes");
    let (filter, left) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => return assert!(!message.is_empty()),
    };
    let snapshot = &bytes[..bytes.len() - left];
    let (position, attachment) = label(snapshot);
    assert!(attachment.len() <= ATTACHMENT);
    let held = filter.memory_usage();
    assert!(held <= limit.unwrap_or(FACTOR * bytes.len()), "{held} bytes");
    let collected = if (way, limit) == (Way::Numbers, None) { COLLECTED * bytes.len() } else { 0 };
    // The schema that the caller has named is the caller's, and held beside that.
    assert!(peak <= held + attachment.len() + collected + schema.len(), "{peak} bytes");

    let mut saved = filter.snapshot(position, attachment);
    assert!(saved == snapshot, "what was loaded is saved otherwise");

    // Any one bit, for the fuzzer to choose.
    let bit = bytes.iter().fold(usize::from(mode), |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let bit = bit % (8 * saved.len());
    saved[bit / 8] ^= 1 << (bit % 8);
    let again = way.load::<F>(&way.encode(&saved), &schema, limit);
    assert!(again.is_err(), "bit {bit} makes no difference");

    filter.use_it();
    assert!(filter.memory_usage() <= limit.unwrap_or(usize::MAX));
}

/// The number of the kind that the mode chooses.
fn kind_of(mode: u8) -> u8 {
    match (mode >> 3) % 5 {
        1 => Growable::NUMBER,
        2 => Rotating::NUMBER,
        3 => Maplet::NUMBER,
        4 => Expiring::NUMBER,
        _ => OneTable::NUMBER,
    }
}

// Now and then the repair stays, and from then on only seals are made right: so that the fuzzer looks at what differs by one
// number from a small snapshot of which all is right.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if let Some((mode, bytes)) = data[..size].split_first_mut()
        && seed.is_multiple_of(4)
    {
        repair(bytes, 3, kind_of(*mode));
        *mode = *mode & !3 | 1;
    }
    size
});

fuzz_target!(init: prepare(), |input: &[u8]| {
    let Some((&mode, bytes)) = input.split_first() else { return };
    match kind_of(mode) {
        Growable::NUMBER => check::<Growable>(mode, bytes.to_vec()),
        Rotating::NUMBER => check::<Rotating>(mode, bytes.to_vec()),
        Maplet::NUMBER => check::<Maplet>(mode, bytes.to_vec()),
        Expiring::NUMBER => check::<Expiring>(mode, bytes.to_vec()),
        _ => check::<OneTable>(mode, bytes.to_vec()),
    }
});
