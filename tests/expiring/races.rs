use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::Tick;

use crate::filter;
use crate::support::Ends;

/// How often each thread of a race does its part, at least. The race goes on until all have done so.
const ROUNDS: u64 = if cfg!(miri) { 3 } else { 500 };

/// Entries are added, die and are moved on some threads. Every thread finds the live entries, and none finds the
/// dead ones.
#[test]
fn what_lives_is_found_and_what_is_dead_is_not() {
    for (ticks, rate) in [(3, 1e-8), (15, 1e-7), (63, 1e-6), (9, 1e-7)] {
        let filter = filter(3000, ticks, rate);
        filter.advance_to(Tick::new(1000));
        let done = AtomicBool::new(false);
        // Two threads set the clock. One of them has begun to set it to `told`, and one has finished setting it to
        // `now`.
        let (told, now) = (AtomicU64::new(1000), AtomicU64::new(1000));
        thread::scope(|threads| {
            let (told, now, filter, done) = (&told, &now, &filter, &done);
            for _ in 0..2 {
                threads.spawn(move || {
                    let _ends = Ends(done);
                    while !done.load(Ordering::SeqCst) {
                        let tick = told.fetch_add(1, Ordering::SeqCst) + 1;
                        filter.advance_to(Tick::new(tick));
                        now.fetch_max(tick, Ordering::SeqCst);
                        (0..20).for_each(|_| _ = filter.advance_to(Tick::new(tick)));
                        thread::yield_now();
                    }
                });
            }
            let workers = [0, 1, 2].map(|id: u64| {
                threads.spawn(move || {
                    let mut own: Vec<(u64, u64)> = Vec::new();
                    let (mut next, mut rounds) = (id << 40, 0);
                    let clocks_lag = || now.load(Ordering::SeqCst) < 1000 + ROUNDS;
                    while (rounds < ROUNDS || clocks_lag()) && !done.load(Ordering::SeqCst) {
                        rounds += 1;
                        while own.len() < 900 {
                            let end = now.load(Ordering::SeqCst) + 1 + next % ticks;
                            match filter.insert_until(&next, Tick::new(end)) {
                                Ok(_) => own.push((next, end)),
                                Err(_) => break,
                            }
                            next += 1;
                        }
                        own.retain(|&(key, end)| {
                            let dead = now.load(Ordering::SeqCst) >= end;
                            let found = filter.contains(&key);
                            let alive = told.load(Ordering::SeqCst) < end;
                            assert!(found || !alive, "{key} lives until {end}, and was missed");
                            assert!(!found || !dead, "{key} died at {end}, and was found");
                            !dead
                        });
                        for (key, end) in own.drain(..own.len() / 3) {
                            let removed = filter.remove_expiring_at(&key, Tick::new(end));
                            assert!(removed || told.load(Ordering::SeqCst) >= end, "{key} lived until {end}");
                        }
                    }
                })
            });
            let ended = workers.map(|worker| worker.join());
            done.store(true, Ordering::SeqCst);
            ended.into_iter().for_each(|ended| ended.expect("all answers are right"));
        });
        assert!(filter.stats().expiry.unwrap().sweeps > 0, "{:?}", filter.stats());
        let now = filter.now().expect("the clock has a tick").get();
        filter.advance_to(Tick::new(now + ticks));
        (0..100).for_each(|_| _ = filter.advance_to(Tick::new(now + ticks)));
        assert_eq!((filter.len(), filter.live_len()), (0, 0), "all that was added has died, and was counted");
    }
}

/// The end of an entry is put off again and again, just in time. Every thread finds it, although its end changes
/// all the time.
#[test]
fn what_is_kept_on_is_always_found() {
    for ticks in [3, 15] {
        let filter = filter(400, ticks, 1e-6);
        filter.advance_to(Tick::new(0));
        let keys: Vec<u64> = (0..100).collect();
        keys.iter().for_each(|key| _ = filter.insert_or_renew_until(key, Tick::new(ticks)).expect("there is room"));
        let (done, looked) = (AtomicBool::new(false), [0, 0].map(AtomicU64::new));
        thread::scope(|threads| {
            let (filter, keys, done, looked) = (&filter, &keys, &done, &looked);
            threads.spawn(move || {
                let _ends = Ends(done);
                let mut now = 0;
                let readers_lag = || looked.iter().any(|looked| looked.load(Ordering::Relaxed) < ROUNDS);
                while (now < 10 * ROUNDS || readers_lag()) && !done.load(Ordering::SeqCst) {
                    // Before the tick at which the first of them would die.
                    keys.iter().for_each(|key| {
                        _ = filter.insert_or_renew_until(key, Tick::new(now + 2)).expect("it has an entry")
                    });
                    now += 1;
                    filter.advance_to(Tick::new(now));
                }
            });
            for (batched, looked) in [false, true].into_iter().zip(looked) {
                threads.spawn(move || {
                    let _ends = Ends(done);
                    while !done.load(Ordering::SeqCst) {
                        let mut found = Vec::new();
                        if batched {
                            filter.contains_batch(keys, &mut found);
                        } else {
                            found.extend(keys.iter().map(|key| filter.contains(key)));
                        }
                        assert!(found.iter().all(|&found| found), "a live key was missed");
                        looked.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(filter.live_len(), 100, "no second entries");
    }
}

/// One filter reported to several threads that the same key was new, 684,124 times for 500,000 keys.
#[test]
fn of_all_that_race_to_add_a_key_one_does() {
    const THREADS: usize = 4;
    // They begin each round together. In a round, those behind only look up, and so come up with the first one.
    const KEYS: u64 = if cfg!(miri) { 10 } else { 2000 };
    let filter = filter(30_000, 15, 1e-7);
    filter.advance_to(Tick::new(0));
    let (rounds, new) = (if cfg!(miri) { 3 } else { 200 }, AtomicUsize::new(0));
    let barrier = std::sync::Barrier::new(THREADS);
    thread::scope(|threads| {
        for id in 0..THREADS {
            let (filter, barrier, new) = (&filter, &barrier, &new);
            threads.spawn(move || {
                for round in 0..rounds {
                    barrier.wait();
                    // The clock advances meanwhile.
                    if id == 0 {
                        filter.advance_to(Tick::new(round));
                    }
                    for key in 0..KEYS {
                        let added = match id % 2 {
                            0 => filter.insert_if_absent_until(&(round << 12 | key), Tick::new(round + 10)),
                            _ => filter.insert_or_renew_until(&(round << 12 | key), Tick::new(round + 9 + key % 3)),
                        };
                        new.fetch_add(usize::from(added.expect("there is room")), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(new.load(Ordering::Relaxed) as u64, rounds * KEYS);
}
