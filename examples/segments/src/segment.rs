//! A segment: sorted entries that never change.

use std::sync::Arc;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Hashed};

use crate::store::Hasher;

/// A key or a value, shared by the parts of the store that have it.
pub type Bytes = Arc<[u8]>;

/// What is stored for a key: its value, or `None` if it was deleted. A deletion hides what older segments have.
pub(crate) type Entry = Option<Bytes>;

/// The filter of one segment. All filters have the same hasher, so a get hashes its key once.
pub(crate) type Filter = ConcurrentCuckooFilter<[u8], Hasher>;

#[derive(Debug)]
pub(crate) struct Segment {
    /// Its value in the maplet. No other listed segment has it.
    pub(crate) slot: u16,
    /// Sorted by key, each key once.
    pub(crate) entries: Vec<(Bytes, Entry)>,
    /// `None` if the store has a maplet.
    pub(crate) filter: Option<Filter>,
}

impl Segment {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        let position = self.entries.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&self.entries[position].1)
    }

    /// Whether its filter lets the key with this hash pass.
    pub(crate) fn may_have(&self, hash: Hashed) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.by_hash().contains(hash))
    }
}

/// A key, its newest entry, and the slot of the segment that has this entry.
pub(crate) type Merged<'a> = (&'a Bytes, &'a Entry, u16);

/// The keys of these segments in order, each once. The segments come from the newest to the oldest.
pub(crate) fn merge(segments: &[Arc<Segment>]) -> Vec<Merged<'_>> {
    let all = segments.iter().flat_map(|segment| segment.entries.iter().map(|(key, entry)| (key, entry, segment.slot)));
    let mut merged: Vec<_> = all.collect();
    // The sort is stable, so the newest entry of a key comes first. That one stays.
    merged.sort_by_key(|(key, ..)| *key);
    merged.dedup_by_key(|(key, ..)| *key);
    merged
}
