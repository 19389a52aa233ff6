//! A map that knows its pairs exactly. It notices what must not be done to a maplet, and makes false positives on
//! demand.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};

use crate::slots::SlotMap;

/// Slots that are shown at random are below this number.
const SLOTS: u16 = 16;

/// A moment before or after an operation of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Asked,
    Insert,
    Replace,
    Remove,
}

type Hook = Box<dyn Fn(Moment) + Send + Sync>;

/// Calls a hook for each operation of a map. A panic in the hook is as if the process had died there.
#[derive(Default)]
pub(super) struct Watch(OnceLock<Hook>);

impl Watch {
    pub(super) fn tell(&self, hook: impl Fn(Moment) + Send + Sync + 'static) {
        assert!(self.0.set(Box::new(hook)).is_ok(), "one is enough");
    }

    fn at(&self, moment: Moment) {
        if let Some(hook) = self.0.get() {
            hook(moment);
        }
    }
}

pub(super) struct Exact {
    pairs: Mutex<HashMap<Vec<u8>, Vec<u16>>>,
    noise: u64,
    /// More pairs than this are refused, although `capacity` is larger.
    room: usize,
    random: AtomicU64,
    watch: Arc<Watch>,
}

impl Exact {
    pub(super) fn new(noise: u64, room: usize, watch: Arc<Watch>) -> Self {
        Self { pairs: Mutex::default(), noise, room, random: AtomicU64::new(1), watch }
    }

    /// Changes one key's slots. Calls the hook before and after, without holding a lock, so that the hook may ask
    /// the map.
    fn change<R>(&self, moment: Moment, key: &[u8], change: impl FnOnce(&mut Vec<u16>) -> R) -> R {
        self.watch.at(moment);
        let result = {
            let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
            let slots = pairs.entry(key.to_vec()).or_default();
            let result = change(slots);
            if slots.is_empty() {
                pairs.remove(key);
            }
            result
        };
        self.watch.at(moment);
        result
    }

    fn is_noise(&self) -> bool {
        let mut random = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        random = (random ^ (random >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (random >> 32) % 100 < self.noise
    }
}

impl SlotMap for Exact {
    fn slots(&self, key: &[u8], visit: &mut dyn FnMut(u16)) {
        self.watch.at(Moment::Asked);
        let slots = self.pairs.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default();
        slots.into_iter().for_each(&mut *visit);
        (0..SLOTS).filter(|_| self.is_noise()).for_each(visit);
    }

    fn insert_all(&self, keys: &[&[u8]], slot: u16) -> Result<(), InsertError> {
        for (index, key) in keys.iter().enumerate() {
            let room = self.pairs() < self.room;
            self.change(Moment::Insert, key, |slots| {
                assert!(slots.is_empty(), "a key has one pair");
                slots.extend(room.then_some(slot));
            });
            if !room {
                for key in &keys[..index] {
                    self.remove(key, slot);
                }
                return Err(refused());
            }
        }
        Ok(())
    }

    fn replace(&self, key: &[u8], old: u16, new: u16) -> bool {
        self.change(Moment::Replace, key, |slots| {
            let old = slots.iter().position(|slot| *slot == old).expect("what is replaced was inserted");
            slots[old] = new;
        });
        true
    }

    fn remove(&self, key: &[u8], slot: u16) -> bool {
        self.change(Moment::Remove, key, |slots| {
            slots.swap_remove(slots.iter().position(|other| *other == slot).expect("what is removed was inserted"));
        });
        true
    }

    fn pairs(&self) -> usize {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner).values().map(Vec::len).sum()
    }

    fn capacity(&self) -> usize {
        usize::MAX / 4
    }

    fn memory_usage(&self) -> usize {
        0
    }

    fn save(&self, _: &Path, _: u64, _: Vec<u8>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl std::fmt::Debug for Exact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exact")
    }
}

/// The error of a filter that has too many copies of a key.
fn refused() -> InsertError {
    let filter = ConcurrentCuckooFilter::<u8>::with_capacity(10);
    (0..100).find_map(|_| filter.insert(&0).err()).expect("a hundred copies are too many")
}
