//! hoprnet: a mixnet node drops packets whose tag it has seen (`protocols/hopr/src/tbf.rs`).
//!
//! Today it has a Bloom filter of ten million tags in a `Mutex`. When that is full, it is cleared, and each packet of
//! the past passes once more.

use crate::LastKeys;

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

/// Remembers at least the last tags. A new tag that is taken for an old one costs its packet.
pub type RecentTags = LastKeys<PacketTag>;

impl TagFilter for RecentTags {
    fn check_and_set(&self, tag: &PacketTag) -> bool {
        Self::check_and_set(self, tag)
    }

    fn check(&self, tag: &PacketTag) -> bool {
        Self::check(self, tag)
    }

    fn count(&self) -> usize {
        self.new_keys() as usize
    }
}
