//! `prefetch` of all filters, written once.

use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::maplet::filter::CuckooMaplet;
use crate::word::geometry::mixed;

/// `$made` makes the filter of the example, `$prepared` turns a hash into what the core takes.
macro_rules! prefetch {
    ($Filter:ident, $prepared:expr, $made:literal) => {
        /// A hint.
        impl<T: ?Sized, S> ByHash<'_, $Filter<T, S>> {
            /// Asks the processor to load what an operation on this hash will read, and does not wait for it.
            ///
            /// In a table larger than the cache, a lookup mostly waits for memory. So call this as soon as the key is
            /// known, and do other work before the lookup: parse the rest of the request, check a signature. After some
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
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("# let revoked = ", stringify!($Filter), "::<str>::", $made, ";")]
            /// # let parse = |body: &str| body.len();
            /// let (token, body) = ("token-17", "a long body");
            /// let hash = revoked.hash_one(token);
            /// revoked.by_hash().prefetch(hash);
            /// let request = parse(body); // meanwhile the lines are on their way
            /// if revoked.by_hash().contains(hash) {
            ///     println!("perhaps revoked: look into the database for a request of {request} bytes");
            /// }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            pub fn prefetch(self, hash: Hashed) {
                self.0.core.prefetch(&[$prepared(hash.0)]);
            }
        }
    };
}

prefetch!(ConcurrentCuckooFilter, core::convert::identity, "with_capacity(1000)");
prefetch!(GrowableCuckooFilter, mixed, "with_capacity(1000)");
prefetch!(CuckooMaplet, core::convert::identity, "builder().capacity(1000).value_bits(4).build()?");
prefetch!(ExpiringCuckooFilter, core::convert::identity, "builder().capacity(1000).lifetime_in_ticks(60).build()?");
