//! Histories of a table whose slots carry values: a multiset of pairs of a class and a value.

use std::iter;

use ccf_steps::model::{ModelLayout, SmallestOfValues, Table, UsualOfValues};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::histories::history::{Ask, Diary, Kind, Question, World, histories_of, questions, without};
use crate::histories::one_table::Tabled;
use crate::histories::room::{CLASSES, Room};
use crate::histories::specification::{Answer, NUMBERS, State};

pub(crate) fn world<L: ModelLayout + 'static, const VALUES: bool>(random: &mut SmallRng) -> World<Tabled<L, VALUES>> {
    // Many worlds are narrow: keys of one or two classes in two buckets.
    let narrow = random.random_ratio(1, 2);
    let (room, table, keys) = Room::with::<L>(narrow, random, Table::new);

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
    World { filter: Tabled(table), keys: keys.into(), room, longest: None, numbers: NUMBERS as u64, given, questions }
}

/// Asks what only such a table is asked.
pub(crate) fn ask<L: ModelLayout + 'static, const VALUES: bool>(
    world: &World<Tabled<L, VALUES>>,
    Question { ask, class, number, other, twin }: Question,
    diary: &mut Diary,
) {
    let (table, key) = (&world.filter.0, Tabled::<L, VALUES>::key(world.keys[class], twin));
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

histories_of!(Tabled<SmallestOfValues, true>, Tabled<UsualOfValues, true>);

without! {
    random_schedules, in at most 40_000 worlds:
    AddValueWithoutBump from 194, AddValueWithoutLock from 12, InsertIfAbsentWithoutLock,
    LookupWithoutVersion from 24, RelocateWithoutBump from 3_792, RemoveWithoutBump from 4_300, ReplaceAddsFirst,
    ReplaceSetsNothingAside, ReplaceTakesFirst, ReplaceWithoutBump from 4_739, ReplaceWithoutLock from 123
}
