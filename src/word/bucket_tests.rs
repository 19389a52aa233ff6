use super::*;
use crate::word::layout::{Plain, SemiSorted};
use proptest::prelude::*;

const CASES: u32 = if cfg!(miri) { 10 } else { 4_000 };

/// Hashes of which many collide in the low part of the fingerprint, in the nibble, or in both.
fn hashes() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), (0..3u64, 0..3u64).prop_map(|(low, high)| low | (high * 0x0021_2121_2000))]
}

fn fill<L: Layout>(layout: L, fingerprints: &[Fingerprint]) -> Bucket {
    fingerprints.iter().fold(Bucket::default(), |bucket, &f| layout.add(bucket, f).expect("there is room"))
}

fn sorted(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Vec<u32> {
    let mut sorted: Vec<u32> = fingerprints.into_iter().map(|f| f.0).collect();
    sorted.sort_unstable();
    sorted
}

/// Compares every operation with the same on a list of fingerprints.
fn check<L: Layout>(hashes: &[u64], one: u64, split: usize, order: prop::sample::Index) {
    let layout = L::new();
    let mut stored: Vec<_> = hashes.iter().take(L::SLOTS as usize).map(|&hash| layout.fingerprint(hash)).collect();
    let one = layout.fingerprint(one);

    let mut bucket = fill(layout, &stored);
    assert_eq!(sorted(layout.fingerprints(bucket)), sorted(stored.clone()));
    assert_eq!(layout.occupied(bucket), stored.len());
    assert_eq!(layout.has_room(bucket), stored.len() < L::SLOTS as usize);
    assert_eq!(layout.add_to(bucket, layout.room(bucket), one).is_some(), layout.has_room(bucket));
    assert!(layout.room(bucket) < layout.room(Bucket::default()) || stored.is_empty());

    let (first, second) = stored.split_at(split.min(stored.len()));
    let (first_bucket, second_bucket) = (fill(layout, first), fill(layout, second));
    for &f in stored.iter().chain([&one]) {
        assert_eq!(layout.count(first_bucket, f), first.iter().filter(|&&g| g == f).count());
        match layout.either_contains(first_bucket, second_bucket, f) {
            Some(found) => assert_eq!(found, stored.contains(&f)),
            None => {
                assert!(L::SEMI_SORTED && stored.iter().any(|g| g.0 ^ f.0 != 0 && (g.0 ^ f.0) as u64 & L::LANE == 0))
            }
        }
    }

    for &f in stored.iter().chain([&one]) {
        let (in_first, candidate) = layout.place(first_bucket, second_bucket, f);
        assert!(candidate.exists() || !stored.contains(&f), "what is in is a candidate");
        if candidate.exists() && layout.confirms(candidate, f) {
            let held = if in_first { first } else { second };
            let mut rest = held.to_vec();
            rest.remove(held.iter().position(|&g| g == f).expect("it was confirmed"));
            assert_eq!(candidate.word, if in_first { first_bucket } else { second_bucket });
            let without = layout.without_candidate(candidate);
            assert_eq!(sorted(layout.fingerprints(without)), sorted(rest), "all but one are left");
        }
    }

    match layout.add(bucket, one) {
        Some(more) => {
            let less = layout.remove(more, one).expect("it was just added");
            assert_eq!(sorted(layout.fingerprints(less)), sorted(stored.clone()), "remove undoes add");
        }
        None => assert!(!layout.has_room(bucket)),
    }
    assert_eq!(layout.remove(bucket, one).is_some(), stored.contains(&one));

    while !stored.is_empty() {
        let f = stored.remove(order.index(stored.len()));
        bucket = layout.remove(bucket, f).expect("it is still in");
        assert_eq!(sorted(layout.fingerprints(bucket)), sorted(stored.clone()));
    }
    assert_eq!(bucket, Bucket::default(), "emptied in any order, a bucket is as new");
}

macro_rules! check_layouts {
    ($($name:ident: $layout:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(CASES))]
            $(#[test]
            fn $name(
                stored in prop::collection::vec(hashes(), 0..9),
                one in hashes(),
                split in 0..9usize,
                order in any::<prop::sample::Index>(),
            ) {
                check::<$layout>(&stored, one, split, order);
            })*
        }
    };
}

check_layouts! {
    plain_8_agrees_with_a_list: Plain<8, 8>;
    plain_7_agrees_with_a_list: Plain<7, 9>;
    plain_6_agrees_with_a_list: Plain<6, 10>;
    plain_5_agrees_with_a_list: Plain<5, 12>;
    plain_4_agrees_with_a_list: Plain<4, 16>;
    plain_3_agrees_with_a_list: Plain<3, 21>;
    plain_2_agrees_with_a_list: Plain<2, 32>;
    semi_sorted_6_agrees_with_a_list: SemiSorted<6, 12>;
    semi_sorted_5_agrees_with_a_list: SemiSorted<5, 14>;
    semi_sorted_4_agrees_with_a_list: SemiSorted<4, 17>;
    semi_sorted_3_agrees_with_a_list: SemiSorted<3, 22>;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_word_is_valid_if_additions_lead_to_it(
        word in any::<u64>(),
        // Fewer bits and small ranks, so that many are valid.
        mask in any::<u64>(),
        rank in prop_oneof![any::<u64>(), 0..64u64],
        stored in prop::collection::vec(hashes(), 0..9),
        bit in 0..64u32,
    ) {
        fn check<L: Layout>(word: u64, mask: u64, rank: u64, stored: &[u64], bit: u32) {
            let layout = L::new();
            // Additions put what is new below its equals, so from the top lane down they lead to the same word.
            let reached = |word| {
                let stored: Vec<_> = layout.fingerprints(word).collect();
                stored.into_iter().rev().fold(Bucket::default(), |bucket, f| layout.add(bucket, f).expect("room"))
            };
            let is_valid = |word: Bucket| {
                if L::SEMI_SORTED {
                    return reached(word) == word;
                }
                // Removals leave gaps anywhere, so only the bits that belong to no lane count.
                let lanes = (0..L::SLOTS).map(|slot| L::LANE << (slot * L::LANE_BITS)).fold(0, |all, lane| all | lane);
                word.0 & !lanes == 0
            };
            let bits = L::SLOTS * L::LANE_BITS;
            let lanes = all::<L>(L::LANE_BITS);
            let ranked = if bits < 64 { rank.checked_shl(bits).unwrap_or(0) } else { 0 };
            for word in [word, word & mask, word & lanes, word & mask & lanes | ranked, word & lanes | ranked] {
                assert_eq!(layout.is_valid(Bucket(word)), is_valid(Bucket(word)), "{:?}: {word:#x}", L::SHAPE);
            }
            let stored: Vec<_> = stored.iter().take(L::SLOTS as usize).map(|&hash| layout.fingerprint(hash)).collect();
            let mut bucket = fill(layout, &stored);
            assert!(layout.is_valid(bucket));
            let changed = Bucket(bucket.0 ^ 1 << bit);
            assert_eq!(layout.is_valid(changed), is_valid(changed), "{:?}: {changed:?}", L::SHAPE);
            for f in stored {
                bucket = layout.remove(bucket, f).expect("it is in");
                assert!(layout.is_valid(bucket));
            }
        }
        check::<Plain<8, 8>>(word, mask, rank, &stored, bit);
        check::<Plain<7, 9>>(word, mask, rank, &stored, bit);
        check::<Plain<6, 10>>(word, mask, rank, &stored, bit);
        check::<SemiSorted<6, 12>>(word, mask, rank, &stored, bit);
        check::<Plain<5, 12>>(word, mask, rank, &stored, bit);
        check::<SemiSorted<5, 14>>(word, mask, rank, &stored, bit);
        check::<Plain<4, 16>>(word, mask, rank, &stored, bit);
        check::<SemiSorted<4, 17>>(word, mask, rank, &stored, bit);
        check::<Plain<3, 21>>(word, mask, rank, &stored, bit);
        check::<SemiSorted<3, 22>>(word, mask, rank, &stored, bit);
        check::<Plain<2, 32>>(word, mask, rank, &stored, bit);
    }
}

#[test]
fn a_fingerprint_whose_low_bits_are_all_zero_takes_a_slot() {
    fn check<L: Layout>() {
        for hash in [0, 1 << L::LANE_BITS, u64::MAX << L::LANE_BITS] {
            let f = L::new().fingerprint(hash);
            let bucket = fill(L::new(), &[f]);
            assert_eq!(L::new().occupied(bucket), 1, "{:?}", L::SHAPE);
            assert_eq!(L::new().either_contains(Bucket::default(), bucket, f), Some(true), "{:?}", L::SHAPE);
        }
    }
    check::<Plain<4, 16>>();
    check::<SemiSorted<5, 14>>();
}
