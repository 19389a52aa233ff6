//! Histories of a filter that rotates: each key has a number of rotations to live.
//!
//! While its threads run, a world has fewer rotations than live generations. So only keys that were there at the
//! beginning can expire meanwhile. The final questions show how long the others live.

use ccf_steps::model::Generations;
use ccf_steps::{Advance, InsertError};
use rand::rngs::SmallRng;
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand::{Rng, SeedableRng};
use todc_utils::specifications::Specification;

use crate::history::{Diary, Event, World, histories_of, must_hold, without};

/// How many keys a world has.
const KEYS: usize = 6;

/// How many keys fit in a generation.
const SLOTS: usize = 4;

/// How many rotations each key still lives: 0 if it is not in.
type Lives = [u8; KEYS];

/// The specification's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// How many generations are live.
    live: u8,
    generation: u64,
    /// The tick of the caller's clock, and the tick of the last rotation that the clock caused. The rotation comes
    /// first.
    tick: u64,
    rotated_for: u64,
    lives: Lives,
}

/// What a thread asked, and the answer.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// The initial state.
    Given(State),
    Insert(usize, Result<(), InsertError>),
    InsertIfAbsent(usize, Result<bool, InsertError>),
    Contains(usize, bool),
    /// A rotation, with the number of the generation that it began.
    Rotate(u64),
    /// A rotation by an insert, because the generation was full.
    RotateWhenFull,
    AdvanceTo(u64, Advance),
    /// The clock shows the tick for which a rotation was due.
    Tick(u64),
    Generation(u64),
    /// A rotation has overtaken an insert. The insert adds the key again in the generation that is current when it
    /// ends.
    Refresh(usize),
    /// A copy that a refused insert left behind: it put the copy into this generation, which then ended, and the
    /// next one refused it.
    LeaveBehind(usize, u64),
    /// A snapshot: its generation, and how many rotations each key of the loaded filter lived.
    Saved {
        generation: u64,
        lives: Lives,
        /// Whether an insert of the key was under way when the save began. The snapshot may have the key, whenever
        /// the insert takes effect.
        under_way: [bool; KEYS],
        /// When all was written, and how many rotations came before that. Keys that expired by those rotations may
        /// be missing.
        written: usize,
        expired: u8,
    },
}

/// The specification of the filter.
struct Lifetimes;

impl Specification for Lifetimes {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::default()
    }

    fn apply(operation: &Operation, &before: &State) -> (bool, State) {
        let mut after = before;
        let is_in = |key: usize| before.lives[key] > 0;
        let in_current = before.lives.iter().filter(|&&lives| lives == before.live).count();
        let mut rotate = || {
            after.generation += 1;
            after.lives = after.lives.map(|lives| lives.saturating_sub(1));
        };
        let holds = match *operation {
            Operation::Given(state) => return (true, state),
            Operation::Insert(key, Ok(())) | Operation::Refresh(key) => {
                after.lives[key] = before.live;
                true
            }
            Operation::LeaveBehind(key, generation) => {
                let age = before.generation.saturating_sub(generation);
                after.lives[key] = before.lives[key].max(before.live.saturating_sub(age as u8));
                true
            }
            Operation::InsertIfAbsent(key, Ok(true)) => {
                after.lives[key] = before.live;
                !is_in(key)
            }
            Operation::InsertIfAbsent(key, Ok(false)) => is_in(key),
            Operation::Insert(key, Err(InsertError::Full { .. })) => {
                in_current >= SLOTS && before.lives[key] != before.live
            }
            Operation::InsertIfAbsent(key, Err(InsertError::Full { .. })) => in_current >= SLOTS && !is_in(key),
            Operation::Insert(_, Err(_)) | Operation::InsertIfAbsent(_, Err(_)) => false,
            Operation::Contains(key, answer) => answer == is_in(key),
            Operation::Rotate(generation) => {
                rotate();
                after.generation == generation
            }
            Operation::RotateWhenFull => {
                rotate();
                in_current >= SLOTS
            }
            Operation::AdvanceTo(tick, Advance::Forward { ticks }) => {
                rotate();
                after.rotated_for = tick;
                ticks == 1 && tick == before.rotated_for + 1
            }
            Operation::Tick(tick) => {
                after.tick = tick;
                before.rotated_for == tick
            }
            Operation::AdvanceTo(tick, Advance::Current) => tick == before.tick,
            Operation::AdvanceTo(tick, Advance::Behind { by }) => tick + by == before.tick,
            Operation::AdvanceTo(..) => false,
            Operation::Generation(generation) => generation == before.generation,
            Operation::Saved { generation, lives, under_way, expired, .. } => {
                let mut keys = before.lives.into_iter().zip(lives).zip(under_way);
                generation == before.generation
                    && keys.all(|((now, saved), under_way)| {
                        // An insert that was under way may have put its copy into a generation that has just ended.
                        let least = if now <= expired { 0 } else { now.min(if under_way { 1 } else { now }) };
                        let most = if under_way { before.live } else { now };
                        (least..=most).contains(&saved)
                    })
            }
        };
        (holds, after)
    }
}

#[derive(Clone, Copy)]
enum Ask {
    Insert,
    InsertIfAbsent,
    Contains,
    Generation,
    InsertBatch,
    ContainsBatch,
    Rotate,
    /// Advance to the next tick, or to the present one.
    Advance(u64),
    Save,
}

/// An initial filter, and what each thread asks, about which key.
struct Rotating {
    filter: Generations,
    given: State,
    questions: Vec<Vec<(Ask, usize)>>,
}

/// The hash of the key with this number.
fn hash(key: usize) -> u64 {
    key as u64 + 1
}

/// The key and the next one.
fn several(key: usize) -> [usize; 2] {
    [key, (key + 1) % KEYS]
}

/// How many rotations each key lives, found by this many rotations.
fn lives_in(filter: &Generations, live: u8) -> Lives {
    let mut lives = [0; KEYS];
    for _ in 0..=live {
        for (key, lives) in lives.iter_mut().enumerate() {
            *lives += u8::from(filter.contains(hash(key)));
        }
        filter.rotate();
    }
    lives
}

impl Rotating {
    /// Records inserts, and what else they may have done if a rotation has overtaken them.
    fn insert<I: IntoIterator<Item = Operation>>(&self, diary: &mut Diary<Operation>, ask: impl FnOnce() -> I) {
        let before = self.filter.generation();
        let ask = || {
            let mut operations: Vec<_> = ask().into_iter().collect();
            if self.filter.generation() != before {
                for operation in &mut operations {
                    // Its own copy may be in, from the previous generation.
                    if let Operation::InsertIfAbsent(key, Err(error)) = *operation {
                        *operation = Operation::Insert(key, Err(error));
                    }
                }
            }
            operations
        };
        let written = diary.write_all(ask).to_vec();
        let generations = before..self.filter.generation();
        for event in written.iter().filter(|_| !generations.is_empty()) {
            match event.operation {
                Operation::Insert(key, Ok(())) | Operation::InsertIfAbsent(key, Ok(true)) => {
                    diary.add(Event { operation: Operation::Refresh(key), ..*event });
                }
                // Or it has left no copy. Then it is ordered at the end, where it makes no difference.
                Operation::Insert(key, Err(_)) => generations.clone().for_each(|generation| {
                    let operation = Operation::LeaveBehind(key, generation);
                    diary.add(Event { answered: usize::MAX, operation, ..*event });
                }),
                _ => (),
            }
        }
    }
}

impl World for Rotating {
    type Operation = Operation;
    type Specification = Lifetimes;
    type Question = (Ask, usize);
    type Thread = ();

    fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        let live = random.random_range(2..=4u8);
        let rotates_when_full = random.random_ratio(1, 3);
        let filter = Generations::new(usize::from(live), rotates_when_full);
        let used = random.random_range(1..=KEYS);
        filter.advance_to(1);
        let mut lives = [0u8; KEYS];
        for _ in 0..random.random_range(0..=live) {
            let mut new = 0;
            for (key, lives) in lives.iter_mut().enumerate().take(used) {
                // Few enough that no generation is full.
                if random.random_ratio(1, 3) && new < SLOTS {
                    filter.insert(hash(key)).expect("there is room");
                    *lives = live;
                    new += 1;
                }
            }
            filter.rotate();
            lives = lives.map(|lives| lives.saturating_sub(1));
        }
        let given = State { live, generation: filter.generation(), tick: 1, rotated_for: 1, lives };

        use Ask::*;
        let asked = [
            Insert,
            Insert,
            Insert,
            InsertIfAbsent,
            InsertIfAbsent,
            Contains,
            Contains,
            Contains,
            InsertBatch,
            ContainsBatch,
        ];
        let threads = random.random_range(2..=4);
        let mut questions: Vec<Vec<_>> = (0..threads)
            .map(|_| {
                let ask = |_| (*asked.choose(random).expect("not empty"), random.random_range(0..used));
                (0..18 / threads).map(ask).collect()
            })
            .collect();
        // All rotations come from the caller's clock, of one tick, or all from calls. There are fewer rotations
        // than live generations.
        let by_clock = random.random();
        let mut others = vec![Save, Save, Generation];
        match by_clock {
            true => others.extend([Advance(2), Advance(2), Advance(1)]),
            false => others.extend((1..live).map(|_| Rotate)),
        }
        for ask in others {
            let thread = questions.choose_mut(random).expect("not empty");
            let place = random.random_range(0..=thread.len());
            thread.insert(place, (ask, 0));
        }
        Self { filter, given, questions }
    }

    fn given(&self) -> Operation {
        Operation::Given(self.given)
    }

    fn threads(&self) -> Vec<((), Vec<(Ask, usize)>)> {
        self.questions.iter().map(|questions| ((), questions.clone())).collect()
    }

    fn ask(&self, (ask, key): (Ask, usize), (): &mut (), diary: &mut Diary<Operation>) {
        match ask {
            Ask::Insert => self.insert(diary, || [Operation::Insert(key, self.filter.insert(hash(key)))]),
            Ask::InsertIfAbsent => {
                self.insert(diary, || [Operation::InsertIfAbsent(key, self.filter.insert_if_absent(hash(key)))]);
            }
            Ask::Contains => diary.write(|| Operation::Contains(key, self.filter.contains(hash(key)))),
            Ask::Generation => diary.write(|| Operation::Generation(self.filter.generation())),
            Ask::InsertBatch => self.insert(diary, || {
                let keys = several(key);
                let (inserted, error) = self.filter.insert_batch(&keys.map(hash));
                let results = keys.into_iter().zip((0..inserted).map(|_| Ok(())).chain(error.map(Err)));
                results.map(|(key, result)| Operation::Insert(key, result))
            }),
            Ask::ContainsBatch => {
                _ = diary.write_all(|| {
                    let keys = several(key);
                    let answers = self.filter.contains_batch(&keys.map(hash));
                    keys.into_iter().zip(answers).map(|(key, answer)| Operation::Contains(key, answer))
                })
            }
            Ask::Rotate => diary.write(|| Operation::Rotate(self.filter.rotate())),
            Ask::Advance(tick) => diary.write(|| Operation::AdvanceTo(tick, self.filter.advance_to(tick))),
            Ask::Save => {
                let (loaded, until_begun) = diary.save(|begun| self.filter.save_and_load(begun));
                let written = diary.time();
                let generation = loaded.generation();
                let lives = lives_in(&loaded, self.given.live);
                let operation = Operation::Saved { generation, lives, under_way: [false; KEYS], written, expired: 0 };
                diary.add(until_begun(operation));
            }
        }
    }

    fn ask_at_last(&self, diary: &mut Diary<Operation>) {
        diary.write(|| Operation::Generation(self.filter.generation()));
        for _ in 0..=self.given.live {
            (0..KEYS).for_each(|key| self.ask((Ask::Contains, key), &mut (), diary));
            self.ask((Ask::Rotate, 0), &mut (), diary);
        }
    }

    fn complete(&self, events: &mut Vec<Event<Operation>>) -> bool {
        // The threads had ended when the last question about the generation was asked.
        let generations = events.iter().filter_map(|event| match event.operation {
            Operation::Generation(generation) => Some((event.called, generation)),
            _ => None,
        });
        let (end, generation) = generations.max().expect("the generation is asked for at the end");
        let all: Vec<_> = events.iter().copied().filter(|event| event.called < end).collect();
        let rotates =
            |operation| matches!(operation, Operation::Rotate(_) | Operation::AdvanceTo(_, Advance::Forward { .. }));
        let rotations: Vec<_> = all.iter().filter(|event| rotates(event.operation)).collect();
        let in_all = generation - self.given.generation;
        let Some(when_full) = in_all.checked_sub(rotations.len() as u64) else { return true };
        if in_all >= self.given.live.into() {
            // The filter itself may have made too many rotations.
            return when_full == 0;
        }

        for event in &mut *events {
            let during = *event;
            let Operation::Saved { under_way, written, expired, .. } = &mut event.operation else { continue };
            let until_written = Event { answered: *written, ..during };
            *expired =
                (when_full as usize + rotations.iter().filter(|other| other.overlaps(&until_written)).count()) as u8;
            for other in all.iter().filter(|other| other.overlaps(&during)) {
                // An insert that was refused may have left a copy behind.
                if let Operation::Insert(key, _) | Operation::InsertIfAbsent(key, Ok(true)) = other.operation {
                    under_way[key] = true;
                }
            }
        }
        for event in &all {
            if let Operation::AdvanceTo(tick, Advance::Forward { .. }) = event.operation {
                events.push(Event { operation: Operation::Tick(tick), ..*event });
            }
        }
        let begin = all.iter().map(|event| event.called).min().unwrap_or(end);
        let hidden = Event { called: begin, answered: end, operation: Operation::RotateWhenFull };
        events.extend((0..when_full).map(|_| hidden));
        true
    }
}

histories_of!(Rotating);

#[test]
fn histories_of_real_threads_are_linearizable() {
    must_hold(real_threads, 5000);
}

#[test]
fn histories_under_random_schedules_are_linearizable() {
    must_hold(random_schedules, 200);
}

without! {
    random_schedules, in at most 40_000 worlds:
    FullRotatesAgain from 450, InsertIfAbsentWithoutGate, InsertIgnoresRotation, LookupIgnoresRotation,
    RotationClearsFirst, RotationIntoDirtyTable, RotationWithoutLock
}
without! {
    real_threads, in at most 1_000_000 worlds:
    FullRotatesAgain, InsertIfAbsentWithoutGate, InsertIgnoresRotation, LookupIgnoresRotation, RotationClearsFirst,
    RotationIntoDirtyTable, RotationWithoutLock
}
