use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::growth::plan::Plan;
use crate::sync::sizes::GROUP;
use crate::word::classes::{Class, Classes};
use crate::word::geometry::mixed;
use crate::word::layout::{Encoding, NEVER_ZERO};

/// A table, and how many copies of each class it has.
struct Counted {
    table: GrowingTable,
    copies: HashMap<u64, usize>,
    keys: std::ops::RangeFrom<u64>,
}

impl Counted {
    /// Adds keys until so many inserts have failed, and returns the classes of those.
    fn fill(&mut self, failed: usize) -> Vec<Class> {
        let (table, copies) = (&self.table, &mut self.copies);
        let classes = self.keys.by_ref().map(|key| table.plan.classes.of(mixed(key)));
        classes
            .filter(|&class| {
                let is_added = table.add(class, None);
                if is_added {
                    *copies.entry(table.plan.classes.hash(class)).or_default() += 1;
                }
                !is_added
            })
            .take(failed)
            .collect()
    }

    /// Makes the table larger or smaller by a group, if it can be.
    fn resize(&self, grows: bool) {
        let split = || self.table.split_if(|| Some(self.table.resizing().lock.lock()), || true);
        let _ = if grows { split().is_ok() } else { self.table.merge_if(|| true) };
    }

    /// The classes of which there are more or fewer copies than there should be: with both numbers.
    fn wrong(&self) -> Vec<(u64, usize, usize)> {
        let counts = self.copies.iter().map(|(&hash, &copies)| (hash, copies, self.table.count(hash)));
        counts.filter(|&(_, copies, count)| count != copies).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 2_000 }))]

    /// The size changes after searches for room have read the state, and perhaps changes back. They take each word for what it
    /// would be in that state, perhaps in another layout.
    #[test]
    fn a_search_that_is_late_neither_loses_nor_makes_copies(
        base_bits in NEVER_ZERO..=26u32,
        side_bits in 6..=7u32,
        encoding in prop_oneof![Just(None), Just(Some(Encoding::Plain)), Just(Some(Encoding::SemiSorted))],
        groups in 1..5usize,
        changes in prop::collection::vec(any::<bool>(), 1..4),
        more in 0..20usize,
        adds: bool,
        seed: u32,
    ) {
        let plan = Plan::of(Classes::new(base_bits, side_bits), GROUP, encoding);
        let table = GrowingTable::of_buckets(plan, (GROUP * groups).min(plan.largest)).expect("some kilobytes");
        let mut counted = Counted { table, copies: HashMap::new(), keys: u64::from(seed) << 32.. };
        let failed = counted.fill(20);
        let late: Vec<_> = failed.iter().map(|&class| counted.table.placed(class, counted.table.state())).collect();
        changes.into_iter().for_each(|grows| counted.resize(grows));
        counted.fill(more);
        for (class, placed) in failed.into_iter().zip(&late) {
            let is_first = counted.table.count(plan.classes.hash(class)) == 0;
            let is_added = counted.table.search(placed, adds.then_some(placed), None).room == Room::Added;
            prop_assert!(!is_added || adds && is_first);
            *counted.copies.entry(plan.classes.hash(class)).or_default() += usize::from(is_added);
            prop_assert_eq!(counted.wrong(), vec![]);
        }
    }
}
