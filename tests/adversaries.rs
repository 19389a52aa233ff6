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

/// All of them seem to be present when one is. And a key whose two buckets are full is refused: if an adversary fills them
/// one pair at a time, with keys of one fingerprint for each pair, no path leads out of a pair.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn without_a_key_chosen_keys_look_alike_and_deny_others_the_square_of_their_share() {
    const CAPACITY: usize = 2000;
    let new = || Unkeyed::with_capacity_and_hasher(CAPACITY, BuildHasherDefault::default());
    let buckets = buckets(&new());
    let look_alikes = look_alikes(buckets, buckets / 2, 250_000_000);
    let (filter, alike) = (new(), &look_alikes[0]);
    let room = 2 * filter.plan().layout.slots_per_bucket;
    filter.insert(&alike[0]).unwrap();
    assert!(alike.len() > 2 * room && found(&filter, alike) == alike.len(), "all seem to be present though one is");
    (1..room).for_each(|nth| filter.insert(&alike[nth]).unwrap());
    for key in &alike[room..] {
        let refused = filter.insert(key);
        assert!(matches!(refused, Err(InsertError::TooManyCopies { copies, .. }) if copies == room), "{refused:?}");
    }
    assert!(filter.stats().load_factor < 0.01, "refused in a nearly empty filter");

    for share in [0.1, 0.3, 0.5] {
        let (unkeyed, keyed) = (new(), keyed(1, CAPACITY));
        // A pair has an even bucket and an odd one.
        for keys in look_alikes.iter().take((share * buckets as f64) as usize).step_by(2) {
            assert!(keys[..room].iter().all(|key| unkeyed.insert(key).is_ok() && keyed.insert(key).is_ok()));
        }
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

        let neighbors: Vec<u64> = collected.iter().flat_map(|key| (0..40).map(move |bit| key ^ 1 << bit)).collect();
        let (mistaken, expected) = (found(&filter, &neighbors) as f64, rate * neighbors.len() as f64);
        assert!(plausible(mistaken, expected), "{mistaken} neighbors of false positives for {expected}");

        let mistaken = (100..110).map(|secret| found(&build(secret), &collected)).sum::<usize>() as f64;
        let expected = rate * 10.0 * COLLECTED as f64;
        assert!(plausible(mistaken, expected), "{mistaken} after ten rebuilds for {expected}");
    }
}
