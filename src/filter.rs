//! The public face: from keys to verdicts.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use crate::builder::Builder;
use crate::error::InsertError;
use crate::layout::Encoding;
use crate::any_table::AnyTable;

/// A cuckoo filter that many threads share.
pub struct ConcurrentCuckooFilter<T: ?Sized, S = ahash::RandomState> {
    table: Box<dyn AnyTable>,
    hasher: S,
    /// The filter takes keys and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized> ConcurrentCuckooFilter<T> {
    /// A filter for `capacity` items.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::builder().capacity(capacity).build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A builder.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }
}

impl<T: ?Sized, S> ConcurrentCuckooFilter<T, S> {
    /// with hasher
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        Builder::<T>::new().hasher(hasher).capacity(capacity).build().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn from_parts(table: Box<dyn AnyTable>, hasher: S) -> Self {
        Self { table, hasher, key: PhantomData }
    }

    /// len
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// is_empty
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// capacity
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// slots
    pub fn slots(&self) -> usize {
        self.table.buckets() * self.table.shape().slots as usize
    }

    /// slots
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// slots
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.table.memory_usage()
    }

    /// rate
    pub fn false_positive_rate(&self) -> f64 {
        self.table.shape().false_positive_rate(self.load_factor())
    }

    /// rate
    pub fn max_false_positive_rate(&self) -> f64 {
        self.table.shape().false_positive_rate(1.0)
    }

    /// The encoding
    pub fn encoding(&self) -> Encoding {
        self.table.shape().encoding
    }

    /// fingerprint bits
    pub fn fingerprint_bits(&self) -> u32 {
        self.table.shape().fingerprint_bits
    }

    /// slots
    pub fn slots_per_bucket(&self) -> usize {
        self.table.shape().slots as usize
    }

    /// hasher
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// clear
    pub fn clear(&self) {
        self.table.clear();
    }
}

impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
    #[inline(always)]
    fn hash<Q>(&self, key: &Q) -> u64
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.hasher.hash_one(key)
    }

    /// insert
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.insert(self.hash(key))
    }

    /// insert_if_absent
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.insert_if_absent(self.hash(key))
    }

    /// contains
    #[inline]
    #[must_use]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.contains(self.hash(key))
    }

    /// remove
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.remove(self.hash(key))
    }

    /// count
    #[must_use]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.table.count(self.hash(key))
    }
}

impl<T: ?Sized, S> fmt::Debug for ConcurrentCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooFilter")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
