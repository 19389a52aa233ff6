//! Between any two steps of a flush or a compaction each key is right. In other orders of the steps it is not.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{is_exact, look_alikes, small};
use crate::maintenance::{Compaction, Flush};
use crate::segment::Bytes;
use crate::store::{Event, Hasher, Options, Store, Strategy};

type Step<Of> = fn(&Of, &dyn Fn());

fn flush_steps<'a>() -> [Step<Flush<'a>>; 3] {
    [|flush, changed| flush.insert_pairs(changed).unwrap(), Flush::move_pairs, Flush::list]
}

fn compaction_steps<'a>() -> [Step<Compaction<'a>>; 4] {
    use Compaction as C;
    [C::list_beside_inputs, C::move_pairs, C::unlist_inputs, C::remove_pairs]
}

/// All ways to take some of so many steps, each at most once.
fn arrangements(steps: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let mut next = 0;
    while let Some(order) = all.get(next).cloned() {
        all.extend((0..steps).filter(|step| !order.contains(step)).map(|step| [&order[..], &[step]].concat()));
        next += 1;
    }
    all
}

/// Keys in groups of four look-alikes, and the hasher of small stores that can't tell them apart.
struct Keys {
    keys: Vec<Bytes>,
    hasher: Hasher,
}

impl Keys {
    fn new() -> Self {
        let hasher = Hasher::default();
        Self { keys: look_alikes(&small(Strategy::Maplet), &hasher, 6, 4).concat(), hasher }
    }

    fn store(&self) -> Store {
        Store::with_hasher(small(Strategy::Maplet), self.hasher.clone()).unwrap()
    }

    /// Puts, deletes, flushes and compacts, and gets each key after each change. Returns how often all keys were
    /// right, or the first thing that is wrong.
    fn check(
        &self,
        flush: impl Fn(&Flush<'_>, &dyn Fn()),
        compact: impl Fn(&Compaction<'_>, &dyn Fn()),
    ) -> Result<usize, String> {
        let store = self.store();
        let mut model = BTreeMap::new();
        let mut random = SmallRng::seed_from_u64(0);
        let checks = Cell::new(0);
        for turn in 0..40_u8 {
            for key in &self.keys {
                if random.random_ratio(1, 2) {
                    let value = random.random_ratio(1, 2).then(|| Bytes::from([turn]));
                    value.as_ref().map_or_else(|| store.delete(key), |value| store.put(key, value));
                    model.insert(key, value);
                }
            }
            let wrong = Cell::new(None);
            let changed = || {
                checks.set(checks.get() + 1);
                let found = model.iter().position(|(key, value)| store.get(key) != *value);
                wrong.set(wrong.take().or(found));
            };
            let result = |done: bool| match wrong.get() {
                Some(key) => Err(format!("key {key} is wrong in turn {turn}")),
                None if done && is_exact(&store) => Ok(()),
                None => Err(format!("turn {turn} is not complete")),
            };

            store.seal();
            flush(&Flush::write(&store).unwrap(), &changed);
            result(store.list.load().sealed.is_empty())?;

            let before = store.list.load_full();
            if before.segments.len() > 3 {
                let length = random.random_range(1..=3);
                let start = random.random_range(0..=before.segments.len() - length);
                let run = start..start + length;
                compact(&Compaction::write(&store, run.clone()).unwrap(), &changed);
                let after = store.list.load();
                let listed = |input| after.segments.iter().any(|segment| Arc::ptr_eq(segment, input));
                result(!before.segments[run].iter().any(listed))?;
            }
        }
        Ok(checks.get())
    }
}

#[test]
fn each_key_is_right_between_any_two_steps() {
    let flush = |flush: &Flush<'_>, changed: &dyn Fn()| flush.carry_out(changed).unwrap();
    let checks = Keys::new().check(flush, |compaction, changed| compaction.carry_out(changed)).unwrap();
    assert!(checks > 500, "{checks} checks");
}

#[test]
fn any_other_order_of_a_compaction_is_noticed() {
    let keys = Keys::new();
    for order in arrangements(4) {
        let compact = |compaction: &Compaction<'_>, changed: &dyn Fn()| {
            order.iter().for_each(|step| compaction_steps()[*step](compaction, changed));
        };
        let result = keys.check(|flush, changed| flush.carry_out(changed).unwrap(), compact);
        assert_eq!(result.is_ok(), order == [0, 1, 2, 3], "{order:?}");
        // If no step is left out, a get returns a wrong answer.
        assert!(order.len() < 4 || result.map_or_else(|wrong| wrong.starts_with("key"), |_| true), "{order:?}");
    }
}

#[test]
fn any_order_of_a_flush_that_does_not_end_with_the_list_is_noticed() {
    let keys = Keys::new();
    for order in arrangements(3) {
        let flush = |flush: &Flush<'_>, changed: &dyn Fn()| {
            order.iter().for_each(|step| flush_steps()[*step](flush, changed));
        };
        let result = keys.check(flush, |compaction, changed| compaction.carry_out(changed));
        assert_eq!(result.is_ok(), order.len() == 3 && order[2] == 2, "{order:?}");
    }
}

#[test]
fn a_flush_that_trusts_the_maplet_makes_a_get_miss_another_key() {
    let look_alikes = Keys::new();
    let keys = &look_alikes.keys;
    for trust in [false, true] {
        let store = look_alikes.store();
        flush(&store, &[&keys[0]]);
        store.put(&keys[1], b"value");
        store.seal();
        let mut flush = Flush::write(&store).unwrap();
        assert_eq!((&flush.new[..], &flush.moved[..]), (&keys[1..2], &[][..]));
        if trust {
            (flush.new, flush.moved) = (vec![], vec![(keys[1].clone(), 0)]);
        }
        flush.carry_out(&|| ()).unwrap();
        assert_eq!(store.get(&keys[0]).is_none(), trust);
    }
}

/// Puts these keys and flushes them.
fn flush(store: &Store, keys: &[&[u8]]) {
    keys.iter().for_each(|key| store.put(key, b"value"));
    assert!(store.flush().unwrap());
}

#[test]
fn a_get_notices_that_its_list_is_old() {
    // The rate is so low that no other slot is shown.
    let store = Store::new(Options::new(Strategy::Maplet)).unwrap();
    flush(&store, &[b"key"]);
    flush(&store, &[b"other"]);
    let old = store.list.load_full();
    let mut loads = 0;
    let value = store.get_observed(b"key", |event| {
        loads += usize::from(event == Event::List);
        if (event, loads) == (Event::List, 1) {
            // The key moves from slot 0 to slot 2, and slot 0 is given to another segment. Then "other" moves out of
            // slot 1, and the key moves into it.
            store.compact(1..2).unwrap();
            flush(&store, &[b"third"]);
            store.compact(1..2).unwrap();
            store.compact(2..3).unwrap();
        }
    });
    assert_eq!((value.as_deref(), loads), (Some(&b"value"[..]), 2));
    // The control: the old list has slot 1, but another segment there.
    let slots = old.maplet.as_ref().unwrap().values(b"key");
    assert!(slots.contains(1) && old.segments.iter().any(|segment| segment.slot == 1));
    assert!(old.with_slots(slots).all(|segment| segment.get(b"key").is_none()));
}

#[test]
fn pairs_that_are_refused_are_undone_and_a_larger_maplet_is_built() {
    let options = Options { capacity: 20, ..small(Strategy::Maplet) };
    let hasher = Hasher::default();
    // The two buckets of a key have at most twelve slots.
    let keys = look_alikes(&options, &hasher, 1, 14).concat();
    let store = Store::with_hasher(options, hasher).unwrap();
    flush(&store, &[b"hot", b"cold"]);
    let maplet = store.list.load().maplet.clone().unwrap();
    keys.iter().for_each(|key| store.put(key, b"value"));
    store.put(b"hot", b"new");
    store.seal();
    assert!(Flush::write(&store).unwrap().insert_pairs(&|| ()).is_err());
    assert!(maplet.len() == 2 && is_exact(&store), "{}", maplet.len());
    // A compaction leaves alone what a flush has failed to write.
    assert!(store.compact(0..1).unwrap());
    assert_eq!(store.get(b"hot").as_deref(), Some(&b"new"[..]));
    assert!(store.flush().unwrap());
    let larger = store.list.load().maplet.clone().unwrap();
    assert!(larger.len() == 16 && larger.capacity() > maplet.capacity() && is_exact(&store), "{larger:?}");
    assert!(keys.iter().all(|key| store.get(key).is_some()));
    assert_eq!(store.get(b"hot").as_deref(), Some(&b"new"[..]));
}
