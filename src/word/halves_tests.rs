use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::word::classes::Class;
use crate::word::geometry::mixed;
use crate::word::layout::{Encoding, Entry, NEVER_ZERO};
use crate::word::layouts::{EntryList, Layouts};

/// Classes, a depth at which their buckets can be split, the encoding that was asked for, and the number of a bucket.
fn split_bucket() -> impl Strategy<Value = (Classes, u32, Option<Encoding>, usize)> {
    let encoding = prop_oneof![Just(None), Just(Some(Encoding::Plain)), Just(Some(Encoding::SemiSorted))];
    (NEVER_ZERO..=24, NEVER_ZERO + 1..=u32::BITS, 1u32..u32::BITS, encoding, any::<usize>()).prop_map(
        |(base_bits, stored_bits, depth, encoding, number)| {
            // So that each number of bits comes up, and with it each pair of layouts.
            let stored_bits = stored_bits.max(base_bits + 1);
            let depth = depth.min(u32::BITS - (stored_bits - base_bits));
            let classes = Classes::new(base_bits, depth + stored_bits - base_bits);
            (classes, depth, encoding, number & ((1 << depth) - 1))
        },
    )
}

/// The class of this hash, with other bits on the side of the bucket, so that its copies are there.
fn class_in(classes: Classes, number: usize, depth: u32, hash: u64) -> Class {
    let class = classes.of(mixed(hash));
    classes.of_stored(number, depth, classes.stored(class, depth))
}

/// The halves of a bucket, by the classes of its copies, one by one.
fn by_classes(
    (classes, depth, number): (Classes, u32, usize),
    (from, to): (&'static GrowingLayout, &'static GrowingLayout),
    whole: Bucket,
) -> [Bucket; 2] {
    let mut halves = [EntryList::default(); 2];
    for entry in from.entries(whole) {
        let class = classes.of_stored(number, depth, entry.0);
        let half = (class.sides[number % 2] >> depth) as usize & 1;
        halves[half].push(Entry(classes.stored(class, depth + 1)));
    }
    halves.map(|half| to.of(half).expect("a deeper bucket has as many slots"))
}

fn sorted(layout: &'static GrowingLayout, bucket: Bucket) -> Vec<u32> {
    let mut all: Vec<u32> = layout.entries(bucket).map(|entry| entry.0).collect();
    all.sort_unstable();
    all
}

proptest! {
    /// Each half has the copies of the classes whose next bit is its own, with what its slots store of them.
    #[test]
    fn each_copy_goes_to_the_half_of_its_side(
        (classes, depth, encoding, number) in split_bucket(),
        hashes in vec(any::<u64>(), 0..=MOST_SLOTS),
        taken_out: u8,
    ) {
        let layouts = Layouts::new(classes, encoding, depth..=depth + 1).expect("some kilobytes");
        let (from, to) = (layouts.at(depth), layouts.at(depth + 1));
        let stored: Vec<u32> = hashes
            .iter()
            .take(from.slots())
            .map(|&hash| classes.stored(class_in(classes, number, depth, hash), depth))
            .collect();
        let mut whole = Bucket::default();
        for &stored in &stored {
            whole = from.add(whole, stored).expect("there is room");
        }
        // Removals leave gaps in a plain bucket.
        for (_, &stored) in stored.iter().enumerate().filter(|(nth, _)| taken_out >> nth & 1 != 0) {
            whole = from.remove(whole, stored).expect("it is in");
        }
        let halves = Halves::new(classes, depth, from, to).of(number, whole);
        let expected = by_classes((classes, depth, number), (from, to), whole);
        for (half, expected) in halves.into_iter().zip(expected) {
            prop_assert_eq!(sorted(to, half), sorted(to, expected), "{:?} from {:?} to {:?}", whole, from, to);
        }
        #[cfg(feature = "snapshot")]
        prop_assert!(halves.iter().all(|&half| to.is_valid(half, classes.stored_bits(depth + 1))));
    }
}

/// The property above meets each pair of layouts: these are all that follow each other, by the number of bits of a slot.
#[test]
fn slots_are_taken_one_by_one_only_where_the_layout_changes_or_is_semi_sorted() {
    let way = |base_bits: u32, stored_bits: u32, encoding: Option<Encoding>| {
        let classes = Classes::new(base_bits, 8 + stored_bits - base_bits);
        let layouts = Layouts::new(classes, encoding, 8..=9).expect("some kilobytes");
        match Halves::new(classes, 8, layouts.at(8), layouts.at(9)).way {
            SplitMethod::AtOnce { .. } => "at once",
            SplitMethod::InOrder => "in order",
            SplitMethod::Sorted => "sorted",
        }
    };
    let of_each = |encoding| (9..=32).map(|bits| (bits, way(8, bits, encoding))).collect::<Vec<_>>();
    // Eight and seven slots of 8 and 9 bits, six of 10 and 12, five of 14, four of 16 and 17, three of 21 and 22, two of 32.
    let differs = |bits: u32| [8, 9, 10, 12, 14, 16, 17, 21, 22].contains(&(bits - 1));
    for (bits, way) in of_each(None) {
        let is_semi_sorted = |bits: u32| matches!(bits, 11 | 12 | 13 | 14 | 17 | 22);
        let expected = match (differs(bits), is_semi_sorted(bits), is_semi_sorted(bits - 1)) {
            (false, false, _) => "at once",
            (false, true, _) | (true, _, false) => "in order",
            (true, _, true) => "sorted",
        };
        assert_eq!(way, expected, "{bits} bits");
    }
    assert!(of_each(Some(Encoding::Plain)).iter().all(|&(_, way)| way != "sorted"));
    assert_eq!(way(8, 13, Some(Encoding::SemiSorted)), "sorted");
    // A base that reaches into the high parts: what is left of them may be in another order.
    assert_eq!((way(10, 14, None), way(11, 14, None)), ("in order", "sorted"));
}
