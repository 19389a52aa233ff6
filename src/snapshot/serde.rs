//! Pure: filters in the formats of `serde`. There they are snapshots, so all that `snapshot/format.rs` checks is checked here.

use core::fmt;
use core::hash::BuildHasher;
use core::marker::PhantomData;
use std::io;

use serde::de::{DeserializeSeed, Error as _, SeqAccess, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::load::LoadError;
use crate::filter::concurrent::ConcurrentCuckooFilter;
use crate::filter::growable::GrowableCuckooFilter;
use crate::filter::rotating::RotatingCuckooFilter;
use crate::snapshot::format::Source;

/// Deserializes a filter of the type `F` with a hasher of the caller's choice and a memory limit: what
/// [`load`](ConcurrentCuckooFilter::load) takes. Only with the feature `serde`.
///
/// ```
/// # #[cfg(feature = "stable-hash")] {
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, LoadSeed, StableState};
/// use serde::de::DeserializeSeed;
///
/// let state = StableState::with_key(*b"sixteen secrets!");
/// let filter = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(1000, state.clone());
/// filter.insert("a key")?;
/// let json = serde_json::to_string(&filter)?;
///
/// let seed = LoadSeed::<ConcurrentCuckooFilter<str, _>, _>::new(state, 1 << 20);
/// let filter = seed.deserialize(&mut serde_json::Deserializer::from_str(&json))?;
/// assert!(filter.contains("a key"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LoadSeed<F, S> {
    hasher: S,
    memory_limit: usize,
    filter: PhantomData<fn() -> F>,
}

impl<F, S> LoadSeed<F, S> {
    /// A seed for one filter with this hasher, of at most so many bytes.
    ///
    /// A format without bytes, such as JSON, has the snapshot come number by number, and it is held in memory besides: that
    /// takes up to twice as much again.
    pub fn new(hasher: S, memory_limit: usize) -> Self {
        Self { hasher, memory_limit, filter: PhantomData }
    }
}

/// A vector for a snapshot, whose memory may be refused.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(len: usize) -> io::Result<Self> {
        let mut bytes = Self(Vec::new());
        bytes.reserve(len)?;
        Ok(bytes)
    }

    fn reserve(&mut self, more: usize) -> io::Result<()> {
        self.0.try_reserve(more).map_err(|_| {
            let message = "the memory for a copy of the filter was refused; write it by `save`, which needs no copy";
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

macro_rules! as_snapshots {
    ($($filter:ident),*) => {$(
        /// As the bytes of a snapshot: see `save` for what it holds while others change the filter. Only with the feature
        /// `serde`.
        ///
        /// `serde` wants all bytes at once, so this takes a second copy of the tables, which `save` does not.
        impl<T: ?Sized, S: BuildHasher> Serialize for $filter<T, S> {
            fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
                // A filter takes up more than its snapshot, unless it grows meanwhile.
                let mut bytes = Bytes::new(self.memory_usage()).map_err(R::Error::custom)?;
                self.save(&mut bytes).map_err(R::Error::custom)?;
                serializer.serialize_bytes(&bytes.0)
            }
        }

        /// From the bytes of a snapshot, checked as by `load`. Only with the feature `serde`.
        ///
        /// For hashers whose default is always the same; with any other it fails. [`LoadSeed`](crate::LoadSeed) takes a
        /// hasher, and a memory limit. Without a limit, the filter takes up hardly more than its bytes do.
        impl<'de, T: ?Sized, S: BuildHasher + Default> Deserialize<'de> for $filter<T, S> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                LoadSeed::<Self, S>::new(S::default(), usize::MAX).deserialize(deserializer)
            }
        }

        impl<'de, T: ?Sized, S: BuildHasher> DeserializeSeed<'de> for LoadSeed<$filter<T, S>, S> {
            type Value = $filter<T, S>;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                let Self { hasher, memory_limit, .. } = self;
                let load = |source: Source<'_>| $filter::load_from(source, hasher);
                deserializer.deserialize_bytes(Snapshot { load, memory_limit, filter: PhantomData })
            }
        }
    )*};
}

as_snapshots!(ConcurrentCuckooFilter, GrowableCuckooFilter, RotatingCuckooFilter);

/// Without the hasher, whose key is a secret.
impl<F, S> fmt::Debug for LoadSeed<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadSeed").field("memory_limit", &self.memory_limit).finish_non_exhaustive()
    }
}

/// Takes the bytes of a snapshot of one filter and nothing else.
struct Snapshot<F, L> {
    load: L,
    memory_limit: usize,
    filter: PhantomData<fn() -> F>,
}

impl<'de, F, L: FnOnce(Source<'_>) -> Result<F, LoadError>> Visitor<'de> for Snapshot<F, L> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a snapshot of a filter")
    }

    fn visit_bytes<E: serde::de::Error>(self, mut bytes: &[u8]) -> Result<F, E> {
        let len = bytes.len();
        let filter = (self.load)(Source::new(&mut bytes, self.memory_limit, len)).map_err(E::custom)?;
        if bytes.is_empty() {
            return Ok(filter);
        }
        Err(E::custom(format_args!("the snapshot ends {} bytes before the {len} bytes given do", bytes.len())))
    }

    /// For formats that have no bytes, such as JSON.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<F, A::Error> {
        // As it comes: what the format says of the length need not be true.
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element::<u8>()? {
            // A filter takes up more than its snapshot.
            if bytes.len() == self.memory_limit {
                let message = "bytes are not enough for the filter; raise the limit if the snapshot is to be trusted";
                return Err(A::Error::custom(format_args!("{} {message}", self.memory_limit)));
            }
            if bytes.try_reserve(1).is_err() {
                return Err(A::Error::custom(LoadError::OutOfMemory { bytes: bytes.len() + 1 }));
            }
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
