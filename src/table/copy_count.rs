//! CONCURRENT: the count of copies by which an insert that has found no room decides whether it fails, or needs no room any
//! more.

use crate::table::attempt::IfPresent;
use crate::table::entries::Entries;
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::Layout;

/// What an insert that has found no room is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// There was room, or none is needed.
    TryAgain,
    /// It fails: there was no room, at a moment when there were so many copies of the class.
    Fail { copies: usize },
    /// It must exclude other threads, which have invalidated too many of its searches.
    ExcludeOthers,
}

/// What an insert that has found no room must know: counted at one moment, under the lock of the item's stripe.
#[derive(Clone, Copy)]
pub(super) struct CopyCount {
    /// How many copies of the item's class there are.
    pub(super) copies: usize,
    /// Whether no room is needed, because another thread has added what the insert would add.
    pub(super) needs_no_room: bool,
}

impl CopyCount {
    /// What the insert does next if this count decides it.
    pub(super) fn next_step(self) -> NextStep {
        if self.needs_no_room { NextStep::TryAgain } else { NextStep::Fail { copies: self.copies } }
    }
}

impl<E: Entries> Table<E> {
    /// Counts the copies of the item's class under its lock.
    pub(super) fn count_copies(&self, item: Item, if_present: IfPresent) -> CopyCount {
        let _guard = self.stripe(item.bucket_sum).lock(&self.counters);
        let copies = self.copies(item);
        let needs_no_room = copies > 0
            && match if_present {
                IfPresent::Add => false,
                IfPresent::Skip | IfPresent::Extend => true,
                IfPresent::SkipEqual => self.copies_of_item(self.layout(), item) > 0,
            };
        CopyCount { copies, needs_no_room }
    }

    /// The count of the copies of the item's class if they fill both of its buckets: a search would follow them back and forth
    /// between the two. Nearly always the first bucket holds something else, and nothing is counted.
    #[inline]
    pub(super) fn copies_filling_both_buckets(&self, item: Item, if_present: IfPresent) -> Option<CopyCount> {
        let (fingerprint, first) = (self.layout.fingerprint_of(item.entry), self.load(item.first));
        // The lowest slot's lane alone tells nearly all buckets apart.
        let lane = u64::from(self.layout.lanes().mask);
        if (first.without_payloads(self.layout) ^ u64::from(fingerprint.0)) & lane != 0
            || first.count(self.layout, fingerprint) < self.layout.lanes().slots.into()
        {
            return None;
        }
        let counted = self.count_copies(item, if_present);
        (counted.copies == self.slots_of(item)).then_some(counted)
    }
}
