//! CONCURRENT: the count of copies by which an insert that has found no room decides whether it fails, or needs no room any
//! more.

use crate::table::attempt::IfPresent;
use crate::table::entries::Entries;
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::Layout;

/// What came of making room for an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There was room, or none is needed: an attempt is worthwhile.
    Try,
    /// There was none, at a moment when there were so many copies of the class.
    None { copies: usize },
    /// Other threads have invalidated so many searches that the insert must now exclude them.
    ExcludeOthers,
}

/// What an insert that has found no room must know: counted at one moment, under the lock of the item's stripe.
#[derive(Clone, Copy)]
pub(super) struct CopyCount {
    /// How many copies of the item's class there are.
    pub(super) copies: usize,
    /// Whether no room is needed, because another thread has added what the insert would add.
    pub(super) is_done: bool,
}

impl CopyCount {
    /// The answer of `make_room` if this count decides it.
    pub(super) fn room(self) -> Room {
        if self.is_done { Room::Try } else { Room::None { copies: self.copies } }
    }
}

impl<E: Entries> Table<E> {
    /// Counts the copies of the item's class under its lock.
    pub(super) fn count_copies(&self, item: Item, if_present: IfPresent) -> CopyCount {
        let _guard = self.stripe(item.bucket_sum).lock(&self.counters);
        let copies = self.copies(item);
        let is_done = copies > 0
            && match if_present {
                IfPresent::Add => false,
                IfPresent::Skip | IfPresent::Extend => true,
                IfPresent::SkipEqual => self.copies_of_item(self.layout(), item) > 0,
            };
        CopyCount { copies, is_done }
    }

    /// The count if copies of the item's class fill both of its buckets. They lead a search back and forth between the
    /// two. Nearly always the first bucket holds something else, and nothing is counted.
    #[inline]
    pub(super) fn copy_count_if_full(&self, item: Item, if_present: IfPresent) -> Option<CopyCount> {
        let (fingerprint, first) = (self.layout.fingerprint_of(item.entry), self.load(item.first));
        // The lowest slot's lane alone tells nearly all buckets apart.
        let lane = u64::from(self.layout.lanes().first);
        if (first.without_payloads(self.layout) ^ u64::from(fingerprint.0)) & lane != 0
            || first.count(self.layout, fingerprint) < self.layout.lanes().slots.into()
        {
            return None;
        }
        let copy_count = self.count_copies(item, if_present);
        (copy_count.copies == self.slots_of(item)).then_some(copy_count)
    }
}
