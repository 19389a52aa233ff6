//! What is saved is loaded, in every layout; the bytes themselves.

use std::io::{self, ErrorKind, Read};

use crate::filters::{Filter, build, builder, load, saved, small_filters, state};
use crate::support::{LAYOUTS, plausible};

#[test]
fn what_is_saved_is_loaded_in_every_layout() {
    for layout in LAYOUTS {
        for capacity in [0, 1, 20, 3000, 50_000] {
            let filter = build(layout, capacity);
            let keys = filter.capacity() as u64;
            (0..keys).for_each(|key| filter.insert(&key).unwrap());
            (0..keys / 3).for_each(|key| assert!(filter.remove(&key)));
            (keys / 2..keys / 2 + 10.min(keys / 4)).for_each(|key| filter.insert(&key).unwrap());
            let bytes = saved(&filter);
            assert_eq!(bytes.len(), 71 + 8 * filter.slots() / filter.slots_per_bucket());

            let loaded = load(&bytes).unwrap();
            assert_eq!(format!("{loaded:?}"), format!("{filter:?}"));
            assert_eq!(loaded.memory_usage(), filter.memory_usage());
            (0..2 * keys).for_each(|key| assert_eq!(loaded.count(&key), filter.count(&key), "{key} of {filter:?}"));
            assert_eq!(saved(&loaded), bytes, "{filter:?}");

            let absent = 100_000;
            let found = (0..absent).filter(|key| loaded.contains(&(key + 1_000_000_000))).count() as f64;
            let expected = absent as f64 * loaded.false_positive_rate();
            // In small tables few fingerprints decide.
            let usual = capacity < 50_000 || plausible(found, expected);
            assert!(usual, "{found} false positives for {expected} in {loaded:?}");

            (keys / 3..keys).for_each(|key| assert!(loaded.remove(&key)));
            (keys / 2..keys / 2 + 10.min(keys / 4)).for_each(|key| assert!(loaded.remove(&key)));
            assert!(loaded.is_empty());
            (0..keys).for_each(|key| loaded.insert(&key).unwrap());
        }
    }
}

/// The bytes themselves: what was saved once must be read for ever, or the version raised.
#[test]
fn a_snapshot_has_these_bytes() {
    let filter = builder().capacity(12).build().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    let hex: String = saved(&filter).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN.concat());
}

/// What a program of its own finds right too: the checksums, and the SipHash of the probe.
const GOLDEN: [&str; 28] = [
    "894343460d0a1a0a", // the magic
    "0300",             // version
    "01",               // kind
    "6a14525321e64671", // the hash of the probe
    "03",               // length of the schema
    "753634",           // the schema
    "00",               // no position
    "0000000000000000",
    "00000000",         // length of the attachment
    "3642e629",         // seal
    "3642e629",         // seal
    "01",               // semi-sorted
    "05",               // slots
    "0e",               // bits
    "0a00000000000000", // buckets
    "ecb5a7e0",         // seal
    "0000000000f91d14", // the buckets
    "00000040be4c1a3a",
    "0000000000000000",
    "0000000000610000",
    "00000080f82b8795",
    "0000000000000000",
    "0000008059c61c14",
    "00000000000a1800",
    "0000000038fe8502",
    "0000000000290400",
    "0c00000000000000", // taken slots
    "ed4c219a",         // seal
];

#[test]
fn what_follows_a_snapshot_is_left_unread() {
    let filters: Vec<_> = small_filters().collect();
    let mut stream = Vec::new();
    filters.iter().for_each(|filter| filter.save(&mut stream).unwrap());
    stream.extend(b"and so on");
    let mut rest = &stream[..];
    for filter in filters {
        let loaded = Filter::load(&mut rest, state(), 1 << 20).unwrap();
        assert_eq!(saved(&loaded), saved(&filter));
    }
    assert_eq!(rest, b"and so on");
}

/// Like a socket: it has a few bytes at a time, and now and then a signal comes in between.
struct InPieces<'a> {
    bytes: &'a [u8],
    calls: usize,
}

impl Read for InPieces<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = to.len().min(self.calls % 5 + 1);
        self.bytes.read(&mut to[..len])
    }
}

#[test]
fn a_reader_may_give_a_few_bytes_at_a_time_and_be_interrupted() {
    for filter in small_filters() {
        let bytes = saved(&filter);
        let loaded = Filter::load(InPieces { bytes: &bytes, calls: 0 }, state(), 1 << 20).unwrap();
        assert_eq!(saved(&loaded), bytes);
    }
}
