//! How much is measured.

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) table_bytes: usize,
    /// How often a system is filled and emptied. The median is shown. More than one for tables that fit in a cache.
    pub(crate) rounds: usize,
    /// How many times smaller the tables are for two threads.
    pub(crate) shared_divisor: usize,
    /// How many lookups a turn has. The median of some such turns is shown.
    pub(crate) lookups: u64,
    /// How many absent keys are looked up to measure the rate of a filter.
    pub(crate) rate_lookups: u64,
    /// Buckets of the tables that are filled up for Figure 2.
    pub(crate) filled_buckets: &'static [usize],
}
