//! CONCURRENT: flush and compaction, and why no get misses a key meanwhile.
//!
//! # Terms
//! The *list* (`list.rs`) names what a get looks at: the active memtable, perhaps a sealed one, and the segments,
//! from the newest to the oldest. A list is never changed. Another list is *published* in its place. The *current*
//! list is the one published last. The first part of the list that has an entry for the key has the newest entry.
//!
//! The maplet has pairs of a key and a *slot*. A slot is a small number that one live segment has for itself. When
//! the segment is gone, another segment gets the slot.
//!
//! # Invariants
//! 1. At every moment this holds for each key that some segment of the current list has and its sealed memtable has
//!    not: the maplet shows the slot of a segment of this list that has the newest of the segments' entries for the
//!    key.
//! 2. A slot that no segment of the current list has may be shown or not. No get follows it.
//! 3. Between two flushes or compactions, the maplet has exactly one pair for each key that some live segment has.
//!    The pair has the slot of the newest segment that has the key. The maplet has no other pairs.
//!
//! # A get
//! 1. Load the list.
//! 2. Ask the active memtable, then the sealed one.
//! 3. Ask the maplet for the slots of the key.
//! 4. Load the list again. If it is another one, begin again.
//! 5. Ask the segments of the list that have these slots, from the newest to the oldest. The first entry found
//!    counts.
//!
//! If step 4 finds the same list, this list was the current one throughout step 3. The get holds the list, so no
//! other list can be at its address. So by 1 the newest entry is in one of the segments that are asked. Each other
//! slot that is shown costs a look: a segment that is asked without need has no entry, or an older one, and then it
//! is asked after the newest.
//!
//! Without step 4 a slot could belong to a segment that is gone, and to another segment by now. The get would then
//! follow an old list to the wrong place. After step 4 nothing can go wrong: the get has the segments themselves,
//! not their slots, and the files of a segment stay as long as a thread holds it.
//!
//! A get takes effect when it looks into the active memtable. If that memtable was sealed in the meantime, the get
//! takes effect when it was sealed. A get begins again only when a list has been published, which happens up to
//! three times in a flush or a compaction.
//!
//! Where each segment has its own filter, or the engine has one in each, steps 3 and 4 are not needed. A filter is
//! built before its segment is listed, and never changes.
//!
//! # A flush
//! 1. Seal: begin a new log and a new active memtable; publish a list with the old one as the sealed one. Puts
//!    wait.
//! 2. Write a new segment from the sealed memtable, with a free slot, and sync it.
//! 3. For each of its keys that a live segment has: replace the slot in the key's pair by the new one. For each
//!    other key: insert a pair.
//! 4. Replace the manifest by one that names the segment, and the new log as the first one.
//! 5. Publish a list that has the segment as the newest one, and no sealed memtable.
//! 6. Delete the old log.
//!
//! Up to step 5, each get that holds the current list finds these keys in the sealed memtable. It asks the maplet
//! only for other keys. So the pairs of these keys may lead to a slot that the list does not have. From step 5 on
//! that slot is listed (1). If step 3 came after step 5, a get in between would miss what was in memory a moment
//! ago.
//!
//! If an insert is refused, it is undone together with all inserts before it, and the maplet is rebuilt, larger.
//!
//! # A compaction
//! A compaction merges segments that are neighbors in the list. So its output can take their place, and newer
//! entries remain before older ones. A deletion is left out if there is nothing older that it could hide.
//!
//! 1. Write the output, with a free slot, and sync it.
//! 2. Publish a list with the output *and* its inputs, the output in front of them.
//! 3. For each key of the output whose newest entry is there: replace the slot of the newest input that has it by
//!    that of the output.
//! 4. Replace the manifest by one with the output and without the inputs.
//! 5. Publish a list without the inputs.
//! 6. Remove the pairs of deletions that were left out, if there was no newer entry either.
//! 7. Retire the inputs: their slots are free, and their files are deleted when the last get has let go of them.
//!
//! In step 3 the maplet shows the newest input or the output for each key, at every moment: its `replace` promises
//! this. Both are in the list and have the same entry, so 1 holds before, during and after the replacement. Before
//! step 2 a get would not know which segment has the output's slot. After step 5 no get needs the inputs' slots.
//!
//! Step 6 must not come before step 5. Say the newest input has a deletion, which is left out, and an older input
//! has a value. When the pair of the deletion is gone, nothing hides the value any more. Then one look-alike is
//! enough: another key whose pair has the slot of the older input. A false positive would bring back a deleted key.
//!
//! # Whose pair it is
//! Only pairs that were inserted may be replaced or removed. Another pair that looks the same belongs to some other
//! key, and that key would not be found any more. The maplet can't tell the two apart: it shows slots that the key
//! does not have. So flush and compaction do not rely on the maplet alone. For each key they look into the segments
//! that are shown, from the newest on. By 3, the first one that has the key is the one in its pair. (A compaction
//! need only look into those that are newer than its inputs.) For a key that is in no segment yet, a look is rarely
//! needed.
//!
//! One pair for each segment that has the key would need no such looks. But all pairs of a key are in its two
//! buckets, which have 4 to 12 slots. Keys that are put again and again, and are in many segments, would fill them.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use lsm_tree::Slice;

use crate::error::Error;
use crate::fault::Fault;
use crate::list::List;
use crate::log::{self, Log};
use crate::manifest::Live;
use crate::memtable::Memtable;
use crate::merge::{Merge, Merged};
use crate::moves::{Moves, holder};
use crate::recovery;
use crate::segment::Segment;
use crate::slots::SlotMap;
use crate::store::{Maintenance, Store};

impl Store {
    /// Writes what is in memory to a new segment. Returns `false` if there was nothing to write. Gets and puts go
    /// on.
    ///
    /// # Errors
    /// If a file can't be written, or the filter does not take the keys. What is in memory stays there, and in its
    /// log.
    pub fn flush(&self) -> Result<bool, Error> {
        self.flush_locked(&mut *self.lock_maintenance()?)
    }

    /// Merges these segments, counted from the newest one, into one. Gets and puts go on. Returns `false` if the
    /// range is empty or reaches beyond the oldest segment.
    ///
    /// # Errors
    /// If a file can't be read or written. Gets and puts go on, and no entry is lost.
    pub fn compact(&self, run: Range<usize>) -> Result<bool, Error> {
        let mut maintenance = self.lock_maintenance()?;
        if run.is_empty() || run.end > maintenance.manifest.segments.len() {
            return Ok(false);
        }
        self.compact_locked(&mut maintenance, run)?;
        Ok(true)
    }

    /// Flushes if there are many keys in memory. The flush also compacts if there are as many segments as there may
    /// be. Call this now and then.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn maintain(&self) -> Result<(), Error> {
        let mut maintenance = self.lock_maintenance()?;
        if self.list.load().active.len() >= self.options.memtable_keys {
            self.flush_locked(&mut maintenance)?;
        }
        Ok(())
    }

    /// Saves the maplet, so that the next open need not read all segments. Flushes and compactions wait; gets and
    /// puts go on. Returns `false` if the strategy has no maplet.
    ///
    /// # Errors
    /// If the file can't be written. The previous file stays valid.
    pub fn save(&self) -> Result<bool, Error> {
        let maintenance = self.lock_maintenance()?;
        let Some(map) = &self.list.load().map else { return Ok(false) };
        let manifest = &maintenance.manifest;
        let path = self.snapshot_path();
        map.save(&path, manifest.version, recovery::attachment(manifest)).map_err(Error::io(path))?;
        Ok(true)
    }

    pub(crate) fn snapshot_path(&self) -> PathBuf {
        self.directory.join(recovery::SNAPSHOT)
    }

    fn flush_locked(&self, maintenance: &mut Maintenance) -> Result<bool, Error> {
        if maintenance.manifest.segments.len() >= self.options.most_segments {
            self.compact_locked(maintenance, self.cheapest_run())?;
        }
        let Some((sealed, first_log)) = self.seal()? else { return Ok(false) };
        match (self.write_sealed(maintenance, &sealed, first_log), &self.list.load_full().map) {
            (Err(Error::Full(_)), Some(map)) => {
                self.remake_map(map.capacity().saturating_mul(2))?;
                self.write_sealed(maintenance, &sealed, first_log)?;
            }
            (done, _) => done?,
        }
        Ok(true)
    }

    /// Step 1 of a flush. Returns the sealed memtable, and the number of the active one's log. A flush that failed
    /// may have left a sealed memtable.
    fn seal(&self) -> Result<Option<(Arc<Memtable>, u64)>, Error> {
        let mut log = self.lock_writer();
        let list = self.list.load_full();
        if let Some(sealed) = &list.sealed {
            return Ok(Some((Arc::clone(sealed), log.number)));
        }
        if list.active.len() == 0 {
            return Ok(None);
        }
        let number = log.number + 1;
        *log = Log::create(&self.directory, number).map_err(Error::io(log::path(&self.directory, number)))?;
        self.publish(list.with_sealed());
        Ok(Some((Arc::clone(&list.active), number)))
    }

    /// Steps 2 to 6 of a flush.
    fn write_sealed(&self, maintenance: &mut Maintenance, sealed: &Memtable, first_log: u64) -> Result<(), Error> {
        let entries = sealed.read();
        let list = self.list.load_full();

        // 2
        let live = self.new_segment(maintenance, &list)?;
        let pairs = entries.iter().map(|(key, entry)| Ok((Slice::from(&key[..]), Slice::from(entry.to_bytes()))));
        let Some(segment) = self.engine.write(live, pairs)? else { return Ok(()) };
        let segment = Arc::new(segment);
        let moves = match &list.map {
            Some(map) => Moves::plan(&list, &**map, entries.keys().map(|key| &key[..]), self.faults)?,
            None => Moves::default(),
        };
        if list.map.as_ref().is_some_and(|map| map.pairs() + moves.inserts() > map.capacity()) {
            self.remake_map((list.map.as_ref().map_or(0, |map| map.pairs()) + moves.inserts()) * 2)?;
        }
        let list = self.list.load_full();
        let flushed = list.with_flushed(Arc::clone(&segment));

        maintenance.halted = true;
        if self.faults.has(Fault::LogBeforeManifest) {
            self.delete_logs_before(first_log)?;
        }
        if self.faults.has(Fault::PublishBeforeInsert) {
            self.publish(flushed.clone());
        }
        // 3
        if let Some(map) = &list.map {
            match moves.carry_out(&**map, segment.slot()) {
                Ok(()) => {}
                Err(error) => {
                    segment.retire();
                    maintenance.halted = !matches!(error, Error::Full(_));
                    return Err(error);
                }
            }
        }
        drop(entries);
        // 4
        maintenance.manifest.segments.insert(0, segment.live);
        maintenance.manifest.first_log = first_log;
        self.replace_manifest(maintenance)?;
        // 5
        self.publish(flushed);
        maintenance.halted = false;
        // 6
        self.delete_logs_before(first_log)
    }

    fn compact_locked(&self, maintenance: &mut Maintenance, run: Range<usize>) -> Result<(), Error> {
        let list = self.list.load_full();
        let inputs = &list.segments()[run.clone()];
        let oldest = run.end == list.segments().len();
        let merge = || Merge::new(inputs, oldest);

        // 1
        let live = self.new_segment(maintenance, &list)?;
        let kept = merge().filter(|merged| merged.as_ref().map_or(true, |merged| merged.kept));
        let output = self.engine.write(live, kept.map(|merged| merged.map(|merged| (merged.key, merged.entry))))?;
        let output = output.map(Arc::new);
        let listed = |inputs: &[Arc<Segment>]| {
            let [newer, older] = [&list.segments()[..run.start], &list.segments()[run.end..]];
            list.with_segments([newer, output.as_slice(), inputs, older].concat())
        };
        // The keys whose pairs have the slot of an input.
        let own = |map: &Arc<dyn SlotMap>| {
            let (map, start) = (Arc::clone(map), run.start);
            let (list, faults) = (&list, self.faults);
            merge().filter_map(move |merged| match merged {
                Ok(merged) => match holder(list, &*map, &merged.key, start, faults) {
                    Ok(newer) => newer.is_none().then_some(Ok(merged)),
                    Err(error) => Some(Err(error)),
                },
                error => Some(error),
            })
        };
        let remove_left_out = || {
            for merged in list.map.iter().flat_map(own) {
                let Merged { key, slot, kept, .. } = merged?;
                if !kept && !list.map.as_ref().is_some_and(|map| map.remove(&key, slot)) {
                    return Err(Error::Lost { slot });
                }
            }
            Ok(())
        };

        maintenance.halted = true;
        if let (Some(map), Some(output)) = (&list.map, &output) {
            // 2
            if !self.faults.has(Fault::ReplaceBeforePublish) {
                self.publish(listed(inputs));
            }
            // 3
            for merged in own(map) {
                let Merged { key, slot, kept, .. } = merged?;
                if kept && !map.replace(&key, slot, output.slot()) {
                    return Err(Error::Lost { slot });
                }
            }
        }
        if self.faults.has(Fault::RemoveBeforeRetire) {
            remove_left_out()?;
        }
        // 4
        maintenance.manifest.segments.splice(run.clone(), output.iter().map(|output| output.live));
        self.replace_manifest(maintenance)?;
        // 5
        self.publish(listed(&[]));
        // 6
        if !self.faults.has(Fault::RemoveBeforeRetire) {
            remove_left_out()?;
        }
        // 7
        for input in inputs {
            input.retire();
        }
        maintenance.halted = false;
        Ok(())
    }

    /// The segments that are cheapest to merge: of all runs of `merge` neighbors, the one with the fewest keys.
    fn cheapest_run(&self) -> Range<usize> {
        let segments = self.segments();
        let length = self.options.merge.clamp(2, segments.len().max(2)).min(segments.len());
        let keys = |start: usize| segments[start..start + length].iter().map(|segment| segment.keys).sum::<u64>();
        let start = (0..=segments.len() - length).min_by_key(|start| keys(*start)).unwrap_or(0);
        start..start + length
    }

    /// Rebuilds the map, for this many pairs, from all listed segments. No flush or compaction may be halfway.
    fn remake_map(&self, pairs: usize) -> Result<(), Error> {
        let list = self.list.load_full();
        let map = recovery::scan(&self.options, &self.hasher, list.segments(), pairs)?;
        // Gets that hold the old list also hold the old map, which stays as it is.
        self.publish(list.with_map(map));
        Ok(())
    }

    fn new_segment(&self, maintenance: &mut Maintenance, list: &List) -> Result<Live, Error> {
        let number = maintenance.manifest.next_number;
        // A number is used up even if its segment is never finished. After a crash the next process may use it
        // again: anything under this name that is not in the manifest has been deleted by then.
        maintenance.manifest.next_number += 1;
        let id = getrandom::u64().map_err(|error| Error::io(&self.directory)(error.into()))?;
        Ok(Live { number, slot: list.free_slot(), keys: 0, id })
    }

    fn replace_manifest(&self, maintenance: &mut Maintenance) -> Result<(), Error> {
        maintenance.manifest.version += 1;
        maintenance.manifest.replace(&self.directory).map_err(Error::io(&self.directory))
    }

    fn delete_logs_before(&self, first: u64) -> Result<(), Error> {
        for number in log::numbers(&self.directory).map_err(Error::io(&self.directory))? {
            if number < first {
                let path = log::path(&self.directory, number);
                fs::remove_file(&path).map_err(Error::io(path))?;
            }
        }
        Ok(())
    }

    fn publish(&self, list: List) {
        self.list.store(Arc::new(list));
    }

    fn lock_maintenance(&self) -> Result<MutexGuard<'_, Maintenance>, Error> {
        // If the last holder panicked, `halted` is as it left it.
        let maintenance = self.maintenance.lock().unwrap_or_else(PoisonError::into_inner);
        if maintenance.halted { Err(Error::Halted) } else { Ok(maintenance) }
    }
}
