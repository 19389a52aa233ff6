//! Tests that look inside: a map that is watched, and wrong orders of steps, which must be noticed.
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

/// A directory in memory, if the system has such a place: these tests sync thousands of files, and nobody cuts the power.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

/// That the map has one pair for each key of each segment, with the slot of the newest that has it, and no others. (A pair
/// that is missing while another key looks like this one is noticed by their number.)
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

/// Small stores, of many segments.
fn small(strategy: Strategy) -> Options {
    Options { most_segments: 12, merge: 3, memtable_keys: 50, capacity: 200, ..Options::new(strategy) }
}

/// A map that is watched, and that shows each slot it does not have with this chance, in percent.
fn exact(noise: u64, watch: &Arc<Watch>) -> Strategy {
    let watch = Arc::clone(watch);
    Strategy::Custom(MapMaker(Arc::new(move |_| Box::new(Exact::new(noise, usize::MAX, Arc::clone(&watch))))))
}
