//! The operations on keys, and the facts about a filter. Each type's file passes the documentation of its operations to
//! the macro; documentation that is the same for all types is here.

/// One operation on a key: its documentation and its signature. It is the operation of the same name on the key's hash.
macro_rules! operation_on_a_key {
    ($Key:ty: $(#[$doc:meta])* $operation:ident($($argument:ident: $Type:ty),*) -> $Answer:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $operation<Q>(&self, key: &Q $(, $argument: $Type)*) -> $Answer
        where
            $Key: Borrow<Q>,
            Q: Hash + ?Sized,
        {
            self.by_hash().$operation(self.hash_one(key) $(, $argument)*)
        }
    };
}
pub(crate) use operation_on_a_key;

/// One operation on many keys, or on many pairs of a key and something else: its documentation and its signature. It is the
/// operation of the same name on the keys' hashes.
macro_rules! batch_on_keys {
    ($Key:ty: $(#[$doc:meta])* $batch:ident(keys $(, $argument:ident: $Type:ty)*) $(-> $Answer:ty)?) => {
        $(#[$doc])*
        pub fn $batch<K: BatchKey<$Key> + Hash>(
            &self,
            keys: impl IntoIterator<Item = K>
            $(, $argument: $Type)*
        ) $(-> $Answer)? {
            self.by_hash().$batch(keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key))) $(, $argument)*)
        }
    };
    (
        $Key:ty: $(#[$doc:meta])*
        $batch:ident $(<$Other:ident: $Bound:path>)? (pairs of $With:ty $(, $argument:ident: $Type:ty)*) $(-> $Answer:ty)?
    ) => {
        $(#[$doc])*
        pub fn $batch<K: BatchKey<$Key> + Hash $(, $Other: $Bound)?>(
            &self,
            pairs: impl IntoIterator<Item = (K, $With)>
            $(, $argument: $Type)*
        ) $(-> $Answer)? {
            let hashed = pairs.into_iter().map(|(key, with)| (Hashed(self.hasher.hash_one(key)), with));
            self.by_hash().$batch(hashed $(, $argument)*)
        }
    };
}
pub(crate) use batch_on_keys;

/// What a batch on hashes takes for each key.
macro_rules! hashed {
    () => {
        Hashed
    };
    ($With:ty) => {
        (Hashed, $With)
    };
}
pub(in crate::filter) use hashed;

/// The operations on many keys of a filter, and those on hashes that they lead to: as [`operations_on_keys`] has them.
macro_rules! batches_on_keys {
    (
        $(#[$of_all:meta])*
        $Filter:ident: $(
            $(#[$doc:meta])*
            $batch:ident $(<$O:ident: $Bound:path>)? ($form:ident $(of $With:ty)? $(, $argument:ident: $Type:ty)*)
            $(-> $Answer:ty)? = |$filter:ident, $hashes:ident| $work:expr;
        )+
    ) => {
        $(#[$of_all])*
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            $(batch_on_keys! {
                T: $(#[$doc])* $batch $(<$O: $Bound>)? ($form $(of $With)? $(, $argument: $Type)*) $(-> $Answer)?
            })+
        }

        #[allow(clippy::missing_errors_doc, reason = "they are those of the operation on keys")]
        impl<T: ?Sized, S> ByHash<'_, $Filter<T, S>> {
            $(
                #[doc = concat!("[`", stringify!($batch), "`](", stringify!($Filter), "::", stringify!($batch), ") by hashes.")]
                pub fn $batch $(<$O: $Bound>)? (
                    self,
                    hashes: impl IntoIterator<Item = hashed!($($With)?)>
                    $(, $argument: $Type)*
                ) $(-> $Answer)? {
                    let ($filter, $hashes) = (self.0, hashes.into_iter());
                    $work
                }
            )+
        }
    };
}
pub(in crate::filter) use batches_on_keys;

/// The operations on keys of a filter, and those on hashes that they lead to: of each the documentation, the signature, and
/// what it does with a hash. `$prepared` turns a hash into what the core takes.
macro_rules! operations_on_keys {
    ($Filter:ident, $prepared:path: $(
        $(#[doc $($doc:tt)*])* $(#[must_use $($must:tt)*])?
        $operation:ident($($argument:ident: $Type:ty),*) -> $Answer:ty = |$filter:ident, $hash:ident| $work:expr;
    )+) => {
        /// The operations on keys.
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            $(operation_on_a_key! {
                T: $(#[doc $($doc)*])* $(#[must_use $($must)*])? $operation($($argument: $Type),*) -> $Answer
            })+

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

        impl<T: ?Sized, S> $Filter<T, S> {
            by_hash! {}
        }

        #[allow(clippy::missing_errors_doc, reason = "they are those of the operation on a key")]
        impl<T: ?Sized, S> ByHash<'_, $Filter<T, S>> {
            $(
                #[doc = concat!("[`", stringify!($operation), "`](", stringify!($Filter), "::", stringify!($operation), ") by hash.")]
                #[inline]
                $(#[must_use $($must)*])?
                pub fn $operation(self, hash: Hashed $(, $argument: $Type)*) -> $Answer {
                    let ($filter, $hash) = (self.0, $prepared(hash.0));
                    $work
                }
            )+

            /// Asks the processor to load what an operation on this hash will read, and does not wait for it.
            ///
            /// In a table larger than the cache, a lookup mostly waits for memory. So call this as soon as the key is
            /// known, and do other work before the lookup: parse the rest of the request, check a signature. After about
            /// 100 to 200 ns the cache has what the lookup reads. For many keys at a time, a batch such as
            /// `contains_batch` does this by itself.
            ///
            /// It is only a hint. It changes no answer: the lookup finds what is in the filter at the time of the lookup. In
            /// a table that fits in the cache it gains nothing. On processors other than x86-64 and AArch64 it does nothing.
            ///
            /// Cost: a few instructions that ask for the lines of the key's two buckets and of its stripe. It takes no lock
            /// and writes nothing.
            ///
            /// ```
            /// # let revoked = concurrent_cuckoo_filter::ConcurrentCuckooFilter::<str>::with_capacity(1000);
            /// # let parse = |body: &str| body.len();
            /// let (token, body) = ("token-17", "a long body");
            /// let hash = revoked.hash_one(token);
            /// revoked.by_hash().prefetch(hash);
            /// let request = parse(body); // meanwhile the lines are on their way
            /// if revoked.by_hash().contains(hash) {
            ///     println!("perhaps revoked: look into the database for a request of {request} bytes");
            /// }
            /// ```
            #[inline]
            pub fn prefetch(self, hash: Hashed) {
                self.0.core.prefetch(&[$prepared(hash.0)]);
            }
        }
    };
}
pub(in crate::filter) use operations_on_keys;

/// Facts about a filter, and recorded answers, with the same documentation for all types.
macro_rules! properties {
    ($Filter:ident $(with $extra:ident)?) => {
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
                self.core.counters().record_false_positives(count);
            }

            /// Records that `count` lookups were answered `false`. The filter does not count them by itself, because
            /// a lookup that need not retry writes nothing.
            ///
            /// Cost: one addition to the thread's own counter. If that is too much for each lookup, add up the
            /// answers and record the sum at intervals. [`Stats`] has an example.
            pub fn record_negatives(&self, count: u64) {
                self.core.counters().record_negatives(count);
            }

            /// Returns the hasher, for example to hash keys with it before they come to the filter.
            #[must_use]
            pub fn hasher(&self) -> &S {
                &self.hasher
            }
        }

        /// Shows statistics, but not the table and not the hasher, whose key is a secret.
        impl<T: ?Sized, S> fmt::Debug for $Filter<T, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Filter))
                    .field("len", &self.len())
                    $(.field(stringify!($extra), &self.$extra()))?
                    .field("plan", &self.plan())
                    .finish_non_exhaustive()
            }
        }

        // A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half
        // changed.
        impl<T: ?Sized, S: UnwindSafe> UnwindSafe for $Filter<T, S> {}
        impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for $Filter<T, S> {}
    };
}
pub(in crate::filter) use properties;
