//! CONCURRENT: the places of a growing filter's tables, which are filled one after the other.

use std::sync::OnceLock;

use crate::machine::memory::boxed_slice;
use crate::table::face::traits::FilterTable;
use crate::tables::growth_plan::{FIRST, MAX_TABLES, Place};

/// A place for each table.
#[derive(Debug, Default)]
pub(crate) struct Places {
    first: [Place; FIRST],
    /// The places of all other tables.
    later: OnceLock<Box<[Place]>>,
}

impl Places {
    /// The table of that number, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, number: usize) -> Option<&dyn FilterTable> {
        let place = match self.first.get(number) {
            Some(place) => place,
            None => self.later.get()?.get(number - FIRST)?,
        };
        place.get().map(|table| &**table)
    }

    /// Makes a place for the table of that number. `None` if there is no memory for it. Only one thread at a time may
    /// call it.
    pub(super) fn prepare(&self, number: usize) -> Option<()> {
        if number >= FIRST && self.later.get().is_none() {
            let later = boxed_slice(MAX_TABLES - FIRST, OnceLock::new)?;
            // No other thread has set it.
            let _ = self.later.set(later);
        }
        Some(())
    }

    /// Puts the table of that number into its place, which is empty and prepared.
    pub(super) fn set(&self, number: usize, table: Box<dyn FilterTable>) {
        let place = match self.first.get(number) {
            Some(place) => place,
            None => &self.later.get().expect("it was prepared")[number - FIRST],
        };
        assert!(place.set(table).is_ok(), "one growth, one table: only one thread adds it, so its place is empty");
    }
}
