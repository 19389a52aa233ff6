//! CONCURRENT: the store, its puts and its gets. [`maintenance`](crate::maintenance) describes the order of all
//! steps.

use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::StableState;

use crate::entry::Entry;
use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::list::{List, Positions};
use crate::log::{self, Log};
use crate::manifest::Manifest;
use crate::opened::Opened;
use crate::options::{Options, Strategy};
use crate::segment::{Engine, Segment};

/// A key-value store. Threads share it by reference.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) hasher: StableState,
    pub(crate) engine: Engine,
    pub(crate) list: ArcSwap<List>,
    /// Held by each put from beginning to end, and while another memtable becomes the active one.
    pub(crate) writer: Mutex<Log>,
    /// Held by a flush, a compaction or a save from beginning to end.
    pub(crate) maintenance: Mutex<Maintenance>,
    pub(crate) opened: Opened,
    pub(crate) faults: Faults,
    /// Shows other processes that this store is open, until it is dropped.
    pub(crate) _lock: std::fs::File,
}

/// What the maintenance lock guards, besides the order of the steps.
#[derive(Debug)]
pub(crate) struct Maintenance {
    pub(crate) manifest: Manifest,
    /// An earlier flush or compaction did not come to its end.
    pub(crate) halted: bool,
}

/// How many segments gets have looked into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// All of them.
    pub segments: u64,
    /// Those that did not have the key.
    pub wrong: u64,
    /// How often a get began again because the list had been replaced.
    pub again: u64,
}

/// A segment, as [`Store::segments`] reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number. No other segment has ever had it.
    pub number: u64,
    /// Its value in the maplet.
    pub slot: u16,
    /// How many keys it has, deleted ones too.
    pub keys: u64,
}

impl Store {
    /// The value of a key.
    ///
    /// # Errors
    /// If a segment can't be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_counting(key, &mut Looks::default())
    }

    /// The value of a key. Adds to `looks`.
    ///
    /// # Errors
    /// If a segment can't be read.
    pub fn get_counting(&self, key: &[u8], looks: &mut Looks) -> Result<Option<Vec<u8>>, Error> {
        let entry = loop {
            let list = self.list.load();
            if let Some(entry) = list.active.get(key) {
                break Some(entry);
            }
            if let Some(entry) = list.sealed.as_ref().and_then(|sealed| sealed.get(key)) {
                break Some(entry);
            }
            let Some(map) = &list.map else {
                break self.ask_segments(&list, key, looks)?;
            };
            let mut positions = Positions::default();
            map.slots(key, &mut |slot| {
                if let Some(position) = list.position_of(slot) {
                    positions.add(position);
                }
            });
            // The map was read before the list is loaded again. A thread that changes the map on behalf of a later
            // list has published that list before. So the second load sees the later list.
            fence(Ordering::Acquire);
            // This get holds the list, so no other list can have its address.
            if !Arc::ptr_eq(&list, &self.list.load()) && !self.faults.has(Fault::NoSecondLook) {
                looks.again += 1;
                continue;
            }
            let mut entry = None;
            for position in positions {
                entry = look(&list.segments()[position], key, looks)?;
                if entry.is_some() {
                    break;
                }
            }
            break entry;
        };
        Ok(entry.and_then(Entry::into_value))
    }

    /// Asks each segment that its own filter does not rule out. The filters never change, so any list will do.
    fn ask_segments(&self, list: &List, key: &[u8], looks: &mut Looks) -> Result<Option<Entry>, Error> {
        let hash = match self.options.strategy {
            Strategy::FilterEach => self.hasher.hash_bytes(key),
            // The engine computes a hash of its own.
            _ => 0,
        };
        for segment in list.segments() {
            if segment.may_have(hash) {
                let entry = look(segment, key, looks)?;
                if entry.is_some() {
                    return Ok(entry);
                }
            }
        }
        Ok(None)
    }

    /// Gives the key this value. When this returns, the value survives the end of the process.
    ///
    /// # Errors
    /// If the log can't be written. Every later put fails too, until the store is opened again.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(key, Entry::Value(value.to_vec()))
    }

    /// Removes the key and its value, if there is one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.write(key, Entry::Deleted)
    }

    fn write(&self, key: &[u8], entry: Entry) -> Result<(), Error> {
        let mut log = self.lock_writer();
        let number = log.number;
        log.append(key, &entry).map_err(|error| Error::io(log::path(&self.directory, number))(error))?;
        // Under the lock, so that no other memtable becomes the active one in between.
        self.list.load().active.put(key, entry);
        Ok(())
    }

    /// The segments, from the newest to the oldest.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let info = |segment: &Arc<Segment>| SegmentInfo {
            number: segment.live.number,
            slot: segment.live.slot,
            keys: segment.live.keys,
        };
        self.list.load().segments().iter().map(info).collect()
    }

    /// How many keys are in memory, including those that are being flushed.
    pub fn memtable_keys(&self) -> usize {
        let list = self.list.load();
        list.active.len() + list.sealed.as_ref().map_or(0, |sealed| sealed.len())
    }

    /// Bytes of the maplet or of all filters.
    pub fn filter_bytes(&self) -> usize {
        let list = self.list.load();
        match &list.map {
            Some(map) => map.memory_usage(),
            None => list.segments().iter().map(|segment| segment.filter_bytes()).sum(),
        }
    }

    /// Counts the segments whose own filter, made by the engine, lets the key pass, up to the first segment that
    /// has the key.
    ///
    /// # Errors
    /// If a segment can't be read.
    pub fn engine_looks(&self, key: &[u8], looks: &mut Looks) -> Result<(), Error> {
        for segment in self.list.load().segments() {
            if segment.engine_lets_pass(key) && look(segment, key, looks)?.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// What opening the store found.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The directory of the store.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Log> {
        // A holder that panicked has left the log like one with a failed write, and the log knows that.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look(segment: &Segment, key: &[u8], looks: &mut Looks) -> Result<Option<Entry>, Error> {
    looks.segments += 1;
    let entry = segment.get(key)?;
    looks.wrong += u64::from(entry.is_none());
    Ok(entry)
}
