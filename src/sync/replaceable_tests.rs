use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use super::*;

/// For one test at a time: all readers of the process share their places.
fn alone() -> impl Drop {
    static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    ALONE.lock()
}

/// A value that tells when it is freed.
#[derive(Debug)]
struct Told<'a> {
    number: usize,
    freed: &'a AtomicUsize,
    is_freed: AtomicBool,
}

impl<'a> Told<'a> {
    fn new(number: usize, freed: &'a AtomicUsize) -> Option<Arc<Self>> {
        Some(Arc::new(Self { number, freed, is_freed: AtomicBool::new(false) }))
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.is_freed.store(true, Ordering::SeqCst);
        self.freed.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_value_that_is_held_is_freed_afterwards() {
    let _alone = alone();
    let (registry, freed) = (Registry::new(), AtomicUsize::new(0));
    let current = Replaceable::new(Told::new(1, &freed));
    // More than a thread has places of its own.
    let mut held: Vec<_> = (0..5).map(|_| current.hold(&registry).expect("a value")).collect();
    let mut retired = current.replace(Told::new(2, &freed)).expect("a value");
    assert_eq!(current.hold(&registry).expect("a value").number, 2);
    while let Some(one) = held.pop() {
        retired = retired.free(&registry).expect_err("it is held");
        assert_eq!((one.number, freed.load(Ordering::SeqCst)), (1, 0));
    }
    assert!(retired.free(&registry).is_ok());
    assert_eq!(freed.load(Ordering::SeqCst), 1);
    drop(held);
    drop(current);
    assert_eq!(freed.load(Ordering::SeqCst), 2);
}

#[test]
fn an_owner_keeps_a_value_that_was_replaced() {
    let _alone = alone();
    let (registry, freed) = (Registry::new(), AtomicUsize::new(0));
    let current = Replaceable::new(Told::new(1, &freed));
    let owner = current.get(&registry).expect("a value");
    assert!(current.is_some());
    let retired = current.replace(None).expect("a value");
    assert!(!current.is_some() && current.hold(&registry).is_none());
    assert!(retired.free(&registry).is_ok(), "nobody holds it");
    assert_eq!((owner.number, freed.load(Ordering::SeqCst)), (1, 0));
    drop(owner);
    assert_eq!(freed.load(Ordering::SeqCst), 1);
}

#[test]
fn with_more_readers_than_places_nothing_is_freed() {
    let _alone = alone();
    let (registry, freed) = (Registry::new(), AtomicUsize::new(0));
    let [current, other] = [1, 2].map(|number| Replaceable::new(Told::new(number, &freed)));
    let mut held: Vec<_> = (0..2).map(|_| current.hold(&registry).expect("a value")).collect();
    let retired = other.replace(None).expect("a value");
    held.push(current.hold(&registry).expect("a value"));
    let retired = retired.free(&registry).expect_err("a reader is only counted");
    held.pop();
    assert!(retired.free(&registry).is_ok());
    assert_eq!((held[0].number, freed.load(Ordering::SeqCst)), (1, 1));
}

/// Under Miri, any use of a freed value is an error.
#[test]
fn no_thread_reads_a_value_that_was_freed() {
    let _alone = alone();
    const VALUES: usize = if cfg!(miri) { 100 } else { 20_000 };
    let (registry, freed, next) = (Registry::new(), AtomicUsize::new(0), AtomicUsize::new(1));
    let current = Replaceable::new(Told::new(0, &freed));
    let retired = Mutex::new(Vec::new());
    let is_over = || next.load(Ordering::Relaxed) >= VALUES;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let old = current.replace(Told::new(number, &freed)).expect("there is always one");
                    let mut retired = retired.lock().expect("no thread panics");
                    retired.push(old);
                    for old in core::mem::take(&mut *retired) {
                        retired.extend(old.free(&registry).err());
                    }
                }
            });
        }
        for reader in 0..3 {
            let (current, registry, is_over) = (&current, &registry, &is_over);
            scope.spawn(move || {
                while !is_over() {
                    let held = current.hold(registry).expect("there is always one");
                    let number = held.number;
                    // The one that is current now may be another one.
                    let owned = (reader == 0).then(|| current.get(registry)).flatten();
                    thread::yield_now();
                    assert!(!held.is_freed.load(Ordering::SeqCst) && held.number == number, "freed while held");
                    assert!(owned.is_none_or(|owned| !owned.is_freed.load(Ordering::SeqCst)));
                }
            });
        }
    });
    let made = next.load(Ordering::Relaxed);
    for old in retired.into_inner().expect("no thread panicked") {
        assert!(old.free(&registry).is_ok(), "nobody holds it any more");
    }
    assert_eq!(freed.load(Ordering::SeqCst), made - 1, "all but the current one are freed");
}
