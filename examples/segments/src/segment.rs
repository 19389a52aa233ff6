//! A segment: sorted entries that never change.

use std::fmt;
use std::sync::Arc;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};

use crate::store::Error;

/// A key or a value, shared by the parts of the store that have it.
pub type Bytes = Arc<[u8]>;

/// What is stored for a key: its value, or `None` if it was deleted. A deletion hides what older segments have.
pub(crate) type Entry = Option<Bytes>;

/// The filter of one segment. All filters have the same hasher, so a get hashes its key once.
pub(crate) type Filter = ConcurrentCuckooFilter<[u8]>;

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

    /// A filter for the keys of these entries.
    pub(crate) fn filter(entries: &[(Bytes, Entry)], hasher: &DefaultHashBuilder, rate: f64) -> Result<Filter, Error> {
        let builder = Filter::builder_with_hasher(hasher.clone()).capacity(entries.len());
        let filter = builder.false_positive_rate(rate).build()?;
        filter.insert_batch(entries.iter().map(|(key, _)| &**key))?;
        Ok(filter)
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment {{ slot: {}, keys: {} }}", self.slot, self.entries.len())
    }
}

/// A key of several segments.
pub(crate) struct Merged<'a> {
    pub(crate) key: &'a Bytes,
    /// The newest entry.
    pub(crate) entry: &'a Entry,
    /// The slot of the segment that has the newest entry.
    pub(crate) slot: u16,
}

/// The keys of these segments in order, each once. The segments come from the newest to the oldest.
pub(crate) fn merge(segments: &[Arc<Segment>]) -> Vec<Merged<'_>> {
    let all = segments
        .iter()
        .flat_map(|segment| segment.entries.iter().map(|(key, entry)| Merged { key, entry, slot: segment.slot }));
    let mut merged: Vec<_> = all.collect();
    // The sort is stable, so the newest entry of a key comes first. That one stays.
    merged.sort_by(|a, b| a.key.cmp(b.key));
    merged.dedup_by(|older, newer| older.key == newer.key);
    merged
}
