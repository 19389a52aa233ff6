//! How each system inserts, looks up and removes a key.

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter};

use super::filters::{CountingBloom, DLeft};
use super::support::hash::HASH;
use super::support::subject::Subject;
use super::timed::Filter;

macro_rules! ours {
    ($Filter:ty) => {
        impl Filter for $Filter {
            #[inline]
            fn insert(&mut self, key: u64) -> bool {
                <$Filter>::insert(self, &key).is_ok()
            }

            #[inline]
            fn contains(&self, key: u64) -> bool {
                <$Filter>::contains(self, &key)
            }

            #[inline]
            fn remove(&mut self, key: u64) -> bool {
                <$Filter>::remove(self, &key)
            }
        }
    };
}
ours!(ConcurrentCuckooFilter<u64, RandomState>);
ours!(GrowableCuckooFilter<u64, RandomState>);

/// Another crate's filter, with the settings of the other benchmarks.
pub(crate) struct Peer<S>(pub(crate) S);

impl<S: Subject> Filter for Peer<S> {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove(key)
    }
}

pub(crate) struct Bloom(pub(crate) fastbloom::BloomFilter<RandomState>);

impl Filter for Bloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn remove(&mut self, _key: u64) -> bool {
        false
    }
}

pub(crate) struct AtomicBloom(pub(crate) fastbloom::AtomicBloomFilter<RandomState>);

impl Filter for AtomicBloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn remove(&mut self, _key: u64) -> bool {
        false
    }
}

pub(crate) struct BlockedBloom(pub(crate) sbbf_rs_safe::Filter);

impl Filter for BlockedBloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert_hash(HASH.hash_one(key));
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains_hash(HASH.hash_one(key))
    }

    fn remove(&mut self, _key: u64) -> bool {
        false
    }
}

pub(crate) struct Quotient(pub(crate) qfilter::Filter);

impl Filter for Quotient {
    /// As many copies as there are keys of one fingerprint. Otherwise a removal would remove the others too.
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert_fingerprint(true, HASH.hash_one(key)).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains_fingerprint(HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove_fingerprint(HASH.hash_one(key))
    }
}

impl Filter for DLeft {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        DLeft::insert(self, HASH.hash_one(key))
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        DLeft::contains(self, HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        DLeft::remove(self, HASH.hash_one(key))
    }
}

impl Filter for CountingBloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        CountingBloom::insert(self, HASH.hash_one(key));
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        CountingBloom::contains(self, HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        CountingBloom::remove(self, HASH.hash_one(key))
    }
}

pub(crate) struct Exact(pub(crate) scc::HashIndex<u64, (), RandomState>);

impl Filter for Exact {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert_sync(key, ()).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove_sync(&key)
    }
}
