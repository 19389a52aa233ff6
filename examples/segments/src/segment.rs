//! A segment: a sorted file that is written once. Only this file knows the engine.
//!
//! Each segment is a tree of [`lsm_tree`] with one level, in a directory of its own. One bulk load fills it, and
//! after that it is only read. The engine's own log, memory tables and compactions are not used, because the
//! example shows those of this store.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableState};
use lsm_tree::{AbstractTree, Cache, Config, Slice, Tree};

use crate::entry::Entry;
use crate::error::Error;
use crate::manifest::Live;
use crate::options::{Options, Strategy};

/// The filter of one segment. All filters have the same hasher, so a get hashes its key once.
type Filter = ConcurrentCuckooFilter<[u8], StableState>;

/// A key and the bytes of its entry, as the engine stores them.
pub(crate) type Pair = (Slice, Slice);

/// Where and how segments are stored.
pub(crate) struct Engine {
    directory: PathBuf,
    /// Shared by all segments.
    cache: Arc<Cache>,
    /// -1 means none.
    bloom_bits: i8,
    /// The hasher and the rate of the filters, if each segment has one.
    filters: Option<(StableState, f64)>,
}

impl Engine {
    pub(crate) fn new(directory: &Path, options: &Options, hasher: &StableState) -> Self {
        let own = matches!(options.strategy, Strategy::Engine);
        let filters = matches!(options.strategy, Strategy::FilterEach);
        Self {
            directory: directory.to_owned(),
            cache: Arc::new(Cache::with_capacity_bytes(options.cache_bytes)),
            bloom_bits: if own { i8::try_from(options.engine_bits).unwrap_or(i8::MAX) } else { -1 },
            filters: filters.then(|| (hasher.clone(), options.false_positive_rate)),
        }
    }

    /// The directory of a segment.
    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("segment-{number}"))
    }

    /// The number of the segment whose directory has this name.
    pub(crate) fn number_of(name: &str) -> Option<u64> {
        name.strip_prefix("segment-")?.parse().ok()
    }

    /// Writes a segment of these pairs, which must be sorted. The segment is on disk when this returns. Returns
    /// `None` if there were no pairs. Sets `keys` in `live` to the number of pairs.
    pub(crate) fn write(
        &self,
        mut live: Live,
        pairs: impl Iterator<Item = Result<Pair, Error>>,
    ) -> Result<Option<Segment>, Error> {
        let path = self.path(live.number);
        let mut failed = None;
        let mut hashes = Vec::new();
        live.keys = 0;
        let written = self.tree(&path).and_then(|tree| {
            tree.ingest(pairs.map_while(|pair| match pair {
                Ok(pair) => {
                    live.keys += 1;
                    if let Some((hasher, _)) = &self.filters {
                        hashes.push(hasher.hash_bytes(&pair.0));
                    }
                    Some(pair)
                }
                // The engine takes no errors. So it gets fewer pairs, and the segment is thrown away.
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }))?;
            Ok(tree)
        });
        let segment = match failed {
            Some(error) => Err(error),
            None => written.map_err(Error::from).and_then(|tree| {
                let filter = self.filter(&hashes)?;
                Ok(Segment { live, tree, filter, path: path.clone(), retired: AtomicBool::new(false) })
            }),
        };
        if segment.is_err() || live.keys == 0 {
            // What can't be deleted now is deleted when the store is opened again.
            let _ = fs::remove_dir_all(&path);
        }
        segment.map(|segment| (live.keys > 0).then_some(segment))
    }

    /// Opens an existing segment.
    pub(crate) fn open(&self, live: Live) -> Result<Segment, Error> {
        let path = self.path(live.number);
        // If the directory is missing, the engine would make an empty tree.
        fs::metadata(&path).map_err(Error::io(&path))?;
        let tree = self.tree(&path)?;
        let mut segment = Segment { live, tree, filter: None, path, retired: AtomicBool::new(false) };
        if let Some((hasher, _)) = &self.filters {
            let hashes: Result<Vec<u64>, Error> = segment.pairs().map(|pair| Ok(hasher.hash_bytes(&pair?.0))).collect();
            segment.filter = self.filter(&hashes?)?;
        }
        Ok(segment)
    }

    fn tree(&self, path: &Path) -> lsm_tree::Result<Tree> {
        Config::new(path).use_cache(Arc::clone(&self.cache)).bloom_bits_per_key(self.bloom_bits).open()
    }

    fn filter(&self, hashes: &[u64]) -> Result<Option<Filter>, Error> {
        let Some((hasher, rate)) = &self.filters else { return Ok(None) };
        let filter = Filter::builder_with_hasher(hasher.clone())
            .capacity(hashes.len().max(1))
            .false_positive_rate(*rate)
            .build()
            .map_err(Error::Build)?;
        filter.insert_hash_batch(hashes.iter().copied()).map_err(|refused| Error::Full(refused.error))?;
        Ok(Some(filter))
    }
}

/// An open segment. Any thread that holds one can read from it, even after it was retired. The last holder of a
/// retired segment deletes its files.
pub(crate) struct Segment {
    pub(crate) live: Live,
    tree: Tree,
    filter: Option<Filter>,
    path: PathBuf,
    retired: AtomicBool,
}

impl Segment {
    pub(crate) fn slot(&self) -> u16 {
        self.live.slot
    }

    /// The segment's entry for the key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Entry>, Error> {
        self.tree.get(key, None)?.map(|bytes| self.entry(&bytes)).transpose()
    }

    /// Decodes the bytes of one of its pairs.
    pub(crate) fn entry(&self, bytes: &[u8]) -> Result<Entry, Error> {
        Entry::from_bytes(bytes).ok_or(Error::Damaged { segment: self.live.number })
    }

    /// Whether its filter, if it has one, lets the key pass.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.contains_hash(hash))
    }

    /// Whether the engine's own filter, if it has one, lets the key pass.
    pub(crate) fn engine_lets_pass(&self, key: &[u8]) -> bool {
        // This field is hidden in the engine's documentation, and it is used for counting only. No version that
        // changes it will come, because the engine has moved on to a new series.
        let levels = self.tree.levels.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        levels.iter().any(|file| file.bloom_filter.as_ref().is_none_or(|filter| filter.contains(key)))
    }

    /// All its pairs, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Result<Pair, Error>> + 'static {
        self.tree.iter(None, None).map(|pair| pair.map_err(Error::from))
    }

    /// Bytes of the filter of this segment, or else of the engine's filter.
    pub(crate) fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or_else(|| self.tree.bloom_filter_size(), Filter::memory_usage)
    }

    /// Marks its files for deletion when the last reader is gone. No manifest may name it.
    pub(crate) fn retire(&self) {
        // No thread reads it before the last reference is dropped, and that drop synchronizes.
        self.retired.store(true, Ordering::Relaxed);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if *self.retired.get_mut() {
            // What can't be deleted now is deleted when the store is opened again.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Segment").field(&self.live).finish()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("directory", &self.directory).finish_non_exhaustive()
    }
}
