//! PURE: the format of a snapshot. `table/image/copy_on_write.rs` describes how a table's words are read while other threads
//! change them.
//!
//! The format and the formulas that give its words a meaning are in `docs/snapshot_format.md`, with test vectors.
//!
//! # Checks
//! Numbers that say how much to read or allocate are used only after the checksum that follows them (except the length of
//! the schema, which is 255 at most).
//!
//! Every number is checked against the others with which the library later computes. In a snapshot of kind 5, the
//! longest lifetime fits on the ring, fewer ticks were evicted than it has, and each place is on the ring. An entry's
//! expiry is one that the sweep has yet to reach, or it comes at most as many ticks after now as the longest lifetime has:
//! the evicted ticks are among these. So each place means one tick, and the sweep counts no entry as evicted that it
//! does not find.
//!
//! A checksum protects from accidents, not from an adversary, who can compute it too. An adversary can make any valid
//! snapshot. It can't make the library do anything that it must not do, but it decides what the filter answers.
//!
//! The version must be raised whenever the meaning of a word or of a bucket's number changes (`word/bucket.rs`,
//! `word/geometry.rs`, `word/classes.rs`), and not only when the format changes: the tests of the page's test vectors
//! notice (`tests/snapshots/other_languages.rs`).

use crate::error::damage::SnapshotDamage;
use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::snapshot::source::SnapshotSource;
use crate::table::core::Core;
use crate::table::expiring::clock::ClockState;
use crate::table::filter_plan::FilterPlan;
use crate::table::image::read::TableImage;
use crate::word::tick::Tick;

/// What all kinds of snapshots have in common, and how they differ.
pub(crate) trait SnapshotCore: Core + Sized {
    const KIND: FilterKind;

    /// What builds the empty table of such a filter.
    type Plan;

    /// The kind's header for a save that has begun.
    fn kind_header(&self, image: &TableImage<'_>) -> KindHeader;

    /// Reads and checks all that comes between the header and the buckets.
    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<Self::Plan>, LoadError>;

    /// An empty filter as declared, for a caller that uses `memory_of_caller` bytes. The only error is `OutOfMemory`.
    fn empty(plan: Self::Plan, memory_limit: usize, memory_of_caller: usize) -> Result<Self, LoadError>;

    /// Checks that the filter may hold so many keys.
    fn check_len(&self, _: u64) -> Result<(), LoadError> {
        Ok(())
    }

    /// Reads what follows the header.
    fn load(source: &mut SnapshotSource<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let Declared { plan, clock_state, own } = Self::read_declared(source)?;
        source.expect_table(&plan)?;
        source.reserve(plan.memory_usage.saturating_add(memory_of_caller))?;
        let filter = Self::empty(own, source.limit(), memory_of_caller)?;
        let table = filter.image_source();
        let len = source.words(&plan, clock_state, &mut |start, words| table.fill_from(start, words))?;
        filter.counters().add_len(len as i64);
        check_clock(clock_state, len)?;
        filter.check_len(len)?;
        Ok(filter)
    }
}

/// What a snapshot declares of a filter, apart from its keys.
#[allow(unreachable_pub, missing_debug_implementations, reason = "a public trait that nobody can name has it")]
pub struct Declared<T> {
    /// Without the memory of the filter's caller.
    pub(crate) plan: FilterPlan,
    /// What the filter's clock shows, if it has one.
    pub(crate) clock_state: Option<ClockState>,
    /// What only this kind of filter has.
    pub(crate) own: T,
}

impl<T> Declared<T> {
    /// The tick of the filter's clock, if it was set.
    pub(crate) fn now(&self) -> Option<Tick> {
        self.clock_state.and_then(|clock_state| clock_state.now).map(Tick::new)
    }
}

/// A filter whose entries expire takes none before its first tick.
pub(crate) fn check_clock(clock_state: Option<ClockState>, entries: u64) -> Result<(), LoadError> {
    if clock_state.is_some_and(|clock_state| clock_state.now.is_none()) && entries > 0 {
        return Err(SnapshotDamage::EntriesWithoutClock { entries }.into());
    }
    Ok(())
}

/// The header of a kind of filter: what it declares apart from its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindHeader {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl KindHeader {
    const MOST: usize = 34;

    /// For a filter of one table.
    pub(crate) const NONE: Self = Self { bytes: [0; Self::MOST], len: 0 };

    pub(crate) fn of(declared: &[u8]) -> Self {
        let mut header = Self { len: declared.len(), ..Self::NONE };
        header.bytes[..declared.len()].copy_from_slice(declared);
        header
    }

    /// Empty if there is nothing to declare, not even a checksum.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
