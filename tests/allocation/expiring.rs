//! What a filter whose entries expire asks of the allocator.

use super::support::MapletLayout;
use super::*;
use concurrent_cuckoo_filter::{Advance, ExpiringBuilder, ExpiringCuckooFilter, Tick, WhenFull};

/// A builder with ends of as many bits as the values of the maplet with this layout.
fn builder((expiry_bits, rate, ..): MapletLayout, capacity: usize) -> ExpiringBuilder<u64> {
    let builder = ExpiringCuckooFilter::builder().capacity(capacity).false_positive_rate(rate);
    builder.lifetime_in_ticks((1 << expiry_bits) - 1)
}

#[test]
fn no_operation_allocates_nor_does_a_batch_or_the_clock() {
    for layout in MAPLET_LAYOUTS {
        let filter = builder(layout, 30_000).build().unwrap();
        let longest = filter.plan().lifetime_in_ticks.unwrap();
        let keys: Vec<u64> = (0..100_000).collect();
        let mut answers = Vec::with_capacity(2 * keys.len());
        let ((), requests) = watch(|| {
            assert_eq!(filter.advance_to(Tick::new(7)), Advance::Origin);
            let end = |key: u64| 8 + key % longest;
            // Fills the table completely and goes on, so that paths are searched and inserts refused.
            let held = (0..).find(|&key| filter.insert_until(&key, Tick::new(end(key))).is_err()).unwrap();
            assert!((0..held).all(|key| filter.contains(&key)));
            (held..held + 100).for_each(|key| _ = filter.insert_if_absent_until(&key, Tick::new(8)));
            (0..100).for_each(|key| assert!(filter.remove_expiring_at(&key, Tick::new(end(key)))));
            (0..100).for_each(|key| _ = filter.insert_or_renew_until(&key, Tick::new(7 + longest)).unwrap());
            // More copies than there is room for, lifetimes that are too long, and entries that are dead already.
            (0..30).for_each(|_| _ = filter.insert_until(&held, Tick::new(8)));
            assert!(
                filter.insert_until(&held, Tick::new(8 + longest)).is_err()
                    && filter.insert_until(&held, Tick::new(7)).is_ok()
            );
            // The clock advances, and dead entries make room.
            for tick in 8..20 {
                filter.advance_to(Tick::new(tick));
                (held + 100 * tick..held + 100 * tick + 100)
                    .for_each(|key| _ = filter.insert_until(&key, Tick::new(tick + longest)));
            }
            assert!(
                filter.stats().expiry.unwrap().expired > 0
                    && filter.stats().inserts_refused > 0
                    && filter.live_len() > 0
            );
            assert!(filter.stats().false_positive_rate > 0.0 && filter.plan().resolution.is_none());
            filter.restart_clock(Tick::new(1000));
            filter.advance_to(Tick::new(1 << 40));
            assert_eq!(filter.live_len(), 0);
            filter.clear();

            let end = Tick::new((1 << 40) + 1);
            let entries = || keys.iter().map(|key| (key, end));
            let held = filter.insert_until_batch(entries(), &mut answers).unwrap_err().index;
            answers.clear();
            filter.contains_batch(&keys, &mut answers);
            filter.remove_expiring_at_batch(entries().take(held), &mut answers);
            assert!(filter.is_empty());
        });
        assert_eq!(requests.count, 0, "{filter:?}");
    }
}

#[test]
fn to_forget_allocates_nothing() {
    for layout in MAPLET_LAYOUTS {
        let filter = builder(layout, 30_000).when_full(WhenFull::EvictOldest).build().unwrap();
        let longest = filter.plan().lifetime_in_ticks.unwrap();
        let ((), requests) = watch(|| {
            filter.advance_to(Tick::new(0));
            for tick in 0..longest.min(20) {
                filter.advance_to(Tick::new(tick));
                (0..10_000).for_each(|key| _ = filter.insert(&(tick << 32 | key)));
            }
        });
        assert!(longest < 4 || filter.stats().expiry.unwrap().evicted > 0, "{filter:?}");
        assert_eq!(requests.count, 0, "{filter:?}");
    }
}

#[test]
fn memory_that_is_refused_is_an_error_that_names_the_size() {
    for layout in MAPLET_LAYOUTS {
        for &capacity in CAPACITIES {
            let build = || builder(layout, capacity).build();
            drop(build());
            let (filter, requests) = watch(|| build().unwrap());
            assert_eq!(filter.stats().memory_usage, size_of_val(&filter) + requests.bytes, "{filter:?}");
            // Words, stripes, shards, what saves need, the clock, and the box around the table. Only the request
            // for the box cannot be refused.
            assert_eq!(requests.count, 6, "{filter:?}");
            let needed = requests.bytes - requests.last;
            for nth in 1..requests.count {
                let error = refuse(nth, build).expect_err("refused");
                assert!(
                    matches!(error, BuildError::OutOfMemory { bytes, .. } if bytes == needed),
                    "request {nth} of {filter:?}: {error:?} for {needed}"
                );
            }
        }
    }
}

#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
mod saved {
    use std::io;

    use super::super::snapshots::assert_allocates_no_more;
    use super::*;
    use concurrent_cuckoo_filter::StableHashBuilder;

    type Filter = ExpiringCuckooFilter<u64, StableHashBuilder>;

    #[test]
    fn load_allocates_no_more_than_the_limit_and_says_so() {
        for keys in [0, 1, 100, 3000, 100_000] {
            for layout in MAPLET_LAYOUTS {
                let state = || StableHashBuilder::with_key([5; 16]);
                let filter = builder(layout, keys as usize).hasher(state()).build().unwrap();
                filter.advance_to(Tick::new(7));
                (0..keys).for_each(|key| _ = filter.insert_until(&key, Tick::new(8)).unwrap());
                let mut bytes = Vec::new();
                filter.save(&mut bytes).unwrap();
                assert_allocates_no_more(&bytes, filter.stats().memory_usage, size_of::<Filter>(), |bytes| {
                    Ok(Filter::load(bytes, state(), filter.stats().memory_usage)?.stats().memory_usage)
                });
            }
        }
    }

    /// Calls `act` at the first write.
    struct First<F: FnMut()>(Option<F>);

    impl<F: FnMut()> io::Write for First<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.take().into_iter().for_each(|mut act| act());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A sweep keeps words for a save. If the memory for them is refused, the save fails, and the sweep goes on.
    #[test]
    fn memory_refused_to_a_sweep_fails_only_the_save() {
        let filter = builder(MAPLET_LAYOUTS[2], 100_000).build().unwrap();
        filter.advance_to(Tick::new(7));
        (0..100_000).for_each(|key| _ = filter.insert_until(&key, Tick::new(8 + key % 2)).unwrap());
        let act = || assert_eq!(refuse(1, || filter.advance_to(Tick::new(30))), Advance::Forward { ticks: 23 });
        let error = filter.save(First(Some(act))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("a faster writer"), "{error}");
        assert_eq!((filter.len(), filter.stats().expiry.unwrap().expired), (0, 100_000));
        filter.save(io::sink()).unwrap();
    }
}
