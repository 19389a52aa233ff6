use std::collections::BTreeSet;

use super::*;
use crate::word::layout::{
    ConstLayout, Lanes, RuntimeLayout, SHAPES, SHAPES_WITH_PAYLOAD, WithPayload, by_encoding, by_shape,
};
use crate::word::payloads::OnlySlot;
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
    entries.iter().fold(Bucket::default(), |bucket, &e| bucket.add(layout, e).expect("there is room"))
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
    assert_eq!(first_bucket.count_entry(layout, one), first.iter().filter(|&&e| e == one).count());
    assert_eq!(first_bucket.count(layout, fingerprint), first.iter().filter(has_it).count());
    assert_eq!(first_bucket.holds_entry(layout, one), first.contains(&one));
    let copies = stored.iter().filter(|&&e| e == one).count();
    assert_eq!(Bucket::count_entry_in_both(layout, [first_bucket, second_bucket], one), copies);
    assert_eq!(
        Bucket::either_holds(layout, [first_bucket, second_bucket], fingerprint),
        stored.iter().any(|e| has_it(&e))
    );
    // In registers for two words, and in integers.
    let lanes = Bucket::lanes_in_either(layout, [first_bucket, second_bucket], fingerprint);
    let buckets = [first_bucket, second_bucket];
    assert_eq!(
        Bucket::lanes_in(layout, buckets, buckets.map(|b| b.folded(layout)), Pattern::new(layout, fingerprint.0)),
        lanes
    );
    let payloads: BTreeSet<u16> = stored.iter().filter(has_it).map(|e| layout.payload_of(*e)).collect();
    assert_eq!(
        Bucket::values(layout, [first_bucket, second_bucket], fingerprint).iter().collect::<BTreeSet<_>>(),
        payloads
    );
    let OnlySlot { slot: found, several } = OnlySlot::of(buckets, lanes);
    assert_eq!(found.exists(), !payloads.is_empty());
    assert!(several != 0 || stored.iter().filter(has_it).count() <= 1);
    if found.exists() && several == 0 {
        assert_eq!(BTreeSet::from([found.payload(layout)]), payloads);
    }
}

/// Checks what is asked of all entries with some payload, where the bucket holds `stored`.
fn check_payloads<L: Layout>(layout: L, stored: &[Entry], bucket: Bucket) {
    let mask = layout.payload().mask as u16;
    for one in (0..3).filter(|one| *one <= mask) {
        let (with, without): (Vec<Entry>, Vec<Entry>) = stored.iter().partition(|e| layout.payload_of(**e) == one);
        let lanes = bucket.lanes_with(layout, |payload| payload == one);
        assert_eq!(lanes, bucket.lanes_with_payload(layout, one));
        assert_eq!(bucket.count_payloads(layout, |payload| payload == one), with.len());
        for fingerprint in stored.iter().map(|e| layout.fingerprint_of(*e)) {
            let count = with.iter().filter(|&&other| layout.fingerprint_of(other) == fingerprint).count();
            assert_eq!(bucket.count_with(layout, fingerprint, |payload| payload == one), count);
        }
        let rest = bucket.without_all(layout, lanes);
        assert_eq!(sorted(rest.entries(layout)), sorted(without));
        assert!(rest.is_valid(layout));
    }
    #[cfg(feature = "snapshot")]
    for first in [0, 1, 2 & mask, mask / 2, mask - 1, mask] {
        for most in [0, 1, mask / 2, mask - 1, mask] {
            let range = crate::word::payloads::Payloads { first, most };
            let is_in = |payload: u16| payload.wrapping_sub(first) & mask <= most;
            for fingerprint in stored.iter().map(|e| layout.fingerprint_of(*e)) {
                let lanes =
                    bucket.lanes_with_any(layout, bucket.folded(layout), Pattern::new(layout, fingerprint.0), range);
                let one_by_one = bucket.matches(layout, fingerprint) & bucket.lanes_with(layout, is_in);
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
        assert_eq!(sorted(bucket.entries(layout)), sorted(stored.clone()));
        assert_eq!(bucket.occupied(layout), stored.len());
        assert_eq!(bucket.has_room(layout), stored.len() < slots(layout));
        assert_eq!(bucket.add_to(layout, bucket.room(layout), one).is_some(), bucket.has_room(layout));
        assert!(bucket.room(layout) < Bucket::default().room(layout) || stored.is_empty());

        let (first, second) = stored.split_at(split.min(stored.len()));
        let (first_bucket, second_bucket) = (fill(layout, first), fill(layout, second));
        for &e in stored.iter().chain([&one]) {
            check_lookups(layout, e, &stored, first, first_bucket, second_bucket);
        }

        for &e in stored.iter().chain([&one]) {
            let (in_first, found) = Bucket::find_in_either(layout, [first_bucket, second_bucket], e);
            assert_eq!(found.exists(), stored.contains(&e));
            if found.exists() {
                let held = if in_first { first } else { second };
                let mut rest = held.to_vec();
                rest.remove(held.iter().position(|&other| other == e).expect("it was found"));
                assert_eq!(found.bucket, if in_first { first_bucket } else { second_bucket });
                let without = found.emptied(layout);
                assert_eq!(sorted(without.entries(layout)), sorted(rest.clone()), "all but one are left");
                let other = layout.entry(layout.fingerprint_of(e), 1);
                rest.push(other);
                assert_eq!(sorted(found.replaced(layout, e, other).entries(layout)), sorted(rest));
            }
        }

        if L::HAS_PAYLOAD {
            check_payloads(layout, &stored, bucket);
        }

        let sums = [(first_bucket, bucket), (bucket, second_bucket), (first_bucket, first_bucket)];
        for (to, others) in sums {
            let (sum, added) = to.add_all(layout, others);
            let of_others: Vec<Entry> = others.entries(layout).collect();
            let mut expected: Vec<Entry> = to.entries(layout).collect();
            assert_eq!(added, of_others.len().min(slots(layout) - expected.len()));
            expected.extend(&of_others[..added]);
            assert_eq!(sorted(sum.entries(layout)), sorted(expected), "the first ones are added, as many as fit");
        }

        match bucket.add(layout, one) {
            Some(more) => {
                let less = more.remove(layout, one).expect("it was just added");
                assert_eq!(sorted(less.entries(layout)), sorted(stored.clone()), "remove undoes add");
            }
            None => assert!(!bucket.has_room(layout)),
        }
        assert_eq!(bucket.remove(layout, one).is_some(), stored.contains(&one));
        let other = layout.entry(layout.fingerprint_of(one), 2);
        match bucket.replace(layout, one, other) {
            Some(replaced) => {
                let mut expected = stored.clone();
                let place = expected.iter().position(|&e| e == one).expect("it was in");
                expected[place] = other;
                assert_eq!(sorted(replaced.entries(layout)), sorted(expected));
                assert!(replaced.is_valid(layout));
            }
            None => assert!(!stored.contains(&one)),
        }

        while !stored.is_empty() {
            let e = stored.remove(order.index(stored.len()));
            bucket = bucket.remove(layout, e).expect("it is still in");
            assert_eq!(sorted(bucket.entries(layout)), sorted(stored.clone()));
        }
        assert_eq!(bucket, Bucket::default(), "emptied in any order, a bucket is as new");
    }
}

/// Checks which words are valid.
impl Check for (u64, u64, u64, &[u64], u32) {
    fn of<L: Layout>(self, layout: L) {
        let (word, mask, rank, stored, bit) = self;
        // Additions put the new lane below its equals, so adding from the top lane down leads to the same word.
        let reached = |word: Bucket| {
            let stored: Vec<_> = word.entries(layout).collect();
            stored.into_iter().rev().fold(Bucket::default(), |bucket, f| bucket.add(layout, f).expect("room"))
        };
        let is_valid = |word: Bucket| {
            // A lane without a fingerprint is empty.
            if word.entries(layout).any(|e| layout.low(layout.fingerprint_of(e).0) == 0) {
                return false;
            }
            if layout.is_semi_sorted() {
                return reached(word) == word;
            }
            // Removals leave gaps anywhere, so only the bits outside all lanes count.
            let Lanes { mask, bits, slots, .. } = layout.lanes();
            let lanes = (0..slots).map(|slot| u64::from(mask) << (slot * bits)).fold(0, |all, lane| all | lane);
            word.0 & !lanes == 0
        };
        let lanes = layout.lanes().all();
        let ranked = if layout.is_semi_sorted() { rank << layout.lanes().rank_at } else { 0 };
        for word in [word, word & mask, word & lanes, word & mask & lanes | ranked, word & lanes | ranked] {
            assert_eq!(Bucket(word).is_valid(layout), is_valid(Bucket(word)), "{:?}: {word:#x}", layout.shape());
        }
        let stored: Vec<_> = stored.iter().take(slots(layout)).map(|&hash| entry(layout, hash)).collect();
        let mut bucket = fill(layout, &stored);
        assert!(bucket.is_valid(layout));
        let changed = Bucket(bucket.0 ^ 1 << bit);
        assert_eq!(changed.is_valid(layout), is_valid(changed), "{:?}: {changed:?}", layout.shape());
        for f in stored {
            bucket = bucket.remove(layout, f).expect("it is in");
            assert!(bucket.is_valid(layout));
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
