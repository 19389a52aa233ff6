//! The store, its puts and its gets.

use std::hash::BuildHasher;
use std::mem;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, RwLock};

use concurrent_cuckoo_filter::Hashed;

use crate::segment::{Bytes, Entry, Filter, List, MOST_LISTED, Maplet, Memtable, Segment, merge};
use arc_swap::ArcSwap;

/// The hasher of all filters and maplets of a store.
#[cfg(not(test))]
pub(crate) type Hasher = concurrent_cuckoo_filter::DefaultHashBuilder;
/// Without a random key, so that the same keys look alike in each run of the tests.
#[cfg(test)]
pub(crate) type Hasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Why a filter or maplet can't be built, or what the caller must change.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How a get finds the segments that may have a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One `CuckooMaplet` for all segments.
    Maplet,
    /// A `ConcurrentCuckooFilter` for each segment.
    FilterEach,
}

/// How to make a [`Store`].
#[derive(Clone, Debug)]
pub struct Options {
    /// How a get finds the segments that may have a key.
    pub strategy: Strategy,
    /// The false-positive rate of the maplet, or of each filter.
    pub false_positive_rate: f64,
    /// How many segments there may be, up to 127. If there are this many, a flush is refused.
    pub most_segments: usize,
    /// How many keys the maplet is built for. When it is full, the store builds one of twice the size.
    pub capacity: usize,
}

impl Options {
    /// A rate of 0.1 %, up to 63 segments, a maplet for 100,000 keys.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, false_positive_rate: 0.001, most_segments: 63, capacity: 100_000 }
    }
}

/// What a get does, for those who count it or stop it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has loaded the list, and has not asked the maplet yet. If the list is replaced meanwhile, this comes again.
    List,
    /// It has looked into a segment.
    #[allow(missing_docs)]
    Look { found: bool },
}

/// A key-value store in memory. Threads share it by reference.
#[derive(Debug)]
pub struct Store {
    pub(crate) options: Options,
    hasher: Hasher,
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
    /// If the number of segments is not from 1 to 127, or if a maplet with this rate can't be built.
    pub fn new(options: Options) -> Result<Self, Error> {
        // A compaction's output is listed besides.
        if !(1..MOST_LISTED).contains(&options.most_segments) {
            return Err(format!("give 1 to {} segments, not {}", MOST_LISTED - 1, options.most_segments).into());
        }
        let list = ArcSwap::from_pointee(List::new(Arc::default(), Vec::new(), None));
        let hasher = Hasher::default();
        let store = Self { options, hasher, active: RwLock::default(), list, maintenance: Mutex::default() };
        if store.options.strategy == Strategy::Maplet {
            store.build_maplet(store.options.capacity)?;
        }
        Ok(store)
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.get_observed(key, |_| ())
    }

    /// [`get`](Self::get), which tells `observe` what it does.
    pub fn get_observed(&self, key: &[u8], mut observe: impl FnMut(Event)) -> Option<Bytes> {
        if let Some(entry) = self.active.read().unwrap().get(key) {
            return entry.clone();
        }
        loop {
            let list = self.list.load();
            observe(Event::List);
            if let Some(entry) = list.sealed.get(key) {
                return entry.clone();
            }
            let look = |segment: &Arc<Segment>| {
                let entry = segment.get(key);
                observe(Event::Look { found: entry.is_some() });
                entry.cloned()
            };
            let Some(maplet) = &list.maplet else {
                // These filters never change, so any list will do.
                let hash = Hashed(self.hasher.hash_one(key));
                return list.segments.iter().filter(|segment| segment.may_have(hash)).find_map(look).flatten();
            };
            let slots = maplet.values(key);
            // Whoever changes the maplet for a newer list has published that list before, or is not seen here. So after
            // this fence the second load sees the newer list.
            fence(Ordering::Acquire);
            // This get holds the list, so no other list can have its address.
            if Arc::ptr_eq(&list, &self.list.load()) {
                return list.with_slots(slots).find_map(look).flatten();
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

    /// Bytes of the maplet, or of all filters.
    pub fn filter_bytes(&self) -> usize {
        let list = self.list.load();
        let filters = list.segments.iter().filter_map(|segment| segment.filter.as_ref());
        list.maplet.as_ref().map_or_else(
            || filters.map(|filter| filter.stats().memory_usage).sum(),
            |maplet| maplet.stats().memory_usage,
        )
    }

    /// Makes the active memtable the sealed one, unless a flush that failed has left one.
    pub(crate) fn seal(&self) {
        // Puts wait, and so do gets that have not seen the memtable yet. They find its entries in the list then.
        let mut active = self.active.write().unwrap();
        let list = self.list.load_full();
        if list.sealed.is_empty() {
            let sealed = Arc::new(mem::take(&mut *active));
            self.list.store(Arc::new(List::new(sealed, list.segments.clone(), list.maplet.clone())));
        }
    }

    /// A segment of these entries, with a filter if the strategy says so.
    pub(crate) fn segment(&self, slot: u16, entries: Vec<(Bytes, Entry)>) -> Result<Arc<Segment>, Error> {
        let mut filter = None;
        if self.options.strategy == Strategy::FilterEach {
            let builder = Filter::builder_with_hasher(self.hasher.clone()).capacity(entries.len());
            let built = builder.false_positive_rate(self.options.false_positive_rate).build()?;
            built.insert_batch(entries.iter().map(|(key, _)| &**key))?;
            filter = Some(built);
        }
        Ok(Arc::new(Segment { slot, entries, filter }))
    }

    /// Publishes a list with a new maplet, which is built from the segments for at least this many keys. A store on
    /// disk does the same after a restart.
    pub(crate) fn build_maplet(&self, capacity: usize) -> Result<(), Error> {
        let list = self.list.load_full();
        let maplet = Maplet::builder_with_hasher(self.hasher.clone())
            .capacity(capacity)
            .false_positive_rate(self.options.false_positive_rate)
            .value_bits(usize::BITS - self.options.most_segments.leading_zeros())
            .build()?;
        if maplet.insert_batch(merge(&list.segments).into_iter().map(|(key, _, slot)| (&**key, slot))).is_err() {
            return self.build_maplet(capacity * 2);
        }
        // Gets that hold the old list also hold the old maplet, which stays as it is.
        let maplet = Some(Arc::new(maplet));
        self.list.store(Arc::new(List::new(Arc::clone(&list.sealed), list.segments.clone(), maplet)));
        Ok(())
    }
}
