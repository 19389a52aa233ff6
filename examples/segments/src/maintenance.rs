//! Flush and compaction, and why no get misses a key meanwhile.
//!
//! The *list* names the sealed memtable and the segments, from the newest to the oldest. It never changes; another list
//! is *published* in its place. The maplet has pairs of a key and a *slot*, a small number that one listed segment has
//! for itself. When the segment is gone, another one gets the slot.
//!
//! # What holds
//! 1. At every moment, for each key that some segment of the current list has and its sealed memtable has not: the
//!    maplet shows the slot of a segment of this list that has the newest of the segments' entries.
//! 2. A slot without a segment in the current list may be shown or not. No get follows it.
//! 3. Between two flushes or compactions the maplet has exactly one pair for each key of each segment, with the slot
//!    of the newest segment that has the key.
//!
//! # A get
//! `Store::get` asks the memtables, loads the list, asks the maplet for slots, and loads the list again. If that is the
//! same, it was current when the maplet was asked. So by (1) the segments of these slots have the newest entry. Each other
//! slot costs a look without need: that segment has no entry, or an older one, and then it comes later. Without the second
//! load a slot could belong to a segment that is gone, and to another one by now.
//!
//! # A flush
//! 1. Seal the active memtable, and write a segment from it with a free slot.
//! 2. Insert a pair for each key that no segment has. If one is refused, remove those inserted before, build a larger
//!    maplet, and begin again.
//! 3. Replace the slot in the pair of each other key.
//! 4. Publish a list with the segment as the newest, and without the sealed memtable.
//!
//! Before step 4 gets find these keys in the sealed memtable, and do not follow the new slot (2). If step 4 came first,
//! a get would miss what was in memory a moment ago.
//!
//! # A compaction
//! The inputs are neighbors in the list, so the output can take their place. The output leaves out a deletion if no
//! older segment has anything that it could hide.
//!
//! 1. Write the output with a free slot.
//! 2. Publish a list with the output *and* its inputs, the output in front of them.
//! 3. Replace the slot of each key whose newest entry is in the output.
//! 4. Publish a list without the inputs.
//! 5. Remove the pairs of the deletions that were left out. Only then may other segments get the inputs' slots.
//!
//! In step 3 the maplet shows the slot of an input or of the output at every moment: `replace` promises this. Both are
//! listed, and both have the entry. Before step 2 no get would know the output's slot. Until step 3 ends, gets need the
//! inputs. Step 5 must not come before step 4. Say the newest input has a deletion, and an older one has a value. When
//! the deletion's pair is gone, nothing hides the value, and another key's pair may show the older input. A false
//! positive would bring back a deleted key.
//!
//! # Whose pair it is
//! Replace and remove only pairs that were inserted. Another pair that looks the same belongs to another key, which
//! would be missed then. The maplet can't tell them apart. So flush and compaction look into the segments that it
//! shows, from the newest on. By (3) the first one that has the key has the slot in its pair (`List::slot_of`).

use std::ops::Range;
use std::sync::Arc;

use concurrent_cuckoo_filter::MapletInsertError;

use crate::store::{Bytes, Entry, Error, List, Memtable, Segment, Store, merge};

/// A key and the slot in its pair.
type Pair = (Bytes, u16);

/// A step of a flush or a compaction.
pub(crate) enum Step {
    /// Inserts a pair with this slot for each key. If one fails, those before it are removed again.
    Insert(Vec<Bytes>, u16),
    /// Replaces the slot in each pair by this one.
    Replace(Vec<Pair>, u16),
    Publish(List),
    Remove(Vec<Pair>),
}

impl Store {
    /// Writes the memtable to a new segment. Returns `false` if the memtable is empty. Gets and puts go on.
    ///
    /// # Errors
    /// If there are as many segments as there may be, or a maplet can't be built. The keys stay in memory.
    pub fn flush(&self) -> Result<bool, Error> {
        let _guard = self.maintenance.lock().unwrap();
        if self.list.load().segments.len() >= self.most_segments {
            return Err("there are too many segments: compact some first".into());
        }
        self.seal();
        if self.list.load().sealed.is_empty() {
            return Ok(false);
        }
        while self.steps_of_flush().iter().try_for_each(|step| self.take(step, || ())).is_err() {
            let capacity = self.list.load().maplet.capacity();
            self.build_maplet(capacity * 2)?;
        }
        Ok(true)
    }

    /// Merges these segments, counted from the newest one, into one. Returns `false` if there are none, or not so
    /// many. Gets and puts go on.
    ///
    /// # Errors
    /// If the maplet refuses a slot.
    pub fn compact(&self, run: Range<usize>) -> Result<bool, Error> {
        let _guard = self.maintenance.lock().unwrap();
        if run.is_empty() || run.end > self.list.load().segments.len() {
            return Ok(false);
        }
        self.steps_of_compaction(run).iter().try_for_each(|step| self.take(step, || ()))?;
        Ok(true)
    }

    /// Step 1 of a flush. Returns steps 2 to 4.
    pub(crate) fn steps_of_flush(&self) -> [Step; 3] {
        let before = self.list.load_full();
        let segment = Arc::new(Segment { slot: before.free_slot(), entries: Memtable::clone(&before.sealed) });
        let (mut new, mut moved) = (Vec::new(), Vec::new());
        for key in before.sealed.keys().cloned() {
            match before.slot_of(&key) {
                Some(slot) => moved.push((key, slot)),
                None => new.push(key),
            }
        }
        let (slot, segments) = (segment.slot, [&[segment], &before.segments[..]].concat());
        let list = List { sealed: Arc::default(), segments, maplet: Arc::clone(&before.maplet) };
        [Step::Insert(new, slot), Step::Replace(moved, slot), Step::Publish(list)]
    }

    /// Step 1 of a compaction. Returns steps 2 to 5.
    pub(crate) fn steps_of_compaction(&self, run: Range<usize>) -> [Step; 4] {
        let before = self.list.load_full();
        let (newer, rest) = before.segments.split_at(run.start);
        let (inputs, older) = rest.split_at(run.len());
        let (left_out, kept): (Vec<_>, Vec<_>) =
            merge(inputs).into_iter().partition(|(_, (entry, _))| older.is_empty() && entry.is_none());
        // The pairs of these keys, except where a newer segment has the key.
        let own_pairs = |merged: &[(Bytes, (Entry, u16))]| -> Vec<Pair> {
            let own = merged.iter().filter(|(key, (_, slot))| before.slot_of(key) == Some(*slot));
            own.map(|(key, (_, slot))| (Bytes::clone(key), *slot)).collect()
        };
        let (moved, left_out) = (own_pairs(&kept), own_pairs(&left_out));
        let (slot, entries) = (before.free_slot(), kept.into_iter().map(|(key, (entry, _))| (key, entry)));
        let output = [Arc::new(Segment { slot, entries: entries.collect() })];
        // If all entries are left out, there is no output.
        let output = if output[0].entries.is_empty() { &[] } else { &output[..] };
        // A flush that failed has left its sealed memtable.
        let list = |inputs| List { segments: [newer, output, inputs, older].concat(), ..List::clone(&before) };
        [Step::Publish(list(inputs)), Step::Replace(moved, slot), Step::Publish(list(&[])), Step::Remove(left_out)]
    }

    /// Takes a step, and calls `changed` after each change, so that the tests can read between any two of them.
    pub(crate) fn take(&self, step: &Step, changed: impl Fn()) -> Result<(), MapletInsertError> {
        let maplet = Arc::clone(&self.list.load().maplet);
        match step {
            Step::Insert(keys, slot) => {
                let pairs = keys.iter().map(|key| (&**key, *slot));
                maplet.insert_batch(pairs.clone()).map_err(|failed| {
                    maplet.remove_batch(pairs.take(failed.index), &mut Vec::new());
                    failed.error
                })?;
                changed();
            }
            Step::Replace(pairs, new) => {
                for (key, old) in pairs {
                    assert!(maplet.replace(&**key, *old, *new)?, "the pair was inserted");
                    changed();
                }
            }
            Step::Publish(list) => {
                self.list.store(Arc::new(list.clone()));
                changed();
            }
            Step::Remove(pairs) => {
                for (key, slot) in pairs {
                    assert!(maplet.remove(&**key, *slot), "the pair was inserted");
                    changed();
                }
            }
        }
        Ok(())
    }
}
