//! The operations of the filters of keys alone, written once. (Those of maplets and of expiring filters are in their
//! own files, since most also take a value or an expiry.)
//!
//! Each macro below is an `impl` block that leaves the filter's name open. Documentation that has the same words for
//! all filters is in this file. Where filters differ in what an operation does or costs, its documentation is in the
//! filter's own file, which passes it to the macro. A filter has a hasher and a `core`, which takes hashes and is one
//! table or several.

/// One operation on a key, with the documentation that the caller of the macro passes.
macro_rules! operation_on_a_key {
    (insert $Error:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn insert<Q>(&self, key: &Q) -> Result<(), $Error>
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().insert(self.hash_one(key))
        }
    };
    (insert_if_absent $Error:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, $Error>
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().insert_if_absent(self.hash_one(key))
        }
    };
    (contains $Error:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn contains<Q>(&self, key: &Q) -> bool
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().contains(self.hash_one(key))
        }
    };
    (remove $Error:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        pub fn remove<Q>(&self, key: &Q) -> bool
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().remove(self.hash_one(key))
        }
    };
    (count $Error:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn count<Q>(&self, key: &Q) -> usize
        where
            T: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().count(self.hash_one(key))
        }
    };
}
pub(in crate::filter) use operation_on_a_key;

/// The operations on keys, each with its documentation.
macro_rules! operations_on_keys {
    ($Filter:ident, $Error:ident: $($(#[$doc:meta])* $operation:ident;)+) => {
        /// The operations on keys.
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            $(operation_on_a_key! { $operation $Error $(#[$doc])* })+

            /// Returns the hash of a key, for [`by_hash`](Self::by_hash). Filters with the same hasher compute the same hash.
            #[inline(always)]
            #[must_use]
            pub fn hash_one<Q>(&self, key: &Q) -> Hashed
            where
                T: Borrow<Q>,
                Q: Hash + ?Sized,
            {
                Hashed(self.hasher.hash_one(key))
            }
        }
    };
}
pub(in crate::filter) use operations_on_keys;

/// Facts about a filter, and recorded answers, with the same documentation for all types.
macro_rules! properties {
    ($Filter:ident made by $made:literal) => {
        /// Facts about the filter as a whole.
        impl<T: ?Sized, S> $Filter<T, S> {
            /// Returns whether the filter holds no keys. This is as exact as [`len`](Self::len).
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Records that `count` positive answers turned out to be wrong, for example because the database behind
            /// the filter did not have the keys. From this and [`record_negatives`](Self::record_negatives), the
            /// filter computes [`Stats::observed_false_positive_rate`].
            ///
            /// Cost: one addition to the thread's own counter. No other thread waits for it.
            pub fn record_false_positives(&self, count: u64) {
                self.core.record_false_positives(count);
            }

            /// Records that `count` lookups were answered `false`. The filter does not count them by itself, because
            /// a lookup that no other thread disturbs writes nothing.
            ///
            /// Cost: one addition to the thread's own counter. If that is too much for each lookup, add up the
            /// answers and record the sum at intervals.
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

            /// Returns the hasher, for example to hash keys with it before they come to the filter.
            #[must_use]
            pub fn hasher(&self) -> &S {
                &self.hasher
            }
        }

        // A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half
        // changed.
        impl<T: ?Sized, S: UnwindSafe> UnwindSafe for $Filter<T, S> {}
        impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for $Filter<T, S> {}
    };
}
pub(in crate::filter) use properties;
