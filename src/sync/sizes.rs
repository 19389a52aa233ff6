//! The sizes that models reduce, each beside its size in the library. A model has a few buckets and a few steps. In these
//! it must reach every part of the protocol: a save of several chunks, a sweep in several pieces, an insert that gives up
//! its searches.

/// A size in the library, in models of single steps (`tests/stepped`), and under loom (`loom-tests`).
const fn size(library: usize, stepped: usize, loom: usize) -> usize {
    if cfg!(ccf_model = "loom") {
        loom
    } else if cfg!(ccf_model) {
        stepped
    } else {
        library
    }
}

// One table.

/// The most stripes a table has. At 16 bytes each they take half of a 32 KiB L1 cache. Fewer under loom, whose threads
/// have small stacks: a thread that holds all their locks has the guards on its stack.
pub(crate) const MAX_STRIPES: usize = size(1024, 1024, 4);

/// The number of buckets for each stripe, as long as there are fewer than [`MAX_STRIPES`]. It is the number of bytes of a
/// stripe, so that a sum of bucket numbers, masked, is the offset of its stripe (`Stripes::get`). A model's few buckets
/// have a few stripes.
pub(crate) const BUCKETS_PER_STRIPE: usize = size(16, 1, 1);

/// The number of searches that an insert makes while others change the table. After that, it makes one that no thread can
/// invalidate. Without interference, an insert that finds a path needs one. It needs more if other threads take the room
/// that it has made.
pub(crate) const SEARCHES: usize = size(4, 2, 2);

/// The most tries of an insert to verify that the few buckets that it can reach are full, while other threads invalidate
/// them. A try costs less than a pass through all stripes, the alternative.
pub(crate) const DEAD_END_TRIES: usize = size(4, 2, 2);

/// The fewest buckets that one call sweeps of expired entries. A model's sweep is many steps.
pub(crate) const SWEPT_AT_LEAST: usize = size(4096, 1, 1);

/// For how many words a sweep gets spare memory at a time, while a save is running.
pub(crate) const SWEPT_WORDS: u64 = size(64, 1, 1) as u64;

/// How many words of a save are read, passed and written at a time. A model's save is many steps.
pub(crate) const CHUNK: usize = size(1024, 1, 1);

// A table that grows.

/// The bits of the number of a bucket.
pub(crate) const INDEX_BITS: usize = size(32, 3, 3);

/// From this size on, in bytes, an allocator gets memory from the system for a segment alone. A model's segments give back
/// all that they can.
pub(crate) const LARGE_SEGMENT: usize = size(128 << 10, 0, 0);

/// How many buckets are split at a time. Split pointers are multiples of it.
pub(crate) const GROUP: usize = size(32, 1, 1);

/// The fewest buckets.
pub(crate) const LEAST_BUCKETS: usize = size(32, 2, 2);

/// The fewest stripes. A class keeps its stripe for the table's whole life, so a table that begins small has few.
pub(crate) const LEAST_STRIPES: usize = size(32, 2, 2);

/// How many gates a group has: one for its even buckets and one for its odd ones. A model's group is one bucket.
pub(crate) const GATES_PER_GROUP: usize = size(2, 1, 1);

/// The most gates. Where there are more groups than that, several groups share their gates.
pub(crate) const MOST_GATES: usize = size(1024, 4, 4);

/// How many buckets `clear` empties while it holds all gates: so an insert waits for 0.2 ms at most, and the gates take a
/// twentieth of the time. A model's `clear` gives them back between its buckets.
pub(crate) const CLEARED_AT_ONCE: usize = size(64 * MOST_GATES, 1, 1);

/// How many inserts of a shard of the counters go on without a check of how full the table is, after each check. (Under loom all
/// that a model makes, unless the table is closed.)
pub(crate) const INSERTS_PER_CHECK: usize = size(32, 1, 1 << 10);

/// The number of searches that an insert makes at most while others change the table. After that it makes one that no
/// thread can invalidate.
pub(crate) const SEARCHES_WHILE_GROWING: usize = size(4, 1, 1);

/// The most groups that one insert splits: 128 buckets, as the documentation says.
pub(crate) const GROUPS_PER_INSERT: usize = size(4, 2, 2);

/// How often a merge makes room for copies that do not fit, while other threads take that room.
pub(crate) const MERGE_TRIES: usize = size(8, 1, 1);

/// The most copies that a merge moves out of one bucket per try: those of two buckets, and some that other threads add.
pub(crate) const MOVED_PER_MERGE: usize = size(32, 1, 1);

/// By how many buckets a table may grow, from when a save has asked for memory until it holds the locks. If it grows by
/// more, the save begins again.
pub(crate) const GROWN_BEFORE_SAVE: usize = size(64 * GROUP, 1, 1);
