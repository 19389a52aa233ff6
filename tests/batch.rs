//! Batches, and operations by hash: a batch does the same as operations on its single keys.

#[path = "support/kinds.rs"]
mod kinds;
mod support;

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, InsertError};
use kinds::{Table, in_each_layout};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::{LAYOUTS, Layout, Raw, build, hashes, scattered, seeded};

/// Sizes of batches: none, one, some, and a few more or less than the keys that are hashed at a time or prefetched
/// at a time.
fn sizes() -> impl Iterator<Item = usize> {
    let usual = [0, 1, 2, 31, 32, 33, 63, 64, 65].into_iter().chain(95..=129).chain([159, 160, 161, 1000, 3000]);
    usual.filter(|size| !cfg!(miri) || [0, 1, 33, 129].contains(size))
}

/// Every layout, or some of them under Miri.
fn layouts() -> impl Iterator<Item = Layout> {
    LAYOUTS.into_iter().step_by(if cfg!(miri) { 4 } else { 1 })
}

type Entry = (Raw, u64);

/// How many keys of a batch may have had no effect when the next one panics.
const UNDER_WAY: usize = 128;

/// What the operations on the single entries answer, up to the first that fails.
fn one_by_one<E, R>(
    entries: &[Entry],
    mut operation: impl FnMut(&Entry) -> Result<R, E>,
) -> (Vec<R>, Result<(), (usize, E)>) {
    let mut answers = Vec::new();
    let refused = entries.iter().enumerate().find_map(|(nth, entry)| match operation(entry) {
        Ok(answer) => {
            answers.push(answer);
            None
        }
        Err(error) => Some((nth, error)),
    });
    (answers, refused.map_or(Ok(()), Err))
}

/// Answers are appended to those that are already there. Some keys come twice, which takes up more room.
fn is_so_many_operations<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    for size in sizes() {
        let numbered = |(nth, key)| (key, number(nth));
        let mut entries: Vec<Entry> = (0..).zip(hashes(0, size)).map(numbered).collect();
        (5..size).step_by(5).for_each(|nth| entries[nth] = entries[nth - 1]);
        // With room for all, and for some.
        for capacity in [size * 3 / 2 + 10, size / 2] {
            let [single, batch] = [(); 2].map(|()| new(capacity));
            let (_, inserted) = one_by_one(&entries, |entry| single.insert(entry));
            assert_eq!(batch.insert_all(&entries), inserted);
            assert_eq!((batch.len(), batch.digest()), (single.len(), single.digest()));

            // Present and absent keys without a pattern.
            let mut random = SmallRng::seed_from_u64(size as u64);
            let absent = (0..).zip(hashes(size, size)).map(numbered);
            let asked: Vec<Entry> = absent
                .zip(&entries)
                .map(|(absent, &entry)| if random.random_bool(0.5) { entry } else { absent })
                .collect();
            let keys: Vec<Raw> = asked.iter().map(|(key, _)| *key).collect();
            assert_eq!(batch.contains_all(&keys), keys.iter().map(|key| single.contains(key)).collect::<Vec<_>>());
            assert_eq!(batch.remove_all(&asked), asked.iter().map(|entry| single.remove(entry)).collect::<Vec<_>>());
            assert_eq!((batch.len(), batch.digest()), (single.len(), single.digest()));

            let (expected, all) = one_by_one(&entries, |entry| single.insert_if_absent(entry));
            let mut added = vec![true];
            let count = batch.insert_all_absent(&entries, &mut added);
            assert_eq!(added[1..], expected);
            assert_eq!(count, all.map(|()| expected.iter().filter(|&&added| added).count()));
            assert_eq!((batch.len(), batch.digest()), (single.len(), single.digest()));
        }
        let Some(invalid) = new(10).invalid().filter(|_| size > 0) else { continue };
        entries[size / 2].1 = invalid;
        let [single, batch] = [(); 2].map(|()| new(size * 3 / 2 + 10));
        let (_, refused) = one_by_one(&entries, |entry| single.insert(entry));
        assert_eq!((batch.insert_all(&entries), batch.len()), (refused, size / 2));
        assert_eq!(batch.insert_all_absent(&entries, &mut Vec::new()).unwrap_err().0, size / 2);
        assert_eq!(batch.remove_all(&entries[size / 2..][..1]), [false]);
    }
}

#[test]
fn a_batch_is_so_many_operations_on_single_keys() {
    in_each_layout!(is_so_many_operations);
}

/// Tables of one bucket and of a few, in which many fingerprints are nearly that of another key. Most lookups that
/// compare further bits find nothing.
#[test]
fn a_batch_tells_near_collisions_apart_as_single_lookups_do() {
    for (encoding, rate, slots, _) in layouts() {
        for capacity in [1, 10, 40] {
            let filter = build(capacity, encoding, rate);
            let keys: Vec<Raw> = hashes(0, filter.plan().slots + 1).collect();
            let held = filter.insert_batch(&keys).unwrap_err().index;
            assert!(held >= slots, "a bucket's slots can all be taken");
            let asked: Vec<Raw> = hashes(0, if cfg!(miri) { 200 } else { 40_000 }).collect();
            let mut found = Vec::new();
            filter.contains_batch(&asked, &mut found);
            assert!(found[..held].iter().all(|&found| found));
            assert_eq!(found, asked.iter().map(|key| filter.contains(key)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_batch_goes_on_after_the_key_that_was_refused() {
    for before in [0, 1, 31, 32, 40, 128, 200] {
        // Ten copies of a key fill its two buckets. Fingerprints are long, so no other key takes a slot there.
        let filter = build(1000, Encoding::SemiSorted, 2e-6);
        let distinct: Vec<Raw> = hashes(0, before + 60).collect();
        let often = scattered(1 << 40);
        let keys = [&distinct[..before], &[often; 7], &distinct[before..]].concat();

        let error = filter.insert_batch(&keys).unwrap_err();
        assert_eq!(error.index, before + 6);
        assert!(matches!(error.error, InsertError::TooManyCopies { copies: 6, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!(" key {} ", before + 6)) && text.contains(&error.error.to_string()), "{text}");
        assert_eq!(filter.len(), before + 6);

        assert_eq!(filter.insert_batch(&keys[error.index + 1..]), Ok(()));
        assert_eq!((filter.len(), filter.count(&often)), (before + 66, 6));
        assert!(distinct.iter().all(|key| filter.contains(key)));
    }
}

/// Returns this many keys. It must not be called again after its end.
struct OnceOver<'a> {
    keys: std::slice::Iter<'a, Raw>,
    ended: bool,
}

impl<'a> Iterator for OnceOver<'a> {
    type Item = &'a Raw;

    fn next(&mut self) -> Option<&'a Raw> {
        assert!(!self.ended, "asked again after its end");
        let key = self.keys.next();
        self.ended = key.is_none();
        key
    }

    /// The hint is wrong, which is allowed.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (7, Some(7))
    }
}

#[test]
fn an_iterator_is_not_asked_again_after_its_end() {
    for size in sizes() {
        let filter = build(size as u64, Encoding::SemiSorted, 0.001);
        let keys: Vec<Raw> = hashes(0, size).collect();
        let once = || OnceOver { keys: keys.iter(), ended: false };
        let mut answers = Vec::new();
        assert_eq!(filter.insert_batch(once()), Ok(()));
        filter.contains_batch(once(), &mut answers);
        filter.remove_batch(once(), &mut answers);
        assert_eq!(answers, vec![true; 2 * size]);
    }
}

#[test]
fn a_refused_batch_takes_no_more_keys_than_are_under_way() {
    let filter = build(1000, Encoding::Plain, 0.01);
    let keys: Vec<Raw> = hashes(0, 10_000).collect();
    let mut taken = 0;
    let error = filter.insert_batch(keys.iter().inspect(|_| taken += 1)).unwrap_err();
    assert!((1..=UNDER_WAY).contains(&(taken - error.index)), "{taken} for {}", error.index);
}

/// A key whose hash is the number, or which panics.
#[derive(Clone, Copy)]
struct Fragile(Option<u64>);

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.expect("no hash").hash(state);
    }
}

/// Makes a batch panic at the key with that number: in the iterator, or in the key's `Hash`.
fn interrupted(keys: &[Fragile], at: usize, by_hash: bool, batch: impl FnOnce(&mut dyn Iterator<Item = &Fragile>)) {
    let panicking = Fragile(None);
    let mut keys = keys.iter().enumerate().map(|(i, key)| {
        assert!(i != at || by_hash, "no key");
        if i == at { &panicking } else { key }
    });
    catch_unwind(AssertUnwindSafe(|| batch(&mut keys))).expect_err("it panics");
}

/// The first keys are in, and no other one: none is lost, and none counts twice.
#[test]
fn a_batch_of_inserts_into_a_filter_that_grows_has_done_a_first_part_if_it_is_interrupted() {
    const KEYS: usize = if cfg!(miri) { 200 } else { 600 };
    let keys: Vec<Fragile> = (0..KEYS as u64).map(|key| Fragile(Some(key))).collect();
    for at in [0, 1, 31, 32, 33, 64, 96, 97, 127, 128, 129, 255, 513].into_iter().filter(|&at| at < KEYS) {
        for by_hash in [false, true] {
            let filter = GrowableCuckooFilter::<Fragile>::with_capacity(0);
            interrupted(&keys, at, by_hash, |keys| _ = filter.insert_batch(keys));
            let done = filter.len();
            assert!(done <= at && at - done <= UNDER_WAY, "{done} of the {at} keys before the panic");
            assert!(keys[..done].iter().all(|key| filter.remove(key)), "those that are in are the first");
            assert!(!keys.iter().any(|key| filter.contains(key)), "what was found is not what was counted");
        }
    }
}

#[test]
fn a_batch_that_is_interrupted_has_done_a_first_part() {
    const KEYS: usize = if cfg!(miri) { 200 } else { 600 };
    let keys: Vec<Fragile> = (0..KEYS as u64).map(|key| Fragile(Some(key))).collect();
    let positions =
        [0, 1, 31, 32, 33, 64, 96, 97, 127, 128, 129, 130, 159, 160, 161, 255, 256, 257, 500, 511, 512, 513];
    for at in positions.into_iter().filter(|at| !cfg!(miri) || [0, 33, 129].contains(at)) {
        for by_hash in [false, true] {
            let filter = ConcurrentCuckooFilter::<Fragile>::with_capacity(KEYS);
            let check = |done: usize, what| {
                assert!(done <= at && at - done <= UNDER_WAY, "{what}: {done} of the {at} keys before the panic");
            };
            interrupted(&keys, at, by_hash, |keys| _ = filter.insert_batch(keys));
            let done = filter.len();
            check(done, "inserted");
            assert!(keys[..done].iter().all(|key| filter.remove(key)), "those that are in are the first");
            assert!(!keys.iter().any(|key| filter.contains(key)), "what was found is not what was counted");

            filter.insert_batch(&keys).unwrap();
            let mut found = Vec::new();
            interrupted(&keys, at, by_hash, |keys| filter.contains_batch(keys, &mut found));
            check(found.len(), "found");
            assert!(found.iter().all(|&found| found));

            let mut removed = Vec::new();
            interrupted(&keys, at, by_hash, |keys| filter.remove_batch(keys, &mut removed));
            check(removed.len(), "removed");
            assert!(removed.iter().all(|&removed| removed));
            assert_eq!(filter.len(), KEYS - removed.len());
            assert!(keys[removed.len()..].iter().all(|key| filter.remove(key)), "those that are out are the first");
            assert!(filter.is_empty() && !keys.iter().any(|key| filter.contains(key)));

            let mut added = Vec::new();
            interrupted(&keys, at, by_hash, |keys| _ = filter.insert_if_absent_batch(keys, &mut added));
            check(added.len(), "added");
            assert_eq!(filter.len(), added.iter().filter(|&&added| added).count());
            assert!(keys[..added.len()].iter().all(|key| filter.contains(key)));
        }
    }
}

/// The iterator looks up and changes the same filter, for the same keys.
#[test]
fn an_iterator_may_use_the_filter() {
    const KEYS: usize = if cfg!(miri) { 140 } else { 500 };
    // Fingerprints are long, so no key is taken for another.
    let filter = build(4 * KEYS as u64, Encoding::Plain, 1e-9);
    let keys: Vec<Raw> = hashes(0, KEYS).collect();
    let given = Cell::new(0);
    let twice = keys.iter().inspect(|key| {
        filter.insert(key).unwrap();
        given.set(given.get() + 1);
        let lag = 2 * given.get() - filter.len();
        assert!((1..=UNDER_WAY).contains(&lag), "what the batch has put in is counted; it lags by {lag}");
    });
    assert_eq!(filter.insert_batch(twice), Ok(()));
    assert_eq!(filter.len(), 2 * KEYS);

    let mut found = Vec::new();
    let nested = keys.iter().inspect(|key| {
        let mut inner = Vec::new();
        filter.contains_batch([*key], &mut inner);
        assert_eq!((inner.as_slice(), filter.count(key)), ([true].as_slice(), 2));
    });
    filter.contains_batch(nested, &mut found);
    assert_eq!(found, vec![true; KEYS]);

    // A removal takes locks. It would wait forever here if one was held.
    let mut removed = Vec::new();
    filter.remove_batch(keys.iter().inspect(|key| assert!(filter.remove(key))), &mut removed);
    assert_eq!(removed, vec![true; KEYS]);
    assert!(filter.is_empty());

    filter.insert_batch(&keys).unwrap();
    removed.clear();
    filter.remove_batch(keys.iter().inspect(|_| filter.clear()), &mut removed);
    assert_eq!(removed, vec![false; KEYS]);
    assert!(filter.is_empty());
}

#[test]
fn the_operations_by_hash_are_those_by_key() {
    let filter = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(100, seeded(1));
    let [a, b] = ["a", "b"].map(|key| filter.hash_one(key));
    assert_eq!(a.0, std::hash::BuildHasher::hash_one(filter.hasher(), "a"));
    filter.by_hash().insert(a).unwrap();
    assert!(filter.contains("a") && filter.by_hash().contains(a) && !filter.by_hash().contains(b));
    assert_eq!(filter.by_hash().insert_if_absent(a), Ok(false));
    assert_eq!(filter.by_hash().insert_if_absent(b), Ok(true));
    filter.insert("a").unwrap();
    assert_eq!((filter.by_hash().count(a), filter.by_hash().count(b), filter.len()), (2, 1, 3));
    assert!(filter.by_hash().remove(b) && !filter.contains("b") && !filter.by_hash().remove(b));
    assert!(filter.remove("a") && filter.by_hash().remove(a) && filter.is_empty());
    let copies = (0..).find(|_| filter.by_hash().insert(a).is_err()).unwrap();
    assert_eq!(filter.by_hash().insert(a), filter.insert("a"));
    assert_eq!(filter.by_hash().insert_batch([a]).map_err(|error| error.error), filter.insert("a"));
    let (mut found, mut removed) = (Vec::new(), Vec::new());
    filter.by_hash().contains_batch([a, b], &mut found);
    filter.by_hash().remove_batch([b, b], &mut removed);
    assert_eq!((found, removed), (vec![true, false], vec![false; 2]));
    assert_eq!(filter.by_hash().count(a), copies);
}

/// Keys in the forms that callers have. (Most of this test is that it compiles.)
#[test]
fn batches_take_what_callers_have() {
    let mut found = Vec::new();
    let words = ["one", "two"].map(String::from).to_vec();

    let strings = ConcurrentCuckooFilter::<String, _>::with_capacity_and_hasher(10, seeded(1));
    strings.insert_batch(&words).unwrap();
    strings.contains_batch(["one", "two", "three"], &mut found);
    strings.remove_batch(words.iter().map(String::as_str), &mut found);
    assert_eq!(found, [true, true, false, true, true]);

    let slices = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(10, seeded(1));
    slices.insert_batch(words.iter().map(|word| &**word)).unwrap();
    slices.insert_batch("three four".split(' ')).unwrap();
    let mut answers = Vec::new();
    slices.contains_batch("one two three four five".split(' '), &mut answers);
    assert_eq!(answers, [true, true, true, true, false]);

    let bytes = ConcurrentCuckooFilter::<[u8]>::with_capacity(10);
    bytes.insert_batch(words.iter().map(|word| word.as_bytes())).unwrap();
    assert!(bytes.contains(b"one".as_slice()));

    let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(100);
    numbers.insert_batch(&[1, 2, 3]).unwrap();
    numbers.insert_batch(HashMap::from([(4, "four")]).keys()).unwrap();
    numbers.insert_batch(Some(&5)).unwrap();
    // Keys that are computed on the way cannot be borrowed. Their hashes can be used instead.
    numbers.by_hash().insert_batch((6..=50).map(|key| numbers.hash_one(&key))).unwrap();
    assert_eq!((1..=50).filter(|key| numbers.contains(key)).count(), 50);
    assert_eq!(numbers.len(), 50);
}
