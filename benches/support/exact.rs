//! Sets that threads share, and which answer exactly.

use std::collections::HashSet;

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::RwLock;

use super::hash::HASH;
use super::subject::{Kind, Subject};

/// A set that threads share. A map is one without values.
pub(crate) trait SharedSet: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// About how many bytes it takes for a key.
    const BYTES: usize;

    fn with_capacity(keys: usize) -> Self;
    /// How many keys fit in about so many bytes.
    fn keys_in(bytes: usize) -> usize {
        bytes / Self::BYTES
    }
    fn contains(&self, key: u64) -> bool;
    /// Whether it was not in.
    fn insert(&self, key: u64) -> bool;
    /// Whether it was in.
    fn remove(&self, key: u64) -> bool;
    /// Replaces the value, if there are values. Whether the key was in.
    fn update(&self, key: u64) -> bool;
}

/// The standard library's, in a lock.
pub(crate) type Locked = RwLock<HashSet<u64, RandomState>>;

impl SharedSet for Locked {
    const NAME: &'static str = "HashSet";
    const ABOUT: &'static str = "RwLock<HashSet>";
    const BYTES: usize = size_of::<u64>() + 1;

    fn with_capacity(keys: usize) -> Self {
        Self::new(HashSet::with_capacity_and_hasher(keys, HASH))
    }

    /// A key and a byte for each of a power of two of places; seven eighths are taken at most.
    fn keys_in(bytes: usize) -> usize {
        (1 << (bytes / Self::BYTES).ilog2()) * 7 / 8
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.read().contains(&key)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.write().insert(key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.write().remove(&key)
    }

    #[inline]
    fn update(&self, key: u64) -> bool {
        self.write().contains(&key)
    }
}

/// A map whose methods have these names.
macro_rules! map {
    ($Map:ty, $name:literal, $bytes:literal, |$map:ident, $key:ident|
        $contains:expr, $insert:expr, $remove:expr, $update:expr) => {
        impl SharedSet for $Map {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $name;
            const BYTES: usize = $bytes;

            fn with_capacity(keys: usize) -> Self {
                Self::with_capacity_and_hasher(keys, HASH)
            }

            #[inline]
            fn contains(&self, $key: u64) -> bool {
                let $map = self;
                $contains
            }

            #[inline]
            fn insert(&self, $key: u64) -> bool {
                let $map = self;
                $insert
            }

            #[inline]
            fn remove(&self, $key: u64) -> bool {
                let $map = self;
                $remove
            }

            #[inline]
            fn update(&self, $key: u64) -> bool {
                let $map = self;
                $update
            }
        }
    };
}

pub(crate) type Dash = DashMap<u64, (), RandomState>;
map!(
    Dash,
    "dashmap::DashMap",
    25,
    |map, key| map.contains_key(&key),
    map.insert(key, ()).is_none(),
    map.remove(&key).is_some(),
    map.get_mut(&key).map(|mut value| *value = ()).is_some()
);

pub(crate) type SccMap = scc::HashMap<u64, (), RandomState>;
map!(
    SccMap,
    "scc::HashMap",
    22,
    |map, key| map.contains_sync(&key),
    map.insert_sync(key, ()).is_ok(),
    map.remove_sync(&key).is_some(),
    map.update_sync(&key, |_, value| *value = ()).is_some()
);

pub(crate) type SccIndex = scc::HashIndex<u64, (), RandomState>;
map!(
    SccIndex,
    "scc::HashIndex",
    22,
    |map, key| map.contains(&key),
    map.insert_sync(key, ()).is_ok(),
    map.remove_sync(&key),
    map.get_sync(&key).map(|mut entry| entry.update(())).is_some()
);

pub(crate) type Papaya = papaya::HashMap<u64, (), RandomState>;
map!(
    Papaya,
    "papaya::HashMap",
    52,
    |map, key| map.pin().contains_key(&key),
    map.pin().insert(key, ()).is_none(),
    map.pin().remove(&key).is_some(),
    map.pin().update(key, |value| *value).is_some()
);

/// One of these as a subject.
pub(crate) struct Exact<S> {
    set: S,
    keys: usize,
    bytes: usize,
}

impl<S: SharedSet> Subject for Exact<S> {
    const NAME: &'static str = S::NAME;
    const ABOUT: &'static str = S::ABOUT;
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        let keys = S::keys_in(table_bytes);
        Self { set: S::with_capacity(keys), keys, bytes: table_bytes }
    }

    fn slots(&self) -> u64 {
        self.keys as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        u64::BITS
    }

    /// As many as were asked for: none of them says how many it takes.
    fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.set.insert(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.set.contains(key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.set.remove(key)
    }
}
