//! All that was measured or computed.

use super::measure::Measured;
use super::plan::Plan;
use super::space::{InTable, Loads, Space};
use super::text::size;

/// What tables and charts are made from.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) plan: Plan,
    pub(crate) layouts: Vec<InTable>,
    pub(crate) space: Vec<Space>,
    /// For each size in buckets, the loads of each layout.
    pub(crate) loads: Vec<(usize, Vec<Loads>)>,
    pub(crate) alone: Vec<Measured>,
    /// The size of the tables for the field below.
    pub(crate) shared_bytes: usize,
    /// The same systems, or their concurrent versions, on one thread and on two.
    pub(crate) together: Vec<(Measured, Measured)>,
}

impl Findings {
    pub(crate) fn of_name(&self, name: &str) -> Option<&Measured> {
        self.alone.iter().find(|measured| measured.name == name)
    }

    pub(crate) fn size(&self) -> String {
        size(self.plan.table_bytes)
    }
}
