//! The operations that all filters have, written once.
//!
//! Each macro below is an `impl` block with the filter's name left open. What is said of an operation in the same words for
//! all filters stands here; where filters differ in what an operation does or costs, its documentation stands in the
//! filter's own file and is handed in. A filter has a `core`, which takes hashes and is a table or several, and a hasher.

/// One operation on a key, with the documentation that is handed in.
macro_rules! operation_on_a_key {
    (insert $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.insert_hash(self.hash_one(key))
        }
    };
    (insert_if_absent $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, InsertError>
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.insert_hash_if_absent(self.hash_one(key))
        }
    };
    (contains $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn contains<Q>(&self, key: &Q) -> bool
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.contains_hash(self.hash_one(key))
        }
    };
    (remove $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn remove<Q>(&self, key: &Q) -> bool
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.remove_hash(self.hash_one(key))
        }
    };
    (count $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn count<Q>(&self, key: &Q) -> usize
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.count_hash(self.hash_one(key))
        }
    };
}
pub(super) use operation_on_a_key;

/// The operations on keys, each with its documentation.
macro_rules! operations_on_keys {
    ($Filter:ident: $($(#[$doc:meta])* $operation:ident;)+) => {
        /// The operations on keys.
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            $(operation_on_a_key! { $operation $(#[$doc])* })+

            /// The hash of a key, for the operations on hashes. Two filters have the same one if they have the same hasher.
            #[inline(always)]
            #[must_use]
            pub fn hash_one<Q>(&self, key: &Q) -> u64
            where
                T: Borrow<Q>,
                Q: Hash + ?Sized,
            {
                self.hasher.hash_one(key)
            }
        }
    };
}
pub(super) use operations_on_keys;

/// The same operations by hash. The filter has a function `prepared`, which makes of a hash what its core is given.
macro_rules! operations_on_hashes {
    ($Filter:ident) => {
        /// The operations on hashes, for callers that have them already: that hash a key once for several filters (with the
        /// same hasher), or for a filter and a map.
        ///
        /// Each is the operation of the same name on the key that has this hash, by [`hash_one`](Self::hash_one) or by a
        /// hasher that is equal to [`hasher`](Self::hasher). Hashes of 64 good bits are not needed, but keys of equal hashes
        /// are one key to the filter.
        ///
        /// ```
        #[doc = concat!("# use concurrent_cuckoo_filter::{DefaultHashBuilder, ", stringify!($Filter), "};")]
        /// let hasher = DefaultHashBuilder::new();
        #[doc = concat!("let today = ", stringify!($Filter), "::<str>::with_capacity_and_hasher(1000, hasher.clone());")]
        #[doc = concat!("let yesterday = ", stringify!($Filter), "::<str>::with_capacity_and_hasher(1000, hasher);")]
        /// yesterday.insert("request-1")?;
        /// let hash = today.hash_one("request-1");
        /// assert!(today.contains_hash(hash) || yesterday.contains_hash(hash));
        /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
        /// ```
        impl<T: ?Sized, S> $Filter<T, S> {
            /// [`insert`](Self::insert) by hash.
            ///
            /// # Errors
            /// Those of `insert`.
            #[inline]
            pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
                self.core.insert(Self::prepared(hash))
            }

            /// [`insert_if_absent`](Self::insert_if_absent) by hash.
            ///
            /// # Errors
            /// Those of `insert_if_absent`.
            #[inline]
            pub fn insert_hash_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
                self.core.insert_if_absent(Self::prepared(hash))
            }

            /// [`contains`](Self::contains) by hash.
            #[inline]
            #[must_use]
            pub fn contains_hash(&self, hash: u64) -> bool {
                self.core.contains(Self::prepared(hash))
            }
        }
    };
    ($Filter:ident with removal) => {
        operations_on_hashes!($Filter);

        impl<T: ?Sized, S> $Filter<T, S> {
            /// [`remove`](Self::remove) by hash.
            #[inline]
            pub fn remove_hash(&self, hash: u64) -> bool {
                self.core.remove(Self::prepared(hash))
            }

            /// [`count`](Self::count) by hash.
            #[inline]
            #[must_use]
            pub fn count_hash(&self, hash: u64) -> usize {
                self.core.count(Self::prepared(hash))
            }
        }
    };
}
pub(super) use operations_on_hashes;

/// What a filter tells of itself and is told, in the same words for all.
macro_rules! properties {
    ($Filter:ident made by $made:literal) => {
        /// What is known of the filter as a whole.
        impl<T: ?Sized, S> $Filter<T, S> {
            /// Whether the filter holds no keys; as exact as [`len`](Self::len).
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The share of the slots that is taken, from 0 to 1; as exact as [`len`](Self::len), so it may be off by a few
            /// slots while others are at work.
            #[must_use]
            pub fn load_factor(&self) -> f64 {
                self.len() as f64 / self.slots() as f64
            }

            /// Tells the filter that so many positive answers turned out to be wrong: that the database behind it, say, did
            /// not have the keys. From these and [`record_negatives`](Self::record_negatives) follows
            /// [`Stats::observed_false_positive_rate`].
            ///
            /// Cost: one addition to the thread's own counter, which no other thread waits for.
            pub fn record_false_positives(&self, count: u64) {
                self.core.record_false_positives(count);
            }

            /// Tells the filter that so many lookups were answered `false`, which it does not count by itself: a lookup
            /// that nobody disturbs writes nothing.
            ///
            /// Cost: one addition to the thread's own counter. Where that is too much for each lookup, add up and hand the
            /// sum over now and then.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            /// # let database = |_: &str| None::<u32>;
            #[doc = concat!("# let filter = ", stringify!($Filter), "::<str>::", $made, ";")]
            /// let mut negatives = 0;
            /// for name in ["a", "b", "c"] {
            ///     if !filter.contains(name) {
            ///         negatives += 1;
            ///     } else if database(name).is_none() {
            ///         filter.record_false_positives(1);
            ///     }
            /// }
            /// filter.record_negatives(negatives);
            /// assert_eq!(filter.stats().observed_false_positive_rate(), Some(0.0));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn record_negatives(&self, count: u64) {
                self.core.record_negatives(count);
            }

            /// The hasher.
            #[must_use]
            pub fn hasher(&self) -> &S {
                &self.hasher
            }
        }

        // A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
        impl<T: ?Sized, S: UnwindSafe> UnwindSafe for $Filter<T, S> {}
        impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for $Filter<T, S> {}
    };
}
pub(super) use properties;

/// The layout of a filter of one table.
macro_rules! layout_of_table {
    ($Filter:ident with fingerprints of $bits:literal in $slots:literal) => {
        /// The layout of the buckets.
        impl<T: ?Sized, S> $Filter<T, S> {
            /// How the fingerprints of a bucket are stored.
            #[must_use]
            pub fn encoding(&self) -> Encoding {
                self.core.shape().encoding
            }

            #[doc = concat!("The bits of a fingerprint, from ", $bits, ".")]
            #[must_use]
            pub fn fingerprint_bits(&self) -> u32 {
                self.core.shape().fingerprint_bits
            }

            #[doc = concat!("The slots of a bucket, from ", $slots, ". A bucket takes up 64 bits.")]
            #[must_use]
            pub fn slots_per_bucket(&self) -> usize {
                self.core.shape().slots as usize
            }
        }
    };
}
pub(super) use layout_of_table;

/// The trait that all filters have in common.
macro_rules! membership {
    ($Filter:ident) => {
        impl<T: ?Sized, S> Sealed for $Filter<T, S> {}

        impl<T: Hash + ?Sized, S: BuildHasher> MembershipFilter<T> for $Filter<T, S> {
            #[inline]
            fn contains(&self, key: &T) -> bool {
                self.contains(key)
            }

            #[inline]
            fn insert(&self, key: &T) -> Result<(), InsertError> {
                self.insert(key)
            }

            #[inline]
            fn insert_if_absent(&self, key: &T) -> Result<bool, InsertError> {
                self.insert_if_absent(key)
            }

            fn contains_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>, found: &mut impl Extend<bool>) {
                self.contains_batch(keys, found);
            }

            fn insert_batch<K: BatchKey<T>>(
                &self,
                keys: impl IntoIterator<Item = K>,
            ) -> Result<usize, InsertBatchError> {
                self.insert_batch(keys)
            }

            fn hash_one(&self, key: &T) -> u64 {
                self.hash_one(key)
            }

            fn contains_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, found: &mut impl Extend<bool>) {
                self.contains_hash_batch(hashes, found);
            }

            fn insert_hash_batch(&self, hashes: impl IntoIterator<Item = u64>) -> Result<usize, InsertBatchError> {
                self.insert_hash_batch(hashes)
            }

            fn capacity(&self) -> usize {
                self.capacity()
            }

            fn len(&self) -> usize {
                self.len()
            }

            fn clear(&self) {
                self.clear();
            }

            fn stats(&self) -> Stats {
                self.stats()
            }

            fn record_false_positives(&self, count: u64) {
                self.record_false_positives(count);
            }

            fn record_negatives(&self, count: u64) {
                self.record_negatives(count);
            }
        }
    };
}
pub(super) use membership;
