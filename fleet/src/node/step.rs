//! Steps that a test leaves out, to show that its check notices. Release builds have none of this.

/// A step of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// To compare the clock with the lease at each lookup.
    Lease,
    /// To do so after the lookup, and not before.
    LeaseAfterLookup,
    /// To do so before the lookup, too.
    LeaseBeforeLookup,
    /// To have a lease of its own for each time that a node joins.
    OwnLease,
    /// To catch up with the engine before a lease begins.
    CatchUp,
    /// To wait until a change is applied here before it is acknowledged.
    Wait,
    /// To retry under the same identifier.
    SameIdentifier,
    /// To say until when a message may be taken.
    Before,
    /// To ask the record where the filter is not sure.
    Record,
    /// To pass over a damaged snapshot.
    PassOver,
    /// To compare the digest of a snapshot with the one that was noted.
    SnapshotDigest,
    /// To compare digests.
    Compare,
    /// To see that the log begins later, although there is nothing to read.
    SilentGap,
    /// To compare the hash of the log.
    Chain,
    /// To compare the engine's clock with the node's own.
    Clocks,
    /// To write no snapshot of a filter that differs.
    NoSnapshotOfDifference,
    /// To take up a new log.
    Rejoin,
    /// To apply the ticks of the log.
    Ticks,
    /// To apply the first change after joining. (Nobody would forget this step. Leaving it out makes a filter
    /// differ.)
    Change,
}

/// Which steps are left out.
#[derive(Clone, Debug, Default)]
pub struct LeftOut(#[cfg(debug_assertions)] pub Vec<Step>);

impl LeftOut {
    #[inline(always)]
    pub(crate) fn has(&self, step: Step) -> bool {
        #[cfg(debug_assertions)]
        return self.0.contains(&step);
        #[cfg(not(debug_assertions))]
        {
            let _ = step;
            false
        }
    }
}
