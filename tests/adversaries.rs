//! What an adversary can do to a filter, depending on what the adversary knows and may do. If the hasher's key is
//! secret, chosen keys are like any others. If it is not, or if the adversary sees answers, the tests show what
//! harm is possible and what is not.
//!
//! For each attack that must fail, a test first shows that it succeeds elsewhere.

mod support;

use std::hash::{BuildHasher, BuildHasherDefault};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
use support::{Identity, Seeded, plausible, seeded};

type Filter<S> = ConcurrentCuckooFilter<u64, S>;
/// A filter whose hasher has secret keys: the default one's, which are the same in each run, so that the counts are too.
type Keyed = Filter<Seeded>;
/// A filter without a secret key: each number is its own hash.
type Unkeyed = Filter<BuildHasherDefault<Identity>>;

const MILLION: usize = 1_000_000;

/// A filter with the secret keys of this number.
fn keyed(secret: u64, capacity: usize) -> Keyed {
    Keyed::with_capacity_and_hasher(capacity, seeded(secret))
}

fn buckets<S>(filter: &Filter<S>) -> u64 {
    (filter.plan().slots / filter.plan().layout.slots_per_bucket) as u64
}

/// Fills a filter to its capacity with the keys from 0.
fn fill<S: BuildHasher>(filter: Filter<S>) -> Filter<S> {
    stored(&filter).for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// The keys in a filled filter.
fn stored<S>(filter: &Filter<S>) -> std::ops::Range<u64> {
    0..filter.capacity() as u64
}

/// The keys that are not in a filled filter, but that it takes for present ones.
fn false_positives<S: BuildHasher>(filter: &Filter<S>) -> impl Iterator<Item = u64> {
    (1 << 40..).filter(|key| filter.contains(key))
}

/// How many of the keys are found.
fn found<S: BuildHasher>(filter: &Filter<S>, keys: &[u64]) -> usize {
    keys.iter().filter(|key| filter.contains(key)).count()
}

/// Lists of keys. An unkeyed filter with this many buckets cannot tell the keys of one list apart. Each list is for
/// another bucket, which is one of the two buckets of its keys.
///
/// The filter mixes a hash. Then the high bits choose a bucket, and the low bits are the fingerprint. The mix keeps
/// no secret: an adversary with no better way can try hundreds of millions of numbers per second on their own
/// machine.
fn look_alikes(buckets: u64, lists: u64, tries: u64) -> Vec<Vec<u64>> {
    const FINGERPRINT_BITS: u32 = 14;
    let mut found = vec![Vec::new(); lists as usize];
    for key in 0..tries {
        let mixed = mix(key);
        let bucket = (u128::from(mixed) * u128::from(buckets)) >> 64;
        if mixed & ((1 << FINGERPRINT_BITS) - 1) == 0xabc && bucket < lists.into() {
            found[bucket as usize].push(key);
        }
    }
    found
}

/// The mix of `src/word/geometry.rs`.
fn mix(hash: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash) * u128::from(hash.wrapping_mul(2).wrapping_add(GOLDEN));
    ((product >> 64) as u64 ^ product as u64).wrapping_mul(GOLDEN)
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn without_a_key_keys_can_be_made_to_look_like_one() {
    let filter = Unkeyed::with_capacity_and_hasher(2000, BuildHasherDefault::default());
    let crafted = look_alikes(buckets(&filter), 1, 500_000_000).remove(0);
    assert!(crafted.len() > 40, "only {}", crafted.len());
    filter.insert(&crafted[0]).unwrap();
    assert_eq!(found(&filter, &crafted), crafted.len(), "all seem to be present though one is");

    let room = 2 * filter.plan().layout.slots_per_bucket;
    (1..room).for_each(|i| filter.insert(&crafted[i]).unwrap());
    for key in &crafted[room..] {
        let refused = filter.insert(key);
        assert!(matches!(refused, Err(InsertError::TooManyCopies { copies, .. }) if copies == room), "{refused:?}");
    }
    assert!(filter.stats().load_factor < 0.01, "refused in a nearly empty filter");

    // If the key is secret, the same keys are like any others.
    let mut mistaken = 0;
    for secret in 0..1000 {
        let keyed = keyed(secret, 2000);
        keyed.insert(&crafted[0]).unwrap();
        mistaken += found(&keyed, &crafted[1..]);
        assert!(crafted.iter().all(|key| keyed.insert(key).is_ok()));
    }
    assert!(plausible(mistaken as f64, 0.0), "{mistaken} were mistaken");
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn with_a_secret_key_a_million_chosen_keys_are_like_any_others() {
    // Keys that would have one fingerprint if there were no secret key.
    let chosen = |key: &u64| mix(*key) & 0x3ff == 0xbc;
    let crafted: Vec<u64> = (0..).filter(chosen).take(2 * MILLION).collect();
    let (unkeyed, rate) = (Unkeyed::with_capacity_and_hasher(MILLION, BuildHasherDefault::default()), 0.001);
    (0..MILLION / 2).for_each(|nth| unkeyed.insert(&crafted[nth]).unwrap());
    let mistaken = found(&unkeyed, &crafted[MILLION / 2..]) as f64 / (1.5 * MILLION as f64);
    assert!(mistaken > 100.0 * rate, "without a key they raise the rate: {mistaken}");
    for secret in 0..2 {
        let filter = keyed(secret, MILLION);
        let (inserted, others) = crafted.split_at(filter.capacity());
        assert!(inserted.iter().all(|key| filter.insert(key).is_ok()), "refused below capacity: {filter:?}");
        assert!(filter.stats().load_factor > 0.968, "{filter:?}");
        let expected = filter.stats().false_positive_rate * others.len() as f64;
        let found = found(&filter, others) as f64;
        assert!(plausible(found, expected), "{found} false positives for {expected}");
    }
}

/// A key whose two buckets are full is refused. If an adversary fills them one pair at a time, with keys of one
/// fingerprint for each pair, no path leads out of a pair.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn without_a_key_a_share_of_the_slots_denies_others_its_square() {
    const CAPACITY: usize = 4000;
    let new = || Unkeyed::with_capacity_and_hasher(CAPACITY, BuildHasherDefault::default());
    let buckets = buckets(&new());
    let look_alikes = look_alikes(buckets, buckets / 2, 500_000_000);
    for share in [0.1, 0.3, 0.5] {
        let unkeyed = new();
        let keyed = keyed(1, CAPACITY);
        // A pair has an even bucket and an odd one.
        for keys in look_alikes.iter().take((share * buckets as f64) as usize).step_by(2) {
            for key in &keys[..2 * unkeyed.plan().layout.slots_per_bucket] {
                unkeyed.insert(key).unwrap();
                keyed.insert(key).unwrap();
            }
        }
        assert!((unkeyed.stats().load_factor - share).abs() < 2e-3, "{unkeyed:?}");
        // Too few keys to fill the filter.
        let others = 1 << 50..(1 << 50) + CAPACITY as u64 / 5;
        let refused = others.clone().filter(|key| unkeyed.insert(key).is_err()).count() as f64;
        let expected = share * share * others.clone().count() as f64;
        assert!(plausible(refused, expected), "{refused} refused for {expected}");
        assert!(
            others.clone().all(|key| keyed.insert(&key).is_ok()),
            "where the key is secret, the same keys deny nothing"
        );
    }
}

/// Keys that an empty filter cannot tell from this one, found by trial.
fn search_look_alikes(filter: &Keyed, key: u64, count: usize) -> Vec<u64> {
    filter.insert(&key).unwrap();
    let look_alikes = false_positives(filter).take(count).collect();
    assert!(filter.remove(&key));
    look_alikes
}

/// An adversary can search for look-alikes. With the hasher's key, a private copy of the filter is enough. Without
/// it, the search needs the real filter, and permission to insert and to look up. It takes `buckets · 2ᶠ / 2`
/// lookups for each look-alike: some 600,000 here, and 1.7 billion in a filter of a million keys.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn chosen_keys_harm_only_filters_with_this_hasher_key() {
    for secret in [1, 2] {
        let look_alikes = search_look_alikes(&keyed(secret, 300), 7, 40);
        let attacked = keyed(secret, 300);
        attacked.insert(&7).unwrap();
        assert_eq!(found(&attacked, &look_alikes), look_alikes.len(), "all seem to be present");
        let room = 2 * attacked.plan().layout.slots_per_bucket;
        let admitted = look_alikes.iter().filter(|key| attacked.insert(key).is_ok()).count();
        assert_eq!(admitted, room - 1, "refused in a nearly empty filter");

        let mut mistaken = 0;
        for other in 100..120 {
            let filter = keyed(other, 300);
            filter.insert(&7).unwrap();
            mistaken += found(&filter, &look_alikes);
            assert!(look_alikes.iter().all(|key| filter.insert(key).is_ok()), "with another key, they are any keys");
        }
        assert!(plausible(mistaken as f64, 0.0), "{mistaken} of {} were mistaken", 20 * look_alikes.len());
    }
}

/// An adversary who sees answers can collect false positives and replay them. But these say nothing about other
/// keys, and a filter with new hasher keys forgets them.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn answers_can_be_replayed_until_the_filter_is_rebuilt() {
    const COLLECTED: usize = 2000;
    for rate in [0.06, 0.001] {
        let build = |secret| {
            let builder = Keyed::builder_with_hasher(seeded(secret)).capacity(50_000);
            fill(builder.false_positive_rate(rate).build().unwrap())
        };
        let filter = build(1);
        let rate = filter.stats().false_positive_rate;
        let collected: Vec<u64> = false_positives(&filter).take(COLLECTED).collect();
        assert_eq!(found(&filter, &collected), COLLECTED, "each answer is the same again");

        let neighbours: Vec<u64> = collected.iter().flat_map(|key| (0..40).map(move |bit| key ^ 1 << bit)).collect();
        let (mistaken, expected) = (found(&filter, &neighbours) as f64, rate * neighbours.len() as f64);
        assert!(plausible(mistaken, expected), "{mistaken} neighbours of false positives for {expected}");

        let mistaken = (100..110).map(|secret| found(&build(secret), &collected)).sum::<usize>() as f64;
        let expected = rate * 10.0 * COLLECTED as f64;
        assert!(plausible(mistaken, expected), "{mistaken} after ten rebuilds for {expected}");
    }
}

/// Why a key should be removed only by its inserter: each removed false positive removes a present key with it.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn removing_false_positives_removes_present_keys() {
    let filter = fill(keyed(1, 100_000));
    let missed = || stored(&filter).filter(|key| !filter.contains(key)).count();

    // A user who removes only their own keys removes nothing of anybody else's.
    let (own, others) = stored(&filter).partition::<Vec<u64>, _>(|&key| key < 1000);
    assert!(own.iter().all(|key| filter.remove(key)));
    assert_eq!(found(&filter, &others), others.len());
    assert!(own.iter().all(|key| filter.insert(key).is_ok()));
    assert_eq!(missed(), 0);

    let collected: Vec<u64> = false_positives(&filter).take(1000).collect();
    let removed = collected.iter().filter(|key| filter.remove(key)).count();
    assert_eq!(filter.len(), filter.capacity() - removed);
    // Not exactly as many: if two present keys look alike, both are still found after the first removal.
    assert!((removed * 9 / 10..=removed).contains(&missed()), "{} present keys are missed after {removed}", missed());
}
