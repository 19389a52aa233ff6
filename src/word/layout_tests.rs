use super::*;
use crate::word::values::LIST_BITS;

#[test]
fn every_shape_fits_in_a_word_and_they_are_ordered_by_memory() {
    for shape in SHAPES {
        let rank_bits = match shape.encoding {
            Encoding::Plain => 0,
            Encoding::SemiSorted => semisort::rank_bits(shape.slots),
        };
        assert!(shape.slots * shape.lane_bits() + rank_bits <= 64, "{shape:?}");
        if rank_bits > 0 {
            // The top bits of any word are an index of the decode table.
            let table = semisort::unrank_table(shape.slots, shape.lane_bits()).expect("memory");
            assert_eq!(table.len(), 1 << (64 - Lanes::of(shape).rank_at), "{shape:?}");
        }
    }
    assert!(SHAPES.is_sorted_by_key(|shape| std::cmp::Reverse(shape.slots)));
}

/// What is computed from the numbers of a layout is what they were made of.
#[test]
fn a_layout_has_the_shape_that_it_was_made_of() {
    fn check<L: OfShape>(shape: Shape) {
        let layout = L::of(shape);
        assert_eq!(layout.shape(), shape);
        assert_eq!(u32::from(layout.lanes().bits), shape.lane_bits());
        assert_eq!(layout.lanes().all().count_ones(), shape.slots * shape.lane_bits());
        assert_eq!(layout.payload_bits(), shape.payload_bits);
    }
    for shape in SHAPES {
        match shape.encoding {
            Encoding::Plain => check::<Plain>(shape),
            Encoding::SemiSorted => check::<SemiSorted>(shape),
        }
    }
    for shape in (1..=16).flat_map(|bits| Shape::with(None, bits)) {
        match shape.encoding {
            Encoding::Plain => check::<WithPayload<Plain>>(shape),
            Encoding::SemiSorted => check::<WithPayload<SemiSorted>>(shape),
        }
    }
}

/// A payload takes its bits from the fingerprint.
#[test]
fn a_payload_leaves_the_lanes_as_they_are_and_needs_two_buckets() {
    for shape in SHAPES {
        for bits in 0..=16 {
            let Some(with_payload) = shape.with_payload(bits) else { continue };
            assert_eq!(with_payload.lane_bits(), shape.lane_bits(), "{shape:?} with {bits} bits");
            assert_eq!(with_payload.least_buckets(), if bits == 0 { 1 } else { 2 }, "{shape:?} with {bits} bits");
        }
    }
}

#[test]
fn the_rate_is_that_of_the_fingerprints_values() {
    fn check<L: Layout>(layout: L) {
        let shape = layout.shape();
        let bits = shape.fingerprint_bits + shape.payload_bits;
        let mut times = vec![0u64; 1 << bits];
        (0..1 << bits).for_each(|hash| times[layout.fingerprint_from(hash).0 as usize] += 1);
        let equal = times.iter().map(|n| n * n).sum::<u64>() as f64 / 2f64.powi(2 * bits as i32);
        for load in [0.0, 0.5, 1.0] {
            let expected = 1.0 - (1.0 - equal).powf(2.0 * f64::from(shape.slots) * load);
            let given = shape.false_positive_rate(load);
            assert!((given - expected).abs() <= 1e-9, "{shape:?} at load {load}: {given} for {expected}");
        }
    }
    check(Plain::of(Shape::plain(8, 8)));
    check(Plain::of(Shape::plain(5, 12)));
    check(SemiSorted::of(Shape::semi_sorted(8, 9)));
    check(SemiSorted::of(Shape::semi_sorted(7, 10)));
    check(SemiSorted::of(Shape::semi_sorted(6, 12)));
    check(SemiSorted::of(Shape::semi_sorted(5, 14)));
    for bits in 1..=7 {
        let shape = Shape::semi_sorted(5, 14).with_payload(bits).expect("it leaves enough");
        check(WithPayload::<SemiSorted>::of(shape));
    }
}

#[test]
fn the_cheapest_shape_that_meets_the_rate_is_taken() {
    let plain = Some(Encoding::Plain);
    let semi_sorted = Some(Encoding::SemiSorted);
    assert_eq!(Shape::cheapest(0.5, None, 0), Some(Shape::plain(8, 8)));
    assert_eq!(Shape::cheapest(0.05, None, 0), Some(Shape::semi_sorted(8, 9)));
    assert_eq!(Shape::cheapest(0.028, None, 0), Some(Shape::plain(7, 9)));
    assert_eq!(Shape::cheapest(0.02, None, 0), Some(Shape::semi_sorted(7, 10)));
    assert_eq!(Shape::cheapest(0.02, plain, 0), Some(Shape::plain(6, 10)));
    assert_eq!(Shape::cheapest(0.01, None, 0), Some(Shape::semi_sorted(6, 12)));
    assert_eq!(Shape::cheapest(0.0025, None, 0), Some(Shape::plain(5, 12)), "as small as semi-sorted, and quicker");
    assert_eq!(Shape::cheapest(0.0025, semi_sorted, 0), Some(Shape::semi_sorted(5, 14)));
    assert_eq!(Shape::cheapest(0.001, None, 0), Some(Shape::semi_sorted(5, 14)));
    assert_eq!(Shape::cheapest(0.0001, None, 0), Some(Shape::semi_sorted(4, 17)));
    assert_eq!(Shape::cheapest(0.0001, plain, 0), Some(Shape::plain(3, 21)));
    assert_eq!(Shape::cheapest(2e-6, None, 0), Some(Shape::semi_sorted(3, 22)));
    assert_eq!(Shape::cheapest(2e-9, None, 0), Some(Shape::plain(2, 32)));
    assert_eq!(Shape::cheapest(1e-10, None, 0), None);
    assert_eq!(Shape::cheapest(1e-6, semi_sorted, 0), None);
}

#[test]
fn the_cheapest_shape_has_room_for_the_payload() {
    let with = |shape: Shape, bits| shape.with_payload(bits);
    assert_eq!(Shape::cheapest(0.06, None, 4), with(Shape::semi_sorted(6, 12), 4));
    assert_eq!(Shape::cheapest(0.011, None, 4), with(Shape::semi_sorted(5, 14), 4));
    assert_eq!(Shape::cheapest(0.001, None, 4), with(Shape::semi_sorted(4, 17), 4));
    assert_eq!(Shape::cheapest(0.0004, None, 8), with(Shape::semi_sorted(3, 22), 8));
    assert_eq!(Shape::cheapest(0.0001, None, 16), with(Shape::plain(2, 32), 16));
    assert_eq!(Shape::cheapest(0.5, None, 16), with(Shape::plain(2, 32), 16));
    assert_eq!(Shape::cheapest(0.00001, None, 16), None);
    for bits in 1..=MOST_PAYLOAD_BITS {
        assert!(Shape::lowest_rate(None, bits) < 0.0001, "{bits}");
        for shape in Shape::with(None, bits) {
            assert_eq!(shape.payload_bits, bits);
            assert!(2 * shape.slots * bits <= LIST_BITS);
            assert!(shape.fingerprint_bits >= 7 && shape.low_bits() >= LEAST_LOW_BITS, "{shape:?}");
        }
    }
}
