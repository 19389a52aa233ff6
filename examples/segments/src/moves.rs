//! Where the pairs of keys are, and how a flush moves them to its segment.

use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::list::{List, Positions};
use crate::slots::SlotMap;

/// The slot of the newest segment that has the key, among the first `within` of the list. The map says where to look; what it
/// shows without need is looked into and ruled out. No flush and no compaction but the caller's may be under way.
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
    /// Keys that some segment has, and the slot in their pairs.
    replaced: Vec<(&'a [u8], u16)>,
    /// Keys that none has.
    inserted: Vec<&'a [u8]>,
}

impl<'a> Moves<'a> {
    /// What makes the pairs of these keys those of a segment that is newer than all listed ones.
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

    /// For how many pairs there must be room.
    pub(crate) fn inserts(&self) -> usize {
        self.inserted.len()
    }

    /// Moves the pairs to this slot. If one is refused, none was moved.
    pub(crate) fn carry_out(&self, map: &dyn SlotMap, new: u16) -> Result<(), Error> {
        // First what can be refused: it undoes itself.
        map.insert_all(&self.inserted, new).map_err(Error::Full)?;
        for &(key, old) in &self.replaced {
            if !map.replace(key, old, new) {
                return Err(Error::Lost { slot: old });
            }
        }
        Ok(())
    }
}
