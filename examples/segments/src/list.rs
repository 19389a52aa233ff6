//! PURE: the list of the parts of a store at one time. It is never changed, only replaced.

use std::sync::Arc;

use crate::memtable::Memtable;
use crate::options::MOST_SEGMENTS;
use crate::segment::Segment;
use crate::slots::SlotMap;

const NOWHERE: u16 = u16::MAX;

/// What a get looks at, in this order: the active memtable, the sealed one, the segments.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// Takes the puts. Only the last published list has it, and lists that earlier gets still hold.
    pub(crate) active: Arc<Memtable>,
    /// The memtable that is being written to a segment.
    pub(crate) sealed: Option<Arc<Memtable>>,
    /// From the newest to the oldest.
    segments: Vec<Arc<Segment>>,
    /// The map that knows which of the segments may have a key, if the strategy has one.
    pub(crate) map: Option<Arc<dyn SlotMap>>,
    /// The position in `segments` by slot.
    by_slot: Vec<u16>,
}

impl List {
    pub(crate) fn new(active: Arc<Memtable>, segments: Vec<Arc<Segment>>, map: Option<Arc<dyn SlotMap>>) -> Self {
        let mut list = Self { active, sealed: None, segments: Vec::new(), map, by_slot: Vec::new() };
        list.set_segments(segments);
        list
    }

    pub(crate) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The same list with other segments. No two of them may have the same slot.
    pub(crate) fn with_segments(&self, segments: Vec<Arc<Segment>>) -> Self {
        let mut list = self.clone();
        list.set_segments(segments);
        list
    }

    /// The same list with an empty active memtable. The present active memtable becomes the sealed one.
    pub(crate) fn with_sealed(&self) -> Self {
        Self { active: Arc::default(), sealed: Some(Arc::clone(&self.active)), ..self.clone() }
    }

    /// The same list without the sealed memtable, whose entries are in this segment now.
    pub(crate) fn with_flushed(&self, segment: Arc<Segment>) -> Self {
        let segments = [&[segment], self.segments()].concat();
        Self { sealed: None, ..self.with_segments(segments) }
    }

    /// The same list with another map.
    pub(crate) fn with_map(&self, map: Option<Arc<dyn SlotMap>>) -> Self {
        Self { map, ..self.clone() }
    }

    fn set_segments(&mut self, segments: Vec<Arc<Segment>>) {
        let slots = segments.iter().map(|segment| usize::from(segment.slot()) + 1).max().unwrap_or(0);
        let mut by_slot = vec![NOWHERE; slots];
        for (position, segment) in segments.iter().enumerate() {
            let position = u16::try_from(position).unwrap_or(NOWHERE);
            debug_assert_eq!(by_slot[usize::from(segment.slot())], NOWHERE, "two segments with one slot");
            by_slot[usize::from(segment.slot())] = position;
        }
        self.segments = segments;
        self.by_slot = by_slot;
    }

    /// The position of the segment that has this slot, if there is one.
    #[inline]
    pub(crate) fn position_of(&self, slot: u16) -> Option<usize> {
        self.by_slot
            .get(usize::from(slot))
            .filter(|position| **position != NOWHERE)
            .map(|position| usize::from(*position))
    }

    /// The lowest slot that no segment has.
    pub(crate) fn free_slot(&self) -> u16 {
        let used = self.by_slot.iter().position(|position| *position == NOWHERE).unwrap_or(self.by_slot.len());
        u16::try_from(used).unwrap_or(NOWHERE)
    }
}

/// A set of positions in a list. The iterator returns them from the newest segment to the oldest.
#[derive(Debug, Default)]
pub(crate) struct Positions([u64; (MOST_SEGMENTS + 1) / 64]);

impl Positions {
    #[inline]
    pub(crate) fn add(&mut self, position: usize) {
        self.0[position / 64] |= 1 << (position % 64);
    }
}

impl Iterator for Positions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let (index, word) = self.0.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros() as usize;
        *word &= *word - 1;
        Some(index * 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::Positions;

    #[test]
    fn positions_come_in_order() {
        let mut positions = Positions::default();
        for position in [255, 0, 64, 63, 130, 64] {
            positions.add(position);
        }
        assert_eq!(positions.collect::<Vec<_>>(), [0, 63, 64, 130, 255]);
    }
}
