//! Tests that look inside the store: with a map that is watched, and with wrong orders of steps that must be
//! noticed.
//!
//! - `steps`: between any two steps of a flush or compaction each key is right, also if the process dies there;
//! - `hammer`: readers, a writer, flushes and compactions at the same time;
//! - `model`: random operations, each strategy compared with a `BTreeMap`;
//! - `reopen`: where the maplet comes from when a store is opened.

mod exact;
mod hammer;
mod model;
mod reopen;
mod steps;

use crate::merge::Merge;
use crate::options::{MapMaker, Options, Strategy};
use crate::store::Store;
use exact::{Exact, Watch};
use std::sync::Arc;

/// A directory in memory, if the system has one. These tests sync thousands of files, and need not survive a power
/// cut.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// Asserts that the map has one pair for each key of each segment, with the slot of the newest segment that has the
/// key, and no others. (If a pair is missing and a look-alike hides that, the number of pairs shows it.)
#[track_caller]
fn assert_exact(store: &Store) {
    let list = store.list.load();
    let Some(map) = &list.map else { return };
    let mut keys = 0;
    for merged in Merge::new(list.segments(), false) {
        let merged = merged.expect("a segment");
        let mut shown = false;
        map.slots(&merged.key, &mut |slot| shown |= slot == merged.slot);
        assert!(shown, "{} lacks slot {}", merged.key.escape_ascii(), merged.slot);
        keys += 1;
    }
    assert_eq!(map.pairs(), keys, "pairs, keys");
}

/// The options of small stores with many segments.
fn small(strategy: Strategy) -> Options {
    Options { most_segments: 12, merge: 3, memtable_keys: 50, capacity: 200, ..Options::new(strategy) }
}

/// A map that is watched. It shows each slot that it does not have with this probability, in percent.
fn exact(noise: u64, watch: &Arc<Watch>) -> Strategy {
    let watch = Arc::clone(watch);
    Strategy::Custom(MapMaker(Arc::new(move |_| Box::new(Exact::new(noise, usize::MAX, Arc::clone(&watch))))))
}
