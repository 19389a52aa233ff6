//! What the soaks of filters with `remove` share: their keys, and the rounds that are the same for both.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter, GrowableInsertError, InsertError};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::rounds::{THREADS, Tally, key, on_all_threads, pick};
use crate::support::{Identity, Raw};

/// The owners of keys: all threads together, each thread, and the look-alikes of others' keys.
pub(crate) const OWNERS: u64 = THREADS + 2;

/// A filter with `remove`.
pub(crate) trait Removable: Debug + Sync {
    type Error: Debug;

    fn contains(&self, key: &Raw) -> bool;
    fn insert(&self, key: &Raw) -> Result<(), Self::Error>;
    fn insert_if_absent(&self, key: &Raw) -> Result<bool, Self::Error>;
    fn remove(&self, key: &Raw) -> bool;
    fn len(&self) -> usize;
    fn clear(&self);
}

macro_rules! removable {
    ($Filter:ident, $Error:ident) => {
        impl Removable for $Filter<Raw, BuildHasherDefault<Identity>> {
            type Error = $Error;

            fn contains(&self, key: &Raw) -> bool {
                $Filter::contains(self, key)
            }

            fn insert(&self, key: &Raw) -> Result<(), $Error> {
                $Filter::insert(self, key)
            }

            fn insert_if_absent(&self, key: &Raw) -> Result<bool, $Error> {
                $Filter::insert_if_absent(self, key)
            }

            fn remove(&self, key: &Raw) -> bool {
                $Filter::remove(self, key)
            }

            fn len(&self) -> usize {
                $Filter::len(self)
            }

            fn clear(&self) {
                $Filter::clear(self);
            }
        }
    };
}

removable!(ConcurrentCuckooFilter, InsertError);
removable!(GrowableCuckooFilter, GrowableInsertError);

/// A filter, and about how many items it will hold.
#[derive(Debug)]
pub(crate) struct Ground<F> {
    pub(crate) seed: u64,
    pub(crate) items: u64,
    pub(crate) filter: F,
}

impl<F: Removable> Ground<F> {
    /// A key of an owner: 0 for the keys of all, 1 to [`THREADS`] for those of a thread, and one more for
    /// look-alikes.
    pub(crate) fn key(&self, owner: u64, index: u64) -> Raw {
        key(self.seed, owner, index)
    }

    #[track_caller]
    pub(crate) fn check_present(&self, key: Raw, tally: &mut Tally) {
        tally.lookups += 1;
        assert!(self.filter.contains(&key), "a present key was missed");
    }

    /// Inserts this many keys, or as many as there is room for.
    pub(crate) fn fill(&self, items: u64, tally: &mut Tally) -> Vec<Raw> {
        let keys = (0..items).map(|index| self.key(0, index));
        keys.take_while(|key| tally.taken(self.filter.insert(key)).is_some()).collect()
    }

    /// Keys that the empty filter `alone` cannot tell apart from this one, as far as a search of 100,000 keys finds
    /// any. Half of them try its two buckets in the opposite order. So they move its copy back and forth when they
    /// come and go.
    pub(crate) fn alike(&self, alone: &F, key: Raw) -> Vec<Raw> {
        alone.insert(&key).expect("it is empty");
        (0..100_000).map(|index| self.key(OWNERS - 1, index)).filter(|other| alone.contains(other)).collect()
    }

    /// The threads race to be the first to add a key. The contested keys are those from number `contested` on;
    /// those below are in before. `taken` counts an insert and returns its result, unless it was refused. Returns
    /// the keys that were added.
    pub(crate) fn race_to_add(
        &self,
        contested: u64,
        tally: &mut Tally,
        taken: impl Fn(Result<bool, F::Error>, &mut Tally) -> Option<bool> + Sync,
    ) -> Vec<Raw> {
        let mut permanent: Vec<_> = (0..contested).map(|index| self.key(0, index)).collect();
        permanent.retain(|key| taken(self.filter.insert_if_absent(key), tally).unwrap_or(false));
        let won = on_all_threads(tally, |id, tally| {
            let mut random = SmallRng::seed_from_u64(self.seed ^ id << 56);
            let mut won = Vec::new();
            let keys = (contested..self.items).map(|index| self.key(0, index));
            for key in keys {
                if let Some(added) = taken(self.filter.insert_if_absent(&key), tally) {
                    self.check_present(key, tally);
                    won.extend(added.then_some(key));
                }
                for key in pick(&permanent, &mut random).into_iter().chain(pick(&won, &mut random)) {
                    self.check_present(key, tally);
                }
            }
            won
        });
        let copies = [permanent, won.concat()].concat();
        let keys: HashSet<_> = copies.iter().map(|key| key.0).collect();
        assert_eq!(keys.len(), copies.len(), "a key was added twice");
        copies
    }

    /// A round in which one thread clears the filter while others insert and remove.
    pub(crate) fn clear_amid_changes(&self) -> Tally {
        let mut tally = Tally::default();
        let old = self.fill(self.items, &mut tally);
        // Each of these may have been added before or after the sweep had passed.
        let fresh = on_all_threads(&mut tally, |id, tally| {
            let mut fresh = Vec::new();
            match id {
                1 => self.filter.clear(),
                2 => old.iter().step_by(2).for_each(|key| {
                    tally.removals += 1;
                    self.filter.remove(key);
                }),
                _ => {
                    let keys = (0..self.items / 4).map(|index| self.key(id, index));
                    fresh.extend(keys.filter(|key| tally.taken(self.filter.insert(key)).is_some()));
                }
            }
            fresh
        });
        let left = self.filter.len();
        let removed = fresh.iter().flatten().filter(|key| self.filter.remove(key)).count();
        tally.removals += fresh.iter().flatten().count() as u64;
        assert_eq!(removed, left, "the length is wrong, or an old key outlived `clear`");
        self.check_empty(&mut tally);
        tally
    }

    /// Looks up all keys that the round may have used, and others, up to a million in all.
    pub(crate) fn check_empty(&self, tally: &mut Tally) {
        assert!(self.filter.len() == 0, "the length is not 0 when all copies are removed");
        let each = (50 * self.items).min(1_000_000 / OWNERS).max(2 * self.items + 2);
        for owner in 0..OWNERS {
            let found = (0..each).any(|index| self.filter.contains(&self.key(owner, index)));
            assert!(!found, "there is a copy that no thread knows of");
        }
        tally.lookups += OWNERS * each;
    }
}
