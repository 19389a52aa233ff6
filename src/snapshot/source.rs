//! Reading a snapshot, in the format of `docs/snapshot_format.md`, and checking it on the way.

use std::io::{ErrorKind, Read};

use crate::error::damage::SnapshotDamage;
use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::error::mismatch::{SnapshotMismatch, UnsupportedSnapshot};
use crate::machine::memory::Pages;
use crate::machine::time::TimeSource;
use crate::plan::sizing::{self, LoadLimit};
use crate::plan::table_plan::TablePlan;
use crate::snapshot::parts::{MAGIC, MAX_ATTACHMENT, VERSION, encoding_number};
use crate::snapshot::schema::MAX_SCHEMA;
use crate::sync::sizes::CHUNK;
use crate::table::expiring::clock::ClockState;
use crate::table::filter_plan::FilterPlan;
use crate::word::check;
use crate::word::classes::State;
use crate::word::layout::Shape;
use crate::word::layouts::Layouts;
use crate::word::ring::{Arc, Ring};

/// The bytes of a section without the table's words: the header with a checksum, and the count after the words.
const SECTION: u64 = 23;

/// The fewest bytes of a snapshot: a header without schema and attachment, and a table of one bucket.
const LEAST: u64 = 41 + SECTION + 8 + END;

/// The header of a section alone.
const TABLE_HEADER: u64 = 15;

/// The bytes of the last checksum.
const END: u64 = 4;

/// The caller's metadata in a snapshot.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) position: Option<u64>,
    pub(crate) attachment: Vec<u8>,
}

/// The beginning of every header, as declared: only its checksum has been verified.
#[derive(Debug)]
pub(crate) struct AnyHeader {
    kind: u8,
    probe: u64,
    schema: [u8; MAX_SCHEMA],
    schema_len: u8,
    has_position: u8,
    position: u64,
    attached: u32,
}

impl AnyHeader {
    /// The type of filter that was saved.
    pub(crate) fn filter_kind(&self) -> Result<FilterKind, UnsupportedSnapshot> {
        FilterKind::of_number(self.kind).ok_or(UnsupportedSnapshot::Kind { kind: self.kind })
    }

    pub(crate) fn schema(&self) -> &[u8] {
        &self.schema[..usize::from(self.schema_len)]
    }
}

/// Where a snapshot is read from.
#[allow(unreachable_pub, missing_debug_implementations, reason = "a public trait that nobody can name has it")]
pub struct SnapshotSource<'a> {
    from: &'a mut dyn Read,
    sum: crc32fast::Hasher,
    /// How many bytes have been read, and the least number of bytes that they declare.
    read: u64,
    expected: u64,
    /// How many bytes there are to read, if known.
    available: Option<u64>,
    /// The settings that the filter must have, if any.
    settings: Option<FilterPlan>,
    /// Where a filter takes the time from that goes by it.
    time: TimeSource,
    /// The `max_capacity` that a growable filter gets instead of its own, if any.
    max_capacity: Option<usize>,
    /// How many bytes the filter may use, and how many it uses so far.
    limit: usize,
    needed: usize,
}

impl<'a> SnapshotSource<'a> {
    /// A source for a filter of at most `limit` bytes. The source itself has `available` bytes, if that is known.
    pub(crate) fn new(from: &'a mut dyn Read, limit: usize, available: Option<u64>) -> Self {
        Self {
            from,
            sum: crc32fast::Hasher::new(),
            read: 0,
            expected: LEAST,
            available,
            settings: None,
            time: TimeSource::default(),
            max_capacity: None,
            limit,
            needed: 0,
        }
    }

    /// This source, for a filter that must have these settings.
    pub(crate) fn expecting(self, settings: Option<FilterPlan>) -> Self {
        Self { settings, ..self }
    }

    /// A source for a filter that takes the time from there, if it goes by it.
    pub(crate) fn by_time(self, time: TimeSource) -> Self {
        Self { time, ..self }
    }

    pub(crate) fn time(&self) -> TimeSource {
        self.time.clone()
    }

    /// This source, for a growable filter that gets this `max_capacity` instead of its own.
    pub(crate) fn with_max_capacity(self, max_capacity: Option<usize>) -> Self {
        Self { max_capacity, ..self }
    }

    /// The `max_capacity` that the filter gets instead of its own, if any.
    pub(crate) fn max_capacity(&self) -> Option<usize> {
        self.max_capacity
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), LoadError> {
        self.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }

    fn read_exact(&mut self, mut rest: &mut [u8]) -> Result<(), LoadError> {
        let expected = self.expected.max(self.read + rest.len() as u64);
        while !rest.is_empty() {
            match self.from.read(rest) {
                Ok(0) => return Err(SnapshotDamage::Truncated { available: self.read, expected }.into()),
                Ok(read) => {
                    self.read += read as u64;
                    rest = &mut rest[read..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(LoadError::Io(error)),
            }
        }
        Ok(())
    }

    /// Reads a checksum. Returns the declared and the computed one.
    fn read_checksum(&mut self) -> Result<(u32, u32), LoadError> {
        let mut declared = [0; 4];
        self.read_exact(&mut declared)?;
        Ok((u32::from_le_bytes(declared), self.sum.clone().finalize()))
    }

    /// Verifies the checksum of a header. What was read before it may then be used.
    pub(crate) fn check_header(&mut self) -> Result<(), LoadError> {
        let (declared, computed) = self.read_checksum()?;
        if declared == computed {
            Ok(())
        } else {
            Err(SnapshotDamage::WrongHeaderChecksum { declared, computed }.into())
        }
    }

    /// How many bytes the filter may use.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds that many bytes to what the filter uses, and checks the limit.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), LoadError> {
        self.needed = self.needed.saturating_add(bytes);
        let &mut Self { needed, limit, .. } = self;
        if needed <= limit { Ok(()) } else { Err(LoadError::MemoryLimit { needed, limit }) }
    }

    /// Reads the header of a snapshot, which must be of this kind of filter, of these keys, with this hasher.
    pub(crate) fn header(&mut self, kind: FilterKind, schema: &str, probe: u64) -> Result<Metadata, LoadError> {
        let (len, limit) = (schema.len(), MAX_SCHEMA);
        if len > limit {
            return Err(SnapshotMismatch::SchemaTooLong { len, limit }.into());
        }
        let header = self.any_header()?;
        let snapshot = header.filter_kind()?;
        if snapshot != kind {
            return Err(SnapshotMismatch::Kind { snapshot, expected: kind }.into());
        }
        if header.schema() != schema.as_bytes() {
            let snapshot = String::from_utf8_lossy(header.schema()).into_owned();
            return Err(SnapshotMismatch::Schema { snapshot, expected: schema.to_owned() }.into());
        }
        if header.probe != probe {
            return Err(SnapshotMismatch::Hasher.into());
        }
        self.metadata(&header)
    }

    /// Reads a header of any kind, up to its first checksum.
    pub(crate) fn any_header(&mut self) -> Result<AnyHeader, LoadError> {
        // Byte by byte: input that is too short, and begins differently, is reported as no snapshot.
        for expected in MAGIC {
            if self.take()? != [expected] {
                return Err(SnapshotDamage::NotASnapshot.into());
            }
        }
        let version = u16::from_le_bytes(self.take()?);
        if version != VERSION {
            return Err(UnsupportedSnapshot::Version { version, supported: VERSION }.into());
        }
        let [kind] = self.take()?;
        let probe = u64::from_le_bytes(self.take()?);
        let [schema_len] = self.take()?;
        let mut schema = [0; MAX_SCHEMA];
        self.expected += u64::from(schema_len);
        self.fill(&mut schema[..usize::from(schema_len)])?;
        let [has_position] = self.take()?;
        let position = u64::from_le_bytes(self.take()?);
        let attached = u32::from_le_bytes(self.take()?);
        self.check_header()?;
        Ok(AnyHeader { kind, probe, schema, schema_len, has_position, position, attached })
    }

    /// Reads the caller's metadata: position and attachment.
    pub(crate) fn metadata(&mut self, header: &AnyHeader) -> Result<Metadata, LoadError> {
        let &AnyHeader { has_position, position, attached, .. } = header;
        if has_position > 1 {
            return Err(UnsupportedSnapshot::Flags { flags: has_position }.into());
        }
        if has_position == 0 && position != 0 {
            return Err(SnapshotDamage::UnexpectedPosition { position }.into());
        }
        let (len, limit) = (attached as usize, MAX_ATTACHMENT);
        if len > limit {
            return Err(SnapshotDamage::AttachmentTooLong { len, limit }.into());
        }
        let mut attachment = Vec::new();
        attachment.try_reserve_exact(len).map_err(|_| LoadError::OutOfMemory { bytes: len })?;
        attachment.resize(len, 0);
        self.fill(&mut attachment)?;
        self.check_header()?;
        Ok(Metadata { position: (has_position == 1).then_some(position), attachment })
    }

    /// Reads the header of a growing table, checks the number of buckets and the shape that follows from it, and
    /// returns that number.
    pub(crate) fn growing_header(
        &mut self,
        largest: usize,
        is_possible: impl Fn(&u64) -> bool,
        shape: impl Fn(usize) -> Shape,
    ) -> Result<usize, LoadError> {
        let [encoding, slots, fingerprint_bits] = self.take()?;
        let buckets = u64::from_le_bytes(self.take()?);
        self.check_header()?;
        let invalid = SnapshotDamage::InvalidBuckets { buckets, limit: largest as u64 };
        let buckets = Some(buckets).filter(is_possible).ok_or(invalid)? as usize;
        let shape = shape(buckets);
        let expected = (encoding_number(shape.encoding), shape.slots, shape.fingerprint_bits);
        if (encoding, slots.into(), fingerprint_bits.into()) != expected {
            return Err(UnsupportedSnapshot::Layout { encoding, slots, fingerprint_bits }.into());
        }
        Ok(buckets)
    }

    /// Reads the header of a section: the plan of its table, with that many payload bits.
    pub(crate) fn table_header(&mut self, payload_bits: u32) -> Result<TablePlan, LoadError> {
        let largest = sizing::LARGEST as u64;
        let [encoding_and_limit, slots, fingerprint_bits] = self.take()?;
        let (encoding, limit) = (encoding_and_limit & 1, LoadLimit::of_number(encoding_and_limit >> 1));
        let buckets = u64::from_le_bytes(self.take()?);
        self.check_header()?;
        let is_it = |shape: &Shape| {
            (encoding_number(shape.encoding), shape.slots, shape.fingerprint_bits)
                == (encoding, slots.into(), fingerprint_bits.into())
        };
        let shape = Shape::with(None, payload_bits).find(is_it);
        let shape = shape.ok_or(UnsupportedSnapshot::Layout { encoding, slots, fingerprint_bits })?;
        let possible = buckets == 1 && shape.least_buckets() == 1
            || buckets != 0 && buckets.is_multiple_of(2) && buckets <= largest;
        if !possible {
            return Err(SnapshotDamage::InvalidBuckets { buckets, limit: largest }.into());
        }
        let buckets = buckets as usize;
        Ok(TablePlan::new(shape, buckets, limit, Pages::Usual))
    }

    /// Checks that this is the expected filter, and that enough bytes are left for its buckets, which come next.
    pub(crate) fn expect_table(&mut self, plan: &FilterPlan) -> Result<(), LoadError> {
        let differs = |expected: &FilterPlan| !plan.has_settings_of(expected, self.max_capacity.is_some());
        if let Some(expected) = self.settings.filter(differs) {
            return Err(SnapshotMismatch::Settings { snapshot: plan.settings(), expected: expected.settings() }.into());
        }
        let words = (plan.layout.buckets as u64).saturating_mul(size_of::<u64>() as u64);
        self.expected = self.read.saturating_add(words).saturating_add(SECTION - TABLE_HEADER + END);
        match self.available {
            Some(available) if available < self.expected => {
                Err(SnapshotDamage::Truncated { available, expected: self.expected }.into())
            }
            _ => Ok(()),
        }
    }

    /// How many bytes the snapshot has. It is known once its table is expected.
    pub(crate) fn bytes(&self) -> u64 {
        self.expected
    }

    /// How many bytes have been read.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    /// Reads what follows the header of a section, and passes the words to `put`, in order and a chunk at a time. Returns
    /// how many copies are in them.
    pub(crate) fn words(
        &mut self,
        plan: &FilterPlan,
        clock_state: Option<ClockState>,
        put: &mut dyn FnMut(usize, &[u64]),
    ) -> Result<u64, LoadError> {
        let (shape, buckets) = (plan.layout.shape(), plan.layout.buckets);
        let no_memory = || LoadError::OutOfMemory { bytes: plan.memory_usage };
        let growing = match plan.classes {
            None => None,
            Some((classes, encoding)) => {
                let state = State::of_buckets(buckets);
                let layouts = Layouts::new(classes, encoding, state.depths()).ok_or_else(no_memory)?;
                Some((classes, state, layouts))
            }
        };
        let (mut bytes, mut words) = ([[0; 8]; CHUNK], [0; CHUNK]);
        let mut counted = 0;
        for start in (0..buckets).step_by(CHUNK) {
            let len = CHUNK.min(buckets - start);
            let (bytes, words) = (&mut bytes[..len], &mut words[..len]);
            self.fill(bytes.as_flattened_mut())?;
            for (word, &mut bytes) in words.iter_mut().zip(bytes) {
                *word = u64::from_le_bytes(bytes);
            }
            let copies = match &growing {
                Some((classes, state, layouts)) => layouts.copies_in(*classes, *state, start, words),
                None => check::copies_in(shape, words).ok_or_else(no_memory)?,
            };
            counted += copies.map_err(|nth| SnapshotDamage::InvalidBucket { bucket: start + nth })?;
            if let Some(clock_state) = clock_state {
                check_expiries(plan, clock_state, start, words)?;
            }
            put(start, words);
        }
        let declared = u64::from_le_bytes(self.take()?);
        if declared == counted { Ok(counted) } else { Err(SnapshotDamage::WrongCount { declared, counted }.into()) }
    }

    /// Verifies the last checksum. If the number of bytes is known, nothing may follow it.
    pub(crate) fn end(mut self) -> Result<(), LoadError> {
        let (declared, computed) = self.read_checksum()?;
        if declared != computed {
            return Err(SnapshotDamage::WrongChecksum { declared, computed }.into());
        }
        self.nothing_follows()
    }

    /// If the number of bytes is known, nothing may follow the snapshot.
    pub(crate) fn nothing_follows(&self) -> Result<(), LoadError> {
        match self.available {
            Some(available) if available > self.expected => {
                Err(SnapshotDamage::TrailingBytes { snapshot: self.expected, available }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Checks the expiries of the entries in these words, which begin at the bucket `start`. At this reading of its clock, a filter
/// can have entries that expired and are yet to be swept, and live ones that expire within the longest lifetime.
fn check_expiries(plan: &FilterPlan, clock_state: ClockState, start: usize, words: &[u64]) -> Result<(), LoadError> {
    let (Some(longest), Some(ring)) = (plan.longest, Ring::of_bits(plan.layout.payload_bits)) else {
        return Ok(());
    };
    // A clock that was never set shows no ticks. Then any entry is an error: `check_clock`.
    let ClockState { now: Some(_), reading, ahead, .. } = clock_state else { return Ok(()) };
    // The clock's own now has the evicted ticks behind it.
    let possible = Arc::of_entries(ring, reading, longest - ahead);
    let first_other = check::first_payload(plan.layout.shape(), words, &|place| !possible.contains(place));
    let first_other = first_other.ok_or(LoadError::OutOfMemory { bytes: plan.memory_usage })?;
    match first_other {
        Some((nth, place)) => {
            let ticks = ring.ticks_until(reading, place) + ahead;
            Err(SnapshotDamage::LifetimeTooLong { bucket: start + nth, ticks, limit: longest }.into())
        }
        None => Ok(()),
    }
}
