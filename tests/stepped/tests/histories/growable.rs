//! Histories of a filter that grows and shrinks all the time: a multiset of classes.

use std::iter;

use ccf_steps::model::{Growable, GrowableKey};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::histories::history::{Ask, Diary, Kind, Question, World, histories_of, questions, without};
use crate::histories::room::Room;
use crate::histories::specification::{Answer, Entries, Failure, State};

/// How many classes a world has.
const CLASSES: usize = 6;

impl Kind for Growable {
    type Key = GrowableKey;

    fn world(random: &mut SmallRng) -> World<Self> {
        if random.random_ratio(1, 4) {
            return world_of_the_last_slot(random);
        }
        let key = |class| GrowableKey::new(4 * (class % 2), 1 + 4 * (class / 2 % 2), class / 4);
        let (keys, filter): ([_; CLASSES], _) = (std::array::from_fn(key), Self::new());
        // Most worlds are narrow: up to three classes, and few questions. Two classes can fill their buckets, so the insert of
        // a third one fails.
        let narrow = random.random_ratio(3, 4);
        let used = if narrow { random.random_range(1..=3) } else { random.random_range(1..=CLASSES) };
        let threads = random.random_range(2..=4);
        let mut given = State::default();
        for _ in 0..random.random_range(if narrow { 3..6 } else { 0..8 }) {
            let class = random.random_range(0..used);
            if filter.insert(keys[class]).is_ok() {
                given.entries[class][0] += 1;
            }
        }
        use Ask::*;
        let asked: [&[Ask]; 11] = [
            &[Insert; 3],
            &[Remove; 3],
            &[Contains; 3],
            &[InsertIfAbsent; 2],
            &[Count],
            &[InsertBatch],
            &[ContainsBatch],
            &[RemoveBatch],
            &[Save],
            &[Split; 3],
            &[Merge; 3],
        ];
        let each = if narrow { 9 } else { 24 } / threads;
        let questions = questions(random, threads, each, &asked.concat(), |ask, random| Question {
            ask,
            class: random.random_range(0..used),
            number: 0,
            other: 0,
            twin: false,
        });
        World { filter, keys: keys.into(), room: Room::that_grows(2), longest: None, numbers: 1, given, questions }
    }

    fn key(key: GrowableKey, _: bool) -> GrowableKey {
        key
    }

    fn contains(&self, key: GrowableKey) -> bool {
        self.contains(key)
    }

    fn contains_batch(&self, keys: [GrowableKey; 3]) -> [bool; 3] {
        self.contains_batch(&keys).try_into().expect("as many answers as keys")
    }

    fn insert(&self, key: GrowableKey, _: u64) -> Result<bool, Failure> {
        Ok(self.insert(key).map(|()| true)?)
    }

    fn insert_if_absent(&self, key: GrowableKey, number: u64) -> Answer {
        Answer::InsertIfAbsent(number, self.insert_if_absent(key).map_err(Failure::from))
    }

    fn remove(&self, key: GrowableKey, _: u64) -> bool {
        self.remove(key)
    }

    fn count(&self, key: GrowableKey, _: u64) -> usize {
        self.count(key)
    }

    fn save(&self, keys: &[GrowableKey], begun: &mut dyn FnMut()) -> (u64, Entries) {
        let loaded = self.save_and_load(begun);
        let mut entries = Entries::default();
        keys.iter().zip(&mut entries).for_each(|(&key, entries)| entries[0] = loaded.count(key) as u8);
        (0, entries)
    }

    fn ask(world: &World<Self>, Question { ask, class, .. }: Question, diary: &mut Diary) {
        let (filter, (classes, keys)) = (&world.filter, world.several(class));
        match ask {
            Ask::InsertBatch => diary.write_all(|| {
                let (inserted, error) = filter.insert_batch(&keys);
                let results = iter::repeat_n(Ok(true), inserted).chain(error.map(|error| Err(error.into())));
                iter::zip(classes, results).map(|(class, result)| world.asked(class, Answer::Insert(0, result)))
            }),
            Ask::RemoveBatch => diary.write_all(|| {
                let answers = iter::zip(classes, filter.remove_batch(&keys));
                answers.map(|(class, removed)| world.asked(class, Answer::Remove(0, removed)))
            }),
            Ask::Split => _ = filter.split_if_possible(),
            _ => _ = filter.merge_if_possible(),
        }
    }

    fn audit(&self, held: usize) -> Result<(), String> {
        if self.len() != held { Err(format!("{held} copies, len {}", self.len())) } else { Ok(()) }
    }
}

/// A table of the largest size, in which all keys have the same two buckets, and these have one free slot. Copies of one
/// class come and go. So either there is room, or there is a copy: no `insert_if_absent` may fail.
fn world_of_the_last_slot(random: &mut SmallRng) -> World<Growable> {
    let keys: [_; CLASSES] = std::array::from_fn(|class| GrowableKey::new(0, 1, class));
    let filter = Growable::of_buckets(8);
    let mut given = State::default();
    for class in [0, 0, 1] {
        filter.insert(keys[class]).expect("there is room");
        given.entries[class][0] += 1;
    }
    let asked = [Ask::Insert, Ask::Remove, Ask::InsertIfAbsent];
    let questions =
        questions(random, 2, 5, &asked, |ask, _| Question { ask, class: 2, number: 0, other: 0, twin: false });
    World { filter, keys: keys.into(), room: Room::that_grows(2), longest: None, numbers: 1, given, questions }
}

histories_of!(Growable);

without! {
    random_schedules, in at most 40_000 worlds:
    SplitsUnannounced, MergesUnannounced from 184, LookupIgnoresMoving, LookupWithoutEpoch, WriterWithoutEpoch,
    AddsWithoutGate, TakesWithoutGate, FullThoughPresent from 100
}
without! {
    real_threads, in at most 1_000_000 worlds:
    SplitsUnannounced, LookupWithoutEpoch, AddsWithoutGate
}
