use super::*;
use crate::word::layout::{OfFilter, Plain, SemiSorted, WithPayload};
use crate::word::payloads::{OnlyCandidate, PayloadOps};
use proptest::prelude::*;

const CASES: u32 = if cfg!(miri) { 10 } else { 4_000 };

/// Hashes of which many collide in the low part of the fingerprint, in the nibble, or in both.
fn hashes() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), (0..3u64, 0..3u64).prop_map(|(low, high)| low | (high * 0x0021_2121_2000))]
}

/// The entry of a hash. Its payload is one of three, so that many are equal.
fn entry<L: Layout>(layout: L, hash: u64) -> Entry {
    layout.entry(layout.fingerprint(hash), (hash % 3) as u16)
}

/// The payload of an entry, from the bits of its lane.
fn payload_in<L: Layout>(layout: L, entry: Entry) -> u16 {
    ((u64::from(entry.0) & layout.payload()) >> layout.payload_shift()) as u16
}

fn fill<L: Layout>(layout: L, entries: &[Entry]) -> Bucket {
    entries.iter().fold(Bucket::default(), |bucket, &e| layout.add(bucket, e).expect("there is room"))
}

fn sorted(entries: impl IntoIterator<Item = Entry>) -> Vec<u32> {
    let mut sorted: Vec<u32> = entries.into_iter().map(|e| e.0).collect();
    sorted.sort_unstable();
    sorted
}

/// Compares every operation with the same operation on a list of entries.
fn check<L: Layout>(layout: L, hashes: &[u64], one: u64, split: usize, order: prop::sample::Index) {
    let mut stored: Vec<_> = hashes.iter().take(L::SLOTS as usize).map(|&hash| entry(layout, hash)).collect();
    let one = entry(layout, one);

    let mut bucket = fill(layout, &stored);
    assert_eq!(sorted(layout.entries(bucket)), sorted(stored.clone()));
    assert_eq!(layout.occupied(bucket), stored.len());
    assert_eq!(layout.has_room(bucket), stored.len() < L::SLOTS as usize);
    assert_eq!(layout.add_to(bucket, layout.room(bucket), one).is_some(), layout.has_room(bucket));
    assert!(layout.room(bucket) < layout.room(Bucket::default()) || stored.is_empty());

    let (first, second) = stored.split_at(split.min(stored.len()));
    let (first_bucket, second_bucket) = (fill(layout, first), fill(layout, second));
    for &e in stored.iter().chain([&one]) {
        check_lookups(layout, e, &stored, first, first_bucket, second_bucket);
    }

    for &e in stored.iter().chain([&one]) {
        let (in_first, candidate) = layout.place(first_bucket, second_bucket, e);
        assert!(candidate.exists() || !stored.contains(&e), "what is in is a candidate");
        if candidate.exists() && layout.confirms(candidate, layout.fingerprint_of(e)) {
            let held = if in_first { first } else { second };
            let mut rest = held.to_vec();
            rest.remove(held.iter().position(|&other| other == e).expect("it was confirmed"));
            assert_eq!(candidate.word, if in_first { first_bucket } else { second_bucket });
            let without = layout.without_candidate(candidate);
            assert_eq!(sorted(layout.entries(without)), sorted(rest.clone()), "all but one are left");
            let other = layout.entry(layout.fingerprint_of(e), 1);
            rest.push(other);
            assert_eq!(sorted(layout.entries(layout.replace_candidate(candidate, e, other))), sorted(rest));
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
        assert_eq!(added, of_others.len().min(L::SLOTS as usize - expected.len()));
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
    assert_eq!(layout.holds(first_bucket, fingerprint), first.iter().any(|e| has_it(&e)));
    match layout.either_contains(first_bucket, second_bucket, fingerprint) {
        Some(found) => assert_eq!(found, stored.iter().any(|e| has_it(&e))),
        None => {
            let low = L::LANE & !layout.payload();
            let differences = stored.iter().map(|&e| (layout.fingerprint_of(e).0 ^ fingerprint.0) as u64);
            assert!(L::SEMI_SORTED && differences.into_iter().any(|bits| bits != 0 && bits & low == 0));
        }
    }
    let payload = |e: &Entry| payload_in(layout, *e);
    let mut payloads: Vec<u16> = stored.iter().filter(has_it).map(payload).collect();
    payloads.sort_unstable();
    payloads.dedup();
    assert_eq!(layout.values(first_bucket, second_bucket, fingerprint).iter().collect::<Vec<_>>(), payloads);
    let OnlyCandidate { candidate, several } =
        layout.only_candidate(first_bucket, second_bucket, layout.pattern(fingerprint));
    assert!(candidate.exists() || payloads.is_empty(), "what is in is a candidate");
    assert!(several != 0 || stored.iter().filter(has_it).count() <= 1, "all of them are");
    if candidate.exists() && several == 0 {
        assert_eq!(layout.value_of(candidate, fingerprint).iter().collect::<Vec<_>>(), payloads);
    }
}

/// Checks what is asked of all entries with some payload, where the bucket holds `stored`.
fn check_payloads<L: Layout>(layout: L, stored: &[Entry], bucket: Bucket) {
    let payload = |e: &Entry| payload_in(layout, *e);
    for one in 0..3 {
        let (with, without): (Vec<Entry>, Vec<Entry>) = stored.iter().partition(|e| payload(e) == one);
        let lanes = layout.lanes_with(bucket, |payload| payload == one);
        assert_eq!(lanes, layout.lanes_with_payload(bucket, one));
        assert_eq!(layout.count_payloads(bucket, |payload| payload == one), with.len());
        for &e in stored {
            let fingerprint = layout.fingerprint_of(e);
            let count = with.iter().filter(|&&other| layout.fingerprint_of(other) == fingerprint).count();
            assert_eq!(layout.count_with(bucket, fingerprint, |payload| payload == one), count);
        }
        let rest = layout.without_all(bucket, lanes);
        assert_eq!(sorted(layout.entries(rest)), sorted(without));
        assert!(layout.is_valid(rest));
    }
}

/// A layout of `L` with so many payload bits.
fn with<L: OfFilter>(payload_bits: u32) -> WithPayload<L> {
    WithPayload::try_of(L::SHAPE.with_payload(payload_bits).expect("it leaves enough")).expect("memory")
}

macro_rules! check_layouts {
    ($($name:ident: $layout:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(CASES))]
            $(#[test]
            fn $name(
                stored in prop::collection::vec(hashes(), 0..9),
                one in hashes(),
                split in 0..9usize,
                order in any::<prop::sample::Index>(),
            ) {
                check($layout, &stored, one, split, order);
            })*
        }
    };
}

check_layouts! {
    plain_8_agrees_with_a_list: Plain::<8, 8>::new();
    plain_7_agrees_with_a_list: Plain::<7, 9>::new();
    plain_6_agrees_with_a_list: Plain::<6, 10>::new();
    plain_5_agrees_with_a_list: Plain::<5, 12>::new();
    plain_4_agrees_with_a_list: Plain::<4, 16>::new();
    plain_3_agrees_with_a_list: Plain::<3, 21>::new();
    plain_2_agrees_with_a_list: Plain::<2, 32>::new();
    semi_sorted_6_agrees_with_a_list: SemiSorted::<6, 12>::new();
    semi_sorted_5_agrees_with_a_list: SemiSorted::<5, 14>::new();
    semi_sorted_4_agrees_with_a_list: SemiSorted::<4, 17>::new();
    semi_sorted_3_agrees_with_a_list: SemiSorted::<3, 22>::new();
    semi_sorted_6_with_payload_agrees_with_a_list: with::<SemiSorted<6, 12>>(4);
    semi_sorted_5_with_payload_agrees_with_a_list: with::<SemiSorted<5, 14>>(2);
    semi_sorted_5_with_much_payload_agrees_with_a_list: with::<SemiSorted<5, 14>>(7);
    semi_sorted_4_with_payload_agrees_with_a_list: with::<SemiSorted<4, 17>>(8);
    semi_sorted_3_with_payload_agrees_with_a_list: with::<SemiSorted<3, 22>>(15);
    plain_2_with_payload_agrees_with_a_list: with::<Plain<2, 32>>(16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_word_is_valid_if_additions_lead_to_it(
        word in any::<u64>(),
        // Fewer bits and small ranks, so that many words are valid.
        mask in any::<u64>(),
        rank in prop_oneof![any::<u64>(), 0..64u64],
        stored in prop::collection::vec(hashes(), 0..9),
        bit in 0..64u32,
    ) {
        fn check<L: Layout>(layout: L, word: u64, mask: u64, rank: u64, stored: &[u64], bit: u32) {
            // Additions put the new lane below its equals, so adding from the top lane down leads to the same word.
            let reached = |word| {
                let stored: Vec<_> = layout.entries(word).collect();
                stored.into_iter().rev().fold(Bucket::default(), |bucket, f| layout.add(bucket, f).expect("room"))
            };
            let is_valid = |word: Bucket| {
                // A lane without a fingerprint is empty.
                if layout.entries(word).any(|e| u64::from(layout.fingerprint_of(e).0) & L::LANE == 0) {
                    return false;
                }
                if L::SEMI_SORTED {
                    return reached(word) == word;
                }
                // Removals leave gaps anywhere, so only the bits outside all lanes count.
                let lanes = (0..L::SLOTS).map(|slot| L::LANE << (slot * L::LANE_BITS)).fold(0, |all, lane| all | lane);
                word.0 & !lanes == 0
            };
            let bits = L::SLOTS * L::LANE_BITS;
            let lanes = all::<L>(L::LANE_BITS);
            let ranked = if bits < 64 { rank.checked_shl(bits).unwrap_or(0) } else { 0 };
            for word in [word, word & mask, word & lanes, word & mask & lanes | ranked, word & lanes | ranked] {
                assert_eq!(layout.is_valid(Bucket(word)), is_valid(Bucket(word)), "{:?}: {word:#x}", L::SHAPE);
            }
            let stored: Vec<_> = stored.iter().take(L::SLOTS as usize).map(|&hash| entry(layout, hash)).collect();
            let mut bucket = fill(layout, &stored);
            assert!(layout.is_valid(bucket));
            let changed = Bucket(bucket.0 ^ 1 << bit);
            assert_eq!(layout.is_valid(changed), is_valid(changed), "{:?}: {changed:?}", L::SHAPE);
            for f in stored {
                bucket = layout.remove(bucket, f).expect("it is in");
                assert!(layout.is_valid(bucket));
            }
        }
        check(Plain::<8, 8>::new(), word, mask, rank, &stored, bit);
        check(Plain::<7, 9>::new(), word, mask, rank, &stored, bit);
        check(Plain::<6, 10>::new(), word, mask, rank, &stored, bit);
        check(SemiSorted::<6, 12>::new(), word, mask, rank, &stored, bit);
        check(Plain::<5, 12>::new(), word, mask, rank, &stored, bit);
        check(SemiSorted::<5, 14>::new(), word, mask, rank, &stored, bit);
        check(Plain::<4, 16>::new(), word, mask, rank, &stored, bit);
        check(SemiSorted::<4, 17>::new(), word, mask, rank, &stored, bit);
        check(Plain::<3, 21>::new(), word, mask, rank, &stored, bit);
        check(SemiSorted::<3, 22>::new(), word, mask, rank, &stored, bit);
        check(Plain::<2, 32>::new(), word, mask, rank, &stored, bit);
        check(with::<SemiSorted<5, 14>>(4), word, mask, rank, &stored, bit);
        check(with::<SemiSorted<3, 22>>(12), word, mask, rank, &stored, bit);
        check(with::<Plain<2, 32>>(16), word, mask, rank, &stored, bit);
    }
}

#[test]
fn a_fingerprint_whose_low_bits_are_all_zero_takes_a_slot() {
    fn check<L: Layout>(layout: L) {
        for hash in [0, 1 << L::LANE_BITS, u64::MAX << L::LANE_BITS] {
            let f = layout.fingerprint(hash);
            let bucket = fill(layout, &[layout.entry(f, 0)]);
            assert_eq!(layout.occupied(bucket), 1, "{:?}", L::SHAPE);
            assert_eq!(layout.either_contains(Bucket::default(), bucket, f), Some(true), "{:?}", L::SHAPE);
        }
    }
    check(Plain::<4, 16>::new());
    check(SemiSorted::<5, 14>::new());
    check(with::<SemiSorted<5, 14>>(7));
    check(with::<Plain<2, 32>>(16));
}
