use std::error::Error;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, Tick};

use crate::kinds::{Table, in_each_layout};
use crate::support::{Raw, build, hashes, scattered};
use crate::{Growable, Hasher, expiring, growable, kinds, support};

type Result = std::result::Result<(), Box<dyn Error>>;

fn depends_on_the_multiset_alone<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let [one, other] = [(); 2].map(|()| new(2000));
    let entries: Vec<_> = (0..one.capacity().max(2000) as u64).map(|nth| (scattered(nth), number(nth))).collect();
    entries.iter().for_each(|entry| assert_eq!(one.insert(entry), Ok(true)));
    entries.iter().rev().for_each(|entry| assert_eq!(other.insert(entry), Ok(true)));
    assert!(one.stats().relocations > 0, "some copies are in their other buckets");
    assert_eq!(one.digest(), other.digest(), "{one:?}");
    // A change and its reversal lead back to the same digest.
    assert!(other.remove(&entries[7]));
    assert_ne!(one.digest(), other.digest(), "{one:?}: one is missing");
    let changed = (entries[7].0, number(8));
    assert_eq!(other.insert(&changed), Ok(true));
    assert_eq!(one.digest() == other.digest(), number(7) == number(8), "{one:?}: another number");
    assert!(other.remove(&changed) && other.insert(&entries[7]).is_ok());
    assert_eq!(one.digest(), other.digest(), "{one:?}");
    for entry in [&entries[7], &entries[8]] {
        let (before, kept) = (other.digest(), other.insert(entry).is_ok());
        assert_eq!(other.digest() != before, kept, "{one:?}: a second copy");
    }
    other.clear();
    assert_eq!(other.digest(), new(2000).digest(), "empty, as at first");
}

/// Filters that can't be united differ in their digests, even if they are empty.
#[test]
fn growable_filters_of_other_sizes_have_other_digests() {
    let build = |capacity, expected, most: Option<usize>, rate| {
        let builder = GrowableCuckooFilter::<Raw>::builder().capacity(capacity).expected_keys(expected);
        let builder = builder.false_positive_rate(rate).hasher(Hasher::default());
        most.into_iter().fold(builder, |builder, most| builder.max_capacity(most)).build().unwrap()
    };
    for [one, other] in [
        [build(100, 8000, None, 1e-3), build(0, 5000, None, 1e-3)],
        [build(0, 1000, Some(17_000), 0.01), build(50, 2000, None, 0.01)],
        [build(100, 5000, None, 1e-3), build(100, 5000, None, 1e-3)],
        [build(0, 8000, None, 1e-3), build(0, 5000, None, 1e-3)],
    ] {
        assert_eq!(one.digest() == other.digest(), one.unite(&other).is_ok(), "{one:?} and {other:?}");
    }
}

#[test]
fn order_and_relocations_make_no_difference() {
    in_each_layout!(depends_on_the_multiset_alone);
}

#[test]
fn only_filters_that_are_alike_have_the_same_digest() -> Result {
    let filters = [
        build(100, Encoding::SemiSorted, 0.001),
        build(101, Encoding::SemiSorted, 0.0001),
        build(100, Encoding::Plain, 0.001),
        build(200, Encoding::SemiSorted, 0.001),
    ];
    for fill in [false, true] {
        let digests: Vec<u64> = filters.iter().map(|filter| filter.digest()).collect::<std::result::Result<_, _>>()?;
        for (nth, digest) in digests.iter().enumerate() {
            assert!(!digests[..nth].contains(digest), "{nth}, filled: {fill}");
        }
        if !fill {
            filters.iter().try_for_each(|filter| hashes(0, 50).try_for_each(|key| filter.insert(&key)))?;
        }
    }
    // With random hasher keys, even two empty filters have different digests.
    let [one, other] = [(); 2].map(|()| ConcurrentCuckooFilter::<u64>::with_capacity(100));
    assert_ne!(one.digest()?, other.digest()?);
    Ok(())
}

/// Ends count as the caller's ticks, wherever they are on the ring. Expired entries do not count, whether swept or
/// not.
#[test]
fn the_live_count_with_their_ends() -> Result {
    let [one, other] = [(); 2].map(|()| expiring(500, 14));
    one.advance_to(Tick::new(1000));
    // A clock that has begun elsewhere, so the places on the ring differ.
    other.advance_to(Tick::new(3));
    other.restart_clock(Tick::new(998));
    for key in hashes(0, 100) {
        other.insert_until(&key, Tick::new(999))?; // these die soon
    }
    other.advance_to(Tick::new(1000));
    for (nth, key) in (1..).zip(hashes(100, 300)) {
        one.insert_until(&key, Tick::new(1000 + nth % 14 + 1))?;
    }
    for (nth, key) in (1..).zip(hashes(100, 300)).collect::<Vec<_>>().into_iter().rev() {
        other.insert_until(&key, Tick::new(1000 + nth % 14 + 1))?;
    }
    assert_eq!(one.digest()?, other.digest()?);
    // Entries expire in both, tick by tick.
    for now in 1001..1012 {
        let before = one.digest()?;
        one.advance_to(Tick::new(now));
        assert_ne!(one.digest()?, before, "some have expired");
        assert_ne!(one.digest()?, other.digest()?, "entries have expired by only one of the clocks");
        other.advance_to(Tick::new(now));
        assert_eq!(one.digest()?, other.digest()?);
    }
    // One entry lives a tick longer.
    let key = hashes(100, 300).nth(13).unwrap(); // ends at 1015
    other.insert_or_renew_until(&key, Tick::new(1016))?;
    assert_ne!(one.digest()?, other.digest()?, "it lives longer");
    one.insert_or_renew_until(&key, Tick::new(1016))?;
    assert_eq!(one.digest()?, other.digest()?);
    Ok(())
}

/// A call sweeps a part of a large table. The dead entries that it leaves do not count.
#[test]
fn the_dead_that_were_not_swept_do_not_count() -> Result {
    let [one, other] = [(); 2].map(|()| expiring(200_000, 14));
    for filter in [&one, &other] {
        filter.advance_to(Tick::new(10));
    }
    hashes(0, 100_000).try_for_each(|key| one.insert_until(&key, Tick::new(11)).map(drop))?;
    hashes(500_000, 1000).try_for_each(|key| {
        one.insert_until(&key, Tick::new(20)).and(other.insert_until(&key, Tick::new(20))).map(drop)
    })?;
    assert_ne!(one.digest()?, other.digest()?);
    one.advance_to(Tick::new(11));
    assert!(one.len() > 50_000, "without unswept entries the test shows nothing");
    assert_eq!(one.digest()?, other.digest()?);
    let sum = one.empty_like()?;
    assert_eq!(sum.absorb(&one), Ok(1000));
    assert_eq!(sum.digest()?, other.digest()?);
    Ok(())
}

/// Each of these filters has been at other sizes, and is at another one now.
#[test]
fn the_sizes_of_a_growable_filter_make_no_difference() -> Result {
    let [one, grown, shrunk] = [(); 3].map(|()| growable(500));
    let keys: Vec<_> = hashes(0, 8000).collect();
    keys.iter().try_for_each(|key| one.insert(key))?;
    grown.reserve(100_000)?;
    hashes(8000, 20_000).try_for_each(|key| shrunk.insert(&key))?;
    for filter in [&grown, &shrunk] {
        keys.iter().rev().try_for_each(|key| filter.insert(key))?;
    }
    hashes(8000, 20_000).for_each(|key| assert!(shrunk.remove(&key)));
    // At many sizes, those between two doublings too.
    for size in (8000..28_000).step_by(1000).rev() {
        shrunk.shrink_to(size);
        assert!((size..size + 500).contains(&shrunk.capacity()), "{shrunk:?}");
        assert_eq!(one.digest()?, shrunk.digest()?, "{shrunk:?}");
    }
    shrunk.shrink_to_fit();
    assert!(shrunk.capacity() < grown.capacity());
    assert_eq!(one.digest()?, shrunk.digest()?);
    assert_eq!(one.digest()?, grown.digest()?);
    assert!(grown.remove(&keys[5]));
    assert_ne!(one.digest()?, grown.digest()?);
    for filter in [&one, &shrunk] {
        keys.iter().for_each(|key| assert!(filter.remove(key)));
        filter.shrink_to_fit();
        assert_eq!(filter.digest()?, growable(500).digest()?);
    }
    assert_eq!(growable(500).digest()?, growable(5000).digest()?, "they differ in their smallest sizes alone");
    let small = Growable::builder_with_hasher(Hasher::default()).max_capacity(50_000).build().unwrap();
    assert_ne!(growable(500).digest()?, small.digest()?, "their classes differ");
    Ok(())
}
