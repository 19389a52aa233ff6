//! CONCURRENT: one lock for all copies of a class, in however many tables they are.
//!
//! A filter of several tables must, for `insert_if_absent`, `count` and `remove`, look into several of them as if in one
//! step. It locks the class's gate for that time. Inside, each table keeps to its own protocol (`table/stripe.rs`) and takes
//! its own locks, one at a time; nobody who holds one of those waits for a gate, so nothing can deadlock. Lookups and
//! plain inserts pass by without it.

use crossbeam_utils::CachePadded;

use crate::machine::memory::boxed_slice;
use crate::sync::{Mutex, MutexGuard};

/// The most gates a filter has. At 128 bytes each, half of a 32 KiB L1 cache. Fewer under loom, to which each lock is one
/// more object.
const MAX_GATES: usize = if cfg!(ccf_model = "loom") { 2 } else { 128 };

/// The locks, of which each class has one.
#[derive(Debug)]
pub(crate) struct Gates {
    /// A power of two of them.
    locks: Box<[CachePadded<Mutex<()>>]>,
}

/// How many buckets there are for each gate, while there are fewer than [`MAX_GATES`]. Models are to have a few gates.
const BUCKETS_PER_GATE: usize = if cfg!(ccf_model) { 1 } else { 64 };

/// The number of gates where the coarsest table has so many buckets: a power of two.
fn gates_for(buckets: usize) -> usize {
    1 << (buckets / BUCKETS_PER_GATE).clamp(1, MAX_GATES).ilog2()
}

impl Gates {
    /// Gates for a filter whose coarsest table has so many buckets, or `None` if there is no memory for them.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        Some(Self { locks: boxed_slice(gates_for(buckets), || CachePadded::new(Mutex::new(())))? })
    }

    /// How many bytes [`new`](Self::new) asks the allocator for.
    pub(crate) fn memory_for(buckets: usize) -> usize {
        gates_for(buckets) * size_of::<CachePadded<Mutex<()>>>()
    }

    /// Locks the gate of the classes whose pair in the coarsest table has this as its lower bucket.
    pub(crate) fn lock(&self, lower_bucket: usize) -> MutexGuard<'_, ()> {
        self.locks[lower_bucket & (self.locks.len() - 1)].lock()
    }
}
