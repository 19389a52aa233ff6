//! Between any two steps of a flush or compaction, gets are right, and a process that dies there has lost nothing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::exact::{Exact, Moment, Watch};
use super::{assert_exact, exact, scratch, small};
use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::options::{MapMaker, Strategy};
use crate::store::Store;

type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn key(number: u32) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Changes two thirds of the keys, other ones each turn: puts some anew and deletes some.
fn change_keys(store: &Store, model: &Mutex<Model>, turn: u32) -> Result<(), Error> {
    for number in (0..24).filter(|number| !(number + turn).is_multiple_of(3)) {
        let value = (number * 5 + turn * 7) % 4;
        let value = (value != 0).then(|| format!("{turn}: {value}").into_bytes());
        match &value {
            Some(value) => store.put(&key(number), value)?,
            None => store.delete(&key(number))?,
        }
        model.lock().unwrap().insert(key(number), value);
    }
    Ok(())
}

/// The keys for which a get returns a wrong answer.
fn wrong_keys(store: &Store, model: &Model) -> Vec<String> {
    let get = |key: &[u8]| store.get(key).expect("a get");
    let wrong = model.iter().filter(|(key, value)| get(key) != **value);
    let wrong: Vec<String> = wrong.map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
    assert_eq!(get(b"no such key"), None);
    wrong
}

thread_local! {
    /// Whether this thread runs the hook already. Then its own gets need not be watched.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Flushes and compacts, and gets each key before and after each change of the map. Returns the wrong answers, and
/// how often all keys were read.
fn check_between_steps(noise: u64, faults: Faults) -> (Vec<String>, usize) {
    let directory = scratch();
    let watch = Arc::new(Watch::default());
    let store = Arc::new(Store::open_with(directory.path(), small(exact(noise, &watch)), faults).expect("a store"));
    let model = Arc::new(Mutex::new(Model::new()));
    let (wrong, checks) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    {
        let (store, model, wrong, checks) =
            (Arc::downgrade(&store), Arc::clone(&model), Arc::clone(&wrong), Arc::clone(&checks));
        watch.tell(move |moment| {
            if moment == Moment::Asked || ASKING.replace(true) {
                return;
            }
            let store: Arc<Store> = Weak::upgrade(&store).expect("it is in use");
            let found = wrong_keys(&store, &model.lock().unwrap());
            wrong.lock().unwrap().extend(found.into_iter().map(|key| format!("{moment:?}: {key}")));
            checks.fetch_add(1, Ordering::Relaxed);
            ASKING.set(false);
        });
    }
    let runs = [0..2, 1..3, 0..3, 2..4, 0..1];
    for turn in 0..14 {
        change_keys(&store, &model, turn).unwrap();
        store.flush().unwrap();
        if turn % 2 == 1 {
            store.compact(runs[turn as usize / 2 % runs.len()].clone()).unwrap();
        }
    }
    store.compact(0..store.segments().len()).unwrap();
    let at_the_end = wrong_keys(&store, &model.lock().unwrap());
    let mut wrong = wrong.lock().unwrap().clone();
    wrong.extend(at_the_end.into_iter().map(|key| format!("at the end: {key}")));
    assert_exact(&store);
    (wrong, checks.load(Ordering::Relaxed))
}

#[test]
fn each_key_is_right_between_any_two_steps() {
    for noise in [0, 30, 100] {
        let (wrong, checks) = check_between_steps(noise, Faults::default());
        assert_eq!(wrong, Vec::<String>::new(), "with {noise} % of the slots shown without need");
        assert!(checks > 500, "{checks} checks");
    }
}

#[test]
fn wrong_orders_of_steps_are_noticed() {
    for (fault, moments, noise) in [
        (Fault::PublishBeforeInsert, &["Insert", "Replace"][..], 0),
        (Fault::ReplaceBeforePublish, &["Replace"], 0),
        // The pair of a deletion is gone, so it is enough that another key looks like an old value's.
        (Fault::RemoveBeforeRetire, &["Remove"], 30),
    ] {
        let (wrong, _) = check_between_steps(noise, Faults::only(fault));
        let elsewhere = wrong.iter().find(|wrong| !moments.iter().any(|moment| wrong.starts_with(moment)));
        assert_eq!(elsewhere, None, "{fault:?} is something else");
        assert!(!wrong.is_empty(), "{fault:?} was not noticed");
    }
}

/// A get that loads the list before the list is replaced and its slot is given to another segment. Returns what the
/// get answers, and how often it began again.
fn get_while_a_slot_is_given_away(faults: Faults) -> (Option<Vec<u8>>, u64) {
    let directory = scratch();
    let watch = Arc::new(Watch::default());
    let store = Arc::new(Store::open_with(directory.path(), small(exact(0, &watch)), faults).unwrap());
    store.put(b"key", b"value").unwrap();
    store.flush().unwrap();
    store.put(b"other", b"value").unwrap();
    store.flush().unwrap();
    let (other, once) = (Arc::new(OnceLock::<Weak<Store>>::new()), AtomicBool::new(false));
    other.set(Arc::downgrade(&store)).unwrap();
    watch.tell(move |moment| {
        if moment != Moment::Asked || once.swap(true, Ordering::Relaxed) {
            return;
        }
        // The get has loaded its list, and has not asked the map yet. The key moves out of slot 0, which the list
        // knows...
        let store = other.get().and_then(Weak::upgrade).expect("it is in use");
        assert_eq!(slots(&store), [1, 0]);
        assert!(store.compact(1..2).unwrap());
        assert_eq!(slots(&store), [1, 2]);
        // ...and slot 0 is given to another segment.
        store.put(b"third", b"value").unwrap();
        assert!(store.flush().unwrap());
        assert_eq!(slots(&store), [0, 1, 2]);
        // Now the key is in slot 1, which the list has too.
        assert!(store.compact(1..2).unwrap());
        assert!(store.compact(2..3).unwrap());
        assert_eq!(slots(&store), [0, 3, 1]);
    });
    let mut looks = crate::Looks::default();
    let value = store.get_counting(b"key", &mut looks).unwrap();
    (value, looks.again)
}

fn slots(store: &Store) -> Vec<u16> {
    store.segments().iter().map(|segment| segment.slot).collect()
}

#[test]
fn a_get_notices_that_its_list_is_old() {
    assert_eq!(get_while_a_slot_is_given_away(Faults::default()), (Some(b"value".to_vec()), 1));
    // The control: without the second load, the get follows slot 1 to the segment that had it before.
    assert_eq!(get_while_a_slot_is_given_away(Faults::only(Fault::NoSecondLook)), (None, 0));
}

/// Opens a store, changes keys, flushes and compacts until the map is asked for a change the `nth` time, and dies
/// there. Returns `None` if there are fewer changes.
fn die_at(nth: usize, directory: &Path, faults: Faults) -> Option<Model> {
    let watch = Arc::new(Watch::default());
    let left = AtomicUsize::new(nth);
    watch.tell(move |moment| {
        if moment != Moment::Asked && left.fetch_sub(1, Ordering::Relaxed) == 0 {
            panic::resume_unwind(Box::new("killed"));
        }
    });
    let store = Store::open_with(directory, small(exact(0, &watch)), faults).unwrap();
    let model = Mutex::new(Model::new());
    let died = panic::catch_unwind(AssertUnwindSafe(|| {
        for turn in 0..3 {
            change_keys(&store, &model, turn).unwrap();
            store.flush().unwrap();
        }
        store.compact(1..3).unwrap();
        store.compact(0..2).unwrap();
    }));
    died.is_err().then(|| {
        assert!(matches!(store.flush(), Err(Error::Halted)), "a flush does not go on from the middle");
        assert_eq!(wrong_keys(&store, &model.lock().unwrap()), Vec::<String>::new());
        store.put(b"late", b"put").unwrap();
        let mut model = model.into_inner().unwrap();
        model.insert(b"late".to_vec(), Some(b"put".to_vec()));
        model
    })
}

#[test]
fn nothing_is_lost_wherever_the_process_dies() {
    let (mut deaths, mut leftovers) = (0, 0);
    for nth in (0..).step_by(7) {
        let directory = scratch();
        let Some(model) = die_at(nth, directory.path(), Faults::default()) else { break };
        deaths += 1;
        let watch = Arc::new(Watch::default());
        let store = Store::open(directory.path(), small(exact(0, &watch))).unwrap();
        leftovers += store.opened().deleted;
        assert_eq!(wrong_keys(&store, &model), Vec::<String>::new(), "opened again, {nth}");
        store.flush().unwrap();
        assert_exact(&store);
        store.compact(0..store.segments().len()).unwrap();
        assert_eq!(wrong_keys(&store, &model), Vec::<String>::new(), "compacted, {nth}");
    }
    assert!(deaths >= 20 && leftovers >= 10, "{deaths} deaths, {leftovers} leftovers");
}

#[test]
fn a_log_that_is_deleted_too_early_is_noticed() {
    let directory = scratch();
    let model = die_at(5, directory.path(), Faults::only(Fault::LogBeforeManifest)).expect("it dies");
    let store = Store::open(directory.path(), small(exact(0, &Arc::default()))).unwrap();
    assert_ne!(wrong_keys(&store, &model), Vec::<String>::new());
}

#[test]
fn a_pair_that_was_not_inserted_is_not_touched() {
    // The map panics if a pair is replaced or removed that it does not have.
    let trusting = |noise| {
        let faults = Faults::only(Fault::TrustTheMap);
        panic::catch_unwind(AssertUnwindSafe(|| check_between_steps(noise, faults))).is_err()
    };
    assert!(trusting(30));
    // If it shows no slot without need, it can be trusted.
    assert!(!trusting(0));
}

#[test]
fn a_key_in_all_segments_has_one_pair() {
    let directory = scratch();
    let store = Store::open(directory.path(), small(exact(30, &Arc::default()))).unwrap();
    for turn in 0_u32..20 {
        store.put(b"hot", &turn.to_le_bytes()).unwrap();
        store.put(&turn.to_le_bytes(), b"cold").unwrap();
        store.flush().unwrap();
        assert_eq!(store.get(b"hot").unwrap().as_deref(), Some(&turn.to_le_bytes()[..]));
        assert_eq!(store.list.load().map.as_ref().unwrap().pairs(), turn as usize + 2);
    }
    assert_eq!(store.segments().len(), 12, "as many as there may be");
    assert!((0_u32..20).all(|turn| store.get(&turn.to_le_bytes()).unwrap().is_some()));
}

#[test]
fn a_refused_insert_is_undone_and_the_map_made_anew() {
    let directory = scratch();
    let made = AtomicUsize::new(0);
    // The map says that it has room for more, and has not.
    let maker = MapMaker(Arc::new(move |_| {
        let room = if made.fetch_add(1, Ordering::Relaxed) == 0 { 30 } else { usize::MAX };
        Box::new(Exact::new(20, room, Arc::default()))
    }));
    let store = Store::open(directory.path(), small(Strategy::Custom(maker))).unwrap();
    for number in 0_u32..80 {
        store.put(&number.to_le_bytes(), b"value").unwrap();
        if number % 20 == 19 {
            store.put(b"hot", &number.to_le_bytes()).unwrap();
            store.flush().unwrap();
            assert_eq!(store.get(b"hot").unwrap().as_deref(), Some(&number.to_le_bytes()[..]));
        }
    }
    assert_eq!(store.list.load().map.as_ref().unwrap().pairs(), 81);
    assert!((0_u32..80).all(|number| store.get(&number.to_le_bytes()).unwrap().is_some()));
    assert_eq!(store.segments().len(), 4);
}

#[test]
fn files_of_merged_segments_go_with_their_last_reader() {
    let directory = scratch();
    let store = Store::open(directory.path(), small(Strategy::Maplet)).unwrap();
    for number in 0_u32..3 {
        store.put(&number.to_le_bytes(), b"value").unwrap();
        store.flush().unwrap();
    }
    let there = || (0..5).filter(|number| store.engine.path(*number).exists()).collect::<Vec<_>>();
    let reader = store.list.load_full();
    store.compact(0..2).unwrap();
    assert_eq!(there(), [0, 1, 2, 3]);
    assert!(reader.segments()[0].get(&2_u32.to_le_bytes()).unwrap().is_some());
    drop(reader);
    assert_eq!(there(), [0, 3]);
}
