//! Digests of all filters, written once.

use core::hash::BuildHasher;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::hasher::probe::probe;
use crate::table::face::any_table::{HasTable as _, TableImage};

macro_rules! digest {
    ($Filter:ident of $kind:ident: $(#[$own:meta])*) => {
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            /// What the filter holds, as one number: two filters with the same digest hold the same.
            ///
            /// **Filters that hold the same have the same digest**, however they came to it: in any order, on any
            /// number of threads, with any relocations, or from a snapshot. Filters that hold something else have
            /// different digests, except for one comparison in 2⁶⁴.
            ///
            /// The digest also depends on the type of the filter, the number of its buckets, their layout and the
            /// hasher's key. So filters that differ in these have different digests, even if they are empty. (It
            /// does not depend on the schema, on the capacity, or on what time is divided into.)
            ///
            $(#[$own])*
            ///
            /// The digest is of the moment at which the call begins. So it is exact if no thread changes the filter at that
            /// moment, for example if one thread makes all changes and calls this between two of them. If an insert overlaps
            /// the moment, its copy may count or not, and so may what a [`clear`](Self::clear) removes during the call.
            ///
            /// With a hasher that is the same everywhere (`StableHashBuilder`, which needs the feature `stable-hash`),
            /// the digest is the same on every machine, and in all versions of this crate that write the same
            /// version of the snapshot format. It is no signature: anyone who may choose keys can make two filters
            /// with one digest.
            ///
            /// Cost: one pass over the table, without a lock (192 MB take 0.3 to 0.5 s: `cargo bench --bench merge`).
            /// Meanwhile changes [cost more](crate::guide::consistency#what-each-operation-costs).
            ///
            /// # Errors
            /// Fails if the memory for the old words of buckets that change meanwhile cannot be allocated. The changes
            /// themselves are done.
            pub fn digest(&self) -> Result<u64, OutOfMemory> {
                TableImage::begin(self.core.table())?.digest(FilterKind::$kind, probe(&self.hasher))
            }
        }
    };
}

digest! {
    ConcurrentCuckooFilter of Concurrent:
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};
    ///
    /// let hasher = DefaultHashBuilder::new();
    /// let new = || ConcurrentCuckooFilter::<u64>::with_capacity_and_hasher(1000, hasher.clone());
    /// let [one, other] = [new(), new()];
    /// for key in 0..500 {
    ///     one.insert(&key)?;
    ///     other.insert(&(499 - key))?;
    /// }
    /// assert_eq!(one.digest()?, other.digest()?);
    /// other.insert(&7)?;
    /// assert_ne!(one.digest()?, other.digest()?, "there are two copies of it now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
}

digest! {
    CuckooMaplet of Maplet:
    /// The digest depends on the values: a key with another value is another pair.
}

digest! {
    ExpiringCuckooFilter of Expiring:
    /// Expired entries don't count, swept or not. Expiries count as ticks of the caller's clock. So two filters
    /// have the same digest if they hold the same live entries with the same expiries. Their clocks need not show the
    /// same tick, unless something has expired by one and not by the other.
    ///
    /// After [`restart_clock`](Self::restart_clock) the expiries are other ticks, so the digest is another one.
}

digest! {
    GrowableCuckooFilter of Growable:
    /// The digest does not depend on the size of the table: a filter that has grown and shrunk has the same one as a
    /// fresh one with the same keys. Two filters can have the same digest only if they were built with the same settings.
}
