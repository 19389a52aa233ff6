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
    BuildError, ConcurrentCuckooFilter, FilterKind, GrowableCuckooFilter, LoadError, StableHashBuilder,
};

type Growable = GrowableCuckooFilter<u64, StableHashBuilder>;

fn state() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"a key for tests.")
}

fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = GrowableCuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
    builder.hasher(state()).build().unwrap()
}

/// A filter that has grown twice, from 32 buckets.
fn small_growable() -> Growable {
    let filter = growable(10, 0.03);
    let first = filter.capacity();
    (0..).take_while(|_| filter.capacity() < 4 * first).for_each(|key| filter.insert(&key).unwrap());
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
const SECTION: usize = HEAD + 12 + 4;

/// The places of the seals in a snapshot: after the header, after the fields of its kind, after each section's
/// header, and at the end.
fn seals(bytes: &[u8]) -> Vec<usize> {
    let mut seals = vec![HEADER, HEADER + 4, SECTION - 4];
    let mut section = SECTION;
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
    resealed_at(seals(bytes), bytes)
}

/// The same for a snapshot whose bytes do not lead to the right places of its seals.
fn resealed_at(seals: Vec<usize>, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut sum = crc32fast::Hasher::new();
    let mut begin = 0;
    for seal in seals {
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
fn a_growable_filter_comes_back_as_it_was_at_any_size() {
    let too_low = GrowableCuckooFilter::<u64>::builder().capacity(100).false_positive_rate(1e-12).build();
    let Err(BuildError::RateTooLow { lowest, .. }) = too_low else { panic!("{too_low:?}") };
    for rate in [0.3, 0.002, 0.001, 1e-6, lowest] {
        let builder = GrowableCuckooFilter::<u64>::builder().capacity(100).max_capacity(100_000);
        let filter = builder.false_positive_rate(rate).hasher(state()).build().unwrap();
        (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        (5..20_000).for_each(|key| assert!(filter.remove(&key)));
        for keys in [20_000, 1_000, 5] {
            (filter.len() as u64..keys).for_each(|key| filter.insert(&key).unwrap());
            (keys..filter.len() as u64).for_each(|key| assert!(filter.remove(&key)));
            filter.shrink_to_fit();
            let bytes = saved_growable(&filter);
            assert_eq!((bytes.len() - SECTION - 4 - 23) % 8, 0, "the documented length");
            assert_eq!(resealed(&bytes), bytes);
            let loaded = Growable::load(&bytes[..], state(), usize::MAX).unwrap();
            let figures = |filter: &Growable| {
                (filter.len(), filter.capacity(), filter.max_capacity(), filter.memory_usage(), filter.tables())
            };
            assert_eq!(figures(&loaded), figures(&filter));
            assert_eq!(loaded.max_false_positive_rate(), filter.max_false_positive_rate());
            assert!((0..40_000).all(|key| loaded.count(&key) == filter.count(&key)));
            assert_eq!(saved_growable(&loaded), bytes);

            // It grows and shrinks on.
            (keys..60_000).for_each(|key| loaded.insert(&key).unwrap());
            assert!(loaded.capacity() > filter.capacity() && loaded.max_false_positive_rate() <= rate);
            (keys..60_000).for_each(|key| assert!(loaded.remove(&key), "{key}"));
            loaded.shrink_to_fit();
            assert_eq!(figures(&loaded), figures(&filter));
            (0..keys).for_each(|key| assert!(loaded.remove(&key), "{key}"));
            assert!(loaded.is_empty());
        }
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
        matches!(refused, Some(LoadError::WrongKind { kind: 6, expected: FilterKind::Concurrent, .. })),
        "{refused:?}"
    );
    let other = StableHashBuilder::with_key(*b"another key here");
    assert!(matches!(Growable::load(&growable[..], other, 1 << 20), Err(LoadError::OtherHasher)));
}

#[test]
fn each_forged_field_is_refused_for_its_reason() {
    let genuine = saved_growable(&small_growable());
    let forged = |place: usize, bytes: &[u8]| {
        let mut changed = genuine.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        Growable::load(&resealed(&changed)[..], state(), 1 << 30).err()
    };
    let [asked, base, doublings, level] = [0, 1, 2, 3].map(|nth| genuine[HEAD + nth]);
    assert!(forged(HEAD, &[255, base, doublings, 2]).is_none(), "as it was");
    assert_eq!((asked, level), (255, 2));
    for encoding in [2, 254] {
        assert!(matches!(forged(HEAD, &[encoding]), Some(LoadError::UnknownEncoding { .. })));
    }
    let levels = [[0, doublings, 2], [8, doublings, 2], [33, 0, 0], [base, 33 - base, 2], [base, 255, 2]];
    for [base, doublings, level] in levels.into_iter().chain([[base, 1, 2], [base, doublings, doublings + 1]]) {
        let error = forged(HEAD + 1, &[base, doublings, level]);
        assert!(matches!(error, Some(LoadError::InvalidLevels { base_bits, .. }) if base_bits == base), "{error:?}");
    }
    for buckets in [0u64, 7, 33, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
        let error = forged(HEAD + 4, &buckets.to_le_bytes());
        assert!(matches!(error, Some(LoadError::InvalidLevels { buckets: b, .. }) if b == buckets), "{buckets}");
    }
    // Sizes that a filter can have, but not one with these words.
    assert!(matches!(forged(HEAD + 1, &[base + 1, doublings - 1]), Some(LoadError::UnknownLayout { .. }) | None));
    assert!(matches!(forged(HEAD + 3, &[1]), Some(LoadError::UnknownLayout { .. } | LoadError::InvalidBuckets { .. })));
    assert!(matches!(forged(HEAD + 4, &34u64.to_le_bytes()), Some(LoadError::InvalidBuckets { .. })));
    assert!(matches!(
        forged(HEAD + 3, &[doublings]),
        Some(
            LoadError::MemoryLimit { .. }
                | LoadError::UnknownLayout { .. }
                | LoadError::InvalidBuckets { .. }
                | LoadError::Truncated { .. }
        )
    ));
    for place in 0..3 {
        let error = forged(SECTION + place, &[77]);
        assert!(matches!(error, Some(LoadError::UnknownLayout { .. })), "{error:?}");
    }
    // A bucket that only a resize leaves behind: it holds nothing, and is full.
    let [slots, bits] = [1, 2].map(|place| u32::from(genuine[SECTION + place]));
    let mark = (0..slots).map(|slot| 1u64 << (slot * bits + 8)).sum::<u64>();
    assert_eq!(genuine[SECTION], 0, "the layout is plain");
    assert!(forged(SECTION + 15, &mark.to_le_bytes()).is_some());
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
    // It does not shrink if the limit leaves no room for a smaller table beside the present one.
    for room in [100, 1000] {
        let loaded = Growable::load(&bytes[..], state(), needed + room).unwrap();
        (10..loaded.len() as u64).for_each(|key| assert!(loaded.remove(&key)));
        loaded.shrink_to_fit();
        assert_eq!(loaded.memory_usage() < needed, room == 1000);
        assert!((0..10).all(|key| loaded.contains(&key)) && (loaded.len(), loaded.tables()) == (10, 1));
    }
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

/// Keys come and go, and the filter grows and shrinks, before and while each snapshot is written. It has all that was in
/// when the save began: what stays throughout, and what is removed right after.
///
/// The rate is so high that keys are often mistaken for each other.
#[test]
fn a_save_while_the_filter_grows_and_shrinks_has_all_that_was_in() {
    const STAY: u64 = 3_000;
    let filter = growable(100, 0.1);
    (0..STAY).for_each(|key| filter.insert(&key).unwrap());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let (filter, ended) = (&filter, &ended);
        scope.spawn(move || {
            let spike = || (1 << 40..).take(40_000);
            while !ended.load(Ordering::Relaxed) {
                spike().for_each(|key| filter.insert(&key).unwrap());
                spike().for_each(|key| assert!(filter.remove(&key)));
                filter.shrink_to_fit();
            }
        });
        let (mut sizes, mut amid) = (Vec::new(), 0);
        let check = |bytes: &[u8], more: u64| {
            let loaded = Growable::load(bytes, state(), usize::MAX).unwrap();
            let all = (0..STAY).chain(1 << 41..(1 << 41) + more);
            assert!(all.clone().all(|key| loaded.contains(&key)), "a key that was in is missed");
            assert!(all.clone().all(|key| loaded.remove(&key)), "a copy was not saved");
            loaded.memory_usage()
        };
        // Until there were two sizes, which takes more rounds if the other thread begins late.
        let rounds = if cfg!(debug_assertions) { 40 } else { 100 };
        for round in 0..100 * rounds {
            if round >= rounds && sizes.windows(2).any(|two| two[0] != two[1]) {
                break;
            }
            // Removes these while it is written.
            let more = 200;
            (1 << 41..(1 << 41) + more).for_each(|key| filter.insert(&key).unwrap());
            amid += usize::from(filter.tables() == 2);
            let save = filter.begin_save().unwrap();
            (1 << 41..(1 << 41) + more).for_each(|key| assert!(filter.remove(&key)));
            let mut bytes = Vec::new();
            if round % 2 == 0 {
                // Meanwhile the table is replaced, more than once.
                save.write_to(Slow(&mut bytes)).unwrap();
            } else {
                save.write_to(&mut bytes).unwrap();
            }
            sizes.push(check(&bytes, more));
        }
        ended.store(true, Ordering::Relaxed);
        sizes.sort_unstable();
        sizes.dedup();
        assert!(sizes.len() > 1, "the snapshots are of several sizes; {amid} saves ended a resize");
    });
    (0..STAY).for_each(|key| assert!(filter.remove(&key)));
    assert!(filter.is_empty());
}

/// The first save ends a growth that is under way. The second is written after a growth and a shrink.
#[test]
fn a_save_amid_a_resize_and_one_from_before_it_are_whole() {
    let filter = growable(100, 0.001);
    let mut keys = 0..;
    while filter.tables() == 1 {
        filter.insert(&keys.next().unwrap()).unwrap();
    }
    let end = keys.start;
    let amid = saved_growable(&filter);
    assert_eq!(filter.tables(), 1);
    let save = filter.begin_save().unwrap();
    (end..20 * end).for_each(|key| filter.insert(&key).unwrap());
    (50..20 * end).for_each(|key| assert!(filter.remove(&key)));
    filter.shrink_to_fit();
    assert!(filter.capacity() < end as usize && (0..50).all(|key| filter.contains(&key)));
    let mut before = Vec::new();
    save.write_to(&mut before).unwrap();
    assert_eq!(before, amid, "nothing changed between the two");
    let loaded = Growable::load(&amid[..], state(), usize::MAX).unwrap();
    assert!((0..end).all(|key| loaded.remove(&key)) && loaded.is_empty());
}
