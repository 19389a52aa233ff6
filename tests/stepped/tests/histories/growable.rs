//! Histories of a filter that grows and shrinks all the time: a multiset of classes.
//!
//! Each thread removes whatever it likes.

use ccf_steps::GrowableInsertError;
use ccf_steps::model::{Growable, GrowableKey};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use todc_utils::specifications::Specification;

use crate::histories::history::{Diary, Event, World, histories_of, must_hold, without};

/// How many classes a world has.
const KEYS: usize = 6;

/// How many copies a pair of buckets holds.
const SLOTS_OF_PAIR: usize = 4;

/// How many copies of each key are in the filter.
type Copies = [u8; KEYS];

/// What a thread asked about a key, and the answer.
#[derive(Clone, Debug)]
enum Operation {
    /// The filter was filled.
    Given(Copies),
    Insert(usize, Result<(), GrowableInsertError>),
    InsertIfAbsent(usize, Result<bool, GrowableInsertError>),
    Contains(usize, bool),
    Remove(usize, bool),
    Count(usize, usize),
    /// Whether the filter loaded from a snapshot has the key, and whether inserts of it were under way
    /// when the save began. The snapshot may contain those, whenever they take effect.
    Saved {
        key: usize,
        found: bool,
        under_way: bool,
    },
}

/// The specification of the filter: a multiset of classes.
struct Multiset;

impl Specification for Multiset {
    type State = Copies;
    type Operation = Operation;

    fn init() -> Copies {
        [0; KEYS]
    }

    fn apply(operation: &Operation, &before: &Copies) -> (bool, Copies) {
        let (mut more, mut less) = (before, before);
        let is_in = |key: usize| before[key] > 0;
        let all: usize = before.iter().copied().map(usize::from).sum();
        // Every slot of a pair of buckets is taken, by copies of this class or of any.
        let refusal_is_due = |key, error| match error {
            GrowableInsertError::TooManyCopies { .. } => usize::from(before[key]) >= SLOTS_OF_PAIR,
            GrowableInsertError::Full { .. } | GrowableInsertError::MaxCapacity { .. } => all >= SLOTS_OF_PAIR,
            _ => false,
        };
        match operation.clone() {
            Operation::Given(copies) => (true, copies),
            Operation::Insert(key, Ok(())) | Operation::InsertIfAbsent(key, Ok(true)) => {
                more[key] += 1;
                (matches!(operation, Operation::Insert(..)) || !is_in(key), more)
            }
            Operation::Insert(key, Err(error)) => (refusal_is_due(key, error), before),
            Operation::InsertIfAbsent(key, Err(error)) => (!is_in(key) && refusal_is_due(key, error), before),
            Operation::InsertIfAbsent(key, Ok(false)) | Operation::Contains(key, true) => (is_in(key), before),
            Operation::Contains(key, false) => (!is_in(key), before),
            Operation::Remove(key, true) => {
                less[key] = less[key].saturating_sub(1);
                (is_in(key), less)
            }
            Operation::Remove(key, false) => (!is_in(key), before),
            Operation::Count(key, count) => (count == usize::from(before[key]), before),
            Operation::Saved { key, found: true, under_way } => (under_way || is_in(key), before),
            Operation::Saved { key, found: false, .. } => (!is_in(key), before),
        }
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Insert,
    InsertIfAbsent,
    Contains,
    Remove,
    Count,
    InsertBatch,
    ContainsBatch,
    RemoveBatch,
    Save,
    Split,
    Merge,
}

/// What a thread asks, and about which key.
#[derive(Clone, Copy)]
struct Question {
    ask: Ask,
    key: usize,
}

/// An initial filter, and what each thread asks.
struct Growing {
    keys: [GrowableKey; KEYS],
    filter: Growable,
    given: Copies,
    threads: Vec<((), Vec<Question>)>,
}

impl Growing {
    /// Three keys, starting with this one.
    fn several(&self, key: usize) -> [(usize, GrowableKey); 3] {
        [0, 1, 2].map(|more| ((key + more) % KEYS, self.keys[(key + more) % KEYS]))
    }
}

impl World for Growing {
    type Operation = Operation;
    type Specification = Multiset;
    type Question = Question;
    type Thread = ();

    fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        let keys = std::array::from_fn(|key| GrowableKey::new(4 * (key % 2), 1 + 4 * (key / 2 % 2), key / 4));
        let filter = Growable::new();
        // Most worlds are narrow: one or two classes, and few questions.
        let narrow = random.random_ratio(3, 4);
        let used = if narrow { random.random_range(1..=2) } else { random.random_range(1..=KEYS) };
        let number = random.random_range(2..=4);
        let mut threads = vec![((), Vec::new()); number];
        let mut given = [0; KEYS];
        for _ in 0..random.random_range(if narrow { 3..6 } else { 0..8 }) {
            let key = random.random_range(0..used);
            if filter.insert(keys[key]).is_ok() {
                given[key] += 1;
            }
        }
        use Ask::*;
        let asked = [
            Insert,
            Insert,
            Insert,
            Remove,
            Remove,
            Remove,
            Contains,
            Contains,
            Contains,
            InsertIfAbsent,
            InsertIfAbsent,
            Count,
            InsertBatch,
            ContainsBatch,
            RemoveBatch,
            Save,
            Split,
            Split,
            Split,
            Merge,
            Merge,
            Merge,
        ];
        for (_, questions) in &mut threads {
            questions.extend((0..if narrow { 9 } else { 24 } / number).map(|_| Question {
                ask: *asked.choose(random).expect("not empty"),
                key: random.random_range(0..used),
            }));
        }
        Self { keys, filter, given, threads }
    }

    fn given(&self) -> Operation {
        Operation::Given(self.given)
    }

    fn threads(&self) -> Vec<((), Vec<Question>)> {
        self.threads.clone()
    }

    fn ask(&self, Question { ask, key }: Question, (): &mut (), diary: &mut Diary<Operation>) {
        let (filter, of_key, several) = (&self.filter, self.keys[key], self.several(key));
        let keys = several.map(|(_, key)| key);
        match ask {
            Ask::Insert => diary.write(|| Operation::Insert(key, filter.insert(of_key))),
            Ask::InsertIfAbsent => diary.write(|| Operation::InsertIfAbsent(key, filter.insert_if_absent(of_key))),
            Ask::Contains => diary.write(|| Operation::Contains(key, filter.contains(of_key))),
            Ask::Remove => diary.write(|| Operation::Remove(key, filter.remove(of_key))),
            Ask::Count => diary.write(|| Operation::Count(key, filter.count(of_key))),
            Ask::InsertBatch => {
                _ = diary.write_all(|| {
                    let (inserted, error) = filter.insert_batch(&keys);
                    let results = several.into_iter().zip((0..inserted).map(|_| Ok(())).chain(error.map(Err)));
                    results.map(|((key, _), result)| Operation::Insert(key, result))
                })
            }
            Ask::ContainsBatch => {
                _ = diary.write_all(|| {
                    let answers = several.into_iter().zip(filter.contains_batch(&keys));
                    answers.map(|((key, _), answer)| Operation::Contains(key, answer))
                })
            }
            Ask::RemoveBatch => {
                _ = diary.write_all(|| {
                    let answers = several.into_iter().zip(filter.remove_batch(&keys));
                    answers.map(|((key, _), answer)| Operation::Remove(key, answer))
                })
            }
            Ask::Save => {
                let (loaded, until_begun) = diary.save(|begun| filter.save_and_load(begun));
                for key in 0..KEYS {
                    let found = loaded.contains(self.keys[key]);
                    diary.add(until_begun(Operation::Saved { key, found, under_way: false }));
                }
            }
            Ask::Split => _ = filter.split_if_possible(),
            Ask::Merge => _ = filter.merge_if_possible(),
        }
    }

    fn ask_at_last(&self, diary: &mut Diary<Operation>) {
        for key in 0..KEYS {
            diary.write(|| Operation::Count(key, self.filter.count(self.keys[key])));
            diary.write(|| Operation::Contains(key, self.filter.contains(self.keys[key])));
        }
    }

    fn complete(&self, events: &mut Vec<Event<Operation>>) -> bool {
        let all = events.clone();
        for event in events {
            let during = event.clone();
            let Operation::Saved { key, under_way, .. } = &mut event.operation else { continue };
            *under_way = all.iter().any(|other| match other.operation {
                Operation::Insert(inserted, Ok(())) | Operation::InsertIfAbsent(inserted, Ok(true)) => {
                    inserted == *key && other.overlaps(&during)
                }
                _ => false,
            });
        }
        true
    }

    fn audit(&self, events: &[Event<Operation>]) -> Result<(), String> {
        let given: usize = self.given.iter().copied().map(usize::from).sum();
        let (mut inserted, mut removed) = (given, 0);
        for event in events {
            match event.operation {
                Operation::Insert(_, Ok(())) | Operation::InsertIfAbsent(_, Ok(true)) => inserted += 1,
                Operation::Remove(_, true) => removed += 1,
                _ => (),
            }
        }
        let len = self.filter.len();
        if len != inserted - removed {
            return Err(format!("{inserted} inserted, {removed} removed, len {len}"));
        }
        Ok(())
    }
}

histories_of!(Growing);

#[test]
fn histories_of_real_threads_are_linearizable() {
    must_hold(real_threads, 500);
}

#[test]
fn histories_under_random_schedules_are_linearizable() {
    must_hold(random_schedules, 100);
}

without! {
    random_schedules, in at most 40_000 worlds:
    SplitsUnannounced, MergesUnannounced from 38, LookupIgnoresMoving, LookupWithoutEpoch, WriterWithoutEpoch,
    AddsWithoutGate, TakesWithoutGate
}
without! {
    real_threads, in at most 1_000_000 worlds:
    SplitsUnannounced, LookupWithoutEpoch, AddsWithoutGate
}
