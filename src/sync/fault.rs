//! Injected faults: in a model, and only there, each step of the protocol that the proofs rely on can be left out.
//!
//! A model proves nothing unless it fails when the step it is about is missing. So every such step queries [`injected`]
//! first. In the real library the answer is the constant `false`, and the query costs nothing.
#![allow(missing_docs, reason = "most names of faults say what is left out")]

/// A step of the protocol that a model can leave out.
#[allow(unreachable_pub, reason = "models see it, through `model/mod.rs`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    RelocateWithoutBump,
    RelocateBumpsLate,
    RelocateClearsFirst,
    /// A relocation trusts its plan: it does not check again that the fingerprint is still in the old bucket.
    RelocateWithoutRecheck,
    RelocateWithoutLock,
    RemoveWithoutBump,
    RemoveBumpsLate,
    RemoveWithoutLock,
    /// A lookup that found nothing does not read the version again.
    LookupWithoutVersion,
    AddValueWithoutLock,
    AddValueWithoutBump,
    /// A relocation of a value does not bump the version before it fills the new slot.
    RelocateAddsWithoutBump,
    ReplaceWithoutLock,
    ReplaceWithoutBump,
    ReplaceTakesFirst,
    ReplaceAddsFirst,
    /// A replacement does not set aside, for a save, the word that it changes.
    ReplaceSetsNothingAside,
    /// A lookup of live entries does not read the moment again.
    LookupWithoutClock,
    ForgetWithoutLocks,
    /// An insert that found no room ends ticks early although another thread has made room.
    ForgetsAgain,
    /// An insert that found no room ends ticks early although its key has an entry by now.
    ForgetsThoughPresent,
    RestartWithoutLocks,
    /// A renewal treats the entry that it renews as live, although that may have died meanwhile.
    RenewsTheDead,
    /// An entry is added whose end has a place on the ring that is yet to be swept.
    AddsBeforeSwept,
    /// A pass begins without waiting for the writers that are under way.
    SweepWithoutSettling,
    SweepWithoutBump,
    DropWithoutBump,
    /// An unfinished pass counts as finished.
    SweptTooSoon,
    /// A pass, or a thread that takes dead entries out, does not set aside for a save the word that it changes.
    SweepSetsNothingAside,
    DropWithoutLock,
    RelocateDead,
    InsertIfAbsentWithoutLock,
    CountWithoutLock,
    ClearWithoutLocks,
    ClearWithoutBump,
    /// An addition stores its word even if the bucket has changed since it was read.
    AddOverwrites,
    /// A removal or relocation stores its word even if the bucket has changed since it was read.
    TakeOverwrites,
    /// The length is changed by a load and a store.
    CountDropsUpdates,
    /// `insert_if_absent` reports "full" without checking whether the key has come in meanwhile.
    FullThoughPresent,
    /// "Full" is reported by the first search that finds no path.
    FullWithoutConfirmation,
    /// "Full" is reported by the second search that finds no path, even if something has moved meanwhile.
    FullIgnoresVersions,
    /// Where few buckets can be reached, an insert passes only through the lock of its own item's stripe.
    FullPassesOwnStripe,
    /// An insert whose searches were invalidated makes its last search without the stripes' locks.
    FullWithoutLocks,
    SaveWithoutLocks,
    /// A save begins with one pass through the stripes' locks, instead of holding all.
    SaveLocksInTurn,
    /// A save reads a chunk's words after it has marked the chunk as passed.
    SaveReadsAfterPassing,
    /// A relocation does not set aside, for a save, the word that it takes its copy out of.
    RelocateSetsNoSourceAside,
    /// A relocation does not set aside the word that it puts its copy into.
    RelocateSetsNoTargetAside,
    /// A relocation sets the word that it puts its copy into aside only after it has put the copy there.
    RelocateSetsTargetAsideLate,
    /// A removal does not set aside, for a save, the word that it takes its copy out of.
    RemoveSetsNothingAside,
    /// An insert does not set aside, for a save, the word that it puts its copy into.
    InsertSetsNothingAside,
    /// If a bucket changes more than once, a save has the latest word that was set aside.
    SetsLatestWordAside,
    /// If several saves are running, words are set aside for only one.
    SetsAsideForOneSave,
    /// A split does not set aside, for a save, the words that it changes.
    SplitSetsNothingAside,
    /// The size changes without an announcement that copies are being moved.
    SplitsUnannounced,
    /// A merge changes the size without an announcement that copies are being moved.
    MergesUnannounced,
    /// A lookup reads the words of a bucket that is being moved.
    LookupIgnoresMoving,
    /// A lookup that found nothing does not ask whether the size has changed.
    LookupWithoutEpoch,
    /// A thread that holds a stripe's lock and reads copies does not ask whether the size has changed.
    WriterWithoutEpoch,
    /// A copy is added without the bucket's gate, to the place that it had before.
    AddsWithoutGate,
    /// A copy is taken out without the bucket's gate, from the place that it had before.
    TakesWithoutGate,
    /// A thread that has locked a gate does not ask again where its side's copies are.
    EntersFormerPlace,
    /// A change of the size holds only the gates of whole buckets, and not those of what they become.
    LocksHalfTheGates,
    SaveWithoutGates,
    /// A save of a table that grows begins without the gates that have come in since it counted them.
    SaveMissesNewGates,
    /// A table that has become smaller gives back memory that a running save may still read.
    GivesBackBesideSave,
    /// A table gives back the memory beyond its end while another thread may add buckets there.
    GivesBackWithoutLock,
}

/// Whether `fault` is switched on in this model.
#[cfg(not(ccf_model))]
#[inline(always)]
pub(crate) const fn injected(_fault: Fault) -> bool {
    false
}

#[cfg(ccf_model)]
std::thread_local! {
    /// One bit for each fault that is switched on.
    static INJECTED: core::cell::Cell<u128> = const { core::cell::Cell::new(0) };
}

/// Whether `fault` is switched on in this model.
///
/// loom and shuttle run all threads of a model on the thread that started it. So a thread-local reaches all of them,
/// and no other model that runs at the same time. A model of real threads switches the fault on in each thread.
#[cfg(ccf_model)]
pub(crate) fn injected(fault: Fault) -> bool {
    INJECTED.get() & 1 << fault as u64 != 0
}

/// From here on, switches these faults on and all others off, for this thread and the models that it runs.
#[cfg(ccf_model)]
pub fn inject(faults: &[Fault]) {
    INJECTED.set(faults.iter().fold(0, |bits, &fault| bits | 1 << fault as u64));
}

/// Faults that are switched on for this thread until this value is dropped.
#[cfg(ccf_model)]
#[derive(Debug)]
pub struct Seeded(());

#[cfg(ccf_model)]
impl Seeded {
    /// Switches these faults on.
    pub fn bugs(faults: &[Fault]) -> Self {
        inject(faults);
        Self(())
    }
}

#[cfg(ccf_model)]
impl Drop for Seeded {
    fn drop(&mut self) {
        inject(&[]);
    }
}
