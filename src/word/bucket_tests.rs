use std::collections::BTreeSet;

use super::*;
use crate::word::layout::{
    ConstLayout, Lanes, RuntimeLayout, SHAPES, SHAPES_WITH_PAYLOAD, WithPayload, by_encoding, by_shape,
};
use crate::word::payloads::{OnlySlot, PayloadOps};
use proptest::prelude::*;

/// Hashes of which many collide in the low part of the fingerprint, in the high part, or in both.
fn hashes() -> impl Strategy<Value = u64> {
    // One of these has a bit in the high part of a layout, and none in the low part.
    let places = prop_oneof![Just(0x100), Just(0x0021_2121_2000)];
    prop_oneof![any::<u64>(), (0..3u64, 0..3u64, places).prop_map(|(low, high, places)| low | (high * places))]
}

/// The entry of a hash. Its payload is one of three, so that many are equal.
fn entry<L: Layout>(layout: L, hash: u64) -> Entry {
    layout.entry(layout.fingerprint_from(hash), (hash % 3) as u16)
}

fn slots<L: Layout>(layout: L) -> usize {
    layout.lanes().slots.into()
}

fn fill<L: Layout>(layout: L, entries: &[Entry]) -> Bucket {
    entries.iter().fold(Bucket::default(), |bucket, &e| layout.add(bucket, e).expect("there is room"))
}

fn sorted(entries: impl IntoIterator<Item = Entry>) -> Vec<u32> {
    let mut sorted: Vec<u32> = entries.into_iter().map(|e| e.0).collect();
    sorted.sort_unstable();
    sorted
}

/// Checks the questions about one entry and its fingerprint, where the first bucket holds `first`, and both hold
/// `stored`.
fn check_lookups<L: Layout>(
    layout: L,
    one: Entry,
    stored: &[Entry],
    first: &[Entry],
    first_bucket: Bucket,
    second_bucket: Bucket,
) {
    let fingerprint = layout.fingerprint_of(one);
    let has_it = |e: &&Entry| layout.fingerprint_of(**e) == fingerprint;
    assert_eq!(layout.count_entry(first_bucket, one), first.iter().filter(|&&e| e == one).count());
    assert_eq!(layout.count(first_bucket, fingerprint), first.iter().filter(has_it).count());
    assert_eq!(layout.holds_entry(first_bucket, one), first.contains(&one));
    let copies = stored.iter().filter(|&&e| e == one).count();
    assert_eq!(layout.count_entry_in_both(first_bucket, second_bucket, one), copies);
    assert_eq!(layout.either_holds(first_bucket, second_bucket, fingerprint), stored.iter().any(|e| has_it(&e)));
    // In registers for two words, and in integers.
    let lanes = layout.lanes_in_either(first_bucket, second_bucket, fingerprint);
    let buckets = [first_bucket, second_bucket];
    assert_eq!(layout.lanes_in(buckets, buckets.map(|b| layout.folded(b)), layout.pattern(fingerprint.0)), lanes);
    let payloads: BTreeSet<u16> = stored.iter().filter(has_it).map(|e| layout.payload_of(*e)).collect();
    assert_eq!(layout.values(first_bucket, second_bucket, fingerprint).iter().collect::<BTreeSet<_>>(), payloads);
    let OnlySlot { slot: found, several } = layout.only_slot(buckets, lanes);
    assert_eq!(found.exists(), !payloads.is_empty());
    assert!(several != 0 || stored.iter().filter(has_it).count() <= 1);
    if found.exists() && several == 0 {
        assert_eq!(BTreeSet::from([layout.payload_at(found)]), payloads);
    }
}

/// Checks what is asked of all entries with some payload, where the bucket holds `stored`.
fn check_payloads<L: Layout>(layout: L, stored: &[Entry], bucket: Bucket) {
    let mask = layout.payload().mask as u16;
    for one in (0..3).filter(|one| *one <= mask) {
        let (with, without): (Vec<Entry>, Vec<Entry>) = stored.iter().partition(|e| layout.payload_of(**e) == one);
        let lanes = layout.lanes_with(bucket, |payload| payload == one);
        assert_eq!(lanes, layout.lanes_with_payload(bucket, one));
        assert_eq!(layout.count_payloads(bucket, |payload| payload == one), with.len());
        for fingerprint in stored.iter().map(|e| layout.fingerprint_of(*e)) {
            let count = with.iter().filter(|&&other| layout.fingerprint_of(other) == fingerprint).count();
            assert_eq!(layout.count_with(bucket, fingerprint, |payload| payload == one), count);
        }
        let rest = layout.without_all(bucket, lanes);
        assert_eq!(sorted(layout.entries(rest)), sorted(without));
        assert!(layout.is_valid(rest));
    }
    #[cfg(feature = "snapshot")]
    for first in [0, 1, 2 & mask, mask / 2, mask - 1, mask] {
        for most in [0, 1, mask / 2, mask - 1, mask] {
            let range = crate::word::payloads::Payloads { first, most };
            let is_in = |payload: u16| payload.wrapping_sub(first) & mask <= most;
            for fingerprint in stored.iter().map(|e| layout.fingerprint_of(*e)) {
                let lanes = layout.lanes_with_any(bucket, layout.folded(bucket), layout.pattern(fingerprint.0), range);
                let one_by_one = layout.matches(bucket, fingerprint) & layout.lanes_with(bucket, is_in);
                assert_eq!(lanes, one_by_one, "{range:?} in {bucket:?}");
            }
        }
    }
}

/// A check of one layout.
trait Check: Copy {
    fn of<L: Layout>(self, layout: L);
}

/// Makes a check with layouts of every kind: as data, with a known encoding, and with a known row.
fn for_each_layout(check: impl Check) {
    for shape in SHAPES {
        let layout = RuntimeLayout::of(shape);
        check.of(layout);
        by_encoding!(&layout, known => check.of(known));
        by_shape!(shape, ROW => check.of(ConstLayout::<_, ROW>(&layout)));
    }
    let of_all = SHAPES_WITH_PAYLOAD.map(|shape| (shape.slots, 4));
    for (slots, bits) in of_all.into_iter().chain([(5, 1), (5, 2), (5, 7), (4, 8), (3, 15), (2, 16)]) {
        let shape = SHAPES_WITH_PAYLOAD.into_iter().find(|shape| shape.slots == slots).expect("there is one");
        let shape = shape.with_payload(bits).expect("it leaves enough");
        let layout = WithPayload::of(shape);
        check.of(layout);
        by_encoding!(&layout, known => check.of(known));
        by_shape!(with payload shape, ROW => check.of(ConstLayout::<_, ROW>(&layout)));
    }
}

/// Compares every operation with the same operation on a list of entries.
impl Check for (&[u64], u64, usize, prop::sample::Index) {
    fn of<L: Layout>(self, layout: L) {
        let (hashes, one, split, order) = self;
        let mut stored: Vec<_> = hashes.iter().take(slots(layout)).map(|&hash| entry(layout, hash)).collect();
        let one = entry(layout, one);

        let mut bucket = fill(layout, &stored);
        assert_eq!(sorted(layout.entries(bucket)), sorted(stored.clone()));
        assert_eq!(layout.occupied(bucket), stored.len());
        assert_eq!(layout.has_room(bucket), stored.len() < slots(layout));
        assert_eq!(layout.add_to(bucket, layout.room(bucket), one).is_some(), layout.has_room(bucket));
        assert!(layout.room(bucket) < layout.room(Bucket::default()) || stored.is_empty());

        let (first, second) = stored.split_at(split.min(stored.len()));
        let (first_bucket, second_bucket) = (fill(layout, first), fill(layout, second));
        for &e in stored.iter().chain([&one]) {
            check_lookups(layout, e, &stored, first, first_bucket, second_bucket);
        }

        for &e in stored.iter().chain([&one]) {
            let (in_first, found) = layout.find_in_either(first_bucket, second_bucket, e);
            assert_eq!(found.exists(), stored.contains(&e));
            if found.exists() {
                let held = if in_first { first } else { second };
                let mut rest = held.to_vec();
                rest.remove(held.iter().position(|&other| other == e).expect("it was found"));
                assert_eq!(found.bucket, if in_first { first_bucket } else { second_bucket });
                let without = layout.without(found);
                assert_eq!(sorted(layout.entries(without)), sorted(rest.clone()), "all but one are left");
                let other = layout.entry(layout.fingerprint_of(e), 1);
                rest.push(other);
                assert_eq!(sorted(layout.entries(layout.replace_at(found, e, other))), sorted(rest));
            }
        }

        if L::HAS_PAYLOAD {
            check_payloads(layout, &stored, bucket);
        }

        let sums = [(first_bucket, bucket), (bucket, second_bucket), (first_bucket, first_bucket)];
        for (to, others) in sums {
            let (sum, added) = layout.add_all(to, others);
            let of_others: Vec<Entry> = layout.entries(others).collect();
            let mut expected: Vec<Entry> = layout.entries(to).collect();
            assert_eq!(added, of_others.len().min(slots(layout) - expected.len()));
            expected.extend(&of_others[..added]);
            assert_eq!(sorted(layout.entries(sum)), sorted(expected), "the first ones are added, as many as fit");
        }

        match layout.add(bucket, one) {
            Some(more) => {
                let less = layout.remove(more, one).expect("it was just added");
                assert_eq!(sorted(layout.entries(less)), sorted(stored.clone()), "remove undoes add");
            }
            None => assert!(!layout.has_room(bucket)),
        }
        assert_eq!(layout.remove(bucket, one).is_some(), stored.contains(&one));
        let other = layout.entry(layout.fingerprint_of(one), 2);
        match layout.replace(bucket, one, other) {
            Some(replaced) => {
                let mut expected = stored.clone();
                let place = expected.iter().position(|&e| e == one).expect("it was in");
                expected[place] = other;
                assert_eq!(sorted(layout.entries(replaced)), sorted(expected));
                assert!(layout.is_valid(replaced));
            }
            None => assert!(!stored.contains(&one)),
        }

        while !stored.is_empty() {
            let e = stored.remove(order.index(stored.len()));
            bucket = layout.remove(bucket, e).expect("it is still in");
            assert_eq!(sorted(layout.entries(bucket)), sorted(stored.clone()));
        }
        assert_eq!(bucket, Bucket::default(), "emptied in any order, a bucket is as new");
    }
}

/// Checks which words are valid.
impl Check for (u64, u64, u64, &[u64], u32) {
    fn of<L: Layout>(self, layout: L) {
        let (word, mask, rank, stored, bit) = self;
        // Additions put the new lane below its equals, so adding from the top lane down leads to the same word.
        let reached = |word| {
            let stored: Vec<_> = layout.entries(word).collect();
            stored.into_iter().rev().fold(Bucket::default(), |bucket, f| layout.add(bucket, f).expect("room"))
        };
        let is_valid = |word: Bucket| {
            // A lane without a fingerprint is empty.
            if layout.entries(word).any(|e| layout.low(layout.fingerprint_of(e).0) == 0) {
                return false;
            }
            if layout.is_semi_sorted() {
                return reached(word) == word;
            }
            // Removals leave gaps anywhere, so only the bits outside all lanes count.
            let Lanes { first, bits, slots, .. } = layout.lanes();
            let lanes = (0..slots).map(|slot| u64::from(first) << (slot * bits)).fold(0, |all, lane| all | lane);
            word.0 & !lanes == 0
        };
        let lanes = layout.lanes().all();
        let ranked = if layout.is_semi_sorted() { rank << layout.lanes().rank_at } else { 0 };
        for word in [word, word & mask, word & lanes, word & mask & lanes | ranked, word & lanes | ranked] {
            assert_eq!(layout.is_valid(Bucket(word)), is_valid(Bucket(word)), "{:?}: {word:#x}", layout.shape());
        }
        let stored: Vec<_> = stored.iter().take(slots(layout)).map(|&hash| entry(layout, hash)).collect();
        let mut bucket = fill(layout, &stored);
        assert!(layout.is_valid(bucket));
        let changed = Bucket(bucket.0 ^ 1 << bit);
        assert_eq!(layout.is_valid(changed), is_valid(changed), "{:?}: {changed:?}", layout.shape());
        for f in stored {
            bucket = layout.remove(bucket, f).expect("it is in");
            assert!(layout.is_valid(bucket));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 10 } else { 4_000 }))]

    #[test]
    fn every_layout_agrees_with_a_list(
        stored in prop::collection::vec(hashes(), 0..9),
        one in hashes(),
        split in 0..9usize,
        order in any::<prop::sample::Index>(),
    ) {
        for_each_layout((&*stored, one, split, order));
    }

    #[test]
    fn a_word_is_valid_if_additions_lead_to_it(
        word in any::<u64>(),
        // Fewer bits and small ranks, so that many words are valid.
        mask in any::<u64>(),
        rank in prop_oneof![any::<u64>(), 0..64u64],
        stored in prop::collection::vec(hashes(), 0..9),
        bit in 0..64u32,
    ) {
        for_each_layout((word, mask, rank, &*stored, bit));
    }
}
