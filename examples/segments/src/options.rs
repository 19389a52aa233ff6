//! How to open a store.

use std::path::Path;
use std::sync::Arc;

use concurrent_cuckoo_filter::StableState;

use crate::error::Error;
use crate::maplet;
use crate::slots::{LoadedMap, SlotMap};

/// The most segments that a list may have. The limit comes from the array that maps a slot to a segment, and from
/// the 256 bits in which a get notes positions.
pub(crate) const MOST_SEGMENTS: usize = 255;

/// How a get finds the segments that may have a key.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// One `ConcurrentCuckooMaplet` for all segments.
    Maplet,
    /// A `ConcurrentCuckooFilter` for each segment.
    FilterEach,
    /// The Bloom filter that the engine stores in each segment.
    Engine,
    /// A map for tests: it is watched, and its false positives are chosen. It is not loaded from a snapshot.
    #[cfg(test)]
    Custom(MapMaker),
}

/// Makes a map for at least this many pairs.
#[cfg(test)]
#[derive(Clone)]
pub struct MapMaker(pub(crate) Arc<dyn Fn(usize) -> Box<dyn SlotMap> + Send + Sync>);

#[cfg(test)]
impl std::fmt::Debug for MapMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MapMaker")
    }
}

/// How to open a [`Store`](crate::Store). The stored data does not depend on these options, so they may differ each
/// time.
#[derive(Clone, Debug)]
pub struct Options {
    /// How a get finds the segments that may have a key.
    pub strategy: Strategy,
    /// The false-positive rate of the maplet, or of each filter.
    pub false_positive_rate: f64,
    /// The bits for each key in the engine's Bloom filters. Segments have such a filter only if they were written
    /// with [`Strategy::Engine`].
    pub engine_bits: u8,
    /// How many segments there may be, 1 to 255. If there are this many, a flush compacts first.
    pub most_segments: usize,
    /// How many segments a compaction merges when the store chooses them.
    pub merge: usize,
    /// [`Store::maintain`](crate::Store::maintain) flushes when there are this many keys in memory.
    pub memtable_keys: usize,
    /// The least number of pairs that the maplet is built for. It is rebuilt for more if necessary.
    pub capacity: usize,
    /// How many bytes of blocks the engine keeps in memory.
    pub cache_bytes: u64,
}

impl Options {
    /// A rate of 0.1 %, Bloom filters of 15 bits a key, up to 63 segments, merges of 4, flushes at 10,000 keys, a
    /// maplet for 100,000 pairs, a cache of 64 MiB.
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

    pub(crate) fn check(&self) -> Result<(), Error> {
        let asked = self.most_segments;
        if (1..=MOST_SEGMENTS).contains(&asked) { Ok(()) } else { Err(Error::MostSegments { asked }) }
    }

    /// The highest slot that can come up, given the highest slot of a live segment. A segment gets the lowest free
    /// slot, and a compaction's output comes on top of the most segments that there may be.
    fn highest_slot(&self, live: u16) -> u16 {
        u16::try_from(self.most_segments).unwrap_or(u16::MAX).max(live.saturating_add(1))
    }

    /// A map for this many pairs, and for slots beyond `highest`, the highest slot of a live segment. `None` if the
    /// strategy needs no map.
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

    /// Loads the map that was saved to this file, or returns why it can't be used.
    pub(crate) fn load_map(&self, path: &Path, highest: u16, hasher: &StableState) -> Result<LoadedMap, String> {
        match &self.strategy {
            Strategy::Maplet => maplet::load(path, self.false_positive_rate, self.highest_slot(highest), hasher),
            _ => Err("this strategy has no snapshots".into()),
        }
    }
}
