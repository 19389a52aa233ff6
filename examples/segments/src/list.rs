//! The list: what a get looks at after the active memtable. It is never changed, only replaced as a whole.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use concurrent_cuckoo_filter::{CuckooMaplet, Values};

use crate::segment::{Bytes, Entry, Segment};
use crate::store::Hasher;

pub(crate) type Memtable = BTreeMap<Bytes, Entry>;

/// Pairs of a key and a slot.
pub(crate) type Maplet = CuckooMaplet<[u8], Hasher>;

/// The most segments in a list. [`List::with_slots`] notes positions in the bits of a `u128`.
pub(crate) const MOST_LISTED: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The memtable that a flush writes to a segment. It is empty if there is no flush.
    pub(crate) sealed: Arc<Memtable>,
    /// From the newest to the oldest.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The position of the segment with each slot.
    positions: Vec<Option<usize>>,
    /// `None` if each segment has a filter of its own.
    pub(crate) maplet: Option<Arc<Maplet>>,
}

impl List {
    pub(crate) fn new(sealed: Arc<Memtable>, segments: Vec<Arc<Segment>>, maplet: Option<Arc<Maplet>>) -> Self {
        let mut positions = vec![None; MOST_LISTED];
        for (position, segment) in segments.iter().enumerate() {
            let before = positions[usize::from(segment.slot)].replace(position);
            assert_eq!(before, None, "two segments have slot {}", segment.slot);
        }
        Self { sealed, segments, positions, maplet }
    }

    /// The segments with these slots, from the newest on.
    pub(crate) fn with_slots(&self, slots: Values) -> impl Iterator<Item = &Arc<Segment>> {
        // A slot without a segment belongs to a segment that is not listed yet, or not any more.
        let listed = slots.into_iter().filter_map(|slot| self.positions[usize::from(slot)]);
        let mut positions = listed.fold(0_u128, |positions, position| positions | 1 << position);
        iter::from_fn(move || {
            let next = self.segments.get(positions.trailing_zeros() as usize);
            positions &= positions.wrapping_sub(1);
            next
        })
    }

    /// The slot in the key's pair: that of the newest segment that has the key. The maplet alone does not know it,
    /// because it also shows slots of other keys. `None` if no segment has the key, or if there is no maplet.
    pub(crate) fn slot_of(&self, key: &[u8]) -> Option<u16> {
        let slots = self.maplet.as_ref()?.values(key);
        self.with_slots(slots).find(|segment| segment.get(key).is_some()).map(|segment| segment.slot)
    }

    /// The lowest slot that no segment has.
    pub(crate) fn free_slot(&self) -> u16 {
        let free = self.positions.iter().position(Option::is_none);
        u16::try_from(free.expect("there are fewer segments than slots")).expect("a slot is below 128")
    }
}
