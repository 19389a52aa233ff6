//! The advice of the guide that costs keys, payments or time where it is not followed: what the page says, and beside it
//! the mistake that it warns of, whose harm the test must find.

mod support;

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, ConcurrentCuckooFilter, ExpiringCuckooFilter, Tick};
use support::{Filter, Identity, Raw, hashes};

/// The page `expiry`, *De-duplication with a store*.
mod deduplication {
    use super::*;

    /// A table with a unique key.
    #[derive(Default)]
    struct Store(Mutex<HashSet<&'static str>>);

    impl Store {
        fn has(&self, id: &str) -> bool {
            self.0.lock().unwrap().contains(id)
        }

        fn insert(&self, id: &'static str) -> bool {
            self.0.lock().unwrap().insert(id)
        }
    }

    /// Whether a message is to be processed, by the filter's answer and the store.
    type Decision = fn(&Store, bool) -> bool;

    const ID: &str = "payment-1";

    /// As the page says: the store's insert decides, whatever the filter has answered.
    fn store_decides(store: &Store, is_new: bool) -> bool {
        if !is_new && store.has(ID) {
            return false;
        }
        store.insert(ID)
    }

    /// The mistake: a message that is new to the filter is recorded, and nobody looks whether it was there.
    fn filter_decides(store: &Store, is_new: bool) -> bool {
        let is_first = store.insert(ID);
        is_new || is_first
    }

    /// How many of two threads process one message. Both have the filter's answer before either asks the store. Then the
    /// one with the answer `first` goes on, and the other when that is done.
    fn processed(first: bool, decide: Decision) -> usize {
        let seen = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
        seen.advance_to(Tick::new(0));
        let (store, answered, done) = (Store::default(), Barrier::new(2), Barrier::new(2));
        let consume = || {
            let is_new = seen.insert_if_absent(ID).unwrap();
            answered.wait();
            if is_new == first {
                let is_processed = decide(&store, is_new);
                done.wait();
                return is_processed;
            }
            done.wait();
            decide(&store, is_new)
        };
        thread::scope(|scope| {
            let consumers = [scope.spawn(consume), scope.spawn(consume)];
            consumers.into_iter().map(|consumer| usize::from(consumer.join().unwrap())).sum()
        })
    }

    #[test]
    fn the_insert_of_the_store_decides_after_either_answer_of_the_filter() {
        for first in [true, false] {
            assert_eq!(processed(first, store_decides), 1, "{first} is first");
        }
        assert_eq!(processed(false, filter_decides), 2, "the other had not recorded it yet");
    }
}

/// The pages `security`, *Hazards without an adversary*, and `migrating`, *cuckoofilter*.
mod removal {
    use super::*;

    const KEYS: usize = 100_000;

    fn filter() -> Filter {
        let builder = ConcurrentCuckooFilter::<Raw>::builder().capacity(KEYS).false_positive_rate(0.03);
        builder.hasher(BuildHasherDefault::<Identity>::default()).build().unwrap()
    }

    /// Adds all keys by `insert_if_absent`. Returns each with the answer: whether it was new.
    fn added(filter: &Filter) -> Vec<(Raw, bool)> {
        hashes(0, KEYS).map(|key| (key, filter.insert_if_absent(&key).unwrap())).collect()
    }

    /// The keys with even numbers, which are to be removed.
    fn removed<K: Copy>(keys: &[K]) -> impl Iterator<Item = K> {
        keys.iter().copied().step_by(2)
    }

    /// The keys that are to stay, and are missing.
    fn lost(filter: &Filter, keys: &[(Raw, bool)]) -> Vec<(Raw, bool)> {
        keys.iter().copied().skip(1).step_by(2).filter(|(key, _)| !filter.contains(key)).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn a_key_that_was_inserted_outlives_the_removal_of_any_other() {
        let filter = filter();
        let keys: Vec<_> = hashes(0, KEYS).map(|key| (key, true)).collect();
        keys.iter().for_each(|(key, _)| filter.insert(key).unwrap());
        removed(&keys).for_each(|(key, _)| assert!(filter.remove(&key)));
        assert_eq!((lost(&filter, &keys), filter.len()), (vec![], KEYS / 2));
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_keys_that_were_new_loses_only_keys_that_were_taken_for_others() {
        let filter = filter();
        let keys = added(&filter);
        for (key, _) in removed(&keys).filter(|(_, was_new)| *was_new) {
            assert!(filter.remove(&key), "no other removal takes its copy");
        }
        let lost = lost(&filter, &keys);
        println!("{} of {} are lost", lost.len(), KEYS / 2);
        assert!(!lost.is_empty() && lost.iter().all(|(_, was_new)| !was_new), "one that was new is lost");
        // The next time they are new.
        for (key, _) in lost {
            assert!(filter.contains(&key) || filter.insert_if_absent(&key).unwrap());
        }
    }

    /// The mistake: keys are removed whatever the answer was.
    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_keys_that_were_taken_for_others_loses_keys_that_were_new() {
        let filter = filter();
        let keys = added(&filter);
        removed(&keys).for_each(|(key, _)| _ = filter.remove(&key));
        let lost = lost(&filter, &keys);
        let were_new = lost.iter().filter(|(_, was_new)| *was_new).count();
        println!("{} of {} are lost, and {were_new} of them were new", lost.len(), KEYS / 2);
        assert!(were_new > 0, "so the page warns of it");
    }
}

/// The page `expiry`, *Clocks*.
mod clock {
    use super::*;

    const TICK: Duration = Duration::from_secs(300);
    const LONGEST_PAUSE: u64 = 6;
    const HOUR: Duration = Duration::from_secs(3600);

    /// As the page says: the time is checked before the filter believes it.
    fn advance(filter: &ExpiringCuckooFilter<str>, time: SystemTime) -> Result<Advance, String> {
        let tick = filter.tick_at(time).map_err(|error| error.to_string())?;
        let ahead = filter.now().map_or(0, |now| tick.get().saturating_sub(now.get()));
        if ahead > LONGEST_PAUSE {
            return Err(format!("the time is {ahead} ticks ahead of the filter's"));
        }
        Ok(filter.advance_to(tick))
    }

    /// A time at which a tick begins.
    fn noon() -> SystemTime {
        UNIX_EPOCH + 6_000_000 * TICK
    }

    /// At noon, with a token that is revoked for an hour.
    fn revoked() -> ExpiringCuckooFilter<str> {
        let filter = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(HOUR, TICK).build().unwrap();
        advance(&filter, noon()).unwrap();
        assert_eq!(filter.insert_until("token-17", HOUR), Ok(true));
        filter
    }

    #[test]
    fn a_time_that_is_checked_first_ends_no_entry_by_mistake() {
        for jump in [35 * 60, 24 * 3600, 1 << 40].map(Duration::from_secs) {
            let filter = revoked();
            assert!(advance(&filter, noon() + jump).unwrap_err().contains("ahead"));
            assert!(filter.contains("token-17") && filter.now() == Some(Tick::new(6_000_000)));
            // The right time is believed again, as are pauses, and the entry lives exactly as long as it should.
            assert_eq!(advance(&filter, noon() + HOUR / 2), Ok(Advance::Forward { ticks: 6 }));
            assert_eq!(advance(&filter, noon() + HOUR), Ok(Advance::Forward { ticks: 6 }));
            assert!(filter.contains("token-17"), "the hour's last tick has just begun");
            assert_eq!(advance(&filter, noon() + HOUR + TICK), Ok(Advance::Forward { ticks: 1 }));
            assert!(!filter.contains("token-17"));
        }
        // The mistake: to look at the answer of `advance_to`.
        let filter = revoked();
        let Advance::Forward { ticks: 288 } = filter.advance_to(filter.tick_at(noon() + 24 * HOUR).unwrap()) else {
            panic!()
        };
        filter.advance_to(Tick::new(6_000_000));
        assert!(!filter.contains("token-17"), "by then it has expired for good");
    }
}
