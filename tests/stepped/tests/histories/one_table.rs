//! Histories of one table: a multiset of classes.

use ccf_steps::InsertError;
use ccf_steps::model::{AnyLayout, Key, Smallest, Table, Usual};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use todc_utils::specifications::Specification;

use crate::histories::history::{Diary, Event, World, histories_of, must_hold, without};
use crate::histories::room::{CLASSES, Copies, Room, check_last_counts, reported};

/// What a thread asked about a class of keys, and the answer.
#[derive(Clone, Debug)]
enum Answer {
    Insert(Result<(), InsertError>),
    InsertIfAbsent(Result<bool, InsertError>),
    Contains(bool),
    Remove(bool),
    Count(usize),
}

/// What happened, as the checker sees it.
#[derive(Clone, Debug)]
enum Operation {
    /// The table was filled.
    Given(Copies),
    Asked(Room, usize, Answer),
    /// A save had these copies. For each class, this many inserts were under way when it began. The save may have
    /// those or not, whenever they take effect.
    Saved {
        copies: Copies,
        under_way: Copies,
    },
}

/// The specification of the table: a multiset of classes.
struct Multiset;

impl Specification for Multiset {
    type State = Copies;
    type Operation = Operation;

    fn init() -> Copies {
        [0; CLASSES]
    }

    fn apply(operation: &Operation, &before: &Copies) -> (bool, Copies) {
        let (room, class, answer) = match operation.clone() {
            Operation::Given(copies) => return (true, copies),
            Operation::Saved { copies, under_way } => {
                let mut classes = before.iter().zip(copies).zip(under_way);
                let holds = classes.all(|((&least, saved), more)| (least..=least + more).contains(&saved));
                return (holds, before);
            }
            Operation::Asked(room, class, answer) => (room, class, answer),
        };
        let copies = usize::from(before[class]);
        let (mut more, mut less) = (before, before);
        more[class] += 1;
        less[class] = less[class].saturating_sub(1);
        let refusal_is_due = |error| room.refuses(class, before, reported(error));
        match answer {
            Answer::Insert(Ok(())) => (true, more),
            Answer::Insert(Err(error)) => (refusal_is_due(error), before),
            Answer::InsertIfAbsent(Ok(true)) => (copies == 0, more),
            Answer::InsertIfAbsent(Ok(false)) => (copies > 0, before),
            Answer::InsertIfAbsent(Err(error)) => (copies == 0 && refusal_is_due(error), before),
            Answer::Contains(answer) => (answer == (copies > 0), before),
            Answer::Remove(answer) => (answer == (copies > 0), less),
            Answer::Count(answer) => (answer == copies, before),
        }
    }
}

/// What a thread asks, about a key of which class, and whether about the key that tries its buckets in the opposite
/// order.
#[derive(Clone, Copy)]
struct Question {
    ask: Ask,
    class: usize,
    twin: bool,
}

#[derive(Clone, Copy)]
enum Ask {
    Insert,
    InsertIfAbsent,
    Contains,
    Remove,
    Count,
    /// Look up three keys at a time.
    ContainsBatch,
    /// Save the table.
    Save,
}

/// An initial table, and what each thread asks.
struct OneTable<L> {
    room: Room,
    keys: [Key; CLASSES],
    table: Table<L>,
    given: Copies,
    questions: Vec<Vec<Question>>,
}

impl<L: AnyLayout + 'static> World for OneTable<L> {
    type Operation = Operation;
    type Specification = Multiset;
    type Question = Question;
    type Thread = ();

    fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        // Some worlds are narrow: keys of one or two classes in two buckets.
        let narrow = random.random_ratio(1, 3);
        let (room, table, keys) = Room::with_table::<L>(narrow, random);

        // Full except for a few slots, unless the keys in use leave some free.
        let used = random.random_range(if narrow { 1..=2 } else { 3..=CLASSES });
        let free = random.random_range(0..4);
        let mut given = [0; CLASSES];
        for _ in 0..room.slots() * 4 {
            let class = random.random_range(0..used);
            if table.len() + free < room.slots() && table.insert(keys[class]).is_ok() {
                given[class] += 1;
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
            ContainsBatch,
            InsertIfAbsent,
            Count,
            Save,
        ];
        let threads = random.random_range(2..=4);
        let mut question = || Question {
            ask: *asked.choose(random).expect("not empty"),
            class: random.random_range(0..used),
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

    fn ask(&self, Question { ask, class, twin }: Question, (): &mut (), diary: &mut Diary<Operation>) {
        let key = if twin { self.keys[class].twin() } else { self.keys[class] };
        let asked = |answer| Operation::Asked(self.room, class, answer);
        match ask {
            Ask::Insert => diary.write(|| asked(Answer::Insert(self.table.insert(key)))),
            Ask::InsertIfAbsent => diary.write(|| asked(Answer::InsertIfAbsent(self.table.insert_if_absent(key)))),
            Ask::Contains => diary.write(|| asked(Answer::Contains(self.table.contains(key)))),
            Ask::Remove => diary.write(|| asked(Answer::Remove(self.table.remove(key)))),
            Ask::Count => diary.write(|| asked(Answer::Count(self.table.count(key)))),
            Ask::ContainsBatch => {
                _ = diary.write_all(|| {
                    let classes = [class, (class + 1) % CLASSES, (class + 2) % CLASSES];
                    let answers = self.table.contains_batch(classes.map(|class| self.keys[class]));
                    std::iter::zip(classes, answers)
                        .map(|(class, answer)| Operation::Asked(self.room, class, Answer::Contains(answer)))
                })
            }
            Ask::Save => {
                let (image, until_begun) = diary.save(|begun| self.table.save_and_tell(begun));
                let copies = self.keys.map(|key| image.count(key) as u8);
                diary.add(until_begun(Operation::Saved { copies, under_way: [0; CLASSES] }));
            }
        }
    }

    fn ask_at_last(&self, diary: &mut Diary<Operation>) {
        (0..CLASSES).for_each(|class| self.ask(Question { ask: Ask::Count, class, twin: false }, &mut (), diary));
    }

    fn complete(&self, events: &mut Vec<Event<Operation>>) -> bool {
        let all = events.clone();
        for event in events {
            let during = event.clone();
            let Operation::Saved { under_way, .. } = &mut event.operation else { continue };
            for other in all.iter().filter(|other| other.overlaps(&during)) {
                if let Operation::Asked(_, class, Answer::Insert(Ok(())) | Answer::InsertIfAbsent(Ok(true))) =
                    other.operation
                {
                    under_way[class] += 1;
                }
            }
        }
        true
    }

    fn audit(&self, events: &[Event<Operation>]) -> Result<(), String> {
        check_last_counts(&self.table, events, CLASSES, |operation| match operation.clone() {
            Operation::Asked(_, _, Answer::Count(count)) => Some(count),
            _ => None,
        })
    }
}

histories_of!(OneTable<Smallest>, OneTable<Usual>);

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
    AddOverwrites, CountDropsUpdates, CountWithoutLock from 58, FullIgnoresVersions from 9_349,
    FullPassesOwnStripe from 8, FullThoughPresent from 87, FullWithoutConfirmation from 47, FullWithoutLocks,
    InsertIfAbsentWithoutLock from 43, LookupWithoutVersion from 321, RelocateBumpsLate from 2_018,
    RelocateClearsFirst, RelocateWithoutBump from 1_480, RelocateWithoutLock, RelocateWithoutRecheck,
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
