//! CONCURRENT: one lock for all copies of a class, in whatever tables they are.
//!
//! In a filter of several tables, `insert_if_absent`, `count` and `remove` must look into several of them as if in
//! one step. The filter locks the class's *gate* for that time. Inside, each table follows its own protocol
//! (`table/stripe.rs`) and takes its own locks, one at a time. No thread that holds one of those waits for a gate, so
//! there is no deadlock. Lookups and plain inserts take no gate.

use crossbeam_utils::CachePadded;

use crate::machine::memory::boxed_slice;
use crate::sync::{Mutex, MutexGuard};

/// The most gates a filter has. At 128 bytes each, they take half of a 32 KiB L1 cache. Fewer under loom, for which
/// each lock is one more object.
const MAX_GATES: usize = if cfg!(ccf_model = "loom") { 2 } else { 128 };

/// The locks. Each class has one of them.
#[derive(Debug)]
pub(crate) struct Gates {
    /// Their number is a power of two.
    locks: Box<[CachePadded<Mutex<()>>]>,
}

/// The number of buckets for each gate, as long as there are fewer than [`MAX_GATES`]. In models it is 1, so that
/// they have a few gates.
const BUCKETS_PER_GATE: usize = if cfg!(ccf_model) { 1 } else { 64 };

/// The number of gates if the coarsest table has this many buckets: a power of two.
fn gates_for(buckets: usize) -> usize {
    1 << (buckets / BUCKETS_PER_GATE).clamp(1, MAX_GATES).ilog2()
}

impl Gates {
    /// Gates for a filter whose coarsest table has this many buckets, or `None` if there is no memory for them.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        Some(Self { locks: boxed_slice(gates_for(buckets), || CachePadded::new(Mutex::new(())))? })
    }

    /// How many bytes [`new`](Self::new) requests from the allocator.
    pub(crate) fn memory_for(buckets: usize) -> usize {
        gates_for(buckets) * size_of::<CachePadded<Mutex<()>>>()
    }

    /// Locks the gate of the classes whose pair in the coarsest table has this as its lower bucket.
    pub(crate) fn lock(&self, lower_bucket: usize) -> MutexGuard<'_, ()> {
        self.locks[lower_bucket & (self.locks.len() - 1)].lock()
    }
}
