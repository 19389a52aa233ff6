//! Histories of a maplet: a multiset of pairs of a class and a value.

use std::iter;

use ccf_steps::model::{Key, Maplet, ModelLayout, Smallest, Usual};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::histories::history::{Ask, Diary, Kind, Question, World, histories_of, questions, without};
use crate::histories::one_table::audit;
use crate::histories::room::{CLASSES, Room};
use crate::histories::specification::{Answer, Entries, Failure, NUMBERS, State};

struct OfMaplet<L: ModelLayout>(Maplet<L>);

impl<L: ModelLayout> Kind for OfMaplet<L> {
    /// Without a value.
    type Key = Key;

    fn world(random: &mut SmallRng) -> World<Self> {
        // Many worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 2);
        let (room, table, keys) = Room::with(narrow, random, Maplet::new);

        // Full except for a few slots, unless the keys in use leave some free. Or nearly empty, for keys without a
        // value.
        let used = random.random_range(if narrow { 1..=2 } else { 3..=CLASSES });
        let values = random.random_range(2..=NUMBERS);
        let few = random.random_range(0..4);
        let free = if random.random_ratio(1, 3) { room.slots().saturating_sub(few) } else { few };
        let mut given = State::default();
        for _ in 0..room.slots() * 4 {
            let (class, value) = (random.random_range(0..used), random.random_range(0..values));
            let key = keys[class].with(value as u16);
            if table.len() + free < room.slots() && table.insert(key).is_ok() {
                given.entries[class][value] += 1;
            }
        }

        use Ask::*;
        let asked: [&[Ask]; 9] = [
            &[Insert; 3],
            &[Remove; 3],
            &[Replace; 3],
            &[Values; 3],
            &[ValuesBatch],
            &[Contains],
            &[InsertIfAbsent; 2],
            &[Count],
            &[Save],
        ];
        let threads = random.random_range(2..=4);
        let questions = questions(random, threads, 36 / threads, &asked.concat(), |ask, random| Question {
            ask,
            class: random.random_range(0..used),
            number: random.random_range(0..values) as u64,
            other: random.random_range(0..values) as u64,
            twin: random.random(),
        });
        World { filter: Self(table), keys: keys.into(), room, longest: None, numbers: NUMBERS as u64, given, questions }
    }

    fn key(key: Key, twin: bool) -> Key {
        if twin { key.twin() } else { key }
    }

    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: [Key; 3]) -> [bool; 3] {
        self.0.contains_batch(keys)
    }

    fn insert(&self, key: Key, value: u64) -> Result<bool, Failure> {
        Ok(self.0.insert(key.with(value as u16)).map(|()| true)?)
    }

    fn insert_if_absent(&self, key: Key, value: u64) -> Answer {
        Answer::InsertValueIfAbsent(value, self.0.insert_if_absent(key.with(value as u16)).map_err(Failure::from))
    }

    fn remove(&self, key: Key, value: u64) -> bool {
        self.0.remove(key.with(value as u16))
    }

    fn count(&self, key: Key, value: u64) -> usize {
        self.0.count(key.with(value as u16))
    }

    fn save(&self, keys: &[Key], begun: &mut dyn FnMut()) -> (u64, Entries) {
        let image = self.0.save_and_tell(begun);
        let mut entries = Entries::default();
        for (&key, entries) in keys.iter().zip(&mut entries) {
            let values = (0..).zip(entries).take(NUMBERS);
            values.for_each(|(value, copies)| *copies = image.count(key.with(value)) as u8);
        }
        (0, entries)
    }

    fn ask(world: &World<Self>, Question { ask, class, number, other, twin }: Question, diary: &mut Diary) {
        let (table, key) = (&world.filter.0, Self::key(world.keys[class], twin));
        match ask {
            Ask::Values => diary.write(|| world.asked(class, Answer::Values(table.values(key)))),
            Ask::ValuesBatch => diary.write_all(|| {
                let (classes, keys) = world.several(class);
                let found = iter::zip(classes, table.values_batch(keys));
                found.map(|(class, found)| world.asked(class, Answer::Values(found)))
            }),
            _ => diary.write(|| {
                let replaced = table.replace(key.with(number as u16), other as u16);
                world.asked(class, Answer::Replace(number, other, replaced))
            }),
        }
    }

    fn audit(&self, held: usize) -> Result<(), String> {
        audit(&self.0, held)
    }
}

histories_of!(OfMaplet<Smallest>, OfMaplet<Usual>);

without! {
    random_schedules, in at most 40_000 worlds:
    AddValueWithoutBump from 194, AddValueWithoutLock from 12, InsertIfAbsentWithoutLock,
    LookupWithoutVersion from 24, RelocateWithoutBump from 3_792, RemoveWithoutBump from 4_300, ReplaceAddsFirst,
    ReplaceCopiesNothing, ReplaceTakesFirst, ReplaceWithoutBump from 4_739, ReplaceWithoutLock from 123
}
