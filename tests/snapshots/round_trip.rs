//! A saved filter can be loaded, in every layout. Also the exact bytes of snapshots.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

use concurrent_cuckoo_filter::{FromSnapshot, Loader, Tick};

use crate::filters::{Filter, expiring_builder, load, maplet_builder, saved, small};
use crate::kinds::{Hasher, Table, in_each_layout};
use crate::support::{Raw, scattered};
use crate::{kinds, support};

fn comes_back<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    for capacity in [0, 20, 3000, 30_000] {
        let filter = new(capacity);
        let keys = filter.capacity().max(capacity) as u64;
        let entry = |nth: u64| (scattered(nth), number(nth));
        (0..keys).for_each(|nth| assert_eq!(filter.insert(&entry(nth)), Ok(true)));
        (0..keys / 3).for_each(|nth| assert!(filter.remove(&entry(nth))));
        // Keys with a second entry.
        let more = || (keys / 2..keys / 2 + 10.min(keys / 8)).map(|nth| (scattered(nth), number(nth + 1)));
        more().for_each(|entry| assert_eq!(filter.insert(&entry), Ok(true)));
        let bytes = filter.saved();

        let loaded = F::loaded(&bytes);
        assert_eq!(format!("{loaded:?}"), format!("{filter:?}"));
        assert_eq!((loaded.plan(), loaded.stats().memory_usage), (filter.plan(), filter.stats().memory_usage));
        assert_eq!((loaded.len(), loaded.digest()), (filter.len(), filter.digest()));
        assert_eq!(filter.begin_save().digest().unwrap(), filter.digest());
        let all: Vec<Raw> = (0..2 * keys).map(scattered).collect();
        assert_eq!(loaded.contains_all(&all), filter.contains_all(&all), "{filter:?}");
        assert!(loaded.saved() == bytes, "{filter:?}");

        more().chain((keys / 3..keys).map(entry)).for_each(|entry| assert!(loaded.remove(&entry), "{filter:?}"));
        assert_eq!(loaded.len(), 0);
        (0..keys).for_each(|nth| assert_eq!(loaded.insert(&entry(nth)), Ok(true)));
    }
}

#[test]
fn what_is_saved_is_loaded_in_every_layout() {
    in_each_layout!(comes_back);
}

#[track_caller]
fn has_these_bytes(snapshot: &[u8], golden: &[&str]) {
    let hex: String = snapshot.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden.concat());
}

/// The exact bytes. A snapshot that was saved once must stay readable forever, or the version must be raised.
#[test]
fn a_snapshot_has_these_bytes() {
    let of_hex = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
    let golden: Vec<u8> = GOLDEN.concat().as_bytes().chunks(2).map(of_hex).collect();
    let loaded = load::<Filter>(&golden).unwrap();
    assert!((0..12).all(|key| loaded.contains(&key)) && saved(&loaded) == golden);
    let filter = loaded.empty_like().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    has_these_bytes(&saved(&filter), &GOLDEN);
}

/// Another program confirmed the checksums, and the SipHash of the probe.
const GOLDEN: [&str; 28] = [
    "894343460d0a1a0a", // the magic
    "0400",             // version
    "01",               // kind
    "6a14525321e64671", // the hash of the probe
    "03",               // length of the schema
    "753634",           // the schema
    "00",               // no position
    "0000000000000000",
    "00000000",         // length of the attachment
    "65b1ef2d",         // checksum
    "65b1ef2d",         // checksum
    "01",               // semi-sorted
    "05",               // slots
    "0e",               // bits
    "0a00000000000000", // buckets
    "f28169d2",         // checksum
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
    "2d652801",         // checksum
];

/// The same for a maplet.
#[test]
fn a_snapshot_of_a_maplet_has_these_bytes() {
    let maplet = maplet_builder().capacity(6).value_bits(4).build().unwrap();
    (0..6).for_each(|key| maplet.insert(&key, 10 + key as u16).unwrap());
    has_these_bytes(&saved(&maplet), &GOLDEN_MAPLET);
}

/// Another program confirmed the checksums, and found the values 10 to 15 in the lanes.
const GOLDEN_MAPLET: [&str; 15] = [
    "894343460d0a1a0a040004",                             // the magic, version, kind
    "6a14525321e646710375363400000000000000000000000000", // the rest of the header, as above
    "2c8166e0",                                           // checksum
    "2c8166e0",                                           // checksum
    "04",                                                 // bits of a value
    "f62157e7",                                           // checksum
    "01",                                                 // semi-sorted
    "04",                                                 // slots
    "0d",                                                 // bits of a fingerprint without them
    "0200000000000000",                                   // buckets
    "7aeb474e",                                           // checksum
    "00208c326905bf57",                                   // the buckets
    "00209ffb5f63ace2",
    "0600000000000000", // taken slots
    "1ff859e5",         // checksum
];

/// The same for a filter whose entries expire.
#[test]
fn a_snapshot_of_a_filter_whose_entries_expire_has_these_bytes() {
    let (hour, tick) = (Duration::from_secs(3600), Duration::from_millis(300_500));
    let filter = expiring_builder().capacity(6).lifetime(hour).resolution(tick).build().unwrap();
    filter.advance_to(Tick::new(10));
    (0..6).for_each(|key| _ = filter.insert_until(&key, Tick::new(11 + key)).unwrap());
    // A new clock. The place of its tick is still that of the tenth.
    filter.restart_clock(Tick::new(0x0123_4567_89ab_cdef));
    has_these_bytes(&saved(&filter), &GOLDEN_EXPIRING);
}

/// Another program confirmed the checksums, and found the places 11 to 15 and 0 in the lanes.
const GOLDEN_EXPIRING: [&str; 22] = [
    "894343460d0a1a0a040005",                             // the magic, version, kind
    "6a14525321e646710375363400000000000000000000000000", // the rest of the header, as above
    "bb277b07",                                           // checksum
    "bb277b07",                                           // checksum
    "04",                                                 // bits of an end
    "0d000000",                                           // the longest lifetime
    "2c01000000000000",                                   // seconds of a tick
    "0065cd1d",                                           // nanoseconds
    "01",                                                 // a tick is known
    "efcdab8967452301",                                   // now
    "0a00",                                               // its place
    "00000000",                                           // lag
    "0efd656c",                                           // checksum
    "01",                                                 // semi-sorted
    "04",                                                 // slots
    "0d",                                                 // bits of a fingerprint without those of an end
    "0200000000000000",                                   // buckets
    "4c73fc36",                                           // checksum
    "0020cc327105b057",                                   // the buckets
    "0020dffb6763ade2",
    "0600000000000000", // taken slots
    "b19b75c0",         // checksum
];

/// A reader like a socket: it returns a few bytes at a time, and is sometimes interrupted by a signal.
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

fn is_read_in_pieces<F: Table + FromSnapshot<Hasher>>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let bytes = small(new, number).saved();
    let stream = [&bytes[..], &bytes, b"and so on"].concat();
    let mut reader = InPieces { bytes: &stream, calls: 0 };
    for _ in 0..2 {
        let loaded = Loader::<F, _>::new(Hasher::default(), 1 << 20).load(&mut reader).unwrap();
        assert!(loaded.filter.saved() == bytes, "{:?}", loaded.filter);
    }
    assert_eq!(reader.bytes, b"and so on", "what follows is left unread");
}

#[test]
fn a_reader_may_give_a_few_bytes_at_a_time_and_be_interrupted() {
    in_each_layout!(is_read_in_pieces);
}
