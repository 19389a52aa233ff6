//! The store, its puts and its gets.

use std::mem;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;

use crate::segment::{Bytes, List, Maplet, Memtable, Segment, merge};

/// The hasher of all maplets.
#[cfg(not(test))]
pub(crate) type Hasher = concurrent_cuckoo_filter::DefaultHashBuilder;
/// Without a random key, so that the same keys look alike in each run of the tests.
#[cfg(test)]
pub(crate) type Hasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Why a maplet can't be built, or a flush was refused.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How to make a [`Store`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The false-positive rate of the maplet.
    pub false_positive_rate: f64,
    /// How many segments there may be. If there are this many, a flush is refused.
    pub most_segments: usize,
    /// How many keys the maplet is built for. When it is full, the store builds one of twice the size.
    pub capacity: usize,
}

impl Default for Options {
    /// A rate of 0.1 %, up to 63 segments, a maplet for 100,000 keys.
    fn default() -> Self {
        Self { false_positive_rate: 0.001, most_segments: 63, capacity: 100_000 }
    }
}

/// A key-value store in memory. Threads share it by reference.
#[derive(Debug)]
pub struct Store {
    pub(crate) options: Options,
    /// Takes the puts.
    active: RwLock<Memtable>,
    pub(crate) list: ArcSwap<List>,
    /// Held by a flush or a compaction from beginning to end. Nobody else changes the list or the maplet. If one
    /// panics, all later ones do, because the maplet may be halfway. Gets and puts go on.
    pub(crate) maintenance: Mutex<()>,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// If a maplet for so many segments and with this rate can't be built.
    pub fn new(options: Options) -> Result<Self, Error> {
        let maplet = Arc::new(maplet(&options, options.capacity, &[])?);
        let list = ArcSwap::from_pointee(List { sealed: Arc::default(), segments: Vec::new(), maplet });
        Ok(Self { options, active: RwLock::default(), list, maintenance: Mutex::default() })
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.get_after(key, || ())
    }

    /// [`get`](Self::get), which calls `loaded` each time it has loaded a list, before it asks the maplet.
    pub(crate) fn get_after(&self, key: &[u8], mut loaded: impl FnMut()) -> Option<Bytes> {
        if let Some(entry) = self.active.read().unwrap().get(key) {
            return entry.clone();
        }
        loop {
            let list = self.list.load();
            loaded();
            if let Some(entry) = list.sealed.get(key) {
                return entry.clone();
            }
            let slots = list.maplet.values(key);
            // Whoever changes the maplet for a newer list has published that list before, or is not seen here. So after
            // this fence the second load sees the newer list.
            fence(Ordering::Acquire);
            // This get holds the list, so no other list can have its address.
            if Arc::ptr_eq(&list, &self.list.load()) {
                return list.with_slots(slots).find_map(|segment| segment.get(key).cloned()).flatten();
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
        let maplet = Arc::new(maplet(&self.options, capacity, &list.segments)?);
        self.list.store(Arc::new(List { maplet, ..List::clone(&list) }));
        Ok(())
    }
}

/// A maplet for at least this many keys, with a pair for each key of the segments.
fn maplet(options: &Options, capacity: usize, segments: &[Arc<Segment>]) -> Result<Maplet, Error> {
    let built = Maplet::builder_with_hasher(Hasher::default())
        .capacity(capacity)
        .false_positive_rate(options.false_positive_rate)
        .value_bits(usize::BITS - options.most_segments.leading_zeros())
        .build()?;
    let pairs = merge(segments).into_iter().map(|(key, _, slot)| (&**key, slot));
    if built.insert_batch(pairs).is_err() { maplet(options, capacity * 2, segments) } else { Ok(built) }
}
