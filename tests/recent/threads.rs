//! Many threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Ends;
use crate::{builder, held, last, stats, within};

const THREADS: u64 = 4;

/// Each key is brought by all threads. One of them is told that it is new.
#[test]
fn of_all_threads_that_bring_a_key_one_is_told_that_it_is_new() {
    let keys = if cfg!(miri) { 200 } else { 50_000u64 };
    // Each key counts when it is new, and perhaps once more for each thread that renews it.
    let filter = last(keys as usize * THREADS as usize);
    let new: Vec<_> = (0..keys).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|threads| {
        for id in 0..THREADS {
            let (filter, new) = (&filter, &new);
            threads.spawn(move || {
                for key in 0..keys {
                    let is_new = if id % 2 == 0 { filter.insert(&key) } else { filter.insert_or_renew(&key) };
                    new[key as usize].fetch_add(u64::from(is_new), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(new.iter().all(|new| new.load(Ordering::Relaxed) == 1));
    assert_eq!(stats(&filter).evicted, 0);
}

/// Threads bring keys of their own. Each thread finds its last keys, as many as are guaranteed if each other thread has
/// brought as many as were new.
#[test]
fn a_key_is_found_until_so_many_others_were_new() {
    let (each, per_filter) = if cfg!(miri) { (60, 28) } else { (30_000, 1400) };
    let filter = last(per_filter);
    let (at_least, _) = held(&filter);
    // How many calls have returned that a key is new.
    let returned = AtomicU64::new(0);
    let checked: u64 = thread::scope(|threads| {
        let run = |id: u64| {
            let (filter, returned) = (&filter, &returned);
            move || {
                let mut checked = 0;
                let mut own = Vec::new();
                for nth in 0..each {
                    let key = id << 40 | nth;
                    // Keys that were counted before this call began may return later, one on each other thread.
                    let before = returned.load(Ordering::SeqCst);
                    assert!(filter.insert(&key));
                    returned.fetch_add(1, Ordering::SeqCst);
                    own.push((key, before));
                    if nth % 64 == 0 {
                        for &(key, before) in own.iter().rev() {
                            let found = filter.contains(&key);
                            // Those that have returned since, and those that were counted and have not returned.
                            let since = returned.load(Ordering::SeqCst) - before + THREADS;
                            if since >= at_least {
                                break;
                            }
                            assert!(found, "{key} is gone after {since}, and {at_least} are guaranteed");
                            checked += 1;
                        }
                    }
                }
                checked
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|id| threads.spawn(run(id))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(checked > each, "{checked}");
    let stats = stats(&filter);
    assert_eq!((stats.evicted, stats.expired + filter.len() as u64), (0, THREADS * each));
}

/// A filter of a few keys has room for what each thread may add while another one ends the group.
#[test]
fn a_few_keys_beside_many_threads_are_not_evicted() {
    let (threads, each) = if cfg!(miri) { (3, 40) } else { (16, 2_000) };
    for keys in 1..=7 {
        let filter = last(keys);
        thread::scope(|scope| {
            for id in 0..threads {
                let filter = &filter;
                scope.spawn(move || (0..each).for_each(|nth| assert!(filter.insert(&(id << 40 | nth)))));
            }
        });
        assert_eq!((stats(&filter).evicted, stats(&filter).evicted_early_by), (0, 0.0), "{filter:?}");
        assert_eq!(filter.recent_len(), keys, "{filter:?}");
    }
}

/// The time passes while threads insert and look up: no key is missed within the duration.
#[test]
fn keys_are_found_for_their_time_while_it_passes() {
    let (filter, clock) = within(Duration::from_millis(1300), 100_000);
    let end = AtomicBool::new(false);
    // In milliseconds. It is ahead of the filter's clock, or the same.
    let (time, inserted) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|threads| {
        for id in 1..THREADS {
            let (filter, end, time, inserted) = (&filter, &end, &time, &inserted);
            threads.spawn(move || {
                let _ends = Ends(end);
                for nth in 0.. {
                    if end.load(Ordering::Relaxed) && nth > 100 {
                        return;
                    }
                    // No more keys come than there is room for, even if the thread that sets the clock has to wait.
                    while nth > 20 * (time.load(Ordering::SeqCst) + 1) && !end.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    let key = id << 40 | nth;
                    let before = time.load(Ordering::SeqCst);
                    let is_new = if nth % 2 == 0 { filter.insert(&key) } else { filter.insert_or_renew(&key) };
                    let found = filter.contains(&key);
                    // (The filter's clock may show a millisecond less when the insert begins.)
                    if time.load(Ordering::SeqCst) < before + 1300 {
                        assert!(is_new && found, "{key}");
                    }
                    inserted.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = Ends(&end);
        for now in 1..if cfg!(miri) { 20 } else { 20_000 } {
            time.store(now, Ordering::SeqCst);
            clock.set(Duration::from_millis(now));
            let brought = inserted.load(Ordering::Relaxed);
            while now % 8 == 0 && inserted.load(Ordering::Relaxed) == brought && !end.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        }
    });
}

/// More keys come in the time of the window than there is room for. A key that is missed was held for the share of the
/// window that the statistics leave.
#[test]
fn no_key_is_evicted_earlier_than_the_statistics_say() {
    const WINDOW: u64 = 1300;
    let (keys, each) = if cfg!(miri) { (100, 200) } else { (1000, 10_000) };
    // The time passes with the keys, in milliseconds: however slow a thread is, as many come in that time.
    let inserted = Arc::new(AtomicU64::new(0));
    let time = move |inserted: &AtomicU64| inserted.load(Ordering::SeqCst) * WINDOW / (5 * keys);
    let clock = Arc::clone(&inserted);
    let clock = move || Duration::from_millis(time(&clock));
    let filter = builder().within(Duration::from_millis(WINDOW), keys as usize).clock(clock).build().unwrap();
    // For how long each key was held that was missed within the window, at most.
    let missed: Vec<u64> = thread::scope(|threads| {
        let run = |id: u64| {
            let (filter, inserted) = (&filter, &inserted);
            move || {
                let (mut own, mut missed) = (VecDeque::new(), Vec::new());
                for nth in 0..each {
                    let (key, before) = (id << 40 | nth, time(inserted));
                    if filter.insert(&key) {
                        own.push_back((key, before));
                    }
                    inserted.fetch_add(1, Ordering::SeqCst);
                    if nth % 8 == 0 {
                        own.retain(|&(key, before)| {
                            let found = filter.contains(&key);
                            let held = time(inserted) - before;
                            if !found && held < WINDOW {
                                missed.push(held);
                            }
                            found && held < WINDOW
                        });
                    }
                }
                missed
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|id| threads.spawn(run(id))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let early_by = stats(&filter).evicted_early_by;
    let shortest = *missed.iter().min().expect("there is no room for all keys");
    // A millisecond, since the times are rounded.
    assert!((shortest + 1) as f64 >= (1.0 - early_by) * WINDOW as f64, "{shortest}, {early_by}");
    assert!(early_by < 1.0, "{early_by}");
}
