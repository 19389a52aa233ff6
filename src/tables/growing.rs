//! CONCURRENT: how a filter that grows gets further tables, when it must and when the caller reserves room.
//! `tables/growth.rs` has the reasoning.

use crate::error::insert::{InsertError, ReserveError};
use crate::error::kind::FilterKind;
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::face::traits::FilterTable;
use crate::tables::growth::{Growth, Tables};
use crate::tables::growth_plan::MAX_TABLES;

/// The part of its capacity that the newest table must hold before the filter grows.
///
/// Distinct keys fill a table to its capacity, whatever they are. So this matters only where some pairs of buckets
/// are full of many copies of few keys, or of keys that were chosen to collide. Further ones are then refused, as in
/// a single table. So they cannot drive the memory beyond a fixed multiple of what the items in the filter need.
const LEAST_LOAD: f64 = 0.25;

impl Tables {
    /// Adds a table to these, unless another thread has.
    pub(super) fn grow(&self, tables: usize) -> Growth {
        let _growth = if fault::injected(Fault::GrowWithoutLock) {
            None
        } else if let Some(growth) = self.growth.lock.try_lock() {
            Some(growth)
        } else {
            return Growth::UnderWay;
        };
        let number = self.tables();
        if number != tables && !fault::injected(Fault::GrowWithoutRecheck) {
            return Growth::Done;
        }
        let newest = self.newest(number);
        if (newest.len() as f64) < newest.capacity() as f64 * LEAST_LOAD {
            let (filter, len, capacity) = (FilterKind::Growable, self.len(), self.capacity());
            return Growth::Refused(InsertError::Full { filter, len, capacity });
        }
        match self.add_table(number) {
            Ok(()) => Growth::Done,
            Err(error) => Growth::Refused(error),
        }
    }

    /// Adds as many tables as it takes for this many further copies, or none.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        if additional == 0 {
            return Ok(());
        }
        let _growth = self.growth.lock.lock();
        let tables = self.tables();
        let wanted = self.len().saturating_add(additional);
        let (mut capacity, mut needed) = (self.capacity(), self.memory_usage());
        let mut planned = [const { None }; MAX_TABLES];
        for (place, next) in planned.iter_mut().zip(self.plan.all()).skip(tables) {
            if capacity >= wanted {
                break;
            }
            capacity = capacity.saturating_add(next.capacity());
            needed = needed.saturating_add(next.memory());
            *place = Some(next);
        }
        if capacity < wanted {
            return Err(ReserveError::CapacityTooLarge { additional, largest: capacity });
        }
        let limit = self.plan.memory_limit;
        if needed > limit {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        // All tables are built before the first is announced, so if the memory for one is refused, nothing has
        // changed. The largest comes first, because it is the one most likely to be refused.
        let mut built = [const { None }; MAX_TABLES];
        for (place, next) in built.iter_mut().zip(planned).rev() {
            let Some(next) = next else { continue };
            let out_of_memory = ReserveError::OutOfMemory { bytes: next.memory() };
            self.tables.prepare(next.number).ok_or(out_of_memory)?;
            *place = Some(self.plan.build(next).ok_or(out_of_memory)?);
        }
        for (number, table) in built.into_iter().enumerate() {
            table.into_iter().for_each(|table| self.publish(number, table));
        }
        Ok(())
    }

    /// Adds the table of that number, the next one. The caller holds the lock for growth.
    pub(super) fn add_table(&self, number: usize) -> Result<(), InsertError> {
        let next = (number < MAX_TABLES).then(|| self.plan.table(number)).flatten();
        let too_large = || InsertError::OutOfMemory { bytes: self.newest(number).memory_usage().saturating_mul(2) };
        let next = next.ok_or_else(too_large)?;
        let (needed, limit) = (self.memory_usage().saturating_add(next.memory()), self.plan.memory_limit);
        if needed > limit {
            return Err(InsertError::MemoryLimit { len: self.len(), needed, limit });
        }
        let out_of_memory = || InsertError::OutOfMemory { bytes: next.memory() };
        self.tables.prepare(number).ok_or_else(out_of_memory)?;
        let table = self.plan.build(next).ok_or_else(out_of_memory)?;
        self.publish(number, table);
        Ok(())
    }

    /// Puts the table of that number, the next one, in its place and announces it. The caller holds the lock for
    /// growth.
    fn publish(&self, number: usize, table: Box<dyn FilterTable>) {
        // SeqCst: see `tables/growth.rs`, *The moment of growth*.
        let publish = |tables| self.published.fetch_add(tables, Ordering::SeqCst);
        if fault::injected(Fault::PublishBeforeSet) {
            publish(1);
            // For loom, which lets other threads run first only where something is done that they could notice.
            publish(0);
        }
        self.tables.set(number, table);
        if !fault::injected(Fault::PublishBeforeSet) {
            publish(1);
        }
    }
}
