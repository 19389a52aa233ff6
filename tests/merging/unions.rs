//! The union of filters, which may be repeated.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{AbsorbError, Encoding, GrowableCuckooFilter, Tick, WhenFull};

use crate::kinds::{Table, in_each_layout};
use crate::support::{Ends, Filter, Raw, build, hashes, scattered};
use crate::{Expiring, Growable, Hasher, Maplet, expiring, filter, growable, kinds, support};

/// A filter as a set: each of its entries is in at most once.
trait Set: Table {
    fn add(&self, entry: (u64, u64));
}

macro_rules! set {
    ($Type:ty, |$set:ident, $key:ident, $number:ident| $add:expr) => {
        impl Set for $Type {
            fn add(&self, ($key, $number): (u64, u64)) {
                let ($set, $key, _) = (self, Raw($key), $number);
                $add
            }
        }
    };
}

set!(Filter, |set, key, number| _ = set.insert_if_absent(&key).unwrap());
set!(Growable, |set, key, number| _ = set.insert_if_absent(&key).unwrap());
set!(Maplet, |set, key, number| if !set.values(&key).contains(number as u16) {
    set.insert(&key, number as u16).unwrap();
});
set!(Expiring, |set, key, number| _ = set.insert_or_renew_until(&key, Tick::new(number)).unwrap());

/// Checks the laws of a union, with three filters that hold what these hold. `new` makes an empty one.
fn obeys_the_laws<S: Set>(new: impl Fn() -> S, entries: [&[(u64, u64)]; 3]) {
    let of = |entries: &[&[(u64, u64)]]| {
        let set = new();
        entries.iter().copied().flatten().for_each(|&entry| set.add(entry));
        set
    };
    let union = |sets: &[&S]| {
        let all = new();
        sets.iter().for_each(|set| _ = all.unite(set).unwrap());
        all
    };
    let [a, b, c] = entries.map(|entries| of(&[entries]));
    let digests = [&a, &b, &c].map(Table::digest);
    let both = of(&entries[..2]).digest();
    let all = of(&entries).digest();

    let [ab, bc] = [union(&[&a, &b]), union(&[&b, &c])];
    assert_eq!((ab.digest(), union(&[&b, &a]).digest()), (both, both), "commutative");
    assert_eq!((union(&[&ab, &c]).digest(), union(&[&a, &bc]).digest()), (all, all), "associative");
    let repeated = union(&[&c, &a, &b, &a, &c, &ab]);
    assert_eq!((repeated.digest(), repeated.unite(&b), repeated.unite(&bc)), (all, Ok(0), Ok(0)), "idempotent");
    assert_eq!(
        ([&a, &b, &c].map(|set| set.unite(set)), [&a, &b, &c].map(Table::digest)),
        ([Ok(0), Ok(0), Ok(0)], digests),
        "as they were"
    );

    // Three nodes in a ring, each of which asks only the next one.
    let nodes = [&a, &b, &c];
    for nth in 0..6 {
        nodes[nth % 3].unite(nodes[(nth + 1) % 3]).unwrap();
    }
    assert_eq!(nodes.map(Table::digest), [all; 3]);
}

/// In one of the sets a key has another number than in the others. Of several ends the later one counts.
fn is_a_union<S: Set>(new: impl Fn(usize) -> S, number: impl Fn(u64) -> u64) {
    for [a, b, c] in [[0..700, 350..1050, 1000..1100], [0..0, 0..600, 0..600], [3..4, 0..1400, 700..800]] {
        let set =
            |range: Range<u64>, shift| -> Vec<_> { range.map(|nth| (scattered(nth).0, number(nth + shift))).collect() };
        obeys_the_laws(|| new(6000), [&set(a, 0), &set(b, 1), &set(c, 0)]);
    }
}

#[test]
fn a_union_is_commutative_associative_and_idempotent() {
    in_each_layout!(is_a_union);
}

/// Several copies here stay, and of several there one comes.
#[test]
fn copies_are_counted_as_is_said() {
    let [ours, theirs] = [(); 2].map(|()| filter());
    let [x, y, z] = [1, 2, 3].map(|nth| hashes(nth, 1).next().unwrap());
    [&x, &x, &y].into_iter().for_each(|key| ours.insert(key).unwrap());
    [&x, &z, &z, &z].into_iter().for_each(|key| theirs.insert(key).unwrap());
    assert_eq!(ours.unite(&theirs), Ok(1));
    assert_eq!([&x, &y, &z].map(|key| ours.count(key)), [2, 1, 1]);
    assert_eq!(theirs.len(), 4);
}

/// What does not fit is said, nothing is lost, and with room the union can be repeated.
#[test]
fn a_union_that_fails_can_be_repeated() {
    let [all, first, second] = [(); 3].map(|()| build(1000, Encoding::SemiSorted, 0.001));
    let quarter = all.plan().slots / 4;
    let (ours, theirs): (Vec<_>, Vec<_>) =
        (hashes(0, 2 * quarter).collect(), hashes(quarter, all.capacity()).collect());
    ours.iter().for_each(|key| _ = all.insert_if_absent(key).unwrap());
    theirs.iter().for_each(|key| _ = first.insert_if_absent(key).unwrap());
    let before = all.len() as u64;
    let error = all.unite(&first).unwrap_err();
    let AbsorbError::Full { absorbed, len, .. } = &error else { panic!("{error}") };
    assert!(*absorbed > 0 && *len as u64 == before + absorbed, "{error}");
    assert_eq!(all.len(), *len);
    assert!(error.to_string().contains("more capacity"), "{error}");
    assert!(ours.iter().all(|key| all.contains(key)));
    // Room is made, and the call repeated.
    ours[..quarter].iter().for_each(|key| assert!(all.remove(key)));
    assert!(all.unite(&first).unwrap() > 0);
    assert!(theirs.iter().all(|key| all.contains(key)));
    assert_eq!((all.unite(&first), all.unite(&second)), (Ok(0), Ok(0)));
}

/// What differs is named as by `absorb`, and nothing changes.
#[test]
fn what_is_not_alike_is_refused() {
    let [small, large] = [100, 1000].map(|capacity| build(capacity, Encoding::SemiSorted, 0.001));
    assert!(matches!(small.unite(&large), Err(AbsorbError::Layout { .. })));
    let [behind, ahead] = [1000, 1001].map(|tick| {
        let filter = expiring(100, 14);
        filter.advance_to(Tick::new(tick));
        filter
    });
    assert!(matches!(behind.unite(&ahead), Err(AbsorbError::ClockBehind { .. })));
    assert_eq!(ahead.unite(&behind), Ok(0));
}

/// Their smallest and their largest tables have the same layouts, and those in between do not. Before the settings were
/// compared, a union was garbled: keys of the other filter were not found in it.
#[test]
fn growable_filters_of_other_encodings_are_refused() {
    let build = |encoding: Option<Encoding>, expected, most: Option<usize>| {
        let builder = GrowableCuckooFilter::<Raw>::builder().false_positive_rate(1e-5).capacity(0);
        let builder = builder.expected_keys(expected).hasher(Hasher::default());
        let builder = encoding.into_iter().fold(builder, |builder, encoding| builder.encoding(encoding));
        most.into_iter().fold(builder, |builder, most| builder.max_capacity(most)).build().unwrap()
    };
    for (encoding, expected, most) in [
        (Encoding::Plain, 10_000, None),
        (Encoding::SemiSorted, 10_000, Some(100_000)),
        (Encoding::SemiSorted, 1000, Some(100_000)),
    ] {
        let (any, other) = (build(None, expected, most), build(Some(encoding), expected, most));
        let before = other.digest();
        assert_ne!(any.digest(), before, "{any:?} and {other:?}, both empty");
        hashes(0, 9000).for_each(|key| any.insert(&key).unwrap());
        for result in [other.unite(&any), other.absorb(&any)] {
            let error = result.unwrap_err();
            assert!(matches!(error, AbsorbError::Settings), "{error}");
            assert!(error.to_string().contains("encoding"), "{error}");
        }
        assert_eq!(other.digest(), before, "nothing has changed");
    }
}

/// A filter that is united with one like it, again and again, does not grow, whatever the order of sizes.
#[test]
fn a_growable_filter_grows_for_what_it_lacks_only() {
    let [small, large] = [(); 2].map(|()| growable(100));
    hashes(0, 50).for_each(|key| _ = small.insert_if_absent(&key).unwrap());
    hashes(0, 20_000).for_each(|key| _ = large.insert_if_absent(&key).unwrap());
    let before = large.capacity();
    assert_eq!(small.unite(&large), Ok((large.len() - 50) as u64));
    assert_eq!(small.digest().unwrap(), large.digest().unwrap());
    let after = small.capacity();
    for _ in 0..5 {
        assert_eq!((small.unite(&large), large.unite(&small)), (Ok(0), Ok(0)));
    }
    assert_eq!((large.capacity(), small.capacity()), (before, after));
}

/// With `WhenFull::EvictSoonest`, what would end first goes, as for any insert.
#[test]
fn a_full_filter_evicts_for_a_union() {
    let [ours, theirs] = [(); 2].map(|()| {
        let builder = concurrent_cuckoo_filter::ExpiringCuckooFilter::<Raw>::builder().capacity(1000);
        let builder = builder.lifetime_in_ticks(14).when_full(WhenFull::EvictSoonest);
        let filter = builder.hasher(Hasher::default()).build().unwrap();
        filter.advance_to(Tick::new(1000));
        filter
    });
    hashes(0, 900).for_each(|key| _ = ours.insert_until(&key, Tick::new(1001 + key.0 % 3)).unwrap());
    hashes(5000, 900).for_each(|key| _ = theirs.insert_until(&key, Tick::new(1010)).unwrap());
    assert!(ours.unite(&theirs).unwrap() > 890, "some look like others");
    assert!(hashes(5000, 900).all(|key| ours.contains(&key)));
    assert!(ours.stats().expiry.unwrap().evicted_early_by > 0);
}

/// Threads add these entries to both filters, unite each with the other, and do something that moves entries.
fn race<F: Table>([one, other]: [&F; 2], keys: &[Raw], disturb: impl Fn(&F) + Sync) {
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let disturb = &disturb;
        let disturbing = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                disturb(one);
                disturb(other);
            }
        });
        let _ends = Ends(done);
        let add = |filter: &F| keys.iter().for_each(|&key| _ = filter.insert_if_absent(&(key, 0)).unwrap());
        let adding = [one, other].map(|filter| scope.spawn(move || add(filter)));
        let unite = |(into, from): (&F, &F)| (0..3).for_each(|_| _ = into.unite(from).unwrap());
        let uniting = [(one, other), (other, one)].map(|both| scope.spawn(move || unite(both)));
        adding.into_iter().chain(uniting).for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
        disturbing.join().unwrap();
    });
}

/// Threads add the same keys that come by unions, from filters in which others relocate them. In the end each is in once.
#[test]
fn each_key_is_in_once_whoever_brings_it() {
    let keys: Vec<Raw> = hashes(0, 1200).collect();
    for round in 0..if cfg!(debug_assertions) { 20 } else { 60 } {
        let filters = [(); 2].map(|()| build(3000, Encoding::Plain, 1e-9));
        let extra = hashes(90_000 + 10 * round, 1).next().unwrap();
        // Copies of one key fill its buckets, push others to their alternate buckets, and go again.
        race(filters.each_ref(), &keys, |filter| {
            let copies = (0..2).filter(|_| filter.insert(&extra).is_ok()).count();
            (0..copies).for_each(|_| _ = filter.remove(&extra));
        });
        for filter in filters {
            assert!(keys.iter().all(|key| filter.count(key) == 1), "lost or doubled");
            keys.iter().for_each(|key| assert!(filter.remove(key)));
            // A union may have brought back a copy of the other key.
            assert!(filter.len() <= 3, "{} are left", filter.len());
        }

        let filters = [(); 2].map(|()| growable(100));
        race(filters.each_ref(), &keys, |filter| filter.shrink_to_fit());
        let expected = growable(100);
        keys.iter().for_each(|key| _ = expected.insert_if_absent(key).unwrap());
        assert_eq!(filters.map(|filter| filter.digest().unwrap()), [expected.digest().unwrap(); 2]);
    }
}
