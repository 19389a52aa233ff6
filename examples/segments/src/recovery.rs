//! What a killed process leaves behind, and how the next process handles it.
//!
//! # Files
//! The manifest names the live segments and the first log that counts. It is replaced in one step (a new file,
//! synced, then renamed). Everything else is either named by it, or was written too early for it, or has not been
//! deleted yet:
//!
//! | the process dies | the manifest | left over | the keys of the memtable are |
//! |---|---|---|---|
//! | in a flush, before the manifest is replaced | the old one | perhaps a segment, or part of one | in the old log, and the new ones in the new log |
//! | after that, before the old log is deleted | the new one | the old log | in the segment |
//! | in a compaction, before the manifest is replaced | the old one | the output, or part of it | in the log |
//! | after that | the new one | the inputs, or parts of them | in the log |
//!
//! What the manifest does not name is deleted. The logs that count are read into one memtable, in their order. So
//! each committed entry is there once, and in its place in the order. (The manifest's number decides whether a log
//! counts, not the deletion of the log.)
//!
//! # The maplet
//! The maplet dies with the process, in whatever step. Its snapshot ([`Store::save`](crate::Store::save)) is made
//! under the maintenance lock, so it has exactly one pair for each key, with the slot of the newest segment that
//! had the key then. The snapshot's position is the version of the manifest. Its attachment lists the segments that
//! were live: number, slot and a random id.
//!
//! - If each of them is still live, with its slot, then all other live segments are newer. Their keys are moved to
//!   them, from the oldest to the newest, as flushes would have done.
//! - If one is gone, its pairs can't be removed, because its keys are gone with it. Then the maplet is rebuilt from
//!   all segments. The same happens if the file is missing, is damaged, or belongs to another store.
//!
//! Either way the maplet has exactly the pairs it needs. A filter for each segment is built from the segment's
//! keys. (It could also be stored beside the segment, and would never have to be saved again.)

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::StableState;
use example_support::leftovers::delete_partial_files_of;

use crate::error::Error;
use crate::fault::Faults;
use crate::list::List;
use crate::log::{self, Log};
use crate::manifest::Manifest;
use crate::memtable::Memtable;
use crate::merge::Merge;
use crate::moves::Moves;
use crate::opened::{Opened, Origin};
use crate::options::Options;
use crate::segment::{Engine, Segment};
use crate::slots::SlotMap;
use crate::store::{Maintenance, Store};

/// The name of the file with the maplet's snapshot.
pub(crate) const SNAPSHOT: &str = "maplet";

/// How many keys a scan inserts at a time.
const SCANNED: usize = 1024;

impl Store {
    /// Opens the store in this directory, or makes a new one.
    ///
    /// # Errors
    /// If the options ask for what can't be, another process has it open, a file can't be read or written, or a filter can't be built.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        Self::open_with(directory.as_ref(), options, Faults::default())
    }

    pub(crate) fn open_with(directory: &Path, options: Options, faults: Faults) -> Result<Self, Error> {
        options.check()?;
        fs::create_dir_all(directory).map_err(Error::io(directory))?;
        let lock = lock(directory)?;
        let manifest = match Manifest::read(directory).map_err(Error::io(directory))? {
            Some(manifest) => manifest,
            None => new_manifest(directory)?,
        };
        let hasher = StableState::with_key(manifest.hash_key);
        let engine = Engine::new(directory, &options, &hasher);
        delete_partial_files_of(&directory.join(SNAPSHOT));
        let deleted = delete_leftovers(directory, &manifest, &engine)?;
        let segments: Result<Vec<_>, Error> =
            manifest.segments.iter().map(|live| Ok(Arc::new(engine.open(*live)?))).collect();
        let segments = segments?;

        let active = Memtable::default();
        let logs = log::numbers(directory).map_err(Error::io(directory))?;
        for &number in &logs {
            log::replay(directory, number, &active).map_err(Error::io(log::path(directory, number)))?;
        }
        let number = logs.last().map_or(manifest.first_log, |last| last + 1);
        let log = Log::create(directory, number).map_err(Error::io(log::path(directory, number)))?;

        let (map, maplet) = open_map(directory, &options, &hasher, &manifest, &segments)?;
        let opened = Opened { deleted, logged: active.len(), maplet };
        Ok(Self {
            directory: directory.to_owned(),
            options,
            hasher,
            engine,
            list: ArcSwap::from_pointee(List::new(Arc::new(active), segments, map)),
            writer: Mutex::new(log),
            maintenance: Mutex::new(Maintenance { manifest, halted: false }),
            opened,
            faults,
            _lock: lock,
        })
    }
}

/// Keeps other processes out. The operating system releases the lock when the process ends, in whatever way.
fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join("lock");
    let file = File::create(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(Error::io(path)(error)),
        Err(TryLockError::WouldBlock) => Err(Error::io(path)(std::io::Error::new(
            std::io::ErrorKind::WouldBlock,
            "another process has this store open",
        ))),
    }
}

fn new_manifest(directory: &Path) -> Result<Manifest, Error> {
    let mut hash_key = [0; 16];
    getrandom::fill(&mut hash_key).map_err(|error| Error::io(directory)(error.into()))?;
    let manifest = Manifest::new(hash_key);
    manifest.replace(directory).map_err(Error::io(directory))?;
    Ok(manifest)
}

/// Deletes what the manifest does not name. Returns how many files and directories that was.
fn delete_leftovers(directory: &Path, manifest: &Manifest, engine: &Engine) -> Result<usize, Error> {
    let mut deleted = 0;
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let name = entry.map_err(Error::io(directory))?.file_name();
        let number = name.to_str().and_then(Engine::number_of);
        if let Some(number) = number.filter(|number| manifest.segments.iter().all(|live| live.number != *number)) {
            let path = engine.path(number);
            fs::remove_dir_all(&path).map_err(Error::io(path))?;
            deleted += 1;
        }
    }
    for number in log::numbers(directory).map_err(Error::io(directory))? {
        if number < manifest.first_log {
            let path = log::path(directory, number);
            fs::remove_file(&path).map_err(Error::io(path))?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

type Map = Option<Arc<dyn SlotMap>>;

fn open_map(
    directory: &Path,
    options: &Options,
    hasher: &StableState,
    manifest: &Manifest,
    segments: &[Arc<Segment>],
) -> Result<(Map, Origin), Error> {
    match load_map(directory, options, hasher, manifest, segments) {
        Ok((map, added)) => Ok((Some(map), Origin::FromSnapshot { segments: added })),
        Err(reason) => {
            let map = scan(options, hasher, segments, options.capacity)?;
            let maplet = if map.is_some() { Origin::Scanned { reason } } else { Origin::None };
            Ok((map, maplet))
        }
    }
}

/// Loads the maplet and adds the segments that its snapshot does not have, or returns why it can't.
fn load_map(
    directory: &Path,
    options: &Options,
    hasher: &StableState,
    manifest: &Manifest,
    segments: &[Arc<Segment>],
) -> Result<(Arc<dyn SlotMap>, usize), String> {
    let loaded = options.load_map(&directory.join(SNAPSHOT), highest_slot(segments), hasher)?;
    if loaded.position > manifest.version {
        return Err("the snapshot is newer than the store".into());
    }
    let saved: Vec<&[u8]> = loaded.attachment.chunks(SAVED_BYTES).collect();
    let of = |segment: &Segment| saved_segment(segment.live.number, segment.live.slot, segment.live.id);
    let new = segments.iter().take_while(|segment| !saved.contains(&&of(segment)[..])).count();
    if !segments[new..].iter().map(|segment| of(segment)).eq(saved.iter().copied()) {
        return Err("a segment has been merged into another since the snapshot".into());
    }
    let keys: u64 = segments[new..].iter().map(|segment| segment.live.keys).sum();
    if loaded.map.pairs() as u64 > keys {
        return Err("the snapshot has more keys than the segments".into());
    }
    for position in (0..new).rev() {
        let older = List::new(Arc::default(), segments[position + 1..].to_vec(), None);
        add_newest(&*loaded.map, &older, &segments[position]).map_err(|error| error.to_string())?;
    }
    Ok((Arc::from(loaded.map), new))
}

/// Moves the keys of a segment to it. The segment is newer than those in the list.
fn add_newest(map: &dyn SlotMap, older: &List, segment: &Segment) -> Result<(), Error> {
    let mut pairs = segment.pairs();
    while let Some(keys) = next_keys(&mut pairs.by_ref().map(|pair| Ok(pair?.0)))? {
        let moves = Moves::plan(older, map, keys.iter().map(|key| &key[..]), Faults::default())?;
        moves.carry_out(map, segment.slot())?;
    }
    Ok(())
}

/// The next keys of a scan, or `None` at its end.
fn next_keys<K>(keys: &mut impl Iterator<Item = Result<K, Error>>) -> Result<Option<Vec<K>>, Error> {
    let keys: Result<Vec<K>, Error> = keys.take(SCANNED).collect();
    keys.map(|keys| (!keys.is_empty()).then_some(keys))
}

const SAVED_BYTES: usize = 18;

fn saved_segment(number: u64, slot: u16, id: u64) -> [u8; SAVED_BYTES] {
    let mut bytes = [0; SAVED_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..10].copy_from_slice(&slot.to_le_bytes());
    bytes[10..].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// The attachment of a snapshot: the segments whose keys it has.
pub(crate) fn attachment(manifest: &Manifest) -> Vec<u8> {
    manifest.segments.iter().flat_map(|live| saved_segment(live.number, live.slot, live.id)).collect()
}

/// A map of all keys of these segments, for at least this many pairs. `None` if the strategy needs no map.
pub(crate) fn scan(
    options: &Options,
    hasher: &StableState,
    segments: &[Arc<Segment>],
    pairs: usize,
) -> Result<Map, Error> {
    // This is exact if no key is in two segments.
    let keys: u64 = segments.iter().map(|segment| segment.live.keys).sum();
    let Some(map) =
        options.make_map(pairs.max(usize::try_from(keys).unwrap_or(usize::MAX)), highest_slot(segments), hasher)?
    else {
        return Ok(None);
    };
    // Deletions are kept, because the segments still have them.
    let mut merge = Merge::new(segments, false).map(|merged| merged.map(|merged| (merged.slot, merged.key)));
    while let Some(mut keys) = next_keys(&mut merge)? {
        // One call for each slot.
        keys.sort_by_key(|(slot, _)| *slot);
        for keys in keys.chunk_by(|(slot, _), (other, _)| slot == other) {
            let slot = keys[0].0;
            let keys: Vec<&[u8]> = keys.iter().map(|(_, key)| &key[..]).collect();
            map.insert_all(&keys, slot).map_err(Error::Full)?;
        }
    }
    Ok(Some(map))
}

fn highest_slot(segments: &[Arc<Segment>]) -> u16 {
    segments.iter().map(|segment| segment.live.slot).max().unwrap_or(0)
}
