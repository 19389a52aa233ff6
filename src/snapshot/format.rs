//! Pure: the format of a snapshot, and the way from a filter to it and back. How a table's words are read while others
//! change them stands in `table/save.rs`.
//!
//! # The format, version 1
//! All numbers are little-endian. A *seal* is the CRC-32 (that of zlib and PNG) of all that precedes it but for other
//! seals, which check themselves.
//!
//! | bytes | what |
//! |---|---|
//! | | **the header** |
//! | 8 | `89 43 43 46 0d 0a 1a 0a`: not ASCII, `CCF`, and line ends that a transfer as text would change |
//! | 2 | the version of the format: 1 |
//! | 1 | the kind of filter: 1 for one table (`ConcurrentCuckooFilter`); 2 for a growable and 3 for a rotating filter |
//! | 8 | the hasher's hash of [`PROBE`] |
//! | 4 | a seal |
//! | | *for kind 2:* |
//! | 1 | how many tables there are |
//! | 8 | the number of buckets of table 0 |
//! | 8 | the rate that was asked for, an IEEE 754 number |
//! | 4 | a seal |
//! | | *for kind 3:* |
//! | 1 | how many generations are live |
//! | 1 | 1 if the filter rotates when it is full, else 0 |
//! | 8 | the number of the current generation, below 2⁵⁶ |
//! | 8 | one more than the last tick of the caller's clock, or 0 if there was none |
//! | 4 | a seal |
//! | | **a section for each table**: for kind 2 from the newest to the oldest, for kind 3 from that of the oldest live generation to the current one |
//! | 1 | the encoding of the buckets: 0 plain, 1 semi-sorted |
//! | 1 | the slots of a bucket |
//! | 1 | the bits of a fingerprint |
//! | 8 | the number `n` of buckets |
//! | 4 | a seal |
//! | 8·n | the buckets, each a word (`word/bucket.rs`) |
//! | 8 | how many slots are taken in all of them; after them, for while others insert it is known only then |
//! | | **the end** |
//! | 4 | a seal |
//!
//! A growable filter's tables are those that its rate and the size of its first one lead to (`tables/growth.rs`), and those of a
//! rotating filter are alike; what the sections say of them must agree.
//!
//! # The order of several tables
//! Each table is saved as `table/save.rs` says, from a moment of its own, one after the other.
//!
//! - In a growable filter, the copy of a key that is in changes, if at all, for one in an older table (`tables/growth.rs`). So the
//!   newest table comes first: where the key's copy is not in the tables saved so far, it is in one that is yet to come.
//! - In a rotating filter, the oldest generation comes first, for it is the first to expire: of `g` live ones, the `n`th that
//!   is written expires with the `n`th rotation after the save began.
//!
//! # How long
//! A snapshot of one table has `50 + 8·n` bytes. Numbers that say how much is to be read or allocated are used only after
//! the seal that follows them. Any change of one bit, and of several within 32 in a row, is certain to be found; others pass
//! one time in four billion. A seal protects from accidents, not from an adversary, who can compute it too: he can make any
//! snapshot that is one. It can't make the library do what it must not, but it says what he likes.
//!
//! The version is to be raised whenever the meaning of a word or of a bucket's number changes (`word/bucket.rs`, `word/geometry.rs`), and
//! not only the format: the test `a_snapshot_has_these_bytes` notices.

use core::hash::BuildHasher;
use std::io::{Read, Write};

use crate::error::load::LoadError;
use crate::filter::concurrent::ConcurrentCuckooFilter;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::table::any::AnyTable;
use crate::table::plan::Plan;
use crate::table::save::CHUNK;
use crate::table::words;
use crate::word::layout::{Encoding, SHAPES, Shape};

const MAGIC: [u8; 8] = *b"\x89CCF\r\n\x1a\n";

const VERSION: u16 = 1;

/// What kind of filter a snapshot is of.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    OneTable = 1,
    Growable = 2,
    Rotating = 3,
}

/// The key whose hash tells whether two hashers are the same: of text, numbers and bytes, so that a change in how any of
/// these is fed to a hasher is noticed too.
const PROBE: (&str, u64, u32, &[u8]) =
    ("concurrent-cuckoo-filter", 0x0123_4567_89ab_cdef, 0x89ab_cdef, &[0, 1, 0xfe, 0xff]);

/// Where a snapshot is written to.
pub(crate) struct Sink<'a> {
    to: &'a mut dyn Write,
    sum: crc32fast::Hasher,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, sum: crc32fast::Hasher::new() }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.sum.update(bytes);
        self.to.write_all(bytes)
    }

    pub(crate) fn seal(&mut self) -> std::io::Result<()> {
        self.to.write_all(&self.sum.clone().finalize().to_le_bytes())
    }

    pub(crate) fn header(&mut self, kind: Kind, hasher: &impl BuildHasher) -> std::io::Result<()> {
        self.put(&MAGIC)?;
        self.put(&VERSION.to_le_bytes())?;
        self.put(&[kind as u8])?;
        self.put(&hasher.hash_one(PROBE).to_le_bytes())?;
        self.seal()
    }

    pub(crate) fn section(&mut self, table: &dyn AnyTable) -> std::io::Result<()> {
        let Shape { encoding, slots, fingerprint_bits } = table.shape();
        self.put(&[encoding_number(encoding), slots as u8, fingerprint_bits as u8])?;
        self.put(&(table.buckets() as u64).to_le_bytes())?;
        self.seal()?;
        let mut bytes = [[0; 8]; CHUNK];
        let copies = table.save(&mut |words| {
            let bytes = &mut bytes[..words.len()];
            for (bytes, word) in bytes.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            self.put(bytes.as_flattened())
        })?;
        self.put(&copies.to_le_bytes())
    }

    /// The last seal.
    pub(crate) fn end(mut self) -> std::io::Result<()> {
        self.seal()?;
        self.to.flush()
    }
}

/// Where a snapshot is read from.
pub(crate) struct Source<'a> {
    from: &'a mut dyn Read,
    sum: crc32fast::Hasher,
    /// How many bytes the filter may take up, and how many it takes up so far.
    limit: usize,
    needed: usize,
    /// How many bytes there are to read, if that is known.
    available: usize,
}

impl<'a> Source<'a> {
    /// A source of `available` bytes in all, or `usize::MAX` if that is not known, for a filter of at most `limit`.
    pub(crate) fn new(from: &'a mut dyn Read, limit: usize, available: usize) -> Self {
        Self { from, sum: crc32fast::Hasher::new(), limit, needed: 0, available }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), LoadError> {
        self.from.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }

    /// Reads a seal: what it states and what it should.
    fn seal(&mut self) -> Result<(u32, u32), LoadError> {
        let mut stated = [0; 4];
        self.from.read_exact(&mut stated)?;
        Ok((u32::from_le_bytes(stated), self.sum.clone().finalize()))
    }

    /// Reads the seal of a header; what was read before it is safe to use then.
    pub(crate) fn header_seal(&mut self) -> Result<(), LoadError> {
        let (stated, computed) = self.seal()?;
        if stated == computed { Ok(()) } else { Err(LoadError::DamagedHeader { stated, computed }) }
    }

    /// How many bytes the filter may take up.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Asks for so many bytes, which the filter is to take up.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), LoadError> {
        self.needed = self.needed.saturating_add(bytes);
        let &mut Self { needed, limit, .. } = self;
        if needed <= limit { Ok(()) } else { Err(LoadError::MemoryLimit { needed, limit }) }
    }

    pub(crate) fn header(&mut self, kind: Kind, hasher: &impl BuildHasher) -> Result<(), LoadError> {
        if self.take()? != MAGIC {
            return Err(LoadError::NotASnapshot);
        }
        let version = u16::from_le_bytes(self.take()?);
        if version != VERSION {
            return Err(LoadError::UnsupportedVersion { version, supported: VERSION });
        }
        let [stated_kind] = self.take()?;
        let probe = u64::from_le_bytes(self.take()?);
        self.header_seal()?;
        if stated_kind != kind as u8 {
            return Err(LoadError::WrongKind { kind: stated_kind, expected: kind as u8 });
        }
        if probe == hasher.hash_one(PROBE) { Ok(()) } else { Err(LoadError::OtherHasher) }
    }

    /// Reads a section, into a table that stands alone, for a caller that takes up so much memory itself.
    pub(crate) fn section(&mut self, memory_of_caller: usize) -> Result<Box<dyn AnyTable>, LoadError> {
        let plan = self.table_header()?;
        self.reserve(plan.memory_usage().saturating_add(memory_of_caller))?;
        let mut table =
            plan.table().ok_or_else(|| LoadError::OutOfMemory { bytes: words::memory_for(plan.buckets) })?;
        self.words(&mut *table)?;
        Ok(table)
    }

    /// Reads the header of a section: what its table is to be.
    pub(crate) fn table_header(&mut self) -> Result<Plan, LoadError> {
        let [encoding, slots, fingerprint_bits] = self.take()?;
        let buckets = u64::from_le_bytes(self.take()?);
        self.header_seal()?;
        let is_it = |shape: &Shape| {
            (encoding_number(shape.encoding), shape.slots, shape.fingerprint_bits)
                == (encoding, slots.into(), fingerprint_bits.into())
        };
        let shape =
            SHAPES.into_iter().find(is_it).ok_or(LoadError::UnknownLayout { encoding, slots, fingerprint_bits })?;
        let possible = buckets == 1 || buckets != 0 && buckets.is_multiple_of(2) && buckets <= sizing::LARGEST as u64;
        if !possible {
            return Err(LoadError::InvalidBuckets { buckets, largest: sizing::LARGEST as u64 });
        }
        let buckets = buckets as usize;
        self.expect_tables_of(buckets)?;
        Ok(Plan::new(shape, buckets, Pages::DEFAULT))
    }

    /// Looks whether there can be tables of so many buckets in all among what has yet to be read.
    pub(crate) fn expect_tables_of(&self, buckets: usize) -> Result<(), LoadError> {
        if buckets > self.available / size_of::<u64>() { Err(LoadError::Truncated) } else { Ok(()) }
    }

    /// Reads what follows the header of a section, into an empty table.
    pub(crate) fn words(&mut self, table: &mut dyn AnyTable) -> Result<(), LoadError> {
        let mut bytes = [[0; 8]; CHUNK];
        let counted = table.load(&mut |words| {
            let bytes = &mut bytes[..words.len()];
            self.fill(bytes.as_flattened_mut())?;
            for (word, &mut bytes) in words.iter_mut().zip(bytes) {
                *word = u64::from_le_bytes(bytes);
            }
            Ok(())
        })?;
        let stated = u64::from_le_bytes(self.take()?);
        if stated == counted { Ok(()) } else { Err(LoadError::WrongCount { stated, counted }) }
    }

    /// The last seal.
    pub(crate) fn end(mut self) -> Result<(), LoadError> {
        let (stated, computed) = self.seal()?;
        if stated == computed { Ok(()) } else { Err(LoadError::WrongChecksum { stated, computed }) }
    }
}

fn encoding_number(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::Plain => 0,
        Encoding::SemiSorted => 1,
    }
}

/// Snapshots: the filter as bytes, to survive a restart or to travel. Only with the feature `snapshot`.
///
/// A snapshot is of use only to those who have the same hasher, and **not every hasher is the same tomorrow**:
///
/// | hasher | survives a restart | an upgrade of the compiler or of dependencies | another machine |
/// |---|---|---|---|
/// | [`ahash::RandomState`] with random keys (the default) | no | no | no |
/// | [`ahash::RandomState`] with keys of the caller's, by `with_seeds` | of the same binary on the same processor | no | no |
/// | [`std::hash::RandomState`] | no | no | no |
/// | `StableState` (feature `stable-hash`), keys that are text, bytes or integers | yes | yes, as long as std encodes these as it does now, or else [`load`](Self::load) says so | yes |
/// | `StableState::hash_bytes` of the caller's own bytes, and the operations on hashes | yes | yes | yes |
///
/// [`load`](Self::load) is told by a fixed probe, whose hash is in the snapshot, whether the hasher is the same.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableState};
///
/// let key = *b"sixteen secrets!"; // from the configuration
/// let revoked = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, StableState::with_key(key));
/// revoked.insert("token-17")?;
/// let mut snapshot = Vec::new();
/// revoked.save(&mut snapshot)?;
///
/// let loaded = ConcurrentCuckooFilter::<str, _>::load(&snapshot[..], StableState::with_key(key), 1 << 20)?;
/// assert!(loaded.contains("token-17"));
/// assert_eq!(loaded.len(), 1);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
    /// Writes a snapshot of the filter, while others go on using it.
    ///
    /// Of what other threads do meanwhile:
    ///
    /// - **Each key that is in throughout the call is in the snapshot**, as often as it is in the filter, however it is
    ///   relocated.
    /// - A key that was in when the call began and is removed meanwhile is in the snapshot all the same. (So a snapshot may
    ///   hold what the filter no longer does. Log removals if that matters, and repeat them after loading.)
    /// - A key that is inserted meanwhile may be in or not: if it must not be lost, insert it again after loading, or save
    ///   again. In all, a key is in the snapshot at most as often as it was in at the beginning and has been inserted since.
    ///   (For one that is inserted and removed again and again, that may be more often than it was ever in at once.)
    /// - What [`clear`](Self::clear) removes meanwhile may be in or not.
    ///
    /// The snapshot is `50 + 8 · buckets` bytes long, a little less than [`memory_usage`](Self::memory_usage). It holds
    /// fingerprints and neither keys nor the hasher's key. The format is documented in `src/snapshot/format.rs`.
    ///
    /// Cost: one pass over the table, in pieces of 8 KiB, which are written one by one, so that a file needs no buffer;
    /// `to` is flushed at the end. No second copy of the table is made. Lookups and inserts that find room go on as ever.
    /// Removals and relocations wait at the beginning for as long as it takes to lock all stripes (some microseconds). Then
    /// each of them, if its bucket has yet to be written, puts the bucket's word aside under a lock held for a fraction of
    /// a microsecond, which takes 16 to 64 bytes until it has been written, and they allocate for that. So a slow writer
    /// costs memory in proportion to what is removed and relocated meanwhile; it holds up nobody. One save runs at a time:
    /// others wait for it, and so each for the other's writer.
    ///
    /// To save to a file, write another file, [`sync_all`](std::fs::File::sync_all) it and rename it over the old one, so
    /// that there is a whole snapshot at any time.
    ///
    /// # Errors
    /// Those of `to`; `OutOfMemory` if the memory was refused in which words are put aside (the removals and relocations
    /// themselves are done); `Deadlock` if `to` saves the same filter while its buckets are
    /// being written. (Two saves that wait for each other's writers, on two threads, are not noticed.) What has been written then is no snapshot, and the
    /// filter is as it was.
    pub fn save(&self, mut to: impl Write) -> std::io::Result<()> {
        let mut sink = Sink::new(&mut to);
        sink.header(Kind::OneTable, self.hasher())?;
        sink.section(self.table())?;
        sink.end()
    }

    /// Reads a snapshot that [`save`](Self::save) has written, into a new filter.
    ///
    /// `hasher` must be the one with which the snapshot was made. The filter has its capacity, rate and layout from the
    /// snapshot. It is to take up no more than `memory_limit` bytes, as [`memory_usage`](Self::memory_usage) counts them.
    /// Nothing larger is allocated. (The decode table of up to 256 KiB that all semi-sorted filters share comes on top, if
    /// this is the first of them.)
    ///
    /// Exactly the snapshot is read, in pieces of 8 KiB, and what follows it is left. All that is read is checked, and no
    /// bytes whatever make this panic, or make a filter that does: every number of the header before anything is allocated,
    /// every bucket, the number of items, and checksums, which find accidents for certain or nearly so. But whoever makes a
    /// snapshot on purpose decides what the filter says: take snapshots from those whom you trust with its answers.
    ///
    /// # Errors
    /// Each failure has its own [`LoadError`]. **A filter that could not be loaded is not an empty one**: rebuild it from
    /// the source of truth.
    pub fn load(mut from: impl Read, hasher: S, memory_limit: usize) -> Result<Self, LoadError> {
        Self::load_from(Source::new(&mut from, memory_limit, usize::MAX), hasher)
    }

    pub(crate) fn load_from(mut source: Source<'_>, hasher: S) -> Result<Self, LoadError> {
        source.header(Kind::OneTable, &hasher)?;
        let table = source.section(size_of::<Self>())?;
        source.end()?;
        Ok(Self::from_parts(table, hasher))
    }
}
