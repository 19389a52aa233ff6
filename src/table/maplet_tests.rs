//! A table with payloads against a plain multiset of items, one operation after the other.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use crate::error::insert::InsertError;
use crate::lookup::query::AllValues;
use crate::machine::memory::Pages;
use crate::plan::sizing::LoadLimit;
use crate::plan::table_plan::TablePlan;
use crate::table::core::Core as _;
use crate::table::entries::Value;
use crate::table::table::Table;
use crate::table::table_tests::{Class, assert_all_vector_units_find_the_same, class};
use crate::word::layout::{SHAPES_WITH_PAYLOAD, Shape};

fn table(shape: Shape, buckets: usize) -> Table<Value> {
    Table::new(Pages::Usual, shape, buckets, Value).expect("a small table")
}

/// Each shape with a payload, of one width.
fn shapes() -> impl Iterator<Item = Shape> {
    SHAPES_WITH_PAYLOAD
        .into_iter()
        .zip([4, 2, 10, 15, 16])
        .map(|(shape, bits)| shape.with_payload(bits).expect("it leaves enough"))
}

/// Runs the operations on a table and on a plain multiset of items; every answer must be the same.
fn compare(shape: Shape, buckets: usize, operations: &[(u8, u64, u16, u16)]) {
    let table = TablePlan::new(shape, buckets, LoadLimit::NONE, Pages::Usual).table_of_values().expect("a small table");
    let same = self::table(shape, buckets);
    let item_of = |hash| same.item(hash);
    let mut model: HashMap<Class, Vec<u16>> = HashMap::new();
    for &(operation, hash, one, other) in operations {
        let (one, other) = (one & 3, other & 3);
        let held = model.entry(class(item_of(hash))).or_default();
        let set: BTreeSet<u16> = held.iter().copied().collect();
        let copies_of_one = held.iter().filter(|&&value| value == one).count();
        assert_eq!(table.values(hash).iter().collect::<BTreeSet<_>>(), set);
        assert_eq!(table.contains(hash), !held.is_empty());
        assert_eq!(table.count(hash, one), copies_of_one);
        let mut failed = None;
        match operation {
            0..4 => match table.insert(hash, one) {
                Ok(()) => held.push(one),
                Err(error) => failed = Some(error),
            },
            4 => match table.insert_if_absent(hash, one) {
                Ok(found) => {
                    assert_eq!(found.iter().collect::<BTreeSet<_>>(), set);
                    if found.is_empty() {
                        held.push(one);
                    }
                }
                Err(error) => {
                    assert!(held.is_empty(), "a key that is in needs no room");
                    failed = Some(error);
                }
            },
            5 => {
                assert_eq!(table.remove(hash, one), copies_of_one > 0);
                if let Some(place) = held.iter().position(|&value| value == one) {
                    held.remove(place);
                }
            }
            _ => {
                assert_eq!(table.replace(hash, one, other), copies_of_one > 0);
                if let Some(place) = held.iter().position(|&value| value == one) {
                    held[place] = other;
                }
            }
        }
        if let Some(InsertError::TooManyCopies { copies, .. }) = failed {
            assert_eq!(copies, held.len(), "all values of the key count");
        }
        let len = model.values().map(Vec::len).sum::<usize>();
        assert_eq!(table.len(), len);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 200 }))]

    #[test]
    fn a_table_with_payloads_is_a_multiset_of_items(
        buckets in (1..6usize).prop_map(|half| if half == 5 { 1 } else { 2 * half }),
        keys in 1..12u64,
        operations in prop::collection::vec(
            (0..9u8, any::<u64>(), any::<u16>(), any::<u16>()),
            0..if cfg!(miri) { 20 } else { 200 },
        ),
    ) {
        let operations: Vec<_> =
            operations.into_iter().map(|(operation, hash, one, other)| (operation, hash % keys, one, other)).collect();
        for shape in shapes() {
            compare(shape, buckets, &operations);
        }
    }
}

fn compare_vector_units(shape: Shape) {
    let table = table(shape, 500);
    let insert = |number, hash| {
        let item = table.item_with(hash, (number & 1) as u16);
        table.insert_value(table.layout(), item).expect("room");
    };
    let values = |hash| table.values(table.layout(), hash);
    assert_all_vector_units_find_the_same(&table, AllValues, insert, values);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has none")]
fn all_vector_units_find_the_same_values() {
    for shape in shapes() {
        compare_vector_units(shape);
    }
}
