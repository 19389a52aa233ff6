//! Filters in the formats of `serde`. A filter is stored as its snapshot, so everything that
//! `snapshot/source.rs` checks is checked here too.

use core::fmt;
use core::hash::{BuildHasher, BuildHasherDefault};
use std::io;

use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Error as _, Serializer};

use crate::error::load::LoadError;
use crate::error::memory::OutOfMemory;
use crate::snapshot::loader::{FromSnapshot, Loader};
use crate::snapshot::save::Save;

/// A hasher whose default is always the same, in every process. Only a filter with such a hasher can be
/// deserialized without being given its hasher. Needs the feature `serde`.
///
/// [`BuildHasherDefault`] is such a hasher. The default hasher of this crate is not: it has new random keys each
/// time. A filter that was made with another key would answer "definitely absent" to all keys. Implement this trait
/// for a hasher of your own whose `default()` is always the same, such as one that has its key from a constant. If
/// the key comes from elsewhere, deserialize the field by a [`Loader`], which is given the hasher:
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Loader, StableHashBuilder};
/// use serde::de::DeserializeSeed;
/// use serde::{Deserialize, Deserializer, Serialize};
///
/// type Revoked = ConcurrentCuckooFilter<str, StableHashBuilder>;
///
/// #[derive(Serialize, Deserialize)]
/// struct Service {
///     name: String,
///     #[serde(deserialize_with = "load_revoked")]
///     revoked: Revoked,
/// }
///
/// fn load_revoked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revoked, D::Error> {
///     Loader::new(hasher(), 64 << 20).deserialize(deserializer)
/// }
///
/// fn hasher() -> StableHashBuilder {
///     StableHashBuilder::with_key(*b"sixteen secrets!") // from the configuration
/// }
///
/// let revoked = Revoked::with_capacity_and_hasher(1000, hasher());
/// revoked.insert("token-17")?;
/// let json = serde_json::to_string(&Service { name: "gateway".into(), revoked })?;
/// let service: Service = serde_json::from_str(&json)?;
/// assert!(service.revoked.contains("token-17"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If a filter can be deserialized in neither way, the compiler says what is missing:
///
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// #[derive(serde::Deserialize)]
/// struct Service {
///     revoked: ConcurrentCuckooFilter<str>, // with the default hasher
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a filter with the hasher `{Self}` can't be deserialized without being given its hasher",
    label = "`{Self}` has no default, or a different default each time",
    note = "deserialize the field by a `Loader`, which takes the hasher: `#[serde(deserialize_with = \"…\")]`; the \
            documentation of `StableDefault` has an example",
    note = "for a hasher of your own whose default is always the same, implement `StableDefault`"
)]
pub trait StableDefault: BuildHasher + Default {}

impl<H> StableDefault for BuildHasherDefault<H> where BuildHasherDefault<H>: BuildHasher {}

/// A vector for a snapshot. A failed allocation is an error here, not an abort.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(len: usize) -> io::Result<Self> {
        let mut bytes = Self(Vec::new());
        bytes.reserve(len)?;
        Ok(bytes)
    }

    fn reserve(&mut self, more: usize) -> io::Result<()> {
        self.0.try_reserve(more).map_err(|_| {
            let message = "no memory for a copy of the filter; write it by `save`, which needs no copy";
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        })
    }
}

impl io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reserve(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serializes a save that has begun, of a filter that uses `memory` bytes.
pub(crate) fn serialize<R: Serializer>(
    save: Result<Save<'_>, OutOfMemory>,
    memory: usize,
    serializer: R,
) -> Result<R::Ok, R::Error> {
    // A filter takes up more bytes than its snapshot, unless it grows meanwhile.
    let mut bytes = Bytes::new(memory).map_err(R::Error::custom)?;
    save.map_err(io::Error::from).and_then(|save| save.write_to(&mut bytes)).map_err(R::Error::custom)?;
    serializer.serialize_bytes(&bytes.0)
}

/// Deserializes the filter alone: its position and attachment are dropped. Needs the feature `serde`.
impl<'de, F: FromSnapshot<S>, S> DeserializeSeed<'de> for Loader<F, S> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<F, D::Error> {
        // Not `deserialize_bytes`, for which some formats have a small buffer (`ciborium`: 4 KiB).
        deserializer.deserialize_byte_buf(Snapshot(self))
    }
}

/// Visits the bytes of a snapshot of one filter and nothing else.
struct Snapshot<F, S>(Loader<F, S>);

impl<'de, F: FromSnapshot<S>, S> Visitor<'de> for Snapshot<F, S> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a snapshot of a filter")
    }

    fn visit_bytes<E: serde::de::Error>(self, mut bytes: &[u8]) -> Result<F, E> {
        let len = bytes.len();
        self.0.read_of(&mut bytes, Some(len as u64)).map(|loaded| loaded.filter).map_err(E::custom)
    }

    /// For formats that have no bytes, such as JSON. With a memory limit, the numbers are read as they come, and nothing
    /// is held beside the filter. Without one, all are read before, so that they bound the size of the filter.
    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<F, A::Error> {
        let mut numbers = Numbers { sequence, ended: false, error: None };
        if !self.0.has_limit() {
            let mut bytes = Bytes(Vec::new());
            return match io::copy(&mut numbers, &mut bytes) {
                Ok(_) => self.visit_bytes(&bytes.0),
                Err(_) => {
                    let no_memory = || A::Error::custom(LoadError::OutOfMemory { bytes: bytes.0.len() });
                    Err(numbers.error.unwrap_or_else(no_memory))
                }
            };
        }
        match self.0.read_of(&mut numbers, None) {
            Ok(loaded) => match numbers.next()? {
                None => Ok(loaded.filter),
                Some(_) => Err(A::Error::custom("more bytes follow the snapshot; give the bytes of one snapshot only")),
            },
            Err(error) => Err(numbers.error.unwrap_or_else(|| A::Error::custom(error))),
        }
    }
}

/// The numbers of a sequence, as a reader of bytes.
struct Numbers<A, E> {
    sequence: A,
    /// Whether the sequence has ended: it must not be asked again.
    ended: bool,
    /// Why the sequence has failed.
    error: Option<E>,
}

impl<'de, A: SeqAccess<'de>> Numbers<A, A::Error> {
    fn next(&mut self) -> Result<Option<u8>, A::Error> {
        let next = if self.ended { None } else { self.sequence.next_element()? };
        self.ended = next.is_none();
        Ok(next)
    }
}

impl<'de, A: SeqAccess<'de>> io::Read for Numbers<A, A::Error> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        for byte in bytes {
            match self.next() {
                Ok(Some(next)) => *byte = next,
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    return Err(io::Error::other("the sequence failed"));
                }
            }
            len += 1;
        }
        Ok(len)
    }
}
