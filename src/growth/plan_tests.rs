use super::*;
use crate::error::insert::GrowableInsertError;
use crate::growth::growing_table::GrowingTable;
use crate::growth::slots::FirstAttempt;
use crate::table::attempt::{Attempt, IfPresent};
use crate::word::classes::Class;
use crate::word::geometry::mixed;

const ENCODINGS: [Option<Encoding>; 3] = [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)];

/// What is wanted if nothing else is said.
const WANTED: Requirements = Requirements {
    capacity: 0,
    max_capacity: None,
    expected: None,
    rate: 0.001,
    encoding: None,
    load_while_growing: LOAD_WHILE_GROWING,
};

fn plan(capacity: usize, max_capacity: Option<usize>, rate: f64, encoding: Option<Encoding>) -> Plan {
    Plan::new(Requirements { capacity, max_capacity, rate, encoding, ..WANTED }).expect("it is possible")
}

/// Rates that a filter may be built for, and the lowest.
fn rates(encoding: Option<Encoding>) -> impl Iterator<Item = f64> {
    let lowest = lowest_rate(encoding);
    let rates = (1..=120).map(|tenths| 10f64.powf(f64::from(-tenths) / 16.0)).chain([0.999, 0.03, 0.001, lowest]);
    rates.filter(move |&rate| rate >= lowest)
}

/// Every plan that the tests look at, and what was wanted.
fn for_each_plan(mut check: impl FnMut(Requirements, Plan)) {
    let step = if cfg!(miri) { 40 } else { 1 };
    for encoding in ENCODINGS {
        for rate in rates(encoding).step_by(step) {
            for capacity in [0, 1, 1000, 54_321, 3_000_000] {
                let times = [1, 2, 100, 7_777].map(|times| Some(capacity * times));
                for max_capacity in times.into_iter().chain([None, Some(0), Some(10)]) {
                    let wanted = Requirements {
                        capacity,
                        max_capacity,
                        expected: None,
                        rate,
                        encoding,
                        load_while_growing: LOAD_WHILE_GROWING,
                    };
                    // At the lowest rate, this may be too much for one table.
                    if let Ok(plan) = Plan::new(wanted) {
                        check(wanted, plan);
                    }
                }
            }
        }
    }
}

/// Sizes at four places of each doubling.
fn sizes(plan: &Plan) -> impl Iterator<Item = State> {
    let (first, largest) = (plan.first, plan.largest);
    let at = move |level: u32| (0..4).map(move |quarter| ((1usize << level) + (quarter << level) / 4) / GROUP * GROUP);
    let all = (first.ilog2()..=largest.ilog2()).flat_map(at).filter(move |size| (first..=largest).contains(size));
    all.map(State::of_buckets)
}

#[test]
fn the_rate_holds_at_every_size_and_more_buckets_hold_more() {
    for_each_plan(|wanted, plan| {
        let mut last = (0, 0);
        for state in sizes(&plan) {
            assert!(plan.rate(plan.slots(state) as f64) <= wanted.rate, "{wanted:?}, {state:?}");
            let now = (plan.slots(state), plan.capacity(state));
            assert!(now.1 <= now.0 && now >= last && now.1 >= last.1, "{wanted:?}, {state:?}: {now:?} after {last:?}");
            last = now;
        }
    });
}

#[test]
fn the_first_and_the_largest_capacity_are_kept() {
    for_each_plan(|wanted, plan| {
        let Requirements { capacity, max_capacity, .. } = wanted;
        let first = plan.capacity(State::of_buckets(plan.first));
        assert!(first >= capacity, "{wanted:?}: only {first}");
        assert!(plan.first.is_multiple_of(GROUP) && plan.first <= plan.largest);
        let most = max_capacity.unwrap_or_else(|| reach(capacity, wanted.rate));
        let is_largest = || Plan::new(Requirements { max_capacity: Some(plan.max_capacity() + 1), ..wanted }).is_err();
        assert!(plan.max_capacity() >= most || max_capacity.is_none() && is_largest(), "{wanted:?}: {plan:?}");
        for items in [0, 1, capacity, first, first + 1, plan.max_capacity()] {
            if items <= plan.max_capacity() {
                let buckets = plan.buckets_for(items).expect("there is one");
                let capacity = |buckets| plan.capacity(State::of_buckets(buckets));
                assert!(capacity(buckets) >= items && (buckets == plan.first || capacity(buckets - GROUP) < items));
            }
        }
        assert_eq!(plan.buckets_for(plan.max_capacity() + 1), None);
        assert!(plan.classes.stored_bits(plan.first.ilog2()) <= 32);
    });
}

/// Where no largest capacity is asked for, a filter begins with no more buckets than its first capacity takes, or with 128
/// KiB at most, and its largest table is as large as the rate allows.
#[test]
fn by_default_a_filter_begins_small_and_grows_as_far_as_its_rate_allows() {
    for_each_plan(|wanted, plan| {
        if wanted.max_capacity.is_none() {
            let least = least_buckets(plan.classes.base_bits() + plan.classes.side_bits());
            let is_needed = || plan.capacity(State::of_buckets(plan.first - GROUP)) < wanted.capacity;
            assert!(
                plan.first <= (128 << 10) / size_of::<u64>() || plan.first > least && is_needed(),
                "{wanted:?}: {plan:?}"
            );
            let larger = plan.largest + GROUP;
            let is_too_large = || plan.rate(plan.slots(State::of_buckets(larger)) as f64) > wanted.rate;
            assert!(larger > 1 << plan.classes.side_bits() || is_too_large(), "{wanted:?}: {plan:?}");
        }
    });
}

/// At each eighth of a doubling, and halfway between two, in buckets of two slots and more.
#[test]
fn capacities_are_those_of_the_formula() {
    let mut slots_seen = Vec::new();
    for base_bits in NEVER_ZERO..=24 {
        let plan = Plan::of(Classes::new(base_bits, 17), 1 << 10, None);
        let [whole, split] = plan.slots_of(State::of_buckets((1 << 10) + GROUP));
        slots_seen.push((whole, split));
        let (targets, end) = (if split > whole { TARGET_OF_TWO[whole] } else { TARGET[whole] }, TARGET[split][0]);
        for nth in 0..16 {
            let state = State::of_buckets((1 << 10) + 64 * nth);
            let target = (targets[nth / 2] + targets.get(nth.div_ceil(2)).unwrap_or(&end)) / 2.0;
            let slots = plan.slots(state) as f64;
            let expected = LOAD_WHILE_GROWING * target * slots - MARGIN[whole] * slots.sqrt();
            let capacity = plan.capacity(state) as f64;
            assert!((capacity - expected).abs() <= 1.0, "{base_bits}, {nth}: {capacity} instead of {expected}");
        }
    }
    assert!([(2, 2), (2, 3), (3, 3), (4, 4)].iter().all(|slots| slots_seen.contains(slots)), "{slots_seen:?}");
}

/// A snapshot may declare any. Each of these has one that is too small, too large, or no multiple of a group.
#[test]
#[cfg(feature = "snapshot")]
fn sizes_that_no_filter_has_are_not_valid() {
    let is_valid = |base: u32, sides: u32, first: usize, largest: usize| {
        Plan::declared([base, sides], [first as u64, largest as u64], None, LOAD_WHILE_GROWING).is_some()
    };
    let (least, group) = (LEAST_BUCKETS, GROUP);
    assert!(is_valid(NEVER_ZERO, LEAST_SIDE_BITS, least, 2 * least) && is_valid(NEVER_ZERO, 5, least, least));
    assert!(is_valid(32, 20, 1 << 20, 1 << 20) && is_valid(17, 20, least, 1 << 20));
    for (base, sides, first, largest) in [
        (NEVER_ZERO - 1, 20, least, 1 << 20),
        (33, 20, 1 << 20, 1 << 20),
        (12, 0, least, least),
        (12, sizing::LARGEST.ilog2() + 1, 1 << 20, 1 << 20),
        (12, 20, least - group, 1 << 20),
        (12, 20, (1 << 20) + group, (1 << 20) + group),
        (12, 20, 2 * least, least),
        (12, 20, least, (1 << 20) + group),
        (12, 20, least + 1, 1 << 20),
        (12, 20, least, (1 << 20) - 1),
        (18, 20, least, 1 << 20),
        (32, 32, least, 1 << 20),
    ] {
        assert!(!is_valid(base, sides, first, largest), "{base}, {sides}, {first}, {largest}");
    }
}

#[test]
fn the_largest_capacity_of_all_is_kept_and_one_more_is_an_error() {
    for encoding in ENCODINGS {
        for rate in rates(encoding).step_by(10) {
            let plan_of = |capacity, max| {
                Plan::new(Requirements {
                    capacity,
                    max_capacity: Some(max),
                    expected: None,
                    rate,
                    encoding,
                    load_while_growing: LOAD_WHILE_GROWING,
                })
            };
            let Err(BuildError::CapacityTooLarge { capacity: usize::MAX, largest, .. }) = plan_of(1, usize::MAX) else {
                panic!("no table is so large")
            };
            for capacity in [1, 1000, largest / 300, largest / 3, largest / 2 + 1, largest] {
                let plan = plan_of(capacity, largest).expect("it is the largest");
                let first = plan.capacity(State::of_buckets(plan.first));
                assert!(plan.max_capacity() >= largest && first >= capacity, "rate {rate:e}, {plan:?}");
            }
            for (capacity, max) in [(1, largest + 1), (largest + 1, 0)] {
                let failed = plan_of(capacity, max);
                let Err(BuildError::CapacityTooLarge { capacity, .. }) = failed else { panic!("{failed:?}") };
                assert_eq!(capacity, largest + 1);
            }
        }
    }
}

/// Up to the expected keys the rate holds at every size, and the class has no bit more than that takes, unless the filter could
/// not grow any further.
#[test]
fn the_rate_holds_up_to_the_expected_keys() {
    for encoding in ENCODINGS {
        for rate in rates(encoding).step_by(7) {
            for expected in [0, 1, 1000, 54_321, 3_000_000] {
                for max_capacity in [None, Some(expected), Some(expected * 5), Some(expected * 1000)] {
                    let wanted = Requirements {
                        capacity: expected / 10,
                        max_capacity,
                        expected: Some(expected),
                        rate,
                        encoding,
                        load_while_growing: LOAD_WHILE_GROWING,
                    };
                    let Ok(plan) = Plan::new(wanted) else { continue };
                    assert!(plan.first.is_multiple_of(GROUP) && plan.first <= plan.largest, "{wanted:?}");
                    assert!(plan.capacity(State::of_buckets(plan.first)) >= wanted.capacity, "{wanted:?}");
                    let buckets = plan.buckets_for(expected).expect("it can hold the expected keys");
                    for state in sizes(&plan).filter(|state| state.buckets() <= buckets) {
                        assert!(plan.rate(plan.capacity(state) as f64) <= rate, "{wanted:?}, {state:?}");
                    }
                    let bits = plan.classes.base_bits() + plan.classes.side_bits();
                    let shorter = Plan::of_class_bits(bits - 1, encoding);
                    let farther = max_capacity.unwrap_or(expected.saturating_mul(LEAST_TIMES_EXPECTED));
                    let is_enough = |plan: Plan| {
                        plan.max_capacity() >= farther
                            && plan.with_largest_for(wanted.capacity, max_capacity).holds_rate_for(expected, rate)
                    };
                    assert!(shorter.into_iter().all(|plan| !is_enough(plan)), "{wanted:?}: {plan:?}");
                    assert!(plan.max_capacity() >= farther, "{wanted:?}: {plan:?}");
                }
            }
        }
    }
}

/// The load while it grows decides how many buckets a filter has, and nothing else. So filters that differ in it can be united,
/// and have the same capacity at the largest size. The rate holds up to the expected keys with each.
#[test]
fn filters_with_another_load_while_growing_have_the_same_classes_and_the_same_largest_size() {
    let mut smaller = 0;
    for_each_plan(|wanted, _| {
        let most = wanted.max_capacity.unwrap_or(usize::MAX);
        let expected = [wanted.capacity, wanted.capacity * 10].map(|keys| (keys <= most).then_some(keys));
        for expected in expected.into_iter().chain([None]) {
            let plans = [0.70, LOAD_WHILE_GROWING, 0.95]
                .map(|load_while_growing| Plan::new(Requirements { expected, load_while_growing, ..wanted }));
            let [Ok(low), Ok(usual), Ok(high)] = plans else {
                assert!(plans.iter().all(Result::is_err), "{plans:?}");
                continue;
            };
            for plan in [low, high] {
                assert_eq!((plan.classes, plan.largest), (usual.classes, usual.largest), "{wanted:?}");
                assert_eq!(plan.max_capacity(), usual.max_capacity());
                assert!(plan.capacity(State::of_buckets(plan.first)) >= wanted.capacity, "{wanted:?}");
                assert!(expected.is_none_or(|keys| plan.rate(keys as f64) <= wanted.rate), "{wanted:?}");
            }
            assert!(low.first >= usual.first && usual.first >= high.first, "{wanted:?}");
            smaller += usize::from(low.first > high.first);
        }
    });
    assert!(smaller > 100, "the load makes a difference");
}

#[test]
fn expected_keys_that_are_too_many_are_an_error_that_says_how_many_are_possible() {
    for (rate, max_capacity) in [(1e-6, None), (0.001, Some(usize::MAX))] {
        let wanted = Requirements {
            capacity: 0,
            max_capacity,
            expected: Some(1 << 40),
            rate,
            encoding: None,
            load_while_growing: LOAD_WHILE_GROWING,
        };
        let Err(BuildError::CapacityTooLarge { capacity, largest, .. }) = Plan::new(wanted) else {
            panic!("{wanted:?}")
        };
        assert_eq!(capacity, 1 << 40);
        assert!(Plan::new(Requirements { expected: Some(largest), max_capacity: None, ..wanted }).is_ok(), "{largest}");
    }
    let wanted = Requirements {
        capacity: 0,
        max_capacity: Some(usize::MAX),
        expected: Some(1000),
        rate: 0.001,
        encoding: None,
        load_while_growing: LOAD_WHILE_GROWING,
    };
    let Err(BuildError::CapacityTooLarge { capacity: usize::MAX, largest, .. }) = Plan::new(wanted) else { panic!() };
    assert!(Plan::new(Requirements { max_capacity: Some(largest), ..wanted }).is_ok());
}

#[test]
fn a_rate_below_the_lowest_is_an_error_that_names_it() {
    for encoding in ENCODINGS {
        let lowest = lowest_rate(encoding);
        let failed = Plan::new(Requirements {
            capacity: 1,
            max_capacity: None,
            expected: None,
            rate: lowest * 0.99,
            encoding,
            load_while_growing: LOAD_WHILE_GROWING,
        });
        let Err(BuildError::RateTooLow { lowest: named, .. }) = failed else { panic!("{failed:?}") };
        assert_eq!(named, lowest);
        plan(1, Some(1), lowest, encoding);
    }
}

#[test]
fn the_sizes_of_a_filter_for_the_default_rate() {
    let plan = plan(1000, None, 0.001, None);
    let [first, last] = [plan.first, plan.largest].map(|buckets| plan.layout(buckets));
    assert_eq!((first.slots_per_bucket, last.slots_per_bucket, last.fingerprint_bits), (2, 5, 14));
    assert!(plan.max_capacity() >= 60_000_000, "{plan:?}");
    // As few as any fingerprints have with which as many keys have this rate.
    let bits = plan.classes.base_bits() + plan.classes.side_bits();
    assert_eq!(bits, bits_for(plan.max_capacity(), 0.001) + 1);
}

/// Adds a copy without counting it: so the table does not grow.
fn add_uncounted(table: &GrowingTable, class: Class) {
    if !table.add(class, None) {
        let placed = table.placed(class, table.state());
        let attempt = table.add_slow(class, IfPresent::Add, placed, FirstAttempt::NoRoom, &mut 0);
        assert_eq!(attempt, Ok(Attempt::Added), "there is room");
    }
}

/// Distinct keys fill a table of any size to its capacity, without growth.
#[test]
#[cfg_attr(miri, ignore = "millions of inserts")]
fn a_table_of_every_size_fills_to_its_capacity() {
    for (rate, encoding) in [(0.9, None), (0.02, None), (0.001, None), (0.001, ENCODINGS[1]), (1e-5, ENCODINGS[2])] {
        let plan =
            Plan { load_while_growing: *LOADS_WHILE_GROWING.end(), ..plan(20_000, Some(300_000), rate, encoding) };
        for state in sizes(&plan) {
            let buckets = state.buckets();
            // Growth may also end at this size. Then the table is filled further.
            let plan = Plan { within_limit: buckets, ..plan };
            for seed in 0..(30_000 / buckets as u64).clamp(1, 10) {
                let table = GrowingTable::of_buckets(plan, buckets).expect("some kilobytes");
                let keys = seed << 32..(seed << 32) + plan.capacity(state) as u64;
                for class in keys.map(|key| plan.classes.of(mixed(key))) {
                    add_uncounted(&table, class);
                }
                assert_eq!(table.capacity(), plan.capacity(state));
            }
        }
    }
}

/// Distinct keys are not mistaken for copies of one key, of which there may be only so many. A key's look-alikes are
/// Poisson distributed, with the false-positive rate as their mean: how likely are they to be as many as the limit?
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn distinct_keys_practically_never_have_too_many_copies() {
    let mut most = (0.0, None);
    for_each_plan(|wanted, plan| {
        for state in sizes(&plan) {
            let limit = plan.slots_of(state)[0];
            let mean = -(-plan.rate(plan.capacity(state) as f64)).ln_1p();
            let mut term = (-mean).exp();
            (1..=limit).for_each(|nth| term *= mean / nth as f64);
            let tail = (0..40).map(|nth| (1..=nth).fold(term, |term, more| term * mean / (limit + more) as f64));
            let likely = tail.sum::<f64>();
            if likely > most.0 {
                most = (likely, Some((wanted, limit, state.buckets())));
            }
        }
    });
    println!("most likely: {most:?}");
    assert!(most.0 < 2e-11, "more likely than `guide/growth.md` says: {most:?}");
}

/// A table may have more copies of a class than it would take: from an older snapshot. They stay, and a copy of the table has
/// them too.
#[test]
fn copies_beyond_the_limit_stay_and_are_copied() {
    use crate::table::image::merge::Merge;
    use crate::table::image::read::TableImage;

    let table = GrowingTable::new(plan(200, None, 0.001, None)).expect("some kilobytes");
    let hash = mixed(1);
    let class = table.plan.classes.of(hash);
    let all = (0..).take_while(|_| table.add(class, None)).count();
    table.counters().add_len(all as i64);
    let error = table.insert(hash).expect_err("there are too many");
    assert_eq!(error, GrowableInsertError::TooManyCopies { copies: all, limit: all / 2 });
    let copy_by = |merge| {
        let copy = GrowingTable::new(table.plan).expect("some kilobytes");
        let image = TableImage::begin(&table).expect("some kilobytes");
        let absorbed = copy.absorb(&image, merge);
        assert!(absorbed.stopped.is_none(), "{absorbed:?}");
        (absorbed.copies as usize, copy.len(), copy.count(hash))
    };
    assert_eq!(copy_by(Merge::Sum), (all, all, all));
    assert_eq!(copy_by(Merge::Union), (1, 1, 1));
    // It has room for a further one when there are fewer than the limit.
    (0..=all / 2).for_each(|_| assert!(table.remove(hash)));
    assert_eq!((table.insert(hash), table.count(hash)), (Ok(()), all / 2));
}

/// As many as the limit allows come in from another table of the same size. (Into an empty table, all do.)
#[test]
fn a_sum_adds_no_more_copies_than_the_limit() {
    use crate::table::image::merge::Merge;
    use crate::table::image::read::TableImage;

    let hash = mixed(1);
    let tables = [(); 2].map(|()| GrowingTable::new(plan(200, None, 0.001, None)).expect("some kilobytes"));
    while tables.iter().any(|table| table.insert(hash).is_ok()) {}
    let limit = tables[0].count(hash);
    assert!(tables[1].remove(hash));
    let image = TableImage::begin(&tables[0]).expect("some kilobytes");
    let absorbed = tables[1].absorb(&image, Merge::Sum);
    assert_eq!((absorbed.copies, absorbed.stopped.is_some()), (1, true), "{absorbed:?}");
    assert_eq!((tables[1].count(hash), tables[1].len()), (limit, limit));
}

/// An attacker who knows the hasher's key can fill a pair of buckets, and then its inserts fail, but cannot drive the memory up.
#[test]
fn keys_chosen_to_fill_a_pair_do_not_make_the_filter_grow() {
    let plan = plan(200, None, 0.001, None);
    let table = GrowingTable::new(plan).expect("some kilobytes");
    // All have the same buckets at every size.
    let classes = plan.classes;
    let pair = |base: u64| classes.of(base).sides[1] & 0x3ff;
    let alike = (257..1 << 14).filter(|&base| base & 0xff != 0 && pair(base) == pair(257));
    let (mut inserted, mut failed) = (0, 0);
    for hash in alike {
        let before = table.state().buckets();
        let result = table.insert(hash);
        assert!(table.state().buckets() <= before + 4 * GROUP, "one insert splits 128 buckets at most");
        match result {
            Ok(()) => inserted += 1,
            Err(GrowableInsertError::Full { .. } | GrowableInsertError::TooManyCopies { .. }) => failed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(inserted == 4 && failed > 8, "{inserted} inserted, {failed} failed");
    assert_eq!((table.len(), table.capacity()), (4, plan.capacity(State::of_buckets(plan.first))));
    // Other keys still find room.
    (0..plan.capacity(table.state()) as u64 * 4 / 5).for_each(|key| table.insert(mixed(key)).expect("there is room"));
}

/// The load, in tables of 65,536 buckets and more, at which an insert takes so many relocations on average ([`TARGET`]).
#[test]
#[ignore = "a minute: prints the tables"]
fn loads_at_which_inserts_take_so_many_relocations() {
    let mut seen = Vec::new();
    for bits in NEVER_ZERO + 1..=u32::BITS {
        let plan = Plan::of(Classes::new(bits - 1, 17), 1 << 16, None);
        let slots = plan.slots_of(State::of_buckets((1 << 16) + GROUP));
        if seen.contains(&slots) {
            continue;
        }
        seen.push(slots);
        let loads = (0..8).map(|eighth| {
            let buckets = (1 << 16) + (eighth << 13);
            let all = plan.slots(State::of_buckets(buckets));
            let load = |seed: u64| {
                let table = GrowingTable::of_buckets(plan, buckets).expect("half a megabyte");
                let mut keys = (seed << 32..).map(|key| plan.classes.of(mixed(key)));
                let mut insert = |count: usize| {
                    let before = table.counters().counts().relocations;
                    keys.by_ref().take(count).for_each(|class| {
                        add_uncounted(&table, class);
                    });
                    (table.counters().counts().relocations - before) as f64 / count as f64
                };
                let (half, some) = (all / 2, all / 200);
                insert(half);
                let further = (1..).find(|_| insert(some) >= 0.6).expect("at some load");
                (half + further * some) as f64 / all as f64
            };
            (0..4).map(load).sum::<f64>() / 4.0
        });
        let loads: Vec<String> = loads.map(|load| format!("{load:.3}")).collect();
        println!("{slots:?}: [{}],", loads.join(", "));
    }
}
