use super::*;
use crate::word::geometry::mixed;

const WANTED: [Option<Encoding>; 3] = [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)];

#[test]
fn every_number_of_bits_has_a_layout_and_one_bit_less_has_as_many_slots() {
    for bits in NEVER_ZERO..=32 {
        for wanted in WANTED {
            let shape = SHAPES[row(bits, wanted)];
            assert!(shape.fingerprint_bits >= bits && shape.low_bits() >= NEVER_ZERO, "{shape:?} for {bits} bits");
            assert!(wanted != Some(Encoding::Plain) || shape.encoding == Encoding::Plain, "{shape:?}");
            assert!(bits == NEVER_ZERO || SHAPES[row(bits - 1, wanted)].slots >= shape.slots, "a split has room");
        }
        assert_eq!(SHAPES[row(bits, WANTED[2])].encoding == Encoding::SemiSorted, bits <= 22, "{bits} bits");
    }
    let slots = |bits| SHAPES[row(bits, None)].slots;
    assert_eq!([8, 9, 10, 12, 13, 14, 15, 17, 18, 22, 23, 32].map(slots), [8, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2]);
    assert_eq!(row(16, None), 8, "the plain one of two that fit");
}

/// What is added is found, counted and removed, and a bucket of it is the same, whatever the layout.
#[test]
fn a_bucket_holds_what_is_stored_in_it() {
    for wanted in WANTED {
        let classes = Classes::new(9, 31);
        let layouts = Layouts::new(classes, wanted, 8..=classes.side_bits()).expect("some kilobytes");
        for depth in 8..=classes.side_bits() {
            let (layout, bits) = (layouts.at(depth), classes.stored_bits(depth));
            let slots = layout.slots() as u64;
            let stored = |nth: u64| classes.stored(classes.of(mixed(nth)), depth);
            let (mut bucket, mut list) = (Bucket::default(), EntryList::default());
            for nth in 0..slots {
                assert!(layout.has_room(bucket) && layout.free(bucket) as u64 == slots - nth);
                bucket = layout.add(bucket, stored(nth)).expect("there is room");
                list.push(Entry(stored(nth)));
                assert!(layout.count(bucket, stored(nth)) >= 1);
                assert_eq!(layout.occupied(bucket) as u64, nth + 1);
                #[cfg(feature = "snapshot")]
                assert!(layout.is_valid(bucket, bits));
            }
            assert!(layout.add(bucket, 1).is_none() && !layout.has_room(bucket), "{bits} bits");
            let sorted = |bucket| {
                let mut all: Vec<u32> = layout.entries(bucket).map(|entry| entry.0).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(sorted(layout.of(list).expect("as many as there are slots")), sorted(bucket));
            list.push(Entry(1));
            assert!(layout.of(list).is_none());
            for nth in 0..slots {
                bucket = layout.remove(bucket, stored(nth)).expect("it is in");
            }
            assert_eq!(bucket, Bucket::default());
        }
    }
}

/// Bits that no slot of this depth stores, or a base whose low bits are all 0, come only from a forged snapshot.
#[test]
#[cfg(feature = "snapshot")]
fn words_that_no_table_has_are_not_valid() {
    let classes = Classes::new(14, 24);
    let layouts = Layouts::new(classes, None, 8..=classes.side_bits()).expect("some kilobytes");
    for depth in 8..=classes.side_bits() {
        let (layout, bits) = (layouts.at(depth), classes.stored_bits(depth));
        let of = |stored| layout.add(Bucket::default(), stored).expect("there is room");
        assert!(layout.is_valid(of(1), bits));
        if bits < 32 && (1 << bits) < u64::from(u32::MAX) && SHAPES[row(bits, None)].fingerprint_bits > bits {
            assert!(!layout.is_valid(of(1 << bits | 1), bits), "{bits} bits");
        }
        assert!(!layout.is_valid(of(1 << NEVER_ZERO), bits), "{bits} bits");
    }
}
