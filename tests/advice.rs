//! The advice of the guide that costs keys, payments or time where it is not followed: what the page says, and beside it
//! the mistake that it warns of, whose harm the test must find.

mod support;

use std::hash::BuildHasherDefault;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, ConcurrentCuckooFilter, ExpiringCuckooFilter, Tick};
use support::{Identity, Raw, hashes};

/// The pages `security`, *Hazards without an adversary*, and `migrating`, *cuckoofilter*.
mod removal {
    use super::*;

    const KEYS: usize = 100_000;

    /// Adds all keys by `insert_if_absent`, and removes every second one if the answer to it allows that. Returns the answers
    /// for the keys that are to stay and are missing: whether they were new.
    fn lost(may_be_removed: fn(bool) -> bool) -> Vec<bool> {
        let builder = ConcurrentCuckooFilter::<Raw>::builder().capacity(KEYS).false_positive_rate(0.03);
        let filter = builder.hasher(BuildHasherDefault::<Identity>::default()).build().unwrap();
        let added: Vec<_> = hashes(0, KEYS).map(|key| (key, filter.insert_if_absent(&key).unwrap())).collect();
        for (key, _) in added.iter().step_by(2).filter(|(_, was_new)| may_be_removed(*was_new)) {
            let removed = filter.remove(key);
            assert!(removed || may_be_removed(false), "no other removal takes its copy");
        }
        let lost = added.iter().skip(1).step_by(2).filter(|(key, _)| !filter.contains(key));
        lost.map(|&(_, was_new)| was_new).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_keys_that_were_new_loses_only_keys_that_were_taken_for_others() {
        let lost = lost(|was_new| was_new);
        assert!(!lost.is_empty() && !lost.contains(&true), "one that was new is lost");
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_all_loses_keys_that_were_new() {
        assert!(lost(|_| true).contains(&true), "so the page warns of it");
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
        let filter =
            ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(HOUR).resolution(TICK).build().unwrap();
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
