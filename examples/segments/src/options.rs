//! How a store is to be opened.

use std::path::Path;
use std::sync::Arc;

use concurrent_cuckoo_filter::StableState;

use crate::error::Error;
use crate::maplet;
use crate::slots::{LoadedMap, SlotMap};

/// More segments than this are refused: a list finds a segment by its slot in an array, and a get notes positions in 256 bits.
pub(crate) const MOST_SEGMENTS: usize = 255;

/// What says which segments may have a key.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// One `ConcurrentCuckooMaplet` for all segments.
    Maplet,
    /// A `ConcurrentCuckooFilter` for each segment.
    FilterEach,
    /// The Bloom filter that the engine stores in each segment.
    Engine,
    /// A map that is watched, and whose false positives are chosen. It is not loaded from a snapshot.
    #[cfg(test)]
    Custom(MapMaker),
}

/// Makes a map for at least so many pairs.
#[cfg(test)]
#[derive(Clone)]
pub struct MapMaker(pub(crate) Arc<dyn Fn(usize) -> Box<dyn SlotMap> + Send + Sync>);

#[cfg(test)]
impl std::fmt::Debug for MapMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MapMaker")
    }
}

/// How to open a [`Store`](crate::Store). What is stored does not depend on it, so it may be another each time.
#[derive(Clone, Debug)]
pub struct Options {
    /// What says which segments may have a key.
    pub strategy: Strategy,
    /// The false-positive rate of the maplet, or of each filter.
    pub false_positive_rate: f64,
    /// The bits for each key of the engine's Bloom filters. Segments have them only if they were written with
    /// [`Strategy::Engine`].
    pub engine_bits: u8,
    /// How many segments there may be, up to 255. A flush compacts first if there are as many.
    pub most_segments: usize,
    /// How many segments a compaction merges that chooses for itself.
    pub merge: usize,
    /// How many keys in memory make [`Store::maintain`](crate::Store::maintain) flush.
    pub memtable_keys: usize,
    /// For how many pairs the maplet is made at least. It is made anew for more if need be.
    pub capacity: usize,
    /// How many bytes of blocks the engine keeps in memory.
    pub cache_bytes: u64,
}

impl Options {
    /// A rate of 0.1 %, Bloom filters of 15 bits a key, up to 63 segments, merges of 4, flushes at 10,000 keys, a maplet for
    /// 100,000 pairs, a cache of 64 MiB.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            false_positive_rate: 0.001,
            engine_bits: 15,
            most_segments: 63,
            merge: 4,
            memtable_keys: 10_000,
            capacity: 100_000,
            cache_bytes: 64 << 20,
        }
    }

    pub(crate) fn most_segments(&self) -> usize {
        self.most_segments.clamp(1, MOST_SEGMENTS)
    }

    /// The highest slot that there can be while the highest one of a live segment is this: a segment gets the lowest free slot,
    /// and beside those that there may be there is the output of a compaction.
    fn highest_slot(&self, live: u16) -> u16 {
        u16::try_from(self.most_segments()).unwrap_or(u16::MAX).max(live.saturating_add(1))
    }

    /// A map for so many pairs, and for slots beyond those of live segments, of which this is the highest; `None` if the
    /// strategy needs none.
    pub(crate) fn make_map(
        &self,
        pairs: usize,
        highest: u16,
        hasher: &StableState,
    ) -> Result<Option<Arc<dyn SlotMap>>, Error> {
        let map = match &self.strategy {
            Strategy::Maplet => maplet::build(pairs, self.false_positive_rate, self.highest_slot(highest), hasher),
            #[cfg(test)]
            Strategy::Custom(maker) => Ok((maker.0)(pairs)),
            Strategy::FilterEach | Strategy::Engine => return Ok(None),
        };
        Ok(Some(Arc::from(map.map_err(Error::Build)?)))
    }

    /// The map that was saved to this file, or why it can't be used.
    pub(crate) fn load_map(&self, path: &Path, highest: u16, hasher: &StableState) -> Result<LoadedMap, String> {
        match &self.strategy {
            Strategy::Maplet => maplet::load(path, self.false_positive_rate, self.highest_slot(highest), hasher),
            _ => Err("this strategy has no snapshots".into()),
        }
    }
}
