//! Histories of recent keys, checked by what the documentation promises: a key is found until so many others were counted
//! after it, it leaves in time, and of inserts of one key at most one in that time is told that it is new.
//!
//! The end of a tick is no operation of any caller. So the histories are not compared with a specification, as those of
//! `histories` are, but each answer with the calls before it and at the same time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ccf_steps::model::{Expiring, Fault, Key, ModelLayout, Seeded, Smallest, Usual, before_each_step};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::common::{
    Job, Run, breaks_without, job, on_shuttle_threads, scaled, under_schedules, under_shuttle, with_real_threads,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Insert,
    Renew,
    Contains,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
struct Event {
    called: usize,
    answered: usize,
    class: usize,
    ask: Ask,
    /// Whether the key was said to be among the recent ones.
    was_recent: bool,
}

impl Event {
    fn inserts(&self) -> bool {
        self.ask != Ask::Contains
    }

    /// Whether the key is a recent one, as the newest, when the call has ended.
    fn makes_newest(&self) -> bool {
        self.ask == Ask::Renew || self.ask == Ask::Insert && !self.was_recent
    }

    fn is_counted(&self) -> bool {
        self.inserts() && !self.was_recent
    }

    fn ended_before(&self, other: &Self) -> bool {
        self.answered < other.called
    }
}

/// A table, and what each thread asks.
struct World<L: ModelLayout> {
    table: Expiring<L>,
    keys: Vec<Key>,
    per_tick: u64,
    asked: Vec<Vec<(Ask, usize)>>,
}

impl<L: ModelLayout> World<L> {
    fn new(seed: u64) -> Self {
        // The fewest that have room for all that can be recent.
        const BUCKETS: usize = 16;
        let mut random = SmallRng::seed_from_u64(seed);
        let per_tick = random.random_range(1..=4);
        let table = Expiring::of_last_keys(BUCKETS, per_tick, random.random_range(0..per_tick));
        let pair = |class| (2 * class % BUCKETS, (6 * class + 1) % BUCKETS);
        let keys: Vec<_> =
            (0..10).map(|class| Expiring::<L>::key(BUCKETS, pair(class).0, pair(class).1, class)).collect();
        let (threads, used) = (random.random_range(2..=4), random.random_range(2..=keys.len()));
        let asks = [Ask::Insert, Ask::Insert, Ask::Renew, Ask::Contains];
        let mut ask = || (*asks.choose(&mut random).expect("not empty"), random.random_range(0..used));
        let asked = (0..threads).map(|_| (0..30 / threads).map(|_| ask()).collect()).collect();
        Self { table, keys, per_tick, asked }
    }

    /// What is wrong with the history.
    fn violation(&self, events: &[Event]) -> Option<String> {
        if self.table.evicted() > 0 {
            return Some(format!("{} keys were evicted, though there is room", self.table.evicted()));
        }
        let threads = self.asked.len() as u64;
        let count = |is_it: &dyn Fn(&Event) -> bool| events.iter().filter(|event| is_it(event)).count() as u64;
        for event in events {
            let of_key = || events.iter().filter(|other| other.class == event.class);
            for newest in of_key().filter(|other| other.makes_newest()) {
                // One that overlaps it may come later, unless both were told that the key is new.
                let comes_before = newest.ended_before(event)
                    || newest.is_counted() && event.is_counted() && newest.called < event.called;
                if event.was_recent || !comes_before {
                    continue;
                }
                // A renewal counts, or not. Of two that overlap, either may have come first.
                let (start, end) = (newest.called.min(event.called), newest.answered.max(event.answered));
                let may_count = |other: &Event| {
                    (other.is_counted() || other.ask == Ask::Renew)
                        && other.answered > start
                        && other.called < end
                        && ![newest.called, event.called].contains(&other.called)
                };
                let counted = count(&may_count);
                if counted < self.per_tick {
                    return Some(format!("{event:?} misses the key of {newest:?}, though only {counted} were counted"));
                }
            }
            // What was said to be recent has come, and not so many have come since.
            let is_due = |newest: &Event| {
                let since =
                    count(&|other| other.is_counted() && newest.ended_before(other) && other.ended_before(event));
                newest.called < event.answered && since < 2 * self.per_tick + 2 * (threads - 1)
            };
            if event.was_recent
                && !of_key().any(|other| other.makes_newest() && other.called != event.called && is_due(other))
            {
                return Some(format!("{event:?} finds a key that has left, or that has never come"));
            }
        }
        None
    }
}

/// Runs a world's threads, and checks their history.
fn run<L: ModelLayout>(seed: u64, on_threads: &dyn Fn(Vec<Job>)) {
    let world = Arc::new(World::<L>::new(seed));
    let (time, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let jobs = (0..world.asked.len()).map(|thread| {
        let (world, time, events) = (Arc::clone(&world), Arc::clone(&time), Arc::clone(&events));
        job(move || {
            let mut own = Vec::new();
            for &(ask, class) in &world.asked[thread] {
                let key = world.keys[class];
                let called = time.fetch_add(1, Ordering::SeqCst);
                let was_recent = match ask {
                    Ask::Insert => !world.table.insert_recent(key, 0),
                    Ask::Renew => !world.table.insert_or_renew_recent(key.twin(), 0),
                    Ask::Contains => world.table.contains(key),
                };
                own.push(Event { called, answered: time.fetch_add(1, Ordering::SeqCst), class, ask, was_recent });
            }
            events.lock().expect("no thread has failed").extend(own);
        })
    });
    on_threads(jobs.collect());
    let events = events.lock().expect("no thread has failed");
    if let Some(violation) = world.violation(&events) {
        panic!("world {seed}, {} keys per tick: {violation}\n{events:#?}", world.per_tick);
    }
}

const RUNS: [Run; 2] = [run::<Smallest>, run::<Usual>];

#[test]
fn histories_under_random_schedules_keep_the_promises() {
    (0..scaled(40, "CCF_HISTORIES") as u64).for_each(under_shuttle(RUNS));
}

#[test]
fn histories_of_real_threads_keep_the_promises() {
    (0..scaled(500, "CCF_HISTORIES") as u64).for_each(with_real_threads(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_tick_that_ends_twice_breaks_a_promise() {
    breaks_without(Fault::TickEndsTwice, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_tick_that_ends_without_locks_breaks_a_promise() {
    breaks_without(Fault::TickEndsWithoutLocks, under_shuttle(RUNS));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn entries_added_without_the_lock_break_a_promise() {
    breaks_without(Fault::AddValueWithoutLock, under_shuttle(RUNS));
}

/// The `nth` class of a table of two buckets, which all have both.
fn of_two_buckets(nth: usize) -> Key {
    Expiring::<Smallest>::key(2, 0, 1, nth)
}

/// A full table, and the keys that have come, each with its tick.
type Full = (Expiring, Vec<(Key, u64)>);

/// A full table in which two keys of the first tick and two of the second one have come, and the keys of each tick with it.
/// Its clock follows the time, which is in the second tick.
fn full() -> Full {
    let table = Expiring::of_recent_time(2);
    assert_eq!(2 * table.slots_per_bucket(), 4);
    let came: Vec<_> = (0..4).map(|nth| (of_two_buckets(nth), nth as u64 / 2)).collect();
    came.iter().for_each(|&(key, tick)| assert!(table.insert_recent(key, tick), "there is room"));
    (table, came)
}

/// The same when the keys of the first tick were evicted, and two more of the second one have come.
fn full_of_one_tick() -> Full {
    let (table, mut came) = full();
    for nth in 4..6 {
        assert!(table.insert_recent(of_two_buckets(nth), 1), "it is new");
        came.push((of_two_buckets(nth), 1));
    }
    assert_eq!((table.live_len(), table.evicted_early_by()), (4, 1));
    (table, came)
}

/// Inserts one more key in the second tick, and lets the next one begin before the step of this number. Before each step,
/// and in the end, checks that a key that is missed was not evicted earlier than noted. Returns how many steps there were, and what
/// was wrong.
fn evict_one(table: fn() -> Full, interrupted: Option<usize>) -> (usize, Option<String>) {
    const LIFETIME: u64 = 2;
    let (table, came) = table();
    let (table, tick, steps) = (Rc::new(table), Cell::new(1), Rc::new(Cell::new(0)));
    let wrong = Rc::new(RefCell::new(None));
    let check = {
        let (table, wrong) = (Rc::clone(&table), Rc::clone(&wrong));
        move |tick: u64| {
            for (nth, &(key, since)) in came.iter().enumerate() {
                let early_by = (since + LIFETIME).saturating_sub(tick);
                let noted = table.evicted_early_by();
                if noted < early_by && !table.contains(key) {
                    let what = format!("key {nth} is missed {early_by} ticks early, and only {noted} were noted");
                    wrong.borrow_mut().get_or_insert(what);
                }
            }
        }
    };
    let check = Rc::new(check);
    let (check_each, counter, clock, checking) =
        (Rc::clone(&check), Rc::clone(&steps), Rc::clone(&table), Cell::new(false));
    let time = Rc::new(tick);
    let passing = Rc::clone(&time);
    before_each_step(Some(Rc::new(move |_| {
        if checking.replace(true) {
            return;
        }
        let now = counter.replace(counter.get() + 1);
        if interrupted == Some(now) {
            passing.set(2);
            clock.move_on(2);
        }
        check_each(passing.get());
        checking.set(false);
    })));
    assert!(table.insert_recent(of_two_buckets(6), 1), "it is new");
    before_each_step(None);
    check(time.get());
    assert!(table.contains(of_two_buckets(6)), "it was just inserted");
    let wrong = wrong.borrow_mut().take();
    (steps.get(), wrong)
}

/// A whole tick is evicted, or a key is displaced. At each step the time may pass.
fn what_is_wrong(table: fn() -> Full) -> Option<String> {
    let (steps, wrong) = evict_one(table, None);
    wrong.or_else(|| (0..steps).find_map(|step| evict_one(table, Some(step)).1))
}

#[test]
fn a_key_is_not_evicted_earlier_than_noted() {
    for (table, early_by) in [(full as fn() -> _, 1), (full_of_one_tick, 2)] {
        assert_eq!(what_is_wrong(table), None);
        let (filled, _) = table();
        assert!(filled.insert_recent(of_two_buckets(6), 1), "it is new");
        assert_eq!(filled.evicted_early_by(), early_by);
    }
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_tick_that_is_evicted_before_that_is_noted_is_missed_too_early() {
    let _seeded = Seeded::bugs(&[Fault::EvictsBeforeItIsNoted]);
    assert!(what_is_wrong(full).is_some_and(|wrong| wrong.contains("1 ticks early, and only 0")));
}

#[test]
#[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
fn a_key_that_is_displaced_before_that_is_noted_is_missed_too_early() {
    let _seeded = Seeded::bugs(&[Fault::DisplacesBeforeItIsNoted]);
    assert!(what_is_wrong(full_of_one_tick).is_some_and(|wrong| wrong.contains("2 ticks early, and only 1")));
}

/// Two filters that change places: of the last keys, by one hasher and with one table.
struct Both {
    old: Expiring,
    new: Expiring,
}

/// How a thread asks whether a key is new, while it knows one filter alone, and while it knows both.
struct Recipe {
    alone: fn(&Expiring, Key) -> bool,
    both: fn(&Both, Key) -> bool,
}

/// What the guide's page `expiry` has.
const IS_NEW: &str = "!old.contains(key) && new.insert(key) && old.insert(key)";
const RECIPE: Recipe = Recipe {
    alone: |filter, key| filter.insert_recent(key, 0),
    both: |Both { old, new }, key| !old.contains(key) && new.insert_recent(key, 0) && old.insert_recent(key, 0),
};

/// The same without the first step.
const WITHOUT_LOOKUP: Recipe =
    Recipe { both: |Both { old, new }, key| new.insert_recent(key, 0) && old.insert_recent(key, 0), ..RECIPE };

/// What the page has for a program that renews keys.
const IS_NEW_OR_RENEWED: &str = "new.insert_or_renew(key) && old.insert_or_renew(key)";
const RENEWING_RECIPE: Recipe = Recipe {
    alone: |filter, key| filter.insert_or_renew_recent(key, 0),
    both: |Both { old, new }, key| new.insert_or_renew_recent(key, 0) && old.insert_or_renew_recent(key, 0),
};

/// How a thread asks whether a key is new.
type IsNew = Arc<dyn Fn(&Both, Key) -> bool + Send + Sync>;

/// A filter with four keys gives its place to another one. First, one thread still knows the old filter alone, while
/// another one asks both. Then two threads ask both, and the new one alone when it has taken over the keys of the old one.
/// They bring three of the four keys again, and two new ones. Returns which keys the new filter lacks in the end.
fn change_places(Recipe { alone, both: ask_both }: Recipe) -> Vec<usize> {
    const BUCKETS: usize = 16;
    // Five keys come after the first one. So that one stays.
    const PER_TICK: u64 = 6;
    let key = |nth| Expiring::<Smallest>::key(BUCKETS, 2 * nth, (6 * nth + 1) % BUCKETS, nth);
    // The first key ends a tick. In the new filter, so few keys are left until one ends that a repeated one makes a difference.
    let both = Arc::new(Both {
        old: Expiring::of_last_keys(BUCKETS, PER_TICK, PER_TICK - 1),
        new: Expiring::of_last_keys(BUCKETS, PER_TICK, PER_TICK - 4),
    });
    (0..4).for_each(|nth| assert!(alone(&both.old, key(nth)), "it is new"));
    let told_new = Arc::new(Mutex::new(Vec::new()));
    let asks = |nths: &'static [usize], is_new: IsNew| {
        let (both, told_new) = (Arc::clone(&both), Arc::clone(&told_new));
        job(move || {
            for &nth in nths.iter().filter(|&&nth| is_new(&both, key(nth))) {
                told_new.lock().expect("no thread has failed").push(nth);
            }
        })
    };
    on_shuttle_threads(vec![
        asks(&[3, 4], Arc::new(move |both, key| alone(&both.old, key))),
        asks(&[4, 1], Arc::new(ask_both)),
    ]);
    let united = Arc::new(AtomicUsize::new(0));
    let unites = {
        let (both, united) = (Arc::clone(&both), Arc::clone(&united));
        job(move || {
            both.new.unite_recent(&both.old, PER_TICK);
            united.store(1, Ordering::SeqCst);
        })
    };
    let ask = Arc::new(
        move |both: &Both, key| {
            if united.load(Ordering::SeqCst) == 0 { ask_both(both, key) } else { alone(&both.new, key) }
        },
    );
    on_shuttle_threads(vec![asks(&[1, 5, 2, 3], ask.clone()), asks(&[3, 2, 5, 1], ask), unites]);
    let told_new = told_new.lock().expect("no thread has failed");
    assert_eq!(*told_new, [4, 5], "not one thread was told of each new key, and none of the others");
    assert_eq!(both.new.evicted(), 0);
    (0..6).filter(|&nth| !both.new.contains(key(nth))).collect()
}

#[test]
fn filters_that_change_places_lose_no_key_and_tell_one_thread_of_each() {
    let page = include_str!("../../../src/guide/expiry.md");
    assert!(page.contains(IS_NEW) && page.contains(IS_NEW_OR_RENEWED), "the guide has another recipe");
    let schedules = scaled(1000, "CCF_SCHEDULES");
    under_schedules(1, schedules, || assert_eq!(change_places(RECIPE), [], "keys were lost"));
    // Renewed keys count. So the two that do not come again may leave.
    let lost = || change_places(RENEWING_RECIPE).into_iter().find(|nth| ![0, 4].contains(nth));
    under_schedules(2, schedules, move || assert_eq!(lost(), None, "a key was lost"));
}

#[test]
#[should_panic(expected = "keys were lost")]
fn a_repeated_key_that_is_inserted_while_filters_change_places_counts_twice() {
    under_schedules(1, scaled(1000, "CCF_SCHEDULES"), || {
        assert_eq!(change_places(WITHOUT_LOOKUP), [], "keys were lost")
    });
}
