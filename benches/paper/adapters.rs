//! How each system inserts, looks up and removes a key.

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter};

use super::filters::{CountingBloom, DLeft};
use super::support::hash::HASH;
use super::support::subject::Subject;
use super::timed::Filter;

/// Another crate's filter, with the settings of the other benchmarks.
pub(crate) struct Peer<S>(pub(crate) S);

pub(crate) struct Bloom(pub(crate) fastbloom::BloomFilter<RandomState>);
pub(crate) struct AtomicBloom(pub(crate) fastbloom::AtomicBloomFilter<RandomState>);
pub(crate) struct BlockedBloom(pub(crate) sbbf_rs_safe::Filter);
pub(crate) struct Quotient(pub(crate) qfilter::Filter);
pub(crate) struct Exact(pub(crate) scc::HashIndex<u64, (), RandomState>);

/// What each does with a key.
macro_rules! filter {
    ([$($of:tt)*] $Filter:ty, |$filter:ident, $key:ident|
        insert: $insert:expr, contains: $contains:expr, remove: $remove:expr) => {
        impl<$($of)*> Filter for $Filter {
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
            #[allow(unused_variables, reason = "from some, keys can't be removed")]
            fn remove(&mut self, $key: u64) -> bool {
                let $filter = self;
                $remove
            }
        }
    };
}

filter!([] ConcurrentCuckooFilter<u64, RandomState>, |filter, key|
    insert: ConcurrentCuckooFilter::insert(filter, &key).is_ok(),
    contains: ConcurrentCuckooFilter::contains(filter, &key),
    remove: ConcurrentCuckooFilter::remove(filter, &key));

filter!([] GrowableCuckooFilter<u64, RandomState>, |filter, key|
    insert: GrowableCuckooFilter::insert(filter, &key).is_ok(),
    contains: GrowableCuckooFilter::contains(filter, &key),
    remove: GrowableCuckooFilter::remove(filter, &key));

filter!([S: Subject] Peer<S>, |filter, key|
    insert: filter.0.insert(key),
    contains: filter.0.contains(key),
    remove: filter.0.remove(key));

filter!([] Bloom, |filter, key|
    insert: {
        filter.0.insert(&key);
        true
    },
    contains: filter.0.contains(&key),
    remove: false);

filter!([] AtomicBloom, |filter, key|
    insert: {
        filter.0.insert(&key);
        true
    },
    contains: filter.0.contains(&key),
    remove: false);

filter!([] BlockedBloom, |filter, key|
    insert: {
        filter.0.insert_hash(HASH.hash_one(key));
        true
    },
    contains: filter.0.contains_hash(HASH.hash_one(key)),
    remove: false);

// As many copies as there are keys of one fingerprint. Otherwise a removal would remove the others too.
filter!([] Quotient, |filter, key|
    insert: filter.0.insert_fingerprint(true, HASH.hash_one(key)).is_ok(),
    contains: filter.0.contains_fingerprint(HASH.hash_one(key)),
    remove: filter.0.remove_fingerprint(HASH.hash_one(key)));

filter!([] DLeft, |filter, key|
    insert: DLeft::insert(filter, HASH.hash_one(key)),
    contains: DLeft::contains(filter, HASH.hash_one(key)),
    remove: DLeft::remove(filter, HASH.hash_one(key)));

filter!([] CountingBloom, |filter, key|
    insert: {
        CountingBloom::insert(filter, HASH.hash_one(key));
        true
    },
    contains: CountingBloom::contains(filter, HASH.hash_one(key)),
    remove: CountingBloom::remove(filter, HASH.hash_one(key)));

filter!([] Exact, |filter, key|
    insert: filter.0.insert_sync(key, ()).is_ok(),
    contains: filter.0.contains(&key),
    remove: filter.0.remove_sync(&key));
