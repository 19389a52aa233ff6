//! Sets that threads share, and which answer exactly.

use std::collections::HashSet;

use ahash::RandomState;
use dashmap::DashMap;
use parking_lot::RwLock;

use super::hash::HASH;
use super::subject::{About, Built, Kind, Set, Subject, TableSize, set};

/// A set that answers exactly. A map is one without values.
pub(crate) trait ExactSet: Set + 'static {
    const NAME: &'static str;
    /// About how many bytes it uses per key.
    const BYTES: usize;

    fn with_capacity(keys: usize) -> Self;
    /// How many keys fit in about this many bytes.
    fn keys_in(bytes: usize) -> usize {
        bytes / Self::BYTES
    }
    /// [`Set::insert`] that says whether the key was not in.
    fn insert_new(&self, key: u64) -> bool {
        self.insert(key)
    }
    /// Replaces the value, if there are values. Whether the key was in.
    fn update(&self, key: u64) -> bool;
}

/// The standard library's `HashSet` in a lock.
pub(crate) type Locked = RwLock<HashSet<u64, RandomState>>;
set!(Locked, |set, key| set.write().insert(key), set.read().contains(&key), set.write().remove(&key));

impl ExactSet for Locked {
    const NAME: &'static str = "RwLock<HashSet>";
    const BYTES: usize = size_of::<u64>() + 1;

    fn with_capacity(keys: usize) -> Self {
        Self::new(HashSet::with_capacity_and_hasher(keys, HASH))
    }

    /// A key and a byte for each of a power of two of places; seven eighths are taken at most.
    fn keys_in(bytes: usize) -> usize {
        (1 << (bytes / Self::BYTES).ilog2()) * 7 / 8
    }

    #[inline]
    fn update(&self, key: u64) -> bool {
        self.write().contains(&key)
    }
}

/// A map with its name, its bytes per key, and its operations.
macro_rules! map {
    ($Map:ty, $name:literal, $bytes:literal, |$map:ident, $key:ident|
        $insert:expr, $contains:expr, $remove:expr, $update:expr) => {
        set!($Map, |$map, $key| $insert, $contains, $remove);

        impl ExactSet for $Map {
            const NAME: &'static str = $name;
            const BYTES: usize = $bytes;

            fn with_capacity(keys: usize) -> Self {
                Self::with_capacity_and_hasher(keys, HASH)
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
    |map, key| map.insert(key, ()).is_none(),
    map.contains_key(&key),
    map.remove(&key).is_some(),
    map.get_mut(&key).map(|mut value| *value = ()).is_some()
);

pub(crate) type SccMap = scc::HashMap<u64, (), RandomState>;
map!(
    SccMap,
    "scc::HashMap",
    22,
    |map, key| map.insert_sync(key, ()).is_ok(),
    map.contains_sync(&key),
    map.remove_sync(&key).is_some(),
    map.update_sync(&key, |_, value| *value = ()).is_some()
);

pub(crate) type SccIndex = scc::HashIndex<u64, (), RandomState>;
map!(
    SccIndex,
    "scc::HashIndex",
    22,
    |map, key| map.insert_sync(key, ()).is_ok(),
    map.contains(&key),
    map.remove_sync(&key),
    map.get_sync(&key).map(|mut entry| entry.update(())).is_some()
);

pub(crate) type Papaya = papaya::HashMap<u64, (), RandomState>;
map!(
    Papaya,
    "papaya::HashMap",
    52,
    |map, key| map.pin().insert(key, ()).is_none(),
    map.pin().contains_key(&key),
    map.pin().remove(&key).is_some(),
    map.pin().update(key, |value| *value).is_some()
);

/// An exact set as a subject.
pub(crate) fn exact<S: ExactSet>() -> Subject<S> {
    Subject {
        about: About { name: S::NAME, about: S::NAME, kind: Kind::Peer, removes: true },
        build: |table_bytes| {
            let keys = S::keys_in(table_bytes);
            // As many bytes as were asked for: none of them says how many it takes.
            let size = TableSize::new(keys, table_bytes);
            Built { set: S::with_capacity(keys), size }
        },
    }
}
