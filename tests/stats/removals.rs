//! The count of removals that found nothing.

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Tick,
};

use crate::support::{build, hashes};

/// Of each type and each form, and of no other call.
#[test]
fn each_removal_that_finds_nothing_counts_once_whichever_it_is() {
    macro_rules! check {
        ($filter:expr, $insert:expr, $($remove:expr),+; $batch:expr) => {{
            let filter = $filter;
            let mut not_found = 0;
            $(
                $insert(&filter, 7);
                assert!($remove(&filter, 7));
                for absent in [7, 7, 1_000] {
                    assert!(!$remove(&filter, absent));
                    not_found += 1;
                    assert_eq!(filter.stats().removals_not_found, not_found);
                }
            )+
            // More than two blocks, of which some have what they remove.
            (0..35).for_each(|key| $insert(&filter, key));
            let mut removed = Vec::new();
            $batch(&filter, &mut removed);
            assert_eq!(removed.iter().filter(|&&removed| removed).count(), 35);
            not_found += removed.len() as u64 - 35;
            assert_eq!(filter.stats().removals_not_found, not_found);
            let answers = (filter.contains(&1), filter.clear(), filter.is_empty());
            assert_eq!((answers, filter.stats().removals_not_found), ((false, (), true), not_found));
        }};
    }
    let keys: Vec<u64> = (0..100).collect();
    check!(
        ConcurrentCuckooFilter::<u64>::with_capacity(1000),
        |filter: &ConcurrentCuckooFilter<u64>, key| filter.insert(&key).unwrap(),
        |filter: &ConcurrentCuckooFilter<u64>, key| filter.remove(&key),
        |filter: &ConcurrentCuckooFilter<u64>, key| filter.by_hash().remove(filter.hash_one(&key));
        |filter: &ConcurrentCuckooFilter<u64>, removed: &mut Vec<bool>| filter.remove_batch(&keys, removed)
    );
    check!(
        GrowableCuckooFilter::<u64>::with_capacity(1000),
        |filter: &GrowableCuckooFilter<u64>, key| filter.insert(&key).unwrap(),
        |filter: &GrowableCuckooFilter<u64>, key| filter.remove(&key);
        |filter: &GrowableCuckooFilter<u64>, removed: &mut Vec<bool>| filter.remove_batch(&keys, removed)
    );
    // A value with too many bits cannot have been inserted.
    let value = |key: u64| if key == 1_000 { 1_000 } else { 5 };
    check!(
        CuckooMaplet::<u64>::builder().capacity(1000).value_bits(4).build().unwrap(),
        |maplet: &CuckooMaplet<u64>, key| maplet.insert(&key, 5).unwrap(),
        |maplet: &CuckooMaplet<u64>, key| maplet.remove(&key, value(key));
        |maplet: &CuckooMaplet<u64>, removed: &mut Vec<bool>| {
            maplet.remove_batch(keys.iter().chain([&1_000]).map(|key| (key, value(*key))), removed)
        }
    );
    let expiring = || {
        let builder = ExpiringCuckooFilter::<u64>::builder().capacity(1000).lifetime_in_ticks(14);
        let filter = builder.build().unwrap();
        filter.advance_to(Tick::new(10));
        filter
    };
    let insert = |filter: &ExpiringCuckooFilter<u64>, key| _ = filter.insert_until(&key, Tick::new(20)).unwrap();
    check!(
        expiring(),
        insert,
        |filter: &ExpiringCuckooFilter<u64>, key| filter.remove(&key),
        |filter: &ExpiringCuckooFilter<u64>, key| filter.remove_expiring_at(&key, Tick::new(20));
        |filter: &ExpiringCuckooFilter<u64>, removed: &mut Vec<bool>| {
            filter.remove_batch(&keys, removed);
            // An end that no entry can have.
            filter.remove_expiring_at_batch(keys.iter().map(|key| (key, Tick::new(1_000))), removed);
        }
    );
    let filter = expiring();
    insert(&filter, 7);
    filter.advance_to(Tick::new(20));
    assert!(!filter.remove(&7) && !filter.remove_expiring_at(&7, Tick::new(20)));
    assert_eq!(filter.stats().removals_not_found, 2, "it had expired");
}

/// A program that removes what it has not inserted loses keys, and this count is what it can see of it.
#[test]
fn removals_of_keys_that_were_never_inserted_show() {
    let filter = build(10_000, Encoding::Plain, 0.03);
    hashes(0, 10_000).for_each(|key| filter.insert(&key).unwrap());
    let taken = hashes(1_000_000, 10_000).filter(|key| filter.remove(key)).count();
    let lost = hashes(0, 10_000).filter(|key| !filter.contains(key)).count();
    assert!(taken > 50 && lost > taken / 2 && lost <= taken, "{taken} {lost}");
    assert_eq!((filter.stats().removals_not_found, filter.len()), (10_000 - taken as u64, 10_000 - taken));
}

/// Also while a filter is being replaced by a larger one, where a removal looks in two tables, maybe several times.
#[test]
fn a_removal_from_a_filter_that_grows_counts_once() {
    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    let mut not_found = 0;
    for key in 0..20_000 {
        filter.insert(&key).unwrap();
        not_found += u64::from(!filter.remove(&(1 << 40 | key)));
        assert_eq!(filter.stats().removals_not_found, not_found);
    }
    assert!(not_found > 19_000 && filter.capacity() > 10_000, "{not_found}");
}
