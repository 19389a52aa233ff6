//! How the systems that threads cannot share insert, look up and remove a key.

use ahash::RandomState;

use super::filters::{CountingBloom, DLeft};
use super::support::hash::HASH;
use super::timed::Filter;

macro_rules! filter {
    ($Filter:ty, |$filter:ident, $key:ident| $insert:expr, $contains:expr, $remove:expr) => {
        impl Filter for $Filter {
            #[inline]
            fn insert(&mut self, $key: u64) -> bool {
                let $filter = self;
                $insert
            }

            #[inline]
            fn contains(&self, $key: u64) -> bool {
                let $filter = self;
                $contains
            }

            #[inline]
            #[allow(unused_variables, reason = "some cannot remove")]
            fn remove(&mut self, $key: u64) -> bool {
                let $filter = self;
                $remove
            }
        }
    };
}

filter!(
    fastbloom::BloomFilter<RandomState>,
    |filter, key| {
        filter.insert(&key);
        true
    },
    filter.contains(&key),
    false
);
filter!(
    sbbf_rs_safe::Filter,
    |filter, key| {
        filter.insert_hash(HASH.hash_one(key));
        true
    },
    filter.contains_hash(HASH.hash_one(key)),
    false
);
// As many copies as there are keys of one fingerprint. Otherwise a removal would remove the others too.
filter!(
    qfilter::Filter,
    |filter, key| filter.insert_fingerprint(true, HASH.hash_one(key)).is_ok(),
    filter.contains_fingerprint(HASH.hash_one(key)),
    filter.remove_fingerprint(HASH.hash_one(key))
);
filter!(
    DLeft,
    |filter, key| filter.insert_hash(HASH.hash_one(key)),
    filter.contains_hash(HASH.hash_one(key)),
    filter.remove_hash(HASH.hash_one(key))
);
filter!(
    CountingBloom,
    |filter, key| filter.insert_hash(HASH.hash_one(key)),
    filter.contains_hash(HASH.hash_one(key)),
    filter.remove_hash(HASH.hash_one(key))
);
