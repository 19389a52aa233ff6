//! A model's memory: lists of its own atomics.

use crate::sync::{AtomicU64, Ordering};

/// A list of zeros. A model has memory.
pub(crate) fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..len).map(|_| AtomicU64::new(0)).collect())
}

/// Does what a thread sees that uses a word whose memory the system takes back.
pub(crate) fn release(list: &[AtomicU64]) -> bool {
    list.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    true
}
