//! How an intact snapshot differs from what the caller expects, or from what this version of the library can read.

use crate::error::kind::FilterKind;
use crate::error::message::messages;

/// How a snapshot [differs](crate::LoadError::Mismatch) from what the caller expects. Needs the feature `snapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotMismatch {
    /// The snapshot is of another type of filter.
    #[non_exhaustive]
    Kind {
        /// The type that was saved.
        snapshot: FilterKind,
        /// The type that was to be loaded.
        expected: FilterKind,
    },
    /// The snapshot is of other keys, or of keys in another form: it has another
    /// [schema](crate::ConcurrentBuilder::schema).
    #[non_exhaustive]
    Schema {
        /// The schema of the snapshot.
        snapshot: String,
        /// The expected schema.
        expected: String,
    },
    /// The expected [schema](crate::Loader::schema) is too long, so no snapshot can have it.
    #[non_exhaustive]
    SchemaTooLong {
        /// How many bytes it has.
        len: usize,
        /// How many bytes a schema can have.
        limit: usize,
    },
    /// The snapshot is of a filter with other settings than [`Loader::expect_plan`](crate::Loader::expect_plan) was
    /// given.
    #[non_exhaustive]
    Settings {
        /// The settings of the snapshot's filter: what is compared of its [`FilterPlan`](crate::FilterPlan).
        snapshot: String,
        /// The settings of the expected filter.
        expected: String,
    },
    /// The snapshot was made with another hasher, or with a hasher whose output has changed with its version, the
    /// processor or the process.
    Hasher,
}

messages! {
    SnapshotMismatch:
    Self::Kind { snapshot, expected } =>
        "the snapshot is of type {snapshot}, but type {expected} was expected; load it as {snapshot}";
    Self::Schema { snapshot, expected } =>
        "the snapshot is of keys with the schema {snapshot:?}, but {expected:?} was expected; load it as a filter of \
         those keys, name its schema (Loader::schema), or rebuild the filter";
    Self::SchemaTooLong { len, limit } =>
        "the expected schema has {len} bytes, but the limit is {limit}; name the schema of the snapshot";
    Self::Settings { snapshot, expected } =>
        "the snapshot has other settings: {snapshot}; expected: {expected}; rebuild the filter with the new settings, \
         or load it with the old ones";
    Self::Hasher =>
        "the snapshot was made with another hasher, or one whose output has changed; load it with the same hasher and \
         key (StableHashBuilder is one that is stable), or rebuild the filter";
}

/// What this version of the library [cannot read](crate::LoadError::Unsupported) in a snapshot. Needs the feature
/// `snapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsupportedSnapshot {
    /// The snapshot has another version of the format.
    #[non_exhaustive]
    Version {
        /// The version of the snapshot.
        version: u16,
        /// The only version that this version of the library reads.
        supported: u16,
    },
    /// The snapshot is of a type of filter that this library does not have.
    #[non_exhaustive]
    Kind {
        /// The number of the type. The page `docs/snapshot_format.md` of the repository lists the numbers.
        kind: u8,
    },
    /// No bucket layout of this library has these numbers.
    #[non_exhaustive]
    Layout {
        /// The number of the encoding.
        encoding: u8,
        /// The slots of a bucket.
        slots: u8,
        /// The bits of a fingerprint.
        fingerprint_bits: u8,
    },
    /// A growable filter was built with an encoding that this library does not have.
    #[non_exhaustive]
    Encoding {
        /// The number of the encoding.
        encoding: u8,
    },
    /// The snapshot has flags that this library does not know.
    #[non_exhaustive]
    Flags {
        /// The byte of flags.
        flags: u8,
    },
}

messages! {
    UnsupportedSnapshot:
    Self::Version { version, supported } =>
        "the snapshot has format version {version}, but this library reads only version {supported}; save it with the \
         version of the library that is to load it, or rebuild the filter";
    Self::Kind { kind } =>
        "the snapshot is of a type of filter that this library does not have (number {kind}); read it with the \
         version of the library that saved it, or rebuild the filter";
    Self::Layout { encoding, slots, fingerprint_bits } =>
        "the snapshot declares a bucket layout of encoding {encoding}, {slots} slots and {fingerprint_bits} bits, \
         which this library does not have; load it with the version of the library that saved it, or rebuild the filter";
    Self::Encoding { encoding } =>
        "the snapshot declares that the encoding {encoding} was asked for, which this library does not have; load it \
         with the version of the library that saved it, or rebuild the filter";
    Self::Flags { flags } =>
        "the snapshot declares the flags {flags:#04x}, which this library does not know; load it with the version of \
         the library that saved it, or rebuild the filter";
}
