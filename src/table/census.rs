//! CONCURRENT: the count of copies by which an insert that has found no room decides whether it fails, or needs no room any
//! more.

use crate::table::entries::Entries;
use crate::table::table::Table;
use crate::word::bucket::BucketOps;
use crate::word::geometry::Item;
use crate::word::layout::Layout;

/// The operation for which room is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Insert,
    /// It needs no room if a copy of the item's class is present by then, with whatever value.
    InsertIfAbsent,
    /// It needs no room if the item is present by then, with its value.
    InsertItemIfAbsent,
}

/// What an insert that has found no room must know: counted at one moment, under the lock of the item's stripe.
#[derive(Clone, Copy)]
pub(super) struct Census {
    /// How many copies of the item's class there are.
    pub(super) copies: usize,
    /// Whether no room is needed, because another thread has added what the operation would add.
    pub(super) is_done: bool,
}

impl<E: Entries> Table<E> {
    /// Counts the copies of the item's class under its lock.
    pub(super) fn census(&self, item: Item, purpose: Purpose) -> Census {
        let _guard = self.stripe(item.sum).lock(&self.counters);
        let copies = self.copies(item);
        let is_done = copies > 0
            && match purpose {
                Purpose::Insert => false,
                Purpose::InsertIfAbsent => true,
                Purpose::InsertItemIfAbsent => self.copies_of_item(self.layout(), item) > 0,
            };
        Census { copies, is_done }
    }

    /// The census if copies of the item's class fill both of its buckets. They lead a search back and forth between the
    /// two. Nearly always the first bucket holds something else, and nothing is counted.
    #[inline]
    pub(super) fn census_if_full(&self, item: Item, purpose: Purpose) -> Option<Census> {
        let (fingerprint, first) = (self.layout.fingerprint_of(item.entry), self.load(item.first));
        // The lowest slot's lane alone tells nearly all buckets apart.
        let lane = u64::from(self.layout.lanes().first);
        if (self.layout.without_payloads(first) ^ u64::from(fingerprint.0)) & lane != 0
            || self.layout.count(first, fingerprint) < self.layout.lanes().slots.into()
        {
            return None;
        }
        let census = self.census(item, purpose);
        (census.copies == self.slots_of(item)).then_some(census)
    }
}
