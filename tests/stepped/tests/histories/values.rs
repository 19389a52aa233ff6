//! Histories of a table whose slots carry values: a multiset of pairs of a class and a value.

use ccf_steps::model::{AnyLayout, Key, SmallestOfValues, Table, UsualOfValues};
use ccf_steps::{InsertError, Values};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use todc_utils::specifications::Specification;

use crate::histories::history::{Diary, Event, World, histories_of, must_hold, without};
use crate::histories::room::{CLASSES, Room, check_last_counts, reported};

/// How many values there are.
const VALUES: usize = 4;

/// How many copies each class has with each value.
type Pairs = [[u8; VALUES]; CLASSES];

/// What a thread asked about a class of keys, with which value, and the answer.
#[derive(Clone, Debug)]
enum Answer {
    Insert(usize, Result<(), InsertError>),
    InsertIfAbsent(usize, Result<Values, InsertError>),
    Values(Values),
    Contains(bool),
    Remove(usize, bool),
    /// Replace an old value by a new one.
    Replace(usize, usize, bool),
    Count(usize, usize),
}

impl Answer {
    /// The value that was added.
    fn added(&self) -> Option<usize> {
        match self {
            Answer::Insert(value, Ok(())) => Some(*value),
            Answer::InsertIfAbsent(value, Ok(told)) if told.is_empty() => Some(*value),
            _ => None,
        }
    }
}

/// What happened, as the checker sees it.
#[derive(Clone, Debug)]
enum Operation {
    /// The table was filled.
    Given(Pairs),
    Asked(Room, usize, Answer),
    /// A save had these pairs. For each pair, this many inserts were under way when it began. The save may have
    /// those or not, whenever they take effect. A replacement is either over when the save begins, or begins later.
    Saved {
        pairs: Pairs,
        under_way: Pairs,
    },
}

/// The specification of the table: a multiset of pairs.
struct Multiset;

impl Specification for Multiset {
    type State = Pairs;
    type Operation = Operation;

    fn init() -> Pairs {
        [[0; VALUES]; CLASSES]
    }

    fn apply(operation: &Operation, &before: &Pairs) -> (bool, Pairs) {
        let (room, class, answer) = match operation.clone() {
            Operation::Given(pairs) => return (true, pairs),
            Operation::Saved { pairs, under_way } => {
                let all = before.as_flattened().iter().zip(pairs.as_flattened()).zip(under_way.as_flattened());
                let holds = all.into_iter().all(|((&least, saved), more)| (least..=least + more).contains(saved));
                return (holds, before);
            }
            Operation::Asked(room, class, answer) => (room, class, answer),
        };
        let copies = before.map(|values| values.iter().sum());
        let is_in = copies[class] > 0;
        let has = |value: usize| before[class][value] > 0;
        let has_just = |values: Values| (0..VALUES).filter(|&value| has(value)).eq(values.iter().map(usize::from));
        let refusal_is_due = |error| room.refuses(class, copies, reported(error));
        let mut after = before;
        let values = &mut after[class];
        let holds = match answer {
            Answer::Insert(value, Ok(())) => {
                values[value] += 1;
                true
            }
            Answer::Insert(_, Err(error)) => refusal_is_due(error),
            Answer::InsertIfAbsent(value, Ok(told)) => {
                values[value] += u8::from(told.is_empty());
                has_just(told)
            }
            Answer::InsertIfAbsent(_, Err(error)) => !is_in && refusal_is_due(error),
            Answer::Values(found) => has_just(found),
            Answer::Contains(found) => found == is_in,
            Answer::Remove(value, removed) => {
                values[value] = values[value].saturating_sub(1);
                removed == has(value)
            }
            Answer::Replace(old, new, replaced) => {
                if has(old) {
                    values[old] -= 1;
                    values[new] += 1;
                }
                replaced == has(old)
            }
            Answer::Count(value, count) => count == usize::from(before[class][value]),
        };
        (holds, after)
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Insert,
    InsertIfAbsent,
    Values,
    Contains,
    Remove,
    Replace,
    Count,
    /// Look up the values of three keys at a time.
    ValuesBatch,
    /// Save the table.
    Save,
}

/// What a thread asks: about a key of which class, with which value, which other value replaces it (if it is to be
/// replaced), and whether about the key that tries its buckets in the opposite order.
#[derive(Clone, Copy)]
struct Question {
    ask: Ask,
    class: usize,
    value: usize,
    other: usize,
    twin: bool,
}

/// An initial table, and what each thread asks.
struct TableOfValues<L> {
    room: Room,
    /// Keys without a value.
    keys: [Key; CLASSES],
    table: Table<L>,
    given: Pairs,
    questions: Vec<Vec<Question>>,
}

impl<L: AnyLayout + 'static> World for TableOfValues<L> {
    type Operation = Operation;
    type Specification = Multiset;
    type Question = Question;
    type Thread = ();

    fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        // Many worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 2);
        let (room, table, keys) = Room::with_table::<L>(narrow, random);

        // Full except for a few slots, unless the keys in use leave some free. Or nearly empty, for keys without a
        // value.
        let used = random.random_range(if narrow { 1..=2 } else { 3..=CLASSES });
        let values = random.random_range(2..=VALUES);
        let few = random.random_range(0..4);
        let free = if random.random_ratio(1, 3) { room.slots().saturating_sub(few) } else { few };
        let mut given = [[0; VALUES]; CLASSES];
        for _ in 0..room.slots() * 4 {
            let (class, value) = (random.random_range(0..used), random.random_range(0..values));
            let key = keys[class].with(value as u16);
            if table.len() + free < room.slots() && table.insert(key).is_ok() {
                given[class][value] += 1;
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
            Replace,
            Replace,
            Replace,
            Values,
            Values,
            Values,
            ValuesBatch,
            Contains,
            InsertIfAbsent,
            InsertIfAbsent,
            Count,
            Save,
        ];
        let threads = random.random_range(2..=4);
        let mut question = || Question {
            ask: *asked.choose(random).expect("not empty"),
            class: random.random_range(0..used),
            value: random.random_range(0..values),
            other: random.random_range(0..values),
            twin: random.random(),
        };
        let questions = (0..threads).map(|_| (0..36 / threads).map(|_| question()).collect()).collect();
        Self { room, keys, table, given, questions }
    }

    fn given(&self) -> Operation {
        Operation::Given(self.given)
    }

    fn threads(&self) -> Vec<((), Vec<Question>)> {
        self.questions.iter().map(|questions| ((), questions.clone())).collect()
    }

    fn ask(&self, question: Question, (): &mut (), diary: &mut Diary<Operation>) {
        let Question { ask, class, value, other, twin } = question;
        let table = &self.table;
        let key = if twin { self.keys[class].twin() } else { self.keys[class] };
        let pair = key.with(value as u16);
        let asked = |answer| Operation::Asked(self.room, class, answer);
        match ask {
            Ask::Insert => diary.write(|| asked(Answer::Insert(value, table.insert(pair)))),
            Ask::InsertIfAbsent => {
                diary.write(|| asked(Answer::InsertIfAbsent(value, table.insert_value_if_absent(pair))))
            }
            Ask::Values => diary.write(|| asked(Answer::Values(table.values(key)))),
            Ask::Contains => diary.write(|| asked(Answer::Contains(table.contains(key)))),
            Ask::Remove => diary.write(|| asked(Answer::Remove(value, table.remove(pair)))),
            Ask::Replace => diary.write(|| asked(Answer::Replace(value, other, table.replace(pair, other as u16)))),
            Ask::Count => diary.write(|| asked(Answer::Count(value, table.count(pair)))),
            Ask::ValuesBatch => {
                _ = diary.write_all(|| {
                    let classes = [class, (class + 1) % CLASSES, (class + 2) % CLASSES];
                    let answers = table.values_batch(classes.map(|class| self.keys[class]));
                    std::iter::zip(classes, answers)
                        .map(|(class, found)| Operation::Asked(self.room, class, Answer::Values(found)))
                })
            }
            Ask::Save => {
                let (image, until_begun) = diary.save(|begun| table.save_and_tell(begun));
                let saved = |key: Key| std::array::from_fn(|value| image.count(key.with(value as u16)) as u8);
                let (pairs, under_way) = (self.keys.map(saved), [[0; VALUES]; CLASSES]);
                diary.add(until_begun(Operation::Saved { pairs, under_way }));
            }
        }
    }

    fn ask_at_last(&self, diary: &mut Diary<Operation>) {
        for class in 0..CLASSES {
            for value in 0..VALUES {
                self.ask(Question { ask: Ask::Count, class, value, other: 0, twin: false }, &mut (), diary);
            }
        }
    }

    fn complete(&self, events: &mut Vec<Event<Operation>>) -> bool {
        let all = events.clone();
        for event in events {
            let during = event.clone();
            let Operation::Saved { under_way, .. } = &mut event.operation else { continue };
            for other in all.iter().filter(|other| other.overlaps(&during)) {
                if let Operation::Asked(_, class, answer) = &other.operation
                    && let Some(value) = answer.added()
                {
                    under_way[*class][value] += 1;
                }
            }
        }
        true
    }

    fn audit(&self, events: &[Event<Operation>]) -> Result<(), String> {
        check_last_counts(&self.table, events, CLASSES * VALUES, |operation| match operation.clone() {
            Operation::Asked(_, _, Answer::Count(_, count)) => Some(count),
            _ => None,
        })
    }
}

histories_of!(TableOfValues<SmallestOfValues>, TableOfValues<UsualOfValues>);

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
    AddValueWithoutBump from 194, AddValueWithoutLock from 12, InsertIfAbsentWithoutLock,
    LookupWithoutVersion from 24, RelocateWithoutBump from 3_559, RemoveWithoutBump from 3_076, ReplaceAddsFirst,
    ReplaceSetsNothingAside, ReplaceTakesFirst, ReplaceWithoutBump from 4_739, ReplaceWithoutLock from 117
}
