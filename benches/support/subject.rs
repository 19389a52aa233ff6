//! What is compared. The filters, each at its best settings, are in `ours.rs` and `peers.rs`, exact sets in `exact.rs`.
//! What any shared array does is in `array.rs`.
//!
//! # What is the same for all
//! - The hash: `ahash`, seeded with the same constants. This crate gets a `RandomState` that holds them, as its
//!   users would give it. The others need a type of hasher, or a hasher to clone, and get one in which the compiler
//!   can fold the constants.
//! - The size of the table in bytes. This crate's table has exactly that size. The others round to powers of two,
//!   and are built to the nearest one *below*: at 512 KiB that is the same, at 192 MiB it is 128 MiB. So their
//!   smaller table misses the cache less often. (`atomic-cuckoo-filter` is as fast in 256 MiB as in 128 MiB, to
//!   within 5%.)
//! - The load, as a share of each table's own slots.
//! - The pages of memory: the usual ones, and huge ones.
//! - The compiler and its flags. Generic code of all crates is compiled in this one, so inlining is open to all.
//!
//! # The rates
//! `atomic-cuckoo-filter` has fingerprints of 4, 8, 16 and 32 bits. Its default and its best are 16, four to a
//! bucket, which is one word: 0.012% when full. Four plain fingerprints of 16 bits have that rate here too. The
//! default setting here (five of 14 bits) has five times that rate in four fifths of the memory.
//! `scalable_cuckoo_filter` can be set to four times 16 bits. `cuckoofilter` is not compared: its fingerprints have
//! 8 bits only, which means 3%.

/// What kind of subject it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This crate's filter.
    Ours,
    /// Another crate's.
    Peer,
    /// No filter: it answers lookups always with "present", and remembers no keys.
    Array,
}

/// A set of keys that threads share.
pub(crate) trait Set: Send + Sync {
    /// Whether there was room. Of an exact set: whether the key was not in.
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    /// Whether it was in.
    fn remove(&self, key: u64) -> bool;
    /// The memory of a set that may grow.
    fn grown_to(&self) -> usize {
        0
    }
}

/// Makes a type a [`Set`]. `false` for a removal says that there is none.
macro_rules! set {
    ($Set:ty, |$set:ident, $key:ident| $insert:expr, $contains:expr, $remove:expr $(, $grown_to:expr)?) => {
        impl $crate::support::subject::Set for $Set {
            #[inline]
            fn insert(&self, $key: u64) -> bool {
                let $set = self;
                $insert
            }

            #[inline]
            fn contains(&self, $key: u64) -> bool {
                let $set = self;
                $contains
            }

            #[inline]
            #[allow(unused_variables, reason = "some cannot remove")]
            fn remove(&self, $key: u64) -> bool {
                let $set = self;
                $remove
            }

            $(
                fn grown_to(&self) -> usize {
                    let $set = self;
                    $grown_to
                }
            )?
        }
    };
}
pub(crate) use set;

/// How a subject is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// A short name for the tables.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    /// Whether keys can be removed.
    pub(crate) removes: bool,
}

/// A set at one setting.
pub(crate) struct Subject<S> {
    pub(crate) about: About,
    /// An empty one whose table takes this many bytes or, if the crate uses powers of two, the nearest smaller number.
    pub(crate) build: fn(usize) -> Built<S>,
}

/// A set, and its properties while it is empty.
pub(crate) struct Built<S> {
    pub(crate) set: S,
    pub(crate) size: TableSize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TableSize {
    pub(crate) slots: u64,
    /// How many items it is made for. If the crate does not say, 95% of its slots.
    pub(crate) capacity: u64,
    /// The memory of the table and of what belongs to it.
    pub(crate) bytes: usize,
}

impl TableSize {
    pub(crate) fn new(slots: usize, bytes: usize) -> Self {
        let slots = slots as u64;
        Self { slots, capacity: slots * 95 / 100, bytes }
    }
}
