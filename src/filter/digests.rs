//! Digests of all filters, written once.

use core::hash::BuildHasher;
use std::io;

use crate::error::kind::FilterKind;
use crate::filter::concurrent::ConcurrentCuckooFilter;
use crate::filter::expiring::ExpiringCuckooFilter;
use crate::filter::growable::GrowableCuckooFilter;
use crate::filter::maplet::ConcurrentCuckooMaplet;
use crate::filter::rotating::RotatingCuckooFilter;
use crate::hasher::probe::probe;
use crate::table::begun::Imaged;

macro_rules! digest {
    ($Filter:ident of $kind:ident: $(#[$own:meta])*) => {
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            /// What the filter holds, as one number: to tell whether two filters hold the same.
            ///
            /// **Filters that hold the same have the same digest**, however they came to it: in what order, on how many
            /// threads, with what relocations, by a snapshot. Filters that hold something else have another one, but for one
            /// comparison in 2⁶⁴. The type of the filter, the number of its buckets, their layout and the hasher's key count
            /// too, so filters that differ in these have different digests, also if they are empty. (Schema, capacity
            /// and what time is divided into do not count.)
            ///
            $(#[$own])*
            ///
            /// The digest is that of the moment at which the call begins: exactly that of a snapshot which is begun then.
            /// So it is exact if nobody changes the filter at that moment, as where one thread makes all changes and calls
            /// this between two of them; what others change later does not count. Of an insert that overlaps the moment
            /// the copy may count or not, and what a [`clear`](Self::clear) removes during the call may count or not.
            ///
            /// With a hasher that is the same everywhere (`StableState`), it is the same on every machine, and in all versions
            /// of this crate that write the same version of the snapshot format. It is no signature: whoever may choose keys can make two filters with one digest.
            ///
            /// Cost: one pass over the table, without a lock (192 MB take 0.3 to 0.5 s: `cargo bench --bench merge`);
            /// all stripes are locked for some microseconds at the beginning. Meanwhile each change takes one more
            /// lock, and puts aside, in 16 to 64 bytes, the word of each bucket that it is the first to change.
            ///
            /// # Errors
            /// `OutOfMemory` if that memory was refused. The changes themselves are done.
            pub fn digest(&self) -> io::Result<u64> {
                self.core.begin_save()?.digest(FilterKind::$kind, probe(&self.hasher))
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
    /// let [one, other] = [(); 2].map(|()| ConcurrentCuckooFilter::<u64>::with_capacity_and_hasher(1000, hasher.clone()));
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
    ConcurrentCuckooMaplet of Maplet:
    /// The values count: a key with another value is another pair.
}

digest! {
    ExpiringCuckooFilter of Expiring:
    /// Entries that have expired don't count, swept or not. The ends count as ticks of the caller's. So two filters have
    /// the same digest if they tell the same entries to be live, and for as long. Their clocks need not show the same tick, unless
    /// something has expired by one and not by the other.
    ///
    /// After [`restart_clock`](Self::restart_clock) the ends are other ticks, and the digest is another one.
}

digest! {
    GrowableCuckooFilter of Growable:
    /// In which table a key's copy is makes no difference, nor how many tables there are. Keys count as the oldest table tells
    /// them apart. That table must be of the same size and layout. What
    /// [`insert_if_absent`](Self::insert_if_absent) takes for present depends on the table that a look-alike is in; so with that
    /// operation, the order of the changes and how the filter has grown do make a difference.
}

digest! {
    RotatingCuckooFilter of Rotating:
    /// In which generation a key is counts, by the generation's age. How often the filter has rotated does not.
}
