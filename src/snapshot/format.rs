//! PURE: the format of a snapshot. `table/image/save.rs` describes how a table's words are read while other threads
//! change them.
//!
//! # The format, version 3
//! All numbers are little-endian. A *checksum* (in names: seal) is the CRC-32 of zlib and PNG, of everything before it
//! except other checksums, which check themselves.
//!
//! | bytes | what |
//! |---|---|
//! | | **the header** |
//! | 8 | `89 43 43 46 0d 0a 1a 0a`: not ASCII, `CCF`, and line ends that a transfer as text would change |
//! | 2 | the version of the format: 3. (Version 2 has the same bytes, but another arithmetic from hashes to buckets) |
//! | 1 | the kind of filter: 1 for one table (`ConcurrentCuckooFilter`); 4 for a maplet (`CuckooMaplet`); 5 for a filter whose entries expire (`ExpiringCuckooFilter`); 6 for a growable filter. (2 was a growable filter that was a chain of tables, and 3 a rotating filter. They cannot be loaded: rebuild the filter) |
//! | 8 | the hasher's hash of a fixed probe (`hasher/probe.rs`) |
//! | 1 | the length `s` of the schema |
//! | s | the schema, in UTF-8: what the keys are |
//! | 1 | 1 if the caller has given a position, else 0 |
//! | 8 | the position, or 0 |
//! | 4 | the length `a` of the attachment, at most 65,536 |
//! | 4 | a checksum |
//! | a | the attachment: bytes of the caller's own |
//! | 4 | a checksum |
//! | | *for kind 4:* |
//! | 1 | the bits of a value |
//! | 4 | a checksum |
//! | | *for kind 5:* |
//! | 1 | the bits of an end |
//! | 4 | the longest lifetime, in ticks |
//! | 8, 4 | how long a tick is, in seconds and nanoseconds; 0 if that is not known |
//! | 1 | 1 if a tick is known; if not, 0, the next three are 0, and no slot is taken. And 2 more if the filter evicts when it is full |
//! | 8 | the tick that is now |
//! | 2 | the place on the ring of the last tick that has ended: that of now, or of the last one that was evicted |
//! | 4 | by how many ticks the sweep lags behind |
//! | 2 | only of a filter that evicts: how many ticks after now were evicted |
//! | 4 | a checksum |
//! | | *for kind 6:* |
//! | 1 | the encoding that was asked for: 0 plain, 1 semi-sorted, 255 if none |
//! | 1 | the bits of a base: of a fingerprint at the largest size |
//! | 1 | the doublings from one bucket to the largest size |
//! | 8 | the number of buckets at the first size, which is the smallest |
//! | 8 | the number of buckets at the largest size |
//! | 4 | a checksum |
//! | | **a section for the table** |
//! | 1 | the encoding of the buckets: 0 plain, 1 semi-sorted. And twice the limit of the capacity, if it has one: the share of the slots that it may take for the sake of the rate, in 128ths |
//! | 1 | the slots of a bucket |
//! | 1 | the bits of a fingerprint, without those of a value |
//! | 8 | the number `n` of buckets |
//! | 4 | a checksum |
//! | 8·n | the buckets, each a word (`word/bucket.rs`) |
//! | 8 | how many slots are taken in all buckets. It follows them because it is known only then, while other threads insert |
//! | | **the end** |
//! | 4 | a checksum |
//!
//! A growable filter's section declares the layout of the buckets that are not split, which follows from the number of
//! buckets and from what kind 6 declares. Each bucket has the layout of its depth (`word/classes.rs`,
//! `word/layouts.rs`).
//!
//! # Length and checks
//! A snapshot of one table has `68 + s + a + 8·n` bytes. A maplet's has five more, that of a filter whose entries
//! expire has 36 more, or 38 if it evicts, and a growable filter's has 23 more. Numbers that say how much to read or
//! allocate are used only after the checksum that follows them (except the length of the schema, which is 255 at most).
//!
//! Every number is checked against the others with which the library later computes. In a snapshot of kind 5, the
//! longest lifetime fits on the ring, fewer ticks were evicted than it has, and each place is on the ring. An entry's
//! end is one that the sweep has yet to reach, or it comes at most as many ticks after now as the longest lifetime has:
//! the evicted ticks are among these. So each place means one tick, and the sweep counts no entry as evicted that it
//! does not find.
//!
//! Any change of one bit, and any burst of up to 32 bits, is certain to be detected. Other changes go undetected one
//! time in four billion. A checksum protects from accidents, not from an adversary, who can compute it too. An
//! adversary can make any valid snapshot. It can't make the library do anything that it must not do, but it decides
//! what the filter answers.
//!
//! The version must be raised whenever the meaning of a word or of a bucket's number changes (`word/bucket.rs`,
//! `word/geometry.rs`), and not only when the format changes: the test `a_snapshot_has_these_bytes` notices.
//! Version 1 was never released.

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::snapshot::source::Source;
use crate::table::expiring::clock::Reading;
use crate::table::face::any_table::HasTable;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::image::read::TableImage;
use crate::word::tick::Tick;

/// What all kinds of snapshots have in common, and how they differ.
pub(crate) trait Saved: HasTable + Sized {
    const KIND: FilterKind;

    /// What builds the empty table of such a filter.
    type Stated;

    /// The head of a save that has begun.
    fn head(&self, image: &TableImage<'_>) -> Head;

    /// Reads and checks all that comes between the header and the buckets.
    fn stated(source: &mut Source<'_>) -> Result<Declared<Self::Stated>, LoadError>;

    /// An empty filter as declared, for a caller that uses `memory_of_caller` bytes. The only error is `OutOfMemory`.
    fn empty(stated: Self::Stated, memory_limit: usize, memory_of_caller: usize) -> Result<Self, LoadError>;

    /// Reads what follows the header.
    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let Declared { plan, reading, own } = Self::stated(source)?;
        source.expect_table(&plan)?;
        source.reserve(plan.memory_usage.saturating_add(memory_of_caller))?;
        let filter = Self::empty(own, source.limit(), memory_of_caller)?;
        let (table, buckets) = (filter.table(), plan.layout.buckets);
        let len = source.words(&plan, reading, &mut |start, words| table.fill_from(buckets, start, words))?;
        check_clock(reading, len)?;
        Ok(filter)
    }
}

/// What a snapshot declares of a filter, apart from its keys.
#[allow(unreachable_pub, missing_debug_implementations, reason = "a public trait that nobody can name has it")]
pub struct Declared<T> {
    /// Without the memory of the filter's caller.
    pub(crate) plan: FilterPlan,
    /// What the filter's clock shows, if it has one.
    pub(crate) reading: Option<Reading>,
    /// What only this kind of filter has.
    pub(crate) own: T,
}

impl<T> Declared<T> {
    /// The tick of the filter's clock, if it was set.
    pub(crate) fn now(&self) -> Option<Tick> {
        self.reading.and_then(|reading| reading.now).map(Tick::new)
    }
}

/// A filter whose entries expire takes none before its first tick.
pub(crate) fn check_clock(reading: Option<Reading>, entries: u64) -> Result<(), LoadError> {
    if reading.is_some_and(|reading| reading.now.is_none()) && entries > 0 {
        return Err(LoadError::EntriesWithoutClock { entries });
    }
    Ok(())
}

/// What a kind of filter declares apart from its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl Head {
    const MOST: usize = 34;

    /// For a filter of one table.
    pub(crate) const NONE: Self = Self { bytes: [0; Self::MOST], len: 0 };

    pub(crate) fn of(stated: &[u8]) -> Self {
        let mut head = Self { len: stated.len(), ..Self::NONE };
        head.bytes[..stated.len()].copy_from_slice(stated);
        head
    }

    /// Empty if there is nothing to declare, not even a checksum.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
