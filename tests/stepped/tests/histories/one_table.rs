//! Histories of a set: a multiset of classes.

use ccf_steps::model::{Key, ModelEntries, ModelLayout, Set, Smallest, Table, Usual};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::histories::history::{Ask, Diary, Kind, Question, World, histories_of, questions, without};
use crate::histories::room::{CLASSES, Room};
use crate::histories::specification::{Answer, Entries, Failure, State};

struct OfSet<L: ModelLayout>(Set<L>);

impl<L: ModelLayout> Kind for OfSet<L> {
    type Key = Key;

    fn world(random: &mut SmallRng) -> World<Self> {
        // Some worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 3);
        let (room, table, keys) = Room::with(narrow, random, Set::new);

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

    fn key(key: Key, twin: bool) -> Key {
        if twin { key.twin() } else { key }
    }

    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: [Key; 3]) -> [bool; 3] {
        self.0.contains_batch(keys)
    }

    fn insert(&self, key: Key, _: u64) -> Result<bool, Failure> {
        Ok(self.0.insert(key).map(|()| true)?)
    }

    fn insert_if_absent(&self, key: Key, number: u64) -> Answer {
        Answer::InsertIfAbsent(number, self.0.insert_if_absent(key).map_err(Failure::from))
    }

    fn remove(&self, key: Key, _: u64) -> bool {
        self.0.remove(key)
    }

    fn count(&self, key: Key, _: u64) -> usize {
        self.0.count(key)
    }

    fn save(&self, keys: &[Key], begun: &mut dyn FnMut()) -> (u64, Entries) {
        let image = self.0.save_and_tell(begun);
        let mut entries = Entries::default();
        for (&key, entries) in keys.iter().zip(&mut entries) {
            entries[0] = image.count(key) as u8;
        }
        (0, entries)
    }

    fn ask(_: &World<Self>, _: Question, _: &mut Diary) {
        unreachable!("a set is asked nothing else");
    }

    fn audit(&self, held: usize) -> Result<(), String> {
        audit(&self.0, held)
    }
}

/// Checks what no operation of a table asks about.
pub(crate) fn audit<E: ModelEntries, L: ModelLayout>(table: &Table<E, L>, held: usize) -> Result<(), String> {
    if (table.scan(), table.len()) != (held, held) {
        return Err(format!("{held} copies, {} in the buckets, len {}", table.scan(), table.len()));
    }
    Ok(())
}

histories_of!(OfSet<Smallest>, OfSet<Usual>);

without! {
    random_schedules, in at most 40_000 worlds:
    AddOverwrites, CountDropsUpdates, CountWithoutLock from 58,
    FullPassesOwnStripe from 8, FullThoughPresent from 87, FullWithoutConfirmation from 47, FullWithoutLocks,
    InsertIfAbsentWithoutLock from 43, LookupWithoutVersion from 572, RelocateBumpsLate from 2_018,
    RelocateClearsFirst, RelocateWithoutBump from 1_601, RelocateWithoutLock, RelocateWithoutRecheck,
    RemoveWithoutBump from 143, RemoveWithoutLock from 12, TakeOverwrites, InsertCopiesNothing,
    CopiesForOneSave, CopiesLatestWord, RelocateCopiesNoSource, RelocateCopiesNoTarget,
    RelocateCopiesTargetLate, RemoveCopiesNothing, SaveLocksInTurn from 8, SaveReadsAfterPassing,
    SaveWithoutLocks from 9;
    nightly: RemoveBumpsLate
}
without! {
    real_threads, in at most 1_000_000 worlds:
    AddOverwrites, CountDropsUpdates, RelocateClearsFirst, RelocateWithoutLock, RelocateWithoutRecheck, RemoveWithoutLock,
    TakeOverwrites, InsertCopiesNothing, CopiesLatestWord, RelocateCopiesNoSource, RelocateCopiesNoTarget,
    RelocateCopiesTargetLate, RemoveCopiesNothing, SaveReadsAfterPassing;
    nightly: CountWithoutLock, FullThoughPresent, FullWithoutConfirmation, FullWithoutLocks, InsertIfAbsentWithoutLock,
    LookupWithoutVersion, RelocateBumpsLate, RelocateWithoutBump, RemoveBumpsLate, RemoveWithoutBump, SaveLocksInTurn,
    SaveWithoutLocks, CopiesForOneSave
}
