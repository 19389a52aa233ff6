//! A table against a plain multiset of classes, one operation after the other.

use std::collections::HashMap;
use std::fmt::Debug;

use proptest::prelude::*;

use crate::error::insert::InsertError;
use crate::lookup::batch::{BLOCK, LookupBatch};
use crate::lookup::query::{Presence, Query};
use crate::machine::arch::VectorUnit;
use crate::machine::memory::Pages;
use crate::plan::sizing::LoadLimit;
use crate::plan::table_plan::TablePlan;
use crate::table::attempt::IfPresent;
use crate::table::copy_count::NextStep;
use crate::table::core::Core as _;
use crate::table::entries::{Entries, Nothing};
use crate::table::relocate::Effort;
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Fingerprint, Layout, SHAPES, Shape, by_encoding};

pub(super) type Class = (u32, usize, usize);

pub(super) fn class(item: Item) -> Class {
    (item.entry.0, item.first.min(item.second), item.first.max(item.second))
}

/// Whether all copies fit in the buckets of their pairs. Decided in another way than the table does: by augmenting
/// paths over an assignment of its own.
fn fits(copies: &[Class], buckets: usize, slots: usize) -> bool {
    fn place(copy: usize, copies: &[Class], held: &mut [Vec<usize>], slots: usize, tried: &mut [bool]) -> bool {
        let (_, low, high) = copies[copy];
        for bucket in [low, high] {
            if std::mem::replace(&mut tried[bucket], true) {
                continue;
            }
            if held[bucket].len() < slots {
                held[bucket].push(copy);
                return true;
            }
            for slot in 0..slots {
                if place(held[bucket][slot], copies, held, slots, tried) {
                    held[bucket][slot] = copy;
                    return true;
                }
            }
        }
        false
    }
    let mut held = vec![Vec::new(); buckets];
    (0..copies.len()).all(|copy| place(copy, copies, &mut held, slots, &mut vec![false; buckets]))
}

fn table(shape: Shape, buckets: usize) -> Table<Nothing> {
    Table::new(Pages::Usual, shape, buckets, Nothing).expect("a small table")
}

/// Runs the operations on a table, on one that knows its shape, and on a plain multiset of classes; every answer must
/// be the same.
fn compare(shape: Shape, buckets: usize, operations: &[(u8, u64)]) {
    let table = table(shape, buckets);
    let known = TablePlan::new(shape, buckets, LoadLimit::NONE, Pages::Usual).table().expect("a small table");
    let mut model: HashMap<Class, usize> = HashMap::new();
    for &(operation, hash) in operations {
        let item = table.item(hash);
        let copies = model.get(&class(item)).copied().unwrap_or(0);
        assert_eq!(table.contains(table.layout(), hash), copies > 0);
        assert_eq!(table.count(table.layout(), hash, 0), copies);
        assert_eq!((known.contains(hash), known.count(hash)), (copies > 0, copies));
        let mut failed = None;
        match operation {
            0..6 => {
                let inserted = table.insert(table.layout(), hash);
                assert_eq!(known.insert(hash), inserted);
                match inserted {
                    Ok(()) => *model.entry(class(item)).or_default() += 1,
                    Err(error) => failed = Some(error),
                }
            }
            6..8 => match (table.insert_if_absent(table.layout(), hash), known.insert_if_absent(hash)) {
                (Ok(added), Ok(added_too)) => {
                    assert_eq!(added, added_too);
                    assert_eq!(added, copies == 0);
                    model.insert(class(item), copies.max(1));
                }
                (answer, of_known) => {
                    assert_eq!(answer, of_known);
                    failed = answer.err();
                }
            },
            8..12 => {
                assert_eq!((table.remove(table.layout(), hash, 0), known.remove(hash)), (copies > 0, copies > 0));
                model.insert(class(item), copies.saturating_sub(1));
            }
            _ => {
                table.clear();
                known.clear();
                model.clear();
            }
        }
        let len = model.values().sum::<usize>();
        match failed {
            Some(InsertError::Full { len: reported, .. }) => {
                assert_eq!(reported, len);
                let present = model.iter().flat_map(|(&class, &copies)| vec![class; copies]);
                let wanted: Vec<_> = present.chain([class(item)]).collect();
                assert!(!fits(&wanted, buckets, shape.slots as usize), "full, though a path exists");
            }
            Some(InsertError::TooManyCopies { copies: reported, .. }) => {
                assert_eq!(reported, copies);
                assert_eq!(copies, table.slots_of(item));
            }
            None => {}
        }
        assert_eq!((table.counters.len(), known.len()), (len, len));
        let occupied = |bucket| table.load(bucket).occupied(table.layout);
        assert_eq!((0..buckets).map(occupied).sum::<usize>(), len, "what was found by looking into every bucket");
    }
    for (&(fingerprint, first, second), &copies) in &model {
        let bucket_sum = table.geometry.bucket_sum(Fingerprint(fingerprint));
        let item = Item { entry: Entry(fingerprint), first, second, bucket_sum };
        assert_eq!(
            table.copies_of_item(table.layout(), item),
            copies,
            "a failed insert, or any other, has changed something"
        );
    }
}

fn run(buckets: usize, operations: &[(u8, u64)]) {
    for shape in SHAPES {
        compare(shape, buckets, operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 200 }))]

    #[test]
    fn a_table_is_a_multiset_of_classes(
        buckets in prop_oneof![1..9usize, 9..40usize],
        operations in prop::collection::vec((0..12u8, any::<u64>()), 0..if cfg!(miri) { 20 } else { 400 }),
    ) {
        run(buckets, &operations);
    }

    #[test]
    fn a_table_is_a_multiset_of_classes_where_few_keys_come_often(
        buckets in 1..6usize,
        keys in 1..12u64,
        operations in prop::collection::vec((0..13u8, any::<u64>()), 0..if cfg!(miri) { 20 } else { 300 }),
    ) {
        let operations: Vec<_> = operations.into_iter().map(|(operation, hash)| (operation, hash % keys)).collect();
        run(buckets, &operations);
    }
}

fn compare_vector_units(shape: Shape) {
    let table = table(shape, 500);
    let insert = |_, hash| table.insert(table.layout(), hash).expect("room");
    let contains = |hash| table.contains(table.layout(), hash);
    assert_all_vector_units_find_the_same(&table, Presence::WITH_ANY, insert, contains);
}

/// Lookups in batches, in a table three quarters full: by every vector unit that this processor has, and by the code
/// that needs none. `insert` is given a number and its hash.
pub(super) fn assert_all_vector_units_find_the_same<E: Entries, Q>(
    table: &Table<E>,
    query: Q,
    insert: impl Fn(u64, u64),
    look_up: impl Fn(u64) -> Q::Answer,
) where
    Q: Query<Answer: Debug + PartialEq>,
{
    let hash = |number: u64| number.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let len = table.words.len() as u64 * u64::from(table.layout.shape().slots) * 3 / 4;
    (0..len).for_each(|number| insert(number, hash(number)));
    // Present and absent hashes, and a last block that is not full.
    let asked: Vec<u64> = (0..2 * len + 5).map(|number| hash(number * 7 % (2 * len))).collect();
    let expected: Vec<Q::Answer> = asked.iter().map(|&hash| look_up(hash)).collect();
    for unit in VectorUnit::all() {
        let (mut blocks, mut answers) = (asked.chunks(BLOCK), Vec::new());
        let mut hashes = |block: &mut [u64; BLOCK]| {
            let hashes = blocks.next().unwrap_or_default();
            block[..hashes.len()].copy_from_slice(hashes);
            hashes.len()
        };
        let answers_of = &mut |some: &[Q::Answer]| answers.extend_from_slice(some);
        by_encoding!(table.layout(), layout => {
            let lookup = table.lookup(layout).batch(query);
            unit.run(LookupBatch { lookup, hashes: &mut hashes, answers: answers_of });
        });
        assert_eq!(answers, expected, "{unit:?}, {:?}", table.layout.shape());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has none")]
fn all_vector_units_find_the_same() {
    for shape in SHAPES {
        compare_vector_units(shape);
    }
}

#[test]
fn tables_up_to_the_budget_fill_to_the_last_item_that_fits() {
    for buckets in [1, 2, 3, 4, 5, 10, 51, 100] {
        let table = table(Shape::semi_sorted(3, 22), buckets);
        let mut copies = Vec::new();
        for hash in (1..).map(|i: u64| i.wrapping_mul(0x2545_f491_4f6c_dd1d)) {
            let item = table.item(hash);
            copies.push(class(item));
            if table.insert(table.layout(), hash).is_err() {
                break;
            }
        }
        assert!(!fits(&copies, buckets, 3), "{buckets} buckets: the insert of item {} failed", copies.len());
        assert!(fits(&copies[..copies.len() - 1], buckets, 3));
    }
}

/// Other threads may take all the room that an insert makes. After a few searches it excludes them.
#[test]
fn an_insert_excludes_other_threads_after_a_few_searches() {
    let table = table(Shape::plain(8, 8), 64);
    let (mut effort, mut searches) = (Effort::NONE, 0);
    while !effort.is_exhausted() {
        assert_eq!(table.make_room(table.item(1), IfPresent::Add, &mut effort), NextStep::TryAgain, "there is room");
        searches += 1;
        assert!(searches <= 4, "as the guide says");
    }
    assert!(searches > 1, "a search or two need no lock");
}
