//! Why a snapshot could not be loaded.

use core::error::Error;

use crate::error::kind::FilterKind;
use crate::error::message::messages;

/// Why a snapshot could not be loaded: there is no filter, and no part of one. Needs the feature `snapshot`.
///
/// Whatever the reason, rebuild the filter from the source of truth, or keep the one that is in use. [Never use an empty
/// filter in its place](crate::guide::beyond_one_process#when-a-snapshot-cannot-be-loaded), because its "definitely
/// absent" would be wrong. The message of each error (its `Display`) names the reason and what to do; that of
/// [`Io`](Self::Io) leaves the reason to its `source`. [`LoadPathError`](crate::LoadPathError) also names the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The reader failed, or the file could not be opened. The error that it failed with is the `source`, and not part of
    /// the message.
    Io(std::io::Error),
    /// The reader ended before the snapshot did.
    #[non_exhaustive]
    Truncated {
        /// How many bytes there were.
        available: u64,
        /// The least number of bytes that the snapshot has, judged by the part that was read.
        expected: u64,
    },
    /// The bytes don't begin with the eight bytes that mark a snapshot.
    NotASnapshot,
    /// The snapshot has another version of the format.
    #[non_exhaustive]
    UnsupportedVersion {
        /// The version of the snapshot.
        version: u16,
        /// The only version that this version of the library reads.
        supported: u16,
    },
    /// A header is damaged: its checksum does not match.
    #[non_exhaustive]
    DamagedHeader {
        /// The checksum that the snapshot declares.
        stated: u32,
        /// The checksum of what was read.
        computed: u32,
    },
    /// The snapshot is of another type of filter.
    #[non_exhaustive]
    WrongKind {
        /// The number of the type that was saved. The page [`snapshot_format`](crate::guide::snapshot_format) lists the
        /// numbers.
        kind: u8,
        /// The type that was to be loaded.
        expected: FilterKind,
    },
    /// The snapshot is of a type of filter that this library does not have. [`SnapshotInfo`](crate::SnapshotInfo)
    /// returns this; loading returns [`WrongKind`](Self::WrongKind).
    #[non_exhaustive]
    UnknownKind {
        /// The number of the type.
        kind: u8,
    },
    /// The snapshot is of other keys, or of keys in another form: it has another [schema](crate::Builder::schema).
    #[non_exhaustive]
    OtherSchema {
        /// The schema of the snapshot.
        schema: String,
        /// The expected schema.
        expected: String,
    },
    /// The snapshot is of a filter with other settings than [`Loader::expect`](crate::Loader::expect) was given.
    #[non_exhaustive]
    OtherSettings {
        /// The filter of the snapshot: what is compared of its [`FilterPlan`](crate::FilterPlan).
        snapshot: String,
        /// The same of the expected filter.
        expected: String,
    },
    /// The snapshot was made with another hasher, or with a hasher whose output has changed with its version, the
    /// processor or the process.
    OtherHasher,
    /// No bucket layout has these numbers.
    #[non_exhaustive]
    UnknownLayout {
        /// The number of the encoding.
        encoding: u8,
        /// The slots of a bucket.
        slots: u8,
        /// The bits of a fingerprint.
        fingerprint_bits: u8,
    },
    /// No table has this number of buckets. Either the table would be too large, or the number is neither 1 nor even. That of
    /// a filter that grows is a multiple of 32, and at least the number at first.
    #[non_exhaustive]
    InvalidBuckets {
        /// The number of buckets.
        buckets: u64,
        /// The largest possible number.
        largest: u64,
    },
    /// No filter that grows has such sizes.
    #[non_exhaustive]
    InvalidSizes {
        /// The number of buckets at first.
        buckets: u64,
        /// The largest number of buckets.
        largest: u64,
        /// The bits of a fingerprint at the largest size.
        base_bits: u8,
        /// The doublings from one bucket to the largest size.
        doublings: u8,
    },
    /// No maplet has values of that many bits.
    #[non_exhaustive]
    InvalidValueBits {
        /// How many bits.
        value_bits: u8,
        /// The largest possible number; the smallest is 1.
        most: u8,
    },
    /// No filter whose entries expire has such a clock.
    #[non_exhaustive]
    InvalidClock {
        /// How many bits an expiry has: 1 to 16.
        expiry_bits: u8,
        /// The longest lifetime in ticks: at least 1, and below 2 to the power of `expiry_bits`.
        longest: u64,
        /// The nanoseconds of a tick beyond whole seconds, below a billion.
        nanoseconds: u32,
        /// The place of the last tick that has expired, below 2 to the power of `expiry_bits`; 0 if no tick is known.
        place: u16,
        /// By how many ticks the sweep lags behind: at most 2 to the power of `expiry_bits`; 0 if no tick is known.
        lag: u64,
        /// How many ticks after now were evicted: less than `longest`; 0 if no tick is known.
        ahead: u16,
    },
    /// The snapshot says something about the filter that this version of the library does not know.
    #[non_exhaustive]
    UnknownFlags {
        /// The byte of flags.
        flags: u8,
    },
    /// The snapshot says that it has no position, but states one.
    #[non_exhaustive]
    UnexpectedPosition {
        /// The position, which should be 0.
        position: u64,
    },
    /// The snapshot of a filter whose entries expire says that no tick is known, and yet has entries. Such a filter
    /// takes none before its first tick.
    #[non_exhaustive]
    EntriesWithoutClock {
        /// How many entries it has.
        entries: u64,
    },
    /// No growable filter can be built with such an encoding.
    #[non_exhaustive]
    UnknownEncoding {
        /// The number of the encoding.
        encoding: u8,
    },
    /// The snapshot states an attachment that is longer than the limit.
    #[non_exhaustive]
    AttachmentTooLong {
        /// How many bytes the snapshot declares.
        len: usize,
        /// The limit.
        most: usize,
    },
    /// The filter would use more memory than the caller allows. Nothing was allocated.
    #[non_exhaustive]
    MemoryLimit {
        /// How many bytes the filter would use.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The memory for the filter could not be allocated.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were asked for in all.
        bytes: usize,
    },
    /// A bucket holds something that no filter puts there.
    #[non_exhaustive]
    DamagedBucket {
        /// Its number in its table, from 0.
        bucket: usize,
    },
    /// An entry of a filter whose entries expire would live longer than any entry of that filter can.
    #[non_exhaustive]
    LifetimeTooLong {
        /// The number of its bucket.
        bucket: usize,
        /// In how many ticks it would expire. Ticks that were evicted count too.
        ticks: u64,
        /// The longest lifetime in ticks.
        longest: u64,
    },
    /// The buckets hold more or fewer items than the snapshot says.
    #[non_exhaustive]
    WrongCount {
        /// How many items the snapshot declares.
        stated: u64,
        /// How many items there are.
        counted: u64,
    },
    /// Other bytes follow the snapshot in a place where nothing else is allowed: a file.
    #[non_exhaustive]
    TrailingBytes {
        /// How many bytes the snapshot has.
        snapshot: u64,
        /// How many bytes there are in all.
        available: u64,
    },
    /// The expected [schema](crate::Loader::schema) is too long: no snapshot can have it.
    #[non_exhaustive]
    SchemaTooLong {
        /// How many bytes it has.
        len: usize,
        /// How many bytes a schema may have.
        most: usize,
    },
    /// The checksum does not match: something in the snapshot has changed.
    #[non_exhaustive]
    WrongChecksum {
        /// The checksum that the snapshot declares.
        stated: u32,
        /// The checksum of what was read.
        computed: u32,
    },
}

messages! {
    LoadError:
    Self::Io(_) =>
        "the reader of the snapshot failed; correct the cause, which is the source of this error, or rebuild the filter \
         from the source of truth";
    Self::Truncated { available, expected } =>
        "the snapshot is cut short: there are {available} bytes of at least {expected}; fetch it again, or rebuild \
         the filter from the source of truth";
    Self::NotASnapshot =>
        "this is not a snapshot of a filter: it does not begin with the eight bytes that mark one; look for the right \
         file, or rebuild the filter";
    Self::UnsupportedVersion { version, supported } =>
        "the snapshot has format version {version}, and this library reads only version {supported}; save it with the \
         version of the library that is to load it, or rebuild the filter";
    Self::DamagedHeader { stated, computed } =>
        "a header of the snapshot is damaged: its checksum is {computed:#010x}, and should be {stated:#010x}; fetch \
         it again, or rebuild the filter";
    Self::WrongKind { kind: 3, .. } | Self::UnknownKind { kind: 3 } =>
        "the snapshot is of a RotatingCuckooFilter, a type that was removed; build an ExpiringCuckooFilter in its \
         place, and insert the keys of the last periods again";
    Self::WrongKind { kind: FilterKind::CHAIN, expected } =>
        "the snapshot is of a GrowableCuckooFilter that was a chain of tables, which this library cannot load, and \
         type {expected} was expected; rebuild the filter from the source of truth";
    Self::WrongKind { kind, expected } if FilterKind::of_number(*kind).is_none() =>
        "the snapshot is of a type of filter that this library does not have (number {kind}), and type {expected} was \
         expected; load it with the version of the library that saved it";
    Self::WrongKind { kind, expected } =>
        "the snapshot is of type {0}, and type {expected} was expected; load it as {0}",
        FilterKind::of_number(*kind).map(|saved| saved.to_string()).unwrap_or_default();
    Self::UnknownKind { kind: FilterKind::CHAIN } =>
        "the snapshot is of a GrowableCuckooFilter that was a chain of tables, which this library cannot read; \
         rebuild the filter from the source of truth";
    Self::UnknownKind { kind } =>
        "the snapshot is of a type of filter that this library does not have (number {kind}); read it with the \
         version of the library that saved it";
    Self::OtherSchema { schema, expected } =>
        "the snapshot is of keys with the schema {schema:?}, and {expected:?} was expected; load it as a filter of \
         those keys, name its schema (Loader::schema), or rebuild the filter";
    Self::OtherSettings { snapshot, expected } =>
        "the snapshot has other settings: {snapshot}; expected: {expected}; rebuild the filter with the new settings, \
         or load it with the old ones";
    Self::OtherHasher =>
        "the snapshot was made with another hasher, or one whose output has changed; load it with the same hasher and \
         key (StableHashBuilder is one that is stable), or rebuild the filter";
    Self::UnknownLayout { encoding, slots, fingerprint_bits } =>
        "the snapshot declares a bucket layout of encoding {encoding}, {slots} slots and {fingerprint_bits} bits, \
         which this library does not have; rebuild the filter";
    Self::InvalidBuckets { buckets, largest } =>
        "the snapshot declares {buckets} buckets; a table has 1, or an even number up to {largest}, or a multiple of \
         32 if the filter grows; rebuild the filter";
    Self::InvalidSizes { buckets, largest, base_bits, doublings } =>
        "the snapshot declares sizes that no filter has: {buckets} buckets at first and {largest} at most, with \
         fingerprints of {base_bits} bits after {doublings} doublings of one bucket; rebuild the filter";
    Self::InvalidValueBits { value_bits, most } =>
        "the snapshot declares values of {value_bits} bits, not of 1 to {most}; rebuild the maplet";
    Self::InvalidClock { expiry_bits, longest, nanoseconds, place, lag, ahead } =>
        "the snapshot declares a clock that no filter has: expiries of {expiry_bits} bits, a lifetime of {longest} \
         ticks, {nanoseconds} nanoseconds of a tick, the place {place}, a lag of {lag} ticks and {ahead} evicted ticks; \
         rebuild the filter";
    Self::UnknownFlags { flags } =>
        "the snapshot declares the flags {flags:#04x}, which this library does not know; load it with the version of \
         the library that saved it, or rebuild the filter";
    Self::UnexpectedPosition { position } =>
        "the snapshot declares no position, but also the position {position}; rebuild the filter";
    Self::EntriesWithoutClock { entries } =>
        "the snapshot has {entries} entries, and declares that its clock was not set, so that none of them could \
         expire; rebuild the filter";
    Self::UnknownEncoding { encoding } =>
        "the snapshot declares that the encoding {encoding} was asked for, which this library does not have; rebuild \
         the filter";
    Self::AttachmentTooLong { len, most } =>
        "the snapshot declares an attachment of {len} bytes; the limit is {most}; rebuild the filter";
    Self::MemoryLimit { needed, limit } =>
        "the filter would use {needed} bytes, and the limit is {limit}; raise the limit if you trust the snapshot";
    Self::OutOfMemory { bytes } =>
        "the {bytes} bytes of the filter could not be allocated; try again when there is more memory";
    Self::DamagedBucket { bucket } =>
        "bucket {bucket} of the snapshot is damaged: no filter writes such a bucket; fetch it again, or rebuild the \
         filter";
    Self::LifetimeTooLong { bucket, ticks, longest } =>
        "bucket {bucket} of the snapshot has an entry that would live for {ticks} more ticks, and the longest lifetime \
         is {longest}; fetch it again, or rebuild the filter";
    Self::WrongCount { stated, counted } =>
        "the snapshot declares {stated} keys and has {counted}; fetch it again, or rebuild the filter";
    Self::TrailingBytes { snapshot, available } =>
        "the snapshot ends after {snapshot} bytes, and there are {available}: something comes after it; fetch it \
         again, or rebuild the filter";
    Self::SchemaTooLong { len, most } =>
        "the expected schema has {len} bytes, and the limit is {most}; name the schema of the snapshot";
    Self::WrongChecksum { stated, computed } =>
        "the snapshot is damaged: its checksum is {computed:#010x}, and should be {stated:#010x}; fetch it again, or \
         rebuild the filter";
}

/// The source of [`Io`](Self::Io) is its error. The others have none.
impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Self::Io(error) = self { Some(error) } else { None }
    }
}

impl From<std::io::Error> for LoadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
