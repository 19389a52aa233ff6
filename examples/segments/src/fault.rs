//! Wrong orders of steps, for the controls of the tests. Outside of the unit tests there are no faults.

/// A step that is left out or comes too early. Each fault must make a test fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Fault {
    /// A flush publishes the list before the maplet has the new segment's keys.
    PublishBeforeInsert,
    /// A compaction replaces slots before a list with both inputs and output is published.
    ReplaceBeforePublish,
    /// A compaction removes the pairs of deletions that it leaves out while its inputs are still listed.
    RemoveBeforeRetire,
    /// A get does not check whether the list is still the same.
    NoSecondLook,
    /// A flush or compaction takes a slot that the map shows for the slot in the key's pair, without a look into
    /// the segment.
    TrustTheMap,
    /// A flush deletes the log before the manifest names the segment.
    LogBeforeManifest,
}

/// The fault of a store, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    #[cfg(test)]
    injected: Option<Fault>,
}

impl Faults {
    #[cfg(test)]
    pub(crate) fn only(fault: Fault) -> Self {
        Self { injected: Some(fault) }
    }

    #[cfg(test)]
    pub(crate) fn has(self, fault: Fault) -> bool {
        self.injected == Some(fault)
    }

    #[cfg(not(test))]
    #[inline(always)]
    #[allow(clippy::unused_self)]
    pub(crate) const fn has(self, _: Fault) -> bool {
        false
    }
}
