//! What every type of filter consists of.
//!
//! A filter is its [`Parts`] and the type of its keys. Each of its operations hashes the key and asks the core. What does
//! not differ between the types is a method of `Parts`: hashing here, merging and digests in `merging.rs`, saving and
//! loading in `snapshots.rs`.

use core::hash::{BuildHasher, Hash};

use crate::filter::by_hash::Hashed;
use crate::snapshot::schema::Schema;

/// What every type of filter consists of.
pub(in crate::filter) struct Parts<C, S> {
    /// The table: of a fixed size (`table/by_shape.rs`), or one that grows. A [`Core`](crate::table::core::Core).
    pub(in crate::filter) core: C,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots declare it"))]
    pub(in crate::filter) schema: Schema,
}

impl<C, S: BuildHasher> Parts<C, S> {
    #[inline(always)]
    pub(in crate::filter) fn hash_one<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        Hashed(self.hasher.hash_one(key))
    }

    /// The hashes of a batch of keys, one at a time.
    pub(in crate::filter) fn hash_all<K: Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Iterator<Item = Hashed> {
        keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key)))
    }

    /// The hashes of a batch of keys, each with what goes with its key.
    pub(in crate::filter) fn hash_pairs<K: Hash, P>(
        &self,
        pairs: impl IntoIterator<Item = (K, P)>,
    ) -> impl Iterator<Item = (Hashed, P)> {
        pairs.into_iter().map(|(key, other)| (Hashed(self.hasher.hash_one(key)), other))
    }
}
