//! Histories of one table: a multiset of classes.

use ccf_steps::model::{Key, ModelLayout, Smallest, Table, Usual};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::histories::history::{Ask, Diary, Kind, Question, World, histories_of, questions, without};
use crate::histories::room::{CLASSES, Room};
use crate::histories::specification::{Answer, Entries, NUMBERS, Refusal, State};
use crate::histories::values;

/// A table, whose slots carry values or not.
pub(crate) struct Tabled<L, const VALUES: bool>(pub(crate) Table<L>);

impl<L: ModelLayout + 'static, const VALUES: bool> Tabled<L, VALUES> {
    fn pair(key: Key, value: u64) -> Key {
        if VALUES { key.with(value as u16) } else { key }
    }

    fn world_without_values(random: &mut SmallRng) -> World<Self> {
        // Some worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 3);
        let (room, table, keys) = Room::with::<L>(narrow, random, Table::new);

        // Full except for a few slots, unless the keys in use leave some free.
        let used = random.random_range(if narrow { 1..=2 } else { 3..=CLASSES });
        let free = random.random_range(0..4);
        let mut given = State::default();
        for _ in 0..room.slots() * 4 {
            let class = random.random_range(0..used);
            if table.len() + free < room.slots() && table.insert(keys[class]).is_ok() {
                given.entries[class][0] += 1;
            }
        }

        use Ask::*;
        let asked: [&[Ask]; 7] =
            [&[Insert; 3], &[Remove; 3], &[Contains; 2], &[ContainsBatch], &[InsertIfAbsent], &[Count], &[Save]];
        let threads = random.random_range(2..=4);
        let questions = questions(random, threads, 36 / threads, &asked.concat(), |ask, random| Question {
            ask,
            class: random.random_range(0..used),
            number: 0,
            other: 0,
            twin: random.random(),
        });
        World { filter: Self(table), keys: keys.into(), room, longest: None, numbers: 1, given, questions }
    }
}

impl<L: ModelLayout + 'static, const VALUES: bool> Kind for Tabled<L, VALUES> {
    /// Without a value.
    type Key = Key;

    fn world(random: &mut SmallRng) -> World<Self> {
        if VALUES { values::world(random) } else { Self::world_without_values(random) }
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

    fn insert(&self, key: Key, value: u64) -> Result<bool, Refusal> {
        Ok(self.0.insert(Self::pair(key, value)).map(|()| true)?)
    }

    fn insert_if_absent(&self, key: Key, value: u64) -> Answer {
        let (table, pair) = (&self.0, Self::pair(key, value));
        if VALUES {
            Answer::InsertValueIfAbsent(value, table.insert_value_if_absent(pair).map_err(Refusal::from))
        } else {
            Answer::InsertIfAbsent(value, table.insert_if_absent(pair).map_err(Refusal::from))
        }
    }

    fn remove(&self, key: Key, value: u64) -> bool {
        self.0.remove(Self::pair(key, value))
    }

    fn count(&self, key: Key, value: u64) -> usize {
        self.0.count(Self::pair(key, value))
    }

    fn save(&self, keys: &[Key], begun: &mut dyn FnMut()) -> (u64, Entries) {
        let image = self.0.save_and_tell(begun);
        let mut entries = Entries::default();
        for (&key, entries) in keys.iter().zip(&mut entries) {
            let values = (0..).zip(entries).take(if VALUES { NUMBERS } else { 1 });
            values.for_each(|(value, copies)| *copies = image.count(Self::pair(key, value)) as u8);
        }
        (0, entries)
    }

    fn ask(world: &World<Self>, question: Question, diary: &mut Diary) {
        values::ask(world, question, diary);
    }

    fn audit(&self, held: usize) -> Result<(), String> {
        let table = &self.0;
        if (table.scan(), table.len()) != (held, held) {
            return Err(format!("{held} copies, {} in the buckets, len {}", table.scan(), table.len()));
        }
        Ok(())
    }
}

histories_of!(Tabled<Smallest, false>, Tabled<Usual, false>);

without! {
    random_schedules, in at most 40_000 worlds:
    AddOverwrites, CountDropsUpdates, CountWithoutLock from 58,
    FullPassesOwnStripe from 8, FullThoughPresent from 87, FullWithoutConfirmation from 47, FullWithoutLocks,
    InsertIfAbsentWithoutLock from 43, LookupWithoutVersion from 572, RelocateBumpsLate from 2_018,
    RelocateClearsFirst, RelocateWithoutBump from 1_601, RelocateWithoutLock, RelocateWithoutRecheck,
    RemoveWithoutBump from 143, RemoveWithoutLock from 12, TakeOverwrites, InsertSetsNothingAside,
    SetsAsideForOneSave, SetsLatestWordAside, RelocateSetsNoSourceAside, RelocateSetsNoTargetAside,
    RelocateSetsTargetAsideLate, RemoveSetsNothingAside, SaveLocksInTurn from 8, SaveReadsAfterPassing,
    SaveWithoutLocks from 9;
    nightly: RemoveBumpsLate
}
without! {
    real_threads, in at most 1_000_000 worlds:
    AddOverwrites, CountDropsUpdates, RelocateClearsFirst, RelocateWithoutLock, RelocateWithoutRecheck, RemoveWithoutLock,
    TakeOverwrites, InsertSetsNothingAside, SetsLatestWordAside, RelocateSetsNoSourceAside, RelocateSetsNoTargetAside,
    RelocateSetsTargetAsideLate, RemoveSetsNothingAside, SaveReadsAfterPassing;
    nightly: CountWithoutLock, FullThoughPresent, FullWithoutConfirmation, FullWithoutLocks, InsertIfAbsentWithoutLock,
    LookupWithoutVersion, RelocateBumpsLate, RelocateWithoutBump, RemoveBumpsLate, RemoveWithoutBump, SaveLocksInTurn,
    SaveWithoutLocks, SetsAsideForOneSave
}
