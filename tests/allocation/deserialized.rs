//! What deserializing without a limit asks of the allocator.

use concurrent_cuckoo_filter::{FromSnapshot, Loader};
use serde::Deserialize;
use serde::de::DeserializeSeed;

use super::*;
use crate::forged::Forged;
use crate::kinds::Hasher;

/// How much larger a filter may be than its bytes, as the documentation of `Deserialize` says.
const FACTOR: usize = 12;

/// The same for this many bytes or more.
const FACTOR_OF_LARGE: usize = 2;
const LARGE: usize = 128 << 10;

/// How many times as much memory as the bytes is in use besides, if they arrive one by one.
const COLLECTED: usize = 3;

/// Deserializes the bytes, at once and one by one. Returns the filter, and the most memory in use.
fn peaks<F: for<'de> Deserialize<'de>>(bytes: &[u8]) -> [(Result<F, String>, usize); 2] {
    let (postcard, json) = (postcard::to_stdvec(bytes).unwrap(), serde_json::to_string(bytes).unwrap());
    [
        peak_of(|| postcard::from_bytes(&postcard).map_err(|error| error.to_string())),
        peak_of(|| serde_json::from_str(&json).map_err(|error| error.to_string())),
    ]
}

fn takes_few_times_its_bytes<F: Table + FromSnapshot<Hasher> + for<'de> Deserialize<'de>>(
    new: impl Fn(usize) -> F,
    _: impl Fn(u64) -> u64,
) {
    for capacity in [1, 2, 10, 30, 100, 1000, 10_000, 100_000] {
        let bytes = new(capacity).saved();
        let [(at_once, peak_at_once), (one_by_one, peak_one_by_one)] = peaks::<F>(&bytes);
        let held = at_once.unwrap().stats().memory_usage;
        assert_eq!(one_by_one.unwrap().stats().memory_usage, held);
        let factor = if bytes.len() < LARGE { FACTOR } else { FACTOR_OF_LARGE };
        assert!(held <= factor * bytes.len(), "{} bytes have become {held}", bytes.len());
        assert!(peak_at_once <= held + bytes.len(), "{peak_at_once} for {held}");
        assert!(peak_one_by_one <= held + COLLECTED * bytes.len(), "{peak_one_by_one} for {held}");
        // With a limit, no memory is in use besides the filter.
        let json = serde_json::to_string(&bytes).unwrap();
        let loader = Loader::<F, _>::new(Hasher::default(), held);
        let (loaded, peak) = peak_of(|| loader.deserialize(&mut serde_json::Deserializer::from_str(&json)));
        assert!(loaded.is_ok() && peak <= held, "{peak} for {held}");
    }
}

#[test]
#[cfg_attr(target_arch = "s390x", ignore = "the figures are for cache lines of at most 128 bytes")]
fn a_filter_takes_up_to_12_times_its_bytes_and_large_ones_2() {
    in_each_layout!(takes_few_times_its_bytes);
}

/// Each header is correct, up to the header of a table of 1 GiB, of which only ten bytes are there.
#[test]
fn a_table_that_is_stated_and_not_there_is_not_allocated() {
    let genuine = Forged::of(&kinds::growable(0, 0.001).saved());
    let buckets = 1u64 << 27;
    // It is at its largest size.
    let head =
        [&[genuine.head[0], 14, 27][..], &buckets.to_le_bytes(), &buckets.to_le_bytes(), &genuine.head[19..]].concat();
    let forged = Forged { head, layout: [1, 5, 14], buckets, words: Vec::new(), ..genuine };
    let bytes = forged.bytes();
    let [(_, at_once), (refused, one_by_one)] = peaks::<kinds::Growable>(&bytes[..bytes.len() - 2]);
    // The other format has no room for a message.
    let error = refused.unwrap_err();
    assert!(at_once < 2_000 && one_by_one < 2_000, "{at_once} and {one_by_one} bytes: {error}");
    assert!(error.contains("cut short"), "{error}");
}
