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
//! 1. Ask the active memtable. Load the list, and ask its sealed memtable.
//! 2. Ask the maplet for the slots of the key.
//! 3. Load the list again. If it is another one, begin again with that one.
//! 4. Look into the segments of the list that have these slots, from the newest on. The first entry found counts.
//!
//! If step 3 finds the same list, it was current throughout step 2. So by (1) step 4 finds the newest entry. Each other
//! slot costs a look without need: that segment has no entry, or an older one, and then it comes later. Without step 3
//! a slot could belong to a segment that is gone, and to another one by now.
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

use crate::list::List;
use crate::segment::{Bytes, Merged, Segment, merge};
use crate::store::{Error, Store};

impl Store {
    /// Writes the memtable to a new segment. Returns `false` if the memtable is empty. Gets and puts go on.
    ///
    /// # Errors
    /// If there are as many segments as there may be, or a filter or maplet can't be built. The keys stay in memory.
    pub fn flush(&self) -> Result<bool, Error> {
        let _guard = self.maintenance.lock().unwrap();
        if self.list.load().segments.len() >= self.options.most_segments {
            return Err("there are too many segments: compact some first".into());
        }
        self.seal();
        if self.list.load().sealed.is_empty() {
            return Ok(false);
        }
        let mut flush = Flush::write(self)?;
        while flush.carry_out(&|| ()).is_err() {
            self.build_maplet(flush.before.maplet.as_ref().map_or(0, |maplet| maplet.capacity() * 2))?;
            flush = Flush::write(self)?;
        }
        Ok(true)
    }

    /// Merges these segments, counted from the newest one, into one. Returns `false` if there are none, or not so
    /// many. Gets and puts go on.
    ///
    /// # Errors
    /// If the output's filter can't be built. Then nothing has changed.
    pub fn compact(&self, run: Range<usize>) -> Result<bool, Error> {
        let _guard = self.maintenance.lock().unwrap();
        if run.is_empty() || run.end > self.list.load().segments.len() {
            return Ok(false);
        }
        Compaction::write(self, run)?.carry_out(&|| ());
        Ok(true)
    }
}

/// A key and the slot in its pair.
type Pair = (Bytes, u16);

/// The steps of a flush. Each calls `changed` after each change. So the tests can read between any two of them, and can
/// take the steps in other orders.
pub(crate) struct Flush<'a> {
    store: &'a Store,
    before: Arc<List>,
    segment: Arc<Segment>,
    /// The keys that no segment has.
    pub(crate) new: Vec<Bytes>,
    /// The pairs of the other keys.
    pub(crate) moved: Vec<Pair>,
}

impl<'a> Flush<'a> {
    /// Step 1, and a plan for steps 2 and 3.
    pub(crate) fn write(store: &'a Store) -> Result<Self, Error> {
        let before = store.list.load_full();
        let entries = before.sealed.iter().map(|(key, entry)| (Bytes::clone(key), entry.clone()));
        let segment = store.segment(before.free_slot(), entries.collect())?;
        let (mut new, mut moved) = (Vec::new(), Vec::new());
        for key in before.sealed.keys().cloned() {
            match before.slot_of(&key) {
                Some(slot) => moved.push((key, slot)),
                None => new.push(key),
            }
        }
        Ok(Self { store, before, segment, new, moved })
    }

    /// Steps 2 to 4. If step 2 is refused, nothing has changed.
    pub(crate) fn carry_out(&self, changed: &dyn Fn()) -> Result<(), MapletInsertError> {
        self.insert_pairs(changed)?;
        self.move_pairs(changed);
        self.list(changed);
        Ok(())
    }

    /// Step 2.
    pub(crate) fn insert_pairs(&self, changed: &dyn Fn()) -> Result<(), MapletInsertError> {
        let Some(maplet) = &self.before.maplet else { return Ok(()) };
        let pairs = self.new.iter().map(|key| (&**key, self.segment.slot));
        maplet.insert_batch(pairs.clone()).map_err(|refused| {
            maplet.remove_batch(pairs.take(refused.index), &mut Vec::new());
            refused.error
        })?;
        changed();
        Ok(())
    }

    /// Step 3.
    pub(crate) fn move_pairs(&self, changed: &dyn Fn()) {
        replace_slots(&self.before, &self.moved, &self.segment, changed);
    }

    /// Step 4.
    pub(crate) fn list(&self, changed: &dyn Fn()) {
        let segments = [&[Arc::clone(&self.segment)], &self.before.segments[..]].concat();
        self.store.publish(List::new(Arc::default(), segments, self.before.maplet.clone()));
        changed();
    }
}

/// The steps of a compaction, as those of a [`Flush`].
pub(crate) struct Compaction<'a> {
    store: &'a Store,
    before: Arc<List>,
    run: Range<usize>,
    /// `None` if all entries are left out.
    output: Option<Arc<Segment>>,
    /// The pairs of the output's keys, except where a newer segment has the key.
    moved: Vec<Pair>,
    /// The same of deletions that the output does not have.
    left_out: Vec<Pair>,
}

impl<'a> Compaction<'a> {
    /// Step 1, and a plan for steps 3 and 5.
    pub(crate) fn write(store: &'a Store, run: Range<usize>) -> Result<Self, Error> {
        let before = store.list.load_full();
        let oldest = run.end == before.segments.len();
        let (left_out, kept): (Vec<_>, Vec<_>) =
            merge(&before.segments[run.clone()]).into_iter().partition(|(_, entry, _)| oldest && entry.is_none());
        let entries: Vec<_> = kept.iter().map(|(key, entry, _)| (Bytes::clone(key), Option::clone(entry))).collect();
        let output = if entries.is_empty() { None } else { Some(store.segment(before.free_slot(), entries)?) };
        let own_pairs = |merged: Vec<Merged<'_>>| -> Vec<Pair> {
            let own = merged.into_iter().filter(|(key, _, slot)| before.slot_of(key) == Some(*slot));
            own.map(|(key, _, slot)| (Bytes::clone(key), slot)).collect()
        };
        let (moved, left_out) = (own_pairs(kept), own_pairs(left_out));
        Ok(Self { store, before, run, output, moved, left_out })
    }

    /// Steps 2 to 5.
    pub(crate) fn carry_out(&self, changed: &dyn Fn()) {
        self.list_beside_inputs(changed);
        self.move_pairs(changed);
        self.unlist_inputs(changed);
        self.remove_pairs(changed);
    }

    /// Step 2.
    pub(crate) fn list_beside_inputs(&self, changed: &dyn Fn()) {
        self.publish(&self.before.segments[self.run.clone()]);
        changed();
    }

    /// Step 3.
    pub(crate) fn move_pairs(&self, changed: &dyn Fn()) {
        if let Some(output) = &self.output {
            replace_slots(&self.before, &self.moved, output, changed);
        }
    }

    /// Step 4.
    pub(crate) fn unlist_inputs(&self, changed: &dyn Fn()) {
        self.publish(&[]);
        changed();
    }

    /// Step 5.
    pub(crate) fn remove_pairs(&self, changed: &dyn Fn()) {
        let Some(maplet) = &self.before.maplet else { return };
        for (key, slot) in &self.left_out {
            assert!(maplet.remove(&**key, *slot), "the pair was inserted");
            changed();
        }
    }

    fn publish(&self, inputs: &[Arc<Segment>]) {
        let (newer, older) = (&self.before.segments[..self.run.start], &self.before.segments[self.run.end..]);
        let segments = [newer, self.output.as_slice(), inputs, older].concat();
        // A flush that failed has left its sealed memtable.
        self.store.publish(List::new(Arc::clone(&self.before.sealed), segments, self.before.maplet.clone()));
    }
}

fn replace_slots(list: &List, pairs: &[Pair], segment: &Segment, changed: &dyn Fn()) {
    let Some(maplet) = &list.maplet else { return };
    for (key, old) in pairs {
        let replaced = maplet.replace(&**key, *old, segment.slot).expect("the maplet was built for all slots");
        assert!(replaced, "the pair was inserted");
        changed();
    }
}
