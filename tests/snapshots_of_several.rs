//! Snapshots of filters that grow. The target `snapshots` tests those of a fixed size, and what all have in common.
//!
//! `cargo test --all-features --test snapshots_of_several`
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

#[path = "snapshots/agreed.rs"]
mod agreed;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, FilterKind, GrowableCuckooFilter, LoadError, StableHashBuilder,
};

use agreed::agreed;

type Growable = GrowableCuckooFilter<u64, StableHashBuilder>;

fn state() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"a key for tests.")
}

fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = GrowableCuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
    builder.hasher(state()).build().unwrap()
}

/// A filter that has grown from 32 buckets to some more than 128.
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

fn load(bytes: &[u8]) -> Result<Growable, LoadError> {
    agreed(bytes, state(), Growable::load(bytes, state(), 1 << 30))
}

/// Where the header of a filter ends, and where the header of its first section begins, with the seal before it. A
/// seal is a checksum.
const HEADER: usize = 36;
const HEAD: usize = HEADER + 4 + 4;
const SECTION: usize = HEAD + 19 + 4;

/// Whether the memory that a shrink leaves goes back to the system.
const GIVES_BACK: bool = cfg!(all(target_os = "linux", not(miri)));

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
            let buckets = u64::from_le_bytes(bytes[SECTION + 3..SECTION + 11].try_into().unwrap()) as usize;
            assert_eq!(bytes.len(), 91 + "u64".len() + 8 * buckets, "the documented length");
            assert_eq!(resealed(&bytes), bytes);
            let loaded = Growable::load(&bytes[..], state(), usize::MAX).unwrap();
            let figures =
                |filter: &Growable| (filter.len(), filter.capacity(), filter.max_capacity(), filter.plan().slots);
            assert_eq!(figures(&loaded), figures(&filter));
            // A filter that has grown keeps what it needs for growing, also at its smallest size.
            let kept = filter.stats().memory_usage - loaded.stats().memory_usage;
            assert!(!GIVES_BACK || kept == 0 || keys == 5 && kept == 256, "{keys} keys: {kept} bytes");
            assert_eq!(loaded.plan().max_false_positive_rate, filter.plan().max_false_positive_rate);
            assert!((0..40_000).all(|key| loaded.count(&key) == filter.count(&key)));
            assert_eq!(saved_growable(&loaded), bytes);

            // It grows and shrinks on.
            (keys..60_000).for_each(|key| loaded.insert(&key).unwrap());
            assert!(loaded.capacity() > filter.capacity() && loaded.plan().max_false_positive_rate <= rate);
            (keys..60_000).for_each(|key| assert!(loaded.remove(&key), "{key}"));
            loaded.shrink_to_fit();
            assert_eq!(figures(&loaded), figures(&filter));
            assert!(!GIVES_BACK || loaded.stats().memory_usage == filter.stats().memory_usage);
            (0..keys).for_each(|key| assert!(loaded.remove(&key), "{key}"));
            assert!(loaded.is_empty());
        }
    }
}

#[test]
fn what_is_damaged_is_refused() {
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
        load(&resealed(&changed)).err()
    };
    let [asked, base, doublings] = [0, 1, 2].map(|nth| genuine[HEAD + nth]);
    let first = u64::from_le_bytes(genuine[HEAD + 3..HEAD + 11].try_into().unwrap());
    assert!(forged(HEAD, &[255, base, doublings]).is_none() && asked == 255, "as it was");
    for encoding in [2, 254] {
        assert!(matches!(forged(HEAD, &[encoding]), Some(LoadError::UnknownEncoding { .. })));
    }
    // Bases that are too short or too long, largest sizes below the first one and beyond all, and slots of more than 32 bits.
    for [base, doublings] in [[0, doublings], [7, doublings], [33, 5], [base, 0], [base, 4], [base, 255], [32, 6]] {
        let error = forged(HEAD + 1, &[base, doublings]);
        assert!(
            matches!(error, Some(LoadError::InvalidSizes { base_bits, doublings: d, .. }) if (base_bits, d) == (base, doublings)),
            "{error:?}"
        );
    }
    for buckets in [0u64, 2, 16, 33, 48, 1 << 31, 1 << 32, (1 << 32) + 32, 1 << 63, u64::MAX] {
        let error = forged(HEAD + 3, &buckets.to_le_bytes());
        assert!(matches!(error, Some(LoadError::InvalidSizes { buckets: b, .. }) if b == buckets), "{buckets}");
    }
    // Sizes that a filter can have, but not one with these words.
    assert!(matches!(
        forged(HEAD + 1, &[base + 1, doublings - 1]),
        Some(LoadError::UnknownLayout { .. } | LoadError::InvalidSizes { .. }) | None
    ));
    let [buckets] = [SECTION + 3].map(|at| u64::from_le_bytes(genuine[at..at + 8].try_into().unwrap()));
    assert!(matches!(forged(HEAD + 3, &(buckets + 32).to_le_bytes()), Some(LoadError::InvalidBuckets { .. })));
    let largest = u64::from_le_bytes(genuine[HEAD + 11..HEAD + 19].try_into().unwrap());
    assert!(matches!(forged(HEAD + 11, &(buckets - 32).to_le_bytes()), Some(LoadError::InvalidBuckets { .. })));
    for most in [0, first - 32, largest + 1, (1 << doublings) + 32, u64::MAX] {
        let error = forged(HEAD + 11, &most.to_le_bytes());
        assert!(matches!(error, Some(LoadError::InvalidSizes { largest: l, .. }) if l == most), "{most}: {error:?}");
    }
    for place in 0..3 {
        let error = forged(SECTION + place, &[77]);
        assert!(matches!(error, Some(LoadError::UnknownLayout { .. })), "{error:?}");
    }
    // The seals are where they would be with the genuine number.
    let of_buckets = |buckets: u64| {
        let mut changed = genuine.clone();
        changed[SECTION + 3..SECTION + 11].copy_from_slice(&buckets.to_le_bytes());
        load(&resealed_at(seals(&genuine), &changed)).err()
    };
    for wrong in [0, 1, 30, buckets - 1, buckets + 2, largest + 32, 1 << 40, u64::MAX] {
        let error = of_buckets(wrong);
        assert!(
            matches!(error, Some(LoadError::InvalidBuckets { buckets: b, .. }) if b == wrong),
            "{wrong}: {error:?}"
        );
    }
    let error = of_buckets(buckets + 32);
    assert!(matches!(error, Some(LoadError::Truncated { .. } | LoadError::UnknownLayout { .. })), "{error:?}");
    // No key is stored as this: the eight low bits of a slot that is taken are never all 0.
    assert_eq!(genuine[SECTION], 0, "the layout is plain");
    let error = forged(SECTION + 15, &(1u64 << 8).to_le_bytes());
    assert!(matches!(error, Some(LoadError::DamagedBucket { bucket: 0, .. })), "{error:?}");
    let error = forged(genuine.len() - 12, &[genuine[genuine.len() - 12] ^ 1]);
    assert!(matches!(error, Some(LoadError::WrongCount { .. })), "{error:?}");
}

/// A slot may have more bits than are stored at a size. The others are 0.
#[test]
fn bits_that_nothing_stores_are_refused() {
    let mut refused = 0;
    for rate in [0.1, 0.03, 0.01, 0.001, 1e-4] {
        let genuine = saved_growable(&growable(10, rate));
        let [encoding, slots, bits] = [0, 1, 2].map(|place| u32::from(genuine[SECTION + place]));
        if encoding == 0 && bits < 64 / slots {
            let mut changed = genuine.clone();
            changed[SECTION + 15..][..8].copy_from_slice(&(1 | 1u64 << bits).to_le_bytes());
            let error = Growable::load(&resealed(&changed)[..], state(), 1 << 30).err();
            assert!(matches!(error, Some(LoadError::DamagedBucket { bucket: 0, .. })), "{rate}: {error:?}");
            refused += 1;
        }
    }
    assert!(refused > 0, "without such a slot the test shows nothing");
}

#[test]
fn the_memory_limit_is_exact() {
    let filter = small_growable();
    let (bytes, needed) = (saved_growable(&filter), filter.stats().memory_usage);
    let loaded = Growable::load(&bytes[..], state(), needed).unwrap();
    assert_eq!(loaded.stats().memory_usage, needed);
    let refused = (0..10_000).map(|key| loaded.insert(&key)).find_map(Result::err);
    let refused = refused.expect("the limit is that of the filter from now on").to_string();
    assert!(refused.contains(&needed.to_string()), "{refused}");
    let refused = Growable::load(&bytes[..], state(), needed - 1).err();
    assert!(matches!(refused, Some(LoadError::MemoryLimit { needed: n, limit, .. }) if n == needed && limit == n - 1));
    // A smaller table needs no more memory.
    let loaded = Growable::load(&bytes[..], state(), needed).unwrap();
    (10..loaded.len() as u64).for_each(|key| assert!(loaded.remove(&key)));
    loaded.shrink_to_fit();
    assert!(loaded.capacity() < filter.capacity() / 2 && loaded.stats().memory_usage <= needed);
    assert!((0..10).all(|key| loaded.contains(&key)) && loaded.len() == 10);
}

/// A filter grows a little and is saved, over and over, and shrinks in the same way. So there is a snapshot between any two
/// doublings, and where buckets of two layouts are side by side.
#[test]
fn a_snapshot_of_any_size_is_whole() {
    const MOST: u64 = if cfg!(miri) { 300 } else { 6_000 };
    for rate in [0.1, 0.001] {
        let filter = growable(100, rate);
        let check = |keys: u64| {
            let bytes = saved_growable(&filter);
            let loaded = Growable::load(&bytes[..], state(), usize::MAX).unwrap();
            assert_eq!((loaded.len(), loaded.capacity()), (keys as usize, filter.capacity()));
            assert_eq!(loaded.digest().unwrap(), filter.digest().unwrap(), "{filter:?}");
            assert!((0..keys).all(|key| loaded.contains(&key)), "{filter:?}");
            // It goes on from there.
            (MOST..MOST + 200).for_each(|key| loaded.insert(&key).unwrap());
            assert!((0..keys).all(|key| loaded.remove(&key)) && loaded.len() == 200, "{filter:?}");
            loaded.capacity()
        };
        let mut sizes = Vec::new();
        for key in 0..MOST {
            filter.insert(&key).unwrap();
            if key % 97 == 0 {
                sizes.push(check(key + 1));
            }
        }
        for key in (1..MOST).rev() {
            assert!(filter.remove(&key));
            if key % 97 == 0 {
                filter.shrink_to_fit();
                check(key);
            }
        }
        sizes.dedup();
        assert!(cfg!(miri) || sizes.len() > 20, "{sizes:?}");
    }
}

/// A save that began is what the filter was then, whatever it has become when the snapshot is written.
#[test]
fn a_save_is_of_the_moment_at_which_it_began_however_the_filter_grows_and_shrinks() {
    let end = 3_000;
    for rate in [0.1, 0.001] {
        let filter = growable(100, rate);
        (0..end).for_each(|key| filter.insert(&key).unwrap());
        let at_once = saved_growable(&filter);
        // Grown when it is written; shrunk; both.
        for (grows, shrinks) in [(true, false), (false, true), (true, true)] {
            let filter = Growable::load(&at_once[..], state(), usize::MAX).unwrap();
            let save = filter.begin_save().unwrap();
            if grows {
                (end..20 * end).for_each(|key| filter.insert(&key).unwrap());
            }
            if shrinks {
                (50..filter.len() as u64).for_each(|key| assert!(filter.remove(&key)));
                filter.shrink_to_fit();
                assert!(filter.capacity() < 1_000, "{filter:?}");
            }
            let mut later = Vec::new();
            save.write_to(&mut later).unwrap();
            assert_eq!(later, at_once, "grows: {grows}, shrinks: {shrinks}");
            assert!((0..50).all(|key| filter.contains(&key)));
        }
        let loaded = Growable::load(&at_once[..], state(), usize::MAX).unwrap();
        assert!((0..end).all(|key| loaded.remove(&key)) && loaded.is_empty());
    }
}
