//! A segment: sorted entries that never change. And the list of all segments, which is replaced as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use concurrent_cuckoo_filter::{CuckooMaplet, Values};

use crate::store::Hasher;

/// A key or a value, shared by the parts of the store that have it.
pub type Bytes = Arc<[u8]>;

/// What is stored for a key: its value, or `None` if it was deleted. A deletion hides what older segments have.
pub(crate) type Entry = Option<Bytes>;

pub(crate) type Memtable = BTreeMap<Bytes, Entry>;

/// Pairs of a key and a slot.
pub(crate) type Maplet = CuckooMaplet<[u8], Hasher>;

#[derive(Debug)]
pub(crate) struct Segment {
    /// Its value in the maplet. No other listed segment has it.
    pub(crate) slot: u16,
    /// Sorted by key, each key once.
    pub(crate) entries: Vec<(Bytes, Entry)>,
}

impl Segment {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        let position = self.entries.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        Some(&self.entries[position].1)
    }
}

/// What a get looks at after the active memtable.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The memtable that a flush writes to a segment. It is empty if there is no flush.
    pub(crate) sealed: Arc<Memtable>,
    /// From the newest to the oldest.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) maplet: Arc<Maplet>,
}

impl List {
    /// The segments with these slots, from the newest on. A slot without a segment belongs to one that is not listed yet,
    /// or not any more. (With very many segments, keep a table from slots to segments.)
    pub(crate) fn with_slots(&self, slots: Values) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().filter(move |segment| slots.contains(segment.slot))
    }

    /// The slot in the key's pair: that of the newest segment that has the key. The maplet alone does not know it,
    /// because it also shows slots of other keys. `None` if no segment has the key.
    pub(crate) fn slot_of(&self, key: &[u8]) -> Option<u16> {
        self.with_slots(self.maplet.values(key)).find(|segment| segment.get(key).is_some()).map(|segment| segment.slot)
    }

    /// The lowest slot that no segment has.
    pub(crate) fn free_slot(&self) -> u16 {
        let is_free = |slot: &u16| self.segments.iter().all(|segment| segment.slot != *slot);
        (0..).find(is_free).expect("there are fewer segments than slots")
    }
}

/// The keys of these segments in order, each once, with its newest entry and the slot of the segment that has this
/// entry. The segments come from the newest to the oldest.
pub(crate) fn merge(segments: &[Arc<Segment>]) -> Vec<(&Bytes, &Entry, u16)> {
    let all = segments.iter().flat_map(|segment| segment.entries.iter().map(|(key, entry)| (key, entry, segment.slot)));
    let mut merged: Vec<_> = all.collect();
    // The sort is stable, so the newest entry of a key comes first. That one stays.
    merged.sort_by_key(|(key, ..)| *key);
    merged.dedup_by_key(|(key, ..)| *key);
    merged
}
