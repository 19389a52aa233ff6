//! The store, its segments, its puts and its gets.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::{CuckooMaplet, Values};

/// The hasher of all maplets.
#[cfg(not(test))]
pub(crate) type Hasher = concurrent_cuckoo_filter::DefaultHashBuilder;
/// Without a random key, so that the same keys look alike in each run of the tests.
#[cfg(test)]
pub(crate) type Hasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Why a maplet can't be built, or a flush was refused.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A key-value store in memory. Threads share it by reference.
#[derive(Debug)]
pub struct Store {
    /// The false-positive rate of the maplet.
    rate: f64,
    /// How many segments there may be. If there are this many, a flush fails.
    pub(crate) most_segments: usize,
    /// Takes the puts.
    active: RwLock<Memtable>,
    pub(crate) list: ArcSwap<List>,
    /// Held by a flush or a compaction from beginning to end. Nobody else changes the list or the maplet. If one
    /// panics, all later ones do, because the maplet may be halfway. Gets and puts go on.
    pub(crate) maintenance: Mutex<()>,
}

impl Store {
    /// An empty store with up to 63 segments, and a maplet for so many keys at a rate of 0.1%. When the maplet is full, the
    /// store builds one of twice the size.
    ///
    /// # Errors
    /// If the maplet can't be built.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        Self::with(0.001, 63, capacity)
    }

    pub(crate) fn with(rate: f64, most_segments: usize, capacity: usize) -> Result<Self, Error> {
        let maplet = Arc::new(maplet(rate, most_segments, capacity, &[])?);
        let list = ArcSwap::from_pointee(List { sealed: Arc::default(), segments: Vec::new(), maplet });
        Ok(Self { rate, most_segments, active: RwLock::default(), list, maintenance: Mutex::default() })
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        if let Some(entry) = self.active.read().unwrap().get(key) {
            return entry.clone();
        }
        loop {
            let list = self.list.load();
            if let Some(entry) = list.sealed.get(key) {
                return entry.clone();
            }
            let slots = list.maplet.values(key);
            // Whoever changes the maplet for a newer list has published that list before, or is not seen here. So after
            // this fence the second load sees the newer list.
            fence(Ordering::Acquire);
            // This get holds the list, so no other list can have its address.
            if Arc::ptr_eq(&list, &self.list.load()) {
                return list.with_slots(slots).find_map(|segment| segment.entries.get(key).cloned()).flatten();
            }
        }
    }

    /// Gives the key this value.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        self.active.write().unwrap().insert(key.into(), Some(value.into()));
    }

    /// Removes the key and its value, if there is one.
    pub fn delete(&self, key: &[u8]) {
        self.active.write().unwrap().insert(key.into(), None);
    }

    /// How many keys each segment has, deleted ones too, from the newest segment to the oldest.
    pub fn segments(&self) -> Vec<usize> {
        self.list.load().segments.iter().map(|segment| segment.entries.len()).collect()
    }

    /// Makes the active memtable the sealed one, unless a flush that failed has left one.
    pub(crate) fn seal(&self) {
        // Puts wait, and so do gets that have not seen the memtable yet. They find its entries in the list then.
        let mut active = self.active.write().unwrap();
        let list = self.list.load_full();
        if list.sealed.is_empty() {
            let sealed = Arc::new(mem::take(&mut *active));
            self.list.store(Arc::new(List { sealed, ..List::clone(&list) }));
        }
    }

    /// Publishes a list with a new maplet, which is built from the segments for at least this many keys. A store on
    /// disk does the same after a restart.
    pub(crate) fn build_maplet(&self, capacity: usize) -> Result<(), Error> {
        let list = self.list.load_full();
        // Gets that hold the old list also hold the old maplet, which stays as it is.
        let maplet = Arc::new(maplet(self.rate, self.most_segments, capacity, &list.segments)?);
        self.list.store(Arc::new(List { maplet, ..List::clone(&list) }));
        Ok(())
    }
}

/// A maplet for at least this many keys, with a pair for each key of the segments.
fn maplet(rate: f64, most_segments: usize, capacity: usize, segments: &[Arc<Segment>]) -> Result<Maplet, Error> {
    let value_bits = usize::BITS - most_segments.leading_zeros();
    let builder = Maplet::builder_with_hasher(Hasher::default()).false_positive_rate(rate).value_bits(value_bits);
    let built = builder.capacity(capacity).build()?;
    let merged = merge(segments);
    let pairs = merged.iter().map(|(key, (_, slot))| (&**key, *slot));
    if built.insert_batch(pairs).is_err() { maplet(rate, most_segments, capacity * 2, segments) } else { Ok(built) }
}

/// A key or a value, shared by the parts of the store that have it.
pub type Bytes = Arc<[u8]>;

/// What is stored for a key: its value, or `None` if it was deleted. A deletion hides what older segments have.
pub(crate) type Entry = Option<Bytes>;

pub(crate) type Memtable = BTreeMap<Bytes, Entry>;

/// Pairs of a key and a slot.
pub(crate) type Maplet = CuckooMaplet<[u8], Hasher>;

#[derive(Debug)]
pub(crate) struct Segment {
    /// Its value in the maplet. No other listed segment has it.
    pub(crate) slot: u16,
    pub(crate) entries: Memtable,
}

/// What a get looks at after the active memtable.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The memtable that a flush writes to a segment. It is empty if there is no flush.
    pub(crate) sealed: Arc<Memtable>,
    /// From the newest to the oldest.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) maplet: Arc<Maplet>,
}

impl List {
    /// The segments with these slots, from the newest on. A slot without a segment belongs to one that is not listed yet,
    /// or not any more. (With very many segments, keep a table from slots to segments.)
    pub(crate) fn with_slots(&self, slots: Values) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().filter(move |segment| slots.contains(segment.slot))
    }

    /// The slot in the key's pair: that of the newest segment that has the key. The maplet alone does not know it,
    /// because it also shows slots of other keys. `None` if no segment has the key.
    pub(crate) fn slot_of(&self, key: &[u8]) -> Option<u16> {
        self.with_slots(self.maplet.values(key))
            .find(|segment| segment.entries.contains_key(key))
            .map(|segment| segment.slot)
    }

    /// The lowest slot that no segment has.
    pub(crate) fn free_slot(&self) -> u16 {
        let is_free = |slot: &u16| self.segments.iter().all(|segment| segment.slot != *slot);
        (0..).find(is_free).expect("there are fewer segments than slots")
    }
}

/// The keys of these segments, which come from the newest to the oldest. Each has its newest entry, and the slot of the
/// segment that has this entry.
pub(crate) fn merge(segments: &[Arc<Segment>]) -> BTreeMap<Bytes, (Entry, u16)> {
    let mut merged = BTreeMap::new();
    for segment in segments.iter().rev() {
        let entries = segment.entries.iter();
        merged.extend(entries.map(|(key, entry)| (Bytes::clone(key), (entry.clone(), segment.slot))));
    }
    merged
}
