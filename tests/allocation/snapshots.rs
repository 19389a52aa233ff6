//! What saves and loads ask of the allocator.

use std::io;

use super::support::MapletLayout;
use super::*;
use concurrent_cuckoo_filter::{AbsorbError, LoadError, StableHashBuilder, View};

type Filter = ConcurrentCuckooFilter<u64, StableHashBuilder>;
type Maplet = CuckooMaplet<u64, StableHashBuilder>;

fn state() -> StableHashBuilder {
    StableHashBuilder::with_key([5; 16])
}

fn filter((encoding, rate, ..): Layout, keys: u64) -> Filter {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(keys as usize).false_positive_rate(rate);
    let filter = builder.encoding(encoding).hasher(state()).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn maplet((value_bits, rate, ..): MapletLayout, keys: u64) -> Maplet {
    let builder = Maplet::builder_with_hasher(state()).capacity(keys as usize).value_bits(value_bits);
    let maplet = builder.false_positive_rate(rate).build().unwrap();
    (0..keys).for_each(|key| maplet.insert(&key, (key % 2) as u16).unwrap());
    maplet
}

fn saved(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

/// A header that claims this many buckets: 62 bytes, of which 59 are the headers, with all checksums correct.
fn claiming(buckets: u64) -> Vec<u8> {
    let mut bytes = saved(&filter(LAYOUTS[5], 10));
    bytes.truncate(62);
    bytes[47..55].copy_from_slice(&buckets.to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..36]);
    sum.update(&bytes[44..55]);
    bytes[55..59].copy_from_slice(&sum.finalize().to_le_bytes());
    bytes
}

#[test]
fn a_header_that_claims_34_gb_is_refused_without_allocation() {
    let bytes = claiming(0xffff_fffe);
    let limit = 100 << 20;
    let (loaded, requests) = watch(|| Filter::load(&bytes[..], state(), limit));
    assert_eq!(requests.count, 0);
    if cfg!(target_pointer_width = "64") {
        let Err(LoadError::MemoryLimit { needed, .. }) = loaded else { panic!("{loaded:?}") };
        assert!(needed as u64 > 34_000_000_000, "{needed}");
    } else {
        // No table can have this many, whatever the limit.
        assert!(matches!(loaded, Err(LoadError::InvalidBuckets { buckets: 0xffff_fffe, .. })), "{loaded:?}");
    }
    // Nor this many on any machine.
    let bytes = claiming(1 << 32);
    let (loaded, requests) = watch(|| Filter::load(&bytes[..], state(), usize::MAX));
    assert_eq!(requests.count, 0);
    assert!(matches!(loaded, Err(LoadError::InvalidBuckets { buckets: 0x1_0000_0000, .. })), "{loaded:?}");
}

#[test]
fn a_snapshot_is_verified_in_constant_memory() {
    for keys in [100, 300_000] {
        let bytes = saved(&filter(LAYOUTS[5], keys));
        let (info, peak) = peak_of(|| concurrent_cuckoo_filter::SnapshotInfo::verify(&bytes[..]));
        assert_eq!(info.unwrap().len, Some(keys));
        assert!(peak < 100, "{peak} bytes for {keys} keys: the schema");
    }
}

/// `empty_like` and `absorb`, of a filter and of a maplet.
macro_rules! assert_copies_survive_refusals {
    ($filter:expr) => {{
        let filter = $filter;
        let (empty, requests) = watch(|| filter.empty_like().unwrap());
        assert!(requests.bytes + size_of_val(&filter) >= filter.stats().memory_usage, "it has all that the filter has");
        // Except for the last request: the box around the table cannot be refused.
        for nth in 1..requests.count {
            let error = refuse(nth, || filter.empty_like().map(drop)).expect_err("refused");
            assert!(matches!(error, BuildError::OutOfMemory { .. }), "request {nth}: {error}");
        }
        // The list of running saves keeps its memory, in either filter.
        assert_eq!(empty.absorb(&filter), Ok(3000));
        assert_eq!(empty.digest().unwrap(), filter.digest().unwrap());
        let copy = filter.empty_like().unwrap();
        let before = in_use();
        let (added, requests) = watch(|| copy.absorb(&filter));
        assert_eq!(added, Ok(3000));
        assert_eq!(copy.unite(&filter), Ok(0));
        copy.clear();
        assert!(requests.count > 0);
        for nth in 1..=requests.count {
            let error = refuse(nth, || copy.absorb(&filter)).expect_err("refused");
            assert!(matches!(error, AbsorbError::OutOfMemory { absorbed: 0, .. }), "request {nth}: {error}");
            assert_eq!(refuse(nth, || copy.unite(&filter)), Err(error));
            assert!(copy.is_empty());
        }
        assert_eq!((in_use() - before, filter.len()), (0, 3000));
    }};
}

#[test]
fn a_view_takes_some_hundred_bytes_and_its_lookups_none() {
    for layout in LAYOUTS {
        let bytes = saved(&filter(layout, 10_000));
        let (view, requests) = watch(|| View::<Filter, _>::new(&bytes, state()).unwrap());
        assert!(requests.bytes <= 500, "{} bytes", requests.bytes);
        let (keys, mut found): (Vec<u64>, _) = ((0..1000).collect(), Vec::with_capacity(1000));
        let (_, requests) = watch(|| {
            assert!(keys.iter().all(|key| view.contains(key)));
            view.contains_batch(&keys, &mut found);
        });
        assert_eq!((requests.count, found.len()), (0, 1000));
    }
}

#[test]
fn a_copy_that_is_refused_memory_is_an_error_and_changes_nothing() {
    assert_copies_survive_refusals!(filter(LAYOUTS[5], 3000));
    assert_copies_survive_refusals!(maplet(MAPLET_LAYOUTS[2], 3000));
}

/// In JSON the length is not known beforehand, and there is no limit. Nothing is allocated before the bytes have
/// arrived.
#[cfg(feature = "serde")]
#[test]
fn a_header_that_claims_1_gb_allocates_nothing() {
    use serde::de::DeserializeSeed;

    // Nothing but the header, or a part of what it claims.
    for (buckets, there, most) in [(1 << 27, 0, 10_000), (1 << 20, 1 << 18, 1 << 21)] {
        let mut bytes = claiming(buckets);
        bytes.resize(bytes.len() + there, 0);
        let json = serde_json::to_string(&bytes).unwrap();
        let loader = concurrent_cuckoo_filter::Loader::<Filter, _>::new(state(), usize::MAX);
        let (loaded, requests) = watch(|| loader.deserialize(&mut serde_json::Deserializer::from_str(&json)));
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("cut short") && requests.bytes < most, "{error}, {} bytes", requests.bytes);
    }
}

#[test]
fn load_allocates_no_more_than_the_limit_and_says_so() {
    for keys in [0, 1, 100, 3000, 100_000] {
        for layout in LAYOUTS {
            let filter = filter(layout, keys);
            assert_allocates_no_more(&saved(&filter), filter.stats().memory_usage, size_of::<Filter>(), |bytes| {
                Ok(Filter::load(bytes, state(), filter.stats().memory_usage)?.stats().memory_usage)
            });
        }
        for layout in MAPLET_LAYOUTS {
            let maplet = maplet(layout, keys);
            let mut bytes = Vec::new();
            maplet.save(&mut bytes).unwrap();
            assert_allocates_no_more(&bytes, maplet.stats().memory_usage, size_of::<Maplet>(), |bytes| {
                Ok(Maplet::load(bytes, state(), maplet.stats().memory_usage)?.stats().memory_usage)
            });
        }
    }
}

/// Checks that loading these bytes with `load` takes exactly this much memory, and that `itself` bytes of that are
/// not allocated.
pub(super) fn assert_allocates_no_more(
    bytes: &[u8],
    memory: usize,
    itself: usize,
    load: impl Fn(&[u8]) -> Result<usize, LoadError>,
) {
    let (loaded, requests) = watch(|| load(bytes));
    assert_eq!((requests.bytes + itself, loaded.unwrap()), (memory, memory));
    // Except for the last request: the box around the table cannot be refused.
    for nth in 1..requests.count {
        let error = refuse(nth, || load(bytes)).expect_err("refused");
        let needed = requests.bytes - requests.last;
        assert!(matches!(error, LoadError::OutOfMemory { bytes, .. } if bytes == needed), "{error:?}");
        assert!(error.to_string().contains(&format!("{needed} bytes")), "{error}");
    }
    // A load that fails later asks for no more.
    let mut damaged = bytes.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let (loaded, requests) = watch(|| load(&damaged));
    assert!(loaded.is_err() && requests.bytes < memory);
}

/// Calls `act` once, in the first write of a bucket's word.
struct Meanwhile<F: FnMut()> {
    writes: usize,
    act: F,
}

impl<F: FnMut()> io::Write for Meanwhile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        // The header and the table's header are a write each.
        if self.writes == 3 {
            (self.act)();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_save_makes_no_copy_and_a_removal_meanwhile_keeps_one_word() {
    let filter = filter(LAYOUTS[5], 100_000);
    let (saved, requests) = watch(|| filter.save(io::sink()));
    saved.unwrap();
    assert!(requests.count == 2 && requests.bytes * 100 < filter.stats().memory_usage, "{} bytes", requests.bytes);

    let mut during = None;
    let act = || during = Some(watch(|| (0..100).for_each(|key| assert!(filter.remove(&key)))).1);
    filter.save(Meanwhile { writes: 0, act }).unwrap();
    let during = during.unwrap();
    assert!(during.count <= 100 && during.bytes <= 64 * 100, "{} requests, {} bytes", during.count, during.bytes);
    assert!(during.bytes > 0);

    // So does an insert, for words that no removal has changed before.
    let mut during = None;
    let act = || during = Some(watch(|| (0..100).for_each(|key| filter.insert(&key).unwrap())).1);
    filter.save(Meanwhile { writes: 0, act }).unwrap();
    let during = during.unwrap();
    assert!(during.bytes > 0 && during.bytes <= 3 * 64 * 100, "{} requests, {} bytes", during.count, during.bytes);
}

#[test]
fn after_a_save_that_failed_halfway_changes_keep_nothing() {
    let filter = filter(LAYOUTS[5], 100_000);
    let mut short = [0; 1000];
    assert_eq!(filter.save(&mut short[..]).unwrap_err().kind(), io::ErrorKind::WriteZero);
    let (_, requests) = watch(|| (0..100).for_each(|key| assert!(filter.remove(&key))));
    assert_eq!(requests.count, 0);
}

#[test]
fn memory_refused_during_a_save_fails_only_the_save() {
    let filter = filter(LAYOUTS[5], 100_000);
    for nth in 1..=2 {
        let error = refuse(nth, || filter.save(io::sink())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory, "request {nth}");
    }
    // A reader has a buffer of its own, and no other memory.
    let save = filter.begin_save().unwrap();
    let error = refuse(1, || save.into_reader().map(drop)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    let save = filter.begin_save().unwrap();
    let (read, requests) = watch(|| io::copy(&mut save.into_reader().unwrap(), &mut io::sink()));
    assert!(read.unwrap() > 100_000 && requests.count == 1, "{} requests", requests.count);
    assert_eq!(requests.bytes, 8_192);
    let act = || assert!(refuse(1, || (0..100).all(|key| filter.remove(&key))));
    let error = filter.save(Meanwhile { writes: 0, act }).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("a faster writer"), "{error}");
    assert_eq!(Filter::load(&saved(&filter)[..], state(), usize::MAX).unwrap().len(), 99_900);
}

/// Serializing makes a copy of the filter, for which there may be no memory.
#[cfg(feature = "serde")]
#[test]
fn memory_that_is_refused_to_a_serialization_is_an_error() {
    let filter = filter(LAYOUTS[5], 3000);
    let serialize = || serde_json::to_writer(io::sink(), &filter);
    // The first call makes a list of saves, which the filter keeps.
    serialize().unwrap();
    let (serialized, requests) = watch(serialize);
    serialized.unwrap();
    for nth in 1..=requests.count {
        let error = refuse(nth, serialize).expect_err("refused").to_string();
        assert!(error.contains("memory"), "request {nth}: {error}");
    }
}
