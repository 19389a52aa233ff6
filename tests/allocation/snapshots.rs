//! What saves and loads ask of the allocator.

use std::io;

use super::support::scattered;
use super::*;
use concurrent_cuckoo_filter::{
    Advance, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter, LoadError, RecentCuckooFilter, StableHashBuilder,
    Tick, View,
};

type Filter = ConcurrentCuckooFilter<u64, StableHashBuilder>;

fn state() -> StableHashBuilder {
    StableHashBuilder::with_key([5; 16])
}

fn filter((encoding, rate, ..): Layout, keys: u64) -> Filter {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(keys as usize).false_positive_rate(rate);
    let filter = builder.encoding(encoding).hasher(state()).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn saved(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
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

fn allocates_no_more_than_the_limit<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    // So many that one which grows has grown, and so few that it has touched all that it has asked for.
    for capacity in [0, 1, 100, 3000, 10_000] {
        let filter = new(capacity);
        (0..capacity as u64).for_each(|nth| assert_eq!(filter.insert(&(scattered(nth), number(nth))), Ok(true)));
        let (bytes, memory) = (filter.saved(), filter.stats().memory_usage);
        let load = |bytes: &[u8], limit| F::load_within(bytes, limit).map(|loaded| loaded.stats().memory_usage);
        let (loaded, requests) = watch(|| load(&bytes, memory));
        assert_eq!(loaded.unwrap(), memory, "{filter:?}");
        // The buckets of a large growable filter are not from the allocator.
        let is_all = !(F::NAME.starts_with("Growable") && has_ranges());
        let asked = requests.bytes + size_of::<F>();
        assert!(asked == memory || !is_all && asked < memory, "{asked} of {memory}: {filter:?}");
        // Except for the last request: the box around a table cannot be refused.
        for nth in 1..requests.count {
            let error = refuse(nth, || load(&bytes, memory)).expect_err("refused");
            let LoadError::OutOfMemory { bytes, .. } = error else { panic!("request {nth}: {error:?}") };
            assert!(F::NAME.starts_with("Growable") || bytes == requests.bytes - requests.last, "{error:?}");
            assert!(error.to_string().contains(&format!("{bytes} bytes")), "{error}");
        }
        let (refused, requests) = watch(|| load(&bytes, memory - 1));
        let error = refused.expect_err("one byte too many");
        let LoadError::MemoryLimit { needed, limit, .. } = error else { panic!("{error:?}") };
        assert_eq!((needed, limit), (memory, memory - 1));
        assert!([needed, limit].iter().all(|bytes| error.to_string().contains(&bytes.to_string())), "{error}");
        assert_eq!(requests.count, 0, "it is refused before anything is allocated");
        // A load that fails later asks for no more.
        let mut damaged = bytes;
        *damaged.last_mut().unwrap() ^= 1;
        let (loaded, requests) = watch(|| load(&damaged, memory));
        assert!(loaded.is_err() && requests.bytes < memory);
    }
}

#[test]
fn load_allocates_no_more_than_the_limit_and_says_so() {
    in_each_layout!(allocates_no_more_than_the_limit);
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

/// A filter that can grow needs a list of the chunks, which it begins by locking each of its gates.
#[test]
fn a_save_of_a_growable_filter_makes_no_copy() {
    let filter = GrowableCuckooFilter::<u64, _>::builder_with_hasher(state()).build().unwrap();
    (0..100_000).for_each(|key| filter.insert(&key).unwrap());
    let (written, requests) = watch(|| filter.save(io::sink()));
    written.unwrap();
    assert!(requests.bytes < filter.stats().memory_usage / 8, "{requests:?} for {filter:?}");
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

/// The copy of the schema's name too.
#[test]
fn memory_refused_to_an_owned_save_is_an_error() {
    let named =
        ConcurrentCuckooFilter::<u64>::builder().capacity(100).schema("numbers").hasher(state()).build().unwrap();
    let growable = Arc::new(GrowableCuckooFilter::<u64, _>::with_capacity_and_hasher(1000, state()));
    let [plain, named] = [filter(LAYOUTS[5], 100), named].map(Arc::new);
    let maplet = Arc::new(CuckooMaplet::<u64>::builder().capacity(100).value_bits(4).build().unwrap());
    let expiring = Arc::new(ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime_in_ticks(3).build().unwrap());
    let recent = Arc::new(RecentCuckooFilter::<u64>::builder().last(100).build().unwrap());
    let limiter = CuckooRateLimiter::<u64>::builder().allow(1, Duration::from_secs(1)).capacity(100);
    let limiter = Arc::new(limiter.build().unwrap());
    let begin: [(&str, &dyn Fn() -> bool); 7] = [
        ("plain", &|| plain.begin_save_owned().is_ok()),
        ("named", &|| named.begin_save_owned().is_ok()),
        ("growable", &|| growable.begin_save_owned().is_ok()),
        ("maplet", &|| maplet.begin_save_owned().is_ok()),
        ("expiring", &|| expiring.begin_save_owned().is_ok()),
        ("recent", &|| recent.begin_save_owned().is_ok()),
        ("limiter", &|| limiter.begin_save_owned().is_ok()),
    ];
    for (name, begin) in begin {
        let (begun, requests) = watch(begin);
        assert!(begun && requests.count >= 2, "{name}: {requests:?}");
        let (_, requests) = watch(begin);
        for nth in 1..=requests.count {
            assert!(!refuse(nth, begin), "{name}, request {nth}");
        }
        assert!(begin(), "{name}: nothing is left behind");
    }
}

/// A sweep keeps words for a save. If the memory for them is refused, the save fails, and the sweep goes on.
#[test]
fn memory_refused_to_a_sweep_fails_only_the_save() {
    let filter = ExpiringCuckooFilter::<u64>::builder().capacity(100_000).lifetime_in_ticks(15).build().unwrap();
    filter.advance_to(Tick::new(7));
    (0..100_000).for_each(|key| _ = filter.insert_until(&key, Tick::new(8 + key % 2)).unwrap());
    let act = || assert_eq!(refuse(1, || filter.advance_to(Tick::new(30))), Advance::Forward { ticks: 23 });
    let error = filter.save(Meanwhile { writes: 0, act }).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("a faster writer"), "{error}");
    assert_eq!((filter.len(), filter.stats().expiry.unwrap().expired), (0, 100_000));
    filter.save(io::sink()).unwrap();
}

/// Serializing makes a copy of the filter, for which there may be no memory.
#[cfg(feature = "serde")]
#[test]
fn memory_that_is_refused_to_a_serialization_is_an_error() {
    let filter = filter(LAYOUTS[5], 3000);
    let serialize = || serde_json::to_writer(io::sink(), &filter);
    let (serialized, requests) = watch(serialize);
    serialized.unwrap();
    for nth in 1..=requests.count {
        let error = refuse(nth, serialize).expect_err("refused").to_string();
        assert!(error.contains("memory"), "request {nth}: {error}");
    }
}
