//! The moments of a save. With several tables, each table's image has a moment of its own, and the order of these
//! moments matters. With a clock, the tick in a snapshot is that of the image's moment.
//!
//! `cargo test --all-features --test moments`
#![cfg(feature = "snapshot")]

use std::hash::BuildHasherDefault;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, GrowableCuckooFilter};
use rustc_hash::FxHasher;

type Fixed = BuildHasherDefault<FxHasher>;
type Growable = GrowableCuckooFilter<u64, Fixed>;
type Expiring = ExpiringCuckooFilter<u64, Fixed>;

/// A second copy of each key goes into an older table, because the newest is at its capacity. The removal then
/// takes the copy in the newest table. So keys that are in throughout move to older tables while saves begin.
#[test]
fn a_key_that_changes_to_an_older_table_is_in_every_snapshot() {
    let mut images = 0;
    for round in 0..3u64 {
        let filter = Growable::builder_with_hasher(Fixed::default()).capacity(2000).build().unwrap();
        let first = (round << 40) + 1;
        let (mut next, mut first_of_newest) = (first, first);
        while filter.tables() < 5 || filter.len() < filter.capacity() {
            let tables = filter.tables();
            filter.insert(&next).unwrap();
            if filter.tables() > tables {
                first_of_newest = next;
            }
            next += 1;
        }
        assert_eq!(filter.tables(), 5, "the newest table is at its capacity");
        // Makes room in the older tables.
        (first..first + (first_of_newest - first) * 3 / 4).for_each(|key| assert!(filter.remove(&key)));
        let stay: Vec<u64> = (first_of_newest..next - (next - first_of_newest) / 4).collect();
        (0..(first_of_newest - first) / 4).for_each(|key| filter.insert(&((1 << 50) | (next + key))).unwrap());
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for key in &stay {
                    filter.insert(key).unwrap();
                    assert!(filter.remove(key));
                    (0..3000).for_each(|_| spin_loop());
                }
                ended.store(true, Ordering::Release);
            });
            while !ended.load(Ordering::Acquire) {
                let saves: Vec<_> = (0..16).map(|_| filter.begin_save().unwrap()).collect();
                for save in saves {
                    let mut bytes = Vec::new();
                    save.write_to(&mut bytes).unwrap();
                    let loaded = Growable::load(&bytes[..], Fixed::default(), 1 << 30).unwrap();
                    let lost = stay.iter().filter(|key| !loaded.contains(key)).count();
                    assert_eq!(lost, 0, "keys that were in throughout");
                    images += 1;
                }
            }
        });
    }
    assert!(images > 16, "{images} snapshots");
}

/// Each entry dies at the next tick. If the clock of a snapshot were later than its image, entries that are dead by
/// then and were swept would live for another round of the ring.
#[test]
fn the_clock_and_the_entries_of_a_snapshot_are_of_one_moment() {
    let builder = Expiring::builder_with_hasher(Fixed::default()).capacity(8).lifetime_in_ticks(3);
    let filter = builder.build().unwrap();
    filter.advance_to(0);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for tick in (1..).take_while(|_| !ended.load(Ordering::Relaxed)) {
                filter.advance_to(tick);
                filter.insert_until(&(tick % 2), tick + 1).unwrap();
            }
        });
        let (start, mut wrong) = (Instant::now(), None);
        while start.elapsed() < Duration::from_secs(3) && wrong.is_none() {
            let mut bytes = Vec::new();
            filter.save(&mut bytes).unwrap();
            let loaded = Expiring::load(&bytes[..], Fixed::default(), 1 << 20).unwrap();
            let now = loaded.now().unwrap();
            let live = loaded.live_len();
            loaded.advance_to(now + 1);
            wrong = (live > 1 || loaded.live_len() > 0).then_some((now, live, loaded.live_len()));
        }
        ended.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None, "tick, live entries, and those that live a tick later");
    });
}
