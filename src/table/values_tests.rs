//! A table with payloads against a plain multiset of items, one operation after the other.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use crate::error::insert::InsertError;
use crate::machine::memory::Pages;
use crate::table::any::{AnyTable, MapletTable};
use crate::table::tests::assert_all_vector_units_find_the_same;
use crate::table::words::Table;
use crate::word::geometry::{Buckets, Item};
use crate::word::layout::{OfFilter, Plain, SemiSorted, WithPayload};

fn table<L: OfFilter>(buckets: usize, payload_bits: u32) -> Table<WithPayload<L>> {
    let shape = L::SHAPE.with_payload(payload_bits).expect("it leaves enough");
    let layout = WithPayload::try_of(shape).expect("memory");
    Table::with_geometry(Pages::Usual, layout, Buckets::new(buckets), 0).expect("a small table")
}

/// A class: a fingerprint and its pair.
type Class = (u32, usize, usize);

fn class(item: Item) -> Class {
    (item.entry.0, item.first.min(item.second), item.first.max(item.second))
}

/// Runs the operations on a table and on a plain multiset of items; every answer must be the same.
fn compare<L: OfFilter>(buckets: usize, payload_bits: u32, operations: &[(u8, u64, u16, u16)]) {
    let table = table::<L>(buckets, payload_bits);
    let table: &dyn MapletTable = &table;
    let item_of = |hash| {
        let same = self::table::<L>(buckets, payload_bits);
        same.item(hash)
    };
    let mut model: HashMap<Class, Vec<u16>> = HashMap::new();
    for &(operation, hash, one, other) in operations {
        let (one, other) = (one & 3, other & 3);
        let held = model.entry(class(item_of(hash))).or_default();
        let set: BTreeSet<u16> = held.iter().copied().collect();
        let copies_of_one = held.iter().filter(|&&value| value == one).count();
        assert_eq!(table.values(hash).iter().collect::<BTreeSet<_>>(), set);
        assert_eq!(table.contains(hash), !held.is_empty());
        assert_eq!(table.count_value(hash, one), copies_of_one);
        let mut refused = None;
        match operation {
            0..4 => match table.insert_value(hash, one) {
                Ok(()) => held.push(one),
                Err(error) => refused = Some(error),
            },
            4 => match table.insert_value_if_absent(hash, one) {
                Ok(found) => {
                    assert_eq!(found.iter().collect::<BTreeSet<_>>(), set);
                    if found.is_empty() {
                        held.push(one);
                    }
                }
                Err(error) => {
                    assert!(held.is_empty(), "a key that is in needs no room");
                    refused = Some(error);
                }
            },
            5 => {
                assert_eq!(table.remove_value(hash, one), copies_of_one > 0);
                if let Some(place) = held.iter().position(|&value| value == one) {
                    held.remove(place);
                }
            }
            _ => {
                assert_eq!(table.replace_value(hash, one, other), copies_of_one > 0);
                if let Some(place) = held.iter().position(|&value| value == one) {
                    held[place] = other;
                }
            }
        }
        if let Some(InsertError::TooManyCopies { copies, .. }) = refused {
            assert_eq!(copies, held.len(), "all values of the key count");
        }
        let len = model.values().map(Vec::len).sum::<usize>();
        assert_eq!(AnyTable::len(table), len);
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
        compare::<SemiSorted<6, 12>>(buckets, 4, &operations);
        compare::<SemiSorted<5, 14>>(buckets, 2, &operations);
        compare::<SemiSorted<4, 17>>(buckets, 10, &operations);
        compare::<SemiSorted<3, 22>>(buckets, 15, &operations);
        compare::<Plain<2, 32>>(buckets, 16, &operations);
    }
}

/// Lookups of values in batches, by every vector unit that this processor has, and by the code that needs none.
fn compare_vector_units<L: OfFilter>(payload_bits: u32) {
    let table = table::<L>(500, payload_bits);
    let insert = |number, hash| table.insert_value(hash, (number & 1) as u16).expect("room");
    assert_all_vector_units_find_the_same(&table, insert, |hash| MapletTable::values(&table, hash));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has none")]
fn all_vector_units_find_the_same_values() {
    compare_vector_units::<SemiSorted<6, 12>>(4);
    compare_vector_units::<SemiSorted<5, 14>>(4);
    compare_vector_units::<SemiSorted<4, 17>>(4);
    compare_vector_units::<SemiSorted<3, 22>>(8);
    compare_vector_units::<Plain<2, 32>>(16);
}
