use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{
    AbsorbError, Advance, ExpiringCuckooFilter, ExpiringInsertError, ExpiryStats, Tick, WhenFull,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// With a hasher without a random key, so that each run has the same false positives: none.
type Filter = ExpiringCuckooFilter<u64, BuildHasherDefault<DefaultHasher>>;

fn expiry(filter: &Filter) -> ExpiryStats {
    filter.stats().expiry.expect("entries expire")
}

/// A filter that evicts, for lifetimes of up to this many ticks, at tick 1000.
fn evicting(capacity: usize, longest: u64) -> Filter {
    let builder = Filter::builder_with_hasher(Default::default()).capacity(capacity).lifetime_in_ticks(longest);
    let filter = builder.false_positive_rate(2e-8).when_full(WhenFull::EvictSoonest).build().expect("a valid filter");
    filter.advance_to(Tick::new(1000));
    filter
}

/// Inserts keys from `first` on with this end until one is refused or something is evicted. Returns the next key.
fn fill(filter: &Filter, first: u64, end: u64) -> u64 {
    let early_by = expiry(filter).evicted_early_by;
    (first..)
        .find(|key| filter.insert_until(key, Tick::new(end)).is_err() || expiry(filter).evicted_early_by > early_by)
        .unwrap()
        + 1
}

/// Every answer against a plain multiset, of which whole ticks go, the earliest first.
#[test]
fn whole_ticks_go_and_the_earliest_first() {
    let mut early_by = 0;
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let random = &mut SmallRng::seed_from_u64(seed);
        let longest = random.random_range(2..=15);
        let filter = evicting(100, longest);
        let (mut ends, mut now, mut gone) = (BTreeMap::new(), 1000, 1000);
        for key in 0..3000u64 {
            if random.random_ratio(1, 100) {
                let ticks = random.random_range(1..=3);
                now += ticks;
                gone = gone.max(now);
                assert_eq!(filter.advance_to(Tick::new(now)), Advance::Forward { ticks });
            }
            let end = now + random.random_range(1..=longest);
            let last_gone = ends.values().copied().filter(|&end| end > gone).max();
            match filter.insert_until(&key, Tick::new(end)) {
                Ok(kept) => {
                    assert!(kept && end > gone, "what was given up is not taken");
                    let lost = ends.iter().filter(|&(key, &end)| end > gone && !filter.contains(key));
                    gone = lost.map(|(_, &end)| end).max().unwrap_or(gone);
                    assert!(gone < end, "what ends first is evicted first");
                    ends.insert(key, end);
                }
                Err(ExpiringInsertError::Evicted { expires_at, up_to, .. }) => {
                    assert_eq!(expires_at, Tick::new(end));
                    let up_to = up_to.get();
                    assert!(end <= up_to && up_to >= gone, "{end} was not given up");
                    gone = up_to;
                }
                Err(ExpiringInsertError::Full { .. }) => {
                    assert!(last_gone.is_some(), "there are others");
                    // Ticks whose entries are elsewhere may have been evicted before.
                    gone = ends
                        .iter()
                        .filter(|&(key, _)| !filter.contains(key))
                        .map(|(_, &end)| end)
                        .max()
                        .unwrap_or(gone)
                        .max(gone);
                    assert!(gone < end);
                }
                Err(error) => panic!("{error}"),
            }
            for (key, &end) in &ends {
                assert_eq!(
                    filter.contains(key),
                    end > gone,
                    "{key} ends at {end}, now is {now}, up to {gone} has gone"
                );
            }
            ends.retain(|_, end| *end > gone);
            assert_eq!((filter.now(), filter.live_len()), (Some(Tick::new(now)), ends.len()));
        }
        early_by = early_by.max(expiry(&filter).evicted_early_by);
        assert_eq!(
            expiry(&filter).evicted > 0,
            expiry(&filter).evicted_early_by > 0,
            "a table as small as this is swept at once"
        );
    }
    assert!(early_by > 1, "something was evicted that had long to live");
}

#[test]
fn what_was_evicted_does_not_end_again_and_others_keep_their_ends() {
    let filter = evicting(1000, 15);
    let later = filter.capacity() as u64 / 2;
    (0..later).for_each(|key| _ = filter.insert_until(&key, Tick::new(1010)).unwrap());
    let next = fill(&filter, later, 1004); // refused: nothing ends before that
    assert!(expiry(&filter).evicted_early_by == 0 && filter.stats().inserts_failed == 1);
    filter.insert(&next).expect("those of tick 1004 go");
    assert_eq!((filter.now(), expiry(&filter).evicted_early_by), (Some(Tick::new(1000)), 4));
    assert!((later..next - 1).all(|key| !filter.contains(&key)), "the whole tick has gone");
    assert_eq!(filter.live_len() as u64, later + 1);
    for now in 1001..=1009 {
        assert_eq!(filter.advance_to(Tick::new(now)), Advance::Forward { ticks: 1 });
        assert_eq!((filter.now(), filter.live_len() as u64), (Some(Tick::new(now)), later + 1));
        assert_eq!(filter.expires_at(&next), Some(Tick::new(1015)), "whether the clock is ahead or not");
        // Ends are given up until the clock has reached them.
        let taken = filter.insert_until(&(1 << 40 | now), Tick::new(now + 1));
        assert_eq!(taken.is_ok(), now >= 1004, "{taken:?}");
        assert_eq!(filter.remove_expiring_at(&(1 << 40 | now), Tick::new(now + 1)), taken.is_ok());
    }
    filter.advance_to(Tick::new(1010));
    assert_eq!(filter.live_len(), 1);
    filter.advance_to(Tick::new(1014));
    assert!(filter.contains(&next), "it has its whole life");
    filter.advance_to(Tick::new(1015));
    assert_eq!(filter.live_len(), 0);
    assert_eq!((expiry(&filter).evicted + expiry(&filter).expired, expiry(&filter).evicted_early_by), (next, 4));
    assert!(
        expiry(&filter).evicted > 0 && expiry(&filter).evicted <= next - 1 - later,
        "only those of one tick were evicted"
    );
}

#[test]
fn an_end_that_was_given_up_is_refused_and_nothing_is_lost_in_silence() {
    let filter = evicting(1000, 15);
    let next = fill(&filter, 0, 1003);
    filter.insert_until(&next, Tick::new(1008)).unwrap();
    for end in 1001..=1003 {
        let error = filter.insert_until(&7, Tick::new(end)).unwrap_err();
        assert!(matches!(error, ExpiringInsertError::Evicted { up_to, .. } if up_to.get() == 1003), "{error}");
        assert!(error.to_string().contains(&format!("tick {end}")) && error.to_string().contains("1003"), "{error}");
        assert_eq!(
            (filter.insert_if_absent_until(&7, Tick::new(end)), filter.insert_or_renew_until(&7, Tick::new(end))),
            (Err(error.clone()), Err(error))
        );
        assert!(!filter.remove_expiring_at(&0, Tick::new(end)), "it has gone already");
        // A key that lives longer needs nothing.
        assert_eq!(
            (filter.insert_if_absent_until(&next, Tick::new(end)), filter.insert_or_renew_until(&next, Tick::new(end))),
            (Ok(false), Ok(false))
        );
    }
    assert_eq!(filter.insert_until(&7, Tick::new(1000)), Ok(false), "what has ended by the clock is no error");
    let entries = [(&8, 1004), (&9, 1003), (&10, 1004)].map(|(key, end)| (key, Tick::new(end)));
    assert_eq!(filter.insert_until_batch(entries, &mut Vec::new()).unwrap_err().index, 1);
    assert!(filter.stats().inserts_failed >= 10);
}

/// If all entries end at the tick of the new one, to evict that tick would empty the filter. As soon as the clock goes
/// on there is something to evict.
#[test]
fn a_burst_within_the_last_tick_is_refused_until_the_clock_goes_on() {
    let filter = evicting(1000, 15);
    let refused = (0u64..).find(|key| filter.insert(key).is_err()).unwrap();
    // The error says so: the advice for a filter that does not evict is another.
    assert!(matches!(filter.insert(&refused), Err(ExpiringInsertError::Full { evicts: true, .. })));
    assert_eq!((filter.live_len() as u64, expiry(&filter).evicted_early_by), (refused, 0));
    filter.advance_to(Tick::new(1001));
    filter.insert(&refused).expect("what was inserted at the last tick goes");
    assert_eq!((filter.live_len(), expiry(&filter).evicted_early_by), (1, 14));
}

/// Entries of one key fill its two buckets. All others would have to go for one more of it.
#[test]
fn many_entries_of_one_key_make_nobody_else_go() {
    let filter = evicting(1000, 15);
    (1..=900).for_each(|key| _ = filter.insert_until(&key, Tick::new(1001)).unwrap());
    let copies = (0..15).take_while(|nth| filter.insert_until(&0, Tick::new(1001 + nth)).is_ok()).count();
    let error = filter.insert_until(&0, Tick::new(1015)).unwrap_err();
    assert!(matches!(error, ExpiringInsertError::TooManyCopies { .. }), "{error}");
    assert_eq!((filter.live_len(), expiry(&filter).evicted_early_by), (900 + copies, 0));
}

/// Many entries of a few keys fill buckets that these keys share. To evict others would not help for long.
#[test]
fn a_filter_that_is_half_empty_evicts_nothing() {
    let refused = (0..100).find_map(|_| {
        let filter = evicting(1000, 15);
        (1 << 40..1 << 40 | 10).for_each(|key: u64| _ = filter.insert_until(&key, Tick::new(1001)).unwrap());
        let copies = 2 * filter.plan().layout.slots_per_bucket - 1;
        let key =
            (0..400).map(|nth| nth / copies as u64).find(|key| filter.insert_until(key, Tick::new(1008)).is_err())?;
        // All that is in the way would end before this one.
        let error = filter.insert_until(&key, Tick::new(1015)).unwrap_err();
        assert!(matches!(error, ExpiringInsertError::Full { .. }), "{error}");
        assert_eq!((filter.live_len(), expiry(&filter).evicted_early_by), (filter.len(), 0));
        Some(error)
    });
    assert!(refused.is_some(), "such keys share buckets now and then");
}

#[test]
fn a_new_clock_a_clear_and_a_jump_keep_what_was_given_up() {
    let filter = evicting(1000, 15);
    let next = fill(&filter, 0, 1003);
    filter.insert_until(&next, Tick::new(1008)).unwrap();
    // Three ticks ahead.
    filter.restart_clock(Tick::new(50));
    let error = filter.insert_until(&1, Tick::new(53)).unwrap_err();
    assert!(matches!(error, ExpiringInsertError::Evicted { up_to, .. } if up_to.get() == 53), "{error}");
    filter.insert_until(&1, Tick::new(54)).unwrap();
    assert_eq!((filter.now(), filter.live_len()), (Some(Tick::new(50)), 2));
    filter.advance_to(Tick::new(54));
    assert!(!filter.contains(&1) && filter.contains(&next));
    filter.advance_to(Tick::new(57));
    assert!(filter.contains(&next));
    filter.advance_to(Tick::new(58));
    assert!(!filter.contains(&next));
    let next = fill(&filter, 0, 61);
    filter.insert_until(&next, Tick::new(70)).unwrap();
    filter.clear();
    assert!(filter.insert_until(&1, Tick::new(61)).is_err());
    filter.insert_until(&1, Tick::new(62)).unwrap();
    assert_eq!(filter.advance_to(Tick::new(1 << 40)), Advance::Forward { ticks: (1 << 40) - 58 });
    assert_eq!((filter.live_len(), filter.now()), (0, Some(Tick::new(1 << 40))));
    filter.insert_until(&1, Tick::new((1 << 40) + 1)).unwrap();
    filter.insert(&2).unwrap();
}

/// A filter that is absorbed, and one that absorbs, may have given up ends.
#[test]
fn filters_that_have_evicted_can_be_absorbed() {
    let small = |keys: std::ops::Range<u64>| {
        let filter = evicting(1000, 15).empty_like().unwrap();
        keys.for_each(|key| _ = filter.insert_until(&key, Tick::new(1006)).unwrap());
        filter
    };
    let with_evicted = small(0..0);
    let next = fill(&with_evicted, 0, 1003);
    with_evicted.insert_until(&next, Tick::new(1008)).unwrap();
    let all = with_evicted.empty_like().unwrap();
    assert_eq!(all.absorb(&with_evicted), Ok(1));
    assert!(all.contains(&next) && all.remove_expiring_at(&next, Tick::new(1008)), "it has its end");
    let other = with_evicted.empty_like().unwrap();
    other.insert_until(&1, Tick::new(1002)).unwrap();
    other.insert_until(&2, Tick::new(1004)).unwrap();
    let evicted = expiry(&with_evicted).evicted;
    let error = with_evicted.absorb(&other).unwrap_err();
    assert!(matches!(error, AbsorbError::Evicted { absorbed: 1, rejected: 1, up_to, .. } if up_to == Tick::new(1003)));
    assert!(with_evicted.contains(&2) && !with_evicted.contains(&1));
    assert_eq!(expiry(&with_evicted).evicted, evicted, "it was never in");
    // What is to come is counted by the ends, before anything is added.
    let full = with_evicted.empty_like().unwrap();
    (1..full.capacity() as u64).for_each(|key| _ = full.insert_until(&(1 << 40 | key), Tick::new(1014)).unwrap());
    full.advance_to(Tick::new(1002));
    let refused = full.absorb(&with_evicted);
    assert!(matches!(refused, Err(AbsorbError::OverCapacity { .. })), "{refused:?}");
    assert_eq!(with_evicted.digest().unwrap(), {
        let alike = with_evicted.empty_like().unwrap();
        alike.insert_until(&2, Tick::new(1004)).unwrap();
        alike.insert_until(&next, Tick::new(1008)).unwrap();
        alike.digest().unwrap()
    });
}

/// Threads insert far more than fits. Each entry is found until its tick has ended early, the earliest first.
#[test]
fn what_was_not_evicted_is_found_whatever_others_do() {
    const THREADS: u64 = 4;
    let filter = evicting(2000, 7);
    let tick = AtomicU64::new(1000);
    let each = if cfg!(miri) { 300 } else { 20_000 };
    thread::scope(|threads| {
        for id in 0..THREADS {
            let (filter, tick) = (&filter, &tick);
            threads.spawn(move || {
                let mut own: Vec<(u64, u64)> = Vec::new();
                for nth in 0..each {
                    let key = id << 40 | nth;
                    let now = tick.load(Ordering::SeqCst);
                    // Beyond what any other thread may have asked for by now: its tick goes last.
                    match filter.insert_until(&key, Tick::new(now + 1 + nth % 7)) {
                        Ok(_) => own.push((key, now + 1 + nth % 7)),
                        Err(ExpiringInsertError::Full { .. } | ExpiringInsertError::Evicted { .. }) => (),
                        Err(error) => assert!(matches!(error, ExpiringInsertError::LifetimeTooLong { .. }), "{error}"),
                    }
                    if nth % 64 == 0 {
                        // What ends last is evicted last, whatever others do between two lookups.
                        own.sort_by_key(|&(_, end)| std::cmp::Reverse(end));
                        let mut gone = None;
                        own.retain(|&(key, end)| {
                            let found = filter.contains(&key);
                            assert!(gone.is_none() || !found, "{key} until {end} is found, and not {gone:?}");
                            gone = gone.or((!found).then_some((key, end)));
                            found
                        });
                    }
                    if id == 0 && nth % 500 == 499 {
                        let now = tick.load(Ordering::SeqCst) + 1;
                        filter.advance_to(Tick::new(now));
                        tick.store(now, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let now = tick.load(Ordering::SeqCst);
    assert!(expiry(&filter).evicted_early_by > 0, "{:?}", filter.stats());
    assert_eq!(filter.now(), Some(Tick::new(now)));
    filter.advance_to(Tick::new(now + 7));
    (0..100).for_each(|_| _ = filter.advance_to(Tick::new(now + 7)));
    assert_eq!((filter.len(), filter.live_len()), (0, 0));
}
