//! Finds the pairs of keys, and moves them to the segment of a flush.

use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::list::{List, Positions};
use crate::slots::SlotMap;

/// The slot of the newest segment that has the key, among the first `within` of the list. The map says where to
/// look. A segment that it shows without need is looked into and ruled out. No flush or compaction may be under
/// way, except the caller's.
pub(crate) fn holder(
    list: &List,
    map: &dyn SlotMap,
    key: &[u8],
    within: usize,
    faults: Faults,
) -> Result<Option<u16>, Error> {
    if within == 0 {
        return Ok(None);
    }
    let mut positions = Positions::default();
    map.slots(key, &mut |slot| {
        if let Some(position) = list.position_of(slot).filter(|position| *position < within) {
            positions.add(position);
        }
    });
    for position in positions {
        let segment = &list.segments()[position];
        if faults.has(Fault::TrustTheMap) || segment.get(key)?.is_some() {
            return Ok(Some(segment.slot()));
        }
    }
    Ok(None)
}

/// What a flush does to the map.
#[derive(Debug, Default)]
pub(crate) struct Moves<'a> {
    /// Keys that some segment has, each with the slot in its pair.
    replaced: Vec<(&'a [u8], u16)>,
    /// Keys that no segment has.
    inserted: Vec<&'a [u8]>,
}

impl<'a> Moves<'a> {
    /// Plans how these keys' pairs get the slot of a segment that is newer than all listed ones.
    pub(crate) fn plan(
        list: &List,
        map: &dyn SlotMap,
        keys: impl Iterator<Item = &'a [u8]>,
        faults: Faults,
    ) -> Result<Self, Error> {
        let mut moves = Self::default();
        for key in keys {
            match holder(list, map, key, list.segments().len(), faults)? {
                Some(slot) => moves.replaced.push((key, slot)),
                None => moves.inserted.push(key),
            }
        }
        Ok(moves)
    }

    /// How many new pairs need room.
    pub(crate) fn inserts(&self) -> usize {
        self.inserted.len()
    }

    /// Gives the pairs this slot. If an insert is refused, nothing was changed.
    pub(crate) fn carry_out(&self, map: &dyn SlotMap, new: u16) -> Result<(), Error> {
        // The inserts come first, because they can be refused, and then undo themselves.
        map.insert_all(&self.inserted, new).map_err(Error::Full)?;
        for &(key, old) in &self.replaced {
            if !map.replace(key, old, new) {
                return Err(Error::Lost { slot: old });
            }
        }
        Ok(())
    }
}
