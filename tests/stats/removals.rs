//! The count of removals that found nothing.

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Tick};

use crate::kinds::{Table, in_each_layout};
use crate::support::{build, hashes, scattered};
use crate::{kinds, support};

fn counts_what_was_not_found<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let (filter, mut not_found) = (new(3000), 0);
    let entries: Vec<_> = (0..100).map(|nth| (scattered(nth), number(nth))).collect();
    assert_eq!(filter.insert(&entries[7]), Ok(true));
    assert!(filter.remove(&entries[7]));
    // Also one with a number that no entry can have.
    for absent in [entries[7], entries[7], (entries[8].0, filter.invalid().unwrap_or(0))] {
        assert!(!filter.remove(&absent));
        not_found += 1;
        assert_eq!(filter.stats().removals_not_found, not_found, "{filter:?}");
    }
    // More than two blocks, of which some have what they remove.
    assert_eq!(filter.insert_all(&entries[..35]), Ok(()));
    assert_eq!(filter.remove_all(&entries).iter().filter(|&&removed| removed).count(), 35, "{filter:?}");
    let answers = (filter.contains(&entries[1].0), filter.clear());
    assert_eq!((answers, filter.stats().removals_not_found), ((false, ()), not_found + 65), "{filter:?}");
}

/// Of each type, and of no other call.
#[test]
fn each_removal_that_finds_nothing_counts_once() {
    in_each_layout!(counts_what_was_not_found);
}

/// By hash, and of entries that expire the removals without an end.
#[test]
fn so_does_each_other_form() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
    assert!(!filter.by_hash().remove(filter.hash_one(&7)));
    assert_eq!(filter.stats().removals_not_found, 1);
    let filter = ExpiringCuckooFilter::<u64>::builder().capacity(1000).lifetime_in_ticks(14).build().unwrap();
    filter.advance_to(Tick::new(10));
    filter.insert_until(&7, Tick::new(20)).unwrap();
    assert!(filter.remove(&7) && !filter.remove(&7));
    let mut removed = Vec::new();
    filter.remove_batch(&[7, 8], &mut removed);
    assert_eq!((filter.stats().removals_not_found, removed), (3, vec![false; 2]));
    filter.insert_until(&7, Tick::new(20)).unwrap();
    filter.advance_to(Tick::new(20));
    assert!(!filter.remove(&7) && !filter.remove_expiring_at(&7, Tick::new(20)));
    assert_eq!(filter.stats().removals_not_found, 5, "it had expired");
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
