//! Races in tables of a few buckets, for filters of every kind: two or three threads with some operations each.
//!
//! Miri runs them with many schedules and with stale values (`ci/miri`), for which the other stress tests are too long.
//! Elsewhere, each race is run many times.

#[path = "support/mod.rs"]
mod support;

use std::hash::BuildHasherDefault;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use concurrent_cuckoo_filter::{CuckooMaplet, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Tick};
use support::{Identity, Raw, scattered};

/// How often each race is run in one process.
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 300 };

/// Each round has keys of its own, with the same hashes in each run. So which of them are taken for others does not
/// depend on chance.
fn key(round: u64, number: u64) -> Raw {
    scattered(round << 32 | number)
}

fn hasher() -> BuildHasherDefault<Identity> {
    BuildHasherDefault::default()
}

/// Lets `writer` go on, because what the caller waits for is not there yet. Fails if the writer has been joined before.
///
/// After `is_finished`, what a thread did may still not be seen. After `join` it must be.
fn wait_for_more(writer: &mut Option<ScopedJoinHandle<'_, ()>>) {
    assert!(writer.is_some(), "the writer has done all, and it is not seen");
    if let Some(writer) = writer.take_if(|writer| writer.is_finished()) {
        writer.join().expect("the writer does not fail");
    }
    thread::yield_now();
}

/// One thread inserts keys, and another's keys come and go. A third looks for the first one's keys. Once it has found
/// one, it finds it again, and knows what the first thread did before the insert.
#[test]
fn a_key_found_is_found_again_and_tells_what_came_before() {
    for round in 0..ROUNDS {
        let filter = support::build(12, Encoding::Plain, 1e-9);
        let done: [AtomicBool; 6] = Default::default();
        let start = Barrier::new(3);
        thread::scope(|threads| {
            let (filter, done, start) = (&filter, &done, &start);
            let mut writer = Some(threads.spawn(move || {
                start.wait();
                for (number, done) in (0..).zip(done) {
                    // Without an ordering: the filter's own are all that passes this on.
                    done.store(true, Ordering::Relaxed);
                    filter.insert(&key(round, number)).expect("the other thread leaves room");
                }
            }));
            threads.spawn(move || {
                start.wait();
                for number in 100..106 {
                    filter.insert(&key(round, number)).expect("there is room for six more");
                    assert!(number % 2 > 0 || filter.remove(&key(round, number)), "its own key is in");
                }
            });
            start.wait();
            for (number, done) in (0..).zip(done) {
                while !filter.contains(&key(round, number)) {
                    wait_for_more(&mut writer);
                }
                assert!(done.load(Ordering::Relaxed), "the key is in, but not what was done before");
                assert!((0..number).all(|number| filter.contains(&key(round, number))), "a present key was missed");
            }
        });
        assert_eq!(filter.len(), 9);
        assert!((0..6).all(|number| filter.remove(&key(round, number))));
    }
}

/// Two threads insert and remove keys, and the filter grows meanwhile.
#[test]
fn a_filter_that_grows_loses_nothing() {
    for round in 0..ROUNDS {
        let builder = GrowableCuckooFilter::<Raw>::builder().capacity(4).encoding(Encoding::Plain);
        let filter = builder.hasher(hasher()).build().unwrap();
        let start = Barrier::new(2);
        thread::scope(|threads| {
            for thread in 0..2u64 {
                let (filter, start) = (&filter, &start);
                threads.spawn(move || {
                    start.wait();
                    let own = |number| key(round, thread << 16 | number);
                    for number in 0..20 {
                        filter.insert(&own(number)).expect("it grows");
                        assert!(number < 5 || filter.remove(&own(number - 5)), "a present key was not removed");
                        assert!((number.max(4) - 4..=number).all(|number| filter.contains(&own(number))));
                    }
                });
            }
        });
        assert_eq!(filter.len(), 10);
        assert!((15..20).all(|number| (0..2).all(|thread| filter.remove(&key(round, thread << 16 | number)))));
    }
}

/// One thread sets the clock, one puts off the end of a key, and one adds keys that die soon.
#[test]
fn a_key_that_is_kept_is_found_while_others_die() {
    for round in 0..ROUNDS {
        let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(12).lifetime_in_ticks(8);
        let filter = builder.false_positive_rate(1e-7).hasher(hasher()).build().unwrap();
        filter.advance_to(Tick::new(100));
        let kept = key(round, 0);
        filter.insert_or_renew_until(&kept, Tick::new(104)).expect("there is room");
        let start = Barrier::new(3);
        thread::scope(|threads| {
            let (filter, start) = (&filter, &start);
            let clock = threads.spawn(|| {
                start.wait();
                (101..=103).for_each(|tick| _ = filter.advance_to(Tick::new(tick)));
            });
            threads.spawn(move || {
                start.wait();
                for end in [105, 106, 107] {
                    filter.insert_or_renew_until(&kept, Tick::new(end)).expect("it has an entry");
                    assert!(filter.contains(&kept), "a live entry was missed");
                }
            });
            start.wait();
            for number in 1..6 {
                let end = 102 + number % 3;
                filter.insert_until(&key(round, number), Tick::new(end)).expect("there is room");
                assert!(filter.contains(&kept), "a live entry was missed");
            }
            clock.join().expect("no thread fails");
            assert_eq!(filter.now(), Some(Tick::new(103)), "three ticks have passed");
            assert!((1..6).all(|number| filter.contains(&key(round, number)) == (number % 3 == 2)));
        });
        filter.advance_to(Tick::new(106));
        assert!(filter.contains(&kept));
        filter.advance_to(Tick::new(107));
        assert!(!filter.contains(&kept), "it died");
        assert_eq!(filter.live_len(), 0);
    }
}

/// One thread replaces a key's value, another makes its items move, and a third reads the values.
#[test]
fn a_value_is_the_old_one_or_the_new_one() {
    for round in 0..ROUNDS {
        let builder = CuckooMaplet::<Raw>::builder().capacity(12).value_bits(8);
        let maplet = builder.false_positive_rate(1e-6).hasher(hasher()).build().unwrap();
        let watched = key(round, 0);
        maplet.insert(&watched, 1).expect("there is room");
        maplet.insert(&watched, 200).expect("there is room");
        let start = Barrier::new(3);
        thread::scope(|threads| {
            let (maplet, start) = (&maplet, &start);
            let mut writer = Some(threads.spawn(move || {
                start.wait();
                (1..8).for_each(|value| assert_eq!(maplet.replace(&watched, value, value + 1), Ok(true)));
            }));
            threads.spawn(move || {
                start.wait();
                let own = |number| key(round, number);
                (1..9).for_each(|number| maplet.insert(&own(number), 3).expect("there is room"));
                (1..9).for_each(|number| assert!(maplet.remove(&own(number), 3)));
            });
            start.wait();
            let mut last = 1;
            loop {
                let values: Vec<u16> = maplet.values(&watched).iter().collect();
                let [value, 200] = values[..] else { panic!("{values:?}: one of 1 to 8 and 200") };
                assert!(last <= value && value <= 8, "{value} after {last}");
                if value == 8 {
                    break;
                }
                last = value;
                wait_for_more(&mut writer);
            }
        });
        assert_eq!(maplet.len(), 2);
    }
}

/// Saves and sums beside changes. What is in throughout is in the snapshot, and in the sum, exactly once.
#[test]
#[cfg(feature = "snapshot")]
fn what_is_in_throughout_is_saved_and_absorbed_once() {
    use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

    for round in 0..ROUNDS {
        let [filter, sum] = [0, 1].map(|_| support::build(8, Encoding::Plain, 1e-9));
        let both = [&filter, &sum];
        let permanent = |number| (key(round, number), key(round, number + 50));
        for number in 0..3 {
            filter.insert(&permanent(number).0).expect("there is room");
            sum.insert(&permanent(number).1).expect("there is room");
        }
        let mut bytes = Vec::new();
        let start = Barrier::new(4);
        thread::scope(|threads| {
            let start = &start;
            for (thread, filter) in (1..).zip(both) {
                threads.spawn(move || {
                    start.wait();
                    for number in 0..3 {
                        // It may find no room while the sum is made.
                        if filter.insert(&key(round, thread << 16 | number)).is_ok() {
                            assert!(filter.remove(&key(round, thread << 16 | number)));
                        }
                    }
                });
            }
            let (filter, bytes) = (&filter, &mut bytes);
            threads.spawn(move || {
                start.wait();
                filter.save(bytes).expect("memory");
            });
            start.wait();
            sum.absorb(filter).expect("alike, and with room for six and two more");
        });
        assert_eq!(sum.unite(&filter), Ok(0), "all of it was absorbed");
        let loaded = ConcurrentCuckooFilter::<Raw, _>::load(&bytes[..], hasher(), 1 << 20).expect("a snapshot");
        for number in 0..3 {
            let (of_filter, of_sum) = permanent(number);
            assert_eq!((loaded.count(&of_filter), filter.count(&of_filter)), (1, 1));
            assert_eq!((sum.count(&of_filter), sum.count(&of_sum)), (1, 1));
        }
        assert!(loaded.len() <= 4 && filter.len() == 3, "{loaded:?}");
        assert!((6..=7).contains(&sum.len()), "{sum:?}");
    }
}
