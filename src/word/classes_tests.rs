use proptest::prelude::*;

use super::*;
use crate::word::geometry::mixed;

/// Classes, and a state that they can have. (A slot has at most 32 bits, so the smallest table is large enough for that.) Each
/// level is as likely as the others, and so are a split pointer at its beginning, near that, near its end, and anywhere.
fn any() -> impl Strategy<Value = (Classes, State)> {
    const LEAST_LEVEL: u32 = GROUP.ilog2();
    let classes = (NEVER_ZERO..=u32::BITS, LEAST_LEVEL..=u32::BITS);
    let levels = classes.prop_flat_map(|(base_bits, side_bits)| {
        let least = (base_bits + side_bits).saturating_sub(u32::BITS).max(LEAST_LEVEL);
        (Just(Classes::new(base_bits, side_bits)), least..=side_bits)
    });
    levels.prop_flat_map(|(classes, level)| {
        let last = if level < classes.side_bits() { (1 << (level - LEAST_LEVEL)) - 1 } else { 0 };
        let groups = prop_oneof![Just(0), Just(last.min(1)), Just(last), 0..=last];
        (Just(classes), groups.prop_map(move |groups: usize| State::of_buckets((1 << level) + groups * GROUP)))
    })
}

proptest! {
    /// The slot and the number of the bucket give the class, from either side and at any size.
    #[test]
    fn what_is_stored_gives_the_class((classes, state) in any(), hash: u64) {
        let class = classes.of(mixed(hash));
        for (parity, side) in class.sides.into_iter().enumerate() {
            let Place { number, depth } = state.place(side);
            prop_assert!(number < state.buckets() && number % 2 == parity, "an even one and an odd one");
            prop_assert_eq!(state.depth(number), depth);
            prop_assert_eq!(state.is_split(number as u32), depth != state.level());
            let stored = classes.stored(class, depth);
            prop_assert!(u64::from(stored) >> classes.stored_bits(depth) == 0);
            prop_assert!(stored & ((1 << NEVER_ZERO) - 1) != 0, "no slot is 0");
            let again = classes.of_stored(number, depth, stored);
            prop_assert_eq!(classes.hash(again), classes.hash(class));
            let other = state.place(class.sides[1 - parity]);
            prop_assert_eq!(classes.alternates(state, number).of(stored), other.number);
            let in_other = classes.stored_in_other(state, [number, other.number], stored);
            prop_assert_eq!(in_other, classes.stored(class, other.depth));
            prop_assert_eq!(classes.of(classes.hash(class)), class);
        }
    }

    /// A search that is late reads words of other states. So it takes anything for what is stored, but it stays in the table, and
    /// what it makes of it fits in the slots of each state.
    #[test]
    fn whatever_is_read_leads_to_buckets_of_the_state((classes, state) in any(), at: u64, read: u32, later: u64) {
        let number = (at % state.buckets() as u64) as usize;
        let other = classes.alternates(state, number).of(read);
        prop_assert!(other < state.buckets() && other % 2 != number % 2);
        let class = classes.of_stored(number, state.depth(number), read);
        prop_assert_eq!(classes.of(classes.hash(class)), class);
        prop_assert_eq!(class.base, classes.base(read));
        prop_assert_eq!(state.place(class.sides[number % 2]).number, number);
        let level = state.level() + (later % u64::from(classes.side_bits() + 1 - state.level())) as u32;
        let larger = State::of_buckets(1 << level);
        let stored = classes.stored_at(class, larger, class.sides.map(|side| larger.place(side)));
        prop_assert!(stored.iter().all(|&stored| u64::from(stored) >> classes.stored_bits(level) == 0));
    }

    /// A split moves copies only from the buckets that are split to those that come in.
    #[test]
    fn a_split_moves_only_its_own_group(
        (classes, state) in any().prop_filter("it can grow", |(classes, state)| state.level() < classes.side_bits()),
        hash: u64,
    ) {
        let (split, level) = (state.split() as usize, state.level());
        let after = State::of_buckets(state.buckets() + GROUP);
        for side in classes.of(mixed(hash)).sides {
            let (before, after) = (state.place(side), after.place(side));
            let is_moved = (split..split + GROUP).contains(&before.number);
            prop_assert_eq!(state.moving().moving_at(side), is_moved.then(|| before.number - split));
            if is_moved {
                prop_assert_eq!(after.depth, before.depth + 1);
                prop_assert!(after.number == before.number || after.number == before.number + (1 << level));
            } else {
                prop_assert_eq!(after, before);
            }
        }
    }

    #[test]
    fn a_state_has_its_parts(buckets in 32usize..1 << 32, whole in 0..16u8, split in 0..16u8) {
        let (buckets, rows) = (buckets.next_multiple_of(GROUP), Rows::new(whole, split));
        prop_assert_eq!((rows.whole(), rows.split()), (whole, split));
        let state = State::of_buckets(buckets).with_rows(rows);
        prop_assert_eq!((state.buckets(), state.rows(), state.is_moving()), (buckets, rows, false));
        prop_assert_eq!((state.moving().buckets(), state.moving().rows(), state.moving().is_moving()), (buckets, rows, true));
    }
}
