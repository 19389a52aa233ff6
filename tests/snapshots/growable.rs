//! Snapshots of filters that grow and shrink: at any size, and forged.

use concurrent_cuckoo_filter::LoadError;

use crate::filters::{Growable, load, load_within, saved, small_growable, state};

fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = Growable::builder_with_hasher(state()).capacity(capacity);
    builder.false_positive_rate(rate).build().unwrap()
}

/// Where the header of a filter ends, and where the header of its first section begins, with the seal before it. A
/// seal is a checksum.
const HEADER: usize = 36;
const HEAD: usize = HEADER + 4 + 4;
const SECTION: usize = HEAD + 19 + 4;

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

#[test]
fn each_forged_field_is_refused_for_its_reason() {
    let genuine = saved(&small_growable());
    let forged = |place: usize, bytes: &[u8]| {
        let mut changed = genuine.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        load::<Growable>(&resealed(&changed)).err()
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
        load::<Growable>(&resealed_at(seals(&genuine), &changed)).err()
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
        let genuine = saved(&growable(10, rate));
        let [encoding, slots, bits] = [0, 1, 2].map(|place| u32::from(genuine[SECTION + place]));
        if encoding == 0 && bits < 64 / slots {
            let mut changed = genuine.clone();
            changed[SECTION + 15..][..8].copy_from_slice(&(1 | 1u64 << bits).to_le_bytes());
            let error = load::<Growable>(&resealed(&changed)).err();
            assert!(matches!(error, Some(LoadError::DamagedBucket { bucket: 0, .. })), "{rate}: {error:?}");
            refused += 1;
        }
    }
    assert!(refused > 0, "without such a slot the test shows nothing");
}

#[test]
fn the_memory_limit_of_loading_is_that_of_the_filter_from_now_on() {
    let filter = small_growable();
    let (bytes, needed) = (saved(&filter), filter.stats().memory_usage);
    let loaded = load_within::<Growable>(&bytes, needed).unwrap();
    let refused = (0..10_000).map(|key| loaded.insert(&key)).find_map(Result::err).unwrap().to_string();
    assert!(refused.contains(&needed.to_string()), "{refused}");
    // A smaller table needs no more memory.
    let loaded = load_within::<Growable>(&bytes, needed).unwrap();
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
    for rate in [0.1, 0.002, 0.001] {
        let filter = growable(100, rate);
        let check = |keys: u64| {
            let bytes = saved(&filter);
            let loaded = load::<Growable>(&bytes).unwrap();
            let figures = |filter: &Growable| (filter.capacity(), filter.max_capacity(), filter.plan().slots);
            assert_eq!((loaded.len(), figures(&loaded)), (keys as usize, figures(&filter)));
            assert_eq!(loaded.plan().max_false_positive_rate, filter.plan().max_false_positive_rate);
            assert!(saved(&loaded) == bytes && resealed(&bytes) == bytes, "{filter:?}");
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
        let at_once = saved(&filter);
        // Grown when it is written; shrunk; both.
        for (grows, shrinks) in [(true, false), (false, true), (true, true)] {
            let filter = load::<Growable>(&at_once).unwrap();
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
        let loaded = load::<Growable>(&at_once).unwrap();
        assert!((0..end).all(|key| loaded.remove(&key)) && loaded.is_empty());
    }
}
