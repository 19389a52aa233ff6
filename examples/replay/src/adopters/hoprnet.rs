//! hoprnet: a mixnet node drops packets whose tag it has seen (`protocols/hopr/src/tbf.rs`).
//!
//! Today it has a Bloom filter of ten million tags in a `Mutex`. When that is full, it is cleared, and each packet of
//! the past passes once more.

use std::sync::atomic::{AtomicU64, Ordering};

use concurrent_cuckoo_filter::{BuildError, WhenFull};

use crate::UsedOnce;

/// The tag of a packet.
pub type PacketTag = [u8; 16];

/// The methods of hoprnet's `TagBloomFilter`. The first takes `&mut self` there, so each packet takes a lock.
pub trait TagFilter {
    /// Returns whether the tag was seen, and remembers it.
    fn check_and_set(&self, tag: &PacketTag) -> bool;
    /// Returns whether the tag was seen.
    fn check(&self, tag: &PacketTag) -> bool;
    /// How many tags were new.
    fn count(&self) -> usize;
}

/// Remembers at least the last tags, whose number is the capacity. The oldest leave, some seven percent of the capacity
/// at a time.
#[derive(Debug)]
pub struct RecentTags {
    tags: UsedOnce<PacketTag>,
    /// How many tags were new. It is the clock of the filter.
    new: AtomicU64,
}

impl RecentTags {
    /// Makes room for so many tags. A new tag is taken for an old one with a probability of at most
    /// `false_positive_rate`: its packet is lost.
    ///
    /// # Errors
    /// Those of the filter's builder.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        let tags = UsedOnce::within(capacity as u64, capacity, false_positive_rate, WhenFull::EvictOldest)?;
        Ok(Self { tags, new: AtomicU64::new(0) })
    }

    /// For figures.
    pub fn tags(&self) -> &UsedOnce<PacketTag> {
        &self.tags
    }
}

impl TagFilter for RecentTags {
    /// Of many threads that bring one tag, one gets `false`. In doubt a tag counts as seen.
    fn check_and_set(&self, tag: &PacketTag) -> bool {
        // Relaxed: a thread that sees an old number lets old tags live on a little.
        self.tags.advance(self.new.load(Ordering::Relaxed));
        let used = self.tags.try_use_now(tag);
        if used.is_ok() {
            self.new.fetch_add(1, Ordering::Relaxed);
        }
        used.is_err()
    }

    fn check(&self, tag: &PacketTag) -> bool {
        self.tags.filter().contains(tag)
    }

    fn count(&self) -> usize {
        self.new.load(Ordering::Relaxed) as usize
    }
}
