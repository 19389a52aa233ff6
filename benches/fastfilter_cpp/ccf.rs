//! What `fastfilter_cpp`'s benchmark calls of this crate. It promises no stable interface: `ccf.h` is its only caller.

// C functions, and a pointer that C++ owns.
#![allow(unsafe_code)]

use std::slice;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Hashed};

/// Its keys come as hashes, by the benchmark's own hash function.
type Filter = ConcurrentCuckooFilter<u64>;

/// A filter for so many keys, of this false-positive rate.
///
/// # Panics
///
/// If there is no such filter.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_new(keys: usize, rate: f64) -> Box<Filter> {
    Box::new(Filter::builder().capacity(keys).false_positive_rate(rate).build().expect("a filter of this rate"))
}

/// Frees the filter.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_free(filter: Box<Filter>) {
    drop(filter);
}

/// Whether the filter took the key.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_insert(filter: &Filter, hash: u64) -> bool {
    filter.by_hash().insert(Hashed(hash)).is_ok()
}

/// Whether the filter took all keys.
///
/// # Safety
///
/// There are so many hashes at `hashes`, and nobody changes them meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ccf_insert_batch(filter: &Filter, hashes: *const u64, count: usize) -> bool {
    // SAFETY: the caller has promised it.
    let hashes = unsafe { slice::from_raw_parts(hashes, count) };
    filter.by_hash().insert_batch(hashes.iter().copied().map(Hashed)).is_ok()
}

/// Whether the key may be in the filter.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_contains(filter: &Filter, hash: u64) -> bool {
    filter.by_hash().contains(Hashed(hash))
}

/// Whether a copy of the key was there to remove.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_remove(filter: &Filter, hash: u64) -> bool {
    filter.by_hash().remove(Hashed(hash))
}

/// The bytes of the filter, with all that it has allocated.
#[unsafe(no_mangle)]
pub extern "C" fn ccf_bytes(filter: &Filter) -> usize {
    filter.stats().memory_usage
}
