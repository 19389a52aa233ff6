use super::*;
use crate::growth::plan::Wanted;
use crate::word::classes::Classes;

/// Whatever led to its size: splits, or merges.
#[test]
fn a_table_that_has_another_size_is_like_a_new_one_of_that_size() {
    for rate in [0.1, 0.001] {
        let wanted = Wanted { capacity: 0, max_capacity: Some(10_000), expected: None, rate, encoding: None };
        let plan = Plan::new(wanted).expect("it is possible");
        let table = GrowingTable::new(plan).expect("some kilobytes");
        let is_like_new = |memory: bool| {
            let new = GrowingTable::of_buckets(plan, table.state().buckets()).expect("some kilobytes");
            assert_eq!((table.state(), table.capacity()), (new.state(), new.capacity()));
            assert!(!memory || table.memory_usage() == new.memory_usage(), "{table:?}");
        };
        is_like_new(true);
        while table.split_group().is_ok() {
            is_like_new(true);
        }
        assert_eq!(table.state().buckets(), plan.largest);
        // On the heap, what was allocated stays.
        while table.merge_group() {
            is_like_new(false);
        }
        assert_eq!(table.state().buckets(), plan.first);
    }
}

/// A table has a stripe for 16 of its first buckets: 32 at least, unless it stays too small for these, and 1,024 at most.
/// Its counters have as many shards as those of a table of 16 times as many buckets.
#[test]
fn stripes_and_counters_are_made_for_the_first_size() {
    for (first, largest, stripes, counted_by) in [
        (1 << 5, 1 << 5, 2, 1 << 5),
        (1 << 5, 1 << 8, 16, 1 << 8),
        (1 << 5, 1 << 20, 32, 1 << 9),
        (1 << 10, 1 << 20, 64, 1 << 14),
        (1 << 13, 1 << 20, 512, 1 << 15),
        (1 << 20, 1 << 20, 1024, 1 << 15),
    ] {
        let plan = Plan { largest, ..Plan::of(Classes::new(12, 20), first, None) };
        let made = (GrowingTable::stripes_of(&plan), GrowingTable::counted_by(&plan));
        assert_eq!(made, (stripes, counted_by), "{first}, {largest}");
    }
}
