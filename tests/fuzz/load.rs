//! Loads any bytes as a snapshot of one table. Nothing panics, nothing allocates more than the limit, and bytes that are
//! accepted are a snapshot to the last bit.
//!
//! The first byte of an input is its mode, and the rest is the snapshot. Two bits of the mode say how much of the snapshot is
//! made right before it is loaded, so that the fuzzer need not guess a checksum. A third bit says which schema the loader
//! expects. The offsets are those of the format in `src/snapshot/format.rs`.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, Loaded, Loader, StableState};
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

/// The bytes before the schema, up to the probe: the same in all snapshots with that key. Making them also allocates what a
/// process allocates only once: the decode tables of the semi-sorted layouts, and what finds the number of processors.
static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    for rate in [0.003, 0.001, 1e-4, 2e-6] {
        let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(100_000).false_positive_rate(rate);
        let filter = builder.encoding(Encoding::SemiSorted).hasher(state()).build().unwrap();
        bytes.clear();
        filter.save(&mut bytes).unwrap();
    }
    bytes.truncate(SCHEMA);
    bytes
});

/// Where the length of the schema is.
const SCHEMA: usize = 19;

const LIMIT: usize = 1 << 20;

/// The longest attachment, which may be allocated on top of the limit.
const ATTACHMENT: usize = 1 << 16;

/// The schema that the snapshot states, or as much of it as is there.
fn stated_schema(bytes: &[u8]) -> String {
    let (len, rest) = bytes.get(SCHEMA..).and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
    String::from_utf8_lossy(&rest[..rest.len().min(usize::from(*len))]).into_owned()
}

/// Makes right what `level` asks for: 1 the seals; 2 also the header; 3 also the number of buckets, by the length.
///
/// Schema and position stay as they are. From level 2 on, the flag of the position is 0 or 1, and the attachment is no longer
/// than there is room for.
fn repair(bytes: &mut [u8], level: u8) {
    let Some(&schema) = bytes.get(SCHEMA) else { return };
    let flag = SCHEMA + 1 + usize::from(schema);
    // What the attachment and the buckets share. The other 48 bytes are flag, position and length of the attachment; layout,
    // number of buckets and count; four seals.
    let Some(room) = bytes.len().checked_sub(flag + 48) else { return };
    if level == 0 {
        return;
    }

    let length = flag + 9..flag + 13;
    let mut attached = u32::from_le_bytes(bytes[length.clone()].try_into().unwrap()) as usize;
    if level >= 2 {
        bytes[..SCHEMA].copy_from_slice(&HEADER);
        bytes[flag] &= 1;
        attached %= room + 1;
        bytes[length.clone()].copy_from_slice(&(attached as u32).to_le_bytes());
    }
    let attachment = length.end + 4..length.end + 4 + attached.min(room);

    let layout = attachment.end + 4;
    let number = layout + 3..layout + 11;
    let fits = (room - attachment.len()) / 8;
    if level == 3 {
        let buckets = if fits < 2 { 1 } else { fits / 2 * 2 };
        bytes[number.clone()].copy_from_slice(&(buckets as u64).to_le_bytes());
    }
    let buckets = u64::from_le_bytes(bytes[number.clone()].try_into().unwrap()).min(fits as u64) as usize;
    let words = number.end + 4;

    let mut sum = crc32fast::Hasher::new();
    for part in [0..length.end, attachment, layout..number.end, words..words + 8 * buckets + 8] {
        let seal = part.end..part.end + 4;
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

    // A loader that expects what is stated takes any schema in UTF-8; the other one only that of the key type.
    let schema = if mode & 4 == 0 { stated_schema(&bytes) } else { "u64".to_owned() };
    let [loader, again] = [(); 2].map(|()| Loader::<Filter, _>::new(state(), LIMIT).schema(&*schema));

    let mut rest = &bytes[..];
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let loaded = loader.read(&mut rest);
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert!(peak <= LIMIT + ATTACHMENT, "{peak} bytes");
    let Loaded { filter, position, attachment, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(filter.memory_usage() <= LIMIT && attachment.len() <= ATTACHMENT);
    assert!(peak <= filter.memory_usage() + attachment.len(), "{peak} bytes");

    let snapshot = &bytes[..bytes.len() - rest.len()];
    let mut saved = Vec::with_capacity(snapshot.len());
    let save = filter.begin_save().unwrap().attachment(attachment);
    let save = if let Some(position) = position { save.position(position) } else { save };
    save.write_to(&mut saved).unwrap();
    assert!(saved == snapshot, "what was loaded is saved otherwise");

    // Any one bit, for the fuzzer to choose.
    let bit = bytes.iter().fold(usize::from(mode), |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let bit = bit % (8 * saved.len());
    saved[bit / 8] ^= 1 << (bit % 8);
    assert!(again.read(&saved[..]).is_err(), "bit {bit} makes no difference");

    use_it(&filter);
});
