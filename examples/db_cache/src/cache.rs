//! CONCURRENT: the filter and the store, in step.
//!
//! # What holds
//! Call a key *committed* from the commit that adds it to the commit that removes it.
//!
//! 1. At every moment the filter has a copy of each committed key.
//! 2. Whenever no write is under way, the filter has exactly one copy of each committed key, and no others.
//!
//! By 1, a get for which the filter says "absent" is right: the key was not in the store at that moment. By 2, the
//! filter does not fill up with keys that were deleted long ago. By 2 also, a removal never takes the copy of another
//! key: keys that the filter can't tell apart have a copy each.
//!
//! # The order
//! Each write holds one lock, the *writers' lock*, from beginning to end. (redb has one writer at a time in any case.
//! To put more into each of its commits, pass more changes at a time to [`Cache::apply`].) So of two threads that put
//! the same key, one is first, and the other finds the key present. A write
//!
//! 1. finds out which of its keys are present. Where the filter says "absent" it need not ask the store, by 1;
//! 2. inserts a copy of each key that it will add. If one is refused, it removes those before it, and the write
//!    fails;
//! 3. commits the changes, together with an entry of the log for each key added or removed, in one transaction;
//! 4. removes the copy of each key that it has removed.
//!
//! Before the commit, the filter has more than it needs: the keys that are about to be added. After it too: the keys
//! that were just removed. It never has less, which is 1. At the end each added key has got one copy, and each
//! removed key has lost one, which is 2. If steps 2 and 3 were exchanged, a key would be committed for a moment
//! before the filter has it, and a get in that moment would deny it. And if the filter were full, the put would have
//! happened, but the key could not be found. (A process that dies loses its filter, in whatever order. [`snapshot`]
//! describes what a crash must not do.)
//!
//! If the store refuses the changes, step 2 is undone. If it fails in the commit itself, nobody knows whether the
//! changes are there. Then nothing is removed: the filter has a copy of each key that may be committed, which is 1.
//! But 2 may not hold, so writes are refused until the filter has been rebuilt from what the store really has. A
//! store that panics is treated in the same way.
//!
//! # Readers
//! Readers take no lock of the cache's. They look into the filter, and then, if they must, into the store. A get that
//! begins after a put has returned finds the key: the copy was there before the commit, and the commit came before
//! the return. A get that overlaps a put or a delete finds the state before or after it.
//!
//! [`Cache::rebuild`] fills another filter from a scan, under the writers' lock, and puts it in the place of the old
//! one. The old one is dropped when its last reader is done with it. A get that uses the old filter took it before
//! the exchange, and that filter has all that was committed until then. A put since then overlaps the get.
//!
//! # A full filter
//! If the filter is full, a put fails, and nothing was written. [`Cache::rebuild`] makes room, and so does opening
//! the store with a larger capacity. A `GrowableCuckooFilter` would make room by itself, for some memory and a little
//! time at each lookup. The cache uses the plain filter, because a scan can always rebuild it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::{StableState, Stats};
use example_support::leftovers::delete_partial_files_of;

use crate::error::{CacheError, Opened};
use crate::filter::{self, Filter};
use crate::options::Options;
use crate::reader::Reader;
use crate::store::{ApplyError, Change, Logged, Membership, Store};
use crate::{restore, snapshot};

/// What a call of [`Cache::apply`] has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// How many keys the store has that it did not have before.
    pub added: usize,
    /// How many keys the store no longer has.
    pub removed: usize,
}

/// A store and, in front of it, a filter that knows which keys are not in it. Threads share it by reference.
///
/// The [module](self) describes how the two are kept in step.
pub struct Cache<S> {
    store: S,
    hasher: StableState,
    options: Options,
    filter: ArcSwap<Filter>,
    writers: Mutex<Writers>,
    /// Held while a snapshot is made, so that there is one at a time.
    snapshots: Mutex<()>,
    opened: Opened,
}

/// What the writers' lock guards besides the order of the writes.
#[derive(Debug)]
struct Writers {
    /// Whether the filter is known to have exactly what the store has.
    in_step: bool,
}

impl<S: Store> Cache<S> {
    /// Opens a store. Loads the filter from its snapshot, or, if that is not possible for any reason, fills it from a
    /// scan of all keys. [`opened`](Self::opened) says which. It never begins with an empty filter.
    ///
    /// The store must not be changed except through this cache. No other cache may have the same file for snapshots.
    ///
    /// # Errors
    /// If the store fails, or the filter can't be built.
    pub fn open(store: S, options: Options) -> Result<Self, CacheError<S::Error>> {
        if let Some(snapshot) = &options.snapshot {
            delete_partial_files_of(snapshot);
        }
        let hasher = StableState::with_key(store.hash_key().map_err(CacheError::Store)?);
        let (filter, opened) = match restore::load(&store, &hasher, &options)? {
            Ok((filter, replayed)) => (filter, Opened::FromSnapshot { replayed }),
            Err(reason) => {
                let filter = filter::scan(&store, &hasher, &options)?;
                let keys = filter.len();
                (filter, Opened::Rebuilt { keys, reason })
            }
        };
        Ok(Self {
            store,
            hasher,
            options,
            filter: ArcSwap::from_pointee(filter),
            writers: Mutex::new(Writers { in_step: true }),
            snapshots: Mutex::new(()),
            opened,
        })
    }

    /// Where [`open`](Self::open) got the filter from.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The store. Only read from it: changes must go through the cache.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store without the filter. Makes no snapshot.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The filter as it is now. Only look at it: changes must go through the cache. [`rebuild`](Self::rebuild) puts
    /// another one in its place.
    pub fn filter(&self) -> Arc<Filter> {
        self.filter.load_full()
    }

    /// The filter's statistics. The counts of recorded negatives and false positives start at 0 in each new filter.
    pub fn stats(&self) -> Stats {
        self.filter.load().stats()
    }

    /// The value of a key.
    ///
    /// Where gets are frequent, give each thread a [`reader`](Self::reader).
    ///
    /// # Errors
    /// If the store was asked, and failed.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError<S::Error>> {
        self.reader().get(key)
    }

    /// A reader for the gets of one thread. It counts the negatives itself, and adds them to the filter's count now
    /// and then.
    pub fn reader(&self) -> Reader<'_, S> {
        Reader::new(&self.store, &self.hasher, &self.filter)
    }

    /// Gives the key this value: `true` if there was no such key before.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, CacheError<S::Error>> {
        Ok(self.apply(&[Change::Put { key, value }])?.added == 1)
    }

    /// Removes the key and its value: `true` if there was such a key.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn delete(&self, key: &[u8]) -> Result<bool, CacheError<S::Error>> {
        Ok(self.apply(&[Change::Delete { key }])?.removed == 1)
    }

    /// Makes all of the changes, in their order, in one transaction of the store. They are durable when it returns.
    ///
    /// Each transaction is synced to the disk once, however many changes it has. So a thousand changes are much
    /// faster in one call than in a thousand calls.
    ///
    /// # Errors
    /// - [`CacheError::Full`] if the filter has no room for a new key, [`CacheError::Store`] if the store fails, and
    ///   [`CacheError::OutOfStep`] after an earlier failure: nothing was written;
    /// - [`CacheError::Unknown`] if the commit failed: all was written, or nothing.
    pub fn apply(&self, changes: &[Change<'_>]) -> Result<Applied, CacheError<S::Error>> {
        let mut writers = self.in_step()?;
        let filter = self.filter.load();
        let log = self.net_changes(&filter, changes).map_err(CacheError::Store)?;
        if log.is_empty() && changes.iter().all(|change| matches!(change, Change::Delete { .. })) {
            return Ok(Applied { added: 0, removed: 0 });
        }
        let hashes = |which: Membership| {
            log.iter().filter(move |entry| entry.membership == which).map(|entry| self.hasher.hash_bytes(entry.key))
        };
        let added: Vec<u64> = hashes(Membership::Added).collect();
        let removed: Vec<u64> = hashes(Membership::Removed).collect();

        // From here to the end, a panic of the store leaves the filter with more than it needs, never less.
        writers.in_step = false;
        if let Err(refused) = filter.insert_hash_batch(added.iter().copied()) {
            remove_all(&filter, &added[..refused.inserted]);
            writers.in_step = true;
            return Err(CacheError::Full(refused.error));
        }
        match self.store.apply(changes, &log) {
            Ok(()) => {}
            Err(ApplyError::NotApplied(error)) => {
                remove_all(&filter, &added);
                writers.in_step = true;
                return Err(CacheError::Store(error));
            }
            Err(ApplyError::Unknown(error)) => return Err(CacheError::Unknown(error)),
        }
        remove_all(&filter, &removed);
        writers.in_step = true;
        Ok(Applied { added: added.len(), removed: removed.len() })
    }

    /// Fills a filter with room for `capacity` keys, or more if the store has more, from a scan of all keys. Puts it
    /// in the place of the present one. For a filter that is full, and after a failed commit.
    ///
    /// Writers wait meanwhile, and readers go on. Both filters are in memory for that time.
    ///
    /// # Errors
    /// If the store fails, or the filter can't be built. The filter remains what it was.
    pub fn rebuild(&self, capacity: usize) -> Result<(), CacheError<S::Error>> {
        let mut writers = self.lock();
        let filter = filter::scan(&self.store, &self.hasher, &Options { capacity, ..self.options.clone() })?;
        self.filter.store(Arc::new(filter));
        writers.in_step = true;
        Ok(())
    }

    /// Saves the filter to the file for snapshots, from which the next [`open`](Self::open) will load it.
    ///
    /// Readers and writers go on meanwhile. Writers wait at the beginning, for some microseconds.
    ///
    /// # Errors
    /// If the file can't be written, if the store fails, or after a failed commit. The earlier snapshot remains good
    /// until there is a new one.
    pub fn snapshot(&self) -> Result<(), CacheError<S::Error>> {
        let path = self.options.snapshot.as_deref().ok_or(CacheError::NoSnapshotFile)?;
        let failed = |error| CacheError::Snapshot { path: path.to_owned(), error };
        let _one_at_a_time = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let id = snapshot::new_id().map_err(failed)?;
        let filter;
        let (sequence, save) = {
            let _no_writes = self.in_step()?;
            filter = self.filter();
            let sequence = self.store.sequence().map_err(CacheError::Store)?;
            (sequence, filter.begin_save().map_err(failed)?)
        };
        self.store.announce(id, sequence).map_err(CacheError::Store)?;
        snapshot::write(save, path, id, sequence).map_err(failed)?;
        self.store.settle(id).map_err(CacheError::Store)
    }

    /// The net effect of the changes: each key that they add or remove. Needs the writers' lock.
    fn net_changes<'c>(&self, filter: &Filter, changes: &[Change<'c>]) -> Result<Vec<Logged<'c>>, S::Error> {
        // Whether each key is present before the changes and after those seen so far.
        let mut keys: HashMap<&[u8], (bool, bool)> = HashMap::with_capacity(changes.len());
        for change in changes {
            let key = change.key();
            let now = match keys.entry(key) {
                Entry::Occupied(seen) => &mut seen.into_mut().1,
                Entry::Vacant(new) => {
                    let present = filter.contains_hash(self.hasher.hash_bytes(key)) && self.store.contains(key)?;
                    &mut new.insert((present, present)).1
                }
            };
            *now = matches!(change, Change::Put { .. });
        }
        let net = keys.into_iter().filter_map(|(key, fate)| match fate {
            (false, true) => Some(Logged { key, membership: Membership::Added }),
            (true, false) => Some(Logged { key, membership: Membership::Removed }),
            _ => None,
        });
        Ok(net.collect())
    }

    /// The writers' lock. If its last holder panicked, `in_step` is as it was at the panic.
    fn lock(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_step(&self) -> Result<MutexGuard<'_, Writers>, CacheError<S::Error>> {
        let writers = self.lock();
        if writers.in_step { Ok(writers) } else { Err(CacheError::OutOfStep) }
    }
}

/// Removes a copy for each hash. Each copy is there: this write inserted it, or it belongs to a committed key.
fn remove_all(filter: &Filter, hashes: &[u64]) {
    for &hash in hashes {
        let removed = filter.remove_hash(hash);
        debug_assert!(removed, "a key of the store was not in the filter");
    }
}

impl<S: fmt::Debug> fmt::Debug for Cache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("store", &self.store)
            .field("filter", &*self.filter.load())
            .field("options", &self.options)
            .field("writers", &self.writers)
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}
