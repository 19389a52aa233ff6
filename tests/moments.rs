//! The moment of a save. With a clock, the tick in a snapshot is that of the image's moment.
//!
//! `cargo test --all-features --test moments`
#![cfg(feature = "snapshot")]

#[path = "support/mod.rs"]
mod support;

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
use rustc_hash::FxHasher;
use support::Ends;

type Fixed = BuildHasherDefault<FxHasher>;
type Expiring = ExpiringCuckooFilter<u64, Fixed>;

/// How many saves there are, at least.
const SAVES: u64 = 60_000;

/// Each entry dies at the next tick. If the clock of a snapshot were later than its image, entries that are dead by
/// then and were swept would live for another round of the ring.
#[test]
fn the_clock_and_the_entries_of_a_snapshot_are_of_one_moment() {
    let builder = Expiring::builder_with_hasher(Fixed::default()).capacity(8).lifetime_in_ticks(3);
    let filter = builder.build().unwrap();
    filter.advance_to(Tick::new(0));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ends = Ends(&ended);
            for tick in (1..).take_while(|_| !ended.load(Ordering::Relaxed)) {
                filter.advance_to(Tick::new(tick));
                filter.insert_until(&(tick % 2), Tick::new(tick + 1)).unwrap();
            }
        });
        let (mut saves, mut wrong) = (0, None);
        // Until both threads have done enough.
        while (saves < SAVES || filter.now() < Some(Tick::new(SAVES)))
            && wrong.is_none()
            && !ended.load(Ordering::Relaxed)
        {
            saves += 1;
            let mut bytes = Vec::new();
            filter.save(&mut bytes).unwrap();
            let loaded = Expiring::load(&bytes[..], Fixed::default(), 1 << 20).unwrap();
            let now = loaded.now().unwrap().get();
            let live = loaded.live_len();
            loaded.advance_to(Tick::new(now + 1));
            wrong = (live > 1 || loaded.live_len() > 0).then_some((now, live, loaded.live_len()));
        }
        ended.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None, "tick, live entries, and those that live a tick later");
    });
}
