//! Snapshots of filters of several tables. The target `snapshots` tests those of one table, and what all have in
//! common.
//!
//! `cargo test --all-features --test snapshots_of_several`
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, ExpiringCuckooFilter, FilterKind, GrowableCuckooFilter, LoadError,
    StableHashBuilder,
};

type Growable = GrowableCuckooFilter<u64, StableHashBuilder>;

fn state() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"a key for tests.")
}

fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = GrowableCuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
    builder.hasher(state()).build().unwrap()
}

/// A filter of three small tables.
fn small_growable() -> Growable {
    let filter = growable(10, 0.03);
    (0..).take_while(|_| filter.tables() < 3).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn saved_growable(filter: &Growable) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

/// Where the header of a filter ends, and where the header of its first section begins, with the seal before it. A
/// seal is a checksum.
const HEADER: usize = 36;
const HEAD: usize = HEADER + 4 + 4;
const SECTIONS: usize = HEAD + 18 + 4;

/// The places of the seals in a snapshot: after the header, after the fields of its kind, after each section's
/// header, and at the end.
fn seals(bytes: &[u8]) -> Vec<usize> {
    let mut seals = vec![HEADER, HEADER + 4, SECTIONS - 4];
    let mut section = SECTIONS;
    while section + 4 < bytes.len() {
        seals.push(section + 11);
        let buckets = u64::from_le_bytes(bytes[section + 3..section + 11].try_into().unwrap());
        section += 15 + 8 * buckets as usize + 8;
    }
    seals.push(bytes.len() - 4);
    seals
}

/// The snapshot with its seals corrected.
fn resealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut sum = crc32fast::Hasher::new();
    let mut begin = 0;
    for seal in seals(&bytes) {
        sum.update(&bytes[begin..seal]);
        bytes[seal..seal + 4].copy_from_slice(&sum.clone().finalize().to_le_bytes());
        begin = seal + 4;
    }
    bytes
}

/// A snapshot is refused if any part of it is changed or cut off.
fn refuses_damage<F>(bytes: &[u8], load: impl Fn(&[u8]) -> Result<F, LoadError>) {
    assert!(load(bytes).is_ok());
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(load(&changed).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        let refused = load(&bytes[..len]).err();
        assert!(
            matches!(refused, Some(LoadError::Truncated { available, .. }) if available == len as u64),
            "{len} bytes: {refused:?}"
        );
    }
    let mut followed = bytes.to_vec();
    followed.extend([7; 5]);
    assert!(load(&followed).is_ok(), "what follows is left");
}

#[test]
fn a_growable_filter_comes_back_as_it_was_and_goes_on_growing() {
    let too_low = GrowableCuckooFilter::<u64>::builder().capacity(100).false_positive_rate(1e-12).build();
    let Err(BuildError::RateTooLow { lowest, .. }) = too_low else { panic!("{too_low:?}") };
    for rate in [0.3, 0.001, 1e-6, lowest] {
        let filter = growable(100, rate);
        (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        (0..5_000).for_each(|key| assert!(filter.remove(&key)));
        let bytes = saved_growable(&filter);
        assert_eq!((bytes.len() - SECTIONS - 4 - 23 * filter.tables()) % 8, 0, "the documented length");
        assert_eq!(resealed(&bytes), bytes);
        let loaded = Growable::load(&bytes[..], state(), usize::MAX).unwrap();
        assert_eq!((loaded.len(), loaded.tables(), loaded.capacity()), (15_000, filter.tables(), filter.capacity()));
        assert_eq!(loaded.memory_usage(), filter.memory_usage());
        assert_eq!(loaded.max_false_positive_rate(), filter.max_false_positive_rate());
        assert!((0..40_000).all(|key| loaded.count(&key) == filter.count(&key)));
        assert_eq!(saved_growable(&loaded), bytes);

        (20_000..60_000).for_each(|key| loaded.insert(&key).unwrap());
        assert!(loaded.tables() > filter.tables());
        assert!(loaded.max_false_positive_rate() <= rate);
        (5_000..60_000).for_each(|key| assert!(loaded.remove(&key), "{key}"));
        assert!(loaded.is_empty());
    }
}

#[test]
fn what_is_damaged_is_refused() {
    let load = |bytes: &[u8]| Growable::load(bytes, state(), 1 << 20);
    refuses_damage(&saved_growable(&small_growable()), load);
}

#[test]
fn each_kind_is_told_from_the_others() {
    let growable = saved_growable(&small_growable());
    let refused = ConcurrentCuckooFilter::<u64, _>::load(&growable[..], state(), 1 << 20).err();
    assert!(
        matches!(refused, Some(LoadError::WrongKind { kind: 2, expected: FilterKind::Concurrent, .. })),
        "{refused:?}"
    );
    let other = StableHashBuilder::with_key(*b"another key here");
    assert!(matches!(Growable::load(&growable[..], other, 1 << 20), Err(LoadError::OtherHasher)));
    // A type that is gone, and one that was never there.
    for (kind, text) in [(3, "build an ExpiringCuckooFilter"), (9, "number 9")] {
        let mut changed = growable.clone();
        changed[10] = kind;
        let refused = ExpiringCuckooFilter::<u64, _>::load(&resealed(&changed)[..], state(), 1 << 20).unwrap_err();
        assert!(matches!(refused, LoadError::WrongKind { expected: FilterKind::Expiring, .. }), "{refused:?}");
        assert!(refused.to_string().contains(text), "{refused}");
    }
}

#[test]
fn each_forged_field_is_refused_for_its_reason() {
    let genuine = saved_growable(&small_growable());
    let forged = |place: usize, bytes: &[u8]| {
        let mut changed = genuine.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        Growable::load(&resealed(&changed)[..], state(), 1 << 30).err()
    };
    assert!(forged(HEAD, &[3]).is_none(), "as it was");
    assert!(matches!(forged(HEAD, &[0]), Some(LoadError::InvalidTables { tables: 0, least: 1, .. })));
    let Some(LoadError::InvalidTables { tables: 49, most, .. }) = forged(HEAD, &[49]) else { panic!("no error") };
    assert!(matches!(forged(HEAD, &[2]), Some(LoadError::UnexpectedTable { number: 1, .. })));
    // As many tables as there can be are more than there is memory for.
    assert!(matches!(forged(HEAD, &[most + 1]), Some(LoadError::InvalidTables { .. })));
    assert!(matches!(forged(HEAD, &[most]), Some(LoadError::MemoryLimit { .. })));
    for encoding in [2, 254] {
        assert!(matches!(forged(HEAD + 1, &[encoding]), Some(LoadError::UnknownEncoding { .. })));
    }
    for encoding in [0, 1] {
        assert!(matches!(forged(HEAD + 1, &[encoding]), Some(LoadError::UnexpectedTable { .. })));
    }
    for buckets in [0u64, 1, 7, 1 << 63, u64::MAX] {
        assert!(
            matches!(forged(HEAD + 2, &buckets.to_le_bytes()), Some(LoadError::InvalidBuckets { .. })),
            "{buckets}"
        );
    }
    let Some(LoadError::InvalidBuckets { largest, .. }) = forged(HEAD + 2, &[0; 8]) else { panic!("no error") };
    let error = forged(HEAD + 2, &largest.to_le_bytes());
    assert!(!matches!(error, None | Some(LoadError::InvalidBuckets { .. })), "{error:?}");
    for rate in [0.0, -1.0, 1e-9, 1.0, f64::INFINITY, f64::NAN] {
        assert!(matches!(forged(HEAD + 10, &f64::to_le_bytes(rate)), Some(LoadError::InvalidRate { .. })), "{rate}");
    }
    assert!(matches!(forged(HEAD + 10, &1e-5f64.to_le_bytes()), Some(LoadError::UnexpectedTable { .. })));
    assert!(matches!(forged(HEAD + 2, &4u64.to_le_bytes()), Some(LoadError::UnexpectedTable { .. })));
}

#[test]
fn the_memory_limit_is_exact() {
    let filter = small_growable();
    let (bytes, needed) = (saved_growable(&filter), filter.memory_usage());
    let loaded = Growable::load(&bytes[..], state(), needed).unwrap();
    assert_eq!(loaded.memory_usage(), needed);
    let refused = (0..10_000).map(|key| loaded.insert(&key)).find_map(Result::err);
    let refused = refused.expect("the limit is that of the filter from now on").to_string();
    assert!(refused.contains(&needed.to_string()), "{refused}");
    let refused = Growable::load(&bytes[..], state(), needed - 1).err();
    assert!(matches!(refused, Some(LoadError::MemoryLimit { needed: n, limit, .. }) if n == needed && limit == n - 1));
}

/// A slow writer.
struct Slow<'a>(&'a mut Vec<u8>);

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes);
        thread::sleep(Duration::from_millis(3));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rate is so high that keys are often mistaken for each other. So a removal often takes another key's copy in
/// a newer table, and that key is then in by a copy in an older table. The filter is so full that many inserts go
/// to older tables.
#[test]
fn no_key_of_a_growable_filter_slips_through_between_its_tables() {
    for round in 0..5 {
        let filter = growable(2_000, 0.5);
        let key = |kind: u64, number: u64| kind << 40 | round << 32 | number;
        // Keys that stay, among keys that come and go, in all tables, until the filter is full.
        let has_room = || filter.tables() < 5 || filter.len() < filter.capacity() - 200;
        let mut numbers = 0;
        while has_room() {
            filter.insert(&key(0, numbers)).unwrap();
            if numbers % 4 < 2 {
                filter.insert(&key(1 + numbers % 4, numbers)).unwrap();
            }
            numbers += 1;
        }
        let tables = filter.tables();
        let ended = AtomicBool::new(false);
        let mut bytes = Vec::new();
        thread::scope(|scope| {
            let (filter, ended) = (&filter, &ended);
            for kind in 1..3 {
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        let own: Vec<u64> = (0..numbers).filter(|number| number % 4 + 1 == kind).collect();
                        for own in own.chunks(2_000) {
                            own.iter().for_each(|&number| assert!(filter.remove(&key(kind, number))));
                            own.iter().for_each(|&number| filter.insert(&key(kind, number)).unwrap());
                        }
                    }
                });
            }
            filter.save(Slow(&mut bytes)).unwrap();
            // Saves once more while the filter grows. The snapshot must have all keys that were in when the save
            // began.
            let mut growing = Vec::new();
            scope.spawn(move || {
                (0..50_000).for_each(|number| filter.insert(&key(3, number)).unwrap());
            });
            filter.save(Slow(&mut growing)).unwrap();
            ended.store(true, Ordering::Relaxed);
            let loaded = Growable::load(&growing[..], state(), usize::MAX).unwrap();
            assert!((0..numbers).all(|number| loaded.contains(&key(0, number))), "a key was in throughout");
        });
        assert!(filter.tables() > tables, "it has grown meanwhile");
        let loaded = Growable::load(&bytes[..], state(), usize::MAX).unwrap();
        assert_eq!(loaded.tables(), tables, "nothing has led to growth before");
        let missed = (0..numbers).filter(|&number| !loaded.contains(&key(0, number))).count();
        assert_eq!(missed, 0, "round {round}: keys that were in throughout");
    }
}
