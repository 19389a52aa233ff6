//! Whatever bytes are loaded: no panic, no allocation over the limit, and what is accepted is a snapshot to the last bit.
//!
//! The first byte of an input says how much of a snapshot's form is made right before it is loaded, so that the fuzzer need
//! not guess a checksum to get any further; the rest is the snapshot.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, StableState};
use libfuzzer_sys::fuzz_target;

type Filter = ConcurrentCuckooFilter<u64, StableState>;

/// The system's allocator, which adds up what is in use, by one thread.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The key of the tests, so that their snapshots are seeds.
fn state() -> StableState {
    StableState::with_key(*b"a key for tests.")
}

/// The header of all snapshots with that key. To make it also asks for what is asked for once in a process: the tables of
/// the semi-sorted layouts, and the number of processors.
static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    for rate in [0.003, 0.001, 1e-4, 2e-6] {
        let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(100_000).false_positive_rate(rate);
        let filter = builder.encoding(Encoding::SemiSorted).hasher(state()).build().unwrap();
        bytes.clear();
        filter.save(&mut bytes).unwrap();
    }
    bytes.truncate(19);
    bytes
});

const LIMIT: usize = 1 << 20;

/// Makes right what `level` asks for: 1 the seals, 2 also the header, 3 also the number of buckets, by the length.
fn repair(bytes: &mut [u8], level: u8) {
    if level == 0 || bytes.len() < 50 {
        return;
    }
    let fits = (bytes.len() - 50) / 8;
    if level >= 2 {
        bytes[..19].copy_from_slice(&HEADER);
    }
    if level == 3 {
        let buckets = if fits < 2 { 1 } else { fits / 2 * 2 };
        bytes[26..34].copy_from_slice(&(buckets as u64).to_le_bytes());
    }
    let buckets = u64::from_le_bytes(bytes[26..34].try_into().unwrap()).min(fits as u64) as usize;
    let end = 38 + 8 * buckets + 8;
    let mut sum = crc32fast::Hasher::new();
    for part in [0..19, 23..34, 38..end] {
        let seal = part.end..part.end + 4;
        if seal.end > bytes.len() {
            return;
        }
        sum.update(&bytes[part]);
        bytes[seal].copy_from_slice(&sum.clone().finalize().to_le_bytes());
    }
}

/// Does everything with the filter once or twice, and checks what can be checked.
fn use_it(filter: &Filter) {
    let len = filter.len();
    for hash in 0..20u64 {
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let count = filter.count_hash(hash);
        assert_eq!(filter.contains_hash(hash), count > 0);
        if filter.insert_hash(hash).is_ok() {
            assert_eq!(filter.count_hash(hash), count + 1);
            assert!(filter.remove_hash(hash));
        }
        assert_eq!(filter.count_hash(hash), count);
        if filter.insert_hash_if_absent(hash) == Ok(true) {
            assert!(filter.remove_hash(hash));
        }
    }
    assert_eq!(filter.len(), len);
    filter.clear();
    assert!(filter.is_empty());
}

fuzz_target!(|input: &[u8]| {
    LazyLock::force(&HEADER);
    let Some((&mode, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    repair(&mut bytes, mode % 4);

    let mut rest = &bytes[..];
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let loaded = Filter::load(&mut rest, state(), LIMIT);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert!(peak <= LIMIT, "{peak} bytes");
    let filter = match loaded {
        Ok(filter) => filter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(peak <= filter.memory_usage());

    let snapshot = &bytes[..bytes.len() - rest.len()];
    let mut saved = Vec::with_capacity(snapshot.len());
    filter.save(&mut saved).unwrap();
    assert!(saved == snapshot, "what was loaded is saved otherwise");

    // Any one bit, for the fuzzer to choose.
    let bit = bytes.iter().fold(usize::from(mode), |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let bit = bit % (8 * saved.len());
    saved[bit / 8] ^= 1 << (bit % 8);
    assert!(Filter::load(&saved[..], state(), LIMIT).is_err(), "bit {bit} makes no difference");

    use_it(&filter);
});
