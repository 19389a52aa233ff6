use super::*;
use crate::word::values::LIST_BITS;

#[test]
fn every_shape_fits_in_a_word_and_they_are_ordered_by_memory() {
    for shape in SHAPES {
        assert_eq!(shape.least_buckets(), 1, "{shape:?}");
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
    fn check(layout: impl Layout, shape: Shape) {
        assert_eq!(layout.shape(), shape);
        assert_eq!(u32::from(layout.lanes().bits), shape.lane_bits());
        assert_eq!(layout.lanes().all().count_ones(), shape.slots * shape.lane_bits());
        assert_eq!(layout.payload().bits, shape.payload_bits);
    }
    for shape in SHAPES {
        check(RuntimeLayout::of(shape), shape);
    }
    for shape in (1..=16).flat_map(|bits| Shape::with(None, bits)) {
        check(WithPayload::of(shape), shape);
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
    for shape in [(8, 8), (5, 12)].map(|(slots, bits)| Shape::plain(slots, bits)) {
        check(RuntimeLayout::of(shape));
    }
    for shape in [(8, 9), (7, 10), (6, 12), (5, 14)].map(|(slots, bits)| Shape::semi_sorted(slots, bits)) {
        check(RuntimeLayout::of(shape));
    }
    for bits in 1..=7 {
        let shape = Shape::semi_sorted(5, 14).with_payload(bits).expect("it leaves enough");
        check(WithPayload::of(shape));
    }
}

#[test]
fn a_payload_of_any_width_has_a_shape_with_room_for_it() {
    for bits in 1..=MOST_PAYLOAD_BITS {
        assert!(Shape::lowest_rate(None, bits) < 0.0001, "{bits}");
        for shape in Shape::with(None, bits) {
            assert_eq!((shape.payload_bits, shape.least_buckets()), (bits, 2));
            assert!(2 * shape.slots * bits <= LIST_BITS);
            assert!(shape.fingerprint_bits >= 7 && shape.low_bits() >= LEAST_LOW_BITS, "{shape:?}");
        }
    }
}
