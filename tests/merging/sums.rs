use concurrent_cuckoo_filter::{AbsorbError, ConcurrentCuckooFilter, Encoding};

use crate::kinds::{Table, in_each_layout};
use crate::support::{Filter, MAPLET_LAYOUTS, Raw, build, hashes, scattered};
use crate::{Growable, Hasher, filter, kinds, maplet, support};

fn digest(filter: &Filter) -> u64 {
    filter.digest().unwrap()
}

/// Checks counts, not only presence: every copy can be removed again, and then nothing is left.
fn has_every_copy_of_both<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let [sum, other, direct] = [(); 3].map(|()| new(4000));
    let half = 2000;
    // Some are in both, and some of those here twice, if there is room for so many copies.
    let shared = if sum.slots().1 > 2 { 100 } else { 0 };
    let entries = |numbers: std::ops::Range<u64>| numbers.map(|nth| (scattered(nth), number(nth)));
    let ours: Vec<_> = entries(0..half - 2 * shared).chain(entries(0..shared)).collect();
    let theirs: Vec<_> = entries(half - 3 * shared..2 * half - 3 * shared).collect();
    for (filter, entries) in [(&sum, &ours), (&direct, &ours), (&other, &theirs), (&direct, &theirs)] {
        entries.iter().for_each(|entry| assert_eq!(filter.insert(entry), Ok(true)));
    }
    let before = other.digest();
    assert_eq!(sum.absorb(&other), Ok(theirs.len() as u64), "{sum:?}");
    assert_eq!(other.digest(), before, "the other one stays as it is");
    assert_eq!((sum.len(), sum.digest()), (direct.len(), direct.digest()), "as if all had been inserted: {sum:?}");
    assert_eq!(sum.stats().inserts_failed, 0);
    assert!(ours.iter().chain(&theirs).all(|entry| sum.contains(&entry.0)), "{sum:?}");
    assert!(ours.iter().chain(&theirs).all(|entry| sum.remove(entry)) && sum.len() == 0, "{sum:?}");
}

#[test]
fn the_sum_of_two_filters_has_every_copy_of_both() {
    in_each_layout!(has_every_copy_of_both);
}

#[test]
fn a_filter_takes_in_itself_and_an_empty_one() {
    let sum = filter();
    let keys: Vec<_> = hashes(0, 45).collect();
    keys.iter().for_each(|key| sum.insert(key).unwrap());
    assert_eq!(sum.absorb(&sum), Ok(45));
    assert!(keys.iter().all(|key| sum.count(key) >= 2));
    assert_eq!(sum.len(), 90);
    let before = digest(&sum);
    assert_eq!(sum.absorb(&filter()), Ok(0));
    assert_eq!(digest(&sum), before);
    let empty = filter();
    assert_eq!(empty.absorb(&sum), Ok(90));
    assert_eq!(digest(&empty), before);
    // Beyond the capacity too: nothing more fits.
    hashes(100, 100).for_each(|key| _ = sum.insert(&key));
    assert!(sum.len() > sum.capacity());
    assert_eq!(sum.absorb(&filter()), Ok(0));
}

#[test]
fn what_is_not_alike_is_refused_by_name_and_nothing_changes() {
    let sum = filter();
    hashes(0, 10).for_each(|key| sum.insert(&key).unwrap());
    let before = digest(&sum);
    let another = |capacity, encoding, rate| {
        let other = build(capacity, encoding, rate);
        other.insert(&Raw(1)).unwrap();
        sum.absorb(&other).unwrap_err()
    };
    let AbsorbError::Layout { ours, theirs, .. } = another(200, Encoding::SemiSorted, 0.001) else {
        panic!("another error");
    };
    assert_eq!(ours.buckets * ours.slots_per_bucket, sum.plan().slots);
    assert!(theirs.buckets > ours.buckets);
    assert_eq!((ours.encoding, ours.fingerprint_bits, ours.payload_bits), (Encoding::SemiSorted, 14, 0));
    let error = another(100, Encoding::Plain, 0.001).to_string();
    assert!(
        error.contains("14 bits, semi-sorted") && error.contains("plain") && error.contains("same settings"),
        "{error}"
    );
    assert!(matches!(another(100, Encoding::SemiSorted, 0.0001), AbsorbError::Layout { .. }));

    let theirs = ConcurrentCuckooFilter::<u64>::with_capacity(100);
    theirs.insert(&1).unwrap();
    let ours = ConcurrentCuckooFilter::<u64>::with_capacity(100);
    assert_eq!(ours.absorb(&theirs), Err(AbsorbError::Hasher));
    assert!(ours.is_empty());

    let [few, many] = [MAPLET_LAYOUTS[2], MAPLET_LAYOUTS[3]].map(|layout| maplet(100, layout));
    let error = few.absorb(&many).unwrap_err().to_string();
    assert!(error.contains("10 + 4 bits") && error.contains("7 + 7 bits"), "{error}");
    assert_eq!(digest(&sum), before);
}

#[cfg(feature = "snapshot")]
#[test]
fn keys_of_another_schema_are_refused() {
    let hasher = concurrent_cuckoo_filter::DefaultHashBuilder::new();
    let named = |schema: &str| {
        let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(100).hasher(hasher.clone());
        builder.schema(schema).build().unwrap()
    };
    let (ours, theirs) = (named("users"), named("orders"));
    theirs.insert(&1).unwrap();
    let error = ours.absorb(&theirs).unwrap_err();
    assert!(error.to_string().contains("\"users\"") && error.to_string().contains("\"orders\""), "{error}");
    assert!(ours.is_empty());
    assert_eq!(ours.absorb(&named("users")), Ok(0));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_changes() {
    let [sum, other] = [(); 2].map(|()| filter());
    let capacity = sum.capacity();
    hashes(0, capacity - 10).for_each(|key| sum.insert(&key).unwrap());
    hashes(1000, 11).for_each(|key| other.insert(&key).unwrap());
    let before = digest(&sum);
    let error = sum.absorb(&other).unwrap_err();
    let AbsorbError::OverCapacity { len, other_len, capacity: limit, .. } = error else { panic!("{error}") };
    assert_eq!((len, other_len, limit), (capacity - 10, 11, capacity));
    assert!(error.to_string().contains("11"), "{error}");
    assert_eq!(digest(&sum), before);
    // With one key less, all fit, up to the capacity.
    assert!(other.remove(&hashes(1000, 1).next().unwrap()));
    assert_eq!(sum.absorb(&other), Ok(10));
    assert_eq!(sum.len(), capacity);
}

/// More copies of one key than its two buckets hold. The filter is below its capacity, so only this key is refused
/// on the way.
#[test]
fn a_refused_copy_is_told_with_those_that_are_in() {
    let [sum, other] = [(); 2].map(|()| filter());
    let key = hashes(0, 1).next().unwrap();
    (0..6).for_each(|_| sum.insert(&key).unwrap());
    (0..6).for_each(|_| other.insert(&key).unwrap());
    hashes(10, 20).for_each(|key| other.insert(&key).unwrap());
    let len = sum.len();
    let error = sum.absorb(&other).unwrap_err();
    let AbsorbError::TooManyCopies { absorbed, copies: 10, .. } = &error else { panic!("{error}") };
    assert_eq!(sum.len() as u64, len as u64 + absorbed);
    assert!(error.to_string().contains(&format!("after {absorbed} copies")), "{error}");
    assert_eq!(sum.count(&key), 10, "those before it are in");
}

/// Whoever merges the same filter again and again is told what he can do, and that helps.
#[test]
fn the_advice_for_a_filter_that_is_absorbed_again_and_again_can_be_followed() {
    let [sum, other] = [(); 2].map(|()| filter());
    hashes(0, sum.capacity() / 20).for_each(|key| other.insert(&key).unwrap());
    let error = (0..20).find_map(|_| sum.absorb(&other).err()).expect("20 copies fill the buckets of every key");
    let text = error.to_string();
    assert!(matches!(error, AbsorbError::TooManyCopies { .. } | AbsorbError::Full { .. }), "{text}");
    assert!(text.contains("call unite on a filter that empty_like has made"), "{text}");
    assert!(!text.contains("insert_if_absent") && !text.contains("hasher"), "{text}");
    let again = sum.empty_like().unwrap();
    assert_eq!((again.unite(&other), again.unite(&other)), (Ok(other.len() as u64), Ok(0)));
}

/// The sum holds exactly what the refusal says, including copies that were added in the same step as the refused
/// one.
#[test]
fn a_full_sum_says_how_much_is_in_it() {
    let [sum, other] = [(); 2].map(|()| build(4000, Encoding::Plain, 1e-9));
    hashes(0, sum.capacity() / 2).for_each(|key| {
        sum.insert(&key).unwrap();
        other.insert(&key).unwrap();
    });
    let before = sum.len() as u64;
    let Err(AbsorbError::Full { absorbed, len, .. }) = sum.absorb(&other) else {
        panic!("two copies of each key fill the buckets of some");
    };
    assert_eq!((sum.len() as u64, len as u64), (before + absorbed, before + absorbed));
}

/// The copies of a large table come in its order. So the first ones go to few buckets of a small table, which does not grow
/// for so few keys.
#[test]
fn a_small_growable_filter_absorbs_a_large_one() {
    for (rate, first, most, keys) in
        [(0.001, 500, 100_000, 50_000), (0.03, 100, 1_000_000, 20_000), (0.3, 1_000, 1_000_000, 50_000)]
    {
        let builder = Growable::builder_with_hasher(Hasher::default()).capacity(first).max_capacity(most);
        let large = builder.false_positive_rate(rate).build().unwrap();
        large.reserve(most).unwrap();
        hashes(0, keys as usize).for_each(|key| large.insert(&key).unwrap());
        let small = large.empty_like().unwrap();
        assert_eq!(small.absorb(&large), Ok(keys as u64), "rate {rate}");
        assert_eq!(small.digest().unwrap(), large.digest().unwrap());
    }
}

/// Other largest capacities, rates or encodings lead to other classes.
#[test]
fn growable_filters_with_other_settings_are_told_apart() {
    let build = |most, rate| {
        let builder = Growable::builder_with_hasher(Hasher::default()).capacity(1000).max_capacity(most);
        builder.false_positive_rate(rate).build().unwrap()
    };
    let sum = build(100_000, 0.001);
    hashes(0, 10).for_each(|key| sum.insert(&key).unwrap());
    let before = sum.digest().unwrap();
    for other in [build(1_000_000, 0.001), build(100_000, 0.03)] {
        other.insert(&Raw(1)).unwrap();
        let error = sum.absorb(&other).unwrap_err();
        let AbsorbError::Layout { ours, theirs, .. } = &error else { panic!("{error:?}") };
        let text = error.to_string();
        assert!(ours != theirs && [ours, theirs].iter().all(|named| text.contains(&named.to_string())), "{text}");
        assert_eq!(sum.digest().unwrap(), before, "nothing has changed");
    }
    let same = build(100_000, 0.001);
    assert_eq!(same.absorb(&sum), Ok(10));
}

/// Another first capacity, or another load, leads to another number of buckets for the same keys, and to nothing else: such
/// filters are merged in both directions, whichever of them is larger.
#[test]
fn growable_filters_that_differ_in_their_first_capacity_or_in_their_load_are_merged() {
    let builder = |capacity, load| {
        let builder = Growable::builder_with_hasher(Hasher::default()).capacity(capacity).max_capacity(200_000);
        builder.load_while_growing(load)
    };
    // Buckets of 3 and of 4 slots, so the layouts differ as well.
    let settings = [(10, 0.70), (10, 0.95), (6_000, 0.85), (60_000, 0.85)];
    for keys in [10u64, 5_000, 50_000] {
        for (ours, theirs) in settings.into_iter().flat_map(|ours| settings.map(|theirs| (ours, theirs))) {
            let [sum, other] = [ours, theirs].map(|(capacity, load)| builder(capacity, load).build().unwrap());
            let theirs: Vec<_> = hashes(keys as usize, keys as usize).collect();
            theirs.iter().for_each(|key| other.insert(key).unwrap());
            let copy = sum.empty_like().unwrap();
            assert_eq!((copy.absorb(&other), copy.digest()), (Ok(keys), other.digest()), "{sum:?}, {other:?}");
            let ours: Vec<_> = hashes(0, keys as usize).collect();
            ours.iter().for_each(|key| sum.insert(key).unwrap());
            let added = sum.unite(&other).unwrap();
            assert!(added > keys * 99 / 100 && sum.len() as u64 == keys + added, "{added} of {keys}");
            assert_eq!(sum.unite(&other), Ok(0));
            assert!(ours.iter().chain(&theirs).all(|key| sum.contains(key)));
            other.unite(&sum).unwrap();
            assert_eq!(other.unite(&sum), Ok(0));
        }
    }
}
