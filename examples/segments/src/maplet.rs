//! The library's maplet as a [`SlotMap`].

use std::fs;
use std::io;
use std::path::Path;

use concurrent_cuckoo_filter::{BuildError, ConcurrentCuckooMaplet, InsertError, Loader, StableState};

use crate::slots::{LoadedMap, SlotMap};

/// A maplet of byte-string keys. Its hasher is stable, so another process can load its snapshot.
type Maplet = ConcurrentCuckooMaplet<[u8], StableState>;

/// The schema of the pairs. Change it if keys are hashed in another way, or if the attachment changes.
const SCHEMA: &str = "segments: keys by StableState::hash_bytes, slots; segments attached; version 1";

/// The memory that a maplet needs beyond the size of its snapshot: a few locks, and rounding.
const BESIDES: usize = 1 << 20;

/// A maplet for this many pairs, and for slots up to this one.
pub(crate) fn build(
    pairs: usize,
    rate: f64,
    highest_slot: u16,
    hasher: &StableState,
) -> Result<Box<dyn SlotMap>, BuildError> {
    let maplet = Maplet::builder_with_hasher(hasher.clone())
        .capacity(pairs.max(1))
        .false_positive_rate(rate)
        .value_bits(bits(highest_slot))
        .schema(SCHEMA)
        .build()?;
    Ok(Box::new(maplet))
}

/// Loads a maplet from its snapshot, for slots up to this one, or returns why it can't. Allocates no more than the
/// size of the file and a megabyte.
pub(crate) fn load(path: &Path, rate: f64, highest_slot: u16, hasher: &StableState) -> Result<LoadedMap, String> {
    let size = fs::metadata(path).map_err(|error| format!("there is no snapshot: {error}"))?.len();
    let memory_limit = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(BESIDES);
    let loader = Loader::<Maplet, _>::new(hasher.clone(), memory_limit).schema(SCHEMA);
    let loaded = loader.read_path(path).map_err(|error| format!("the snapshot can't be loaded: {error}"))?;
    let maplet = loaded.filter;
    if maplet.value_bits() < bits(highest_slot) || maplet.max_false_positive_rate() > rate {
        return Err("the snapshot has fewer slots or more false positives than was asked for".into());
    }
    let position = loaded.position.ok_or("the snapshot does not say when it was made")?;
    Ok(LoadedMap { map: Box::new(maplet), position, attachment: loaded.attachment })
}

/// How many bits can hold each slot up to this one.
fn bits(highest_slot: u16) -> u32 {
    (u16::BITS - highest_slot.leading_zeros()).max(1)
}

impl SlotMap for Maplet {
    #[inline]
    fn slots(&self, key: &[u8], visit: &mut dyn FnMut(u16)) {
        self.values_hash(self.hasher().hash_bytes(key)).iter().for_each(visit);
    }

    fn insert_all(&self, keys: &[&[u8]], slot: u16) -> Result<(), InsertError> {
        let hash = |key: &&[u8]| self.hasher().hash_bytes(key);
        let inserted = self.insert_hash_batch(keys.iter().map(|key| (hash(key), slot)));
        inserted.map(|_| ()).map_err(|refused| {
            for key in &keys[..refused.inserted] {
                self.remove_hash(hash(key), slot);
            }
            refused.error
        })
    }

    fn replace(&self, key: &[u8], old: u16, new: u16) -> bool {
        // The maplet was built for all slots that the store gives out, so none is too large.
        self.replace_hash(self.hasher().hash_bytes(key), old, new).unwrap_or(false)
    }

    fn remove(&self, key: &[u8], slot: u16) -> bool {
        self.remove_hash(self.hasher().hash_bytes(key), slot)
    }

    fn pairs(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn memory_usage(&self) -> usize {
        self.memory_usage()
    }

    fn save(&self, path: &Path, position: u64, attachment: Vec<u8>) -> io::Result<()> {
        self.begin_save()?.position(position).attachment(attachment).write_to_path(path)
    }
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn slots_have_room() {
        for (highest, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (63, 6), (64, 7), (255, 8), (256, 9)] {
            assert_eq!(bits(highest), expected, "{highest}");
        }
    }
}
