//! What the bench reads from: the store with each strategy, and the engine without the store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lsm_tree::{AbstractTree, Cache, Config, Tree};
use segments::{Looks, Options, Store, Strategy};

use crate::failure::Failure;

const KEY_BYTES: usize = 16;

/// A key: eight bytes that spread the number over the whole range, then the number itself. So no two keys are
/// alike.
pub(crate) fn key(number: usize) -> [u8; KEY_BYTES] {
    let number = number as u64;
    // The finalizer of SplitMix64, which maps each number to a different one.
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A store with one of the strategies, or one tree of the engine with as many tables as a store has segments.
pub(crate) enum Subject {
    Store { name: &'static str, store: Box<Store>, engine: bool },
    Tree(Tree),
}

impl Subject {
    /// All of them, each with the same keys in the same segments: key `i` is in segment `i` modulo the number of
    /// segments.
    pub(crate) fn all(
        directory: &Path,
        options: &Options,
        keys: usize,
        value_bytes: usize,
        segments: usize,
    ) -> Result<Vec<Self>, Failure> {
        let value = vec![b'v'; value_bytes];
        let mut subjects = Vec::new();
        for (name, strategy) in [
            ("one maplet", Strategy::Maplet),
            ("a filter for each segment", Strategy::FilterEach),
            ("the engine's filters, a tree a segment", Strategy::Engine),
        ] {
            let options = Options { strategy, most_segments: segments, capacity: keys, ..options.clone() };
            let engine = matches!(options.strategy, Strategy::Engine);
            let store = Box::new(Store::open(directory.join(format!("store-{}", subjects.len())), options)?);
            for segment in 0..segments {
                for number in (segment..keys).step_by(segments) {
                    store.put(&key(number), &value)?;
                }
                store.flush()?;
            }
            subjects.push(Self::Store { name, store, engine });
        }
        let bits = i8::try_from(options.engine_bits).unwrap_or(i8::MAX);
        let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes));
        let tree = Config::new(directory.join("tree")).use_cache(cache).bloom_bits_per_key(bits).open()?;
        for segment in 0..segments {
            for number in (segment..keys).step_by(segments) {
                tree.insert(key(number), &value[..], segment as u64);
            }
            tree.flush_active_memtable(0)?;
        }
        subjects.push(Self::Tree(tree));
        Ok(subjects)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Store { name, .. } => name,
            Self::Tree(_) => "the engine's filters, one tree",
        }
    }

    /// The length of the key's value.
    pub(crate) fn get(&self, key: &[u8], looks: &mut Looks) -> Result<Option<usize>, Failure> {
        Ok(match self {
            Self::Store { store, .. } => store.get_counting(key, looks)?.map(|value| value.len()),
            Self::Tree(tree) => tree.get(key, None)?.map(|value| value.len()),
        })
    }

    /// Counts how many segments are looked into for the key, also where the gets themselves do not count them.
    /// `None` where there is no way to count.
    pub(crate) fn looks(&self, key: &[u8], looks: &mut Looks) -> Result<Option<()>, Failure> {
        match self {
            Self::Store { store, engine: true, .. } => store.engine_looks(key, looks)?,
            Self::Store { store, .. } => drop(store.get_counting(key, looks)?),
            Self::Tree(_) => return Ok(None),
        }
        Ok(Some(()))
    }

    pub(crate) fn filter_bytes(&self) -> usize {
        match self {
            Self::Store { store, .. } => store.filter_bytes(),
            Self::Tree(tree) => tree.bloom_filter_size(),
        }
    }

    /// Whether it has compactions to run during the gets.
    pub(crate) fn compacts(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    /// Rewrites one segment after the other until `stop` is set. Returns how many keys it wrote.
    pub(crate) fn compact_until(&self, stop: &AtomicBool) -> Result<u64, Failure> {
        let Self::Store { store, .. } = self else { return Ok(0) };
        let mut keys = 0;
        loop {
            for (position, segment) in store.segments().iter().enumerate() {
                store.compact(position..position + 1)?;
                keys += segment.keys;
                if stop.load(Ordering::Relaxed) {
                    return Ok(keys);
                }
            }
        }
    }
}
